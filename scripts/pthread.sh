#!/usr/bin/env bash
# scripts/pthread.sh [REPETITIONS] [SEED]: the pthread programs again and again, each time with other nodes, processes, threads,
# transport, protocol, fault mechanism and size, every other time while something else keeps a core busy.
#
# It stops at the first run that is not verified, or that does not end within two minutes, and prints its exact command line;
# else it prints how many runs there were. 50 repetitions are 200 runs. The SEED makes the same list of runs again.
# What must be built: make.
set -euo pipefail
cd "$(dirname "$0")/.."

repetitions=${1:-50}
RANDOM=${2:-$(( $(date +%s) % 32768 ))}
folder=$(mktemp -d)
busy=
trap '[ -z "$busy" ] || kill "$busy"; rm -rf "$folder"' EXIT

for source in apps/pthread/{pipeline,quicksort,table}.c tests/c/pthread/features.c; do
    build/bin/fspcc --pthread -O2 "$source" -o "$folder/$(basename "$source" .c)"
done

. scripts/random-runs.bash

once() {
    local program size wanted
    for program in pipeline quicksort table features; do
        pick_configuration
        wanted=$((1 + RANDOM % 9))
        case $program in
        pipeline) size="-t $wanted -b $((1 + RANDOM % 80)) -s $RANDOM" ;;
        quicksort) size="-t $wanted -n $((1 + RANDOM % 12000)) -s $RANDOM" ;;
        table) size="-t $wanted -o $((1 + RANDOM % 150)) -s $RANDOM" ;;
        features) size= ;;
        esac
        # shellcheck disable=SC2086 # words
        run_verified pthread "$program: (verified|all right)" build/bin/finespun run --quiet -n "$nodes" -p "$processes" \
            -t "$threads" --transport "$transport" --protocol "$protocol" --faults "$faults" "$folder/$program" $size
    done
}

repeat_loaded "$repetitions"
echo "pthread: $runs runs, every result right"

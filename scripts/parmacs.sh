#!/usr/bin/env bash
# scripts/parmacs.sh [REPETITIONS] [SEED]: the PARMACS programs again and again, each time with other nodes, processes, threads,
# transport, protocol, fault mechanism and size, every other time while something else keeps a core busy.
#
# It stops at the first run that is not verified, or that does not end within two minutes, and prints its exact command line;
# else it prints how many runs there were. 50 repetitions are 150 runs. The SEED makes the same list of runs again.
# What must be built: make; and m4.
set -euo pipefail
cd "$(dirname "$0")/.."

repetitions=${1:-50}
RANDOM=${2:-$(( $(date +%s) % 32768 ))}
folder=$(mktemp -d)
busy=
trap '[ -z "$busy" ] || kill "$busy"; rm -rf "$folder"' EXIT

make -s -C apps/parmacs CC="$PWD/build/bin/fspcc --parmacs" M4MACROS="$PWD/build/share/finespun/c.m4.finespun" OUT="$folder"

. scripts/random-runs.bash

once() {
    local program size wanted
    for program in grid tasks sort; do
        pick_configuration
        wanted=$((1 + RANDOM % (nodes * processes * threads)))
        case $program in
        grid) size="-n $((10 + RANDOM % 40))" ;;
        tasks) size="-d $((3 + RANDOM % 4)) -s $RANDOM" ;;
        sort) size="-n $((1 + RANDOM % 30000)) -s $RANDOM" ;;
        esac
        # shellcheck disable=SC2086 # words
        run_verified parmacs "$program: verified" build/bin/finespun run --quiet -n "$nodes" -p "$processes" -t "$threads" \
            --transport "$transport" --protocol "$protocol" --faults "$faults" "$folder/$program" -p "$wanted" $size
    done
}

repeat_loaded "$repetitions"
echo "parmacs: $runs runs, every result right"

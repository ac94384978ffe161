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

pick() { # pick WORD...: one of them
    local words=("$@")
    picked=${words[RANDOM % ${#words[@]}]}
}

mechanisms=(mprotect)
offered=$(build/bin/finespun doctor)
grep -q '^ ok .*faults: userfaultfd' <<<"$offered" && mechanisms+=(uffd)
# name, transports, line
protocols=$(build/bin/finespun run --protocol help | grep -v '^auto ')

runs=0
for ((repetition = 1; repetition <= repetitions; repetition++)); do
    if [ $((repetition % 2)) = 0 ]; then
        while :; do :; done &
        busy=$!
    fi
    for program in pipeline quicksort table features; do
        pick 1 2 2 3 4 4; nodes=$picked
        pick 1 1 2; processes=$picked
        pick 1 1 2; threads=$picked
        pick shm tcp; transport=$picked
        mapfile -t offered_there < <(awk -v on="$transport" '$2 ~ on || $3 == on { print $1 }' <<<"$protocols")
        pick "${offered_there[@]}"; protocol=$picked
        pick "${mechanisms[@]}"; faults=$picked
        grep -q "^$protocol .*every process is a node" <<<"$protocols" && threads=1
        wanted=$((1 + RANDOM % 9))
        case $program in
        pipeline) size="-t $wanted -b $((1 + RANDOM % 80)) -s $RANDOM" ;;
        quicksort) size="-t $wanted -n $((1 + RANDOM % 12000)) -s $RANDOM" ;;
        table) size="-t $wanted -o $((1 + RANDOM % 150)) -s $RANDOM" ;;
        features) size= ;;
        esac
        # shellcheck disable=SC2206 # words
        command=(build/bin/finespun run --quiet -n "$nodes" -p "$processes" -t "$threads" --transport "$transport"
            --protocol "$protocol" --faults "$faults" "$folder/$program" $size)
        status=0
        timeout --kill-after=10 120 "${command[@]}" >"$folder/output" 2>&1 || status=$?
        runs=$((runs + 1))
        if [ $status != 0 ] || ! grep -qxE "$program: (verified|all right)" "$folder/output"; then
            cat "$folder/output"
            echo "pthread: run $runs failed, exit code $status (124: it did not end within 120 s). The command was:"
            echo "    ${command[*]}"
            exit 1
        fi
    done
    if [ -n "$busy" ]; then
        kill "$busy"
        wait "$busy" 2>/dev/null || true
        busy=
    fi
done
echo "pthread: $runs runs, every result right"

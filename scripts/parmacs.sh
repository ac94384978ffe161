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
    for program in grid tasks sort; do
        pick 1 2 2 3 4 4; nodes=$picked
        pick 1 1 2; processes=$picked
        pick 1 1 2; threads=$picked
        pick shm tcp; transport=$picked
        mapfile -t offered_there < <(awk -v on="$transport" '$2 ~ on || $3 == on { print $1 }' <<<"$protocols")
        pick "${offered_there[@]}"; protocol=$picked
        pick "${mechanisms[@]}"; faults=$picked
        grep -q "^$protocol .*every process is a node" <<<"$protocols" && threads=1
        wanted=$((1 + RANDOM % (nodes * processes * threads)))
        case $program in
        grid) size="-n $((10 + RANDOM % 40))" ;;
        tasks) size="-d $((3 + RANDOM % 4)) -s $RANDOM" ;;
        sort) size="-n $((1 + RANDOM % 30000)) -s $RANDOM" ;;
        esac
        # shellcheck disable=SC2206 # words
        command=(build/bin/finespun run --quiet -n "$nodes" -p "$processes" -t "$threads" --transport "$transport"
            --protocol "$protocol" --faults "$faults" "$folder/$program" -p "$wanted" $size)
        status=0
        timeout --kill-after=10 120 "${command[@]}" >"$folder/output" 2>&1 || status=$?
        runs=$((runs + 1))
        if [ $status != 0 ] || ! grep -qx "$program: verified" "$folder/output"; then
            cat "$folder/output"
            echo "parmacs: run $runs failed, exit code $status (124: it did not end within 120 s). The command was:"
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
echo "parmacs: $runs runs, every result right"

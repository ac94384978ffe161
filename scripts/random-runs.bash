# What the scripts that run programs in random configurations share; sourced by them, in the project's folder.
#   pick WORD...        one of them, in $picked
#   pick_configuration  nodes, processes, threads, transport, protocol, faults
#   run_verified NAME LINE COMMAND...   runs it; ends the script if it fails, does not end, or prints no line LINE (a pattern)
# shellcheck shell=bash disable=SC2034 # its variables are the other scripts'

pick() {
    local words=("$@")
    picked=${words[RANDOM % ${#words[@]}]}
}

mechanisms=(mprotect)
offered=$(build/bin/finespun doctor)
grep -q '^ ok .*faults: userfaultfd' <<<"$offered" && mechanisms+=(uffd)
# name, transport, levels
protocols=$(build/bin/finespun run --protocol list)
runs=0

# offered_over TRANSPORT: the protocols that run over it, in $offered_there
offered_over() {
    mapfile -t offered_there < <(awk -v on="$1" '$2 == on { print $1 }' <<<"$protocols")
}

is_one_level() { grep -q "^$1 [a-z]* 1$" <<<"$protocols"; }

pick_configuration() {
    pick 1 2 2 3 4 4; nodes=$picked
    pick 1 1 2; processes=$picked
    pick 1 1 2; threads=$picked
    pick shm tcp; transport=$picked
    offered_over "$transport"
    pick "${offered_there[@]}"; protocol=$picked
    pick "${mechanisms[@]}"; faults=$picked
    if is_one_level "$protocol"; then threads=1; fi
}

run_verified() {
    local name=$1 line=$2 output status=0
    shift 2
    output=$(timeout --kill-after=10 120 "$@" 2>&1) || status=$?
    runs=$((runs + 1))
    if [ $status != 0 ] || ! grep -qxE "$line" <<<"$output"; then
        printf '%s\n' "$output"
        echo "$name: run $runs failed, exit code $status (124: it did not end within 120 s). The command was:"
        echo "    $*"
        exit 1
    fi
}

# repeat_loaded TIMES: calls `once` so often, every other time while something else keeps a core busy
repeat_loaded() {
    local repetition
    for ((repetition = 1; repetition <= $1; repetition++)); do
        if [ $((repetition % 2)) = 0 ]; then
            while :; do :; done &
            busy=$!
        fi
        once
        if [ -n "$busy" ]; then
            kill "$busy"
            wait "$busy" 2>/dev/null || true
            busy=
        fi
    done
}

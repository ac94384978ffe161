# What the scripts that run programs in random configurations share; sourced by them, in the project's folder.
#   pick WORD...        one of them, in $picked
#   offered_over, is_one_level, $mechanisms: what a configuration can have
#   core_of_mine        one of the cores that this process may use
#   run_verified NAME LINE COMMAND...   runs it; 1, and its output, if it fails, does not end, or prints no line LINE (a pattern)
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

core_of_mine() {
    local cores
    cores=$(taskset --cpu-list --pid $$)
    cores=${cores##*[ ,-]}
    echo "$cores"
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
        return 1
    fi
}

#!/usr/bin/env bash
# scripts/soak.sh MINUTES [SEED]: runs the random program `stress` over random configurations for so many minutes.
#
# Every run has its own seed, number of nodes, processes and threads, transport, protocol, fault mechanism, switch and size. It
# stops at the first run that is not verified, or that does not end within two minutes, and prints its exact command
# line, which can be run again as it stands; else it prints how many runs there were. The SEED makes the same list of
# runs again.
# What must be built: make.
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=${1:?expected a number of minutes: scripts/soak.sh MINUTES [SEED]}
RANDOM=${2:-$(( $(date +%s) % 32768 ))}
. scripts/random-runs.bash

end=$((SECONDS + minutes * 60))
while [ $SECONDS -lt $end ]; do
    pick 1 2 2 3 4 4 5 6 8; nodes=$picked
    pick 1 1 2 3; processes=$picked
    pick 1 1 2; threads=$picked
    pick shm tcp; transport=$picked
    # Every second run under the default.
    offered_over "$transport"
    pick csm-2l "${offered_there[RANDOM % ${#offered_there[@]}]}"; protocol=$picked
    pick "${mechanisms[@]}"; faults=$picked
    # Every second run as it comes; what a switch means nothing for is not given it.
    choices=("--locks queue" "--barrier flat" "--cores one" "--refresh off")
    [[ $protocol == tmk* ]] || choices+=("--locks migratory" "--locks migratory")
    [ "$transport" = shm ] || choices+=("--server iterative" "--receive signal" "--server iterative --receive signal")
    pick "" "${choices[RANDOM % ${#choices[@]}]}"; read -ra switches <<<"$picked"
    pick tiny tiny tiny tiny 5 9 small; size=$picked
    if is_one_level "$protocol"; then threads=1; fi
    # More processors than this only wait for each other's time slices.
    [ $((nodes * processes * threads)) -le 16 ] || continue
    seed=$((RANDOM * 32768 + RANDOM))
    run_verified soak 'stress: verified' build/bin/finespun run --quiet -n "$nodes" -p "$processes" -t "$threads" \
        --transport "$transport" --protocol "$protocol" --faults "$faults" "${switches[@]}" \
        build/apps/stress --size "$size" --iters 5 --seed "$seed"
done
echo "soak: $runs runs in $minutes minutes, every value right"

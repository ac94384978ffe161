#!/usr/bin/env bash
# scripts/performance.sh [PREFIX ...]: measures what docs/performance.md reads and writes docs/performance/. The words of PREFIX stand
# in front of the command, for example `chrt -r 1` where others use the machine too.
set -euo pipefail
cd "$(dirname "$0")/.."

bench=("$@" build/bin/finespun bench)
folder=build/performance
mkdir -p "$folder"

write() { # write NAME TITLE FLAGS ...: the tables under a title, the drawing beside them, and the numbers in build/
    local name=$1 title=$2
    shift 2
    "${bench[@]}" "$@" --json "build/bench-$name.json" --svg "$folder/$name.svg" >"build/bench-$name.md"
    {
        printf '# %s\n\nWritten by `scripts/performance.sh`: `%s`; %s.\n\n' "$title" "finespun bench${*:+ $*}" "$(date -u +%F)"
        cat "build/bench-$name.md"
    } >"$folder/$name.md"
}

write operations 'What each operation costs' --rounds 5 --repeat 15
write growth 'How costs grow' --scale --faults auto

# Together, at the end: tables that were changed before the second run would make it say that its commit is not what was committed.
mkdir -p docs/performance
cp "$folder"/* docs/performance/

#!/usr/bin/env python3
"""Runs tests/c/lock_cost.c with mutexes in a queue at their manager and with migratory ones, in turns, and prints a table in Markdown.

Usage: scripts/locks-table.py [--quick] [--repeat N]

Messages are sync_messages per lock and unlock: exact but for the barriers around the measurement, which are taken off. Times are
the smallest of N runs (and of their rounds, but for the mutex wanted by all): what is measured is shorter than what else a machine does meanwhile.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

MUTEXES = 64
# What is asked, its mode of lock_cost, flags, rounds, and how many locks a round is.
CASES = [
    ("a free mutex again, in the node that had it last", "again", "-n 2", 200, MUTEXES),
    ("a free mutex that another node had last", "moved", "-n 2", 100, 2 * MUTEXES),
    ("the same, three nodes", "moved", "-n 3", 100, 2 * MUTEXES),
    ("wanted by all, two nodes of one processor", "wanted", "-n 2", 1000, 2),
    ("wanted by all, two nodes of two processes", "wanted", "-n 2 -p 2", 500, 4),
    ("wanted by all, two nodes of two threads", "wanted", "-n 2 -t 2", 500, 4),
    ("the same, crowded", "crowded", "-n 2 -t 2", 500, 4),
]


def build():
    program = "build/tests/lock_cost"
    os.makedirs("build/tests", exist_ok=True)
    subprocess.run(["cc", "-O2", "-std=c11", "-Wall", "-o", program, "tests/c/lock_cost.c", "-Iinclude", "-Lbuild/lib", "-lfinespun",
                    "-lpthread", "-lm", "-Wl,-rpath,$ORIGIN/../lib"], check=True)
    return program


def run(program, mode, flags, rounds, transport, locks):
    with tempfile.NamedTemporaryFile(suffix=".json") as stats:
        done = subprocess.run(["build/bin/finespun", "run", "--quiet", *flags.split(), "--transport", transport, "--locks", locks,
                               "--stats", stats.name, program, mode, str(rounds)],
                              capture_output=True, text=True, timeout=120, check=True)
        found = re.search(r"lock_cost: \w+ (\d+) ns", done.stdout)
        return int(found.group(1)), json.load(open(stats.name, encoding="utf-8"))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--quick", action="store_true", help="few rounds")
    arguments.add_argument("--repeat", type=int, default=9, help="runs of each (9)")
    arguments = arguments.parse_args()
    os.chdir(os.path.join(os.path.dirname(__file__), ".."))
    program = build()
    print("| | transport | messages, queue | migratory | ns, queue | migratory | releases deferred, migratory |")
    print("|---|---|---|---|---|---|---|")
    for what, mode, flags, rounds, locks_a_round in CASES:
        rounds = max(2, rounds // 50) if arguments.quick else rounds
        for transport in ["shm", "tcp"]:
            messages, times, deferred = {}, {}, 0
            for _ in range(arguments.repeat):
                for locks in ["queue", "migratory"]:
                    _, few = run(program, mode, flags, 1, transport, locks)
                    ns, many = run(program, mode, flags, 1 + rounds, transport, locks)
                    each = (many["sync_messages"] - few["sync_messages"]) / (rounds * locks_a_round)
                    times.setdefault(locks, []).append(ns)
                    messages.setdefault(locks, []).append(each)
                    if locks == "migratory":
                        deferred = max(deferred, many["deferred_releases"] / many["lock_acquires"])
            def middle(values):
                return sorted(values)[len(values) // 2]
            print(f"| {what} (`{flags}`) | {transport} | {middle(messages['queue']):.2f} | {middle(messages['migratory']):.2f} "
                  f"| {min(times['queue'])} | {min(times['migratory'])} | {100 * deferred:.0f} % |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

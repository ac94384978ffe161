#!/usr/bin/env python3
"""Runs every application under many configurations and prints a table in Markdown.

Usage: scripts/applications-table.py [--quick] [--repeat N]

Each cell's time is the program's own (its "time" line), the median of N runs, beside the sequential program's; counts
are of the run with the median time. Every run verifies its result by another method; one that does not is shown as such.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

SIZES = {
    "sor": ["--size", "1024", "--iters", "50"],
    "lu": ["--size", "512", "--block", "16"],
    "clu": ["--size", "512", "--block", "16"],
    "matmul": ["--size", "512"],
    "gauss": ["--size", "384"],
    "tsp": ["--size", "11"],
    "stress": ["--size", "tiny", "--iters", "3", "--seed", "7"],
}
QUICK = {"sor": ["--size", "128", "--iters", "5"], "lu": ["--size", "64", "--block", "16"],
         "clu": ["--size", "64", "--block", "16"], "matmul": ["--size", "64"], "gauss": ["--size", "64"],
         "tsp": ["--size", "8"], "stress": ["--size", "tiny", "--iters", "1", "--seed", "7"]}

CONFIGURATIONS = [
    (nodes, views, threads, transport, faults)
    for nodes, views, threads in [(1, 1, 1), (2, 1, 1), (4, 1, 1), (8, 1, 1), (1, 2, 1), (2, 2, 1), (1, 1, 2), (2, 1, 2)]
    for transport in ["shm", "tcp"]
    for faults in ["uffd", "mprotect"]
    if not (nodes == 1 and transport == "tcp")
]


def own_time(output):
    found = re.search(r"^\w+: time ([0-9.]+) s", output, re.M)
    return float(found.group(1)) if found else None


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


def measure(app, flags, configuration, repeat, protocol="csm-2l"):
    nodes, views, threads, transport, faults = configuration
    runs = []
    for _ in range(repeat):
        with tempfile.NamedTemporaryFile(suffix=".json") as stats:
            code, output = run([
                "build/bin/finespun", "run", "--quiet", "-n", str(nodes), "-p", str(views), "-t", str(threads),
                "--protocol", protocol, "--transport", transport, "--faults", faults, "--stats", stats.name,
                f"build/apps/{app}", *flags, "--verify"])
            if code != 0 or f"{app}: verified" not in output:
                print(output, file=sys.stderr)
                return None
            runs.append((own_time(output), json.load(open(stats.name, encoding="utf-8"))))
    runs.sort(key=lambda one: one[0])
    return runs[len(runs) // 2]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--quick", action="store_true", help="tiny sizes")
    arguments.add_argument("--repeat", type=int, default=3, help="runs of each configuration (3)")
    arguments = arguments.parse_args()
    os.chdir(os.path.join(os.path.dirname(__file__), ".."))
    failed = 0
    print("| application | -n -p -t | transport | faults | verified | read + write faults | pages | diffs | messages | kB | time ms | sequential ms |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for app, flags in (QUICK if arguments.quick else SIZES).items():
        sequential = "-"
        if app != "stress":
            times = [own_time(run([f"build/apps/{app}", *flags, "--sequential"])[1]) for _ in range(arguments.repeat)]
            sequential = f"{1000 * statistics.median(times):.1f}"
        for configuration in CONFIGURATIONS:
            nodes, views, threads, transport, faults = configuration
            measured = measure(app, flags, configuration, arguments.repeat)
            head = f"| {app} | {nodes} {views} {threads} | {transport} | {faults} |"
            if measured is None:
                failed += 1
                print(head + " **no** |")
                continue
            seconds, stats = measured
            print(f"{head} yes | {stats['read_faults']} + {stats['write_faults']} | {stats['page_transfers']} | {stats['diffs']} "
                  f"| {stats['messages']} | {stats['bytes'] // 1000} | {1000 * seconds:.1f} | {sequential} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

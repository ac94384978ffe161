#!/usr/bin/env python3
"""Runs every application under every protocol on 4 nodes and prints tables in Markdown, as [Cashmere05 table IV] has one.

Usage: scripts/protocols-table.py [--quick] [--repeat N] [--protocols A,B ..] [--applications A,B ..]

Four processors: 4 nodes of one process over each transport that the protocol runs on; and 2 nodes of two processes for the
one-level protocols (which make 4 nodes of them) beside their two-level ones. Every run verifies its result by another method
than the program's own. Runs of the protocols take turns, so that a busy minute of the machine meets all of them; counts are of
the run with the median time. The second table is what `--protocol auto` rests on: over the applications, the geometric mean of
each protocol's time, as a multiple of the best one's.
"""

import argparse
import importlib.util
import math
import os
import subprocess
import sys

# Beside the applications at the other table's sizes: lu where columns of different nodes share pages.
MORE = {"lu 500": ("lu", ["--size", "500", "--block", "20"])}
HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS = ["messages", "kB", "page transfers", "diffs", "twins", "notices", "updates", "revocations",
           "migrations (attempts)", "broadcast (used)", "faults", "time ms"]


def applications_table():
    """The other table's script, whose sizes and ways to run an application are used here."""
    spec = importlib.util.spec_from_file_location("applications_table", os.path.join(HERE, "applications-table.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def protocols():
    """(name, transports, is one-level) of each protocol, from the command itself."""
    listed = subprocess.run(["build/bin/finespun", "run", "--protocol", "list"], capture_output=True, text=True, check=True)
    found = {}
    for line in listed.stdout.splitlines():
        name, transport, levels = line.split()
        if name != "csm-2l":  # is another of the list, the best for the transport
            found.setdefault(name, (name, [], levels == "1"))[1].append(transport)
    return list(found.values())


def two_level(name, names):
    """The protocol that a one-level one is compared with."""
    other = name.replace("-1l-", "-")
    return other if other != name and other in names else "csm-dms"


def configurations(only):
    """(nodes, processes per node, transport, protocol), in the order of the table."""
    known = [each for each in protocols() if not only or each[0] in only]
    names = [name for name, _, _ in known]
    rows = [(4, 1, transport, name)
            for transport in ("shm", "tcp") for name, transports, one_level in known
            if transport in transports and (not one_level or not name.startswith("csm-1l"))]
    beside = []
    for name, transports, one_level in known:
        if one_level and "shm" in transports:
            for other in (two_level(name, names), name):
                if (2, 2, "shm", other) not in beside:
                    beside.append((2, 2, "shm", other))
    return rows + beside


def counts(stats):
    of = lambda name: stats.get(name, 0)
    return [of("messages"), of("bytes") // 1000, of("page_transfers"), of("diffs"), of("twins"), of("write_notices"),
            of("updates"), of("revocations"),
            f"{of('migrations')} ({of('migration_attempts')})" if of("migration_attempts") else "-",
            f"{of('broadcasts')} ({of('broadcast_hits')})" if of("broadcasts") else "-",
            of("read_faults") + of("write_faults")]


def measure_in_turns(table, app, flags, rows, repeat):
    """The median run of each row; None where one was not verified."""
    runs = {row: [] for row in rows}
    for _ in range(repeat):
        for row in rows:
            nodes, views, transport, name = row
            runs[row].append(table.measure(app, flags, (nodes, views, 1, transport, "auto"), 1, name))
    return {row: None if None in those else sorted(those, key=lambda one: one[0])[len(those) // 2]
            for row, those in runs.items()}


def print_means(times):
    """Per transport: how many times the best protocol's time each one takes, by the geometric mean over applications."""
    print("\n| transport | protocol | time, as a multiple of the best's |")
    print("|---|---|---|")
    for transport in ("shm", "tcp"):
        logs = {}
        for (app, nodes, views, on, name), seconds in times.items():
            if on == transport and (nodes, views) == (4, 1):
                logs.setdefault(name, {})[app] = math.log(seconds)
        means = {name: sum(each.values()) / len(each) for name, each in logs.items()}
        best = min(means.values(), default=0)
        for name, mean in sorted(means.items(), key=lambda one: one[1]):
            print(f"| {transport} | {name} | {math.exp(mean - best):.2f} |")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--quick", action="store_true", help="tiny sizes")
    arguments.add_argument("--repeat", type=int, default=3, help="runs of each configuration (3)")
    arguments.add_argument("--protocols", default="", help="only these, with commas")
    arguments.add_argument("--applications", default="", help="only these, with commas")
    arguments = arguments.parse_args()
    table = applications_table()
    os.chdir(os.path.join(HERE, ".."))
    rows = configurations([name for name in arguments.protocols.split(",") if name])
    apps = [name for name in arguments.applications.split(",") if name]
    failed, times = 0, {}
    print(f"| application | -n -p | transport | protocol | {' | '.join(COLUMNS)} |")
    print("|" + "---|" * (4 + len(COLUMNS)))
    sizes = {app: (app, flags) for app, flags in (table.QUICK if arguments.quick else table.SIZES).items()}
    for label, (app, flags) in {**sizes, **({} if arguments.quick else MORE)}.items():
        if apps and app not in apps:
            continue
        measured = measure_in_turns(table, app, flags, rows, arguments.repeat)
        for row, found in measured.items():
            nodes, views, transport, name = row
            head = f"| {label} | {nodes} {views} | {transport} | {name} |"
            if found is None:
                failed += 1
                print(head + " **not verified** |")
                continue
            seconds, stats = found
            times[label, nodes, views, transport, name] = seconds
            print(head + "".join(f" {count} |" for count in counts(stats)) + f" {1000 * seconds:.1f} |", flush=True)
    print_means(times)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

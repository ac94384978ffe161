#!/usr/bin/env python3
"""Runs every application under every protocol on 4 nodes and prints a table in Markdown, as [Cashmere05 table IV] has one.

Usage: scripts/protocols-table.py [--quick] [--repeat N]

Over shm; "-p 2 -n 2" for the one-level protocol beside the two-level one. Every run verifies its result by another method than
the program's own. Counts are of the run with the median time.
"""

import argparse
import importlib.util
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def applications_table():
    """The other table's script, whose sizes and ways to run an application are used here."""
    spec = importlib.util.spec_from_file_location("applications_table", os.path.join(HERE, "applications-table.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def protocols():
    listed = subprocess.run(["build/bin/finespun", "run", "--protocol", "help"], capture_output=True, text=True, check=True)
    names = [line.split()[0] for line in listed.stdout.splitlines()]
    # csm-2l is one of the others, the best for the transport.
    return [name for name in names if name != "csm-2l"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--quick", action="store_true", help="tiny sizes")
    arguments.add_argument("--repeat", type=int, default=3, help="runs of each configuration (3)")
    arguments = arguments.parse_args()
    table = applications_table()
    os.chdir(os.path.join(HERE, ".."))
    failed = 0
    print("| application | -n -p | protocol | messages | kB | page transfers | diffs | twins | write notices | faults | time ms |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for app, flags in (table.QUICK if arguments.quick else table.SIZES).items():
        for nodes, views, names in [(4, 1, protocols()[:-1]), (2, 2, ["csm-dms", "csm-1l-dms"])]:
            for name in names:
                measured = table.measure(app, flags, (nodes, views, 1, "shm", "auto"), arguments.repeat, name)
                head = f"| {app} | {nodes} {views} | {name} |"
                if measured is None:
                    failed += 1
                    print(head + " **not verified** |")
                    continue
                seconds, stats = measured
                faults = stats["read_faults"] + stats["write_faults"]
                counts = [stats["messages"], stats["bytes"] // 1000, stats["page_transfers"], stats["diffs"], stats["twins"],
                          stats["write_notices"], faults]
                print(head + "".join(f" {count} |" for count in counts) + f" {1000 * seconds:.1f} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Draws the figures of Strings' ablation again: every application in the configurations S, M, K, C, P, B [Strings §3.7].

Usage: scripts/strings-figures.py [--quick] [--repeat N] [-n NODES] [-p PROCESSORS] [--protocol NAME] [--svg FILE]

Prints Markdown: time and its parts (figures 3 and 4), faults, barriers and locks (figures 5 to 8), messages (table 2). Every run
verifies its result. Of N runs the fastest is shown, the one least disturbed by what else the machine did; the runs of an
application take turns over the configurations.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIGURATIONS = "SMKCPB"
PARTS = [
    ("page fault", ["read_fault_ns", "write_fault_ns"], "#c0504d"),
    ("lock", ["lock_wait_ns"], "#9bbb59"),
    ("barrier", ["barrier_wait_ns"], "#8064a2"),
    ("releases", ["flush_ns"], "#f79646"),
    ("service", ["service_ns"], "#4bacc6"),
    ("compute", ["compute_ns"], "#4f81bd"),
]


def applications_table():
    """The other table's script, whose sizes and ways to run an application are used here."""
    spec = importlib.util.spec_from_file_location("applications_table", os.path.join(HERE, "applications-table.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def default_protocol():
    """Strings' own where it is there; else what sends everything by messages."""
    listed = subprocess.run(["build/bin/finespun", "run", "--protocol", "list"], capture_output=True, text=True, check=True)
    names = [line.split()[0] for line in listed.stdout.splitlines()]
    return "strings-rc" if "strings-rc" in names else "csm-none"


def run(table, app, flags, configuration, arguments):
    with tempfile.NamedTemporaryFile(suffix=".json") as stats:
        code, output = table.run([
            "build/bin/finespun", "run", "--quiet", "-n", str(arguments.nodes), "-p", str(arguments.processors),
            "--transport", "tcp", "--protocol", arguments.protocol, "--strings", configuration, "--stats", stats.name,
            f"build/apps/{app}", *flags, "--verify"])
        if code != 0 or f"{app}: verified" not in output:
            print(output, file=sys.stderr)
            return None
        return table.own_time(output), json.load(open(stats.name, encoding="utf-8"))


def measure(table, app, flags, arguments):
    """The fastest run of each configuration; none where one was not verified."""
    best = {}
    for _ in range(arguments.repeat):
        for configuration in CONFIGURATIONS:
            found = run(table, app, flags, configuration, arguments)
            if found is None:
                best[configuration] = None
            elif configuration not in best or best[configuration] and found[0] < best[configuration][0]:
                best[configuration] = found
    return best


def sequential(table, app, flags, repeat):
    if app == "stress":
        return None
    return min(table.own_time(table.run([f"build/apps/{app}", *flags, "--sequential"])[1]) for _ in range(repeat))


def nanos(stats, names):
    return sum(processor[name] for processor in stats["breakdown"] for name in names)


def each(total, count):
    """Microseconds for each, of nanoseconds for all."""
    return f"{total / count / 1000:.0f}" if count else "-"


def times_row(app, configuration, seconds, stats, alone):
    total = sum(nanos(stats, names) for _, names, _ in PARTS)
    shares = "".join(f" {100 * nanos(stats, names) / total:.0f} % |" for _, names, _ in PARTS)
    speed_up = f"{alone / seconds:.2f}" if alone else "-"
    return f"| {app} | {configuration} | {1000 * seconds:.1f} | {speed_up} |{shares}"


def costs_row(app, configuration, stats):
    faults = stats["read_faults"] + stats["write_faults"]
    fault_ns = nanos(stats, ["read_fault_ns", "write_fault_ns"])
    barrier_ns, lock_ns = nanos(stats, ["barrier_wait_ns"]), nanos(stats, ["lock_wait_ns"])
    return (f"| {app} | {configuration} | {faults / stats['processors']:.0f} | {stats['page_transfers']} | {each(fault_ns, faults)} "
            f"| {each(barrier_ns, stats['barriers'])} | {each(lock_ns, stats['lock_acquires'])} |")


def messages_row(app, configuration, stats, nodes):
    """Per node of the machine's, as in the paper: in S a node is several."""
    sync = stats["sync_messages"]
    count, size = stats["messages"] + sync, stats["bytes"] + 32 * sync
    handled = stats["handled_by_waiters"] + stats["handled_by_service"]
    waiters = 100 * stats["handled_by_waiters"] / handled if handled else 0
    return (f"| {app} | {configuration} | {count / nodes:.0f} | {size / count if count else 0:.0f} | {waiters:.0f} % "
            f"| {stats['signals_taken']} | {stats['deferred_releases']} of {stats['lock_acquires']} |")


def draw(results, file):
    """Bars of the parts of the time, each application's normalised to its configuration S: figure 4."""
    bar, gap, between, height, top = 22, 4, 34, 240, 36
    drawn = [(app, best) for app, best in results if best.get("S")]
    most = max(run[0] / best["S"][0] for _, best in drawn for run in best.values() if run)
    width = 60 + len(drawn) * (len(CONFIGURATIONS) * (bar + gap) + between)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height + top + 60}" font-family="sans-serif" '
             'font-size="11">', f'<rect width="{width}" height="{height + top + 60}" fill="white"/>']
    for index, (name, _, colour) in enumerate(PARTS):
        lines.append(f'<rect x="{40 + 100 * index}" y="10" width="10" height="10" fill="{colour}"/>'
                     f'<text x="{54 + 100 * index}" y="19">{name}</text>')
    x = 50
    for app, best in drawn:
        lines.append(f'<text x="{x}" y="{top + height + 34}">{app}, S = 1</text>')
        for configuration in CONFIGURATIONS:
            if best.get(configuration):
                seconds, stats = best[configuration]
                scale = height * seconds / best["S"][0] / most / sum(nanos(stats, names) for _, names, _ in PARTS)
                y = float(top + height)
                for _, names, colour in reversed(PARTS):
                    part = scale * nanos(stats, names)
                    y -= part
                    lines.append(f'<rect x="{x}" y="{y:.1f}" width="{bar}" height="{part:.1f}" fill="{colour}"/>')
                lines.append(f'<text x="{x}" y="{y - 3:.1f}" font-size="9">{seconds / best["S"][0]:.2f}</text>')
            lines.append(f'<text x="{x + 7}" y="{top + height + 16}">{configuration}</text>')
            x += bar + gap
        x += between
    lines.append("</svg>")
    with open(file, "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")


def table_of(head, rows):
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    print("\n".join(rows), flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--quick", action="store_true", help="tiny sizes")
    arguments.add_argument("--repeat", type=int, default=5, help="runs of each configuration (5)")
    arguments.add_argument("-n", dest="nodes", type=int, default=2, help="nodes (2)")
    arguments.add_argument("-p", dest="processors", type=int, default=2, help="processors of each node (2)")
    arguments.add_argument("--protocol", help="strings-rc where it is there, else csm-none")
    arguments.add_argument("--svg", help="draws figure 4 into this file")
    arguments = arguments.parse_args()
    os.chdir(os.path.join(HERE, ".."))
    arguments.protocol = arguments.protocol or default_protocol()
    table, results, alone = applications_table(), [], {}
    for app, flags in (table.QUICK if arguments.quick else table.SIZES).items():
        alone[app] = sequential(table, app, flags, arguments.repeat)
        results.append((app, measure(table, app, flags, arguments)))
        print(f"{app} done", file=sys.stderr)
    print(f"{arguments.protocol} over tcp, {arguments.nodes} nodes of {arguments.processors} processors; {os.cpu_count()} cores.")
    rows = [(app, configuration, *best[configuration]) for app, best in results for configuration in CONFIGURATIONS if best[configuration]]
    table_of(["application", "configuration", "time ms", "speed-up"] + [name for name, _, _ in PARTS],
             [times_row(app, configuration, seconds, stats, alone[app]) for app, configuration, seconds, stats in rows])
    table_of(["application", "configuration", "page faults per processor", "pages fetched, in all", "us per fault", "us per barrier", "us per lock"],
             [costs_row(app, configuration, stats) for app, configuration, _, stats in rows])
    table_of(["application", "configuration", "messages per node", "bytes each", "handled by waiters", "signals", "releases deferred"],
             [messages_row(app, configuration, stats, arguments.nodes) for app, configuration, _, stats in rows])
    failed = [f"{app} {configuration}" for app, best in results for configuration in CONFIGURATIONS if not best[configuration]]
    if failed:
        print("\n**Not verified:** " + ", ".join(failed))
    if arguments.svg and rows:
        draw(results, arguments.svg)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

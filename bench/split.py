#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A program with a known split of its CPU time (60, 30 and 10 %, measured by its own thread clock): what stillframe
and perf say, and how far off they are, alone on the machine and beside as many other programs as there are CPUs. Shares
are of the three functions' time; the program's own clock reading, some 0.5 %, is left out.

The statistical error of n samples at share p is sqrt(p (1 - p) / n)."""
import json
import math
import sqlite3

from common import *

SECONDS = sys.argv[1] if len(sys.argv) > 1 else "50"
NAMES = ("spin_sixty", "spin_thirty", "spin_ten")


def shares(weights):
    return {name: 100 * weights.get(name, 0) / sum(weights.values()) for name in NAMES}


def truth(text):
    return shares({name: float(share) for name, share in re.findall(r"(spin_\w+)\s+([\d.]+)", text)})


def by_stillframe(program):
    _, out = run(STILLFRAME, "record", "-F", "199hz", "-o", "/tmp/bench-split.sfr", "--", *program)
    report = json.loads(run(STILLFRAME, "report", "/tmp/bench-split.sfr", "--clock", "cpu", "--json")[1])
    with sqlite3.connect("/tmp/bench-split.sfr") as database:
        n = database.execute("select sum(cpu_ns > 0) from samples").fetchone()[0]
    os.unlink("/tmp/bench-split.sfr")
    return truth(out), shares({row["name"]: row["self_ns"] for row in report["functions"] if row["name"] in NAMES}), n


def by_perf(program):
    _, out = run("perf", "record", "-q", "-e", "cpu-clock:u", "-F", "199", "-o", "/tmp/bench-split.data", *program)
    _, text = run("perf", "report", "-i", "/tmp/bench-split.data", "--stdio", "--no-children", "-q")
    _, script = run("perf", "script", "-i", "/tmp/bench-split.data", "-F", "time")
    os.unlink("/tmp/bench-split.data")
    found = {name: float(share) for share, name in re.findall(r"([\d.]+)%.*\[\.\] (spin_\w+)", text)}
    return truth(out), shares(found), len(script.splitlines())


def measure_all(beside):
    for tool, measure in (("stillframe", by_stillframe), ("perf", by_perf)):
        if tool == "perf" and not have("perf"):
            continue
        real, found, n = measure(program)
        for name in NAMES:
            statistical = 100 * math.sqrt(real[name] / 100 * (1 - real[name] / 100) / n)
            yield (beside, tool, n, name, "%.2f %%" % real[name], "%.2f %%" % found[name],
                   "%+.2f" % (found[name] - real[name]), "%.2f" % statistical)


program = [os.path.join(PROGRAMS, "busy_split"), SECONDS]
rows = list(measure_all("alone"))
busy = [subprocess.Popen([os.path.join(BENCH, "stalls"), "1", "1000"], stdout=subprocess.DEVNULL)
        for _ in range(os.cpu_count())]
try:
    rows += measure_all("beside %d busy programs" % len(busy))
finally:
    for process in busy:
        process.kill()
        process.wait()
table("A known split of CPU time", rows,
      ["", "tool", "samples", "function", "true", "seen", "error (points)", "one standard deviation"])

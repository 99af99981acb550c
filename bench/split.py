#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A program with a known split of its CPU time (60, 30 and 10 %, measured by its own thread clock): what stillframe
and perf say, and how far off they are. The statistical error of n samples at share p is sqrt(p (1 - p) / n)."""
import json
import math

from common import *

SECONDS = sys.argv[1] if len(sys.argv) > 1 else "50"
NAMES = ("spin_sixty", "spin_thirty", "spin_ten")


def truth(text):
    return {name: float(share) for name, share in re.findall(r"(spin_\w+)\s+([\d.]+)", text)}


def by_stillframe(program):
    _, out = run(STILLFRAME, "record", "-F", "199hz", "-o", "/tmp/bench-split.sfr", "--", *program)
    shares = json.loads(run(STILLFRAME, "report", "/tmp/bench-split.sfr", "--clock", "cpu", "--json")[1])
    os.unlink("/tmp/bench-split.sfr")
    total = shares["total_ns"]
    found = {row["name"]: 100 * row["self_ns"] / total for row in shares["functions"] if row["name"] in NAMES}
    n = int(re.search(r"([\d,]+) sampled", out)[1].replace(",", ""))
    return truth(out), found, n


def by_perf(program):
    _, out = run("perf", "record", "-q", "-e", "cpu-clock:u", "-F", "199", "-o", "/tmp/bench-split.data", *program)
    _, text = run("perf", "report", "-i", "/tmp/bench-split.data", "--stdio", "--no-children", "-q")
    _, script = run("perf", "script", "-i", "/tmp/bench-split.data", "-F", "time")
    os.unlink("/tmp/bench-split.data")
    found = {name: float(share) for share, name in re.findall(r"([\d.]+)%.*\[\.\] (spin_\w+)", text)}
    return truth(out), found, len(script.splitlines())


program = [os.path.join(PROGRAMS, "busy_split"), SECONDS]
rows = []
for tool, measure in (("stillframe", by_stillframe), ("perf", by_perf)):
    if tool == "perf" and not have("perf"):
        continue
    real, found, n = measure(program)
    for name in NAMES:
        share = real[name]
        statistical = 100 * math.sqrt(share / 100 * (1 - share / 100) / n)
        rows.append((tool, n, name, "%.2f %%" % share, "%.2f %%" % found.get(name, 0),
                     "%+.2f" % (found.get(name, 0) - share), "%.2f" % statistical))
table("A known split of CPU time", rows,
      ["tool", "samples", "function", "true", "seen", "error (points)", "one standard deviation"])

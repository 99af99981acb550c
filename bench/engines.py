#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The engines side by side, and `perf record -g`, on the same programs at 997 Hz, launched by each: the comparison of docs/engines.md.

- busy_split, which of three functions has the time: stacks that were got, of those that were due; those that are whole; the largest error of the
  three shares in points, by the program's own count, with one standard deviation of a sample's chance.
- in_work, a fixed amount of work, 64 frames deep, in turns: CPU time of the target over that without a profiler (by the signal engine the agent's threads
  are in it), and the profiler's own, of the target's.
- stalls, which reads the clock without a pause, 64 frames deep: the part of the time in which it stands, and the longest gap.
- eintr_table, which makes 40 kinds of blocking calls after random times on the CPU: calls that failed with EINTR, or returned early.

engines.py [SECONDS [ROUNDS]]: for busy_split and stalls (20), and of in_work (5). Takes some seven minutes."""
import contextlib
import json
import math
import resource
import sqlite3

from common import *

SECONDS = sys.argv[1] if len(sys.argv) > 1 else "20"
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
RATE = 997
NAMES = ("spin_sixty", "spin_thirty", "spin_ten")
FOLDER = tempfile.mkdtemp(prefix="stillframe-bench-")
FILE = os.path.join(FOLDER, "recording")


def ours(*options):
    return [STILLFRAME, "record", "-q", "-F", str(RATE), "--clock", "cpu", "-o", FILE, *options, "--"]


# What stands before the program. To add one: a line.
WAYS = {
    "nothing": [],
    "`perf record -g`": ["perf", "record", "-q", "-g", "-e", "cpu-clock", "-F", str(RATE), "-o", FILE],
    "`perf`": ours("-e", "perf"),
    "`bpf`": ours("-e", "bpf"),
    "`ptrace`": ours("-e", "ptrace"),
    "`signal`, `walk=sampler`": ours("-e", "signal", "--walk", "sampler"),
    "`signal`, `walk=handler`": ours("-e", "signal", "--walk", "handler"),
}


def watched(way, name, *words):
    """What the program says, whatever its exit status. The recording before is removed: one tool does not replace another's."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(FILE)
    command = [*WAYS[way], os.path.join(BENCH if name == "stalls" else PROGRAMS, name), *map(str, words)]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, cwd=FOLDER).stdout


def shares(weights):
    return {name: 100 * weights.get(name, 0) / sum(weights.get(each, 0) for each in NAMES) for name in NAMES}


def seen_by_us():
    """(samples of a thread on a CPU, percent of whole stacks, {function: time})"""
    report = json.loads(run(STILLFRAME, "report", FILE, "--clock", "cpu", "--json")[1])
    with sqlite3.connect(FILE) as database:
        n = database.execute("SELECT count(*) FROM samples WHERE state = 0 AND stack <> 0").fetchone()[0]
    ends = {each["end"]: each["ticks"] for each in report["ends"]}
    return n, "%.2f %%" % (100 * ends.get("root", 0) / sum(ends.values())), {each["name"]: each["self_ns"] for each in report["functions"]}


def seen_by_perf():
    """perf does not say whether a stack is whole."""
    _, text = run("perf", "report", "-i", FILE, "--stdio", "--no-children", "-q", "-g", "none")
    _, stats = run("perf", "report", "-i", FILE, "--stats")
    return int(re.search(r"SAMPLE events: *(\d+)", stats)[1]), "", {name: float(share) for share, name in re.findall(r"([\d.]+)%.*\[\.\] (spin_\w+)", text)}


def split(way):
    out = watched(way, "busy_split", SECONDS)
    if way == "nothing":
        return "", "", ""
    true = shares({name: float(share) for name, share in re.findall(r"(spin_\w+)\s+([\d.]+)", out)})
    n, whole, weights = seen_by_perf() if "record" in way else seen_by_us()
    found = shares(weights)
    worst = max(NAMES, key=lambda name: abs(found[name] - true[name]))
    deviation = 100 * math.sqrt(true[worst] / 100 * (1 - true[worst] / 100) / n)
    return ("%.1f %%" % (100 * n / (float(re.search(r"cpu_seconds ([\d.]+)", out)[1]) * RATE)), whole,
            "%.2f (%.2f)" % (abs(found[worst] - true[worst]), deviation))


def work(way):
    """CPU seconds: (the target, the profiler)"""
    used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    before = used()
    out = watched(way, "in_work", 8000, 1, 64)
    target = float(re.search(r"process_cpu ([\d.]+)", out)[1])
    return target, used() - before - target


def stalls(way):
    out = watched(way, "stalls", 64, SECONDS)
    return "%s %%, %.0f us" % (re.search(r"stalled-share ([\d.]+)", out)[1], float(re.search(r"longest ([\d.]+)", out)[1]))


def calls(way):
    out = watched(way, "eintr_table", 5, 5, "burn")
    count = lambda what: sum(map(int, re.findall(r"(\d+) " + what, out)))
    return "%d of %d" % (count("EINTR") + count("early"), count("calls"))


def main():
    works = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way in WAYS:
            works[way].append(work(way))
    for way in WAYS:
        nothing = works["nothing"]
        over = "" if way == "nothing" else ratio([ran[0] / base[0] for ran, base in zip(works[way], nothing)])
        own = "" if way == "nothing" else "%.1f %%" % (100 * median([ran[1] / base[0] for ran, base in zip(works[way], nothing)]))
        yield (way, *split(way), over, own, stalls(way), calls(way))


WAYS = {way: words for way, words in WAYS.items() if not words or have(words[0])}
table("The same programs by each engine, %d Hz, %s s" % (RATE, SECONDS), main(),
      ["with", "stacks of those due", "whole", "largest error in points (one standard deviation)", "target's CPU time", "own", "stands, longest",
       "calls that failed"])
shutil.rmtree(FOLDER)

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The engines and perf side by side on a fixed amount of work: what they add to the CPU time of the target, what they take themselves, with
their children, what both add to the whole tree, the stacks that they get of those that are due, the size of the file, and the time from the end of the target to their exit.

The work is done in turns with nothing and with each tool, since the speed of a shared machine changes from minute to minute.
"over nothing" compares with the run of nothing in the same round; the median of the rounds.

perf_stacks.py [ROUNDS [THREADS [RATE ...]]]: a round takes about 30 seconds for each rate."""
import resource
import sqlite3

from common import *

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 4
THREADS = int(sys.argv[2]) if len(sys.argv) > 2 else 2
RATES = [int(each) for each in sys.argv[3:]] or [99, 999, 4000, 10000]
TURNS = "8000"
DEPTH = "64"
FOLDER = tempfile.mkdtemp(prefix="stillframe-bench-")
WORK = [os.path.join(PROGRAMS, "in_work"), str(int(TURNS) // THREADS), str(THREADS), DEPTH]


def tree_cpu():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def watched(command, file, count):
    """{target: CPU seconds, tree: the same of all, stacks, size, after: seconds}"""
    before, start = tree_cpu(), time.monotonic()
    _, out = run(*command, cwd=FOLDER)
    end = time.monotonic()
    found = dict(target=float(re.search(r"process_cpu ([\d.]+)", out)[1]), tree=tree_cpu() - before, elapsed=end - start,
                 stacks=0, size=0)
    found["own"] = found["tree"] - found["target"]
    if file:
        found["stacks"], found["size"] = count(file), os.path.getsize(file)
        os.unlink(file)
    return found


def of_recording(file):
    with sqlite3.connect(file) as database:
        return database.execute("SELECT count(*) FROM samples WHERE state = 0 AND stack <> 0").fetchone()[0]


def of_perf(file):
    _, out = run("perf", "report", "-i", file, "--stats")
    return int(re.search(r"SAMPLE events: *(\d+)", out)[1])


def ours(engine, rate, *more):
    file = os.path.join(FOLDER, engine + ".sfr")
    return watched([STILLFRAME, "record", "-q", "--engine", engine, "--clock", "cpu", "-F", "%dhz" % rate, *more, "-o", file, "--", *WORK],
                   file, of_recording)


def perf(rate, *graph):
    file = os.path.join(FOLDER, "perf.data")
    return watched(["perf", "record", "-q", "-e", "task-clock", "-F", str(rate), *graph, "-o", file, *WORK], file, of_perf)


def ways(rate):
    yield "nothing", lambda: watched(WORK, None, None)
    if have("perf"):
        yield "perf record -g", lambda: perf(rate, "-g")
        yield "perf record --call-graph dwarf,8192", lambda: perf(rate, "--call-graph", "dwarf,8192")
    yield "stillframe, perf", lambda: ours("perf", rate, "--max-cost", "100")   # all samples, as the others take them
    yield "stillframe, ptrace", lambda: ours("ptrace", rate)
    yield "stillframe, signal", lambda: ours("signal", rate)


def rows():
    for rate in RATES:
        runs = {}
        for _ in range(ROUNDS):
            for name, way in ways(rate):
                runs.setdefault(name, []).append(way())
        nothing = runs["nothing"]
        for name, each in runs.items():
            if name == "nothing":
                continue
            over = {what: 100 * statistics.median(ran[what] / base[what] - 1 for ran, base in zip(each, nothing))
                    for what in ("target", "tree", "elapsed")}
            own = 100 * statistics.median(ran["own"] / base["target"] for ran, base in zip(each, nothing))
            stacks = 100 * statistics.median(ran["stacks"] / (ran["target"] * rate) for ran in each)
            yield ("%d Hz" % rate, name, "%+.1f %%" % over["target"], "%.1f %%" % own, "%+.1f %%" % over["tree"], "%+.1f %%" % over["elapsed"],
                   "%.1f %%" % stacks, "%.2f MB" % (statistics.median(ran["size"] for ran in each) / 1e6))


table("%d threads, %s frames; median of %d rounds" % (THREADS, DEPTH, ROUNDS), rows(),
      ["rate", "with", "target's CPU", "own CPU", "whole tree's", "elapsed", "stacks of those due", "file"])
shutil.rmtree(FOLDER)

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs the target to be watched: user and system time and elapsed time of a fixed amount of work, with nothing,
the walk in the handler, the walk by the sampler, and the peers, in turns. The agent's own threads are part of the target's
time, and so is its start. "over nothing" compares with the run of nothing in the same round; the median of the rounds.

signal_cost.py [ROUNDS [FACTOR]]: a round takes half a minute. FACTOR: times the work, which takes a second."""
from signal_common import *

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
FACTOR = int(sys.argv[2]) if len(sys.argv) > 2 else 1
TURNS = 4000 * FACTOR
FIB = "def f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\nfor i in range(%d): f(35)" % FACTOR
QUERY = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %d) "
         "SELECT sum(x * x %% 7) FROM c;" % (4000000 * FACTOR))
CPUS = os.cpu_count()
WORK = {
    "a C loop, 32 deep": [os.path.join(PROGRAMS, "in_work"), str(TURNS), "1", "32"],
    "the same in %d threads" % (4 * CPUS): [os.path.join(PROGRAMS, "in_work"), str(TURNS // (4 * CPUS)), str(4 * CPUS), "32"],
    "python3, recursion": ["/usr/bin/python3", "-c", FIB],
    "sqlite3, a query": ["sqlite3", ":memory:", QUERY],
}
RATES = (100, 1000)


def ways_of(command):
    """The default clock for both walks; and the precise one, to see what it costs."""
    ways = {("", "nothing"): lambda: bare(command)}
    more = [("stillframe, walk=handler, cpu-clock=perf", inside("handler", **{"cpu-clock": "perf"}), None)]
    for rate in RATES:
        for name, start, _ in profilers() + more:
            ways[rate, name] = lambda start=start, rate=rate: start(command, rate)
    return ways


def over(each, nothing, what):
    return median([getattr(ran, what) / getattr(base, what) - 1 for ran, base in zip(each, nothing)])


def rows():
    for label, command in WORK.items():
        if not have(command[0]):
            continue
        runs = in_turns(ROUNDS, ways_of(command))
        nothing = runs["", "nothing"]
        for (rate, name), each in runs.items():
            cells = [label, "%d Hz" % rate if rate else "", name]
            for what in ("cpu", "wall"):
                cells += ["%.3f s" % median([getattr(ran, what) for ran in each]),
                          "%+.2f %%" % (100 * over(each, nothing, what)) if rate else ""]
            yield cells
        for rate in RATES:
            by = {walk: runs[rate, "stillframe, walk=" + walk] for walk in ("sampler", "handler")}
            yield (label, "%d Hz" % rate, "sampler / handler",
                   *(cell for what in ("cpu", "wall") for cell in ("%.3f" % (1 + over(by["sampler"], by["handler"], what)), "")))


table("Cost to the target, median of %d rounds of %d s" % (ROUNDS, FACTOR), rows(),
      ["work", "rate", "with", "user + system", "over nothing", "elapsed", "over nothing"])
clean()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs a JVM to be watched: javac compiles a large source tree, at 10 ms and at 1 ms, with nothing, with
stillframe, with the JDK's own recorder and with the peers, in turns. Times are the JVM's own; stillframe's beside it are
not in them. How many samples each got, and how many of its stacks are broken.

java_cost.py [ROUNDS [REGEX]]: one round takes about two minutes; only those whose period and name ("1 ms, JFR, CPUTimeSample") the
expression finds, else all. One JVM differs from the next by several percent, so few rounds tell little. JDK names a JDK, else the newest here."""
from java_common import *

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 1
WANTED = sys.argv[2] if len(sys.argv) > 2 else ""


def over(each, base, what):
    return ratio([getattr(ran, what) / getattr(beside, what) for ran, beside in zip(each, base)])


def cells(each, bare, rate, saw):
    first = [cell for what in ("cpu", "wall")
             for cell in ("%.2f s" % median([getattr(ran, what) for ran in each]), over(each, bare, what) if saw else "")]
    if not saw:
        return (*first, "", "", "")
    samples, broken = saw(each[-1])
    return (*first, samples, percent(samples / (each[-1].cpu * rate)), "-" if broken is None else "%.2f %%" % (100 * broken))


def rows(words):
    make = lambda *machine: javac(words, *machine)
    ways = {("", "nothing", None): lambda: JavaRun(make(), {}, None)}
    for rate in (100, 1000):
        period = "%g ms" % (1000 / rate)
        for name, start, saw in (each for each in java_profilers() if re.search(WANTED, period + ", " + each[0])):
            ways[period, name, rate, saw] = lambda start=start, rate=rate: start(make, rate)
    runs = in_turns(ROUNDS, ways)
    bare = next(iter(runs.values()))
    for (period, name, rate, *saw), each in runs.items():
        yield (period, name, *cells(each, bare, rate, saw[0] if saw else None))


what, words = source_tree()
JavaRun(javac(words), {}, None)   # the files are in memory from here on
table("javac of JDK %d compiles %s, medians of %d rounds (and all, from least to most)" % (VERSION, what, ROUNDS), rows(words),
      ["period", "with", "user + system", "over nothing", "elapsed", "over nothing", "samples", "of CPU time / period", "broken stacks"])
clean()

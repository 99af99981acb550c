#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fairness: equal threads, each with the same amount of CPU time by its own clock, get equally much. What proftest does,
corrected: the threads end by their own CPU clocks, not after a fixed number of turns, so that they are equal.

max/min over the threads, of the CPU time that samples speak for, and of the number of entries (which have a
statistical error of their own: sqrt(n) of n)."""
from signal_common import *

THREADS = 2 * os.cpu_count()
SECONDS = sys.argv[1] if len(sys.argv) > 1 else "3"


def spread(values):
    return "%.3f" % (max(values) / min(values)) if values and min(values) > 0 else "-"


def rows():
    for clock in ("perf", "timer", "tick", "itimer"):
        for rate in (100, 250, 1000, 4000):
            command = [os.path.join(PROGRAMS, "busy_split"), SECONDS, str(THREADS)]
            ran = inside("sampler", **{"cpu-clock": clock, "clock": "cpu"})(command, rate)
            threads = [thread for thread in ran.report["threads"] if thread["cpu_counted_ns"] > float(SECONDS) * 5e8]
            yield (clock, "%d Hz" % rate, len(threads), spread([thread["cpu_ns"] for thread in threads]),
                   spread([thread["samples"] for thread in threads]), sum(thread["samples"] for thread in threads),
                   percent(ran.running["ticks"] / (ran.number("total_seconds") * rate)))


table("%d equal threads on %d CPUs" % (THREADS, os.cpu_count()), rows(),
      ["cpu-clock", "rate", "threads", "CPU time, max/min", "entries, max/min", "entries", "ticks of those wanted"])
clean()

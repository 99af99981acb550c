#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The share of the wanted samples that arrives with more busy threads than CPUs, at 10 ms and at 1 ms.

Wanted: the CPU time of the threads, by their own clocks, divided by the period. Ticks: samples, each with the number of
periods that it stands for; entries: samples counted once. The peers do not weigh theirs."""
from signal_common import *

SECONDS = sys.argv[1] if len(sys.argv) > 1 else "3"
THREADS = str(4 * os.cpu_count())


def rows():
    for rate in (100, 1000):
        for name, start, count in profilers(clock="cpu"):
            ran = start([os.path.join(PROGRAMS, "busy_split"), SECONDS, THREADS], rate)
            wanted = ran.number("total_seconds") * rate
            row = [name, "%g ms" % (1000 / rate), "%.0f" % wanted, percent(count(ran) / wanted)]
            if "stillframe" in name:
                report = ran.report
                row += [percent(ran.running["samples"] / wanted), percent(report["cpu_seen_ns"] / 1e9 / ran.number("total_seconds"))]
            yield row + ["-"] * (6 - len(row))


table("Share of the wanted samples, %s busy threads on %d CPUs" % (THREADS, os.cpu_count()), rows(),
      ["profiler", "period", "wanted", "ticks", "entries", "CPU time spoken for"])
clean()

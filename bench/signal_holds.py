#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How long a thread stands for one sample, at three depths, on a quiet machine and with all CPUs busy, beside the bare
hand-shake by signal and futexes (signal_trip.c) in the same run."""
from signal_common import *

WORK = sys.argv[1] if len(sys.argv) > 1 else "2500"


def bare_trips():
    for busy in (0, 2 * os.cpu_count()):
        for where, words in (("same", "one CPU"), ("other", "another CPU"), ("free", "wherever the kernel puts it")):
            if where == "other" and os.cpu_count() < 2:
                continue
            text = run(os.path.join(BENCH, "signal_trip"), where, str(busy), "2000")[1]
            found = re.findall(r"[\d.]+", text.replace("p99", ""))
            yield ("%d busy threads beside it" % busy if busy else "quiet", words, *found)


def rows():
    for threads in (1, 4 * os.cpu_count()):
        for depth in (8, 64, 512):
            command = [os.path.join(PROGRAMS, "in_work"), str(int(WORK) // threads), str(threads), str(depth)]
            for name, start in (("handler", inside("handler")), ("sampler", inside("sampler")), ("ptrace, outside", outside)):
                report = start(command, 500).report
                yield ("%d threads" % threads if threads > 1 else "quiet", depth, name, report["holds"],
                       us(report["hold_p50_ns"]), us(report["hold_p99_ns"]), us(report["hold_max_ns"]))


table("The bare round trip by signal, us", bare_trips(),
      ["", "sampler on", "held, median", "p99", "in all, median", "p99"])
table("Held for one sample at 500 Hz, us", rows(), ["", "depth", "walk", "holds", "median", "p99", "longest"])
clean()

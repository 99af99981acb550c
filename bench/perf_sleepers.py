#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A thousand threads asleep, recorded at 20 Hz: context switches and CPU time of the target, and CPU time of stillframe."""
import resource

from common import *

THREADS, SECONDS = "1000", int(sys.argv[1]) if len(sys.argv) > 1 else 20


def of_threads(pid):
    """(CPU time in ns, times put on a CPU)"""
    folder = "/proc/%d/task/" % pid
    counts = [open(folder + tid + "/schedstat").read().split() for tid in os.listdir(folder)]
    return sum(int(count[0]) for count in counts), sum(int(count[2]) for count in counts)


def record(pid, engine, seconds):
    """stillframe's CPU time"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        run(STILLFRAME, "record", "--engine", engine, "-p", str(pid), "-d", "%ds" % seconds, "-o", os.path.join(folder, "r.sfr"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


with Target(os.path.join(PROGRAMS, "many_threads"), THREADS, str(10 * SECONDS + 60), "0", wait=3) as target:
    rows = []
    for engine in ("perf", "ptrace"):
        first = of_threads(target.pid)
        begin = record(target.pid, engine, 1)
        cpu = record(target.pid, engine, 1 + SECONDS)
        last = of_threads(target.pid)
        rows.append((engine, "%d ns" % (last[0] - first[0]), last[1] - first[1], "%.2f s" % begin,
                     "%.1f %%" % (100 * (cpu - begin) / SECONDS)))
    table("%s threads asleep at 20 Hz, for %d s" % (THREADS, SECONDS), rows,
          ["engine", "CPU time of the target", "its context switches", "stillframe, 1 s of it with begin and end", "stillframe, of a core in between"])

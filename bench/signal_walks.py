#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Three ways to walk the same program at the same rate: each thread walks itself in the handler, a sampler thread
inside the process walks it, or stillframe walks it from outside (ptrace). One program, one walker, one set of tables; what
differs is who walks, and what the thread waits for meanwhile."""
from signal_common import *

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
RATE = 1000


def cells(runs, wall):
    reports = [ran.report for ran in runs]
    middle = lambda field: median([report[field] for report in reports])
    ends = [{end["end"]: end["ticks"] for end in report["ends"]} for report in reports]
    whole = median([end.get("root", 0) / max(report["sample_ticks"], 1) for end, report in zip(ends, reports)])
    used = [ran.number("threads_cpu") for ran in runs]
    return (us(middle("hold_p50_ns")), us(middle("hold_p99_ns")), percent(whole),
            percent(median([report["cpu_seen_ns"] / 1e9 / seconds for report, seconds in zip(reports, used)])),
            "%+.2f %%" % (100 * (median([ran.number("wall") for ran in runs]) / wall - 1)))


def rows():
    for threads in (1, 4 * os.cpu_count()):
        command = [os.path.join(PROGRAMS, "in_work"), str(4000 // threads), str(threads), "64"]
        ways = {"nothing": lambda: bare(command), "handler": lambda: inside("handler")(command, RATE),
                "sampler": lambda: inside("sampler")(command, RATE), "outside (ptrace)": lambda: outside(command, RATE)}
        runs = in_turns(ROUNDS, ways)
        wall = median([ran.number("wall") for ran in runs["nothing"]])
        cpu = median([ran.number("threads_cpu") for ran in runs["nothing"]])
        for name, each in runs.items():
            if name == "nothing":
                continue
            slower = 100 * (median([ran.number("threads_cpu") for ran in each]) / cpu - 1)
            yield (threads, name, *cells(each, wall), "%+.2f %%" % slower)


table("Three walks of one program, 64 frames deep, %d Hz, median of %d rounds" % (RATE, ROUNDS), rows(),
      ["threads", "walk", "hold, us", "p99", "whole stacks", "CPU time spoken for", "elapsed", "CPU time of its threads"])
clean()

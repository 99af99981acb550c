#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every stack of a process with 1,000 threads, nearly all asleep: how long it takes, beside gdb and eu-stack."""
import json
import sys

from common import *

THREADS = sys.argv[1] if len(sys.argv) > 1 else "1000"


def stillframe(pid, engine):
    seconds, text = run(STILLFRAME, "dump", "-p", pid, "--json", "--engine", engine)
    dump = json.loads(text)
    frames = [len(thread["frames"]) for thread in dump["threads"]]
    return (seconds, len(frames), sum(frames),
            "%.1f ms" % (dump["looking_ns"] / 1e6), "%.1f us" % (dump["longest_hold_ns"] / 1e3))


def other(*command):
    seconds, text = run(*command)
    threads = len(re.findall(r"^(?:TID |Thread )\d+", text, re.M))
    return seconds, threads, len(re.findall(r"^#\d+", text, re.M)), "-", "-"


with Target(os.path.join(PROGRAMS, "many_threads"), THREADS, "300", "1", wait=1.5) as target:
    pid = str(target.pid)
    tools = {
        "stillframe dump": lambda: stillframe(pid, "auto"),
        "stillframe dump --engine ptrace": lambda: stillframe(pid, "ptrace"),
        "eu-stack": lambda: other("eu-stack", "-p", pid),
        "gdb -batch thread apply all bt": lambda: other("gdb", "-p", pid, "-batch", "-ex", "thread apply all bt"),
    }
    rows, first = [], None
    for name, look in tools.items():
        results = [look() for _ in range(3)]
        seconds = median([result[0] for result in results])
        first = first or seconds
        rows.append((name, "%.2f s" % seconds, "%.1f x" % (seconds / first)) + results[-1][1:])
    table("All stacks of %s threads" % THREADS, rows,
          ["tool", "whole command", "ratio", "threads", "frames", "looking", "longest hold of a thread"])

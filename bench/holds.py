#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How long a thread stands when somebody looks at it: stillframe, gdb, eu-stack and the bare ptrace round trip, all in one run.

The target (stalls.c, 64 frames deep) measures its own gaps, so every tool is judged by the same watch. One look a
time: the longest gap around it. Recording: the holds that stillframe counts, beside the target's gaps.
"""
import signal
import sys
import time

from common import *

LOOKS = int(sys.argv[1]) if len(sys.argv) > 1 else 30


def read_gaps(target):
    """What the target saw since the last time it was asked."""
    target.process.send_signal(signal.SIGUSR1)
    line = target.process.stdout.readline()
    return {name: float(value) for name, value in re.findall(r"([\w-]+) ([\d.]+)", line)}


def longest_gap(target, command):
    read_gaps(target)
    run(*command)
    return read_gaps(target)["longest"]


def looks(target):
    pid = str(target.pid)
    tools = {
        "nobody (sleep 0.1)": ["sleep", "0.1"],
        "stillframe dump, ptrace": [STILLFRAME, "dump", "--engine", "ptrace", "-p", pid],
        "stillframe dump, bpf": [STILLFRAME, "dump", "--engine", "bpf", "-p", pid],
        "eu-stack": ["eu-stack", "-p", pid],
        "gdb -batch": ["gdb", "-p", pid, "-batch", "-ex", "bt"],
    }
    for name, command in tools.items():
        if not have(command[0]):
            continue
        n = LOOKS if "gdb" not in name else max(5, LOOKS // 5)
        gaps = sorted(longest_gap(target, command) for _ in range(n))
        yield name, n, "%.0f" % median(gaps), "%.0f" % gaps[-1]


def recording(target, rate):
    read_gaps(target)
    _, summary = run(STILLFRAME, "record", "--engine", "ptrace", "-p", str(target.pid), "-d", "5s", "-F", rate, "-o", "/tmp/bench-holds.sfr")
    gaps = read_gaps(target)
    holds = re.search(r"holds ([\d,]+): median ([\d.]+ \w+), 99 % within ([\d.]+ \w+), longest ([\d.]+ \w+)", summary)
    os.unlink("/tmp/bench-holds.sfr")
    return (rate, holds[1], holds[2], holds[3], holds[4], "%.0f" % gaps["gaps"], "%.1f" % gaps["median"],
            "%.1f" % gaps["p99"], "%.2f %%" % gaps["stalled-share"])


def quiet(target):
    read_gaps(target)
    time.sleep(5)
    gaps = read_gaps(target)
    return ("nobody", "-", "-", "-", "-", "%.0f" % gaps["gaps"], "%.1f" % gaps["median"], "%.1f" % gaps["p99"],
            "%.2f %%" % gaps["stalled-share"])


bare = [("tracer on %s CPU" % where, run(os.path.join(BENCH, "bare_hold"), where)[1].strip())
        for where in ("same", "other")]
table("Bare ptrace round trip (INTERRUPT, GETREGSET, 2 KiB, CONT), us", bare, ["", "us"])
with Target(os.path.join(BENCH, "stalls"), "64", "600") as spinner:
    table("One look at a running thread, 64 frames deep: the gap that it sees, us", looks(spinner),
          ["tool", "looks", "median", "longest"])
    rows = [quiet(spinner)] + [recording(spinner, rate) for rate in ("199hz", "1000hz")]
    table("While it is recorded for 5 s", rows,
          ["rate", "holds", "median", "p99", "longest", "target's gaps > 2 us", "median us", "p99 us", "stalled"])

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What one more process costs with --children, by each engine and by perf: a shell that runs /bin/true, and a program of some
libraries whose forked children end at once. CPU time of the whole tree, the tool's too, and elapsed time, for each process:
the difference of a run with many and a run with one, in turns with nothing and with each tool.

starts.py [ROUNDS]: a round takes about 10 seconds."""
import resource

from common import *

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
MANY = 100
FOLDER = tempfile.mkdtemp(prefix="stillframe-bench-")
FORKS = ("import ctypes, decimal, hashlib, json, lzma, os, sqlite3, ssl, sys\n"
         "sum(range(3000000))\n"
         "for i in range(int(sys.argv[1])):\n"
         "    os.waitpid(os.fork() or os._exit(0), 0)\n")
# Each begins with work that is long enough for some samples.
LOOP = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; i=0; while [ $i -lt $1 ]; do /bin/true; i=$((i+1)); done"
WORK = {
    "fork, exec and exit of `/bin/true`": ("sh", "-c", LOOP, "sh"),
    "fork and exit of a Python program": ("/usr/bin/python3", "-c", FORKS),
}


def ours(*engine):
    return lambda: [STILLFRAME, "record", "-q", "--children", "--engine", *engine, "-o", os.path.join(FOLDER, "r.sfr"), "--"]


TOOLS = {
    "nothing": lambda: [],
    "perf record -g": lambda: ["perf", "record", "-q", "-g", "-e", "cpu-clock", "-F", "199", "-o", os.path.join(FOLDER, "perf.data"), "--"],
    "`perf`": ours("perf"),
    "`ptrace`": ours("ptrace"),
    "`signal`, sampler": ours("signal", "--walk", "sampler"),
    "`signal`, handler": ours("signal", "--walk", "handler"),
}


def spent(command):
    """(CPU seconds of the tree, elapsed seconds)"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    elapsed, _ = run(*command, cwd=FOLDER)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    for name in os.listdir(FOLDER):
        os.unlink(os.path.join(FOLDER, name))
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, elapsed


def each(tool, work):
    """Milliseconds for one process: (CPU time, elapsed)."""
    many, one = (spent([*TOOLS[tool](), *WORK[work], str(n)]) for n in (1 + MANY, 1))
    return [1000 * (a - b) / MANY for a, b in zip(many, one)]


def rows():
    tools = [tool for tool in TOOLS if tool != "perf record -g" or have("perf")]
    for work in WORK:
        found = {tool: [] for tool in tools}
        for _ in range(ROUNDS):
            for tool in tools:
                found[tool].append(each(tool, work))
        for tool in tools:
            cpu, elapsed = (median(column) for column in zip(*found[tool]))
            yield work, tool, "%.2f ms" % cpu, "%.2f ms" % elapsed


table("What a process costs with --children, median of %d rounds" % ROUNDS, rows(), ["", "with", "CPU time", "elapsed"])
shutil.rmtree(FOLDER)

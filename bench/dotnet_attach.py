#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Attaching to a running .NET program for two seconds: what it costs the program (tests/programs/dotnet/Clock.cs), and how long it
takes. By the agent that the runtime loads, by the same agent once it is in, from outside, and by dotnet-trace, if it is on the
path (dotnet tool install dotnet-trace)."""
import pathlib

from common import *

sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
from test_dotnet import compile_program

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
SECONDS = 2
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="bench-dotnet-"))
PROGRAM = compile_program(FOLDER, "Clock")
PLAIN = {**PLAIN, "TMPDIR": str(FOLDER)}
OURS = [STILLFRAME, "record", "-d", "%ds" % SECONDS, "-o", str(FOLDER / "r.sfr"), "-e"]


def trace(pid):
    return ["dotnet-trace", "collect", "-p", str(pid), "--duration", "00:00:%02d" % SECONDS, "-o", str(FOLDER / "r.nettrace")]


# Name, command, whether the agent is in it before.
WAYS = [("nothing", None, False),
        ("signal, loaded", lambda pid: [*OURS, "signal", "-p", str(pid)], False),
        ("signal, called", lambda pid: [*OURS, "signal", "-p", str(pid)], True),
        ("ptrace", lambda pid: [*OURS, "ptrace", "-p", str(pid)], False)]
if shutil.which("dotnet-trace"):
    WAYS.append(("dotnet-trace", trace, False))


def cpu_of_children():
    used = os.times()
    return used.children_user + used.children_system


def measure(command, before):
    with Target("dotnet", str(PROGRAM), "6", wait=0, env=PLAIN) as target:
        target.process.stdout.readline()
        if before:
            run(*OURS[:2], "-d", "0.5s", *OURS[4:], "signal", "-p", str(target.pid))
        time.sleep(0.5)
        start, cpu = time.monotonic(), cpu_of_children()
        if command:
            run(*command(target.pid), env=PLAIN)
        elapsed, cpu = time.monotonic() - start - SECONDS, cpu_of_children() - cpu
        longest, gaps, rounds = map(int, re.search(r"gaps (\d+) (\d+) (\d+)", target.process.stdout.read()).groups())
        return elapsed if command else 0, cpu, longest / 1000, gaps / 1000, rounds


def main():
    results = {name: [] for name, _, _ in WAYS}
    for _ in range(ROUNDS):
        for name, command, before in WAYS:
            results[name].append(measure(command, before))
    nothing = median([row[4] for row in results["nothing"]])
    rows = []
    for name, values in results.items():
        elapsed, cpu, longest, gaps, rounds = (median(column) for column in zip(*values))
        rows.append([name, "%.2f s" % elapsed, "%.2f s" % cpu, "%.1f ms" % longest, "%.0f ms" % gaps, "%.2f" % (rounds / nothing)])
    table("Attaching to a .NET program for %d s" % SECONDS, rows,
          ["by", "beyond these", "own CPU time", "longest gap", "all gaps in 6 s", "work done"])
    shutil.rmtree(FOLDER)


main()

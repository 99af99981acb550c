#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Attaching to a .NET program of many methods (tests/programs/dotnet/Many.cs): from the start of stillframe to the first sample in managed code,
and its memory at its peak, by each engine. By the agent also when it is in the program before, as in a second recording.

dotnet_many.py [METHODS [ROUNDS]]: 50,000 methods and 5 rounds unless told."""
import pathlib
import sqlite3

from common import *

sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
from test_dotnet import compile_program

METHODS = int(sys.argv[1]) if len(sys.argv) > 1 else 50000
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
SECONDS = 2
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="bench-dotnet-"))
FIRST = """SELECT (SELECT start_monotonic_ns FROM session) + min(s.time_ns) FROM samples s JOIN stacks ON stacks.id = s.stack
           JOIN frames ON frames.id = stacks.frame JOIN kinds ON kinds.id = frames.kind
           WHERE kinds.word IN ('tier0', 'tier0-counting', 'tier1', 'jitted', 'optimized', 'precompiled')"""


def record(pid, engine):
    """(ms to the first sample, MB)"""
    path = str(FOLDER / "r.sfr")
    start = time.monotonic_ns()
    process = subprocess.Popen([STILLFRAME, "record", "-q", "-e", engine, "-F", "997", "-d", "%ds" % SECONDS, "-p", str(pid), "-o", path])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        sys.exit("stillframe -e %s: status %d" % (engine, status))
    first, = sqlite3.connect(path).execute(FIRST).fetchone()
    os.unlink(path)
    return (first - start) / 1e6, usage.ru_maxrss / 1000


def main():
    results = {}
    for _ in range(ROUNDS):
        program = compile_program(FOLDER, "Many")
        with Target("dotnet", str(program), str(METHODS), "600", wait=0, env={**os.environ, "TMPDIR": str(FOLDER)}) as target:
            target.process.stdout.readline()
            for name in ("perf", "ptrace", "signal", "signal, called"):
                results.setdefault(name, []).append(record(target.pid, name.split(",")[0]))
    rows = [[name, "%.0f ms" % median([ms for ms, _ in found]), "%.0f ms" % max(ms for ms, _ in found), "%.1f MB" % max(mb for _, mb in found)]
            for name, found in results.items()]
    table("Attaching to a .NET program of %d methods, %d rounds" % (METHODS, ROUNDS), rows, ["engine", "to the first sample", "longest", "memory at its peak"])
    shutil.rmtree(FOLDER)


main()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What record --event costs a .NET program (tests/programs/dotnet/Events.cs) that does nothing but allocate small arrays, or throw and catch exceptions:
CPU time of the loop, in the process, with the event by CPU time without it. The agent's own threads are in it.

dotnet_events.py [ROUNDS]: 5 rounds unless told."""
import pathlib

from common import *

sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
from test_dotnet import compile_program

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="bench-dotnet-"))
LOOPS = [("allocation", "allocate", 200000000), ("exception", "throw", 1000000)]


def main():
    program = compile_program(FOLDER, "Events")
    rows = []
    for event, loop, n in LOOPS:
        factors, without = [], []
        for _ in range(ROUNDS):
            without.append(cpu_ms(FOLDER, "dotnet", program, loop, n))
            factors.append(cpu_ms(FOLDER, STILLFRAME, "record", "-q", "--event", event, "-o", FOLDER / "r.sfr", "--", "dotnet", program, loop, n) / without[-1])
            os.unlink(FOLDER / "r.sfr")
        rows.append([event, "%.0f ns" % (median(without) * 1e6 / n), "%.2f" % median(factors), "%.2f to %.2f" % (min(factors), max(factors))])
    table("Events of .NET, %d rounds" % ROUNDS, rows, ["event", "CPU time of one without it", "with the event, median", "in all rounds"])
    shutil.rmtree(FOLDER)


main()

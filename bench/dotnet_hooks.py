#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the hooks of record --dotnet-walk shadow cost a .NET program (tests/programs/dotnet/Calls.cs): CPU time of its work, in the process, by that of the
program alone, in the same round. "fib" does nothing but call short methods; "words" does what programs do. Beside it the default walk, hooks in no method,
and hooks in one method only. The agent's own threads are in it.

dotnet_hooks.py [ROUNDS]: 5 rounds unless told."""
import pathlib

from common import *

sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
from test_dotnet import compile_program

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="bench-dotnet-"))
LOOPS = [("fib", 40), ("words", 30)]
WAYS = [("own walk", ["--dotnet-walk", "own"]), ("shadow", ["--dotnet-walk", "shadow"]),
        ("shadow, no method", ["--dotnet-walk", "shadow", "--shadow-only", "^$"]),
        ("shadow, Demo.Calls.Words", ["--dotnet-walk", "shadow", "--shadow-only", r"^Demo\.Calls\.Words$"])]


def main():
    program = compile_program(FOLDER, "Calls")
    factors = {}
    for _ in range(ROUNDS):
        for loop, n in LOOPS:
            alone = cpu_ms(FOLDER, "dotnet", program, loop, n)
            for way, arguments in WAYS:
                took = cpu_ms(FOLDER, STILLFRAME, "record", "-q", "-e", "signal", *arguments, "-o", FOLDER / "r.sfr", "--", "dotnet", program, loop, n)
                factors.setdefault((loop, way), []).append(took / alone)
                os.unlink(FOLDER / "r.sfr")
    rows = [[loop, way, "%.2f" % median(found), "%.2f to %.2f" % (min(found), max(found))] for (loop, way), found in factors.items()]
    table("Hooks of .NET, CPU time by that of the program alone, %d rounds" % ROUNDS, rows, ["work", "recorded by", "median", "in all rounds"])
    shutil.rmtree(FOLDER)


main()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A thousand threads of which nearly none runs, looked at ten times a second: CPU time and context switches of the target."""
from signal_common import *

THREADS, SECONDS = "1000", sys.argv[1] if len(sys.argv) > 1 else "10"
ROUNDS = 3


def rows():
    command = [os.path.join(PROGRAMS, "many_threads"), THREADS, SECONDS, "0"]
    options = {"clock": "both", "blocked-rate": "10hz"}
    ways = {"nothing": lambda: bare(command)}
    ways.update({"walk=" + walk: (lambda walk=walk: inside(walk)(command, 10, **options)) for walk in ("handler", "sampler")})
    ways["ptrace, outside"] = lambda: outside(command, 10, "--blocked-rate", "10")
    for name, each in in_turns(ROUNDS, ways).items():
        sampled = "-" if name == "nothing" else "%.0f s" % (each[-1].report["wall_ns"] / 1e9)
        yield name, "%.3f s" % median([ran.cpu for ran in each]), "%.0f" % median([ran.switches for ran in each]), sampled


table("%s sleeping threads for %s s at 100 ms (with those of the agent; of ptrace, with those of stillframe)" % (THREADS, SECONDS),
      rows(), ["", "user + system", "context switches", "elapsed time seen"])
clean()

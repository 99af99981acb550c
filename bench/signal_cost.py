#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs the target to be watched: user and system time and elapsed time of a fixed amount of work, with nothing,
the walk in the handler, the walk by the sampler, and the peers, in turns. The agent's own threads are part of the target's time."""
from signal_common import *

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 7
WORK = [("1 thread", ["1500", "1", "32"]), ("%d threads" % (4 * os.cpu_count()), ["300", str(4 * os.cpu_count()), "32"])]


def rows():
    for label, words in WORK:
        command = [os.path.join(PROGRAMS, "in_work"), *words]
        for rate in (100, 1000):
            ways = {"nothing": lambda: bare(command)}
            ways.update({name: (lambda start=start: start(command, rate)) for name, start, _ in profilers()})
            runs = in_turns(ROUNDS, ways)
            cpu = {name: median([ran.cpu for ran in each]) for name, each in runs.items()}
            wall = {name: median([ran.wall for ran in each]) for name, each in runs.items()}
            for name in ways:
                yield (label, "%d Hz" % rate, name, "%.3f s" % cpu[name], "%+.2f %%" % (100 * (cpu[name] / cpu["nothing"] - 1)),
                       "%.3f s" % wall[name], "%+.2f %%" % (100 * (wall[name] / wall["nothing"] - 1)))
            handler, sampler = cpu["stillframe, walk=handler"], cpu["stillframe, walk=sampler"]
            yield (label, "%d Hz" % rate, "sampler / handler", "%.3f" % (sampler / handler), "added: %.2f" % (
                (sampler - cpu["nothing"]) / max(handler - cpu["nothing"], 1e-6)),
                "%.3f" % (wall["stillframe, walk=sampler"] / wall["stillframe, walk=handler"]), "")


table("Cost to the target, median of %d rounds" % ROUNDS, rows(),
      ["work", "rate", "with", "user + system", "over nothing", "elapsed", "over nothing"])
clean()

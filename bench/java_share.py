#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The share of the wanted samples that arrives from a JVM with more busy threads than CPUs, at 1 ms. Wanted: the CPU time
that the kernel counted for its threads, divided by the period. Ticks: samples, each with the number of periods that
it stands for (of ptrace, which looks at its own ticks, only CPU time compares)."""
from java_common import *

SECONDS = sys.argv[1] if len(sys.argv) > 1 else "8"
BUSY = "chain fib mega jit lambda stubs alloc except".split()


def watch(classes, engine, *more):
    file = new_file("sfr")
    with Target(os.path.join(JDK, "bin", "java"), "-cp", classes, "Demo", *BUSY, wait=0,
                env={**os.environ, "LD_PRELOAD": AGENT, "STILLFRAME": "listen"}) as target:
        target.process.stdout.readline()
        run(STILLFRAME, "record", "-p", str(target.pid), "--engine", engine, *more, "--clock", "cpu", "-F", "1000",
            "-d", SECONDS + "s", "-q", "-o", file)
    return json.loads(run(STILLFRAME, "report", "--json", file)[1])


def rows(classes):
    for name, words in (("signal, walk=sampler", ("signal", "--walk", "sampler")),
                        ("signal, walk=handler", ("signal", "--walk", "handler")), ("ptrace", ("ptrace", "--max-cost", "100"))):
        report = watch(classes, *words)
        wanted = report["cpu_counted_ns"] / 1e6
        running = next(state for state in report["states"] if state["state"] == "running")
        whole = sum(end["ticks"] for end in report["ends"] if end["end"] == "root")
        yield (name, "%.0f" % wanted, "-" if name == "ptrace" else percent(running["ticks"] / wanted), running["samples"],
               percent(report["cpu_seen_ns"] / report["cpu_counted_ns"]), percent(whole / max(report["sample_ticks"], 1)))


table("JDK %d, %d busy threads on %d CPUs, 1 ms" % (VERSION, len(BUSY), os.cpu_count()), rows(demo_classes()),
      ["stillframe", "wanted", "ticks", "entries", "CPU time spoken for", "whole stacks"])
clean()

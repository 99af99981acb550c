#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How long a Java thread stands for one sample, and what a frame of its walk costs, after the JVM has been watched for a
while already. In the handler the hold is the walk and little else; by ptrace it is the copy of registers and stack."""
import sqlite3

from java_common import *

SECONDS = sys.argv[1] if len(sys.argv) > 1 else "4"
LOADS = [("8 small methods, compiled", ["chain"]), ("recursion, compiled", ["fib"]), ("interpreted", ["interp"])]


def mean_depth(file):
    """Frames of one sample of a Java thread, as walked: inlined ones are not walked."""
    with sqlite3.connect("file:%s?mode=ro" % file, uri=True) as base:
        return base.execute("SELECT sum(s.ticks * d.depth) * 1.0 / sum(s.ticks) FROM samples s JOIN "
                            "(SELECT stack, count(*) AS depth FROM stack_frames GROUP BY stack) d ON d.stack = s.stack"
                            ).fetchone()[0] or 0


def rows(classes):
    for label, threads in LOADS:
        options = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=exclude,Demo::interp*"]
        with Target(os.path.join(JDK, "bin", "java"), *options, "-cp", classes, "Demo", *threads, wait=0,
                    env={**os.environ, "LD_PRELOAD": AGENT, "STILLFRAME": "listen"}) as target:
            target.process.stdout.readline()
            time.sleep(1)
            for name, words in (("ptrace", ["ptrace"]), ("signal, walk=sampler", ["signal", "--walk", "sampler"]),
                                ("signal, walk=handler", ["signal", "--walk", "handler"])):
                for seconds in ("1", SECONDS):   # the first warms up
                    file = new_file("sfr")
                    run(STILLFRAME, "record", "-p", str(target.pid), "--engine", *words, "--clock", "cpu", "-F", "500",
                        "-d", seconds + "s", "-q", "-o", file)
                report, depth = json.loads(run(STILLFRAME, "report", "--json", file)[1]), mean_depth(file)
                per_frame = us(report["hold_p50_ns"] / depth) if "handler" in name and depth else "-"
                yield (label, name, report["holds"], us(report["hold_p50_ns"]), us(report["hold_p99_ns"]), "%.1f" % depth, per_frame)


table("Hold of a Java thread at 500 Hz, JDK %d, us" % VERSION, rows(demo_classes()),
      ["load", "stillframe", "holds", "median", "p99", "frames shown", "hold / frame"])
clean()

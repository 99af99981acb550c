#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs a warm JVM to be watched: javac compiles the same tree again and again in one JVM, and each profiler is
started and stopped in it while it runs, always between two stretches of nothing. So all meet the same compiled code (java_cost.py starts a JVM
for each); what the garbage collector does still differs from one compilation to the next by several percent. User + system is the JVM's own; elapsed time has in it
what a profiler beside it takes of the same CPUs.

java_warm.py [ROUNDS [HZ [COMPILATIONS]]]: a round takes about two minutes. JDK names a JDK, else the newest here."""
import signal

from java_common import *

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
RATE = float(sys.argv[2]) if len(sys.argv) > 2 else 1000
EACH = int(sys.argv[3]) if len(sys.argv) > 3 else 3
WARM = 60       # seconds, until javac is compiled


class Ours:
    def __init__(self, *words):
        self.words = words

    def start(self, pid):
        self.process = subprocess.Popen([STILLFRAME, "record", "-p", str(pid), *self.words, "--clock", "cpu", "-q", "-F", "%g" % RATE,
                                         "-o", new_file("sfr")], stdout=subprocess.DEVNULL)

    def stop(self, pid):
        self.process.send_signal(signal.SIGINT)
        if self.process.wait() != 0:
            sys.exit("stillframe %s: status %d" % (" ".join(self.words), self.process.returncode))


class FlightRecorder:
    def __init__(self, event, setting):
        self.words = ["settings=none", "+%s#enabled=true" % event, "+%s#%s=%gms" % (event, setting, 1000 / RATE)]
        if event == "jdk.ExecutionSample":
            self.words += ["+jdk.NativeMethodSample#enabled=true", "+jdk.NativeMethodSample#period=%gms" % (1000 / RATE)]

    def start(self, pid):
        run(os.path.join(JDK, "bin", "jcmd"), str(pid), "JFR.start", "name=bench", *self.words)

    def stop(self, pid):
        run(os.path.join(JDK, "bin", "jcmd"), str(pid), "JFR.stop", "name=bench", "filename=" + new_file("jfr"))


def compilations(target):
    """(user + system, elapsed) of the next ones that begin from here on, together."""
    now, lines = time.monotonic_ns(), []
    while len(lines) < EACH:
        line = target.process.stdout.readline()
        if not re.fullmatch(r"\d+ \d+ \d+\n", line):
            print("the JVM says: %s" % line.strip(), file=sys.stderr)
            if not line:
                sys.exit("it has ended")
            continue
        began, *spent = map(int, line.split())
        if began >= now:
            lines.append(spent)
    return [sum(line[i] for line in lines) / 1e9 for i in (0, 1)]


ways = {"stillframe, ptrace": Ours("-e", "ptrace"),
        "stillframe, signal, walk=sampler": Ours("-e", "signal", "--walk", "sampler"),
        "stillframe, signal, walk=handler": Ours("-e", "signal", "--walk", "handler"),
        "JFR, ExecutionSample": FlightRecorder("jdk.ExecutionSample", "period")}
if VERSION >= 25:
    ways["JFR, CPUTimeSample"] = FlightRecorder("jdk.CPUTimeSample", "throttle")
what, words = source_tree()
seen = {name: [] for name in ways}
with Target(*again_and_again(words), wait=WARM) as target:
    bare = [compilations(target)]
    for _ in range(ROUNDS):
        for name, way in ways.items():
            way.start(target.pid)
            during = compilations(target)
            way.stop(target.pid)
            bare.append(compilations(target))
            seen[name].append([2 * during[i] / (bare[-2][i] + bare[-1][i]) for i in (0, 1)])
table("A warm javac of JDK %d compiles %s at %g Hz (%.2f s user + system, %.2f s elapsed), medians of %d rounds (and all, from least to most)"
      % (VERSION, what, RATE, *(median([each[i] for each in bare]) / EACH for i in (0, 1)), ROUNDS),
      [[name, *(ratio([each[i] for each in ratios]) for i in (0, 1))] for name, ratios in seen.items()],
      ["with", "user + system over nothing", "elapsed over nothing"])
clean()

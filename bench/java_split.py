#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A JVM that spends 50, 30 and 20 % of its CPU time in three small methods that loops call (tests/java/Split.java): what each engine and
way says, beside the program's own count by its thread's clock, with every JDK under /usr/lib/jvm. Shares are of the time in Split's
methods; what is neither of the three is the loops around the calls, whose own time belongs to them. `~`: the part of that time whose
innermost function is uncertain. With ASPROF_HOME async-profiler stands beside it."""
import sqlite3

from java_common import *

MILLISECONDS = str(int(float(sys.argv[1] if len(sys.argv) > 1 else "8") * 1000))
NAMES = ("half", "third", "fifth")
SOURCE = os.path.join(TOP, "tests", "java", "Split.java")
LAUNCHED = {"launched, perf": ("-e", "perf"), "launched, ptrace": ("-e", "ptrace", "--max-cost", "50"),
            "launched, signal": ("-e", "signal"), "launched, signal, handler": ("-e", "signal", "--walk", "handler"),
            "launched, signal, --cpu-clock perf": ("-e", "signal", "--cpu-clock", "perf")}
ATTACHED = {"attached, perf": ("-e", "perf"), "attached, perf, --java-debug-info": ("-e", "perf", "--java-debug-info"),
            "attached, ptrace, --java-debug-info": ("-e", "ptrace", "--max-cost", "50", "--java-debug-info"),
            "attached, signal": ("-e", "signal")}


def truth_of(text):
    used = next(line.split() for line in text.splitlines() if re.fullmatch(r"\d+ \d+ \d+", line.strip()))
    return {name: 100 * int(ns) / sum(map(int, used)) for name, ns in zip(NAMES, used)}


def row(jdk, way, truth, shares, n, uncertain):
    errors = ["%+.1f" % (shares[name] - truth[name]) for name in NAMES]
    return ("%d" % version_of(jdk), way, n, *errors, "%.1f %%" % (100 - sum(shares.values())), uncertain)


def seen(jdk, way, file, text):
    report = json.loads(run(STILLFRAME, "report", "--clock", "cpu", "--json", file)[1])
    own = {each["name"]: each for each in report["functions"] if each["name"].startswith("Split.")}
    total = sum(each["self_ns"] for each in own.values())
    shares = {name: 100 * own.get("Split.%s(int)" % name, {"self_ns": 0})["self_ns"] / total for name in NAMES}
    with sqlite3.connect(file) as database:
        n = database.execute("SELECT count(*) FROM samples WHERE cpu_ns > 0").fetchone()[0]
    return row(jdk, way, truth_of(text), shares, n, "%.1f %%" % (100 * sum(each.get("approximate_ns", 0) for each in own.values()) / total))


def launched(jdk, classes, way, options):
    file = new_file("sfr")
    _, text = run(STILLFRAME, "record", "-q", "-F", "500hz", *options, "-o", file, "--", jdk + "/bin/java", "-cp", classes, "Split",
                  MILLISECONDS, stdin=subprocess.DEVNULL)
    return seen(jdk, way, file, text)


class Waiting(Target):
    """A JVM that runs already, and gets its work by its standard input."""

    def __init__(self, jdk, classes, *words):
        super().__init__(jdk + "/bin/java", *words, "-cp", classes, "Split", stdin=subprocess.PIPE)

    def work(self):
        self.process.stdout.readline()
        self.process.stdin.write(MILLISECONDS + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()


def attached(jdk, classes, way, options):
    file = new_file("sfr")
    with Waiting(jdk, classes) as target:
        recording = subprocess.Popen([STILLFRAME, "record", "-q", "-F", "500hz", *options, "-o", file, "-p", str(target.pid)])
        time.sleep(2)   # it is watched before there is anything to see
        text = target.work()
        recording.send_signal(signal.SIGINT)
        recording.wait()
    return seen(jdk, way, file, text)


def by_async_profiler(jdk, classes):
    file = new_file("collapsed")
    agent = glob.glob(os.environ["ASPROF_HOME"] + "/lib/libasyncProfiler.so")[0]
    with Waiting(jdk, classes, "-agentpath:%s=start,event=cpu,interval=2ms,collapsed,file=%s" % (agent, file)) as target:
        text = target.work()
        target.process.stdin.close()
        target.process.wait()
    counts = {name: 0 for name in NAMES}
    total = 0
    for stack, n in (line.rsplit(" ", 1) for line in open(file)):
        if "Split." in stack:
            total += int(n)
            leaf = stack.rsplit(";", 1)[1]
            counts[leaf.removeprefix("Split.")] = counts.get(leaf.removeprefix("Split."), 0) + int(n)
    return row(jdk, "async-profiler", truth_of(text), {name: 100 * counts[name] / total for name in NAMES}, total, "")


def rows():
    for jdk in sorted(filter(version_of, {os.path.realpath(path) for path in glob.glob("/usr/lib/jvm/*")}), key=version_of):
        classes = new_file("classes")
        run(jdk + "/bin/javac", "-nowarn", "-d", classes, SOURCE)
        yield from (launched(jdk, classes, *each) for each in LAUNCHED.items())
        yield from (attached(jdk, classes, *each) for each in ATTACHED.items())
        if "ASPROF_HOME" in os.environ:
            yield by_async_profiler(jdk, classes)


table("50, 30 and 20 % in three small methods: errors in points", rows(),
      ["JDK", "way", "samples", *NAMES, "in the loops", "`~`"])
clean()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Memory that it takes to record a JVM of 100 threads for a minute: stillframe's own, at its peak, and what the JVM has more than before.
One JVM for each row, with a heap that is in memory from the start, once it is warm; the first row says what such a JVM takes in that minute
by itself.

java_memory.py [SECONDS]. JDK names a JDK, else the newest here."""
from java_common import *

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
KINDS = ["chain", "interp", "turns", "fib", "mega", "jit", "lambda", "stubs", "except", "deflate"] * 5 + ["sleep", "park", "await", "deep", "pipe"] * 10
WARM = 20       # seconds
AT_THE_END = 3  # seconds before it, the JVM is looked at
WAYS = {"stillframe, ptrace": ["--engine", "ptrace"],
        "stillframe, signal, walk=sampler": ["--engine", "signal", "--walk", "sampler"],
        "stillframe, signal, walk=handler": ["--engine", "signal", "--walk", "handler"]}


def dirty(pid):
    """KiB that are the process's alone."""
    return int(re.search(r"^Private_Dirty: +(\d+) kB", open("/proc/%d/smaps_rollup" % pid).read(), re.M)[1])


def record_it(pid, words):
    process = subprocess.Popen([STILLFRAME, "record", "-p", str(pid), *words, "-q", "-F", "1khz", "-d", "%ds" % SECONDS, "-o", new_file("sfr")])
    time.sleep(SECONDS - AT_THE_END)
    during = dirty(pid)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        sys.exit("stillframe %s: status %d" % (" ".join(words), status))
    return during, "%.1f MB" % (usage.ru_maxrss / 1024)


def leave_it(pid, _):
    time.sleep(SECONDS - AT_THE_END)
    return dirty(pid), "-"


def rows(classes):
    dynamic = ["-XX:+EnableDynamicAgentLoading"] if VERSION >= 9 else []
    command = [os.path.join(JDK, "bin", "java"), *dynamic, "-Xms256m", "-Xmx256m", "-XX:+AlwaysPreTouch", "-cp", classes, "Demo", *KINDS]
    for name, words in {"nothing": None, **WAYS}.items():
        with Target(*command, wait=WARM) as target:
            before = dirty(target.pid)
            during, own = (record_it if words else leave_it)(target.pid, words)
            yield name, own, "%d KiB" % before, "%+d KiB" % (during - before)


table("Memory, 1 kHz, %d s, JDK %d, %d threads" % (SECONDS, VERSION, len(KINDS)), rows(demo_classes()),
      ["with", "stillframe at its peak", "the JVM before", "%d s later" % (SECONDS - AT_THE_END)])
clean()

# SPDX-License-Identifier: Apache-2.0
"""What the tests of Java share: the JDKs that are here, what a JVM says of itself, the stacks of a recording and how they
must be.

Each JDK under /usr/lib/jvm is a judge of its own, and each folder in STILLFRAME_JDKS (with colons between them).
"""
import collections
import fcntl
import glob
import os
import re
import sqlite3
import sys
import time

import pytest

import hanging
from conftest import HERE, LONG
from processes import until
from java_invokes import Calls

SOURCES = os.path.join(HERE, "../java")
BUSY = "chain interp turns fib mega jit lambda stubs alloc except deflate read".split()
ASLEEP = "sleep park await pipe deep".split()
JAVA = ("interpreted", "c1", "c2", "native-method")
# What of a frame could not be told; a code cache that throws code away may cost some of the first.
UNTOLD = ("[Java code that is gone]", "[managed code that was not described]", "[unknown Java method]", "[unknown stub]")
QUIET = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Demo::c*",
         "-XX:CompileCommand=exclude,Demo::interp*", "-XX:CompileCommand=dontinline,Demo::turn*",
         "-XX:CompileCommand=exclude,Demo::turnI*"]


def jdks():
    """{version: folder} of the JDKs here that can compile; one of each version."""
    found = {}
    more = [folder for folder in os.environ.get("STILLFRAME_JDKS", "").split(":") if folder]
    for folder in more + sorted(glob.glob("/usr/lib/jvm/*")):
        release = os.path.join(folder, "release")
        if not os.path.exists(os.path.join(folder, "bin/javac")) or not os.path.exists(release):
            continue
        version = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', open(release).read())
        if version:
            found.setdefault(int(version.group(1)), folder)
    return found


JDKS = jdks()


class Jdk:
    """A JDK and the test's classes, compiled by it into a folder of `root`: java(options, class, arguments) is a command."""

    def __init__(self, version, root):
        self.version, self.folder, self.root = version, JDKS[version], root
        sources = [name for name in sorted(os.listdir(SOURCES)) if name.endswith(".java") and name not in NOT_AT_ONCE and
                   version >= SINCE.get(name, 0)]
        self.classes = self.compiled("classes", *sources)

    def made(self, name, *command):
        """A folder of this name, its files made by this command, to which the folder is added. Several runs of tests may share it
        (tests/run); the first one makes it."""
        folder = os.path.join(self.root, "jdk%d-%s" % (self.version, name))
        with open(folder + ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(folder):
                os.makedirs(folder + ".new", exist_ok=True)
                hanging.run_well([*command, folder + ".new"])
                os.rename(folder + ".new", folder)
        return folder

    def tool(self, name, *arguments):
        """A command: one of its own programs, which takes half of the CPU time when its code is compiled in one way only."""
        return [self.folder + "/bin/" + name, "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", *arguments]

    def compiled(self, name, *sources):
        return self.made(name, *self.tool("javac"), *(os.path.join(SOURCES, each) for each in sources), "-d")

    def java(self, options, *program):
        return [self.folder + "/bin/java", *options, "-cp", self.classes, *program]

    def white_box(self):
        """A folder with the class by which the JVM's own tests call into it."""
        return self.compiled("white", "WhiteBox.java")

    def by_bytecode(self):
        """A folder with the same classes, in which each bytecode has a line of its own."""
        return self.made("bytecodes", sys.executable, os.path.join(SOURCES, "lines_are_bytecodes.py"), self.classes)


COMPILED = {}  # of each version, for all modules of a session: compiling takes longer than many a test
# Which sources need which version, and which are compiled apart.
SINCE, NOT_AT_ONCE = {"Virtual.java": 21, "Intrinsics.java": 9}, ["WhiteBox.java"]


@pytest.fixture(scope="module", params=sorted(JDKS) or [None], ids=lambda version: "jdk%s" % version)
def jdk(request, tmp_path_factory):
    """A Jdk."""
    version = request.param
    if version is None:
        pytest.skip("there is no JDK under /usr/lib/jvm (tools/setup installs one)")
    if version not in COMPILED:
        COMPILED[version] = Jdk(version, os.environ.get("STILLFRAME_CLASSES") or str(tmp_path_factory.mktemp("classes")))
    return COMPILED[version]


# --- what the JVM says ---------------------------------------------------------------------------


def plain(name):
    """A method's name without arguments, and without what differs from run to run."""
    name = re.sub(r"\(.*", "", name)
    name = re.sub(r"(?:/|\+)0x[0-9a-f]+", "", name)
    return re.sub(r"\$\$Lambda(\$\d+)?(/\d+)?", "$$Lambda", name)


def jstack(jdk, pid):
    """{thread name: [(method, line or 0), ...]}, innermost first."""
    text = hanging.run_well(jdk.tool("jstack", pid))
    threads, frames = {}, None
    for line in text.splitlines():
        head = re.match(r'"(.*)" .*nid=', line)
        frame = re.match(r"\s+at ([^(]+)\((?:[^/)]*/)?([^)]*)\)", line)
        if head:
            frames = threads[head.group(1)] = []
        elif frame:
            number = re.search(r":(\d+)$", frame.group(2))
            frames.append((plain(re.sub(r"^[\w.]+@[^/]*/", "", frame.group(1))), int(number.group(1)) if number else 0))
    return threads


def jstack_asleep(jdk, pid, names):
    """What jstack says once each of these threads is in a native method, for the second time."""
    def all_asleep():
        before = jstack(jdk, pid)
        time.sleep(0.2)
        after = jstack(jdk, pid)
        return all(before[name] == after[name] and after[name][0][1] == 0 for name in names) and after
    return until(all_asleep, "all threads sleep", 60)


def java_frames(thread):
    return [(plain(frame["function"]), frame["line"] if frame["kind"] != "native-method" else 0)
            for frame in thread["frames"] if frame["kind"] in JAVA]


# --- the stacks of a recording -------------------------------------------------------------------


Frame = collections.namedtuple("Frame", "name kind via line sure")


class Stacks:
    """The stacks of a recording: for each (thread's name, frames, how it ended) how many ticks; `held`: of each of
    these (for how many samples the thread was interrupted, how many samples there are). A Frame is `sure` when no
    inlined calls can be missing above it."""

    def __init__(self, path):
        db = sqlite3.connect(path)
        words = {table: dict(db.execute("SELECT id, word FROM %s" % table)) for table in ("ends", "vias", "kinds")}
        names = collections.defaultdict(list)
        for frame, name, line, rough in db.execute(
                "SELECT frame, name, line, approximate FROM frame_names ORDER BY frame, seq"):
            names[frame].append((plain(name), line, not rough))
        frames = {frame: (words["kinds"][kind], words["vias"][via])
                  for frame, kind, via in db.execute("SELECT id, kind, via FROM frames")}
        nodes = {node: (parent, frame) for node, parent, frame in db.execute("SELECT id, parent, frame FROM stacks")}
        threads = dict(db.execute("SELECT id, name FROM threads"))
        self.all, self.held = [], []
        for thread, node, end, ticks, held, samples in db.execute(
                'SELECT thread, stack, "end", sum(ticks), sum(1 - unheld), count(*) FROM samples GROUP BY 1, 2, 3'):
            stack = []
            while node:
                node, frame = nodes[node]
                stack += [Frame(name, *frames[frame], line, sure) for name, line, sure in names[frame]]
            self.all.append((threads[thread], stack, words["ends"][end], ticks))
            self.held.append((held, samples))

    def ticks(self, wanted=lambda name, stack, end: True):
        return sum(ticks for name, stack, end, ticks in self.all if wanted(name, stack, end))

    def ends(self):
        return collections.Counter({end: self.ticks(lambda n, s, e, end=end: e == end)
                                    for end in {end for _, _, end, _ in self.all}})


def untold(stacks):
    """The ticks of stacks with a frame of which nothing could be told."""
    return stacks.ticks(lambda name, stack, end: any(frame.name in UNTOLD for frame in stack))


def in_order(names, start, n):
    """Whether those of `names` that are start0 ... start(n-1) are a whole chain without holes, the last one first."""
    found = [int(name[len(start):]) for name in names if re.fullmatch(re.escape(start) + r"\d", name)]
    return found == list(range(len(found) - 1, -1, -1)) and len(found) <= n


def wrong(name, stack):
    """What is wrong with a complete stack of a thread of Demo's; None: nothing."""
    names = [frame[0] for frame in stack]
    if "call_stub" not in names:
        return None if not any(each.startswith("Demo.") for each in names) else "no way into Java"
    below = names[names.index("call_stub"):]
    stripped = any(re.fullmatch("0x.* in libjvm.so", each) for each in below)
    if not stripped and "thread_native_entry" not in below and "java_start" not in below:
        return "the bottom is not the JVM's"
    kind = name.rsplit("-", 1)[1]
    if names.count("Demo.run0") > 1 or (kind != "fib" and names.count("Demo." + kind) > 1):
        return "a frame that is there once is shown twice"
    if not in_order(names, "Demo.c", 8) or not in_order(names, "Demo.interp", 3):
        return "the chain has a hole"
    return None


CALLS = {}  # of each JDK: what its classes call


def no_calls(jdk, stack):
    """The pairs of Java frames of which one cannot have called the other. Of what could not be told nothing is known: those
    are counted (`untold`)."""
    calls = CALLS.setdefault(jdk.version, Calls(jdk))
    calls.learn(frame.name.rpartition(".")[0] for frame in stack if frame.kind in JAVA and "Lambda" not in frame.name)
    return [(callee.name, caller.name, caller.line) for callee, caller in zip(stack, stack[1:])
            if callee.kind in JAVA and caller.kind in JAVA and caller.sure and callee.name not in UNTOLD and
            calls.may_be(caller.name, caller.line, callee.name) is False]


def wrong_chains(jdk, stacks, threads):
    """What is wrong with which stacks: with the whole ones of these threads of Demo's, and with who called whom in any."""
    no_calls(jdk, [frame for _, stack, _, _ in stacks.all for frame in stack])  # reads all classes at once
    faults = [(end == "root" and name in threads and wrong(name, stack) or no_calls(jdk, stack), name,
               [tuple(frame) for frame in stack]) for name, stack, end, _ in stacks.all]
    return [each for each in faults if each[0]]


def told(faults):
    """The first of what wrong_chains() found, a frame a line: whole, which an assertion's own message is not."""
    return "\n".join(str(line) for fault, name, stack in faults[:3] for line in (fault, name, *stack))


# name: (since which JDK, of which JDKs in the short suite, options). None: of all.
LOADS = {
    "default": (8, None, []),
    "interpreter": (8, [17], ["-Xint"]),
    "c1": (8, [], ["-XX:TieredStopAtLevel=1"]),
    "serial-one-heap": (9, [17], ["-XX:+UseSerialGC", "-XX:-SegmentedCodeCache"]),
    "parallel-all-compiled": (8, [], ["-XX:+UseParallelGC", "-Xcomp"]),
    "zgc": (15, [25], ["-XX:+UseZGC"]),
    "every-pc-described": (8, [], ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"]),
    "compact-headers": (25, [25], ["-XX:+UseCompactObjectHeaders"]),
    "no-compressed-pointers": (15, [], ["-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"]),
    "shenandoah": (17, [], ["-XX:+UseShenandoahGC"]),
    "start-up": (8, [], []),
    "deoptimization-storm": (17, [], ["-XX:+UnlockDiagnosticVMOptions", "-XX:+WhiteBoxAPI"]),
}


def pairs(loads=None):
    """(version of a JDK, load) of these loads, else of all; the short suite leaves some out."""
    return [(version, load) for load, (since, short, _) in LOADS.items() for version in sorted(JDKS)
            if version >= since and (LONG or short is None or version in short) and (not loads or load in loads)
            ] or [(None, "default")]


def modes(chosen):
    """(version of a JDK, mode) for {mode: the JDKs that take it in the short suite}; versions that the short suite does not
    choose among take all."""
    return [(version, mode) for mode, short in chosen.items() for version in sorted(JDKS)
            if LONG or version in short or version not in (17, 25)] or [(None, "-Xint")]

# SPDX-License-Identifier: Apache-2.0
"""Java in the signal engine: the agent inside a JVM sees what stillframe sees from outside (test_java.py), with both walks."""
import collections
import os
import sqlite3
import sys

import pytest

import hanging
from conftest import AGENT, LONG, PLAIN, needs_agent
from processes import until
from java_stacks import (  # noqa: F401 (jdk is a fixture)
    ASLEEP, BUSY, JAVA, LOADS, QUIET, UNTOLD, Stacks, jdk, jstack_asleep, modes, pairs, plain, told, untold,
    wrong_chains)

pytestmark = needs_agent
NAME = "worker-with-a-long-name-"
WALKS = ["sampler", "handler"]


def with_agent(options):
    return {**os.environ, "LD_PRELOAD": AGENT, "STILLFRAME": options}


def listening(target, jdk, options, *program, **how):
    """A JVM in which an agent listens."""
    return target(jdk.java(options, *program), env=with_agent("listen"), **how)


def judge(stacks, jdk, what, since_start=False):
    """99.9 % of all stacks are whole, none is wrong, and every frame has a name."""
    busy = {NAME + kind for kind in BUSY}
    total, ends = stacks.ticks(), stacks.ends()
    # A thread that sleeps is never interrupted: where native code needs its registers they are inferred, nearly always.
    unknown = ends["register"]
    cut = [(end, name, stack[:8]) for name, stack, end, _ in stacks.all if end not in ("root", "register")]
    lost = total - ends["root"] - unknown
    print("%s jdk%d: %d ticks, %d cut, %d untold, %s" % (what, jdk.version, total, lost, untold(stacks), dict(ends)),
          file=sys.stderr)
    # Until the JVM's code is known, which takes some ticks of each of its first threads, nothing can be walked.
    assert lost <= total * 0.001 + (20 if since_start else 3) and unknown <= total * 0.002 + 5, (ends, cut[:10])
    assert untold(stacks) <= total * 0.001 + 3
    bad = wrong_chains(jdk, stacks, busy)
    assert not bad, told(bad)
    return total


def kinds_of(stacks):
    kinds = collections.Counter()
    for _, stack, _, ticks in stacks.all:
        for kind in {frame[1] for frame in stack}:
            kinds[kind] += ticks
    return kinds


def record(stillframe, pid, walk, path, ticks, *more):
    """By the agent that listens there, with one of the walks: so many ticks, or for 40 s."""
    done = stillframe.record_until(path, float("inf") if LONG else ticks, "-p", pid, "-e", "signal", "--walk", walk,
                                   "-d", "40s" if LONG else "100s", "-F", "997hz", *more, seconds=300)
    assert "by signal (%s walk)" % walk in done.err, done
    return Stacks(path)


@pytest.mark.parametrize("jdk, load", pairs(["default", "interpreter", "parallel-all-compiled", "serial-one-heap"]),
                         indirect=["jdk"], ids=lambda each: str(each))
def test_stacks_are_whole_wherever_threads_stand(stillframe, target, jdk, load, tmp_path):
    """A JVM with a listening agent, thousands of ticks of threads that run flat out, throw, allocate, compile; by both
    walks, one after the other."""
    t = listening(target, jdk, [*QUIET, *LOADS[load][2]], "Demo", *BUSY, nice=True)
    until(t.uses(1), "the threads have been running, and the compilers", 60)
    recorded = {walk: record(stillframe, t.pid, walk, str(tmp_path / walk), 1200) for walk in WALKS}
    t.end()
    for walk, stacks in recorded.items():
        path = str(tmp_path / walk)
        assert judge(stacks, jdk, "%s %s" % (load, walk)) > 500
        names = {name for name, in sqlite3.connect(path).execute("SELECT name FROM threads")}
        assert {NAME + kind for kind in BUSY} <= names, "a thread's full name is missing"
        deep = stacks.ticks(lambda name, stack, end: any(frame[0] == "Demo.c7" for frame in stack))
        kinds = kinds_of(stacks)
        assert deep and kinds["native"] > 20 and kinds["stub"] > 20, (walk, deep, kinds)
        if load == "default":
            assert kinds["interpreted"] > 20 and kinds["c2"] > 20 and kinds["native-method"] > 5, (walk, kinds)
        if load == "interpreter":
            assert kinds["interpreted"] > 100 and not kinds["c1"] and not kinds["c2"], (walk, kinds)


@pytest.mark.long("sampler")   # the above has it
@pytest.mark.parametrize("walk", WALKS)
def test_a_stream_alone(stillframe, jdk, walk, tmp_path):
    """LD_PRELOAD and a file, no stillframe around; the JVM itself finds nothing to complain about."""
    stream, path = str(tmp_path / "java.sfs"), str(tmp_path / "java.html")
    done = hanging.run(jdk.java([*QUIET, "-Xcheck:jni", "-Dend=1500"], "Demo", *BUSY),
                       env=with_agent("out=%s,rate=500hz,walk=%s" % (stream, walk)))
    assert (done.returncode, done.stderr) == (0, ""), done
    # (What JDK 17 says under -Xcheck:jni of its own libraries is of no interest.)
    assert not [line for line in done.stdout.splitlines() if "signal" in line.lower() or "handler" in line.lower()], done
    collapsed = stillframe("export", stream, "--format", "collapsed", "-o", "-").ok().out
    functions = collections.Counter()   # microseconds
    total = sum(int(line.rsplit(" ", 1)[1]) for line in collapsed.splitlines())
    for line in collapsed.splitlines():
        for name in {plain(each) for each in line.rsplit(" ", 1)[0].split(";")}:
            functions[name] += int(line.rsplit(" ", 1)[1])
    assert all(functions["Demo." + kind] for kind in BUSY), {kind: functions["Demo." + kind] for kind in BUSY}
    assert functions["Demo.run0"] > 1.08e6 and functions["call_stub"] >= functions["Demo.run0"], functions["Demo.run0"]
    # As judge() has it; on a busy machine one sample may stand for long.
    assert sum(functions[name] for name in UNTOLD) <= total * 0.001 + 20000, {name: functions[name] for name in UNTOLD}
    assert NAME + "fib" in collapsed or NAME + "fib" in stillframe("report", stream, "--json").ok().out
    stillframe("export", stream, "--format", "html", "-o", path).ok()


@pytest.mark.alone   # beside others a virtual machine starts slowly, and until its code is known more ticks go by
@pytest.mark.long("sampler")
@pytest.mark.parametrize("walk", WALKS)
def test_a_jvm_is_launched(stillframe, jdk, walk, tmp_path):
    """From its first moment on: Java frames as soon as the JVM has started, and the summary's accounts."""
    path = str(tmp_path / "start.sfr")
    done = stillframe("record", "-e", "signal", "--walk", walk, "-F", "500hz", "-o", path, "--",
                      *jdk.java([*QUIET, "-Dend=1500"], "Demo", "chain", "fib", "except"), timeout=120).ok()
    assert done.out == "ready\n", done
    stacks = Stacks(path)
    judge(stacks, jdk, "launched " + walk, since_start=True)
    for name in ("Demo.fib", "Demo.c7", "Demo.except"):
        assert stacks.ticks(lambda _, stack, end: any(frame[0] == name for frame in stack)) > 5, name


# --- asleep --------------------------------------------------------------------------------------


def test_the_machines_own_threads(stillframe, target, jdk, tmp_path):
    """They sleep in native code that needs its frame pointer, below no Java frame: a compiler's prologue, a function that
    jumped to the next one, and handlers that the JVM's own sampler has called."""
    if jdk.version < 11:
        pytest.skip("Flight Recorder came with JDK 11")
    options = ["-XX:StartFlightRecording:filename=%s" % (tmp_path / "own.jfr"), "-XX:FlightRecorderOptions=repository=%s" % tmp_path]
    if jdk.version >= 25:
        options[0] += ",jdk.CPUTimeSample#enabled=true,jdk.CPUTimeSample#throttle=1ms"
    t = target(jdk.java([*options, "-Xlog:jfr*=off"], "Demo", "chain", "alloc", "lambda"), env=PLAIN, nice=True)
    path = str(tmp_path / "own.sfr")
    until(t.uses(1), "it has started", 60)   # with an attach listener: it is how the agent comes in
    stillframe.record_until(path, 2000, "-p", t.pid, "-e", "signal", "-F", "997hz", "--blocked-rate", "100hz")
    t.end()
    stacks = Stacks(path)
    ends, inferred = collections.Counter(), collections.Counter()
    for name, stack, end, ticks in stacks.all:
        ends[end] += ticks
        before = [above[0] for above, frame in zip(stack, stack[1:]) if frame[2] == "inferred"]
        inferred.update({each: ticks for each in before})
    print("jdk%d: %s, inferred: %s" % (jdk.version, dict(ends), dict(inferred)), file=sys.stderr)
    assert ends["register"] <= 0.002 * sum(ends.values()) + 3, (ends, [
        (name, stack[:5]) for name, stack, end, _ in stacks.all if end == "register"][:5])
    # That there was something to infer; a stripped libjvm has no names for it.
    assert sum(inferred.values()) > 20, inferred


def places_asleep(path, names):
    """{thread's name: {(method, line), ...} of each of its stacks} of threads that sleep, innermost first."""
    db = sqlite3.connect(path)
    kinds = dict(db.execute("SELECT id, word FROM kinds"))
    functions = collections.defaultdict(list)
    for frame, name, line in db.execute("SELECT frame, name, line FROM frame_names ORDER BY frame, seq"):
        functions[frame].append((plain(name), line))
    frames = dict(db.execute("SELECT id, kind FROM frames"))
    nodes = {node: (parent, frame) for node, parent, frame in db.execute("SELECT id, parent, frame FROM stacks")}
    found = collections.defaultdict(collections.Counter)
    for name, node, ticks in db.execute("SELECT name, stack, ticks FROM samples JOIN threads ON threads.id = thread"):
        stack = []
        while node and name in names:
            node, frame = nodes[node]
            if kinds[frames[frame]] in JAVA:
                native = kinds[frames[frame]] == "native-method"
                stack += [(function, 0 if native else line) for function, line in functions[frame]]
        found[name][tuple(stack)] += ticks
    return found


# Which JDKs take a mode in the short suite; others that are given take both.
MODES = {"-Xint": [17], "-Xcomp -XX:TieredStopAtLevel=1": [25], "-Xcomp": []}


@pytest.mark.parametrize("jdk, mode", modes(MODES), indirect=["jdk"], ids=lambda each: str(each))
def test_parked_threads_are_as_jstack_says(stillframe, target, jdk, mode, tmp_path):
    """Names and lines of threads that sleep, read by the agent without waking them, beside jstack's and ptrace's."""
    t = listening(target, jdk, mode.split(), "Demo", *ASLEEP)
    names = [NAME + kind for kind in ASLEEP]
    theirs = jstack_asleep(jdk, t.pid, names)
    inside, outside = str(tmp_path / "in.sfr"), str(tmp_path / "out.sfr")
    stillframe("record", "-p", t.pid, "-e", "signal", "-d", "1.5s", "-o", inside).ok()
    stillframe("record", "-p", t.pid, "-e", "ptrace", "-d", "1s", "-o", outside).ok()
    ours, ptrace = places_asleep(inside, names), places_asleep(outside, names)
    for name in names:
        assert [list(stack) for stack in ours[name]] == [theirs[name]], name
        assert set(ours[name]) == set(ptrace[name]), name
    ends = Stacks(inside).ends()
    assert ends["root"] == sum(ends.values()), ends


def test_virtual_threads(stillframe, target, jdk, tmp_path):
    """A mounted one is on its carrier's stack; what of it is in the heap is marked. By both walks, one after the other."""
    if jdk.version < 21:
        pytest.skip("virtual threads came with JDK 21")
    t = listening(target, jdk, [], "Virtual", nice=True)
    until(t.uses(0.5), "they run", 60)
    # Ticks of those that run only: on a busy machine nearly all are of those that sleep.
    recorded = {walk: record(stillframe, t.pid, walk, str(tmp_path / walk), 500, "--clock", "cpu") for walk in WALKS}
    t.end()
    for walk, stacks in recorded.items():
        judge(stacks, jdk, "virtual " + walk)
        marked = mounted = 0
        for _, stack, end, ticks in stacks.all:
            names, kinds = [frame[0] for frame in stack], [frame[1] for frame in stack]
            if end != "root" or "Virtual.spin" not in names:
                continue
            mounted += ticks
            assert "java.lang.VirtualThread.runContinuation" in names, names
            assert names.count("Virtual.v0") == 21 or "heap" in kinds, names
            marked += ticks if "heap" in kinds else 0
        assert mounted > 20 and marked > 3, (walk, mounted, marked)

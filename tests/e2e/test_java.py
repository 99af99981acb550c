# SPDX-License-Identifier: Apache-2.0
"""Java: mixed stacks of stock JVMs from outside, beside what the JVM itself says.

STILLFRAME_LONG=1 takes more than ten times the samples, and all loads.
"""
import collections
import contextlib
import os
import re
import sqlite3
import sys

import pytest

import hanging
from conftest import HERE, LONG, need_findings
from processes import until
from recordings import samples_so_far, ticks_so_far
from java_stacks import (  # noqa: F401 (jdk is a fixture)
    ASLEEP, BUSY, LOADS, QUIET, Stacks, java_frames, jdk, jstack_asleep, modes, pairs, told, untold, wrong_chains)


# Which JDKs take a mode in the short suite; others that are given take all.
MODES = {"-Xint": [17, 25], "-Xcomp -XX:TieredStopAtLevel=1": [17], "-Xcomp -XX:-TieredCompilation": []}


@pytest.mark.parametrize("jdk, mode", modes(MODES), indirect=["jdk"], ids=lambda each: str(each))
def test_parked_threads_are_as_jstack_says(stillframe, target, jdk, mode):
    """Every Java frame's name and line, of every thread that jstack shows, interpreted and compiled by each compiler."""
    t = target(jdk.java(mode.split(), "Demo", *ASLEEP))
    names = ["worker-with-a-long-name-" + kind for kind in ASLEEP]
    theirs = jstack_asleep(jdk, t.pid, names)
    ours = {thread["name"]: thread for thread in stillframe.dump(t.pid)["threads"]}
    compared = kinds = 0
    for name in names:
        assert java_frames(ours[name]) == theirs[name], name
        assert ours[name]["end"] == "root"
        first = ours[name]["frames"][-1]
        assert re.match("(__)?clone|0x.* in libc", first["function"]), first
        compared += len(theirs[name])
        kinds += sum(frame["kind"] == {"-Xint": "interpreted"}.get(mode, "c1" if "Level=1" in mode else "c2")
                     for frame in ours[name]["frames"])
    assert compared > 30 and kinds > 10, (compared, kinds)
    for name in ("Reference Handler", "Finalizer"):
        assert java_frames(ours[name]) == theirs[name]


def doctors_word(stillframe, pid):
    return re.sub(r"\s+", " ", stillframe("doctor", "-p", pid).ok().out)


@pytest.mark.each_jdk
def test_native_frames_stand_above_and_below(stillframe, target, jdk):
    """From the system call up through the JVM into Java, and below Java down to the thread's first frame."""
    t = target(jdk.java(["-Xint"], "Demo", "sleep"))

    def asleep():
        threads = {thread["name"]: thread for thread in stillframe.dump(t.pid)["threads"]}
        worker = threads["worker-with-a-long-name-sleep"]
        inside = any("java.lang.Thread.sleep" in frame["function"] for frame in worker["frames"])
        return threads if inside and worker["state"] == "blocked" else None
    threads = until(asleep, "its thread sleeps", 60, 0.1)
    kinds = [frame["kind"] for frame in threads["worker-with-a-long-name-sleep"]["frames"]]
    assert kinds[0] == "native" and kinds[-1] == "native" and "interpreted" in kinds and "stub" in kinds
    for thread in threads.values():
        assert thread["end"] == "root", (thread["name"], thread["end"])
    # JDK 8 gives its own threads no names.
    assert jdk.version == 8 or any("GC Thread" in name for name in threads) and "VM Thread" in threads
    doctor = doctors_word(stillframe, t.pid)
    assert re.search(r"ok Java: HotSpot \S+ \(JDK %d\)" % jdk.version, doctor), doctor
    assert "no Java: inlined calls" in doctor and "-XX:+DebugNonSafepoints" in doctor, doctor
    assert "ok Java: its attach mechanism" in doctor and "ok Java: threads have their full names" in doctor, doctor


# --- many stops ----------------------------------------------------------------------------------


def assert_approximate_frames_are_marked(stillframe, path):
    """Where a thread was interrupted in compiled code, inlined calls may be missing, and every view says so."""
    marked = dict(sqlite3.connect(path).execute("SELECT approximate, count(*) FROM frame_functions GROUP BY 1"))
    assert marked[1] > 0 and marked[0] > 0
    text = stillframe("report", path).ok().out
    assert re.search(r"\)~", text) and text.count("DebugNonSafepoints") == 1, text
    assert '"approximate_ns":' in stillframe("report", "--json", path).ok().out
    assert re.search(r"(?m)\)~ \d+$", stillframe("export", path, "--format", "collapsed", "-o", "-").ok().out)


@pytest.mark.long("zgc", "compact-headers")
@pytest.mark.parametrize("jdk, load", pairs(), indirect=["jdk"], ids=lambda each: str(each))
def test_stacks_are_whole_wherever_threads_stand(stillframe, target, jdk, load, tmp_path):
    """More than two thousand ticks, in five hundred samples or more, of threads that run flat out (ten thousand ticks in the long form):
    99.9 % reach the bottom, and none is wrong."""
    options = [*QUIET, *LOADS[load][2]]
    kinds_of_threads = BUSY
    if load == "deoptimization-storm":
        options += ["-Xbootclasspath/a:" + jdk.white_box()]
        kinds_of_threads = BUSY + ["storm"]
    t = target(jdk.java(options, "Demo", *kinds_of_threads), nice=True)
    if load != "start-up":   # while everything is compiled for the first time
        until(t.uses(1), "the threads have been running, and the compilers", 60)
    path = str(tmp_path / "java.sfr")
    seconds = "4" if load == "start-up" else os.environ.get("STILLFRAME_JAVA_SECONDS", "40") if LONG else "100"
    stillframe.record_until(path, float("inf") if LONG else lambda path: ticks_so_far(path) >= 2400 and samples_so_far(path) >= 500,
                            "-p", t.pid, "-d", seconds + "s", "-F", "500hz", seconds=300)
    t.end()
    stacks = Stacks(path)
    busy = {"worker-with-a-long-name-" + kind for kind in BUSY}
    if load == "zgc":
        # Its objects move: names cannot be read, or not always (docs/hotspot.md).
        busy |= {"worker-with-a-l"}
        assert busy & {name for name, _, _, _ in stacks.all}
        assert jdk.version < 23 or "worker-with-a-long-name-chain" in {name for name, _, _, _ in stacks.all}
    else:
        assert busy <= {name for name, _, _, _ in stacks.all}, "a thread's full name is missing"
    total = stacks.ticks()
    assert total > (2000 if LONG else 2300)
    # Of a thread that slept, and ran on before its stack was walked, registers may be unknown.
    unknown = stacks.ends()["register"]
    cut = total - stacks.ends()["root"] - unknown
    print("%s jdk%d: %d stops, %d cut %s" % (load, jdk.version, total, cut, dict(stacks.ends())), file=sys.stderr)
    assert cut <= total * 0.001 + 3 and unknown <= total * 0.01, stacks.ends()
    assert untold(stacks) <= total * 0.001 + 3
    bad = wrong_chains(jdk, stacks, busy)
    assert not bad, told(bad)
    # The tests above must have had something to look at.
    deep = stacks.ticks(lambda name, stack, end: any(frame[0] == "Demo.c7" for frame in stack))
    assert deep > 20, "the deep chain was hardly seen"
    if load == "default":
        assert_approximate_frames_are_marked(stillframe, path)
    kinds = collections.Counter()
    for _, stack, _, ticks in stacks.all:
        for kind in {frame[1] for frame in stack}:
            kinds[kind] += ticks
    if load == "default":
        assert all(kinds[kind] > 20 for kind in ("interpreted", "c2", "native", "stub")), kinds
    if load == "interpreter":
        assert kinds["interpreted"] > 1000 and not kinds["c1"] and not kinds["c2"], kinds
    if load == "c1":
        assert kinds["c1"] > 500 and not kinds["c2"], kinds


def test_frames_of_virtual_threads_in_the_heap_are_marked(stillframe, target, jdk, tmp_path):
    """A mounted virtual thread is on its carrier's stack; what is in the heap is not silently joined."""
    if jdk.version < 21:
        pytest.skip("virtual threads came with JDK 21")
    t = target(jdk.java([], "Virtual"), nice=True)
    until(t.uses(0.5), "they run", 60)
    path = str(tmp_path / "virtual.sfr")
    stillframe.record_until(path, 1000, "-p", t.pid, "-F", "500hz", "--clock", "cpu")   # ticks of those that run
    t.end()
    stacks = Stacks(path)
    mounted = [(stack, end, ticks) for _, stack, end, ticks in stacks.all
               if any(frame[0] == "Virtual.spin" for frame in stack)]
    marked = 0
    for stack, end, ticks in mounted:
        names = [frame[0] for frame in stack]
        if end != "root":
            continue
        kinds = [frame[1] for frame in stack]
        # JDK 21 does not tell where that code is: it is missing below frames in the heap.
        entry = "jdk.internal.vm.Continuation.enterSpecial"
        assert entry in names or jdk.version == 21 and "heap" in kinds, names
        below = names[names.index(entry) if entry in names else kinds.index("heap"):]
        assert "java.lang.VirtualThread.runContinuation" in below, names
        whole = names.count("Virtual.v0") == 21
        assert whole or "heap" in kinds, names
        marked += ticks if "heap" in kinds else 0
    assert marked > 10, "no sample met frames in the heap"
    assert stacks.ends()["root"] >= stacks.ticks() * 0.999 - 2, stacks.ends()


def test_a_jvm_that_starts_is_followed(stillframe, jdk, tmp_path):
    """Launched under record: Java frames are there although the JVM started later than we did."""
    path = str(tmp_path / "start.sfr")
    stillframe("record", "-F", "500hz", "-o", path, "--", *jdk.java(["-Dend=1000"], "Demo", "fib"), timeout=60).ok()
    stacks = Stacks(path)
    fib = stacks.ticks(lambda name, stack, end: any(frame[0] == "Demo.fib" for frame in stack))
    assert fib > 100, fib
    collapsed = stillframe("export", path, "--format", "collapsed", "-o", "-").ok().out
    assert "Demo.fib(int)" in collapsed


def cut_at_the_end(path):
    """(samples on a CPU of the threads that compute in the last 0.1 s of each, those of them whose stacks are not whole)"""
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute("""SELECT count(*), coalesce(sum("end" != 0), 0) FROM samples s JOIN threads t ON t.id = s.thread
                             WHERE t.name LIKE 'worker-%' AND cpu_ns > 0
                               AND time_ns > (SELECT max(time_ns) - 100000000 FROM samples l WHERE l.thread = s.thread)""").fetchone()


def test_stacks_are_whole_up_to_the_end_of_a_jvm(stillframe, jdk, tmp_path):
    """The last samples are walked when nothing can be read of the process any more. By then what these threads run is compiled, and
    has been read. Of the routine by which a thread stops for the end nothing has: it cuts two milliseconds of a recording at most. Without
    what was read before, 4 to 9 % of these stacks are cut. On a busy machine a recording has a third of the samples of a quiet one."""
    need_findings(stillframe("doctor").out, "page faults are counted")
    found, n = [0, 0], 0
    while n < (3 if LONG else 2) or (found[0] < (2000 if LONG else 800) and n < 12):
        n, path = n + 1, str(tmp_path / ("end%d.sfr" % n))
        stillframe("record", "-e", "perf", "--max-cost", 100, "-F", "4khz", "-o", path, "--", *jdk.java(["-Dend=1000"], "Demo", "fib", "chain")).ok()
        found = [a + b for a, b in zip(found, cut_at_the_end(path))]
    assert found[0] > 50 and found[1] <= 0.01 * found[0], (found, n)


def test_classes_in_each_others_place(stillframe, target, jdk, tmp_path):
    """When a class is unloaded, all structures of one of the same shape come to its addresses: each has its own names."""
    t = target(jdk.java(["-Xint", "-XX:+UseSerialGC"], "Reused", "60"))
    path = tmp_path / "r.sfr"
    done, _ = stillframe.record(path, "-e", "ptrace", "-p", t.pid, "-d", "2s", "-F", "199")
    done.ok()
    right = wrong = 0
    for line in stillframe("export", path, "-f", "collapsed", "--clock", "wall", "-o", "-").ok().out.splitlines():
        stack, weight = line.rsplit(" ", 1)
        called = re.search(r"Reused\.by(First|Other)\(.*Reused\$(First|Other)\.(first_|other_)\(", stack)
        if called and called.group(1) == called.group(2) == called.group(3)[:-1].capitalize():
            right += int(weight)
        elif called:
            wrong += int(weight)
    assert right and wrong <= 0.05 * right, (right, wrong)   # a stack that is walked late may meet the next class


@pytest.mark.parametrize("library, word", [("libj9vm29.so", "OpenJ9"), ("libjvm.so", "no HotSpot")])
def test_other_virtual_machines_are_refused_with_a_word(stillframe, target, tmp_path, library, word):
    """Native frames as ever, and why there is no Java."""
    source = tmp_path / "empty.c"
    source.write_text("int empty(void) { return 0; }\n")
    path = str(tmp_path / library)
    hanging.run_well(["gcc", "-shared", "-fPIC", "-o", path, source])
    t = target([sys.executable, "-c", "import ctypes, time; ctypes.CDLL(%r); print('ready', flush=True); "
                "time.sleep(100)" % path])
    done = stillframe("dump", "-p", t.pid).ok()
    assert word in done.out, done
    assert word in doctors_word(stillframe, t.pid)
    assert stillframe.dump(t.pid)["threads"][0]["end"] == "root"


def test_native_images_are_told(stillframe, target, tmp_path):
    """There is no virtual machine in them, and nothing is missing."""
    source = tmp_path / "image.c"
    source.write_text('#include <stdio.h>\n#include <unistd.h>\n__attribute__((section(".svm_heap"), used)) int heap = 1;\n'
                      'int main(void) { puts("ready"); fflush(stdout); sleep(100); return 0; }\n')
    hanging.run_well(["gcc", "-o", tmp_path / "image", source])
    t = target([str(tmp_path / "image")])
    assert "GraalVM native-image" in doctors_word(stillframe, t.pid)


CLOSURE_COMPILER = os.path.join(HERE, "../browser/node_modules/google-closure-compiler-linux/compiler")


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists(CLOSURE_COMPILER), reason="`npm ci` in tests/browser brings the Closure compiler")
def test_a_real_native_image(stillframe, tmp_path):
    """One as it is handed out, static and without unwind data: all its CPU time is accounted for. Its functions are left by their
    instructions, and what is whole ends where threads begin; what is not whole says so."""
    source = tmp_path / "in.js"
    source.write_text("".join("function f%d(a) { var c = []; for (var i = 0; i < a; i++) c.push(i * f%d(a - 1)); return c; }\n"
                              % (i, i * 7 % 2000) for i in range(2000)))
    work = [CLOSURE_COMPILER, "-O", "SIMPLE", "--js", source, "--js_output_file", tmp_path / "out.js"]
    done, recording = stillframe.record(tmp_path / "r.sfr", "-F", "499", "--", *work)
    assert done.status == 0 and os.path.getsize(tmp_path / "out.js") > 10000, done
    recording.assert_accounts()
    # The rest is of threads that come and go, and the accounts above have it: how much that is depends on the machine's load.
    seen, _, counted = recording.cpu()
    assert seen >= 0.5 * counted > 0, (seen, counted, recording.losses(), done)
    running = dict(recording.rows(
        "SELECT e.word, count(*) FROM samples s JOIN ends e ON e.id = s.\"end\" WHERE s.cpu_ns > 0 GROUP BY e.word"))
    assert running["root"] > 0.3 * sum(running.values()) and running["no-rule"] > 0, running
    outermost = [n for n, in recording.rows(
        "SELECT count(*) FROM samples s JOIN ends e ON e.id = s.\"end\" JOIN stack_frames f ON f.stack = s.stack "
        "JOIN frames x ON x.id = f.frame JOIN vias v ON v.id = x.via "
        "WHERE s.cpu_ns > 0 AND e.word = 'root' AND v.word NOT IN ('kernel', 'leaf') "   # in the kernel only; a thread's first instructions
        "AND f.depth = (SELECT max(depth) FROM stack_frames g WHERE g.stack = s.stack) GROUP BY x.module, x.address ORDER BY 1 DESC")]
    assert outermost[0] > 0.98 * sum(outermost), (outermost, running)
    done = stillframe("record", "-e", "signal", "-o", tmp_path / "s.sfr", "--", *work)
    assert done.status == 1 and "linked statically" in done.err, done

# SPDX-License-Identifier: Apache-2.0
"""The callers of HotSpot's hand-written routines (mathematics, copies, ciphers, ...). A thread is stepped through them, one
instruction after the other (tests/programs/step_routines.c), and at each one our walk must say who called the routine.

STILLFRAME_LONG=1 takes all kinds of routines; the short form a few of them.
"""
import collections
import os
import re
import signal
import sys

import pytest

import hanging
from conftest import LONG, PROGRAMS, needs_agent
from processes import read, status_of, tids_of, until
from java_stacks import SOURCES, Stacks, jdk  # noqa: F401 (a fixture)

STEPPER = os.path.join(PROGRAMS, "step_routines")
SHORT = ["mathematics", "copies", "checksums"]
ALL = SHORT + ["fills", "ciphers", "digests", "big-integers", "base64", "strings"]


def javas_first(pid):
    """The thread that runs Java's main(). `java` begins it before any other; the process's own thread only waits for it. Their CPU time
    does not tell them apart at first: the process's own thread has loaded the JVM. (The kernel lists threads in the order in which they
    began: next_tid() of fs/proc/base.c. Thread ids start again at the low ones.)"""
    own, first, *_ = os.listdir("/proc/%d/task" % pid)
    assert int(own) == pid
    return int(first)


def routines(jdk, *kinds):
    """A command that does nothing but call these routines."""
    return jdk.java([], "Intrinsics", *kinds)


@pytest.mark.skipif(not os.path.exists(STEPPER), reason="step_routines is not built here")
def test_every_instruction_of_a_routine_has_its_caller(target, jdk):
    t = target(routines(jdk, *(ALL if LONG else SHORT)))
    done = hanging.run([STEPPER, t.pid, javas_first(t.pid), 1000000 if LONG else 30000], seconds=500)
    told = done.stdout.splitlines()
    print("jdk%d: %s" % (jdk.version, told[-1]), file=sys.stderr)
    proved, guessed, wrong, missing = map(int, re.match(
        r"proved (\d+), guessed (\d+), wrong (\d+), without a caller (\d+)", told[-1]).groups())
    assert not wrong and not missing and not guessed, told[:20]
    assert proved > (1000 if LONG else 300), told[-1]


def sines_have_their_caller(path):
    stacks = Stacks(path)
    stacks.all = [(name, stack, *rest) for name, stack, *rest in stacks.all
                  if stack and stack[0].kind == "stub" and stack[0].name.startswith("StubRoutines")]
    right = stacks.ticks(lambda name, stack, end: end == "root" and stack[1].name == "Sine.work" and stack[1].via != "guess")
    assert right > 5 and stacks.ticks() == right, [(stack[:3], end) for _, stack, end, _ in stacks.all[:5]]


@pytest.mark.long("sampler")   # both walks of the signal engine step in the same way
@pytest.mark.parametrize("how", [
    pytest.param(["ptrace"], id="ptrace"), pytest.param(["signal", "--walk", "sampler"], id="sampler", marks=needs_agent),
    pytest.param(["signal", "--walk", "handler"], id="handler", marks=needs_agent)])
def test_the_caller_of_a_sine_is_the_loop_around_it(stillframe, target, jdk, how, tmp_path):
    """Of one that is attached to, in the short form; the long form launches one, too."""
    path, attached = str(tmp_path / "sine.sfr"), str(tmp_path / "attached.sfr")
    if LONG:
        stillframe("record", "-e", *how, "-F", "500hz", "-o", path, "--", *jdk.java([], "Sine", "200"), timeout=120).ok()
        sines_have_their_caller(path)
    t = target(jdk.java([], "Sine", "1000"))
    stillframe("record", "-e", *how, "-F", "997hz", "-o", attached, "-d", "10s" if LONG else "1s", "-p", t.pid, timeout=120).ok()
    sines_have_their_caller(attached)


@pytest.mark.each_jdk
@pytest.mark.parametrize("how", [pytest.param("ptrace"), pytest.param("signal", marks=needs_agent)])
def test_a_leaf_routine_has_the_interpreters_line_or_none(stillframe, jdk, how, tmp_path):
    """Before it calls one, the interpreter does not note where it is: what it has noted is of the call before. Native code keeps
    its register; of hand-written code that is not known. A sine is called as a method is, and so is noted."""
    path = str(tmp_path / "remainder.sfr")
    cost = ["--max-cost", "50"] if how == "ptrace" else []
    stillframe("record", "-e", how, *cost, "-F", "500hz", "-o", path, "--", *jdk.java(["-Xint"], "Remainder", "2000"),
               timeout=120).ok()
    with open(os.path.join(SOURCES, "Remainder.java")) as source:
        lines = {line.split("// line: ")[1].strip(): n for n, line in enumerate(source, 1) if "// line: " in line}
    found = collections.Counter()
    for _, stack, _, ticks in Stacks(path).all:
        i = next((i for i, frame in enumerate(stack) if frame.name == "Remainder.work"), 0)
        if i and (stack[0].name.startswith("StubRoutines") or "fmod" in stack[0].name):
            found[stack[0].kind, stack[i].line] += ticks
    assert sum(found.values()) > 50, found
    known = {line for (_, line) in found} - {0}
    assert known <= {lines["remainder"], lines["sine"]}, (found, lines)
    assert all(line for kind, line in found if kind == "native"), found


def test_a_stopped_thread_is_read_with_all_its_registers(stillframe, target, jdk):
    """Where a thread is stopped amid Java code or a routine, /proc shows two of its registers; the caller may depend on others. So it
    is held."""
    t = target(routines(jdk, "copies", "mathematics"))
    t.may_be_stopped = True
    tid, amid, guessed = javas_first(t.pid), 0, []

    def ran_ns():
        return int(read("/proc/%d/task/%d/schedstat" % (t.pid, tid)).split()[0])
    for i in range(100 if LONG else 12):
        os.kill(t.pid, signal.SIGSTOP)
        until(lambda: all(status_of(t.pid, each)["State"].startswith("T") for each in tids_of(t.pid)), "all its threads stop")
        thread = next(each for each in stillframe.dump(t.pid, "--engine", "ptrace")["threads"] if each["tid"] == tid)
        before = ran_ns()
        os.kill(t.pid, signal.SIGCONT)
        until(lambda: ran_ns() > before + 3000000 * (i % 5), "it runs on, and is in another place")
        assert thread["state"] == "stopped" and thread["end"] == "root", thread
        assert any(frame["function"].startswith("Intrinsics.main(") for frame in thread["frames"]), thread
        if thread["frames"][0]["kind"] == "stub":
            amid += 1
            assert not thread["unheld"]
            guessed += [frame for frame in thread["frames"] if frame["via"] == "guess"]
    assert amid and not guessed, (amid, guessed)

# SPDX-License-Identifier: Apache-2.0
"""The interface for runtimes is complete: a second runtime, which exists only for these tests (src/frozen/toy, src/runtime/toy,
tests/programs/toy_vm.c), is shown by every engine and walk. Needs a build with -Dtest_runtime=true."""
import json
import os

import pytest

from conftest import AGENT
from java_stacks import jdk  # noqa: F401 (a fixture)

SPINS, SLEEPS, STUCK = "a toy thread that spins", "a toy thread that sleeps", "a toy thread that is stuck"
# Innermost first, below the functions of libc.
BELOW = ["toy_run", "toy.inner", "toy_run", "toy.outer", "run", "start_thread"]


@pytest.fixture
def toy(stillframe, target):
    """Starts the program; skips where stillframe does not have the runtime."""
    def start(*args, **how):
        t = target("toy_vm", *args, **how)
        if "toy: its frames are shown" not in stillframe("doctor", "-p", t.pid).ok().out:
            pytest.skip("built without -Dtest_runtime=true")
        return t
    return start


def names(frames):
    return [frame["function"] for frame in frames if not frame["inlined"]]


def test_dump(stillframe, toy):
    """Frames with methods, files and lines, between native ones; threads with the runtime's names; and a thread whose native code
    no rule leads out of goes on at the frame that the runtime has noted."""
    threads = {thread["name"]: thread for thread in stillframe.dump(toy().pid)["threads"]}
    assert {SPINS, SLEEPS, STUCK} <= set(threads), list(threads)
    for name in (SPINS, SLEEPS, STUCK):
        thread = threads[name]
        stack = names(thread["frames"])
        below = BELOW[1:] if name == STUCK else BELOW
        start = stack.index(below[0])
        assert stack[start:start + len(below)] == below and thread["end"] == "root", (name, thread["end"], stack)
        lines = [(frame["function"], frame["file"], frame["line"]) for frame in thread["frames"]
                 if frame["function"].startswith("toy.")]
        assert lines == [("toy.inner", "program.toy", 201), ("toy.outer", "program.toy", 102)], lines
    assert "toy_stuck" in names(threads[STUCK]["frames"])


def record(stillframe, t, path, ticks, *arguments):
    """So many ticks of it; then it is ended, and takes no CPU time from what looks at the recording."""
    stillframe.record_until(path, ticks, "-p", t.pid, *arguments, "-d", "60s")
    t.end()


def assert_all_is_shown(stillframe, path):
    """Of a recording or a stream file: the thread that spins stands in the methods, and all have their names."""
    report = json.loads(stillframe("report", "--json", path).ok().out)
    total = {row["name"]: row["total_ns"] for row in report["functions"]}
    assert total["toy.outer"] == total["toy.inner"] > 0.9 * (report["total_ns"] - report["unseen_ns"]), total
    assert {SPINS, SLEEPS, STUCK} <= {thread["name"] for thread in report["threads"]}, report["threads"]
    stacks = stillframe("export", path, "-f", "collapsed", "--clock", "wall", "-o", "-").ok().out.splitlines()
    of_methods = [line.rsplit(" ", 1)[0].split(";") for line in stacks if "toy.inner" in line]
    assert of_methods
    for stack in of_methods:
        at = stack.index("toy.inner")
        assert stack[at - 3:at] == ["run", "toy.outer", "toy_run"], stack
    for function in ("spin", "toy_sleep", "toy_stuck"):
        assert [stack for stack in of_methods if function in stack], function


def test_by_ptrace(stillframe, toy, tmp_path):
    path = str(tmp_path / "toy.sfr")
    record(stillframe, toy(), path, 200, "-F", "499", "-e", "ptrace", "--max-cost", "50")
    assert_all_is_shown(stillframe, path)


@pytest.mark.parametrize("walk", ["sampler", "handler"])
def test_from_inside(stillframe, toy, inside, walk, tmp_path):
    """By an agent that listens."""
    path = str(tmp_path / "toy.sfr")
    t = toy(env=dict(os.environ, LD_PRELOAD=AGENT, STILLFRAME="listen"))
    record(stillframe, t, path, 200, "-F", "499", "-e", "signal", "--walk", walk)
    assert_all_is_shown(stillframe, path)


# Code that comes and goes: a copy of the code lives for 300 ms, and most of the time a thread is in one.
COPIES_COMPLETE = {"ptrace": 0.99, "signal": 0.9}


def assert_copies_are_shown(stillframe, path, engine):
    """The thread that spins is below copies of the code, which each have a new place, and is walked through all of them."""
    report = json.loads(stillframe("report", "--json", path).ok().out)
    total = {row["name"]: row["total_ns"] for row in report["functions"]}
    assert total["spin_long"] > 0.9 * (report["total_ns"] - report["unseen_ns"]), total
    # The rest of the time of `toy.outer` is that of making copies.
    assert total["toy.outer"] >= total["toy.inner"] >= COPIES_COMPLETE[engine] * total["spin_long"], total


@pytest.mark.long   # from inside it is in the short form
def test_code_that_comes_and_goes_by_ptrace(stillframe, toy, tmp_path):
    path = str(tmp_path / "toy.sfr")
    record(stillframe, toy("copies"), path, 200, "-e", "ptrace", "--max-cost", "50")
    assert_copies_are_shown(stillframe, path, "ptrace")


@pytest.mark.long("handler")
@pytest.mark.parametrize("walk", ["sampler", "handler"])
def test_code_that_comes_and_goes_inside(stillframe, toy, inside, walk, tmp_path):
    path = str(tmp_path / "toy.sfr")
    t = toy("copies", env=dict(os.environ, LD_PRELOAD=AGENT, STILLFRAME="listen"))
    record(stillframe, t, path, 250, "-e", "signal", "--walk", walk)
    assert_copies_are_shown(stillframe, path, "signal")


# --- two runtimes in one process ---

JAVA_WORKER = "worker-with-a-long-name-"


def both(jdk, start, **how):  # noqa: F811
    """Toy methods and a Java virtual machine in one process."""
    library = os.path.join(jdk.folder, "lib/server/libjvm.so")
    return start("java", library, jdk.classes, "Demo", "fib", "sleep", **how)


def test_two_runtimes_in_a_dump(stillframe, toy, jdk):  # noqa: F811
    """Each thread's stack is whole, of the one runtime as of the other; names of threads are each runtime's own."""
    threads = {thread["name"]: thread for thread in stillframe.dump(both(jdk, toy).pid)["threads"]}
    for name, inside in ((SPINS, "toy.inner"), (SLEEPS, "toy.inner"), (STUCK, "toy.inner"),
                         (JAVA_WORKER + "fib", "Demo.fib()"), (JAVA_WORKER + "sleep", "java.lang.Thread.sleep")):
        stack = names(threads[name]["frames"])
        assert any(inside in function for function in stack) and threads[name]["end"] == "root", (name, stack)
        assert ("toy.inner" in stack) == (inside == "toy.inner"), (name, stack)


def assert_both_are_shown(stillframe, path):
    report = json.loads(stillframe("report", "--json", "--clock", "cpu", path).ok().out)
    total = {row["name"]: row["total_ns"] for row in report["functions"]}
    thread = {row["name"]: row["cpu_ns"] for row in report["threads"]}
    assert total["toy.outer"] == total["toy.inner"] > 0.95 * thread[SPINS] > 0, (total, thread)
    assert total["Demo.fib()"] > 0.95 * thread[JAVA_WORKER + "fib"] > 0, (total, thread)


@pytest.mark.long   # from inside and in a dump there are both in the short form
def test_two_runtimes_by_ptrace(stillframe, toy, jdk, tmp_path):  # noqa: F811
    path = str(tmp_path / "both.sfr")
    record(stillframe, both(jdk, toy), path, 400, "-F", "499", "-e", "ptrace", "--max-cost", "50")
    assert_both_are_shown(stillframe, path)


@pytest.mark.long("sampler")
@pytest.mark.parametrize("walk", ["sampler", "handler"])
def test_two_runtimes_from_inside(stillframe, toy, inside, jdk, walk, tmp_path):  # noqa: F811
    path = str(tmp_path / "both.sfr")
    t = both(jdk, toy, env=dict(os.environ, LD_PRELOAD=AGENT, STILLFRAME="listen"))
    record(stillframe, t, path, 400, "-F", "499", "-e", "signal", "--walk", walk)
    assert_both_are_shown(stillframe, path)


# --- without the process ---


@pytest.mark.long("sampler")
@pytest.mark.parametrize("walk", ["sampler", "handler"])
def test_a_stream_alone(stillframe, toy, inside, walk):
    """A file that the agent wrote, of a process that is gone."""
    toy().end()   # skips where the runtime is not built
    ran = inside.sampled_and_killed("toy_vm", options="rate=499hz,walk=" + walk, samples=100)
    assert_all_is_shown(stillframe, ran.out)

# SPDX-License-Identifier: Apache-2.0
"""The bpf engine: threads that do not run are read without a hold, with all their registers."""
import os
import signal
import subprocess

import pytest

from conftest import NOBODY, need, need_findings
from processes import Target, read, status_of, switches_of, tids_of, until

pytestmark = pytest.mark.waits

WITHOUT_BPF = ["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin"]


@pytest.fixture
def bpf_works(stillframe):
    """Skips where the program was built without BPF, or the kernel or a container refuses it."""
    need_findings(stillframe("doctor").out, "the kernel says what it has saved")


def stacks(dump):
    return {thread["tid"]: (thread["name"], thread["state"], thread["wait"], thread["end"],
                            [(frame["pc"], frame["function"]) for frame in thread["frames"]]) for thread in dump["threads"]}


@pytest.mark.usefixtures("bpf_works")
def test_a_thousand_sleepers(stillframe, target):
    """In several kinds of calls: each is there, none was woken, no call failed, and the stacks are those by ptrace."""
    t = target("many_threads", 1000, 4, 0).falls_asleep()
    before = switches_of(t.pid)
    dump = stillframe.dump(t.pid)
    assert switches_of(t.pid) == before, "somebody was woken"
    assert dump["engine"] == "bpf" and not dump["losses"]
    assert sorted(thread["tid"] for thread in dump["threads"]) == tids_of(t.pid)
    for thread in dump["threads"]:
        assert thread["unheld"] and thread["held_ns"] == 0 and thread["end"] == "root", thread
    assert stacks(dump) == stacks(stillframe.dump(t.pid, "--engine", "ptrace"))
    status, said = t.finish()
    assert status == 0 and "bad 0" in said, said


@pytest.mark.usefixtures("bpf_works")
@pytest.mark.parametrize("shape", ["alloca", "handler"])
def test_all_registers_are_known(stillframe, target, shape):
    """A thread whose caller /proc's registers do not show, in a call that fails if it is held: no frame is inferred."""
    t = target("inferred_O0", shape).falls_asleep()
    before = switches_of(t.pid)
    thread, = stillframe.dump(t.pid)["threads"]
    assert switches_of(t.pid) == before
    assert thread["end"] == "root" and thread["wait"]["syscall"] == "epoll_wait"
    assert not [frame for frame in thread["frames"] if frame["via"] == "inferred"]


@pytest.mark.usefixtures("bpf_works")
def test_one_that_is_stopped(stillframe, target):
    """Amid its own code: it is not held for its registers, and stays stopped."""
    t = target("deep", 10, "spin")
    t.may_be_stopped = True
    os.kill(t.pid, signal.SIGSTOP)
    try:
        until(lambda: status_of(t.pid)["State"].startswith("T"), "it stops")
        thread, = stillframe.dump(t.pid)["threads"]
        assert status_of(t.pid)["State"].startswith("T"), "dump continued it"
        assert thread["state"] == "stopped" and thread["unheld"] and thread["end"] == "root"
        assert "bottom" in [frame["function"] for frame in thread["frames"]]
    finally:
        os.kill(t.pid, signal.SIGCONT)
    t.assert_moves()


@pytest.mark.usefixtures("bpf_works")
def test_one_that_another_tracer_has(stillframe, target):
    """ptrace cannot have its threads: they are read all the same."""
    need("strace")
    t = target("many_threads", 4, 30, 0).falls_asleep()
    strace = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(t.pid)])
    try:
        until(lambda: all(status_of(t.pid, tid)["TracerPid"] == str(strace.pid) for tid in tids_of(t.pid)), "strace has it")
        t.falls_asleep()
        dump = stillframe.dump(t.pid)
        assert len(dump["threads"]) == len(tids_of(t.pid)) and all(thread["end"] == "root" for thread in dump["threads"])
    finally:
        strace.terminate()
        strace.wait(20)


@pytest.mark.usefixtures("bpf_works")
@pytest.mark.parametrize("engine", ["perf", "bpf"])
def test_sleepers_are_recorded(stillframe, tmp_path, target, engine):
    """None is woken, and each has whole stacks; also where /proc has too few registers."""
    for program, arguments, n in (("many_threads", (40, 20, 0), 41), ("inferred_O0", ("alloca",), 1)):
        t = target(program, *arguments).falls_asleep()
        before = switches_of(t.pid)
        done, recording = stillframe.record(tmp_path / ("%s.sfr" % program), "--engine", engine, "-p", t.pid, "-d", "600ms")
        assert done.status == 0, done
        assert switches_of(t.pid) == before, "somebody was woken"
        assert recording.value("SELECT count(DISTINCT thread) FROM samples") == n
        assert recording.value("SELECT count(*) FROM samples WHERE end != (SELECT id FROM ends WHERE word = 'root')") == 0
        assert recording.value("SELECT count(*) FROM frames WHERE via = (SELECT id FROM vias WHERE word = 'inferred')") == 0


def test_without_the_right(stillframe, target):
    """By ptrace, and --times says why."""
    need("setpriv")
    t = target("many_threads", 4, 30, 0).falls_asleep()
    done = stillframe("dump", "-p", t.pid, "--times", prefix=WITHOUT_BPF).ok()
    assert "\nby ptrace: " in done.out and "BPF program" in done.out, done
    done = stillframe("dump", "-p", t.pid, "--engine", "bpf", prefix=WITHOUT_BPF)
    assert done.status == 1 and "BPF program" in done.err, done
    assert "BPF program" in stillframe("doctor", prefix=WITHOUT_BPF).out


def test_an_ordinary_user(stillframe, everybodys):
    """May dump their own process, and reads why it was not by BPF."""
    stillframe.path = everybodys.stillframe()
    t = Target([*NOBODY, everybodys.program("deep"), 10, "pause"])
    try:
        done = stillframe("dump", "-p", t.pid, "--times", prefix=NOBODY, cwd="/", env=everybodys.environment).ok()
        assert "\nby ptrace: the BPF program cannot be loaded" in done.out or "built without" in done.out, done
    finally:
        assert not t.end()

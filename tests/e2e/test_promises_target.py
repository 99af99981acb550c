# SPDX-License-Identifier: Apache-2.0
"""Whatever the target does, stillframe answers with samples, counted losses or one clear message, never a hang;
and the target does not notice."""
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from conftest import LONG, NOBODY, PROGRAMS, need, need_engine
from processes import Target, cpu_of, status_of, until
from recordings import Recording, cpu_told, ticks_so_far


def program(name):
    return os.path.join(PROGRAMS, name)


@pytest.fixture
def stillframe(stillframe):
    """As a user runs it: what it may take of the target is one of the promises."""
    stillframe.usual = ()
    return stillframe


def test_it_exits(stillframe, target, tmp_path):
    """The target ends under the recording, by itself and by a signal."""
    t = target(["/bin/sh", "-c", "echo ready; while [ ! -e %s/over ]; do :; done" % tmp_path])
    process = stillframe.start("record", "-e", "ptrace", "-p", t.pid, "-o", tmp_path / "r.sfr")
    until(lambda: ticks_so_far(tmp_path / "r.sfr") > 100, "it is sampled", 60)
    (tmp_path / "over").touch()
    done = stillframe.wait(process, 20)
    assert done.status == 0, done
    assert Recording(tmp_path / "r.sfr").ticks > 100
    assert t.finish()[0] == 0
    t = target("many_threads", 50, 60)
    process = stillframe.start("record", "-e", "ptrace", "-p", t.pid, "-o", tmp_path / "k.sfr")
    until(lambda: ticks_so_far(tmp_path / "k.sfr") > 50, "it is sampled", 60)
    t.process.kill()
    done = stillframe.wait(process, 20)
    assert done.status == 0, done
    assert Recording(tmp_path / "k.sfr").ticks > 50


def test_it_is_gone_at_once(stillframe, tmp_path):
    """A command that is over before anyone looks: its recording is whole, if empty, and says what it was."""
    for turn in range(20):
        done = stillframe("record", "-e", "ptrace", "-o", tmp_path / "r.sfr", "--", "/bin/true", timeout=30)
        recording = Recording(tmp_path / "r.sfr")
        assert done.status == (0 if recording.samples else 1), done
        assert recording.rows("SELECT command, complete FROM session") == [("/bin/true", 1)]
        assert recording.value("SELECT count(*) FROM processes") <= 1 and recording.cpu()[2] < 0.1
        # What is in it is accounted for, whether it was met or not.
        recording.assert_accounts()


@pytest.mark.alone   # on a busy machine stillframe may wait for a CPU for as long as the program runs
def test_one_that_is_gone_soon_is_not_empty(stillframe, tmp_path):
    """A command of a tenth of a second: what it used of CPU time is in samples and losses, but for what came after the last look."""
    for turn in range(5):
        done = stillframe("record", "-e", "ptrace", "-o", tmp_path / "r.sfr", "--", program("busy_split"), 0.1, timeout=30)
        assert done.status == 0, done
        recording = Recording(tmp_path / "r.sfr")
        seen, lost, counted = recording.cpu()
        used = cpu_told(done.out)
        assert recording.ticks > 0 and recording.value("SELECT count(*) FROM processes") == 1
        assert used / 2 < seen + lost < used + 0.05 and counted < used + 0.05, (seen, lost, counted, used)


@pytest.mark.alone   # a program of 25 ms that waits for a CPU is hardly sampled, and a hold during its exec ends in its loader
@pytest.mark.parametrize("children", [False, True])
def test_it_execs(stillframe, tmp_path, children):
    """exec again and again, from the leader and from another thread: the same pid, and all of it is recorded."""
    done, recording = stillframe.record(tmp_path / "r.sfr", "--max-cost", 50, *(["--children"] if children else []), "--",
                                        program("exec_chain"), 30, 25, timeout=120)
    assert done.status == 0, done
    assert "execs 30" in done.out
    seen, lost, counted = recording.cpu()
    # Each spins for 25 ms.
    assert seen + lost > 0.95 * counted > 0.7, (seen, lost, counted)
    # Where another thread than the first one executes, the first one's id goes on with that one's clock.
    assert min(recording.rows("SELECT cpu_counted_ns FROM threads"))[0] >= 0
    # 30 programs, each spinning in the same function: after an exec the maps are read anew.
    assert recording.total_shares().get("spin_before_exec", 0) > 0.7, recording.total_shares()


THREAD_EXECS = """
import os, sys, threading, time
def spin_and_execute():
    while time.thread_time() < 0.4: pass
    os.execv(sys.executable, [sys.executable, "-c", "import time; print('cpu_seconds', time.process_time())"])
threading.Thread(target=spin_and_execute).start()
"""


@pytest.mark.parametrize("engine", ["ptrace", "perf"])
def test_a_thread_that_executes_counts_once(stillframe, tmp_path, engine):
    """It goes on under the id of the first thread, which slept, and its CPU time until then is not the first thread's as well."""
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", engine, "--", sys.executable, "-c", THREAD_EXECS)
    seen, lost, counted = recording.cpu()
    used = cpu_told(done.out)
    assert max(counted, seen + lost) < used + 0.1 and used > 0.4, (seen, lost, counted, used)


def test_threads_that_end_while_they_are_asked_for(stillframe, tmp_path):
    """A thread that ends or is swept away by an exec while it is asked for must not be kept as a zombie: its process
    could never be waited for, and stillframe would wait for it for ever."""
    for turn in range(100 if LONG else 3):
        done = stillframe("record", "-e", "ptrace", "-F", "2khz", "--children", "-o", tmp_path / "r.sfr", "--", program("exec_chain"), 30, 10,
                          timeout=120)
        assert done.status == 0, (turn, done)


@pytest.mark.parametrize("children", [False, True])
def test_it_forks(stillframe, tmp_path, children):
    """A storm of forks and execs: every exit status arrives, with and without following them."""
    done, recording = stillframe.record(tmp_path / "r.sfr", "-F", "499", *(["--children"] if children else []), "--",
                                        program("forks"), 4 if LONG else 1, timeout=90)
    assert done.status == 0, done
    assert re.search(r"turns [1-9]\d* bad 0", done.out), done
    # Children that came and went between two looks are losses of no known thread.
    seen, lost, counted = recording.cpu()
    assert abs(seen + lost - counted) <= counted * 0.05 + 0.1, (seen, lost, counted)


def test_ten_thousand_threads_a_second(stillframe, target, tmp_path):
    alone = re.search(r"made (\d+)", target("threads_churn", 1, 10000).finish()[1])
    t = target("threads_churn", 6 if LONG else 3, 10000)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "2s", "-F", "499", timeout=60)
    assert done.status == 0, done
    t.assert_free()
    status, said = t.finish()
    assert status == 0, said
    seen, lost, counted = recording.cpu()
    made = int(re.search(r"made (\d+)", said).group(1))
    assert made > 0.3 * int(alone.group(1)), "a crawl: %d made beside us; alone, in 1 s: %s" % (made, alone.group(0))
    # Nearly all threads live for less than a tick: what was due and not seen is a loss, not nothing.
    assert lost > 0 and sum(recording.losses().values()) >= lost * 499 / 2, (lost, recording.losses())


def test_many_threads_come_and_go_are_accounted(stillframe, tmp_path):
    """CPU time that the kernel counted for the whole process is seen or lost, not forgotten."""
    done, recording = stillframe.record(tmp_path / "r.sfr", "-F", "499", "--", program("threads_churn"), 2, 400, 1,
                                        timeout=60)
    assert done.status == 0, done
    assert recording.ticks > 0, done
    assert recording.losses().get("unseen", 0) > 0, recording.losses()   # hardly one of them was there at a look
    recording.assert_accounts(used=cpu_told(done.out))


def test_library_that_comes_and_goes(stillframe, target, tmp_path):
    t = target("dlopen_loop", program("plugin.so"), 30)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "1s", "-F", "499", timeout=60)
    assert done.status == 0, done
    t.assert_free()
    assert recording.total_shares().get("load_and_unload", 0) > 0.9, recording.total_shares()


def test_stopped_and_continued_from_outside(stillframe, target, tmp_path):
    """SIGSTOP and SIGCONT at random while it is recorded: it stops when told, stays so, and goes on when told."""
    t = target("deep", 10, "spin")
    t.may_be_stopped = True
    process = stillframe.start("record", "-e", "ptrace", "-p", t.pid, "-F", "1khz", "-o", tmp_path / "r.sfr")
    until(lambda: ticks_so_far(tmp_path / "r.sfr"), "it is sampled", 60)
    for turn in range(100 if LONG else 15):
        os.kill(t.pid, signal.SIGSTOP)
        until(lambda: status_of(t.pid)["State"][0] == "T", "it stops")
        time.sleep(0.05)
        # While it is looked at it is in state t, and R on the way there and back (ptrace_attach() in Linux's kernel/ptrace.c). One that
        # was continued spins, and is never in state T.
        until(lambda: status_of(t.pid)["State"][0] == "T", "it is still stopped")
        os.kill(t.pid, signal.SIGCONT)
        until(lambda: status_of(t.pid)["State"][0] in "RS", "it goes on")
    process.send_signal(signal.SIGINT)
    done = stillframe.wait(process, 20)
    assert done.status == 0, done
    recording = Recording(tmp_path / "r.sfr")
    stopped = recording.value("SELECT coalesce(sum(s.wall_ns), 0) FROM samples s JOIN states w ON w.id = s.state "
                              "WHERE w.word = 'stopped'") / 1e9
    assert stopped > 0.3, "%.3f s stopped" % stopped
    t.may_be_stopped = False
    t.assert_free()
    t.assert_moves()


def test_job_control(stillframe, target, tmp_path):
    """A shell's view: each stop and each continue is reported to the parent, the child's handler runs once for each."""
    t = target("job_control", 10 if LONG else 4)
    child = int(t.line("child").split()[1])
    process = stillframe.start("record", "-e", "ptrace", "-p", child, "-F", "1khz", "-o", tmp_path / "r.sfr")
    status, said = t.finish(60)
    assert status == 0 and re.search(r"turns [1-9]\d* bad 0", said), said
    done = stillframe.wait(process, 20)
    assert done.status == 0, done
    assert Recording(tmp_path / "r.sfr").samples > 100


def test_recording_a_stopped_process(stillframe, target, tmp_path):
    """It is stopped from beginning to end, and stays so."""
    t = target("deep", 10, "spin")
    t.may_be_stopped = True
    os.kill(t.pid, signal.SIGSTOP)
    until(lambda: status_of(t.pid)["State"][0] == "T", "it stops")
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "500ms", timeout=20)
    assert done.status == 0, done
    assert status_of(t.pid)["State"][0] == "T", "it was continued"
    assert {word for word, in recording.rows(
        "SELECT DISTINCT w.word FROM samples s JOIN states w ON w.id = s.state")} <= {"stopped"}
    assert recording.ticks > 0


@pytest.mark.long("strace")
@pytest.mark.parametrize("tracer", ["gdb", "strace"])
def test_under_a_tracer_already(stillframe, target, tmp_path, tracer):
    """Only one may trace: counted losses or a clear message that names the other, and neither is disturbed."""
    need(tracer)
    t = target("deep", 10, "spin")
    log = tmp_path / "log"
    if tracer == "gdb":
        command = ["gdb", "-batch", "-nx", "-iex", "set debuginfod enabled off", "-p", str(t.pid), "-ex", "continue"]
    else:
        command = ["strace", "-f", "-o", str(log), "-p", str(t.pid)]
    other = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: status_of(t.pid)["TracerPid"].strip() == str(other.pid), "%s attaches" % tracer, 60)
        attached = cpu_of(t.pid)
        until(lambda: cpu_of(t.pid) > attached + 0.1, "%s lets it run" % tracer, 60)
        # The perf engine needs no tracer.
        done = stillframe("record", "-p", t.pid, "-d", "500ms", "-o", tmp_path / "auto.sfr", timeout=20).ok()
        assert "by perf" in done.err, done
        assert Recording(tmp_path / "auto.sfr").rows("SELECT count(*) FROM samples")[0][0] > 0, done
        done = stillframe("record", "-e", "ptrace", "-p", t.pid, "-d", "500ms", "-o", tmp_path / "r.sfr", timeout=20)
        if done.status == 0:
            losses = Recording(tmp_path / "r.sfr").losses()
            assert losses.get("busy", 0) > 0, (done, losses)
            assert "busy" in done.err or "tracer" in done.err, done
        else:
            done.fails(1)
            assert str(other.pid) in done.err or tracer in done.err, done
        done = stillframe("dump", "-p", t.pid, timeout=20)
        assert done.status in (0, 1), done
        assert tracer in done.out + done.err or "tracer" in done.out + done.err, done
        assert other.poll() is None, "%s was disturbed" % tracer
        assert status_of(t.pid)["TracerPid"].strip() == str(other.pid)
        t.assert_moves()
    finally:
        if other.poll() is None:
            other.terminate()
        try:
            other.wait(10)
        except subprocess.TimeoutExpired:
            other.kill()
            other.wait()


def test_blocked_signals(stillframe, target, tmp_path):
    """It blocks every signal: recorded as any other, and no signal was sent to it."""
    t = target("blocked_masks", 1.5)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "500ms", timeout=20)
    assert done.status == 0, done
    assert recording.total_shares().get("deaf_spin", 0) > 0.9
    assert recording.stacks_of("deaf_sleep")
    status, said = t.finish()
    assert status == 0 and "signals pending 0" in said, said


def test_uninterruptible_sleep(stillframe, target, tmp_path):
    """State D: bounded, accounted for, and the other thread's samples do not suffer."""
    t = target("dsleep", 0, stdin=subprocess.PIPE)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "1s", timeout=20)
    assert done.status == 0, done
    duration = recording.duration()
    assert t.runs() and duration < 2, "%.3f s: it waited for the thread" % duration
    assert recording.total_shares().get("spin_beside", 0) > 0.9
    seen, lost, counted = recording.cpu()
    assert seen > 0.9 * counted - 0.02 and seen > 0, (seen, lost, counted)
    asleep = recording.value("SELECT coalesce(sum(s.wall_ns), 0) FROM samples s JOIN states w ON w.id = s.state "
                             "WHERE w.word = 'blocked'") / 1e9
    gone = recording.value("SELECT coalesce(sum(wall_ns), 0) FROM losses") / 1e9
    assert asleep + gone > 0.75, (asleep, gone, duration)
    t.process.stdin.close()
    t.process.stdin = None   # finish() would write to it
    status, said = t.finish()
    assert status == 0 and "done" in said, said


@pytest.mark.parametrize("engine", ["perf", "bpf", "ptrace"])
def test_leader_that_exits(stillframe, target, tmp_path, engine):
    need_engine(stillframe, engine, os.getpid())
    t = target("leader_exits", 1.5)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", engine, "-p", t.pid, "-d", "500ms", timeout=20)
    assert done.status == 0, done
    assert recording.total_shares().get("spin_without_leader", 0) > 0.9
    assert t.finish()[0] == 0


def test_accounts(stillframe, target, tmp_path):
    """ticks = samples + losses, for threads that run, sleep and wait for a CPU at once: each thread's every moment
    from its first to its last is in a sample or in a loss, and so is its CPU time."""
    t = target("many_threads", 40, 30, 4)   # more spinners than CPUs
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "1s", timeout=30)
    t.end()
    assert done.status == 0, done
    recording.assert_accounts()
    for tid, name, wall, lost, watched in recording.rows(
            "SELECT t.tid, t.name, t.wall_ns, (SELECT coalesce(sum(l.wall_ns), 0) FROM losses l "
            "WHERE l.thread = t.thread), w.end_ns - w.start_ns FROM thread_times t JOIN threads w ON w.id = t.thread"):
        # Between the last tick that was due and the last look, which may come late, a sleeper's time is nobody's.
        assert 1e9 * 0.9 - 60e6 < wall + lost < watched * 1.05 + 60e6, (
            "%s: %.3f s sampled, %.3f s lost, of %.3f s" % (name, wall / 1e9, lost / 1e9, watched / 1e9))


def test_unprivileged_on_its_own_process(stillframe, everybodys):
    """A user may record their own programs: attached and launched; and not those of others."""
    stillframe.path = everybodys.stillframe()
    how = {"prefix": NOBODY, "cwd": everybodys.folder, "env": everybodys.environment}
    t = Target([*NOBODY, everybodys.program("deep"), 10, "spin"])
    try:
        done = stillframe("record", "-e", "ptrace", "-p", t.pid, "-d", "500ms", "-o", everybodys.path("a.sfr"), **how)
        assert done.status == 0, done
        assert Recording(everybodys.path("a.sfr")).stacks_of("bottom")
    finally:
        assert not t.end()
    done = stillframe("record", "-e", "ptrace", "-o", everybodys.path("b.sfr"), "--", everybodys.program("busy_split"), 0.5, **how)
    assert done.status == 0, done
    assert Recording(everybodys.path("b.sfr")).samples > 20
    t = Target([everybodys.path("deep"), 10, "spin"])   # root's
    try:
        for command in (["record", "-d", "500ms", "-o", everybodys.path("c.sfr")], ["dump"]):
            done = stillframe(*command, "-p", t.pid, **how)
            done.fails(1)
            assert "permi" in done.err.lower() or "denied" in done.err.lower(), done
    finally:
        assert not t.end()


def test_two_at_once(stillframe, target, tmp_path):
    """Two stillframes on one target get in each other's way by microseconds: losses are counted, both end in order."""
    t = target("many_threads", 10, 30, 2)
    processes = [stillframe.start("record", "-e", "ptrace", "-p", t.pid, "-d", "1s", "-F", "999", "-o", tmp_path / ("r%d.sfr" % n))
                 for n in range(2)]
    for n, process in enumerate(processes):
        done = stillframe.wait(process, 30)
        assert done.status == 0, done
        recording = Recording(tmp_path / ("r%d.sfr" % n))
        assert recording.samples > 300, recording.losses()
    t.assert_free()
    t.assert_moves()


def test_itself(stillframe, target, tmp_path):
    """stillframe records a stillframe that records: neither hangs."""
    t = target("deep", 10, "spin")
    first = stillframe.start("record", "-e", "ptrace", "-p", t.pid, "-o", tmp_path / "a.sfr")
    until(lambda: ticks_so_far(tmp_path / "a.sfr"), "it records", 60)
    done, recording = stillframe.record(tmp_path / "b.sfr", "-p", first.pid, "-d", "500ms", timeout=30)
    assert done.status == 0, done
    first.send_signal(signal.SIGINT)
    done = stillframe.wait(first, 30)
    assert done.status == 0, done

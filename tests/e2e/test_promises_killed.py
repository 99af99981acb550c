# SPDX-License-Identifier: Apache-2.0
"""stillframe dies at a random moment: the target runs on, no thread is stopped, what was recorded is there.

A thousand deaths in the long version, sixty in the short one.
"""
import os
import pty
import random
import re
import signal
import subprocess
import time

import pytest

from conftest import LONG, need, need_root
from processes import held_threads, read, status_of, tids_of, until
from recordings import Recording, has_begun, ticks_so_far

pytestmark = pytest.mark.waits

DEATHS = 1000 if LONG else 30


def hears_hangups():
    """Also where the tests were started with nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def die(stillframe, target, output, how, begun, seconds):
    """One recording that ends badly, `seconds` after its start, or after its file has begun."""
    process = stillframe.start("record", "-e", "ptrace", "-p", target.pid, "-F", "1khz", "--blocked-rate", "100", "-o", output,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=hears_hangups)
    if begun:
        until(lambda: process.poll() is not None or has_begun(output), "the recording begins", 30)
    time.sleep(seconds)
    assert process.poll() is None, "it ended by itself: %s" % process.returncode
    process.send_signal(how)
    process.wait(timeout=20)
    # The kernel has let everyone go by the time a dead tracer can be waited for.
    until(lambda: not held_threads(target.pid), "the threads are let go after signal %d" % how, 2)
    assert target.runs(), "the target died with it: %s" % target.finish()


@pytest.mark.parametrize("how, share", [(signal.SIGKILL, 0.6), (signal.SIGSEGV, 0.2), (signal.SIGTERM, 0.1),
                                        (signal.SIGHUP, 0.1)])
def test_killed_at_random_moments(stillframe, target, tmp_path, how, share):
    rng = random.Random(int(how))
    t = target("many_threads", 20, 600, 1)
    for turn in range(int(DEATHS * share)):
        output = tmp_path / ("r%d.sfr" % turn)
        # Every third one while it starts, however long that takes here; the others while it records.
        begun = turn % 3 != 0
        die(stillframe, t, output, how, begun, rng.uniform(0, 0.3 if begun else 0.1))
        if begun or has_begun(output):
            # As every command opens it, and by plain SQL. Nothing lies beside it.
            assert [path.name for path in tmp_path.glob("r%d.sfr*" % turn)] == [output.name]
            if turn % 10 == 1:
                stillframe("report", output).ok()
            Recording(output)
        for path in tmp_path.glob("r%d.sfr*" % turn):
            path.unlink()
    t.assert_moves()
    t.assert_free()


@pytest.mark.long("perf")   # it holds few threads: the short form would hardly meet one
@pytest.mark.parametrize("engine", ["ptrace", "perf"])
def test_stopped_by_its_terminal(stillframe, target, tmp_path, engine):
    """Ctrl-Z at random moments: stillframe stops, and no thread of the target beside it. It goes on when it is told."""
    rng = random.Random(20)
    t = target("many_threads", 20, 600, 3)
    # In a group of its own, whose parent is in the same session: such a group is stopped.
    process = stillframe.start("record", "-e", engine, "-p", t.pid, "-F", "1khz", "-o", tmp_path / "r.sfr", preexec_fn=os.setpgrp)
    until(lambda: ticks_so_far(tmp_path / "r.sfr"), "it is sampled", 60)
    for _ in range(100 if LONG else 20):
        process.send_signal(signal.SIGTSTP)
        until(lambda: status_of(process.pid)["State"][0] == "T", "it is stopped", 10)
        assert not held_threads(t.pid)
        process.send_signal(signal.SIGCONT)
        time.sleep(rng.uniform(0.02, 0.06))
    process.send_signal(signal.SIGINT)
    done = stillframe.wait(process, 20)
    assert done.status == 0, done
    t.assert_moves()
    t.assert_free()


def test_at_most_a_second_is_lost(stillframe, target, tmp_path):
    """kill -9: what is older than a second is there; half a second more may be missing where the machine is busy."""
    t = target("deep", 20, "spin")
    output = tmp_path / "r.sfr"
    process = stillframe.start("record", "-e", "ptrace", "-p", t.pid, "-F", "200", "-o", output)
    until(lambda: has_begun(output), "the recording begins", 30)
    time.sleep(1.3)
    died = time.monotonic_ns()
    process.kill()
    process.wait()
    t.assert_free()
    recording = Recording(output)
    assert recording.value("SELECT complete FROM session") == 0
    lived = (died - recording.value("SELECT start_monotonic_ns FROM session")) / 1e9
    last = recording.value("SELECT max(time_ns) FROM samples") / 1e9
    assert last > lived - 1.5, "the last sample is of second %.2f; it lived for %.2f" % (last, lived)
    assert recording.ticks > 200 * 0.8 * last, recording.ticks
    # Names are missing. Reading it finds them, and changes nothing: it stays cut short.
    before = output.read_bytes()
    for _ in range(2):
        done = stillframe("report", output).ok()
        assert "bottom" in done.out and "cut short" in done.out, done
    done = stillframe("export", output, "--format", "collapsed", "-o", "-").ok()
    assert "bottom" in done.out and "cut short" in done.err, done
    assert output.read_bytes() == before
    assert os.listdir(tmp_path) == [output.name]


def test_names_come_while_it_goes_on(stillframe, target, tmp_path):
    """Few names are left for the end, when somebody waits: a recording that is killed has those of its first seconds in its file."""
    t = target("deep", 40, "sleep")
    output = tmp_path / "r.sfr"
    process = stillframe.start("record", "-e", "ptrace", "-p", t.pid, "-o", output)
    until(lambda: has_begun(output), "the recording begins", 30)
    until(lambda: Recording(output).value("SELECT count(*) FROM functions WHERE name = 'bottom'"), "names are in the file", 40)
    process.kill()
    process.wait()
    assert Recording(output).value("SELECT complete FROM session") == 0
    assert "bottom" in stillframe("report", output).ok().out
    t.assert_free()


def children_of(process):
    lists = (read("/proc/%d/task/%d/children" % (process.pid, tid)) for tid in tids_of(process.pid))
    return [int(pid) for text in lists if text for pid in text.split()]


def stop_a_child(process):
    """The first that is seen. None: it has ended before."""
    end = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < end:
        for pid in children_of(process):
            try:
                os.kill(pid, signal.SIGSTOP)
                return pid
            except ProcessLookupError:
                pass
    return None


def end_child(pid):
    """As long as it lives it may have the recording open: then that is taken to be written still."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:   # it has ended with its parent
        return
    until(lambda: (status_of(pid) or {"State": "Z"})["State"].startswith("Z"), "the child has ended")


def test_interrupted_again_while_it_looks_up_names(stillframe, target, tmp_path):
    """A second Ctrl-C ends it at once. Names are missing then, and nothing else."""
    t, was_in_time = target("deep", 20, "spin"), False
    for turn in range(10):
        output, began = tmp_path / ("r%d.sfr" % turn), time.monotonic()
        process = stillframe.start("record", "-e", "ptrace", "-p", t.pid, "-F", "200", "-o", output, stderr=subprocess.DEVNULL)
        until(lambda: ticks_so_far(output) > 50, "it is sampled", 60)
        is_early = time.monotonic() - began < 3   # later, names are looked up while it records, too
        process.send_signal(signal.SIGINT)
        child = stop_a_child(process)   # which reads a file for it
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)
        if child is not None:
            end_child(child)
        was_in_time = is_early and child is not None and process.returncode == -signal.SIGINT
        if was_in_time:
            break
    assert was_in_time, "it has ended before its second signal"
    recording = Recording(output)
    assert recording.value("SELECT complete FROM session") == 0
    assert recording.value("SELECT count(*) FROM threads WHERE end_ns IS NULL OR cpu_counted_ns = 0") == 0
    assert "cut short" in stillframe("report", output).ok().out
    t.assert_free()


def test_terminal_closed(stillframe, target, tmp_path):
    """The terminal goes away: SIGHUP, and writes to it fail. The target lives on, the recording is ended in order."""
    t = target("deep", 20, "spin")
    for turn in range(20 if LONG else 3):
        output = tmp_path / ("r%d.sfr" % turn)
        child, terminal = pty.fork()
        if child == 0:
            hears_hangups()
            os.execv(stillframe.path, [stillframe.path, "record", "-e", "ptrace", "-p", str(t.pid), "-o", str(output)])
        until(lambda: has_begun(output), "the recording begins", 30)
        time.sleep(random.Random(turn).uniform(0, 0.5))
        os.close(terminal)
        end = time.monotonic() + 20
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                raise AssertionError("it lives on without its terminal")
            time.sleep(0.01)
        t.assert_free()
        t.assert_moves()
        Recording(output)


def test_killed_launcher_leaves_the_command_alone(stillframe, tmp_path):
    """kill -9 of `record -- command`: the command runs to its end."""
    mark = tmp_path / "mark"
    script = "echo $$; i=0; while [ $i -lt 15 ]; do sleep 0.1; i=$((i+1)); done; echo done > %s" % mark
    process = stillframe.start("record", "-e", "ptrace", "-o", tmp_path / "r.sfr", "--", "/bin/sh", "-c", script)
    pid = int(process.stdout.readline())
    time.sleep(0.5)
    assert not mark.exists()
    process.kill()
    process.wait()
    until(lambda: not held_threads(pid), "it is let go", 2)
    until(mark.exists, "the command comes to its end", 60)


@pytest.fixture
def small_disk(tmp_path):
    need_root()
    need("mount", "umount")
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "none", str(disk)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("cannot mount a small disk: " + done.stderr.strip())
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_disk_full(stillframe, target, small_disk):
    """Out of space in the middle: one message, the target is free, what was written can be read."""
    t = target("cpp_throw", "spin")   # many distinct stacks
    output = small_disk / "r.sfr"
    (small_disk / "other").write_bytes(b"x" * 300000)
    # As much as it can: where a hold costs much, a share of the CPUs gives too few stacks to fill what is left.
    done = stillframe("record", "-e", "ptrace", "-p", t.pid, "-F", "10khz", "--max-cost", "100", "-d", "20s", "-o", output, timeout=60)
    assert done.status == 1, done
    said = [line for line in done.err.splitlines() if re.match("stillframe: .*(space|full)", line)]
    assert len(said) == 1, done
    t.assert_free()
    t.assert_moves()
    Recording(output)
    (small_disk / "other").unlink()
    stillframe("report", output).ok()


def test_disk_full_at_random_moments(stillframe, target, small_disk):
    t = target("cpp_throw", "spin")
    for turn in range(40 if LONG else 3):
        output = small_disk / "r.sfr"
        process = stillframe.start("record", "-e", "ptrace", "-p", t.pid, "-F", "2khz", "-d", "2s", "-o", output)
        time.sleep(random.Random(turn).uniform(0.1, 1))
        try:
            with open(small_disk / "other", "wb") as file:
                while True:
                    file.write(b"x" * 4096)
                    file.flush()
        except OSError:
            pass
        done = stillframe.wait(process, 60)
        assert done.status in (0, 1), done
        t.assert_free()
        if output.exists() and output.stat().st_size:
            Recording(output)
        for path in small_disk.iterdir():
            path.unlink()


def test_dump_killed(stillframe, target):
    """A dump that dies in the middle leaves nobody held."""
    t = target("many_threads", 300, 600, 1)
    rng = random.Random(7)
    for _ in range(200 if LONG else 15):
        process = stillframe.start("dump", "-p", t.pid, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, 0.08))
        process.kill()
        process.wait()
        until(lambda: not held_threads(t.pid), "the threads are let go", 2)
    t.assert_moves()

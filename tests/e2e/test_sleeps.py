# SPDX-License-Identifier: Apache-2.0
"""Sleeps as the kernel tells of them: each with its length, what it waited for, and who ended it."""
import os
import re
import signal
import statistics
import subprocess
import sys
import time

import pytest

from conftest import NOBODY, PROGRAMS, need_findings, need_root, paranoid
from processes import until
from recordings import Recording, so_far

PROGRAM = os.path.join(PROGRAMS, "known_sleeps")
HOW = ("--engine", "perf", "--max-cost", 100, "-F", 999)


@pytest.fixture(autouse=True)
def kernel_records(stillframe):
    """Skips where the kernel does not record switches and wakings for this user."""
    need_findings(stillframe("doctor").out, "kernel.perf_event_paranoid is", "wakings of threads can be recorded")


def record(stillframe, output, *command, options=()):
    done, recording = stillframe.record(output, *HOW, *options, "--", PROGRAM, *command)
    assert done.status == 0, done
    return done, recording


def sleeps_in(recording, function):
    """Length in seconds, wait and label of each sample in sleep with the function on its stack, in the order of time."""
    return recording.rows(
        "SELECT s.wall_ns / 1e9, f.label, coalesce(l.value, '') FROM samples s JOIN stacks t ON t.id = s.stack "
        "JOIN frames f ON f.id = t.frame LEFT JOIN labels l ON l.id = s.label AND l.key = 'wait' "
        "WHERE s.state = (SELECT id FROM states WHERE word = 'blocked') AND s.stack IN (SELECT stack FROM stack_frames "
        "JOIN frame_names n USING (frame) WHERE n.name = '%s') ORDER BY s.time_ns" % function)


def told(done, kind):
    return [int(ns) / 1e9 for ns in re.findall(r"^%s (\d+)$" % kind, done.out, re.M)]


# The kind of sleep: its wait, and who ends it.
KINDS = {"nanosleep": ("[clock_nanosleep]", "an interrupt"), "futex": ("[futex]", "alarm_clock"), "pipe": ("[read]", "alarm_clock"),
         "mutex": ("[futex]", "alarm_clock")}


def test_each_sleep_is_a_sample_of_its_length(stillframe, tmp_path):
    done, recording = record(stillframe, tmp_path / "r.sfr", tmp_path / "file")
    address = {name: int(at, 16) for name, at in re.findall(r"^(word|mutex_at) 0x([0-9a-f]+)$", done.out, re.M)}
    for kind, (wait, waker) in KINDS.items():
        expected, seen = told(done, kind), [row for row in sleeps_in(recording, "in_" + kind) if row[0] > 0.01]
        assert len(seen) == len(expected) == 6, (kind, expected, seen)
        errors = [abs(length - true) for (length, _, _), true in zip(seen, expected)]
        # On a busy machine what the program does beside its sleep is not always short.
        assert statistics.median(errors) < 0.001 and max(errors) < 0.005, (kind, errors, expected, seen, done)
        assert {row[1] for row in seen} == {wait}, (kind, seen)
        # Not yet told of each sleep that a timer ends: docs/engines.md.
        assert waker == "an interrupt" or all(re.search(r"\bwoken by %s\b" % waker, row[2]) for row in seen), (kind, seen)
    for kind, name in (("futex", "word"), ("mutex", "mutex_at")):
        assert all(row[2].startswith("futex 0x%x, " % address[name]) for row in sleeps_in(recording, "in_" + kind) if row[0] > 0.01)


NAPS = """
import threading, time
threads = [threading.Thread(target=time.sleep, args=(0.3,)) for _ in range(60)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_ids_of_another_namespace(stillframe, tmp_path):
    """The tracepoints name threads by their ids in the first pid namespace. In another one a thread has the id of one that wakes
    all the time outside, and its nap is as long as it is all the same."""
    need_root()
    last = "/proc/sys/kernel/ns_last_pid"
    if not os.path.exists(last):
        pytest.skip("this kernel does not let the next id be chosen")
    outside = subprocess.Popen([sys.executable, "-c", "import time\nwhile True: time.sleep(0.002)"])
    try:
        inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
                  "sh", "-c", 'echo $1 > %s; shift; exec "$@"' % last, "sh", str(outside.pid - 40)]
        done, recording = stillframe.record(tmp_path / "r.sfr", *HOW, "--", sys.executable, "-c", NAPS, prefix=inside)
    finally:
        outside.kill()
        outside.wait()
    assert done.status == 0 and "wakings of threads were not recorded" in " ".join(done.err.split()), done
    naps = dict(recording.rows("SELECT t.tid, max(s.wall_ns) / 1e9 FROM samples s JOIN threads t ON t.id = s.thread "
                               "GROUP BY t.tid"))
    assert naps[outside.pid] >= 0.29, (outside.pid, naps)


@pytest.fixture
def slowly(tmp_path):
    """Runs a command, for which the disk below tmp_path reads 200 times a second and writes 40 MB, if the kernel has a group
    for that."""
    device = "%d:%d" % (os.major(os.stat(tmp_path).st_dev), os.minor(os.stat(tmp_path).st_dev))
    group = "/sys/fs/cgroup/blkio/stillframe-%d" % os.getpid()
    try:
        os.mkdir(group)
        for limit, value in (("read_iops", 200), ("write_bps", 40000000)):
            with open("%s/blkio.throttle.%s_device" % (group, limit), "w") as file:
                file.write("%s %d" % (device, value))
    except OSError:   # there are no such groups, or the file system is on no disk
        pass
    yield ["sh", "-c", 'echo $$ > %s/cgroup.procs; exec "$@"' % group, "sh"] if os.path.exists(group) else []
    if os.path.exists(group):
        os.rmdir(group)


def test_waits_for_the_disk_are_named(stillframe, tmp_path, slowly):
    """A call that writes to the disk, and a fault on a page that is read from it."""
    done, recording = stillframe.record(tmp_path / "r.sfr", *HOW, "--", *slowly, PROGRAM, tmp_path / "file")
    assert done.status == 0, done
    total_expected = total_seen = calls = 0
    for kind, wait in (("fsync", "[fsync: block I/O]"), ("fault", "[page fault: block I/O]")):
        expected, seen = sum(told(done, kind)), sleeps_in(recording, "in_" + kind)
        if expected < 0.01:
            pytest.skip("the disk of %s answers in no time: %s" % (tmp_path, done.out))
        of_disk = sum(row[0] for row in seen if row[1] == wait)
        assert of_disk > 0.5 * expected, (kind, expected, seen)
        total_expected += expected
        total_seen += sum(row[0] for row in seen)
        calls += len(told(done, kind))
    # Sleeps of less than a millisecond are a sample when they are one together, in the call of the last of them. So a call may have a
    # millisecond of what was before it: of the other kind, or of what the program does between its calls.
    assert total_seen <= 1.05 * total_expected + 0.001 * calls, (total_seen, total_expected, done)


def test_only_long_ones_by_themselves(stillframe, tmp_path):
    """With a least length above that of all sleeps, a sample stands for the sum of several, and one for what is left at the end."""
    done, recording = record(stillframe, tmp_path / "r.sfr", tmp_path / "file", options=["--offcpu-min", "70ms"])
    seen = [row[0] for row in sleeps_in(recording, "in_nanosleep") + sleeps_in(recording, "in_pipe") + sleeps_in(recording, "in_mutex") +
            sleeps_in(recording, "in_futex")]
    assert len(seen) > 1 and sorted(seen)[1] >= 0.07, (seen, done)


@pytest.mark.alone   # beside others waits for a CPU are long, and records find no room while stillframe waits for one
def test_all_time_of_a_thread_is_accounted_for(stillframe, tmp_path):
    """On a CPU, waiting for one, and asleep: together the thread's life, and each as the kernel counts it. The rings have room for the
    records of 0.4 s in which stillframe gets no CPU."""
    recorder = stillframe.start("record", *HOW, "-o", tmp_path / "r.sfr", "--", PROGRAM, "mix", 4)
    # Not in its first moments, in which stillframe has much to do.
    until(lambda: so_far(tmp_path / "r.sfr", "coalesce(max(time_ns), 0)") > 900000000, "it has been recorded for a second", 60)
    recorder.send_signal(signal.SIGSTOP)
    time.sleep(0.4)
    recorder.send_signal(signal.SIGCONT)
    done, recording = stillframe.wait(recorder).ok(), Recording(tmp_path / "r.sfr")
    assert "no room" not in done.err, done
    threads = re.findall(r"^thread (\d+) (\d+) (\d+) (\d+)$", done.out, re.M)
    assert len(threads) == 4, done
    for tid, *counted in threads:
        life, cpu, wait = (int(ns) / 1e9 for ns in counted)
        seen = dict(recording.rows("SELECT w.word, sum(s.wall_ns) / 1e9 FROM samples s JOIN states w ON w.id = s.state "
                                   "JOIN threads t ON t.id = s.thread WHERE t.tid = %s GROUP BY 1" % tid))
        slack = 0.01 * life + 0.005
        # Waits for a CPU after a thread's last sample on one are in no sample: on a busy machine they are long.
        assert -slack - wait < sum(seen.values()) - life < slack, (seen, life, cpu, wait)
        assert abs(seen["blocked"] - (life - cpu - wait)) < slack, (seen, life, cpu, wait)


def test_without_the_right_sleeping_threads_are_looked_at(everybodys):
    """An ordinary user has samples of sleeping threads as by the other engines, and is told why."""
    if paranoid() != 2:
        pytest.skip("kernel.perf_event_paranoid is not 2 here: an ordinary user may do more, or less")
    output = everybodys.path("r.sfr")
    done = subprocess.run([*NOBODY, everybodys.stillframe(), "record", "--engine", "perf", "-o", output, "--",
                           everybodys.program("known_sleeps"), everybodys.path("file")], capture_output=True, text=True, timeout=120,
                          env=everybodys.environment)
    assert done.returncode == 0, done
    assert "sleeping threads were looked at some times a second: perf events do not show" in " ".join(done.stderr.split()), done
    recording = Recording(output)
    blocked = recording.value("SELECT sum(wall_ns) / 1e9 FROM samples JOIN states s ON s.id = state WHERE s.word = 'blocked'")
    assert blocked > 0.4, (blocked, done)
    assert recording.value("SELECT count(*) FROM labels") == 0


@pytest.mark.alone   # the nappers take both CPUs: beside others records find no room, and ends of threads are not seen
def test_cpu_time_comes_before_sleeps(stillframe, tmp_path):
    """Threads that work for 0.2 ms and nap for 30: 3,000 sleeps a second. Where the limit allows for a part of the walks only,
    all CPU time has samples all the same, and the samples of some naps stand for the others."""
    done, recording = stillframe.record(tmp_path / "r.sfr", "--engine", "perf", "-F", 997, "--max-cost", 1, "--",
                                        os.path.join(PROGRAMS, "nappers"), 1.6, 100, 200, 30000)
    assert done.status == 0, done
    true = {name: float(seconds) for name, seconds in re.findall(r"^(busy|nappers) ([\d.]+)$", done.out, re.M)}
    seen, wall = recording.rows("SELECT sum(s.cpu_ns) / 1e9, sum(s.wall_ns) / 1e9 FROM samples s JOIN threads t ON t.id = s.thread "
                                "WHERE t.name = 'napper'")[0]
    life = recording.value("SELECT sum(coalesce(t.end_ns, duration_ns) - t.start_ns) / 1e9 FROM threads t, session WHERE t.name = 'napper'")
    assert 0.93 * true["nappers"] <= seen <= 1.1 * true["nappers"], (seen, true, done)
    assert 0.7 * life <= wall <= 1.05 * life, (wall, life, done)

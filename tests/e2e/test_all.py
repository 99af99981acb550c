# SPDX-License-Identifier: Apache-2.0
"""The whole machine: record --all."""
import os
import subprocess
import sys
import time

import pytest

from conftest import NOBODY, PROGRAMS, need
from processes import until
from recordings import Recording, ticks_so_far

RATE = 99
PERIODS = 4 / RATE   # seconds: the first and the last sample, rounding
SPIN = "import time\nend = time.time() + 60\nwhile time.time() < end: sum(range(10000))\n"


@pytest.fixture(autouse=True)
def perf_works(stillframe):
    """Skips where the kernel or a container refuses perf events, or this user may not look at all processes."""
    if "  ok   all processes of the machine may be recorded (--all)\n" not in (said := stillframe("doctor").out):
        pytest.skip("the machine cannot be recorded here: %s" % said)


def cpu_of(pid):
    """Seconds, of a process that lives."""
    return time.clock_gettime((~pid << 3) | 2)


def start_all(stillframe, output, *arguments):
    """A recording of all that has begun."""
    process = stillframe.start("record", "--all", "--max-cost", 100, "-F", RATE, "-o", output, *arguments)
    until(lambda: process.poll() is not None or ticks_so_far(output) > 0, "the recording begins", 20)
    return process


def finished(done, output):
    assert "of all processes (" in done.ok().err, done
    return Recording(output)


def seen_of(recording, pid):
    """Name, seconds, and how much of its time is in whole stacks."""
    (row,) = recording.rows(
        "SELECT p.name, total(s.cpu_ns) / 1e9, total(s.cpu_ns * (e.word = 'root')) / total(s.cpu_ns) FROM processes p "
        "JOIN threads t ON t.process = p.id JOIN samples s ON s.thread = t.id JOIN ends e ON e.id = s.end WHERE p.pid = %d" % pid)
    return row


def test_programs_before_and_after(stillframe, tmp_path):
    """One runs already, one begins and ends meanwhile: both are there by name, with their time, and their stacks are whole."""
    need("xz")
    before = subprocess.Popen([sys.executable, "-c", SPIN])
    try:
        process = start_all(stillframe, tmp_path / "r.sfr")
        at_first = cpu_of(before.pid)
        during = subprocess.Popen(["xz", "-1", "-T1", "-c"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        during.stdin.write(os.urandom(1 << 20))
        during.stdin.close()
        used = os.wait4(during.pid, 0)[2]
        at_last = cpu_of(before.pid)
        process.terminate()
        done = stillframe.wait(process)
        at_end = cpu_of(before.pid)
    finally:
        before.kill()
        before.wait()
    recording = finished(done, tmp_path / "r.sfr")
    name, seconds, whole = seen_of(recording, before.pid)
    assert name == os.path.basename(os.path.realpath(sys.executable))[:15] or name == os.path.basename(sys.executable), name
    assert at_last - at_first - PERIODS <= seconds <= at_end + PERIODS and whole >= 0.95, (seconds, at_first, at_last, at_end, whole)
    name, seconds, whole = seen_of(recording, during.pid)
    assert name == "xz" and abs(seconds - used.ru_utime - used.ru_stime) <= PERIODS and whole >= 0.95, (name, seconds, used, whole)
    assert recording.value("SELECT command FROM session") == "all processes"
    recording.assert_accounts()


def test_no_idle_task_and_kernel_threads(stillframe, tmp_path):
    """The idle task is no process. A kernel thread has the kernel's frames only, and its stacks are whole."""
    process = start_all(stillframe, tmp_path / "r.sfr", "-d", "1s")
    for _ in range(20):   # work for kernel threads
        with open(tmp_path / "file", "wb") as file:
            file.write(os.urandom(1 << 20))
            os.fsync(file.fileno())
    recording = finished(stillframe.wait(process), tmp_path / "r.sfr")
    assert recording.value("SELECT count(*) FROM processes WHERE pid = 0") == 0
    kernel = recording.rows("SELECT p.pid, p.name, e.word FROM processes p JOIN threads t ON t.process = p.id JOIN samples s ON s.thread = t.id "
                            "JOIN ends e ON e.id = s.end WHERE p.parent = 2")
    assert all(word == "root" and name.startswith("[") for _, name, word in kernel), kernel
    if not kernel:
        pytest.skip("no kernel thread ran")


@pytest.mark.parametrize("arguments, word", [
    (["-p", "1"], "--all"), (["--", "true"], "--all"),
    (["--engine", "signal"], "signal"), (["--engine", "ptrace"], "ptrace"),
])
def test_refusals(stillframe, arguments, word):
    done = stillframe("record", "--all", "-d", "100ms", *arguments)
    done.fails(1 if word in ("signal", "ptrace") else 2)
    assert word in done.err and len(done.err.splitlines()) == 1, done


def test_an_ordinary_user(stillframe):
    need("setpriv")
    done = stillframe("record", "--all", "-d", "100ms", "-o", "/tmp/none.sfr", prefix=NOBODY).fails(1)
    assert "CAP_PERFMON" in done.err, done

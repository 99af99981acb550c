# SPDX-License-Identifier: Apache-2.0
"""The tests' own waits: what does not come is told, and what hangs is ended with what it started."""
import os
import re
import signal
import subprocess
import threading

import pytest

import hanging
from processes import Target, status_of, until

pytestmark = pytest.mark.waits

# A child that holds the pipe, and a grandchild that does not: both for ever. The grandchild's number is in the file that is named. No other
# program runs, not even for a moment.
FAMILY = """
echo started
sh -c 'sleep 1000 >/dev/null 2>&1 & echo $! >"$0"; exec sleep 1000' "$0" &
wait
"""


def is_there(pid):
    status = status_of(pid)
    return status is not None and status["State"][0] != "Z"


def test_what_hangs_is_ended_with_what_it_started(tmp_path):
    path = str(tmp_path / "pid")
    process = subprocess.Popen(["/bin/sh", "-c", FAMILY, path], stdout=subprocess.PIPE, text=True)
    until(lambda: os.path.exists(path) and open(path).read().endswith("\n"), "all have been started", 60)
    family = [process.pid, *hanging.descendants(process.pid)]
    assert int(open(path).read()) in family and len(family) >= 3, family
    with pytest.raises(AssertionError, match=r"^hangs: (.|\n)* did not end in 0.1 s\n(.|\n)*started") as told:
        hanging.finish(process, 0.1)
    assert all("process %d: " % pid in str(told.value) for pid in family), told.value
    until(lambda: not any(map(is_there, family)), "nothing of it is left", 60)


def test_the_limit_of_a_test_leaves_nothing(tmp_path):
    """It comes as an exception out of the wait, as any signal's handler can raise one."""
    class Late(BaseException):
        pass

    def late(*_):
        raise Late
    path = str(tmp_path / "pid")
    process = subprocess.Popen(["/bin/sh", "-c", FAMILY, path], stdout=subprocess.PIPE, text=True)
    until(lambda: os.path.exists(path) and open(path).read().endswith("\n"), "all have been started", 60)
    family = [process.pid, *hanging.descendants(process.pid)]
    before, wait = signal.signal(signal.SIGUSR1, late), process.communicate

    def wait_and_be_late(timeout):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        return wait(timeout=timeout)
    process.communicate = wait_and_be_late
    try:
        with pytest.raises(Late):
            hanging.finish(process, 60)
    finally:
        signal.signal(signal.SIGUSR1, before)
    until(lambda: not any(map(is_there, family)), "nothing of it is left", 60)


def test_a_line_that_does_not_come_is_told(target):
    t = Target(["/bin/sh", "-c", "printf 'first\\nhalf\\n'; exec sleep 1000"], wait_ready=False)   # in one write
    try:
        assert t.line("first") == "first"
        with pytest.raises(AssertionError, match=r"^hangs: it did not say 'ready' in 1 s: process %d: (.|\n)*half" % t.pid):
            t.line("ready", 1)
    finally:
        t.end()


def test_who_does_not_get_ready_is_ended():
    with pytest.raises(AssertionError, match="hangs: it did not say 'ready' in 1 s: process [0-9]+: ") as told:
        Target(["/bin/sh", "-c", "exec sleep 1000"], ready_seconds=1)
    pid = int(re.search(r": process (\d+): ", str(told.value))[1])
    until(lambda: not is_there(pid), "it is ended", 60)


def test_all_that_was_said_is_there(target):
    """Lines that came with the one that was waited for are not lost, nor is one that has no end."""
    t = target(["/bin/sh", "-c", "printf 'ready\\nsecond\\nthird'"])
    assert t.finish() == (0, "ready\nsecond\nthird")


def test_lines_in_pieces():
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as file:
        lines = hanging.Lines(file)
        os.write(write_end, b"one\ntw")
        assert lines.next(60) == "one\n" and lines.next(0) is None
        os.write(write_end, b"o\nrest")
        os.close(write_end)
        assert [lines.next(60) for _ in range(3)] == ["two\n", "rest", ""]


def test_a_status_and_both_outputs():
    done = hanging.run(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    with pytest.raises(AssertionError):
        hanging.run_well(["/bin/false"])


def test_a_targets_end_is_that_of_what_it_started(target):
    t = target(["/bin/sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo ready; wait"])
    child, = hanging.descendants(t.pid)
    assert not t.end()
    until(lambda: not is_there(child), "the child has ended")

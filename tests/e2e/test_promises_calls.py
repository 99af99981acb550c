# SPDX-License-Identifier: Apache-2.0
"""No blocking system call of the target fails or returns early, and no signal is lost, while stillframe looks at the target."""
import os
import re
import time

import pytest

from conftest import LONG, PROGRAMS
from recordings import Recording
from test_promises_target import stillframe  # noqa: F401 (a fixture)

pytestmark = pytest.mark.waits


def test_signals_arrive(stillframe, target, tmp_path):
    """Numbered realtime signals from two sides while its threads are held: none lost, none doubled, order kept."""
    holds, turns = 0, 0
    while holds <= 500:   # fewer prove nothing; a busy machine takes some turns for them
        t = target("signals_count", 20 if LONG else 3)
        process = stillframe.start("record", "-e", "ptrace", "-p", t.pid, "-F", "5khz", "--blocked-rate", "1khz", "-o", tmp_path / "r.sfr")
        status, said = t.finish(120)
        done = stillframe.wait(process, 30)
        assert status == 0, said
        assert done.status == 0, done
        holds += Recording(tmp_path / "r.sfr").value("SELECT coalesce(sum(count), 0) FROM holds")
        turns += 1
        assert turns < 10, "only %d holds" % holds


def test_signals_arrive_under_dump(stillframe, target):
    dumps = 0
    while dumps <= 5:   # fewer prove nothing; a busy machine takes some turns for them
        t = target("signals_count", 2)
        end = time.monotonic() + 1.6
        while time.monotonic() < end:
            stillframe("dump", "-p", t.pid).ok()
            dumps += 1
        status, said = t.finish()
        assert status == 0, said


def told(said):
    """What of a table of calls is worth telling."""
    return "; ".join(re.sub(r" +", " ", line) for line in said.splitlines() if "BAD" in line or " short " in line) or said


def assert_few_partial(said):
    """Large writes and MSG_WAITALL reads return a part when they are interrupted in their sleep: stillframe does
    not do that. What remains is a thread that is caught on its CPU, in the kernel, just before it sleeps: nobody
    can know that it is in such a call. A sampler that interrupts sleepers makes every call partial (see
    test_the_table_can_fail); the rare case must stay rare. It was one of ten calls, and a row has four to nine: so a row
    may have some, but not all, and all rows together less than half."""
    rows = [(int(calls), int(partial)) for calls, partial in re.findall(r" short +(\d+) calls.* (\d+) partial", said)]
    assert len(rows) == 3, said
    assert all(partial < calls for calls, partial in rows), told(said)
    assert sum(partial for _, partial in rows) < sum(calls for calls, _ in rows) / 2, told(said)


def test_no_call_fails(stillframe, target, tmp_path):
    """Every blocking system call, watched at a high rate: no EINTR, no early return, no short count."""
    seconds = 20 if LONG else 4
    t = target("eintr_table", seconds, 400)
    process = stillframe.start("record", "-e", "ptrace", "-p", t.pid, "-F", "1khz", "--blocked-rate", "100hz", "-o", tmp_path / "r.sfr")
    status, said = t.finish(60)
    done = stillframe.wait(process, 20)
    assert status == 0, told(said)
    assert_few_partial(said)
    assert done.status == 0, done
    recording = Recording(tmp_path / "r.sfr")
    blocked = recording.value("SELECT sum(s.wall_ns) FROM samples s JOIN states w ON w.id = s.state "
                              "WHERE w.word = 'blocked'") / 1e9
    assert blocked > 40 * 0.5 * recording.duration(), "only %.1f s of sleep were looked at" % blocked


def test_no_call_fails_under_dump(stillframe, target):
    seconds = 8 if LONG else 3
    t = target("eintr_table", seconds, 400)
    end = time.monotonic() + seconds - 1
    while time.monotonic() < end:
        stillframe("dump", "-p", t.pid).ok()
    status, said = t.finish(60)
    assert status == 0, told(said)
    assert_few_partial(said)


def test_sleepers_all_wake_as_they_should(stillframe, target, tmp_path):
    t = target("many_threads", 1000, 4, 0)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "2s", timeout=30)
    assert done.status == 0, done
    status, said = t.finish()
    assert status == 0 and "bad 0" in said, said


def test_a_filter_without_restart_syscall(stillframe, tmp_path):
    """The kernel goes on with nanosleep by restart_syscall. A program that is killed for any call but its own makes no such call."""
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "ptrace", "-F", "5khz", "--max-cost", "50", "--",
                                        os.path.join(PROGRAMS, "in_filter"), "restart_syscall", os.path.join(PROGRAMS, "nappers"),
                                        "2", "30", "30", "100", timeout=60)
    assert done.status == 0, done
    assert recording.value("SELECT coalesce(sum(count), 0) FROM holds") > 200, done


def test_the_table_can_fail(target):
    """The table above is no witness if it never accuses: a careless tracer is found out."""
    t = target("eintr_table", 2, 300, "self-test")
    status, said = t.finish()
    assert status == 1, said
    for name in ("epoll_wait", "sigtimedwait", "recv, SO_RCVTIMEO", "accept, SO_RCVTIMEO", "semtimedop"):
        assert re.search(r"^%s .* BAD" % name, said, re.M), said
    with pytest.raises(AssertionError):
        assert_few_partial(said)

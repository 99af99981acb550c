# SPDX-License-Identifier: Apache-2.0
"""A sleeping thread is not woken for a sample: at most once for each sleep, and only where nothing else tells its
stack; never in a system call that an interruption would make fail. Its switch count is the witness."""
import os
import sqlite3

import pytest

from conftest import PROGRAMS
from processes import status_of

pytestmark = pytest.mark.waits


def switches(pid):
    return int(status_of(pid)["voluntary_ctxt_switches"])


def ends(path):
    with sqlite3.connect(path) as database:
        return dict(database.execute("select e.word, sum(s.ticks) from samples s join ends e on e.id = s.end group by 1"))


def record(stillframe, pid, path, *more):
    stillframe("record", "-e", "ptrace", "-p", pid, "-d", "1s", "--blocked-rate", "50hz", "-o", path, *more)
    return ends(path)


def test_interrupted_once(stillframe, target, tmp_path):
    program = target("sleeper_O0", "poll", "pointer").falls_asleep()
    before = switches(program.pid)
    found = record(stillframe, program.pid, tmp_path / "a.sfr")
    # The stop and going to sleep again; an interruption at each tick would make 100.
    assert 1 <= switches(program.pid) - before <= 3
    assert found["root"] >= 0.9 * sum(found.values()), found


def test_never_where_it_would_fail(stillframe, target, tmp_path):
    program = target("sleeper_O0", "epoll", "pointer").falls_asleep()
    before = switches(program.pid)
    found = record(stillframe, program.pid, tmp_path / "a.sfr")
    assert switches(program.pid) == before
    assert set(found) == {"register"}


def test_never_where_it_would_go_on_by_a_forbidden_call(stillframe, target, tmp_path):
    """The kernel goes on with poll by restart_syscall, for which the program's filter kills."""
    program = target("in_filter", "restart_syscall", os.path.join(PROGRAMS, "sleeper_O0"), "poll", "pointer").falls_asleep()
    before = switches(program.pid)
    found = record(stillframe, program.pid, tmp_path / "a.sfr")
    assert program.runs() and switches(program.pid) == before
    assert set(found) == {"register"}


@pytest.mark.parametrize("call", ["poll", "epoll"])
def test_never_where_a_call_tells(stillframe, target, tmp_path, call):
    """The frame pointer is not known, but who called is: inferred, and complete."""
    program = target("sleeper_O0", call).falls_asleep()
    before = switches(program.pid)
    found = record(stillframe, program.pid, tmp_path / "a.sfr", *["--no-interrupt"] * (call == "epoll"))
    assert switches(program.pid) == before
    assert set(found) == {"root"}
    with sqlite3.connect(tmp_path / "a.sfr") as database:
        assert database.execute("select count(*) from frames f join vias v on v.id = f.via "
                                "where v.word = 'inferred'").fetchone()[0] == 1


def test_never_when_told_so(stillframe, target, tmp_path):
    program = target("sleeper_O0", "poll", "pointer").falls_asleep()
    before = switches(program.pid)
    record(stillframe, program.pid, tmp_path / "a.sfr", "--no-interrupt")
    assert switches(program.pid) == before


def test_never_where_rows_are_enough(stillframe, target, tmp_path):
    program = target("deep", "20", "pause").falls_asleep()
    before = switches(program.pid)
    found = record(stillframe, program.pid, tmp_path / "a.sfr")
    assert switches(program.pid) == before
    assert set(found) == {"root"}

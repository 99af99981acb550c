# SPDX-License-Identifier: Apache-2.0
"""One table: what a program does to itself, or what it is limited to, and each way in which the signal engine's agent gets into it.
The program ends as it ends without the agent, with the same output, and is sampled."""
import os
import resource
import subprocess
from dataclasses import dataclass

import pytest

from conftest import AGENT, LONG, PROGRAMS, need, need_root
from recordings import Report

KIB = 1024
BOTH = frozenset({"spin_before", "spin_after"})
BEFORE = frozenset({"spin_before"})   # after it the kernel lets the process make no thread, or none is left
NOTHING = frozenset()                 # it cannot be sampled
# CPU time of a program before its calls, and after them, where samples are asserted: at 999 Hz a hundred ticks, of which one must be a
# sample. The sampler needs a CPU to look, and on a busy machine it looks once in some turns of the program: beside 16 others on two CPUs
# none of its looks fell into 60 ms of CPU time in 2 of 100 cases. So the table runs alone.
SECONDS = 0.1


@dataclass(frozen=True)
class Row:
    program: str
    case: str
    limits: tuple = ()           # of resource.setrlimit
    sampled: frozenset = BOTH    # functions that have samples
    turns: int = 1               # threads that end for good may be a moment late
    seconds: float = SECONDS     # of CPU time

    def __str__(self):
        return " ".join([self.program, self.case, *("%s=%s" % limit for limit in self.limits)])

    def command(self, seconds):
        return [os.path.join(PROGRAMS, self.program), self.case, str(seconds), *cgroup2()]

    def limit(self):
        for name, value in self.limits:
            resource.setrlimit(getattr(resource, "RLIMIT_" + name), (value, value))


def cgroup2():
    """Where cgroups of version 2 are mounted, if they are."""
    with open("/proc/mounts") as mounts:
        return [words[1] for words in map(str.split, mounts) if words[2] == "cgroup2"][:1]


def limited(name, value, sampled=BEFORE, seconds=SECONDS):
    return Row("in_alone", "none", ((name, value),), sampled, seconds=seconds)


ROWS = [
    # Users and capabilities.
    *(Row("in_alone", case) for case in ("plain", "keepcaps", "securebits", "capabilities", "no_capabilities", "bounding")),
    # Namespaces.
    *(Row("in_alone", case) for case in ("user", "user_and_mounts", "by_number", "mounts", "enter_user", "enter_mounts", "enter_process")),
    Row("in_alone", "bare_child"),
    Row("in_alone", "children", sampled=BEFORE, turns=8 if LONG else 2),
    # The number of its threads.
    Row("in_counts", "links"),
    # An allocator that is not made for other threads; the short form has one row in each column.
    *(Row("in_lone_malloc", str(column)) for column in range(4)),
    # What a thread changes for itself: filters, scheduling, CPUs, namespaces, a cgroup of threads.
    *(Row("in_follows", case) for case in ("filter", "strange_filter", "no_time_stamps", "fifo", "round_robin", "deadline", "real_time", "idle", "nice", "affinity",
                                           "one_each", "time_of_children", "enter_own", "thread_cgroups")),
    *(Row("in_follows", case, sampled=BEFORE) for case in ("strict", "dispatch")),
    # The end of the program's last thread.
    *(Row("in_last", case, sampled=BEFORE) for case in ("alone", "c11", "number")),
    *(Row("in_last", case, sampled=BEFORE, turns=8 if LONG else 4) for case in ("cancelled", "ended", "exits")),
    *(Row("in_last", case, sampled=BOTH | {"work"}) for case in ("others", "joined", "signal")),
    # Limits.
    limited("FSIZE", 0, NOTHING),
    limited("FSIZE", 2 * KIB),
    limited("FSIZE", 1000 * KIB),
    limited("AS", 6000 * KIB, NOTHING),
    limited("AS", 24000 * KIB),
    # There is no descriptor for libc's file, and so no rule for its code: three of four samples end in clock_gettime.
    limited("NOFILE", 8, seconds=0.5),
    limited("NOFILE", 4, NOTHING),
    limited("MEMLOCK", 0),
    limited("STACK", 72 * KIB),
    limited("CPU", 2),
    # Actions of signals that it sets by number; the short form has one row in each column.
    *(Row("in_actions", str(column)) for column in range(4)),
    # Children that come back from clone(2) to the top of a stack of their own.
    *(Row("in_raw_clone", str(column)) for column in range(4)),
    # An environment that its stack has no room for.
    *(Row("in_cramped", str(column)) for column in range(4)),
    # Signals that are pending.
    *(Row("in_pending", str(column)) for column in range(4)),
    # Long calls that a signal undoes.
    *(Row("in_undone", str(column)) for column in range(4)),
    # Loads from odd addresses end it for a while.
    *(Row("in_aligned", str(column)) for column in range(4)),
    # Addresses at which there is nothing.
    *(Row("in_nowhere", str(column)) for column in range(4)),
]
# In the short form each row is in one of the four columns.
COLUMNS = [("preloaded", "sampler"), ("launched", "handler"), ("preloaded", "handler"), ("launched", "sampler")]


def alone(row):
    done = subprocess.run(row.command(0.02), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=60, text=True, preexec_fn=row.limit)
    return done.returncode, done.stdout


@pytest.fixture
def preloaded(inside):
    def run(row, walk):
        ran = inside(row.command(row.seconds), options="rate=999hz,walk=" + walk, preexec_fn=row.limit)
        return (ran.status, ran.said), names_in(inside.stillframe, ran.out), ""
    return run


@pytest.fixture
def launched(stillframe, tmp_path):
    """The limits are the command's: prlimit sets them for itself, with the agent inside, and executes it."""
    def run(row, walk):
        out = tmp_path / "launched.sfr"
        limits = ["prlimit", *("--%s=%d" % (name.lower(), value) for name, value in row.limits)] if row.limits else []
        done = stillframe("record", "--engine", "signal", "--walk", walk, "--rate", "999hz", "-o", out, "--", *limits, *row.command(row.seconds))
        return (done.status, done.out), names_in(stillframe, out), done.err
    return run


def names_in(stillframe, out):
    """The functions that have samples."""
    if not os.path.exists(out) or not os.path.getsize(out):
        return set()
    return set(Report(stillframe, out).total_shares())


def wrong_with(row, expected, got, names, told):
    """What differs from a run without the agent; a program that is not sampled has a reason."""
    if got[1] != expected[1]:
        return "output", expected, got
    if not names & BOTH and row.limits and told:   # the status of a recording without samples; of prlimit's own life it may have one
        reason = "is not sampled: " if names else "stillframe: "
        return None if reason in " ".join(told.split()) and got[0] in (1, expected[0]) else ("untold", told, got)
    if got[0] != expected[0]:
        return "status", expected, got
    if row.sampled and not row.sampled <= names:
        return "not sampled", row.sampled, names, told
    return None


@pytest.mark.alone   # its programs use 0.1 s of CPU time, in which stillframe gets few turns beside others
@pytest.mark.together(2)
@pytest.mark.parametrize("way, walk", COLUMNS)
def test_as_without(request, way, walk):
    need_root()
    need("prlimit")
    run = request.getfixturevalue(way)
    wrong = {}
    for row in ROWS if LONG else ROWS[COLUMNS.index((way, walk))::len(COLUMNS)]:
        expected = alone(row)
        for _ in range(row.turns):
            found = wrong_with(row, expected, *run(row, walk))
            if found:
                wrong[str(row)] = found
    assert not wrong


def test_a_small_limit_for_files(stillframe, tmp_path):
    """The ring is a file in memory, and would be too large: the program runs, and stillframe says why nothing was sampled."""
    row = limited("FSIZE", 1000 * KIB)
    done = stillframe("record", "--engine", "signal", "-o", tmp_path / "x.sfr", "--", *row.command(0.06), preexec_fn=row.limit)
    assert done.out == alone(row)[1] and "limit for files (ulimit -f)" in done.err and done.status == 1, done


def test_no_room_for_the_recording(stillframe, tmp_path):
    """stillframe is not killed either when its own file reaches the limit."""
    row = limited("FSIZE", 10 * KIB)
    done = stillframe("record", "-o", tmp_path / "x.sfr", "--", *row.command(0.06), preexec_fn=row.limit)
    assert done.status == 1 and "full" in done.err, done


# --- stillframe under the same limits, and disks without room ------------------------------------


# Whether it then records; else one sentence says why not.
OWN_LIMITS = [("STACK", 72 * KIB, True), ("NOFILE", 8, False), ("AS", 15000 * KIB, False), ("MEMLOCK", 0, True), ("CPU", 5, True)]
ENGINES = ["signal", "ptrace"]


@pytest.mark.parametrize("engine", ENGINES)
def test_stillframe_under_limits(stillframe, tmp_path, engine):
    """In the short form each limit by one of the engines."""
    wrong = {}
    for name, value, records in OWN_LIMITS if LONG else OWN_LIMITS[ENGINES.index(engine)::len(ENGINES)]:
        row = limited(name, value)
        done = stillframe("record", "--engine", engine, "-o", tmp_path / "x.sfr", "--", *row.command(0.06), preexec_fn=row.limit)
        said = done.err.startswith("stillframe: ") and done.out in ("", alone(row)[1])
        if not said or (records and (done.status != 0 or "wrote" not in done.err)) or done.status not in (0, 1):
            wrong[name] = done
    assert not wrong


def test_the_limit_of_processes(everybodys):
    """The agent's two threads do not fit: the program runs to its end, and is not sampled."""
    need("prlimit")
    agent, program = everybodys.copy(AGENT), everybodys.program("busy_split")
    out = everybodys.path("x.sfs")
    environment = {**everybodys.environment, "LD_PRELOAD": agent, "STILLFRAME": "out=" + out, "STILLFRAME_VERBOSE": "1"}
    user = ["prlimit", "--nproc=2", "setpriv", "--reuid=61234", "--regid=61234", "--clear-groups"]
    done = subprocess.run([*user, "env", *("%s=%s" % (name, environment[name]) for name in ("LD_PRELOAD", "STILLFRAME", "STILLFRAME_VERBOSE")),
                           program, "0.1", "1"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "total_seconds" in done.stdout, done
    assert done.stderr == "stillframe: cannot make a thread: Resource temporarily unavailable\n", done


FULL = """
set -e
mount -t tmpfs -o size=16k full /dev/shm
mount -t tmpfs -o size=16k full "$HOME"
(head -c 20000 /dev/zero > /dev/shm/full; head -c 20000 /dev/zero > "$HOME/full") 2> /dev/null || true
exec "$@"
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_no_room_in_memory_or_at_home(stillframe, tmp_path, engine):
    """Neither /dev/shm nor the folder for unwind tables takes anything; a recording in such a folder fails in a sentence."""
    need_root()
    need("unshare", "mount")
    home = tmp_path / "home"
    home.mkdir()
    row, out = Row("in_alone", "none"), tmp_path / "x.sfr"
    env = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home), "TMPDIR": str(home)}
    prefix = ["unshare", "-m", "sh", "-c", FULL, "sh"]
    done = stillframe("record", "--engine", engine, "-o", out, "--", *row.command(0.06), prefix=prefix, env=env)
    assert (done.status, done.out) == alone(row) and "wrote" in done.err, done
    done = stillframe("record", "--engine", engine, "-o", home / "x.sfr", "--", *row.command(0.06), prefix=prefix, env=env)
    assert done.status == 1 and "full" in done.err and len(done.err.splitlines()) <= 2, done

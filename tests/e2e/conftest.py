# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: the program under test, targets, recordings.

STILLFRAME          the program (default: build/stillframe beside this checkout's tests)
STILLFRAME_PROGRAMS its test programs (default: tests/programs in the build of that program)
STILLFRAME_AGENT    the library for the inside of a process (default: libstillframe-agent.so beside the program)
STILLFRAME_LONG=1   the long version: a thousand deaths of stillframe, minutes instead of seconds
"""
import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

import hanging

HERE = os.path.dirname(os.path.abspath(__file__))
LONG = os.environ.get("STILLFRAME_LONG") == "1"
STILLFRAME = os.path.abspath(os.environ.get("STILLFRAME") or os.path.join(HERE, "../../build/stillframe"))
AGENT = os.path.abspath(os.environ.get("STILLFRAME_AGENT") or
                        os.path.join(os.path.dirname(STILLFRAME), "libstillframe-agent.so"))


def programs_folder():
    given = os.environ.get("STILLFRAME_PROGRAMS")
    if given:
        return os.path.abspath(given)
    folder = os.path.dirname(STILLFRAME)
    while folder != "/":
        if os.path.isdir(os.path.join(folder, "tests/programs")):
            return os.path.join(folder, "tests/programs")
        folder = os.path.dirname(folder)
    return "/nonexistent"


PROGRAMS = programs_folder()


def pytest_sessionstart(session):
    for path in (STILLFRAME, os.path.join(PROGRAMS, "busy_split")):
        if not os.access(path, os.X_OK):
            pytest.exit("%s is missing: build it, or set STILLFRAME and STILLFRAME_PROGRAMS" % path, 2)


# --- /proc ---------------------------------------------------------------------------------------


def read(path):
    """A file's text, or None if it is gone."""
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None


def status_of(pid, tid=None):
    """{"State": "S (sleeping)", "TracerPid": "0", ...}, or None if it is gone."""
    text = read("/proc/%d/task/%d/status" % (pid, tid) if tid else "/proc/%d/status" % pid)
    return text and dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def tids_of(pid):
    try:
        return sorted(int(tid) for tid in os.listdir("/proc/%d/task" % pid))
    except (FileNotFoundError, ProcessLookupError):
        return []


def cpu_of(pid):
    """CPU time of a process so far, in seconds."""
    fields = read("/proc/%d/stat" % pid).rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def held_threads(pid, stopped_too=True):
    """Threads that someone traces or left stopped: {tid: why}."""
    held = {}
    for tid in tids_of(pid):
        status = status_of(pid, tid)
        if status is None:
            continue
        if status["TracerPid"].strip() != "0":
            held[tid] = "traced by " + status["TracerPid"].strip()
        elif status["State"][0] == "t" or (stopped_too and status["State"][0] == "T"):
            held[tid] = status["State"]
    return held


def in_one_of(rounds, attempt):
    """For what is measured beside whatever else the machine does: a real fault shows in every round. attempt() returns
    (whether it was so, what was measured)."""
    seen = []
    for _ in range(rounds):
        fine, measured = attempt()
        if fine:
            return
        seen.append(measured)
    raise AssertionError("in none of %d rounds: %s" % (rounds, seen))


def until(condition, what, seconds=10, pause=0.005):
    """Waits for something that must come about; its absence is a failure."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, "waited %d s in vain: %s" % (seconds, what)
        time.sleep(pause)


# --- targets -------------------------------------------------------------------------------------


class Target:
    """A program to look at: started, ready, and ended by its pid in any case."""

    def __init__(self, command, wait_ready=True, **how):
        self.command = [str(word) for word in command]
        how = {"stdin": subprocess.DEVNULL, **how}
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)
        self.pid = self.process.pid
        self.lines = hanging.Lines(self.process.stdout)
        self.may_be_stopped = False   # a test that stops it itself says so
        self.said = ""
        if wait_ready:
            self.line("ready")

    def line(self, start, seconds=120):
        """Its next line that starts so."""
        while line := self.lines.next(seconds):
            self.said += line
            if line.startswith(start):
                return line.strip()
        if line is None:
            seen = "\n".join(map(hanging.seen_of, [self.pid, *hanging.descendants(self.pid)]))
            raise AssertionError("hangs: it did not say %r in %d s: %s\n%s" % (start, seconds, seen, self.said))
        raise AssertionError("%s ended without saying %r:\n%s" % (self.command, start, self.said))

    def falls_asleep(self):
        """Waits until all its threads sleep for good."""
        def switches():
            return {tid: (status_of(self.pid, tid) or {}).get("voluntary_ctxt_switches") for tid in tids_of(self.pid)}

        def at_rest():
            before = switches()
            time.sleep(0.05)
            return all(status_of(self.pid, tid)["State"][0] == "S" for tid in tids_of(self.pid)) and \
                switches() == before
        until(at_rest, "%s falls asleep" % self.command)
        return self

    def runs(self):
        return self.process.poll() is None

    def finish(self, seconds=60):
        """(status, what it said) of a program that ends by itself."""
        rest, _ = hanging.finish(self.process, seconds)
        return self.process.returncode, self.said + self.lines.take() + rest

    def assert_free(self):
        """No thread of it is stopped or traced. A stop that is just being let go is given a moment."""
        until(lambda: not held_threads(self.pid, not self.may_be_stopped),
              "%s is let go" % self.command, 2)

    def assert_moves(self, seconds=5):
        """It uses CPU time: it runs on."""
        before = cpu_of(self.pid)
        until(lambda: cpu_of(self.pid) > before, "%s runs on" % self.command, seconds)

    def uses(self, seconds):
        """A condition: it has used so much more CPU time. Waiting for it, as much happens on a busy machine as on an idle one."""
        goal = cpu_of(self.pid) + seconds
        return lambda: cpu_of(self.pid) >= goal

    def end(self):
        """Kills it; what it looked like is returned for the finalizer to judge."""
        held = held_threads(self.pid, not self.may_be_stopped) if self.runs() else {}
        if held:
            time.sleep(0.5)  # a hold lasts microseconds: what is still held now was forgotten
            held = held_threads(self.pid, not self.may_be_stopped)
        if self.runs():
            self.process.kill()
        self.process.wait(60)
        self.process.stdout.close()
        return held


@pytest.fixture
def target():
    """Starts targets: target("deep", 100, "spin"), or target(["/bin/sleep", 10]) for others."""
    started = []

    def start(name, *arguments, **how):
        command = name if isinstance(name, list) else [os.path.join(PROGRAMS, name), *arguments]
        started.append(Target(command, **how))
        return started[-1]

    yield start
    held = {tuple(each.command): each.end() for each in started}
    held = {command: threads for command, threads in held.items() if threads}
    assert not held, "threads were left held: %s" % held


# --- stillframe ----------------------------------------------------------------------------------


class Done:
    def __init__(self, arguments, status, out, err):
        self.arguments, self.status, self.out, self.err = arguments, status, out, err

    def __repr__(self):
        return "stillframe %s: status %s\n--- stdout\n%s\n--- stderr\n%s" % (
            " ".join(map(str, self.arguments)), self.status, self.out[:3000], self.err[:3000])

    def ok(self):
        assert self.status == 0, self
        return self

    def fails(self, status=1):
        """It failed as a command should: with this status and one clear message, nothing else."""
        assert self.status == status, self
        lines = self.err.splitlines()
        assert lines and lines[0].startswith("stillframe"), self
        assert re.match(r"^stillframe( \w+)?: .", lines[0]), self
        assert len(lines) <= 6, self
        for sign in ("Assertion", "assert", "Sanitizer", "Aborted", "(null)", "errno", ".c:"):
            assert sign not in self.err, self
        return self


def ticks_so_far(path):
    """Of the samples in a recording that is being written."""
    try:
        with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as db:
            return db.execute("SELECT coalesce(sum(ticks), 0) FROM samples").fetchone()[0]
    except sqlite3.OperationalError:   # not there yet, or just being written
        return 0


class Stillframe:
    """Runs it; each run has a time limit, and a run that does not end is a failure."""

    path = STILLFRAME

    def __init__(self, cwd):
        self.cwd = cwd
        self.started = []

    def __call__(self, *arguments, timeout=60, prefix=(), **how):
        return self.wait(self.start(*arguments, prefix=prefix, **how), timeout)

    def start(self, *arguments, prefix=(), **how):
        """As a process of its own; ended by pid when the test is over."""
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
               "cwd": self.cwd, **how}
        process = subprocess.Popen([*prefix, self.path, *map(str, arguments)], **how)
        self.started.append(process)
        return process

    def wait(self, process, timeout=60):
        out, err = hanging.finish(process, timeout)
        return Done(process.args[1:], process.returncode, (out or b"").decode(errors="replace"),
                    (err or b"").decode(errors="replace"))

    def record(self, output, *arguments, **how):
        """Records, checks the recording, returns (Done, Recording)."""
        done = self("record", "-o", output, *arguments, **how)
        return done, Recording(output)

    def record_until(self, output, ticks, *arguments, seconds=120, **how):
        """Records, and ends it by SIGINT when so many ticks are samples: as many on a busy machine as on an idle one."""
        process = self.start("record", "-o", output, *arguments, **how)

        def enough():
            return process.poll() is not None or ticks_so_far(output) >= ticks
        until(enough, "%s ticks are samples" % ticks, seconds, 0.1)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        return self.wait(process, seconds).ok()

    def dump(self, pid, *arguments, **how):
        return json.loads(self("dump", "-p", pid, "--json", *arguments, **how).ok().out)


@pytest.fixture
def stillframe(tmp_path):
    runner = Stillframe(tmp_path)
    yield runner
    for process in runner.started:
        if process.poll() is None:
            process.kill()
        process.wait(60)
        for end in (process.stdout, process.stderr):
            if end:
                end.close()


# --- recordings ----------------------------------------------------------------------------------


class Recording:
    """A recording, read by plain SQL as docs/recording.md describes it."""

    def __init__(self, path):
        assert os.path.exists(path), "no recording was written: %s" % path
        self.path = path
        # What a killed stillframe left half-written SQLite takes back on opening; for that it must write.
        killed = any(os.path.exists(str(path) + rest) for rest in ("-journal", "-wal"))
        self.db = sqlite3.connect("file:%s?mode=%s" % (path, "rw" if killed else "ro"), uri=True)
        assert self.value("PRAGMA integrity_check") == "ok"
        self.check()

    def rows(self, sql, *values):
        return self.db.execute(sql, values).fetchall()

    def value(self, sql, *values):
        return self.db.execute(sql, values).fetchone()[0]

    def check(self):
        """What must hold in every recording, however it ended."""
        nothing = {
            "samples of no thread": "SELECT count(*) FROM samples WHERE thread NOT IN (SELECT id FROM threads)",
            "samples of no stack": "SELECT count(*) FROM samples WHERE stack <> 0 AND stack NOT IN (SELECT id FROM stacks)",
            "samples of no tick": "SELECT count(*) FROM samples WHERE ticks < 1",
            # A loss may be time without a tick: the thread ended before one was due.
            "losses of nothing": "SELECT count(*) FROM losses WHERE ticks < 1 AND cpu_ns = 0 AND wall_ns = 0",
            "negative times": "SELECT count(*) FROM samples WHERE cpu_ns < 0 OR wall_ns < 0 OR time_ns < 0",
            "unknown states": "SELECT count(*) FROM samples WHERE state NOT IN (SELECT id FROM states)",
            "unknown causes": "SELECT count(*) FROM losses WHERE cause NOT IN (SELECT id FROM causes)",
            "stacks below themselves": "SELECT count(*) FROM stacks WHERE parent >= id",
        }
        for what, sql in nothing.items():
            assert self.value(sql) == 0, "%s in %s" % (what, self.path)

    @property
    def ticks(self):
        return self.value("SELECT ticks FROM accounting")

    @property
    def samples(self):
        return self.value("SELECT sample_ticks FROM accounting")

    def losses(self):
        return dict(self.rows("SELECT cause, ticks FROM loss_totals"))

    def cpu(self):
        """(seen, lost, counted) in seconds."""
        return tuple(ns / 1e9 for ns in self.rows(
            "SELECT cpu_seen_ns, cpu_lost_ns, cpu_counted_ns FROM accounting")[0])

    def duration(self):
        """From the first look to the last, in seconds. (The session's own is longer, by its start and its end.)"""
        return self.value("SELECT max(end_ns) - min(start_ns) FROM threads") / 1e9

    def assert_accounts(self, tolerance=0.05, slack=0.05):
        """ticks = samples + losses, in time: what the samples and losses stand for is what the kernel counted,
        and each thread's life is accounted for."""
        seen, lost, counted = self.cpu()
        assert abs(seen + lost - counted) <= tolerance * counted + slack, (
            "CPU seen %.3f + lost %.3f, counted %.3f" % (seen, lost, counted))

    def self_shares(self, clock="cpu_ns"):
        """{function: share} by what stands on top."""
        rows = self.rows("SELECT name, sum(%s) FROM self_times GROUP BY name" % clock)
        total = sum(weight for _, weight in rows) or 1
        return {name: weight / total for name, weight in rows}

    def total_shares(self, clock="cpu_ns"):
        rows = self.rows("SELECT name, sum(%s) FROM total_times GROUP BY name" % clock)
        total = self.value("SELECT sum(%s) FROM samples" % clock) or 1
        return {name: weight / total for name, weight in rows}

    def stacks_of(self, function):
        """The stacks (lists of names, innermost first) on which this function is, with their sample counts."""
        stacks = {}
        for stack, depth, name in self.rows(
                "SELECT f.stack, f.depth, n.name FROM stack_frames f JOIN frame_names n ON n.frame = f.frame "
                "ORDER BY f.stack, f.depth, n.seq"):
            stacks.setdefault(stack, []).append(name)
        counts = dict(self.rows("SELECT stack, sum(ticks) FROM samples GROUP BY stack"))
        return [(names, counts[stack]) for stack, names in stacks.items() if function in names]

    def threads(self):
        return self.rows("SELECT tid, name, process FROM thread_names")


# --- inside a process ----------------------------------------------------------------------------


class Report:
    """What `stillframe report --json` says of a recording or of a stream file."""

    def __init__(self, stillframe, path):
        assert os.path.exists(path), "no recording was written: %s" % path
        self.path = path
        self.json = json.loads(stillframe("report", "--json", path).ok().out)
        self.check()

    def check(self):
        """ticks = samples + losses, whatever else happened."""
        assert self.json["ticks"] == self.json["sample_ticks"] + self.json["lost_ticks"], self.path
        assert sum(loss["ticks"] for loss in self.json["losses"]) == self.json["lost_ticks"], self.path

    def __getattr__(self, name):
        return self.json[name]

    @property
    def lost(self):
        """{cause: ticks}"""
        return {loss["cause"]: loss["ticks"] for loss in self.json["losses"]}

    @property
    def too_busy(self):
        """Seconds of CPU time that were lost because the machine was too busy for an answer, or for a look, in time."""
        return sum(loss["cpu_ns"] for loss in self.json["losses"] if loss["cause"] in ("late", "gone", "unseen")) / 1e9

    @property
    def ended(self):
        """{how walks ended: ticks}"""
        return {end["end"]: end["ticks"] for end in self.json["ends"]}

    def self_shares(self):
        """{function: share of the CPU time} by what stands on top."""
        return self.shares("self_ns")

    def total_shares(self):
        return self.shares("total_ns")

    def shares(self, which):
        sums = {}
        for row in self.json["functions"]:
            sums[row["name"]] = sums.get(row["name"], 0) + row[which]
        return {name: ns / (self.json["total_ns"] or 1) for name, ns in sums.items()}

    def cpu(self):
        """(seen, lost, counted) in seconds."""
        return tuple(self.json["cpu_%s_ns" % what] / 1e9 for what in ("seen", "lost", "counted"))

    def assert_accounts(self, tolerance=0.05, slack=0.05):
        """What samples and losses stand for is what the kernel counted."""
        seen, lost, counted = self.cpu()
        assert abs(seen + lost - counted) <= tolerance * counted + slack, (
            "CPU seen %.3f + lost %.3f, counted %.3f" % (seen, lost, counted))


class Ran:
    """A program that ran with the agent inside."""

    def __init__(self, inside, command, options, status, said, out):
        self.inside, self.command, self.options = inside, command, options
        self.status, self.said, self.out = status, said, out

    def __repr__(self):
        return "%s under STILLFRAME=%s: status %s\n%s" % (" ".join(self.command), self.options, self.status,
                                                          self.said[-3000:])

    def ok(self):
        assert self.status == 0, self
        return self

    @property
    def report(self):
        return Report(self.inside.stillframe, self.out)


class Inside:
    """Runs programs with the agent preloaded and no stillframe around: inside("deep", 20, options="walk=handler").

    Every run has a time limit; one that does not end is a failure."""

    def __init__(self, stillframe, folder):
        self.stillframe, self.folder, self.runs = stillframe, folder, 0

    def environment(self, options, out):
        return dict(os.environ, LD_PRELOAD=AGENT,
                    STILLFRAME=",".join(filter(None, ["out=%s" % out, options])))

    def sampled_and_killed(self, name, *arguments, options, cpu=0.3):
        """Of a program that never ends by itself: until it has used so much CPU time, however long that takes. What was
        sampled up to a twentieth of a second before is there."""
        self.runs += 1
        out = os.path.join(self.folder, "%d.sfs" % self.runs)
        target = Target([os.path.join(PROGRAMS, name), *arguments], env=self.environment(options, out), cwd=self.folder)
        try:
            until(lambda: cpu_of(target.pid) >= cpu, "%s runs" % name, 60)
        finally:
            target.end()
        return Ran(self, target.command, options, None, target.said, out)

    def __call__(self, name, *arguments, options="", timeout=60, start=True, environment={}, **how):
        """start=False: the library is loaded, and the program starts it itself, or not. options=None: not even that."""
        command = [str(word) for word in (name if isinstance(name, list) else [os.path.join(PROGRAMS, name), *arguments])]
        self.runs += 1
        out = os.path.join(self.folder, "%d.sfs" % self.runs)
        how.setdefault("cwd", self.folder)
        env = self.environment(options, out)
        if options is None or not start:
            env.pop("STILLFRAME")
        if options is None:
            env.pop("LD_PRELOAD")
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   env={**env, **environment}, **how)
        said, _ = hanging.finish(process, timeout)
        return Ran(self, command, options, process.returncode, said.decode(errors="replace"), out)


@pytest.fixture
def inside(stillframe, tmp_path):
    """Skips where the agent was not built."""
    if not os.path.exists(AGENT):
        pytest.skip("%s is not built here" % AGENT)
    return Inside(stillframe, tmp_path)


# --- what the machine has ------------------------------------------------------------------------


def need(*names):
    """Skips, with the reason, when a tool is missing."""
    for name in names:
        if shutil.which(name) is None:
            pytest.skip("%s is not installed" % name)
    return [shutil.which(name) for name in names]


def need_root():
    if os.geteuid() != 0:
        pytest.skip("needs root")


@pytest.fixture(scope="session")
def long_version():
    return LONG

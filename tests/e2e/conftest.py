# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: the program under test and how it is run; targets are in processes.py, what was
recorded in recordings.py.

STILLFRAME          the program (default: build/stillframe beside this checkout's tests)
STILLFRAME_PROGRAMS its test programs (default: tests/programs in the build of that program)
STILLFRAME_AGENT    the library for the inside of a process (default: libstillframe-agent.so beside the program)
STILLFRAME_CLASSES  a folder for compiled Java classes, which several runs share (default: each run compiles its own)
STILLFRAME_LONG=1   the long version: a thousand deaths of stillframe, minutes instead of seconds
"""
import ctypes
import itertools
import json
import os
import platform
import re
import resource
import shutil
import signal
import struct
import subprocess
import tempfile

import pytest
from _pytest.assertion import rewrite

import hanging

# So that pytest says what was compared in theirs, too; before they are loaded.
pytest.register_assert_rewrite("processes", "recordings")
from processes import Target, cpu_of, sweep, until
from recordings import Recording, Report, ticks_so_far


def message_of(obj, maxsize=None, short=rewrite.saferepr):
    """What a test says of its failure: often all there is of one in CI. pytest keeps 240 characters, and 6 items of a list."""
    return short(obj, maxsize) if maxsize else repr(obj)[:4000]


rewrite.saferepr = message_of

HERE = os.path.dirname(os.path.abspath(__file__))
LONG = os.environ.get("STILLFRAME_LONG") == "1"
STILLFRAME = os.path.abspath(os.environ.get("STILLFRAME") or os.path.join(HERE, "../../build/stillframe"))
AGENT = os.path.abspath(os.environ.get("STILLFRAME_AGENT") or
                        os.path.join(os.path.dirname(STILLFRAME), "libstillframe-agent.so"))
needs_agent = pytest.mark.skipif(not os.path.exists(AGENT), reason="the agent is not built here")
# STILLFRAME names the program under test here, and would be the agent's options in a target.
PLAIN = {name: value for name, value in os.environ.items() if name != "STILLFRAME"}


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
CPU_BEFORE = pytest.StashKey()


def pytest_sessionstart(session):
    # A shell that puts its commands into the background has them ignore SIGINT, and programs started here would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for path in (STILLFRAME, os.path.join(PROGRAMS, "busy_split")):
        if not os.access(path, os.X_OK):
            pytest.exit("%s is missing: build it, or set STILLFRAME and STILLFRAME_PROGRAMS" % path, 2)


def pytest_configure(config):
    config.addinivalue_line("markers", "long(*ids): only in the long form (STILLFRAME_LONG=1); with ids: only the parameter sets whose id "
                                       "contains one of these")
    config.addinivalue_line("markers", "waits: of a file whose tests use little CPU time: it may run beside two others (tests/run)")
    config.addinivalue_line("markers", "alone: nothing else runs beside it (tests/run)")
    config.addinivalue_line("markers", "each_jdk: with every JDK in the short form, too; other tests take the newest there")
    config.addinivalue_line("markers", "together(n): in the short form any n of its parameters have all their values together; "
                                       "without it each value of each parameter occurs")


def jdk_of(item):
    """The version of the JDK that a test is for; None: no JDK, or there is none."""
    return item.callspec.params.get("jdk") if hasattr(item, "callspec") else None


def is_long(item, newest_jdk):
    """Whether it is left to the long form."""
    for mark in item.iter_markers("long"):
        if not mark.args or any(word in item.name.partition("[")[2] for word in mark.args):
            return True
    return jdk_of(item) not in (None, newest_jdk) and not item.get_closest_marker("each_jdk")


def settings_of(item):
    """What must occur: all choices of so many of its parameters, each with its value."""
    mark = item.get_closest_marker("together")
    parameters = sorted((name, repr(value)) for name, value in item.callspec.params.items())
    return set(itertools.combinations(parameters, min(mark.args[0] if mark else 1, len(parameters))))


def covering(items):
    """Of the parameter sets of one test so few that each setting occurs: one after the other the set that adds most."""
    missing, kept = set().union(*map(settings_of, items)), []
    while missing:
        kept.append(max(items, key=lambda item: len(settings_of(item) & missing)))
        missing -= settings_of(kept[-1])
    return kept


def short_form(items):
    """Without what is marked `long`, and of each test with parameters a few sets."""
    newest_jdk = max((jdk_of(item) or 0 for item in items), default=0)
    kept, tests = set(), {}
    for item in items:
        if not is_long(item, newest_jdk):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for same in tests.values():
        kept.update(covering(same) if hasattr(same[0], "callspec") else same)
    return kept


def pytest_collection_modifyitems(config, items):
    """The short form takes these, and tests that were named on the command line."""
    if LONG or any("::" in argument for argument in config.args):
        return
    kept = short_form(items)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def cpu_so_far():
    """CPU time of this process and of all that it waited for, in seconds."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    item.stash[CPU_BEFORE] = cpu_so_far()
    yield


def pytest_runtest_makereport(item, call):
    """The CPU time of a test, with its fixtures and its targets, is in the report for machines (tests/run --slowest)."""
    if call.when == "teardown":
        item.user_properties.append(("cpu_seconds", "%.3f" % (cpu_so_far() - item.stash[CPU_BEFORE])))


# --- targets -------------------------------------------------------------------------------------


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


class Stillframe:
    """Runs it; each run has a time limit, and a run that does not end is a failure."""

    path = STILLFRAME
    usual = ("--max-cost", "50")   # for record() by ptrace

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

    @staticmethod
    def engine(arguments):
        return () if {"-e", "--engine"} & set(arguments) else ("-e", "ptrace")

    def record(self, output, *arguments, **how):
        """Records, checks the recording, returns (Done, Recording). By ptrace, unless an engine is named: it is the engine that can do
        harm, and that every user may have. It may take half of a busy machine, which these tests run
        on: with 2 % of it many would have too few samples. Those of what it may take, and of the promises, leave it at that."""
        own = list(arguments[:arguments.index("--")] if "--" in arguments else arguments)
        if not {"-e", "--engine", "--max-cost"} & set(own):
            arguments = (*self.usual, *arguments)
        done = self("record", "-o", output, *self.engine(own), *arguments, **how)
        return done, Recording(output)

    def record_until(self, output, ticks, *arguments, seconds=120, **how):
        """Records, and ends it by SIGINT when so many ticks are samples: as many on a busy machine as on an idle one. Or when what
        stands for them says so, a function of the recording's path."""
        process = self.start("record", "-o", output, *self.engine(arguments), *arguments, **how)

        def enough():
            return process.poll() is not None or (ticks(output) if callable(ticks) else ticks_so_far(output) >= ticks)
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
    sweep([process.pid for process in runner.started])


# --- doctor --------------------------------------------------------------------------------------


def findings(text):
    """What doctor's text says: [["ok" or "no", the lines of a finding]]."""
    found = []
    for line in text.splitlines():
        if line.startswith("  ok ") or line.startswith("  no "):
            found.append([line[2:4], line[5:].strip()])
        elif found:
            found[-1][1] += " " + line.strip()
    return found


def finding(done, what):
    """The lines of a finding: ("ok", text)."""
    (one,) = [each for each in findings(done.out) if what in each[1]]
    return one


def need_findings(text, *needed):
    """Skips, with what doctor's text says, where one of these is not "ok". Where perf events are refused, that is all it says of them."""
    found = findings(text)
    for what in needed:
        good, said = next(each for name in (what, "perf events may be opened") for each in found if name in each[1])
        if good != "ok":
            pytest.skip("not here: " + said)


NUMBERS = {"x86_64": {"ptrace": 101, "perf_event_open": 298, "bpf": 321}, "aarch64": {"ptrace": 117, "perf_event_open": 241, "bpf": 280}}


def refuse(name, error):
    """In a child before its exec: a filter as containers have it, by which a system call fails with this error."""
    code = b"".join(struct.pack("HBBI", *row) for row in [
        (0x20, 0, 0, 0),                  # load the number of the system call
        (0x15, 0, 1, NUMBERS[platform.machine()][name]),
        (0x06, 0, 0, 0x00050000 | error), # SECCOMP_RET_ERRNO
        (0x06, 0, 0, 0x7fff0000)])        # SECCOMP_RET_ALLOW
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxQ", 4, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0


def shown(tmp_path, files, hidden=()):
    """A prefix: whoever runs behind it reads these texts in these files, and nothing in these folders."""
    need_root()
    need("unshare", "mount")
    script = []
    for i, (path, text) in enumerate(files.items()):
        folder = os.path.dirname(path)
        own = tmp_path / ("shown-%d" % i)
        own.mkdir()
        (own / os.path.basename(path)).write_text(text)
        own.chmod(0o755)
        source = own if not os.path.exists(path) else own / os.path.basename(path)
        script.append("mount --bind %s %s" % (source, folder if source == own else path))
    script += ["mount -t tmpfs none %s" % folder for folder in hidden]
    return ["unshare", "-m", "sh", "-c", " && ".join([*script, 'exec "$@"']), "sh"]


def paranoid():
    """kernel.perf_event_paranoid"""
    with open("/proc/sys/kernel/perf_event_paranoid") as file:
        return int(file.read())


# --- inside a process ----------------------------------------------------------------------------


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

    def sampled_and_killed(self, name, *arguments, options, cpu=0.3, samples=0):
        """Of a program that never ends by itself: until it has used so much CPU time and gave so many samples, however long that
        takes. What was sampled up to a twentieth of a second before is there."""
        self.runs += 1
        out = os.path.join(self.folder, "%d.sfs" % self.runs)
        target = Target([os.path.join(PROGRAMS, name), *arguments], env=self.environment(options, out), cwd=self.folder)
        try:
            until(lambda: cpu_of(target.pid) >= cpu, "%s runs" % name, 60)
            if samples:
                until(lambda: Report(self.stillframe, out).samples > samples, "more than %d samples" % samples, 60, 0.2)
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
    need_agent()
    return Inside(stillframe, tmp_path)


# --- what the machine has ------------------------------------------------------------------------


def need(*names):
    """Skips, with the reason, when a tool is missing."""
    for name in names:
        if shutil.which(name) is None:
            pytest.skip("%s is not installed" % name)
    return [shutil.which(name) for name in names]


def need_agent():
    if not os.path.exists(AGENT):
        pytest.skip("%s is not built here" % AGENT)


def need_engine(stillframe, engine, pid):
    line = re.search(r"^  (ok|no) +engine %s:.*(\n {7}.*)*" % engine, stillframe("doctor", "-p", pid).ok().out, re.MULTILINE)
    if line[1] != "ok":
        pytest.skip(" ".join(line[0].split()))


def need_root():
    if os.geteuid() != 0:
        pytest.skip("needs root")


def need_kernel_samples(stillframe):
    """Skips where perf events show this user no time in the kernel: short lives have no sample then, and auto takes another engine."""
    need_findings(stillframe("doctor").out, "kernel.perf_event_paranoid is")


NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


class Everybodys:
    """A folder that every user may enter and write to, with copies of what a test runs there as NOBODY. The build may be in a
    folder that only root may enter: a program is started from there all the same, as setpriv still has root's rights when it
    executes it, but cannot read itself afterwards, nor its own debugging data."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = {**os.environ, "HOME": folder, "XDG_CACHE_HOME": folder}

    def path(self, name):
        return os.path.join(self.folder, name)

    def copy(self, path):
        shutil.copy(path, self.folder)
        copied = self.path(os.path.basename(path))
        os.chmod(copied, 0o755)
        return copied

    def program(self, name):
        return self.copy(os.path.join(PROGRAMS, name))

    def stillframe(self):
        """With its agent beside it."""
        if os.path.exists(AGENT):
            self.copy(AGENT)
        return self.copy(STILLFRAME)


@pytest.fixture
def everybodys():
    """For tests that become another user, which only root can."""
    need_root()
    need("setpriv")
    with tempfile.TemporaryDirectory(prefix="stillframe-test-", dir="/tmp") as folder:
        os.chmod(folder, 0o777)
        yield Everybodys(folder)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A recording that nobody has damaged."""
    folder = tmp_path_factory.mktemp("good")
    Stillframe(folder)("record", "-F", "499", "-o", folder / "good.sfr", "--", os.path.join(PROGRAMS, "busy_split"), 0.5).ok()
    return folder / "good.sfr"

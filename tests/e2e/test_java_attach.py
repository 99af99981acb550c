# SPDX-License-Identifier: Apache-2.0
"""A stock Java virtual machine takes the agent in while it runs, or as -agentpath; and is otherwise left as it was."""
import collections
import contextlib
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

import pytest

import hanging
from conftest import AGENT, NOBODY, PLAIN, STILLFRAME, need, needs_agent
from processes import read, status_of, tids_of, until
from recordings import Recording
from java_stacks import Stacks, jdk  # noqa: F401 (jdk is a fixture)
from test_signal_engine import PERF_EVENT_OPEN, PTRACE, refusing

pytestmark = needs_agent
WARNING = "WARNING: "
ROOT = os.geteuid() == 0


def what_it_said(t, jdk):
    """All that the machine printed in its life but "ready"; what JDK 21 and later say of an agent is taken off, once."""
    t.process.terminate()
    status, said = t.finish()
    assert status in (143, -signal.SIGTERM), (status, said)   # as the JVM ends at SIGTERM, and with -Xrs
    lines = [line for line in said.splitlines() if line != "ready"]
    warned = [line for line in lines if line.startswith(WARNING)]
    assert len(warned) in ((0,) if jdk.version < 21 else (0, 3)), lines
    return [line for line in lines if line not in warned], bool(warned)


def left_behind(pid):
    return [name for name in os.listdir("/tmp") if name == ".attach_pid%d" % pid or
            name.startswith("libstillframe-agent-")]


def record(stillframe, pid, path, *more, **how):
    return stillframe("record", "-p", pid, "-e", "signal", "-d", "0.7s", "-o", path, *more, **how)


def recorded(stillframe, pid, path, **how):
    """A recording of some samples, however busy the machine is."""
    return stillframe.record_until(str(path), 40, "-p", pid, "-e", "signal", **how)


@pytest.mark.each_jdk
def test_a_machine_takes_the_agent_in(stillframe, target, jdk, tmp_path):
    """Twice: loaded once, and the second time called. A socket that a dead machine left behind is no obstacle."""
    t = target(jdk.java([], "Demo", "chain", "sleep"), env=PLAIN)
    stale = socket.socket(socket.AF_UNIX)
    stale.bind("/tmp/.java_pid%d" % t.pid)
    stale.close()
    first = recorded(stillframe, t.pid, tmp_path / "1.sfr")
    second = recorded(stillframe, t.pid, tmp_path / "2.sfr")
    assert "loaded into the program by its runtime" in " ".join(first.err.split()), first
    assert "loaded" not in second.err, second
    for name in ("1.sfr", "2.sfr"):
        recording = Recording(tmp_path / name)
        assert recording.samples > 20
        recording.assert_accounts()
    with open("/proc/%d/maps" % t.pid) as maps:
        assert len({line.split()[0] for line in maps if "libstillframe-agent" in line and " r-xp " in line}) == 1
    t.assert_moves()
    assert not left_behind(t.pid)
    assert what_it_said(t, jdk) == ([], jdk.version >= 21)


@pytest.mark.long
def test_the_machines_own_recorder_afterwards(stillframe, target, jdk, tmp_path):
    """Our handler stays in the machine; its recorder's CPU-time sampler, which wants SIGPROF and refuses it where there is a
    handler, works all the same."""
    if jdk.version < 25:
        pytest.skip("the sampler came with JDK 25")
    t = target(jdk.java(["-Xlog:jfr*=off", "-XX:FlightRecorderOptions=repository=%s" % tmp_path], "Demo", "chain"), env=PLAIN)
    recorded(stillframe, t.pid, tmp_path / "r.sfr")
    file = tmp_path / "own.jfr"
    own = jdk.tool("jcmd", t.pid)
    hanging.run_well([*own, "JFR.start", "name=own", "settings=none", "+jdk.CPUTimeSample#enabled=true", "+jdk.CPUTimeSample#throttle=5ms"])
    recorded(stillframe, t.pid, tmp_path / "beside.sfr")
    hanging.run_well([*own, "JFR.stop", "name=own", "filename=%s" % file])
    summary = hanging.run_well(jdk.tool("jfr", "summary", file))
    assert int(re.search(r"jdk\.CPUTimeSample +(\d+)", summary)[1]) > 20, summary
    assert Recording(tmp_path / "beside.sfr").samples > 20
    t.assert_moves()


REFUSALS = {
    "no attaching": (["-XX:+DisableAttachMechanism"], r"-XX:\+DisableAttachMechanism"),
    "by the environment": ([], r"-XX:\+DisableAttachMechanism"),
    "no signals": (["-Xrs"], r"does not listen to SIGQUIT \(-Xrs"),
    "no agents": (["-XX:-EnableDynamicAgentLoading"], r"-XX:-EnableDynamicAgentLoading"),
}


@pytest.mark.parametrize("why", REFUSALS)
def test_a_machine_that_takes_none_is_let_be(stillframe, target, jdk, why, tmp_path):
    """One clear message, no thread dump on its output, nothing left behind; it runs on."""
    options, message = REFUSALS[why]
    if why == "no agents" and jdk.version < 9:
        pytest.skip("JDK 8 has no such flag")
    env = dict(PLAIN)
    if why == "by the environment":
        env["JAVA_TOOL_OPTIONS"] = "-XX:+DisableAttachMechanism"
    t = target(jdk.java(options, "Demo", "nap"), env=env)
    done = record(stillframe, t.pid, tmp_path / "r.sfr").fails()
    assert re.search(message, done.err), done
    assert not (tmp_path / "r.sfr").exists()
    t.assert_moves()
    assert not left_behind(t.pid)
    said, warned = what_it_said(t, jdk)
    assert [line for line in said if not line.startswith("Picked up")] == [] and not warned


def test_auto_loads_where_all_outside_is_refused(stillframe, target, jdk, tmp_path):
    if os.uname().machine != "x86_64":
        pytest.skip("the filter has x86-64's number of ptrace")
    t = target(jdk.java([], "Demo", "nap"), env=PLAIN)
    done = stillframe.record_until(str(tmp_path / "r.sfr"), 40, "-e", "auto", "-p", t.pid, prefix=refusing(PTRACE, PERF_EVENT_OPEN))
    assert re.search(r"by signal, from inside, since", done.err), done
    assert "loaded into the program by its runtime" in " ".join(done.err.split()), done
    assert Recording(tmp_path / "r.sfr").samples > 20
    assert what_it_said(t, jdk)[0] == []


@pytest.fixture
def open_folder(jdk):
    """A folder that everybody may enter, with the classes in it."""
    folder = tempfile.mkdtemp(prefix="stillframe-test-", dir="/tmp")
    os.chmod(folder, 0o755)
    shutil.copytree(jdk.classes, folder + "/classes")
    hanging.run_well(["chmod", "-R", "a+rX", folder])
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(not ROOT, reason="needs root, to become another user")
def test_another_user(stillframe, target, jdk, open_folder, everybodys):
    """Root loads into anybody's machine, as that user; everybody into his own; nobody into another's."""
    need("setpriv")
    java = [jdk.folder + "/bin/java", "-cp", open_folder + "/classes", "Demo", "nap"]
    out = open_folder + "/out"
    os.mkdir(out)
    os.chown(out, 65534, 65534)
    t = target([*NOBODY, *java], env=PLAIN)
    recorded(stillframe, t.pid, out + "/root.sfr")
    assert Recording(out + "/root.sfr").samples > 20
    # What the agent in it made is the user's own.
    assert os.stat("/tmp/stillframe-65534").st_uid == 65534
    assert not left_behind(t.pid)
    assert what_it_said(t, jdk)[0] == []

    stillframe.path = everybodys.stillframe()
    t = target([*NOBODY, *java], env=PLAIN)
    recorded(stillframe, t.pid, out + "/own.sfr", prefix=NOBODY, cwd=out)
    assert Recording(out + "/own.sfr").samples > 20
    t = target(java, env=PLAIN)
    done = record(stillframe, t.pid, out + "/others.sfr", prefix=NOBODY, cwd=out).fails()
    t.assert_moves()
    assert what_it_said(t, jdk) == ([], False), done


@pytest.mark.skipif(not ROOT, reason="needs root, for a mount namespace")
def test_a_machine_that_does_not_see_the_library(stillframe, target, jdk, tmp_path):
    """It has a /tmp of its own, and in it for a moment a copy of the library."""
    need("unshare")
    library = tempfile.mkdtemp(prefix="stillframe-test-", dir="/tmp")
    try:
        shutil.copy(AGENT, library)
        classes = "/dev/shm/stillframe-test-%d" % os.getpid()
        shutil.copytree(jdk.classes, classes)
        t = target(["unshare", "-m", "sh", "-c", "mount -t tmpfs none /tmp && exec \"$@\"", "sh",
                    jdk.folder + "/bin/java", "-cp", classes, "Demo", "nap"], env=PLAIN)
        for name in ("1.sfr", "2.sfr"):
            recorded(stillframe, t.pid, tmp_path / name,
                     env={**os.environ, "STILLFRAME_AGENT": library + "/libstillframe-agent.so"})
            assert Recording(tmp_path / name).samples > 20
        names = os.listdir("/proc/%d/root/tmp" % t.pid)
        assert ".java_pid%d" % t.pid in names, names
        assert not [name for name in names if name.startswith((".attach", "libstillframe"))], names
        assert what_it_said(t, jdk)[0] == []
    finally:
        shutil.rmtree(library)
        shutil.rmtree(classes, ignore_errors=True)


def test_agentpath(stillframe, target, jdk, tmp_path):
    """The options of STILLFRAME=: a stream file, and listening; with the library preloaded as well, there is one agent."""
    out = tmp_path / "a.sfs"
    t = target(jdk.java(["-agentpath:%s=out=%s,rate=499hz,listen" % (AGENT, out)], "Demo", "nap"),
               env={**PLAIN, "LD_PRELOAD": AGENT})
    t.assert_moves()
    assert what_it_said(t, jdk) == ([], False)
    report = hanging.run([STILLFRAME, "report", out])
    assert report.returncode == 0 and "incomplete" not in report.stdout + report.stderr, report

    t = target(jdk.java(["-agentpath:%s=listen" % AGENT], "Demo", "nap"), env=PLAIN)
    done = recorded(stillframe, t.pid, tmp_path / "r.sfr")
    assert "loaded" not in done.err and Recording(tmp_path / "r.sfr").samples > 20, done
    assert what_it_said(t, jdk) == ([], False)


def test_agentpath_that_says_nothing_understandable(target, jdk):
    """One line, and the program runs as without."""
    t = target(jdk.java(["-agentpath:%s=colour=red" % AGENT], "Demo", "nap"), env=PLAIN)
    t.assert_moves()
    said, _ = what_it_said(t, jdk)
    assert len(said) == 1 and said[0].startswith("stillframe: ") and "colour" in said[0], said


def test_a_long_path(stillframe, target, jdk, tmp_path):
    """The older protocol has room for 1,024 bytes; JDK 24 and later know another one."""
    folder = str(tmp_path)
    while len(folder) < 1100:
        folder += "/" + "long" * 40
        os.mkdir(folder)
    shutil.copy(AGENT, folder)
    t = target(jdk.java([], "Demo", "nap"), env=PLAIN)
    env = {**os.environ, "STILLFRAME_AGENT": folder + "/libstillframe-agent.so"}
    if jdk.version >= 24:
        recorded(stillframe, t.pid, tmp_path / "r.sfr", env=env)
        assert Recording(tmp_path / "r.sfr").samples > 20
    else:
        done = record(stillframe, t.pid, tmp_path / "r.sfr", env=env)
        assert "up to 1024 bytes" in done.fails().err, done
    assert what_it_said(t, jdk)[0] == []


# --- a machine that hangs ------------------------------------------------------------------------


def gives_up(stillframe, pid, path):
    """The one message with which loading is given up."""
    done = record(stillframe, pid, path, timeout=120).fails()
    assert not os.path.exists(path) and not left_behind(pid)
    assert done.err.count("stillframe: ") == 1, done
    return done


def test_a_stopped_machine(stillframe, target, jdk, tmp_path):
    """It is told, and the JVM gets no SIGQUIT for which nothing would be in place when it goes on."""
    t = target(jdk.java([], "Demo", "nap"), env=PLAIN)
    os.kill(t.pid, signal.SIGSTOP)
    until(lambda: "(stopped)" in open("/proc/%d/status" % t.pid).read(), "it is stopped")
    done = gives_up(stillframe, t.pid, tmp_path / "r.sfr")
    assert "it is stopped" in done.err and "kill -CONT" in done.err, done
    os.kill(t.pid, signal.SIGCONT)
    t.assert_moves()
    recorded(stillframe, t.pid, tmp_path / "later.sfr")
    assert what_it_said(t, jdk)[0] == []


def attach_socket(jdk, t):
    hanging.run_well(jdk.tool("jcmd", t.pid, "VM.version"))
    return "/tmp/.java_pid%d" % t.pid


def clients(name, n):
    """Connections of others, who say nothing."""
    made = []
    for _ in range(n):
        made.append(socket.socket(socket.AF_UNIX))
        made[-1].settimeout(2)
        try:
            made[-1].connect(name)
        except (socket.timeout, BlockingIOError):
            break   # it is full
    return made


def test_a_busy_listener(stillframe, target, jdk, tmp_path):
    """It serves somebody who does not go on; then so many that no more are let in. Nothing is loaded later by itself."""
    t = target(jdk.java([], "Demo", "nap"), env=PLAIN)
    name = attach_socket(jdk, t)
    others = clients(name, 1)
    done = gives_up(stillframe, t.pid, tmp_path / "r.sfr")
    assert "does not answer" in done.err and "one request at a time" in done.err, done
    others += clients(name, 100)
    assert len(others) < 100
    done = gives_up(stillframe, t.pid, tmp_path / "r.sfr")
    assert "too many wait" in done.err and "one request at a time" in done.err, done
    t.assert_moves()
    for other in others:
        other.close()
    recorded(stillframe, t.pid, tmp_path / "later.sfr")
    assert Recording(tmp_path / "later.sfr").samples > 20
    # A thread dump would be here.
    assert what_it_said(t, jdk)[0] == []


# A thread that is held by a tracer reaches no safepoint: nor does the machine. It ends with its standard input, which
# ends with this process at the latest.
HOLD = """
import ctypes, os, sys
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long] * 4
tid = int(sys.argv[1])
SEIZE, INTERRUPT, ALL = 0x4206, 0x4207, 0x40000000
if ptrace(SEIZE, tid, 0, 0) or ptrace(INTERRUPT, tid, 0, 0):
    sys.exit("ptrace: " + os.strerror(ctypes.get_errno()))
os.waitpid(tid, ALL)
print("held", flush=True)
sys.stdin.read()
"""


def java_thread(pid, name):
    """The thread whose name begins so that used the most CPU time. (The system sees 15 letters; from JDK 26 on dots stand in their
    midst.)"""
    def used(tid):
        return int(open("/proc/%d/task/%s/schedstat" % (pid, tid)).read().split()[0])
    return max((tid for tid in os.listdir("/proc/%d/task" % pid)
                if open("/proc/%d/task/%s/comm" % (pid, tid)).read().startswith(name)), key=used)


def as_it_is(pid):
    """{thread: (state, the CPU time of a worker)}, and how often the machine's own thread has slept."""
    seen, slept = {}, 0
    for tid in tids_of(pid):
        status, used = status_of(pid, tid), read("/proc/%d/task/%d/schedstat" % (pid, tid))
        if status and used:
            seen[tid] = status["State"][0], status["Name"].startswith("worker") and used.split()[0]
            slept += int(status["voluntary_ctxt_switches"]) if status["Name"].strip() == "VM Thread" else 0
    return seen, slept


def how_it_stands(pid):
    """"at a safepoint": all wait, and the machine's own thread looks again and again, each time after a nap, for one that is
    not there yet. "otherwise": they wait for what somebody holds, a lock. None: who has no CPU wants one, or uses it."""
    since = time.monotonic()
    before, slept = as_it_is(pid)
    time.sleep(0.1)
    after, slept_since = as_it_is(pid)
    workers = [[used for _, used in each.values() if used] for each in (before, after)]
    if workers[0] == workers[1] and slept_since - slept > 10 + 3 * (time.monotonic() - since):   # otherwise it naps for a second
        return "at a safepoint"
    return "otherwise" if before == after and all(state in "St" for state, _ in before.values()) else None


@contextlib.contextmanager
def one_held(t):
    """One of its threads is stopped by a tracer; the value is how the others stand then, or that they run on."""
    tid = java_thread(t.pid, "worker")
    holder = subprocess.Popen([sys.executable, "-c", HOLD, tid], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        said = hanging.Lines(holder.stdout).next(60)
        assert said == "held\n", "hangs: thread %s is not held: %r\n%s" % (tid, said, hanging.seen_of(t.pid))
        used = t.uses(0.5)
        yield until(lambda: how_it_stands(t.pid) or (used() and "they run on"), "who waits for the thread that is held", 120)
    finally:
        holder.stdin.close()
        holder.stdin = None
        hanging.finish(holder, 60)
    assert holder.returncode == 0


@contextlib.contextmanager
def held_at_safepoint(t):
    """Another thread's garbage collection waits for this one, for ever. Not every moment will do: who waits for a collection
    is at a safepoint already, and who has a lock of the machine keeps the others from asking for one."""
    seen = []
    for _ in range(30):
        with one_held(t) as others:
            seen.append(others)
            if others == "at a safepoint":
                yield
                return
    raise AssertionError("no moment was the right one: %s" % collections.Counter(seen))


@pytest.mark.long   # one that is stopped, and one that does not answer, are in the short form, too
@pytest.mark.skipif(not ROOT, reason="needs root, to hold a thread of another process")
def test_a_safepoint_that_does_not_end(stillframe, target, jdk, tmp_path):
    """It cannot be attached to, which is told; an agent that is in it already samples all the same."""
    options = ["-XX:+UseSerialGC", "-Xmx64m"]
    t = target(jdk.java(options, "Demo", "alloc", "alloc"), env=PLAIN)
    with held_at_safepoint(t):
        done = gives_up(stillframe, t.pid, tmp_path / "r.sfr")
        assert "did not begin to listen" in done.err, done
    t.assert_moves()

    t = target(jdk.java(["-agentpath:%s=listen" % AGENT, *options], "Demo", "alloc", "alloc"), env=PLAIN)
    with held_at_safepoint(t):
        recorded(stillframe, t.pid, tmp_path / "in.sfr")
    Recording(tmp_path / "in.sfr").assert_accounts()
    t.assert_moves()
    recorded(stillframe, t.pid, tmp_path / "later.sfr")
    assert what_it_said(t, jdk) == ([], False)


# --- a container ---------------------------------------------------------------------------------

CONTAINER = """
set -e
mount --make-rprivate /
mount -t tmpfs none "$1"
cd "$1"
for each in usr lib lib64 bin etc; do
    mkdir $each
    mount --rbind -o ro /$each $each
done
mkdir tmp proc dev classes old
chmod 1777 tmp
mount --bind "$2" classes
mount --rbind /dev dev
mount -t proc none proc
pivot_root . old
umount -l /old
shift 2
exec "$@"
"""


def java_in(pid):
    """The process in which a container's java is, by its id here."""
    for child in open("/proc/%d/task/%d/children" % (pid, pid)).read().split():
        if open("/proc/%s/comm" % child).read() == "java\n":
            return int(child)
    return None


def ends_since(path, time_ns=None):
    """How its stacks ended since then, or in its last tenth of a second; and when the last sample was taken."""
    with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as db:
        last_ns = db.execute("SELECT coalesce(max(time_ns), 0) FROM samples").fetchone()[0]
        rows = db.execute('SELECT word, sum(ticks) FROM samples JOIN ends ON ends.id = "end" WHERE time_ns > ? GROUP BY word',
                          (last_ns - 100_000_000 if time_ns is None else time_ns,))
        return collections.Counter(dict(rows.fetchall())), last_ns


class ManyWhole:
    """Enough is when stacks have become whole, as where the agent sees nobody's tables and has to build its own, and as many
    ticks as asked for have come since."""

    def __init__(self, ticks):
        self.ticks, self.since_ns = ticks, None

    def __call__(self, path):
        try:
            ends, last_ns = ends_since(path, self.since_ns)
        except sqlite3.OperationalError:   # not there yet, or just being written
            return False
        if self.since_ns is not None:
            return sum(ends.values()) >= self.ticks
        if set(ends) == {"root"} and sum(ends.values()) > 10:
            self.since_ns = last_ns
        return False


@pytest.mark.skipif(not ROOT, reason="needs root, for a container")
@pytest.mark.long("ptrace")   # a part of what signal needs
@pytest.mark.parametrize("engine", ["signal", "ptrace"])
def test_a_container(stillframe, target, jdk, engine, tmp_path):
    """Process ids, mounts, root folder and /tmp of its own: watched from outside, by the id that it has there."""
    need("unshare", "pivot_root")
    if not os.path.exists("/proc/self/task/%d/children" % os.getpid()):
        pytest.skip("the kernel does not list children")
    root = tempfile.mkdtemp(prefix="stillframe-test-", dir="/tmp")
    try:
        t = target(["unshare", "-p", "-m", "-f", "--kill-child", "sh", "-c", CONTAINER, "sh", root, jdk.classes,
                    jdk.folder + "/bin/java", "-cp", "/classes", "Demo", "chain"], env=PLAIN)
        pid = java_in(t.pid)
        assert pid and re.search(r"^NSpid:\t%d\t1$" % pid, open("/proc/%d/status" % pid).read(), re.M)
        before = set(os.listdir("/tmp"))   # also what a JVM left behind that was killed, of the same id by chance
        path = str(tmp_path / "r.sfr")
        enough = ManyWhole(400)
        stillframe.record_until(path, enough, "-p", pid, "-e", engine, "-F", "500hz")
        stacks = Stacks(path)
        ends, _ = ends_since(path, enough.since_ns)
        assert sum(ends.values()) >= 400 and ends["root"] >= 0.99 * sum(ends.values()) - 3, (ends, stacks.ends())
        chain = stacks.ticks(lambda name, stack, end: name == "worker-with-a-long-name-chain" and
                             "Demo.chain" in [frame[0] for frame in stack])
        assert chain > 20, chain
        inside = os.listdir("/proc/%d/root/tmp" % pid)
        assert not [name for name in inside if name.startswith((".attach", "libstillframe"))], inside
        assert (".java_pid1" in inside) == (engine == "signal"), inside
        assert ".java_pid%d" % pid not in set(os.listdir("/tmp")) - before
        os.kill(pid, signal.SIGTERM)
        status, said = t.finish()
        assert status in (143, -signal.SIGTERM), status
        assert [line for line in said.splitlines() if line != "ready" and not line.startswith(WARNING)] == [], said
    finally:
        os.rmdir(root)

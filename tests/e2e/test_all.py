# SPDX-License-Identifier: Apache-2.0
"""The whole machine: record --all."""
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from conftest import NOBODY, PROGRAMS, need, need_findings
from processes import status_of, until
from recordings import Recording, so_far, ticks_so_far

RATE = 99
SPIN = "import time\nend = time.time() + 60\nwhile time.time() < end: sum(range(10000))\n"


@pytest.fixture(autouse=True)
def perf_works(stillframe):
    """Skips where the kernel or a container refuses perf events, or this user may not look at all processes."""
    need_findings(stillframe("doctor").out, "all processes of the machine may be recorded (--all)")


def cpu_of(pid):
    """Seconds, of a process that lives."""
    return time.clock_gettime((~pid << 3) | 2)


def error_of(seconds, rate):
    """Of a CPU time by its samples, at most."""
    return 4 / rate + 3 * (seconds / rate) ** 0.5


def start_all(stillframe, output, *arguments, rate=RATE):
    """A recording of all that has begun."""
    process = stillframe.start("record", "--all", "--max-cost", 100, "-F", rate, "-o", output, *arguments)
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


# Of a program that ends before its samples are read, each stands for a period. Where other tests have clocks of a thousandth of a second, too,
# and take the CPU at their expiries, fewer periods end in xz than it has.
@pytest.mark.alone
def test_programs_before_and_after(stillframe, tmp_path):
    """One runs already, one begins and ends meanwhile: both are there by name, with their time, and their stacks are whole.
    Of programs that share CPUs with others, how many samples come in a time is a matter of chance."""
    need("xz")
    rate = 999
    before = subprocess.Popen([sys.executable, "-c", SPIN])
    try:
        process = start_all(stillframe, tmp_path / "r.sfr", rate=rate)
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
    assert at_last - at_first - error_of(at_last, rate) <= seconds <= at_end + error_of(at_end, rate) and whole >= 0.95, (
        seconds, at_first, at_last, at_end, whole)
    name, seconds, whole = seen_of(recording, during.pid)
    true = used.ru_utime + used.ru_stime
    assert name == "xz" and abs(seconds - true) <= error_of(true, rate) and whole >= 0.95, (name, seconds, used, whole)
    assert recording.value("SELECT command FROM session") == "all processes"
    recording.assert_accounts()
    shares = {row["name"]: row for row in json.loads(stillframe("report", "--json", "--by", "process", tmp_path / "r.sfr").ok().out)["processes"]}
    assert shares["xz"]["processes"] == 1 and shares["xz"]["pid"] == during.pid and shares["xz"]["cpu_ns"] > 0, shares


def test_processes_that_end_at_once(stillframe, tmp_path):
    """Each of many that live for some milliseconds has its name, also if it has ended before anybody could look at it."""
    process = start_all(stillframe, tmp_path / "r.sfr")
    for _ in range(60):
        subprocess.run(["/bin/true"])
    process.terminate()
    recording = finished(stillframe.wait(process), tmp_path / "r.sfr")
    mine = recording.rows("SELECT pid, name FROM processes WHERE parent = ?", os.getpid())   # others begin and end beside
    assert mine and all(name for _, name in mine), mine


CPU_ONLINE = "/sys/devices/system/cpu/cpu1/online"


def bring_online(is_online):
    with open(CPU_ONLINE, "w") as file:
        file.write("%d" % is_online)


@pytest.mark.long   # unit/test_perf_renewal has it; this one takes a CPU from all other programs for a second
@pytest.mark.alone
@pytest.mark.skipif(not os.access(CPU_ONLINE, os.W_OK), reason="this user, or this machine, cannot take a CPU offline")
@pytest.mark.parametrize("is_there", [True, False])
def test_a_cpu_that_goes_and_comes_back(stillframe, target, tmp_path, is_there):
    """The kernel ends its events when it goes, and one that comes had none: what runs there afterwards is sampled all the same."""
    output = tmp_path / "r.sfr"
    try:
        bring_online(is_there)
        process = start_all(stillframe, output)
        if is_there:
            bring_online(False)
            time.sleep(0.5)
        bring_online(True)
        time.sleep(1)   # it is seen within a tenth of a second
        there = target(["taskset", "-c", "1", os.path.join(PROGRAMS, "busy_split"), "60", "1"])
        until(lambda: cpu_of(there.pid) > 2, "it has used CPU time", 60)
        process.terminate()
        name, seconds, _ = seen_of(finished(stillframe.wait(process), output), there.pid)
        assert name == "busy_split" and seconds > 1.5, seconds
    finally:
        bring_online(True)


@pytest.mark.long   # unit/test_perf_batch has whose program a child runs
def test_forks_without_a_sample_of_their_parents(stillframe, tmp_path):
    """Programs that fork themselves several times, each for some microseconds: most that have a sample have a parent without one, and
    all have ended by then. Their name and their code are those of the program at the root of the forks."""
    script = "i=0; while [ $i -lt 200 ]; do bash -c 'x=$(y=$(z=$(echo $(:); :); :); :); :'; i=$((i+1)); done"
    process = start_all(stillframe, tmp_path / "r.sfr", rate=999)
    subprocess.run(["sh", "-c", script], check=True, timeout=100)
    process.terminate()
    recording = finished(stillframe.wait(process), tmp_path / "r.sfr")
    names = dict(recording.rows("SELECT name, count(*) FROM processes GROUP BY 1"))
    assert names.get("bash", 0) >= 50 and names.get("", 0) <= 0.03 * names["bash"], names
    ends = dict(recording.rows("SELECT e.word, count(*) FROM samples s JOIN threads t ON t.id = s.thread JOIN processes p ON p.id = t.process "
                               "JOIN ends e ON e.id = s.end WHERE p.name = 'bash' GROUP BY 1"))
    assert ends.get("empty", 0) <= 0.02 * sum(ends.values()), ends


def test_what_has_ended_is_not_counted(stillframe, tmp_path):
    """A process that ended before the recording, and that its parent has not waited for: each search finds it."""
    ended = subprocess.Popen([os.path.join(PROGRAMS, "busy_split"), "0.2"], stdout=subprocess.DEVNULL)
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        done = stillframe("record", "--all", "--clock", "both", "--filter", "name=^sleep$", "-d", "600ms", "-o", tmp_path / "r.sfr")
    finally:
        sleeper.kill()
        sleeper.wait(20)
        ended.wait(20)
    done.ok()
    assert Recording(tmp_path / "r.sfr").losses().get("unseen", 0) == 0, done


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make networks")
def test_no_idle_task_and_kernel_threads(stillframe, tmp_path):
    """The idle task is no process. A kernel thread has the kernel's frames only, and its stacks are whole."""
    need("unshare")
    # A kernel thread takes down the networks that are left behind. It has work before the recording begins.
    with subprocess.Popen(["sh", "-c", "while :; do unshare -n true; done"]) as makes_work:
        try:
            recording = finished(stillframe("record", "--all", "--max-cost", 100, "-F", 999, "-d", "1s", "-o", tmp_path / "r.sfr"), tmp_path / "r.sfr")
        finally:
            makes_work.kill()
    assert recording.value("SELECT count(*) FROM processes WHERE pid = 0") == 0
    sampled = recording.rows("SELECT p.pid, p.name, e.word FROM processes p JOIN threads t ON t.process = p.id "
                             "JOIN samples s ON s.thread = t.id JOIN ends e ON e.id = s.end WHERE p.parent = 2")
    # Programs that the kernel starts itself, as for the core of another test's program, have the same parent, and memory of
    # their own.
    kernel = [row for row in sampled if "VmSize" not in (status_of(row[0]) or {"VmSize": ""})]
    assert kernel and all(word == "root" and name.startswith("[") for _, name, word in kernel), kernel


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


# --- some of them --------------------------------------------------------------------------------


def names_in(recording):
    return {name for (name,) in recording.rows("SELECT DISTINCT p.name FROM processes p JOIN threads t ON t.process = p.id")}


@pytest.fixture
def two_users(stillframe):
    """Two busy programs of different names and users."""
    need("setpriv")
    started = [subprocess.Popen([sys.executable, "-c", "open('/proc/self/comm', 'w').write('stf_python')\n" + SPIN]),
               subprocess.Popen([*NOBODY, "sh", "-c", "printf stf_shell > /proc/$$/comm; while :; do :; done"])]
    try:
        until(lambda: {open("/proc/%d/comm" % process.pid).read() for process in started} == {"stf_python\n", "stf_shell\n"}, "they have their names")
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.mark.parametrize("conditions, found", [
    (["name=^stf_"], {0, 1}), pytest.param(["name=^stf_sh"], {1}, marks=pytest.mark.long),
    pytest.param(["user=nobody"], {1}, marks=pytest.mark.long), (["name=^stf_", "user=0"], {0}), (["name=^stf_sh", "user=0"], set()),
])
def test_filters(stillframe, two_users, tmp_path, conditions, found):
    """Ends when each program that fits has had the CPU for a sample."""
    arguments = [word for condition in conditions for word in ("--filter", condition)]
    if not found:
        done = stillframe("record", "--all", "-o", tmp_path / "r.sfr", "-d", "300ms", *arguments)
        assert done.status == 1 and "nothing was sampled" in done.err and "--filter" in done.err, done
        return
    count = "max((SELECT count(DISTINCT pid) FROM samples JOIN threads t ON t.id = thread JOIN processes p ON p.id = process WHERE pid IN (%s)))"
    sampled = count % ", ".join(str(two_users[i].pid) for i in found)
    stillframe.record_until(tmp_path / "r.sfr", lambda path: so_far(path, sampled) == len(found), "--engine", "perf", "--all", *arguments)
    recording = Recording(tmp_path / "r.sfr")
    pids = {pid for (pid,) in recording.rows("SELECT pid FROM processes")}
    assert {i for i in (0, 1) if two_users[i].pid in pids} == found, pids
    assert " and ".join(conditions) in recording.value("SELECT command FROM session")
    recording.assert_accounts()


@pytest.mark.parametrize("engine", ["perf", "ptrace"])
def test_filters_of_descendants(stillframe, tmp_path, engine):
    """The command itself does not fit, nor does one of its children."""
    need("sha256sum", "cksum")
    script = "for i in 1 2 3; do head -c 30000000 /dev/zero | sha256sum; head -c 30000000 /dev/zero | cksum; done"
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", engine, "--children", "--filter", "name=^sha", "--", "sh", "-c", script)
    # By their threads' names: by ptrace a process that ends at once has none.
    names = recording.rows("SELECT DISTINCT name FROM threads")
    assert done.status == 0 and names == [("sha256sum",)], (done, names)
    recording.assert_accounts()


@pytest.mark.parametrize("outer", ["%s", "sh -c '%s'; true"], ids=["the command", "a child"])
@pytest.mark.parametrize("engine", ["perf", "ptrace"])
def test_what_a_process_was_before_it_fits(stillframe, tmp_path, engine, outer):
    """It counts for as long as sh, which does not fit, and runs sha256sum then: what sh has used is nobody's time."""
    need("sha256sum")
    (tmp_path / "zeros").touch()
    os.truncate(tmp_path / "zeros", 20000000)
    script = "i=0; while [ $i -lt 600000 ]; do i=$((i + 1)); done; times >%s; exec sha256sum %s" % (tmp_path / "times", tmp_path / "zeros")
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", engine, "--children", "--filter", "name=^sha", "--", "sh", "-c", outer % script)
    before = sum(float(word.rstrip("s").split("m")[1]) for word in (tmp_path / "times").read_text().split()[:2])
    seen, lost, counted = recording.cpu()
    assert done.status == 0 and before > 0.1 and 0 < counted < 0.6 * before and lost < 0.1 * counted, (before, seen, lost, counted)


@pytest.fixture
def cgroup():
    """The path of a new control group, below where they are mounted; with a busy program in it."""
    (mount,) = [line.split()[1] for line in open("/proc/self/mounts") if line.split()[2] == "cgroup2"][:1] or [None]
    path = "%s/stillframe-test-%d" % (mount, os.getpid())
    if not mount or not os.access(mount, os.W_OK):
        pytest.skip("no control group (cgroup v2) can be made here")
    os.mkdir(path)
    process = subprocess.Popen(["sh", "-c", "echo $$ > %s/cgroup.procs; while :; do head -c 3000000 /dev/zero | cksum; done" % path],
                               stdout=subprocess.DEVNULL)
    try:
        until(lambda: open(path + "/cgroup.procs").read(), "the program is in it")
        yield path
    finally:
        process.kill()
        process.wait()
        until(lambda: not open(path + "/cgroup.procs").read(), "it is empty")
        os.rmdir(path)


def test_a_control_group(stillframe, cgroup, tmp_path):
    """What is in it and what comes later, and nothing else."""
    sampled = ("max((SELECT count(*) FROM samples JOIN threads t ON t.id = thread JOIN processes p ON p.id = process "
               "WHERE p.name = 'cksum'))")
    for n, name in enumerate((os.path.basename(cgroup), cgroup)):
        output = tmp_path / ("%d.sfr" % n)
        done = stillframe.record_until(output, lambda path: so_far(path, sampled), "--engine", "perf", "--cgroup", name)
        recording = Recording(output)
        assert "cksum" in names_in(recording) <= {"sh", "head", "cksum"}, (done, names_in(recording))
        recording.assert_accounts()


def test_a_control_group_that_is_removed(stillframe, cgroup, tmp_path):
    """One of the same name that is made later, as of a service that is started again, is another one."""
    group, output = os.path.join(cgroup, "service"), tmp_path / "r.sfr"
    os.mkdir(group)
    try:
        recorder = stillframe.start("record", "--cgroup", group, "-o", output)
        process = subprocess.Popen(["sh", "-c", "echo $$ >%s/cgroup.procs; exec \"$@\"" % group, "sh", sys.executable, "-c", SPIN])
        until(lambda: ticks_so_far(output) > 0 or recorder.poll() is not None, "it is sampled", 20)
        process.kill()
        process.wait()
    finally:
        until(lambda: not open(group + "/cgroup.procs").read(), "it is empty")
        os.rmdir(group)
    recorder.send_signal(signal.SIGINT)
    done = stillframe.wait(recorder).ok()
    assert "the control group was removed" in done.err, done


@pytest.mark.parametrize("clock", ["cpu", "both"])
def test_a_process_that_leaves_its_control_group(stillframe, cgroup, tmp_path, clock):
    """What it uses elsewhere is nobody's time, neither at its end nor where it comes back."""
    process, output = subprocess.Popen([sys.executable, "-c", SPIN]), tmp_path / "r.sfr"

    def move(path):
        with open(os.path.join(path, "cgroup.procs"), "w") as file:
            file.write(str(process.pid))
        return cpu_of(process.pid)

    try:
        recorder = stillframe.start("record", "--cgroup", cgroup, "--filter", "name=python", "--clock", clock, "-F", 499, "--max-cost", 100, "-o", output)
        inside = 0
        until(lambda: recorder.poll() is not None or os.path.exists(output), "the recording begins", 20)
        for _ in range(2):
            came, n = move(cgroup), ticks_so_far(output)
            until(lambda: ticks_so_far(output) > n + 50 or recorder.poll() is not None, "it is sampled", 20)
            left = move(os.path.dirname(cgroup))
            inside += left - came
            until(lambda: cpu_of(process.pid) > left + 1, "it runs elsewhere", 60)
        recorder.send_signal(signal.SIGINT)
        done = stillframe.wait(recorder).ok()
    finally:
        process.kill()
        process.wait()
    seen, lost, counted = Recording(output).cpu()
    assert abs(seen - inside) < 0.2 * inside + 0.1 and lost < 0.1 * seen, (seen, lost, counted, inside, done)


@pytest.mark.parametrize("arguments, word, status", [
    (["--cgroup", "none/there"], "none/there", 1), (["--cgroup", "/tmp"], "/tmp", 1), (["--cgroup", "x", "--all"], "--cgroup", 2),
    (["--cgroup", "x", "-p", "1"], "--cgroup", 2), (["--all", "--filter", "name=("], "'('", 2), (["--all", "--filter", "pid=1"], "'pid=1'", 2),
    (["--all", "--filter", "user=no-such"], "'no-such'", 2), (["-p", "1", "--filter", "user=0"], "--children", 2),
    (["-e", "signal", "--children", "--filter", "user=0", "--", "true"], "signal", 1),
])
def test_refusals_of_some(stillframe, arguments, word, status):
    done = stillframe("record", "-d", "100ms", *arguments).fails(status)
    assert word in done.err, done


def test_no_thread_is_held(stillframe, target, tmp_path):
    """Not even one whose stack the kernel does not copy whole. It is cut there, and says so."""
    t = target("altstack_signal", "spin")
    on_it = ("max((SELECT count(*) FROM samples s JOIN ends e ON e.id = s.\"end\" JOIN threads t ON t.id = s.thread "
             "JOIN processes p ON p.id = t.process WHERE p.pid = %d AND e.word = 'other-stack'))" % t.pid)
    done = stillframe.record_until(tmp_path / "r.sfr", lambda path: (so_far(path, on_it) or 0) > 10, "--engine", "perf", "--all", "--max-cost", 100, "-F", RATE)
    recording = finished(done, tmp_path / "r.sfr")
    ends = dict(recording.rows("SELECT e.word, count(*) FROM samples s JOIN ends e ON e.id = s.end JOIN threads t ON t.id = s.thread "
                               "JOIN processes p ON p.id = t.process WHERE p.pid = %d GROUP BY 1" % t.pid))
    assert ends.get("other-stack", 0) > 10, ends
    assert recording.value("SELECT coalesce(sum(count), 0) FROM holds") == 0


@pytest.mark.alone   # the one record of the signal finds no room where 300 threads of another test get signals by the signal engine
@pytest.mark.parametrize("nested", [[], ["nested"]])
def test_handlers_that_begin_meanwhile(stillframe, target, tmp_path, nested):
    """The kernel copies what their threads leave for the alternate stack: the stacks are whole, and no thread is held."""
    process = start_all(stillframe, tmp_path / "r.sfr")
    t = target("altstack_signal", "spin", *nested)
    until(lambda: cpu_of(t.pid) > 0.5, "the handler runs", 20)
    process.terminate()
    recording = finished(stillframe.wait(process), tmp_path / "r.sfr")
    _, seconds, whole = seen_of(recording, t.pid)
    assert seconds > 0.3 and whole >= 0.95, (seconds, whole)
    assert any("main" in names for names, _ in recording.stacks_of("handler_leaf"))
    assert recording.value("SELECT coalesce(sum(count), 0) FROM holds") == 0

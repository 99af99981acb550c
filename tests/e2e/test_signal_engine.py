# SPDX-License-Identifier: Apache-2.0
"""record --engine signal: launching, attaching, children; and why nothing comes."""
import os
import re
import signal
import subprocess
import sys

import pytest

from conftest import AGENT, NOBODY, PROGRAMS, need, need_kernel_samples, need_root, needs_agent
from processes import Target, cpu_of, read, until
from recordings import Recording, cpu_told, of_the_three

pytestmark = needs_agent
BUSY = os.path.join(PROGRAMS, "busy_split")


@pytest.fixture
def listening():
    """Starts programs in which an agent listens; ends them by their pids."""
    started = []

    def start(name, *arguments, options="listen"):
        environment = {**os.environ, "LD_PRELOAD": AGENT, "STILLFRAME": options}
        started.append(Target([os.path.join(PROGRAMS, name), *arguments], env=environment))
        return started[-1]

    yield start
    for each in started:
        each.end()


def folder_of_sockets():
    """Root's stand in a folder that is open to all."""
    if os.geteuid() == 0:
        return "/tmp/stillframe-0-all"
    if os.environ.get("XDG_RUNTIME_DIR"):
        return os.path.join(os.environ["XDG_RUNTIME_DIR"], "stillframe")
    return "/tmp/stillframe-%d" % os.geteuid()


def sockets(pid, names):
    """Those of this stillframe; others may run meanwhile."""
    return [name for name in names if name.startswith("record-%d." % pid)]


# --- launched ------------------------------------------------------------------------------------


@pytest.mark.parametrize("walk", ["sampler", "handler"])
def test_a_command(stillframe, tmp_path, walk):
    """Its CPU time, where it was spent, and whole stacks; and its own status and output are left alone."""
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "signal", "--walk", walk, "-F", "499", "--", BUSY, 1)
    assert done.status == 0, done
    assert "total_seconds" in done.out and "by signal (%s walk)" % walk in done.err, done
    assert re.search(r"\n  cost  .*\n        and, in the program, the agent's threads: \S+ ms of CPU time", done.err), done
    shares = of_the_three(recording.self_shares())
    truth = {word: float(value) for word, value in re.findall(r"(spin_\w+) ([\d.]+)", done.out)}
    worth = recording.worth()
    assert worth > 20, worth
    for name in ("spin_sixty", "spin_ten"):
        assert abs(shares[name] - truth[name]) < 0.03 + 3.5 * (truth[name] * (1 - truth[name]) / worth) ** 0.5, (shares, truth, worth)
    recording.assert_accounts(used=cpu_told(done.out))
    whole = recording.stacks_of("main")
    assert sum(count for names, count in whole if names[-1] == "_start") >= 0.95 * recording.samples, whole[:3]
    assert recording.value("SELECT engine FROM session") == "signal"


SLEEPS_BY_POINTER = """
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long (*volatile call)(long, ...) = syscall;

static __attribute__((noinline)) long sleeps(void)
{
	const struct timespec time = { .tv_nsec = 100000000 };

	return call(SYS_nanosleep, &time, NULL) + 1;
}

int main(void)
{
	long sum = 0;

	for (int i = 0; i < 5; i++)
		sum += sleeps();
	return sum != 5;
}
"""


def test_a_sleep_in_syscall(stillframe, tmp_path):
    """The agent's syscall() stands before libc's. The registers of who sleeps in it are not known, and a call by a pointer proves no
    caller."""
    need("gcc")
    (tmp_path / "sleeps.c").write_text(SLEEPS_BY_POINTER)
    subprocess.run(["gcc", "-O2", "-o", tmp_path / "sleeps", tmp_path / "sleeps.c"], check=True)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "signal", "--blocked-rate", "100", "--", tmp_path / "sleeps")
    assert done.status == 0, done
    stacks = [names for names, _ in recording.stacks_of("syscall")]
    assert [names for names in stacks if names[-1] == "_start"], stacks
    assert not [names for names in stacks if "sleeps" not in names or names[-1] != "_start"], stacks


def test_a_command_with_another_cache(stillframe, tmp_path):
    """The tables that stillframe makes go where this program's agent does not look (another home, another root): it makes its
    own, and does not wait for them with its samples."""
    cache = tmp_path / "cache"
    cache.mkdir()
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "signal", "--", "/usr/bin/env", "XDG_CACHE_HOME=%s" % cache,
                                        sys.executable, "-c", "import time; time.sleep(1.5)")
    assert done.status == 0, done
    ends = dict(recording.rows("SELECT word, sum(ticks) FROM samples, ends WHERE ends.id = samples.end GROUP BY word"))
    asleep = sum(ends.values())
    assert asleep > 15 and ends.get("root", 0) > 0.9 * asleep, ends
    assert any(files for _, _, files in os.walk(cache)), "it has made its own"


@pytest.mark.parametrize("more", [(), ("--children",)], ids=["itself", "children"])
def test_a_command_that_becomes_another_user(stillframe, tmp_path, everybodys, more):
    """It becomes nobody, and executes the program then, whose agent calls root's stillframe, as containers and services begin."""
    stillframe.path = everybodys.stillframe()
    program = everybodys.program("busy_split")
    command = [*NOBODY, program, 0.3] if not more else [*NOBODY, "sh", "-c", "%s 0.3; true" % program]
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "signal", *more, "--", *command, env=everybodys.environment)
    assert done.status == 0, done
    # Of the program that follows, in whatever shares, as below.
    shares = recording.self_shares()
    assert sum(share for name, share in shares.items() if name.startswith("spin_")) > 0.8, (done, shares)


def test_a_stranger_does_not_call(stillframe, tmp_path, everybodys):
    """Another user's process that is not of the recorded ones is turned away, though it reaches the socket."""
    stillframe.path = everybodys.stillframe()
    agent, program = everybodys.copy(AGENT), everybodys.program("busy_split")
    recorder = stillframe.start("record", "-e", "signal", "--children", "-o", tmp_path / "r.sfr", "--", program, 3, env=everybodys.environment)
    path = "/tmp/stillframe-0-all/record-%d.sock" % recorder.pid
    until(lambda: os.path.exists(path), "it listens", 30)
    stranger = subprocess.run([program, "0.3"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                              user=65534, group=65534, extra_groups=[], env={**everybodys.environment, "LD_PRELOAD": agent, "STILLFRAME_VERBOSE": "1",
                                   "STILLFRAME": "connect=%s,children" % path})
    assert stranger.returncode == 0 and "stillframe: " in stranger.stdout, stranger
    stillframe.wait(recorder, 60).ok()
    assert Recording(tmp_path / "r.sfr").value("SELECT count(*) FROM processes") == 1


def test_its_status_is_passed_on(stillframe, tmp_path):
    done = stillframe("record", "-q", "-e", "signal", "-o", tmp_path / "r.sfr", "--", "sh", "-c", "exit 7")
    assert done.status == 7, done


@pytest.mark.parametrize("emulator", [("valgrind", "-q", "--error-exitcode=9"), ("qemu-x86_64",)], ids=lambda each: each[0])
@pytest.mark.parametrize("walk", ["sampler", "handler"])
def test_a_program_in_an_emulator(stillframe, tmp_path, emulator, walk):
    """The agent is in the emulated program. valgrind finds no mistake in it, and qemu-user calls handlers with a stack that is not aligned."""
    need(emulator[0])
    done = stillframe("record", "-q", "-e", "signal", "--walk", walk, "-o", tmp_path / "r.sfr", "--", *emulator, BUSY, 0.5)
    assert (done.status, done.out.split("\n")[0], done.err) == (0, "ready", ""), done


def test_what_it_inherits(stillframe, tmp_path):
    """LD_PRELOAD is added to, and everything else stays."""
    preload = "libm.so.6"
    done = stillframe("record", "-q", "-e", "signal", "-o", tmp_path / "r.sfr", "--", "sh", "-c",
                      "echo $LD_PRELOAD; echo $SF_TEST", env={**os.environ, "LD_PRELOAD": preload, "SF_TEST": "x y"})
    assert done.out.split("\n")[:2] == ["%s:%s" % (AGENT, preload), "x y"], done


def test_an_exec_is_followed(stillframe, tmp_path):
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "signal", "--", "sh", "-c", "exec %s 0.5" % BUSY)
    assert done.status == 0, done
    # Of the program that follows, in whatever shares: half a second is some fifty samples of unequal weight.
    assert sum(share for name, share in recording.self_shares().items() if name.startswith("spin_")) > 0.9, recording.self_shares()
    recording.assert_accounts()


@pytest.mark.parametrize("walk", ["sampler", "handler"])
def test_cpu_time_before_an_exec_is_a_loss(stillframe, tmp_path, walk):
    """Programs that run for less than a tick of the clock, and then execute another one: what they spin is in samples or in losses, nearly all of it in losses.
    The last 20 programs have a second thread, which spins, too."""
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "signal", "--walk", walk, "-F", "100", "--", os.path.join(PROGRAMS, "exec_chain"), 40, 2.5)
    seen, lost, _ = recording.cpu()
    assert "execs 40" in done.out and seen + lost > 0.9 * 40 * 0.0025 and "rest" in recording.losses(), (seen, lost, done)
    recording.assert_accounts()


def test_descendants_only_if_wanted(stillframe, tmp_path):
    command = ["sh", "-c", "%s 0.3 > /dev/null & %s 0.3 > /dev/null; wait" % (BUSY, BUSY)]
    done, alone = stillframe.record(tmp_path / "a.sfr", "-e", "signal", "--", *command)
    assert done.status == 0, done
    assert alone.value("SELECT count(*) FROM processes") == 1
    assert alone.self_shares().get("spin_sixty", 0) == 0
    done, all_of_them = stillframe.record(tmp_path / "b.sfr", "-e", "signal", "--children", "--", *command)
    assert done.status == 0, done
    assert all_of_them.value("SELECT count(*) FROM processes") == 3
    assert 0.48 < all_of_them.cpu()[0] < 0.84, all_of_them.cpu()
    all_of_them.assert_accounts()


@pytest.mark.parametrize("walk", ["sampler", "handler"])
def test_another_time_namespace(stillframe, tmp_path, walk):
    """Its clock is a day ahead, and its samples are between the others."""
    need("unshare")
    day = ["unshare", "--fork", "--time", "--monotonic", "86400"]
    if os.geteuid() != 0 or subprocess.run([*day, "true"], capture_output=True).returncode != 0:
        pytest.skip("no time namespace can be made here")
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "signal", "--walk", walk, "--children", "--", *day, os.path.join(PROGRAMS, "busy_split"), "0.3", "1")
    first, last, cpu = recording.rows("SELECT min(time_ns), max(time_ns), sum(cpu_ns) FROM samples")[0]
    assert done.status == 0 and cpu > 0.2e9 and 0 <= first <= last < 60e9, (first, last, done)


def test_an_allocator_with_a_lock_that_forks_take(stillframe, tmp_path):
    """In a child the agent allocates only when the allocator's lock is free again."""
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "signal", "--children", "--", os.path.join(PROGRAMS, "in_own_malloc"))
    assert done.status == 0 and done.out.split() == ["fork", "ends", "daemon", "ends", "forkpty", "ends"], done
    assert recording.value("SELECT count(*) FROM (SELECT DISTINCT t.process FROM samples s JOIN threads t ON t.id = s.thread WHERE s.cpu_ns > 0)") >= 3
    recording.assert_accounts()


@pytest.mark.parametrize("walk", ["sampler", "handler"])
def test_the_start_of_a_program_that_maps_code_all_the_time(stillframe, tmp_path, walk):
    """.NET maps libraries and makes code between two samples. Stacks through code that the agent does not have yet are walked
    when it has it: a fifth of them was cut. There is room for eight of them: for nearly all of one start at this rate, in which the
    thread that makes the map may get no CPU."""
    need("dotnet")
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "signal", "--walk", walk, "-F", "100", "--children", "--",
                                        "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do dotnet --info; done > /dev/null")
    ends = dict(recording.rows("SELECT e.word, sum(s.ticks) FROM samples s JOIN ends e ON e.id = s.\"end\" WHERE s.cpu_ns > 0 GROUP BY e.word"))
    assert done.status == 0 and sum(ends.values()) > 30 and ends["root"] > 0.93 * sum(ends.values()), (ends, done)
    recording.assert_accounts()


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="made_code_exec makes code of x86-64")
@pytest.mark.parametrize("walk", ["sampler", "handler"])
def test_what_waits_for_a_map_comes_before_an_exec(stillframe, tmp_path, walk):
    """Samples in code that no map helps with are kept for a moment. An exec ends the agent that keeps them: they are in the recording all the
    same. CPU time before the agent begins in a program is in no sample and no loss: the slower the machine, the more it is, and it
    is no part of what is compared. Without the wait for the kept samples the sum is 0.14 to 0.7."""
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "signal", "--walk", walk, "-F", "250", "--", os.path.join(PROGRAMS, "made_code_exec"), 12)
    seen, lost, _ = recording.cpu()
    before = float(re.search(r"^before_main ([\d.]+)$", done.out, re.M)[1])
    assert done.status == 0 and seen + lost > 0.8 * (cpu_told(done.out) - before), (seen, lost, done)


def test_programs_of_another_libc_run(stillframe, tmp_path):
    """musl's loader ends a program into which it cannot load the agent: such a program is refused, and as a child it runs without."""
    compiler, = need("musl-gcc")
    source, program = tmp_path / "small.c", tmp_path / "small"
    source.write_text("#include <stdio.h>\nint main(void) { puts(\"it runs\"); return 0; }\n")
    subprocess.run([compiler, "-o", program, source], check=True)
    done = stillframe("record", "-e", "signal", "-o", tmp_path / "a.sfr", "--", program)
    assert done.status == 1 and done.out == "" and "musl" in done.err and "--engine ptrace" in done.err, done
    script = tmp_path / "script"
    script.write_text("#! %s -x\n" % program)
    script.chmod(0o755)
    by_fd = "import os, sys; sum(range(10**7)); os.execve(os.open(sys.argv[1], os.O_PATH), sys.argv[1:], os.environ)"   # fexecve
    for started in (["sh", "-c", "%s; %s 0.2 > /dev/null" % (program, BUSY)],
                    ["sh", "-c", "%s; %s 0.2 > /dev/null" % (script, BUSY)],
                    [sys.executable, "-c", by_fd, program],
                    ["sh", "-c", "%s 0.2 > /dev/null; PATH=%s:$PATH exec env small" % (BUSY, tmp_path)],
                    [sys.executable, "-c", "import os, sys; os.waitpid(os.posix_spawn(sys.argv[1], sys.argv[1:2], os.environ), 0); sum(range(10**7))", program]):
        done, recording = stillframe.record(tmp_path / "b.sfr", "-e", "signal", "--children", "--", *started)
        assert done.status == 0 and done.out == "it runs\n", done
        assert recording.cpu()[0] > 0, recording.cpu()


def test_it_ends_in_time_and_the_program_runs_on(stillframe, tmp_path):
    """After -d the agent is told to stop; nothing of ours is left in the program or in the folder of sockets, where the program has
    seen the socket."""
    run = stillframe.start("record", "-e", "signal", "-d", "0.5", "-o", tmp_path / "r.sfr", "--",
                           "sh", "-c", 'cd "$0"; echo *; exec "$1" 1.5', folder_of_sockets(), BUSY)
    done = stillframe.wait(run)
    assert done.status == 0 and sockets(run.pid, done.out.split()), done
    recording = Recording(tmp_path / "r.sfr")
    assert 0 < recording.cpu()[0] < 1.0, recording.cpu()
    assert re.search(r"total_seconds 1\.[5-9]", done.out), "it was not left to run: %s" % done
    assert not sockets(run.pid, os.listdir(folder_of_sockets()))


def test_agents_that_are_done_at_different_times(stillframe, tmp_path):
    """Agents of a second's age that are idle see within 0.2 s that they are to stop. That the first one is done is not the end of the wait."""
    sleeps = "sleep 1.3 & " * 4
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "signal", "--children", "-d", "1.2", "--", "sh", "-c", sleeps + "wait")
    assert done.status == 0 and recording.value("SELECT count(*) FROM processes") == 5 and not recording.rows("SELECT text FROM notes"), done
    recording.assert_accounts()


def test_stillframe_is_killed(stillframe, tmp_path):
    """The program runs on, unsampled."""
    run = stillframe.start("record", "-e", "signal", "-o", tmp_path / "r.sfr", "--", BUSY, "1")
    pid = until(lambda: [int(entry) for entry in os.listdir("/proc") if entry.isdigit()
                         and (read("/proc/%s/stat" % entry) or "0 (x) x 0").split()[3] == str(run.pid)], "it starts")[0]
    until(lambda: len(os.listdir("/proc/%d/task" % pid)) > 1, "the agent begins")
    run.kill()
    until(lambda: len(os.listdir("/proc/%d/task" % pid)) == 1, "the agent ends its threads")
    out, _ = run.communicate(timeout=30)
    assert b"total_seconds" in out


# --- attached ------------------------------------------------------------------------------------


def test_attach_again_and_again(stillframe, tmp_path, listening):
    target = listening("deep", 30, "spin")
    for turn, walk in enumerate(("sampler", "handler", "sampler")):
        done, recording = stillframe.record(tmp_path / ("%d.sfr" % turn), "-e", "signal", "-p", target.pid,
                                            "--walk", walk, "-d", "0.4")
        assert done.status == 0, done
        assert recording.samples > 100 * recording.cpu()[0], done
        recording.assert_accounts()
        assert target.runs()
    doctor = stillframe("doctor", "-p", target.pid).ok()
    assert re.search(r"ok +engine signal", doctor.out), doctor


def test_it_ends_while_it_is_watched(stillframe, tmp_path, listening):
    target = listening("deep", 30, "spin")
    run = stillframe.start("record", "-e", "signal", "-p", target.pid, "-o", tmp_path / "r.sfr")
    until(lambda: len(os.listdir("/proc/%d/task" % target.pid)) > 2, "sampling begins")
    start = cpu_of(target.pid)
    until(lambda: cpu_of(target.pid) > start + 0.3, "there is something to sample")
    os.kill(target.pid, signal.SIGKILL)
    done = stillframe.wait(run, 20)
    assert done.status == 0, done
    assert Recording(tmp_path / "r.sfr").samples > 10


def test_nobody_listens(stillframe, target):
    t = target("deep", 3, "sleep")
    done = stillframe("record", "-e", "signal", "-p", t.pid, "-o", "r.sfr").fails(1)
    assert "no agent listens" in done.err and "STILLFRAME=listen" in done.err, done
    assert re.search(r"no +engine signal", stillframe("doctor", "-p", t.pid).ok().out)


@pytest.mark.parametrize("engine", [[], ["-e", "signal"]], ids=["by itself", "signal"])
def test_an_event_of_a_runtime_that_is_not_there(stillframe, target, tmp_path, engine):
    t = target("deep", 3, "sleep")
    done = stillframe("record", *engine, "--event", "gc", "-p", t.pid, "-o", tmp_path / "r.sfr").fails(1)
    assert "pid %d (deep) has no event gc: it has not loaded the runtime of .NET" % t.pid in done.err and "listen" not in done.err, done


def test_another_users_agent(stillframe, listening, everybodys):
    """Root's agent does not hear another user, whose stillframe says so."""
    target = listening("deep", 3, "spin")
    stillframe.path = everybodys.stillframe()
    done = stillframe("record", "-e", "signal", "-p", target.pid, "-o", "/dev/null", prefix=NOBODY, cwd="/",
                      env=everybodys.environment).fails(1)
    assert "no agent listens" in done.err, done
    assert len(os.listdir("/proc/%d/task" % target.pid)) == 2, "only its own thread and the one that listens"


# --- why nothing comes ---------------------------------------------------------------------------


def test_a_static_program(stillframe):
    """It is told at once, and the program is left to run."""
    run = stillframe.start("record", "-e", "signal", "-d", "0.5", "-o", "r.sfr", "--",
                           os.path.join(PROGRAMS, "deep_static"), "3")
    lines = [run.stderr.readline().decode() for _ in range(3)]
    pid = int(re.search(r"\(pid (\d+)\)", lines[0]).group(1))
    assert "linked statically" in lines[1] and "ptrace" in lines[2], lines
    assert os.path.exists("/proc/%d" % pid)
    os.kill(pid, signal.SIGKILL)
    assert stillframe.wait(run, 10).status == 137
    assert not os.path.exists(os.path.join(stillframe.cwd, "r.sfr"))


def test_a_program_that_gains_rights(stillframe, tmp_path):
    need_root()
    copy = tmp_path / "setuid"
    copy.write_bytes(open("/bin/true", "rb").read())
    os.chown(copy, 65534, 65534)
    os.chmod(copy, 0o4755)
    done = stillframe("record", "-e", "signal", "-o", "r.sfr", "--", copy).fails(1)
    assert "gains rights" in done.err, done


def test_the_library_is_missing(stillframe):
    done = stillframe("record", "-e", "signal", "--", "touch", "ran",
                      env={**os.environ, "STILLFRAME_AGENT": "/no/agent.so"}).fails(1)
    assert "/no/agent.so" in done.err, done
    assert not os.path.exists(os.path.join(stillframe.cwd, "ran")), "the command ran for nothing"


@pytest.mark.parametrize("option", [["--walk", "handler"], ["--cpu-clock", "tick"], ["--signal", "USR2"],
                                    ["--only", "main"], ["--per-tick", "2"], ["--per-tick", "0"]], ids=lambda option: option[0])
def test_options_of_the_inside(stillframe, option):
    for engine in ([], ["-e", "ptrace"]):
        done = stillframe("record", *engine, *option, "--", "true").fails(2)
        assert option[0] in done.err and "signal" in done.err, done


def test_an_option_that_the_agent_refuses(stillframe):
    done = stillframe("record", "-e", "signal", "--signal", "KILL", "-o", "r.sfr", "--", "true").fails(1)
    assert "KILL" in done.err, done


PTRACE, PERF_EVENT_OPEN = 101, 298   # of x86-64


def refusing(*calls):
    """In front of a command: these system calls fail, as a container's filter makes them."""
    script = r"""
import ctypes, os, struct, sys
calls = %r
filter_ = b"".join(struct.pack("HBBI", *line) for line in (
    (0x20, 0, 0, 0), *((0x15, len(calls) - i, 0, number) for i, number in enumerate(calls)),
    (0x06, 0, 0, 0x7fff0000), (0x06, 0, 0, 0x00050001)))
buffer = ctypes.create_string_buffer(filter_)
program = struct.pack("HxxxxxxP", 3 + len(calls), ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""
    return sys.executable, "-c", script % (calls,)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the filter has x86-64's number of ptrace")
def test_auto_goes_inside_where_all_outside_is_refused(stillframe, tmp_path):
    done = stillframe("record", "-o", tmp_path / "r.sfr", "--", BUSY, 0.5,
                      prefix=refusing(PTRACE, PERF_EVENT_OPEN)).ok()
    assert re.search(r"by signal, from inside, since .*not permitted\. ", done.err), done
    assert "by signal (sampler walk)" in done.err, done
    assert Recording(tmp_path / "r.sfr").samples > 20


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the filter has x86-64's number of perf_event_open")
def test_auto_is_ptrace_where_perf_is_refused(stillframe, tmp_path):
    done = stillframe("record", "-o", tmp_path / "r.sfr", "--", BUSY, 0.2, prefix=refusing(PERF_EVENT_OPEN)).ok()
    assert "by ptrace" in done.err and "signal" not in done.err and "refused" not in done.err, done


def test_auto_is_perf_where_it_works(stillframe, tmp_path):
    need_kernel_samples(stillframe)
    done = stillframe("record", "-o", tmp_path / "r.sfr", "--", BUSY, 0.2).ok()
    assert "by perf" in done.err and "signal" not in done.err, done

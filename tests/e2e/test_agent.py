# SPDX-License-Identifier: Apache-2.0
"""The agent's life inside a program, with no stillframe around: when it starts, what it leaves alone, what it leaves behind."""
import json
import os
import re
import subprocess

import pytest

from conftest import AGENT, PROGRAMS, need, need_root, needs_agent
from processes import read
from recordings import Report

PYTHON = "/usr/bin/python3"
SPIN = "x = 0\nfor i in range(1500000): x += i * i % 7\n"
# What a program sees of itself: threads, descriptors, the variable.
LOOK = ("import os\nprint('threads', len(os.listdir('/proc/self/task')))\n"
        "print('low', sorted(int(f) for f in os.listdir('/proc/self/fd') if 2 < int(f) < 100)[1:])\n"
        "print('says', os.environ.get('STILLFRAME'))\n")

pytestmark = needs_agent


def run(command, text=None, folder=None, **environment):
    """(status, stdout, stderr) of a command with the agent preloaded; STILLFRAME=text."""
    env = {name: value for name, value in os.environ.items() if name != "STILLFRAME"}
    env.update(LD_PRELOAD=AGENT, **environment)
    if text is not None:
        env["STILLFRAME"] = text
    done = subprocess.run([str(word) for word in command], env=env, cwd=folder, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", timeout=60)
    return done.returncode, done.stdout, done.stderr


def plain(command, folder=None):
    done = subprocess.run([str(word) for word in command], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace", timeout=60)
    return done.returncode, done.stdout, done.stderr


def command_of(report):
    return report.json["recording"]["command"]


def streams(folder):
    return sorted(name for name in os.listdir(folder) if ".sfs" in name)


COMMANDS = {
    "python3": [PYTHON, "-c", SPIN + "print(x)\nraise SystemExit(7)"],
    "sqlite3": ["sqlite3", ":memory:", "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 500000) "
                                       "SELECT sum(x * x % 17) FROM c; SELECT nothing;"],
    "xz": ["xz", "-0", "-T1", "-k", "-c", "--check=crc32", PYTHON],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_program_is_as_without_it(stillframe, tmp_path, name):
    """Exit status, output and messages are the same, and the stream is there."""
    command = COMMANDS[name]
    need(command[0])
    out = tmp_path / "a.sfs"
    assert run(command, "out=%s,rate=499hz" % out) == plain(command)
    report = Report(stillframe, out)
    assert report.json["ticks"] > 10, report.json
    report.assert_accounts()


def test_gcc_and_what_it_starts(stillframe, tmp_path):
    need("gcc")
    source = tmp_path / "x.c"
    source.write_text("#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n")
    assert run(["gcc", "-O2", "-o", "x", "x.c"], "out=a.sfs,rate=999hz,children", tmp_path) == (0, "", "")
    assert run([tmp_path / "x"], "off") == (0, "hello\n", "")
    # The driver's own file has its own name; cc1, as, collect2 and ld have theirs.
    found = streams(tmp_path)
    assert "a.sfs" in found and len(found) >= 4, found
    names = {command_of(Report(stillframe, tmp_path / name)).split()[0].rpartition("/")[2] for name in found
             if (tmp_path / name).stat().st_size > 200}
    assert {"cc1", "as"} <= names, names


@pytest.mark.parametrize("text, threads", [(None, 1), ("", 1), ("off", 1), ("off,listen,rate=5", 1), ("listen", 2),
                                           ("start", 3), ("listen,start", 4)])
def test_threads(tmp_path, text, threads):
    """None of its own before it has something to do."""
    status, said, _ = run([PYTHON, "-c", LOOK], text, tmp_path, XDG_RUNTIME_DIR=str(tmp_path))
    assert status == 0 and "threads %d\n" % threads in said, said
    assert bool(streams(tmp_path)) == (threads > 2), os.listdir(tmp_path)


def test_no_descriptor_that_a_program_expects_for_itself(tmp_path):
    _, said, _ = run([PYTHON, "-c", LOOK], "out=a.sfs,listen", tmp_path, XDG_RUNTIME_DIR=str(tmp_path))
    _, bare, _ = run([PYTHON, "-c", LOOK], "off", tmp_path)
    low = re.compile(r"low (.*)")
    assert low.search(said)[1] == low.search(bare)[1], said


def test_the_socket_goes_with_the_program(tmp_path):
    run([PYTHON, "-c", "pass"], "listen", tmp_path, XDG_RUNTIME_DIR=str(tmp_path))
    folder = tmp_path / "stillframe"
    assert folder.is_dir() and not os.listdir(folder)


def test_bad_options_are_one_line_and_no_more(tmp_path):
    status, said, errors = run([PYTHON, "-c", "print(5)"], "rat=5", tmp_path)
    assert (status, said) == (0, "5\n")
    assert errors.count("\n") == 1 and "'rat'" in errors, errors


def test_a_failure_is_only_told_when_asked(tmp_path):
    command = [PYTHON, "-c", "print(5)"]
    assert run(command, "out=/nonexistent/a.sfs", tmp_path) == (0, "5\n", "")
    status, said, errors = run(command, "out=/nonexistent/a.sfs", tmp_path, STILLFRAME_VERBOSE="1")
    assert (status, said) == (0, "5\n") and "/nonexistent/a.sfs" in errors and errors.count("\n") == 1, errors


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_what_a_program_starts_leaves_its_file_alone(stillframe, tmp_path, shell):
    """Without `children`: the shell is sampled, python3 is not, and the file is the shell's to the end. bash has an
    environment of its own."""
    need(shell)
    status, said, errors = run([shell, "-c", "%s -c 'print(6)'; %s -c 'print(7)'; true" % (PYTHON, PYTHON)], "out=a.sfs",
                               tmp_path)
    assert (status, said, errors) == (0, "6\n7\n", "")
    assert streams(tmp_path) == ["a.sfs"]
    assert command_of(Report(stillframe, tmp_path / "a.sfs")).startswith(shell + " -c")


def test_exec_in_the_same_process(stillframe, tmp_path):
    """The file goes on with the program that the process runs now; what was before is in it, too, and no other process's."""
    (tmp_path / "first.sh").write_text("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done\nexec %s -c '%s'" % (PYTHON, SPIN))
    status, _, errors = run(["sh", "first.sh"], "out=a.sfs,rate=499hz", tmp_path)
    assert (status, errors) == (0, "") and streams(tmp_path) == ["a.sfs"]
    report = Report(stillframe, tmp_path / "a.sfs")
    # One thread all the while, with the name that it has now; both programs' code.
    assert [thread["name"] for thread in report.json["threads"]] == ["python3"]
    modules = {os.path.basename(function["module"]) for function in report.json["functions"]}
    assert "dash" in modules and any(name.startswith(("python3", "libpython3")) for name in modules), modules
    assert report.cpu()[0] > 0.05
    # Another run begins a new file.
    run([PYTHON, "-c", SPIN], "out=a.sfs", tmp_path)
    names = {thread["name"] for thread in Report(stillframe, tmp_path / "a.sfs").json["threads"]}
    assert names == {"python3"}, names


def test_exec_in_a_child(stillframe, tmp_path):
    """A child has one file as well, for all that it runs, whatever the environment says: sh gives it its own. What another
    process with that id has left is replaced."""
    (tmp_path / "child.sh").write_text("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done\nexec %s -c '%s'" % (PYTHON, SPIN))
    status, said, errors = run(["sh", "-c", "(. ./child.sh) & echo $!; wait"], "out=a.sfs,rate=499hz,children", tmp_path)
    assert (status, errors) == (0, ""), errors
    child = "a.sfs." + said.strip()
    assert streams(tmp_path) == ["a.sfs", child]
    report = Report(stillframe, tmp_path / child)
    modules = {os.path.basename(function["module"]) for function in report.json["functions"]}
    assert "dash" in modules and any(name.startswith(("python3", "libpython3")) for name in modules), modules
    # Of another run, if that had the same id.
    code = "import os\nos.rename(%r, 'a.sfs.%%d' %% os.getpid())\nos.execv(%r, [%r, '-c', %r])" % (child, PYTHON, PYTHON, SPIN)
    status, _, errors = run(["sh", "-c", "%s -c \"$0\"; true" % PYTHON, code], "out=a.sfs,rate=499hz,children", tmp_path)
    assert (status, errors) == (0, ""), errors
    other, = set(streams(tmp_path)) - {"a.sfs"}
    modules = {os.path.basename(function["module"]) for function in Report(stillframe, tmp_path / other).json["functions"]}
    assert "dash" not in modules, modules


WAYS_TO_EXEC = {
    "sh": ["sh", "-c", "env; true"],
    "fork": [PYTHON, "-c", "import os\nif os.fork() == 0: os.execvp('env', ['env'])\nos.wait()"],
    "vfork": [PYTHON, "-c", "import subprocess; subprocess.run(['env'], check=True)"],
    "posix_spawn": [PYTHON, "-c", "import os; os.waitpid(os.posix_spawn('/usr/bin/env', ['env'], os.environ), 0)"],
}


@pytest.mark.parametrize("way", WAYS_TO_EXEC)
def test_a_child_that_is_not_sampled_is_as_without_us(stillframe, tmp_path, way):
    """It loads no agent in vain: its environment is the one that it would have, with a library that the user preloads."""
    env = {name: value for name, value in os.environ.items() if name != "STILLFRAME"}
    env["LD_PRELOAD"] = "libm.so.6"
    alone = subprocess.run(WAYS_TO_EXEC[way], env=env, cwd=stillframe.cwd, capture_output=True, text=True, timeout=60)
    assert alone.returncode == 0 and "LD_PRELOAD=libm.so.6" in alone.stdout, alone

    def recorded(*more):
        done = stillframe("record", "-e", "signal", "-o", tmp_path / "r.sfr", *more, "--", *WAYS_TO_EXEC[way], env=env)
        return sorted(done.out.splitlines())

    assert recorded() == sorted(alone.stdout.splitlines())
    sampled = [line for line in recorded("--children") if line.startswith(("STILLFRAME=", "LD_PRELOAD="))]
    assert len(sampled) == 2 and os.path.basename(AGENT) in sampled[0] and sampled[0].endswith("libm.so.6"), sampled


def test_a_child_that_is_given_options_of_its_own_is_sampled(stillframe, tmp_path):
    """A sampled program that starts another one with the agent has written these options itself: they stay."""
    own = tmp_path / "own.sfs"
    command = "STILLFRAME=out=%s LD_PRELOAD=%s %s -c '%s'; true" % (own, AGENT, PYTHON, SPIN)
    stillframe("record", "-e", "signal", "-o", tmp_path / "r.sfr", "--", "sh", "-c", command).ok()
    assert Report(stillframe, own).json["threads"]


FORKING = """
import os
{spin}
for i in range(3):
    child = os.fork()
    if child == 0:
        {spin_in}
        raise SystemExit
    os.waitpid(child, 0)
"""


@pytest.mark.long("timer")   # one clock with a descriptor and the one without suffice; itimer is the process's
@pytest.mark.parametrize("clock", ["perf", "timer", "itimer", "tick"])
def test_the_clock_of_a_forked_child(stillframe, tmp_path, clock):
    """No clock goes on in it, so it gets one of its own, and its CPU time does not wait for its end to be noticed."""
    code = ("import os, time\n"
            "while time.process_time() < 0.2: pass\n"
            "if not os.fork():\n"
            "    while time.process_time() < 0.8: pass\n"
            "    raise SystemExit\n"
            "os.wait()")
    status, _, errors = run([PYTHON, "-c", code], "out=a.sfs,rate=199hz,children,clock=cpu,cpu-clock=" + clock, tmp_path)
    assert status == 0 and not errors, errors
    child, = tmp_path.glob("a.sfs.*")
    report = Report(stillframe, child)
    unrung = sum(loss["cpu_ns"] for loss in report.losses if loss["cause"] in ("gone", "unseen")) / 1e9
    assert report.cpu()[2] > 0.6 > 2 * unrung, (unrung, report.cpu(), report.losses)


@pytest.mark.parametrize("children", [False, True])
def test_forked_children(stillframe, tmp_path, children):
    code = FORKING.format(spin=SPIN, spin_in=SPIN.replace("\n", "; ", 1).replace("; for", "\n        for"))
    status, _, errors = run([PYTHON, "-c", code], "out=a.sfs,rate=499hz" + (",children" if children else ""), tmp_path)
    assert status == 0 and not errors
    found = streams(tmp_path)
    assert len(found) == (4 if children else 1), found
    for name in found:
        report = Report(stillframe, tmp_path / name)
        assert report.cpu()[0] > 0.05, (name, report.cpu())


def test_the_name_of_a_file(tmp_path):
    _, said, _ = run([PYTHON, "-c", "import os; print(os.getpid())"], "out=x-%p-y.sfs", tmp_path)
    assert streams(tmp_path) == ["x-%s-y.sfs" % said.strip()]


def test_a_file_is_not_lost_with_its_program(stillframe, tmp_path):
    """_exit() runs nothing of ours: what was written until shortly before is there."""
    code = SPIN + "import os, time\ntime.sleep(0.3)\nos._exit(3)"
    assert run([PYTHON, "-c", code], "out=a.sfs,rate=499hz", tmp_path)[0] == 3
    assert Report(stillframe, tmp_path / "a.sfs").json["ticks"] > 20


def test_duration(tmp_path):
    """It ends by itself, and nothing of it is left."""
    code = ("import os, time\n" "end = time.monotonic() + 20\n"
            "while len(os.listdir('/proc/self/task')) > 1 and time.monotonic() < end: time.sleep(0.01)\n" + LOOK)
    status, said, _ = run([PYTHON, "-c", code], "out=a.sfs,duration=300ms", tmp_path)
    assert status == 0 and "threads 1\n" in said, said


def test_a_program_that_profiles_itself(stillframe, tmp_path):
    """Every public function; it judges itself. No sample is from the time that it paused."""
    done = subprocess.run([os.path.join(PROGRAMS, "agent_api"), tmp_path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    first, second, copy = (Report(stillframe, tmp_path / name) for name in ("first.sfs", "second.sfs", "copy.sfs"))
    assert first.total_shares()["spin_while_sampled"] > 0.9
    assert first.total_shares().get("spin_while_paused", 0) < 0.03, first.total_shares()
    first.assert_accounts(0.05, 0.02)
    assert abs(first.cpu()[0] - 0.5) < 0.1, first.cpu()
    assert copy.cpu()[0] <= first.cpu()[0]
    # only=registered: the second thread alone, five times; each is met when it registers, as soon as somebody has a CPU for that.
    assert "main" not in second.total_shares() and "second_thread" in second.total_shares()
    assert abs(second.cpu()[0] - 1) < 0.25, second.cpu()
    assert "the second" in str(second.json), second.json.keys()


@pytest.mark.long("handler")
@pytest.mark.parametrize("walk", ["sampler", "handler"])
def test_two_profiles_of_one_program(stillframe, tmp_path, walk):
    """Each has the work of its own time, of all threads, with their names and labels; nothing of the other, or from between."""
    done = subprocess.run([os.path.join(PROGRAMS, "agent_again"), tmp_path, walk], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    for name, other in (("first", "second"), ("second", "first")):
        report = Report(stillframe, tmp_path / (name + ".sfs"))
        shares = report.total_shares()
        assert shares["work_" + name] > 0.9 and not {"work_" + other, "work_between"} & set(shares), (name, shares)
        report.assert_accounts(0.05, 0.02)
        threads = {thread["name"]: thread for thread in report.json["threads"]}
        assert set(threads) == {"agent_again", "the worker", "the sleeper"}, threads
        for busy in ("agent_again", "the worker"):
            assert abs(threads[busy]["cpu_counted_ns"] / 1e9 - 0.2) < 0.03, (name, threads)
        assert [label["value"] for label in report.json["labels"] if label["key"]] == [name], report.json["labels"]
        walls = json.loads(stillframe("report", "--json", "--clock", "wall", tmp_path / (name + ".sfs")).ok().out)
        assert "wait_for_ever" in {function["name"] for function in walls["functions"]}, walls["functions"]


def test_one_label_more_than_there_may_be(stillframe, tmp_path):
    """Its samples carry no label, and not the last one's; a note says so. Labels that there are already can be set on."""
    done = subprocess.run([os.path.join(PROGRAMS, "agent_again"), tmp_path, "labels"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    first, second = (Report(stillframe, tmp_path / (name + ".sfs")).json for name in ("first", "second"))
    assert_labelled(first, {"number 1": 0.2, "number 65535": 0.2, "": 0.2})
    assert_labelled(second, {"number 65535": 0.2, "number 2": 0.2})
    assert any("more than 65,535 different labels" in note["text"] for note in first["notes"]), first["notes"]
    assert not second["notes"] and os.path.getsize(tmp_path / "second.sfs") < 200000, second["notes"]


def assert_labelled(report, seconds):
    told = {" ".join(label["value"].split()[:2]): label["cpu_ns"] / 1e9 for label in report["labels"]}
    for value, cpu in seconds.items():
        assert abs(told.get(value, 0) - cpu) < 0.05, (value, told)


def test_a_program_in_cxx(stillframe, tmp_path):
    subprocess.run([os.path.join(PROGRAMS, "agent_cxx"), "out=%s,rate=999hz" % (tmp_path / "a.sfs")], check=True, timeout=60)
    assert Report(stillframe, tmp_path / "a.sfs").json["ticks"] > 10


def test_only_libc_is_needed():
    need("readelf")
    said = subprocess.run(["readelf", "-dW", AGENT], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"NEEDED.*\[(.*)\]", said)
    assert "libc.so.6" in needed and all(re.match(r"(libc\.so|ld-linux)", name) for name in needed), needed
    assert "NODELETE" in said and "NOW" in said


# --- a program that may not make each system call ------------------------------------------------

# Forbidden, and whether it can be sampled all the same: with timers, without perf clocks.
FORBIDDEN = {"faccessat": True, "perf_event_open": True, "process_vm_readv": False, "process_vm_writev": False,
             "rt_sigpending": False, "rt_sigtimedwait": False, "sched_setaffinity": False, "timer_create": False,
             "getcpu,perf_event_open": False, "wait4": False}


@pytest.mark.parametrize("forbidden", FORBIDDEN)
@pytest.mark.parametrize("begins", ["before", "under"])
def test_a_filter_that_kills(stillframe, inside, tmp_path, forbidden, begins):
    """The program lives, whether the agent is there when the filter is put on (and goes, if it must) or comes under it."""
    out = tmp_path / "under.sfs"
    program = [os.path.join(PROGRAMS, "busy_split"), "0.3", "1"]
    filtered = [os.path.join(PROGRAMS, "in_filter"), forbidden]
    environment = {"STILLFRAME_VERBOSE": "1"}
    if begins == "before":
        ran = inside([*filtered, *program], options="children", environment=environment).ok()
    else:
        variables = ["LD_PRELOAD=" + AGENT, "STILLFRAME=out=%s" % out]
        ran = inside([*filtered, "/usr/bin/env", *variables, *program], options=None, environment=environment).ok()
    assert "total_seconds" in ran.said
    if FORBIDDEN[forbidden]:
        report = Report(stillframe, out) if begins == "under" else ran.report
        assert report.total_shares().get("spin_thirty", 0) > 0.1, report.json
    else:
        told = "stillframe: a system-call filter (seccomp) would end this process for: "
        assert told + forbidden.split(",")[0] in ran.said, ran
        assert not out.exists()


def test_a_filter_of_a_process_of_many_groups(inside, tmp_path):
    """Its status is long: that there is a filter stands behind the groups."""
    need_root()
    groups = ",".join(str(10 ** 9 + i) for i in range(1000))
    variables = ["LD_PRELOAD=" + AGENT, "STILLFRAME_VERBOSE=1", "STILLFRAME=out=%s" % (tmp_path / "under.sfs")]
    ran = inside(["setpriv", "--groups", groups, os.path.join(PROGRAMS, "in_filter"), "timer_create", "/usr/bin/env", *variables,
                  os.path.join(PROGRAMS, "busy_split"), "0.3", "1"], options=None).ok()
    assert "total_seconds" in ran.said and "would end this process for: timer_create" in ran.said, ran


def test_a_filter_that_asks_somebody(inside):
    """Nobody answers the child that tries: the program goes on all the same, without a profile."""
    ran = inside([os.path.join(PROGRAMS, "in_filter"), "?getcpu", os.path.join(PROGRAMS, "busy_split"), "0.3", "1"],
                 environment={"STILLFRAME_VERBOSE": "1"}).ok()
    assert "total_seconds" in ran.said and "a call does not return" in ran.said, ran


def test_why_a_filter_ended_it_is_told(stillframe, tmp_path):
    done, recording = stillframe.record(tmp_path / "a.sfr", "-e", "signal", "--", os.path.join(PROGRAMS, "in_filter"), "getcpu",
                                        os.path.join(PROGRAMS, "busy_split"), "0.3", "1")
    assert "total_seconds" in done.out # and where nothing was sampled before the filter, the status is 1
    told = " ".join(done.err.split())
    assert "is sampled no longer: a system-call filter (seccomp) would end this process for: getcpu" in told, done


INTERPOSED = {"sigaction", "signal", "bsd_signal", "ssignal", "sysv_signal", "__sysv_signal", "sigignore", "siginterrupt",
              "sigset", "sigwait", "sigwaitinfo", "sigtimedwait", "signalfd", "sigpending",
              "sigaltstack", "pthread_create", "pthread_exit", "thrd_exit", "fork", "daemon", "forkpty", "syscall", "prctl", "execve", "execveat", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve",
              "posix_spawn", "posix_spawnp",
              "setuid", "setgid", "seteuid", "setegid", "setreuid", "setregid", "setresuid", "setresgid", "setgroups", "initgroups",
              "unshare", "setns", "dlclose", "fallocate", "fallocate64", "posix_fallocate", "posix_fallocate64",
              "stat", "stat64", "fstatat", "fstatat64", "__xstat", "__xstat64", "__fxstatat", "__fxstatat64"}
# What a Java virtual machine calls in an agent (src/agent/java/jvm.c).
JVM_AGENT = {"Agent_OnLoad", "Agent_OnAttach", "Agent_OnUnload"}
DOTNET_PROFILER = {"DllGetClassObject"}


def test_only_the_public_functions_are_seen():
    need("nm")
    said = subprocess.run(["nm", "-D", "--defined-only", AGENT], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1] for line in said.splitlines()}
    header = read(os.path.join(os.path.dirname(__file__), "../../include/stillframe.h"))
    public = set(re.findall(r"^SF_API .*?(sf_\w+)\(", header, re.MULTILINE))
    expected = INTERPOSED | JVM_AGENT | DOTNET_PROFILER | public
    assert names == expected, names ^ expected

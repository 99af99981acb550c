# SPDX-License-Identifier: Apache-2.0
"""Programs of .NET, watched from outside: every stack is whole, every managed frame has its name, its file and its line. The program
(tests/programs/dotnet/Work.cs) is compiled here by the compiler of the installed SDK, with no network."""
import collections
import fcntl
import glob
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

from conftest import AGENT, HERE, NOBODY, PLAIN, PROGRAMS, need, needs_agent
from processes import Target, read, status_of, until
from recordings import cpu_samples_so_far

pytestmark = pytest.mark.waits

SOURCE = os.path.join(HERE, "../programs/dotnet/Work.cs")
START = ["System.Threading.Thread.StartCallback()"]


def installed():
    """(compiler, folder of the framework, its version), or a reason why not."""
    dotnet, = need("dotnet")
    sdks = re.findall(r"^(\S+) \[(.+)\]$", subprocess.run([dotnet, "--list-sdks"], capture_output=True, text=True).stdout, re.M)
    runtimes = re.findall(r"^Microsoft\.NETCore\.App (10\.\S+) \[(.+)\]$",
                          subprocess.run([dotnet, "--list-runtimes"], capture_output=True, text=True).stdout, re.M)
    compilers = [path for version, folder in sdks for path in glob.glob(os.path.join(folder, version, "Roslyn/bincore/csc.dll"))]
    if not compilers or not runtimes:
        pytest.skip("dotnet is installed without an SDK, or without the runtime of .NET 10")
    return compilers[-1], os.path.join(runtimes[-1][1], runtimes[-1][0]), runtimes[-1][0]


def compile_program(folder, name, optimize="+"):
    """The program in this folder. It is compiled once for all runs of tests that share a folder for that (tests/run)."""
    shared = os.environ.get("STILLFRAME_CLASSES")
    if not shared:
        return compile_into(folder, name, optimize)
    made = pathlib.Path(shared) / ("dotnet-" + name + optimize)
    with open(str(made) + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            fresh = pathlib.Path(str(made) + ".new")
            fresh.mkdir(exist_ok=True)
            compile_into(fresh, name, optimize)
            fresh.rename(made)
    shutil.copytree(made, folder, dirs_exist_ok=True)
    return folder / (name + ".dll")


def compile_into(folder, name, optimize):
    compiler, framework, version = installed()
    output = folder / (name + ".dll")
    references = ["-r:" + path for path in glob.glob(os.path.join(framework, "*.dll"))]
    done = subprocess.run(["dotnet", compiler, "-nologo", "-unsafe", "-optimize" + optimize, "-debug:portable", "-out:%s" % output, *references,
                           os.path.join(os.path.dirname(SOURCE), name + ".cs")],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    (folder / (name + ".runtimeconfig.json")).write_text(json.dumps({"runtimeOptions": {
        "tfm": "net10.0", "framework": {"name": "Microsoft.NETCore.App", "version": version}}}))
    return output


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    return compile_program(tmp_path_factory.mktemp("dotnet"), "Work")


@pytest.fixture
def work(program):
    started = []

    def start(*arguments, **environment):
        started.append(Target(["dotnet", program, *arguments], env={**os.environ, "TMPDIR": str(program.parent), **environment},
                              nice=True))
        return started[-1]
    yield start
    for target in started:
        target.end()


def line_of(comment, name="Work"):
    """The line of a program's source with this comment."""
    with open(os.path.join(os.path.dirname(SOURCE), name + ".cs")) as file:
        return next(number for number, line in enumerate(file, 1) if line.rstrip().endswith("// in " + comment))


def managed(thread):
    """The functions of a thread that are those of .NET's, innermost first, without inlined ones."""
    return [frame["function"] for frame in thread["frames"] if re.match(r"(Demo|System)\.", frame["function"])]


# What is parked: the thread's name, its own methods from the inside out, and the comments of the lines on which they stand.
PARKED = {
    "parked": (["Demo.Work.Park()"], ["Park"]),
    "locked": (["Demo.Work.Lock()"], ["Lock"]),
    "joined": (["Demo.Work.Join()"], ["Join"]),
    "caught": (["Demo.Work.Park()", "Demo.Work.Catch()"], ["Park", "Catch"]),
    "finally": (["Demo.Work.Park()", "Demo.Work.Finally()"], ["Park", "Finally"]),
    "nested": (["Demo.Work.Park()", "Demo.Box<int>.Inner.Wait<__Canon>(__Canon)"], ["Park", "Inner"]),
}


def test_parked_threads(stillframe, work):
    """Each of the threads that do nothing, in its own way: whole, down to the thread's first function, with its lines."""
    threads = {thread["name"]: thread for thread in stillframe.dump(work().pid)["threads"]}
    for name, (functions, comments) in PARKED.items():
        thread = threads[name]
        found = [(frame["function"], frame["line"]) for frame in thread["frames"] if frame["function"].startswith("Demo.")
                 and not re.search(r"Main|Start", frame["function"])]
        assert thread["end"] == "root", (name, thread["end"], thread["frames"])
        assert found[:len(functions)] == [(f, line_of(c)) for f, c in zip(functions, comments)], (name, found)
        assert managed(thread)[-1:] == START, (name, managed(thread))
    assert "System.Threading.Tasks.Task.Wait()" in managed(threads["joined"])
    assert all(frame["file"].endswith("Work.cs") for frame in threads["parked"]["frames"] if frame["function"].startswith("Demo."))


def test_names_of_what_the_compiler_made(stillframe, work):
    """Lambdas, iterators and asynchronous methods have the names of the methods that were written."""
    threads = {thread["name"]: managed(thread) for thread in stillframe.dump(work().pid)["threads"]}
    for name, function in (("lambda", "Demo.Work.Lambda"), ("iterator", "Demo.Work.Numbers"), ("later", "Demo.Work.Later")):
        at = threads[name].index("Demo.Work.Park()") + 1
        assert threads[name][at].startswith(function), (name, threads[name])
        assert "<" not in threads[name][at] and "MoveNext" not in threads[name][at], threads[name][at]
    assert "Demo.Work.Emitted()" in threads["emitted"]


def stacks_of(stillframe, recording):
    """[(functions from the outermost in, weight)] of all samples, running and waiting."""
    out = stillframe("export", recording, "-f", "collapsed", "--clock", "wall", "-o", "-").ok().out
    return [(line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1])) for line in out.splitlines()]


def check_chain(stacks):
    """Wherever Leaf is, its callers are all there, each once and in order."""
    chain = ["Demo.Work.Main(string[])", "Demo.Work.A(int)", "Demo.Work.B(int)", "Demo.Work.C(int)", "Demo.Work.Leaf(int)"]
    of_leaf = [stack for stack, _ in stacks if chain[-1] in stack]
    assert of_leaf
    for stack in of_leaf:
        at = stack.index(chain[-1])
        assert stack[at - 4:at + 1] == chain, stack


# Code of one tier is among that of all, jitted code beside the precompiled; which mapping code was written by shows in no stack.
@pytest.mark.long("no tiers", "no precompiled code", "no W^X")
@pytest.mark.parametrize("environment", [{}, {"DOTNET_TieredCompilation": "0"}, {"DOTNET_ReadyToRun": "0"},
                                         {"DOTNET_EnableWriteXorExecute": "0"}],
                         ids=["usual", "no tiers", "no precompiled code", "no W^X"])
def test_record(stillframe, work, tmp_path, environment):
    """Work on many threads, with faults, exceptions, collections and calls through stubs: stacks are whole."""
    target = work("busy", **environment)
    path = tmp_path / "r.sfr"
    done, recording = stillframe.record(path, "-p", target.pid, "-d", "1.5s", "-F", "797")
    target.end()
    done.ok()
    report = json.loads(stillframe("report", "--json", path).ok().out)
    ends = collections.Counter()
    for stack, weight in stacks_of(stillframe, path):
        ends[next((f for f in stack if f.startswith("[cut")), "whole")] += weight
    assert ends["whole"] >= 0.99 * sum(ends.values()), ends
    check_chain(stacks_of(stillframe, path))
    names = {row["name"] for row in report["functions"]}
    assert "Demo.Box<__Canon>.Put(__Canon, Func<__Canon, int>)" in names or \
        any(name.startswith("Demo.Box<") and ".Put(" in name for name in names), names
    assert not any("unknown .NET" in name for name in names), names


def test_inlined_methods(stillframe, work, tmp_path):
    """Where the runtime records them, a method that the JIT inlined is a frame of its own, with its line, inside the method whose
    code it is in. The chain of callers is the same."""
    target = work("busy", DOTNET_RichDebugInfo="1", DOTNET_TieredCompilation="0")
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", target.pid, "-d", "1.5s", "-F", "397")
    target.end()
    done.ok()
    stacks = stacks_of(stillframe, tmp_path / "r.sfr")
    check_chain(stacks)
    of_mix = [stack for stack, _ in stacks if "Demo.Work.Mix(int, int)" in stack]
    assert of_mix
    assert {stack[stack.index("Demo.Work.Mix(int, int)") - 1] for stack in of_mix} == {"Demo.Work.Leaf(int)"}
    lines = recording.rows("SELECT DISTINCT inlined, line FROM frame_functions JOIN functions ON functions.id = function "
                           "WHERE name = 'Demo.Work.Mix(int, int)'")
    assert lines == [(1, line_of("Mix"))], lines


@pytest.mark.long
def test_inlined_methods_of_a_command(stillframe, program, tmp_path, monkeypatch):
    """By an option, which a process that runs already cannot have."""
    monkeypatch.setenv("DOTNET_TieredCompilation", "0")
    stillframe.record(tmp_path / "r.sfr", "--dotnet-inlined", "-F", "199", "--", "dotnet", program, "busy", "1")[0].ok()
    of_mix = [stack for stack, _ in stacks_of(stillframe, tmp_path / "r.sfr") if "Demo.Work.Mix(int, int)" in stack]
    assert of_mix and all(stack[stack.index("Demo.Work.Mix(int, int)") - 1] == "Demo.Work.Leaf(int)" for stack in of_mix), of_mix
    assert "DOTNET_RichDebugInfo=1" in stillframe("record", "--dotnet-inlined", "-p", os.getpid()).fails(2).err


@pytest.mark.long("sampler")   # which leaves the alternate stack to the runtime's handler
@pytest.mark.parametrize("walk", ["sampler", "handler"])
def test_faults_under_the_signal_engine(stillframe, program, tmp_path, walk):
    """Null references by the thousand: the runtime's handler of SIGSEGV keeps frames on the alternate stack, and our handler never
    overwrites them. A thread that has left that handler blocks our signal, and is counted as deaf."""
    done, recording = stillframe.record(tmp_path / "r.sfr", "--engine", "signal", "--walk", walk, "-F", "999", "--", "dotnet", program,
                                        "busy", "1", timeout=120)
    done.ok()
    assert done.out == "ready\n", done
    assert recording.losses().get("deaf", 0) > 0, recording.losses()
    assert any("Demo.Work.A(int)" in stack for stack, _ in stacks_of(stillframe, tmp_path / "r.sfr"))


def threads_of(pid):
    """The agent's threads."""
    names = [read("/proc/%d/task/%s/comm" % (pid, tid)).strip() for tid in os.listdir("/proc/%d/task" % pid)]
    return [name for name in names if name.startswith("sf-")]


def check_listens(pid):
    """One thread of the agent waits for a call. The other one that a recording needs ends when it gets a turn: stillframe does not wait for it."""
    until(lambda: threads_of(pid) == ["sf-listen"], "the agent's other threads have ended")


def mapped_in(pid):
    """The pieces of the agent's code."""
    return [line for line in read("/proc/%d/maps" % pid).splitlines() if "libstillframe-agent" in line and " r-xp " in line]


def record_inside(stillframe, pid, path):
    """A recording of some samples of the first thread, which calls Leaf, while it runs, however busy the machine is. The dump before
    it puts unwind tables into the cache: until they are there, stacks are cut."""
    stillframe.dump(pid)
    return stillframe.record_until(str(path), lambda path: cpu_samples_so_far(path, pid) >= 10, "-p", pid, "-e", "signal")


def check_whole(stillframe, path):
    """Some samples of the threads that work, with all their frames."""
    stacks = stacks_of(stillframe, path)
    whole = sum(weight for stack, weight in stacks if not any(frame.startswith("[cut") for frame in stack))
    assert whole >= 0.99 * sum(weight for _, weight in stacks)
    check_chain(stacks)


@needs_agent
def test_a_running_program_takes_the_agent_in(stillframe, program, tmp_path):
    """Three times: loaded once, and called then. A later profile takes no more memory than the first. One thread waits for a call then; the
    program runs on, and ends as ever."""
    # The heap is collected after each 2 MB. So it does not grow any more when the program is ready.
    target = Target(["dotnet", program, "busy"], env={**PLAIN, "TMPDIR": str(tmp_path), "DOTNET_GCgen0size": "0x200000"}, nice=True)
    try:
        said, resident, names = [], [], ["%d.sfr" % n for n in range(3)]
        for name in names:
            said.append(record_inside(stillframe, target.pid, tmp_path / name).err)
            resident.append(int(status_of(target.pid)["VmRSS"].split()[0]))
        # KiB. The runtime takes memory at times, too, and a profile that takes more than the one before would do so each time.
        assert min(after - before for before, after in zip(resident, resident[1:])) < 2000, resident
        assert ["loaded into the program by its runtime" in " ".join(text.split()) for text in said] == [True, False, False], said
        for name in names:
            check_whole(stillframe, tmp_path / name)
        check_listens(target.pid)
        assert len(mapped_in(target.pid)) == 1
        target.assert_moves()
        target.process.terminate()
        assert target.finish() == (-signal.SIGTERM, "ready\n")
    finally:
        target.end()


@needs_agent
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a mount namespace and another user")
def test_another_users_program_in_a_namespace(stillframe, program, tmp_path):
    """The socket is in the program's own /tmp, and only the program's user may use it; the library is for a moment beside it."""
    need("unshare", "setpriv")
    with tempfile.TemporaryDirectory(prefix="stillframe-test-", dir="/dev/shm") as folder:
        os.chmod(folder, 0o755)
        for path in program.parent.iterdir():
            if path.is_file():
                shutil.copy(path, folder)
        plain = {name: value for name, value in PLAIN.items() if name != "TMPDIR"}
        target = Target(["unshare", "-m", "sh", "-c", "mount -t tmpfs none /tmp && exec \"$@\"", "sh", *NOBODY, "dotnet",
                         os.path.join(folder, program.name), "busy"], env={**plain, "DOTNET_CLI_HOME": "/tmp"}, nice=True)
        try:
            record_inside(stillframe, target.pid, tmp_path / "r.sfr")
            check_chain(stacks_of(stillframe, tmp_path / "r.sfr"))   # native code is whole once the program has made its own tables
            names = os.listdir("/proc/%d/root/tmp" % target.pid)
            assert [name for name in names if name.startswith("dotnet-diagnostic-")] and not \
                [name for name in names if name.endswith(".so")], names
            target.assert_moves()
        finally:
            target.end()


@needs_agent
def test_the_runtime_loads_the_agent_at_its_start(stillframe, program, tmp_path):
    """By the variables for profilers."""
    target = Target(["dotnet", program, "busy"], env={
        **PLAIN, "CORECLR_ENABLE_PROFILING": "1", "CORECLR_PROFILER": "{6f1c2a54-3b7e-4d0f-9a8b-5e2d7c41f0a3}",
        "CORECLR_PROFILER_PATH": AGENT, "STILLFRAME": "listen", "TMPDIR": str(tmp_path)}, nice=True)
    try:
        check_listens(target.pid)
        assert "loaded" not in record_inside(stillframe, target.pid, tmp_path / "r.sfr").err
        check_whole(stillframe, tmp_path / "r.sfr")
        target.assert_moves()
    finally:
        target.end()


@needs_agent
def test_the_runtime_in_the_place_of_an_engine(stillframe, program, tmp_path):
    """Of a command the runtime alone loads the agent, also where it is to stay a profiler; of a process that runs, as ever."""
    done, recording = stillframe.record(tmp_path / "1.sfr", "--engine", "coreclr", "-F", "499", "--", "dotnet", program, "busy", "1")
    assert done.ok().out == "ready\n" and " by signal " in done.err, done
    check_chain(stacks_of(stillframe, tmp_path / "1.sfr"))
    done, recording = stillframe.record(tmp_path / "2.sfr", "--engine", "coreclr", "--event", "exception", "--", "dotnet", program, "busy", "1")
    assert re.search(r"events [1-9][0-9,]* exception seen", done.ok().err), done
    target = Target(["dotnet", program, "busy"], env={**PLAIN, "TMPDIR": str(tmp_path)}, nice=True)
    try:
        said = stillframe.record_until(str(tmp_path / "3.sfr"), lambda path: cpu_samples_so_far(path, target.pid) >= 10, "-p", target.pid, "-e", "coreclr")
        assert "loaded into the program by its runtime" in " ".join(said.err.split()), said
        target.assert_moves()
    finally:
        target.end()


@needs_agent
def test_another_runtime_in_the_place_of_an_engine(stillframe, tmp_path):
    """What is not .NET is not recorded as something else."""
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        refusals = [
            (1, ["-p", sleeper.pid], "pid %d (sleep) cannot be recorded by --engine coreclr: it has not loaded the runtime of .NET" % sleeper.pid),
            (1, ["--", "true"], "nothing was sampled by --engine coreclr: the runtime of .NET has not loaded the agent into true"),
            (1, ["--all"], "the engine coreclr cannot sample all processes"),
            (1, ["--children", "--filter", "name=x", "--", "true"], "the engine coreclr has no --filter"),
            (2, ["--max-cost", "5", "-p", sleeper.pid], "--max-cost is for --engine perf"),
        ]
        for status, arguments, message in refusals:
            done = stillframe("record", "--engine", "coreclr", "-o", tmp_path / "r.sfr", *arguments).fails(status)
            assert message in " ".join(done.err.split()), done
            assert not (tmp_path / "r.sfr").exists(), arguments
        assert not mapped_in(sleeper.pid)
    finally:
        sleeper.kill()
        sleeper.wait()


@pytest.mark.long   # the short form has it with the runtime's walk, for which the agent is a profiler, too (test_dotnet_walks.py)
@needs_agent
def test_beside_a_profiler(stillframe, program, tmp_path):
    """A profiler that is there already keeps its place, and is told of the program's end."""
    target = Target(["dotnet", program, "busy", "6"], env={
        **PLAIN, "CORECLR_ENABLE_PROFILING": "1", "CORECLR_PROFILER": "{00000000-0000-0000-0000-000000000001}",
        "CORECLR_PROFILER_PATH": PROGRAMS + "/dotnet_profiler.so", "TMPDIR": str(tmp_path)})
    try:
        assert "loaded" in record_inside(stillframe, target.pid, tmp_path / "r.sfr").err
        check_whole(stillframe, tmp_path / "r.sfr")
        assert target.finish() == (0, "ready\nthe profiler was there to the end\n")
    finally:
        target.end()


@needs_agent
@pytest.mark.parametrize("variable", ["DOTNET_EnableDiagnostics", "DOTNET_EnableDiagnostics_IPC"])
def test_a_program_that_takes_none_is_let_be(stillframe, work, tmp_path, variable):
    """One clear message, and it runs on."""
    target = work("busy", **{variable: "0"})
    done = stillframe("record", "-p", target.pid, "-e", "signal", "-o", tmp_path / "r.sfr").fails()
    assert "does not listen at" in " ".join(done.err.split()) and variable in done.err, done
    assert not (tmp_path / "r.sfr").exists() and not mapped_in(target.pid)
    target.assert_moves()


NAMES = {"holds first, wants second", "holds second, wants first", "wants a monitor that is held", "sleeps, n\u00e4mlich \U0001f634",
         "a worker with a name (pool worker)", ".NET SynchManager", ".NET Finalizer"}


def test_names_of_threads(stillframe, tmp_path_factory, tmp_path):
    """Threads have the names that the program gave them, whole, also while collections move the objects with the names."""
    program = compile_program(tmp_path_factory.mktemp("waits"), "Waits")
    target = Target(["dotnet", program, "collect"], env={**os.environ, "TMPDIR": str(tmp_path)})
    try:
        names = {thread["name"] for thread in stillframe.dump(target.pid)["threads"]}
        assert NAMES <= names, names
        done, recording = stillframe.record(tmp_path / "r.sfr", "-p", target.pid, "-d", "1s")
        done.ok()
        recorded = {name for name, in recording.rows("SELECT name FROM thread_names")}
        assert NAMES - {".NET SynchManager"} <= recorded, recorded
    finally:
        target.end()


def named_by_caller(stillframe, path):
    """(weight of stacks in which First and Second stand on top of ByFirst and BySecond, weight of those with the two exchanged)"""
    right = wrong = 0
    for stack, weight in stacks_of(stillframe, path):
        text = ";".join(stack)
        for caller, callee, other in (("ByFirst(", "First", "Second"), ("BySecond(", "Second", "First")):
            above = text.split(caller)[1] if caller in text else ""
            right += weight * bool(re.search(r";(Type%s\.)?%s(\(int\))?(;|$)" % (callee, callee), above))
            wrong += weight * bool(re.search(r";(Type%s\.)?%s(\(int\))?(;|$)" % (other, other), above))
    return right, wrong


# By ptrace a stack that is walked late may meet the next method, which beside other tests may be a twentieth of them.
@pytest.mark.parametrize("engine", [pytest.param("ptrace", marks=[pytest.mark.long, pytest.mark.alone]), "signal"])
def test_dynamic_methods_in_each_others_place(stillframe, tmp_path_factory, tmp_path, engine):
    """The runtime uses the code and the MethodDesc of a dynamic method again for the next one: each has its own name."""
    program = compile_program(tmp_path_factory.mktemp("reused"), "Reused")
    target = Target(["dotnet", program, "dynamic", "30"], env={**os.environ, "TMPDIR": str(tmp_path)})
    path = tmp_path / "r.sfr"
    done, recording = stillframe.record(path, "-e", engine, "-p", target.pid, "-d", "2s", "-F", "199")
    target.end()
    done.ok()
    right, wrong = named_by_caller(stillframe, path)
    assert right and wrong <= (0.05 * right if engine == "ptrace" else 0), (right, wrong)


@pytest.mark.long   # thousands of assemblies come and go first; unit/test_clr_walk and unit/test_clr_types have it, too
def test_assemblies_in_each_others_place(stillframe, tmp_path_factory, tmp_path):
    """An assembly whose Module and code are where those of an unloaded one were has its own names."""
    program = compile_program(tmp_path_factory.mktemp("reused"), "Reused")
    target = Target(["sh", "-c", "ulimit -v 2000000; exec \"$@\"", "sh", "dotnet", program, "assembly", "30", "3500"],
                    env={**os.environ, "TMPDIR": str(tmp_path), "DOTNET_GCHeapHardLimit": "0x8000000"})
    path = tmp_path / "r.sfr"
    done, recording = stillframe.record(path, "-e", "signal", "-p", target.pid, "-d", "2s", "-F", "199")
    target.end()
    done.ok()
    right, wrong = named_by_caller(stillframe, path)
    assert right and not wrong, (right, wrong)


def test_doctor(stillframe, work):
    """It names the version, and that its frames are shown."""
    out = stillframe("doctor", "-p", work().pid).ok().out
    assert re.search(r"\.NET 10\.\S+: its frames are shown", out), out

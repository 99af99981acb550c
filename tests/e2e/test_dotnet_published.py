# SPDX-License-Identifier: Apache-2.0
"""Programs of .NET as they are published (tests/programs/dotnet/Hello.cs and Work.cs): in a single file, with PDBs beside it or in the
assembly, with the class library in one precompiled image, compiled to native code, with its debug data and without; and the
comparison with the runtime's own debugging library. Publishing needs packages from NuGet: without them these tests are skipped."""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

import hanging
from conftest import HERE, need
from processes import Target, until
from test_dotnet import PARKED, check_chain, line_of, stacks_of
from test_dotnet_async import CHAINS, UNKNOWN, chains_of

JUDGE = os.path.join(HERE, "../judges/dotnet.py")
PROJECT = """<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><OutputType>Exe</OutputType><TargetFramework>net%d.0</TargetFramework>
<RuntimeIdentifier>linux-%sx64</RuntimeIdentifier><InvariantGlobalization>true</InvariantGlobalization>
<EnableDefaultCompileItems>false</EnableDefaultCompileItems>%s</PropertyGroup>
<ItemGroup><Compile Include="%s"/></ItemGroup></Project>"""
SINGLE = "<SelfContained>true</SelfContained><PublishSingleFile>true</PublishSingleFile>"
EMBEDDED = "<DebugType>embedded</DebugType>"


def publish(folder, properties, name="Hello", libc="", version=10):
    need("dotnet")
    project = folder / "project"
    project.mkdir()
    (project / (name + ".csproj")).write_text(PROJECT % (version, libc, properties, os.path.abspath(os.path.join(HERE, "../programs/dotnet", name + ".cs"))))
    scratch = folder / "scratch"
    scratch.mkdir()
    # No server of the build is left running, and its files are in the scratch folder.
    done = subprocess.run(["dotnet", "publish", "-c", "Release", "-v", "q", "-nodeReuse:false", "-p:UseSharedCompilation=false", "-o", folder / "out"],
                          cwd=project, capture_output=True, text=True, timeout=600,
                          env={**os.environ, "DOTNET_CLI_TELEMETRY_OPTOUT": "1", "DOTNET_NOLOGO": "1", "TMPDIR": str(scratch)})
    if "NU1101" in done.stdout or "NU1301" in done.stdout:
        pytest.skip("packages of .NET cannot be had: " + done.stdout.strip().splitlines()[0])
    assert done.returncode == 0, done.stdout
    # The PDB where the compiler wrote it is not what is looked for here.
    subprocess.run(["rm", "-r", project, scratch], check=True)
    return folder / "out" / name


@pytest.mark.long
@pytest.mark.parametrize("properties", [SINGLE, SINGLE + EMBEDDED,
                                        SINGLE + EMBEDDED + "<EnableCompressionInSingleFile>true</EnableCompressionInSingleFile>"],
                         ids=["PDB beside", "PDB in it", "compressed"])
def test_lines_in_a_single_file(stillframe, tmp_path, properties):
    """The assembly has no file of its own: its image in memory leads to the lines."""
    target = Target([publish(tmp_path, properties)], env={**os.environ, "TMPDIR": str(tmp_path)})

    def worker():
        threads = {thread["name"]: thread for thread in stillframe.dump(target.pid)["threads"]}
        return [(frame["function"], frame["line"]) for frame in threads["worker"]["frames"] if frame["function"].startswith("Demo.")]
    try:
        frames = until(lambda: worker()[:2] if len(worker()) > 2 else None, "the thread waits")
        assert frames == [("Demo.Hello.Leaf()", line_of("Leaf", "Hello")), ("Demo.Hello.Middle<__Canon>(__Canon)", line_of("Middle", "Hello"))]
    finally:
        target.end()


@pytest.mark.long
@pytest.mark.parametrize("version", [9, 8])
def test_lines_of_older_versions(stillframe, tmp_path, version):
    """They pack the maps from code to lines in another way than .NET 10. These lines are not the first ones of their methods."""
    program = publish(tmp_path, "<SelfContained>true</SelfContained>" + EMBEDDED, "Work", version=version)
    target = Target([program], env={**os.environ, "TMPDIR": str(tmp_path)}, nice=True)

    def lines(name):
        threads = {thread["name"]: thread for thread in stillframe.dump(target.pid)["threads"]}
        frames = threads[name]["frames"] if name in threads else []
        return [(frame["function"], frame["line"]) for frame in frames if frame["function"].startswith("Demo.Work.")]
    try:
        for name, method, comment in (("caught", "Demo.Work.Catch()", "Catch"), ("finally", "Demo.Work.Finally()", "Finally")):
            found = until(lambda: lines(name)[:2] if len(lines(name)) > 1 else None, "the thread waits")
            assert found == [("Demo.Work.Park()", line_of("Park")), (method, line_of(comment))]
    finally:
        target.end()


@pytest.mark.long
def test_the_class_library_in_one_image(stillframe, tmp_path):
    """Composite ReadyToRun: stacks are whole, and the library's methods have their names, precompiled as they are."""
    properties = "<SelfContained>true</SelfContained><PublishReadyToRun>true</PublishReadyToRun>" \
        "<PublishReadyToRunComposite>true</PublishReadyToRunComposite>"
    program = publish(tmp_path, properties, "Work")
    assert (program.parent / "Work.r2r.dll").exists() and not (program.parent / "System.Private.CoreLib.dll").stat().st_size > 5e7
    target = Target([program, "busy"], env={**os.environ, "TMPDIR": str(tmp_path)}, nice=True)
    try:
        done, recording = stillframe.record(tmp_path / "r.sfr", "-p", target.pid, "-d", "1.5s", "-F", "797")
        done.ok()
        stacks = stacks_of(stillframe, tmp_path / "r.sfr")
        whole = sum(weight for stack, weight in stacks if not any(frame.startswith("[cut") for frame in stack))
        assert whole >= 0.99 * sum(weight for _, weight in stacks)
        check_chain(stacks)
        frames = [frame for thread in stillframe.dump(target.pid)["threads"] for frame in thread["frames"]]
        assert ("System.Threading.Thread.StartCallback()", "precompiled") in {(f["function"], f["kind"]) for f in frames}
        assert not [f for f in frames if "unknown .NET" in f["function"]]
    finally:
        target.end()


@pytest.fixture
def musl(tmp_path):
    """The environment in which a program for musl runs here: Debian has no C++ library for it, so the one for glibc is taken."""
    compiler, = need("musl-gcc")
    folder = tmp_path / "musl"
    folder.mkdir()
    for library in ("libstdc++.so.6", "libgcc_s.so.1"):
        found = glob.glob("/usr/lib/x86_64-linux-gnu/" + library) or glob.glob("/lib/x86_64-linux-gnu/" + library)
        if not found:
            pytest.skip("there is no " + library)
        shutil.copy(found[0], folder)
    (folder / "empty.c").write_text("")
    for source, made in ((os.path.join(HERE, "../programs/dotnet/musl.c"), "libmissing.so"), (folder / "empty.c", "ld-linux-x86-64.so.2")):
        subprocess.run([compiler, "-shared", "-fPIC", "-O2", source, "-o", folder / made], check=True)
    return ["env", "LD_PRELOAD=%s/libmissing.so" % folder, "LD_LIBRARY_PATH=%s" % folder]


@pytest.mark.long
def test_musl(stillframe, musl, tmp_path):
    """All frames are there, from the thread's first function on; but in the handler of a fault, on a stack of its own, they may be cut."""
    program = publish(tmp_path, "<SelfContained>true</SelfContained>", "Work", "musl-")
    target = Target([*musl, program, "busy"], env={**os.environ, "TMPDIR": str(tmp_path)}, nice=True)
    try:
        done, recording = stillframe.record(tmp_path / "r.sfr", "-p", target.pid, "-d", "1.5s", "-F", "797")
        done.ok()
        threads = {thread["name"]: thread for thread in stillframe.dump(target.pid)["threads"]}
        refused = stillframe("record", "-e", "signal", "-p", target.pid, "-d", "1s", "-o", tmp_path / "s.sfr").fails()
        assert "libc is another one" in " ".join(refused.err.split()), refused
        target.assert_moves()
    finally:
        target.end()
    stacks = stacks_of(stillframe, tmp_path / "r.sfr")
    check_chain(stacks)
    others = [(stack, weight) for stack, weight in stacks if stack[0] != "faults"]
    whole = sum(weight for stack, weight in others if not any(frame.startswith("[cut") for frame in stack))
    assert whole >= 0.99 * sum(weight for _, weight in others)
    for name, (functions, comments) in PARKED.items():
        found = [(frame["function"], frame["line"]) for frame in threads[name]["frames"] if frame["function"].startswith("Demo.")]
        assert found[:len(functions)] == [(f, line_of(c)) for f, c in zip(functions, comments)], (name, found)
        assert threads[name]["end"] == "root", threads[name]["end"]


@pytest.mark.long
@pytest.mark.parametrize("engine", ["perf", "ptrace"])
def test_native_aot(stillframe, tmp_path, engine):
    """Compiled to native code: names as C# has them, lines, and whole stacks in epilogues, under faults and exceptions."""
    target = Target([publish(tmp_path, "<PublishAot>true</PublishAot>", "Work"), "busy"], nice=True)
    try:
        threads = {thread["name"]: thread for thread in stillframe.dump(target.pid)["threads"]}
        for name in set(PARKED) - {"nested"}:   # whose methods call the next one by a jump
            functions, comments = PARKED[name]
            found = [(frame["function"], frame["line"]) for frame in threads[name]["frames"] if frame["function"].startswith("Demo.")]
            assert found[:len(functions)] == [(f, line_of(c)) for f, c in zip(functions, comments)], (name, found)
            assert threads[name]["end"] == "root", threads[name]
        frames = [frame["function"] for thread in threads.values() for frame in thread["frames"]]
        assert {"Demo.Work.Main.lambda#0()", "Demo.Work.Numbers()", "System.Threading.Monitor.Enter(object)"} <= set(frames), frames
        done, recording = stillframe.record(tmp_path / "r.sfr", "-e", engine, "-p", target.pid, "-d", "3s", "-F", "997")
        done.ok()
    finally:
        target.end()
    stacks = stacks_of(stillframe, tmp_path / "r.sfr")
    whole = sum(weight for stack, weight in stacks if not any(frame.startswith("[cut") for frame in stack))
    assert whole >= 0.995 * sum(weight for _, weight in stacks)
    check_chain([(stack, weight) for stack, weight in stacks if "Demo.Work.Leaf(int)" in stack])
    thrown = [stack for stack, _ in stacks if "RhpThrowHwEx" in stack]
    assert thrown and all("Demo.Work.Faults()" in stack[:stack.index("RhpThrowHwEx")] for stack in thrown), thrown


@pytest.mark.long
@pytest.mark.parametrize("version", [10, 9, 8])
def test_native_aot_without_debug_data(stillframe, tmp_path, version):
    """The program alone, as it is deployed: methods have their names, and a recording keeps them when the program is gone."""
    program = publish(tmp_path, "<PublishAot>true</PublishAot>", "Work", version=version)
    os.remove(str(program) + ".dbg")
    target = Target([program, "busy"], nice=True)
    try:
        threads = [[frame["function"] for frame in thread["frames"]] for thread in stillframe.dump(target.pid)["threads"]]
        done, recording = stillframe.record(tmp_path / "r.sfr", "-p", target.pid, "-d", "1.5s", "-F", "797")
        done.ok()
    finally:
        target.end()
    os.remove(program)
    # Before .NET 10 its threads have no names that the system shows.
    demo = [[function for function in frames if function.startswith("Demo.")] for frames in threads]
    for name in set(PARKED) - {"nested"}:   # whose methods call the next one by a jump
        functions, _ = PARKED[name]
        assert [found for found in demo if found[:len(functions)] == functions], (name, demo)
    functions = {function for frames in threads for function in frames}
    assert {"Demo.Work.Main.lambda#0()", "Demo.Work.Numbers()", "System.Threading.Thread.Sleep(int)"} <= functions, functions
    assert not [function for function in functions if function.startswith("Demo.") and re.search("[^A-Za-z0-9_.#<>(), \\[\\]]", function)], functions
    check_chain(stacks_of(stillframe, tmp_path / "r.sfr"))


@pytest.mark.long
@pytest.mark.parametrize("environment", [{}, {"DOTNET_ReadyToRun": "0"}], ids=["usual", "no precompiled code"])
def test_dotnet_8_from_its_start(stillframe, tmp_path, environment):
    """It describes nothing of itself, and less than nothing while it starts: its frames and awaiters are there, with arguments of generic
    types and methods."""
    program = publish(tmp_path, "<SelfContained>true</SelfContained>", "Async", version=8)
    path = tmp_path / "r.sfr"
    recording = subprocess.Popen([stillframe.path, "record", "--async", "-e", "ptrace", "-F", "499", "--max-cost", "50", "-o", path, "--", program],
                                 env={**os.environ, "TMPDIR": str(tmp_path), **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until(lambda: subprocess.run(["pgrep", "-P", str(recording.pid)], capture_output=True, text=True).stdout.split(), "the program runs")
    pid, *_ = subprocess.run(["pgrep", "-P", str(recording.pid)], capture_output=True, text=True).stdout.split()
    time.sleep(12)
    os.kill(int(pid), signal.SIGTERM)
    said = recording.communicate(timeout=60)[0]
    assert "no .NET frames" not in said, said
    chains = chains_of(stillframe, path)
    for function in ("OfChain()", "OfAll()"):
        known = [chain for chain in chains[function] if UNKNOWN not in chain]
        truth = tuple(CHAINS[function])
        assert truth in known and all(chain == truth[:len(chain)] for chain in known), (function, chains[function])


@pytest.mark.long
def test_the_same_frames_as_the_runtimes_own_debugging_library(stillframe, tmp_path):
    """In a few moments of a mixture of work, and of threads that wait."""
    need("dotnet")
    done = hanging.run([sys.executable, JUDGE, "--stillframe", stillframe.path, "--folder", tmp_path, "--versions", "10", "--moments", "8",
                        "--programs", "Mixture 1,Blocked", "--show", "3"], 900)
    if re.search("NU1[13]01", done.stdout + done.stderr):
        pytest.skip("packages of .NET cannot be had")
    assert done.returncode == 0, done.stdout + done.stderr

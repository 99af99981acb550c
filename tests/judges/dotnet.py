#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares stillframe's .NET frames with those of the runtime's own debugging library (ClrMD, clrmd/clrmd.cs) on the same threads.

    tests/judges/dotnet.py --stillframe BUILD/stillframe --folder FOLDER [--versions 8,9,10] [--moments N]

The programs are built into FOLDER once: with the SDK, and packages from NuGet. Each is stopped by SIGSTOP at random moments; both look at
it; /proc proves that no thread moved between the first look and the last. Each thread with managed frames on either side is one sample.
A sample is equal if both have the same managed frames in the same order: with the same pc, and with the name of the same method. Of a
method that has called native code ClrMD's pc is what the runtime noted: there the method alone is compared.

Where ClrMD is known to have less, that is counted apart, as `less`: it shows no frames of a thread in a helper without an explicit frame,
and not the methods on top of a native caller that they were called by. Its frames must all be among stillframe's, in their order, and
stillframe's stack must be whole.

Exit status: 0 if enough is equal, 1 if not.
"""
import argparse
import collections
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "../programs/dotnet")
ENOUGH = 99.9
ENVIRONMENT = {**os.environ, "DOTNET_CLI_TELEMETRY_OPTOUT": "1", "DOTNET_NOLOGO": "1"}

# `on_native`: what it has called is native code; `sp`: of ClrMD's frames
Frame = collections.namedtuple("Frame", "pc name on_native sp", defaults=(None,))

PROJECT = """<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><OutputType>Exe</OutputType><TargetFramework>net%d.0</TargetFramework>
<RuntimeIdentifier>linux-x64</RuntimeIdentifier><SelfContained>true</SelfContained><InvariantGlobalization>true</InvariantGlobalization>
<AllowUnsafeBlocks>true</AllowUnsafeBlocks><EnableDefaultCompileItems>false</EnableDefaultCompileItems></PropertyGroup>
<ItemGroup><Compile Include="%s"/></ItemGroup></Project>"""


# --- what is compared ----------------------------------------------------------------------------


@contextlib.contextmanager
def scratch():
    """Processes of .NET that are started meanwhile have their temporary files, such as sockets and pipes for diagnosis, in a folder that is
    removed at the end: one that is killed leaves them."""
    with tempfile.TemporaryDirectory() as folder:
        ENVIRONMENT["TMPDIR"] = folder
        try:
            yield
        finally:
            del ENVIRONMENT["TMPDIR"]


def run_sdk(*arguments, **how):
    """Runs a command of .NET's SDK: no server of the build is left running, and its files in the folder for temporary ones are removed."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["dotnet", *arguments], check=True, stdout=sys.stderr,
                       env={**ENVIRONMENT, "MSBUILDDISABLENODEREUSE": "1", "UseSharedCompilation": "false", "TMPDIR": folder}, **how)


def build(folder, name, version):
    """A program with a runtime of its own; built once."""
    output = os.path.join(folder, "%s-%d" % (name, version))
    program = os.path.join(output, name)
    if not os.path.exists(program):
        project = os.path.join(folder, "project-%s-%d" % (name, version))
        os.makedirs(project, exist_ok=True)
        with open(os.path.join(project, name + ".csproj"), "w") as file:
            file.write(PROJECT % (version, os.path.abspath(os.path.join(PROGRAMS, name + ".cs"))))
        run_sdk("publish", "-c", "Release", "-v", "q", "-o", output, cwd=project)
    return program


def build_judge(folder):
    output = os.path.join(folder, "clrmd")
    if not os.path.exists(os.path.join(output, "clrmd.dll")):
        run_sdk("build", "-c", "Release", "-v", "q", "-o", output, "--property:BaseIntermediateOutputPath=%s/" % os.path.join(folder, "clrmd-obj"),
                os.path.join(HERE, "clrmd"))
    return os.path.join(output, "clrmd.dll")


class Judge:
    def __init__(self, path):
        self.process = subprocess.Popen(["dotnet", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)

    def look(self, pid):
        """{thread: its managed frames}"""
        self.process.stdin.write("%d\n" % pid)
        self.process.stdin.flush()
        stacks = {}
        for thread in json.loads(self.process.stdout.readline()):
            frames = [frame for frame in thread["frames"] if frame["kind"] == "ManagedMethod" and frame["method"]]
            stacks[thread["tid"]] = [Frame(frame["pc"], (frame["type"], frame["method"]), False, frame["sp"]) for frame in frames]
        return stacks

    def end(self):
        self.process.stdin.close()
        self.process.wait(30)


def look(stillframe, pid):
    """{thread: (its managed frames, how its stack ends, the innermost function)}"""
    done = subprocess.run([stillframe, "dump", "-p", str(pid), "--json", "--max-depth", "16384"], capture_output=True, text=True,
                          check=True)
    stacks = {}
    for thread in json.loads(done.stdout)["threads"]:
        frames, on_native = [], True
        for frame in thread["frames"]:
            if frame["inlined"]:
                continue
            if frame["kind"] in ("native", "stub"):
                on_native = on_native or frame["kind"] == "native"
                continue
            frames.append(Frame(int(frame["pc"], 16), frame["function"], on_native))
            on_native = False
        stacks[thread["tid"]] = (frames, thread["end"], thread["frames"][0]["function"] if thread["frames"] else "")
    return stacks


# --- the comparison ------------------------------------------------------------------------------


def is_same_method(written, names):
    """`written`: as stillframe writes it, where a property's accessor is `Property.get`; `names`: ClrMD's of the type and of the method.
    Methods that the compiler made have names of their own with both."""
    kind, method = names
    if re.search(r"(^|[+.])<", kind) or method.startswith("<"):
        return True
    plain = written.split("(")[0]
    while "<" in plain and ">" in plain:
        plain, n = re.subn(r"<[^<>]*>", "", plain)
        if not n:
            break
    parts = plain.split(".")
    return method.split("[[")[0].split(".")[-1] in (parts[-1], "_".join(parts[:-3:-1]))


def is_same(ours, theirs):
    return (ours.pc == theirs.pc or ours.on_native) and is_same_method(ours.name, theirs.name)


def is_part(theirs, ours):
    """Whether all of theirs are among ours, in order."""
    rest = iter(ours)
    return all(any(is_same(frame, other) for frame in rest) for other in theirs)


def verdict(ours, whole, theirs):
    if len(ours) == len(theirs) and all(map(is_same, ours, theirs)):
        return "equal"
    if len(theirs) < len(ours) and whole and is_part(theirs, ours):
        return "less"
    return "different"


# --- the moments ---------------------------------------------------------------------------------


def tasks(pid):
    return sorted(int(tid) for tid in os.listdir("/proc/%d/task" % pid))


def state(pid, tid):
    with open("/proc/%d/task/%d/stat" % (pid, tid)) as file:
        return file.read().rpartition(")")[2].split()[0]


def places(pid):
    """Where each thread stands."""
    found = {}
    for tid in tasks(pid):
        with open("/proc/%d/task/%d/syscall" % (pid, tid)) as file:
            found[tid] = file.read().split()[-2:]
    return found


def wait_until_stopped(pid):
    """A thread that was let go by a tracer stops again."""
    end = time.monotonic() + 10
    while any(state(pid, tid) not in "Tt" for tid in tasks(pid)):
        if time.monotonic() > end:
            raise SystemExit("the program does not stop")
        time.sleep(0.001)


def without_strangers(theirs, places):
    """ClrMD shows the innermost frame of a thread that runs managed code also as one of threads of the background collector. Stacks are
    disjoint: what is at another thread's pc and stack pointer is that thread's."""
    owners = {(int(place[1], 16), int(place[0], 16)): tid for tid, place in places.items() if len(place) == 2}
    return {tid: frames for tid, frames in theirs.items() if not frames or owners.get((frames[0].pc, frames[0].sp), tid) == tid}


def moment(pid, stillframe, judge, counts, examples):
    """One more moment. Returns the number of samples."""
    states = {tid: state(pid, tid) for tid in tasks(pid)}
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until_stopped(pid)
        before = places(pid)
        ours, theirs = look(stillframe, pid), without_strangers(judge.look(pid), before)
        wait_until_stopped(pid)
        after = places(pid)
        moved = {tid: (place, after.get(tid)) for tid, place in before.items() if after.get(tid) != place}
        if moved:
            raise SystemExit("threads have moved: %s" % moved)
    finally:
        os.kill(pid, signal.SIGCONT)
    for tid in set(ours) | set(theirs):
        mine, end, leaf = ours.get(tid, ([], "", ""))
        its = theirs.get(tid, [])
        if not mine and not its:
            continue
        kind = "running" if states.get(tid) == "R" else "parked"
        found = verdict(mine, end == "root", its)
        counts[kind, found] += 1
        if found != "equal":
            examples[kind, found].append(("%s in %s" % (end, leaf), mine, its))


def compare(command, stillframe, judge, n, counts, examples):
    target = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        target.stdout.readline()
        for _ in range(n):
            time.sleep(random.uniform(0.01, 0.1))
            moment(target.pid, stillframe, judge, counts, examples)
    finally:
        target.kill()
        target.wait()


def show(examples, n):
    for (kind, found), stacks in examples.items():
        for what, ours, theirs in random.sample(stacks, min(n, len(stacks))):
            print("  %s, %s: %s" % (kind, found, what))
            for i in range(max(len(ours), len(theirs))):
                mine = "%x %s" % ours[i][:2] if i < len(ours) else ""
                its = "%x %s.%s" % (theirs[i].pc, *theirs[i].name) if i < len(theirs) else ""
                print("    %-90.90s | %.90s" % (mine, its))


def judge_all(given, folder):
    judge = Judge(build_judge(folder))
    fine = True
    for version in map(int, given.versions.split(",")):
        for words in given.programs.split(","):
            name, *arguments = words.split()
            counts, examples = collections.Counter(), collections.defaultdict(list)
            compare([build(folder, name, version), *arguments], given.stillframe, judge, given.moments, counts, examples)
            for kind in ("running", "parked"):
                equal, less, different = (counts[kind, found] for found in ("equal", "less", "different"))
                n = equal + less + different
                if n:
                    print(".NET %d, %s: %s threads: %d samples, %d equal, in %d ClrMD has less, %d different: %.3f %%" %
                          (version, name, kind, n, equal, less, different, 100 * (n - different) / n), flush=True)
                    fine = fine and 100 * (n - different) / n >= ENOUGH
            show(examples, given.show)
    judge.end()
    return fine


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stillframe", required=True)
    parser.add_argument("--folder", required=True, help="for what is built; kept")
    parser.add_argument("--versions", default="8,9,10")
    parser.add_argument("--programs", default="Mixture 3,Work busy,Blocked")
    parser.add_argument("--moments", type=int, default=20, help="of each program")
    parser.add_argument("--show", type=int, default=0, help="examples of what is not equal")
    given = parser.parse_args()
    folder = os.path.abspath(given.folder)
    os.makedirs(folder, exist_ok=True)
    with scratch():
        return 0 if judge_all(given, folder) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Managed frames beside those of ClrMD (tests/judges/dotnet.py), in programs as they are used: a mixture of JSON, regular expressions, LINQ, async and
sorting; a service of ASP.NET Core under load on the loopback; `dotnet build` of a solution in C# and F#; a formatter (CSharpier) over a tree of sources. Packages
are needed from NuGet.

    dotnet_frames.py --folder FOLDER [--seconds N] [--versions 10,9,8] [--programs NAME,...] [--settings NAME,...]

--folder     for what is built; kept
--seconds    of each program in each version and setting (60 unless told)
--programs   mixture, web, build, format; the last two run on the SDK's own version only
--settings   usual, no tiers, no PGO, no precompiled code

A sample is a thread at a moment, as in the judge; one that runs at the moment is `running`. The sums are at the end. Exit status 1 with less than
99.9 % of equal samples of running threads, less than all of parked ones, or less than 99.9 % of whole stacks."""
import argparse
import collections
import contextlib
import glob
import http.client
import json
import threading

from dotnet_common import *

SETTINGS = {
    "usual": {},
    "no tiers": {"DOTNET_TieredCompilation": "0"},
    "no PGO": {"DOTNET_TieredPGO": "0"},
    "no precompiled code": {"DOTNET_ReadyToRun": "0"},
}
CLIENTS = 4
N_PROJECTS, N_FILES = 4, 40         # of the solution: C#, and one more in F#
N_TREE = 2000                       # files of the tree
FORMATTER = "1.3.0"                 # CSharpier's version
WARM = 1.5                          # seconds from a process's start: before them a runtime has nothing to look at

FSHARP = """<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
<ItemGroup>%s<ProjectReference Include="../Part0/Part0.csproj"/></ItemGroup></Project>"""
LIBRARY = """<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>%s</Project>"""


# --- programs: each is a context that gives a function, which gives the processes to look at ---------


def environment(setting):
    return {**{name: value for name, value in judges.ENVIRONMENT.items() if name != "STILLFRAME"}, **SETTINGS[setting]}


@contextlib.contextmanager
def running(command, setting, **options):
    process = subprocess.Popen(command, env=environment(setting), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               start_new_session=True, **options)
    try:
        yield process
    finally:
        # Its children, too: they have the session that was made for it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def mixture(folder, version, setting):
    with running([judges.build(folder, "Mixture", version), "8"], setting) as process:
        process.stdout.readline()
        yield lambda: [process.pid]


def ask(port, over):
    """A client, until it is told to stop, or the service is gone."""
    rows = json.dumps([{"number": i, "name": "n", "values": [i, 0.5]} for i in range(50)])
    requests = [("GET", "/rows/100", None), ("GET", "/later/50", None), ("POST", "/sum", rows), ("GET", "/text", None)]
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while not over.is_set():
            for method, path, body in requests:
                connection.request(method, path, body, {"Content-Type": "application/json"})
                connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        pass


@contextlib.contextmanager
def web(folder, version, setting):
    with running([publish_web(folder, version)], setting) as process:
        port, over = int(process.stdout.readline()), threading.Event()
        clients = [threading.Thread(target=ask, args=(port, over), daemon=True) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        try:
            yield lambda: [process.pid]
        finally:
            over.set()


def write_source(path, name, n):
    with open(path, "w") as file:
        file.write("using System;using System.Linq;namespace Made{public class %s{public int Value{get;set;}\n" % name)
        for i in range(n):
            file.write("public int M%d(int a,string b){var q=Enumerable.Range(0,a).Where(x=>x%%3==%d).Select(x=>new{x,y=b+x}).ToList();\n"
                       "if(a>3&&b!=null||q.Count==0){for(int i=0;i<a;i++){Value+=q.Count*i;}}else{switch(a){case 1:return 2;default:break;}}\n"
                       "return q.Sum(e=>e.x)+(b??\"none\").Length;}\n" % (i, i % 3))
        file.write("}}\n")


def write_fsharp(path, name, n):
    with open(path, "w") as file:
        file.write("module Made.%s\nopen System\ntype Kind = One of int | Two of string * int | Three\n" % name)
        for i in range(n):
            file.write("let rec f%d (a: int) (items: Kind list) =\n    match items with\n    | One n :: rest when n > %d -> f%d (a + n) rest\n"
                       "    | Two(s, n) :: rest -> [ for x in 0 .. n -> x * s.Length ] |> List.filter (fun x -> x %% 2 = 0) |> List.sum\n"
                       "    | _ :: rest -> f%d a rest\n    | [] -> a\n" % (i, i, i, i))


def make_solution(folder):
    top = os.path.join(folder, "solution-mixed")
    if os.path.exists(os.path.join(top, "All.slnx")):
        return top
    for i in range(N_PROJECTS):
        project = os.path.join(top, "Part%d" % i)
        os.makedirs(project, exist_ok=True)
        before = '<ItemGroup><ProjectReference Include="../Part%d/Part%d.csproj"/></ItemGroup>' % (i - 1, i - 1) if i else ""
        with open(os.path.join(project, "Part%d.csproj" % i), "w") as file:
            file.write(LIBRARY % before)
        for k in range(N_FILES):
            write_source(os.path.join(project, "C%d_%d.cs" % (i, k)), "C%d_%d" % (i, k), 30)
    os.makedirs(os.path.join(top, "Sharp"), exist_ok=True)
    for k in range(N_FILES):
        write_fsharp(os.path.join(top, "Sharp", "S%d.fs" % k), "S%d" % k, 30)
    with open(os.path.join(top, "Sharp", "Sharp.fsproj"), "w") as file:
        file.write(FSHARP % "".join('<Compile Include="S%d.fs"/>' % k for k in range(N_FILES)))
    with open(os.path.join(top, "All.slnx"), "w") as file:
        file.write("<Solution>%s<Project Path=\"Sharp/Sharp.fsproj\"/></Solution>" %
                   "".join('<Project Path="Part%d/Part%d.csproj"/>' % (i, i) for i in range(N_PROJECTS)))
    return top


def session(leader):
    """The processes of a session that have run for long enough, and are programs of .NET."""
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            with open(path) as file:
                fields = file.read().rpartition(")")[2].split()
            pid, age = int(path.split("/")[2]), time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
            with open("/proc/%d/maps" % pid) as file:
                if int(fields[3]) == leader and age > WARM and "libcoreclr.so" in file.read():
                    found.append(pid)
    return found


@contextlib.contextmanager
def over_and_over(command, setting, cwd):
    """As often as it ends. The files are as they were before, since none of them is written."""
    with running(["sh", "-c", 'while :; do "$@" >/dev/null 2>&1; done', "sh", *command], setting, cwd=cwd) as process:
        yield lambda: session(process.pid)


def build(folder, _, setting):
    return over_and_over(["dotnet", "build", "--no-incremental", "-m:2", "-nodeReuse:false", "-p:UseSharedCompilation=false", "All.slnx"], setting,
                         make_solution(folder))


def formatter(folder, _, setting):
    tools, tree = os.path.join(folder, "tools"), os.path.join(folder, "tree")
    if not os.path.exists(os.path.join(tools, "csharpier")):
        subprocess.run(["dotnet", "tool", "install", "csharpier", "--version", FORMATTER, "--tool-path", tools], check=True, stdout=sys.stderr,
                       env=environment("usual"))
    if not os.path.exists(tree):
        os.makedirs(tree + ".new")
        for i in range(N_TREE):
            write_source(os.path.join(tree + ".new", "T%d.cs" % i), "T%d" % i, 10 + i % 50)
        os.rename(tree + ".new", tree)
    return over_and_over([os.path.join(tools, "csharpier"), "check", "."], setting, tree)


# Name: the context, and whether it runs on each version. To add a program: a line.
PROGRAMS = {"mixture": (mixture, True), "web": (web, True), "build": (build, False), "format": (formatter, False)}


# --- the moments ---------------------------------------------------------------------------------


class Whole:
    """Counts stacks that end with the thread's first function, as the judge looks at them."""

    def __init__(self):
        self.n = self.whole = 0
        self.ends = collections.Counter()
        self.look = judges.look

    def __call__(self, stillframe, pid):
        stacks = self.look(stillframe, pid)
        for frames, end, leaf in stacks.values():
            self.n += bool(frames)
            self.whole += bool(frames) and end == "root"
            if frames and end != "root":
                self.ends["%s in %s" % (end, leaf)] += 1
        return stacks


def watch(program, folder, version, setting, seconds, whole, show):
    """(counts, processes that could not be looked at): one that ends meanwhile, or starts."""
    counts, examples, missed = collections.Counter(), collections.defaultdict(list), 0
    judge = judges.Judge(judges.build_judge(folder))
    with program(folder, version, setting) as processes:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(judges.random.uniform(0.01, 0.1))
            found = processes()
            if not found:
                continue
            try:
                judges.moment(judges.random.choice(found), STILLFRAME, judge, counts, examples)
            except (json.JSONDecodeError, BrokenPipeError, OSError, subprocess.CalledProcessError, SystemExit):
                missed += 1
                judge.process.kill()
                judge.process.wait()
                judge = judges.Judge(judges.build_judge(folder))
    judge.end()
    judges.show(examples, show)
    return counts, missed


def row(name, counts, kind):
    equal, less, different = (counts[kind, found] for found in ("equal", "less", "different"))
    n = equal + less + different
    return [name, kind, "%d" % n, "%d" % equal, "%d" % less, "%d" % different, "%.3f %%" % (100 * (n - different) / n if n else 0)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--versions", default="10,9,8")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--show", type=int, default=0, help="examples of what is not equal")
    given = parser.parse_args()
    folder = os.path.abspath(given.folder)
    os.makedirs(folder, exist_ok=True)
    whole = judges.look = Whole()
    sums, rows = collections.Counter(), []
    for program in given.programs.split(","):
        context, each = PROGRAMS[program]
        for version in map(int, given.versions.split(",")) if each else [10]:
            for setting in given.settings.split(","):
                counts, missed = watch(context, folder, version, setting, given.seconds, whole, given.show)
                sums.update(counts)
                name = "%s, .NET %d, %s" % (program, version, setting)
                rows += [row(name, counts, kind) for kind in ("running", "parked")]
                print("%s: %d samples, %d different%s" % (name, sum(counts.values()), counts["running", "different"] + counts["parked", "different"],
                                                          ", %d moments missed" % missed if missed else ""), flush=True)
    rows += [row("all", sums, kind) for kind in ("running", "parked")]
    table("Managed frames beside ClrMD's", rows, ["program", "threads", "samples", "equal", "ClrMD has less", "different", "equal or more"])
    print("\n%d stacks with managed frames, %.3f %% whole%s" % (whole.n, 100 * whole.whole / max(1, whole.n),
                                                               "".join("; %d %s" % (n, end) for end, n in whole.ends.most_common(5))))
    n = sum(sums["running", found] for found in ("equal", "less", "different"))
    return 0 if n and sums["running", "different"] <= n / 1000 and not sums["parked", "different"] and whole.whole >= 0.999 * whole.n else 1


with judges.scratch():
    status = main()
sys.exit(status)

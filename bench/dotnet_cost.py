#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs a .NET program to be watched, at 99 and at 999 Hz, by stillframe from outside and from inside, by dotnet-trace (1,000 Hz, it has no
other rate) and by `perf record -g` with the runtime's perf map, in turns.

Of a service of ASP.NET Core under load (wrk, 8 connections): CPU time for a request, in the service, and in it and the tool together; requests per
second; the time in which 99 % of the requests are answered. The load begins when the tool has attached. The tool's CPU time is all of it, with its start
and its end. Of a program that does nothing but read the clock (tests/programs/dotnet/Clock.cs): its longest pause, with the tool's start and end.

dotnet_cost.py [ROUNDS [SECONDS]]: of load for each. A round of twelve ways with 8 s takes five minutes. The folder BUILD/bench/dotnet is for what is
built, and kept."""
import random

from dotnet_common import *

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
SECONDS = int(sys.argv[2]) if len(sys.argv) > 2 else 8
FOLDER = os.path.join(BENCH, "dotnet")
START, WARM = 2, 3                     # seconds: from a tool's start to the load; of load before it
CLOCK = 5                              # seconds for which pauses are looked for
REQUEST = "/rows/100"


def stillframe(rate, path, *options):
    return lambda pid, seconds: [STILLFRAME, "record", "-q", "-p", str(pid), "-F", str(rate), "-d", "%ds" % seconds, "-o", path, *options]


def perf(rate, path):
    return lambda pid, seconds: ["perf", "record", "-q", "-g", "-e", "cpu-clock", "-F", str(rate), "-p", str(pid), "-o", path, "--", "sleep", str(seconds)]


def trace(tool, path):
    return lambda pid, seconds: [tool, "collect", "-p", str(pid), "--duration", "00:00:%02d" % seconds, "-o", path]


def ways(folder):
    """{(rate, name): (command, variables of the program, the file that is written)}. To add one: a line."""
    path = os.path.join(folder, "recording")
    found = {("", "nothing"): (None, {}, None)}
    for rate in (99, 999):
        for engine in ("perf", "ptrace", "signal"):
            found[rate, "stillframe, " + engine] = stillframe(rate, path, "-e", engine), {}, path
        found[rate, "stillframe, signal, snapshots"] = stillframe(rate, path, "-e", "signal", "--dotnet-walk", "snapshot"), {}, path
        if have("perf"):
            found[rate, "perf record -g"] = perf(rate, path), {"DOTNET_PerfMapEnabled": "1", "DOTNET_PerfMapJitDumpPath": folder}, path
    tool = os.path.join(FOLDER, "tools", "dotnet-trace")
    if not os.path.exists(tool):
        judges.run_sdk("tool", "install", "dotnet-trace", "--tool-path", os.path.dirname(tool))
    found[1000, "dotnet-trace"] = trace(tool, path + ".nettrace"), {}, path + ".nettrace"
    return found


def cpu_of(pid):
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Tool:
    """A tool that watches a process until the block is left; then its CPU time (with its children's), its memory and the size of its file."""

    def __init__(self, command, path):
        self.command, self.path = command, path
        self.cpu = self.memory = self.size = 0

    def __enter__(self):
        if self.command:
            self.log = tempfile.TemporaryFile("w+")
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        return self

    def __exit__(self, *unused):
        if not self.command:
            return
        _, status, usage = os.wait4(self.process.pid, 0)
        self.log.seek(0)
        if status:
            sys.exit("%s: status %d\n%s" % (" ".join(self.command), status, self.log.read()[-2000:]))
        self.cpu, self.memory, self.size = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, os.path.getsize(self.path)
        os.unlink(self.path)


def load(port, seconds):
    """(requests, those in a second, ms in which 99 % were answered)"""
    _, text = run("wrk", "-t1", "-c8", "-d%ds" % seconds, "--latency", "http://127.0.0.1:%d%s" % (port, REQUEST))
    number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", text).groups()
    if "Non-2xx" in text:
        sys.exit(text)
    return (int(re.search(r"(\d+) requests in", text).group(1)), float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1)),
            float(number) * {"us": 0.001, "ms": 1, "s": 1000}[unit])


class Served:
    """What one way costs the service."""

    def __init__(self, program, command, variables, path):
        with Target(program, env={**judges.ENVIRONMENT, **variables}) as service:
            port = int(service.process.stdout.readline())
            load(port, WARM)
            with Tool(command and command(service.pid, SECONDS + START + 1), path) as tool:
                time.sleep(START)
                before = cpu_of(service.pid)
                n, self.rate, self.p99 = load(port, SECONDS)
                cpu = cpu_of(service.pid) - before
        self.target, self.tree = cpu / n * 1e6, (cpu + tool.cpu) / n * 1e6
        self.memory, self.size = tool.memory, tool.size


def longest_pause(program, command, variables, path):
    """ms"""
    with Target(program, str(CLOCK), wait=0, env={**judges.ENVIRONMENT, **variables}) as target:
        target.process.stdout.readline()
        with Tool(command and command(target.pid, CLOCK - 2), path):
            pass
        return int(re.search(r"gaps (\d+)", target.process.stdout.read()).group(1)) / 1000


def rows(results, pauses):
    nothing = results["", "nothing"]
    over = lambda each, what: "" if each is nothing else ratio([getattr(ran, what) / getattr(base, what) for ran, base in zip(each, nothing)])
    middle = lambda each, what: median([getattr(ran, what) for ran in each])
    for (rate, name), each in results.items():
        yield ("%s Hz" % rate if rate else "", name, "%.0f us" % middle(each, "target"), over(each, "target"), over(each, "tree"), over(each, "rate"),
               "%.2f ms" % middle(each, "p99"), "%.1f ms" % median(pauses[rate, name]), "%.0f MiB" % middle(each, "memory"),
               "%.0f KB" % (middle(each, "size") / 1000))


def main():
    os.makedirs(FOLDER, exist_ok=True)
    service, clock = publish_web(FOLDER, 10), judges.build(FOLDER, "Clock", 10)
    with tempfile.TemporaryDirectory() as folder:
        all_ways = ways(folder)
        results, pauses = ({way: [] for way in all_ways} for _ in range(2))
        for number in range(ROUNDS):
            for way in random.Random(number).sample(list(all_ways), len(all_ways)):
                results[way].append(Served(service, *all_ways[way]))
                pauses[way].append(longest_pause(clock, *all_ways[way]))
    table("A service of ASP.NET Core, medians of %d rounds of %d s (and all, from least to most)" % (ROUNDS, SECONDS), rows(results, pauses),
          ["rate", "with", "CPU time for a request", "over nothing", "with the tool's", "requests per second", "99 % of requests within", "longest pause",
           "tool's memory", "file"])


with judges.scratch():
    main()

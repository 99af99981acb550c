# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of the signal engine share: a command run with one of several profilers inside it or around it, its
cost by wait4, and what the profiler says it saw.

A peer is left out where it is not installed: gperftools' libprofiler.so, async-profiler where ASPROF_HOME names a build."""
import functools
import glob
import itertools
import json
import random
import struct

from common import *

AGENT = os.path.join(BUILD, "libstillframe-agent.so")
SCRATCH = tempfile.mkdtemp(prefix="stillframe-bench-")
numbers = itertools.count()


def new_file(suffix):
    return os.path.join(SCRATCH, "%d.%s" % (next(numbers), suffix))


def find_gperftools():
    found = glob.glob("/usr/lib/*/libprofiler.so.0") + glob.glob("/usr/lib/*/libprofiler.so")
    return found[0] if found else None


def find_async_profiler():
    path = os.path.join(os.environ.get("ASPROF_HOME", "/nonexistent"), "lib", "libasyncProfiler.so")
    return path if os.path.exists(path) else None


GPERFTOOLS, ASYNC_PROFILER = find_gperftools(), find_async_profiler()


class Run:
    """One run of a command: what it said, what it cost (user, system, wall seconds), and the profiler's file."""

    def __init__(self, command, environment, file, timeout=600):
        self.file = file
        start = time.monotonic()
        with tempfile.TemporaryFile("w+") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                       env={**os.environ, **environment}, cwd=SCRATCH)
            _, status, self.usage = os.wait4(process.pid, 0)
            process.returncode = status
            self.wall = time.monotonic() - start
            out.seek(0)
            self.said = out.read()
        if status:
            sys.exit("%s: status %d\n%s" % (" ".join(command), status, self.said[-2000:]))

    @property
    def cpu(self):
        return self.usage.ru_utime + self.usage.ru_stime

    @property
    def switches(self):
        return self.usage.ru_nvcsw + self.usage.ru_nivcsw

    def number(self, word):
        """The value behind this word in what the command said."""
        return float(re.search(r"\b%s ([\d.]+)" % word, self.said)[1])

    @functools.cached_property
    def report(self):
        return json.loads(run(STILLFRAME, "report", "--json", self.file)[1])

    @property
    def running(self):
        """Of the samples that speak for CPU time: those of threads that slept or waited for a CPU are ticks, too."""
        return next((state for state in self.report["states"] if state["state"] == "running"), {"ticks": 0, "samples": 0})


def bare(command, **unused):
    return Run(command, {}, None)


def inside(walk, **more):
    def start(command, rate, **options):
        file = new_file("sfs")
        words = {"out": file, "rate": "%ghz" % rate, "walk": walk, **more, **options}
        text = ",".join("%s=%s" % item for item in words.items())
        return Run(command, {"LD_PRELOAD": AGENT, "STILLFRAME": text}, file)
    return start


def outside(command, rate, *words):
    file = new_file("sfr")
    return Run([STILLFRAME, "record", "--engine", "ptrace", "-q", "-F", "%g" % rate, *words, "-o", file, "--", *command], {}, file)


def gperftools(command, rate, **unused):
    file = new_file("prof")
    return Run(command, {"LD_PRELOAD": GPERFTOOLS, "CPUPROFILE": file, "CPUPROFILE_FREQUENCY": "%g" % rate}, file)


def async_profiler(command, rate, **unused):
    file = new_file("collapsed")
    words = "start,event=ctimer,interval=%d,cstack=dwarf,collapsed,file=%s" % (1e9 / rate, file)
    return Run(command, {"LD_PRELOAD": ASYNC_PROFILER, "ASPROF_COMMAND": words}, file)


def samples_of_gperftools(path):
    """The sum of the counts in its binary file: five words of head, then (count, depth, pcs) up to (0, 1, 0)."""
    data = open(path, "rb").read()
    word = lambda at: struct.unpack_from("<Q", data, 8 * at)[0]
    at, n = 2 + word(1), 0
    while 8 * (at + 2) < len(data):
        count, depth = word(at), word(at + 1)
        if count == 0:
            break
        n, at = n + count, at + 2 + depth
    return n


def samples_of_async_profiler(path):
    return sum(int(line.rpartition(" ")[2]) for line in open(path) if line.strip())


def profilers(**more):
    """[(name, how to run under it, how to count what it saw in ticks)], those that are here. `more` are options of ours;
    ticks are to be counted with clock="cpu", as else a wait for a CPU takes its part of a sample's."""
    ours = lambda ran: ran.running["ticks"]
    found = [("stillframe, walk=handler", inside("handler", **more), ours), ("stillframe, walk=sampler", inside("sampler", **more), ours)]
    if GPERFTOOLS:
        found += [("gperftools", gperftools, lambda ran: samples_of_gperftools(ran.file))]
    if ASYNC_PROFILER:
        found += [("async-profiler, ctimer", async_profiler, lambda ran: samples_of_async_profiler(ran.file))]
    return found


def in_turns(rounds, ways):
    """{name: [Run]}: each way once a round, so that what changes on the machine meets all of them, and in an order that changes,
    so that none always comes after the same other one."""
    runs = {name: [] for name in ways}
    for number in range(rounds):
        for name in random.Random(number).sample(list(ways), len(ways)):
            runs[name].append(ways[name]())
    return runs


def us(ns):
    return "%.1f" % (ns / 1e3)


def percent(share):
    return "%.1f %%" % (100 * share)


def clean():
    shutil.rmtree(SCRATCH, ignore_errors=True)

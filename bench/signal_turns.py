#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs the target to be watched, to a hundredth of a percent. A loop measures how much of its time was its own
(bench/descend.c); all other CPU time of its process, that of the agent's threads and of signals and interrupts, is what the
process costs besides. One process does that in turns under each profiler, so that all meet the same machine.
Start and stop, and the first two seconds after a start, are not in it. Only CPU time is sampled (clock=cpu), as gperftools does.

signal_turns.py [ROUNDS [SECONDS]]: rounds of one piece under each profiler (15), elapsed seconds of each piece (0.5)."""
import ctypes
import random
import resource
import threading

from signal_common import *

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 15
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 0.5
RATES = (100, 1000)
SETTLE = 2.1     # in its first seconds the agent looks more often for new code
SITUATIONS = [(1, 8), (1, 32), (1, 128), (4 * os.cpu_count(), 32)]   # threads, depth


class Ours:
    def __init__(self, walk, rate):
        self.options = ("walk=%s,rate=%ghz,clock=cpu,out=%s" % (walk, rate, new_file("sfs"))).encode()

    def start(self):
        if AGENT_LIBRARY.sf_profile_start(self.options):
            sys.exit(AGENT_LIBRARY.sf_profile_error())

    def stop(self):
        AGENT_LIBRARY.sf_profile_stop()


class Gperftools:
    def __init__(self):
        self.file = new_file("prof").encode()

    def start(self):
        if not GPERFTOOLS_LIBRARY.ProfilerStart(self.file):
            sys.exit("gperftools does not start")

    def stop(self):
        GPERFTOOLS_LIBRARY.ProfilerStop()


class Nothing:
    def start(self):
        pass

    stop = start


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def work(n_threads, depth):
    """Seconds of the loops' own."""
    own = []
    run_one = lambda: own.append(LOOP.bench_descend(depth, int(SECONDS * 1e9)))
    threads = [threading.Thread(target=run_one) for _ in range(n_threads - 1)]
    for thread in threads:
        thread.start()
    run_one()
    for thread in threads:
        thread.join()
    return sum(own) / 1e9


def besides(profiler, n_threads, depth):
    """The share of all CPU time of the process that was not the loops' own."""
    profiler.start()
    time.sleep(SETTLE)
    before = cpu()
    own = work(n_threads, depth)
    used = cpu() - before
    profiler.stop()
    return used / own


def rows(rate):
    ways = {"nothing": Nothing(), "walk=handler": Ours("handler", rate), "walk=sampler": Ours("sampler", rate)}
    if GPERFTOOLS:
        ways["gperftools"] = Gperftools()
    for n_threads, depth in SITUATIONS:
        found = {name: [] for name in ways}
        for n in range(ROUNDS + 1):
            for name in random.sample(list(ways), len(ways)):
                cost = besides(ways[name], n_threads, depth)
                if n > 0:  # tables are read in the first
                    found[name].append(cost)
        nothing = median(found["nothing"])
        yield ("%g Hz" % rate, n_threads, depth, *(ratio([each / nothing for each in found[name]]) for name in ways if name != "nothing"))


def children():
    """gperftools reads its rate once for each process."""
    for rate in RATES:
        environment = {**os.environ, "CPUPROFILE_FREQUENCY": "%g" % rate}
        process = subprocess.Popen([sys.executable, __file__, str(ROUNDS), str(SECONDS), str(rate)], env=environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in process.stdout:
            yield line.rstrip("\n").split("\t")
        if process.wait():
            sys.exit("status %d" % process.returncode)


if len(sys.argv) > 3:
    AGENT_LIBRARY, LOOP = ctypes.CDLL(AGENT), ctypes.CDLL(os.path.join(BENCH, "descend.so"))
    AGENT_LIBRARY.sf_profile_error.restype = ctypes.c_char_p
    LOOP.bench_descend.argtypes, LOOP.bench_descend.restype = [ctypes.c_uint, ctypes.c_uint64], ctypes.c_uint64
    GPERFTOOLS_LIBRARY = ctypes.CDLL(GPERFTOOLS) if GPERFTOOLS else None
    for row in rows(float(sys.argv[3])):
        print("\t".join(map(str, row)), flush=True)
else:
    table("CPU time besides the work, over nothing: median of %d rounds of %g s (and where it is in 95 of 100 cases)" % (ROUNDS, SECONDS),
          children(), ["rate", "threads", "deep", "stillframe, walk=handler", "stillframe, walk=sampler", "gperftools"])
clean()

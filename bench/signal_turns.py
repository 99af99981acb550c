#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs the target to be watched, to a tenth of a percent: one process does the same small piece of work over and over, each time
under another profiler that it starts before and stops after. Neighbouring pieces meet the same machine, so their ratio
says more than that of two runs of minutes. User and system time of the whole process: the agent's threads are in it.
Start and stop are not.

signal_turns.py [ROUNDS [SECONDS]]: rounds of one piece under each profiler (30), CPU seconds of each piece (0.5)."""
import ctypes
import random
import resource
import sqlite3
import threading

from signal_common import *

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 30
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 0.5
RATES = (100, 1000)
SETTLE = 1.1     # in its first second the agent looks more often for new code


def c_loop(turns, depth=32):
    LOOP.bench_descend(depth, turns)


def many_threads(turns):
    threads = [threading.Thread(target=c_loop, args=(turns // 8,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def recursion(times):
    for _ in range(times):
        fibonacci(12)


def query(rows):
    DATABASE.execute("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %d) "
                     "SELECT sum(x * x %% 7) FROM c;" % rows).fetchall()


WORK = {"a C loop, 32 deep": c_loop, "the same in 8 threads": many_threads, "python3, recursion": recursion,
        "sqlite3, a query": query}


class Ours:
    def __init__(self, walk, rate):
        self.options = ("walk=%s,rate=%ghz,out=%s" % (walk, rate, new_file("sfs"))).encode()

    def start(self):
        if AGENT_LIBRARY.sf_profile_start(self.options):
            sys.exit(ctypes.c_char_p(AGENT_LIBRARY.sf_profile_error()).value)

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


def piece(profiler, work, amount):
    """(user + system, elapsed) seconds of one piece of work. The pause is the same for all, so that they meet the same machine."""
    profiler.start()
    time.sleep(SETTLE)
    before_cpu, before = cpu(), time.monotonic()
    work(amount)
    used = cpu() - before_cpu, time.monotonic() - before
    profiler.stop()
    return used


def amount_for(work):
    """As much as takes SECONDS."""
    amount = 1000
    while True:
        took = piece(Nothing(), work, amount)[0]
        if took > SECONDS / 4:
            return int(amount * SECONDS / took)
        amount *= 2


def measured(work, rate):
    """{name: [(user + system, elapsed)]}, one for each round."""
    ways = {"nothing": Nothing(), "handler": Ours("handler", rate), "sampler": Ours("sampler", rate)}
    if GPERFTOOLS:
        ways["gperftools"] = Gperftools()
    amount, found = amount_for(work), {name: [] for name in ways}
    for n in range(ROUNDS + 1):
        order = list(ways)
        random.shuffle(order)
        used = {name: piece(ways[name], work, amount) for name in order}
        if n > 0:  # tables are read in the first
            for name in ways:
                found[name].append(used[name])
    return found


def shown(found, name, base, index):
    return ratio([a[index] / b[index] for a, b in zip(found[name], found[base])])


def rows(rate):
    for label, work in WORK.items():
        found = measured(work, rate)
        pairs = [(name, "nothing") for name in found if name != "nothing"] + [("sampler", "handler")]
        if "gperftools" in found:
            pairs += [("handler", "gperftools"), ("sampler", "gperftools")]
        for name, base in pairs:
            yield label, "%d Hz" % rate, "%s over %s" % (name, base), shown(found, name, base, 0), shown(found, name, base, 1)


def child(rate):
    """gperftools reads its rate once for each process."""
    for row in rows(rate):
        print("\t".join(row), flush=True)


def children():
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
    GPERFTOOLS_LIBRARY = ctypes.CDLL(GPERFTOOLS) if GPERFTOOLS else None
    DATABASE = sqlite3.connect(":memory:")
    child(float(sys.argv[3]))
else:
    table("Cost to the target, median of %d rounds of %g s (and where it is in 95 of 100 cases)" % (ROUNDS, SECONDS), children(),
          ["work", "rate", "what", "user + system", "elapsed"])
clean()

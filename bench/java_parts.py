#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Which part of a javac's CPU time is the profiler's own work, stillframe's and that of the JDK's own recorder, at 10 ms and at 1 ms. perf
looks 1,000 times a second of CPU time at who runs: the threads that a profiler has in the JVM; in the JVM's own threads the functions
of the profiler, and the kernel's that ring a clock and deliver a signal. What it does to caches is not in it. Where java_cost.py
varies by ten percent from one JVM to the next, this varies by a few tenths of one. "For each" is what is in the JVM, by sample: how many there are
differs from one javac to the next, as what it compiles when does.

java_parts.py [ROUNDS [REGEX]]: as java_cost.py."""
from java_common import *

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 1
WANTED = sys.argv[2] if len(sys.argv) > 2 else "^(10|1) ms, (stillframe, signal|JFR)"
OWN_THREAD = re.compile(r"sf-|JFR ")
OURS, JFRS = re.compile(r"sf_"), re.compile(r"(.*::)?Jfr|jfr_")   # the machine calls some of the latter in any case: not ours
SIGNALS = re.compile(r"arch_do_signal_or_restart|get_signal|__x64_sys_rt_sigreturn|posix_cpu_timers_work|run_posix_cpu_timers|x64_setup_rt_frame")
PARTS = ["own threads", "in the program's threads", "signals", "beside the JVM"]


def part_of(name, functions, own):
    """None: the program's own."""
    if name.startswith("stillframe"):
        return "beside the JVM"
    if OWN_THREAD.match(name):
        return "own threads"
    if any(own.match(each) for each in functions):
        return "in the program's threads"
    return "signals" if any(SIGNALS.match(each) for each in functions) else None


def looks(file):
    """(thread's name, functions on its stack) of each."""
    for block in run("perf", "script", "-i", file, "-F", "comm,tid,ip,sym")[1].split("\n\n"):
        first, *frames = block.strip("\n").splitlines() or [""]
        name = re.match(r"\s*(.*\S)\s+\d+", first)
        if name and not name[1].startswith("perf"):
            yield name[1], [frame.split(None, 1)[-1] for frame in frames]


def parts(start, make, rate, own):
    file = new_file("perf")
    around[:] = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "1000", "-g", "-o", file, "--"]
    ran = start(make, rate)
    around.clear()
    counts = {part: 0 for part in [*PARTS, None]}
    for name, functions in looks(file):
        counts[part_of(name, functions, own)] += 1
    os.unlink(file)
    inside = sum(counts.values()) - counts["beside the JVM"]
    shares = {part: 100 * counts[part] / inside for part in PARTS}
    return [sum(shares[part] for part in PARTS[:3]), *shares.values()], ran, sum(counts[part] for part in PARTS[:3])


def rows(words):
    ways = {}
    for rate in (100, 1000):
        period = "%g ms" % (1000 / rate)
        for name, start, saw in java_profilers():
            if re.search(WANTED, period + ", " + name):
                own = OURS if name.startswith("stillframe") else JFRS
                ways[period, name, saw] = lambda start=start, rate=rate, own=own: parts(
                    start, lambda *machine: javac(words, *machine), rate, own)
    for (period, name, saw), each in in_turns(ROUNDS, ways).items():
        columns = list(zip(*(shares for shares, _, _ in each)))
        taken = [saw(ran)[0] for _, ran, _ in each]
        each_us = median(1000 * looks / n for (_, _, looks), n in zip(each, taken))  # a look is 1 ms
        total = "%.2f %% (%.2f … %.2f)" % (median(columns[0]), min(columns[0]), max(columns[0]))
        yield (period, name, total, *("%.2f %%" % median(column) for column in columns[1:]), round(median(taken)), "%.0f us" % each_us)


if not have("perf"):
    print("\n(perf is not here: java_parts measures nothing)")
    sys.exit(0)
what, words = source_tree()
table("Of the CPU time of JDK %d's javac (%s) the profiler's own, medians of %d rounds (and from least to most)" % (VERSION, what, ROUNDS),
      rows(words), ["period", "with", "in the JVM, in all", *PARTS, "samples", "for each"])
clean()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Which part of a javac's CPU time is the profiler's own work, stillframe's and that of the JDK's own recorder, at 10 ms and at 1 ms. perf
looks 1,000 times a second of CPU time at who runs: the threads that a profiler has in the JVM; in the JVM's own threads the functions
of the profiler, and the kernel's that ring a clock and deliver a signal. What it does to caches is not in it. Where java_cost.py
varies by ten percent from one JVM to the next, this varies by a few tenths of one. "For each" is what is in the JVM, by sample: how many there are
differs from one javac to the next, as what it compiles when does.

What a profiler does to begin and to end is not all in functions of its name: a recorder that is written in Java loads its classes, interprets and compiles
them. That is the JVM's time before main() and after it, beyond what one with no profiler takes there.

java_parts.py [ROUNDS [REGEX]]: as java_cost.py."""
from java_common import *

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 1
WANTED = sys.argv[2] if len(sys.argv) > 2 else "^(10|1) ms, (stillframe, signal|JFR)"
OWN_THREAD = re.compile(r"sf-|JFR ")
NOBODYS = re.compile(r"(?!)")
OURS, JFRS = re.compile(r"sf_"), re.compile(r"(.*::)?Jfr|jfr_")   # the machine calls some of the latter in any case: not ours
SIGNALS = re.compile(r"arch_do_signal_or_restart|get_signal|__x64_sys_rt_sigreturn|posix_cpu_timers_work|run_posix_cpu_timers|x64_setup_rt_frame")
WHILE = ["own threads", "in the program's threads", "signals"]
PARTS = [*WHILE, "start and end", "beside the JVM"]


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
    """(thread's name, seconds, functions on its stack) of each."""
    for block in run("perf", "script", "-i", file, "-F", "comm,tid,time,ip,sym")[1].split("\n\n"):
        first, *frames = block.strip("\n").splitlines() or [""]
        found = re.match(r"\s*(.*\S)\s+\d+\s+([\d.]+):", first)
        if found and not found[1].startswith("perf"):
            yield found[1], float(found[2]), [frame.split(None, 1)[-1] for frame in frames]


def count(start, make, rate, own):
    """The run, and how often perf met each part; "start and end": all that the program did there."""
    file = new_file("perf")
    around[:] = ["perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-e", "cpu-clock", "-F", "1000", "-g", "-o", file, "--"]
    ran = start(make, rate)
    around.clear()
    began, ended = (int(ns) / 1e9 for ns in re.search(r"main (\d+) (\d+)", ran.said).groups())
    counts = {part: 0 for part in [*PARTS, None]}
    for name, seconds, functions in looks(file):
        part = part_of(name, functions, own)
        counts[part if part or began <= seconds <= ended else "start and end"] += 1
    os.unlink(file)
    return ran, counts


def shares(counts, bare):
    """Percent of the JVM's CPU time; `bare`: looks at the start and the end of one that is not profiled."""
    inside = sum(counts.values()) - counts["beside the JVM"]
    found = {part: 100 * (counts[part] - (bare if part == "start and end" else 0)) / inside for part in PARTS}
    during = sum(found[part] for part in WHILE)
    return [during + found["start and end"], during, *found.values()]


def rows(words):
    make = once(words)
    ways = {("", "nothing", None): lambda: count(lambda make, rate: JavaRun(make(), {}, None), make, 0, NOBODYS)}
    for rate in (100, 1000):
        period = "%g ms" % (1000 / rate)
        for name, start, saw in java_profilers():
            if re.search(WANTED, period + ", " + name):
                own = OURS if name.startswith("stillframe") else JFRS
                ways[period, name, saw] = lambda start=start, rate=rate, own=own: count(start, make, rate, own)
    runs = in_turns(ROUNDS, ways)
    bare = median(counts["start and end"] for _, counts in runs.pop(("", "nothing", None)))
    for (period, name, saw), each in runs.items():
        columns = list(zip(*(shares(counts, bare) for _, counts in each)))
        taken = [saw(ran)[0] for ran, _ in each]
        for_each = ["%.0f us" % median(1000 * sum(counts[part] for part in WHILE) / n for (_, counts), n in zip(each, taken))
                    ] if all(taken) else ["-"]    # a look is 1 ms
        spread = ["%.2f %% (%.2f … %.2f)" % (median(column), min(column), max(column)) for column in columns[:2]]
        yield (period, name, *spread, *("%.2f %%" % median(column) for column in columns[2:]), round(median(taken)), *for_each)


if not have("perf"):
    print("\n(perf is not here: java_parts measures nothing)")
    sys.exit(0)
what, words = source_tree()
table("Of the CPU time of JDK %d's javac (%s) the profiler's own, medians of %d rounds (and from least to most)" % (VERSION, what, ROUNDS),
      rows(words), ["period", "with", "in the JVM, in all", "while it samples", *PARTS, "samples", "for each"])
clean()

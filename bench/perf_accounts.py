#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the engine perf says of CPU time: of each thread, beside the kernel's count; of threads that do the same work, beside each other; of threads
that nap, and of one that dodges the kernel's ticks, beside the program's own clocks. Each row says whether its bar is met. usage: perf_accounts.py
[RATE]"""
import sqlite3

from common import *

RATE = sys.argv[1] if len(sys.argv) > 1 else "199hz"
FILE = "/tmp/bench-accounts.sfr"
LEAST_NS = 100e6   # of a thread whose ratio is shown: of less, a period is a part


def record(*program):
    """(threads as (name, CPU time seen, counted by the kernel), losses in ns, what the program says)."""
    said = run(STILLFRAME, "record", "-F", RATE, "-o", FILE, "-e", "perf", "--", os.path.join(PROGRAMS, program[0]), *program[1:])[1]
    with sqlite3.connect(FILE) as database:
        threads = database.execute("SELECT t.name, (SELECT coalesce(sum(cpu_ns), 0) FROM samples s WHERE s.thread = t.id), t.cpu_counted_ns "
                                   "FROM threads t").fetchall()
        lost = database.execute("SELECT coalesce(sum(cpu_ns), 0) FROM losses").fetchone()[0]
    os.unlink(FILE)
    return threads, lost, said


def verdict(met):
    return "met" if met else "MISSED"


def ratios(name, *program):
    threads, lost, _ = record(*program)
    of_each = [seen / counted for _, seen, counted in threads if counted >= LEAST_NS]
    counted = sum(row[2] for row in threads)
    return [[name, "CPU seen / counted, per thread", "%.4f to %.4f of %d" % (min(of_each), max(of_each), len(of_each)), "0.99 to 1.01",
             verdict(min(of_each) >= 0.99 and max(of_each) <= 1.01)],
            [name, "the same of all, and lost", "%.4f, %.2f %%" % (sum(row[1] for row in threads) / counted, 100 * lost / counted), "0.99 to 1.01", ""],
            [name, "largest / smallest of these", "%.4f" % (max(of_each) / min(of_each)), "1.05", verdict(max(of_each) <= 1.05 * min(of_each))]]


def split(name, word, is_one, *program):
    """The share of the threads for which is_one(index, name) holds, in points beside the program's own clocks, which it prints behind `word`."""
    threads, lost, said = record(*program)
    true = {key: float(value) for key, value in re.findall(r"\b(busy|nappers|dodge|neighbour) ([\d.]+)\b", said)}
    share = sum(row[1] for i, row in enumerate(threads) if is_one(i, row[0])) / (sum(row[1] for row in threads) + lost)
    wanted = true[word] / sum(true.values())
    error = 100 * (share - wanted)
    return [[name, "share, by how many points wrong", "%.1f %%, %+.2f" % (100 * wanted, error), "1", verdict(abs(error) <= 1)]]


def is_napper(_, name):
    return name == "napper"


def is_first(index, _):
    return index == 0


table("CPU time by the engine perf at %s" % RATE, [
    *ratios("4 threads that spin", "busy_split", "2", "4"),
    *ratios("16 threads that spin", "busy_split", "2", "16"),
    *split("30 nappers, 0.2 ms of 10", "nappers", is_napper, "nappers", "3", "30", "200", "10000"),
    *split("300 nappers, 2 ms of 1 s", "nappers", is_napper, "nappers", "8", "300", "2000", "1000000"),
    *split("a dodger of ticks and one that spins", "dodge", is_first, "in_dodger", "2", "1"),
], ["program", "what", "seen", "bar", ""])

# SPDX-License-Identifier: Apache-2.0
"""The perf engine and threads that sleep: the time of each sleep, on a CPU, and waiting for a CPU."""
import re
import sys

import pytest

from recordings import cpu_told
from test_perf import perf_works, record  # noqa: F401 (a fixture)

pytestmark = pytest.mark.waits


def test_sleepers(stillframe, target, tmp_path):
    """Sleeping threads are sampled as by the other engine from outside, and none is woken."""
    process = target("sleeper_O0")
    done, recording = record(stillframe, tmp_path / "r.sfr", "-p", process.pid, "-d", "2s")
    assert done.status == 0, done
    rows = recording.rows("SELECT s.word, sum(wall_ns), count(*) FROM samples JOIN states s ON s.id = state GROUP BY 1")
    blocked = {word: wall for word, wall, _ in rows}["blocked"]
    assert blocked >= 1.8e9, rows


@pytest.mark.parametrize("engine", ["perf", "ptrace"])
def test_a_long_sleep_and_a_short_one(stillframe, tmp_path, engine):
    """In turns, with next to no CPU time between them: a sleep that is looked at no longer ends when another begins."""
    script = ("import select, time\n"
              "end = time.monotonic() + 3.5\n"
              "while time.monotonic() < end: time.sleep(0.4); select.select([], [], [], 0.1)\n")
    done, recording = record(stillframe, tmp_path / "r.sfr", "-e", engine, "--", sys.executable, "-c", script)
    assert done.status == 0, done
    wall = sorted(wall for wall, in recording.rows("SELECT sum(wall_ns) / 1e9 FROM samples WHERE syscall >= 0 GROUP BY syscall"))[-2:]
    # Each sleep begins up to a period of blocked threads earlier or later than it is seen to.
    assert len(wall) == 2 and abs(wall[0] - sum(wall) / 5) < 0.3, wall


def test_nappers(stillframe, tmp_path):
    """A thread that works for a millisecond and sleeps for four: its CPU time, its sleep and its waits for a CPU are as long as the
    program and the kernel say."""
    # It has lived for as long as it had or wanted a CPU when the script began, and since then.
    script = ("import time\n"
              "begin, before_s = time.monotonic(), sum(map(int, open('/proc/self/schedstat').read().split()[:2])) / 1e9\n"
              "end, slept = begin + 3, 0\n"
              "while time.monotonic() < end:\n"
              "    stop = time.perf_counter() + 0.001\n"
              "    while time.perf_counter() < stop: pass\n"
              "    before = time.perf_counter(); time.sleep(0.004); slept += time.perf_counter() - before\n"
              "print('waited', int(open('/proc/self/schedstat').read().split()[1]) / 1e9)\n"
              "print('slept', slept); print('lived', time.monotonic() - begin + before_s)\n"
              "print('cpu_seconds %f' % time.process_time())\n")
    done, recording = record(stillframe, tmp_path / "r.sfr", "-F", "999", "--", sys.executable, "-c", script)
    assert done.status == 0, done
    recording.assert_accounts(used=cpu_told(done.out))
    seen, lost, counted = recording.cpu()
    assert lost <= 0.02 * counted + 0.01, (seen, lost, counted)
    wall = dict(recording.rows("SELECT s.word, sum(wall_ns) / 1e9 FROM samples JOIN states s ON s.id = state GROUP BY 1"))
    # The time since the last look at a thread that then ended is in no sample: two periods of blocked threads at most.
    last = 2 * 1.25 / 20 + 0.1
    slept, waited, lived = (float(re.search(r"^%s ([\d.]+)" % word, done.out, re.M)[1]) for word in ("slept", "waited", "lived"))
    assert -0.05 < lived - sum(wall.values()) < last, (wall, lived)
    # From its wake-up on a thread waits for a CPU, which is no sleep.
    assert slept - waited - last <= wall["blocked"] <= slept + 0.1, (wall, slept, waited)
    assert wall["running"] >= counted - 0.05, (wall, counted)

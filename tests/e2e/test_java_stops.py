# SPDX-License-Identifier: Apache-2.0
"""Ten thousand stops of Java threads for each load, JDK and engine, the signal engine with both walks: how many stacks are
whole, and whether any chain is wrong. For the long suite; the short one takes fewer stops (test_java.py, test_java_inside.py).

STILLFRAME_JAVA_STOPS: another number of stops.   STILLFRAME_JAVA_TABLE=FILE: each row of the table goes there, too.
"""
import collections
import os
import sys
import time

import pytest

from conftest import AGENT
from java_stacks import BUSY, JAVA, JDKS, LOADS, QUIET, Stacks, jdk, no_calls, wrong  # noqa: F401 (jdk is a fixture)

pytestmark = [pytest.mark.long, pytest.mark.skipif(not os.path.exists(AGENT), reason="the agent is not built")]
STOPS = int(os.environ.get("STILLFRAME_JAVA_STOPS", "10000"))
WORKER = "worker-with-a-l"  # as far as the system keeps their names
PIECE = 10                  # seconds of a recording
MOST = 100                  # recordings
WAYS = {"sampler": ["-e", "signal", "--walk", "sampler", "--cpu-clock", "perf"],
        "handler": ["-e", "signal", "--walk", "handler", "--cpu-clock", "perf"],
        "ptrace": ["-e", "ptrace", "--max-cost", "100"]}


def all_pairs():
    return [(version, load) for load, (since, _, _) in LOADS.items() for version in sorted(JDKS) if version >= since] + \
        [(version, "virtual-threads") for version in sorted(JDKS) if version >= 21] or [(None, "default")]


def start(target, jdk, load, inside):
    """A JVM under this load, in which an agent listens if it is to be seen from `inside`."""
    environment = {**os.environ, "LD_PRELOAD": AGENT, "STILLFRAME": "listen"} if inside else None
    if load == "virtual-threads":
        return target(jdk.java([], "Virtual"), env=environment)
    options, threads = [*QUIET, *LOADS[load][2]], BUSY
    if load == "deoptimization-storm":
        options, threads = [*options, "-Xbootclasspath/a:" + jdk.white_box()], BUSY + ["storm"]
    return target(jdk.java(options, "Demo", *threads), env=environment)


def is_java(name, stack):
    return name.startswith((WORKER, "ForkJoinPool")) or any(frame.kind in JAVA for frame in stack)


def wrong_virtual(stack):
    """What is wrong with a whole stack of a carrier of virtual threads."""
    names, kinds = [frame.name for frame in stack], [frame.kind for frame in stack]
    if "Virtual.v0" not in names:
        return None
    if "java.lang.VirtualThread.runContinuation" not in names:
        return "the carrier's frames are missing"
    if names.count("Virtual.v0") > 21 or (names.count("Virtual.v0") < 21 and "heap" not in kinds):
        return "frames are missing, without a mark"
    return None


class Seen:
    """What came of all recordings of one load."""

    def __init__(self, jdk):
        self.jdk = jdk
        self.all = self.stops = self.whole = 0
        self.ends, self.asleep, self.others = (collections.Counter() for _ in range(3))
        self.wrong, self.cut = [], []

    def judge(self, name, stack, end):
        if end == "root" and name.startswith(WORKER):
            fault = wrong(name, stack)
        else:
            fault = wrong_virtual(stack) if end == "root" else None
        return fault or no_calls(self.jdk, stack) or None

    def add(self, path):
        stacks = Stacks(path)
        no_calls(self.jdk, [frame for _, stack, _, _ in stacks.all for frame in stack])  # reads all classes at once
        for (name, stack, end, ticks), (held, samples) in zip(stacks.all, stacks.held):
            self.all += samples
            if not is_java(name, stack):
                self.others[end] += samples
                continue
            fault = self.judge(name, stack, end)
            if fault:
                self.wrong.append((samples, fault, name, end, [tuple(frame) for frame in stack]))
            if end != "root" and held:
                self.cut.append((held, end, name, [tuple(frame) for frame in stack]))
            self.stops += held
            self.ends[end] += held
            self.asleep[end] += samples - held

    def row(self, load, jdk, way):
        cut = not_root(self.ends)
        return "| %s | %d | %s | %d | %.3f %% | %d | %s | %d, %s | %d, %s | %d |" % (
            load, jdk.version, way, self.stops, 100 * self.ends["root"] / self.stops, sum(each[0] for each in self.wrong),
            words(cut), sum(self.asleep.values()), words(not_root(self.asleep)), sum(self.others.values()),
            words(not_root(self.others)), self.all)


def not_root(ends):
    return {end: n for end, n in ends.items() if end != "root" and n}


def words(ends):
    return ", ".join("%d %s" % (n, end) for end, n in sorted(ends.items())) or "-"


def tell(row, seen):
    print(row, file=sys.stderr)
    if os.environ.get("STILLFRAME_JAVA_TABLE"):
        with open(os.environ["STILLFRAME_JAVA_TABLE"], "a") as file:
            file.write(row + "\n")
            for each in seen.wrong[:20] + seen.cut[:20]:
                file.write("    %s\n" % (each,))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("jdk, load", all_pairs(), indirect=["jdk"], ids=lambda each: str(each))
def test_every_stop_is_a_whole_stack(stillframe, target, jdk, load, way, tmp_path):
    """At least 99.99 % of the stacks of Java threads that were interrupted are whole; of all, none is wrong."""
    seen, t, path = Seen(jdk), None, str(tmp_path / "java.sfr")
    for piece in range(MOST):
        if seen.stops >= STOPS:
            break
        if t is None or load == "start-up":
            if t:
                t.end()
            t = start(target, jdk, load, way != "ptrace")
            time.sleep(0 if load == "start-up" else 1)
        stillframe("record", "-p", t.pid, *WAYS[way], "-F", "5000hz", "-d", "%ds" % PIECE, "-o", path, timeout=300).ok()
        assert t.runs(), t.said
        seen.add(path)
    tell(seen.row(load, jdk, way), seen)
    assert seen.stops >= STOPS
    assert not seen.wrong, seen.wrong[:3]
    assert seen.stops - seen.ends["root"] <= seen.stops // 10000, seen.cut[:5]

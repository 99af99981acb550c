# SPDX-License-Identifier: Apache-2.0
"""The innermost Java function: three small methods that loops call at 50, 30 and 20 %, beside the program's own count.
Their turns are uneven: the timers of the signal engine ring on the kernel's tick, and a program in step with it has wrong shares.

A JVM that is launched or has the agent describes every instruction by itself (DebugNonSafepoints); one that is only observed is
left alone, or asked to. STILLFRAME_LONG=1 runs ten times as long, and all ways with every JDK.
"""
import contextlib
import os
import re
import sqlite3
import subprocess
import sys

import pytest

from conftest import LONG, needs_agent
from processes import until
from recordings import Report, ticks_so_far
from java_stacks import jdk  # noqa: F401 (a fixture)

METHODS = ("half", "third", "fifth")
UNLOCKED = ["-XX:+UnlockDiagnosticVMOptions"]   # so that the JVM tells the flag
MILLISECONDS = 10000 if LONG else 700
LOOPS = 4                                       # points of a method's time that are its caller's: the loop around the call
WAYS = [pytest.param("ptrace"), pytest.param("signal", marks=needs_agent)]


def samples_of(path):
    """How many samples of equal weight are as good as those of the thread with most of the CPU time: on a busy machine some stand
    for much more than others."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        return max(db.execute("SELECT sum(cpu_ns), 1.0 * sum(cpu_ns) * sum(cpu_ns) / sum(1.0 * cpu_ns * cpu_ns) FROM samples "
                              "WHERE cpu_ns > 0 GROUP BY thread"))[1]


class Split:
    """Shares of the time in Split's methods, in percent; of each by name, of their callers, and of what is uncertain."""

    def __init__(self, stillframe, path, truth):
        report = Report(stillframe, path)
        own = {row["name"]: row for row in report.functions if row["name"].startswith("Split.")}
        n = samples_of(path)
        self.error = LOOPS + 4 * 50 / n ** 0.5   # four standard deviations of a half of n samples
        total = sum(row["self_ns"] for row in own.values())
        self.shares = {name: 100 * own.get("Split.%s(int)" % name, {"self_ns": 0})["self_ns"] / total for name in METHODS}
        self.uncertain = 100 * sum(row.get("approximate_ns", 0) for row in own.values()) / total
        self.truth = {name: 100 * int(ns) / sum(map(int, truth.split())) for name, ns in zip(METHODS, truth.split())}
        self.java = 100 * report.json.get("approximate_ns", 0) / report.json["managed_ns"]
        self.errors = {name: self.shares[name] - self.truth[name] for name in METHODS}
        print("as good as %d samples: error %s points, ~ %.1f %%" %
              (n, ", ".join("%s %+.1f" % each for each in self.errors.items()), self.uncertain), file=sys.stderr)

    def assert_right(self):
        assert all(abs(error) <= self.error for error in self.errors.values()), (self.shares, self.truth)
        assert self.uncertain < 2, self.uncertain


def launched(stillframe, jdk, path, *options, java=(), milliseconds=MILLISECONDS, first=()):
    """(Done, the flag when main() began, the program's own count) of a JVM that stillframe starts. `first`: what it does before."""
    done = stillframe("record", "-F", "500hz", "-o", path, *options, "--",
                      *jdk.java([*UNLOCKED, *java], "Split", *first, "flag", "uneven", milliseconds), timeout=120).ok()
    ready, flag, truth = done.out.splitlines()   # and nothing else
    return done, flag, truth


@pytest.mark.each_jdk
@pytest.mark.parametrize("engine", WAYS)
def test_a_jvm_that_is_launched_describes_itself(stillframe, jdk, engine, tmp_path):
    path = str(tmp_path / "split.sfr")
    cost = ["--max-cost", "50"] if engine == "ptrace" else []
    # The flag is set when libjvm is found: on a busy machine that may be after main() has begun. What was compiled
    # before stays uncertain. That was 8 ms once, which is to be less than the hundredth of Java's time that the summary has a note of.
    done, flag, truth = launched(stillframe, jdk, path, "-e", engine, *cost, first=["set"], milliseconds=3 * MILLISECONDS)
    assert flag == "true", done
    assert "uncertain" not in done.err, done
    Split(stillframe, path, truth).assert_right()


@pytest.mark.long("ptrace")
@pytest.mark.parametrize("engine", WAYS)
def test_who_does_not_want_it_is_left_alone(stillframe, jdk, engine, tmp_path):
    """By --no-java-debug-info; and a JVM whose user has set the flag keeps it."""
    path = str(tmp_path / "split.sfr")
    done, flag, truth = launched(stillframe, jdk, path, "-e", engine, "--no-java-debug-info")
    assert flag == "false", done
    split = Split(stillframe, path, truth)
    assert split.uncertain > 50, "the load does not need what this tests"
    told = re.search(r"uncertain in ([\d.]+) % of Java's CPU time", re.sub(r"\s+", " ", done.err))
    report = re.search(r"uncertain in ([\d.]+) % of Java's time", re.sub(r"\s+", " ", stillframe("report", path).ok().out))
    assert abs(float(told.group(1)) - split.java) < 1 and abs(float(report.group(1)) - split.java) < 0.2, (done, split.java)
    assert "--java-debug-info" in done.err, done
    done, flag, truth = launched(stillframe, jdk, str(tmp_path / "set.sfr"), "-e", engine, java=["-XX:-DebugNonSafepoints"],
                                 milliseconds=1)
    assert flag == "false", done


def flag_of(t):
    t.process.stdin.write("flag\n")
    t.process.stdin.flush()
    return next(line for line in iter(lambda: t.lines.next(60).strip(), None) if line in ("true", "false"))


def load(t):
    """Runs it, and gives the program's own count."""
    t.process.stdin.write("%d\n" % MILLISECONDS)
    t.process.stdin.flush()
    return next(line for line in iter(lambda: t.lines.next(60), None) if len(line.split()) == 3 and line[0].isdigit())


def observed(stillframe, target, jdk, path, *options, java=()):
    """(Done, the flag while it is watched, Split) of a JVM that begins its load while it is watched; the flag is set back."""
    t = target(jdk.java([*UNLOCKED, *java], "Split"), stdin=subprocess.PIPE)
    before = flag_of(t)
    recording = stillframe.start("record", "-F", "500hz", "-o", path, *options, "-p", t.pid)
    until(lambda: os.path.exists(path) and ticks_so_far(path) > 0, "it is watched", 60)
    flag = flag_of(t)
    t.process.stdin.write("uneven\n")
    truth = load(t)
    recording.send_signal(2)
    done = stillframe.wait(recording).ok()
    assert flag_of(t) == before, "the flag is not as it was found"
    return done, flag, Split(stillframe, path, truth)


def test_what_is_only_observed_is_not_written_to(stillframe, target, jdk, tmp_path):
    done, flag, split = observed(stillframe, target, jdk, str(tmp_path / "split.sfr"), "--max-cost", "50")
    assert flag == "false", done
    assert split.uncertain > 50 and "--java-debug-info" in done.err, (split.uncertain, done)


def test_it_is_asked_to_describe_what_it_compiles_from_now_on(stillframe, target, jdk, tmp_path):
    done, flag, split = observed(stillframe, target, jdk, str(tmp_path / "split.sfr"), "--java-debug-info", "--max-cost", "50")
    assert flag == "true", done
    split.assert_right()


def test_what_was_compiled_before_another_tool_set_the_flag_is_uncertain(stillframe, target, jdk, tmp_path):
    """The flag says nothing of older code: another stillframe has set it meanwhile."""
    path, other = str(tmp_path / "split.sfr"), str(tmp_path / "other.sfr")
    t = target(jdk.java(UNLOCKED, "Split"), stdin=subprocess.PIPE)
    t.process.stdin.write("uneven\n")
    load(t)
    setter = stillframe.start("record", "--java-debug-info", "-F", "10hz", "-o", other, "-p", t.pid)
    until(lambda: flag_of(t) == "true", "the flag is set", 60)
    recording = stillframe.start("record", "-F", "500hz", "--max-cost", "50", "-o", path, "-p", t.pid)
    until(lambda: os.path.exists(path) and ticks_so_far(path) > 0, "it is watched", 60)
    truth = load(t)
    for each in (recording, setter):
        each.send_signal(2)
        stillframe.wait(each).ok()
    split = Split(stillframe, path, truth)
    assert split.uncertain > 30, split.uncertain


@needs_agent
def test_a_jvm_that_takes_in_the_agent_describes_itself(stillframe, target, jdk, tmp_path):
    done, flag, split = observed(stillframe, target, jdk, str(tmp_path / "split.sfr"), "-e", "signal")
    assert flag == "true", done
    split.assert_right()


def test_both_options_are_refused(stillframe):
    done = stillframe("record", "--java-debug-info", "--no-java-debug-info", "--", "true").fails(2)
    assert "not both" in done.err, done

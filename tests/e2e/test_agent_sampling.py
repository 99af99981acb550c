# SPDX-License-Identifier: Apache-2.0
"""What the agent samples, by which clock and of which threads: seen through whole profiles of whole programs."""
import os
import re
import resource

import pytest

from conftest import AGENT, LONG
from processes import read, status_of, tids_of, until

WALKS = ["sampler", "handler"]
CLOCKS = ["perf", "timer", "itimer", "tick"]
by_clock = pytest.mark.parametrize("clock", CLOCKS)
by_walk = pytest.mark.parametrize("walk", WALKS)


def seen_share(report):
    """Of the CPU time; what a busy machine was too late for is accounted for, and no fault of ours; nor is what a thread used
    since the process's timer last rang in it, of which it rings in whatever thread runs (itimer)."""
    seen, _, counted = report.cpu()
    assert seen / counted >= 0.8, report.json
    return (seen + report.too_busy) / counted


@pytest.mark.long("timer", "tick")   # unit/test_agent_clocks has it with each clock
@by_walk
@by_clock
def test_more_busy_threads_than_cpus(inside, walk, clock):
    """At least 99 % of the CPU time is in samples, and the rest is accounted for. Half a minute of CPU time takes minutes beside others."""
    report = inside("busy_split", 5 if LONG else 0.25, 5, options="rate=999hz,walk=%s,cpu-clock=%s" % (walk, clock),
                    timeout=600 if LONG else 60).ok().report
    assert seen_share(report) >= 0.99, report.json
    report.assert_accounts(tolerance=0.01)


def sampler_of(pid):
    return next((tid for tid in tids_of(pid) if (read("/proc/%d/task/%d/comm" % (pid, tid)) or "").strip() == "sf-sampler"), None)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_who_stands_brings_the_sampler_along(target, tmp_path):
    """It is on the CPU of whoever rang last: in the course of time on one and on another. It may run anywhere again as soon as
    nobody stands: on a busy machine it is seen on one CPU at one of hundreds of looks."""
    options = "rate=997hz,walk=sampler,out=%s" % (tmp_path / "s.sfs")
    t = target("busy_split", 200, 5, env={**os.environ, "LD_PRELOAD": AGENT, "STILLFRAME": options})
    sampler, cpus = until(lambda: sampler_of(t.pid), "there is a sampler", 60), set()

    def both():
        cpus.add(status_of(t.pid, sampler)["Cpus_allowed_list"].strip())
        return len([cpu for cpu in cpus if cpu.isdigit()]) >= 2
    until(both, "it was brought to two CPUs", 100, 0)
    t.assert_moves()


def test_a_thread_of_a_quiet_program_is_met_from_its_start(inside):
    """A few short-lived threads: they are looked for when they are made, not at the next scan. What they use between their last
    tick and their end stays unseen, some 2 ms of 30."""
    ran = inside("threads_churn", 3, 4, 30, options="rate=999hz").ok()
    unseen = sum(loss["cpu_ns"] for loss in ran.report.losses if loss["cause"] == "unseen") / 1e9
    made = int(re.search(r"made (\d+)", ran.said).group(1))
    assert made >= 5 and unseen < 0.3 * made * 0.030, (made, unseen)


def test_one_that_waits_for_a_cpu_says_nothing_of_its_cpu_time(inside):
    """Without a clock of its own a thread is asked, and stands where it gave its CPU away if it was not on one: behind a system
    call that takes next to nothing of its CPU time, and would seem to take a sixth at least."""
    report = inside("yields", 1.2, 5, options="rate=999hz,walk=handler,cpu-clock=tick").ok().report
    shares = report.self_shares()
    at_calls = sum(share for name, share in shares.items() if "yield" in name)
    assert at_calls < 0.1 and shares["spin_between"] > 0.8, shares


@pytest.mark.long("timer")   # also the process's: at an exec each is gone as the other
@by_clock
def test_no_signal_of_ours_reaches_the_next_program(inside, clock):
    """The default action of SIGPROF would end it."""
    ran = inside("exec_chain", 25, 15, options="rate=4khz,cpu-clock=%s" % clock).ok()
    assert "execs 25" in ran.said, ran


def few_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))


def test_few_descriptors_are_left_to_the_program(inside):
    """A quarter at most: the other threads get timers, and are seen as well."""
    ran = inside("busy_split", 0.12, 12, options="rate=499hz,cpu-clock=perf", preexec_fn=few_descriptors).ok()
    assert seen_share(ran.report) >= 0.97, ran.report.json
    assert len(ran.report.threads) >= 12


def test_a_real_time_signal_is_not_queued_by_perf(inside):
    """Where the queue is full the kernel sends SIGIO in its place: such a signal gets timers."""
    ran = inside("busy_split", 0.3, 3, options="rate=999hz,signal=RTMIN+3,cpu-clock=perf").ok()
    assert seen_share(ran.report) >= 0.97, ran.report.json


@pytest.mark.parametrize("options, counted", [("only=main", 1), ("threads=^no-such", 0)])
def test_only_some_threads(inside, options, counted):
    ran = inside("busy_split", 0.2, 4, options="rate=999hz," + options).ok()
    assert len(ran.report.threads) == counted, ran.report.json["threads"]

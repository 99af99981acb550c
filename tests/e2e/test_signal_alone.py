# SPDX-License-Identifier: Apache-2.0
"""Calls that demand something of all threads of a process, by programs that have one thread without the agent: they go as they
go without it, and the program is sampled before and after."""
import os
import subprocess

import pytest

from conftest import LONG, PROGRAMS, need_root
from recordings import Report

CASES = ("plain", "keepcaps", "securebits", "capabilities", "no_capabilities", "bounding", "user", "user_and_mounts",
         "by_number", "mounts", "children", "enter_user", "enter_mounts", "enter_process")
# In the short form each case is in one of the four tests.
WAYS = [("preloaded", "sampler"), ("launched", "handler"), ("preloaded", "handler"), ("launched", "sampler")]
# After it the kernel lets the process make no thread.
FOR_GOOD = ("children",)


def alone(case):
    done = subprocess.run([os.path.join(PROGRAMS, "in_alone"), case, "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=60, text=True)
    return done.returncode, done.stdout


@pytest.fixture
def preloaded(inside):
    def run(case, walk):
        ran = inside("in_alone", case, 0.06, options="rate=999hz,walk=" + walk)
        return (ran.status, ran.said), ran.report
    return run


@pytest.fixture
def launched(stillframe, tmp_path):
    def run(case, walk):
        out = tmp_path / (case + ".sfr")
        done = stillframe("record", "--engine", "signal", "--walk", walk, "--rate", "999hz", "-o", out, "--",
                          os.path.join(PROGRAMS, "in_alone"), case, "0.06")
        return (done.status, done.out), Report(stillframe, out)
    return run


@pytest.mark.together(2)
@pytest.mark.parametrize("way, walk", WAYS)
def test_calls_of_a_process_of_one_thread(request, way, walk):
    """Users, capabilities and namespaces: the same results, the same free descriptor, all threads alike, and samples to the end."""
    need_root()
    run = request.getfixturevalue(way)
    differences, unsampled = {}, []
    for case in CASES if LONG else CASES[WAYS.index((way, walk))::len(WAYS)]:
        expected = alone(case)
        for _ in range(8 if case in FOR_GOOD else 1):   # threads that end for good may be a moment late
            got, report = run(case, walk)
            if got != expected:
                differences[case] = (expected, got)
        names = {"spin_before"} if case in FOR_GOOD else {"spin_before", "spin_after"}
        if not names <= set(report.total_shares()):
            unsampled.append((case, report.total_shares()))
    assert not differences
    assert not unsampled

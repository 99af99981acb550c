# SPDX-License-Identifier: Apache-2.0
"""Resource limits of a program with the agent inside: it runs as it runs without, whether it is sampled or not; and where it
cannot be sampled, a sentence says so."""
import os
import resource
import subprocess

import pytest

from conftest import LONG, PROGRAMS

KIB = 1024
# Limit, value, and whether the program is sampled under it.
LIMITS = [
    (resource.RLIMIT_FSIZE, 0, False),
    (resource.RLIMIT_FSIZE, 2 * KIB, True),
    (resource.RLIMIT_FSIZE, 1000 * KIB, True),
    (resource.RLIMIT_AS, 6000 * KIB, False),
    (resource.RLIMIT_AS, 20000 * KIB, True),
    (resource.RLIMIT_NOFILE, 8, True),
    (resource.RLIMIT_NOFILE, 4, False),
    (resource.RLIMIT_MEMLOCK, 0, True),
    (resource.RLIMIT_STACK, 72 * KIB, True),
    (resource.RLIMIT_CPU, 2, True),
]
WALKS = ("sampler", "handler")
ARGUMENTS = ("none", "0.06")


def limiting(which, value):
    return lambda: resource.setrlimit(which, (value, value))


def alone(which, value):
    done = subprocess.run([os.path.join(PROGRAMS, "in_alone"), *ARGUMENTS], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, text=True, preexec_fn=limiting(which, value))
    return done.returncode, done.stdout


@pytest.mark.parametrize("walk", WALKS)
def test_limits_of_the_program(inside, walk):
    """In the short form each limit by one of the walks."""
    differences, wrong = {}, []
    for which, value, sampled in LIMITS if LONG else LIMITS[WALKS.index(walk)::2]:
        ran = inside("in_alone", *ARGUMENTS, options="rate=999hz,walk=" + walk, preexec_fn=limiting(which, value))
        if (ran.status, ran.said) != alone(which, value):
            differences[which, value] = (alone(which, value), ran)
        if sampled and "spin_before" not in ran.report.total_shares():
            wrong.append((which, value, "not sampled"))
        if not sampled and os.path.exists(ran.out) and os.path.getsize(ran.out) > KIB:
            wrong.append((which, value, "sampled"))
    assert not differences
    assert not wrong


def test_a_small_limit_for_files(stillframe, tmp_path):
    """The ring is a file in memory, and would be too large: the program runs, and stillframe says why nothing was sampled."""
    out = tmp_path / "x.sfr"
    done = stillframe("record", "--engine", "signal", "-o", out, "--", os.path.join(PROGRAMS, "in_alone"), *ARGUMENTS,
                      preexec_fn=limiting(resource.RLIMIT_FSIZE, 1000 * KIB))
    assert done.out == "descriptor 0\nalike yes\n" and "limit for files (ulimit -f)" in done.err and done.status == 1, done


def test_no_room_for_the_recording(stillframe, tmp_path):
    """stillframe is not killed either when its own file reaches the limit."""
    done = stillframe("record", "-o", tmp_path / "x.sfr", "--", os.path.join(PROGRAMS, "in_alone"), *ARGUMENTS,
                      preexec_fn=limiting(resource.RLIMIT_FSIZE, 10 * KIB))
    assert done.status == 1 and "full" in done.err, done

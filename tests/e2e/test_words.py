# SPDX-License-Identifier: Apache-2.0
"""Words that say what was: of no samples no share is whole, threads that run on are not gone, select waits for what is in its sets."""
import contextlib
import json
import re
import sqlite3
import subprocess
import sys

import pytest

from conftest import PROGRAMS
from processes import tids_of

SELECT = "import os, resource, select\n" \
         "resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000))\n" \
         "read, write = os.pipe()\n" \
         "os.dup2(read, 900)\n" \
         "print('ready', flush=True)\n" \
         "select.select([900], [], [])\n"


def test_one_descriptor_of_a_high_number(stillframe, target):
    t = target([sys.executable, "-c", SELECT]).falls_asleep()
    (thread,) = stillframe.dump(t.pid)["threads"]
    assert thread["wait"] in ({"syscall": "select", "detail": "1 descriptor"}, {"syscall": "pselect6", "detail": "1 descriptor"}), thread


def test_no_samples(stillframe, target, tmp_path):
    """Neither a share of whole stacks nor a note of threads that were held so often."""
    t = target(["/bin/sleep", 60], wait_ready=False).falls_asleep()
    done = stillframe("record", "--clock", "cpu", "-F", "999", "-o", tmp_path / "r.sfr", "-d", "700ms", "-p", t.pid)
    assert done.status == 1 and "holds none" in done.err and "was held" not in done.err, done
    out = stillframe("report", tmp_path / "r.sfr").ok().out
    assert "stacks    none: nothing was sampled" in out and "% whole" not in out, out
    assert "cpu       0 ns seen, 0 ns counted by the kernel\n" in out, out


@pytest.mark.long("handler")   # what ends a profile is the same
@pytest.mark.parametrize("walk", ["sampler", "handler"])
def test_threads_that_run_on_inside(inside, stillframe, tmp_path, walk):
    """The profile ends by itself: what its threads used without a sample, in less than a period, is no loss of threads that have ended. In most of
    the runs none of them has a sample; in the others that sample stands for all."""
    found = set()
    for _ in range(6):
        ran = inside("busy_split", 0.4, 4, options="walk=%s,rate=1hz,duration=150ms" % walk).ok()
        found |= causes(stillframe, ran.out)
        if "rest" in found:
            break
    assert "gone" not in found and "rest" in found, found


def causes(stillframe, path):
    return {loss["cause"] for loss in json.loads(stillframe("report", "--json", path).ok().out)["losses"]}


def test_shares_of_what_is_not_counted_yet(stillframe, tmp_path):
    """While it is recorded, and where stillframe was killed, the kernel's counts of threads that live are not there: no share is of them."""
    path = tmp_path / "r.sfr"
    subprocess.run([PROGRAMS + "/make_recording", path, "20", "1000"], check=True)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE session SET complete = 0")
        db.execute("UPDATE losses SET cpu_ns = 5000000000, wall_ns = 5000000000")
        for counted, words in ((0, "not counted by the kernel "), (1000, "not counted by the kernel for all threads ")):
            db.execute("UPDATE threads SET cpu_counted_ns = ?", (counted,))
            db.commit()
            out = " ".join(stillframe("report", path).ok().out.split())
            lost = re.search(r"warning ([\d.]+) % of the CPU time is in no sample", out)
            row = re.search(r" ([\d.]+) ([\d.]+) [\d.]+ m?s \[not seen\]", out)
            assert " seen, " + words in out and float(lost[1]) == float(row[1]) > 50, out


def test_threads_that_there_are_too_few_files_for(stillframe, target, tmp_path):
    """They did not come and go: they are not looked at, and why."""
    t = target("many_threads", 100, 60)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "ptrace", "-d", "300ms", "-p", t.pid, prefix=["prlimit", "--nofile=64:64"])
    told = re.search(r"(\d+) threads were not sampled: stillframe may open only 64 files", " ".join(done.err.split()))
    assert int(told[1]) + recording.value("SELECT count(*) FROM threads") == len(tids_of(t.pid)), done

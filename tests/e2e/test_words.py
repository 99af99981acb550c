# SPDX-License-Identifier: Apache-2.0
"""Words that say what was: of no samples no share is whole, threads that run on are not gone, select waits for what is in its sets."""
import json
import sys

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


def test_threads_that_run_on(stillframe, target, tmp_path):
    """At the recording's end they are not gone."""
    t = target("busy_split", 60, 8)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "ptrace", "-F", "49", "-d", "500ms", "-p", t.pid)
    assert done.status == 0 and " gone" not in done.err, done
    assert "gone" not in json.dumps([loss["cause"] for loss in json.loads(stillframe("report", "--json", tmp_path / "r.sfr").ok().out)["losses"]])
    t.assert_moves()

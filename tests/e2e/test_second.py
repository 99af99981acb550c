# SPDX-License-Identifier: Apache-2.0
"""A second stillframe beside a first one: a thread that another holds for a moment is waited for; one that a debugger has is named."""
import re
import subprocess
import sys

import pytest

from processes import until, status_of
from recordings import Recording

# Holds a process's first thread, as a stillframe on a busy machine does: for 4 ms, and lets it go for 1 ms. With "for good": once.
HOLDER = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000
pid = int(sys.argv[1])
while True:
    if libc.ptrace(SEIZE, pid, None, None) == 0:
        libc.ptrace(INTERRUPT, pid, None, None)
        os.waitpid(pid, WALL)
        print("held", flush=True)
        time.sleep(600 if sys.argv[2] == "for good" else 0.004)
        libc.ptrace(DETACH, pid, None, None)
    time.sleep(0.001)
"""


@pytest.fixture
def holder():
    started = []

    def start(pid, how):
        started.append(subprocess.Popen([sys.executable, "-c", HOLDER, str(pid), how], stdout=subprocess.PIPE))
        assert started[-1].stdout.readline() == b"held\n"
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.wait()
        each.stdout.close()


def test_holds_of_another(stillframe, target, holder, tmp_path):
    """Each start succeeds."""
    t = target("deep", 5, "spin")
    holder(t.pid, "again and again")
    for turn in range(5):
        assert "bottom" in stillframe("dump", "-p", t.pid).ok().out
    for turn in range(2):
        done = stillframe("record", "-e", "ptrace", "-q", "-F", "499", "-d", "500ms", "-o", tmp_path / ("%d.sfr" % turn), "-p", t.pid).ok()
        assert Recording(tmp_path / ("%d.sfr" % turn)).samples > 0, done


def test_a_debugger(stillframe, target, holder, tmp_path):
    """It is named; nothing waits for its end."""
    t = target("deep", 5, "spin")
    debugger = holder(t.pid, "for good")
    until(lambda: status_of(t.pid)["TracerPid"].strip() == str(debugger.pid), "it is traced")
    for command in (["dump"], ["record", "-e", "ptrace", "-d", "1s", "-o", tmp_path / "r.sfr"]):
        done = stillframe(*command, "-p", t.pid, timeout=20)
        if command[0] == "record":
            done.fails(1)
        said = done.out + done.err
        assert re.search(r"pid %d \(python|traced by python\S* \(pid %d\)" % (debugger.pid, debugger.pid), said), done
    debugger.kill()
    debugger.wait()

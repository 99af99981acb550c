# SPDX-License-Identifier: Apache-2.0
"""Where nothing was sampled, record exits with 1 and says why; where most of the CPU time was the children's, it says so."""
import os
import re
import shutil
import signal
import sys

import pytest

from conftest import PROGRAMS, need, need_agent, need_root
from processes import cpu_of
from recordings import Recording

pytestmark = pytest.mark.waits

BUSY = os.path.join(PROGRAMS, "busy_split")
ENGINES = ["ptrace", "signal", "perf"]


@pytest.fixture(params=ENGINES)
def engine(request, stillframe):
    """Each that works here."""
    if request.param == "signal":
        need_agent()
    line = re.search(r"^  (ok|no) +engine %s:.*(\n {7}.*)*" % request.param, stillframe("doctor").ok().out, re.MULTILINE)
    if line[1] != "ok":
        pytest.skip(" ".join(line[0].split()))
    return request.param


@pytest.fixture
def background(tmp_path):
    """A script that starts a program in the background, and ends."""
    path = tmp_path / "service.sh"
    path.write_text("#!/bin/sh\n%s 0.5 > /dev/null 2>&1 &\n" % BUSY)
    path.chmod(0o755)
    return path


def has_samples(path):
    return os.path.exists(path) and Recording(path).samples > 0


def test_a_script_that_goes_into_the_background(stillframe, engine, background, tmp_path):
    """Its own few samples, or the reason why there are none."""
    done = stillframe("record", "-q", "-e", engine, "-o", tmp_path / "r.sfr", "--", background)
    if has_samples(tmp_path / "r.sfr"):
        assert done.status == 0 and done.err == "", done
    else:
        done.fails(1)
        assert "nothing was sampled: service.sh (pid " in done.err and ") ended after " in done.err, done
        assert "with --children, or by its own pid: -p PID" in done.err, done


def test_a_program_shorter_than_a_period(stillframe, tmp_path):
    # Of its CPU time only: where its file has to be read, it sleeps.
    done = stillframe("record", "-q", "-F", "2", "-e", "perf", "--clock", "cpu", "-o", tmp_path / "r.sfr", "--", "/bin/true").fails(1)
    assert "It used less than the 500.0 ms of CPU time between two samples: -F 10khz" in done.err, done


@pytest.mark.parametrize("engine", ["ptrace", "perf"], indirect=True)
def test_nothing_of_a_clock_or_of_threads(stillframe, engine, target, tmp_path):
    """The option that left nothing to sample is named. (The signal engine attaches only where an agent listens.)"""
    t = target("deep", 5, "spin")
    done = stillframe("record", "-q", "-e", engine, "-o", tmp_path / "r.sfr", "--threads", "^nobody$", "-d", "200ms", "-p", t.pid).fails(1)
    assert "nothing was sampled of deep (pid %d) in " % t.pid in done.err and "--threads '^nobody$'" in done.err, done
    asleep = target(["/bin/sleep", 60], wait_ready=False).falls_asleep()
    done = stillframe("record", "-q", "-e", engine, "-o", tmp_path / "r.sfr", "--clock", "cpu", "-d", "200ms", "-p", asleep.pid).fails(1)
    assert "nothing was sampled" in done.err and "--clock both" in done.err, done


def test_its_own_status_goes_before(stillframe, engine, tmp_path):
    done = stillframe("record", "-q", "-e", engine, "-o", tmp_path / "r.sfr", "--", "/bin/sh", "-c", "exit 7")
    assert done.status == 7, done
    assert has_samples(tmp_path / "r.sfr") != ("nothing was sampled" in done.err), done


@pytest.mark.parametrize("engine", ["signal", "perf"], indirect=True)
def test_children_go_on(stillframe, engine, background, tmp_path):
    """With --children the recording lasts as long as they do. (From outside without events, one that starts and loses its parent
    between two looks is not found.)"""
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", engine, "--children", "--", background)
    assert done.status == 0, done
    assert recording.total_shares().get("work", 0) > 0.8, (recording.total_shares(), done)


def test_children_go_on_that_were_seen(stillframe, tmp_path):
    """The same from outside, where the parent lives long enough."""
    done, recording = stillframe.record(tmp_path / "r.sfr", "--children", "--", "/bin/sh", "-c", "%s 1 & sleep 0.4" % BUSY)
    assert done.status == 0, done
    assert recording.total_shares().get("work", 0) > 0.8, (recording.total_shares(), done)
    assert recording.cpu()[0] > 0.8, (recording.cpu(), done)


@pytest.fixture
def root_folder(tmp_path):
    """A root folder with a program and what it needs, and without the agent."""
    need_root()
    need("chroot", "ldd")
    folder = tmp_path / "root"
    with os.popen("ldd %s" % BUSY) as listed:
        needed = re.findall(r"(/\S+) \(0x", listed.read())
    for path in (*needed, BUSY):
        name = "/busy_split" if path == BUSY else path
        os.makedirs(os.path.dirname(str(folder) + name), exist_ok=True)
        shutil.copy(path, str(folder) + name)
    return folder


@pytest.mark.parametrize("engine", ["signal"], indirect=True)
def test_another_root_folder(stillframe, engine, root_folder, tmp_path):
    """The loader does not find the agent there: chroot itself was sampled for less than a tick, or the rest is missing."""
    done = stillframe("record", "-e", engine, "-o", tmp_path / "r.sfr", "--", "chroot", root_folder, "/busy_split", "0.3")
    assert "total_seconds" in done.out, done
    if has_samples(tmp_path / "r.sfr"):
        assert done.status == 0 and "ran on without an agent" in " ".join(done.err.split()), done
    else:
        assert done.status == 1 and re.search(r"nothing was sampled: chroot \(pid \d+\) ran on without an agent in it\n"
                                              r"  .*another root folder.*\n  .*--engine ptrace", done.err), done


# Its first thread gets its CPU, on which the child spins, only when nothing else wants it. So of the killed process that thread
# is the last one, and the agent's are gone long before.
SLOW_TO_DIE = """
import os, signal, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
end = time.monotonic() + 0.5
if not os.fork():
    while time.monotonic() < end:
        pass
    os.kill(os.getppid(), signal.SIGKILL)
    while time.monotonic() < end + 0.5:
        pass
    os._exit(0)
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
while time.monotonic() < end - 0.2:
    pass
time.sleep(60)
"""


@pytest.mark.parametrize("engine", ["signal"], indirect=True)
def test_a_killed_program_did_not_run_on(stillframe, engine, tmp_path):
    """Though its first thread is there when the agent is gone."""
    done = stillframe("record", "-e", engine, "-o", tmp_path / "r.sfr", "--", sys.executable, "-c", SLOW_TO_DIE)
    assert done.status == 128 + signal.SIGKILL and has_samples(tmp_path / "r.sfr"), done
    assert "without an agent" not in " ".join(done.err.split()), done


def test_the_childrens_cpu_time(stillframe, engine, tmp_path):
    """A hint where it is most of all; none where it is in the recording, nor where there is none."""
    script = ["--", "/bin/sh", "-c", "%s 0.3; exit 0" % BUSY]
    done = stillframe("record", "-e", engine, "-o", tmp_path / "r.sfr", *script)
    assert re.search(r"processes that it started used \S+ m?s of CPU time.* --children", " ".join(done.err.split())), done
    done = stillframe("record", "-e", engine, "-o", tmp_path / "r.sfr", "--children", *script)
    assert "--children" not in done.err, done
    done = stillframe("record", "-e", engine, "-o", tmp_path / "r.sfr", "--", BUSY, "0.3")
    assert "--children" not in done.err, done


@pytest.mark.parametrize("engine", ["signal"], indirect=True)
def test_children_without_an_agent(stillframe, engine, tmp_path):
    """As the services of dovecot, whose environment it clears. Their time is not missed without a word."""
    script = "i=0; while [ $i -lt 3 ]; do %s %s 0.2; i=$((i+1)); done"
    done = stillframe("record", "-e", engine, "-o", tmp_path / "r.sfr", "--children", "--", "sh", "-c", script % ("env -i", BUSY))
    assert re.search(r"processes that it started used \S+ m?s of CPU time that is not in the recording: before an agent came into them, or without one", " ".join(done.err.split())), done
    done = stillframe("record", "-e", engine, "-o", tmp_path / "r.sfr", "--children", "--", "sh", "-c", script % ("env", BUSY))
    assert "an agent came" not in " ".join(done.err.split()), done


@pytest.mark.parametrize("engine", ["ptrace"], indirect=True)
def test_the_cpu_time_of_living_children(stillframe, engine, target, tmp_path):
    """The recording ends before the child does."""
    shell = target(["/bin/sh", "-c", "%s 100 > /dev/null & echo ready; echo $!; wait" % BUSY])   # it says "ready", too
    child = int(shell.line(""))
    before = cpu_of(child)
    done = stillframe.record_until(str(tmp_path / "r.sfr"), lambda _: cpu_of(child) > before + 0.3, "-e", engine, "-p", shell.pid)
    assert re.search(r"processes that it started used \S+ m?s of CPU time.* --children", " ".join(done.err.split())), done

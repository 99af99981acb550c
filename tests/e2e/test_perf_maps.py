# SPDX-License-Identifier: Apache-2.0
"""Code in no file has names where the program writes a perf map, /tmp/perf-PID.map: by each engine, in a dump, of a program that has ended,
and in a container. tests/programs/no_rules.c makes the code and the map."""
import os
import platform
import re
import signal
import time

import pytest

from conftest import PROGRAMS, finding, need, need_agent, need_findings, need_kernel_samples, need_root
from recordings import Recording

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="no_rules is in x86-64's assembly")

PROGRAM = os.path.join(PROGRAMS, "no_rules")
MADE = ["made_leaf", "made_middle", "made_framed", "made_outer (in a map)", "main"]


def map_of(pid):
    return "/tmp/perf-%d.map" % pid


@pytest.fixture
def named(target):
    """Starts the program with its map, which is removed with the program."""
    started = []

    def start():
        started.append(target("no_rules", 120, "named"))
        return started[-1].pid

    yield start
    for each in started:
        os.remove(map_of(each.pid))


def check(recording):
    """The agent may have read the list of mappings before the map was there."""
    shares = recording.self_shares()
    assert shares["made_leaf"] > 0.8 and shares.get("[unknown, in no file]", 0) < 0.1, shares
    stacks = [names for names, _ in recording.stacks_of("made_leaf")]
    assert any(names[:len(MADE)] == MADE for names in stacks), stacks[:3]


def test_doctor(stillframe, named, target):
    what = "code that it makes while it runs has names"
    good, _ = finding(stillframe("doctor", "-p", named()).ok(), what)
    assert good == "ok"
    # Without a map a program has to have more of such code than a library's stubs.
    assert what not in stillframe("doctor", "-p", target("no_rules", 120, "copied").pid).ok().out
    several = target(["/usr/bin/python3", "-c", "import mmap, time; made = mmap.mmap(-1, 1 << 20, prot=7); print('ready', flush=True); time.sleep(120)"])
    good, text = finding(stillframe("doctor", "-p", several.pid).ok(), what)
    assert good == "no" and "--perf-basic-prof" in text


@pytest.mark.long
def test_names_that_come_late(stillframe, tmp_path, named):
    """Other names are looked up while the recording goes on, 4 s after its begin."""
    path = map_of(named())
    with open(path, "r+") as file:
        text = file.read()
        file.truncate(0)
        recording = stillframe.start("record", "-o", tmp_path / "a.sfr", "-e", "ptrace", "-d", 8, "-p", re.search(r"\d+", path)[0])
        time.sleep(6)
        assert recording.poll() is None
        file.seek(0)
        file.write(text)
    stillframe.wait(recording).ok()
    check(Recording(tmp_path / "a.sfr"))


@pytest.mark.long("bpf", "signal")
@pytest.mark.parametrize("engine", ["ptrace", "perf", "bpf", "signal"])
def test_a_program_that_has_ended(stillframe, tmp_path, engine):
    if engine == "signal":
        need_agent()
    if engine == "perf":
        need_kernel_samples(stillframe)
    if engine == "bpf":
        need_findings(stillframe("doctor").out, "the kernel says what it has saved")
    done, recording = stillframe.record(tmp_path / "a.sfr", "-e", engine, "--", PROGRAM, 1, "named")
    for pid, in recording.rows("SELECT pid FROM processes"):
        os.remove(map_of(pid))
    assert done.status == 128 + signal.SIGALRM, done
    check(recording)


def test_a_dump(stillframe, named):
    (thread,) = stillframe.dump(named())["threads"]
    names = [frame["function"] for frame in thread["frames"]]
    assert names[:len(MADE)] == MADE, names


def give_away(path):
    need_root()
    os.chown(path, 65533, 65533)


def make_old(path):
    os.utime(path, (0, 0))


@pytest.mark.parametrize("change", [give_away, make_old])
def test_a_map_of_somebody_else_is_not_taken(stillframe, tmp_path, named, change):
    """Of another user, or of an earlier process with the same number."""
    pid = named()
    change(map_of(pid))
    _, recording = stillframe.record(tmp_path / "a.sfr", "-d", 0.5, "-p", pid)
    assert recording.self_shares()["[unknown, in no file]"] > 0.8


def test_in_a_container(stillframe, tmp_path, target):
    """It has its own /tmp, and the program another number."""
    need_root()
    need("unshare", "mount")
    # The program itself may be below /tmp: it is executed by a descriptor.
    t = target(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                'exec 3<"$0" && mount -t tmpfs none /tmp && exec /proc/self/fd/3 120 named', PROGRAM])
    with open("/proc/%d/task/%d/children" % (t.pid, t.pid)) as children:
        pid = int(children.read())
    done, recording = stillframe.record(tmp_path / "a.sfr", "-d", 0.5, "-p", pid)
    assert done.ok() and not os.path.exists(map_of(pid))
    check(recording)

# SPDX-License-Identifier: Apache-2.0
"""What is in a target's files decides how much work and memory they are worth, up to limits: of all its files together, hostile
ones cost at most 10 s and 256 MB more than ordinary ones, and Ctrl-C ends any of it."""
import os
import signal
import subprocess
import sys
import time

import pytest

import hanging
import hostile_elf
from conftest import LONG
from processes import cpu_of, until

pytestmark = pytest.mark.waits

MORE_SECONDS = 10
MORE_KB = 256 << 10

# Maps each file that is named, so that it could be run, and waits.
MAPS = """
import mmap, sys, time
maps = []
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        maps.append(mmap.mmap(file.fileno(), %d, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE))
print("ready", flush=True)
time.sleep(100000)
""" % (hostile_elf.CODE + hostile_elf.CODE_SIZE)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Two of each kind; in the short form one."""
    folder = tmp_path_factory.mktemp("hostile")
    subprocess.run([sys.executable, hostile_elf.__file__, folder], check=True)
    for path in sorted(folder.iterdir()) if LONG else ():
        subprocess.run(["cp", "--sparse=always", path, str(path) + "-copy"], check=True)
    return sorted(folder.iterdir())


def maps(target, *paths):
    return target([sys.executable, "-c", MAPS, *paths])


class Cost:
    def __init__(self, usage):
        self.seconds, self.kb = usage.ru_utime + usage.ru_stime, usage.ru_maxrss

    def __repr__(self):
        return "%.2f s of CPU, %d MB" % (self.seconds, self.kb >> 10)


# Its memory counts from here on, not from the tests' own.
SMALL = ["/bin/sh", "-c", '"$0" "$@" & wait $!']


def cost_of(process, seconds=100):
    """CPU time and memory of a run that must succeed, with its children's."""
    try:
        until(lambda: os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT), "stillframe ends", seconds)
    except AssertionError as late:
        raise AssertionError("%s\n%s" % (late, hanging.end_all(process))) from None
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return Cost(usage)


@pytest.fixture
def dump(stillframe, tmp_path):
    """What a dump costs, without tables from earlier runs."""
    def run(pid):
        cache = tmp_path / ("cache-%d" % time.monotonic_ns())
        with open(tmp_path / "shown", "wb") as shown:
            return cost_of(stillframe.start("dump", "-p", pid, prefix=SMALL, stdout=shown, stderr=subprocess.DEVNULL,
                                            env={**os.environ, "XDG_CACHE_HOME": str(cache)}))
    return run


def test_hostile_files_cost_little_more(target, dump, hostile):
    ordinary = dump(maps(target).pid)
    most = dump(maps(target, *hostile).pid)
    assert most.seconds < ordinary.seconds + MORE_SECONDS, (ordinary, most)
    assert most.kb < ordinary.kb + MORE_KB, (ordinary, most)


WAITS = """
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int wait_here(void) { return pause(); }
int main(void) { puts("ready"); fflush(stdout); return wait_here() + 1; }
"""


@pytest.fixture
def endless(target, tmp_path):
    """A program with debug data that takes hours to read: functions that are in as many places as there are in a list, and none of
    them is theirs."""
    def start(name):
        (tmp_path / "waits.c").write_text(WAITS)
        (tmp_path / "debug.s").write_text(hostile_elf.ENDLESS)
        subprocess.run(["gcc", "-O1", "waits.c", "debug.s", "-o", name], cwd=tmp_path, check=True)
        os.truncate(tmp_path / name, 1 << 40)   # a limit that goes by the size would be none
        return target([tmp_path / name])
    return start


@pytest.mark.long   # it takes the whole time that a look-up may take; one that is given up is below
def test_endless_debug_data_costs_little_more(target, dump, endless, tmp_path):
    """Names come from the symbol table then, and the note says what is missing."""
    ordinary = dump(maps(target).pid)
    most = dump(endless("endless").pid)
    shown = (tmp_path / "shown").read_text()
    assert "wait_here" in shown and "main" in shown and "names are missing" in shown, shown
    assert most.seconds < ordinary.seconds + MORE_SECONDS, (ordinary, most)
    assert most.kb < ordinary.kb + MORE_KB, (ordinary, most)


def test_ctrl_c_ends_the_look_up_of_names(stillframe, endless, tmp_path):
    """The recording is whole, with addresses for names; what is left of the look-up's time is not spent."""
    output = tmp_path / "out.sfr"
    process = stillframe.start("record", "-o", output, "-d", "0.5s", "-p", endless("endless").pid)
    child = until(lambda: hanging.descendants(process.pid), "names are looked up", 60)[0]
    until(lambda: cpu_of(child) > 0.2, "it is at work", 60)
    before = cpu_of(child)
    process.send_signal(signal.SIGINT)
    assert cost_of(process).seconds < before + 2
    assert not os.path.exists("/proc/%d" % child)
    shown = stillframe("report", output).ok()
    assert "interrupted" in shown.out + shown.err, shown


def test_it_takes_its_children_along(stillframe, endless):
    """Without anybody who reads their names they end, whatever ended stillframe."""
    process = stillframe.start("dump", "-p", endless("endless").pid)
    child = until(lambda: hanging.descendants(process.pid), "names are looked up", 60)[0]
    process.kill()
    process.communicate(timeout=60)
    until(lambda: not os.path.exists("/proc/%d" % child), "its child ends", 10)


def test_a_look_up_that_stands_still_is_given_up(stillframe, endless):
    """As it would on a file whose server does not answer."""
    process = stillframe.start("dump", "-p", endless("endless").pid)
    child = until(lambda: hanging.descendants(process.pid), "names are looked up", 60)[0]
    os.kill(child, signal.SIGSTOP)
    shown = stillframe.wait(process, 60).ok()
    assert "names are missing" in shown.out, shown
    assert not os.path.exists("/proc/%d" % child)

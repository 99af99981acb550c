# SPDX-License-Identifier: Apache-2.0
"""What is in a target's files decides how much work and memory they are worth, up to limits: of all its files together, hostile
ones cost at most 10 s and 256 MB more than ordinary ones, and Ctrl-C ends any of it."""
import os
import subprocess
import sys
import time

import pytest

import hostile_elf
from processes import until

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
    """Two of each kind."""
    folder = tmp_path_factory.mktemp("hostile")
    subprocess.run([sys.executable, hostile_elf.__file__, folder], check=True)
    for path in sorted(folder.iterdir()):
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


def cost_of(stillframe, *arguments, tmp_path):
    """CPU time and memory of a run that must succeed, with its children's; without tables from earlier runs."""
    cache = tmp_path / ("cache-%d" % time.monotonic_ns())
    process = stillframe.start(*arguments, prefix=SMALL, env={**os.environ, "XDG_CACHE_HOME": str(cache)},
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT), "stillframe ends", 240)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return Cost(usage)


def test_hostile_files_cost_little_more(stillframe, target, tmp_path, hostile):
    ordinary = cost_of(stillframe, "dump", "-p", maps(target).pid, tmp_path=tmp_path)
    most = cost_of(stillframe, "dump", "-p", maps(target, *hostile).pid, tmp_path=tmp_path)
    assert most.seconds < ordinary.seconds + MORE_SECONDS, (ordinary, most)
    assert most.kb < ordinary.kb + MORE_KB, (ordinary, most)

# SPDX-License-Identifier: Apache-2.0
"""dump: who waits for whom, and who waits in a circle. Nothing is said that the memory of the process does not prove."""
import os
import re
import shutil
import subprocess

import pytest

from conftest import PROGRAMS, need_root
from processes import tids_of, until, wait_until_asleep

pytestmark = pytest.mark.waits


def waits(dump):
    """{name of a thread: (kind, name of the owner)} of those that are said to wait for something."""
    name = {thread["tid"]: thread["name"] for thread in dump["threads"]}
    return {thread["name"]: (thread["lock"]["kind"], name.get(thread["lock"]["owner"]))
            for thread in dump["threads"] if thread["lock"]}


def circles(dump):
    """[names of the threads, sorted]"""
    name = {thread["tid"]: thread["name"] for thread in dump["threads"]}
    return [sorted(name[tid] for tid in circle["threads"]) for circle in dump["circles"]]


BOTH = ["left-first", "right-first"]


@pytest.mark.parametrize("kind, lock", [("mutex", "mutex"), ("robust", "mutex"), ("recursive", "mutex"),
                                        ("write", "read-write lock"), ("read", "read-write lock")])
@pytest.mark.parametrize("engine", ["auto", "ptrace"])
def test_two_locks(stillframe, target, kind, lock, engine):
    """Two threads wait for each other's lock: each is shown with the owner, and the circle on top. Who waits for their ends is not in it."""
    t = target("lock_wait", kind).falls_asleep()
    dump = stillframe.dump(t.pid, "--engine", engine)
    assert waits(dump) == {"left-first": (lock, "right-first"), "right-first": (lock, "left-first"),
                           "lock_wait": ("end", "left-first")}
    assert circles(dump) == [BOTH] and not dump["circles"][0]["timed"]


def test_the_address_is_the_locks(stillframe, target):
    t = target("lock_wait", "write").falls_asleep()
    dump = stillframe.dump(t.pid)
    base = int(re.match("[0-9a-f]+", open("/proc/%d/maps" % t.pid).read()).group(), 16)
    symbols = subprocess.run(["nm", t.command[0]], capture_output=True, text=True, check=True).stdout
    start = {name: base + int(re.search(r"(\w+) b %s$" % name, symbols, re.M).group(1), 16) for name in ("left", "right")}
    for thread in dump["threads"]:
        if thread["name"] in BOTH:   # it has the one and waits for the other: a lock is behind the mutex in it, which takes 40 bytes
            other = "right" if thread["name"] == "left-first" else "left"
            assert int(thread["lock"]["address"], 16) == start[other] + 40, (thread["lock"], start)


def test_a_circle_of_one(stillframe, target):
    dump = stillframe.dump(target("lock_wait", "itself").falls_asleep().pid)
    assert circles(dump) == [["left-first"], ["right-first"]]


def test_a_circle_through_join(stillframe, target):
    dump = stillframe.dump(target("lock_wait", "join").falls_asleep().pid)
    assert waits(dump)["right-first"] == ("end", "left-first")
    assert circles(dump) == [BOTH]


def test_a_time_out_is_no_deadlock(stillframe, target):
    t = target("lock_wait", "timed").falls_asleep()
    dump = stillframe.dump(t.pid)
    assert circles(dump) == [BOTH] and dump["circles"][0]["timed"]
    assert "deadlock" not in stillframe("dump", "-p", t.pid).ok().out


def test_by_priority_inheritance(stillframe, target):
    """The kernel refuses the thread that would close such a circle. The other thread is shown with the owner."""
    dump = stillframe.dump(target("lock_wait", "inherits").falls_asleep().pid)
    assert waits(dump) == {"left-first": ("mutex", "right-first"), "lock_wait": ("end", "left-first")}
    assert not circles(dump)


@pytest.mark.parametrize("kind", ["readers", "semaphore"])
def test_nobody_is_named_where_nobody_is_known(stillframe, target, kind):
    dump = stillframe.dump(target("lock_wait", kind).falls_asleep().pid)
    assert waits(dump) == {"lock_wait": ("end", "left-first")} and not circles(dump)


def test_an_owner_that_cannot_be(stillframe, target):
    """A mutex that names a thread of another process: the mutex is shown, and no owner."""
    dump = stillframe.dump(target("lock_wait", "forged").falls_asleep().pid)
    assert waits(dump)["right-first"] == ("mutex", None)
    assert waits(dump)["left-first"] == ("mutex", "right-first") and not circles(dump)


PYTHON = """
import threading
left, right = threading.Lock(), threading.Lock()
def both(one, other):
    with one:
        barrier.wait()
        other.acquire()
barrier = threading.Barrier(3)
for pair in ((left, right), (right, left)):
    threading.Thread(target=both, args=pair, daemon=True).start()
barrier.wait()
print("ready", flush=True)
threading.Event().wait()
"""


def test_python_knows_no_owner(stillframe, target):
    """Python's locks are semaphores, of which nobody tells who has one: nothing is invented."""
    t = target(["python3", "-c", PYTHON]).falls_asleep()
    dump = stillframe.dump(t.pid)
    assert len(dump["threads"]) == len(tids_of(t.pid)) == 3
    assert not waits(dump) and not circles(dump)


def test_for_people(stillframe, target):
    t = target("lock_wait").falls_asleep()
    out = stillframe("dump", "-p", t.pid).ok().out
    first, second = (int(re.search(r"^(\d+) %s " % name, out, re.M).group(1)) for name in BOTH)
    assert out.splitlines()[1] in ("deadlock: left-first (%d) -> right-first (%d) -> left-first (%d)" % (first, second, first),
                                   "deadlock: right-first (%d) -> left-first (%d) -> right-first (%d)" % (second, first, second))
    assert re.search(r"^%d left-first  blocked.*\n  waits for the mutex 0x\w+, held by right-first \(%d\)$" % (first, second),
                     out, re.M), out
    assert "  waits for the end of left-first (%d)\n" % first in out


def test_in_a_pid_namespace(stillframe, target):
    """The process numbers its threads in its own way; they are shown by our numbers."""
    need_root()
    t = target(["unshare", "--pid", "--fork", "--kill-child", os.path.join(PROGRAMS, "lock_wait")])
    pid = int(open("/proc/%d/task/%d/children" % (t.pid, t.pid)).read())
    wait_until_asleep(pid, "lock_wait")
    dump = stillframe.dump(pid)
    assert circles(dump) == [BOTH] and dump["circles"][0]["threads"][0] in tids_of(pid)


JOINS = """
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *rest(void *arg) { pause(); return arg; }
int main(void)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, rest, NULL);
	puts("ready");
	fflush(stdout);
	return pthread_join(threads[1], NULL);
}
"""


@pytest.mark.parametrize("compiler, known", [("gcc", True), ("musl-gcc", False)])
def test_a_join_in_a_pid_namespace(stillframe, target, tmp_path, compiler, known):
    """musl's word for a thread that can be joined is 2, which is the id of a thread here: of another one."""
    need_root()
    if not shutil.which(compiler):
        pytest.skip("%s is not installed" % compiler)
    source, program = tmp_path / "joins.c", tmp_path / "joins"
    source.write_text(JOINS)
    subprocess.run([compiler, "-g", "-O1", "-static", "-pthread", "-o", program, source], check=True)
    t = target(["unshare", "--pid", "--fork", "--kill-child", str(program)])
    pid = int(open("/proc/%d/task/%d/children" % (t.pid, t.pid)).read().split()[0])
    tids = tids_of(pid)
    until(lambda: open("/proc/%d/syscall" % pid).read().startswith("202 "), "it joins")
    lock = stillframe.dump(pid)["threads"][0]["lock"]
    assert [open("/proc/%d/task/%d/status" % (pid, tid)).read().split("NSpid:")[1].split()[1] for tid in tids] == ["1", "2", "3"]
    assert ((lock["kind"], lock["owner"]) == ("end", tids[2]) if known else lock is None), (lock, tids)

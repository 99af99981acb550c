# SPDX-License-Identifier: Apache-2.0
"""dump: which thread of a JVM waits for which, beside what jstack says."""
import re

import pytest

import hanging
from java_stacks import jdk  # noqa: F401 (a fixture)

pytestmark = pytest.mark.waits

CIRCLES = [["a then b", "b then a"], ["left then right", "right then left"]]


def theirs(jdk, pid):
    """{thread: (what, class of the lock, owner)} of jstack's word: who waits for what, and who has that. A lock that nobody has by
    itself, as a latch and one that readers have, is no wait for anybody."""
    wanted, owners, name = {}, {}, None
    for line in hanging.run_well(jdk.tool("jstack", "-l", pid)).splitlines():
        if line.startswith("Found "):
            break
        if head := re.match(r'"(.*)" ', line):
            name = head.group(1)
        if wait := re.match(r"\s+- (waiting to lock|parking to wait for)\s+<(\w+)> \(a (.*)\)", line):
            kind = "monitor" if "to lock" in wait.group(1) else "lock"
            wanted[name] = (kind, wait.group(2), wait.group(3).replace("Class for", "Class of"))
        if lock := re.match(r"\s+- (?:locked )?<(\w+)> \(a ", line):
            owners[lock.group(1)] = name
    return {name: (kind, of, owners[lock]) for name, (kind, lock, of) in wanted.items() if lock in owners}


def ours(dump):
    names = {thread["tid"]: thread["name"] for thread in dump["threads"]}
    return {thread["name"]: (thread["lock"]["kind"], thread["lock"]["class"], names.get(thread["lock"]["owner"]))
            for thread in dump["threads"] if thread["lock"] and thread["lock"]["kind"] != "end"}


OPTIONS = ["", "-Xint -XX:+UseParallelGC -XX:-UseCompressedOops", "-XX:+UseZGC", "-XX:LockingMode=1", "-XX:+UseCompactObjectHeaders"]
SINCE = {"-XX:LockingMode=1": 21, "-XX:+UseCompactObjectHeaders": 25}


@pytest.mark.each_jdk
@pytest.mark.long("Parallel", "ZGC", "LockingMode", "Compact")
@pytest.mark.parametrize("options", OPTIONS)
def test_as_jstack_says(stillframe, target, jdk, options):
    """Each wait for a monitor, and for a lock of java.util.concurrent, with the lock's class and its owner; no other wait; and both circles."""
    if jdk.version < SINCE.get(options, 0):
        pytest.skip("JDK %d does not have %s" % (jdk.version, options))
    t = target(jdk.java(options.split(), "LockWait"))
    expected = theirs(jdk, t.pid)
    assert len(expected) == 8 and expected["of a class"] == ("monitor", "java.lang.Class of LockWait", "has much")
    dump = stillframe.dump(t.pid)
    assert ours(dump) == expected
    names = {thread["tid"]: thread["name"] for thread in dump["threads"]}
    assert sorted(sorted(names[tid] for tid in circle["threads"]) for circle in dump["circles"]) == CIRCLES
    timed = {thread["name"] for thread in dump["threads"] if thread["lock"] and thread["lock"]["timed"]}
    assert timed == {"for a while"} and not any(circle["timed"] for circle in dump["circles"])


@pytest.mark.parametrize("engine", ["auto", "ptrace"])
def test_the_wait_is_the_one_of_the_stack(stillframe, target, jdk, engine):
    """The JVM lets a thread sleep on the same word for each lock. Between its stack and its lock, names are looked up, and it
    goes on."""
    t = target(jdk.java(["-Xint"], "LockTurns"))
    seen = []
    for _ in range(200):
        dump = stillframe.dump(t.pid, "--engine", engine)
        thread, = [thread for thread in dump["threads"] if thread["name"] == "in turns"]
        names = {thread["tid"]: thread["name"] for thread in dump["threads"]}
        if thread["lock"] and thread["lock"]["owner"]:
            stack = " ".join(frame["function"] for frame in thread["frames"])
            wanted = "has first" if "inFirst" in stack else "has second" if "inSecond" in stack else stack
            seen.append((names[thread["lock"]["owner"]], wanted))
        if len(seen) == 20:
            break
    assert seen and all(owner == wanted for owner, wanted in seen), seen

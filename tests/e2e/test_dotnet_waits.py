# SPDX-License-Identifier: Apache-2.0
"""dump: what the threads of a .NET program wait for (tests/programs/dotnet/Blocked.cs, whose threads are named after how they wait)."""
import os
import subprocess

import pytest

from processes import Target, until
from test_dotnet import compile_program

EXPECTED = {
    "Task.Wait": "waits for a task",
    "Task.Wait with a time-out": "waits for a task",
    "Task.Result": "waits for a task",
    "Task.GetResult": "waits for a task",
    "Task.WaitAll": "waits for all of several tasks",
    "Task.WaitAny": "waits for one of several tasks",
    "SemaphoreSlim": "waits for a semaphore",
    "Semaphore": "waits for a handle",
    "ManualResetEvent": "waits for a handle",
    "AutoResetEvent": "waits for a handle",
    "WaitAny": "waits for one or all of several handles",
    "ManualResetEventSlim": "waits for an event",
    "CountdownEvent": "waits for a countdown",
    "Barrier": "waits for the others at a barrier",
    "BlockingCollection": "waits for an item of a collection",
    "Monitor.Wait": "waits for a monitor's pulse",
    "Sleep": "sleeps",
    "Join": "waits for a thread's end",
    "Join with a time-out": "waits for a thread's end",
    "Accept": "waits for a connection",
    "Receive": "waits for data from a socket",
    "Exit": "waits for a process's end",
    "Pipe": "waits for data from a pipe",
    "writer": "sleeps",
    "another writer": "waits for a lock, to write",
    "reader": "waits for a lock, to read",
    "has the Lock": "sleeps",
    "Lock": "waits for a lock",
    "dotnet": "waits for input",
    ".NET Sockets": "waits for events of sockets",
}

# The object that a thread waits for: kind, type, the thread that has it, and whether the wait has a time-out.
OBJECTS = {
    "Semaphore": ("handle", "System.Threading.Semaphore", None, False),
    "ManualResetEvent": ("handle", "System.Threading.ManualResetEvent", None, False),
    "AutoResetEvent": ("handle", "System.Threading.AutoResetEvent", None, True),
    "Join": ("end", "", "Sleep", False),
    "Join with a time-out": ("end", "", "Sleep", True),
    "another writer": ("read-write lock", "System.Threading.ReaderWriterLockSlim", "writer", False),
    "reader": ("read-write lock", "System.Threading.ReaderWriterLockSlim", "writer", False),
    "Lock": ("lock", "System.Threading.Lock", "has the Lock", False),
}


@pytest.fixture
def target(tmp_path):
    started = Target(["dotnet", compile_program(tmp_path, "Blocked")], env={**os.environ, "TMPDIR": str(tmp_path)}, stdin=subprocess.PIPE)
    yield started
    started.end()
    started.process.stdin.close()


def test_waits(stillframe, target):
    """Each thread's wait by the outermost method of the library that waits, and the object with its owner where both are on the stack.
    Threads that have just been started have not come to their wait yet."""
    seen = {}

    def all_wait():
        seen.update(dump=stillframe.dump(target.pid))
        purposes = {thread["name"]: thread["purpose"] for thread in seen["dump"]["threads"] if thread["purpose"]}
        seen.update(purposes=purposes)
        return {name: purpose for name, purpose in purposes.items() if name in EXPECTED} == EXPECTED
    try:
        until(all_wait, "each thread waits as its name says", 30, 0.1)
    except AssertionError:
        assert seen["purposes"] == EXPECTED
    threads = seen["dump"]["threads"]
    names = {thread["tid"]: thread["name"] for thread in threads}
    assert {thread["name"]: (thread["lock"]["kind"], thread["lock"]["class"], names.get(thread["lock"]["owner"]), thread["lock"]["timed"])
            for thread in threads if thread["lock"]} == OBJECTS
    assert all(thread["purpose"] is None or thread["state"] == "blocked" for thread in threads)


def test_lines(stillframe, target):
    """The same for people: a line below the thread's name, and one line only."""
    def found():
        lines = stillframe("dump", "-p", target.pid).ok().out.split("\n\n")
        return {block.split("  ")[0].split(" ", 1)[1]: block.splitlines()[1:3] for block in lines if block[:1].isdigit()}
    until(lambda: found().get("Lock", [""])[0].startswith("  waits for the lock 0x"), "the thread waits for the lock", 30, 0.1)
    blocks = found()
    assert blocks["Lock"][0].split(" held by ")[1].startswith("has the Lock ("), blocks["Lock"]
    assert blocks["Task.Wait"][0] == "  waits for a task" and blocks["Task.Wait"][1].startswith("  #0 "), blocks["Task.Wait"]

# SPDX-License-Identifier: Apache-2.0
"""Streams that say more than any program does: each kind of record has a limit, and what is beyond it is said.

A stream of this kind costs its reader at most 256 MB and 10 s more than an ordinary one, and Ctrl-C ends that."""
import os
import re
import signal
import struct

import pytest

from conftest import LONG
from processes import until
from recordings import stream_record

PROCESS, THREAD, IMAGE, SAMPLE, LABEL, NOTE, PLACE = 1, 2, 4, 5, 8, 9, 11
C2 = 5
MORE_MEMORY = 256 << 20
MORE_SECONDS = 10


def process(pid, name=b"hostile"):
    return stream_record(PROCESS, struct.pack("<iiQQQQHHHH", pid, 1, 1, 1, 199000, 20000, 62, 1, len(name), len(name)), name, name)


def thread(serial, name=b"t"):
    return stream_record(THREAD, struct.pack("<IiQII", serial, serial, 1, len(name), 0), name)


def image(number, path):
    return stream_record(IMAGE, struct.pack("<II32sQQHHHH", number, 0, b"", number, 1, len(path), 0, 0, 0), path)


def label(number, key, value=b""):
    return stream_record(LABEL, struct.pack("<IHH", number, len(key), len(value)), key, value)


def note(text):
    return stream_record(NOTE, struct.pack("<II", len(text), 0), text)


def place(key, *names):
    functions = [struct.pack("<IHHHHI", 1, len(name), 0, 0, 0, 0) for name in names]
    return stream_record(PLACE, struct.pack("<QII", key, len(names), sum(map(len, names))), *functions, *names)


def sample(frames, serial=1, ms=1, label=0):
    return stream_record(SAMPLE, struct.pack("<IIQQQQIIiBBH", serial, len(frames) // 16, ms * 1000000, 1000, 1000, 0, 1, label, -1, 0, 0, 0),
                  frames)


def native(addresses, number=0, flags=0):
    return b"".join(struct.pack("<QIBBBB", address, number, 0, flags, 0, 0) for address in addresses)


def chosen(numbers):
    """Addresses whose frames fell into one place of a hash table, while its hash could be foretold (base/intern.c)."""
    mask = (1 << 64) - 1
    prime, mix = pow(0x100000001b3, -1, 1 << 64), pow(0x9e3779b97f4a7c15, -1, 1 << 64)

    def unshift(value, n):
        return value ^ value >> n ^ (value >> 2 * n if 2 * n < 64 else 0)
    for number in numbers:
        value = unshift(number << 32, 29) * mix & mask
        value = unshift(value, 32)
        value = unshift(value, 29) * prime & mask ^ 1 << 48   # exact, of no module
        yield unshift(value, 29) * prime & mask ^ 0xcbf29ce484222325 ^ 16


def managed(keys):
    return b"".join(struct.pack("<QIBBBB", key, 0, 0, 0, C2, 0) for key in keys)


DEPTH = 4000
MANY = 1500 if LONG else 450   # samples of so many frames: 450 go beyond each limit
ONE = native([0x1000, 0x2000])


def times(long, short):
    """How many: the short form goes beyond each limit by a tenth at least, the long one by far."""
    return long if LONG else short


# What it is made of, after a process and a thread, and the words in which the reader is told.
HOSTILE = {
    "processes": (lambda: (process(i) + thread(1) + sample(ONE) for i in range(2, 400000)), "more than 262,144 programs"),
    "threads": (lambda: (thread(i) + sample(ONE, i) for i in range(2, times(600000, 300000))), "more than 262,144 threads"),
    "names": (lambda: (thread(1, b"%0100d" % i) for i in range(times(1000000, 740000))), "names have more than 64 MB"),
    "long names": (lambda: (thread(1, b"%065530d" % i) for i in range(3000)), "names have more than 64 MB"),
    "images": (lambda: (image(i, b"/nonexistent/%d" % i) for i in range(1, times(500000, 100000))), "more than 8,192 different files"),
    "long paths": (lambda: (image(i, b"/%04090d" % i) for i in range(1, 30000)), "more than 8,192 different files"),
    "labels": (lambda: (label(i, b"k", b"%d" % i) + sample(ONE, label=i) for i in range(1, times(300000, 80000))), "more than 65,536 labels"),
    "long labels": (lambda: (label(i, b"k" * 60000, b"%060000d" % i) for i in range(1, 1500)), "labels have more than 16 MB"),
    "notes": (lambda: (note(b"%d" % i) for i in range(times(1000000, 100000))), "more than 1,000 notes"),
    "long notes": (lambda: (note(b"%0100000d" % i) for i in range(1500)), "more than 1,000 notes"),
    "places": (lambda: (place(i, b"m%d" % i) + sample(managed([i])) for i in range(1, times(500000, 150000))), "131,072"),
    "long places": (lambda: (place(i, *(b"%d/%d" % (i, j) for j in range(128))) for i in range(1, times(20000, 5000))), "524,288 functions"),
    "places that are never told": (lambda: (sample(managed(range(i * DEPTH + 1, i * DEPTH + DEPTH))) for i in range(MANY)), "131,072"),
    "addresses": (lambda: (sample(native(range(i * DEPTH, i * DEPTH + DEPTH))) for i in range(MANY)), "524,288 different addresses"),
    "addresses that were chosen": (lambda: (sample(native(chosen(range(i * DEPTH, i * DEPTH + DEPTH)), flags=1)) for i in range(130)), ""),
    "stacks": (lambda: (sample(native(range(i * 7, i * 7 + DEPTH))) for i in range(MANY)), "1,500,000 different stacks"),
    "mappings": (lambda: (image(i, b"/nonexistent") for i in range(1, times(1500000, 1100000))), "more than 1,000,000 times a file"),
    "inlined calls": (lambda: (place(i, *(b"f%d.%d" % (i, j) for j in range(128))) if i <= 1000 else
                               sample(managed((i * j) % 997 + 1 for j in range(500))) for i in range(1, 2000)),
                      "without inlined calls"),
    "deep threads": (lambda: (thread(i) + sample(native(range(DEPTH)), i) for i in range(2, 2000)), ""),
    "times": (lambda: (sample(ONE, ms=i * 5000) for i in range(500000)), ""),
    "nothing": (lambda: (b"\x08\0\0\0\xff\xff\0\0" * 1000 for i in range(20000)), ""),
}


def write(path, records):
    with open(path, "wb", buffering=1 << 20) as file:
        file.write(struct.pack("<24sII", b"stillframe stream\n", 2, 0) + process(1) + thread(1) + sample(ONE))
        file.writelines(records)


def measure(stillframe, *arguments):
    """(status, what it printed, seconds of CPU time, peak memory in bytes) of a run."""
    run = stillframe.start(*arguments, stdout=open(os.path.join(stillframe.cwd, "stdout"), "wb"),
                           stderr=open(os.path.join(stillframe.cwd, "stderr"), "wb"))
    _, status, usage = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    with open(os.path.join(stillframe.cwd, "stdout"), errors="replace") as out, \
            open(os.path.join(stillframe.cwd, "stderr"), errors="replace") as err:
        return run.returncode, re.sub(r"\s+", " ", out.read() + err.read()), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


# The short form reaches limits of each kind of record; those of threads, functions and addresses are reached in the long form.
@pytest.mark.long("processes", "threads", "long names", "long paths", "long notes", "long places", "places that are never told", "addresses]",
                  "addresses that were chosen", "inlined calls", "places]", "times", "nothing")
@pytest.mark.parametrize("kind", HOSTILE)
def test_limits(stillframe, tmp_path, kind):
    make, words = HOSTILE[kind]
    write(tmp_path / "ordinary.sfs", [])
    write(tmp_path / "hostile.sfs", make())
    _, _, usual_seconds, usual_memory = measure(stillframe, "report", tmp_path / "ordinary.sfs")
    status, text, seconds, memory = measure(stillframe, "report", tmp_path / "hostile.sfs")
    print("%s: %.1f s, %d MB, stream of %d MB" % (kind, seconds, (memory - usual_memory) >> 20,
                                                  os.path.getsize(tmp_path / "hostile.sfs") >> 20))
    assert status == 0 and words in text, text[-3000:]
    assert memory - usual_memory <= MORE_MEMORY
    assert seconds - usual_seconds <= MORE_SECONDS


@pytest.mark.parametrize("command", [["report"], ["export", "-f", "html", "-o", "-"]], ids=lambda command: command[0])
def test_ctrl_c(stillframe, tmp_path, command):
    """While it reads: it ends at once, and leaves nothing behind."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    write(tmp_path / "hostile.sfs", HOSTILE["stacks"][0]())
    run = stillframe.start(command[0], tmp_path / "hostile.sfs", *command[1:], env={**os.environ, "TMPDIR": str(folder)})
    until(lambda: run.poll() is not None or any(folder.glob("*/*")), "it has begun")
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=30)
    assert run.returncode == -signal.SIGINT
    assert list(folder.iterdir()) == []

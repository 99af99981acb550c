# SPDX-License-Identifier: Apache-2.0
"""Names that are orders to a terminal reach none: whatever holds ESC, C1 or a turn of the direction of writing, the
output of every command is plain text. tests/programs/escapes.c has such names; a stream has them in every text."""
import gzip
import json
import os
import re
import shutil
import struct

import pytest

from conftest import PROGRAMS
from recordings import stream_record
from test_export import varints

ESC = "\x1b[31m"
NASTY = ESC + "\x9b2J\u202e\x7f"
FORBIDDEN = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def assert_plain(text):
    """Of bytes: valid UTF-8, and nothing that a terminal obeys but ends of lines."""
    text = text if isinstance(text, str) else text.decode()
    found = FORBIDDEN.search(text.replace("\n", ""))
    assert not found, (found, text[max(0, found.start() - 60):found.start() + 60])
    return text


def said(done):
    """All that a command printed, plain."""
    return assert_plain(done.out) + assert_plain(done.err)


@pytest.fixture
def program(target, tmp_path):
    path = os.path.join(os.fsencode(tmp_path), b"im" + NASTY.encode() + b"age")
    fifo = os.path.join(os.fsencode(tmp_path), b"fi" + NASTY.encode() + b"fo")
    shutil.copy(os.path.join(PROGRAMS, "escapes"), path)
    os.mkfifo(fifo)
    return [os.fsdecode(path), os.fsdecode(fifo)]


@pytest.fixture
def running(target, program):
    return target(program)


def exports(stillframe, file, tmp_path):
    """The texts of all exports of a recording or stream, plain."""
    texts = {}
    for form in ("collapsed", "speedscope", "html", "pprof"):
        said(stillframe("export", file, "-f", form, "--clock", "wall", "-o", tmp_path / "out").ok())
        data = (tmp_path / "out").read_bytes()
        if form == "pprof":
            strings = [value for number, value in varints(gzip.decompress(data)) if number == 6]
            data = b"\n".join(strings)
        texts[form] = assert_plain(data)
    json.loads(texts["speedscope"])
    return texts


def reports(stillframe, file):
    """What report prints of it, as text and as JSON."""
    return (said(stillframe("report", file, "--clock", "wall").ok()),
            json.loads(said(stillframe("report", file, "--json").ok())))


def test_dump(stillframe, running):
    text = said(stillframe("dump", "-p", running.pid).ok())
    for name in ("pr?[31moc", "th?[31mread", "sp?[31min", "li?[31mne??2J???.c:", "fi?[31m??2J????fo"):
        assert name in text, (name, text)
    told = json.loads(said(stillframe("dump", "-p", running.pid, "--json").ok()))
    assert any("im?[31m??2J????age" in frame["module"] for thread in told["threads"] for frame in thread["frames"])


def test_doctor(stillframe, running):
    said(stillframe("doctor", "-p", running.pid).ok())
    said(stillframe("doctor", env={**os.environ, "XDG_CACHE_HOME": "/tmp/" + NASTY}))


@pytest.mark.parametrize("engine", ["ptrace", "signal"])
def test_record(stillframe, program, tmp_path, engine):
    file = tmp_path / ("r" + NASTY + ".sfr")
    text = said(stillframe("record", "-e", engine, "-o", file, "--", *program, "1"))
    assert "im?[31m??2J????age" in text and "r?[31m??2J????.sfr" in text
    told, parsed = reports(stillframe, file)
    for name in ("th?[31mread", "sp?[31min", "im?[31m??2J????age"):
        assert name in told, (name, told)
    for form, text in exports(stillframe, file, tmp_path).items():
        assert "sp?[31min" in text, form


def test_record_of_a_process(stillframe, running, tmp_path):
    text = said(stillframe("record", "-p", running.pid, "-d", "0.5"))
    assert "of pr?[31moc (pid" in text


def stream_of(text):
    """A stream (docs/stream.md) with this in every text: of a process, thread, image, label, note, and place in Java code."""
    name = text.encode(errors="surrogateescape")
    n = len(name)
    frames = struct.pack("<QIBBBB", 0x1000, 1, 0, 0, 0, 0) + struct.pack("<QIBBBB", 77, 0, 0, 0, 7, 0)
    functions = struct.pack("<IHHHHI", 3, n, n, n, 0, 0)
    return b"".join([
        struct.pack("<24sII", b"stillframe stream\n", 2, 0),
        stream_record(1, struct.pack("<iiQQQQHHHH", 42, 1, 1, 1, 199000, 20000, 62, 1, n, n), name, name),
        stream_record(2, struct.pack("<IiQII", 1, 42, 1, n, 0), name),
        stream_record(4, struct.pack("<II32sQQHHHH", 1, 4, b"abcd", 0, 0, n, n, 0, 0), name, name),
        stream_record(8, struct.pack("<IHH", 1, n, n), name, name),
        stream_record(11, struct.pack("<QII", 77, 1, 3 * n), functions, name, name, name),
        stream_record(9, struct.pack("<II", n, 0), name),
        stream_record(5, struct.pack("<IIQQQQIIiBBH", 1, 2, 2, 1000000, 1000000, 0, 1, 1, -1, 0, 0, 0), frames),
    ])


def test_a_stream(stillframe, tmp_path):
    file = tmp_path / ("s" + NASTY + ".sfs")
    file.write_bytes(stream_of("x" + NASTY + "y"))
    text, parsed = reports(stillframe, file)
    assert "x?[31m??2J????y" in text
    exports(stillframe, file, tmp_path)


@pytest.mark.parametrize("arguments", [
    [NASTY], [NASTY, NASTY], ["dump", NASTY], ["dump", "-p", NASTY], ["doctor", NASTY], ["manual", NASTY],
    ["report", "/tmp/" + NASTY], ["report", "--" + NASTY], ["report", "-" + NASTY],
    ["export", "/tmp/" + NASTY, "-f", "html"], ["export", "x", "-f", NASTY],
    ["record", "-o", "/nonexistent/" + NASTY, "--", "true"], ["record", "--", "/nonexistent/" + NASTY],
    ["record", "--threads", NASTY + "(", "--", "true"], ["record", "-e", NASTY, "--", "true"],
], ids=lambda arguments: arguments[0] if arguments[0] != NASTY else "command")
def test_messages(stillframe, arguments):
    done = stillframe(*arguments)
    assert done.status != 0
    said(done)

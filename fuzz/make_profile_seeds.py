#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the seeds of fuzz_profile: recordings as stillframe writes them today. To be run after each change of the schema.

make_profile_seeds.py [BUILD]
"""
import contextlib
import os
import sqlite3
import struct
import subprocess
import sys
import tempfile

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(TOP, "tests/e2e"))

from recordings import redo_record   # noqa: E402

SEEDS = os.path.join(TOP, "fuzz/corpus/fuzz_profile")

# To add one: its name, and the arguments of tests/programs/make_recording.
MADE = {
    "stacks-1": ("1", "2", "1"),
    "stacks-3": ("3", "12", "2"),
    "stacks-20": ("20", "40", "3"),
    "labels-3": ("3", "12", "2", "labels"),
    "events-3": ("3", "12", "2", "events"),
}


SMALL_PAGE = 512   # bytes: the least that SQLite takes. Most of a small recording is pages with a row or two


def make(program, arguments):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "r.sfr")
        subprocess.run([program, path, *arguments], check=True)
        with open(path, "rb") as file:
            return file.read()


def after(data, *statements):
    """The recording with these statements done."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "r.sfr")
        with open(path, "wb") as file:
            file.write(data)
        with contextlib.closing(sqlite3.connect(path)) as db:
            for statement in statements:
                db.execute(statement)
            db.commit()
        with open(path, "rb") as file:
            return file.read()


def journal(n_pages):
    """A journal of SQLite's whose end names the journal of several files, which a reader may delete: "victim"
    (https://www.sqlite.org/fileformat.html, section 3)."""
    name = b"victim"
    header = bytes.fromhex("d9d505f920a163d7") + struct.pack(">IIIII", 0, 0, n_pages, 512, SMALL_PAGE)
    lock_page, total = 0x40000000 // SMALL_PAGE + 1, sum(name)
    return header.ljust(512, b"\0") + struct.pack(">I", lock_page) + name + struct.pack(">II", len(name), total) + header[:8]


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else os.path.join(TOP, "build")
    program = os.path.join(build, "tests/programs/make_recording")
    seeds = {name: make(program, arguments) for name, arguments in MADE.items()}
    old = seeds["stacks-20"]
    new = after(old, "UPDATE session SET command = 'the new state', duration_ns = 4000000000", "UPDATE threads SET name = 'new'")
    seeds = {name: after(data, "PRAGMA page_size = %d" % SMALL_PAGE, "VACUUM") for name, data in seeds.items()}
    seeds["killed-in-a-burst"] = old + redo_record(old, new)
    beside = journal(len(seeds["stacks-1"]) // SMALL_PAGE)
    seeds["journal-beside"] = seeds["stacks-1"] + beside + struct.pack(">I", len(beside)) + b"-journal"
    for name, data in seeds.items():
        with open(os.path.join(SEEDS, name), "wb") as file:
            file.write(data)


main()

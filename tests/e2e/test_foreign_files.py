# SPDX-License-Identifier: Apache-2.0
"""A target's files name others. Merely opening a device can reboot a machine, and opening a FIFO hangs: so what such a name leads
to is looked at first, and only a regular file is opened. Each name here leads to a FIFO, and inotify sees who opens it."""
import contextlib
import ctypes
import os
import sqlite3
import struct
import subprocess

import pytest

from conftest import PROGRAMS

pytestmark = pytest.mark.waits

IN_OPEN = 0x20

SOURCE = """
#include <stdio.h>
#include <unistd.h>
static __attribute__((noinline)) int wait_here(void) { return pause(); }
int main(void) { puts("ready"); fflush(stdout); return wait_here() + 1; }
"""


class Openings:
    """Who opens this file; finding it with O_PATH is none."""

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self.fd >= 0 and libc.inotify_add_watch(self.fd, os.fsencode(path), IN_OPEN) >= 0, ctypes.get_errno()

    def seen(self):
        try:
            return len(os.read(self.fd, 4096)) // struct.calcsize("iIII")
        except BlockingIOError:
            return 0


@contextlib.contextmanager
def nobody_opens(path):
    openings = Openings(path)
    try:
        yield
        assert openings.seen() == 0, "%s was opened" % path
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        assert openings.seen() == 1, "an opening is not seen"
    finally:
        os.close(openings.fd)


@pytest.fixture
def folder(tmp_path):
    """The target's; stillframe runs in another one."""
    (tmp_path / "target").mkdir()
    return tmp_path / "target"


@pytest.fixture
def build(folder):
    """A program that waits in wait_here()."""
    def make(*options):
        (folder / "waits.c").write_text(SOURCE)
        subprocess.run(["gcc", "-g", "-O1", *options, "waits.c", "-o", "waits"], cwd=folder, check=True)
        return folder / "waits"
    return make


def is_named(stillframe, process):
    """Its one thread's stack is shown, with the names that the symbol table has."""
    shown = stillframe("dump", "-p", process.falls_asleep().pid).ok()
    assert "wait_here" in shown.out and "main" in shown.out, shown


def test_a_debug_link_to_a_fifo(stillframe, target, build, folder):
    program = build()
    subprocess.run(["objcopy", "--only-keep-debug", "waits", "waits.debug"], cwd=folder, check=True)
    subprocess.run(["objcopy", "--strip-debug", "--add-gnu-debuglink=waits.debug", "waits"], cwd=folder, check=True)
    os.unlink(folder / "waits.debug")
    os.mkfifo(folder / "fifo")
    os.symlink("fifo", folder / "waits.debug")
    with nobody_opens(folder / "fifo"):
        is_named(stillframe, target([program]))


@pytest.mark.parametrize("spell", ["%s", "/%s", "/.%s"])
def test_an_alternate_debug_file_that_is_a_fifo(stillframe, target, build, folder, spell):
    program = build()
    os.mkfifo(folder / "fifo")
    (folder / "link").write_bytes((spell % (folder / "fifo")).encode() + b"\0" + bytes(range(20)))
    subprocess.run(["objcopy", "--add-section", ".gnu_debugaltlink=link", "waits"], cwd=folder, check=True)
    with nobody_opens(folder / "fifo"):
        is_named(stillframe, target([program]))


@pytest.mark.parametrize("dwarf", ["-gdwarf-4", "-gdwarf-5"])
@pytest.mark.parametrize("place", ["beside", "in the folder", "in a relative folder"])
def test_a_split_unit_that_is_a_fifo(stillframe, target, build, folder, dwarf, place):
    """The name is tried beside the file, and in the folder where the compiler ran."""
    there = folder if place == "beside" else folder / "there"
    comp_dir = {"beside": "/nonexistent", "in the folder": there, "in a relative folder": "there"}[place]
    program = build("-gsplit-dwarf", dwarf, "-fdebug-prefix-map=%s=%s" % (folder, comp_dir))
    there.mkdir(exist_ok=True)
    name = next(each.name for each in folder.iterdir() if each.suffix == ".dwo")
    os.unlink(folder / name)
    os.mkfifo(there / name)
    with nobody_opens(there / name):
        is_named(stillframe, target([program]))


def test_a_split_unit_is_read(stillframe, target, build, folder):
    """The same with the file that belongs there: its names need it, the symbol table has none of them."""
    program = build("-gsplit-dwarf")
    subprocess.run(["strip", "--strip-unneeded", "--keep-section=.debug_*", "waits"], cwd=folder, check=True)
    shown = stillframe("dump", "-p", target([program]).falls_asleep().pid).ok()
    assert "wait_here" in shown.out and "waits.c" in shown.out, shown


def test_a_mapped_file_that_became_a_fifo(stillframe, target, build, folder):
    program = build()
    process = target([program])
    os.unlink(program)
    os.mkfifo(program)
    with nobody_opens(program):
        stillframe("dump", "-p", process.pid).ok()


def test_an_image_of_a_stream_that_is_a_fifo(stillframe, folder):
    """A stream names the files of its process; so does an agent."""
    with open(os.path.join(PROGRAMS, "make_stream"), "rb") as file:
        (folder / "maker").write_bytes(file.read())
    os.chmod(folder / "maker", 0o755)
    subprocess.run([folder / "maker", folder / "stream"], check=True)
    os.unlink(folder / "maker")
    os.mkfifo(folder / "maker")
    with nobody_opens(folder / "maker"):
        stillframe("report", folder / "stream").ok()


def test_a_module_of_a_recording_that_is_a_fifo(stillframe, tmp_path):
    """A recording that was cut short is named while it is read, from the files that it names itself."""
    path, fifo = tmp_path / "r.sfr", tmp_path / "module"
    stillframe("record", "-F", "499", "-o", path, "--", os.path.join(PROGRAMS, "busy_split"), 0.3).ok()
    os.mkfifo(fifo)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE session SET complete = 0")
        db.execute("DELETE FROM frame_functions")
        assert db.execute("UPDATE modules SET path = ? WHERE build_id <> ''", [str(fifo)]).rowcount > 0
        db.commit()
    with nobody_opens(fifo):
        assert "cut short" in stillframe("report", path).ok().out

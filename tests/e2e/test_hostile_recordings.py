# SPDX-License-Identifier: Apache-2.0
"""Recordings of others, and folders in which others can write: reading one changes nothing and opens nothing but the one file;
recording makes one file and leaves alone what others put beside it."""
import contextlib
import json
import os
import shutil
import sqlite3
import stat
import struct
import subprocess

import pytest

from conftest import PROGRAMS, need_root
from processes import until
from recordings import Recording, redo_record, redone, ticks_so_far

pytestmark = pytest.mark.waits

NOBODY = 65534
PAGE = 4096
SEEDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../fuzz/corpus/fuzz_profile")
READERS = [["report"], ["report", "--json"], ["export", "--format", "collapsed", "-o", "-"]]


@pytest.fixture(params=["as we are", "as nobody"])
def reader(request, stillframe, tmp_path):
    """Runs stillframe, as who runs the tests and as an ordinary user, on files in a folder that everybody may write to."""
    folder = tmp_path / "open to all"
    folder.mkdir()
    folder.chmod(0o777)
    prefix, program = [], os.path.join(PROGRAMS, "busy_split")
    if request.param == "as nobody":
        everybodys = request.getfixturevalue("everybodys")
        stillframe.path, program = everybodys.stillframe(), everybodys.program("busy_split")
        for above in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
            above.chmod(above.stat().st_mode | 0o055)
        prefix = ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups"]

    def run(*arguments, **how):
        return stillframe(*arguments, prefix=prefix, cwd="/", **how)
    run.prefix, run.folder, run.uid, run.program = prefix, folder, NOBODY if prefix else os.geteuid(), program
    return run


def mine(reader, path):
    if reader.prefix:
        os.chown(path, reader.uid, reader.uid)
    return path


def contents(folder):
    """Everything in a folder, with all that reading must not change."""
    return {path.name: (os.readlink(path) if path.is_symlink() else path.read_bytes(), path.lstat().st_mode,
                        path.lstat().st_ino, path.lstat().st_mtime_ns) for path in folder.iterdir()}


def journal(super_journal, pages=(), size=1):
    """A rollback journal as SQLite takes for the one of a crash: it restores `pages`, cuts the database to `size` pages, and
    removes `super_journal` when that is done (https://www.sqlite.org/fileformat.html, "The Rollback Journal")."""
    magic, nonce = bytes.fromhex("d9d505f920a163d7"), 1
    out = magic + struct.pack(">5I", len(pages), nonce, size, 512, PAGE)
    out = out.ljust(512, b"\0")
    for number, data in pages:
        check = nonce + sum(data[i] for i in range(PAGE - 200, 0, -200))
        out += struct.pack(">I", number) + data + struct.pack(">I", check & 0xffffffff)
    name = os.fsencode(super_journal)
    lock_page = 0x40000000 // PAGE + 1
    return out + struct.pack(">I", lock_page) + name + struct.pack(">II", len(name), sum(name)) + magic


def evil(reader, good):
    """A recording, and a journal beside it that would have a victim removed and a page of it rewritten."""
    path = mine(reader, shutil.copy(good, reader.folder / "evil.sfr"))
    victim = reader.folder / "victim"
    victim.write_text("years of work")
    mine(reader, victim)
    data = good.read_bytes()
    beside = reader.folder / "evil.sfr-journal"
    beside.write_bytes(journal(victim, [(1, data[:PAGE]), (3, bytes(PAGE))], len(data) // PAGE))
    mine(reader, beside)
    return path


@pytest.mark.parametrize("how", READERS, ids=" ".join)
def test_a_journal_beside_a_recording(reader, good, how):
    path = evil(reader, good)
    before = contents(reader.folder)
    done = reader(*how, path)
    assert set(contents(reader.folder)) == set(before), "files are gone, or new"
    assert contents(reader.folder) == before
    done.ok()
    os.unlink(str(path) + "-journal")
    again = reader(*how, path).ok()
    assert done.out == again.out, "the journal was read"


@pytest.mark.parametrize("marked", [False, True])
def test_a_log_beside_a_recording(reader, good, marked):
    """-wal and -shm of somebody else: not read, not changed, not removed. A recording that is marked for one is refused."""
    path = shutil.copy(good, reader.folder / "evil.sfr")
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("UPDATE session SET command = 'another'")
        db.commit()
        kept = {end: open(str(path) + end, "rb").read() for end in ("-wal", "-shm")}
    if not marked:
        shutil.copy(good, path)
    for end, data in kept.items():
        with open(str(path) + end, "wb") as file:
            file.write(data)
    if marked:
        data = bytearray(open(path, "rb").read())
        data[18:20] = b"\2\2"
        open(path, "wb").write(data)
    for name in reader.folder.iterdir():
        mine(reader, name)
    before = contents(reader.folder)
    for how in READERS:
        done = reader(*how, path)
        assert contents(reader.folder) == before
        if marked:
            assert "write-ahead log" in done.fails(1).err, done
        else:
            assert "another" not in done.ok().out


def plant(path, victim):
    """As somebody else would who may write to the folder."""
    def become_nobody():
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    subprocess.run(["tee", path], input=journal(victim), stdout=subprocess.DEVNULL, check=True, preexec_fn=become_nobody)


def test_a_journal_beside_a_running_recording(stillframe, target, tmp_path):
    """Another user puts one beside the output, in a folder that everybody may write to."""
    need_root()
    folder = tmp_path / "open to all"
    folder.mkdir()
    folder.chmod(0o777)
    for above in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        above.chmod(above.stat().st_mode | 0o055)
    victim = tmp_path / "victim"
    victim.write_text("years of work")
    output, beside = folder / "r.sfr", folder / "r.sfr-journal"
    t = target("deep", 20, "spin")
    process = stillframe.start("record", "-p", t.pid, "-F", "200", "-o", output)
    until(lambda: ticks_so_far(output) > 0, "the recording has begun", 30)
    plant(beside, victim)
    planted = beside.stat()
    seen = ticks_so_far_of_the_file(output)
    until(lambda: ticks_so_far_of_the_file(output) > seen or process.poll() is not None, "it goes on", 30)
    process.send_signal(2)
    stillframe.wait(process).ok()
    assert victim.read_text() == "years of work"
    assert beside.stat() == planted
    stillframe("report", output).ok()
    beside.unlink()
    assert Recording(output).ticks >= seen


def ticks_so_far_of_the_file(path):
    """Without what lies beside it."""
    with open(path, "rb") as file:
        data = file.read()
    copy = str(path) + ".copy"
    with open(copy, "wb") as file:
        file.write(data)
    try:
        return ticks_so_far(copy)
    except sqlite3.DatabaseError:   # copied in the middle of a write
        return 0
    finally:
        os.unlink(copy)


def test_what_lies_beside_the_output_stays(reader):
    """Files with the names of SQLite's own belong to others: a new recording neither removes nor reads them."""
    for end in ("-journal", "-wal", "-shm"):
        (reader.folder / ("r.sfr" + end)).write_text("somebody's")
    before = contents(reader.folder)
    reader("record", "-F", "499", "-o", reader.folder / "r.sfr", "--", reader.program, 0.2).ok()
    after = contents(reader.folder)
    del after["r.sfr"]
    assert after == before


def test_the_output_is_for_its_owner(reader):
    for umask, mode in ((0, 0o600), (0o022, 0o600), (0o277, 0o400)):
        output = reader.folder / ("r%o.sfr" % umask)
        reader("record", "-F", "499", "-o", output, "--", reader.program, 0.1, umask=umask).ok()
        assert stat.S_IMODE(output.stat().st_mode) == mode


def test_the_output_is_no_trap(reader, good):
    """Through a symbolic link, into another name of a file, into somebody else's file: nothing is written."""
    mine(reader, shutil.copy(good, reader.folder / "precious.sfr"))
    os.symlink("precious.sfr", reader.folder / "link.sfr")
    os.symlink("nothing.sfr", reader.folder / "dangling.sfr")
    os.link(reader.folder / "precious.sfr", reader.folder / "second.sfr")
    names = ["link.sfr", "dangling.sfr", "second.sfr"]
    if os.geteuid() == 0:
        shutil.copy(good, reader.folder / "others.sfr")
        (reader.folder / "others.sfr").chmod(0o666)
        os.chown(reader.folder / "others.sfr", 12345, 12345)
        names.append("others.sfr")
    before = contents(reader.folder)
    for name in names:
        done = reader("record", "-o", reader.folder / name, "--", reader.program, 0.1).fails(1)
        assert name in done.err and "not written" in done.err, done
    assert contents(reader.folder) == before


@pytest.mark.parametrize("how", READERS, ids=" ".join)
def test_what_is_no_file_is_no_recording(reader, how):
    """One message, at once: a FIFO is not waited for, a device is not opened."""
    folder = reader.folder
    os.mkfifo(folder / "fifo")
    os.symlink("/dev/zero", folder / "to a device")
    os.symlink("fifo", folder / "to a fifo")
    os.symlink("round", folder / "round")
    for path in (folder / "fifo", folder / "to a device", folder / "to a fifo", folder / "round", folder, "/dev/null",
                 folder / "missing"):
        done = reader(*how, path, timeout=20).fails(1)
        assert str(path) in done.err and len(done.err.splitlines()) == 1, done


def test_a_recording_of_somebody_else(reader, good):
    """Which may be read and not written, in a folder that may not be written either."""
    need_root()
    path = shutil.copy(good, reader.folder / "r.sfr")
    os.chown(path, 12345, 12345)
    os.chmod(path, 0o444)
    reader.folder.chmod(0o555)
    before = contents(reader.folder)
    for how in READERS:
        reader(*how, path).ok()
    assert contents(reader.folder) == before
    reader.folder.chmod(0o777)


def samples_on(path, n_pages):
    """In the samples' leaves among so many pages: rows are appended, so these are the first ones."""
    with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as db:
        leaves = db.execute("SELECT pageno, ncell FROM dbstat WHERE name = 'samples' AND pagetype = 'leaf' ORDER BY path").fetchall()
        n = sum(ncell for number, ncell in leaves if number <= n_pages)
        cpu = db.execute("SELECT coalesce(sum(cpu_ns), 0) FROM (SELECT cpu_ns FROM samples ORDER BY id LIMIT ?)", (n,)).fetchone()[0]
    return n, cpu


@pytest.fixture(scope="module")
def longer(tmp_path_factory):
    """With samples on several pages."""
    path = tmp_path_factory.mktemp("longer") / "r.sfr"
    subprocess.run([os.path.join(PROGRAMS, "make_recording"), path, "20", "5000"], check=True)
    return path


@pytest.mark.parametrize("how", ["report", "collapsed"])
def test_half_a_recording(reader, longer, how):
    """What is left is shown, all of it and nothing else, with the words that it was cut short. The file stays as it is."""
    path = mine(reader, shutil.copy(longer, reader.folder / "half.sfr"))
    size = os.path.getsize(path)
    seen = set()
    for there in [size - 1, size * 7 // 8, size * 3 // 4, size // 2 + 100]:
        os.truncate(path, there)
        n, cpu = samples_on(longer, there // PAGE)
        seen.add(n)
        before = contents(reader.folder)
        if how == "report":
            report = json.loads(reader("report", "--json", path).ok().out)
            assert report["recording"]["complete"] is False
            assert report["samples"] == n and report["cpu_seen_ns"] == cpu, (there, n, report)
            text = " ".join(reader("report", path).ok().out.split())
            assert "cut short: the end of the file is missing" in text and "of the file's %d bytes only %d are there" % (size, there) in text
        else:
            done = reader("export", "--format", "collapsed", "-o", "-", path).ok()
            assert "cut short: the end of the file is missing" in done.err, done
        assert contents(reader.folder) == before
    assert len(seen) > 2 and 0 not in seen, seen


def test_too_little_of_a_recording(reader, good):
    """It says that it was cut short, and how much is left."""
    path = mine(reader, shutil.copy(good, reader.folder / "half.sfr"))
    size = os.path.getsize(path)
    os.truncate(path, 40000)
    for how in READERS:
        done = reader(*how, path).fails(1)
        assert "cut short" in done.err and str(size) in done.err and "40000" in done.err, done


def test_the_fuzz_target_begins_with_recordings(stillframe):
    """Seeds that are refused for their form lead no further: fuzz/make_profile_seeds.py makes them anew."""
    seeds = sorted(os.listdir(SEEDS))
    assert len(seeds) >= 7
    for seed in seeds:
        assert "FUNCTIONS" in stillframe("report", os.path.join(SEEDS, seed)).ok().out, seed


def test_a_recording_whose_writer_was_killed_in_a_burst(reader, good):
    """Its pages are half old and half new, and the redo record behind them says what is new."""
    old = good.read_bytes()
    path = mine(reader, shutil.copy(good, reader.folder / "r.sfr"))
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE session SET command = 'the new state', duration_ns = 4000000000")
        db.execute("UPDATE threads SET name = 'new'")
        db.commit()
    new = path.read_bytes()
    record = redo_record(old, new)
    pages = [at for at in range(0, len(new), PAGE) if old[at:at + PAGE] != new[at:at + PAGE]]
    assert len(old) == len(new) and len(pages) >= 3
    for done in range(len(pages) + 1):
        left = bytearray(old)
        for at in pages[:done]:
            left[at:at + PAGE] = new[at:at + PAGE]
        path.write_bytes(left + record)
        assert redone(path.read_bytes()) == new
        before = contents(reader.folder)
        assert "the new state" in reader("report", path).ok().out
        assert contents(reader.folder) == before
    path.write_bytes(old + record[:-1])
    assert "the new state" not in reader("report", path).ok().out

# SPDX-License-Identifier: Apache-2.0
"""Files that a user asked for, in a folder in which everybody may write: what stands there may be a trap.

As root and as an ordinary user; each test says what is not touched, and what is made."""
import os
import shutil
import stat
import subprocess
import tempfile

import pytest

from conftest import PROGRAMS, need, need_root

pytestmark = pytest.mark.waits

NOBODY, SOMEBODY = 65534, 12345


class Folder:
    """World-writable and sticky, with a stream to export; `uid` is the user who exports."""

    def __init__(self, uid):
        self.uid = uid
        self.path = tempfile.mkdtemp(prefix="sf-outputs-")
        os.chmod(self.path, 0o1777)
        subprocess.run([os.path.join(PROGRAMS, "make_stream"), self / "s.sfs"], check=True)
        os.chmod(self / "s.sfs", 0o644)
        self.prefix = []
        self.everybodys = None   # with a prefix: where that user finds what is built
        if uid != os.geteuid():
            self.prefix = ["setpriv", "--reuid=%d" % uid, "--regid=%d" % uid, "--clear-groups"]

    def __truediv__(self, name):
        return os.path.join(self.path, name)

    def put(self, name, text="a letter", owner=None):
        with open(self / name, "w") as file:
            file.write(text)
        os.chmod(self / name, 0o644)
        if os.geteuid() == 0:
            os.chown(self / name, *[self.uid if owner is None else owner] * 2)

    def text(self, name):
        with open(self / name, errors="replace") as file:
            return file.read()


@pytest.fixture(params=["root", "ordinary user"])
def folder(request):
    if request.param == "root":
        need_root()
        made = Folder(0)
    else:
        if os.geteuid() == 0:
            need("setpriv")
        made = Folder(NOBODY if os.geteuid() == 0 else os.geteuid())
    if made.prefix:
        made.everybodys = request.getfixturevalue("everybodys")
    yield made
    shutil.rmtree(made.path)


def export(stillframe, folder, output, *more, **how):
    return stillframe("export", folder / "s.sfs", "--format", "collapsed", "-o", output, *more, prefix=folder.prefix,
                      **how)


def names(folder):
    return sorted(os.listdir(folder.path))


def test_it_is_for_its_owner_alone(stillframe, folder):
    export(stillframe, folder, folder / "out").ok()
    status = os.stat(folder / "out")
    assert stat.S_IMODE(status.st_mode) == 0o600 and status.st_uid == folder.uid
    assert "busy" in folder.text("out") and names(folder) == ["out", "s.sfs"]


def test_whatever_the_umask_leaves(stillframe, folder):
    export(stillframe, folder, folder / "out", umask=0).ok()
    assert stat.S_IMODE(os.stat(folder / "out").st_mode) == 0o600


def test_a_file_of_ones_own_is_replaced(stillframe, folder):
    folder.put("out")
    export(stillframe, folder, folder / "out").ok()
    assert "busy" in folder.text("out")
    assert stat.S_IMODE(os.stat(folder / "out").st_mode) == 0o600


def test_what_is_exported_is_not_replaced(stillframe, folder):
    if os.geteuid() == 0:
        os.chown(folder / "s.sfs", folder.uid, folder.uid)
    before = folder.text("s.sfs")
    assert_refused(export(stillframe, folder, os.path.join(folder.path, ".", "s.sfs")), folder, "is what is exported", [])
    assert folder.text("s.sfs") == before


def assert_refused(done, folder, word, left):
    done.fails(1)
    assert word in done.err and "not written" in done.err, done
    assert names(folder) == sorted(["s.sfs", *left])


@pytest.mark.parametrize("leads_to", ["victim", "nothing", "/dev/null"])
def test_a_symbolic_link_is_not_followed(stillframe, folder, leads_to):
    folder.put("victim")
    os.symlink(leads_to, folder / "out")
    assert_refused(export(stillframe, folder, folder / "out"), folder, "symbolic link", ["out", "victim"])
    assert folder.text("victim") == "a letter" and os.readlink(folder / "out") == leads_to


def test_a_hard_link_is_not_replaced(stillframe, folder):
    folder.put("victim")
    os.link(folder / "victim", folder / "out")
    assert_refused(export(stillframe, folder, folder / "out"), folder, "several names", ["out", "victim"])
    assert folder.text("out") == "a letter"


def test_a_file_of_another_user(stillframe, folder):
    need_root()
    folder.put("out", owner=SOMEBODY)
    assert_refused(export(stillframe, folder, folder / "out"), folder, "belongs to user", ["out"])
    assert folder.text("out") == "a letter"


def test_a_fifo_of_another_user(stillframe, folder):
    need_root()
    os.mkfifo(folder / "out")
    os.chmod(folder / "out", 0o666)
    os.chown(folder / "out", SOMEBODY, SOMEBODY)
    reader = os.open(folder / "out", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert_refused(export(stillframe, folder, folder / "out"), folder, "not a regular file", ["out"])
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)


def test_a_fifo_of_ones_own(stillframe, folder):
    os.mkfifo(folder / "out")
    if os.geteuid() == 0:
        os.chown(folder / "out", folder.uid, folder.uid)
    reader = os.open(folder / "out", os.O_RDONLY | os.O_NONBLOCK)
    try:
        export(stillframe, folder, folder / "out").ok()
        assert b"busy" in os.read(reader, 65536)
    finally:
        os.close(reader)


def test_devices(stillframe, folder):
    export(stillframe, folder, "/dev/null").ok()
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("into", ["pipe", "file"])
def test_descriptors_by_name(stillframe, folder, name, into):
    """Also where stdout is a file: that one is written, and the name in /dev stays what it is."""
    if (into, name, folder.uid) == ("file", "/dev/stdout", 0):
        pytest.skip("a fault would replace the machine's /dev/stdout; the ordinary user's run looks at the same code")
    before = os.readlink("/dev/stdout")
    if into == "pipe":
        text = export(stillframe, folder, name).ok().out
    else:
        with open(folder / "out", "w") as file:
            export(stillframe, folder, name, stdout=file).ok()
        text = folder.text("out")
    assert "busy" in text and os.readlink("/dev/stdout") == before


def test_two_at_once(stillframe, folder):
    """Of several exports to one name the file is one of them, whole."""
    alone = folder / "alone"
    export(stillframe, folder, alone).ok()
    runs = [stillframe.start("export", folder / "s.sfs", "--format", "collapsed", "-o", folder / "out", prefix=folder.prefix)
            for _ in range(8)]
    for run in runs:
        stillframe.wait(run).ok()
    assert folder.text("out") == folder.text("alone") and names(folder) == ["alone", "out", "s.sfs"]


# --- streams -------------------------------------------------------------------------------------


def profile_itself(stillframe, folder, output):
    """A program with the agent in it, which writes a stream."""
    agent, program = os.path.join(os.path.dirname(stillframe.path), "libstillframe-agent.so"), os.path.join(PROGRAMS, "busy_split")
    if folder.everybodys:
        agent, program = map(folder.everybodys.copy, (agent, program))
    return subprocess.run([*folder.prefix, program, "0.2", "1"], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "LD_PRELOAD": agent, "STILLFRAME": "out=" + output,
                                           "STILLFRAME_VERBOSE": "1"})


def test_a_stream_replaces_only_streams(stillframe, folder):
    folder.put("mine")
    done = profile_itself(stillframe, folder, folder / "mine")
    assert "not a stream" in done.stderr and folder.text("mine") == "a letter", done
    for _ in range(2):
        profile_itself(stillframe, folder, folder / "out")
        assert stat.S_IMODE(os.stat(folder / "out").st_mode) == 0o600
        stillframe("report", folder / "out").ok()


@pytest.mark.parametrize("trap", ["symbolic link", "hard link", "other user"])
def test_a_stream_walks_into_no_trap(stillframe, folder, trap):
    if trap == "other user":
        need_root()
        folder.put("out", "", owner=SOMEBODY)
        os.chmod(folder / "out", 0o666)
    else:
        folder.put("victim", "")
        (os.symlink if trap == "symbolic link" else os.link)(folder / "victim", folder / "out")
    done = profile_itself(stillframe, folder, folder / "out")
    assert "not written" in done.stderr, done
    assert os.lstat(folder / "out").st_size == (0 if trap != "symbolic link" else len(folder / "victim"))
    assert trap == "other user" or folder.text("victim") == ""

# SPDX-License-Identifier: Apache-2.0
"""A disk without room for the recording: the summary says how much is in the file, and nothing is left where that is nothing."""
import os
import re
import shutil
import subprocess

import pytest

from conftest import PROGRAMS, need, need_root
from recordings import Recording

pytestmark = pytest.mark.waits

BUSY = os.path.join(PROGRAMS, "busy_split")

# The small disk is there for this shell and its children; what is left on it is copied to the ordinary one.
SCRIPT = """mount -t tmpfs -o size=$1 tmpfs "$2" && shift && cd "$1" && shift && "$@"
status=$?
cp *.sfr ../left 2> /dev/null
exit $status"""


@pytest.fixture
def small_disk(tmp_path):
    """The words in front of a command that has a disk of such a size as its folder."""
    need_root()
    need("unshare")
    (tmp_path / "disk").mkdir()
    (tmp_path / "left").mkdir()
    tried = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", tmp_path / "disk"], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip("no file system can be mounted here: %s" % tried.stderr.strip())
    return lambda size: ["unshare", "-m", "sh", "-c", SCRIPT, "sh", size, str(tmp_path / "disk")]


def test_no_room_for_anything(stillframe, small_disk, tmp_path):
    """The command is not run, and no empty file is left."""
    done = stillframe("record", "-o", "r.sfr", "--", BUSY, "0.3", prefix=small_disk("20k")).fails(1)
    assert "r.sfr" in done.err and "full" in done.err and "Make room" in done.err and done.out == "", done
    assert os.listdir(tmp_path / "left") == [], done


def test_room_for_the_beginning(stillframe, small_disk, tmp_path):
    """What was written before is kept, and the file says that it was cut short."""
    done = stillframe("record", "--max-cost", "50", "-F", "4000", "-o", "r.sfr", "--", BUSY, "1", prefix=small_disk("120k"))
    assert done.status == 1 and "wrote" not in done.err, done
    saved, total = re.search(r"cut short: ([\d,]+) of ([\d,]+) samples are in the file\n  kept  r.sfr ", done.err).groups()
    assert int(saved.replace(",", "")) < int(total.replace(",", "")), done
    assert re.search(r"^stillframe: r.sfr: .*full\n  Make room", done.err, re.MULTILINE), done
    recording = Recording(shutil.copy(tmp_path / "left/r.sfr", tmp_path / "r.sfr"))
    assert recording.value("SELECT count(*) FROM samples") == int(saved.replace(",", ""))
    assert recording.value("SELECT complete FROM session") == 0
    assert "cut short" in stillframe("report", tmp_path / "r.sfr").ok().out

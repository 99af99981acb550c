# SPDX-License-Identifier: Apache-2.0
"""Callers that are inferred, as the frame pointer of a sleeping thread is not known: never a wrong one. gdb, which
stops the thread and so knows it, is the judge."""
import re
import subprocess

import pytest

from conftest import need

BACKTRACE = """set backtrace past-main on
set backtrace past-entry on
python
frame = gdb.newest_frame()
while frame is not None:
    if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):  # neither has a frame of its own
        print("pc", hex(frame.pc()))
    frame = frame.older()
"""


def by_gdb(pid, tmp_path):
    need("gdb")
    (tmp_path / "backtrace").write_text(BACKTRACE)
    done = subprocess.run(["gdb", "-q", "-nx", "-batch", "-p", str(pid), "-x", str(tmp_path / "backtrace")],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    return [int(pc, 16) for pc in re.findall(r"^pc (\w+)$", done.stdout, re.M)]


def stack(dump):
    thread, = dump["threads"]
    return thread["end"], [frame for frame in thread["frames"] if not frame["inlined"]], thread


@pytest.mark.parametrize("shape", ["plain", "locals", "alloca", "recursion", "arguments", "leftovers", "pointer", "handler", "tail"])
@pytest.mark.parametrize("program", ["inferred_O0", "inferred_O2"])
def test_every_frame_is_gdbs(stillframe, target, tmp_path, program, shape):
    t = target(program, shape).falls_asleep()
    end, frames, thread = stack(stillframe.dump(t.pid))
    assert thread["unheld"] and thread["wait"]["syscall"] == "epoll_wait"
    judged = by_gdb(t.pid, tmp_path)
    assert [int(frame["pc"], 16) for frame in frames] == judged[:len(frames)], [f["function"] for f in frames]
    complete = len(frames) == len(judged)
    assert complete == (end == "root")
    assert end in ("root", "register")
    if program == "inferred_O0":
        assert complete, [frame["function"] for frame in frames]
        assert [frame["via"] for frame in frames].count("inferred") == 1

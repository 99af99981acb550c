# SPDX-License-Identifier: Apache-2.0
"""Callers that are inferred, as the frame pointer of a sleeping thread is not known: never a wrong one. gdb, which
stops the thread and so knows it, is the judge. The engine is ptrace: by bpf all registers are known."""
import os
import re
import subprocess

import pytest

from conftest import PROGRAMS, Stillframe, need
from processes import Target

COMPILED = ["inferred_O0", "inferred_O2"]
SHAPES = ["plain", "locals", "alloca", "recursion", "arguments", "leftovers", "pointer", "handler", "tail"]

BACKTRACE = """set backtrace past-main on
set backtrace past-entry on
python
def backtrace(pid):
    gdb.execute("attach %d" % pid, to_string=True)
    frame = gdb.newest_frame()
    while frame is not None:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):  # neither has a frame of its own
            print("pc", pid, hex(frame.pc()))
        frame = frame.older()
    gdb.execute("detach", to_string=True)
"""


def by_gdb(pids, folder):
    """{pid: [pc of each frame]}; one gdb for all of them, as most of its time goes into its own start."""
    need("gdb")
    (folder / "backtrace").write_text(BACKTRACE + "".join("backtrace(%d)\n" % pid for pid in pids))
    done = subprocess.run(["gdb", "-q", "-nx", "-batch", "-x", str(folder / "backtrace")],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    return {pid: [int(pc, 16) for pc in re.findall(r"^pc %d (\w+)$" % pid, done.stdout, re.M)] for pid in pids}


def wanted(items):
    """(program, shape) of each test that runs."""
    return sorted({(item.callspec.params["program"], item.callspec.params["shape"]) for item in items
                   if getattr(item, "originalname", None) == "test_every_frame_is_gdbs"})


@pytest.fixture(scope="module")
def seen(request, tmp_path_factory):
    """{(program, shape): (our dump, gdb's pcs)}. Dumps first: that gdb was there wakes the sleepers."""
    need("gdb")
    folder = tmp_path_factory.mktemp("inferred")
    targets = {}
    try:
        for program, shape in wanted(request.session.items):
            targets[program, shape] = Target([os.path.join(PROGRAMS, program), shape])
        dumps = {key: Stillframe(folder).dump(each.falls_asleep().pid, "--engine", "ptrace") for key, each in targets.items()}
        judged = by_gdb([each.pid for each in targets.values()], folder)
    finally:
        held = {key: each.end() for key, each in targets.items()}
    assert not any(held.values()), held
    return {key: (dumps[key], judged[each.pid]) for key, each in targets.items()}


def stack(dump):
    thread, = dump["threads"]
    return thread["end"], [frame for frame in thread["frames"] if not frame["inlined"]], thread


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("program", COMPILED)
def test_every_frame_is_gdbs(seen, program, shape):
    dump, judged = seen[program, shape]
    end, frames, thread = stack(dump)
    assert thread["unheld"] and thread["wait"]["syscall"] == "epoll_wait"
    assert [int(frame["pc"], 16) for frame in frames] == judged[:len(frames)], [f["function"] for f in frames]
    complete = len(frames) == len(judged)
    assert complete == (end == "root")
    assert end in ("root", "register")
    if program == "inferred_O0":
        assert complete, [frame["function"] for frame in frames]
        assert [frame["via"] for frame in frames].count("inferred") == 1

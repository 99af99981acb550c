# SPDX-License-Identifier: Apache-2.0
"""Threads whose stacks cannot be read without waiting for somebody who never answers: a userfaultfd that nobody serves, as
stands for a FUSE or network file system that has stopped."""
import os

import pytest

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the program is written for x86-64")


@pytest.fixture(params=["spin", "fault"])
def stalled(request, target):
    t = target("stalled_stack", request.param, wait_ready=False)
    if t.lines.next(60).strip() != "ready":
        assert t.process.wait(10) == 77
        pytest.skip("userfaultfd is not to be had here")
    return t


def test_a_recording_ends_and_holds_nobody(stillframe, tmp_path, stalled):
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", stalled.pid, "-d", "1s", timeout=20)
    assert done.status == 0, done
    assert recording.stacks_of("work_on"), "the thread that can be read was"
    stalled.assert_free()


def test_a_dump_ends_and_holds_nobody(stillframe, stalled):
    dump = stillframe.dump(stalled.pid, timeout=20)
    assert len(dump["threads"]) == 2
    assert any("work_on" in [frame["function"] for frame in thread["frames"]] for thread in dump["threads"])
    stalled.assert_free()

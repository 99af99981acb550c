# SPDX-License-Identifier: Apache-2.0
"""Threads that the kernel has made for a process, and that stay in the kernel: workers of io_uring. To stop one would end its work early."""
import pytest

from conftest import need_kernel_samples
from processes import read
from recordings import Recording, cpu_samples_so_far

WORKERS = "SELECT %s FROM samples s JOIN threads t ON t.id = s.thread JOIN ends e ON e.id = s.end WHERE t.name LIKE 'iou-wrk-%%'"


@pytest.fixture
def uring(target):
    """A started program, or a skip where io_uring is switched off."""
    def start(*arguments):
        if read("/proc/sys/kernel/io_uring_disabled") not in ("0\n", None):   # None: before Linux 6.6
            pytest.skip("needs io_uring")
        return target("in_uring", *arguments)
    return start


@pytest.mark.parametrize("engine", ["ptrace", "perf"])
def test_a_busy_worker_goes_on(stillframe, uring, tmp_path, engine):
    if engine == "perf":
        need_kernel_samples(stillframe)
    t = uring(100, "busy")
    done = stillframe.record_until(tmp_path / "r.sfr", lambda path: cpu_samples_so_far(path) > 100, "-e", engine, "-F", "999", "--max-cost", "50", "-p", t.pid)
    assert t.process.poll() is None, done   # it ends at the first read that was cut short
    recording = Recording(tmp_path / "r.sfr")
    recording.assert_accounts()
    cpu, = recording.rows(WORKERS % "sum(s.cpu_ns) / 1e9")[0]
    seen, _, _ = recording.cpu()
    assert cpu > 0.8 * seen and recording.rows(WORKERS % "DISTINCT e.word") == [("root",)], (cpu, seen, done)
    names = {name for stack, in recording.rows(WORKERS % "DISTINCT s.stack")
             for name, in recording.rows("SELECT n.name FROM stack_frames f JOIN frame_names n USING (frame) WHERE f.stack = %d" % stack)}
    assert ("io_wq_worker" if engine == "perf" else "[kernel]") in names, names


@pytest.mark.parametrize("engine", ["bpf", "ptrace"])
@pytest.mark.parametrize("busy", [["busy"], []], ids=["busy", "idle"])
def test_dump_shows_a_worker(stillframe, uring, engine, busy):
    t = uring(100, *busy)
    for _ in range(20):
        dump = stillframe.dump(t.pid, "-e", engine)
        worker = next(thread for thread in dump["threads"] if thread["name"].startswith("iou-wrk-"))
        assert worker["frames"] == [] and worker["end"] == "root" and worker["held_ns"] == 0, dump
    assert t.process.poll() is None
    assert "no frames: the thread stays in the kernel" in stillframe("dump", "-p", t.pid, "-e", engine).ok().out

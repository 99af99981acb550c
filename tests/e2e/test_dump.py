# SPDX-License-Identifier: Apache-2.0
"""dump: every thread's stack, once, now."""
import json
import os
import re
import signal
import subprocess
import time

import pytest

from conftest import NOBODY, PROGRAMS, need_root
from processes import Freezer, Target, read, status_of, switches_of, tids_of, until

pytestmark = pytest.mark.waits


def names(thread):
    return [frame["function"] for frame in thread["frames"]]


def test_a_hang_is_explained(stillframe, target):
    """Two threads that wait for each other: each shows what it waits for, and where."""
    t = target("lock_wait").falls_asleep()
    dump = stillframe.dump(t.pid)
    assert dump["version"] == 1 and dump["pid"] == t.pid and dump["name"] == "lock_wait"
    assert sorted(thread["tid"] for thread in dump["threads"]) == tids_of(t.pid)
    by_name = {thread["name"]: thread for thread in dump["threads"]}
    for name, function in (("left-first", "take_left_then_right"), ("right-first", "take_right_then_left")):
        thread = by_name[name]
        assert thread["state"] == "blocked"
        assert thread["wait"]["syscall"] == "futex"
        assert "wait_for_lock" in names(thread) and function in names(thread), names(thread)
        assert thread["end"] == "root"
    assert by_name["lock_wait"]["wait"]["syscall"] == "futex"  # pthread_join
    assert names(by_name["lock_wait"])[-1] == "_start"
    t.assert_free()


def test_sleepers_are_not_interrupted(stillframe, target):
    """Sleeping threads are read where they sleep: unheld, held for 0 ns, and their switch counts stay as they were."""
    t = target("many_threads", 40, 60, 0).falls_asleep()
    before = switches_of(t.pid)
    dump = stillframe.dump(t.pid)
    assert switches_of(t.pid) == before, "somebody was woken"
    assert len(dump["threads"]) == 41
    for thread in dump["threads"]:
        assert thread["unheld"] and thread["held_ns"] == 0, thread["name"]
        assert thread["end"] == "root", thread


def test_running_threads_are_held_shortly(stillframe, target):
    t = target("many_threads", 4, 60, 2)
    dump = stillframe.dump(t.pid)
    running = [thread for thread in dump["threads"] if thread["name"] == "spinner"]
    assert len(running) == 2
    for thread in running:
        assert thread["state"] in ("running", "runnable")
        if thread["unheld"]:   # it waited for a CPU
            assert thread["state"] == "runnable" and thread["held_ns"] == 0, thread
        else:
            assert 0 < thread["held_ns"] < 50e6, thread["held_ns"]
        assert "spinner" in names(thread)
        assert thread["wait"] is None
    t.assert_free()


def test_inlined_frames(stillframe, target):
    """Inlined calls come before the function they are in, with the same pc, their lines, and the flag."""
    t = target("inlined", "pause").falls_asleep()   # it is ready before it calls
    thread = stillframe.dump(t.pid)["threads"][0]
    at = names(thread).index("innermost")
    frames = thread["frames"][at:at + 4]
    assert [frame["function"] for frame in frames] == ["innermost", "middle", "outer", "caller"]
    assert [frame["inlined"] for frame in frames] == [True, True, True, False]
    assert len({frame["pc"] for frame in frames}) == 1
    source = open(os.path.join(os.path.dirname(__file__), "../programs/inlined.c")).read().splitlines()
    for frame, code in zip(frames, ("pause();", "innermost(counter);", "middle(counter);", "outer(&counter);")):
        assert os.path.basename(frame["file"]) == "inlined.c"
        assert source[frame["line"] - 1].strip() == code, frame


def test_addresses(stillframe, target):
    """module and address lead to the symbol that readelf shows."""
    t = target("deep", 3, "pause")
    path = os.path.join(PROGRAMS, "deep")
    symbols = {}
    for line in subprocess.run(["readelf", "-sW", path], capture_output=True, text=True).stdout.splitlines():
        columns = line.split()
        if len(columns) >= 8 and columns[3] == "FUNC":
            symbols[columns[7]] = (int(columns[1], 16), int(columns[2], 0))
    thread = stillframe.dump(t.pid)["threads"][0]
    checked = 0
    for frame in thread["frames"]:
        if frame["module"] and os.path.realpath(frame["module"]) == os.path.realpath(path) and \
                not frame["inlined"] and frame["function"] in symbols:
            start, size = symbols[frame["function"]]
            address = int(frame["address"], 16)
            assert start < address <= start + size or frame["function"] == "_start", frame
            checked += 1
    assert checked >= 6


@pytest.mark.parametrize("depth", [10, 100, 1000, 10000])
def test_depth(stillframe, target, depth):
    t = target("deep", depth, "pause")
    thread = stillframe.dump(t.pid, "--max-depth", 16384)["threads"][0]
    assert thread["end"] == "root"
    assert sum(name in ("down_odd", "down_even") for name in names(thread)) == depth + 1
    assert names(thread)[-1] == "_start"


def test_a_number_of_any_length_stands_apart_from_the_name(stillframe, target):
    t = target("deep", 1000, "pause")
    text = stillframe("dump", "-p", t.pid).ok().out
    starts = [re.match(r" +#(\d+) +(\S+)", line).groups() for line in text.splitlines() if line.startswith("  #")]
    assert [number for number, _ in starts] == [str(i) for i in range(len(starts))] and len(starts) > 1000, text
    assert {name for _, name in starts[500:510]} == {"down_odd", "down_even"}, text


def test_default_depth_is_cut_and_says_so(stillframe, target):
    t = target("deep", 5000, "pause")
    thread = stillframe.dump(t.pid)["threads"][0]
    assert thread["end"] == "depth" and len(thread["frames"]) >= 1024
    assert "max-depth" in stillframe("dump", "-p", t.pid).ok().out


@pytest.mark.parametrize("nested", [False, True])
def test_signal_handler_on_another_stack(stillframe, target, nested):
    t = target("altstack_signal", "pause", *(["nested"] if nested else []))
    thread = stillframe.dump(t.pid)["threads"][0]
    assert thread["end"] == "root", thread
    for name in ("handler_leaf", "handler_middle", "on_signal", "main"):
        assert name in names(thread), names(thread)
    if nested:
        assert names(thread).count("on_signal") == 2
    else:
        assert names(thread)[-5:-3] == ["interrupted_caller", "main"] or "interrupted_leaf" in names(thread)
    assert any(frame["via"] == "signal" for frame in thread["frames"])


def test_stopped_process(stillframe, target):
    """A stopped process is shown and stays stopped."""
    t = target("deep", 10, "spin")
    t.may_be_stopped = True
    os.kill(t.pid, signal.SIGSTOP)
    until(lambda: status_of(t.pid)["State"].startswith("T"), "it stops")
    thread = stillframe.dump(t.pid)["threads"][0]
    assert thread["state"] == "stopped"
    assert "bottom" in names(thread) and names(thread)[-1] == "_start"
    time.sleep(0.05)
    assert status_of(t.pid)["State"].startswith("T"), "dump continued it"
    os.kill(t.pid, signal.SIGCONT)
    t.assert_moves()


def test_a_frozen_process(stillframe, target):
    """As `docker pause` leaves it: it waits for nothing, and stays as it is."""
    need_root()
    t = target("deep", 10, "spin")
    with Freezer(t.pid) as freezer:
        assert "frozen" not in stillframe.dump(t.pid)
        freezer.freeze()
        dump = stillframe.dump(t.pid)
        assert dump["frozen"] is True and [thread["state"] for thread in dump["threads"]] == ["stopped"], dump
        assert "bottom" in names(dump["threads"][0]) and names(dump["threads"][0])[-1] == "_start"
        freezer.thaw()
        t.assert_moves()


def test_uninterruptible_sleep(stillframe, target):
    """State D answers nobody: what /proc shows, in bounded time."""
    t = target("dsleep", 20)
    start = time.monotonic()
    done = stillframe("dump", "-p", t.pid, "--json", timeout=20).ok()
    assert time.monotonic() - start < 5
    dump = json.loads(done.out)
    assert len(dump["threads"]) + len([loss for loss in dump["losses"]
                                       if loss["tid"] not in {x["tid"] for x in dump["threads"]}]) == len(tids_of(t.pid))
    asleep = [thread for thread in dump["threads"] if thread["state"] == "blocked"]
    assert asleep and asleep[0]["wait"]["syscall"] == "vfork" or dump["losses"], dump
    t.assert_free()
    # The vforked child shares its memory: it is a process of its own, and asleep.
    t.assert_moves()


def test_a_thousand_threads(stillframe, target):
    t = target("many_threads", 1000, 60)
    dump = stillframe.dump(t.pid)
    assert len(dump["threads"]) == 1002
    short = [thread for thread in dump["threads"] if thread["end"] != "root"]
    assert len(short) == 0, short[:2]
    held = [thread for thread in dump["threads"] if thread["name"].startswith("in-") and not thread["unheld"]]
    assert not held, "%d sleepers were held" % len(held)
    t.assert_free()


def test_leader_is_gone(stillframe, target):
    """The first thread ended; the rest is shown."""
    t = target("leader_exits", 20)
    dump = stillframe.dump(t.pid)
    assert any("spin_without_leader" in names(thread) for thread in dump["threads"]), dump
    t.assert_free()


def test_text_form(stillframe, target):
    """For people: names, states, waits, lines; 80 columns; no colour in a pipe."""
    t = target("lock_wait").falls_asleep()
    done = stillframe("dump", "-p", t.pid).ok()
    for text in ("left-first", "right-first", "futex", "wait_for_lock", "lock_wait.c:"):
        assert text in done.out, done
    assert "\x1b" not in done.out
    for tid in tids_of(t.pid):
        assert str(tid) in done.out


def test_a_function_without_a_name_has_its_module_once(stillframe, target, tmp_path):
    source, program = tmp_path / "bare.c", tmp_path / "bare"
    source.write_text("#include <stdio.h>\n#include <unistd.h>\n__attribute__((noinline)) static int rest(void) { return pause(); }\n"
                      "int main(void) { puts(\"ready\"); fflush(stdout); return rest() + 1; }\n")
    subprocess.run(["gcc", "-O1", "-fno-optimize-sibling-calls", "-s", "-o", program, source], check=True)
    rows = [line for line in stillframe("dump", "-p", target([str(program)]).falls_asleep().pid).ok().out.splitlines() if " in bare" in line]
    assert rows and all(re.fullmatch(r"  #\d+ +0x[0-9a-f]+ in bare", row) for row in rows), rows


def test_unprivileged_on_its_own_process(stillframe, everybodys):
    """A user may look at their own process."""
    stillframe.path = everybodys.stillframe()
    t = Target([*NOBODY, everybodys.program("deep"), 10, "pause"])
    try:
        done = stillframe("dump", "-p", t.pid, "--json", prefix=NOBODY, cwd="/", env=everybodys.environment).ok()
        thread = json.loads(done.out)["threads"][0]
        assert "bottom" in names(thread) and thread["end"] == "root"
    finally:
        assert not t.end()


@pytest.mark.parametrize("replaced", [False, True], ids=["deleted", "replaced"])
def test_an_ordinary_users_program_whose_file_is_gone(stillframe, everybodys, replaced):
    """Links to mapped files are root's, and each user's is the link to the program of an own process. The names are in the file's symbol table only."""
    stillframe.path = everybodys.stillframe()
    program = everybodys.program("deep")
    t = Target([*NOBODY, program, 10, "pause"])
    try:
        os.unlink(program)
        if replaced:
            os.rename(everybodys.program("tailcalls"), program)
        done = stillframe("dump", "-p", t.pid, "--json", prefix=NOBODY, cwd="/", env=everybodys.environment).ok()
        assert "bottom" in names(json.loads(done.out)["threads"][0]), done.out
    finally:
        assert not t.end()


# --- several processes ---------------------------------------------------------------------------


def objects(text):
    """The dumps of several processes, {pid: dump}."""
    found, decoder = {}, json.JSONDecoder()
    while text := text.lstrip():
        dump, end = decoder.raw_decode(text)
        found[dump["pid"]], text = dump, text[end:]
    return found


def is_kernels(pid):
    """Whether it is one of the kernel's threads. One that has ended, and is not waited for yet, has no memory either."""
    status = status_of(pid) or {}
    return "VmSize" not in status and 2 in (pid, int(status.get("PPid", 0)))


def test_all_processes(stillframe, target):
    """Every process that has memory of its own is shown, with all threads, and none that sleeps is held or woken. Programs that are there
    twice have their names twice."""
    need_root()
    ours = [target("many_threads", 20, 60, 0).falls_asleep(), target("lock_wait").falls_asleep(), target("lock_wait").falls_asleep()]
    before = {int(pid) for pid in os.listdir("/proc") if pid.isdigit() and "VmSize" in (status_of(int(pid)) or {})}
    kernel = {pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_kernels(pid)}
    done = stillframe("dump", "--all", "--json", timeout=120).ok()
    dumps = objects(done.out)
    hidden = int((re.search(r"(\d+) process(es are| is) not shown", done.err) or [0, 0])[1])
    still_there = {pid for pid in before if "VmSize" in (status_of(pid) or {})}   # one that has ended since has no memory, and a status until it is waited for
    assert len(still_there - set(dumps)) <= hidden, (still_there - set(dumps), done.err)
    assert not {pid for pid in kernel & set(dumps) if is_kernels(pid)}   # the id of one that has ended may be a program's since
    for t in ours:
        assert sorted(thread["tid"] for thread in dumps[t.pid]["threads"]) == tids_of(t.pid)
        assert all(thread["held_ns"] == 0 and thread["end"] == "root" for thread in dumps[t.pid]["threads"])
    for t in ours[1:]:
        assert any("take_left_then_right" in names(thread) for thread in dumps[t.pid]["threads"])
        assert len(dumps[t.pid]["circles"]) == 1


def test_all_that_a_user_may_see(stillframe, everybodys):
    """The others are counted in one line, with a reason."""
    stillframe.path = everybodys.stillframe()
    t = Target([*NOBODY, everybodys.program("deep"), 10, "pause"])
    try:
        done = stillframe("dump", "--all", prefix=NOBODY, cwd="/", env=everybodys.environment).ok()
        assert "process %d deep, 1 thread\n" % t.pid in done.out and "bottom" in done.out
        last = done.out.splitlines()[-1]
        assert re.match(r"(\d+ processes are not shown; of the first|1 process is not shown): .*: Operation not permitted$", last), last
        assert "process 1 " not in done.out and not done.err
    finally:
        assert not t.end()


def test_one_of_several_fails(stillframe, target):
    t = target("deep", 3, "pause")
    done = stillframe("dump", "-p", "%d,%d" % (2**22 - 2, t.pid))
    assert done.status == 1 and "there is no such process" in done.err
    assert "process %d deep" % t.pid in done.out and "bottom" in done.out
    stillframe("dump", "-p", t.pid, "--all").fails(2)

# SPDX-License-Identifier: Apache-2.0
"""record: what is recorded is what the target did."""
import collections
import contextlib
import itertools
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

import pytest

from conftest import LONG, PROGRAMS, need, need_kernel_samples, need_root
from processes import Freezer, Target, status_of, until
from recordings import Recording, cpu_told, so_far, ticks_so_far


def path_of(name):
    return os.path.join(PROGRAMS, name)


def split_of(text):
    return {name: float(share) for name, share in re.findall(r"^(spin_\w+|total_seconds) ([\d.]+)", text, re.M)}


def test_known_split(stillframe, tmp_path):
    """The target prints its true split; the samples' split is within one point beyond three standard errors."""
    for seconds in (10, 40) if LONG else (1, 4, 16):   # as many as it takes: where CPUs are taken away, samples are worth little
        done, recording = stillframe.record(tmp_path / ("r%d.sfr" % seconds), "-F", "999", "--clock", "cpu", "--max-cost", "50",
                                            "--", path_of("busy_split"), seconds, timeout=600)
        assert done.status == 0, done
        assert recording.samples > seconds * 999 * 0.9, recording.samples
        worth = recording.worth()
        if worth > 100:
            break
    assert worth > 100, worth
    true = split_of(done.out)
    shares = recording.total_shares()
    for name in ("spin_sixty", "spin_thirty", "spin_ten"):
        error = abs(shares.get(name, 0) - true[name])
        statistical = 3 * (true[name] * (1 - true[name]) / worth) ** 0.5
        assert error <= 0.01 + statistical, "%s: %.4f is %.4f (worth %d)" % (name, true[name], shares[name], worth)
    recording.assert_accounts(used=cpu_told(done.out))
    seen, lost, counted = recording.cpu()
    assert abs(seen + lost - true["total_seconds"]) < 0.05 * true["total_seconds"] + 0.1


@contextlib.contextmanager
def others_busy(n):
    busy = [subprocess.Popen([path_of("busy_split"), "600"], stdout=subprocess.DEVNULL) for _ in range(n)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


@pytest.mark.long   # naps below, and unit/test_capture_thread, have it in the short form
def test_waiting_for_a_cpu_is_no_cpu_time(stillframe, tmp_path):
    """Beside programs that keep every CPU busy, a runnable thread mostly waits where it left a system call. Taking that
    for where it spends CPU time showed the target's clock reading, half a percent of it, at 9 %."""
    with others_busy(2 * os.cpu_count()):
        done, recording = stillframe.record(tmp_path / "r.sfr", "-F", "499", "--", path_of("busy_split"), 2, timeout=300)
    assert done.status == 0, done
    shares = recording.total_shares()
    assert shares.get("__vdso_clock_gettime", 0) < 0.04 + 3 * (0.04 * 0.96 / recording.worth()) ** 0.5, shares


def test_waiting_after_a_nap_is_no_cpu_time(stillframe, tmp_path):
    """The same of threads that sleep for 50 us now and then, which is 1 % of their CPU time: 36 to 49 %."""
    with others_busy(os.cpu_count()):
        done, recording = stillframe.record(tmp_path / "r.sfr", "-F", "999", "--", path_of("yields"), 3 if LONG else 1, 2, "nap", timeout=300)
    assert done.status == 0, done
    shares = recording.total_shares()
    assert shares["sleep_ns"] < 0.27 and shares["spin_between"] > 0.7, shares


def test_two_threads_are_seen_equally(stillframe, tmp_path):
    """Equal threads get equal time: max/min of seen CPU against counted CPU at most 1.05."""
    done, recording = stillframe.record(tmp_path / "r.sfr", "-F", "999", "--", path_of("busy_split"), 1, 2)
    assert done.status == 0, done
    ratios = [seen / counted for seen, counted in recording.rows(
        "SELECT cpu_ns, cpu_counted_ns FROM thread_times WHERE cpu_counted_ns > 250000000")]
    assert len(ratios) == 2, recording.rows("SELECT * FROM thread_times")
    assert max(ratios) / min(ratios) <= 1.05, ratios


@pytest.mark.alone   # beside others one hold may take long, the next is put off for as much more, and what was used since is lost
def test_holding_takes_no_more_than_its_share(stillframe, target, tmp_path):
    """Busy threads at a high rate are held less often than asked for, and it is said; each sample stands for more."""
    if os.cpu_count() >= 16:
        pytest.skip("some of so many CPUs stay idle, and one thread cannot take a twentieth of them")
    # Deep stacks, which take a while to walk, and few threads, which leave a turn of the CPUs to who holds them: without a limit it
    # takes forty times as much, and several times where others take the CPUs away. The rate is the highest, which none comes near: of
    # 8 kHz half was reached once, and then there is nothing to tell.
    t = target("deep", 300, "spin", os.cpu_count())

    def held(name, *more):
        done = stillframe("record", "-e", "ptrace", "-o", tmp_path / name, "-F", "100khz", "--clock", "cpu", "-d", "1500ms", *more, "-p", t.pid)
        recording = Recording(tmp_path / name)
        assert done.status == 0, done
        recording.assert_accounts()
        said = re.search(r"busy threads were looked at \d+ times a second, not 100000: ([^(]*)", " ".join(done.err.split()))
        assert said, done
        seen, _, counted = recording.cpu()   # what threads used since they were last held is lost
        return recording.value("SELECT count(*) FROM samples") / counted, said[1].strip(), seen / counted

    # 1 % is the least: the further from what can be had without a limit.
    usual, few, many = held("usual.sfr"), held("few.sfr", "--max-cost", "1"), held("many.sfr", "--max-cost", "100")
    t.end()
    assert usual[0] < 8000 and usual[1].startswith("more often would take over 2 %"), usual
    assert many[0] > 3 * few[0] and many[1] == "the CPUs were too busy for more", (few, many)
    assert min(usual[2], few[2], many[2]) > 0.8, (usual, few, many)


BURSTS = """
import time
print("ready", flush=True)
while True:
    time.sleep(0.15)
    end = time.process_time() + 0.03
    while time.process_time() < end: pass
"""


@pytest.mark.alone   # beside others stillframe waits for a CPU while the burst has one, and the burst is over sooner
def test_who_wakes_after_long_is_seen_at_once(stillframe, target, tmp_path):
    """A thread that has slept for long is looked at 20 times a second, but when it runs the process's own clock tells:
    bursts of 30 ms are sampled at the rate that was asked for, not once in a while."""
    t = target([sys.executable, "-c", BURSTS])
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "2500ms", "-F", "499", "--clock", "cpu", "--max-cost", "50")
    assert done.status == 0, done
    samples = recording.rows("SELECT time_ns, cpu_ns FROM samples WHERE cpu_ns > 0 ORDER BY time_ns")
    # How much CPU time each speaks for, by whether it is the first of a burst: twenty looks a second let 25 ms pass before that.
    firsts, others = [], []
    for (before_ns, _), (time_ns, cpu_ns) in zip(samples, samples[1:]):
        (firsts if time_ns - before_ns > 100e6 else others).append(cpu_ns)
    assert len(firsts) >= 8 and statistics.median(firsts) < 6e6 + 2 * statistics.median(others), (firsts, others)
    assert statistics.median(others) < 4e6, others   # two periods


def test_attach_for_a_time(stillframe, target, tmp_path):
    t = target("deep", 30, "spin")
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "1s", "-F", "199hz")
    assert done.status == 0, done
    duration = recording.duration()
    assert 0.9 < duration < 2, duration
    assert t.runs()
    t.assert_free()
    t.assert_moves()
    t.end()
    assert recording.value("SELECT complete FROM session") == 1
    assert 150 <= recording.ticks <= 260 * duration, (recording.ticks, duration)
    # Each stack is whole: the bottom, 31 calls, main, down to the first frame.
    stacks = recording.stacks_of("main")
    whole = sum(count for names, count in stacks
                if names.count("down_odd") + names.count("down_even") == 31 and names[-1] == "_start")
    assert whole >= 0.99 * recording.samples, stacks[:2]
    recording.assert_accounts()


@pytest.mark.parametrize("hz", [199, 1])
def test_all_the_time_that_there_was_is_in_samples(stillframe, target, tmp_path, hz):
    """Who runs and who sleeps, up to the end, although no tick was due just then."""
    t = target("many_threads", 5, 30)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "300ms", "-F", "%dhz" % hz)
    assert done.status == 0, done
    # Of threads that use little, one may have CPU time of another, and the elapsed time of that (base/use_shares.h).
    lives = recording.rows("SELECT n.name, (end_ns - start_ns) / 1e9, (sum(s.wall_ns) - sum(s.cpu_ns) + t.cpu_counted_ns) / 1e9, sum(s.ticks) FROM threads t "
                           "JOIN (SELECT thread, ticks, cpu_ns, wall_ns FROM samples UNION ALL SELECT thread, ticks, cpu_ns, wall_ns FROM losses) s "
                           "ON s.thread = t.id JOIN thread_names n ON n.thread = t.id GROUP BY t.id")
    assert len(lives) == 7, lives
    for name, life, told, ticks in lives:
        assert told >= 0.3, lives
        # Who runs may have borrowed of what would come next: CPU time is measured, being awake is only seen (capture/ptrace/thread.h).
        assert name == "spinner" or told < life + 0.001, lives
        assert name != "spinner" or ticks >= told * hz - 3, lives   # also where many come late; each sample is one at least


def test_it_ends_in_time_although_no_tick_is_due(stillframe, target, tmp_path):
    """At 1 Hz the second tick is due 0.75 to 1.25 s after the first."""
    t = target("many_threads", 5, 30)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "100ms", "-F", "1hz")
    assert done.status == 0, done
    assert recording.duration() < 0.7, recording.duration()


def test_summary_says_what_the_file_says(stillframe, target, tmp_path):
    t = target("many_threads", 20, 30)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "1")
    assert done.status == 0, done
    assert done.out == "", "only the summary, and that on stderr"
    match = re.search(r"ticks ([\d,]+) = ([\d,]+) sampled \+ ([\d,]+) lost", done.err)
    assert match, done
    ticks, samples, losses = (int(number.replace(",", "")) for number in match.groups())
    assert ticks == samples + losses == recording.ticks, (done, recording.ticks)
    assert losses == sum(recording.losses().values()), (done, recording.losses())
    assert samples == recording.samples, done
    assert str(t.pid) in done.err
    seen, lost, counted = recording.cpu()
    match = re.search(r"([\d.]+) (m?s) seen, ([\d.]+) (m?s) counted", done.err)
    assert match, done
    assert abs(float(match.group(1)) * (0.001 if match.group(2) == "ms" else 1) - seen) < 0.05 * seen + 0.01
    assert "r.sfr" in done.err
    duration = float(re.match(r"stillframe: ([\d.]+) s of", done.err).group(1))
    assert abs(recording.value("SELECT duration_ns FROM session") / 1e9 - duration) < 0.002, (done, "preparations are no part of it")


def test_blocked_threads_name_their_wait(stillframe, target, tmp_path):
    """A blocked thread's time is its wall time, its state says blocked, its leaf what it waits for."""
    t = target("many_threads", 20, 30)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "1s")
    assert done.status == 0, done
    for name, wait, function in (("in-futex", "futex", "sleep_in_futex"), ("in-poll", "poll", "sleep_in_poll"),
                                 ("in-read", "read", "sleep_in_read"),
                                 ("in-nanosleep", "nanosleep", "sleep_in_nanosleep")):
        rows = recording.rows(
            "SELECT s.stack, sum(s.wall_ns), sum(s.cpu_ns) FROM samples s JOIN thread_names t ON t.thread = s.thread "
            "JOIN states w ON w.id = s.state WHERE t.name = ? AND w.word = 'blocked' GROUP BY s.stack", name)
        wall, duration = sum(row[1] for row in rows) / 1e9, recording.duration()
        assert 5 * 0.9 < wall < 5 * 1.1 * duration, "%s: %.2f s of 5 threads in %.2f s" % (name, wall, duration)
        stacks = [names for names, _ in recording.stacks_of(function)]
        assert stacks, "%s: nobody in %s" % (name, function)
        assert all(re.match(r"^\[.*%s.*\]$" % wait, names[0]) for names in stacks), stacks
    # The spinner runs meanwhile, and is not blocked.
    assert recording.total_shares().get("spinner", 0) > 0.9


def test_blocked_rate_is_lower(stillframe, target, tmp_path):
    """20 Hz for sleepers by default, 199 Hz for runners."""
    t = target("many_threads", 4, 30)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "1s", "-F", "199",
                                        "--blocked-rate", "10")
    assert done.status == 0, done
    ticks = dict(recording.rows("SELECT t.name, sum(s.ticks) FROM samples s JOIN thread_names t "
                                "ON t.thread = s.thread GROUP BY t.name"))
    duration = recording.duration()   # a second, and what the end comes late
    assert 5 <= ticks["in-futex"] <= 15 * duration, (ticks, duration)
    assert 150 <= ticks["spinner"] <= 240 * duration, (ticks, duration)


def test_clock_cpu_leaves_sleepers_out(stillframe, target, tmp_path):
    t = target("many_threads", 20, 30)
    until(lambda: status_of(t.pid)["State"][0] == "S", "its first thread sleeps, too")
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "500ms", "--clock", "cpu")
    assert done.status == 0, done
    names = {name for name, in recording.rows(
        "SELECT DISTINCT t.name FROM samples s JOIN thread_names t ON t.thread = s.thread")}
    assert names == {"spinner"}, names


def test_only_some_threads(stillframe, target, tmp_path):
    t = target("many_threads", 20, 30)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "500ms", "--threads", "^in-(poll|read)$")
    assert done.status == 0, done
    names = {name for name, in recording.rows(
        "SELECT DISTINCT t.name FROM samples s JOIN thread_names t ON t.thread = s.thread")}
    assert names == {"in-poll", "in-read"}, names
    assert recording.cpu()[2] < 0.005, "the spinner's time is not counted, and not lost"


def test_max_depth_is_marked(stillframe, target, tmp_path):
    t = target("deep", 200, "spin")
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "500ms", "--max-depth", 50)
    assert done.status == 0, done
    ends = dict(recording.rows("SELECT e.word, count(*) FROM samples s JOIN ends e ON e.id = s.\"end\" GROUP BY e.word"))
    assert set(ends) == {"depth"}, ends
    names = recording.stacks_of("down_odd")[0][0]
    assert names[-1].startswith("[cut"), names[-3:]
    assert sum(name.startswith("down_") for name in names) in range(45, 51)


def test_deep_stacks_are_whole(stillframe, target, tmp_path):
    t = target("deep", 10000, "spin")
    stillframe.record_until(tmp_path / "r.sfr", 50, "-p", t.pid, "--max-depth", 16384)
    recording = Recording(tmp_path / "r.sfr")
    assert recording.value("SELECT count(*) FROM samples s JOIN ends e ON e.id = s.\"end\" WHERE e.word <> 'root'") <= \
        recording.samples * 0.01 + 1, recording.rows("SELECT \"end\", count(*) FROM samples GROUP BY 1")
    assert recording.value("SELECT max(depth) FROM stack_frames") > 10000


def test_inlined_calls_are_frames(stillframe, target, tmp_path):
    t = target("inlined", "spin")
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "500ms")
    assert done.status == 0, done
    # Wherever it stands in the loop, everything is in `caller`, and most is in what was inlined into it.
    shares = recording.total_shares()
    assert shares.get("caller", 0) > 0.98, shares
    assert shares.get("outer", 0) > 0.9, shares
    for names, _ in recording.stacks_of("innermost"):
        at = names.index("innermost")
        assert names[at:at + 4] == ["innermost", "middle", "outer", "caller"], names


def test_status_of_the_command_is_passed_on(stillframe, tmp_path):
    for status in (0, 1, 2, 42, 255) if LONG else (0, 42, 255):
        done = stillframe("record", "-o", tmp_path / "r.sfr", "--", path_of("status"), "exit", status)
        assert done.status == status, done
    done = stillframe("record", "-o", tmp_path / "r.sfr", "--", path_of("status"), "signal", int(signal.SIGUSR1))
    assert done.status == 128 + signal.SIGUSR1 or done.status == -signal.SIGUSR1, done


def test_the_command_keeps_its_standard_streams(stillframe, tmp_path):
    process = stillframe.start("record", "-o", tmp_path / "r.sfr", "--", "/bin/sh", "-c",
                               "read line; echo got $line; echo err >&2; sleep 0.3", stdin=subprocess.PIPE)
    process.stdin.write(b"hello\n")
    process.stdin.flush()
    done = stillframe.wait(process)
    assert done.status == 0, done
    assert done.out == "got hello\n", done
    assert "err" in done.err.splitlines(), done


def test_interrupt_ends_the_recording_not_the_target(stillframe, target, tmp_path):
    t = target("deep", 10, "spin")
    process = stillframe.start("record", "-p", t.pid, "-o", tmp_path / "r.sfr")
    until(lambda: ticks_so_far(tmp_path / "r.sfr") > 50, "it is sampled", 60)
    process.send_signal(signal.SIGINT)
    done = stillframe.wait(process, 20)
    assert done.status == 0, done
    assert t.runs()
    t.assert_free()
    t.assert_moves()
    recording = Recording(tmp_path / "r.sfr")
    assert recording.value("SELECT complete FROM session") == 1
    assert recording.ticks > 50


def test_with_nohup_the_end_of_the_terminal_is_none(stillframe, target, tmp_path):
    """A SIGHUP that was ignored at the start stays so; a SIGINT is heard also by what a script starts with &, as it is by perf."""
    def started_so():
        for each in (signal.SIGHUP, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)

    t = target("deep", 10, "spin")
    process = stillframe.start("record", "-p", t.pid, "-o", tmp_path / "r.sfr", preexec_fn=started_so)
    until(lambda: ticks_so_far(tmp_path / "r.sfr") > 10, "it is sampled", 60)
    process.send_signal(signal.SIGHUP)
    before = ticks_so_far(tmp_path / "r.sfr")
    until(lambda: ticks_so_far(tmp_path / "r.sfr") > before + 20, "it goes on", 60)
    process.send_signal(signal.SIGINT)
    assert stillframe.wait(process, 20).status == 0
    assert Recording(tmp_path / "r.sfr").value("SELECT complete FROM session") == 1


def test_interrupt_from_the_terminal_reaches_the_command_once(stillframe, tmp_path):
    """Ctrl-C goes to the foreground group: to stillframe and to the command, each once. The recording ends in order."""
    process = stillframe.start("record", "-o", tmp_path / "r.sfr", "--", path_of("status"), "sigint",
                               start_new_session=True)
    assert process.stdout.readline() == b"ready\n"
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    done = stillframe.wait(process, 20)
    assert done.status == 0, done     # the command counted one SIGINT and exited 0
    assert Recording(tmp_path / "r.sfr").value("SELECT complete FROM session") == 1


def test_children(stillframe, tmp_path):
    """With --children the descendants are recorded too, without only the process itself."""
    def script(seconds):
        return "%s %g & %s %g & wait" % (path_of("busy_split"), seconds, path_of("busy_split"), seconds)
    done, recording = stillframe.record(tmp_path / "all.sfr", "--children", "--", "/bin/sh", "-c", script(0.5))
    assert done.status == 0, done
    seen, _, _ = recording.cpu()
    assert seen > 0.8, (seen, recording.losses(), done)
    assert recording.value("SELECT count(DISTINCT pid) FROM processes") >= 3
    assert recording.total_shares().get("work", 0) > 0.8, recording.total_shares()
    done, recording = stillframe.record(tmp_path / "one.sfr", "--", "/bin/sh", "-c", script(0.2))
    assert done.status == 0, done
    seen, _, _ = recording.cpu()
    assert seen < 0.1, seen


def test_a_child_that_nobody_waits_for_counts_once(stillframe, tmp_path):
    """After its end it is among the children all the same, and each search finds it."""
    done, recording = stillframe.record(tmp_path / "r.sfr", "--children", "--", "/bin/sh", "-c", "%s 0.1 & exec sleep 1" % path_of("busy_split"))
    assert done.status == 0, done
    recording.assert_accounts(used=cpu_told(done.out))


def test_threads_that_come_later_are_seen(stillframe, tmp_path):
    done, recording = stillframe.record(tmp_path / "r.sfr", "--", path_of("busy_split"), 0.3, 4)
    assert done.status == 0, done
    busy = recording.rows("SELECT tid FROM thread_times WHERE cpu_ns > 150000000")
    assert len(busy) == 4, recording.rows("SELECT * FROM thread_times")


@pytest.mark.long("static_pie", "O0")
@pytest.mark.parametrize("name", ["deep_static_pie", "deep_static", "deep_stripped", "deep_no_eh_frame_hdr",
                                  "deep_debug_frame", "deep_O0"])
def test_builds_of_every_kind_have_whole_stacks(stillframe, target, tmp_path, name):
    t = target(name, 30, "wave")
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "500ms", "-F", "499")
    assert done.status == 0, done
    ends = dict(recording.rows("SELECT e.word, count(*) FROM samples s JOIN ends e ON e.id = s.\"end\" GROUP BY e.word"))
    assert sum(ends.values()) - ends["root"] <= 0.02 * sum(ends.values()) + 1, ends


def test_musl(stillframe, target, tmp_path):
    """Debian's musl has no unwind data, but where a thread begins it is known by its code: stacks are whole."""
    if not os.path.exists(path_of("deep_musl")):
        pytest.skip("musl-gcc is not installed")
    t = target("deep_musl", 30, "wave")
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "500ms", "-F", "499")
    assert done.status == 0, done
    ends = dict(recording.rows("SELECT e.word, sum(s.ticks) FROM samples s JOIN ends e ON e.id = s.\"end\" GROUP BY e.word"))
    assert ends.get("root", 0) >= 0.98 * recording.samples, ends
    assert recording.total_shares().get("main", 0) > 0.98
    assert max(sum(name.startswith("down_") for name in names) for names, _ in recording.stacks_of("bottom")) == 31


@pytest.mark.parametrize("name, arguments", [
    ("alloca_vla", ["spin"]), ("altstack_signal", ["spin"]), ("ucontext_coroutines", ["spin"]), ("tailcalls", ["spin"]),
    ("cpp_throw", ["spin"]), ("vdso_clock", []), ("plt_lazy", ["PLUGIN"]),
    pytest.param("cfa_in_rax", [], marks=pytest.mark.skipif(os.uname().machine != "x86_64", reason="in x86-64's assembly"))])
def test_difficult_code_has_whole_stacks(stillframe, target, tmp_path, name, arguments):
    """1 to 3 % of cpp_throw's are not: libgcc puts the registers of where it goes on to where its own frame has saved its caller's (gcc:
    libgcc/unwind-dw2.c, uw_install_context_1). These stacks have frames of libgcc only."""
    t = target(name, *[path_of("plugin.so") if word == "PLUGIN" else word for word in arguments])
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "1500ms" if name in ("cpp_throw", "altstack_signal") else "500ms", "-F", "999")
    assert done.status == 0, done
    # Samples, not their ticks: where it waits for a CPU, one place stands for many.
    ends = [word if word in ("root", "other-stack") or n_others or name != "cpp_throw" else "libgcc" for word, n_others in recording.rows(
        "SELECT e.word, (SELECT count(*) FROM stack_frames f JOIN frames ON frames.id = f.frame JOIN modules m ON m.id = frames.module "
        "WHERE f.stack = s.stack AND m.path NOT LIKE '%libgcc_s.so%') FROM samples s JOIN ends e ON e.id = s.\"end\" ORDER BY s.time_ns")]
    # The kernel copies one stack only. A thread on two is held once a sample was cut for that, and how many there are by then depends on the
    # load of the machine.
    known = list(itertools.dropwhile(lambda word: word == "other-stack", ends))
    cut = [word for word in known if word != "root"]
    assert cut.count("libgcc") <= 0.05 * len(known) + 5, collections.Counter(ends)
    assert len(known) > 0.8 * len(ends) and len(cut) - cut.count("libgcc") <= 0.02 * len(known) + 1, collections.Counter(ends)


def test_a_program_whose_file_is_gone(stillframe, tmp_path):
    """Its executable was deleted while it runs: /proc has it still."""
    need_root()   # links to mapped files: proc_pid_map_files(5)
    copy = tmp_path / "gone"
    shutil.copy(path_of("deep"), copy)
    t = Target([copy, 20, "spin"])
    try:
        copy.unlink()
        done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "500ms")
        assert done.status == 0, done
        stacks = recording.stacks_of("bottom")
        assert stacks and all(names[-1] == "_start" for names, _ in stacks), stacks
    finally:
        assert not t.end()


def test_a_program_whose_file_was_replaced(stillframe, tmp_path):
    """Another program lies under its name: its rows and names must not be used."""
    need_root()   # as above
    copy = tmp_path / "changed"
    shutil.copy(path_of("deep"), copy)
    t = Target([copy, 20, "spin"])
    try:
        other = tmp_path / "other"
        shutil.copy(path_of("tailcalls"), other)
        other.rename(copy)
        done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "500ms")
        assert done.status == 0, done
        stacks = recording.stacks_of("bottom")
        assert stacks and all(names[-1] == "_start" for names, _ in stacks), stacks
        assert not recording.stacks_of("jump_a")
    finally:
        assert not t.end()


def test_code_in_another_mount_namespace(stillframe, tmp_path):
    """The target's files are where only it can see them: /proc/PID/root."""
    need_root()
    need("unshare", "mount")
    room = tmp_path / "room"
    room.mkdir()
    script = "mount -t tmpfs none %s && cp %s %s/hidden && exec %s/hidden 20 spin" % (
        room, path_of("deep"), room, room)
    t = Target(["unshare", "-m", "/bin/sh", "-c", script])
    try:
        assert not (room / "hidden").exists()
        done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-d", "500ms")
        assert done.status == 0, done
        stacks = recording.stacks_of("bottom")
        assert stacks and all(names[-1] == "_start" for names, _ in stacks), stacks
    finally:
        assert not t.end()


def test_default_name_of_the_file(stillframe, tmp_path):
    done = stillframe("record", "-d", "200ms", "--", "/bin/sleep", "0.3")
    assert done.status == 0, done
    files = list(tmp_path.glob("*.sfr"))
    assert len(files) == 1, (files, done)
    assert files[0].name in done.err, done
    assert re.search(r"\n  cost  \S+ [mu]?s of CPU time, \S+ MB\n", done.err), done
    Recording(files[0])


@pytest.mark.parametrize("engine", ["ptrace", "perf"])
def test_a_frozen_process_is_stopped(stillframe, target, tmp_path, engine):
    """Amid its code: it waits for no page. By perf the kernel's frames show the freezer."""
    need_root()
    if engine == "perf":
        need_kernel_samples(stillframe)
    t = target("deep", 10, "spin")
    stopped = "total(wall_ns * (state = (SELECT id FROM states WHERE word = 'stopped'))) / 1e9"
    with Freezer(t.pid) as freezer:
        frozen = []

        def stood(path):
            if not frozen and ticks_so_far(path):
                freezer.freeze()
                time.sleep(0.5)
                freezer.thaw()
                frozen.append(True)
            return so_far(path, stopped) > 0.3
        stillframe.record_until(tmp_path / "r.sfr", stood, "--engine", engine, "-p", t.pid)
        t.assert_moves()
    recording = Recording(tmp_path / "r.sfr")
    assert recording.rows("SELECT DISTINCT f.label FROM samples s JOIN stacks t ON t.id = s.stack JOIN frames f ON f.id = t.frame "
                          "WHERE s.state = (SELECT id FROM states WHERE word = 'stopped')") == [("[stopped]",)]
    assert "page fault" not in stillframe("report", "-b", "wait", recording.path).ok().out

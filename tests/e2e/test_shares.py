# SPDX-License-Identifier: Apache-2.0
"""Shares of CPU time: of threads that work for a moment and sleep, and of what no sample stands for."""
import json
import os
import re
import shutil
import sqlite3

import pytest

from conftest import PROGRAMS, need_findings, need_root
from recordings import Recording, cpu_told, worth_of
from test_export import export


def path_of(name):
    return os.path.join(PROGRAMS, name)


def truth_of(said):
    """What tests/programs/nappers.c says that it used. What is not the busy thread's is the nappers': by their own clocks, and to end them."""
    told = {name: float(seconds) for name, seconds in re.findall(r"^(busy|first_half|second_half) ([\d.]+)$", said, re.M)}
    return {**told, "nappers": cpu_told(said) - told["busy"]}


# Samples, with `napper`: of a thread other than the first one, which is the busy one. A thread of such a short life may keep the name that it began with.
SAMPLES = "(SELECT s.*, t.tid <> p.pid AS napper FROM samples s JOIN threads t ON t.id = s.thread JOIN processes p ON p.id = t.process)"


def seconds_of(recording):
    """{"nappers", "busy": seconds of CPU time in samples}."""
    return dict(recording.rows("SELECT iif(napper, 'nappers', 'busy'), sum(cpu_ns) / 1e9 FROM %s GROUP BY 1" % SAMPLES))


def shares_of(recording):
    """{"nappers", "busy": share of the CPU time that the kernel counted}."""
    _, _, counted = recording.cpu()
    return {name: seconds / counted for name, seconds in seconds_of(recording).items()}


def record_nappers(stillframe, path, *options, cpu_seconds=2, threads=30, burst=200, nap=10000):
    done, recording = stillframe.record(path, *options, "--", path_of("nappers"), cpu_seconds, threads, burst, nap, timeout=300)
    assert done.status == 0, done
    recording.assert_accounts()
    return done, recording, truth_of(done.out)


@pytest.mark.alone   # beside six busy programs the place had 2 to 10 %: a napper that waits for a CPU is found there more often
def test_nappers_have_their_share(stillframe, tmp_path):
    """A sample that finds a napper where it wakes up or goes to sleep says nothing of what it computed. That place had an eighth
    of the nappers' time, and more on a busy machine; it uses a hundredth or two. So it stays for a user whose holding thread may not go before others."""
    need_root()
    done, recording, true = record_nappers(stillframe, tmp_path / "r.sfr", "-F", "499", "--engine", "ptrace", "--max-cost", "50")
    recording.assert_accounts(used=cpu_told(done.out))
    seen, lost, counted = recording.cpu()
    found = shares_of(recording)
    for name in ("busy", "nappers"):
        share = true[name] / counted
        # What was not seen may be anybody's, and is told; beside that the kernel's own counts are kept.
        assert share - lost / counted - 0.03 <= found[name] <= share + 0.03, (name, found, share, lost)
    at_sleep = recording.total_shares().get("sleep_ns", 0) * seen / (found["nappers"] * counted)
    worth = worth_of([weight for weight, in recording.rows("SELECT cpu_ns FROM %s WHERE napper AND cpu_ns > 0" % SAMPLES)])
    assert at_sleep < 0.03 + 3 * (0.03 * 0.97 / worth) ** 0.5, (at_sleep, worth)


def test_threads_that_use_less_than_a_period(stillframe, tmp_path):
    """By events of the threads none of these 400 has a sample: each uses some 2 ms, and a period is 5 ms. Before the events of the CPUs take
    their place, the time is their first samples', or lost; from then on samples are in proportion."""
    need_root()
    need_findings(stillframe("doctor").out, "all processes of the machine may be recorded")
    done, recording, true = record_nappers(stillframe, tmp_path / "r.sfr", "-F", "199", "--engine", "perf", "--max-cost", "100", cpu_seconds=2, threads=400,
                                           nap=200000)
    seen = seconds_of(recording).get("nappers", 0)
    lost = recording.value("SELECT sum(cpu_ns) / 1e9 FROM losses") or 0
    chance = 3 * (true["nappers"] / 0.005) ** 0.5 * 0.005
    assert true["nappers"] - lost - chance < seen < true["nappers"] + chance and seen > 0.25 * true["nappers"], (true, seen, lost, chance, done)


@pytest.mark.alone   # beside six busy programs a sixteenth was seen
def test_chance_decides_which_threads_have_a_sample(stillframe, tmp_path):
    """By ptrace each of these 300 threads uses less than passes between two looks at it, and a part of them has a sample on a CPU. Those samples
    stand for the CPU time of the others, too, and no sample of the busy thread does."""
    done, recording, true = record_nappers(stillframe, tmp_path / "r.sfr", "-F", "997", "--engine", "ptrace", threads=300, nap=100000)
    seen = seconds_of(recording)
    # Samples that were taken, and found no room since the thread that walks got no CPU.
    no_room = recording.value("SELECT total(cpu_ns) / 1e9 FROM losses WHERE cause = (SELECT id FROM causes WHERE word = 'ring-full')")
    assert 0.4 * (true["nappers"] - no_room) < seen["nappers"] < 1.02 * true["nappers"], (true, seen, no_room, done)
    assert seen["busy"] < 1.02 * true["busy"] + 0.02, (true, seen, done)


@pytest.mark.alone   # where the threads wait for CPUs, the kernel's ticks find less of what is done first
@pytest.mark.parametrize("engine", ["signal", "perf"])
def test_what_is_done_first_in_a_turn_has_its_share(stillframe, tmp_path, engine):
    """By signal each turn of a thread has a sample at the most. Where a sample had the CPU time since the thread's last one, and was at the first tick
    behind a period, what is done in the first third of turns had 18 % of the time."""
    done, recording = stillframe.record(tmp_path / "r.sfr", "-F", "499", "--engine", engine, "--", path_of("turns"), 2, 1.5)
    assert done.status == 0, done
    recording.assert_accounts(used=cpu_told(done.out))
    true = {name: float(seconds) for name, seconds in re.findall(r"^(first|last) ([\d.]+)$", done.out, re.M)}
    shares = recording.total_shares()
    share, expected = shares["done_first"] / (shares["done_first"] + shares["done_last"]), true["first"] / (true["first"] + true["last"])
    assert abs(share - expected) < 0.015 + 3.3 * (expected * (1 - expected) / recording.worth()) ** 0.5, (share, expected, recording.worth())


def test_a_perf_clock_rings_for_nappers(stillframe, tmp_path):
    """Threads that use less than a period between two looks of the sampler. It set their clocks at each look, and so anew, and none
    ever rang."""
    if not re.search(r"^ +ok +perf events ring for CPU time", stillframe("doctor").out, re.M):
        pytest.skip("perf events may not be used here")
    done, recording, true = record_nappers(stillframe, tmp_path / "r.sfr", "-F", "200", "--engine", "signal", "--cpu-clock", "perf",
                                           threads=10, nap=20000, cpu_seconds=1.5)
    samples = recording.value("SELECT count(*) FROM %s WHERE napper AND state = 0" % SAMPLES)
    assert samples > true["nappers"] * 200 / 4, (samples, true)


@pytest.fixture
def doubtful(stillframe, tmp_path):
    """A recording of which a third was not seen, of a thread and of none."""
    done, recording = stillframe.record(tmp_path / "r.sfr", "-F", "499", "--max-cost", "50", "--", path_of("busy_split"), 0.5)
    assert done.status == 0, done
    seen, _, _ = recording.cpu()
    path = tmp_path / "doubtful.sfr"
    shutil.copy(recording.path, path)
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM losses")
        db.execute("INSERT INTO losses(thread, cause, ticks, cpu_ns, wall_ns, amount) VALUES (0, 6, 0, ?, 0, 0), (1, 0, 1, ?, 0, 0)",
                   (int(seen / 4 * 1e9), int(seen / 4 * 1e9)))
        db.execute("UPDATE threads SET cpu_counted_ns = ? WHERE id = 1", (int(seen * 1.25e9),))
    db.close()
    return Recording(path), seen


def test_what_was_not_seen_is_a_row(stillframe, doubtful, tmp_path):
    """In the report, with a warning, and percentages of all of it."""
    recording, seen = doubtful
    told = json.loads(stillframe("report", "--json", "--clock", "cpu", recording.path).ok().out)
    assert abs(told["total_ns"] / 1e9 - 1.5 * seen) < 0.01 * seen, told["total_ns"]
    row, = [row for row in told["functions"] if row["name"] == "[not seen]"]
    assert abs(row["self_ns"] / told["total_ns"] - 1 / 3) < 0.01 and row["samples"] == 0, row
    text = stillframe("report", recording.path).ok().out
    assert re.search(r"^  warning +33\.[23] % of the CPU time is in no sample", text, re.M), text
    assert re.search(r"^ +33\.\d +33\.\d .*\[not seen\]$", text, re.M), text


def test_what_was_not_seen_is_in_exports(stillframe, doubtful, tmp_path):
    recording, seen = doubtful
    third = pytest.approx(seen / 2, rel=0.01)
    lines = export(stillframe, recording, tmp_path, "collapsed", "--clock", "cpu").decode().splitlines()
    assert sum(int(line.split()[-1]) for line in lines if ";[not seen] " in line) / 1e6 == third
    scope = json.loads(export(stillframe, recording, tmp_path, "speedscope", "--clock", "cpu"))
    frame = [frame["name"] for frame in scope["shared"]["frames"]].index("[not seen]")
    assert sum(weight for profile in scope["profiles"] for stack, weight in zip(profile["samples"], profile["weights"])
               if stack == [frame]) / 1e9 == third
    page = export(stillframe, recording, tmp_path, "html").decode()
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
    assert "[not seen]" in data["strings"]
    assert data["about"]["cpu_lost_ns"] / 1e9 == third
    assert data["about"]["cpu_counted_ns"] / 1e9 == pytest.approx(1.5 * seen, rel=0.01)


def test_little_is_no_warning(stillframe, tmp_path):
    """A percent is no reason to doubt: the row is enough."""
    done, recording = stillframe.record(tmp_path / "r.sfr", "--", path_of("busy_split"), 0.3)
    with sqlite3.connect(recording.path) as db:
        db.execute("DELETE FROM losses")
    db.close()
    assert "warning" not in stillframe("report", recording.path).ok().out

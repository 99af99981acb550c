# SPDX-License-Identifier: Apache-2.0
"""Several processes in one recording: -p 1,2,3, several -p, and the words that $(pidof NAME) gives; by each engine."""
import json
import os
import re

import pytest

import hanging

from conftest import AGENT, PROGRAMS, need, need_agent, need_engine, need_root
from recordings import Recording, so_far

ENGINES = ["ptrace", "signal", "perf"]
LISTEN = {**os.environ, "LD_PRELOAD": AGENT, "STILLFRAME": "listen"}


@pytest.fixture
def three(target):
    """Three busy programs in which an agent would listen."""
    need_agent()
    return [target("deep", 5 + i, "spin", env=LISTEN) for i in range(3)]


def pids_of(targets):
    return [each.pid for each in targets]


@pytest.mark.long("ptrace")   # perf keeps the same list of processes
@pytest.mark.parametrize("engine", ENGINES)
def test_one_recording_of_all(stillframe, three, tmp_path, engine):
    """Each has its own process, command and samples, and the CPU time of all three is in the account."""
    first, second, third = pids_of(three)
    need_engine(stillframe, engine, first)

    def have_all(path):
        return so_far(path, "count(DISTINCT CASE WHEN cpu_ns > 0 THEN (SELECT process FROM threads t WHERE t.id = thread) END)") == 3
    done = stillframe.record_until(tmp_path / "r.sfr", have_all, "-e", engine, "-p", "%d,%d" % (first, second), "-p", third, "-p", first,
                                   "-F", "399")
    recording = Recording(tmp_path / "r.sfr")
    assert re.search(r"\(pid %d and 2 more, \d threads of 3 processes\) by %s" % (first, engine), done.err), done
    rows = recording.rows("SELECT pid, command_line, (SELECT SUM(cpu_ns) / 1e9 FROM samples s JOIN threads t ON t.id = s.thread"
                          " WHERE t.process = p.id) FROM processes p ORDER BY pid")
    assert [(pid, words.split()[-2:]) for pid, words, _ in rows] == [(each.pid, each.command[1:]) for each in three], rows
    assert all(seconds > 0 for _, _, seconds in rows), rows
    recording.assert_accounts()
    assert recording.value("SELECT command FROM session").endswith(" 5 spin and 2 more (pids %d, %d, %d)" % (first, second, third))


@pytest.mark.parametrize("engine", ENGINES)
def test_one_of_them_is_not_there(stillframe, three, tmp_path, engine):
    """All or none: nothing is recorded of the others without a word."""
    three[2].process.kill()
    three[2].process.wait()
    done = stillframe("record", "-e", engine, "-o", tmp_path / "r.sfr", "-p", ",".join(map(str, pids_of(three))), "-d", "1s").fails(1)
    assert str(three[2].pid) in done.err and not (tmp_path / "r.sfr").exists(), done


def test_a_child_of_another_is_counted_once(stillframe, target, tmp_path):
    """A parent and its child, both named, with --children: one process each."""
    parent = target(["/bin/sh", "-c", "%s 5 spin & echo ready; wait" % os.path.join(PROGRAMS, "deep")])
    (child,) = hanging.descendants(parent.pid)
    done, recording = stillframe.record(tmp_path / "r.sfr", "--children", "-p", "%d,%d" % (child, parent.pid), "-d", "500ms")
    assert done.status == 0, done
    assert recording.rows("SELECT COUNT(*), COUNT(DISTINCT pid) FROM processes") == [(2, 2)], done


# The kernel gives the number behind that in the file to the next process or thread, which may be another one's.
SAME_PID = """
"$0" 0.2 >/dev/null & first=$!
wait
while :; do
    echo $((first - 1)) >/proc/sys/kernel/ns_last_pid
    "$1" -c "import time
while time.process_time() < 0.3: pass" & second=$!
    [ $second = $first ] && break
    kill -9 $second
    wait $second
done
wait
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_pid_that_is_used_again(stillframe, tmp_path, engine):
    """Each of its processes has its own name, thread and CPU time."""
    need_root()
    if engine == "signal":
        need_agent()
    else:
        need_engine(stillframe, engine, os.getpid())
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", engine, "-F", "399", "--children", "--", "bash", "-c", SAME_PID,
                                        os.path.join(PROGRAMS, "busy_split"), "/usr/bin/python3",
                                        prefix=["unshare", "-pf", "--mount-proc"])
    assert done.status == 0, done
    rows = recording.rows("SELECT p.name, t.name, t.cpu_counted_ns / 1e9 FROM processes p JOIN threads t ON t.process = p.id "
                          "WHERE t.tid = p.pid AND p.pid = (SELECT pid FROM processes WHERE name = 'busy_split') "
                          "ORDER BY p.start_ns")
    assert [row[:2] for row in rows] == [("busy_split", "busy_split"), ("python3", "python3")] and rows[1][2] > 0.25, rows


def test_the_examples_of_the_help(stillframe, three, tmp_path):
    """As they stand there, with the numbers that pidof gives."""
    need("sh")
    lines = re.findall(r"^  (stillframe \w+ .*?)(?:   .*)?$", stillframe("--help").ok().out, re.MULTILINE)
    assert len(lines) == 2 and all("$(pidof nginx)" in line for line in lines), lines
    for line in lines:
        words = line.replace("$(pidof nginx)", " ".join(map(str, pids_of(three)))).replace("10s", "200ms").split()[1:]
        done = stillframe(*words)
        assert done.status == 0 and "-p" in words, done
        assert all(str(pid) in done.err + done.out for pid in pids_of(three)[:1]), done
    assert "%d and 2 more" % three[0].pid not in done.out, done
    (name,) = [name for name in os.listdir(tmp_path) if name.endswith(".sfr")]
    assert Recording(tmp_path / name).value("SELECT COUNT(*) FROM processes") == 3
    done = stillframe("report").ok()
    assert done.err == "stillframe: %s, the newest recording here\n" % name, done


def test_a_dump_of_several(stillframe, three):
    """One after the other, in text and in JSON; a process that is not there makes it fail, and the others are shown."""
    pids = pids_of(three)
    text = stillframe("dump", "-p", *pids).ok().out
    assert re.findall(r"^process (\d+) ", text, re.MULTILINE) == [str(pid) for pid in pids], text
    left, found = stillframe("dump", "--json", "-p", ",".join(map(str, pids))).ok().out, []
    while left.strip():
        value, end = json.JSONDecoder().raw_decode(left.lstrip())
        found.append(value["pid"])
        left = left.lstrip()[end:]
    assert found == pids
    three[1].process.kill()
    three[1].process.wait()
    done = stillframe("dump", "-p", *pids)
    assert done.status == 1 and str(pids[1]) in done.err, done
    assert re.findall(r"^process (\d+) ", done.out, re.MULTILINE) == [str(pids[0]), str(pids[2])], done


@pytest.mark.parametrize("arguments, word", [
    (["-p", "1,"], "''"), (["-p", ",1"], "''"), (["-p", "1,x"], "'x'"), (["-p", "1,,2"], "''"), (["-p", "1", "0"], "'0'"),
    (["-p", ",".join(map(str, range(1, 1026)))], "more than 1024"),
], ids=["end", "start", "word", "middle", "zero", "many"])
def test_lists_that_are_none(stillframe, arguments, word):
    for command in ("record", "dump"):
        done = stillframe(command, *arguments).fails(2)
        assert word in done.err and done.out == "", done

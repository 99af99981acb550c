# SPDX-License-Identifier: Apache-2.0
"""record --event with the events of .NET's runtime, against the program's own numbers. Recording.check() has the sum: amounts of
samples and lost ones are those that were counted."""
import json
import os
import signal

import pytest

from conftest import PLAIN
from processes import Target, until
from recordings import Recording, so_far
from test_dotnet import compile_program
from test_dotnet_published import publish

pytestmark = pytest.mark.waits


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    return compile_program(tmp_path_factory.mktemp("dotnet"), "Events")


@pytest.fixture
def running(program):
    target = Target(["dotnet", program, "on"], env={**PLAIN, "TMPDIR": str(program.parent)})
    yield target
    target.end()


def sums(recording):
    """Amounts that samples stand for, that were lost, and that were counted."""
    return recording.rows("SELECT amount_seen, amount_lost, amount_counted FROM accounting")[0]


def by_label(recording):
    return {"%s=%s" % (key, value): amount for key, value, amount in recording.rows("SELECT key, value, amount FROM label_times")}


def amount_in(recording, function):
    """Of stacks that have a function whose name begins so."""
    return recording.value(
        "SELECT total(amount) FROM stack_times WHERE stack IN (SELECT stack FROM stack_frames JOIN frame_names n USING (frame) WHERE n.name LIKE ?)",
        "Demo.Events." + function + "(%")


def check_common(done, recording, event, unit):
    seen, lost, counted = sums(recording)
    assert seen + lost == counted and counted > 0, done
    assert recording.rows("SELECT name, unit, counted FROM measures") == [(event, unit, counted)]
    assert recording.rows("SELECT total(cpu_ns), total(wall_ns) FROM samples") == [(0, 0)] and recording.cpu() == (0, 0, 0)
    # The agent's own frames are in no stack.
    assert recording.value("SELECT count(*) FROM stack_frames JOIN frame_names USING (frame) WHERE module LIKE '%libstillframe-agent%'") == 0, done
    return seen, counted


def record_once(stillframe, program, path, event, *options):
    done, recording = stillframe.record(path, "--engine", "signal", "--event", event, *options, "--", "dotnet", program, "once")
    allocated, collections, contended = map(int, done.out.split())
    return done, recording, allocated, collections, contended


def check_exceptions(done, recording):
    """The methods that throw are innermost, and not those of the runtime that dispatch."""
    seen, counted = check_common(done, recording, "exception", "events")
    assert "40 exception seen, 40 counted" in done.err, done
    assert (seen, counted) == (40, 40), done
    assert by_label(recording) == {"type=Demo.Odd": 30, "type=System.InvalidOperationException": 10}
    assert recording.rows("SELECT name, amount FROM self_times ORDER BY amount") == [("Demo.Events.ThrowPlain()", 10), ("Demo.Events.ThrowOdd()", 30)], done


def test_exceptions_have_their_types_and_methods(stillframe, program, tmp_path):
    done, recording, _, _, _ = record_once(stillframe, program, tmp_path / "r.sfr", "exception")
    check_exceptions(done, recording)
    report = json.loads(stillframe("report", "--json", recording.path).ok().out)
    assert report["clock"] == "event" and report["measure"]["counted"] == 40


@pytest.mark.long
@pytest.mark.parametrize("version", [8, 9])
def test_exceptions_of_older_versions(stillframe, tmp_path, version):
    program = publish(tmp_path, "<SelfContained>true</SelfContained>", "Events", version=version)
    done, recording = stillframe.record(tmp_path / "r.sfr", "--engine", "signal", "--event", "exception", "--", program, "once")
    check_exceptions(done, recording)


def test_bytes_have_their_types_and_methods(stillframe, program, tmp_path):
    """Each report of the runtime is a sample: the program makes its objects in some milliseconds, and a sample of every so many reports would
    stand for those before it, of another method and type."""
    done, recording, allocated, _, _ = record_once(stillframe, program, tmp_path / "r.sfr", "allocation=1")
    seen, counted = check_common(done, recording, "allocation", "bytes")
    assert "bytes {:,} allocation seen".format(seen) in done.err, done
    # The runtime reports each 100 KB or so that a heap has given out.
    assert abs(counted - allocated) < 200000 and seen > 0.97 * counted, (done, seen, counted, allocated)
    labels = by_label(recording)
    # A tick carries the type of its last object.
    assert abs(labels["type=Demo.Thing"] - 200000 * 56) < 200000, labels
    assert abs(labels["type=System.Byte[]"] - 20000 * 1024) < 300000, labels
    # The size is of the last object, too. A report of one size has its types.
    assert abs(labels["size=56"] - 200000 * 56) < 200000 and abs(labels["size=1024"] - 20000 * 1024) < 300000, labels
    rows = json.loads(stillframe("report", "--json", "--label", "size=56", recording.path).ok().out)["labels"]
    found = {"%s=%s" % (row["key"], row["value"]) for row in rows}
    assert {"type=Demo.Thing", "size=56"} <= found and "type=System.Byte[]" not in found, rows
    assert abs(amount_in(recording, "MakeThings") - 200000 * 56) < 200000, done
    assert abs(amount_in(recording, "MakeArrays") - 20000 * 1024) < 200000, done


def test_bytes_for_a_sample(stillframe, program, tmp_path):
    done, recording, _, _, _ = record_once(stillframe, program, tmp_path / "r.sfr", "allocation=5000000")
    seen, counted = check_common(done, recording, "allocation", "bytes")
    assert recording.value("SELECT count(*) FROM samples") == counted // 5000000 == 6, (done, counted)


@pytest.mark.parametrize("event, function", [("contention", "Enter"), ("gc", "Collect"), ("jit", "Main"), ("class-load", "Round")])
def test_other_events(stillframe, program, tmp_path, event, function):
    # Each has a sample, as one has not where many types are loaded at once.
    done, recording, _, collections, contended = record_once(stillframe, program, tmp_path / "r.sfr", event + "/1")
    seen, counted = check_common(done, recording, event, "events")
    labels = by_label(recording)
    assert amount_in(recording, function) > 0, done
    if event == "contention":
        assert counted == contended == 7 and amount_in(recording, function) == 7, done
    elif event == "gc":
        assert counted == collections and labels["reason=induced"] == 5 == amount_in(recording, function), (done, labels)
    elif event == "jit":
        assert labels["method=Demo.Events.ThrowOdd"] == 1 and 10 < counted < 1000, (done, labels)
    else:
        assert any("Late`1" in label for label in labels), (done, labels)


def test_a_running_program(stillframe, running, tmp_path):
    """Twice: the agent stays, and the profiler leaves in between. The program goes on."""
    for event, unit, of_a_round, pair in [("exception", "events", 40, ("ThrowOdd", "ThrowPlain", 3)),
                                          ("allocation", "bytes", 200000 * 56 + 20000 * 1024, ("MakeArrays", "MakeThings", 1.83))]:
        path = tmp_path / (event + ".sfr")
        done = stillframe.record_until(path, lambda path: so_far(path, "total(amount)") > 5 * of_a_round, "--engine", "signal",
                                       "--event", event, "-p", running.pid)
        recording = Recording(path)
        check_common(done, recording, event, unit)
        more, less, ratio = pair
        # Whole rounds, and a part of one.
        assert amount_in(recording, less) > 0 and 0.6 * ratio < amount_in(recording, more) / amount_in(recording, less) < 1.7 * ratio, done
    assert running.process.poll() is None


def test_a_program_that_is_killed(stillframe, running, tmp_path):
    """Its samples are there, and the count is not known."""
    path = tmp_path / "r.sfr"
    process = stillframe.start("record", "--event", "exception", "-p", running.pid, "-o", path)
    until(lambda: so_far(path, "count(*)") > 0, "there are samples")
    os.kill(running.pid, signal.SIGKILL)
    done = stillframe.wait(process)
    assert "exception seen, not counted to the end" in done.err, done
    assert Recording(path).rows("SELECT name, counted FROM measures") == [("exception", None)]


def test_the_engine_that_has_the_event_is_taken(stillframe, tmp_path):
    """A program without the runtime has no such events, which is no failure."""
    done = stillframe("record", "--event", "allocation", "-o", tmp_path / "r.sfr", "--", "true").ok()
    assert "no .NET runtime reported an event: there was none in the process" in " ".join(done.err.split()), done
    assert "by signal (own walk)" in done.err and "since a better engine" not in done.err and "0 allocation seen, 0 counted" in done.err, done


@pytest.mark.parametrize("status, arguments, message", [
    (2, ["--event", "allocation", "--engine", "perf"], "--event allocation is for --engine signal, not perf"),
    (2, ["--event", "allocation=0"], "\"0\" is no number of bytes"),
    (2, ["--event", "gc/x"], "\"x\" is no number of events"),
    (2, ["--event", "gc", "--walk", "sampler"], "either --event or --walk"),
    (1, ["--event", "gc", "--all", "--"], "cannot sample all processes"),
])
def test_what_is_refused(stillframe, tmp_path, status, arguments, message):
    output = tmp_path / "r.sfr"
    command = [] if "--all" in arguments else ["--", "true"]
    done = stillframe("record", *[a for a in arguments if a != "--"], "-o", output, *command).fails(status)
    assert message in done.err and not output.exists(), done

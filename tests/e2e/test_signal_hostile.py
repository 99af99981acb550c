# SPDX-License-Identifier: Apache-2.0
"""Agents that do not behave: stillframe takes nothing on trust that comes from inside a program.

tests/programs/in_hostile.c plays the agent."""
import os
import re
import signal

import pytest

from conftest import PROGRAMS
from processes import until
from recordings import Recording, ticks_so_far

pytestmark = pytest.mark.waits

HOSTILE = os.path.join(PROGRAMS, "in_hostile")
# A library that does nothing, in the place of the agent.
NO_AGENT = {**os.environ, "STILLFRAME_AGENT": os.path.join(PROGRAMS, "plugin.so")}


def hostile(stillframe, kind, *options, duration="0.3"):
    return stillframe("record", "-e", "signal", "-d", duration, "-o", "h.sfr", *options, "--", HOSTILE, kind,
                      timeout=30, env=NO_AGENT)


def recording_of(stillframe):
    return Recording(os.path.join(stillframe.cwd, "h.sfr"))


def test_a_fake_agent_that_behaves(stillframe):
    done = hostile(stillframe, "good").ok()
    assert recording_of(stillframe).samples == 110, done
    assert "note" not in done.err, done
    assert re.search(r"told: .*clock=both.*rate=199", done.err), done


@pytest.mark.parametrize("kind, samples, lost", [("killed", 100, 0), ("torn", 100, 1), ("leaves-a-child", 100, 0),
                                                 ("ends-early", 100, 0), ("calls-again", 100, 0)])
def test_its_end_loses_nothing(stillframe, kind, samples, lost):
    done = hostile(stillframe, kind, duration="20")
    assert done.status == (137 if kind in ("killed", "torn") else 0), done
    recording = recording_of(stillframe)
    assert (recording.samples, sum(recording.losses().values())) == (samples, lost), done
    assert kind == "calls-again" or "note" not in done.err, done


NOT_BEGUN = {
    "silent": "had not begun", "refuses": "red", "closes": "went away", "babbles": "does not speak",
    "gives-orders": "only stillframe may say", "no-outbox": "without an outbox", "not-memory": "no shared memory",
    "a-file": "no shared memory", "shrinks": "might shrink", "tiny": "too small", "boasts": "does not look like one",
}


@pytest.mark.parametrize("kind", NOT_BEGUN)
def test_agents_that_never_begin(stillframe, kind):
    done = hostile(stillframe, kind)
    assert done.status == 1, done
    assert NOT_BEGUN[kind] in done.err and "\033" not in done.err, done
    assert "Assertion" not in done.err and not os.path.exists(os.path.join(stillframe.cwd, "h.sfr")), done


GOES_WRONG = {
    "ready-twice": "ready twice", "garbage": "cannot be", "wild": "cannot be", "too-much-time": "more time than",
    "unknown-things": "unknown cause",
}


def assert_left_alone(done, output, *words):
    """With a note; what it said until then is in the recording, which is a whole one. Without a sample the status is 1."""
    assert done.status == (0 if Recording(output).value("SELECT count(*) FROM samples") else 1), done
    said = re.sub(r"\s+", " ", done.err)
    for word in (*words, "is sampled no longer"):
        assert word in said, done
    assert Recording(output).value("SELECT complete FROM session") == 1


@pytest.mark.parametrize("kind", GOES_WRONG)
def test_agents_that_go_wrong(stillframe, kind):
    done = hostile(stillframe, kind)
    words = [GOES_WRONG[kind]] if kind != "wild" else []  # whatever it is that is found first
    assert_left_alone(done, os.path.join(stillframe.cwd, "h.sfr"), *words)


def test_agents_that_do_not_stop(stillframe, tmp_path):
    """Each is waited for five seconds, one beside the other."""
    runs = {kind: stillframe.start("record", "-e", "signal", "-d", "0.3", "-o", tmp_path / kind, "--", HOSTILE, kind, env=NO_AGENT)
            for kind in ("deaf", "endless")}
    for kind, run in runs.items():
        assert_left_alone(stillframe.wait(run, 30), tmp_path / kind, "told to stop")


def test_an_outbox_of_huge_pages(stillframe):
    done = hostile(stillframe, "huge")
    if "no huge pages" in done.err:
        pytest.skip("no memory of huge pages here")
    assert "no shared memory" in done.err, done


def test_a_crowd(stillframe):
    done = hostile(stillframe, "crowd", "--children", duration="10")
    assert done.status == 0, done
    assert recording_of(stillframe).samples == 100


def test_somebody_else_is_turned_away(stillframe):
    """A process that nobody announced calls the collector: it is sent away (the program ends with 42 then), and neither it nor
    what it might say is in the recording; the one that was announced goes on."""
    done = hostile(stillframe, "somebody-else", duration="10")
    assert done.status == 42, done
    recording = recording_of(stillframe)
    assert recording.rows("SELECT count(*), count(DISTINCT process) FROM threads") == [(1, 1)], done
    assert recording.samples == 100 and not recording.losses() and "note" not in done.err, done


def test_a_flood_has_an_end(stillframe, tmp_path):
    """An agent that says all that there are limits for, as fast as it can, and does not stop when it is told to: what it costs is
    bounded, and Ctrl-C ends it."""
    run = stillframe.start("record", "-e", "signal", "-d", "120", "-o", tmp_path / "h.sfr", "--", HOSTILE, "floods", env=NO_AGENT)
    until(lambda: ticks_so_far(tmp_path / "h.sfr") > 20000, "it has said a lot", 100)
    run.send_signal(signal.SIGINT)
    _, status, usage = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    said = re.sub(r"\s+", " ", run.stderr.read().decode())
    assert "of in_hostile" in said, said
    notes = [text for text, in Recording(tmp_path / "h.sfr").rows("SELECT text FROM notes")]
    for words in ("more than 8,192 different files", "more than 1,000 notes", "sampled no longer"):
        assert any(words in text for text in notes), (words, notes[-10:])
    assert usage.ru_maxrss << 10 <= 300 << 20
    assert Recording(tmp_path / "h.sfr").value("SELECT complete FROM session") == 1

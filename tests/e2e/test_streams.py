# SPDX-License-Identifier: Apache-2.0
"""Stream files: what an agent wrote with no stillframe around is read by every command, whole or cut off."""
import gzip
import json
import os
import subprocess

import pytest

from conftest import PROGRAMS

pytestmark = pytest.mark.waits


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """Two seconds: 200 ticks of a thread that spins (2 lost), 200 of one that sleeps."""
    path = tmp_path_factory.mktemp("stream") / "program.sfs"
    subprocess.run([os.path.join(PROGRAMS, "make_stream"), path], check=True, timeout=20)
    return path


def report(stillframe, path, *arguments):
    return json.loads(stillframe("report", path, "--json", *arguments).ok().out)


def by(rows, key):
    return {row[key]: row for row in rows}


def test_report(stillframe, stream):
    out = report(stillframe, stream)
    assert out["recording"]["command"] == "make_stream --by hand"
    assert out["recording"]["engine"] == "signal" and out["recording"]["complete"]
    assert out["recording"]["duration_ns"] == 2_000_000_000
    assert (out["ticks"], out["sample_ticks"], out["lost_ticks"]) == (400, 398, 2)
    assert by(out["functions"], "name")["spin"]["self_ns"] == 1_980_000_000
    assert by(out["functions"], "name")["main"]["total_ns"] == 1_980_000_000
    assert by(out["waits"], "wait")["[futex]"]["wall_ns"] == 2_000_000_000
    assert by(out["threads"], "name")["busy"]["cpu_counted_ns"] == 2_000_000_000
    assert [note["text"] for note in out["notes"]] == ["threads that block every signal are not seen"]


def test_labels(stillframe, stream):
    rows = by(report(stillframe, stream)["labels"], "value")
    assert {value: row["samples"] for value, row in rows.items()} == {"4bf92f35": 148, "00000001": 50, "": 5}
    # 148 samples of 10 ms: half of each is the one's before, and the next one has another label.
    assert rows["4bf92f35"]["key"] == "trace" and rows["4bf92f35"]["cpu_ns"] == 1_485_000_000
    text = stillframe("report", stream).ok().out
    assert "trace=4bf92f35" in text and "note: pid" in text


@pytest.mark.parametrize("label, samples", [("trace=4bf92f35", 148), ("trace=00000001", 50), ("trace", 198)])
def test_only_one_label(stillframe, stream, label, samples):
    assert report(stillframe, stream, "--label", label)["samples"] == samples


@pytest.mark.parametrize("label", ["trace=4bf9", "trac", "trace=", "4bf92f35", ""])
def test_no_such_label(stillframe, stream, label):
    assert "label" in stillframe("report", stream, "--label", label).fails(1).err


def test_exports(stillframe, stream, tmp_path):
    def export(form, *arguments):
        stillframe("export", stream, "--format", form, "-o", tmp_path / form, *arguments).ok()
        return (tmp_path / form).read_bytes()
    assert export("collapsed", "--clock", "cpu").decode() == "busy;[not seen] 20000\nbusy;main;spin 1980000\n"
    assert export("collapsed", "--clock", "cpu", "--label", "trace=00000001").decode() == "busy;main;spin 495000\n"
    message = gzip.decompress(export("pprof"))
    assert b"trace" in message and b"4bf92f35" in message and b"00000001" in message
    assert b"spin" in export("html") and json.loads(export("speedscope"))["profiles"]


def test_default_name_of_an_export(stillframe, stream):
    stillframe("export", stream, "--format", "html").ok()
    assert os.path.exists(os.path.join(stillframe.cwd, "program.html"))


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.5, 0.9, 0.999])
def test_cut_off(stillframe, stream, tmp_path, share):
    """What is whole is there, and it is said that there was more."""
    whole = stream.read_bytes()
    cut = tmp_path / "cut.sfs"
    cut.write_bytes(whole[:32 + int((len(whole) - 32) * share)])
    out = report(stillframe, cut)
    assert out["samples"] <= 203
    assert any("cut off" in note["text"] or "no end" in note["text"] for note in out["notes"]), out["notes"]
    if share >= 0.5:
        assert out["sample_ticks"] > 350 * share and by(out["functions"], "name")["spin"]


def test_damaged(stillframe, stream, tmp_path):
    whole = bytearray(stream.read_bytes())
    half = len(whole) // 2
    whole[half:half + 4096] = b"\xff" * 4096
    (tmp_path / "bad.sfs").write_bytes(whole)
    out = report(stillframe, tmp_path / "bad.sfs")
    assert 100 < out["sample_ticks"] < 300
    assert any("damaged at byte" in note["text"] for note in out["notes"])


def test_nothing_is_left_behind(stillframe, stream, tmp_path):
    folder = tmp_path / "tmp"
    folder.mkdir()
    stillframe("report", stream, env={**os.environ, "TMPDIR": str(folder)}).ok()
    assert os.listdir(folder) == []
    assert stream.parent.joinpath("program.sfs").exists() and os.listdir(stream.parent) == ["program.sfs"]


def test_no_room_for_the_recording(stillframe, stream, tmp_path):
    done = stillframe("report", stream, env={**os.environ, "TMPDIR": str(tmp_path / "none")}).fails(1)
    assert "TMPDIR" in done.err


def test_newer_streams_are_refused(stillframe, stream, tmp_path):
    whole = bytearray(stream.read_bytes())
    whole[24] = 3
    (tmp_path / "new.sfs").write_bytes(whole)
    assert "version 3" in stillframe("report", tmp_path / "new.sfs").fails(1).err


def test_streams_are_not_replaced_by_recordings(stillframe, stream, target):
    """-o may be a slip of the finger."""
    before = stream.read_bytes()
    stillframe("record", "-o", stream, "--", "true").fails(1)
    assert stream.read_bytes() == before

# SPDX-License-Identifier: Apache-2.0
"""report: the same figures as plain SQL gives, for people and for programs."""
import json
import os
import pty
import re
import subprocess

import pytest

from conftest import PROGRAMS
from recordings import Recording

pytestmark = pytest.mark.waits


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """One of a real program: two busy threads and twenty that sleep."""
    from conftest import Stillframe
    from processes import Target
    folder = tmp_path_factory.mktemp("report")
    stillframe = Stillframe(folder)
    t = Target([os.path.join(PROGRAMS, "many_threads"), 20, 60, 2])
    try:
        done = stillframe("record", "-p", t.pid, "-d", "2s", "-F", "499", "-o", folder / "r.sfr")
        assert done.status == 0, done
    finally:
        assert not t.end()
    return Recording(folder / "r.sfr")


def report(stillframe, recording, *arguments):
    return json.loads(stillframe("report", recording.path, "--json", *arguments).ok().out)


def test_ticks_are_samples_and_losses(stillframe, recording):
    out = report(stillframe, recording)
    assert out["ticks"] == out["sample_ticks"] + out["lost_ticks"]
    assert out["ticks"] == recording.ticks
    assert out["sample_ticks"] == sum(row["ticks"] for row in out["threads"])
    assert out["sample_ticks"] == sum(row["ticks"] for row in out["states"])
    assert out["sample_ticks"] == sum(row["ticks"] for row in out["ends"])
    assert {row["cause"]: row["ticks"] for row in out["losses"] if row["ticks"]} == \
        {cause: ticks for cause, ticks in recording.losses().items() if ticks}


@pytest.mark.parametrize("clock, weight", [("cpu", "cpu_ns"), ("wall", "wall_ns"),
                                           ("offcpu", "max(0, wall_ns - cpu_ns)")])
def test_functions(stillframe, recording, clock, weight):
    """Self and total times are those of SQL over the file, by every clock."""
    out = report(stillframe, recording, "--clock", clock, "--top", 100000)
    total = recording.value("SELECT sum(%s) FROM samples" % weight)
    assert abs(out["total_ns"] - out["unseen_ns"] - total) <= total * 0.001 + 1000
    assert out["unseen_ns"] == (0 if clock == "offcpu" else out["cpu_lost_ns"])
    # What stands on top of each stack, and what is anywhere on it.
    selves, totals = {}, {}
    weights = dict(recording.rows("SELECT stack, sum(%s) FROM samples GROUP BY stack" % weight))
    names = {}
    for stack, name in recording.rows("SELECT f.stack, n.name FROM stack_frames f JOIN frame_names n "
                                      "ON n.frame = f.frame ORDER BY f.stack, f.depth, n.seq"):
        names.setdefault(stack, []).append(name)
    for stack, stack_names in names.items():
        selves[stack_names[0]] = selves.get(stack_names[0], 0) + weights[stack]
        for name in set(stack_names):
            totals[name] = totals.get(name, 0) + weights[stack]
    told_self, told_total = {}, {}
    for row in out["functions"]:
        told_self[row["name"]] = told_self.get(row["name"], 0) + row["self_ns"]
        told_total[row["name"]] = told_total.get(row["name"], 0) + row["total_ns"]
    common = max(totals, key=totals.get) # start_thread, where the debug symbols of libc are installed
    for name in ("spinner", "sleep_in_futex", "[futex]", "[poll]", common):
        if clock == "cpu" and name.startswith(("[", "sleep")):
            continue
        assert abs(told_self.get(name, 0) - selves.get(name, 0)) <= total * 0.001, (name, told_self.get(name))
        assert abs(told_total[name] - totals[name]) <= total * 0.001, (name, told_total[name], totals[name])


def test_tree(stillframe, recording):
    """A node's total is its own and its children's."""
    out = report(stillframe, recording)
    assert out["tree"], "no tree"
    children = {}
    for node in out["tree"]:
        children.setdefault(node["parent"], []).append(node)
    for node in out["tree"]:
        below = sum(child["total_ns"] for child in children.get(node["id"], []) if child is not node)
        assert node["self_ns"] + below <= node["total_ns"] * 1.001 + 1000, node


def test_threads_can_be_chosen(stillframe, recording):
    out = report(stillframe, recording, "--threads", "^in-poll$")
    assert {row["name"] for row in out["threads"]} == {"in-poll"}
    assert len(out["threads"]) == 5
    stillframe("report", recording.path, "--threads", "^nobody$").fails(1)


def test_for_people(stillframe, recording):
    """In as many columns as there are, without colour in a pipe; the top function, the threads, the states and the losses are there."""
    out = stillframe("report", recording.path, env={**os.environ, "COLUMNS": "80"}).ok()
    assert out.err == ""
    assert "\x1b" not in out.out
    wide = [line for line in out.out.splitlines() if len(line) > 80]
    assert not wide, wide[:3]
    for word in ("spinner", "futex", "many_threads"):
        assert word in out.out, out


LONG_NAME = "a_function_whose_name_is_longer_than_a_line_of_a_terminal_with_eighty_columns_can_show_beside_figures"


def test_names_are_whole_in_a_pipe(stillframe, tmp_path):
    source, program = tmp_path / "long.c", tmp_path / "long"
    source.write_text("static volatile long n;\n__attribute__((noinline)) void %s(void) { for (long i = 0; i < 200000000; i++) n++; }\n"
                      "int main(void) { %s(); return 0; }\n" % (LONG_NAME, LONG_NAME))
    subprocess.run(["gcc", "-O1", "-o", program, source], check=True)
    stillframe.record(tmp_path / "r.sfr", "--", program)[0].ok()
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    for section in "function", "tree":
        whole = stillframe("report", "--by", section, tmp_path / "r.sfr", env=environment).ok().out
        cut = stillframe("report", "--by", section, tmp_path / "r.sfr", env={**environment, "COLUMNS": "80"}).ok().out
        assert LONG_NAME in whole and LONG_NAME not in cut and "\u2026" in cut, (whole, cut)


def test_a_function_without_a_name_has_its_module_once(stillframe, tmp_path):
    source, program = tmp_path / "bare.c", tmp_path / "bare"
    source.write_text("static volatile long n;\n__attribute__((noinline)) static void work(void) { for (long i = 0; i < 200000000; i++) n++; }\n"
                      "int main(void) { work(); return 0; }\n")
    subprocess.run(["gcc", "-O1", "-s", "-o", program, source], check=True)
    stillframe.record(tmp_path / "r.sfr", "--", program)[0].ok()
    rows = [line.split("  ")[-1] for line in stillframe("report", "--by", "function", tmp_path / "r.sfr").ok().out.splitlines() if " in bare" in line]
    # A sample in the code before main(), which has no rules, may be in no function whose start is known.
    assert rows and re.fullmatch("0x[0-9a-f]+ in bare", rows[0]), rows
    assert all(re.fullmatch(r"0x[0-9a-f]+ in bare|\[unknown in bare\]", row) for row in rows), rows


def test_colour_on_a_terminal_only(stillframe, recording):
    def on_terminal(**environment):
        parent, child = pty.openpty()
        process = subprocess.Popen([stillframe.path, "report", recording.path], stdin=subprocess.DEVNULL,
                                   stdout=child, stderr=subprocess.PIPE,
                                   env={**os.environ, "TERM": "xterm-256color", **environment})
        os.close(child)
        seen = b""
        try:
            while True:
                data = os.read(parent, 65536)
                if not data:
                    break
                seen += data
        except OSError:
            pass
        os.close(parent)
        assert process.wait(20) == 0, process.stderr.read()
        process.stderr.close()
        return seen
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    assert "NO_COLOR" in os.environ or b"\x1b[" in on_terminal()
    assert b"\x1b[" not in on_terminal(NO_COLOR="1")


def test_a_recording_is_not_changed_by_reading(stillframe, recording):
    before = open(recording.path, "rb").read()
    stillframe("report", recording.path).ok()
    assert open(recording.path, "rb").read() == before


def test_read_only_folder(stillframe, recording, tmp_path):
    """A finished recording on a read-only disk, or of another user, can be read."""
    import shutil
    folder = tmp_path / "locked"
    folder.mkdir()
    shutil.copy(recording.path, folder / "r.sfr")
    (folder / "r.sfr").chmod(0o444)
    folder.chmod(0o555)
    prefix = []
    if os.geteuid() == 0:
        from conftest import need
        need("setpriv")
        for path in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
            path.chmod(path.stat().st_mode | 0o055)
        prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    done = stillframe("report", folder / "r.sfr", prefix=prefix, cwd="/")
    folder.chmod(0o755)
    assert done.status == 0, done

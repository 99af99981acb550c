# SPDX-License-Identifier: Apache-2.0
"""export: every format holds the same time as the recording, in a form that other tools read."""
import gzip
import json
import os
import re
import subprocess

import pytest

from conftest import PROGRAMS, need
from recordings import Recording, of_the_three


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    from conftest import Stillframe
    folder = tmp_path_factory.mktemp("export")
    stillframe = Stillframe(folder)
    done = stillframe("record", "-F", "999", "--max-cost", "50", "-o", folder / "r.sfr", "--", os.path.join(PROGRAMS, "busy_split"), 0.5, 2)
    assert done.status == 0, done
    recording = Recording(folder / "r.sfr")
    recording.true = {name: float(share) for name, share in re.findall(r"^(spin_\w+) ([\d.]+)", done.out, re.M)}
    return recording


def export(stillframe, recording, tmp_path, form, *arguments):
    out = tmp_path / ("out." + form)
    done = stillframe("export", recording.path, "--format", form, "-o", out, *arguments).ok()
    assert done.out == "", done
    return out.read_bytes()


def shares(weights):
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def assert_split(recording, found):
    found = of_the_three(found)
    for name, true in recording.true.items():
        assert abs(found.get(name, 0) - true) < 0.08, (name, found.get(name), true)


def test_collapsed(stillframe, recording, tmp_path):
    """One line per stack, outermost first, its weight last: what flamegraph.pl reads."""
    weights = {}
    for line in export(stillframe, recording, tmp_path, "collapsed", "--clock", "cpu").decode().splitlines():
        stack, _, weight = line.rpartition(" ")
        assert weight.isdigit() and stack, line
        name = next((name for name in stack.split(";") if name.startswith("spin_")), "other")
        weights[name] = weights.get(name, 0) + int(weight)
    assert_split(recording, shares(weights))


def varints(data):
    """The fields of a protobuf message: (number, value)."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            size = varint()
            yield key >> 3, data[at:at + size]
            at += size
        elif key & 7 == 1:
            yield key >> 3, data[at:at + 8]
            at += 8
        else:
            raise AssertionError("wire type %d" % (key & 7))


def packed(value):
    if isinstance(value, int):
        return [value]
    numbers, current, shift = [], 0, 0
    for byte in value:
        current |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(current)
            current = shift = 0
    return numbers


def test_pprof(stillframe, recording, tmp_path):
    """gzip, and by the published field numbers: samples, locations, functions, strings fit together."""
    data = gzip.decompress(export(stillframe, recording, tmp_path, "pprof"))
    strings, functions, locations, samples, types = [], {}, {}, [], []
    for number, value in varints(data):
        if number == 6:
            strings.append(value.decode())
        elif number == 5:
            fields = dict(varints(value))
            functions[fields[1]] = fields[2]
        elif number == 4:
            fields = list(varints(value))
            lines = [dict(varints(line)) for key, line in fields if key == 4]
            locations[dict(fields)[1]] = [line[1] for line in lines]
        elif number == 2:
            ids = [n for key, v in varints(value) if key == 1 for n in packed(v)]
            values = [n for key, v in varints(value) if key == 2 for n in packed(v)]
            samples.append((ids, values))
        elif number == 1:
            types.append(dict(varints(value)))
    assert strings[0] == ""
    kinds = [(strings[kind[1]], strings[kind[2]]) for kind in types]
    assert any(unit == "nanoseconds" for _, unit in kinds), kinds
    cpu = next(i for i, (name, unit) in enumerate(kinds) if "cpu" in name and unit == "nanoseconds")
    weights = {}
    for ids, values in samples:
        assert len(values) == len(kinds)
        names = [strings[functions[function]] for i in ids for function in locations[i]]
        name = next((name for name in names if name.startswith("spin_")), "other")
        weights[name] = weights.get(name, 0) + values[cpu]
    assert_split(recording, shares(weights))
    seen, lost, _ = recording.cpu()
    assert abs(sum(weights.values()) / 1e9 - seen - lost) < 0.001 * (seen + lost)


def test_pprof_is_read_by_pprof(stillframe, recording, tmp_path):
    need("go")
    export(stillframe, recording, tmp_path, "pprof")
    done = subprocess.run(["go", "tool", "pprof", "-top", str(tmp_path / "out.pprof")], capture_output=True, text=True)
    if "no such tool" in done.stderr:
        pytest.skip("this go has no pprof")
    assert done.returncode == 0 and "spin_sixty" in done.stdout, done.stderr


def test_speedscope(stillframe, recording, tmp_path):
    data = json.loads(export(stillframe, recording, tmp_path, "speedscope", "--clock", "cpu"))
    assert data["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = [frame["name"] for frame in data["shared"]["frames"]]
    weights = {}
    assert data["profiles"]
    for profile in data["profiles"]:
        assert profile["type"] == "sampled"
        assert len(profile["samples"]) == len(profile["weights"])
        assert abs(sum(profile["weights"]) - (profile["endValue"] - profile["startValue"])) <= \
            0.01 * sum(profile["weights"]) + 1
        for sample, weight in zip(profile["samples"], profile["weights"]):
            name = next((frames[i] for i in sample if frames[i].startswith("spin_")), "other")
            weights[name] = weights.get(name, 0) + weight
    assert_split(recording, shares(weights))


def test_html(stillframe, recording, tmp_path):
    """One file, nothing from outside."""
    page = export(stillframe, recording, tmp_path, "html").decode()
    assert page.lstrip().lower().startswith("<!doctype html>")
    for outside in re.findall(r"""(?:src|href)\s*=\s*["']([^"'#][^"']*)""", page):
        assert outside.startswith("data:"), outside
    assert not re.search(r"@import|url\(\s*['\"]?http", page)
    assert "busy_split" in page


@pytest.mark.parametrize("form", ["collapsed", "speedscope", "pprof", "html"])
def test_to_a_pipe(stillframe, recording, tmp_path, form):
    """-o - is stdout, byte for byte the file's."""
    expected = export(stillframe, recording, tmp_path, form)
    done = subprocess.run([stillframe.path, "export", str(recording.path), "--format", form, "-o", "-"],
                          capture_output=True, timeout=30)
    assert done.returncode == 0 and done.stderr == b""
    if form == "pprof":
        assert gzip.decompress(done.stdout) == gzip.decompress(expected)
    else:
        assert done.stdout == expected


@pytest.mark.parametrize("form", ["collapsed", "speedscope", "pprof", "html"])
def test_strange_names(stillframe, tmp_path, form):
    """Thread and command names with quotes, markup, newlines and bytes that are no UTF-8 break no format."""
    import shutil
    name = b"</script>\"';\\ \xff\xfe <b>&"
    odd = os.path.join(os.fsencode(tmp_path), name.replace(b"/", b"_"))
    shutil.copy(os.path.join(PROGRAMS, "busy_split"), os.fsdecode(odd))
    done = stillframe("record", "-o", tmp_path / "odd.sfr", "--", os.fsdecode(odd), 0.3)
    assert done.status == 0, done
    done = stillframe("export", tmp_path / "odd.sfr", "--format", form, "-o", tmp_path / "out").ok()
    data = (tmp_path / "out").read_bytes()
    if form == "speedscope":
        json.loads(data)
    elif form == "pprof":
        assert all(value.decode() is not None for number, value in varints(gzip.decompress(data)) if number == 6)
    else:
        text = data.decode()
        if form == "html":
            assert "<b>&" not in text
            assert text.lower().count("</script>") == text.lower().count("<script")


def test_nothing_half_done(stillframe, recording, tmp_path):
    """A full disk leaves no half file under the name."""
    done = stillframe("export", recording.path, "--format", "html", "-o", "/dev/full").fails(1)
    done = stillframe("export", recording.path, "--format", "html", "-o", tmp_path / "limited.html",
                      prefix=["sh", "-c", "ulimit -f 10; exec \"$@\"", "sh"]).fails(1)
    assert "File too large" in done.err and not list(tmp_path.glob("limited*")), done
    done = stillframe("export", recording.path, "--format", "html", "-o", tmp_path / "no" / "such" / "x.html").fails(1)


def test_flamegraph_of_a_thread(stillframe, recording, tmp_path):
    text = export(stillframe, recording, tmp_path, "collapsed", "--threads", "busy_split").decode()
    assert "spin_sixty" in text

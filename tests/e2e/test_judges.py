# SPDX-License-Identifier: Apache-2.0
"""The same frames as gdb and eu-stack on the same threads: the short version of tests/judges/compare.py."""
import json
import os

import pytest

import hanging
from conftest import LONG, PROGRAMS, need

COMPARE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../judges/compare.py")


def compare(tmp_path, *arguments):
    need("gdb", "eu-stack", "readelf")
    done = hanging.run(["/usr/bin/python3", COMPARE, "--programs", PROGRAMS, "--json", tmp_path / "j.json", *arguments],
                       3000 if LONG else 280)
    assert os.path.exists(tmp_path / "j.json"), done.stderr
    with open(tmp_path / "j.json") as file:
        return done, json.load(file)


def test_same_frames(stillframe, tmp_path):
    """In the short form of half of the situations: each way of building and of unwinding is among them."""
    done, result = compare(tmp_path, "--stillframe", stillframe.path, *(["--moments", "50"] if LONG else ["--moments", "1", "--brief"]),
                           "--jobs", str(os.cpu_count()))
    print(done.stdout)
    assert not result["failures"], done.stdout
    assert done.returncode == 0, done.stdout
    assert len({figure["situation"] for figure in result["figures"]}) + len(result["skips"]) >= (30 if LONG else 18)
    for skip in result["skips"]:
        import warnings
        warnings.warn("situation skipped: " + skip)


@pytest.mark.long
def test_the_comparison_can_fail(stillframe, tmp_path):
    """With its stacks cut short the comparison must say no."""
    false = tmp_path / "false"
    false.write_text("#!/bin/sh\n%s \"$@\" | sed 's/\"function\": *\"down_odd\"/\"function\":\"elsewhere\"/'\n"
                     "exit 0\n" % stillframe.path)
    false.chmod(0o755)
    done, result = compare(tmp_path, "--stillframe", str(false), "--only", "^depth 100$")
    assert done.returncode == 1 and result["not equal"], done.stdout

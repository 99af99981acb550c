# SPDX-License-Identifier: Apache-2.0
"""The callers in code that keeps frame pointers and has no unwind rules, and in OCaml's, whose rules are wrong in places. The program is stepped, one instruction after the other
(tests/programs/step_callers.c), and at each one our walk must have all calls that were seen, in their order.

STILLFRAME_LONG=1 steps through more of it.
"""
import os
import re
import shutil
import sys

import pytest

import hanging
from conftest import HERE, LONG, PROGRAMS

STEPPER = os.path.join(PROGRAMS, "step_callers")
WINDOWS, STEPS = (40, 3000) if LONG else (4, 500)
# Code by V8's Sparkplug makes its frame by a call of a builtin that pops its own return address, so a list of calls does not fit it.
COMMANDS = {"node": ["node", "--no-sparkplug", "many_calls.js"], "sbcl": ["sbcl", "--script", "many_calls.lisp"],
            "ocaml": ["ocamlopt", "many_throws.ml"]}
JUDGED = {"node": [], "ocaml": [], "sbcl": ["to-rules"]}


def started(target, runtime, folder):
    *command, source = COMMANDS[runtime]
    source = os.path.join(HERE, "../programs", source)
    if runtime != "ocaml":
        return target([*command, source])
    shutil.copy(source, folder)  # the compiler writes beside its source
    hanging.run_well([*command, "-o", "many_throws", os.path.basename(source)], cwd=folder)
    return target([os.path.join(folder, "many_throws")])


@pytest.mark.skipif(not os.path.exists(STEPPER), reason="step_callers is not built here")
@pytest.mark.parametrize("runtime", sorted(COMMANDS))
def test_every_instruction_has_its_callers(target, runtime, tmp_path):
    if not shutil.which(COMMANDS[runtime][0]):
        pytest.skip("needs %s" % runtime)
    t = started(target, runtime, tmp_path)
    done = hanging.run([STEPPER, t.pid, WINDOWS, STEPS, *JUDGED[runtime]], seconds=500)
    told = done.stdout.splitlines()
    print("%s: %s" % (runtime, told[-1] if told else done), file=sys.stderr)
    right, guessed, wrong, cut = map(int, re.match(r"right (\d+), guessed right (\d+), wrong (\d+), cut (\d+)", told[-1]).groups())
    assert done.returncode == 0 and not wrong and not cut, told[:20]
    assert right > WINDOWS * STEPS / 10 and guessed < right / 4, told[-1]

# SPDX-License-Identifier: Apache-2.0
"""dump: which thread of a .NET program waits for the monitor of which (tests/programs/dotnet/Waits.cs, whose threads are named after
what they do)."""
import os

import pytest

from processes import Target
from test_dotnet import compile_program

pytestmark = pytest.mark.waits

CIRCLE = ["holds first, wants second", "holds second, wants first"]
OWNERS = {CIRCLE[0]: CIRCLE[1], CIRCLE[1]: CIRCLE[0], "wants a monitor that is held": "holds a monitor and sleeps"}


def test_monitors(stillframe, tmp_path):
    """Each wait for a monitor, with the type of its object and its owner; no monitor of a wait of another kind, such as one for a pulse;
    and the circle."""
    target = Target(["dotnet", compile_program(tmp_path, "Waits")], env={**os.environ, "TMPDIR": str(tmp_path)})
    try:
        dump = stillframe.dump(target.pid)
    finally:
        target.end()
    names = {thread["tid"]: thread["name"] for thread in dump["threads"]}
    waits = {thread["name"]: thread["lock"] for thread in dump["threads"]
             if thread["lock"] and thread["lock"]["kind"] == "monitor"}
    assert {name: names[lock["owner"]] for name, lock in waits.items()} == OWNERS
    assert all((lock["kind"], lock["class"], lock["timed"]) == ("monitor", "object", False) for lock in waits.values()), waits
    (circle,) = dump["circles"]
    assert sorted(names[tid] for tid in circle["threads"]) == CIRCLE and not circle["timed"]

# SPDX-License-Identifier: Apache-2.0
"""The unwind tables that are kept on disk: one program must not decide how another one's stacks look."""
import os

import pytest

from conftest import PROGRAMS, need_root
from processes import until
from recordings import Recording, ticks_so_far

ENGINES = pytest.mark.parametrize("engine", ["ptrace", "signal"])
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
needs_x86 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the program's rows are written for x86-64")


@pytest.fixture(params=["root", "user"])
def room(request, stillframe, tmp_path_factory):
    """A folder for one who records, with a home of its own; how a command is run as that one; the environment; and program(name), where
    that one finds a test program."""
    need_root()
    folder = tmp_path_factory.mktemp("room")
    prefix, program = NOBODY if request.param == "user" else [], lambda name: os.path.join(PROGRAMS, name)
    if prefix:
        everybodys = request.getfixturevalue("everybodys")
        stillframe.path, program = everybodys.stillframe(), everybodys.program
        for above in (folder, folder.parent, folder.parent.parent):
            above.chmod(above.stat().st_mode | 0o111)
        os.chown(folder, 65534, 65534)
    return folder, prefix, {**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}, program


@needs_x86
@ENGINES
def test_rows_of_a_file_with_a_copied_build_id_are_its_own(stillframe, room, engine):
    """A program that claims the build id of another, and has false rows, is recorded first. The other one's stacks are right."""
    folder, prefix, env, program = room

    def callers(name):
        output = folder / (name + ".sfr")
        done = stillframe("record", "-e", engine, "-o", output, "--", program(name), 0.4, prefix=prefix,
                          cwd=folder, env=env)
        assert done.status == 0, done
        stacks = [names for names, _ in Recording(output).stacks_of("through")]
        assert stacks, done
        return {names[names.index("through") + 1] for names in stacks if names[0] != "through"}
    assert callers("same_id_false") == {"liar"}, "the program does not what it is for"
    assert any(files for _, _, files in os.walk(folder / "cache")), "no table was kept"
    assert callers("same_id_true") == {"caller"}
    assert callers("same_id_false") == {"liar"}


@ENGINES
def test_kept_tables_may_be_shortened_while_they_are_used(stillframe, tmp_path, engine):
    """Another program of the same user cuts the files to nothing: neither the program nor stillframe is ended by SIGBUS."""
    output, cache = tmp_path / "r.sfr", tmp_path / "cache"
    process = stillframe.start("record", "-e", engine, "-o", output, "--", os.path.join(PROGRAMS, "busy_split"), 1.5,
                               env={**os.environ, "XDG_CACHE_HOME": str(cache)})

    def kept():
        return [path for path in cache.rglob("*") if path.is_file()]
    until(lambda: process.poll() is not None or ticks_so_far(output) >= 20, "20 ticks are samples", 60, 0.05)
    before = ticks_so_far(output)
    assert kept(), "no table was kept"
    for path in kept():
        os.truncate(path, 0)
    done = stillframe.wait(process)
    assert done.status == 0, done
    assert ticks_so_far(output) > before + 20
    whole = [names for names, _ in Recording(output).stacks_of("spin_sixty")]
    assert whole and all(names[-1] == "_start" for names in whole), whole

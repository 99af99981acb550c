# SPDX-License-Identifier: Apache-2.0
"""Wrong input: one clear message on stderr, nothing on stdout, status 1 (failed) or 2 (usage), nothing lost."""
import json
import os
import pty
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess

import pytest

from conftest import NOBODY, PROGRAMS, Stillframe, need_root
from processes import until
from recordings import Recording, ticks_so_far

pytestmark = pytest.mark.waits

with open(os.path.join(os.path.dirname(__file__), "../../src/cli/commands.h")) as header:
    COMMANDS = re.findall(r"X\((\w+)\)", re.search(r"#define SF_COMMANDS\(X\)(.*)", header.read())[1])


def no_such_pid():
    with open("/proc/sys/kernel/pid_max") as file:
        return int(file.read())   # the first that none can have


USAGE = [
    (["frobnicate"], "frobnicate"),
    (["--frobnicate"], "--frobnicate"),
    *[([command, "--frobnicate"], "--frobnicate") for command in COMMANDS],
    (["record", "-F"], "-F"),
    (["record", "-F", "fast", "--", "true"], "fast"),
    (["record", "-F", "-5", "--", "true"], "-5"),
    (["record", "-F", "0", "--", "true"], "0"),
    (["record", "-d", "10 parsecs", "--", "true"], "10 parsecs"),
    (["record", "--clock", "sundial", "--", "true"], "sundial"),
    (["record", "--threads", "(", "-d", "1s", "--", "true"], "("),
    (["record", "--max-depth", "many", "--", "true"], "many"),
    (["record", "-e", "telepathy", "--", "true"], "telepathy"),
    (["record", "-p", "0"], "0"),
    (["record", "-p", "-1"], "-1"),
    (["record", "-p", "12x"], "12x"),
    (["record", "-p", "99999999999999999999"], "99999999999999999999"),
    (["record"], ""),
    (["record", "-p", "1", "--", "true"], ""),
    (["dump"], "-p"),
    (["doctor", "-p", "1", "2"], "stillframe doctor -p 2"),
    (["help", "frobnicate"], "frobnicate"),
    (["export"], ""),
    (["export", "x.sfr"], "format"),
    (["export", "x.sfr", "--format", "papyrus"], "papyrus"),
]


@pytest.mark.parametrize("arguments, word", USAGE, ids=[" ".join(case[0]) for case in USAGE])
def test_usage(stillframe, arguments, word):
    done = stillframe(*arguments, timeout=20).fails(2)
    assert done.out == "", done
    assert word in done.err, done


@pytest.mark.parametrize("name", ["two words.sfr", "-d.sfr", "it's $(id).sfr"])
def test_the_next_command_can_be_pasted(stillframe, name):
    done = stillframe("record", "-o", name, "--", os.path.join(PROGRAMS, "busy_split"), "0.1")
    command, = re.findall(r"look: (stillframe report .*)", done.err)
    assert stillframe(*shlex.split(command)[1:]).ok().out, done


def test_no_command_at_all(stillframe):
    done = stillframe()
    assert done.status == 2 and done.out == "" and "record" in done.err, done


@pytest.mark.parametrize("command", COMMANDS)
def test_help(stillframe, command):
    """--help: on stdout, in 80 columns, with every option's default where it has one."""
    done = stillframe(command, "--help").ok()
    assert done.err == "" and command in done.out
    assert max(len(line) for line in done.out.splitlines()) <= 80, done
    assert stillframe("help", command).ok().out == done.out
    if command == "report":
        assert "wait, label, end, loss, or all (default)" in " ".join(done.out.split()), done


def test_help_names_all_commands(stillframe):
    done = stillframe("--help").ok()
    assert max(len(line) for line in done.out.splitlines()) <= 80, done
    for command in COMMANDS:
        assert command in done.out
    assert "0.1" in stillframe("--version").ok().out
    for arguments in ["help"], ["help", "manual"]:
        assert stillframe(*arguments).ok().out == done.out
    assert "COMMAND" in stillframe("manual", "--help").ok().out


FAILURES = [
    ["record", "-d", "1s", "-p", no_such_pid()],
    ["dump", "-p", no_such_pid()],
    ["doctor", "-p", no_such_pid()],
]


@pytest.mark.parametrize("arguments", FAILURES, ids=lambda arguments: arguments[0])
def test_no_such_process(stillframe, arguments):
    done = stillframe(*arguments).fails(1)
    assert str(no_such_pid()) in done.err, done


def test_thread_for_a_process(stillframe, target):
    """A thread's id is no process's: said so, or taken for its process; never half of it."""
    from processes import tids_of
    t = target("lock_wait")
    other = [tid for tid in tids_of(t.pid) if tid != t.pid][0]
    done = stillframe("dump", "-p", other)
    if done.status == 0:
        assert "left-first" in done.out and "right-first" in done.out, done
    else:
        done.fails(1)
        assert str(t.pid) in done.err, done


def test_kernel_thread(stillframe):
    """A kernel thread has no stack of its own in user space."""
    need_root()
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            with open("/proc/%d/stat" % pid) as file:
                flags = int(file.read().rpartition(")")[2].split()[6])
        except FileNotFoundError:
            continue
        if flags & 0x00200000:  # PF_KTHREAD
            done = stillframe("dump", "-p", pid, timeout=20)
            done.fails(1)
            return
    pytest.skip("no kernel thread is visible here")


def test_zombie(stillframe):
    """A process that has ended and was not waited for."""
    child = subprocess.Popen(["/bin/true"])
    try:
        from processes import status_of, until
        until(lambda: status_of(child.pid)["State"][0] == "Z", "it becomes a zombie")
        for command in (["record", "-d", "1s"], ["dump"]):
            done = stillframe(*command, "-p", child.pid, timeout=20).fails(1)
            assert str(child.pid) in done.err, done
    finally:
        child.wait()


def test_no_such_command(stillframe, tmp_path):
    done = stillframe("record", "-o", tmp_path / "r.sfr", "--", "/no/such/program", "x")
    done.fails(done.status)
    assert done.status == 127 and "/no/such/program" in done.err, done
    assert "PATH" not in done.err, done
    assert "PATH" in stillframe("record", "--", "no-such-program").fails(127).err
    assert "-p" not in stillframe("record", "--", "").fails(127).err
    assert "stillframe record -p 4242" in stillframe("record", "4242").fails(127).err
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    assert "The file is there." in stillframe("record", "--", script).fails(127).err
    assert not (tmp_path / "r.sfr").exists() or (tmp_path / "r.sfr").stat().st_size == 0 or \
        Recording(tmp_path / "r.sfr").ticks == 0
    done = stillframe("record", "-o", tmp_path / "r.sfr", "--", "/etc/passwd")
    assert done.status == 126 and "/etc/passwd" in done.err, done


def test_output_that_cannot_be_written(stillframe, target, tmp_path):
    t = target("deep", 5, "spin")
    for output in ("/no/such/folder/r.sfr", str(tmp_path)):
        done = stillframe("record", "-p", t.pid, "-d", "1s", "-o", output).fails(1)
        assert output in done.err and "-o" in done.err, done
    done = stillframe("record", "-p", t.pid, "-d", "1s", "-o", "/dev/full").fails(1)
    t.assert_free()


def test_a_recording_is_no_stream_of_bytes(stillframe, tmp_path):
    done = stillframe("record", "-o", "-", "--", "true").fails(2)
    assert "cannot be written to stdout" in done.err and os.listdir(tmp_path) == [], done


def test_a_file_of_another_kind_is_not_overwritten(stillframe, tmp_path):
    """-o names a file that is no recording: it stays as it is, and the command is not run."""
    precious = tmp_path / "thesis.txt"
    precious.write_text("years of work")
    done = stillframe("record", "-o", precious, "--", "/bin/sh", "-c", "touch %s/ran" % tmp_path).fails(1)
    assert precious.read_text() == "years of work"
    assert "thesis.txt" in done.err
    assert not (tmp_path / "ran").exists()


@pytest.fixture
def recording(good, tmp_path):
    """A copy of it, to be damaged."""
    return shutil.copy(good, tmp_path / "good.sfr")


READERS = [["report"], ["report", "--json"], ["export", "--format", "collapsed", "-o", "-"],
           ["export", "--format", "html", "-o", "out.html"]]


def read_all(stillframe, path, status=1):
    for reader in READERS:
        done = stillframe(reader[0], path, *reader[1:]).fails(status)
        assert os.path.basename(str(path)) in done.err, done
        assert done.out == "", done
        assert not os.path.exists(os.path.join(stillframe.cwd, "out.html"))


def test_no_recording(stillframe, tmp_path):
    read_all(stillframe, tmp_path / "missing.sfr")
    (tmp_path / "empty.sfr").touch()
    read_all(stillframe, tmp_path / "empty.sfr")
    (tmp_path / "text.sfr").write_text("not a recording\n" * 100)
    read_all(stillframe, tmp_path / "text.sfr")
    read_all(stillframe, tmp_path)


def test_another_sqlite_file(stillframe, tmp_path):
    path = tmp_path / "other.sfr"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE samples(id INTEGER PRIMARY KEY)")
    db.commit()
    db.close()
    read_all(stillframe, path)


def test_truncated_and_overwritten(stillframe, tmp_path, recording):
    """A damaged recording is an error or, where the damage does not show, a report; never a crash."""
    import random
    whole = recording.read_bytes()
    rng = random.Random(3)
    path = tmp_path / "damaged.sfr"
    refused = 0
    for turn in range(30):
        data = bytearray(whole)
        if turn % 3 == 0:
            data = data[:rng.randrange(1, len(data))]
        else:
            for _ in range(1 if turn % 3 == 1 else 50):
                data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
        done = stillframe("report", path)
        assert done.status in (0, 1), (turn, done)
        if done.status == 1:
            done.fails(1)
            refused += 1
    assert refused >= 10, refused


SABOTAGE = {
    "loop": "UPDATE stacks SET parent = id",
    "no such frame": "UPDATE stacks SET frame = 99999999",
    "no such thread": "UPDATE samples SET thread = 99999999",
    "no such stack": "UPDATE samples SET stack = 99999999",
    "negative weight": "UPDATE samples SET cpu_ns = -5, wall_ns = -6",
    "state out of range": "UPDATE samples SET state = 200",
    "newer version": "PRAGMA user_version = 4711",
}


@pytest.mark.parametrize("name", SABOTAGE)
def test_inconsistent(stillframe, recording, name):
    db = sqlite3.connect(recording)
    db.execute(SABOTAGE[name])
    db.commit()
    db.close()
    read_all(stillframe, recording)


def test_a_recording_of_another_user(stillframe, everybodys, recording):
    """As after `sudo stillframe record`: it is for its owner alone, and that is said."""
    need_root()
    stillframe.path = everybodys.stillframe()
    roots = shutil.copy(recording, everybodys.path("roots.sfr"))
    os.chmod(roots, 0o600)
    for arguments in (["report", roots], ["export", roots, "-f", "html"]):
        done = stillframe(*arguments, prefix=NOBODY, cwd="/", env=everybodys.environment).fails(1)
        assert "Permission denied\n  It belongs to user 0: be that user (sudo), or" in done.err, done


def test_stdout_that_is_full(stillframe, recording):
    """A report that could not be written is a failure, of which there is one message."""
    for arguments in (["report", recording], ["export", recording, "--format", "collapsed", "-o", "-"]):
        with open("/dev/full", "w") as full:
            process = stillframe.start(*arguments, stdout=full)
            done = stillframe.wait(process)
        assert done.status == 1 and done.err.startswith("stillframe") and done.err.count("\n") == 1, done


def test_closed_pipe(stillframe, recording):
    """report | head: no noise."""
    done = subprocess.run("%s report %s | head -1" % (stillframe.path, recording), shell=True, capture_output=True,
                          text=True, timeout=30)
    assert done.stderr == "" and done.returncode == 0, done


@pytest.mark.parametrize("engine", ["ptrace", "signal"])
def test_closed_standard_descriptors(stillframe, tmp_path, engine):
    """No file of stillframe's takes their numbers: what is printed would go there. The command has them closed."""
    look = 'for n in 0 1 2; do readlink /proc/$PPID/fd/$n; done >"$0"; for n in 0 2; do readlink /proc/$$/fd/$n || echo closed; done >>"$0"'
    stillframe("record", "-e", engine, "-o", tmp_path / "r.sfr", "--", "sh", "-c", look, tmp_path / "seen",
               prefix=["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-'])
    assert (tmp_path / "seen").read_text().split() == ["/", "/", "/", "closed", "closed"]


def test_doctor(stillframe, target):
    done = stillframe("doctor").ok()
    assert "ptrace" in done.out
    t = target("deep", 5, "spin")
    done = stillframe("doctor", "-p", t.pid).ok()
    assert "ptrace" in done.out and str(t.pid) in done.out
    t.assert_free()


def test_version(stillframe):
    assert stillframe("-V").ok().out == stillframe("--version").ok().out


def test_manual_of_no_command(stillframe):
    done = stillframe("manual", "bogus").fails(2)
    assert "there is no command 'bogus'" in done.err, done


def test_bounds_are_named(stillframe):
    for option, value, text in (("-F", "0", "the least is 1 hz"), ("-d", "1us", "the least is 1.0 ms"),
                                ("--max-depth", "99999", "the most is 16384")):
        done = stillframe("record", option, value, "--", "true").fails(2)
        assert text in done.err, done


def test_the_newest_recording(stillframe, tmp_path):
    done = stillframe("report").fails(1)
    assert "no recording" in done.err, done
    for name in ("old.sfr", "new.sfr"):
        stillframe("record", "-o", name, "--", "/bin/sleep", "0.3").ok()
    os.utime(tmp_path / "old.sfr", (1000, 1000))
    os.symlink("/dev/null", tmp_path / "link.sfr")
    done = stillframe("report").ok()
    assert "new.sfr, the newest recording here" in done.err, done
    assert done.out == stillframe("report", "new.sfr").ok().out
    json.loads(stillframe("report", "--json").ok().out)


def test_a_second_recording_has_a_name_of_its_own(stillframe, target, tmp_path):
    pid = target("sleeper_O0").pid   # one that wants a CPU may wait for it for as long as the recording lasts
    for _ in range(3):
        stillframe("record", "-e", "ptrace", "-p", pid, "-d", "100ms").ok()   # which looks at it at once
    names = sorted(path.name for path in tmp_path.glob("*.sfr"))
    assert names == sorted("sleeper_O0-%d%s.sfr" % (pid, suffix) for suffix in ("", "-2", "-3")), names


def test_an_installed_copy_finds_its_agent(tmp_path):
    """Where Debian's Meson puts libraries (lib/x86_64-linux-gnu), under another prefix, through a symbolic link."""
    build = os.path.dirname(os.path.realpath(Stillframe.path))
    if not os.path.exists(os.path.join(build, "libstillframe-agent.so")):
        pytest.skip("this build has no agent")
    subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", tmp_path / "root"], check=True)
    (tmp_path / "stillframe").symlink_to(next((tmp_path / "root").rglob("bin/stillframe")))
    environment = {key: value for key, value in os.environ.items() if key != "STILLFRAME_AGENT"}

    def record():
        return subprocess.run([tmp_path / "stillframe", "record", "-e", "signal", "-o", tmp_path / "r.sfr", "--",
                               os.path.join(PROGRAMS, "busy_split"), "0.2"], capture_output=True, text=True, timeout=60, env=environment)
    done = record()
    assert done.returncode == 0 and "by signal" in done.stderr, done
    # The whole prefix moved, and two links on the way.
    prefix = next((tmp_path / "root").rglob("bin/stillframe")).parent.parent
    prefix.rename(tmp_path / "elsewhere")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere/bin/stillframe")
    (tmp_path / "stillframe").unlink()
    (tmp_path / "stillframe").symlink_to(tmp_path / "link")
    done = record()
    assert done.returncode == 0 and "by signal" in done.stderr, done
    # Without the library it says so.
    next((tmp_path / "elsewhere").rglob("libstillframe-agent.so")).unlink()
    done = record()
    assert done.returncode == 1 and "libstillframe-agent.so, is not beside stillframe" in done.stderr, done


def test_who_sits_at_a_terminal_is_told_how_it_ends(stillframe, target, tmp_path):
    """Before the recording; not where they gave a duration."""
    words = "stillframe: watching deep (pid %d); Ctrl-C ends the recording"
    t = target("deep", 20, "sleep")
    terminal, child = pty.openpty()
    process = stillframe.start("record", "-p", t.pid, "-o", tmp_path / "r.sfr", stderr=child)
    os.close(child)
    told = b""
    while not told.endswith(b"\n"):
        told += os.read(terminal, 1)
    assert told.decode().strip() == words % t.pid, told
    until(lambda: ticks_so_far(tmp_path / "r.sfr"), "it is sampled", 60)
    process.send_signal(signal.SIGINT)
    assert stillframe.wait(process).status == 0
    os.close(terminal)
    assert "Ctrl-C" not in stillframe("record", "-p", t.pid, "-d", "200ms", "-o", tmp_path / "q.sfr").ok().err

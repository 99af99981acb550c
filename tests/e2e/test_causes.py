# SPDX-License-Identifier: Apache-2.0
"""doctor and the hints state causes that were tried: a system-call filter, a missing capability, no /proc, few files."""
import errno
import os
import resource

import pytest

from conftest import NOBODY, PROGRAMS, finding, need, need_agent, need_root, refuse
from recordings import samples_so_far

pytestmark = pytest.mark.waits

def refuse_ptrace():
    """A filter as containers have it: ptrace fails with EPERM."""
    refuse("ptrace", errno.EPERM)


def test_a_filter(stillframe, target):
    t = target("deep", 5, "spin")
    for arguments in ([], ["-p", t.pid]):
        good, text = finding(stillframe("doctor", *arguments, preexec_fn=refuse_ptrace).ok(), "engine ptrace")
        assert good == "no" and "system-call filter (seccomp" in text and "CAP_SYS_PTRACE" not in text, text
    done = stillframe("dump", "-p", t.pid, preexec_fn=refuse_ptrace).fails(1)
    assert "system-call filter (seccomp" in done.err and "CAP_SYS_PTRACE" not in done.err, done


def test_a_missing_capability(stillframe, target):
    """Root without it, and root with it in a user namespace that is not the process's. Of several it may be left out, if another may stay."""
    need_root()
    need("setpriv", "unshare", "sleep")
    without = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
    owned = target(["setpriv", "--reuid=65534", "--clear-groups", "sleep", "60"], wait_ready=False).falls_asleep()
    done = stillframe("dump", "-p", owned.pid, prefix=without).fails(1)
    assert "root, but without CAP_SYS_PTRACE" in done.err, done
    own = target([*without, "sleep", "60"], wait_ready=False).falls_asleep()
    for pids in [own.pid, owned.pid], [owned.pid, own.pid]:
        done = stillframe("record", "-e", "ptrace", "-d", "100ms", "-p", *pids, prefix=without).fails(1)
        assert ("Or leave it out of -p." in done.err) == (pids[0] == own.pid), done
    done = stillframe("dump", "-p", owned.pid, prefix=["unshare", "--user", "--map-root-user"])
    if done.status:  # the kernel may let the namespace's owner
        assert "without CAP_SYS_PTRACE" not in done.err and "user namespace" in done.err, done


def test_no_turns(stillframe, target, tmp_path):
    """A kernel that does not show when threads got their CPUs: doctor and the recordings by holds say what follows."""
    need_root()
    need("unshare", "mount")
    (tmp_path / "empty").write_text("")
    script = "mount --bind %s/empty /proc/$$/task/$$/sched && exec \"$@\"" % tmp_path
    t = target("busy_split", 60)
    for prefix, word in (["unshare", "-m", "sh", "-c", script, "sh"], "no"), ([], "ok"):
        good, text = finding(stillframe("doctor", prefix=prefix).ok(), "when threads got their CPUs")
        assert good == word and ("CONFIG_SCHED_DEBUG" in text) == (word == "no"), text
        done = stillframe.record_until(tmp_path / (word + ".sfr"), 1, "-p", t.pid, prefix=prefix)
        assert ("where the scheduler let stillframe run" in " ".join(done.err.split())) == (word == "no"), done


def test_no_proc(stillframe, target):
    """One sentence, and nothing that follows from it."""
    need_root()
    need("unshare")
    t = target("deep", 5, "spin")
    away = ["unshare", "-m", "sh", "-c", "umount -l /proc && exec \"$@\"", "sh"]
    for arguments in (["dump", "-p", t.pid], ["record", "-p", t.pid, "-d", "1s"], ["record", "--", "true"]):
        done = stillframe(*arguments, prefix=away).fails(1)
        assert "/proc/self/stat" in done.err and "no such process" not in done.err, done
    done = stillframe("doctor", "-p", t.pid, prefix=away)
    assert done.status == 1 and done.out.count("\n  no ") == 1 and "mount -t proc" in done.out, done


def test_proc_of_another_pid_namespace(stillframe, target, tmp_path):
    """Its numbers are of other processes: none of them is looked at, and no command is started."""
    need_root()
    need("unshare")
    t = target("deep", 5, "spin")
    inside = ["unshare", "--pid", "--fork"]
    for arguments in (["dump", "-p", t.pid], ["dump", "--all"], ["record", "-p", t.pid], ["record", "--all"],
                      ["record", "--", "touch", tmp_path / "started"]):
        done = stillframe(*arguments, prefix=inside).fails(1)
        assert "another pid namespace" in done.err and "mount -t proc" in done.err and not done.out, done
    assert not (tmp_path / "started").exists()
    done = stillframe("doctor", "-p", t.pid, prefix=inside)
    assert done.status == 1 and done.out.count("\n  no ") == 1 and "mount -t proc" in done.out, done
    stillframe("dump", "-p", 1, prefix=[*inside, "--mount-proc", "sh", "-c", "\"$@\"; exit $?", "sh"]).ok()


def test_proc_hides_it(stillframe, target, everybodys):
    """With hidepid the processes of others are not in /proc at all: "no such process" would be wrong."""
    t = target("deep", 5, "spin")
    stillframe.path = everybodys.stillframe()
    inside = ["unshare", "-m", "sh", "-c", "mount -t proc -o hidepid=2 proc /proc && exec \"$@\"", "sh", *NOBODY]
    for arguments in (["dump", "-p", t.pid], ["record", "-p", t.pid, "-d", "1s"]):
        done = stillframe(*arguments, prefix=inside, cwd=everybodys.folder, env=everybodys.environment).fails(1)
        assert "/proc hides it" in done.err and "CAP_SYS_PTRACE" in done.err, done


def test_an_agent_with_the_proc_of_another_pid_namespace(stillframe, tmp_path):
    """The maps and threads by its number are another process's: it is not sampled, and the reason is told."""
    need_root()
    need("unshare")
    need_agent()
    done, _ = stillframe.record(tmp_path / "r.sfr", "-e", "signal", "--children", "--", "unshare", "--pid", "--fork",
                                os.path.join(PROGRAMS, "busy_split"), "0.1")
    assert done.status == 0 and "is not sampled: /proc is of another pid namespace" in " ".join(done.err.split()), done


def test_few_files(stillframe, target, tmp_path):
    t = target("deep", 5, "spin")

    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))
    for arguments in (["dump", "-p", t.pid], ["record", "-p", t.pid, "-d", "1s"], ["record", "--", "true"]):
        done = stillframe(*arguments, preexec_fn=few).fails(1)
        assert "may open 8 files at once, and needs 32" in done.err and "ended" not in done.err, done
    done = stillframe("doctor", "-p", t.pid, preexec_fn=few)
    assert done.status == 1 and "may open 8 files" in " ".join(done.out.split()), done
    # As many as it asks for suffice.
    def enough():
        resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
    stillframe("dump", "-p", t.pid, preexec_fn=enough).ok()
    path = str(tmp_path / "r.sfr")
    stillframe.record_until(path, lambda path: samples_so_far(path) > 0, "-q", "-p", t.pid, "-e", "auto", preexec_fn=enough)

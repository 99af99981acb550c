# SPDX-License-Identifier: Apache-2.0
"""doctor says of each step down what is missing, and the least right that gives it. A file with these rights works for an ordinary user,
and does not hand them on."""
import errno
import os
import re
import shlex
import subprocess

import pytest

from conftest import NOBODY, finding, need, need_root, paranoid, refuse, shown
from processes import Target

pytestmark = pytest.mark.waits

OTHER_USER = ["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups"]
# setpriv itself still has root's rights when it executes a program, for which the kernel then does not notice that a file gives more.
ORDINARY = [*NOBODY, "env"]
RIGHTS = ["CAP_PERFMON", "CAP_BPF", "CAP_SYS_PTRACE", "CAP_SYSLOG", "CAP_SYS_NICE"]


def with_rights(*rights):
    """A prefix: an ordinary user who has these."""
    names = ",".join("+" + right for right in rights)
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=" + names, "--ambient-caps=" + names]


# --- what doctor says ------------------------------------------------------------------------------


def test_the_rights_for_bpf(stillframe, everybodys):
    """Those that are missing, and no others."""
    stillframe.path = everybodys.stillframe()
    how = {"cwd": "/", "env": everybodys.environment}
    bpf = "the kernel says what it has saved"
    done = stillframe("doctor", prefix=NOBODY, **how).ok()
    assert not [line for line in done.out.splitlines() if line.startswith(" " * 8)], done
    assert "user id 65534, without CAP_PERFMON, CAP_BPF, CAP_SYS_PTRACE, CAP_SYSLOG and CAP_SYS_NICE" in finding(done, "user id")[1]
    assert "have CAP_PERFMON and CAP_BPF (" in finding(done, bpf)[1] and "doctor --setcap prints the command that gives this program CAP_PERFMON" in " ".join(done.out.split())
    done = stillframe("doctor", prefix=with_rights("perfmon"), **how).ok()
    assert "have CAP_BPF (" in finding(done, bpf)[1]
    assert finding(done, "kernel.perf_event_paranoid is")[0] == "ok"
    assert "have CAP_SYS_PTRACE (" in finding(done, "(--all)")[1]
    if finding(stillframe("doctor").ok(), bpf)[0] != "ok":
        pytest.skip("BPF may not be used here: " + finding(stillframe("doctor").ok(), bpf)[1])
    assert finding(stillframe("doctor", prefix=with_rights("perfmon", "bpf"), **how).ok(), bpf)[0] == "ok"


@pytest.mark.parametrize("files, hidden, before, word", [
    ({}, ["/sys/kernel/btf"], [], "CONFIG_DEBUG_INFO_BTF"),
    ({"/sys/kernel/security/lockdown": "none integrity [confidentiality]\n"}, [], [], "locked down"),
    ({}, [], ["setarch", "--uname-2.6"], "needs Linux 5.18"),
], ids=["no BTF", "lockdown", "an old kernel"])
def test_the_kernel_has_no_bpf(stillframe, tmp_path, files, hidden, before, word):
    """The program is refused, and the machine says why: root is not told to get rights."""
    need_root()
    if hidden and not os.path.isdir(hidden[0]):
        pytest.skip("%s is not there" % hidden[0])
    prefix = [*shown(tmp_path, files, hidden), *before]
    good, text = finding(stillframe("doctor", prefix=prefix, preexec_fn=lambda: refuse("bpf", errno.EINVAL)).ok(),
                         "the kernel says what it has saved")
    assert good == "no" and word in text and "have CAP" not in text, text


def test_names_of_the_kernel(stillframe):
    need_root()
    if paranoid() < 2 and open("/proc/sys/kernel/kptr_restrict").read().strip() == "0":
        pytest.skip("every user may see the kernel's addresses here")
    without = ["setpriv", "--inh-caps=-syslog", "--bounding-set=-syslog"]
    good, text = finding(stillframe("doctor", prefix=without).ok(), "functions of the kernel have names")
    assert good == "no" and "have CAP_SYSLOG" in text, text


def test_the_priority(stillframe, everybodys):
    """By a try: the right gives it, and a limit of real-time CPU time takes it."""
    need_root()
    stillframe.path = everybodys.stillframe()
    how = {"cwd": "/", "env": everybodys.environment}
    before = "stillframe goes before"
    good, text = finding(stillframe("doctor", prefix=NOBODY, **how).ok(), before)
    assert good == "no" and "have CAP_SYS_NICE (stillframe doctor --setcap)" in text, text
    if finding(stillframe("doctor").ok(), before)[0] != "ok":
        pytest.skip("a real-time priority is refused here, to root, too")
    assert finding(stillframe("doctor", prefix=with_rights("sys_nice"), **how).ok(), before)[0] == "ok"
    good, text = finding(stillframe("doctor", prefix=["prlimit", "--rttime=1000000:1000000"]).ok(), before)
    assert good == "no" and "RLIMIT_RTTIME" in text and "CAP_SYS_NICE" not in text, text


# --- a file with rights ----------------------------------------------------------------------------


@pytest.fixture
def gifted(stillframe, everybodys):
    """stillframe as the command of `doctor --setcap` makes it, for an ordinary user."""
    stillframe.path = everybodys.stillframe()
    need("setcap")
    command = shlex.split(stillframe("doctor", "--setcap").ok().out)
    assert command == ["sudo", "setcap", "cap_perfmon,cap_bpf,cap_sys_ptrace,cap_syslog,cap_sys_nice+ep", stillframe.path]
    done = subprocess.run(command[1:], capture_output=True, text=True)
    if done.returncode:
        pytest.skip("setcap does not work here: " + done.stderr.strip())
    how = {"prefix": ORDINARY, "cwd": everybodys.folder, "env": everybodys.environment}
    if not all(right in finding(stillframe("doctor", **how).ok(), "user id")[1] for right in RIGHTS):
        pytest.skip("files give no rights here (nosuid)")
    return lambda *arguments, **more: stillframe(*arguments, **how, **more)


def test_it_sees_what_root_sees(gifted, everybodys, stillframe):
    """A process of another user: dumped without a hold, and recorded with the kernel's frames and their names."""
    doctor = gifted("doctor").ok()
    assert "--setcap" not in doctor.out and "with " + ", ".join(RIGHTS[:-1]) + " and CAP_SYS_NICE" in finding(doctor, "user id")[1]
    if finding(doctor, "the kernel says what it has saved")[0] != "ok":
        pytest.skip("BPF may not be used here: " + finding(doctor, "the kernel says what it has saved")[1])
    asleep = Target([*OTHER_USER, everybodys.program("lock_wait")]).falls_asleep()
    busy = Target([*OTHER_USER, "dd", "if=/dev/zero", "of=/dev/null", "bs=1M"], wait_ready=False)
    try:
        done = gifted("dump", "-p", asleep.pid, "--times").ok()
        assert "deadlock: " in done.out and "held none\nby bpf\n" in done.out and "wait_for_lock" in done.out
        gifted("record", "-p", asleep.pid, "-d", "0.4s", "-o", "asleep.sfr").ok()
        report = stillframe("report", everybodys.path("asleep.sfr"), "--clock", "wall").ok().out
        assert "wait_for_lock" in report and "100.0 % whole" in report, report
        gifted("record", "-p", busy.pid, "-d", "0.5s", "-o", "x.sfr").ok()
        report = stillframe("report", everybodys.path("x.sfr")).ok().out
        assert re.search(r"how +perf at", report) and re.search(r" \S+  \[kernel\]", report), report
    finally:
        assert not asleep.end() and not busy.end()


@pytest.mark.parametrize("engine", ["perf", "ptrace", "signal"])
def test_a_command_does_not_get_its_rights(gifted, everybodys, engine):
    gifted("record", "--engine", engine, "-o", "x.sfr", "--", "sh", "-c", "cat /proc/self/status >status; sleep 0.2").ok()
    sets = dict(re.findall(r"^(Cap(?:Inh|Prm|Eff|Amb)):\s*(\w+)", open(everybodys.path("status")).read(), re.M))
    assert len(sets) == 4 and all(int(each, 16) == 0 for each in sets.values()), sets


def test_it_does_not_wait_with_rights(gifted, everybodys, stillframe):
    """What is to become the command has given them up and is the user's own: it may be held without CAP_SYS_PTRACE."""
    if paranoid() < 2:
        pytest.skip("every user may sample the kernel here, and needs no holds")
    subprocess.run(["setcap", "cap_syslog+ep", stillframe.path], check=True)
    done = gifted("record", "-o", "x.sfr", "--", "sleep", "0.3").ok()
    assert "by perf" in done.err and "time in the kernel was found by holds only" in " ".join(done.err.split()), done


def test_events_without_the_right_to_read(stillframe, everybodys):
    """CAP_PERFMON gives the events of another user's process, and not the files that it runs: no recording without a single whole stack."""
    need_root()
    stillframe.path = everybodys.stillframe()
    how = {"prefix": with_rights("perfmon"), "cwd": everybodys.folder, "env": everybodys.environment}
    busy = Target([*OTHER_USER, "dd", "if=/dev/zero", "of=/dev/null", "bs=1M"], wait_ready=False)
    try:
        done = stillframe("record", "-p", busy.pid, "-d", "0.5s", "-o", "x.sfr", **how).fails(1)
        assert "have CAP_SYS_PTRACE (" in done.err and not os.path.exists(everybodys.path("x.sfr")), done
        for engine in "perf", "bpf":
            good, text = finding(stillframe("doctor", "-p", busy.pid, **{**how, "prefix": with_rights("perfmon", "bpf")}).ok(), "engine " + engine)
            assert good == "no" and ("CAP_SYS_PTRACE (" in text or "BPF program" in text), text
    finally:
        assert not busy.end()

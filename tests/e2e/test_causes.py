# SPDX-License-Identifier: Apache-2.0
"""doctor and the hints state causes that were tried: a system-call filter, a missing capability, no /proc, few files."""
import ctypes
import os
import platform
import resource
import struct

import pytest

from conftest import need, need_root

PTRACE = {"x86_64": 101, "aarch64": 117}[platform.machine()]


def refuse_ptrace():
    """A filter as containers have it: ptrace fails with EPERM."""
    code = b"".join(struct.pack("HBBI", *row) for row in [
        (0x20, 0, 0, 0),                  # load the number of the system call
        (0x15, 0, 1, PTRACE),
        (0x06, 0, 0, 0x00050000 | 1),     # SECCOMP_RET_ERRNO, EPERM
        (0x06, 0, 0, 0x7fff0000)])        # SECCOMP_RET_ALLOW
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxQ", 4, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0


def finding(done, what):
    """The lines of a finding: ("ok", text)."""
    found = []
    for line in done.out.splitlines():
        if line.startswith("  ok ") or line.startswith("  no "):
            found.append([line[2:4], line[5:].strip()])
        elif found:
            found[-1][1] += " " + line.strip()
    (one,) = [each for each in found if what in each[1]]
    return one


def test_a_filter(stillframe, target):
    t = target("deep", 5, "spin")
    for arguments in ([], ["-p", t.pid]):
        good, text = finding(stillframe("doctor", *arguments, preexec_fn=refuse_ptrace).ok(), "engine ptrace")
        assert good == "no" and "system-call filter (seccomp" in text and "CAP_SYS_PTRACE" not in text, text
    done = stillframe("dump", "-p", t.pid, preexec_fn=refuse_ptrace).fails(1)
    assert "system-call filter (seccomp" in done.err and "CAP_SYS_PTRACE" not in done.err, done


def test_a_missing_capability(stillframe, target):
    """Root without it, and root with it in a user namespace that is not the process's."""
    need_root()
    need("setpriv", "unshare", "sleep")
    owned = target(["setpriv", "--reuid=65534", "--clear-groups", "sleep", "60"], wait_ready=False).falls_asleep()
    done = stillframe("dump", "-p", owned.pid, prefix=["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]).fails(1)
    assert "root, but without CAP_SYS_PTRACE" in done.err, done
    done = stillframe("dump", "-p", owned.pid, prefix=["unshare", "--user", "--map-root-user"])
    if done.status:  # the kernel may let the namespace's owner
        assert "without CAP_SYS_PTRACE" not in done.err and "user namespace" in done.err, done


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


def test_few_files(stillframe, target):
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
    stillframe("record", "-q", "-p", t.pid, "-d", "300ms", preexec_fn=enough).ok()

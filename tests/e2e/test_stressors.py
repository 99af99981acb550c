# SPDX-License-Identifier: Apache-2.0
"""Each of a public collection of programs that strain one interface of the kernel (Debian: stress-ng) ends under an engine as it ends alone."""
import os
import subprocess

import pytest

from conftest import LONG, need, need_root

# The stressor: how often it does what it does. Alone each takes less than a second.
STRESSORS = {
    "affinity": 500, "alarm": 200, "atomic": 20, "bad-altstack": 100, "brk": 20000, "clock": 100, "clone": 100, "close": 10, "context": 1000,
    "daemon": 100, "dup": 10, "dynlib": 100, "epoll": 1000, "eventfd": 5000, "exec": 100, "fork": 200, "funccall": 10, "futex": 5000, "get": 10,
    "kill": 2000, "longjmp": 5000, "malloc": 20000, "mlock": 20, "mprotect": 2000, "nanosleep": 200, "opcode": 50, "pidfd": 500, "pkey": 2000,
    "poll": 2000, "prctl": 50, "procfs": 1, "ptrace": 1000, "pthread": 500, "resources": 10, "rlimit": 100, "rseq": 2, "seccomp": 10, "session": 50,
    "set": 200, "shm": 20, "sigabrt": 100, "sigchld": 200, "sigfd": 1000, "sigfpe": 2000, "signal": 5000, "signest": 500,
    "sigpipe": 1000, "sigq": 2000, "sigrt": 1000, "sigsegv": 2000, "sigsuspend": 2000, "sigtrap": 2000, "splice": 500, "switch": 5000,
    "sysinfo": 200, "timer": 2000, "timerfd": 2000, "userfaultfd": 1000, "usersyscall": 50000, "vdso": 100000, "vfork": 300, "vm-splice": 2000,
    "wait": 200, "x86syscall": 50000, "zombie": 200,
}
ENGINES = {"sampler": ["signal", "--walk", "sampler"], "handler": ["signal", "--walk", "handler"], "ptrace": ["ptrace"], "perf": ["perf"]}
# In the short form half of them, each by one of the engines.
SHORT = {"sampler": slice(0, None, 6), "handler": slice(2, None, 6), "ptrace": slice(4, None, 12), "perf": slice(10, None, 12)}


def ended(name, folder, prefix=()):
    command = ["stress-ng", "--quiet", "--timeout", "60", "--%s" % name, "1", "--%s-ops" % name, str(STRESSORS[name])]
    return subprocess.run([*prefix, *command], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stressor_ends_as_alone(stillframe, tmp_path, engine):
    need_root()
    need("stress-ng")
    different, n_alone, names = {}, 0, list(STRESSORS) if LONG else list(STRESSORS)[SHORT[engine]]
    for name in names:
        alone = ended(name, tmp_path)
        n_alone += alone.returncode == 0   # a kernel may lack what one strains
        out = tmp_path / "r.sfr"
        under = ended(name, tmp_path, [stillframe.path, "record", "--quiet", "--engine", *ENGINES[engine], "--rate", "999hz", "--children", "-o", str(out), "--"])
        # A recording without a sample has status 1, and its reason on stderr.
        if under.returncode != alone.returncode and not (under.returncode == 1 and "nothing was sampled" in under.stderr):
            different[name] = (alone, under)
        if os.path.exists(out):
            os.unlink(out)
    assert not different and n_alone >= 0.8 * len(names), (n_alone, names)

# SPDX-License-Identifier: Apache-2.0
"""What /proc says of processes, waiting for what must come about, and targets: programs to look at."""
import contextlib
import glob
import os
import re
import subprocess
import time

import pytest

import hanging


def read(path):
    """A file's text, or None if it is gone."""
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None


def status_of(pid, tid=None):
    """{"State": "S (sleeping)", "TracerPid": "0", ...}, or None if it is gone."""
    text = read("/proc/%d/task/%d/status" % (pid, tid) if tid else "/proc/%d/status" % pid)
    return text and dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def tids_of(pid):
    try:
        return sorted(int(tid) for tid in os.listdir("/proc/%d/task" % pid))
    except (FileNotFoundError, ProcessLookupError):
        return []


def switches_of(pid):
    """{tid: [voluntary, involuntary]}"""
    return {tid: re.findall(r"ctxt_switches:\t(\d+)", read("/proc/%d/task/%d/status" % (pid, tid))) for tid in tids_of(pid)}


def cpu_of(pid):
    """CPU time of a process so far, in seconds."""
    fields = read("/proc/%d/stat" % pid).rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def held_threads(pid, stopped_too=True):
    """Threads that someone traces or left stopped: {tid: why}."""
    held = {}
    for tid in tids_of(pid):
        status = status_of(pid, tid)
        if status is None:
            continue
        if status["TracerPid"].strip() != "0":
            held[tid] = "traced by " + status["TracerPid"].strip()
        elif status["State"][0] == "t" or (stopped_too and status["State"][0] == "T"):
            held[tid] = status["State"]
    return held


def until(condition, what, seconds=10, pause=0.005):
    """Waits for something that must come about; its absence is a failure."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, "waited %d s in vain: %s" % (seconds, what)
        time.sleep(pause)


def wait_until_asleep(pid, name):
    """Until all threads of a process sleep for good."""
    def switches():
        return {tid: (status_of(pid, tid) or {}).get("voluntary_ctxt_switches") for tid in tids_of(pid)}

    def at_rest():
        before = switches()
        time.sleep(0.05)
        return all((status_of(pid, tid) or {"State": "gone"})["State"][0] == "S" for tid in tids_of(pid)) and switches() == before
    until(at_rest, "%s falls asleep" % name)


class Freezer:
    """A process in a new control group, whose freezer stops it as `docker pause` does: of version 2, else of version 1."""
    STOPPED_IN = ("do_freezer_trap", "get_signal", "__refrigerator")   # functions of the kernel

    def __init__(self, pid):
        self.pid = pid

    def __enter__(self):
        mounts = [line.split() for line in open("/proc/self/mounts")]
        of_2 = [words[1] for words in mounts if words[2] == "cgroup2" and os.access(words[1], os.W_OK)]
        of_1 = [words[1] for words in mounts if words[2] == "cgroup" and "freezer" in words[3].split(",")]
        if not of_2 + of_1:
            pytest.skip("no control group with a freezer can be made here")
        self.parent = (of_2 + of_1)[0]
        self.path = os.path.join(self.parent, "stillframe-test-%d" % os.getpid())
        self.file, self.words = ("cgroup.freeze", "10") if of_2 else ("freezer.state", ("FROZEN", "THAWED"))
        os.mkdir(self.path)
        try:
            self._put(self.path)
        except OSError:
            os.rmdir(self.path)
            raise
        return self

    def __exit__(self, *_):
        self.thaw()
        with contextlib.suppress(ProcessLookupError):   # it has ended
            self._put(self.parent)
        os.rmdir(self.path)

    def _put(self, group):
        with open(os.path.join(group, "cgroup.procs"), "w") as file:
            file.write(str(self.pid))

    def _write(self, word):
        with open(os.path.join(self.path, self.file), "w") as file:
            file.write(word)

    def freeze(self):
        self._write(self.words[0])
        until(lambda: read("/proc/%d/wchan" % self.pid) in self.STOPPED_IN, "it is frozen")

    def thaw(self):
        self._write(self.words[1])


def sweep(pids):
    """Removes the files in /tmp of processes that were killed: the sockets by which an agent, stillframe and a JVM are called, and a JVM's counters."""
    for pid in pids:
        for name in ("stillframe-*/agent-%d.sock", "stillframe-*/record-%d.sock", ".java_pid%d", "hsperfdata_*/%d"):
            for path in glob.glob(os.path.join("/tmp", name % pid)):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)


class Target:
    """A program to look at: started, ready, and ended by its pid in any case. One whose many threads are all busy is `nice`: it leaves the
    CPUs to who looks at it, which else takes several times as long beside it."""

    def __init__(self, command, wait_ready=True, ready_seconds=120, nice=False, **how):
        self.command = [*(("nice", "-n", "10") if nice else ()), *(str(word) for word in command)]
        how = {"stdin": subprocess.DEVNULL, **how}
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)
        self.pid = self.process.pid
        self.lines = hanging.Lines(self.process.stdout)
        self.may_be_stopped = False   # a test that stops it itself says so
        self.said = ""
        self.held = {}
        if wait_ready:
            self.wait_until_ready(ready_seconds)

    def wait_until_ready(self, seconds):
        """Who does not get ready is not left behind: nobody else knows of it yet."""
        try:
            self.line("ready", seconds)
        except BaseException:
            self.end()
            raise

    def line(self, start, seconds=120):
        """Its next line that starts so."""
        while line := self.lines.next(seconds):
            self.said += line
            if line.startswith(start):
                return line.strip()
        if line is None:
            seen = "\n".join(map(hanging.seen_of, [self.pid, *hanging.descendants(self.pid)]))
            raise AssertionError("hangs: it did not say %r in %d s: %s\n%s" % (start, seconds, seen, self.said))
        raise AssertionError("%s ended without saying %r:\n%s" % (self.command, start, self.said))

    def falls_asleep(self):
        wait_until_asleep(self.pid, self.command)
        return self

    def runs(self):
        return self.process.poll() is None

    def finish(self, seconds=60):
        """(status, what it said) of a program that ends by itself."""
        rest, _ = hanging.finish(self.process, seconds)
        return self.process.returncode, self.said + self.lines.take() + rest

    def assert_free(self):
        """No thread of it is stopped or traced. A stop that is just being let go is given a moment."""
        until(lambda: not held_threads(self.pid, not self.may_be_stopped),
              "%s is let go" % self.command, 2)

    def assert_moves(self, seconds=5):
        """It uses CPU time: it runs on."""
        before = cpu_of(self.pid)
        until(lambda: cpu_of(self.pid) > before, "%s runs on" % self.command, seconds)

    def uses(self, seconds):
        """A condition: it has used so much more CPU time. Waiting for it, as much happens on a busy machine as on an idle one."""
        goal = cpu_of(self.pid) + seconds
        return lambda: cpu_of(self.pid) >= goal

    def end(self):
        """Kills it and what it started; what it looked like is returned for the finalizer to judge. A test that needs no more of a busy
        one does so before it looks at what was recorded, which takes as long as the machine is busy."""
        if self.runs():
            self.held = held_threads(self.pid, not self.may_be_stopped)
        if self.runs() and self.held:
            time.sleep(0.5)  # a hold lasts microseconds: what is still held now was forgotten
            self.held = held_threads(self.pid, not self.may_be_stopped)
        pids = [self.pid, *(hanging.descendants(self.pid) if self.runs() else ())]
        if self.runs():
            hanging.kill(pids)
        self.process.wait(60)
        self.process.stdout.close()
        sweep(pids)
        return self.held

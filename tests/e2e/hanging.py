# SPDX-License-Identifier: Apache-2.0
"""What is done about a process that does not end in time: it is said where its threads are, and it is killed with what
it started. Its children hold its pipes: reading those to the end would be waiting for the children, for ever."""
import glob
import os
import select
import subprocess
import sys
import time


def line_of(path):
    try:
        with open(path, errors="replace") as file:
            return file.read().strip()
    except OSError:
        return "?"


def threads_of(pid):
    """A line for each of its first 20 threads: state, tracer, system call and where in the kernel it waits."""
    for task in sorted(glob.glob("/proc/%d/task/*" % pid))[:20]:
        status = dict(line.split(":\t", 1) for line in line_of(task + "/status").splitlines() if ":\t" in line)
        yield "  %s %s: %s, tracer %s, signals blocked %s, system call %s, in %s" % (
            os.path.basename(task), line_of(task + "/comm"), status.get("State"), status.get("TracerPid"),
            status.get("SigBlk"), line_of(task + "/syscall"), line_of(task + "/wchan"))


def seen_of(pid):
    return "process %d: %s\n%s" % (pid, line_of("/proc/%d/cmdline" % pid).replace("\0", " "), "\n".join(threads_of(pid)))


def holders(files):
    """The other processes that have these pipes open: a process's children, also when it is dead."""
    pipes = {os.readlink("/proc/self/fd/%d" % file.fileno()) for file in files if file and not file.closed}
    found = set()
    for path in glob.glob("/proc/[0-9]*/fd/*"):
        try:
            if os.readlink(path) in pipes:
                found.add(int(path.split("/")[2]))
        except OSError:   # gone meanwhile
            pass
    return sorted(found - {os.getpid()})


def descendants(pid):
    """Its children, and theirs."""
    parents = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        fields = line_of(path).rpartition(")")[2].split()
        if len(fields) > 1:
            parents.setdefault(int(fields[1]), []).append(int(path.split("/")[2]))
    found = []
    for each in parents.get(pid, []):
        found += [each, *descendants(each)]
    return found


def kill(pids):
    for pid in pids:
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            pass


def end_all(process):
    """Kills it and what it started; what all that looked like before."""
    pids = sorted({process.pid, *descendants(process.pid), *holders((process.stdout, process.stderr))})
    seen = "\n".join(map(seen_of, pids))
    kill(pids)
    return seen


def finish(process, seconds):
    """What it wrote, as communicate() gives it; or AssertionError, and nothing is left of it."""
    try:
        return process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        seen = end_all(process)
        said = "\n".join(text if isinstance(text, str) else text.decode(errors="replace")
                         for text in process.communicate() if text)
        raise AssertionError("hangs: %s did not end in %s s\n%s\n%s" % (
            " ".join(map(str, process.args)), seconds, seen, said[-3000:])) from None
    except BaseException:   # the limit of the test itself
        print(end_all(process), file=sys.stderr)
        process.wait(60)
        raise


def run(command, seconds=120, **how):
    """subprocess.run(), which gives its output as text; in so many seconds, however busy the machine."""
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               errors="replace", **{"stdin": subprocess.DEVNULL, **how})
    out, err = finish(process, seconds)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def run_well(command, seconds=120, **how):
    """The same of what must not fail: its output."""
    done = run(command, seconds, **how)
    assert done.returncode == 0, done
    return done.stdout


class Lines:
    """The lines of a pipe, each of which must come in time."""

    def __init__(self, file):
        self.fd, self.rest = file.fileno(), b""

    def next(self, seconds):
        """One with its end; what is left, at the end of the pipe ("": nothing). None: it does not come in so many seconds."""
        end = time.monotonic() + seconds
        while b"\n" not in self.rest:
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                return None
            more = os.read(self.fd, 65536)
            if not more:
                return self.take(len(self.rest))
            self.rest += more
        return self.take(self.rest.index(b"\n") + 1)

    def take(self, n=None):
        """So many bytes of what was read and not yet given; all."""
        n = len(self.rest) if n is None else n
        text, self.rest = self.rest[:n].decode(errors="replace"), self.rest[n:]
        return text

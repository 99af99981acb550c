# SPDX-License-Identifier: Apache-2.0
"""What is done about a process that does not end in time: it is said where its threads are, and it is killed with what
it started. Its children hold its pipes: reading those to the end would be waiting for the children, for ever."""
import glob
import os
import subprocess


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


def finish(process, seconds):
    """What it wrote, as communicate() gives it; or AssertionError, and nothing is left of it."""
    try:
        return process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        pids = sorted({process.pid, *holders((process.stdout, process.stderr))})
        seen = "\n".join("process %d: %s\n%s" % (pid, line_of("/proc/%d/cmdline" % pid).replace("\0", " "),
                                                 "\n".join(threads_of(pid))) for pid in pids)
        for pid in pids:
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        said = "\n".join(text if isinstance(text, str) else text.decode(errors="replace")
                         for text in process.communicate() if text)
        raise AssertionError("hangs: %s did not end in %d s\n%s\n%s" % (
            " ".join(map(str, process.args)), seconds, seen, said[-3000:])) from None

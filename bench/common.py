# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: where the programs are, targets that are always ended, tables."""
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
STILLFRAME = os.path.join(BUILD, "stillframe")
PROGRAMS = os.path.join(BUILD, "tests", "programs")
BENCH = os.path.join(BUILD, "bench")


class Target:
    """A program under test; ended by its pid when the block is left."""

    def __init__(self, *command, wait=0.5, **options):
        self.command, self.wait, self.options = command, wait, options

    def __enter__(self):
        self.options.setdefault("stdout", subprocess.PIPE)
        self.process = subprocess.Popen(self.command, text=True, stderr=subprocess.DEVNULL, **self.options)
        time.sleep(self.wait)
        self.pid = self.process.pid
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def run(*command, timeout=300, **options):
    """(seconds, stdout + stderr) of a command that must succeed."""
    start = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          timeout=timeout, **options)
    if done.returncode:
        sys.exit("%s: exit %d\n%s" % (" ".join(map(str, command)), done.returncode, done.stdout[-2000:]))
    return time.monotonic() - start, done.stdout


# STILLFRAME names the program here, and would be the agent's options in a target.
PLAIN = {name: value for name, value in os.environ.items() if name != "STILLFRAME"}


def cpu_ms(folder, *command):
    """What a program that prints how much CPU time it used says."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          env={**PLAIN, "TMPDIR": str(folder)})
    if done.returncode:
        sys.exit("%s: status %d" % (command, done.returncode))
    return float(done.stdout)


def peak_memory(*command, timeout=300):
    """(MiB, seconds, output): the peak resident size of one command, as wait4 gives it."""
    with tempfile.TemporaryFile("w+") as out:
        start = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
        out.seek(0)
        text = out.read()
    if status:
        sys.exit("%s: status %d\n%s" % (" ".join(command), status, text[-2000:]))
    return usage.ru_maxrss / 1024, seconds, text


def user_weights(database, pid=None):
    """Of an open recording, or of one process in it: {function: CPU time}, by the innermost function of user mode; "?": it has no name, or there is none."""
    kinds = dict(database.execute("SELECT word, id FROM kinds"))
    return dict(database.execute(
        "SELECT coalesce(n.name, '?'), sum(s.cpu_ns) FROM samples s JOIN threads t ON t.id = s.thread JOIN processes p ON p.id = t.process "
        "LEFT JOIN (SELECT f.stack, min(f.depth) AS depth FROM stack_frames f JOIN frames ON frames.id = f.frame "
        "WHERE frames.kind NOT IN (?, ?, ?) GROUP BY f.stack) top ON top.stack = s.stack "
        "LEFT JOIN stack_frames f ON f.stack = s.stack AND f.depth = top.depth "
        "LEFT JOIN frame_names n ON n.frame = f.frame AND n.seq = 0 WHERE s.cpu_ns > 0 AND p.pid = coalesce(?, p.pid) GROUP BY 1",
        (kinds["kernel"], kinds["wait"], kinds["cut"], pid)))


def table(title, rows, head):
    print("\n### %s\n" % title)
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    sys.stdout.flush()


def median(values):
    return statistics.median(values)


def interval(values):
    """(middle, low, high): the median, and where the true one is in 95 of 100 cases, by the ranks alone (a sign
    test); of fewer than ten values all of them."""
    values, n = sorted(values), len(values)
    away = int(0.98 * n ** 0.5) + 1 if n >= 10 else n
    return median(values), values[max(0, n // 2 - away)], values[min(n - 1, n // 2 + away)]


def ratio(values):
    """Of ratios: the change in percent, with its interval."""
    return "%+.2f %% (%+.2f … %+.2f)" % tuple(100 * (value - 1) for value in interval(values))


def have(tool):
    return shutil.which(tool) is not None


def start(stack, command, **options):
    """Ended, when the stack is left, with all that it has started: it has a session of its own."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, **options)
    stack.callback(process.wait)
    stack.callback(lambda: os.killpg(process.pid, signal.SIGKILL))
    return process


NGINX = ("%s daemon off; worker_processes 1; pid %s/nginx.pid; error_log /dev/null; events {}\n"
         "http { access_log off; server { listen 127.0.0.1:%d; location / { return 200 'hello, how do you do?'; } } }\n")


def start_nginx(stack, folder, port, settings="", **options):
    """One that answers each request at once, on this port of the loopback."""
    configuration = os.path.join(folder, "nginx.conf")
    with open(configuration, "w") as file:
        file.write(NGINX % (settings, folder, port))
    process = start(stack, ["nginx", "-p", str(folder), "-c", configuration], **options)
    time.sleep(1)
    return process

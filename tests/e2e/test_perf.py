# SPDX-License-Identifier: Apache-2.0
"""The perf engine: running threads by perf events, sleeping ones where they sleep, and accounts that add up."""
import contextlib
import errno
import glob
import itertools
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

import pytest

from conftest import LONG, NOBODY, PROGRAMS, need, need_findings, need_kernel_samples, need_root, paranoid, refuse
from java_stacks import QUIET, jdk  # noqa: F401 (a fixture)
from processes import cpu_of, until
from recordings import Recording, cpu_samples_so_far, cpu_told, of_the_three, samples_so_far, so_far, worth_of


def path_of(name):
    return os.path.join(PROGRAMS, name)


@pytest.fixture(autouse=True)
def perf_works(stillframe):
    """Skips where the kernel or a container refuses perf events."""
    need_findings(stillframe("doctor").out, "page faults are counted")


def record(stillframe, output, *arguments, **how):
    return stillframe.record(output, "--engine", "perf", "--max-cost", 100, *arguments, **how)


def due_of(recording, rate):
    """At the least: where a program has one CPU for most of its time, that one's period may be a 32nd longer
    (capture/perf/rings.c)."""
    return recording.cpu()[2] * rate / (1 + 1 / 32)


@pytest.mark.long("99")   # and 999: less than the other
@pytest.mark.parametrize("rate", [99, 999, 4000])
def test_known_split(stillframe, tmp_path, rate):
    """The split is the program's own, and each sample that is due comes."""
    seconds = 20 if LONG else 1.5
    done, recording = record(stillframe, tmp_path / "r.sfr", "-F", rate, "--clock", "cpu", "--", path_of("busy_split"), seconds,
                             timeout=300)
    assert done.status == 0, done
    true = {name: float(share) for name, share in re.findall(r"^(spin_\w+) ([\d.]+)", done.out, re.M)}
    shares, worth = of_the_three(recording.total_shares()), recording.worth()
    for name, share in of_the_three(true).items():
        error = abs(shares[name] - share)
        assert error <= 0.01 + 3 * (share * (1 - share) / worth) ** 0.5, (name, shares, true)
    recording.assert_accounts(used=cpu_told(done.out))
    samples = recording.value("SELECT count(*) FROM samples")
    assert samples >= 0.97 * due_of(recording, rate), (samples, due_of(recording, rate))
    whole = recording.value("SELECT count(*) FROM samples WHERE end = (SELECT id FROM ends WHERE word = 'root')")
    assert whole >= 0.97 * samples, dict(recording.rows("SELECT end, count(*) FROM samples GROUP BY end"))


def test_threads_are_seen_equally(stillframe, tmp_path):
    """Of a process that runs already, too."""
    script = ("import hashlib, threading, time\n"
              "def work():\n"
              "    end = time.monotonic() + 60\n"
              "    while time.monotonic() < end: hashlib.sha256(bytes(1 << 20))\n"
              "[threading.Thread(target=work, daemon=True).start() for _ in range(4)]\n"
              "print('ready', flush=True); time.sleep(60)\n")
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        done, recording = record(stillframe, tmp_path / "r.sfr", "-F", "999", "-p", process.pid, "-d", "1s", timeout=120)
    finally:
        process.kill()
        process.wait()
    assert done.status == 0, done
    recording.assert_accounts()
    rows = recording.rows("SELECT t.id, count(s.id), total(s.cpu_ns), t.cpu_counted_ns FROM threads t "
                          "LEFT JOIN samples s ON s.thread = t.id AND s.state = 0 WHERE t.tid != %d GROUP BY t.id" % process.pid)
    assert len(rows) == 4, rows
    # Where stillframe gets no CPU for long, the rings have no room: that is counted, and a sample stands for more.
    lost = re.search(r"(\d+) records found no room", " ".join(done.err.split()))
    for thread, n, cpu_ns, counted_ns in rows:
        assert counted_ns > 0 and abs(cpu_ns - counted_ns) <= 0.01 * counted_ns + 5e6, (done, rows)
        # The first and the last period may be in part outside.
        assert n + (int(lost[1]) if lost else 0) >= 0.95 * cpu_ns * 999 / 1e9 - 2, (done, rows)


@pytest.mark.long("64")
@pytest.mark.parametrize("depth", [64, 512])
def test_deep_stacks_get_longer_copies(stillframe, target, tmp_path, depth):
    """The first copies are too short for a program without frame pointers that is 512 calls deep."""
    process = target("deep", depth, "spin")
    done, recording = record(stillframe, tmp_path / "r.sfr", "-F", "999", "-p", process.pid, "-d", "1.5s", timeout=120)
    assert done.status == 0, done
    rows = dict(recording.rows("SELECT e.word, count(*) FROM samples JOIN ends e ON e.id = end WHERE state = 0 GROUP BY 1"))
    assert rows["root"] >= 0.98 * sum(rows.values()), rows
    deepest = recording.value("SELECT max(depth) FROM stack_frames")
    assert deepest >= depth, deepest


def test_pages_that_were_never_touched(stillframe, tmp_path):
    """The kernel's copy of a stack ends there: amid a large array of which a function has used nothing."""
    done, recording = record(stillframe, tmp_path / "r.sfr", "-F", "999", "--", path_of("stack_hole"), 0.5)
    assert done.status == 0, done
    rows = dict(recording.rows("SELECT e.word, count(*) FROM samples JOIN ends e ON e.id = end WHERE state = 0 GROUP BY 1"))
    assert rows["root"] >= 0.98 * sum(rows.values()), rows
    assert recording.total_shares().get("outer", 0) > 0.9, recording.total_shares()


def test_children(stillframe, tmp_path):
    """Processes that a shell starts one after the other, each with its program."""
    script = "for i in 1 2 3; do %s -c 'sum(i * i for i in range(3000000))'; done" % sys.executable
    done, recording = record(stillframe, tmp_path / "r.sfr", "-F", "999", "--children", "--", "sh", "-c", script, timeout=120)
    assert done.status == 0, done
    assert recording.value("SELECT count(*) FROM processes") >= 4
    seen, lost, counted = recording.cpu()
    assert seen >= 0.9 * (seen + lost), (seen, lost, counted)


def test_a_recording_ends_with_its_command(stillframe, tmp_path):
    """The kernel writes the record of a thread's end before it takes the memory away, 200 MB in small pages here. The recording is
    over when that is done, and not at the next look at all processes, 0.2 s later."""
    script = ("import ctypes, os, time\n"
              "ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)   # PR_SET_THP_DISABLE\n"
              "memory = b'1' * (200 << 20)\n"
              "print('ends', time.monotonic(), flush=True)\n"
              "os._exit(0)\n")
    late = []
    for _ in range(5):
        done, recording = record(stillframe, tmp_path / "r.sfr", "--", sys.executable, "-c", script)
        assert done.status == 0, done
        over = recording.value("SELECT (start_monotonic_ns + duration_ns) / 1e9 FROM session")
        late.append(over - float(re.search(r"^ends ([\d.]+)", done.out, re.M)[1]))
    assert min(late) < 0.15, late


def test_not_the_children(stillframe, tmp_path):
    script = "%s -c 'sum(i * i for i in range(3000000))' & wait" % sys.executable
    done, recording = record(stillframe, tmp_path / "r.sfr", "-F", "999", "--", "sh", "-c", script, timeout=120)
    assert done.status == 0, done
    assert recording.cpu()[2] < 0.1, recording.cpu()


@pytest.mark.parametrize("name, command", [
    ("sqlite3", ["sqlite3", ":memory:", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000) "
                 "SELECT sum(i * i) FROM n"]),
    ("xz", ["sh", "-c", "head -c 30000000 /usr/lib/x86_64-linux-gnu/libc.so.6 | xz -6 -T1 > /dev/null"]),
])
def test_real_programs(stillframe, tmp_path, name, command):
    need(command[0], name)
    done, recording = record(stillframe, tmp_path / "r.sfr", "-F", "999", "--children", "--", *command, timeout=120)
    assert done.status == 0, done
    recording.assert_accounts()
    total = recording.value("SELECT count(*) FROM samples WHERE state = 0")
    whole = recording.value("SELECT count(*) FROM samples WHERE state = 0 AND end = (SELECT id FROM ends WHERE word = 'root')")
    assert total > 50 and whole >= 0.95 * total, dict(recording.rows("SELECT end, count(*) FROM samples GROUP BY end"))


def test_short_processes(stillframe, tmp_path):
    """Sixty programs that live for some milliseconds: most end before anybody can look at them in /proc."""
    need_kernel_samples(stillframe)
    script = "i=0; while [ $i -lt 60 ]; do ls /usr/bin > /dev/null; i=$((i+1)); done"
    done, recording = record(stillframe, tmp_path / "r.sfr", "-F", "4000", "--children", "--", "sh", "-c", script, timeout=120)
    assert done.status == 0, done
    names = dict(recording.rows("SELECT name, count(*) FROM processes GROUP BY name"))
    assert names.get("ls", 0) >= 50, names
    seen, lost, _ = recording.cpu()
    assert seen >= 0.85 * (seen + lost), (seen, lost)
    ends = dict(recording.rows("SELECT e.word, sum(s.cpu_ns) / 1e9 FROM samples s JOIN ends e ON e.id = s.\"end\" GROUP BY 1"))
    # Where most that is not whole ends: the innermost named function.
    cut = recording.rows("SELECT e.word, n.name, sum(s.cpu_ns) / 1e6 FROM samples s JOIN ends e ON e.id = s.\"end\" "
                         "LEFT JOIN stack_frames f ON f.stack = s.stack AND f.depth = 0 LEFT JOIN frame_names n ON n.frame = f.frame AND n.seq = 0 "
                         "WHERE e.word <> 'root' GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 8")
    assert ends["root"] >= 0.9 * seen, (ends, seen, cut, done.err)
    in_ls = recording.value("SELECT sum(cpu_ns) / 1e9 FROM samples WHERE stack IN "
                            "(SELECT stack FROM stack_frames JOIN frame_names USING (frame) WHERE module LIKE '%/ls')")
    assert in_ls > 0.35 * seen, (in_ls, seen, recording.total_shares())


def root_with(folder, *programs):
    """A folder with these programs and their libraries."""
    for program in programs:
        said = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
        for path in (program, *re.findall(r"/\S+", said)):
            os.makedirs(str(folder) + os.path.dirname(path), exist_ok=True)
            shutil.copy(path, str(folder) + path)
    return folder


def test_short_processes_in_another_root(stillframe, tmp_path):
    """As in a container. When they have ended, their files are found below the root of their parent: the kernel's records have paths as seen from there."""
    need_root()
    need_kernel_samples(stillframe)
    need("unshare", "ldd")
    root = root_with(tmp_path / "root", "/bin/sh", "/bin/ls")
    script = "i=0; while [ $i -lt 60 ]; do /bin/ls /bin; i=$((i+1)); done"
    done, recording = record(stillframe, tmp_path / "r.sfr", "-F", "4000", "--children", "--", "unshare", "-m", "-R", root, "/bin/sh", "-c", script, timeout=120)
    assert done.status == 0, done
    ends = dict(recording.rows("SELECT e.word, sum(s.cpu_ns) / 1e9 FROM samples s JOIN ends e ON e.id = s.\"end\" GROUP BY 1"))
    assert ends["root"] >= 0.95 * recording.cpu()[0], (ends, recording.rows("SELECT path, note FROM modules"), done.err)


def test_forks_of_short_programs(stillframe, tmp_path):
    """Programs that fork themselves, each child another one, and all have ended before anybody looks: their code is that of the
    program that forked, not of the shell that started it, and so is their name."""
    need_kernel_samples(stillframe)
    script = "i=0; while [ $i -lt 60 ]; do bash -c 'x=$(y=$(z=$(echo $(:); :); :); :); :'; i=$((i+1)); done"
    done, recording = record(stillframe, tmp_path / "r.sfr", "-F", "999", "--children", "--", "sh", "-c", script, timeout=120)
    assert done.status == 0, done
    names = dict(recording.rows("SELECT name, count(*) FROM processes GROUP BY name"))
    assert names.get("bash", 0) >= 200 and "" not in names, names
    ends = dict(recording.rows("SELECT e.word, count(*) FROM samples s JOIN ends e ON e.id = s.\"end\" GROUP BY 1"))
    assert ends["root"] >= 100, ends
    assert ends.get("no-code", 0) + ends.get("empty", 0) <= 0.03 * sum(ends.values()), ends


def test_short_threads(stillframe, tmp_path):
    """Threads of a millisecond each, which no look at /proc would find in time."""
    need_kernel_samples(stillframe)
    done, recording = record(stillframe, tmp_path / "r.sfr", "-F", "4000", "--", path_of("threads_churn"), "2", "300", "1", timeout=120)
    assert done.status == 0, done
    recording.assert_accounts(used=cpu_told(done.out))
    seen, lost, _ = recording.cpu()
    assert seen >= 0.85 * (seen + lost), (seen, lost)
    assert recording.total_shares().get("short_life", 0) > 0.6, recording.total_shares()


# How many of Java's workers have samples, by the whole names, which the machine's tables have.
WORKERS = """max((SELECT count(*) FROM (SELECT 1 FROM samples JOIN thread_names t USING (thread) WHERE state = 0 AND
             t.name LIKE 'worker-with-a-long-name-%' GROUP BY thread HAVING count(*) > 60)))"""


def test_java(stillframe, jdk, tmp_path):  # noqa: F811
    """Java's frames come out of the copies as they do from held threads."""
    # The machine outlives the recording: the copies of its last moments are walked after it has ended (docs/engines.md).
    output = tmp_path / "r.sfr"
    stillframe.record_until(output, lambda path: (so_far(path, WORKERS) or 0) == 3, "--engine", "perf", "--max-cost", 100, "-F", "999", "--",
                            *jdk.java(["-Dend=4000", *QUIET], "Demo", "chain", "interp", "fib"))
    recording = Recording(output)
    rows = recording.rows("SELECT t.name, count(*), sum(end = (SELECT id FROM ends WHERE word = 'root')) FROM samples "
                          "JOIN thread_names t USING (thread) WHERE state = 0 AND t.name LIKE 'worker-%' GROUP BY 1")
    assert len(rows) == 3, rows
    for name, n, whole in rows:
        assert n > 30 and whole >= 0.99 * n - 2, rows
    # Of the workers' time: how much the machine's own start takes beside it depends on who else is busy.
    workers = "samples s JOIN thread_names t USING (thread)%s WHERE t.name LIKE 'worker-%%' AND s.state = 0"
    total = recording.value("SELECT sum(s.cpu_ns) FROM " + workers % "")
    shares = {name: ns / total for name, ns in recording.rows(
        "SELECT f.name, sum(s.cpu_ns) FROM " + workers %
        " JOIN (SELECT DISTINCT stack, name FROM stack_frames JOIN frame_names USING (frame)) f USING (stack)" + " GROUP BY 1")}
    assert shares.get("Demo.fib(int)", 0) > 0.1 and shares.get("Demo.interp2(int)", 0) > 0.05, shares


def test_kernel_frames(stillframe, tmp_path):
    """A program that spends its time in one system call: the kernel's functions are on top of its own, with their names."""
    need_kernel_samples(stillframe)
    script = ("import os, time\nend = time.monotonic() + 1\nfd = os.open('/dev/zero', os.O_RDONLY)\n"
              "while time.monotonic() < end: os.pread(fd, 1 << 20, 0)\nprint('cpu_seconds %f' % time.process_time())\n")
    done, recording = record(stillframe, tmp_path / "r.sfr", "-F", "999", "--", sys.executable, "-c", script)
    assert done.status == 0, done
    total = recording.total_shares()
    assert total.get("do_syscall_64", total.get("el0_svc", 0)) > 0.3, sorted(total.items(), key=lambda item: -item[1])[:20]
    stacks = [names for names, _ in recording.stacks_of("do_syscall_64")]
    below = [names[names.index("do_syscall_64") + 1:] for names in stacks]
    assert any("pread" in names[1] and len(names) > 8 and names[-1] == "_start" for names in below if len(names) > 1), stacks[:3]


FILTERED = """
import ctypes, os, struct, sys, time
pair = struct.pack("HBBI", 0x20, 0, 0, 16) + struct.pack("HBBI", 0x24, 0, 0, 13)   # load an argument, multiply it
instructions = 2000 * pair + struct.pack("HBBI", 6, 0, 0, 0x7fff0000)   # at last: allowed
code = ctypes.create_string_buffer(instructions, len(instructions))
program = struct.pack("HxxxxxxP", len(instructions) // 8, ctypes.addressof(code))
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)    # PR_SET_NO_NEW_PRIVS
assert libc.prctl(22, 2, program, 0, 0) == 0   # PR_SET_SECCOMP
end = time.process_time() + 1
while time.process_time() < end:
    os.getppid()
"""


def test_filters_of_system_calls_have_no_name(stillframe, tmp_path):
    """The kernel lists no name for them. The code that it lists last before them is a BPF program's, perhaps our own, or
    a module's."""
    need_kernel_samples(stillframe)
    done, recording = record(stillframe, tmp_path / "r.sfr", "-F", "999", "--", sys.executable, "-c", FILTERED)
    assert done.status == 0, done
    total = recording.total_shares()
    in_filter = total.get("__seccomp_filter", 0) - recording.self_shares().get("__seccomp_filter", 0)
    if in_filter < 0.2:
        pytest.skip("this kernel interprets them")
    assert total.get("[unknown in kernel]", 0) > 0.8 * in_filter, total
    assert not [name for name in total if name.endswith(" [bpf]") and total[name] > 0.1], total


def test_an_ordinary_user(tmp_path, everybodys):
    """At kernel.perf_event_paranoid 2, which is enough for own processes."""
    if paranoid() > 2:
        pytest.skip("perf events are for privileged users only here")
    output = everybodys.path("r.sfr")
    done = subprocess.run([*NOBODY, everybodys.stillframe(), "record", "--engine", "perf", "--max-cost", "100", "-F", "999", "-o", output, "--",
                           everybodys.program("busy_split"), "0.8"], capture_output=True, text=True, timeout=120,
                          env=everybodys.environment)
    assert done.returncode == 0, done
    recording = Recording(output)
    recording.assert_accounts(used=cpu_told(done.stdout))
    seen, lost, counted = recording.cpu()
    assert seen >= 0.9 * counted, (seen, lost, counted)
    assert recording.value("SELECT count(*) FROM samples") >= 0.9 * 999 * counted
    assert not recording.value("SELECT count(*) FROM frames WHERE kind = (SELECT id FROM kinds WHERE word = 'kernel')")


def test_short_lives_of_an_ordinary_user(everybodys):
    """Each process uses a part of a period. The events of the CPUs are not this user's, and those of the threads get a shorter period."""
    if paranoid() > 2:
        pytest.skip("perf events are for privileged users only here")
    output = everybodys.path("r.sfr")
    life = "j=0; while [ $j -lt 4000 ]; do j=$((j+1)); done"   # some 4 ms, of periods of 10 ms
    loop = "i=0; while [ $i -lt %d ]; do /bin/sh -c '%s'; i=$((i+1)); done" % (2000 if LONG else 300, life)
    done = subprocess.run([*NOBODY, everybodys.stillframe(), "record", "--engine", "perf", "--max-cost", "100", "-F", "99", "--children", "-o", output,
                           "--", "/bin/sh", "-c", loop], capture_output=True, text=True, timeout=120, env=everybodys.environment)
    assert done.returncode == 0, done
    seen, lost, counted = Recording(output).cpu()
    assert seen >= 0.6 * counted, (seen, lost, counted, done.stderr)   # 2 % without the shorter period


@pytest.mark.parametrize("may_hold", [True, False], ids=["held", "not held"])
def test_kernel_time_of_an_ordinary_user(everybodys, may_hold):
    """Events may not sample it. It is found by holds; without the right to hold it is a loss with its cause, and not given to samples of user mode."""
    if paranoid() != 2:
        pytest.skip("kernel.perf_event_paranoid is not 2")
    script = ("import os, time\nend = time.monotonic() + 0.8\nfd = os.open('/dev/zero', os.O_RDONLY)\n"
              "while time.monotonic() < end: os.pread(fd, 1 << 22, 0)\ntimes = os.times()\n"
              "print('cpu_seconds %f' % time.process_time()); print('system', times.system)\n")
    output = everybodys.path("r.sfr")
    done = subprocess.run([*NOBODY, everybodys.stillframe(), "record", "--engine", "perf", "-F", "999", "-o", output, "--",
                           "/usr/bin/python3", "-c", script], capture_output=True, text=True, timeout=120,
                          env=everybodys.environment, preexec_fn=None if may_hold else lambda: refuse("ptrace", errno.EPERM))
    assert done.returncode == 0, done
    recording = Recording(output)
    used = cpu_told(done.stdout)
    recording.assert_accounts(used=used)
    lost = dict(recording.rows("SELECT c.word, sum(cpu_ns) / 1e9 FROM losses JOIN causes c ON c.id = cause GROUP BY 1")).get("kernel", 0)
    system = float(re.search(r"^system ([\d.]+)", done.stdout, re.M)[1])
    if not may_hold:
        assert lost >= 0.6 * system, (lost, system)
        return
    reads = recording.cpu()[0] * max(share for name, share in recording.total_shares().items() if "pread" in name)
    assert lost <= 0.2 * system and 0.7 * system <= reads <= used + 0.05, (lost, system, reads, done)


@pytest.mark.alone   # on a busy machine the holding thread gets few turns: few threads are held, which is what this needs
def test_no_call_fails_for_kernel_time(everybodys):
    """Each call of the table begins right after a random time on the CPU, and threads are held for their time in the kernel."""
    if paranoid() != 2:
        pytest.skip("kernel.perf_event_paranoid is not 2")
    output = everybodys.path("r.sfr")
    done = subprocess.run([*NOBODY, everybodys.stillframe(), "record", "-e", "perf", "-F", "997", "--max-cost", "100", "-o", output, "--",
                           everybodys.program("eintr_table"), "60" if LONG else "1.2", "5", "burn"], capture_output=True, text=True, timeout=120,
                          env=everybodys.environment)
    assert done.returncode == 0, [line for line in done.stdout.splitlines() if "BAD" in line] or done
    assert int(re.search(r"^ *holds ([\d,]+):", done.stderr, re.M)[1].replace(",", "")) > 5, done.stderr


NAPS = """
import os, time
fd = os.open("/dev/zero", os.O_RDONLY)
end, slept = time.monotonic() + 2, 0
while time.monotonic() < end:
    stop = time.perf_counter() + 0.001
    os.pread(fd, 1 << 25, 0)   # each time in new pages: in the kernel for milliseconds
    while time.perf_counter() < stop: pass
    before = time.perf_counter(); time.sleep(0.004); slept += time.perf_counter() - before
print("waited", int(open("/proc/self/schedstat").read().split()[1]) / 1e9)
print("slept", slept)
print("cpu", time.process_time())
"""


@pytest.fixture
def busy_machine():
    """More busy programs than CPUs."""
    started = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * os.cpu_count())]
    yield
    for process in started:
        process.kill()
        process.wait()


def test_a_busy_machine_of_an_ordinary_user(everybodys, busy_machine):
    """A thread that is held for its time in the kernel waits for a CPU before it stops, and is let go when it has stopped. The program has
    all of the time that it did not use, slept or waited for a CPU; and what it did not sleep is not blocked."""
    if paranoid() != 2:
        pytest.skip("kernel.perf_event_paranoid is not 2")
    output = everybodys.path("r.sfr")
    done = subprocess.run([*NOBODY, everybodys.stillframe(), "record", "-e", "perf", "-F", "999", "--max-cost", "20", "-o", output, "--", "/usr/bin/python3", "-c",
                           NAPS], capture_output=True, text=True, timeout=120, env=everybodys.environment)
    assert done.returncode == 0, done
    told = {name: float(seconds) for name, seconds in re.findall(r"^(\w+) ([\d.]+)$", done.stdout, re.M)}
    assert (holds := re.search(r"^ *holds ([\d,]+):", done.stderr, re.M)) and int(holds[1].replace(",", "")) > 3, done.stderr
    assert 2 - told["slept"] - told["waited"] - told["cpu"] < 0.3, told
    blocked = Recording(output).value("SELECT total(wall_ns) / 1e9 FROM samples JOIN states s ON s.id = state "
                                      "WHERE s.word = 'blocked'")
    assert blocked < told["slept"] + 0.2, (blocked, told)


def test_a_hold_is_no_sleep(everybodys, target):
    """
    strace makes each call of ptrace take 10 ms longer: the two that request a hold, while the thread runs on, and two while it stands.
    The program is in the kernel for most of its time, so that there are many holds.
    """
    need("strace")
    if paranoid() != 2:
        pytest.skip("kernel.perf_event_paranoid is not 2")
    naps = target([*NOBODY, "/usr/bin/python3", "-u", "-c", "print('ready'); input()\n" + NAPS], stdin=subprocess.PIPE)
    output = everybodys.path("r.sfr")
    with subprocess.Popen([*NOBODY, "strace", "-f", "-qq", "-e", "trace=ptrace", "-e", "inject=ptrace:delay_enter=10000", "-o", "/dev/null",
                           everybodys.stillframe(), "record", "-p", str(naps.pid), "-e", "perf", "-F", "999", "--max-cost", "50", "-o", output],
                          stderr=subprocess.PIPE, text=True, env=everybodys.environment) as traced:
        until(lambda: samples_so_far(output), "it waits for its input", 60)
        naps.process.stdin.write("\n")
        naps.process.stdin.flush()
        told = naps.finish()[1]
        said = traced.communicate(timeout=60)[1]
    assert traced.returncode == 0, said
    slept = float(re.search(r"^slept ([\d.]+)$", told, re.M)[1])
    recording = Recording(output)
    held = recording.value("SELECT coalesce(sum(count), 0) FROM holds WHERE up_to_ns > 10000000")
    blocked = recording.value("SELECT total(wall_ns) / 1e9 FROM samples JOIN states s ON s.id = state WHERE s.word = 'blocked'")
    before = recording.duration() - 2   # it waits for its input, but for its start and end
    assert held and blocked < before + slept + 0.1, (held, blocked, before, slept, said)


def test_naps_of_an_ordinary_user(everybodys):
    """By auto, which takes perf. Of bursts of 0.2 ms each 100 ms looks find a few percent, and the kernel's clock finds those in user mode."""
    if paranoid() != 2:
        pytest.skip("kernel.perf_event_paranoid is not 2")
    output = everybodys.path("r.sfr")
    done = subprocess.run([*NOBODY, everybodys.stillframe(), "record", "-F", "997", "--max-cost", "100", "-o", output, "--", everybodys.program("nappers"),
                           "1", "300", "200", "100000"], capture_output=True, text=True, timeout=120, env=everybodys.environment)
    assert done.returncode == 0 and "by perf\n" in done.stderr, done
    told = {name: float(seconds) for name, seconds in re.findall(r"^(\w+) ([\d.]+)$", done.stdout, re.M)}
    nappers = told["cpu_seconds"] - told["busy"]   # with what it takes to end them
    weights = [ns for ns, in Recording(output).rows("SELECT s.cpu_ns FROM samples s JOIN threads t ON t.id = s.thread WHERE t.name = 'napper'")]
    seen, chance = sum(weights) / 1e9, 3 / worth_of(weights) ** 0.5
    assert 0.25 * nappers <= seen <= (1 + chance) * nappers and chance < 0.3, (seen, told, chance, done)


def stays(recording, functions):
    """[(function, seconds)]: the samples in their order, those one after the other with the same function of these on their stacks as one stay."""
    of_stack = dict(recording.rows("SELECT f.stack, n.name FROM stack_frames f JOIN frame_names n ON n.frame = f.frame WHERE n.name IN (?, ?)", *functions))
    samples = [(of_stack[stack], ns / 1e9) for stack, ns in recording.rows("SELECT stack, cpu_ns FROM samples ORDER BY time_ns") if stack in of_stack]
    return [(function, sum(seconds for _, seconds in stay)) for function, stay in itertools.groupby(samples, key=lambda sample: sample[0])]


def test_a_periodic_program_is_not_in_step(stillframe, target, tmp_path):
    """Its work repeats after a millisecond of its CPU time, which is the period that is asked for."""
    output = tmp_path / "r.sfr"
    stillframe.record_until(output, lambda path: so_far(path, "coalesce(sum(cpu_ns), 0)") >= 800000000, "-e", "perf", "-F", "1000", "--clock", "cpu",
                            "--max-cost", "50", "-p", target("periodic").pid)
    halves = stays(Recording(output), ("first_half", "second_half"))
    # A period that differs by 1/64 to 1/32 stays in a half for up to 32 samples, then in the other one. In step it stays in one. How long it stays is
    # even as long as the program has its CPU, and a matter of chance where it often loses or changes it: the stays say how sure their sum is.
    seconds = sum(stay for _, stay in halves)
    rounds = [first - second for (_, first), (_, second) in zip(halves[::2], halves[1::2])]
    assert len(rounds) >= 800 / 64 / 2, halves
    chance = 3.5 * statistics.pstdev(rounds) * len(rounds) ** 0.5 / seconds
    first = sum(stay for function, stay in halves if function == "first_half")
    assert chance < 0.9 and abs(2 * first / seconds - 1) < 0.06 + chance, (first, seconds, chance, halves)


# For lives of 20 µs, most of which is the kernel's work, samples and the kernel's count differ by some percent (docs/engines.md).
@pytest.mark.alone   # the look that misses something needs CPU time of the program, which ends after two seconds
@pytest.mark.long("0.2-")
@pytest.mark.parametrize("life_ms, per_second, difference", [(0.02, 8000, 0.25), (0.2, 2000, 0.12)])
def test_lives_of_microseconds_are_seen(stillframe, tmp_path, life_ms, per_second, difference):
    """A thread's own event fires after a period, which these threads do not live for. The events of the CPUs see them, and no process beside. The
    CPUs are never idle: a sample that comes while a CPU wakes up belongs to no thread, or to the next one (docs/engines.md)."""
    need_kernel_samples(stillframe)
    beside = subprocess.Popen(["nice", "-n", "19", path_of("busy_split"), "60", str(os.cpu_count())], stdout=subprocess.DEVNULL)
    try:
        done, recording = record(stillframe, tmp_path / "r.sfr", "-F", "2000", "--", path_of("threads_churn"), "2", per_second, life_ms, timeout=120)
    finally:
        beside.kill()
        beside.wait()
    seen, lost, _ = recording.cpu()
    used = cpu_told(done.out)
    # Lost is what came before the first look that misses some: up to 0.8 of the 2 seconds (docs/engines.md).
    assert lost <= 0.45 * used and abs(seen + lost - used) <= difference * used, (seen, lost, done)
    assert recording.rows("SELECT pid FROM processes") == [(recording.value("SELECT min(pid) FROM processes"),)]
    # The threads' own function has the time that they burn, in the part of the CPU time that was seen.
    burned = int(re.search(r"made (\d+)", done.out).group(1)) * life_ms / 1e3 * seen / (seen + lost)
    in_function = recording.total_shares()["short_life"] * seen
    assert in_function > 0.6 * burned, (in_function, burned, recording.total_shares())
    assert recording.value("SELECT sum(e.word = 'root') * 1.0 / count(*) FROM samples s JOIN ends e ON e.id = s.\"end\"") > 0.95, done


def n_events(pid):
    """The perf events that a process has open. It may close some meanwhile."""
    n = 0
    for path in glob.glob("/proc/%d/fd/*" % pid):
        with contextlib.suppress(FileNotFoundError):
            n += os.readlink(path) == "anon_inode:[perf_event]"
    return n


@pytest.mark.alone   # what is lost before the events change places depends on the CPU time that stillframe gets
def test_threads_of_short_turns(stillframe, target, tmp_path):
    """
    The kernel sets the timer of a thread's event at each of its turns. Where these are many, there is one event for each CPU, and the same to see.
    500 turns a second are many for two CPUs at this rate (capture/perf/widen.c). The program takes fifty times as many on a quiet machine.
    """
    need_kernel_samples(stillframe)
    n_threads, output = 40, tmp_path / "r.sfr"
    t = target("nappers", 60, n_threads, 20, 600)
    process, counts = stillframe.start("record", "-p", t.pid, "-e", "perf", "-F", "199", "--max-cost", "50", "-o", output), []

    def are_of_cpus():
        counts.append(n_events(process.pid))
        return max(counts) - counts[-1] > n_threads
    until(are_of_cpus, "events of the CPUs take the place of those of the threads", 20)
    # Before that some 50 ms may be lost.
    until(lambda: cpu_samples_so_far(output) > 800, "samples", 60)
    process.send_signal(signal.SIGINT)
    done = stillframe.wait(process).ok()
    recording = Recording(output)
    recording.assert_accounts()
    seen, lost, _ = recording.cpu()
    assert lost < 0.02 * seen, (seen, lost, done)
    first, second = (recording.total_shares()["spin_%s_half" % which] for which in ("first", "second"))
    assert abs(first - second) < 0.1 * (first + second) + 3 * ((first + second) / recording.worth()) ** 0.5, (first, second, done)


@pytest.mark.alone   # what is lost before the first look depends on the CPU time that stillframe gets
def test_short_commands_are_seen(stillframe, tmp_path):
    """Of a shell whose commands end within a period each. What they used before the first look that misses them is a loss."""
    need_kernel_samples(stillframe)
    loop = "i=0; while [ $i -lt 900 ]; do /bin/ls / >/dev/null; i=$((i+1)); done"
    done, recording = record(stillframe, tmp_path / "r.sfr", "--children", "-F", "199", "--", "/bin/sh", "-c", loop, timeout=120)
    assert done.status == 0, done
    seen, lost, counted = recording.cpu()
    assert lost < 0.35 * counted and seen + lost <= counted * 1.1, (seen, lost, counted)
    names = dict(recording.rows("SELECT p.name, total(s.cpu_ns) FROM samples s JOIN threads t ON t.id = s.thread JOIN processes p ON p.id = t.process GROUP BY 1"))
    assert set(names) <= {"sh", "ls", "dash"} and names["ls"] > 0.2 * sum(names.values()), names


@pytest.mark.parametrize("program", [
    pytest.param(("deep", 10000, "spin"), id="deep"), pytest.param(("altstack_signal", "spin"), id="other stack"),
    pytest.param(("cfa_below_sp",), id="below sp", marks=pytest.mark.skipif(os.uname().machine != "x86_64", reason="in x86-64's assembly"))])
def test_threads_whose_stacks_the_kernel_does_not_copy_are_held(stillframe, target, tmp_path, program):
    """It copies 64 KiB of one stack, from the stack pointer on. Only the first samples of such a thread are cut."""
    t = target(*program)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-e", "perf", "-d", "1500ms", "-F", "499", "--max-depth",
                                        16384, "--max-cost", 50)
    assert done.status == 0, done
    later = "FROM samples s JOIN ends e ON e.id = s.\"end\" WHERE time_ns > (SELECT min(time_ns) FROM samples) + 500000000"
    n, whole = recording.rows("SELECT count(*), sum(e.word = 'root') " + later)[0]
    assert n > 10 and whole >= n * 0.98 - 1, (done, n, whole)
    assert recording.value("SELECT coalesce(sum(count), 0) FROM holds") > 5, done
    recording.assert_accounts()


DEEP_TIME = ("SELECT total(s.cpu_ns * (s.stack IN (SELECT f.stack FROM stack_frames f JOIN frame_names n ON n.frame = f.frame "
             "WHERE n.name = 'descend'))), total(s.cpu_ns) FROM samples s")


@pytest.mark.alone   # how many samples there are depends on the CPU time that stillframe gets
def test_a_stack_that_is_deep_in_few_samples_keeps_its_part(stillframe, target, tmp_path):
    """By ptrace, of a thread that is deep for a tenth of its CPU time, and seldom in two samples in a row. Where the samples between made copies
    short, the deep ones were cut, and their time went to the others: 3.5 % were left."""
    t, output = target("deep_at_times", 0.3, 2.7), tmp_path / "r.sfr"
    done = stillframe.record_until(output, lambda path: so_far(path, "coalesce(sum(cpu_ns), 0)") >= 3000000000, "-p", t.pid, "-e", "ptrace", "-F", "499",
                                   "--clock", "cpu", "--max-cost", 50)
    recording = Recording(output)
    deep, all_of_it = recording.rows(DEEP_TIME)[0]
    worth = worth_of([weight for weight, in recording.rows("SELECT cpu_ns FROM samples WHERE cpu_ns > 0")])
    assert abs(deep / all_of_it - 0.1) < 0.01 + 3 * (0.1 * 0.9 / worth) ** 0.5, (deep / all_of_it, worth, done)
    recording.assert_accounts()


@pytest.mark.parametrize("n_others", [0, 3])
def test_a_stack_that_is_deep_at_times_keeps_its_part(stillframe, target, tmp_path, n_others):
    """The thread is deep for a quarter of its CPU time. Copies that are cut, and holds at other moments, would give that time to the other part.
    Where others want the CPUs a hold that was requested comes later, when the stack may not be deep."""
    if n_others:
        target("busy_split", 60, n_others)
    t, output = target("deep_at_times"), tmp_path / "r.sfr"
    # At the start copies are too short, and their time goes to other samples: that is to be a small part, also where the target gets few CPUs.
    done = stillframe.record_until(output, lambda path: so_far(path, "coalesce(sum(cpu_ns), 0)") >= 2000000000, "-p", t.pid, "-e", "perf", "-F", "499", "--clock",
                                   "cpu", "--max-cost", 50)
    recording = Recording(output)
    deep, all_of_it = recording.rows(DEEP_TIME)[0]
    worth = worth_of([weight for weight, in recording.rows("SELECT cpu_ns FROM samples WHERE cpu_ns > 0")])
    assert abs(deep / all_of_it - 0.25) < 0.02 + 3 * (0.25 * 0.75 / worth) ** 0.5, (deep / all_of_it, worth, done)
    recording.assert_accounts()


def test_the_timer_of_a_hold_ends_with_it(stillframe, target, tmp_path):
    """stillframe sets a timer before it waits for a thread that it holds. A timer that went on would fire 500 times a second, also when the
    process with that thread has ended."""
    need("strace")
    held, other = target("altstack_signal", "spin"), target("deep", 5, "sleep")
    output, log = tmp_path / "r.sfr", tmp_path / "signals"
    command = [stillframe.path, "record", "-p", "%d,%d" % (held.pid, other.pid), "-e", "perf", "-d", "3s", "-F", "99", "-o", output, "--max-cost", "50"]
    with subprocess.Popen(["strace", "-f", "-qq", "-ttt", "-e", "trace=none", "-o", log, *command], stderr=subprocess.PIPE, text=True) as traced:
        until(lambda: "--- SIGRT" in log.read_text() if log.exists() else False, "the timer of a hold fires", 20)
        time.sleep(0.5)       # some holds come to their end
        held.process.kill()   # not by end(), which would judge a thread that is held at this moment
        ended = time.time()
        said = traced.communicate(timeout=60)[1]
    assert traced.returncode == 0, said
    assert Recording(output).value("SELECT coalesce(sum(count), 0) FROM holds") > 0, said
    times = [float(line.split()[1]) for line in log.read_text().splitlines() if "--- SIGRT" in line]
    # The other thread may be held, too, and the timer of a hold fires where the machine is late.
    assert sum(at > ended + 0.5 for at in times) < 50, (ended, times)


def test_earlier_cpu_time_is_not_counted(stillframe, target, tmp_path):
    """A sample that comes before the first look at the threads is of a thread that has run before. strace delays what enables the events."""
    need("strace")
    spins = target(["/bin/sh", "-c", "echo ready; while :; do :; done"])
    until(lambda: cpu_of(spins.pid) > 0.6, "it has used CPU time", 60)
    output = tmp_path / "r.sfr"
    done = subprocess.run(["strace", "-f", "-qq", "-e", "trace=ioctl", "-e", "inject=ioctl:delay_exit=5000", "-o", "/dev/null", stillframe.path, "record",
                           "-p", str(spins.pid), "-e", "perf", "-d", "300ms", "-F", "999", "-o", output], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    seen, _, counted = Recording(output).cpu()
    assert 0 < seen <= counted < 0.6, (seen, counted)


def test_programs_that_run_others_have_whole_stacks(stillframe, tmp_path):
    """A shell's children are forked, and run a program at once: the kernel takes the memory with the stack away meanwhile."""
    need_kernel_samples(stillframe)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "perf", "--children", "-F", "9999", "--max-cost", 100, "--", "/bin/sh", "-c",
                                        "i=0; while [ $i -lt 60 ]; do /bin/ls / >/dev/null; i=$((i+1)); done")
    assert done.status == 0, done
    n, whole = recording.rows("SELECT count(*), sum(e.word = 'root') FROM samples s JOIN ends e ON e.id = s.\"end\" WHERE s.stack IN "
                              "(SELECT f.stack FROM stack_frames f JOIN frame_names n ON n.frame = f.frame "
                              "WHERE n.name IN ('begin_new_exec', 'do_exit'))")[0]
    assert n > 3, done
    # The record of an exec comes after it, and may be in the next batch: then a stack is cut.
    assert whole > n / 2, (n, whole, done)
    assert not recording.losses().get("denied"), recording.losses()


@pytest.mark.alone   # the limit is a part of the elapsed time: a target that gets few CPUs does not reach it, and little is tested
def test_its_cost_has_a_limit(stillframe, target, tmp_path):
    """The kernel samples at the rate that was asked for; not all of it is walked, and each sample stands for more. No time is lost."""
    t = target("deep", 300, "spin", os.cpu_count())
    # The limit takes hold by what has been spent beyond it: the cheaper a walk is, the later.
    done, recording = stillframe.record(tmp_path / "r.sfr", "-p", t.pid, "-e", "perf", "-d", "3s", "-F", "20khz", "--clock", "cpu", "--max-cost", 1)
    assert done.status == 0, done
    used = re.search(r"(\d+) % of the samples were used: more would take over 1 %", " ".join(done.err.split()))
    seen, _, counted = recording.cpu()
    # So many are walked at most, whatever CPU time the target gets. Of one that gets less, all are, and there is nothing to tell.
    assert (int(used[1]) / 100 if used else 1) * counted < 0.6 * 3 * os.cpu_count(), (counted, done)
    assert seen > 0.95 * counted, (seen, counted)

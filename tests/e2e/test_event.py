# SPDX-License-Identifier: Apache-2.0
"""record --event: what the kernel counts in place of time, of programs whose counts are known by something else. Recording.check() has the
sum: events of samples and lost ones are those that the kernel counted."""
import gzip
import json
import os
import re
import subprocess

import pytest

from conftest import NOBODY, STILLFRAME, need_findings, paranoid
from java_stacks import jdk  # noqa: F401 (jdk is a fixture)
from recordings import Recording

PYTHON = "/usr/bin/python3"
pytestmark = pytest.mark.waits

# Touches so many pages, and says how many faults there were while it did so, and in all.
TOUCH = """
import mmap, resource, sys
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
n = int(sys.argv[1])
memory = mmap.mmap(-1, n * 4096)
memory.madvise(mmap.MADV_NOHUGEPAGE)
before = faults()
for i in range(n):
    memory[i * 4096] = 1
touched = faults() - before
print("touched", touched, "of", faults())
"""
NAPS = """
import os, time
for _ in range(300):
    time.sleep(0.001)
print([int(line.split()[1]) for line in open("/proc/self/status") if "ctxt_switches" in line], flush=True)
os._exit(0)  # at once: what the interpreter does at its end is displaced on a busy machine
"""
# Threads that fault and sleep for as long as they are watched.
THREADS = """
import mmap, threading, time
def work():
    while True:
        memory = mmap.mmap(-1, 8192)
        memory[0] = 1
        memory.close()
        time.sleep(0.005)
for i in range(3):
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture(scope="module", autouse=True)
def kernel_counts():
    """What doctor says."""
    said = subprocess.run([STILLFRAME, "doctor"], stdout=subprocess.PIPE, text=True, check=True).stdout
    need_findings(said, "context switches are counted", "tracepoints are counted")
    return said


def record(stillframe, output, event, *arguments, **how):
    done, recording = stillframe.record(output, "--engine", "perf", "--max-cost", 100, "--event", event, *arguments, **how)
    assert done.status == 0, done
    return done, recording


def sums(recording):
    """Events that samples stand for, and that the kernel counted."""
    return recording.rows("SELECT amount_seen, amount_counted FROM accounting")[0]


def amount_in(recording, pattern):
    """Of stacks that have a function whose name is like this."""
    return recording.value(
        "SELECT total(amount) FROM stack_times WHERE stack IN (SELECT stack FROM stack_frames JOIN frame_names n USING (frame) WHERE n.name LIKE ?)",
        pattern)


def test_page_faults_are_those_of_getrusage(stillframe, tmp_path):
    done, recording = record(stillframe, tmp_path / "r.sfr", "page-faults", "--", PYTHON, "-c", TOUCH, 3000)
    touched, all_faults = map(int, re.search(r"touched (\d+) of (\d+)", done.out).groups())
    seen, counted = sums(recording)
    # It has some before its exec and after it looked.
    assert touched >= 3000 and all_faults - 200 <= counted <= all_faults + 300, (touched, all_faults, counted)
    assert seen > 0.2 * counted and "%s page-faults seen" % format(seen, ",") in done.err, done
    # Where the events are: in the interpreter's loop, below main.
    assert amount_in(recording, "Py_BytesMain") > 0.7 * seen
    assert recording.rows("SELECT name, unit, counted FROM measures") == [("page-faults", "events", counted)]
    # An event has no time.
    assert recording.rows("SELECT total(cpu_ns), total(wall_ns) FROM samples") == [(0, 0)] and recording.cpu() == (0, 0, 0)


def test_context_switches_are_those_of_proc(stillframe, tmp_path):
    done, recording = record(stillframe, tmp_path / "r.sfr", "context-switches", "--", PYTHON, "-c", NAPS)
    theirs = sum(json.loads(done.out))
    seen, counted = sums(recording)
    assert abs(counted - theirs) <= 8 and seen == counted, (seen, counted, theirs)
    assert amount_in(recording, "%clock_nanosleep%") >= 300
    # Each is a sample: they are rare.
    assert recording.value("SELECT count(*) FROM samples WHERE amount = 1") == seen


# Writes so often on one CPU, and then on another.
WRITES = """
import os, sys
sink = os.open("/dev/null", os.O_WRONLY)
for cpu in sorted(os.sched_getaffinity(0))[:2]:
    os.sched_setaffinity(0, {cpu})
    for _ in range(int(sys.argv[1])):
        os.write(sink, b"")
"""


def test_each_tenth_of_known_writes(stillframe, tmp_path):
    # On one CPU: each CPU has a count of its own.
    cpu = min(os.sched_getaffinity(0))
    done, recording = record(stillframe, tmp_path / "r.sfr", "syscalls:sys_enter_write/10", "--", "taskset", "--cpu-list", cpu, "dd", "if=/dev/zero",
                             "of=/dev/null", "bs=1", "count=3000")
    seen, counted = sums(recording)
    assert 3000 <= counted <= 3010 and seen == 10 * (counted // 10), (done, seen, counted)
    assert amount_in(recording, "%libc_write%") >= 2990
    assert recording.value("SELECT min(amount) FROM samples") == 10


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU")
def test_what_follows_the_last_sample_on_each_cpu_is_counted(stillframe, tmp_path):
    done, recording = record(stillframe, tmp_path / "r.sfr", "syscalls:sys_enter_write/10", "--", PYTHON, "-c", WRITES, 1505)
    assert sums(recording) == (3000, 3010), done


def test_many_events_have_few_samples(stillframe, tmp_path):
    done, recording = record(stillframe, tmp_path / "r.sfr", "syscalls:sys_enter_write", "--rate", "100hz", "--", "dd", "if=/dev/zero", "of=/dev/null",
                             "bs=1", "count=600000")
    seen, counted = sums(recording)
    # When the pace changes, the events of some microseconds are not counted.
    assert 598000 <= counted <= 600010 and seen > 0.5 * counted, (done, seen, counted)
    assert recording.value("SELECT count(*) FROM samples") < 0.02 * counted, done


def test_children_and_what_did_not_happen(stillframe, tmp_path):
    script = "for i in 1 2 3 4 5 6 7 8; do /bin/true; done"
    done, recording = record(stillframe, tmp_path / "r.sfr", "sched:sched_process_fork", "--children", "--", "sh", "-c", script)
    assert sums(recording) == (8, 8), done
    done, recording = record(stillframe, tmp_path / "r.sfr", "page-faults", "--children", "--", "sh", "-c", script)
    # The children are of few faults each. Those that are not watched from their start on are no part of the count.
    by_name = dict(recording.rows("SELECT n.process, sum(s.amount) FROM samples s JOIN thread_names n USING (thread) GROUP BY n.process"))
    assert by_name["true"] > by_name["sh"] > 20, (done, by_name)
    done, recording = record(stillframe, tmp_path / "r.sfr", "major-faults", "--", "true")
    assert sums(recording)[0] <= 5, done


def test_running_processes_and_their_threads(stillframe, target, tmp_path):
    program = tmp_path / "two-of-a-kind"   # a name that no program of another test has
    program.symlink_to(PYTHON)
    targets = [target([program, "-c", THREADS]) for _ in range(2)]
    pids = {t.pid for t in targets}
    done, recording = record(stillframe, tmp_path / "r.sfr", "page-faults", "-p", ",".join(map(str, pids)), "-d", "600ms")
    seen = recording.rows("SELECT n.pid, n.tid, sum(s.amount) FROM samples s JOIN thread_names n USING (thread) GROUP BY n.tid")
    assert {pid for pid, _, _ in seen} == pids and len(seen) == 6, (done, seen)
    assert all(amount >= 3 for _, _, amount in seen), seen
    done, recording = record(stillframe, tmp_path / "r.sfr", "context-switches", "--all", "--filter", "name=two-of-a-kind", "-d", "600ms")
    names = {name for name, in recording.rows("SELECT DISTINCT process FROM thread_names")}
    assert names == {"two-of-a-kind"}, (done, names)
    seen, counted = sums(recording)
    assert seen > 0.2 * counted and seen > 20, (done, seen, counted)


def test_java_methods_have_their_faults(stillframe, jdk, tmp_path):
    source = tmp_path / "Faults.java"
    source.write_text("""public class Faults {
    static byte[][] kept = new byte[2000][];
    static void allocate(int i) { kept[i] = new byte[100_000]; }
    public static void main(String[] words) { for (int i = 0; i < kept.length; i++) allocate(i); }
}
""")
    subprocess.run([*jdk.tool("javac"), "-d", tmp_path, source], check=True)
    done, recording = record(stillframe, tmp_path / "r.sfr", "page-faults", "--", jdk.folder + "/bin/java", "-Xmx1g", "-XX:+UseSerialGC", "-cp",
                             tmp_path, "Faults")
    assert amount_in(recording, "Faults.allocate(int)") > 0.2 * sums(recording)[0], done


REFUSED = [
    (1, ["--event", "cycles"], "this machine has no counter for cycles"),
    (2, ["--event", "nonsense"], "there is no event \"nonsense\""),
    (1, ["--event", "sched:nonsense"], "the kernel has no tracepoint sched:nonsense"),
    (2, ["--event", "page-faults/0"], "is no number of events"),
    (2, ["--event", "page-faults", "--engine", "ptrace"], "--event page-faults is for --engine perf or bpf, not ptrace"),
    (2, ["--event", "page-faults", "--engine", "signal"], "--event page-faults is for --engine perf or bpf, not signal"),
    (2, ["--event", "page-faults", "--clock", "wall"], "either --event or --clock"),
    (2, ["--event", "page-faults", "--blocked-rate", "9hz"], "either --event or --blocked-rate"),
    (2, ["--event", "page-faults", "--offcpu-min", "9ms"], "either --event or --offcpu-min"),
]


@pytest.mark.parametrize("status, options, text", REFUSED, ids=lambda each: "-".join(each) if isinstance(each, list) else None)
def test_what_is_refused_is_said_in_a_sentence(stillframe, kernel_counts, tmp_path, status, options, text):
    if "cycles" in options and "  ok   the processor's events" in kernel_counts:
        pytest.skip("this machine counts cycles")
    output = tmp_path / "none.sfr"
    done = stillframe("record", *options, "-o", output, "--", "touch", tmp_path / "ran").fails(status)
    assert text in done.err, done
    assert not output.exists() and not (tmp_path / "ran").exists()


def test_an_ordinary_user_counts_own_page_faults(stillframe, everybodys):
    if paranoid() > 2:
        pytest.skip("the kernel counts nothing for ordinary users here")
    stillframe.path = everybodys.stillframe()
    how = {"prefix": NOBODY, "cwd": everybodys.folder, "env": everybodys.environment}
    output = everybodys.path("r.sfr")
    # By itself: ptrace, which such a user gets else, has no events.
    done = stillframe("record", "--max-cost", 100, "--event", "page-faults", "-o", output, "--", PYTHON, "-c", TOUCH, 2000, **how).ok()
    recording = Recording(output)
    assert recording.value("SELECT engine FROM session") == "perf" and sums(recording)[1] >= 2000, done
    for event in ("context-switches", "syscalls:sys_enter_write"):
        done = stillframe("record", "--event", event, "-o", everybodys.path("none.sfr"), "--", "true", **how).fails(1)
        assert "the event %s happens in the kernel, where this user may not look" % event in done.err, done
    assert "  no   tracepoints are counted" in stillframe("doctor", **how).out


def test_views_count_and_tell_no_time(stillframe, tmp_path):
    done, recording = record(stillframe, tmp_path / "r.sfr", "page-faults", "--", PYTHON, "-c", "pass")
    seen, counted = sums(recording)
    text = stillframe("report", recording.path).ok().out
    assert ", by page-faults\n" in text and "\nFigures are page-faults: %s.\n" % format(counted, ",") in text and " ms " not in text.split("FUNCTIONS")[1], text
    told = json.loads(stillframe("report", "--json", recording.path).ok().out)
    assert told["measure"] == {"name": "page-faults", "unit": "events", "seen": seen, "lost": counted - seen, "counted": counted}
    assert told["clock"] == "event" and sum(each["self_amount"] for each in told["functions"]) == counted
    folded = stillframe("export", "-f", "collapsed", "-o", "-", recording.path).ok().out
    assert sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()) == counted
    scope = json.loads(stillframe("export", "-f", "speedscope", "-o", "-", recording.path).ok().out)
    assert {each["unit"] for each in scope["profiles"]} == {"none"}
    stillframe("export", "-f", "pprof", "-o", tmp_path / "r.pb.gz", recording.path).ok()
    packed = gzip.decompress((tmp_path / "r.pb.gz").read_bytes())
    assert b"page-faults" in packed and b"nanoseconds" not in packed
    page = stillframe("export", "-f", "html", "-o", "-", recording.path).ok().out
    assert '"measure":{"name":"page-faults","unit":"events"' in page and '"clock":"event"' in page
    for command in (["report"], ["export", "-f", "collapsed", "-o", "-"]):
        done = stillframe(*command, "--clock", "cpu", recording.path).fails(1)
        assert "counts page-faults and has no times" in done.err, done


def test_the_cpu_clock_is_no_event(stillframe, tmp_path):
    done, recording = stillframe.record(tmp_path / "r.sfr", "--engine", "perf", "--event", "cpu-clock", "--clock", "cpu", "--", PYTHON, "-c", "sum(range(5000000))")
    assert done.status == 0 and recording.cpu()[0] > 0, done
    assert recording.value("SELECT count(*) FROM measures") == 0
    assert "has times and no event" in stillframe("report", "--clock", "event", recording.path).fails(1).err

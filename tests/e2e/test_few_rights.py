# SPDX-License-Identifier: Apache-2.0
"""One table: situations in which stillframe may do less, or has less. record and dump work with what is left, record says in a note why no better
engine was to be had, doctor says of the same step what is missing, and no CPU time is lost without being counted."""
import errno
import os
import re
import subprocess
from dataclasses import dataclass

import pytest

import hanging
from conftest import NOBODY, Done, finding, need, need_root, paranoid, refuse, shown
from processes import read
from recordings import Recording, samples_so_far

pytestmark = pytest.mark.waits

PERFMON = "have CAP_PERFMON (stillframe doctor --setcap)"
FILTER = "a system-call filter (seccomp; a container's, perhaps)"
OUTSIDE = "run stillframe outside its user namespace with CAP_PERFMON"
KERNEL = "perf events do not show what threads do in the kernel (kernel.perf_event_paranoid is 2). To see what they do there, "
HELD = "time in the kernel was found by holds only; sleeping threads were looked at some times a second: "
NO_BPF = "the BPF program cannot be loaded: "
# Findings of doctor.
WAKINGS, FIRST = "wakings of threads can be recorded", "by the ids of the first pid namespace, and stillframe is in another one"
EVENTS, HIDDEN, SAVED = "perf events may be opened", "kernel.perf_event_paranoid is", "the kernel says what it has saved"
SPINNERS, SLEEPERS = 1, 4
CPU_TICKS = 20   # hundredths of a second of CPU time for which the program is recorded

# The program and stillframe are in the same namespaces. Only stillframe is in the control groups, whose folders are $2 and on. It may take half of a
# busy machine: with 2 % of it a recording as short as this one could have no samples of the thread that runs.
# The recording's file is there before the first look at the program. When a thread's name is in it, there has been one.
SESSION = """
cd "$1"; shift
mkfifo ready
./many_threads %d 60 %d >ready & pid=$!
read -r word <ready
ticks=%d
for group; do echo $$ >"$group/cgroup.procs"; ticks=%d; done
run() { name=$1; shift; sh -c 'echo $$ >"$0"; exec ./stillframe "$@"' $name.pid "$@" >$name.out 2>$name.err; echo $? >$name.status; }
used() { read -r line </proc/$pid/stat; set -- ${line##*)}; echo $((${12} + ${13})); }
run record record -p $pid --max-cost 50 -o r.sfr &
until grep -q spinner r.sfr 2>/dev/null || [ -e record.status ]; do sleep 0.1; done
goal=$(($(used) + ticks))
while [ $(used) -lt $goal ]; do sleep 0.05; done
kill -INT $(cat record.pid)
wait $!
run dump dump -p $pid --times
run doctor doctor
kill -KILL $pid
""" % (SLEEPERS, SPINNERS, CPU_TICKS, 5 * CPU_TICKS)  # with a tenth of a CPU the recording begins late

# Another root folder with a /proc of its own and without /sys, in which $1 is /work.
ROOT = """
set -e
folder=$1; shift
mkdir "$folder/root"; mount -t tmpfs none "$folder/root"; cd "$folder/root"
for each in usr lib lib64 bin etc dev; do if [ -L /$each ]; then cp -P /$each .; else mkdir $each; mount --rbind /$each $each; fi; done
mkdir proc work; mount -t proc none proc; mount --bind "$folder" work
export HOME=/work XDG_CACHE_HOME=/work
exec chroot . "$@"
"""


def as_it_is(situation):
    return []


def level(value):
    """As /proc shows it, with a filter that answers as the kernel does then."""
    return lambda situation: shown(situation.tmp_path, {"/proc/sys/kernel/perf_event_paranoid": "%d\n" % value})


def without_btf(situation):
    if not os.path.isdir("/sys/kernel/btf"):
        pytest.skip("/sys/kernel/btf is not there")
    return shown(situation.tmp_path, {}, ["/sys/kernel/btf"])


def pid_namespace(situation):
    return ["unshare", "--pid", "--fork", "--mount-proc"]


def root_folder(situation):
    situation.seen_as = "/work"
    return ["unshare", "--pid", "--fork", "--mount", "sh", "-c", ROOT, "sh", situation.folder]


def user_namespace(situation):
    prefix = [*NOBODY, "unshare", "--user", "--map-root-user"]
    if subprocess.run([*prefix, "true"], capture_output=True).returncode:
        pytest.skip("users may make no user namespaces here")
    return prefix


def control_group(situation):
    situation.groups = make_groups()
    return []


@dataclass
class Row:
    name: str
    prefix: object = as_it_is    # a function of the situation: what stands before the session
    user: tuple = ()             # behind that
    refused: tuple = ()          # a system call and its error, by a filter
    engine: str = "ptrace"
    notes: tuple = ()            # what the notes of record say
    dump: str = ""               # the last lines of dump; of its message, where it fails
    dump_status: int = 0
    doctor: tuple = ()           # findings that are "no", and what is said of them
    level: object = None         # what kernel.perf_event_paranoid must be here

    def __str__(self):
        return self.name


ROWS = [
    Row("an ordinary user", user=NOBODY, level=2, engine="perf", notes=(HELD + KERNEL + PERFMON,), dump="by ptrace: " + NO_BPF,
        doctor=((HIDDEN, PERFMON), (SAVED, "have CAP_PERFMON and CAP_BPF (stillframe doctor --setcap)"))),
    Row("an ordinary user at level 3", level(3), NOBODY, ("perf_event_open", errno.EACCES), dump="by ptrace: " + NO_BPF,
        notes=("kernel.perf_event_paranoid is 3: " + PERFMON,), doctor=((EVENTS, "is 3: " + PERFMON), (EVENTS, "perf_event_paranoid=2"))),
    Row("an ordinary user at level 4", level(4), NOBODY, ("perf_event_open", errno.EACCES), dump="by ptrace: " + NO_BPF,
        notes=("kernel.perf_event_paranoid is 4: " + PERFMON,), doctor=((EVENTS, "is 4: " + PERFMON),)),
    Row("a filter refuses perf events", refused=("perf_event_open", errno.EPERM), notes=("stillframe has CAP_PERFMON: " + FILTER,), dump="by bpf",
        doctor=((EVENTS, FILTER),)),
    Row("a filter refuses BPF", refused=("bpf", errno.EPERM), engine="perf", dump="by ptrace: " + NO_BPF,
        notes=("held only where these were needed, at most once for each sleep: " + NO_BPF, FILTER), doctor=((SAVED, FILTER),)),
    Row("a filter refuses ptrace", refused=("ptrace", errno.EPERM), engine="perf", dump=FILTER.replace("a ", "A ", 1), dump_status=1,
        doctor=(("engine ptrace", FILTER),)),
    Row("a filter refuses ptrace to an ordinary user", user=NOBODY, refused=("ptrace", errno.EPERM), engine="perf", level=2,
        notes=("by perf, since a better engine does not work here: cannot stop thread", "refuses ptrace to stillframe",
               "time in the kernel was not sampled, and is a loss; sleeping threads were looked at some times a second: " + KERNEL + PERFMON),
        dump=FILTER.replace("a ", "A ", 1), dump_status=1, doctor=(("engine ptrace", FILTER), (HIDDEN, PERFMON))),
    Row("a kernel without BTF", without_btf, refused=("bpf", errno.EINVAL), engine="perf", notes=("it needs CONFIG_DEBUG_INFO_BTF",),
        dump="by ptrace: " + NO_BPF, doctor=((SAVED, "CONFIG_DEBUG_INFO_BTF"),)),
    Row("a PID namespace", pid_namespace, engine="perf", dump="by bpf", notes=("wakings of threads were not recorded", FIRST),
        doctor=((WAKINGS, FIRST),)),
    Row("another root folder", root_folder, engine="perf", dump="by bpf", notes=("wakings of threads were not recorded", FIRST),
        doctor=((WAKINGS, FIRST),)),
    Row("a user namespace", user_namespace, level=2, engine="perf", notes=(HELD + KERNEL + OUTSIDE,), dump="by ptrace: " + NO_BPF,
        doctor=((HIDDEN, OUTSIDE), (SAVED, OUTSIDE + " and CAP_BPF"))),
    Row("50 MB and a tenth of a CPU", control_group, engine="perf", dump="by bpf"),
]


# --- control groups ------------------------------------------------------------------------------


def mounted(kind, option=""):
    """Where control groups are mounted: those of version 2, or those of a controller of version 1."""
    for line in open("/proc/self/mounts"):
        words = line.split()
        if words[2] == kind and (not option or option in words[3].split(",")):
            return words[1]
    return None


def own_group(controller):
    """The path of this process in a hierarchy of version 1."""
    for line in open("/proc/self/cgroup"):
        _, names, path = line.strip().split(":", 2)
        if controller in names.split(","):
            return path.lstrip("/")
    return ""


def make_group(parent, files):
    path = os.path.join(parent, "stillframe-test-%d" % os.getpid())
    os.mkdir(path)
    for name, text in files:
        with open(os.path.join(path, name), "w") as file:
            file.write(text)
    return path


def make_groups():
    """The folders of new control groups: one of version 2, or one for each controller of version 1, below those that this process is in."""
    made, unified = [], mounted("cgroup2")
    try:
        if unified and {"cpu", "memory"} <= set((read(unified + "/cgroup.controllers") or "").split()):
            with open(unified + "/cgroup.subtree_control", "w") as file:
                file.write("+cpu +memory")
            made.append(make_group(unified, [("cpu.max", "10000 100000"), ("memory.max", "50M")]))
        else:
            for controller, files in (("cpu", [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "10000")]),
                                      ("memory", [("memory.limit_in_bytes", "50M")])):
                made.append(make_group(os.path.join(mounted("cgroup", controller) or "/none", own_group(controller)), files))
    except OSError as error:
        remove(made)
        pytest.skip("no control group with limits can be made here: %s" % error)
    return made


def remove(groups):
    for group in groups:
        os.rmdir(group)


# --- the table -----------------------------------------------------------------------------------


class Situation:
    def __init__(self, everybodys, tmp_path):
        self.folder = self.seen_as = everybodys.folder
        self.environment, self.tmp_path, self.groups = everybodys.environment, tmp_path, []

    def run(self, row):
        """What was said by each command: {name: Done}."""
        command = [*row.prefix(self), *row.user, "sh", "-c", SESSION, "sh", self.seen_as, *self.groups]
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/",
                                   env=self.environment, preexec_fn=lambda: row.refused and refuse(*row.refused))
        said, _ = hanging.finish(process, 60)
        return {name: self.done(name, said) for name in ("record", "dump", "doctor")}

    def done(self, name, said):
        out, err, status = (read(os.path.join(self.folder, "%s.%s" % (name, end))) for end in ("out", "err", "status"))
        assert status, "%s did not run: %s" % (name, said)
        return Done([name], int(status), out, err)


@pytest.fixture
def situation(everybodys, tmp_path):
    need("unshare", "mount", "chroot")
    everybodys.stillframe()
    everybodys.program("many_threads")
    made = Situation(everybodys, tmp_path)
    yield made
    remove(made.groups)


def words(text):
    return " ".join(text.split())


def check_record(row, done, recording):
    assert done.status == 0 and re.search(r"\(pid \d+, %d threads\) by %s$" % (1 + SPINNERS + SLEEPERS, row.engine), done.err, re.M), done
    notes = [note for note in recording.rows("SELECT text FROM notes")]
    assert len(notes) == done.err.count("\n  note  ") and bool(notes) == bool(row.notes), (done, notes)
    assert all(note in words(done.err) for note in row.notes), done
    recording.assert_accounts()
    seen, lost, counted = recording.cpu()
    assert counted > CPU_TICKS / 200 and seen > 0.5 * counted, (done, seen, lost, counted)
    assert recording.total_shares()["spinner"] > 0.9, recording.total_shares()
    asleep = recording.total_shares("wall_ns")
    assert all("sleep_in_" + call in asleep for call in ("futex", "poll", "read", "nanosleep")), asleep


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_few_rights(situation, row):
    if row.level not in (None, paranoid()):
        pytest.skip("kernel.perf_event_paranoid is not %d" % row.level)
    done = situation.run(row)
    check_record(row, done["record"], Recording(os.path.join(situation.folder, "r.sfr")))
    assert done["dump"].status == row.dump_status and row.dump in (done["dump"].err if row.dump_status else done["dump"].out), done["dump"]
    assert row.dump_status or all(name in done["dump"].out for name in ("spinner", "sleep_in_poll", "sleep_in_futex")), done["dump"]
    for what, text in row.doctor:
        good, said = finding(done["doctor"].ok(), what)
        assert good == "no" and text in said, done["doctor"]
    if not row.doctor:
        assert all(finding(done["doctor"].ok(), what)[0] == "ok" for what in (HIDDEN, SAVED)), done["doctor"]


def test_without_bpf_a_sleeper_is_held_once(stillframe, target, tmp_path):
    """For the registers that its walk needs: by perf, as by ptrace. Once for the sleep, and not once for each look."""
    need_root()
    t = target("sleeper_O0", "poll", "pointer").falls_asleep()
    done = stillframe.record_until(tmp_path / "r.sfr", lambda path: samples_so_far(path) > 2, "-e", "auto", "-p", t.pid,
                                   preexec_fn=lambda: refuse("bpf", errno.EPERM))
    recording = Recording(tmp_path / "r.sfr")
    assert "by perf\n" in done.err and recording.value("SELECT sum(count) FROM holds") == 1, done
    whole, n = recording.rows("SELECT sum(e.word = 'root'), count(*) FROM samples s JOIN ends e ON e.id = s.\"end\"")[0]
    assert n > 2 and whole >= n - 1, done

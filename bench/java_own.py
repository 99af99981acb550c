#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What stillframe itself spends on a sample of a JVM by ptrace: CPU time of its two threads, and system calls (`perf stat`
counts them), for each hold. javac compiles the same tree again and again in one JVM, and each program given records it
for some seconds, in turns: so two builds are compared on the same work, however busy the machine is.

java_own.py [ROUNDS [SECONDS [STILLFRAME...]]]"""
import signal

from java_common import *

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 3
PROGRAMS_COMPARED = sys.argv[3:] or [STILLFRAME]
WARM = 20       # seconds, until most of javac is compiled
CALLS = ["process_vm_readv", "pread64", "ptrace", "wait4"]
EVENTS = ["syscalls:sys_enter_" + call for call in CALLS] + ["raw_syscalls:sys_enter", "context-switches"]


def cpu_of(pid):
    """ns of each thread, in the order in which they were started: the main one, the one that walks, the one that holds."""
    folder = "/proc/%d/task/" % pid
    return [int(open(folder + tid + "/schedstat").read().split()[0]) for tid in sorted(os.listdir(folder), key=int)]


def counted(pid):
    """What the threads of a process did in some seconds: ({event: number}, ns of each)."""
    said = new_file("stat")
    counting = subprocess.Popen(["perf", "stat", "-x,", "-e", ",".join(EVENTS), "-p", str(pid), "-o", said])
    time.sleep(0.3)
    before = cpu_of(pid)
    time.sleep(SECONDS)
    spent = [after - first for first, after in zip(before, cpu_of(pid))]
    counting.send_signal(signal.SIGINT)
    counting.wait()
    lines = [line.split(",") for line in open(said) if line[0].isdigit()]
    return {line[2]: int(line[0]) for line in lines}, spent


def recorded(program, pid):
    """For each hold: us of the thread that walks, of the one that holds, of all; calls."""
    process = subprocess.Popen([program, "record", "-p", str(pid), "-e", "ptrace", "-F", "1000hz", "--clock", "cpu", "-q",
                                "-o", new_file("sfr")])
    time.sleep(1)
    number, spent = counted(process.pid)
    process.send_signal(signal.SIGINT)
    process.wait()
    holds = number[EVENTS[CALLS.index("ptrace")]] / 4   # asked for twice, registers, let go
    return [spent[1] / 1000 / holds, spent[2] / 1000 / holds, sum(spent) / 1000 / holds,
            *(number[event] / holds for event in EVENTS)]


what, words = source_tree()
with Target(*again_and_again(words), wait=WARM, stdout=subprocess.DEVNULL) as target:
    turns = [[recorded(program, target.pid) for program in PROGRAMS_COMPARED] for _ in range(ROUNDS)]
middles = [[median(column) for column in zip(*(turn[i] for turn in turns))] for i in range(len(PROGRAMS_COMPARED))]
heads = ["the thread that walks, us", "the one that holds, us", "all, us", *CALLS, "all system calls", "context switches"]
table("What a hold of javac (%s) costs stillframe, medians of %d rounds of %g s" % (what, ROUNDS, SECONDS),
      [[head, *("%.1f" % each[i] for each in middles), "%.2f" % (middles[-1][i] / middles[0][i])] for i, head in enumerate(heads)],
      ["for each hold", *PROGRAMS_COMPARED, "last / first"])
clean()

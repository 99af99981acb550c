#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares stillframe's stacks with gdb's and eu-stack's on the same threads that do not move.

Each program (situations.py) is stopped at random moments, or sleeps; all three look at it; /proc proves
that no thread moved between the first look and the last. A frame is equal when its address is, and its
function's name (other names of the same symbol count as equal and are counted apart). Inlined functions are
frames. Where stillframe and a judge differ, the third judge says who is right. Every difference is printed with what kind it is and with whom the third judge agrees.

Exit status: 0 if enough is equal, 1 if not, 2 for a failure of the comparison itself.
"""
import argparse
import collections
import difflib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../e2e")]
import hanging
import judges
from situations import situations

ENOUGH = 99.9


# --- a target that can be stopped ----------------------------------------------------------------


def tasks(pid):
    return sorted(int(tid) for tid in os.listdir("/proc/%d/task" % pid))


def state(tid):
    with open("/proc/%d/stat" % tid) as file:
        return file.read().rpartition(")")[2].split()[0]


def cpu_ticks(pid):
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def where(pid):
    """Where every thread stands: the proof that it did not move. Its stack and instruction pointers, and how
    often it was switched onto a CPU of its own will."""
    places = {}
    for tid in tasks(pid):
        with open("/proc/%d/task/%d/syscall" % (pid, tid)) as file:
            places[tid] = " ".join(file.read().split()[-2:])
    return places


class Target:
    def __init__(self, situation):
        self.situation = situation
        self.process = None

    def start(self):
        situation = self.situation
        self.process = subprocess.Popen(situation.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env={**os.environ, **situation.environment})
        if situation.says_ready:
            line = hanging.Lines(self.process.stdout).next(120)
            if line != "ready\n":
                raise judges.JudgeFailed("%s did not get ready: %r" % (situation.command[0], line))
        time.sleep(situation.settle)
        if situation.asleep:
            self.until(lambda: all(state(tid) == "S" for tid in tasks(self.pid)), "fall asleep")
        else:
            self.leave_start()

    def leave_start(self):
        """On a busy machine it may still be in the call by which it said that it is ready, in a C library without unwind data:
        no judge can be trusted there."""
        start = cpu_ticks(self.pid)
        self.until(lambda: self.process.poll() is not None or cpu_ticks(self.pid) > start + 1, "go on")

    @property
    def pid(self):
        return self.process.pid

    def until(self, condition, what):
        end = time.monotonic() + 10
        while not condition():
            if time.monotonic() > end:
                raise judges.JudgeFailed("%s did not %s" % (self.situation.name, what))
            time.sleep(0.001)

    def hold(self):
        """Stops it at a random moment."""
        if self.situation.asleep:
            return
        time.sleep(random.uniform(0.001, 0.03))
        if self.situation.restarts and self.process.poll() is not None:
            self.end()
            self.start()
        os.kill(self.pid, signal.SIGSTOP)
        self.until(lambda: all(state(tid) == "T" for tid in tasks(self.pid)), "stop")

    def let_go(self):
        if not self.situation.asleep:
            os.kill(self.pid, signal.SIGCONT)

    def end(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait(60)
            self.process.stdout.close()


# --- comparing -----------------------------------------------------------------------------------


class Tally:
    """Sums for one situation and one judge."""

    def __init__(self):
        self.stacks = self.whole = self.frames = self.equal = self.alias = self.unnamed = self.against = 0
        self.differences = collections.Counter()
        self.examples = {}

    def percent(self):
        return 100.0 * self.equal / self.frames if self.frames else 0.0

    def percent_with_third(self):
        """Counting those as equal in which the other judge sees what we see."""
        return 100.0 * (self.frames - self.against) / self.frames if self.frames else 0.0


def kind_of(ours, theirs, our_end, their_end, at_foot):
    """What sort of difference a stretch of unequal frames is."""
    if not ours and at_foot:
        return "ours ends earlier (%s)" % our_end
    if not theirs and at_foot:
        return "the judge ends earlier (%s)" % their_end
    our_pcs, their_pcs = [f.pc for f in ours], [f.pc for f in theirs]
    if our_pcs == their_pcs:
        return "name"
    if set(our_pcs) == set(their_pcs):
        return "inlined calls"
    if not ours:
        return "the judge has more"
    if not theirs:
        return "ours has more"
    return "other frames"


def stretches(ours, theirs):
    """Where the two lists differ: (i1, i2, j1, j2). The rest is equal, pairwise."""
    start = 0
    while start < min(len(ours), len(theirs)) and judges.same(ours[start], theirs[start]):
        start += 1
    foot = 0
    while (foot < min(len(ours), len(theirs)) - start
           and judges.same(ours[-1 - foot], theirs[-1 - foot])):
        foot += 1
    a, b = ours[start:len(ours) - foot], theirs[start:len(theirs) - foot]
    if not a and not b:
        return []
    if len(a) * len(b) > 1000000:
        return [(start, len(ours) - foot, start, len(theirs) - foot)]
    matcher = difflib.SequenceMatcher(None, [(f.pc, judges.plain(f.name or "")) for f in a],
                                      [(f.pc, judges.plain(f.name or "")) for f in b], autojunk=False)
    return [(start + i1, start + i2, start + j1, start + j2)
            for tag, i1, i2, j1, j2 in matcher.get_opcodes()
            if tag != "equal" and not (i2 - i1 == j2 - j1 and all(
                judges.same(x, y) for x, y in zip(a[i1:i2], b[j1:j2])))]


def show(frames):
    return ", ".join("%s@%#x" % (f.name or "?", f.pc) for f in frames[:6]) or "nothing"


def ends_rightly(stack, at, may_end):
    """Whether our stack ends, with no rule, behind a function whose caller may be gone."""
    return bool(may_end and at == len(stack.frames) and stack.end == "no-rule" and re.search(may_end, stack.frames[-1].name or ""))


def compare(ours, theirs, third, tally, may_end=""):
    """Adds the comparison of two stacks to the tally. `third`: the other judge's stack, or None. `may_end`: the situation's."""
    differing = stretches(ours.frames, theirs.frames)
    wrong = sum(max(i2 - i1, j2 - j1) for i1, i2, j1, j2 in differing)
    equal = len(ours.frames) - sum(i2 - i1 for i1, i2, _, _ in differing)
    tally.stacks += 1
    tally.whole += not differing
    tally.frames += equal + wrong
    tally.equal += equal
    if not differing:
        for mine, its in zip(ours.frames, theirs.frames):
            how = judges.names_agree(mine, its)
            tally.alias += how == "alias"
            tally.unnamed += how == "unnamed"
    for i1, i2, j1, j2 in differing:
        a, b = ours.frames[i1:i2], theirs.frames[j1:j2]
        at_foot = i2 == len(ours.frames) and j2 == len(theirs.frames)
        kind = kind_of(a, b, ours.end, theirs.end, at_foot)
        if third is not None:
            with_us = not stretches(ours.frames, third.frames)
            with_judge = not stretches(theirs.frames, third.frames)
            kind += "; the third judge sees " + ("what we see" if with_us else "what the judge sees" if with_judge
                                                 else "something else")
        tally.differences[kind] += max(len(a), len(b))
        # A difference stands against us unless the third judge sees what we see, or nobody can.
        if not kind.endswith("sees what we see") and not ends_rightly(ours, i1, may_end):
            tally.against += max(len(a), len(b))
        before = show(ours.frames[max(0, i1 - 1):i1])
        tally.examples.setdefault(kind, "after %s: ours %s | judge %s" % (before, show(a), show(b)))


def without_beginning(stack, name, others):
    """Without the frame of this function at the stack's end, which none of the others has."""
    only_ours = name and stack.frames and stack.frames[-1].name == name and not any(
        judges.same(stack.frames[-1], frame) for other in others for frame in other.frames)
    return stack._replace(frames=stack.frames[:-1]) if only_ours else stack


def is_back(pid, before):
    """Whether every thread stands where it stood. One that was stopped in a call goes on with it when it gets a CPU."""
    until = time.monotonic() + 2
    while where(pid) != before:
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def look(target, options):
    """What each judge says of one moment; None if a thread moved meanwhile."""
    before = where(target.pid)
    seen = {}
    if options.stillframe:
        seen["stillframe"] = judges.by_stillframe(target.pid, options.stillframe)
    seen["gdb"] = judges.by_gdb(target.pid)
    seen["eu-stack"] = judges.by_eu_stack(target.pid)
    return seen if is_back(target.pid, before) else None


def most_moved(moments):
    """Moments in which a target may move, so that they are of no use: others take their place."""
    return max(1, moments // 10)


def judge_situation(situation, options):
    """{judge: Tally}, and how many moments were of no use."""
    candidate = "stillframe" if options.stillframe else "eu-stack"
    others = ["gdb", "eu-stack"] if options.stillframe else ["gdb"]
    tallies, moved = {other: Tally() for other in others}, 0
    moments = 1 if situation.asleep else options.moments
    target = Target(situation)
    try:
        target.start()
        for tried in range(moments + most_moved(moments)):
            if tried - moved == moments:
                break
            target.hold()
            seen = look(target, options)
            if seen is None:
                moved += 1
            else:
                threads = set.intersection(*(set(stacks) for stacks in seen.values()))
                if threads != set.union(*(set(stacks) for stacks in seen.values())) or len(threads) < situation.threads:
                    raise judges.JudgeFailed("they see other threads: %s" % {
                        judge: len(stacks) for judge, stacks in seen.items()})
                for tid in threads:
                    ours = without_beginning(seen[candidate][tid], situation.beginning, [seen[other][tid] for other in others])
                    for other in others:
                        third = seen[{"gdb": "eu-stack", "eu-stack": "gdb"}[other]][tid] if options.stillframe else None
                        compare(ours, seen[other][tid], third, tallies[other], situation.may_end)
            target.let_go()
    finally:
        target.end()
    return tallies, moved


def judged(situation, options):
    """(situation, what judge_situation says of it, else the error)."""
    try:
        return situation, judge_situation(situation, options), None
    except judges.JudgeFailed as error:
        return situation, None, error


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stillframe", help="the program; without it, eu-stack is compared with gdb")
    parser.add_argument("--programs", required=True, help="the build's tests/programs")
    parser.add_argument("--moments", type=int, default=50, help="how often each moving program is stopped (50)")
    parser.add_argument("--only", default="", help="regular expression on the names of situations")
    parser.add_argument("--brief", action="store_true", help="only those of the short form of the tests")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="so many situations at once (1)")
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    random.seed(options.seed)

    figures, sums, failures, unexplained = [], collections.defaultdict(Tally), [], []
    row = "%-38s %-9s %6s %8s %8s %8s %6s %7s"
    print(row % ("situation", "judge", "stacks", "frames", "equal %", "or by 3rd", "alias", "unnamed"))
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.jobs) as workers:
        wanted = [each for each in situations(os.path.abspath(options.programs), scratch)
                  if re.search(options.only, each.name) and (each.brief or not options.brief)]
        skips = ["%s: %s" % (each.name, each.missing) for each in wanted if each.missing]
        possible = [each for each in wanted if not each.missing]
        for situation, result, error in workers.map(lambda each: judged(each, options), possible):
            if error:
                failures.append("%s: %s" % (situation.name, error))
                continue
            tallies, moved = result
            if moved > most_moved(options.moments):
                failures.append("%s: moved in %d moments" % (situation.name, moved))
            for judge, tally in tallies.items():
                print(row % (situation.name, judge, tally.stacks, tally.frames, "%.3f" % tally.percent(),
                             "%.3f" % tally.percent_with_third(), tally.alias, tally.unnamed), flush=True)
                for kind, frames in tally.differences.most_common():
                    print("    %d frames: %s\n        %s" % (frames, kind, tally.examples[kind]))
                total = sums[judge]
                for name in ("stacks", "whole", "frames", "equal", "alias", "unnamed", "against"):
                    setattr(total, name, getattr(total, name) + getattr(tally, name))
                figures.append({"situation": situation.name, "judge": judge, "stacks": tally.stacks,
                                "whole": tally.whole, "frames": tally.frames, "equal": tally.equal, "against": tally.against,
                                "differences": dict(tally.differences), "examples": tally.examples})
                if tally.percent_with_third() < situation.least or (situation.may_end and tally.percent() < situation.least_shown):
                    unexplained.append("%s: %d of %d frames differ from %s, and the third judge does not see what "
                                       "we see" % (situation.name, tally.against or tally.frames - tally.equal, tally.frames, judge))
    for judge, tally in sums.items():
        print(row % ("all", judge, tally.stacks, tally.frames, "%.3f" % tally.percent(),
                     "%.3f" % tally.percent_with_third(), tally.alias, tally.unnamed))
    for text in skips:
        print("skipped: " + text)
    for text in failures:
        print("failed: " + text)
    for text in unexplained:
        print("not equal: " + text)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"figures": figures, "skips": skips, "failures": failures, "not equal": unexplained}, file,
                      indent=1)
    if failures or not figures:
        return 2
    return 0 if not unexplained and all(tally.percent_with_third() >= ENOUGH for tally in sums.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

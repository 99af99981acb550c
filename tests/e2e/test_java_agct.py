# SPDX-License-Identifier: Apache-2.0
"""--java-walk=agct: the Java virtual machine's own AsyncGetCallTrace beside our walk of the same held thread, and its refusals."""
import collections
import json
import os
import re
import sqlite3
import subprocess
import sys

import pytest

from conftest import AGENT, STILLFRAME, until
from java_stacks import BUSY, JAVA, QUIET, jdk  # noqa: F401 (a fixture)

@pytest.fixture(autouse=True)
def known(jdk):  # noqa: F811
    if jdk.version > 25:
        pytest.skip("--java-walk=agct is for JDK 25 and older (docs/hotspot.md)")


pytestmark = pytest.mark.skipif(not os.path.exists(AGENT), reason="the agent is not built here")
# STILLFRAME names the program under test here, and would be the agent's options there.
PLAIN = {name: value for name, value in os.environ.items() if name != "STILLFRAME"}


class Twins:
    """The pairs of a recording with --java-walk=both: (thread, our frames, our end, its frames, its end),
    in the order of time.

    A frame is ([(method, line), ...], kind, via), inlined methods first."""

    def __init__(self, path):
        db = sqlite3.connect(path)
        words = {table: dict(db.execute("SELECT id, word FROM %s" % table)) for table in ("ends", "vias", "kinds")}
        self.names = collections.defaultdict(list)
        for frame, name, line in db.execute("SELECT frame, name, line FROM frame_names ORDER BY frame, seq"):
            self.names[frame].append((name, line))
        self.frames = {frame: (self.names[frame], words["kinds"][kind], words["vias"][via])
                       for frame, kind, via in db.execute("SELECT id, kind, via FROM frames")}
        self.nodes = {node: (parent, frame) for node, parent, frame in db.execute("SELECT id, parent, frame FROM stacks")}
        moments = collections.defaultdict(list)
        for thread, time, stack, end, cpu in db.execute('SELECT thread, time_ns, stack, "end", cpu_ns FROM samples ORDER BY id'):
            moments[thread, time].append((self.stack(stack), words["ends"][end], cpu))
        self.all = []
        for (thread, _), both in sorted(moments.items(), key=lambda moment: moment[0][1]):
            if len(both) == 2:
                ours, its = both
                assert its[2] == 0, "the second one stands for time"
                self.all.append((thread, *ours[:2], *its[:2]))

    def stack(self, node):
        found = []
        while node:
            node, frame = self.nodes[node]
            found.append(self.frames[frame])
        return found


def methods(frames):
    return [method for names, kind, _ in frames if kind in (*JAVA, "java") for method in names]


def compare(ours, its):
    """How two walks of one moment agree; the words are those of docs/hotspot.md."""
    java = [frame for frame in ours if frame[1] in JAVA]
    if methods(ours) == methods(its):
        return "same"
    (names, kind, via), below = java[0], methods(java[1:])
    theirs = methods(its)
    above = theirs[:len(theirs) - len(below)]
    if above and theirs[len(above):] == below and above[-1][0] == names[-1][0]:
        if kind in ("c1", "c2"):
            return "innermost"
        if via == "leaf" and len(above) == 1:
            return "bytecode"
    if kind == "interpreted" and via == "leaf" and theirs == below:
        return "entry"
    rethrows = any("rethrow" in method for frame in ours[:3] for method, _ in frame[0])
    if rethrows and theirs and any(theirs == methods(java[i:]) for i in range(1, len(java))):
        return "skipped"
    # It takes the interrupted method's caller for that method's own frame, and leaves one out.
    if via == "leaf" and kind in ("c1", "c2") and theirs and theirs[0][0] == names[0][0] and \
            any(theirs[-len(rest):] == rest for rest in [methods(java[2:])] if rest):
        return "caller"
    return "other"


def test_both_walks_of_the_same_moment(stillframe, target, jdk, tmp_path):
    """Wherever it answers, names and lines are ours, but for what docs/hotspot.md explains; each refusal is an end by name."""
    t = target(jdk.java(QUIET, "Demo", *BUSY), env=PLAIN)
    path = str(tmp_path / "both.sfr")
    stillframe.record_until(path, 4000, "-p", t.pid, "-e", "signal", "--walk", "handler", "--java-walk", "both",
                            "--clock", "cpu", "-F", "997hz")
    t.assert_moves()
    t.process.terminate()   # so that it takes its attach socket with it
    assert t.finish()[0] == 143
    asked, found, others, known = 0, collections.Counter(), [], set()
    for thread, ours, end, its, answer in Twins(path).all:
        if not any(frame[1] in JAVA for frame in ours):
            continue
        was_known = thread in known
        if answer.startswith("agct-") or any(via == "asked" for _, _, via in its):
            known.add(thread)
        elif not was_known:
            found["before it was known"] += 1   # soon after the beginning, on a busy machine later
            continue
        asked += 1
        if answer.startswith("agct-"):
            found[answer] += 1
        elif not any(via == "asked" for _, _, via in its):
            found["not asked"] += 1
        elif end != "root":
            found["ours: " + end] += 1
        else:
            how = compare(ours, its)
            found[how] += 1
            if how == "other":
                others.append(([frame[0] for frame in ours[:5]], [frame[0] for frame in its[:5]]))
    print("jdk%d: %d moments %s" % (jdk.version, asked, dict(found)), file=sys.stderr)
    assert asked > 400 and found["same"] > 0.2 * asked, found
    answered = sum(found[how] for how in ("same", "innermost", "bytecode", "caller", "entry", "skipped", "other"))
    assert answered > 0.4 * asked, found
    for rare in ("caller", "bytecode", "entry", "skipped"):
        assert found[rare] <= 0.05 * answered + 2, (rare, found)
    assert found["other"] <= 0.005 * answered + 1, (found, others[:5])
    # Once it is known that a thread is Java's, it is asked.
    assert found["not asked"] <= 0.02 * asked + 2, found


def test_from_the_start(jdk, target, tmp_path):
    """-agentpath: ids of methods and names of threads from the machine's first class on, and an orderly end."""
    out = tmp_path / "a.sfs"
    options = "out=%s,rate=499hz,clock=cpu,walk=handler,java-walk=agct,threads=^worker-with-a-long-name-chain$" % out
    t = target(jdk.java([*QUIET, "-agentpath:%s=%s" % (AGENT, options)], "Demo", "chain", "fib"), env=PLAIN)
    until(t.uses(2), "both threads have run for a while", 60)
    t.process.terminate()
    status, said = t.finish()
    assert (status, said) == (143, "ready\n")
    done = subprocess.run([STILLFRAME, "report", "--json", str(out)], capture_output=True, text=True, timeout=60)
    report = json.loads(done.stdout)
    # Fifteen bytes, as the system has it, would not match.
    assert {thread["name"] for thread in report["threads"]} == {"worker-with-a-long-name-chain"}, report["threads"]
    java = {function["name"]: function for function in report["functions"] if function["kind"] == "java"}
    assert any(re.match(r"Demo\.c\d\(int\)", name) for name in java), java
    assert "Demo.chain()" in java and "Demo.fib()" not in java, java
    assert report["recording"]["complete"], report["recording"]


def test_refusals(stillframe, target, jdk, tmp_path):
    """One clear message each: with the sampler's walk, and where no machine has loaded the agent."""
    t = target(jdk.java([], "Demo", "chain"), env={**PLAIN, "LD_PRELOAD": AGENT, "STILLFRAME": "listen"})
    done = stillframe("record", "-p", t.pid, "-e", "signal", "--java-walk", "agct", "-d", "1s").fails(2)
    assert "needs --walk handler" in done.err, done
    done = stillframe("record", "-p", t.pid, "-e", "signal", "--java-walk", "agct", "--walk", "handler", "-d", "1s").fails()
    assert "no Java virtual machine has loaded the agent" in done.err, done
    done = stillframe("record", "-p", t.pid, "-e", "ptrace", "--java-walk", "agct", "--walk", "handler", "-d", "1s").fails(2)
    assert "for --engine signal" in done.err, done
    t.assert_moves()

# SPDX-License-Identifier: Apache-2.0
"""--java-walk=agct: the Java virtual machine's own AsyncGetCallTrace beside our walk of the same held thread, and its refusals."""
import collections
import itertools
import json
import re
import sqlite3
import sys

import pytest

import hanging
from conftest import AGENT, LONG, PLAIN, STILLFRAME, needs_agent
from processes import until
from java_stacks import BUSY, JAVA, JDKS, LOADS, QUIET, jdk  # noqa: F401 (a fixture)

@pytest.fixture(autouse=True)
def known(jdk):  # noqa: F811
    if jdk.version > 25:
        pytest.skip("--java-walk=agct is for JDK 25 and older (docs/hotspot.md)")


pytestmark = needs_agent


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


def same_above(java, theirs, below):
    """How the innermost frames differ, where all below them is the same; None: otherwise."""
    names, kind, via = java[0]
    above = theirs[:len(theirs) - len(below)]
    if not above or theirs[len(above):] != below or above[-1][0] != names[-1][0]:
        return None
    if kind in ("c1", "c2"):
        return "innermost"
    return "bytecode" if via == "leaf" and len(above) == 1 else None


def without_the_entered(ours, java):
    """What it says while an interpreted method's frame is being made, or is gone already: the frame pointer is still the one
    below, and where compiled code between them leaves it alone, the one of the next interpreted method."""
    if (ours[0][1], ours[0][2], ours[0][0][0][0]) == ("stub", "leaf", "Interpreter"):
        below = java
    elif java[0][1:] == ("interpreted", "leaf"):
        below = java[1:]
    else:
        return []
    interpreted = itertools.dropwhile(lambda frame: frame[1] in ("c1", "c2"), below)
    return [methods(below), methods(interpreted)]


def compare(ours, its):
    """How two walks of one moment agree; the words are those of docs/hotspot.md."""
    java = [frame for frame in ours if frame[1] in JAVA]
    theirs, all_ours = methods(its), methods(ours)
    if all_ours == theirs:
        return "same"
    (names, kind, via), below = java[0], methods(java[1:])
    how = same_above(java, theirs, below)
    if how:
        return how
    if theirs in without_the_entered(ours, java):
        return "entry"
    if ours[0][1:] == ("native", "leaf") and theirs and theirs == below:
        return "skipped"
    if any("rethrow" in method for frame in ours[:3] for method, _ in frame[0]) and theirs and \
            any(theirs == methods(java[i:]) for i in range(1, len(java))):
        return "skipped"
    # While a virtual thread's frames are moved to the heap, they are none of the stack's for it.
    if names[0][0].startswith("jdk.internal.vm.Continuation.doYield") and theirs and \
            theirs[0][0].startswith("jdk.internal.vm.Continuation.enterSpecial") and all_ours[-len(theirs):] == theirs:
        return "unmounting"
    # It ends at a compiled frame, which may be the innermost (described as above), and does not say so.
    for n in range(1, len(java)):
        if java[n][1] in ("c1", "c2") and len(theirs) < len(all_ours) and \
                (methods(java[:n]) == theirs or same_above(java[:n], theirs, methods(java[1:n]))):
            return "ended"
    # It takes the interrupted method's caller for that method's own frame, and leaves one out; or goes on by what it finds there.
    if via == "leaf" and kind in ("c1", "c2") and theirs and theirs[0][0] == names[0][0]:
        rest = methods(java[2:])
        return "caller" if rest and theirs[-len(rest):] == rest else "lost"
    return "other"


# name: (since which JDK, of which JDKs in the short suite, options, ticks). None: of all.
# A virtual thread mostly stands in code that others are inlined into, which is exact with these flags.
TWIN_LOADS = {
    "default": (8, None, [], 4000 if LONG else 1200),
    "deoptimization-storm": (17, [17], LOADS["deoptimization-storm"][2], 3000),
    "zgc": (15, [], ["-XX:+UseZGC"], 3000),
    "start-up": (8, [17], [], 2000),
    "virtual": (21, [], ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"], 3000 if LONG else 1200),
}
PAIRS = [(version, load) for load, (since, short, _, _) in TWIN_LOADS.items() for version in sorted(JDKS)
         if version >= since and (LONG or short is None or version in short)] or [(None, "default")]


def count(path):
    """How all pairs of a recording compare, and those for which there is no word."""
    found, others, known = collections.Counter(), [], set()
    for thread, ours, end, its, answer in Twins(path).all:
        if not any(frame[1] in JAVA for frame in ours):
            continue
        was_known = thread in known
        if answer.startswith("agct-") or any(via == "agct" for _, _, via in its):
            known.add(thread)
        elif not was_known:
            found["before it was known"] += 1   # soon after the beginning, on a busy machine later
            continue
        if answer.startswith("agct-"):
            found[answer] += 1
        elif not any(via == "agct" for _, _, via in its):
            found["not walked by it"] += 1
        elif end != "root":
            found["ours: " + end] += 1
        else:
            how = compare(ours, its)
            found[how] += 1
            if how == "other":
                others.append(([frame[0] for frame in ours], [frame[0] for frame in its]))
    return found, others


@pytest.mark.parametrize("jdk, load", PAIRS, indirect=["jdk"], ids=lambda each: str(each))
def test_both_walks_of_the_same_moment(stillframe, target, jdk, load, tmp_path):  # noqa: F811
    """Wherever it answers, methods and bytecodes are ours, but for what docs/hotspot.md explains; each refusal is an end by name;
    the JVM lives. In the test's own classes each bytecode has a line of its own, in the JDK's lines stand for them."""
    _, _, options, ticks = TWIN_LOADS[load]
    program = ["Virtual"] if load == "virtual" else ["Demo", *BUSY]
    if load == "deoptimization-storm":
        options = [*options, "-Xbootclasspath/a:" + jdk.white_box()]
        program.append("storm")
    command = jdk.java([*QUIET, *options], *program)
    command[command.index(jdk.classes)] = jdk.by_bytecode()
    t = target(command, env=PLAIN, nice=True)
    path = str(tmp_path / "both.sfr")
    stillframe.record_until(path, ticks, "-p", t.pid, "-e", "signal", "--walk", "handler", "--java-walk", "both",
                            "--clock", "cpu", "-F", "997hz")
    t.assert_moves()
    t.process.terminate()   # so that it takes its attach socket with it
    assert t.finish()[0] == 143
    found, others = count(path)
    asked = sum(found.values()) - found["before it was known"]
    print("%s jdk%d: %d moments %s" % (load, jdk.version, asked, dict(found)), file=sys.stderr)
    assert asked > ticks // 20 and found["same"] > 0.2 * asked, found
    answered = sum(found[how] for how in ("same", "innermost", "bytecode", "caller", "lost", "entry", "skipped", "ended",
                                          "unmounting", "other"))
    assert answered > 0.4 * asked, found
    for rare in ("caller", "lost", "entry", "skipped", "ended"):
        assert found[rare] <= 0.05 * answered + 2, (rare, found)
    # In a storm most threads are in the interpreter.
    assert found["bytecode"] <= (0.6 if load == "deoptimization-storm" else 0.25) * answered, found
    assert found["unmounting"] == 0 or load == "virtual", found
    assert found["other"] <= 0.002 * answered + 1, (found, others[:5])
    # Once it is known that a thread is Java's, it is asked.
    assert found["not walked by it"] <= 0.02 * asked + 2, found


def test_from_the_start(jdk, target, tmp_path):
    """-agentpath: ids of methods and names of threads from the machine's first class on, and an orderly end."""
    out = tmp_path / "a.sfs"
    options = "out=%s,rate=499hz,clock=cpu,walk=handler,java-walk=agct,threads=^worker-with-a-long-name-chain$" % out
    t = target(jdk.java([*QUIET, "-agentpath:%s=%s" % (AGENT, options)], "Demo", "chain", "fib"), env=PLAIN)
    until(t.uses(1), "both threads have run for a while", 60)
    t.process.terminate()
    status, said = t.finish()
    assert (status, said) == (143, "ready\n")
    report = json.loads(hanging.run_well([STILLFRAME, "report", "--json", out]))
    # Fifteen bytes, as the system has it, would not match.
    assert {thread["name"] for thread in report["threads"]} == {"worker-with-a-long-name-chain"}, report["threads"]
    java = {function["name"]: function for function in report["functions"] if function["kind"] == "java"}
    assert any(re.match(r"Demo\.c\d\(int\)", name) for name in java), java
    assert "Demo.chain()" in java and "Demo.fib()" not in java, java
    assert report["recording"]["complete"], report["recording"]


@pytest.mark.alone   # the recording ends after 250 ticks, and beside others the machine may need as long to introduce itself
def test_a_preloaded_agent_finds_the_machine(stillframe, target, jdk, tmp_path):  # noqa: F811
    """Nothing has introduced the machine to it; as soon as that has started it is asked for, and its events are off again later."""
    t = target(jdk.java(QUIET, "Demo", "chain", "fib"), env={**PLAIN, "LD_PRELOAD": AGENT, "STILLFRAME": "listen"})
    for name in ("1.sfr", "2.sfr"):
        stillframe.record_until(str(tmp_path / name), 250, "-p", t.pid, "-e", "signal", "--java-walk", "both", "--walk", "handler",
                                "--clock", "cpu", "-F", "499hz")
        found, others = count(str(tmp_path / name))
        print("preloaded jdk%d: %s" % (jdk.version, dict(found)), file=sys.stderr)
        assert found["same"] > 3 and found["same"] + found["innermost"] > 20, found
        assert not found["agct-no-class-load"] and len(others) <= 1, (found, others)
    t.assert_moves()
    t.process.terminate()
    assert t.finish() == (143, "ready\n")


def test_refusals(stillframe, target, jdk, tmp_path):  # noqa: F811
    """One clear message each: with the sampler's walk, and where there is no machine, or not yet."""
    listening = {**PLAIN, "LD_PRELOAD": AGENT, "STILLFRAME": "listen"}
    t = target(jdk.java([], "Demo", "chain"), env=listening)
    done = stillframe("record", "-p", t.pid, "-e", "signal", "--java-walk", "agct", "-d", "1s").fails(2)
    assert "needs --walk handler" in done.err, done
    done = stillframe("record", "-p", t.pid, "-e", "ptrace", "--java-walk", "agct", "--walk", "handler", "-d", "1s").fails(2)
    assert "for --engine signal" in done.err, done
    t.assert_moves()
    t = target("sleeper_O0", env=listening)
    done = stillframe("record", "-p", t.pid, "-e", "signal", "--java-walk", "agct", "--walk", "handler", "-d", "1s").fails()
    assert "there is no Java virtual machine here" in " ".join(done.err.split()), done
    assert "-agentpath" in done.err and done.err.count("stillframe: ") == 1, done
    done = stillframe("record", "-e", "signal", "--java-walk", "agct", "--walk", "handler", "-o", tmp_path / "r.sfr", "--",
                      *jdk.java(["-Dend=1000"], "Demo", "chain"))
    assert "or not yet: start it with -agentpath" in " ".join(done.err.split()), done

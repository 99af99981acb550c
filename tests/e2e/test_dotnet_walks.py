# SPDX-License-Identifier: Apache-2.0
"""--dotnet-walk: walks by .NET's own DoStackSnapshot, beside ours of the same moment, and the profiler that stays for them. The program
(tests/programs/dotnet/Split.cs) spends its time in known methods."""
import collections
import os
import re
import shutil
import signal
import sqlite3
import time

import pytest

from conftest import AGENT, LONG, PLAIN, PROGRAMS, needs_agent
from dotnet_log import RuntimeLog
from processes import Target, status_of, tids_of, until
from recordings import Recording, so_far
from test_dotnet import check_listens, compile_program, mapped_in

pytestmark = needs_agent
MANAGED = ("jitted", "tier0", "tier0-counting", "tier1-counting", "osr", "tier1", "optimized", "precompiled")
START = ["System.Threading.Thread.StartHelper.RunWorker()", "System.Threading.Thread.StartHelper.Run()", "System.Threading.Thread.StartCallback()"]
CHAIN = ["Demo.Split.Round(int)"] + 6 * ["Demo.Split.Deep(int, int)"] + ["Demo.Split.Splits()", "System.Threading.Thread.StartCallback()"]
SPLIT = {"Demo.Split.Half(int)": 50, "Demo.Split.Third(int)": 30, "Demo.Split.Fifth(int)": 20}
VENDOR = {"CORECLR_ENABLE_PROFILING": "1", "CORECLR_PROFILER": "{00000000-0000-0000-0000-000000000001}",
          "CORECLR_PROFILER_PATH": PROGRAMS + "/dotnet_profiler.so"}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compile_program(tmp_path_factory.mktemp("dotnet"), "Split")


@pytest.fixture
def split(program, tmp_path):
    started = []

    def start(*arguments, **environment):
        started.append(Target(["dotnet", program, *arguments], env={**PLAIN, "TMPDIR": str(tmp_path), **environment}))
        return started[-1]
    yield start
    for target in started:
        target.end()


class Stacks:
    """The samples with CPU time of a recording: {thread's name: [[(function, kind, via), ...], ...]}, innermost first; in `pairs` those that
    were taken by both walks, as (the runtime's, ours)."""

    def __init__(self, path):
        db = sqlite3.connect(path)
        words = {table: dict(db.execute("SELECT id, word FROM %s" % table)) for table in ("ends", "vias", "kinds")}
        names = dict(db.execute("SELECT frame, name FROM frame_names ORDER BY frame, seq"))
        self.frames = {frame: (names.get(frame), words["kinds"][kind], words["vias"][via])
                       for frame, kind, via in db.execute("SELECT id, kind, via FROM frames")}
        self.exact = dict(db.execute("SELECT id, exact FROM frames"))
        self.nodes = {node: (parent, frame) for node, parent, frame in db.execute("SELECT id, parent, frame FROM stacks")}
        threads = dict(db.execute("SELECT id, name FROM threads"))
        moments, nodes = collections.defaultdict(list), collections.defaultdict(list)
        for thread, time, stack, end, cpu in db.execute('SELECT thread, time_ns, stack, "end", cpu_ns FROM samples ORDER BY id'):
            moments[thread, time].append((self.stack(stack), words["ends"][end], cpu))
            nodes[thread, time].append(stack)
        self.of, self.pairs, self.ends = collections.defaultdict(list), collections.defaultdict(list), collections.Counter()
        self.stands = collections.defaultdict(list)
        for (thread, time), taken in moments.items():
            if not taken[0][2]:
                continue
            self.of[threads[thread]].append(taken[0][0])
            self.ends[taken[0][1]] += 1
            if len(taken) == 2:
                assert taken[1][2] == 0, "the second one stands for time"
                self.pairs[threads[thread]].append((taken[0][0], taken[1][0]))
                self.stands[threads[thread]].append([self.innermost(node) for node in nodes[thread, time]])
        db.close()

    def stack(self, node):
        found = []
        while node:
            node, frame = self.nodes[node]
            found.append(self.frames[frame])
        return found

    def innermost(self, node):
        """The innermost managed frame: its function, and whether the thread stands there, and has not called."""
        while node:
            node, frame = self.nodes[node]
            if self.frames[frame][1] in MANAGED:
                return self.frames[frame][0], self.exact[frame]
        return None

    def by_runtime(self, thread, by="agct"):
        """Those that the runtime walked, or (by "hooks") that it noted by calls of hooks. Code that is newer than the agent's list of code has no name yet: a few stacks at the beginning
        are left out for it."""
        taken = [stack for stack in self.of[thread] if any(via == by and kind in MANAGED for _, kind, via in stack)]
        named = [stack for stack in taken if not any(via == by and "in no file" in name for name, _, via in stack)]
        assert len(taken) - len(named) <= 5, [stack for stack in taken if stack not in named]
        return named


def methods(stack):
    return [name for name, kind, _ in stack if kind in MANAGED]


def is_in_chain(stack, chain):
    """Whether these are the methods of the chain, or its outer ones: so where the thread has just begun. There a helper of the runtime,
    as for the first use of a static field, may be innermost."""
    own = methods(stack)
    while own and own[0].startswith("System.Runtime.CompilerServices."):
        own = own[1:]
    return own[-len(chain):] == chain[-len(own):]


def check_split(stacks, by="agct", chain=CHAIN):
    """The three methods are innermost, each as often as it uses time, below their whole chain. The standard error of a share of n samples is
    at most 50 points divided by the root of n: four times that is allowed."""
    taken = stacks.by_runtime("splits", by)
    innermost = collections.Counter(methods(stack)[0] for stack in taken)
    assert len(taken) >= 30, len(taken)
    for name, share in SPLIT.items():
        assert abs(100 * innermost[name] / len(taken) - share) < 200 / len(taken) ** 0.5, innermost
    for stack in taken:
        assert is_in_chain(stack, chain), methods(stack)


def check_native(stacks):
    """Between the method that sorts and the one that compares is libc's sorting, also where the runtime reports both. Below all are the
    native frames with which threads begin."""
    both = [stack for stack in stacks.by_runtime("sorts") if "Demo.Split.Compare(int*, int*)" in methods(stack)]
    assert both
    for stack in both:
        names = [name for name, _, _ in stack]
        between = stack[names.index("Demo.Split.Compare(int*, int*)") + 1:names.index("Demo.Split.Sort(int*, int)")]
        assert between and all(kind == "native" and ("qsort" in name or "msort" in name) for name, kind, _ in between), stack
    assert any(("Demo.Split.Compare(int*, int*)", via) in [(name, via) for name, _, via in stack] for stack in both for via in ["agct"])
    for stack in stacks.by_runtime("splits"):
        assert "clone" in stack[-1][0], stack


def check_suspension(stacks):
    """No method that polls for a suspension is in a stack, and the handler that the runtime stops threads by is not either."""
    polls = stacks.by_runtime("reads")
    assert polls and all("Demo.Split.Reads()" in methods(stack) for stack in polls), polls
    for thread in ("splits", "sorts", "reads"):
        for stack in stacks.by_runtime(thread):
            assert not any("PollGC" in (name or "") or "restore_rt" in (name or "") for name, _, _ in stack), stack


def folded(stack):
    """Its methods, of which equal neighbours in the class library are one. A finally block is a frame of its own, of the same method, by our
    walk, and has no hook: Interop.Sys.Dup(), which the first Console.WriteLine() calls, has one. The program's own methods have none, and are
    recursive."""
    names = methods(stack)
    return [name for name, caller in zip(names, [*names[1:], None]) if name != caller or name.startswith("Demo.")]


def is_entering(its, ours):
    """The thread is in a method's first or last instructions: the hook has not been called yet, or was called before."""
    return folded(its) == folded(ours)[1:]


def is_whole(ours):
    """Our walk has met no code that is newer than the agent's list of code, at which it may end."""
    return methods(ours)[-1:] == START[-1:] and not any("in no file" in name for name, _, _ in ours)


def left_by_exceptions(its):
    """Whether this is a stack of the thread "throws" without the frames that an exception has unwound. Frames of the class library, which makes exceptions
    and dispatches them, are left out."""
    own = " ".join(name.split("(")[0].removeprefix("Demo.Shadow.") for name in reversed(methods(its)) if name.startswith("Demo.Shadow."))
    return re.fullmatch(r"Throws( InCatch( (Caught|After)( Work)?| InFinally( Throw){0,3}| InFinally Cleanup(( Throw){0,2}|( Work)?))?)?", own)


def is_before_the_first(its):
    """Whether the thread's first method is being compiled."""
    return not any(name.startswith("Demo.Shadow.") for name in methods(its)) and any("libclrjit" in frame[0] for frame in its)


def rows_so_far(path, query):
    if not os.path.exists(path):
        return []
    db = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
    try:
        return db.execute(query).fetchall()
    except sqlite3.OperationalError:   # it has no tables yet
        return []
    finally:
        db.close()


def pairs_so_far(path):
    """{thread's name: moments that were taken by both walks}."""
    return dict(rows_so_far(path, "SELECT name, count(*) FROM (SELECT thread FROM samples GROUP BY thread, time_ns HAVING count(*) = 2) "
                                  "JOIN threads ON threads.id = thread GROUP BY name"))


def hooked_so_far(path):
    """Frames that hooks have noted."""
    return len(rows_so_far(path, "SELECT 1 FROM frames JOIN vias ON vias.id = via WHERE word = 'hooks'"))


def test_both_walks(stillframe, split, tmp_path):
    """Both walks of each suspended thread have the same methods in the same order."""
    target = split()
    wanted = {"splits": 40, "sorts": 5, "reads": 10}
    stillframe.record_until(str(tmp_path / "r.sfr"), lambda path: all(pairs_so_far(path).get(name, 0) >= n for name, n in wanted.items()),
                            "-p", target.pid, "-e", "signal", "--dotnet-walk", "both", "-F", "499")
    target.end()
    stacks = Stacks(tmp_path / "r.sfr")
    check_split(stacks)
    check_native(stacks)
    check_suspension(stacks)
    for thread in wanted:
        named = stacks.by_runtime(thread)
        for its, ours in stacks.pairs[thread]:
            assert its not in named or methods(its) == methods(ours), (its, ours)
    # Most are stopped by a signal within their loops. A frame that counted as a return address would have the line in front of it.
    stands = [pair for pair in stacks.stands["splits"] if None not in pair and pair[0][0] == pair[1][0]]
    assert any(ours[1] for _, ours in stands) and all(its == ours for its, ours in stands), stands
    assert stacks.ends["root"] >= 0.9 * sum(stacks.ends.values()), stacks.ends


def test_launched(stillframe, program, tmp_path, monkeypatch):
    """The runtime loads the agent at its start. All CPU time that the kernel counts is in samples or losses."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("STILLFRAME", raising=False)
    done, recording = stillframe.record(tmp_path / "r.sfr", "--engine", "signal", "--dotnet-walk", "snapshot", "-F", "199", "--", "dotnet",
                                        program, "2", timeout=100)
    done.ok()
    assert done.out == "ready\n"
    stacks = Stacks(tmp_path / "r.sfr")
    assert stacks.by_runtime("splits") and not stacks.pairs["splits"]
    for stack in stacks.by_runtime("splits"):
        assert is_in_chain(stack, CHAIN[-2:]), stack
    seen, lost, counted = (row[0] or 0 for row in recording.rows(
        "SELECT sum(cpu_ns) FROM samples UNION ALL SELECT sum(cpu_ns) FROM losses WHERE thread UNION ALL SELECT sum(cpu_counted_ns) FROM threads"))
    # What a busy machine had no turn for before the threads ended.
    gone = recording.value("SELECT coalesce(sum(cpu_ns), 0) FROM losses JOIN causes ON causes.id = cause WHERE thread AND word = 'gone'")
    assert abs(seen + lost - counted) < 0.01 * counted and seen > 0.5 * (counted - gone), (seen, lost, gone, counted)


def is_walked_by_runtime(path):
    """Whether a recording that is being written has frames by the runtime's walk."""
    return so_far(path, "max((SELECT count(*) FROM frames JOIN vias ON vias.id = via WHERE word = 'agct'))")


def are_walked_by_runtime(path):
    """Whether two threads have some samples with CPU time by the runtime's walk in a recording that is being written. Its ticks do
    not tell: on a busy machine nearly all of them are of threads that sleep."""
    walked = dict(rows_so_far(path, "SELECT name, count(*) FROM samples JOIN threads ON threads.id = thread WHERE cpu_ns > 0 "
                                    "AND stack IN (SELECT stack FROM stack_frames JOIN frames ON frames.id = frame "
                                    "JOIN vias ON vias.id = via WHERE word = 'agct') GROUP BY name"))
    return all(walked.get(name, 0) >= 10 for name in ("splits", "reads"))


def test_attached_and_detached(stillframe, split, tmp_path):
    """The profiler comes into a running program, and leaves it: twice. Between the two no thread of the agent but the listener is left,
    and a recording by our own walk loads nothing."""
    target = split()
    for name, walk in (("1.sfr", "snapshot"), ("2.sfr", "own"), ("3.sfr", "snapshot"))[:3 if LONG else 2]:
        done = stillframe.record_until(str(tmp_path / name), are_walked_by_runtime if walk == "snapshot" else 80, "-p", target.pid,
                                       "-e", "signal", "--dotnet-walk", walk, "-F", "199")
        assert ("loaded into the program" in " ".join(done.err.split())) == (name == "1.sfr"), done.err
        check_listens(target.pid)
        assert len(mapped_in(target.pid)) == 1
        stacks = Stacks(tmp_path / name)
        assert bool(stacks.by_runtime("splits")) == (walk == "snapshot")
        if walk == "snapshot":
            check_suspension(stacks)
            assert not stacks.pairs["splits"]
    target.assert_moves()
    target.process.terminate()
    assert target.finish() == (-signal.SIGTERM, "ready\n")


def test_it_detaches(stillframe, split, tmp_path):
    """The runtime itself says so, of each profile, and the next profile has its profiler as soon as that."""
    target = split()
    with RuntimeLog(tmp_path, target.pid) as log:
        for n in (1, 2):
            path = str(tmp_path / ("%d.sfr" % n))
            stillframe.record_until(path, is_walked_by_runtime, "-p", target.pid, "-e", "signal", "--dotnet-walk", "snapshot", "-F", "199")
            until(lambda: log.count("has fully detached and unloaded the profiler") == n, "the runtime has detached the profiler")
            assert log.count("The profiler was loaded successfully") >= n


@pytest.fixture
def stuck(tmp_path, tmp_path_factory):
    """(target, a function that takes it a step further)."""
    program = compile_program(tmp_path_factory.mktemp("dotnet"), "Stuck")
    end, own = os.pipe()
    target = Target(["dotnet", program], stdin=end, env={**PLAIN, "TMPDIR": str(tmp_path)})
    os.close(end)
    yield target, lambda: os.write(own, b"x")
    target.end()
    os.close(own)


def stands(pid, name):
    """Whether the thread has slept for some turns of the sampler."""
    tid = next(tid for tid in tids_of(pid) if status_of(pid, tid)["Name"] == name)

    def seen():
        status = status_of(pid, tid)
        return status["State"][0], status["voluntary_ctxt_switches"]
    before = seen()
    time.sleep(0.3)
    return before[0] == "S" and seen() == before


def names_of(pid):
    """Of its threads."""
    statuses = [status_of(pid, tid) for tid in tids_of(pid)]
    return {status["Name"] for status in statuses if status}


def test_a_runtime_that_cannot_be_suspended(stillframe, stuck, tmp_path):
    """A thread reaches no safe point, so SuspendRuntime does not return. The recording ends all the same, and names the loss. When the thread
    goes on, so does the program, and the next recording has the runtime's walk again."""
    target, step = stuck
    command = ("record", "-p", target.pid, "-e", "signal", "--dotnet-walk", "snapshot", "-F", "199", "-o")
    process = stillframe.start(*command, tmp_path / "1.sfr")
    until(lambda: is_walked_by_runtime(tmp_path / "1.sfr"), "the runtime walks its threads", 60)
    step()
    until(lambda: stands(target.pid, "spins"), "the runtime waits for a thread", 30)
    process.send_signal(signal.SIGINT)
    done = stillframe.wait(process).ok()
    losses = Recording(tmp_path / "1.sfr").rows("SELECT cause, ticks FROM loss_totals WHERE cause = 'clr-no-return'")
    assert len(losses) == 1 and losses[0][1] > 0, done
    err = stillframe(*command, tmp_path / "2.sfr", "-d", "1s").fails().err
    assert "has not come back yet from the suspension" in " ".join(err.split()), err
    step()
    target.line("back")
    # The suspension ends a moment later, and with it the thread of the agent that was left behind in it.
    until(lambda: "sf-sampler" not in names_of(target.pid), "the suspension is over", 30)
    stillframe.record_until(str(tmp_path / "3.sfr"), is_walked_by_runtime, *command[1:-1])
    step()
    assert target.finish() == (0, "ready\nback\ndone\n")


@pytest.mark.long
def test_launched_beside_a_vendors_profiler(stillframe, program, tmp_path, monkeypatch):
    """A runtime that starts loads both: the vendor's as the main profiler, and the agent's."""
    for name, value in {**VENDOR, "TMPDIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("STILLFRAME", raising=False)
    done, _ = stillframe.record(tmp_path / "r.sfr", "--engine", "signal", "--dotnet-walk", "snapshot", "-F", "199", "--", "dotnet", program, "1",
                                timeout=100)
    assert done.out == "ready\nthe profiler was there to the end\n", done
    assert Stacks(tmp_path / "r.sfr").by_runtime("splits")


def test_beside_a_vendors_profiler(stillframe, split, tmp_path):
    """It keeps its place, and is told of the program's end, which comes while the program is recorded."""
    target = split("3", **VENDOR)
    done, _ = stillframe.record(tmp_path / "r.sfr", "-p", target.pid, "-e", "signal", "--dotnet-walk", "snapshot", "-F", "199", timeout=60)
    done.ok()
    assert Stacks(tmp_path / "r.sfr").by_runtime("splits")
    assert target.finish() == (0, "ready\nthe profiler was there to the end\n")


def test_refusals(stillframe, program, tmp_path, monkeypatch):
    """One clear message each, before anything starts; and a runtime that takes no profiler is said to be one."""
    record = ("record", "-e", "signal", "--dotnet-walk", "snapshot", "-o", tmp_path / "r.sfr")
    err = stillframe(*record, "--cpu-clock", "timer", "--", "true").fails(2).err
    assert "--dotnet-walk snapshot cannot have --cpu-clock timer" in " ".join(err.split()), err
    with monkeypatch.context() as with_others:
        with_others.setenv("CORECLR_NOTIFICATION_PROFILERS", "/lib/b.so={00000000-0000-0000-0000-000000000001};")
        err = " ".join(stillframe(*record, "--", "dotnet", program, "1").fails().err.split())
        assert "profilers for the command already (CORECLR_NOTIFICATION_PROFILERS)" in err and "record -p PID" in err, err
    with monkeypatch.context() as with_name:
        (tmp_path / "a=b").mkdir()
        shutil.copy(AGENT, tmp_path / "a=b")
        with_name.setenv("STILLFRAME_AGENT", str(tmp_path / "a=b" / os.path.basename(AGENT)))
        err = " ".join(stillframe(*record, "--", "dotnet", program, "1").fails().err.split())
        assert "cannot be loaded by a runtime: there is one of the characters =; in its path" in err, err
    assert not (tmp_path / "r.sfr").exists()
    monkeypatch.setenv("DOTNET_EnableDiagnostics_Profiler", "0")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("STILLFRAME", raising=False)
    done = stillframe(*record, "--", "dotnet", program, "1", timeout=60).ok()
    assert "DOTNET_EnableDiagnostics_Profiler=0 forbids profilers" in " ".join(done.err.split()), done.err
    assert not Stacks(tmp_path / "r.sfr").by_runtime("splits")


def test_what_a_child_inherits(stillframe, tmp_path, monkeypatch):
    """A program that the command starts has none of the variables by which the command's runtime loads the agent."""
    monkeypatch.delenv("STILLFRAME", raising=False)
    done = stillframe("record", "-e", "signal", "--dotnet-walk", "snapshot", "-o", tmp_path / "r.sfr", "--", "sh", "-c",
                      "echo $CORECLR_NOTIFICATION_PROFILERS_64; (env; sleep 0.1); true", timeout=60)
    out = done.out.splitlines()
    assert out[0].endswith("libstillframe-agent.so={6f1c2a54-3b7e-4d0f-9a8b-5e2d7c41f0a3};"), done
    assert not [line for line in out[1:] if line.startswith("CORECLR_")], out


# --- shadow stacks ---

WARNING = "stillframe: the program will be slower"
SUMS = ["generics", "recurs 288000", "tails", "throws"]


@pytest.fixture(scope="module")
def shadow(tmp_path_factory):
    return compile_program(tmp_path_factory.mktemp("dotnet"), "Shadow")


@pytest.fixture
def by_hooks(stillframe, tmp_path, monkeypatch):
    """Records a command by hooks: (what was said, the stacks, the recording)."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("STILLFRAME", raising=False)

    def record(walk, *arguments):
        done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "signal", "--dotnet-walk", walk, "-F", "499", *arguments, timeout=100)
        assert done.ok().err.startswith(WARNING), done.err
        return done, Stacks(tmp_path / "r.sfr"), recording
    return record


def test_shadow_stacks(by_hooks, shadow):
    """The stacks that hooks have noted are those of our own walk of the same held thread: with recursion, generic methods and tail calls. Where
    an exception was thrown they are without the frames that it has left, which our walk finds in the memory of the stack. Nothing is lost for want of one."""
    done, stacks, recording = by_hooks("shadow-both", "--", "dotnet", shadow, "50")
    assert sorted(done.out.split("\n")[:-1]) == SUMS
    for thread in ("recurs", "generics", "tails"):
        pairs = [(its, ours) for its, ours in stacks.pairs[thread] if its in stacks.by_runtime(thread, "hooks")]
        assert len(pairs) >= 20, (thread, len(pairs))
        different = [(its, ours) for its, ours in pairs if folded(its) != folded(ours) and is_whole(ours)]
        wrong = [(methods(its), methods(ours)) for its, ours in different if not is_entering(its, ours)]
        assert not wrong, "\n".join(map(str, wrong))
        assert thread == "recurs" or len(different) <= 0.2 * len(pairs), different
    assert any(methods(its)[:2] == ["Demo.Shadow.Work(int)", "Demo.Shadow.End(int)"] for its in stacks.by_runtime("tails", "hooks"))
    assert any(methods(its)[:2] == 2 * ["Demo.Shadow.Fib(int)"] for its in stacks.by_runtime("recurs", "hooks"))
    taken = [(its, ours) for its, ours in stacks.pairs["throws"] if its in stacks.by_runtime("throws", "hooks")]
    others = [methods(its) for its, _ in taken if not left_by_exceptions(its) and not is_before_the_first(its)]
    assert not others, others
    for caller in ("Caught", "Cleanup"):
        with_left = [ours for its, ours in taken if methods(its)[:2] == ["Demo.Shadow.Work(int)", "Demo.Shadow.%s()" % caller]]
        assert with_left and all("Demo.Shadow.Throw(int)" in methods(ours) for ours in with_left), with_left
    assert not [row for row in recording.rows("SELECT cause FROM losses JOIN causes ON causes.id = cause WHERE word = 'clr-shadow-changed'")]


def test_shadow_split(by_hooks, program):
    """By the thread's own walk in its handler. All CPU time that the kernel counts is in samples or losses."""
    _, stacks, recording = by_hooks("shadow", "--walk", "handler", "--", "dotnet", program, "rounds", "1200")
    check_split(stacks, "hooks", CHAIN[:-1] + START)
    assert not stacks.pairs["splits"]
    compared = [stack for stack in stacks.by_runtime("sorts", "hooks") if "Demo.Split.Compare(int*, int*)" in methods(stack)]
    assert compared and all(methods(stack)[-5:-3] == ["Demo.Split.Sort(int*, int)", "Demo.Split.Sorts()"] for stack in compared), compared
    seen, lost, counted = (row[0] or 0 for row in recording.rows(
        "SELECT sum(cpu_ns) FROM samples UNION ALL SELECT sum(cpu_ns) FROM losses WHERE thread UNION ALL SELECT sum(cpu_counted_ns) FROM threads"))
    assert abs(seen + lost - counted) < 0.01 * counted and seen > 0.5 * counted, (seen, lost, counted)


@pytest.mark.long
def test_shadow_only(by_hooks, shadow):
    """Methods that are not named have no hooks. Depth beyond the bound is cut, and says so."""
    _, stacks, _ = by_hooks("shadow", "--shadow-only", r"^Demo\.Shadow\.(Fib|Box\.Fill|InCatch|Work)$", "--max-depth", "4", "--", "dotnet", shadow, "30")
    found = [[name for name, _, via in stack if via == "hooks"] for thread in ("recurs", "generics", "tails", "throws") for stack in stacks.by_runtime(thread, "hooks")]
    assert {name.split("(")[0].split("<")[0] for names in found for name in names} == \
        {"Demo.Shadow." + name for name in ("Fib", "Box", "InCatch", "Work")}
    assert ["Demo.Shadow.Work(int)", "Demo.Shadow.InCatch()"] in found and ["Demo.Shadow.Work(int)"] in found
    assert stacks.ends["depth"] and stacks.ends["root"], stacks.ends


@pytest.mark.long
def test_shadow_after_the_profile(stillframe, shadow, tmp_path, monkeypatch):
    """The program runs on with hooks that do nothing, to its right end."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("STILLFRAME", raising=False)
    done = stillframe.record_until(str(tmp_path / "r.sfr"), lambda path: hooked_so_far(path) >= 5, "-e", "signal", "--dotnet-walk", "shadow",
                                   "-F", "499", "--", "dotnet", shadow, "50")
    assert sorted(done.out.split("\n")[:-1]) == SUMS


def test_shadow_refusals(stillframe, split, program, tmp_path, monkeypatch):
    """One clear message each, before anything starts, and no warning of what does not come."""
    record = ("record", "-e", "signal", "--dotnet-walk", "shadow", "-o", tmp_path / "r.sfr")
    err = stillframe(*record, "-p", split().pid, "-d", "1s").fails().err
    assert "hooks are set by the profiler with which a .NET runtime starts" in " ".join(err.split()) and WARNING not in err, err
    err = stillframe(*record, "--shadow-only", "(", "--", "true").fails(2).err
    assert "'(' is no regular expression" in err, err
    err = stillframe("record", "-e", "signal", "--shadow-only", "x", "-o", tmp_path / "r.sfr", "--", "true").fails().err
    assert "no option asks for a walk by hooks" in " ".join(err.split()), err
    for name, value in VENDOR.items():
        monkeypatch.setenv(name, value)
    err = stillframe(*record, "--", "dotnet", program, "1").fails().err
    assert "CORECLR_ENABLE_PROFILING" in err and WARNING not in err, err
    assert not (tmp_path / "r.sfr").exists()

# SPDX-License-Identifier: Apache-2.0
"""Stacks in several places: what is shown of them is of one moment."""
import os
import re
import shutil
import signal
import subprocess

import pytest

from conftest import PROGRAMS, need, need_kernel_samples
from recordings import Recording, cpu_samples_so_far

WHOLE = [("a3", "a2", "a1"), ("b3", "b2", "b1")]
CUT_OFF = "other-stack"


def chains_under(recording, function):
    """[(time, the functions of the two chains, how the walk ended)] of the samples with this function on their stacks."""
    on_stack = {}
    for stack, name in recording.rows("SELECT f.stack, n.name FROM stack_frames f JOIN frame_names n ON n.frame = f.frame "
                                      "ORDER BY f.stack, f.depth, n.seq"):
        on_stack.setdefault(stack, []).append(name)
    samples = recording.rows("SELECT s.time_ns, s.stack, e.word FROM samples s JOIN ends e ON e.id = s.end ORDER BY 1")
    return [(time, tuple(name for name in on_stack[stack] if len(name) == 2 and name[0] in "ab"), end)
            for time, stack, end in samples if function in on_stack.get(stack, [])]


def often(engine):
    """The engines outside take few samples where the machine is busy, so that they cost little."""
    return [] if engine == "signal" else ["--max-cost", "50"]


def was_there(chain, end):
    """A chain is interrupted where it begins or ends, too. Only one that is cut off lacks its outermost functions."""
    last = range(0, 4) if end == CUT_OFF else [3]
    return any(chain == whole[stop - len(chain):stop] for whole in WHOLE for stop in last if stop >= len(chain))


@pytest.mark.parametrize("engine", ["ptrace", "perf"])
def test_alternate_stack(stillframe, tmp_path, target, engine):
    """While a handler works on an alternate stack, the interrupted stack runs on soon. It is shown as it was at the sample, or
    not at all: a chain is whole or cut off, and never of two halves."""
    output = tmp_path / "r.sfr"
    stillframe.record_until(output, lambda path: cpu_samples_so_far(path) > 120, "-e", engine, "-F", "499", "--clock", "cpu",
                            *often(engine), "-p", target("two_chains").pid)
    samples = chains_under(Recording(output), "handler_work")
    assert len(samples) > 30, samples
    assert not [sample for sample in samples if not was_there(*sample[1:])]
    cut = [time for time, _, end in samples if end == CUT_OFF]
    whole = [time for time, chain, end in samples if chain in WHOLE and end == "root"]
    # By ptrace it is known where the other stack is once a sample was walked. The kernel, by perf, copies one stack only: the
    # thread is held once some samples were cut for that, and how many there are by then depends on when they are walked.
    assert cut and whole and max(cut) < min(whole), samples
    # The handler may interrupt main() itself, and where the machine is busy it does so again and again.
    assert sum(end == "root" for *_, end in samples) > 0.9 * (len(samples) - len(cut)), samples


def test_larger_hole_in_the_stack(stillframe, tmp_path):
    """A function with an array that it never touches and that is longer than a thread's first copy: the stack goes on behind it."""
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "ptrace", "-F", "499", "--clock", "cpu", *often("ptrace"), "--",
                                        os.path.join(PROGRAMS, "stack_hole"), 0.5, "larger")
    assert done.status == 0, done
    samples = [(names[-1], ticks) for names, ticks in recording.stacks_of("with_larger_array")]
    whole = sum(ticks for name, ticks in samples if name == "_start")
    # Of those that were taken before the first one was walked, the copies end at the array.
    assert whole > 20 and whole > 0.5 * sum(ticks for _, ticks in samples), samples


by_both_engines = pytest.mark.parametrize("engine", ["ptrace", "signal"])
in_assembly = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the program is in x86-64's assembly")


def assert_whole(stillframe, tmp_path, target, engine, program, chain):
    """Of code without unwind rules and frame pointers."""
    how = ["-d", 0.5, "-p", target(program).pid] if engine == "ptrace" else ["--", os.path.join(PROGRAMS, program), 1]
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", engine, "-F", "499", "--clock", "cpu", *often(engine), *how)
    assert done.status == (0 if engine == "ptrace" else 128 + signal.SIGALRM), done
    stacks = recording.stacks_of("leaf")
    assert sum(ticks for _, ticks in stacks) > 20, stacks
    assert {tuple(names[:len(chain)]) for names, _ in stacks} == {chain}, stacks
    assert {names[-1] for names, _ in stacks} == {"_start"}, stacks


@in_assembly
@pytest.mark.long("signal")
@by_both_engines
def test_no_rules(stillframe, tmp_path, target, engine):
    """Functions are left by their instructions, and no 0 in a register is taken for the end."""
    assert_whole(stillframe, tmp_path, target, engine, "no_rules", ("leaf", "middle", "framed", "outer", "main"))


@in_assembly
@pytest.mark.long("signal")   # the walk is the same
@by_both_engines
def test_exits_that_are_hard_to_find(stillframe, tmp_path, target, engine):
    """Long functions, those that keep their old stack pointer on the stack that they align, and code behind an unknown jump."""
    assert_whole(stillframe, tmp_path, target, engine, "hard_exits", ("leaf", "far", "stored", "pushed", "block", "main"))


def names_of_views(stillframe, path, expected):
    """All names in an export. What is called so in the recording is so in the report and the export."""
    folded = stillframe("export", "--format", "collapsed", "-o", "-", path).ok().out
    report = stillframe("report", path).ok().out
    for name in expected:
        assert name in report and name in folded, (name, report, folded)
    return {name for line in folded.splitlines() for name in line.rpartition(" ")[0].split(";")}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="no_rules is in x86-64's assembly")
def test_starts_without_symbols(stillframe, tmp_path, target):
    """Without symbols and unwind rules a function is called after its start, which calls on the stacks show."""
    need("objcopy", "nm")
    program, full = str(tmp_path / "bare"), os.path.join(PROGRAMS, "no_rules")
    subprocess.run(["objcopy", "-S", "-R", ".eh_frame", "-R", ".eh_frame_hdr", full, program], check=True)
    symbols = {line.split()[2]: int(line.split()[0], 16) for line in
               subprocess.run(["nm", full], check=True, capture_output=True, text=True).stdout.splitlines() if len(line.split()) == 3}
    expected = tuple(f"{symbols[name]:#x} in bare" for name in ("leaf", "middle", "framed", "outer", "main"))
    done, recording = stillframe.record(tmp_path / "r.sfr", "-d", 0.5, "-F", "499", "--clock", "cpu", *often("ptrace"), "-p",
                                        target(program).pid)
    assert done.status == 0, done
    assert {tuple(names[:5]) for names, _ in recording.stacks_of(expected[0])} == {expected}
    names = names_of_views(stillframe, tmp_path / "r.sfr", expected)
    assert {name for name in names if name.endswith(" in bare")} - set(expected) <= {f"{symbols['_start']:#x} in bare"}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="no_rules is in x86-64's assembly")
def test_unknown_in_no_file(stillframe, tmp_path, target):
    """Code in anonymous memory that nothing names is one function, not one for each place in it."""
    unknown = "[unknown, in no file]"
    started = target("no_rules", 120, "copied")
    done, recording = stillframe.record(tmp_path / "r.sfr", "-d", 0.5, "-F", "499", "--clock", "cpu", *often("ptrace"), "-p", started.pid)
    assert done.status == 0, done
    stacks = recording.stacks_of(unknown)
    assert {tuple(names[:5]) for names, _ in stacks} == {(unknown,) * 4 + ("main",)}, stacks
    assert not {name for name in names_of_views(stillframe, tmp_path / "r.sfr", [unknown]) if name.startswith("0x")}
    assert re.search(r"note: \d+\.\d % of the time \(.*\) is in code in no file", stillframe("report", tmp_path / "r.sfr").out)
    assert f"  #0  {unknown}  0x" in stillframe("dump", "-p", started.pid).out


GO = """
package main

import (
	"runtime"
	"time"
)

var sink []*[1024]byte

//go:noinline
func alloc(n int) {
	for i := 0; i < n; i++ {
		sink = append(sink[:0], new([1024]byte))
	}
}

//go:noinline
func grow(n int) int {
	var room [64]int
	if n == 0 {
		return 0
	}
	room[n%64] = n
	return grow(n-1) + room[(n+1)%64]
}

//go:noinline
func clock(n int) (sum int64) {
	for i := 0; i < n; i++ {
		sum += time.Now().UnixNano()
	}
	return sum
}

func main() {
	runtime.GOMAXPROCS(1)
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); {
		alloc(4000)
		clock(10000)
		for i := 0; i < 200; i++ {
			done := make(chan int)
			go func() { done <- grow(300) }()
			<-done
		}
	}
}
"""


def build_go(folder, text, *options):
    if not shutil.which("go"):
        pytest.skip("needs Go")
    (folder / "main.go").write_text(text)
    subprocess.run(["go", "build", *options, "-o", "main", "main.go"], cwd=folder, check=True, timeout=100,
                   env={**os.environ, "GOCACHE": str(folder.parent / "go-cache"), "GO111MODULE": "off"})
    return folder / "main"


@pytest.fixture(scope="module")
def go_program(tmp_path_factory):
    return build_go(tmp_path_factory.mktemp("go"), GO)


@pytest.mark.parametrize("engine, switches", [("ptrace", ["runtime.systemstack", "runtime.morestack", "time.now"]), ("perf", ["runtime.systemstack"])])
def test_goroutine_under_system_stack(stillframe, go_program, tmp_path, engine, switches):
    """What Go's runtime does on a thread's system stack is done for a goroutine: that is the caller. So is what the vDSO's clock does
    there. What lies at the top of the system stack is none, such as the call of newproc by which the program began. By perf there is no
    copy of the goroutine's stack, but for its return addresses; not all where that grows."""
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", engine, "-F", "999" if engine == "perf" else "499", "--clock", "cpu", "--max-cost", "50",
                                        "--", go_program)
    assert done.status == 0, done
    for switch in switches:
        # Behind the outermost switch: what runs on the system stack may switch to it once more.
        stacks = [(names[len(names) - names[::-1].index(switch):], ticks) for names, ticks in recording.stacks_of(switch)]
        whole = sum(ticks for names, ticks in stacks if names and names[-1] == "runtime.goexit")
        assert whole > 5, stacks               # a thread's first samples have no goroutine
        assert not [names for names, _ in stacks if not names or (names[-1] != "runtime.goexit" and names[0][0] != "[")], stacks


# One goroutine cannot be interrupted for some milliseconds at a time. Another one stops the world meanwhile, and waits for that on the system stack.
GO_STOPS = """
package main

import (
	"runtime"
	"time"
)

//go:noinline
func spin(n int) (x int) {
	for i := 0; i < n; i++ {
		x = x*31 + i
	}
	return x
}

func stops() {
	var stats runtime.MemStats
	for {
		runtime.ReadMemStats(&stats)
	}
}

func main() {
	runtime.GOMAXPROCS(2)
	go stops()
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); {
		spin(5000000)
	}
}
"""


def test_a_goroutine_that_sleeps_under_system_stack(stillframe, tmp_path):
    """The kernel's copy of a sleep has the system stack only. Its addresses of the goroutine come once a walk has lacked them."""
    need_kernel_samples(stillframe)
    program = build_go(tmp_path, GO_STOPS)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "perf", "-F", "999", "--max-cost", "50", "--", program,
                                        env={**os.environ, "GODEBUG": "asyncpreemptoff=1"})
    assert done.status == 0, done
    ends = dict(recording.rows(
        "SELECT e.word, count(*) FROM samples s JOIN ends e ON e.id = s.end WHERE s.state = (SELECT id FROM states WHERE word = 'blocked') AND s.stack IN "
        "(SELECT stack FROM stack_frames JOIN frame_names n USING (frame) WHERE n.name = 'runtime.stopTheWorldWithSema') GROUP BY 1"))
    assert ends["root"] > 20 and ends["root"] > 0.7 * sum(ends.values()), (ends, done)
    assert [stack for stack, _ in recording.stacks_of("runtime.stopTheWorldWithSema") if "main.stops" in stack], done


@pytest.mark.long("pie")   # all of Go's own packages are compiled for it
@pytest.mark.parametrize("mode", ["exe", "pie"])
def test_stripped_go(stillframe, tmp_path, mode):
    """Linked with -s it has neither .debug_frame nor symbols. Go's own tables say as much."""
    program = build_go(tmp_path, GO, "-buildmode", mode, "-ldflags", "-s -w")
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "ptrace", "-F", "499", "--clock", "cpu", "--max-cost", "50", "--", program)
    assert done.status == 0, done
    ends = dict(recording.rows("SELECT e.word, sum(s.ticks) FROM samples s JOIN ends e ON e.id = s.end GROUP BY 1"))
    assert ends["root"] > 0.9 * sum(ends.values()), ends
    names = {name for name, in recording.rows("SELECT name FROM functions")}
    assert {"main.main", "main.alloc", "runtime.mallocgc"} <= names and not [name for name in names if name.endswith(" in main")], names
    assert [stack for stack, _ in recording.stacks_of("main.clock") if stack[-1] == "runtime.goexit"], names


CGO = """
package main

// #include <stdint.h>
// extern uint64_t goBack(uint64_t);
// static __attribute__((noinline)) uint64_t spin(uint64_t n) { uint64_t x = n; for (uint64_t i = 0; i < n; i++) x = x * 31 + i; return x; }
// static __attribute__((noinline)) uint64_t viaC(uint64_t n) { return goBack(n) + 1; }
import "C"
import "time"

//export goBack
func goBack(n C.uint64_t) C.uint64_t {
	x := n
	for i := C.uint64_t(0); i < n; i++ {
		x = x*31 + i
	}
	return x
}

func main() {
	for end := time.Now().Add(700 * time.Millisecond); time.Now().Before(end); {
		C.spin(20000)
		C.viaC(20000)
	}
}
"""


@pytest.mark.parametrize("how", [["ptrace", "--max-cost", "50"], ["signal", "--walk", "sampler"], ["signal", "--walk", "handler"]],
                         ids=lambda how: how[-1])
def test_go_and_c(stillframe, tmp_path, how):
    """C that Go called, and Go that this C called: main called both, or the stack is cut, as a first copy has one stack only."""
    need("gcc")
    program = build_go(tmp_path, CGO)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", *how, "-F", "499", "--clock", "cpu", "--", program)
    assert done.status == 0, done
    for function in ("spin", "main.goBack"):
        stacks = recording.stacks_of(function)
        assert sum(ticks for names, ticks in stacks if "main.main" in names) > 5, stacks
        assert not [names for names, _ in stacks if "main.main" not in names and not names[-1].startswith("[cut: ")], stacks
    if how[0] == "signal":   # the stack that was left is read while the thread stands
        ends = dict(recording.rows("SELECT e.word, sum(s.ticks) FROM samples s JOIN ends e ON e.id = s.end GROUP BY 1"))
        assert ends["root"] > 0.97 * sum(ends.values()), ends


@pytest.mark.parametrize("engine, first, second", [
    (("perf", "--max-cost", "50"), 0.7, 0.7), (("ptrace", "--max-cost", "50"), 0.7, 0.7),
    (("signal", "--walk", "sampler"), 2, 0.5), (("signal", "--walk", "handler"), 2, 0.5)], ids=["perf", "ptrace", "sampler", "handler"])
def test_code_in_the_place_of_other_code(stillframe, tmp_path, engine, first, second):
    """A library is loaded where another one was until then. What runs in it is not called after that one. Inside, only dlclose()
    shows that in time: after two seconds with the first library the interval between two looks is longer than the second one runs."""
    libraries = [os.path.join(PROGRAMS, "replaced_%s.so" % which) for which in ("first", "second")]
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", *engine, "-F", "499", "--clock", "cpu", "--",
                                        os.path.join(PROGRAMS, "replaced_code"), *libraries, first, second)
    assert done.status == 0, done
    assert "in one place" in done.out, done
    shares, expected = recording.total_shares(), second / (first + second)
    assert shares.get("spin_in_second", 0) > 0.8 * expected, (shares, done)
    assert shares.get("spin_in_first", 0) < 1 - 0.8 * expected, (shares, done)


@pytest.mark.parametrize("engine", [("perf",), ("ptrace",), ("signal",)], ids=lambda each: each[0])
def test_a_program_in_the_file_of_another_one(stillframe, tmp_path, engine):
    """A program is copied over another one that has ended, into the same file: neither is called by the other's names."""
    need("objcopy")
    first, second, program = os.path.join(PROGRAMS, "busy_split"), str(tmp_path / "second"), str(tmp_path / "program")
    subprocess.run(["objcopy", "-g", "-R", ".note.gnu.build-id", "--redefine-sym", "spin_sixty=spin_of_the_second", first, second], check=True)
    shutil.copy(first, program)
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", *engine, "--clock", "cpu", "--children", "--", "sh", "-c",
                                        f"{program} 0.3; cat {second} > {program}; {program} 0.3")
    assert done.status == 0, done
    shares = recording.total_shares()
    assert 0.1 < shares.get("spin_of_the_second", 0) < 0.45, (shares, done)
    assert shares.get("spin_sixty", 0) < 0.45, (shares, done)

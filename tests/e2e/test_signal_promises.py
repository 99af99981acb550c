# SPDX-License-Identifier: Apache-2.0
"""The signal engine lives in the target's own process. Whatever the target does there, it does not notice: no crash, no
hang, no signal lost or doubled, no call that fails; and every tick is a sample or a counted loss.

Both walks, mostly with no stillframe around: the library is preloaded and writes a stream file."""
import ctypes
import os
import re
import subprocess

import pytest

from conftest import AGENT, HERE, LONG, PROGRAMS, need, need_kernel_samples, need_root
from recordings import Recording, Report, of_the_three

WALKS = ("sampler", "handler")
PATIENCE = 3600 if LONG else 240   # for the storms, whose length depends on the machine
SOURCES = os.path.join(os.path.dirname(HERE), "programs")
by_both_walks = pytest.mark.parametrize("walk", WALKS)


def program(name):
    return os.path.join(PROGRAMS, name)


def seconds(short, long):
    return long if LONG else short


def numbers(said):
    """{"word": value} of what a program says as `word value`."""
    return {word: float(value) for word, value in re.findall(r"(\w+) (-?\d+(?:\.\d+)?)", said)}


# --- threads -------------------------------------------------------------------------------------


@pytest.mark.long("handler")
@by_both_walks
def test_ten_thousand_threads_a_second(inside, walk):
    """Threads of a few microseconds: the program does not come to a crawl, and what was due is accounted for. How much of its pace it
    keeps depends on who else wants the CPUs."""
    length = seconds(1, 120)
    alone = numbers(inside("threads_churn", length, 10000, options=None, timeout=60 + 10 * length).ok().said)
    ran = inside("threads_churn", length, 10000, options="rate=499hz,walk=" + walk, timeout=60 + 10 * length).ok()
    ran.report.assert_accounts(0.1, 0.1)
    assert numbers(ran.said)["made"] > 0.1 * alone["made"], (alone, ran.said)


@pytest.mark.long   # a thousand that sleep are watched below, in the short form, too
@by_both_walks
def test_five_thousand_threads(inside, walk):
    """All are seen, in the time that the sampler has for it as a thread beside others."""
    ran = inside("many_threads", 5000, seconds(10, 60), 4, options="rate=199hz,walk=" + walk, timeout=300).ok()
    assert "bad 0" in ran.said, ran
    assert ran.report.samples > 100
    ran.report.assert_accounts(0.1, 0.2)
    assert len(ran.report.threads) >= 4900, len(ran.report.threads)


@by_both_walks
def test_deaf_threads_are_counted(inside, walk):
    """Threads that block every signal: they run on, and their time is a counted loss."""
    ran = inside("blocked_masks", 0.6, options="rate=499hz,walk=" + walk)
    # The one signal that it did not take is still there.
    assert ran.status == 0 or "signals pending 1" in ran.said, ran
    report = ran.report
    deaf = sum(loss["cpu_ns"] for loss in report.losses if loss["cause"] == "deaf") / 1e9
    assert deaf > 0.8 * report.cpu()[2] > 0.05, (report.lost, report.cpu())
    report.assert_accounts(0.1, 0.1)


def test_deaf_threads_do_not_fill_the_queue(inside):
    """Real-time signals are queued, and what does not fit into the queue becomes a SIGIO, which kills."""
    ran = inside(["prlimit", "--sigpending=64", program("blocked_masks"), 0.6], options="rate=1khz,signal=RTMIN+3")
    assert ran.status == 0 or "signals pending 1" in ran.said, ran


@by_both_walks
def test_a_full_queue_of_signals(inside, walk):
    """The user's other processes may have filled it. A request's signal then comes without what it says: it is no signal of the
    program's, whose default action would end it, and the thread has its samples."""
    ran = inside(["prlimit", "--sigpending=0", program("busy_split"), 0.3], options="rate=999hz,cpu-clock=tick,walk=" + walk).ok()
    assert ran.report.samples > 50, ran.report.json["losses"]
    ran.report.assert_accounts(0.1, 0.1)


@by_both_walks
def test_signals_taken_by_hand(inside, walk):
    """All signals are blocked, and taken by sigtimedwait and signalfd: none of ours among them."""
    ran = inside("in_sigwait", seconds(0.6, 10), options="rate=1khz,walk=" + walk).ok()
    assert "foreign 0" in ran.said and "early 0" in ran.said, ran


def test_signals_that_are_pending_in_a_process_of_many_groups(inside):
    """Its status is long: the pending signals stand behind the groups. What the program sees as pending it may wait for."""
    need_root()
    groups = ",".join(str(10 ** 9 + i) for i in range(1000))
    ran = inside(["setpriv", "--groups", groups, program("in_pending"), 0, 0.2], options="rate=1khz").ok()
    assert ran.said.startswith("nothing: 0, took 0\n") and ran.said.endswith("nothing more: 0, took 0\n"), ran


# --- processes -----------------------------------------------------------------------------------


@pytest.mark.alone                      # beside two others the clock of a program of half a millisecond starts late
@by_both_walks
@pytest.mark.parametrize("children", ["", ",children"])
def test_exec_storm(inside, walk, children):
    """In every way that libc has, at 10 kHz: a new program never dies by our signal."""
    turns = seconds(5 if children else 8, 300)
    ran = inside("in_exec", "all", turns, 400, options="rate=10khz,cpu-clock=perf,walk=%s%s" % (walk, children), timeout=PATIENCE)
    assert ran.ok() and "bad 0" in ran.said, ran
    # A quarter of what it spins by its CPU clock: a share would depend on what a fork costs.
    spun = ran.report.total_shares().get("spin_before_exec", 0) * ran.report.cpu_seen_ns
    assert spun > numbers(ran.said)["started"] * 400e3 / 4 or children, (spun, ran.report.total_shares())


@pytest.mark.long("sampler")
@by_both_walks
def test_exec_chain(inside, walk):
    """One process that execs all the time, every second time into a program that has no handler."""
    ran = inside("in_exec", "chain", seconds(150, 6000), 400, options="rate=10khz,cpu-clock=perf,walk=" + walk, timeout=PATIENCE).ok()
    assert "chain done" in ran.said, ran


@pytest.mark.long("sampler")
@by_both_walks
def test_exec_by_another_thread_among_others(inside, walk):
    """The other threads die in the midst of their ticks; children are sampled, or it would prove nothing."""
    ran = inside("in_exec", "among", seconds(40, 1000), 3000, options="rate=10khz,cpu-clock=perf,children,walk=" + walk, timeout=PATIENCE)
    assert ran.ok() and "bad 0" in ran.said, ran


@by_both_walks
@pytest.mark.parametrize("children", ["", ",children"])
def test_fork_storm(inside, walk, children):
    ran = inside("forks", seconds(0.6, 60), options="rate=4khz,cpu-clock=perf,walk=%s%s" % (walk, children), timeout=200).ok()
    assert re.search(r"turns [1-9]\d* bad 0", ran.said), ran
    # No child has written into it.
    ran.report.assert_accounts(0.1, 0.1)


def test_a_child_that_no_handler_saw_leaves_the_sampler_where_it_is(inside):
    """A child by the number of clone(2) has the agent's memory as it was, and the id of its parent's sampler in it."""
    ran = inside("in_elsewhere", options="rate=999hz")
    if ran.status == 77:
        pytest.skip("one CPU")
    there, allowed = re.search(r"elsewhere (\d+)\n.*:\s+(\S+)", ran.ok().said).groups()
    assert allowed != there, ran


@by_both_walks
@pytest.mark.parametrize("how", ["exit", "exec"])
def test_fork_of_the_first_process_of_a_namespace(inside, walk, how):
    """Its child, in another namespace, has the number 1, too: it is a child all the same, and ends. What it
    executes has no agent, which would write into the same file."""
    need_root()
    need("unshare")
    out = os.path.join(inside.folder, "first.sfs")
    given = inside.environment("rate=999hz,walk=" + walk, out)
    words = ["%s=%s" % (name, given[name]) for name in ("LD_PRELOAD", "STILLFRAME")]
    ran = inside(["unshare", "--pid", "--fork", "--mount-proc", "env", *words, program("in_first"), how], options=None)
    assert ran.status == 7 and "1: status 700" in ran.said and "with an agent" not in ran.said, ran
    report = Report(inside.stillframe, out)
    assert report.cpu()[2] > 0.15, (report.cpu(), report.total_shares())


@pytest.mark.long("handler")
@by_both_walks
def test_locks_that_a_child_finds_taken(stillframe, tmp_path, walk):
    """Libc's locks for translations stay locked in a child: the agent in it does not wait for them."""
    done = stillframe("record", "-e", "signal", "--walk", walk, "--children", "-o", tmp_path / "r.sfr", "--",
                      program("in_translates"), timeout=120)
    if done.status == 77:
        pytest.skip("no locale C.UTF-8")
    assert done.status == 0 and "turns 30 bad 0" in done.out, done


def test_it_is_sampled_after_vforks(inside):
    """The child of a vfork runs in its parent's memory: what it does there must not end the parent's sampling."""
    ran = inside("in_exec", "vfork", seconds(150, 300), 4000, options="rate=1khz").ok()
    report = ran.report
    assert report.total_shares().get("spin_before_exec", 0) > 0.5, (report.total_shares(), report.cpu())
    report.assert_accounts(0.1, 0.1)


@by_both_walks
def test_what_forks_copy(inside, walk):
    """Each fork copies the page tables of what the agent has touched, and the child copies pages that it writes. With two threads that do nothing
    a child has as many page faults, but for a few: libc's own part of a fork looks at them. How many pages the kernel maps at once depends on
    where a library lies: all lie where they always do."""
    fixed = {"preexec_fn": lambda: ctypes.CDLL(None).personality(0x0040000)}   # ADDR_NO_RANDOMIZE
    alone = numbers(inside("in_forks", 2, options=None, **fixed).ok().said)
    ran = numbers(inside("in_forks", options="cpu-clock=timer,walk=" + walk, **fixed).ok().said)
    assert ran["anonymous"] - alone["anonymous"] < {"sampler": 1500, "handler": 2500}[walk], (alone, ran)
    assert ran["faults"] <= alone["faults"] + 8, (alone, ran)


@pytest.mark.long("handler")   # no walk has a part in it
@by_both_walks
def test_setuid(inside, tmp_path, walk):
    """It drops its rights: all threads do, and it is sampled before and after."""
    need_root()
    os.chmod(tmp_path, 0o777)
    ran = inside("in_setuid", 0.6, options="rate=499hz,walk=" + walk).ok()
    shares = ran.report.total_shares()
    assert shares.get("spin_before_setuid", 0) > 0.05 and shares.get("spin_after_setuid", 0) > 0.05, shares


@by_both_walks
def test_chroot_and_setuid(stillframe, tmp_path, walk):
    """As many a daemon does: it is sampled before and after, also where its new root has no /proc, and the summary says what is not."""
    need_root()
    jail = tmp_path / "jail"
    jail.mkdir()
    done, recording = stillframe.record(tmp_path / "r.sfr", "-e", "signal", "--walk", walk, "--", program("in_setuid"), 0.6, jail)
    assert done.status == 0 and "threads 0 not nobody 0" in done.out, done
    assert "has no /proc any more" in " ".join(done.err.split()), done
    shares = recording.total_shares()
    assert shares.get("spin_before_setuid", 0) > 0.05 and shares.get("spin_after_setuid", 0) > 0.05, shares


# --- code that comes and goes --------------------------------------------------------------------


@by_both_walks
def test_library_that_comes_and_goes(inside, walk):
    """dlopen, code running in it, dlclose, in two threads all the time: no deadlock with the loader's lock."""
    ran = inside("dlopen_loop", program("plugin.so"), seconds(0.6, 60), options="rate=4khz,cpu-clock=perf,walk=" + walk, timeout=200).ok()
    report = ran.report
    assert report.total_shares().get("load_and_unload", 0) > 0.9, report.total_shares()


@by_both_walks
def test_the_environment_is_the_programs(inside, walk):
    """No thread of ours calls its getenv(), or looks at an environment that it may be changing."""
    ran = inside("in_environment", program("plugin.so"), options="rate=499hz,walk=" + walk).ok()
    assert "asked by others 0" in ran.said, ran


@pytest.mark.long("sampler")
@by_both_walks
def test_a_handler_never_allocates(inside, walk):
    """Through many samples of a program that does nothing but allocate and load: its allocator would see it."""
    wanted = 100000 if LONG else 5000
    ran = inside("in_malloc", program("plugin.so"), seconds(1.5, 100), options="rate=10khz,cpu-clock=perf,walk=" + walk, timeout=PATIENCE).ok()
    report = ran.report
    assert report.samples >= wanted or report.ticks >= wanted, report.samples
    report.assert_accounts(0.1, 0.1)


@by_both_walks
@pytest.mark.parametrize("clock, handler", [("perf", ()), ("timer", ()), ("tick", ("handler",))])
def test_it_is_loaded_and_unloaded(inside, tmp_path, walk, clock, handler):
    """Ticks that come when it is over find neither the default action, nor code that is gone, nor the program's handler."""
    ran = inside("in_unload", AGENT, seconds(8, 200), tmp_path / "unloaded.sfs",
                 "rate=4khz,signal=PROF,cpu-clock=%s,walk=%s" % (clock, walk), *handler, start=False,
                 environment={"LD_PRELOAD": ""}, timeout=200).ok()
    assert "threads left 3" in ran.said, ran


@by_both_walks
@pytest.mark.parametrize("once", [(), ("once",)])
def test_the_program_closes_what_is_not_its_own(inside, tmp_path, walk, once):
    """close_range(3, ~0), and the numbers are used again: nobody else writes there, closes them, or dies."""
    (tmp_path / "own").mkdir()
    ran = inside("in_closer", seconds(0.6, 30), tmp_path / "own", *once, options="rate=499hz,walk=" + walk).ok()
    assert "fine 1" in ran.said, ran


@pytest.mark.long("timer", "wall")   # a timer has no descriptor
@by_both_walks
@pytest.mark.parametrize("clock", ["cpu-clock=perf", "cpu-clock=timer", "cpu-clock=itimer", "cpu-clock=tick", "clock=wall"])
def test_the_program_gets_the_lowest_descriptor(inside, walk, clock):
    """open() returns the lowest number that is free: what we open meanwhile has numbers of its own."""
    ran = inside("in_lowest", seconds(1, 60), options="rate=999hz,%s,walk=%s" % (clock, walk), timeout=PATIENCE).ok()
    assert ran.report.samples > 20, ran.report.samples
    ran.report.assert_accounts(0.1, 0.1)


# --- signals -------------------------------------------------------------------------------------


@pytest.mark.together(2)
@by_both_walks
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("which", ["prof", "rt"])
@pytest.mark.parametrize("how", [(), ("plain", "nodefer")], ids=["usual", "plain"])
def test_the_program_uses_our_signal(inside, tmp_path, walk, when, which, how):
    """Its handler gets exactly its own signals, in order, with its own mask; and we get our samples."""
    out = tmp_path / "own.sfs"
    options = "rate=1khz,walk=%s,signal=%s" % (walk, "PROF" if which == "prof" else "RTMIN+3")
    if when == "before":
        ran = inside("in_signals", which, when, seconds(0.6, 1), *how, "out=%s,%s" % (out, options), start=False).ok()
        report = Report(inside.stillframe, out)
    else:
        ran = inside("in_signals", which, when, seconds(0.6, 1), *how, options=options).ok()
        report = ran.report
    assert report.total_shares().get("spin_between_signals", 0) > 0.5, report.total_shares()
    report.assert_accounts(0.1, 0.1)


def test_a_signal_of_its_own_is_chosen(inside, tmp_path):
    """The program had SIGPROF first and nobody said which signal to use: all is as if we were not there."""
    out = tmp_path / "own.sfs"
    inside("in_signals", "prof", "before", 0.8, "rate=1khz,out=%s" % out, start=False).ok()
    report = Report(inside.stillframe, out)
    assert report.samples > 20, report.samples
    report.assert_accounts(0.1, 0.1)


@by_both_walks
def test_signal_storm(inside, walk):
    """Queued real-time signals from three sides: none lost, none doubled, order kept."""
    ran = inside("signals_count", seconds(1.2, 60), options="rate=5khz,cpu-clock=perf,walk=" + walk, timeout=200).ok()
    assert ran.report.samples > 100, "only %d samples: that proves nothing" % ran.report.samples


@by_both_walks
@pytest.mark.parametrize("size", ["min", "2048", "8192"])
def test_small_and_strange_stacks(inside, walk, size):
    """Alternate stacks with a guard page below, handlers in handlers, SA_NODEFER, siglongjmp out of them, the smallest
    stack that a thread may have."""
    ran = inside("in_stacks", seconds(0.5, 30), size, options="rate=4khz,cpu-clock=perf,walk=" + walk, timeout=200).ok()
    assert ran.report.samples > 100, ran.report.samples


@pytest.mark.long("sampler")   # the handler is what stands on that stack
@by_both_walks
def test_an_alternate_stack_that_threads_share(inside, walk):
    """One alternate stack for all threads, for a handler that ends the program: handlers of ours do not meet there."""
    ran = inside("in_shared_altstack", seconds(1, 30), options="rate=4khz,cpu-clock=perf,walk=" + walk, timeout=200).ok()
    assert ran.report.samples > 100, ran.report.samples


@by_both_walks
@pytest.mark.parametrize("which", [(), ("prof",)], ids=["own", "ours"])
def test_interruptions_that_the_program_wants(inside, walk, which):
    """A signal of its own without SA_RESTART ends a sleep with EINTR, every time: only our EINTR is hidden. Also when it
    is the very signal that we took."""
    inside("in_interrupted", seconds(0.6, 60), *which, options="rate=4khz,cpu-clock=perf,signal=PROF,walk=" + walk, timeout=200).ok()


@by_both_walks
@pytest.mark.parametrize("rate", ["1khz", "4khz,cpu-clock=perf"])
def test_no_call_fails(inside, walk, rate):
    """The table of system calls, each made right after a random time on the CPU: no EINTR, no early return. Timers ring on the
    kernel's ticks, and a call is hardly ever just beginning there; perf clocks break off some twenty calls, if nobody mends them."""
    ran = inside("eintr_table", seconds(1.2, 120), 5, "burn", options="walk=%s,rate=%s" % (walk, rate), timeout=300).ok()
    assert "bad rows 0" in ran.said, ran
    if rate == "1khz":
        assert_few_partial(ran.said)
    seen, _, counted = ran.report.cpu()
    assert seen > 0.8 * counted and ran.report.samples > 50, (seen, counted, ran.report.samples, ran.report.json["losses"])


def assert_few_partial(said):
    """Large writes and MSG_WAITALL reads that have done a part cannot be made again, and say how much it was, as they may
    at any signal. A writer that copies a megabyte is on the CPU most of the time, so with a tick every millisecond it
    happens to some; nobody can do anything about that from the inside."""
    rows = re.findall(r"^(.*\S) +short +(\d+) calls.* (\d+) partial", said, re.M)
    assert len(rows) == 3, said
    for name, calls, partial in rows:
        assert int(partial) <= int(calls) / 2 + 1, (name, said)


@pytest.mark.long   # unit/test_context has what a call waits for when it is made again
def test_waits_are_not_stretched(inside):
    """A call that is made again must not wait for its whole time again: together they take no longer than alone. Of each the shortest
    of three measurements counts, in alternation: the machine's load only makes them longer."""
    def mean(options):
        said = inside("eintr_table", 1, 5, "burn", options=options).said
        each = {name.strip(): float(us) for name, us in re.findall(r"^(.{27}).* (\d+) us each", said, re.M)}
        assert len(each) > 35, said
        return [each[name] for name in ("poll", "select", "nanosleep", "futex, time-out", "epoll_wait", "sigtimedwait")]

    rounds = [(mean(None), mean("rate=4khz,cpu-clock=perf")) for _ in range(3)]
    alone, watched = (sum(min(times) for times in zip(*each)) for each in zip(*rounds))
    assert watched < alone * 1.5, rounds


def test_sleepers_all_wake_as_they_should(inside):
    ran = inside("many_threads", 1000, 2.5, 0, options="rate=199hz,blocked-rate=100hz", timeout=60).ok()
    assert "bad 0" in ran.said, ran
    blocked = sum(state["wall_ns"] for state in ran.report.states if state["state"] == "blocked") / 1e9
    assert blocked > 1000 * 1.25, blocked


# --- what it says is true ------------------------------------------------------------------------


@pytest.mark.long("timer")   # rings as perf's does
@by_both_walks
@pytest.mark.parametrize("clock", ["perf", "timer", "tick"])
def test_a_known_split(inside, walk, clock):
    """60, 30 and 10 % by the program's own clock, within four standard deviations of what so many samples are worth."""
    ran = inside("busy_split", seconds(1.2, 30), options="rate=999hz,walk=%s,cpu-clock=%s" % (walk, clock), timeout=120).ok()
    truth, shares, worth = numbers(ran.said), of_the_three(ran.report.self_shares()), ran.report.worth()
    for name, share in shares.items():
        error = 4 * (truth[name] * (1 - truth[name]) / worth) ** 0.5
        assert abs(share - truth[name]) < error, (name, error, worth, truth, shares)
    assert ran.report.samples > 250
    ran.report.assert_accounts()


@pytest.mark.long("perf")   # auto takes it
@pytest.mark.parametrize("clock", ["auto", "perf", "tick"])
def test_ticks_cannot_be_dodged(inside, stillframe, clock):
    """A thread that runs between the kernel's ticks gets its share, within two points beyond four standard deviations of so
    many samples. With auto, it gets a perf clock."""
    if clock == "auto":
        need_kernel_samples(stillframe)
    ran = inside("in_dodger", seconds(0.3, 7), 1, options="rate=1khz,cpu-clock=" + clock, timeout=60).ok()
    truth, shares = numbers(ran.said), ran.report.total_shares()
    due = truth["dodge"] / (truth["dodge"] + truth["neighbour"])
    seen = shares.get("dodge", 0) / (shares.get("dodge", 0) + shares.get("neighbour", 0))
    error = 0.02 + 4 * (due * (1 - due) / ran.report.samples) ** 0.5
    assert abs(seen - due) < error, (due, seen, error, shares)


@by_both_walks
@pytest.mark.parametrize("depth", [512, 5000])
def test_deep_stacks(inside, walk, depth):
    """Complete, by the rows alone: the program has no frame pointers."""
    options = "rate=499hz,max-depth=8192,walk=" + walk
    report = inside.sampled_and_killed("deep", depth, "spin", options=options, cpu=0.5, samples=20).report
    assert report.ended.get("root", 0) > 0.98 * report.sample_ticks, report.ended


@pytest.mark.parametrize("variant", ["deep", "deep_stripped", "deep_no_eh_frame_hdr", "deep_frame_pointers"])
@by_both_walks
def test_no_frame_pointers_no_tables(inside, walk, variant):
    """However it was built: whole stacks, or the truth about where they end."""
    report = inside.sampled_and_killed(variant, 60, "spin", options="rate=499hz,walk=" + walk, samples=50).report
    assert report.ended.get("root", 0) > 0.95 * report.sample_ticks, report.ended


@pytest.mark.long("sampler")
@by_both_walks
def test_twenty_kilohertz(inside, walk):
    """It backs off: a tick's cost, of which 8 us are always counted, is an eighth of the time between two, so one entry
    speaks for two ticks and more; and all CPU time is accounted for."""
    report = inside.sampled_and_killed("deep", 20, "spin", options="rate=20khz,cpu-clock=perf,walk=" + walk, cpu=1).report
    assert report.sample_ticks > 5000, report.json
    assert report.samples < 0.75 * report.sample_ticks, (report.samples, report.sample_ticks)
    report.assert_accounts()


# --- other people's programs ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """built(compiler, sanitizer): once for all tests that run it."""
    paths = {}

    def get(compiler, sanitizer):
        if (compiler, sanitizer) not in paths:
            paths[compiler, sanitizer] = build(tmp_path_factory.mktemp("built"), compiler, "-fsanitize=" + sanitizer)
        return paths[compiler, sanitizer]
    return get


def build(tmp_path, compiler, *arguments):
    need(compiler)
    out = tmp_path / "sanitized"
    done = subprocess.run([compiler, "-std=gnu11", "-O1", "-g", "-D_GNU_SOURCE", "-o", out, os.path.join(SOURCES, "in_work.c"),
                           "-lpthread", *arguments], capture_output=True, text=True)
    if done.returncode:
        pytest.skip("%s cannot build it: %s" % (compiler, done.stderr.splitlines()[-1:]))
    return out


@pytest.mark.long("undefined")   # its run-time library takes no signals, memory or threads over
@by_both_walks
@pytest.mark.parametrize("compiler, sanitizer", [("gcc", "address"), ("clang", "address"), ("gcc", "thread"),
                                                 ("clang", "thread"), ("clang", "undefined")])
def test_sanitized_programs(inside, built, walk, compiler, sanitizer):
    """Their run-time libraries take signals, memory and threads over; a library that is loaded before gcc's
    AddressSanitizer is refused unless it is told not to look."""
    ran = inside([built(compiler, sanitizer), 200, 3, 10], options="rate=999hz,walk=" + walk, timeout=120,
                 environment={"ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}).ok()
    assert "Sanitizer" not in ran.said and "runtime error" not in ran.said, ran
    report = ran.report
    assert report.total_shares().get("do_turns", 0) > 0.8, report.total_shares()


@by_both_walks
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_program_with_thread_sanitizer_is_launched(stillframe, built, tmp_path, walk, compiler):
    """What the agent's threads do with stillframe, and at their end, is no data race of the program's, whose status would be 66."""
    done, recording = stillframe.record(tmp_path / "a.sfr", "-e", "signal", "--walk", walk, "--", built(compiler, "thread"), "200", "3", "10",
                                        timeout=120)
    assert done.status == 0 and "Sanitizer" not in done.out + done.err, done
    assert recording.total_shares().get("do_turns", 0) > 0.8, recording.total_shares()


COMMANDS = {
    "python3": ["/usr/bin/python3", "-c", "x = 0\nfor i in range(4000000): x += i * i % 7"],
    "sqlite3": ["sqlite3", ":memory:", "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1200000) "
                "SELECT sum(x * x % 17), group_concat(x % 10) LIKE '%9876%' FROM c;"],
    "xz": ["sh", "-c", "exec xz -1 -T1 -c \"$0\" > /dev/null", "/usr/bin/python3"],
    "perl": ["perl", "-e", "my $x = 0; for my $i (1 .. 6000000) { $x += $i * $i % 7 }"],
}


@pytest.mark.long   # test_real_programs.py and test_perf.py have them in the short form
@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_real_programs_beside_ptrace(inside, stillframe, tmp_path, name):
    """Both walks and the ptrace engine agree on where a real program spends its time."""
    command = COMMANDS[name]
    need(command[0] if name != "xz" else "xz")
    if name == "xz" and not os.path.exists(command[-1]):
        pytest.skip("no large file to compress")
    done, recording = stillframe.record(tmp_path / "p.sfr", "--engine", "ptrace", "-F", "999", "--", *command, timeout=120)
    assert done.status == 0, done
    outside = recording.self_shares()
    top = {function: share for function, share in outside.items() if share > 0.15}
    assert top, outside
    for walk in WALKS:
        ran = inside(command, options="rate=999hz,cpu-clock=perf,walk=" + walk, timeout=120).ok()
        shares = ran.report.self_shares()
        assert ran.report.samples > 50, ran.report.samples
        # Two runs of one program differ by ten points in a function (its layout is another each time), so what takes most must take
        # half as much here at least, but for what chance does; how exact shares are is for programs whose split is known.
        for function, share in top.items():
            chance = 3 * sum(share * (1 - share) / each.worth() for each in (recording, ran.report)) ** 0.5
            assert shares.get(function, 0) > share / 2 - chance, (walk, function, share, chance, shares)
        root = ran.report.ended.get("root", 0) / ran.report.sample_ticks
        assert root > 0.97, (walk, ran.report.ended, ran.report.states, ran.report.waits)


GCC = ["gcc", "-std=gnu11", "-O2", "-D_GNU_SOURCE", "-c", os.path.join(SOURCES, "in_exec.c"), "-o"]


# Where gcc is ccache, it has the object file already, and nothing runs for long enough to be sampled.
COMPILES = dict(os.environ, CCACHE_DISABLE="1")


@pytest.fixture(scope="module")
def plain_object(tmp_path_factory):
    need("gcc")
    out = tmp_path_factory.mktemp("plain") / "plain.o"
    subprocess.run([*GCC, out], check=True)
    return out


@pytest.mark.long("handler")
@by_both_walks
def test_gcc_and_its_children(stillframe, inside, tmp_path, plain_object, walk):
    """A compiler driver that starts others: the object file is as it should be."""
    done = stillframe("record", "--engine", "signal", "--walk", walk, "--children", "-o", tmp_path / "r.sfr", "--", *GCC,
                      tmp_path / "watched.o", timeout=120, env=COMPILES)
    assert done.status == 0, done
    assert plain_object.read_bytes() == (tmp_path / "watched.o").read_bytes()
    names = Recording(tmp_path / "r.sfr").rows("SELECT DISTINCT process FROM thread_names")
    assert len(names) >= 1, names


SPIN_JAVA = """public class Spin {
    static long work(int n) {
        long sum = 0;
        for (int i = 0; i < n; i++) {
            String text = "x" + i;
            sum += text.hashCode() % 7;
            try { if (i % 1000 == 0) { Object none = null; none.toString(); } } catch (NullPointerException e) { sum++; }
        }
        return sum;
    }
    public static void main(String[] words) throws Exception {
        Thread[] threads = new Thread[4];
        for (int i = 0; i < 4; i++) { threads[i] = new Thread(() -> { for (int k = 0; k < 5; k++) work(300000); });
            threads[i].start(); }
        for (Thread thread : threads) thread.join();
        System.out.println("sum " + work(100000));
    }
}"""


@pytest.fixture(scope="module")
def spin_java(tmp_path_factory):
    """(the command, what it says alone)"""
    need("java", "javac")
    folder = tmp_path_factory.mktemp("java")
    (folder / "Spin.java").write_text(SPIN_JAVA)
    subprocess.run(["javac", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-d", folder, folder / "Spin.java"], check=True, timeout=120)
    command = ["java", "-cp", folder, "Spin"]
    alone = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert alone.returncode == 0 and "sum" in alone.stdout, alone
    return command, alone.stdout.strip()


@pytest.mark.long("sampler")
@by_both_walks
def test_java(inside, spin_java, walk):
    """A JVM catches SIGSEGV, suspends its threads by signals of its own, and forks nothing: it answers as ever."""
    inside(["java", "-version"], options="rate=999hz,walk=" + walk, timeout=60).ok()
    command, said = spin_java
    for _ in range(10 if LONG else 1):
        ran = inside(command, options="rate=999hz,walk=" + walk, timeout=120).ok()
        assert said in ran.said and "SIGSEGV" not in ran.said, ran
        ran.report.assert_accounts(0.1, 0.2)


@pytest.mark.long("handler")
@by_both_walks
def test_node(inside, walk):
    need("node")
    ran = inside(["node", "-e", "let s = 0; for (let k = 0; k < 2; k++) { s = 0; for (let i = 0; i < 3e8; i++) s += i % 7; } "
                  "setTimeout(() => console.log('sum ' + s), 50)"], options="rate=999hz,walk=" + walk, timeout=60).ok()
    assert "sum 8" in ran.said, ran
    assert ran.report.samples > 100


@pytest.mark.long("sampler")
@by_both_walks
def test_python_with_threads_and_children(inside, walk):
    """subprocess (vfork), threads, signal handlers of Python's own, and select with time-outs."""
    need("/usr/bin/python3")
    text = """
import signal, subprocess, threading, select, time
hits = []
signal.signal(signal.SIGALRM, lambda *a: hits.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
threads = [threading.Thread(target=lambda: sum(i * i for i in range(700000))) for _ in range(4)]
[t.start() for t in threads]
for _ in range(30):
    assert subprocess.run(["/bin/true"]).returncode == 0
    before = time.monotonic()
    select.select([], [], [], 0.005)
    assert time.monotonic() - before >= 0.0045
[t.join() for t in threads]
signal.setitimer(signal.ITIMER_REAL, 0)
assert len(hits) > 10
print("fine")
"""
    ran = inside(["/usr/bin/python3", "-c", text], options="rate=999hz,walk=" + walk, timeout=60).ok()
    assert "fine" in ran.said, ran

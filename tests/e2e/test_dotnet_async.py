# SPDX-License-Identifier: Apache-2.0
"""Asynchronous methods of .NET, with --async: those that await one whose code runs are its callers. The programs are
tests/programs/dotnet/Async.cs, in which each chain computes for long in a method of its own, and Waits.cs."""
import collections
import os

import pytest

from processes import Target
from recordings import cpu_samples_so_far
from test_dotnet import compile_program, line_of

# The function that computes, and who awaits it, innermost first.
CHAINS = {
    "OfChain()": ["Third(string)", "Second(int)", "First<string>(string)", "Main(string[])"],
    "OfRecursion()": ["Recurse(int)"] * 6 + ["Main(string[])"],
    "OfAll()": ["One()", "All()", "Main(string[])"],
    "OfRun()": ["Run.lambda#0()", "Run()", "Main(string[])"],
    "OfSecondHalf()": ["Halves()", "Inner()", "Around()", "Main(string[])"],
    "OfNobody()": ["Alone(SemaphoreSlim)"],
}
ON_STACK = {"OfSecondHalf()": 2}    # methods that are on the stack; of the others one
UNKNOWN = "[its awaiters are not known]"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return {how: compile_program(tmp_path_factory.mktemp("async" + how), "Async", how) for how in ("+", "-")}


@pytest.fixture
def start(tmp_path):
    started = []

    def start(program, *arguments):
        started.append(Target(["dotnet", program, *arguments], env={**os.environ, "TMPDIR": str(tmp_path)}, nice=True))
        return started[-1]
    yield start
    for target in started:
        target.end()


def chains_of(stillframe, path):
    """{function that computes: Counter of the program's own functions outside of it, innermost first}"""
    chains = collections.defaultdict(collections.Counter)
    for line in stillframe("export", path, "-f", "collapsed", "--clock", "cpu", "-o", "-").ok().out.splitlines():
        stack = [name.replace(" [async]", "").replace("Demo.Async.", "") for name in reversed(line.rsplit(" ", 1)[0].split(";"))
                 if name.startswith("Demo.") or name == UNKNOWN]
        at = next((i for i, name in enumerate(stack) if name in CHAINS), None)
        if at is not None:
            chains[stack[at]][tuple(stack[at + 1:])] += 1
    return chains


@pytest.mark.long("perf-", "ptrace+ collect")
@pytest.mark.parametrize("engine, how, arguments", [("ptrace", "-", []), ("ptrace", "+", ["collect"]), ("perf", "+", ["collect"]),
                                                    ("perf", "-", [])],
                         ids=["ptrace-", "ptrace+ collect", "perf+ collect", "perf-"])
def test_awaiters_are_callers(stillframe, program, start, tmp_path, engine, how, arguments):
    """Each chain is the one that the program has, from code of both kinds of state machine (how: + optimised, a struct; -: a class), also
    while objects move. A method may be sampled before the outer ones have begun to wait for it: then the outer part is missing."""
    target = start(program[how], *arguments)
    path = tmp_path / "r.sfr"
    stillframe.record_until(path, lambda path: cpu_samples_so_far(path) >= 400, "--async", "-e", engine, "-p", target.pid, "-F", "399", "--max-cost", "50")
    target.end()
    chains = chains_of(stillframe, path)
    assert set(chains) == set(CHAINS), chains
    for function, found in chains.items():
        truth, on_stack = tuple(CHAINS[function]), ON_STACK.get(function, 1)
        for chain in found:
            known = chain[:-1] if chain[-1] == UNKNOWN else chain
            assert len(known) >= on_stack and known == truth[:len(known)], (function, chain)
            assert chain == known or len(known) == on_stack, (function, chain)
        assert truth in found, (function, found)


def test_dump(stillframe, start, tmp_path_factory):
    """A dump shows them, with the lines on which they wait; without the option there are none."""
    target = start(compile_program(tmp_path_factory.mktemp("waits"), "Waits"))

    def stack(*options):
        threads = stillframe.dump(target.pid, *options)["threads"]
        return next(found for found in ([frame for frame in thread["frames"] if frame["function"].startswith("Demo.")]
                                        for thread in threads) if any("Inner" in frame["function"] for frame in found))
    found = [(frame["function"], frame["kind"], frame["via"], frame["line"]) for frame in stack("--async")]
    assert [name for name, *_ in found] == ["Demo.Waits.Rest()", "Demo.Waits.Inner(string, int) [async]",
                                            "Demo.Waits.Middle(int) [async]", "Demo.Waits.Outer(int) [async]"]
    assert [rest[:2] for _, *rest in found[2:]] == [["awaiting", "awaits"]] * 2, found
    assert [line for *_, line in found[2:]] == [line_of("Middle", "Waits"), line_of("Outer", "Waits")]
    assert [frame["function"] for frame in stack()] == [name for name, *_ in found[:2]]


def test_an_engine_inside_is_refused(stillframe, tmp_path):
    done = stillframe("record", "--async", "-e", "signal", "-o", tmp_path / "r.sfr", "--", "true").fails()
    assert "--async" in done.err and "signal" in done.err and not (tmp_path / "r.sfr").exists(), done

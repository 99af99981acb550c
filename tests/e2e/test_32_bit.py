# SPDX-License-Identifier: Apache-2.0
"""A 32-bit program is refused in a sentence; beside others, and after an exec, its time is a counted loss, and no function is
invented.

Where the kernel runs no 32-bit programs, a process stands in for one: `poses` has /proc/PID/exe lead to a 32-bit file."""
import errno
import os
import signal
import subprocess

import pytest

from recordings import Recording, cpu_samples_so_far, so_far

READS = "reads the stacks of 64-bit programs only"
SOURCE = """
static volatile int i;
static void work(void) { for (int n = 0; n < 1000000; n++) i += n; }
static void call(int number, const void *a, int b)
{ __asm__ volatile("int $0x80" : "+a"(number) : "b"(a), "c"(b) : "memory"); }
void _start(void)
{ int nap[2] = { 0, 2000000 }; __asm__ volatile("and $-16, %esp"); for (;;) { work(); call(162, nap, 0); } }
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A 32-bit program, or at least its header."""
    path = tmp_path_factory.mktemp("narrow") / "narrow"
    source = path.with_suffix(".c")
    source.write_text(SOURCE)
    made = subprocess.run(["gcc", "-m32", "-nostdlib", "-static", "-O1", "-o", path, source], capture_output=True, text=True)
    if made.returncode != 0:
        path.write_bytes(b"\x7fELF\x01\x01\x01".ljust(16, b"\0") + b"\2\0\3\0\1\0\0\0".ljust(4096, b"\0"))
        path.chmod(0o755)
    return path, made.returncode == 0


@pytest.fixture
def narrow(request, target, file):
    """A process that is 32-bit; with "later" from SIGUSR1 on."""
    def start(*when):
        if request.param == "real":
            assert not when
            if not file[1]:
                pytest.skip("gcc -m32 makes no program here")
            try:
                return target([file[0]], wait_ready=False)
            except OSError as error:
                assert error.errno == errno.ENOEXEC, error
                pytest.skip("this kernel runs no 32-bit programs")
        try:
            return target("poses", file[0], 60, *when)
        except AssertionError as error:
            if "cannot pose" in str(error):
                pytest.skip("no right to pose as another program")
            raise
    return start


BOTH = pytest.mark.parametrize("narrow", ["real", "poses"], indirect=True)


@BOTH
def test_a_process_is_refused(stillframe, narrow, tmp_path):
    t = narrow()
    for engine in ["auto", "ptrace", "perf", "signal"]:
        done = stillframe("record", "-e", engine, "-d", "1s", "-o", tmp_path / "r.sfr", "-p", t.pid).fails()
        assert "cannot sample pid %d" % t.pid in done.err and "32-bit program" in done.err and READS in done.err, done
    assert not (tmp_path / "r.sfr").exists()
    done = stillframe("dump", "-p", t.pid).fails()
    assert "32-bit program" in done.err and READS in done.err and not done.out, done
    done = stillframe("doctor", "-p", t.pid).ok()
    assert "no   it runs a 64-bit program" in done.out and READS in " ".join(done.out.split()), done
    assert "engine ptrace" not in done.out, done


@pytest.mark.parametrize("engine", ["auto", "ptrace", "perf", "signal"])
def test_a_command_is_refused(stillframe, file, tmp_path, engine):
    done = stillframe("record", "-e", engine, "-o", tmp_path / "r.sfr", "--", file[0]).fails()
    assert "it is a 32-bit program" in done.err and READS in done.err, done
    assert not (tmp_path / "r.sfr").exists()


@BOTH
def test_beside_others(stillframe, narrow, target, tmp_path):
    """With --children the other one of two is sampled; the 32-bit one's time is a loss."""
    t = narrow()
    other = target("busy_split", 60, 1)
    of = "JOIN thread_names USING (thread) WHERE pid = %d"
    both = "max((SELECT count(*) FROM samples %s) AND (SELECT total(ticks) > 5 FROM losses %s))" % (of % other.pid, of % t.pid)
    done = stillframe.record_until(tmp_path / "r.sfr", lambda path: (so_far(path, both) or 0) > 0, "-e", "ptrace", "--children",
                                   "-p", other.pid, "-p", t.pid)
    recording = Recording(tmp_path / "r.sfr")
    assert "pid %d" % t.pid in done.err and "ran a 32-bit program" in done.err, done
    assert recording.value("SELECT count(*) FROM samples " + of % other.pid) > 0
    assert recording.value("SELECT count(*) FROM samples " + of % t.pid) == 0
    causes = dict(recording.rows("SELECT word, sum(ticks) FROM causes JOIN losses ON causes.id = cause " + of % t.pid + " GROUP BY word"))
    assert list(causes) == ["32-bit"] and causes["32-bit"] > 5, causes


@pytest.mark.parametrize("narrow", ["poses"], indirect=True)
def test_after_an_exec(stillframe, narrow, tmp_path):
    """What comes after it is a loss, and nothing of it is put to what was sampled before."""
    t = narrow("later")
    after = "max((SELECT coalesce(sum(l.cpu_ns), 0) / 1e9 FROM losses l JOIN causes c ON c.id = l.cause WHERE word = '32-bit'))"

    def has_both(path):
        if cpu_samples_so_far(path) > 0:
            os.kill(t.pid, signal.SIGUSR1)
        return (so_far(path, after) or 0) > 0.2
    done = stillframe.record_until(tmp_path / "r.sfr", has_both, "-e", "ptrace", "-p", t.pid)
    assert "ran a 32-bit program" in done.err, done
    recording = Recording(tmp_path / "r.sfr")
    lost = dict(recording.rows("SELECT word, sum(cpu_ns) FROM losses JOIN causes ON causes.id = cause GROUP BY word"))
    seen, _, counted = recording.cpu()
    assert lost["32-bit"] / 1e9 > 0.2 and seen > 0, (lost, seen, counted)
    assert seen + sum(lost.values()) / 1e9 > 0.98 * counted, (lost, seen, counted)

# SPDX-License-Identifier: Apache-2.0
"""The programs and situations in which the judges compare stacks: one entry each.

`asleep` programs are looked at as they sleep, live, since they do not move. Moving ones are stopped by
SIGSTOP at random moments. `threads` says how many threads the comparison must at least see.
"""
import os
import shutil
from dataclasses import dataclass, field

import hanging


@dataclass
class Situation:
    name: str
    command: list
    asleep: bool = False
    threads: int = 1
    says_ready: bool = True          # prints "ready" when it is where it should be
    settle: float = 0.0              # else: seconds to let it get there
    restarts: bool = False           # a program that may end; it is started again
    missing: str = ""                # why it cannot be looked at here
    least: float = 99.9              # of its frames must be equal, in percent
    beginning: str = ""              # the function where the thread begins, if no judge has rules for what it calls
    may_end: str = ""                # functions whose caller may be gone: where ours ends with no rule there, that is right ...
    least_shown: float = 90.0        # ... if so many frames are equal all the same
    environment: dict = field(default_factory=dict)
    brief: bool = False              # is looked at in the short form of the tests, too


PYTHON_RUNNING = """
import re, json
def parse(depth):
    if depth:
        return parse(depth - 1)
    total = 0
    for i in range(2000):
        total += len(re.findall(r"[a-z]+\\d", "ab1 cd2 ef%d" % i)) + len(json.dumps({"a": [i, str(i)]}))
    return sorted(range(total % 100), key=lambda n: -n)
print("ready", flush=True)
while True:
    parse(20)
"""

PYTHON_ASLEEP = """
import time
class Shop:
    def wait(self, depth):
        return self.wait(depth - 1) if depth else [time.sleep(100) for _ in range(1)]
print("ready", flush=True)
Shop().wait(40)
"""

PERL = """
$| = 1; print "ready\\n";
sub fold { my ($n, @rest) = @_; return $n <= 0 ? join(",", sort { $b <=> $a } @rest)
    : fold($n - 1, @rest, $n * 7 % 13); }
while (1) { my $text = fold(30); $text =~ s/(\\d+),(\\d+)/$2-$1/g; $seen{length $text}++; }
"""

BASH = """
echo ready
fib() { local n=$1; if ((n < 2)); then r=$n; else fib $((n - 1)); local a=$r; fib $((n - 2)); ((r += a)); fi; }
while :; do fib 12; text="${text:0:20}${r//4/four}"; done
"""

SQLITE = """
.print ready
WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 400000000)
SELECT sum(length(printf('%d-%s', x, hex(x))) * (x % 7)) FROM c WHERE x % 3 != 1 ORDER BY 1;
"""

RUST = """
use std::collections::BTreeMap;
trait Price { fn price(&self, n: u64) -> u64; }
struct Plain; struct Dear(u64);
impl Price for Plain { #[inline(never)] fn price(&self, n: u64) -> u64 { n % 7 } }
impl Price for Dear { fn price(&self, n: u64) -> u64 { (0..n % 50).map(|k| k * self.0).sum() } }
#[inline(never)]
fn walk<T: Price + ?Sized>(goods: &T, depth: u64, map: &mut BTreeMap<u64, String>) -> u64 {
    if depth == 0 { map.insert(goods.price(map.len() as u64), format!("{:?}", map.len())); 1 }
    else { walk(goods, depth - 1, map) + goods.price(depth) }
}
fn main() {
    println!("ready");
    let goods: Vec<Box<dyn Price>> = vec![Box::new(Plain), Box::new(Dear(3))];
    let mut map = BTreeMap::new();
    let mut sum = 0u64;
    loop { for g in &goods { sum = sum.wrapping_add(walk(g.as_ref(), 25, &mut map)); } if sum == 42 { break; } }
}
"""


def big_c_source():
    """A translation unit that keeps cc1 busy for some seconds."""
    lines = ["struct s { long a[8]; struct s *next; };"]
    for i in range(1500):
        lines.append("""
static long f%d(struct s *s, long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) { s->a[i %% 8] += i * %d; sum ^= s->a[(i + %d) %% 8] << (i %% 5); }
    switch (n %% 9) { case 1: return sum + 1; case 2: return sum * 3; case 5: sum -= n; default: break; }
    return s->next ? sum + f%d(s->next, n / 2) : sum;
}""" % (i, i + 3, i % 5, i - 1) if i else """
static long f0(struct s *s, long n) { return s->a[n % 8]; }""")
    lines.append("long all(struct s *s) { return f1499(s, 100); }")
    return "\n".join(lines)


def rust_program(scratch):
    """The path of the compiled Rust program, or why there is none."""
    rustc = shutil.which("rustc")
    if rustc is None:
        return None, "rustc is not installed"
    source = os.path.join(scratch, "goods.rs")
    with open(source, "w") as file:
        file.write(RUST)
    out = os.path.join(scratch, "goods")
    done = hanging.run([rustc, "-C", "opt-level=2", "-g", "-o", out, source])
    return (out, "") if done.returncode == 0 else (None, "rustc failed: " + done.stderr.strip()[:200])


def situations(programs, scratch):
    """All of them. `programs` is the build's folder of test programs, `scratch` one to write to."""
    def program(name, *arguments):
        return [os.path.join(programs, name), *map(str, arguments)]

    def missing(*names):
        gone = [name for name in names if shutil.which(name) is None]
        return "%s is not installed" % gone[0] if gone else ""

    def absent(name, why):
        return "" if os.path.exists(os.path.join(programs, name)) else why

    plugin = os.path.join(programs, "plugin.so")
    source = os.path.join(scratch, "big.c")
    with open(source, "w") as file:
        file.write(big_c_source())
    script = os.path.join(scratch, "script.sql")
    with open(script, "w") as file:
        file.write(SQLITE)
    cc1 = ""
    if shutil.which("gcc"):
        cc1 = hanging.run(["gcc", "-print-prog-name=cc1"]).stdout.strip()
    rust, no_rust = rust_program(scratch)
    python = "/usr/bin/python3"

    return [
        Situation("python3, running a script", [python, "-c", PYTHON_RUNNING]),
        Situation("python3, asleep 40 calls deep", [python, "-c", PYTHON_ASLEEP], asleep=True, settle=0.2, brief=True),
        Situation("sqlite3, recursive query", ["sqlite3", ":memory:", "-init", script, ""], missing=missing("sqlite3"), brief=True),
        Situation("gcc (cc1), mid-compile", [cc1, "-quiet", "-O2", source, "-o", "/dev/null"],
                  says_ready=False, settle=0.3, restarts=True,
                  missing="" if os.path.isabs(cc1) else "gcc has no cc1"),
        Situation("perl", ["perl", "-e", PERL], missing=missing("perl")),
        Situation("bash", ["/bin/bash", "-c", BASH]),
        # In libgcc's last steps to a handler, which put the handler's registers over the saved ones
        # (frozen/unwind/step_wrong_rules.c), the judges take the handler for the caller.
        Situation("C++, exceptions", program("cpp_throw", "spin"), may_end="^_Unwind_(Resume|RaiseException)"),
        Situation("C++, in a destructor meanwhile", program("cpp_throw", "pause"), asleep=True, brief=True),
        Situation("Rust, traits and generics", [rust or ""], missing=no_rust, brief=True),
        Situation("-O2 -fomit-frame-pointer, inlined", program("inlined", "spin"), brief=True),
        Situation("-O0", program("inlined_O0", "spin")),
        Situation("alloca and VLAs, moving", program("alloca_vla", "spin"), brief=True),
        Situation("alloca and VLAs, asleep", program("alloca_vla", "pause"), asleep=True),
        Situation("handler on an alternate stack", program("altstack_signal", "spin")),
        Situation("... asleep in a nested one", program("altstack_signal", "pause", "nested"), asleep=True, brief=True),
        Situation("coroutines (ucontext), moving", program("ucontext_coroutines", "spin"), brief=True),
        Situation("coroutines (ucontext), asleep", program("ucontext_coroutines", "pause"), asleep=True),
        Situation("tail calls", program("tailcalls", "spin"), brief=True),
        Situation("PLT and lazy binding", program("plt_lazy", plugin), brief=True),
        Situation("vDSO clock loop", program("vdso_clock"), brief=True),
        Situation("static-PIE", program("deep_static_pie", 30, "wave"), brief=True),
        Situation("static", program("deep_static", 30, "wave")),
        Situation("stripped", program("deep_stripped", 30, "wave")),
        Situation("no .eh_frame_hdr", program("deep_no_eh_frame_hdr", 30, "wave"), brief=True),
        Situation(".debug_frame only", program("deep_debug_frame", 30, "wave"), brief=True),
        Situation("frame pointers only, no unwind data", program("deep_frame_pointers", 30, "pause"), asleep=True, brief=True),
        Situation("musl", program("deep_musl", 30, "wave"), beginning="_start",
                  missing=absent("deep_musl", "musl-gcc is not installed"), brief=True),
        Situation("depth 10", program("deep", 10, "pause"), asleep=True),
        Situation("depth 100", program("deep", 100, "pause"), asleep=True),
        Situation("depth 1,000", program("deep", 1000, "pause"), asleep=True),
        Situation("depth 10,000", program("deep", 10000, "pause"), asleep=True),
        Situation("depth 1,000, up and down", program("deep", 1000, "wave"), brief=True),
        Situation("two threads that wait for each other", program("lock_wait"), asleep=True, threads=3, brief=True),
        Situation("200 threads, asleep", program("many_threads", 200, 100, 0), asleep=True, threads=201),
    ]

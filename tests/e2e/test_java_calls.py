# SPDX-License-Identifier: Apache-2.0
"""Java's callers beside the class files: the code of each caller has a call of the function above it (tests/judges/java_calls.py)."""
import json
import os
import subprocess
import sys

import pytest

from conftest import HERE, need_findings
from java_stacks import jdk  # noqa: F401 (a fixture)

JUDGE = os.path.join(HERE, "..", "judges", "java_calls.py")
COLLECTORS = {"ZGC": ["-J-XX:+UseZGC"], "G1": ["-J-XX:+UseG1GC"], "Serial": ["-J-XX:+UseSerialGC"]}

# What javac has work with: generic classes, lambdas, switches, strings.
CLASS = """package many;
import java.util.*;
import java.util.function.*;
public class C%(i)d<T extends Comparable<T>> extends HashMap<String, List<T>> implements Function<T, String> {
    record Pair<A, B>(A first, B second) {}
    interface Shape { double area(); }
    static final class Circle implements Shape { double r; public double area() { return 3 * r * r; } }
%(methods)s
    public String apply(T t) { return String.valueOf(t) + get("x"); }
}
"""
METHOD = """    <K> Map<K, List<Pair<K, T>>> m%(k)d(Collection<? extends T> all, Function<? super T, ? extends K> by) {
        Map<K, List<Pair<K, T>>> ret = new TreeMap<>();
        for (T each : all) ret.computeIfAbsent(by.apply(each), k -> new ArrayList<>()).add(new Pair<>(by.apply(each), each));
        int sum = %(k)d;
        switch (ret.size() %% 5) { case 0: sum += 3; break; case 1: sum -= all.size(); case 2: sum ^= 7; default: sum++; }
        Supplier<String> text = () -> "size " + ret.size() + " of " + all.size() + ' ' + sum(ret.size(), %(k)d);
        put(text.get(), new ArrayList<>(all));
        return ret;
    }
    static int sum%(k)d(int... all) { int s = 0; for (int i = 0; i < all.length && s < 1000; i++) s += all[i] > %(k)d ? all[i] : -1; return s; }
"""


def sources(folder, n):
    folder.mkdir()
    for i in range(n):
        methods = "".join(METHOD % {"k": k} for k in range(20)) + "    static int sum(int a, int b) { return a + b; }\n"
        (folder / ("C%d.java" % i)).write_text(CLASS % {"i": i, "methods": methods})
    return sorted(str(path) for path in folder.iterdir())


@pytest.mark.long   # of the short form unit/test_hotspot has the slow parts of barriers
@pytest.mark.parametrize("collector", COLLECTORS)
@pytest.mark.parametrize("engine", ["perf", "ptrace", "signal"])
def test_callers_have_the_call(stillframe, jdk, tmp_path, engine, collector):
    """javac compiles many classes with a small heap, so that the collector's barriers take their slow ways. There, what is below the frame
    of compiled code led to older return addresses: of ZGC's callers 200 in a million were wrong, and 1,000 were guesses. Now one recording of
    ten has a wrong one, on a busy machine."""
    if engine != "signal":
        need_findings(stillframe("doctor").out, "page faults are counted")
    output, limit = tmp_path / "r.sfr", [] if engine == "signal" else ["--max-cost", 90]
    stillframe("record", "-q", "-e", engine, *limit, "-F", "1997", "-o", output, "--", jdk.folder + "/bin/javac", *COLLECTORS[collector], "-J-Xmx250m", "-nowarn",
               "-d", tmp_path / "classes", *sources(tmp_path / "many", 150)).ok()
    done = subprocess.run([sys.executable, JUDGE, "--jdk", jdk.folder, output], capture_output=True, text=True)
    assert done.stdout and not done.stderr, done
    found = json.loads(done.stdout.splitlines()[0])
    wrong = sum(n for verdict, n in found.items() if verdict.startswith("wrong"))
    assert found["right"] > 20000 and wrong <= 20e-6 * found["right"] and found.get("guess", 0) <= 200e-6 * found["right"], done

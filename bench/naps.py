#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One busy thread beside many that work for a moment and nap (tests/programs/nappers.c), by every engine: the share of the nappers' CPU
time that is in samples, and by how many points the nappers' share of all the CPU time is wrong, as seen and by the program's own
clocks. What was not seen is a row of its own, and nobody's."""
import sqlite3

from common import *

RATE = sys.argv[1] if len(sys.argv) > 1 else "997hz"
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
# Of the user, and the engine.
WAYS = [([], ["ptrace"]), ([], ["signal", "--walk", "sampler"]), ([], ["signal", "--walk", "handler"]), ([], ["perf"]), (NOBODY, ["ptrace"]), (NOBODY, ["perf"])]
# CPU seconds of all, threads, microseconds of a burst and of a nap.
PROGRAMS_OF = [("30 nappers, bursts of 0.2 ms, naps of 10 ms", 8, 30, 200, 10000),
               ("300 nappers, bursts of 0.2 ms, naps of 100 ms", 8, 300, 200, 100000),
               ("2,000 nappers, bursts of 0.2 ms, naps of 600 ms", 8, 2000, 200, 600000),
               ("300 nappers, bursts of 2 ms, naps of 1 s", 8, 300, 2000, 1000000)]
FOLDER = tempfile.mkdtemp(prefix="bench-naps-")   # which each user may enter
FILE = os.path.join(FOLDER, "r.sfr")


def copy(path):
    return shutil.copy(path, FOLDER)


def measure(arguments, user, engine):
    said = run(*user, copy(STILLFRAME), "record", "-F", RATE, "-o", FILE, "-e", *engine, "--", copy(os.path.join(PROGRAMS, "nappers")),
               *map(str, arguments), env={**os.environ, "HOME": FOLDER, "XDG_CACHE_HOME": FOLDER})[1]
    true = {name: float(seconds) for name, seconds in re.findall(r"^(busy|nappers) ([\d.]+)$", said, re.M)}
    with sqlite3.connect(FILE) as database:
        seen = dict(database.execute("SELECT t.tid <> p.pid, sum(s.cpu_ns) / 1e9 FROM samples s JOIN threads t ON t.id = s.thread "
                                     "JOIN processes p ON p.id = t.process GROUP BY 1"))
        lost = database.execute("SELECT coalesce(sum(cpu_ns), 0) / 1e9 FROM losses").fetchone()[0]
    os.unlink(FILE)
    all_seen, nappers = sum(seen.values()), seen.get(1, 0)
    true_share = true["nappers"] / sum(true.values())
    return ["%.0f %%" % (100 * true_share), "%.1f %%" % (100 * nappers / true["nappers"]),
            "%.1f %%" % (100 * lost / (lost + all_seen)), "%+.1f" % (100 * (nappers / (lost + all_seen) - true_share)),
            "%+.1f" % (100 * (nappers / all_seen - true_share))]


os.chmod(FOLDER, 0o777)
copy(os.path.join(BUILD, "libstillframe-agent.so"))
try:
    table("Threads that nap", [[text, " ".join(engine) + (", an ordinary user" if user else ""), *measure(arguments, user, engine)]
                               for text, *arguments in PROGRAMS_OF for user, engine in WAYS],
          ["program", "engine", "the nappers' share", "of their time in samples", "[not seen], of all", "error of their share (points)",
           "the same, of what was seen"])
finally:
    shutil.rmtree(FOLDER)

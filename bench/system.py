#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The whole machine at once: nginx under load, a JVM, a .NET program, postgres, and a compiler, by `record --all` and by
`perf record -a -g`. Programs that are not here are left out, and said. usage: system.py [SECONDS [OPTION OF record...]]; as root."""
import contextlib
import json
import pathlib

from common import *

sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
RATE = 99
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="bench-system-"))
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
JAVA = ("import java.util.*;\npublic class Busy { public static void main(String[] a) { long n = 0; while (true) {\n"
        "  List<String> l = new ArrayList<>(); for (int i = 0; i < 20000; i++) l.add(Integer.toString(i * 31 % 9973));\n"
        "  Collections.sort(l); n += l.get(7).hashCode(); if (n == 42) System.out.println(n); } } }\n")


def nginx(stack):
    load = shutil.which("wrk") or shutil.which("ab")
    if not load or not have("nginx"):
        return None
    start_nginx(stack, FOLDER, 18099)
    url = "http://127.0.0.1:18099/"
    start(stack, [load, "-t1", "-c4", "-d1h", url] if load.endswith("wrk") else [load, "-q", "-c4", "-n100000000", url])
    return {"nginx"}


def java(stack):
    if not have("java"):
        return None
    (FOLDER / "Busy.java").write_text(JAVA)
    start(stack, ["java", str(FOLDER / "Busy.java")])
    return {"java"}


def dotnet(stack):
    if not have("dotnet"):
        return None
    from test_dotnet import compile_program
    start(stack, ["dotnet", str(compile_program(FOLDER, "Work")), "busy", "100000"])
    return {"dotnet"}


def postgres(stack):
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        return None
    programs, data = found[-1].parent, FOLDER / "pg"
    data.mkdir()
    os.chmod(FOLDER, 0o755)
    os.chown(data, 65534, 65534)
    options = {"cwd": data, "env": {**os.environ, "HOME": str(data)}}
    run(*NOBODY, programs / "initdb", "-D", str(data), "-A", "trust", "-U", "bench", **options)
    start(stack, [*NOBODY, programs / "postgres", "-D", str(data), "-p", "18098", "-k", str(data), "-c", "listen_addresses="], **options)
    time.sleep(3)
    where = ["-h", str(data), "-p", "18098", "-U", "bench", "postgres"]
    run(programs / "pgbench", "-i", "-q", *where)
    start(stack, [programs / "pgbench", "-S", "-c1", "-T", "100000", *where])
    return {"postgres"}


def compiler(stack):
    if not have("gcc"):
        return None
    source = os.path.join(TOP, "src", "capture", "ptrace", "watched_threads.c")
    start(stack, ["sh", "-c", "while :; do gcc -O2 -D_GNU_SOURCE -I%s/src -c %s -o /dev/null; done" % (TOP, source)])
    return {"cc1"}


def recorded(names):
    path, ends = FOLDER / "all.sfr", {}
    process = subprocess.Popen([STILLFRAME, "record", "--all", "-F", str(RATE), "-o", str(path), "-d", "%ds" % SECONDS, *sys.argv[2:]],
                               stderr=subprocess.PIPE, text=True)
    time.sleep(SECONDS)
    before = time.monotonic()
    said = process.communicate()[1]
    report = json.loads(run(STILLFRAME, "report", "--json", str(path))[1])
    ends["end of the time until the report"] = "%.2f s" % (time.monotonic() - before)
    found = {row["name"]: row for row in report["processes"]}
    whole = sum(row["ticks"] for row in report["ends"] if row["end"] == "root") / report["sample_ticks"]
    ends["stacks that are whole"] = "%.2f %%" % (100 * whole)
    ends["processes, and those without a name"] = "%d, %d" % (sum(row["processes"] for row in found.values()), found.get("", {"processes": 0})["processes"])
    ends["file"] = "%.2f MB" % (path.stat().st_size / 1e6)
    print(said)
    table("Processes", [(name, "%.1f %%" % (100 * row["ns"] / report["total_ns"]), row["processes"], row["samples"])
                        for name, row in list(found.items())[:16]], ["process", "share", "how many", "samples"])
    missing = names - set(found)
    return ends, missing


def by_perf():
    path = FOLDER / "perf.data"
    if not have("perf"):
        return "perf is not here"
    run("perf", "record", "-a", "-g", "-F", str(RATE), "-o", str(path), "--", "sleep", str(SECONDS), timeout=SECONDS + 120)
    return "%.2f MB" % (path.stat().st_size / 1e6)


with contextlib.ExitStack() as stack:
    stack.callback(shutil.rmtree, FOLDER, True)
    names = set()
    for program in (nginx, java, dotnet, postgres, compiler):
        started = program(stack)
        if started is None:
            print("(no %s here)" % program.__name__)
        names |= started or set()
    time.sleep(3)
    rows, missing = recorded(names)
    rows["file of perf record -a -g"] = by_perf()
    table("All processes for %d s at %d Hz" % (SECONDS, RATE), rows.items(), ["what", "seen"])
    if missing:
        sys.exit("not in the recording: %s" % ", ".join(sorted(missing)))

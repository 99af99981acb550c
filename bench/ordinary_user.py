#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What an ordinary user's recording shows of the CPU time, beside root's by perf with the kernel's frames, both of the same seconds. Root's has events
of the CPUs: those of threads cost CPU time in the calls in which the threads sleep (docs/engines.md). The innermost function of user mode is
compared: the part that is not seen, and by how many points of all CPU time the functions' shares differ (half of the sum; functions below 1 % are
one). For the engines that such a user may have. The last column is the part of the time that root sees in the kernel.
usage: ordinary_user.py [SECONDS [ROUNDS [PROGRAM ...]]]; as root."""
import contextlib
import pathlib
import sqlite3

from common import *

SECONDS = sys.argv[1] if len(sys.argv) > 1 else "8"
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 2
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="bench-user-"))
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
ENGINES = os.environ.get("ENGINES", "ptrace perf").split()
SMALL_READS = "import os\nwhile True:\n f = open('/etc/passwd', 'rb', 0)\n while f.read(64): pass\n f.close()\n"
C_FILE = "#include <stdio.h>\n#include <stdlib.h>\n" + "".join("int f%d(int a) { int s = 0; for (int i = 0; i < a; i++) s += i * %d ^ rand(); return s; }\n" % (i, i) for i in range(400))


def as_nobody(stack, *command):
    process = subprocess.Popen([*NOBODY, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=FOLDER, start_new_session=True)

    def end():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    stack.callback(end)
    time.sleep(0.7)
    return process.pid


def dd(stack):
    return as_nobody(stack, "dd", "if=/dev/zero", "of=/dev/null", "bs=4k")


def reads(stack):
    return as_nobody(stack, "/usr/bin/python3", "-c", SMALL_READS)


def gcc(stack):
    (FOLDER / "x.c").write_text(C_FILE)
    return as_nobody(stack, "sh", "-c", "while :; do gcc -O1 -c x.c -o x.o; done")


def redis(stack):
    pid = as_nobody(stack, "redis-server", "--port", "18198", "--save", "", "--dir", str(FOLDER))
    as_nobody(stack, "redis-benchmark", "-p", "18198", "-c", "4", "-n", "1000000000", "-t", "get", "-q")
    return pid


def nginx(stack):
    (FOLDER / "nginx.conf").write_text("daemon off; master_process off; error_log /dev/null; pid %s/nginx.pid; events {} http { access_log off; "
                                       "client_body_temp_path %s/b; proxy_temp_path %s/p; fastcgi_temp_path %s/f; uwsgi_temp_path %s/u; scgi_temp_path %s/s; "
                                       "server { listen 127.0.0.1:18199; root /usr/share/nginx/html; } }" % ((FOLDER,) * 6))
    pid = as_nobody(stack, "nginx", "-e", "/dev/null", "-c", str(FOLDER / "nginx.conf"))
    as_nobody(stack, "ab", "-q", "-k", "-c4", "-n5000000", "http://127.0.0.1:18199/")
    return pid


def naps(stack):
    shutil.copy(os.path.join(PROGRAMS, "nappers"), FOLDER)
    return as_nobody(stack, str(FOLDER / "nappers"), "1000", "30", "200", "10000")


def spin(stack):
    shutil.copy(os.path.join(PROGRAMS, "busy_split"), FOLDER)
    return as_nobody(stack, str(FOLDER / "busy_split"), "100")


def weights(path):
    """CPU time by innermost function of user mode; that in the kernel; that which is lost."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        found = user_weights(database)
        kernel = database.execute(
            "SELECT coalesce(sum(s.cpu_ns), 0) FROM samples s JOIN stack_frames f ON f.stack = s.stack AND f.depth = 0 "
            "JOIN frames ON frames.id = f.frame JOIN kinds ON kinds.id = frames.kind WHERE kinds.word = 'kernel'").fetchone()[0]
        lost = dict(database.execute("SELECT cause, sum(cpu_ns) FROM losses GROUP BY 1"))
    path.unlink()
    return found, kernel, lost


def of_root(pid):
    """The program's processes, by their names, with events of the CPUs."""
    name = pathlib.Path("/proc/%d/comm" % pid).read_text().strip()
    return "--all", "--filter", "user=nobody", "--filter", "name=^(%s)$" % ("sh|gcc|cc1|as" if name == "sh" else name)


def record(prefix, program, pid, out, rate, *options):
    out.unlink(missing_ok=True)
    processes = ("-p", str(pid), "--children") if prefix else of_root(pid)
    return subprocess.Popen([*prefix, program, "record", *processes, "-F", rate, "-d", SECONDS + "s", "-o", str(out), "--max-cost", "50", *options],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=FOLDER, env={**os.environ, "HOME": str(FOLDER), "XDG_CACHE_HOME": str(FOLDER)})


def compared(pid, engine, prefix=NOBODY, others=()):
    truth = record([], STILLFRAME, pid, FOLDER / "truth.sfr", "997", "-e", "perf", "--clock", "cpu")
    seen = record(prefix, str(FOLDER / "stillframe"), pid, FOLDER / "seen.sfr", "199", "-e", engine, *others)
    said = [process.communicate()[0] for process in (truth, seen)]
    if truth.returncode or seen.returncode:
        sys.exit("\n".join(said))
    true, kernel, _ = weights(FOLDER / "truth.sfr")
    found, _, lost = weights(FOLDER / "seen.sfr")
    total, total_true = sum(found.values()) + sum(lost.values()), sum(true.values())
    names = {name for name, weight in true.items() if weight >= total_true / 100}
    p, q = {}, {"lost": sum(lost.values()) / total}
    for name, weight in true.items():
        key = name if name in names else "other"
        p[key] = p.get(key, 0) + weight / total_true
    for name, weight in found.items():
        key = name if name in names else "other"
        q[key] = q.get(key, 0) + weight / total
    if os.environ.get("SHOW"):
        for name in sorted({*p, *q}, key=lambda name: -p.get(name, 0)):
            print("    %-30s %6.1f %6.1f" % (name, 100 * p.get(name, 0), 100 * q.get(name, 0)))
        print("    lost", {cause: "%.1f" % (100 * ns / total) for cause, ns in lost.items()})
        print("   ", [line for line in said[1].splitlines() if "held" in line or "samples" in line][:4])
    error = 50 * sum(abs(p.get(name, 0) - q.get(name, 0)) for name in {*p, *q})
    return 100 * q["lost"], error, 100 * kernel / total_true


def show(values):
    return "%.1f (%.1f to %.1f)" % (median(values), min(values), max(values))


def rows():
    for name in sys.argv[3:] or ["dd", "reads", "gcc", "redis", "nginx", "naps", "spin"]:
        with contextlib.ExitStack() as stack:
            pid = globals()[name](stack)
            ways = [(engine, NOBODY) for engine in ENGINES] + [("perf", [])]
            found = [[] for _ in ways]
            for _ in range(ROUNDS):
                for i, (engine, prefix) in enumerate(ways):
                    if os.environ.get("SHOW"):
                        print(name, engine, prefix[:1])
                    found[i].append(compared(pid, engine, prefix))
            for (engine, prefix), values in zip(ways, found):
                yield (name, engine + ("" if prefix else ", root"), *(show([value[i] for value in values]) for i in range(3)))


os.chmod(FOLDER, 0o777)
shutil.copy(STILLFRAME, FOLDER)
try:
    table("An ordinary user's CPU time, percent: median of %d rounds of %s s (least to most)" % (ROUNDS, SECONDS), rows(),
          ["program", "engine", "not seen", "error of the shares", "in the kernel"])
finally:
    shutil.rmtree(FOLDER)

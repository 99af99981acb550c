#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Servers with many short bursts under load: the part of their CPU time whose innermost function of user mode is a call in which the scheduler
has a part, by each engine and by `perf record`. Mostly that is one that waits (epoll_wait, a wait for a futex). A sampler that catches threads where
they wake up puts too much there, one that never catches them there too little. Of puma it is one that sends to the client, and wakes it.
The measure is `perf record -a`, of the same seconds: a program is not the same while it is sampled, and the part drifts by some points within a minute.
A second row has by how much the part itself changes while the engine records: by `perf record -a`, beside the mean of a run before and one after it.
Servers that are not here are left out, and said.
usage: servers.py [SECONDS [ROUNDS]]; as root, with perf."""
import contextlib
import pathlib
import sqlite3

from common import *

SECONDS = sys.argv[1] if len(sys.argv) > 1 else "10"
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="bench-servers-"))
WAITS = re.compile(r"_*(GI_*)?(epoll_p?wait|p?poll(64)?|futex_(abs|wait)|pthread_cond_(timed|clock)?wait|nanosleep|accept4?$)")
WAKES = re.compile(r"_*(GI_+)?(libc_)?(write|send|sendto|sendmsg|setsockopt(_syscall)?)$")
OF_PROCESS = ("-p", "{pid}")
ENGINES = {"perf": ("perf", *OF_PROCESS), "perf --all": ("perf", "--all", "--filter", "name=^{name}$"),
           "ptrace": ("ptrace", "--max-cost", "50", *OF_PROCESS), "signal": ("signal", *OF_PROCESS)}
TOOL = ("-p", "{pid}")
MEASURE = ("-a",)
BEFORE_AND_AFTER = 0.3      # seconds by which the measure begins sooner, and ends later


def listening():
    """The environment of a server that the signal engine can attach to."""
    return {**os.environ, "LD_PRELOAD": os.path.join(BUILD, "libstillframe-agent.so"), "STILLFRAME": "listen"}


def nginx(stack):
    pid = start_nginx(stack, FOLDER, 18199, "master_process off;", env=listening()).pid
    start(stack, ["ab", "-q", "-k", "-c4", "-n20000000", "http://127.0.0.1:18199/"])
    return pid


def redis(stack):
    pid = start(stack, ["redis-server", "--port", "18198", "--save", "", "--dir", str(FOLDER)], env=listening()).pid
    time.sleep(1)
    start(stack, ["redis-benchmark", "-p", "18198", "-c", "4", "-n", "1000000000", "-t", "get", "-q"])
    return pid


def tomcat(stack):
    base = FOLDER / "tomcat"
    (base / "webapps" / "ROOT").mkdir(parents=True)
    (base / "webapps" / "ROOT" / "index.jsp").write_text("<%= new java.util.Date() %> <%= request.getRemoteAddr() %>")
    shutil.copytree("/usr/share/tomcat10/etc", base / "conf")
    server = (base / "conf" / "server.xml").read_text().replace('port="8080"', 'address="127.0.0.1" port="18197"').replace('port="8005"', 'port="-1"')
    (base / "conf" / "server.xml").write_text(server)
    for name in ("logs", "work", "temp"):
        (base / name).mkdir()
    environment = {**listening(), "CATALINA_HOME": "/usr/share/tomcat10", "CATALINA_BASE": str(base)}
    pid = start(stack, ["/usr/share/tomcat10/bin/catalina.sh", "run"], env=environment).pid
    time.sleep(15)
    start(stack, ["ab", "-q", "-k", "-c4", "-n20000000", "http://127.0.0.1:18197/"])
    time.sleep(10)   # until what is hot is compiled
    return pid


def puma(stack):
    """The stacks of its threads are deeper than the kernel's copies."""
    (FOLDER / "config.ru").write_text("run lambda { |env| [200, {\"content-type\" => \"text/plain\"}, [\"hello \" * 20]] }\n")
    pid = start(stack, ["puma", "-t", "4:4", "-b", "tcp://127.0.0.1:18196", str(FOLDER / "config.ru")], env=listening()).pid
    time.sleep(3)
    start(stack, ["ab", "-q", "-k", "-c8", "-n20000000", "http://127.0.0.1:18196/"])
    time.sleep(1)
    return pid


def share_of(pattern, weights):
    """Percent of the weights of these functions; None: nothing was seen."""
    total = sum(weights.values())
    return 100 * sum(weight for name, weight in weights.items() if pattern.match(name)) / total if total else None


def filled(options, pid):
    name = pathlib.Path("/proc/%d/comm" % pid).read_text().strip()
    return [option.format(pid=pid, name=name) for option in options]


def by_stillframe(pid, pattern, options):
    path = FOLDER / "r.sfr"
    run(STILLFRAME, "record", "-q", "-e", *filled(options, pid), "-F", "997", "--clock", "cpu", "-d", SECONDS + "s", "-o", str(path))
    with contextlib.closing(sqlite3.connect(path)) as database:
        weights = user_weights(database, pid)
    weights.pop("?", None)
    path.unlink()
    return share_of(pattern, weights)


def perf_record(path, pid, options, seconds):
    return ["perf", "record", "-q", "-g", "-e", "cpu-clock", "-F", "997", "-o", path, *filled(options, pid), "--", "sleep", str(seconds)]


def by_perf(pid, pattern, options):
    path = str(FOLDER / "perf.data")
    run(*perf_record(path, pid, options, SECONDS))
    return share_in(path, pid, pattern)


def beside(pid, pattern, share):
    """(The part as `share` finds it, the part by the measure meanwhile)."""
    path = str(FOLDER / "beside.data")
    with subprocess.Popen(perf_record(path, pid, MEASURE, int(SECONDS) + 2 * BEFORE_AND_AFTER), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as measure:
        time.sleep(BEFORE_AND_AFTER)
        found = share()
        measure.wait()
    return found, share_in(path, pid, pattern)


def share_in(path, pid, pattern):
    """In a recording of perf's, which is removed."""
    _, text = run("perf", "script", "-i", path, "-F", "pid,ip,sym,dso", "--no-inline")
    weights = {}
    for block in text.split("\n\n"):
        head, *frames = block.strip().splitlines() or [""]
        if head.strip() != str(pid):
            continue
        own = [line.split() for line in frames if line.strip() and "[kernel" not in line and "([" not in line]
        name = own[0][1].split("+")[0] if own and len(own[0]) > 1 else "none"
        weights[name] = weights.get(name, 0) + 1
    os.unlink(path)
    return share_of(pattern, weights)


def spread(numbers, form):
    if not numbers:
        return "-"
    return " ".join((form % median(numbers), "(%s to %s)" % (form % min(numbers), form % max(numbers))))


def measured(name, serve, pattern):
    """Two rows of a server: the part itself and the differences in points, and by how much the part changes."""
    with contextlib.ExitStack() as stack:
        pid = serve(stack)
        ways = {engine: lambda options=options: by_stillframe(pid, pattern, options) for engine, options in ENGINES.items()}
        ways["perf record -p"] = lambda: by_perf(pid, pattern, TOOL)
        errors, changes, alone = {way: [] for way in ways}, {way: [] for way in ways}, [by_perf(pid, pattern, MEASURE)]
        for _ in range(ROUNDS):
            for way, share in ways.items():
                found, meanwhile = beside(pid, pattern, share)
                alone.append(by_perf(pid, pattern, MEASURE))
                if None not in (found, meanwhile, *alone[-2:]):
                    errors[way].append(found - meanwhile)
                    changes[way].append(meanwhile - (alone[-2] + alone[-1]) / 2)
    yield (name, spread([share for share in alone if share is not None], "%.1f %%"), *(spread(all_of_it, "%+.1f") for all_of_it in errors.values()))
    yield (name + ", change", "", *(spread(all_of_it, "%+.1f") for all_of_it in changes.values()))


# To add one: a line. The functions whose part is measured, and the programs that are needed.
SERVERS = (
    ("nginx", nginx, WAITS, ("perf", "nginx", "ab")),
    ("redis", redis, WAITS, ("redis-server", "redis-benchmark")),
    ("tomcat", tomcat, WAITS, ("/usr/share/tomcat10/bin/catalina.sh", "ab")),
    ("puma", puma, WAKES, ("puma", "ab")),
)


def rows():
    for name, serve, pattern, needs in SERVERS:
        missing = [need for need in needs if not shutil.which(need)]
        yield from measured(name, serve, pattern) if not missing else [(name, "%s is not here" % missing[0], *("" for _ in range(len(ENGINES) + 1)))]


try:
    table("CPU time in calls in which the scheduler has a part: median of %d rounds of %s s (least to most)" % (ROUNDS, SECONDS), rows(),
          ["server", "perf record -a", *("%s, points" % way for way in (*ENGINES, "perf record -p"))])
finally:
    shutil.rmtree(FOLDER)

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Servers with many short bursts under load: the part of their CPU time whose innermost function of user mode is a call that waits
(epoll_wait, a wait for a futex), by each engine and by `perf record`. A sampler that catches threads where they wake up puts too much there, one
that never catches them there too little. The measure is `perf record -a`: events of threads (perf record -p) cost CPU time in these calls
(docs/engines.md). The part itself drifts by some points within a minute, so `perf record -a` runs before and after each of the others, and the
difference from the mean of both counts. Servers that are not here are left out, and said.
usage: servers.py [SECONDS [ROUNDS]]; as root, with perf."""
import contextlib
import pathlib
import sqlite3

from common import *

SECONDS = sys.argv[1] if len(sys.argv) > 1 else "10"
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="bench-servers-"))
WAITS = re.compile(r"_*(GI_*)?(epoll_p?wait|p?poll(64)?|futex_(abs|wait)|pthread_cond_(timed|clock)?wait|nanosleep|accept4?$)")
OF_PROCESS = ("-p", "{pid}")
ENGINES = {"perf": ("perf", *OF_PROCESS), "perf --all": ("perf", "--all", "--filter", "name=^{name}$"),
           "ptrace": ("ptrace", "--max-cost", "50", *OF_PROCESS), "signal": ("signal", *OF_PROCESS)}
TOOL = ("-p", "{pid}")
MEASURE = ("-a",)


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


def wait_share(weights):
    """Percent of the weights of the functions that wait; None: nothing was seen."""
    total = sum(weights.values())
    return 100 * sum(weight for name, weight in weights.items() if WAITS.match(name)) / total if total else None


def filled(options, pid):
    name = pathlib.Path("/proc/%d/comm" % pid).read_text().strip()
    return [option.format(pid=pid, name=name) for option in options]


def by_stillframe(pid, options):
    path = FOLDER / "r.sfr"
    run(STILLFRAME, "record", "-q", "-e", *filled(options, pid), "-F", "997", "--clock", "cpu", "-d", SECONDS + "s", "-o", str(path))
    with contextlib.closing(sqlite3.connect(path)) as database:
        weights = user_weights(database, pid)
    weights.pop("?", None)
    path.unlink()
    return wait_share(weights)


def by_perf(pid, options):
    path = str(FOLDER / "perf.data")
    run("perf", "record", "-q", "-g", "-e", "cpu-clock", "-F", "997", "-o", path, *filled(options, pid), "--", "sleep", SECONDS)
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
    return wait_share(weights)


def spread(numbers, form):
    if not numbers:
        return "-"
    return " ".join((form % median(numbers), "(%s to %s)" % (form % min(numbers), form % max(numbers))))


def measured(name, serve):
    """The row of a server: of the measure the part itself, of all others the difference in points."""
    with contextlib.ExitStack() as stack:
        pid = serve(stack)
        ways = {engine: lambda options=options: by_stillframe(pid, options) for engine, options in ENGINES.items()}
        ways["perf record -p"] = lambda: by_perf(pid, TOOL)
        differences, measures = {way: [] for way in ways}, [by_perf(pid, MEASURE)]
        for _ in range(ROUNDS):
            for way, share in ways.items():
                found = share()
                measures.append(by_perf(pid, MEASURE))
                if None not in (found, *measures[-2:]):
                    differences[way].append(found - (measures[-2] + measures[-1]) / 2)
    return (name, spread([share for share in measures if share is not None], "%.1f %%"), *(spread(all_of_it, "%+.1f") for all_of_it in differences.values()))


def rows():
    for name, serve, needs in (("nginx", nginx, ("perf", "nginx", "ab")), ("redis", redis, ("redis-server", "redis-benchmark")),
                               ("tomcat", tomcat, ("/usr/share/tomcat10/bin/catalina.sh", "ab"))):
        missing = [need for need in needs if not shutil.which(need)]
        yield measured(name, serve) if not missing else (name, "%s is not here" % missing[0], *("" for _ in range(len(ENGINES) + 1)))


try:
    table("CPU time in calls that wait: median of %d rounds of %s s (least to most)" % (ROUNDS, SECONDS), rows(),
          ["server", "perf record -a", *("%s, points" % way for way in (*ENGINES, "perf record -p"))])
finally:
    shutil.rmtree(FOLDER)

# SPDX-License-Identifier: Apache-2.0
"""Servers and tools that know nothing of stillframe, with the signal engine inside, launched with it and attached to
while they run: the same answers, no request that fails, the same status, and a signal that ends them in order."""
import functools
import hashlib
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

import pytest

from conftest import AGENT, NOBODY, need, needs_agent
from processes import Target, cpu_of, tids_of, until
from recordings import Recording

pytestmark = needs_agent
WALKS = ("sampler", "handler")
by_both_walks = pytest.mark.parametrize("walk", WALKS)
by_both_ways = pytest.mark.parametrize("way", ["launched", "attached"])


@pytest.fixture
def room():
    """A folder that a server finds its way into after it has dropped root's rights; pytest's own are closed."""
    folder = tempfile.mkdtemp(prefix="stillframe-test-")
    os.chmod(folder, 0o755)
    yield folder
    shutil.rmtree(folder)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers_on(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def children_of(pid):
    found = []
    for tid in tids_of(pid):
        with open("/proc/%d/task/%d/children" % (pid, tid)) as file:
            found += map(int, file.read().split())
    return found


def end_what_it_started(pid):
    try:
        for child in children_of(pid):
            end_what_it_started(child)
            os.kill(child, signal.SIGKILL)
    except OSError:  # gone meanwhile
        pass


class Watched:
    """A server with the agent inside, and the stillframe that samples it and what it starts."""

    def __init__(self, stillframe, command, port, way, walk, output, n_workers):
        self.stillframe, self.output, self.server = stillframe, output, None
        options = ["record", "-e", "signal", "--walk", walk, "--children", "-F", "999", "-o", output]
        if way == "launched":
            self.record = stillframe.start(*options, "--", *command, stderr=subprocess.STDOUT)
        else:
            self.server = Target(command, wait_ready=False,
                                 env={**os.environ, "LD_PRELOAD": AGENT, "STILLFRAME": "listen"})
        try:
            until(lambda: answers_on(port), "it serves", 30)
            if way == "attached":
                # Its port is open before it has forked them.
                until(lambda: len(children_of(self.server.pid)) == n_workers, "it has its workers", 30)
                before = len(tids_of(self.server.pid))
                self.record = stillframe.start(*options, "-p", self.server.pid, stderr=subprocess.STDOUT)
                # Its two threads are there, and before they are the sampling has not begun.
                until(lambda: len(tids_of(self.server.pid)) >= before + 2, "the agent begins", 30)
        except AssertionError:
            self.end()
            raise

    def pid(self):
        return self.server.pid if self.server else children_of(self.record.pid)[0]

    def ends(self, how):
        """(the server's status, what was said, the recording) after this signal."""
        os.kill(self.pid(), how)
        done = self.stillframe.wait(self.record, 60)
        if not self.server:
            return done.status, done.out, Recording(self.output)
        assert done.status == 0, done
        status, said = self.server.finish()
        return status, said, Recording(self.output)

    def end(self):
        """Whatever still runs, when a test has failed: also workers, who would outlive their master."""
        if self.server:
            end_what_it_started(self.server.pid)
            self.server.end()
        elif self.record.poll() is None:
            end_what_it_started(self.record.pid)


@pytest.fixture
def watched(stillframe, tmp_path):
    started = []

    def start(command, port, way, walk, n_workers=0):
        started.append(Watched(stillframe, command, port, way, walk, tmp_path / "r.sfr", n_workers))
        return started[-1]

    yield start
    for each in started:
        each.end()


class InBackground(threading.Thread):
    """What it raises is raised by done()."""

    def __init__(self, function, *arguments):
        super().__init__(daemon=True)
        self.function, self.arguments, self.raised = function, arguments, None
        self.start()

    def run(self):
        try:
            self.function(*self.arguments)
        except Exception as error:
            self.raised = error

    def done(self):
        self.join(120)
        assert not self.is_alive(), "%s hangs" % self.function.__name__
        if self.raised:
            raise self.raised


# --- nginx ---------------------------------------------------------------------------------------

NGINX = """daemon off;
worker_processes 2;
pid {room}/nginx.pid;
error_log {room}/error.log info;
events {{ worker_connections 256; }}
http {{
    access_log off; default_type text/plain; gzip on; gzip_min_length 1; gzip_types text/plain;
    client_body_temp_path {room}/body; proxy_temp_path {room}/proxy; fastcgi_temp_path {room}/fastcgi;
    uwsgi_temp_path {room}/uwsgi; scgi_temp_path {room}/scgi;
    server {{ listen 127.0.0.1:{port}; root {room}; }}
}}
"""


def fetch_again_and_again(port, files, times):
    """Every answer is the file, whole."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for _ in range(times):
        for name, digest in files.items():
            connection.request("GET", "/" + name)
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200 and hashlib.sha256(body).hexdigest() == digest, (name, answer.status, len(body))
    connection.close()


def hammered(port, name, requests, *options):
    done = subprocess.run(["ab", "-q", "-n", str(requests), "-c", "16", *options, "http://127.0.0.1:%d/%s" % (port, name)],
                          capture_output=True, text=True, timeout=120)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert re.search(r"^Complete requests: +%d$" % requests, said, re.M), said
    assert re.search(r"^Failed requests: +0$", said, re.M) and "Non-2xx" not in said, said


@by_both_walks
@by_both_ways
def test_nginx(watched, room, way, walk):
    """A master and its workers, which drop root's rights; new workers in the midst (SIGHUP); SIGQUIT lets them finish,
    SIGTERM does not."""
    need("nginx", "ab")
    files = {}
    for name, text in (("small.txt", b"hello\n"), ("large.txt", os.urandom(150000).hex().encode())):
        with open(os.path.join(room, name), "wb") as file:
            file.write(text)
        files[name] = hashlib.sha256(text).hexdigest()
    port = free_port()
    with open(os.path.join(room, "nginx.conf"), "w") as file:
        file.write(NGINX.format(room=room, port=port))
    server = watched(["nginx", "-p", room, "-c", os.path.join(room, "nginx.conf")], port, way, walk, n_workers=2)
    # Its port is open before the rest of it is ready.
    said = os.path.join(room, "nginx.pid")
    master = int(until(lambda: os.path.exists(said) and open(said).read(), "it says its pid"))
    assert master == server.pid()
    old = until(lambda: len(children_of(master)) == 2 and children_of(master), "it has workers")
    os.kill(master, signal.SIGHUP)
    until(lambda: len(children_of(master)) == 2 and not set(children_of(master)) & set(old), "it has new workers")
    fetching = InBackground(fetch_again_and_again, port, files, 30)
    hammered(port, "small.txt", 20000, "-k")
    hammered(port, "large.txt", 300, "-H", "Accept-Encoding: gzip")
    fetching.done()
    status, said, recording = server.ends(signal.SIGQUIT if way == "launched" else signal.SIGTERM)
    assert status == 0, said
    log = open(os.path.join(room, "error.log")).read()
    assert not re.search(r"\[(emerg|alert|crit|error)\]", log), log
    assert log.count("exited with code 0") == 4 and "exited on signal" not in log, log
    # The master, and its new workers; where it was launched, those that went before them, too.
    assert recording.value("SELECT count(*) FROM processes") == (5 if way == "launched" else 3)
    assert recording.total_shares().get("main", 0) > 0.9, recording.total_shares()
    assert recording.samples > 100, recording.samples
    recording.assert_accounts()


# --- redis ---------------------------------------------------------------------------------------


class Redis:
    """As much of its protocol as is needed here: a command and its answer."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.file = self.socket.makefile("rb")

    def __call__(self, *words):
        words = [str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        return self.answer()

    def answer(self):
        line = self.file.readline()
        kind, text = line[:1], line[1:-2]
        assert kind and kind != b"-", line
        if kind == b"+":
            return text.decode()
        if kind == b":":
            return int(text)
        if kind == b"*":
            return [self.answer() for _ in range(int(text))] if int(text) >= 0 else None
        return self.file.read(int(text) + 2)[:-2].decode() if int(text) >= 0 else None

    def facts(self, section):
        return dict(line.split(":", 1) for line in self("INFO", section).splitlines() if ":" in line)

    def close(self):
        self.file.close()
        self.socket.close()


def count_and_wait(port, times):
    """Its answers are right, and a wait with a time-out lasts as long as it should, or ends with what came."""
    redis = Redis(port)
    for n in range(times):
        redis("INCR", "counter")
        assert redis("RPUSH", "own-%d" % threading.get_ident(), n) == 1
        assert redis("BLPOP", "own-%d" % threading.get_ident(), 30)[1] == str(n)
        assert redis("ECHO", "x" * n) == "x" * n
    assert redis("BLPOP", "nothing", "0.2") is None
    redis.close()


@pytest.mark.long("attached", "sampler")   # nginx is served by both
@by_both_walks
@by_both_ways
def test_redis(watched, room, way, walk):
    """Its threads, its clients, and its snapshots, which forked children write."""
    need("redis-server", "redis-benchmark")
    port = free_port()
    server = watched(["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--dir", room, "--save", "",
                      "--daemonize", "no"], port, way, walk)
    counting = [InBackground(count_and_wait, port, 300) for _ in range(3)]
    done = subprocess.run(["redis-benchmark", "-p", str(port), "-n", "15000", "-c", "20", "-q", "-t", "set,get,lrange_100"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "rror" not in done.stdout + done.stderr, done
    redis = Redis(port)
    for turn in range(2):
        redis("BGSAVE")
        until(lambda: redis.facts("persistence")["rdb_bgsave_in_progress"] == "0", "the snapshot is written", 30)
        assert redis.facts("persistence")["rdb_last_bgsave_status"] == "ok"
    for each in counting:
        each.done()
    assert redis("GET", "counter") == "900"
    assert int(redis.facts("stats")["total_error_replies"]) == 0, redis("INFO")
    redis.close()
    status, said, recording = server.ends(signal.SIGTERM if way == "launched" else signal.SIGINT)
    assert status == 0, said
    assert "ready to exit, bye bye" in said and "crashed" not in said, said
    # Its children may be over before there is anything to say of them.
    assert recording.value("SELECT count(*) FROM processes") >= 1
    assert recording.samples > 100, recording.samples
    assert recording.total_shares().get("main", 0) > 0.5, recording.total_shares()
    recording.assert_accounts()


# --- tools ---------------------------------------------------------------------------------------

# Each begins when it is given a line or the end of its input, takes about half a second, says something that depends on
# all that it did, and ends with a status of its own.
TOOLS = {
    "python3": (["/usr/bin/python3", "-c", "import sys, hashlib\nsys.stdin.readline()\nx = 0\n"
                 "for i in range(3000000): x += i * i % 7\n"
                 "print(x, hashlib.sha256(str(x).encode()).hexdigest())\nsys.exit(3)"], 3),
    "sqlite3": (["sqlite3", ":memory:", ".shell head -n 1 > /dev/null",
                 "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1200000) "
                 "SELECT sum(x * x % 17), count(*), group_concat(x % 10) LIKE '%9876%' FROM c;", ".exit 4"], 4),
    "xz": (["sh", "-c", "exec 2>&1; read go; seq 1 500000 | xz -1 -T1 -c | sha256sum; exit 5"], 5),
}


@functools.lru_cache(None)
def alone(name):
    """What it says and ends with when nobody watches."""
    command, status = TOOLS[name]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == status and done.stdout, done
    return status, done.stdout


def watch_for_a_while(stillframe, target, options):
    """Attaches before it begins, and leaves when it has used some CPU time, however long that takes, or at its end."""
    record = stillframe.start(*options, "-p", target.pid)
    # Its two threads are there, and before they are the sampling has not begun.
    until(lambda: len(tids_of(target.pid)) >= 4 or record.poll() is not None, "the agent begins", 60)
    if record.poll() is not None:
        return stillframe.wait(record)
    start = cpu_of(target.pid)
    target.process.stdin.write("\n")
    target.process.stdin.flush()
    # A shell only waits for what it started.
    until(lambda: not target.runs() or cpu_of(target.pid) > start + 0.15, "there is something to sample", 60)
    if target.runs():
        record.send_signal(signal.SIGINT)
    return stillframe.wait(record)


@by_both_walks
@pytest.mark.parametrize("name", sorted(TOOLS))
def test_tools(stillframe, tmp_path, name, walk):
    """Alone, launched and attached they say the same and end with the same status."""
    command, status = TOOLS[name]
    need(name if name != "python3" else command[0])
    options = ["record", "-e", "signal", "--walk", walk, "--children", "-F", "499"]
    done = stillframe(*options, "-q", "-o", tmp_path / "l.sfr", "--", *command)
    assert (done.status, done.out) == alone(name), done
    Recording(tmp_path / "l.sfr").assert_accounts()
    target = Target(command, wait_ready=False, stdin=subprocess.PIPE,
                    env={**os.environ, "LD_PRELOAD": AGENT, "STILLFRAME": "listen"})
    try:
        until(lambda: len(tids_of(target.pid)) > 1, "its agent listens")
        done = watch_for_a_while(stillframe, target, [*options, "-o", tmp_path / "a.sfr"])
        assert done.status == 0, done
        ended = target.finish()
    finally:
        target.end()
    assert ended == alone(name)
    recording = Recording(tmp_path / "a.sfr")
    if name != "xz":  # there the shell is attached to, which sleeps; what it starts executes other programs
        # 0.15 s are 75 ticks; cpu_of() counts in hundredths.
        assert recording.samples > 40, done
    recording.assert_accounts()


BROWSER = "/usr/lib/chromium/chromium"   # without Debian's script
PAGE = "data:text/html,<p id=p>%s</p><script>let k = 0; for (const t = Date.now(); Date.now() - t < 300;) k += Math.sin(k); " \
       "document.getElementById('p').textContent = 2 + 2</script>"


def browse(everybodys, *before):
    """What Chromium shows of the page. All that it has started ends with it."""
    command = [*NOBODY, *map(str, before), BROWSER, "--headless", "--disable-gpu", "--dump-dom", PAGE]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               cwd=everybodys.folder, env=everybodys.environment, start_new_session=True)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return process.returncode, out, err


@pytest.mark.long("handler")   # nothing here depends on the walk
@by_both_walks
def test_chromium_in_its_sandbox(everybodys, walk):
    """Its zygote ends itself if it has more threads than one, and makes system calls in a child that has no thread-local variables.
    Its children set the actions of all signals by number before they go on."""
    if not os.path.exists(BROWSER):
        pytest.skip("chromium is not installed")
    status, shown, why = browse(everybodys)
    if status:
        pytest.skip("chromium's sandbox does not work here: " + why[-200:])
    out = everybodys.path("browser.sfr")
    done = browse(everybodys, everybodys.stillframe(), "record", "-q", "-e", "signal", "--walk", walk, "--children", "-o", out, "--")
    assert done[:2] == (0, shown) and "<p id=\"p\">4</p>" in shown, done
    Recording(out).assert_accounts()

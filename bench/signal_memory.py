#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of the agent in a process with 200 threads and 200 MB of mapped code: what the process has more than the same
process without it, and what the agent's own mappings hold. The first run makes the unwind tables, the second reads them."""
from signal_common import *

MEGABYTES, THREADS = "200", "200"


def rollup(pid):
    """{field: KiB} of the whole process."""
    return {name: int(kib) for name, kib in
            re.findall(r"^(\w+): +(\d+) kB", open("/proc/%d/smaps_rollup" % pid).read(), re.M)}


def of_agent(pid):
    """KiB of private dirty memory in the mappings of the library itself."""
    dirty, ours = 0, False
    for line in open("/proc/%d/smaps" % pid):
        if re.match(r"^[0-9a-f]+-", line):
            ours = "libstillframe-agent" in line
        elif ours and line.startswith("Private_Dirty:"):
            dirty += int(line.split()[1])
    return dirty


def measure(environment):
    os.environ.update(environment)
    with Target(os.path.join(BENCH, "big_code"), MEGABYTES, "60", THREADS, wait=0) as target:
        mapped = target.process.stdout.readline().strip()
        time.sleep(12)   # several looks at the maps, and the tables
        result = mapped, rollup(target.pid), of_agent(target.pid)
    for name in environment:
        if name != "XDG_CACHE_HOME":
            del os.environ[name]
    return result


def rows():
    cache = os.path.join(SCRATCH, "cache")
    mapped, without, _ = measure({})
    yield ("without", mapped, *["%d KiB" % without[name] for name in ("Anonymous", "Private_Dirty", "Pss")], "-", "-")
    for label in ("tables are made", "tables are read"):
        for walk in ("sampler", "handler"):
            if label == "tables are made":
                shutil.rmtree(cache, ignore_errors=True)
            file = new_file("sfs")
            _, found, own = measure({"XDG_CACHE_HOME": cache, "LD_PRELOAD": AGENT,
                                     "STILLFRAME": "rate=199hz,walk=%s,out=%s" % (walk, file)})
            yield ("walk=%s, %s" % (walk, label), mapped,
                   *["%d KiB" % found[name] for name in ("Anonymous", "Private_Dirty", "Pss")],
                   "%+d KiB" % (found["Private_Dirty"] - without["Private_Dirty"]), "%d KiB" % own)


table("Memory of the agent, %s threads, %s MB of code" % (THREADS, MEGABYTES), rows(),
      ["", "target", "anonymous", "private dirty", "proportional", "more than without", "of it in the library's mappings"])
clean()

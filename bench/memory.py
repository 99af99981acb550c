#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of stillframe while it records a process with 500 MB of mapped code: big_code.c maps the executable segments
of the largest shared objects of this machine, and copies of them, until it has that much."""
from common import *

WANTED = int(sys.argv[1]) if len(sys.argv) > 1 else 500

with Target(os.path.join(BENCH, "big_code"), str(WANTED), "120", wait=8) as target:
    mapped = target.process.stdout.readline().strip()
    rows = []
    for label, environment in (("first time: tables are made", "cold"), ("again: tables are mapped", "warm")):
        cache = "/tmp/bench-memory-cache"
        if environment == "cold":
            shutil.rmtree(cache, ignore_errors=True)
        os.environ["XDG_CACHE_HOME"] = cache
        mib, seconds, text = peak_memory(STILLFRAME, "record", "-p", str(target.pid), "-d", "5s", "-o",
                                         "/tmp/bench-memory.sfr")
        rows.append((label, mapped, "%.0f MiB" % mib, "%.1f s" % (seconds - 5)))
        os.unlink("/tmp/bench-memory.sfr")
    mib, seconds, _ = peak_memory("eu-stack", "-p", str(target.pid))
    rows.append(("eu-stack, one look", mapped, "%.0f MiB" % mib, "%.1f s" % seconds))
    shutil.rmtree(cache, ignore_errors=True)
table("Memory beside %d MB of mapped code" % WANTED, rows, ["", "target", "peak resident", "start and end"])

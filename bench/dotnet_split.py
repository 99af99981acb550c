#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A .NET program one of whose threads spends 50, 30 and 20 % of its CPU time in three methods that run the same loop for so long
(tests/programs/dotnet/Split.cs): what each engine and walk says, and how far off it is. `tier 1`: the methods have been compiled with all
optimisations before. `OSR`: they never are; each call begins in code without optimisations, and is replaced amid its loop.

dotnet_split.py [SECONDS]: for each of the ten rows (30 unless told: some 10,000 samples). The folder BUILD/bench/dotnet is for what is built, and kept.

The statistical error of n samples at share p is sqrt(p (1 - p) / n). Snapshots are taken at safe points, which are not spread as the time is."""
import json
import math
import sqlite3

from dotnet_common import *

SECONDS = sys.argv[1] if len(sys.argv) > 1 else "30"
FOLDER = os.path.join(BENCH, "dotnet")
TRUTH = {"Demo.Split.Half(int)": 50, "Demo.Split.Third(int)": 30, "Demo.Split.Fifth(int)": 20}
WARM = 3                                 # seconds until what is hot is compiled
NEVER = {"DOTNET_TC_CallCountThreshold": "7FFFFFFF"}
TIERS = {"tier 1": {}, "OSR": NEVER}
# To add one: a line.
WAYS = {
    "perf": ("-e", "perf"),
    "ptrace": ("-e", "ptrace"),
    "signal, sampler (own)": ("-e", "signal", "--walk", "sampler"),
    "signal, handler (own)": ("-e", "signal", "--walk", "handler"),
    "signal, snapshots": ("-e", "signal", "--dotnet-walk", "snapshot"),
}


def seen(file):
    """({method: percent of the time in the three}, samples of a thread on a CPU), of the thread that splits its time."""
    report = json.loads(run(STILLFRAME, "report", "--clock", "cpu", "--threads", "^splits$", "--json", file)[1])
    own = {each["name"]: each["self_ns"] for each in report["functions"] if each["name"] in TRUTH}
    with sqlite3.connect(file) as database:
        n = database.execute("SELECT count(*) FROM samples s JOIN threads t ON t.id = s.thread WHERE s.cpu_ns > 0 AND t.name = 'splits'").fetchone()[0]
    return {name: 100 * own.get(name, 0) / sum(own.values()) for name in TRUTH}, n


def measure(program, tier, way, folder):
    file = os.path.join(folder, "r.sfr")
    with Target(program, wait=WARM, env={**judges.ENVIRONMENT, **TIERS[tier]}) as target:
        run(STILLFRAME, "record", "-q", "-F", "499", *WAYS[way], "-d", SECONDS + "s", "-p", str(target.pid), "-o", file)
    shares, n = seen(file)
    os.unlink(file)
    deviations = "/".join("%.2f" % (100 * math.sqrt(share / 100 * (1 - share / 100) / n)) for share in TRUTH.values())
    return (tier, way, n, *("%+.2f" % (shares[name] - TRUTH[name]) for name in TRUTH), deviations)


with judges.scratch(), tempfile.TemporaryDirectory() as temporary:
    os.makedirs(FOLDER, exist_ok=True)
    split = judges.build(FOLDER, "Split", 10)
    table("A known split of the CPU time of a .NET thread: errors in points", (measure(split, tier, way, temporary) for tier in TIERS for way in WAYS),
          ["code", "way", "samples", "50 %", "30 %", "20 %", "one standard deviation"])

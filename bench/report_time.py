#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""From the end of a 60 s recording at 1 kHz to the printed report: stillframe, beside perf record + script + report.

The target is Debian's sqlite3 on a recursive query. What counts is the time from when the recording was to end until
the report has been printed.
"""
from common import *

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
QUERY = "with recursive c(x) as (select 1 union all select x+1 from c) select sum(x*x%7) from c"


def by_stillframe(pid):
    whole, _ = run(STILLFRAME, "record", "-p", pid, "-d", "%gs" % SECONDS, "-F", "1khz", "-o", "/tmp/bench-r.sfr")
    report, text = run(STILLFRAME, "report", "/tmp/bench-r.sfr")
    size = os.path.getsize("/tmp/bench-r.sfr")
    os.unlink("/tmp/bench-r.sfr")
    return whole - SECONDS, report, size, len(text.splitlines())


def by_perf(pid):
    whole, _ = run("perf", "record", "-q", "-e", "cpu-clock:u", "-F", "1000", "--call-graph", "dwarf", "-p", pid,
                   "-o", "/tmp/bench-r.data", "--", "sleep", "%g" % SECONDS)
    script, text = run("perf", "script", "-i", "/tmp/bench-r.data", timeout=3000)
    report, _ = run("perf", "report", "-i", "/tmp/bench-r.data", "--stdio", "-q", timeout=3000)
    size = os.path.getsize("/tmp/bench-r.data")
    os.unlink("/tmp/bench-r.data")
    return whole - SECONDS, script + report, size, len(text.splitlines())


rows = []
with Target("sqlite3", ":memory:", QUERY) as target:
    for tool, measure in (("stillframe", by_stillframe), ("perf (dwarf stacks), script + report", by_perf)):
        if tool.startswith("perf") and not have("perf"):
            continue
        ending, reporting, size, _ = measure(str(target.pid))
        rows.append((tool, "%.2f s" % ending, "%.2f s" % reporting, "%.2f s" % (ending + reporting),
                     "%.1f MB" % (size / 1e6)))
table("From the end of a %g s recording at 1 kHz to the report" % SECONDS, rows,
      ["tool", "start and end of recording", "report", "together", "file"])

# SPDX-License-Identifier: Apache-2.0
"""What was recorded: by plain SQL, and as `stillframe report --json` tells it. Both check what must always hold."""
import contextlib
import json
import os
import re
import sqlite3
import struct
import tempfile

PAGE, TRAILER = 4096, struct.Struct(">16sQIIQQ")
MAGIC = b"stillframe redo\0"


def fnv1a(data):
    total = 0xcbf29ce484222325
    for byte in data:
        total = (total ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return total


def redo_record(old, new):
    """What stillframe appends to a recording before it makes the new bytes out of the old ones: docs/recording.md."""
    pages = {at // PAGE + 1: new[at:at + PAGE] for at in range(0, len(old), PAGE) if old[at:at + PAGE] != new[at:at + PAGE]}
    record = b"".join(pages.values()) + struct.pack(">%dI" % len(pages), *pages)
    trailer = TRAILER.pack(MAGIC, len(new), len(pages), PAGE, fnv1a(old[:PAGE]), 0)[:-8]
    return record + trailer + struct.pack(">Q", fnv1a(record + trailer))


def redone(data):
    """The bytes of a recording with what a killed stillframe left to do; None: nothing was left."""
    if len(data) < TRAILER.size or not data[-TRAILER.size:].startswith(MAGIC):
        return None
    _, size, n, page, _, check = TRAILER.unpack(data[-TRAILER.size:])
    start = len(data) - TRAILER.size - n * (page + 4)
    if page != PAGE or start < size or fnv1a(data[start:-8]) != check:
        return None
    whole = bytearray(data[:size])
    for i, number in enumerate(struct.unpack_from(">%dI" % n, data, start + n * page)):
        whole[(number - 1) * page:number * page] = data[start + i * page:start + (i + 1) * page]
    return bytes(whole)


def stream_record(kind, fixed, *texts):
    """A record of a stream (docs/stream.md)."""
    body = fixed + b"".join(texts)
    body += bytes(-len(body) % 8)
    return struct.pack("<IHH", len(body) + 8, kind, 0) + body


def has_begun(path):
    """It has been written to its file once. Who dies in the midst of that first time leaves none."""
    if not path.exists() or path.stat().st_size < PAGE:
        return False
    with open(path, "rb") as file:
        return struct.unpack_from(">I", file.read(100), 28)[0] * PAGE <= path.stat().st_size


def so_far(path, what):
    """Of the samples in a recording that is being written."""
    try:
        with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as db:
            return db.execute("SELECT %s FROM samples" % what).fetchone()[0]
    except sqlite3.OperationalError:   # not there yet, or just being written
        return 0


def ticks_so_far(path):
    return so_far(path, "coalesce(sum(ticks), 0)")


def samples_so_far(path):
    return so_far(path, "count(*)")


def cpu_samples_so_far(path, tid=None):
    """Those that stand for CPU time; of all threads, or of one. On a busy machine most ticks of a thread are waits for a CPU."""
    of_whom = "" if tid is None else " AND thread IN (SELECT id FROM threads WHERE tid = %d)" % tid
    return so_far(path, "coalesce(sum(cpu_ns > 0%s), 0)" % of_whom)


def cpu_told(said):
    """What a test program said that it used of CPU time, all threads together, by its own getrusage() (tests/programs/program.h)."""
    return float(re.search(r"^cpu_seconds ([\d.]+)$", said, re.M)[1])


def of_the_three(shares):
    """busy_split's three functions, of what they took together: starting and calibrating are none of theirs."""
    three = {name: shares.get(name, 0) for name in ("spin_sixty", "spin_thirty", "spin_ten")}
    total = sum(three.values()) or 1
    return {name: share / total for name, share in three.items()}


def worth_of(weights):
    """As how many samples of one weight these tell (Kish's effective sample size): where a machine was too busy to sample for
    a while, one sample speaks for much."""
    return sum(weights) ** 2 / (sum(weight * weight for weight in weights) or 1)


class Recording:
    """A recording, read by plain SQL as docs/recording.md describes it."""

    def __init__(self, path):
        assert os.path.exists(path), "no recording was written: %s" % path
        self.path = path
        # What a killed stillframe left half-written is put right in a copy.
        with open(path, "rb") as file:
            whole = redone(file.read())
        if whole:
            self.copy = tempfile.NamedTemporaryFile(suffix=".sfr")
            self.copy.write(whole)
            self.copy.flush()
        self.db = sqlite3.connect("file:%s?mode=ro" % (self.copy.name if whole else path), uri=True)
        assert self.value("PRAGMA integrity_check") == "ok"
        self.check()

    def rows(self, sql, *values):
        return self.db.execute(sql, values).fetchall()

    def value(self, sql, *values):
        return self.db.execute(sql, values).fetchone()[0]

    def check(self):
        """What must hold in every recording, however it ended."""
        nothing = {
            "samples of no thread": "SELECT count(*) FROM samples WHERE thread NOT IN (SELECT id FROM threads)",
            "samples of no stack": "SELECT count(*) FROM samples WHERE stack <> 0 AND stack NOT IN (SELECT id FROM stacks)",
            "samples of no tick": "SELECT count(*) FROM samples WHERE ticks < 1",
            # A loss may be time without a tick: the thread ended before one was due.
            "losses of nothing": "SELECT count(*) FROM losses WHERE ticks < 1 AND cpu_ns = 0 AND wall_ns = 0 AND amount = 0",
            "negative times": "SELECT count(*) FROM samples WHERE cpu_ns < 0 OR wall_ns < 0 OR time_ns < 0",
            "unknown states": "SELECT count(*) FROM samples WHERE state NOT IN (SELECT id FROM states)",
            "unknown causes": "SELECT count(*) FROM losses WHERE cause NOT IN (SELECT id FROM causes)",
            # A kill leaves no count.
            "events that are neither seen nor lost": "SELECT amount_counted - amount_seen - amount_lost FROM accounting WHERE amount_counted IS NOT NULL "
                                                     "UNION ALL SELECT 0",
            "stacks below themselves": "SELECT count(*) FROM stacks WHERE parent >= id",
        }
        for what, sql in nothing.items():
            assert self.value(sql) == 0, "%s in %s" % (what, self.path)

    @property
    def ticks(self):
        return self.value("SELECT ticks FROM accounting")

    @property
    def samples(self):
        return self.value("SELECT sample_ticks FROM accounting")

    def losses(self):
        return dict(self.rows("SELECT cause, ticks FROM loss_totals"))

    def cpu(self):
        """(seen, lost, counted) in seconds."""
        return tuple(ns / 1e9 for ns in self.rows(
            "SELECT cpu_seen_ns, cpu_lost_ns, cpu_counted_ns FROM accounting")[0])

    def duration(self):
        """From the first look to the last, in seconds. (The session's own is longer, by its end.)"""
        return self.value("SELECT max(end_ns) - min(start_ns) FROM threads") / 1e9

    def assert_accounts(self, tolerance=0.05, slack=0.05, used=None):
        """ticks = samples + losses, in time: what the samples and losses stand for is what the kernel counted,
        and each thread's life is accounted for. What was counted includes losses of no known thread, so where the whole
        of a program was recorded it is compared with what that one says itself: `used`, see cpu_told()."""
        seen, lost, counted = self.cpu()
        assert abs(seen + lost - counted) <= tolerance * counted + slack, (
            "CPU seen %.3f + lost %.3f, counted %.3f" % (seen, lost, counted))
        if used is not None:
            assert abs(counted - used) <= tolerance * used + slack, "CPU counted %.3f, used %.3f" % (counted, used)

    def self_shares(self, clock="cpu_ns"):
        """{function: share} by what stands on top."""
        rows = self.rows("SELECT name, sum(%s) FROM self_times GROUP BY name" % clock)
        total = sum(weight for _, weight in rows) or 1
        return {name: weight / total for name, weight in rows}

    def total_shares(self, clock="cpu_ns"):
        rows = self.rows("SELECT name, sum(%s) FROM total_times GROUP BY name" % clock)
        total = self.value("SELECT sum(%s) FROM samples" % clock) or 1
        return {name: weight / total for name, weight in rows}

    def worth(self):
        return worth_of([weight for weight, in self.rows("SELECT cpu_ns FROM samples")])

    def stacks_of(self, function):
        """The stacks (lists of names, innermost first) on which this function is, with their sample counts."""
        stacks = {}
        for stack, depth, name in self.rows(
                "SELECT f.stack, f.depth, n.name FROM stack_frames f JOIN frame_names n ON n.frame = f.frame "
                "ORDER BY f.stack, f.depth, n.seq"):
            stacks.setdefault(stack, []).append(name)
        counts = dict(self.rows("SELECT stack, sum(ticks) FROM samples GROUP BY stack"))
        return [(names, counts[stack]) for stack, names in stacks.items() if function in names]

    def threads(self):
        return self.rows("SELECT tid, name, process FROM thread_names")


class Report:
    """What `stillframe report --json` says of a recording or of a stream file."""

    def __init__(self, stillframe, path):
        assert os.path.exists(path), "no recording was written: %s" % path
        self.stillframe, self.path = stillframe, path
        self.json = json.loads(stillframe("report", "--json", path).ok().out)
        self.check()

    def check(self):
        """ticks = samples + losses, whatever else happened."""
        assert self.json["ticks"] == self.json["sample_ticks"] + self.json["lost_ticks"], self.path
        assert sum(loss["ticks"] for loss in self.json["losses"]) == self.json["lost_ticks"], self.path

    def __getattr__(self, name):
        return self.json[name]

    @property
    def lost(self):
        """{cause: ticks}"""
        return {loss["cause"]: loss["ticks"] for loss in self.json["losses"]}

    @property
    def too_busy(self):
        """Seconds of CPU time that were lost because the machine was too busy for an answer, or for a look, in time."""
        return sum(loss["cpu_ns"] for loss in self.json["losses"] if loss["cause"] in ("late", "gone", "unseen", "rest")) / 1e9

    @property
    def ended(self):
        """{how walks ended: ticks}"""
        return {end["end"]: end["ticks"] for end in self.json["ends"]}

    def self_shares(self):
        """{function: share of the CPU time} by what stands on top."""
        return self.shares("self_ns")

    def total_shares(self):
        return self.shares("total_ns")

    def worth(self):
        told = json.loads(self.stillframe("export", self.path, "-f", "speedscope", "--clock", "cpu", "-o", "-").ok().out)
        return worth_of([weight for profile in told["profiles"] for weight in profile["weights"]])

    def shares(self, which):
        """Of what was seen."""
        sums = {}
        for row in self.json["functions"]:
            sums[row["name"]] = sums.get(row["name"], 0) + row[which]
        sums.pop("[not seen]", None)
        return {name: ns / (self.json["total_ns"] - self.json["unseen_ns"] or 1) for name, ns in sums.items()}

    def cpu(self):
        """(seen, lost, counted) in seconds."""
        return tuple(self.json["cpu_%s_ns" % what] / 1e9 for what in ("seen", "lost", "counted"))

    def assert_accounts(self, tolerance=0.05, slack=0.05):
        """What samples and losses stand for is what the kernel counted."""
        seen, lost, counted = self.cpu()
        assert abs(seen + lost - counted) <= tolerance * counted + slack, (
            "CPU seen %.3f + lost %.3f, counted %.3f" % (seen, lost, counted))

# SPDX-License-Identifier: Apache-2.0
"""What stillframe, gdb and eu-stack say about the threads of a process that does not move."""
import collections
import functools
import json
import os
import re

import hanging

HERE = os.path.dirname(os.path.abspath(__file__))

Frame = collections.namedtuple("Frame", "pc name module address")
Stack = collections.namedtuple("Stack", "frames end")  # innermost first


class JudgeFailed(Exception):
    """A judge that could not speak: never taken for agreement."""


def run(command, timeout):
    try:
        return hanging.run(command, timeout, env={**os.environ, "LC_ALL": "C.UTF-8", "DEBUGINFOD_URLS": ""})
    except AssertionError as late:
        raise JudgeFailed(str(late))


def by_stillframe(pid, stillframe):
    done = run([stillframe, "dump", "-p", str(pid), "--json", "--max-depth", "16384"], 60)
    if done.returncode != 0:
        raise JudgeFailed("stillframe dump: status %d: %s" % (done.returncode, done.stderr.strip()[:300]))
    stacks = {}
    for thread in json.loads(done.stdout)["threads"]:
        frames = [Frame(int(frame["pc"], 16), frame.get("function"), frame.get("module"),
                        int(frame["address"], 16) if frame.get("address") else 0)
                  for frame in thread["frames"] if frame.get("kind", "native") == "native"]
        stacks[thread["tid"]] = Stack(frames, thread["end"])
    return stacks


def by_gdb(pid):
    done = run(["gdb", "-batch", "-nx", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off",
                "-p", str(pid), "-x", os.path.join(HERE, "gdb_stacks.py")], 120)
    line = next((line for line in done.stdout.splitlines() if line.startswith("STACKS ")), None)
    if line is None:
        raise JudgeFailed("gdb: " + (done.stderr.strip() or done.stdout.strip())[-300:])
    stacks = {}
    for thread in json.loads(line[len("STACKS "):]):
        frames = [Frame(frame["pc"], frame["function"], None, 0)
                  for frame in thread["frames"] if frame["type"] != "tail-call"]
        while len(frames) > 1 and frames[-1].pc == 0:  # gdb shows the end mark of a stack as a frame
            frames.pop()
        stacks[thread["tid"]] = Stack(frames, thread["end"])
    return stacks


def by_eu_stack(pid):
    done = run(["eu-stack", "-i", "-n", "0", "-p", str(pid)], 120)
    stacks, frames, tid = {}, None, None
    for line in done.stdout.splitlines():
        header = re.match(r"TID (\d+):", line)
        frame = re.match(r"#\d+\s+0x([0-9a-f]+)(?: - 1)?(?: (.*))?$", line)
        if header:
            tid, frames = int(header.group(1)), []
            stacks[tid] = Stack(frames, "root")
        elif frame and frames is not None:
            frames.append(Frame(int(frame.group(1), 16), (frame.group(2) or "").strip() or None, None, 0))
    for line in done.stderr.splitlines():
        trouble = re.search(r"tid (\d+).*: (.*)$", line)
        if trouble and int(trouble.group(1)) in stacks:
            tid = int(trouble.group(1))
            stacks[tid] = Stack(stacks[tid].frames, trouble.group(2))
    if not stacks:
        raise JudgeFailed("eu-stack: " + done.stderr.strip()[-300:])
    return stacks


# --- names ---------------------------------------------------------------------------------------


def unnamed(name):
    """No name, or one that this judge cannot read (eu-stack leaves Rust's names mangled)."""
    return name is None or name == "??" or re.match(r"^(\[.*\]|0x[0-9a-f]+.*|_R[A-Za-z].*)$", name) is not None


@functools.lru_cache(None)
def plain(name):
    """Without parameters, template arguments, clone suffixes and versions: judges print them differently."""
    name = re.sub(r"@.*$", "", name)
    name = name.replace("$u7b$", "{").replace("$u7d$", "}").replace("$LT$", "<").replace("$GT$", ">")
    name = re.sub(r"\[(clone|abi)[^]]*\]", "", name)
    name = re.sub(r"\.(constprop|isra|part|cold|lto_priv|localalias|llvm)\b.*$", "", name)
    name = re.sub(r"::h[0-9a-f]{16}$", "", name)
    kept, depth = [], 0
    name = name.replace("(anonymous namespace)", "anonymous").replace("{lambda", "lambda")
    name = name.replace("->", "").replace("::<", "<")
    name = re.sub(r"operator(<<|>>|<=>|<=|>=|<|>|->|\(\))", lambda m: "operator" + str(len(m.group(1))), name)
    for char in name:
        if char in "<(":
            depth += 1
        elif char in ">)":
            depth -= 1
        elif depth == 0:
            kept.append(char)
    text = "".join(kept).replace(" const", "").strip()
    return re.sub(r"[{}]|#\d+", "", text.split(" ")[-1].split("::")[-1]) if text else name


def bare(name):
    """Without the marks of libc's internal aliases: __GI___libc_pause, __libc_pause and pause are one."""
    return re.sub(r"^_*(GI_+)?(vdso_)?(libc_)?", "", plain(name))


@functools.lru_cache(None)
def symbols(module):
    """Where each name of a file is, by its symbol tables and those of its separate debug file."""
    where = collections.defaultdict(set)
    files = [module]
    notes = hanging.run(["readelf", "-n", module]).stdout
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)
    if build_id:
        text = build_id.group(1)
        files.append("/usr/lib/debug/.build-id/%s/%s.debug" % (text[:2], text[2:]))
    for file in files:
        if not os.path.exists(file):
            continue
        table = hanging.run(["readelf", "-sW", file]).stdout
        for line in table.splitlines():
            columns = line.split()
            if len(columns) >= 8 and columns[3] in ("FUNC", "NOTYPE", "IFUNC", "GNU_IFUNC"):
                where[columns[7].split("@")[0]].add(columns[1])
    return where


def names_agree(a, b):
    """"" if they differ; else how they agree."""
    if unnamed(a.name) or unnamed(b.name):
        return "same" if unnamed(a.name) and unnamed(b.name) else "unnamed"
    if a.name == b.name or plain(a.name) == plain(b.name):
        return "same"
    if bare(a.name) == bare(b.name):
        return "alias"
    module = a.module or b.module
    if module and os.path.exists(module):
        where = symbols(module)
        if where.get(a.name, set()) & where.get(b.name, set()):
            return "alias"
    return ""


def same(a, b):
    return a.pc == b.pc and names_agree(a, b) != ""

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runtimes are known through one interface: outside their own folders and the list of runtimes, no identifier and no comment
names one. Texts that users see may, in the files below, on at most so many lines; these numbers may only shrink.

    check_runtimes.py TOP
"""
import pathlib
import re
import sys

NAMES = re.compile(r"hotspot|java|jvm|coreclr|dotnet", re.IGNORECASE)
ROOMS = ("frozen/hotspot/", "runtime/hotspot/", "agent/java/", "frozen/coreclr/", "runtime/coreclr/", "agent/coreclr/")
# The one list of runtimes. The build files name the files of the rooms.
LIST = ("frozen/runtime_list.h",)

# Lines whose strings name one: in examples of commands, names of recordings as `record` makes them for a program.
TEXTS = {
    "cli/export.c": 4,
    "cli/report.c": 2,
}

TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"')


def main():
    source = pathlib.Path(sys.argv[1]) / "src"
    wrong, seen = [], {}
    for path in sorted([*source.rglob("*.[ch]"), *source.rglob("*.js"), *source.rglob("*.html"), *source.rglob("*.css")]):
        name = str(path.relative_to(source))
        if name.startswith(ROOMS) or name in LIST:
            continue
        if NAMES.search(name):
            wrong.append("%s: the file's name names a runtime" % name)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not NAMES.search(line):
                continue
            if NAMES.search(TOKEN.sub('""', line)):
                wrong.append("%s:%d names a runtime: %s" % (name, number, line.strip()))
            else:
                seen[name] = seen.get(name, 0) + 1
    for name in sorted(set(seen) | set(TEXTS)):
        n, most = seen.get(name, 0), TEXTS.get(name, 0)
        if n > most:
            wrong.append("%s: %d lines have texts that name a runtime, at most %d may" % (name, n, most))
        if n < most:
            wrong.append("%s: %d lines have texts that name a runtime; write that number into %s" % (
                name, n, pathlib.Path(__file__).name))
    if not (source / LIST[0]).is_file() or not all((source / room).is_dir() for room in ROOMS):
        wrong.append("%s is not the top folder, or a room was renamed" % sys.argv[1])
    print("\n".join(wrong) or "runtimes: named in their own rooms only")
    sys.exit(bool(wrong))


main()

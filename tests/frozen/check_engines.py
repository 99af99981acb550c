#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No code outside src/capture/ depends on which engine it has: no identifier, no text and no comment there names one.

The names are those of the list in src/capture/engine.h.

usage: check_engines.py SOURCE_FOLDER
"""
import pathlib
import re
import sys

# Of a name that is the name of something else, too, only the forms that mean the engine are looked for: there.
ALSO = {"signal": r".*", "ptrace": r"os/", "perf": r"os/|agent/|frozen/signal/",
        "bpf": r"os/|frozen/trace\.h|base/foreign_file\.c|agent/interpose/undone\.c"}
FORMS = (r"\bsf_(?:engine_)?%s_?(?:check_dump|dump|describe|options|check_settings)?\b|\bSF_ENGINE_%s\b|\bengine[ -]%s\b"
         r"|\b%s engine\b|\bengine = \"%s\"|-e %s\b|\"capture/%s(?:_\w+)?\.h\"")
# A perf map is a file of a runtime's, which it writes by an option.
ELSE = re.compile(r"perf[ _]maps?(?![a-z])|/tmp/perf-|tools/perf/|--perf-basic-prof", re.IGNORECASE)
QUESTION = re.compile(r"strcmp\([^;]*engine->name|engine == &|engine->(?:inside|outside)\b")


def names(source):
    text = (source / "capture" / "engine.h").read_text()
    found = re.findall(r"\bX\((\w+)\)", re.search(r"#define SF_ENGINES\(X\)(.*)", text)[1])
    if len(found) < 2:
        sys.exit("src/capture/engine.h has no list of engines")
    return found


def patterns(source):
    """(where, pattern) of each name."""
    for name in names(source):
        forms = re.compile(FORMS.replace("%s", name), re.IGNORECASE)
        yield re.compile(r".*"), forms
        if name in ALSO:
            yield re.compile(r"(?!%s)" % ALSO[name]), re.compile(r"(?:\b|_)%s(?:\b|_)" % name, re.IGNORECASE)
        else:
            yield re.compile(r".*"), re.compile(r"\b%s\b" % name, re.IGNORECASE)
    yield re.compile(r".*"), QUESTION


def complaints(source):
    sought = list(patterns(source))
    for path in sorted(source.rglob("*.[ch]")):
        where = path.relative_to(source).as_posix()
        if where.startswith("capture/"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if any(place.match(where) and pattern.search(ELSE.sub("", line)) for place, pattern in sought):
                yield "src/%s:%d depends on an engine: %s" % (where, number, line.strip())


def main():
    found = list(complaints(pathlib.Path(sys.argv[1])))
    print("\n".join(found) or "engines: named in src/capture only")
    sys.exit(bool(found))


main()

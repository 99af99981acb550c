#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every ending of a walk and every cause of a loss has its row in docs/endings.md. Every engine, exporter, stream record and
command of the code is on its page. The names of the code in docs/glossary.md are there. Links are checked by check_links.py.

    check_docs.py TOP
"""
import pathlib
import re
import sys

top = pathlib.Path(sys.argv[1])
wrong = []
code = "\n".join(path.read_text(errors="replace") for folder in ("src", "include")
                 for path in (top / folder).rglob("*.[ch]"))


def words(path, pattern):
    found = re.findall(pattern, (top / path).read_text())
    if not found:
        wrong.append("%s: nothing matches %s" % (path, pattern))
    return found


def listed(path, name):
    """The names in a list that is a macro: #define LIST(X) X(one) X(two)."""
    return re.findall(r"\bX\((\w+)\)", words(path, r"#define %s\(X\)(.*)" % name)[0])


def must_say(page, names, form):
    text = (top / page).read_text()
    wrong.extend("%s does not mention %s" % (page, form % name) for name in names if form % name not in text)


must_say("docs/endings.md", words("src/frozen/ends.h", r'X\(\w+, "([\w-]+)"'), "| `%s` |")
must_say("docs/engines.md", listed("src/capture/engine.h", "SF_ENGINES"), "| `%s` |")
must_say("docs/stream.md", words("src/frozen/output/record.h", r"X\((\w+), sf_stream"), "| `%s` |")
must_say("docs/exports.md", listed("src/export/export.h", "SF_EXPORTERS"), "| `%s` |")
must_say("README.md", listed("src/cli/commands.h", "SF_COMMANDS"), "| `%s` |")
for name in re.findall(r"`(?:struct |enum )?(sf_\w+|SF_\w+)`", (top / "docs/glossary.md").read_text()):
    if not re.search(r"\b%s\b" % name, code):
        wrong.append("docs/glossary.md gives %s as the name in the code, which has no such name" % name)
print("\n".join(wrong) or "docs: all there")
sys.exit(bool(wrong))

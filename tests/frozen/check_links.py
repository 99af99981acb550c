#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""All links of README and docs lead somewhere: files, headings of pages, pictures, and the sources that a page names.
Places in pages and in comments that cite a page in plain words, or a heading or section of it, are checked too.

    check_links.py TOP
"""
import pathlib
import re
import sys

TOP_FOLDERS = ("src", "include", "tests", "bench", "fuzz", "model", "docs", "tools", "proto")
SOURCE = re.compile(r"^[a-z]\w*(?:/[\w.*-]+)+\.(?:c|h|py|mjs|sh|pml|proto|md)$")
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|<(?:img|a)\b[^>]*?\b(?:src|href)=\"([^\"]+)\"")
CITED = re.compile(r'docs/([\w/-]+\.md)(?:,[\s*#/]+"([^"\n]+)"|,\s+section\s+(\d+))?')


def without_code(text):
    """The text with its code blocks emptied; line numbers stay."""
    return re.sub(r"^(```|~~~).*?^\1", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S | re.M)


def headings(page):
    return re.findall(r"^#+ +(.+?) *#*$", without_code(page.read_text()), flags=re.M)


def plain(heading):
    """A heading as it is read: the text of links, no backticks."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")


def anchors(page):
    """The anchors that a page has, by the rule of the usual hosts: lower case, spaces to dashes, a number if met before."""
    seen, found = {}, set()
    for heading in headings(page):
        slug = re.sub(r"[^\w\- ]", "", plain(heading).lower()).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        found.add("%s-%d" % (slug, count) if count else slug)
    return found | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", page.read_text()))


def broken_link(top, page, link):
    """Why the link leads nowhere, or None."""
    if re.match(r"[a-z]+:", link):
        return None
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return "links to %s, which is not there" % link
    if not target.is_relative_to(top):
        return "links to %s, which is outside the project" % link
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return "links to %s: no heading of %s has this anchor" % (link, target.name)
    return None


def missing_source(top, word):
    """Whether the word is a path of the project that is not there. NAME and your_name stand for any name."""
    path = re.sub(r"NAME|your_\w+", "*", word.rstrip(".,:;/"))
    if path.split("/")[0] in TOP_FOLDERS and re.fullmatch(r"[\w./*-]+", path):
        return not any(top.glob(path))
    if SOURCE.match(path):
        return not any(top.glob("src/" + path)) and not any(top.glob(path))
    return False


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def faults_of_page(top, page):
    text = without_code(page.read_text())
    for match in LINK.finditer(text):
        why = broken_link(top, page, match.group(1) or match.group(2))
        if why:
            yield line_of(text, match.start()), why
    for match in re.finditer(r"`([^`\n]+)`", text):
        for word in match.group(1).split():
            if "/" in word and missing_source(top, word):
                yield line_of(text, match.start()), "names %s, which is not there" % word


def citation_faults(top, path):
    text = path.read_text(errors="replace")
    for match in CITED.finditer(text):
        page = top / "docs" / match.group(1)
        if not page.exists():
            yield line_of(text, match.start()), "cites docs/%s, which is not there" % match.group(1)
            continue
        titles = [plain(heading) for heading in headings(page)]
        if match.group(2) and match.group(2) not in titles:
            yield line_of(text, match.start()), 'cites docs/%s, "%s": no such heading' % match.groups()[:2]
        if match.group(3) and not any(title.startswith(match.group(3) + ".") for title in titles):
            yield line_of(text, match.start()), "cites docs/%s, section %s: no such section" % match.group(1, 3)


def main():
    top = pathlib.Path(sys.argv[1]).resolve()
    pages = [top / "README.md", *sorted((top / "docs").rglob("*.md"))]
    pages += [page for page in (top / "tests/README.md",) if page.exists()]
    sources = [path for folder in ("src", "include", "tests", "bench", "fuzz", "model")
               for path in sorted((top / folder).rglob("*")) if path.suffix in (".c", ".h", ".py", ".pml", ".mjs")
               and "node_modules" not in path.parts]
    wrong = ["%s:%d: %s" % (page.relative_to(top), line, why) for page in pages for line, why in faults_of_page(top, page)]
    wrong += ["%s:%d: %s" % (path.relative_to(top), line, why)
              for path in pages + sources for line, why in citation_faults(top, path)]
    print("\n".join(wrong) or "links: %d pages and %d sources, none is broken" % (len(pages), len(sources)))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make one page of the files in this folder, and C of the page.

combine.py OUT.c page.html FILE.css... FILE.js...

All style sheets go where the page says @STYLE@, all scripts, in order and inside one function,
where it says @SCRIPT@. @POLICY@ becomes a content security policy that allows exactly these and
nothing else. The page is cut at @DATA@.
"""

import base64
import hashlib
import pathlib
import sys


def digest(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def combine(page, styles, scripts):
    style = "\n" + "".join(styles)
    script = '\n(function () {\n"use strict";\n' + "".join(scripts) + "})();\n"
    policy = "default-src 'none'; img-src data:; style-src {}; script-src {}".format(
        digest(style), digest(script))
    return (page.replace("@POLICY@", policy)
                .replace("@STYLE@", style)
                .replace("@SCRIPT@", script))


def as_c(name, text):
    data = text.encode()
    rows = (", ".join(str(b) for b in data[i:i + 24]) for i in range(0, len(data), 24))
    return "const unsigned char {0}[] = {{\n{1}\n}};\nconst size_t {0}_size = sizeof({0});\n".format(
        name, ",\n".join(rows))


def main():
    out, page, *parts = map(pathlib.Path, sys.argv[1:])
    styles = [p.read_text() for p in parts if p.suffix == ".css"]
    scripts = [p.read_text() for p in parts if p.suffix == ".js"]
    head, foot = combine(page.read_text(), styles, scripts).split("@DATA@")
    out.write_text('#include "export/web_page.h"\n\n' + as_c("sf_web_page_head", head)
                   + as_c("sf_web_page_foot", foot))


main()

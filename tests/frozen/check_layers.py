#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layers of src/: a folder includes from itself and from the folders to its left, only.

usage: check_layers.py SOURCE_FOLDER
"""
import pathlib
import re
import sys

# Lowest first; folders on one line do not include each other.
LAYERS = [
    ["frozen"],
    ["base"],
    ["elf"],
    ["os"],
    ["target"],
    ["unwind", "runtime", "symbols"],
    ["stream"],
    ["capture"],
    ["recording"],
    ["export"],
    ["session"],
    ["agent", "cli"],
]
LEVEL = {folder: level for level, folders in enumerate(LAYERS) for folder in folders}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"/]+)/', re.MULTILINE)


def complaints(source):
    for path in sorted(source.rglob("*.[ch]")):
        folder = path.relative_to(source).parts[0]
        if folder not in LEVEL:
            yield f"{path}: {folder} is in no layer (add it to {pathlib.Path(__file__).name})"
            continue
        for included in INCLUDE.findall(path.read_text()):
            if included not in LEVEL:
                yield f"{path}: includes {included}/, which is in no layer"
            elif included != folder and LEVEL[included] >= LEVEL[folder]:
                yield f"{path}: {folder} may not include {included}"


def main():
    source = pathlib.Path(sys.argv[1])
    if not (source / "frozen" / "unwind" / "walk.h").is_file():
        sys.exit(f"{source} is not the source folder")
    found = list(complaints(source))
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No circles of calls or data, read from the symbols of the built objects: none between rooms (check_layers.py), and none of
more than three files within a room. An object uses another one if it needs a symbol, a function or data, that the other defines.

usage: check_circles.py SOURCE_FOLDER BUILT_SOURCE_FOLDER
"""
import collections
import pathlib
import subprocess
import sys

MAX_FILES = 3

def sources_of(source, folder):
    """The C files below a folder by the names that meson gives to their objects."""
    return {path.relative_to(folder).as_posix().replace("/", "_"): path.relative_to(source).as_posix()
            for path in folder.rglob("*.c")}


def objects(source, built):
    """The built objects of src/, and the source file of each."""
    for path in sorted(built.rglob("*.o")):
        folder = source / path.relative_to(built).parts[0]
        name = sources_of(source, folder).get(path.name[:-len(".o")])
        if name:
            yield path, name


def read_symbols(files):
    """The definitions and the needs of all objects: symbol to files, and file to symbols."""
    defined, needed = collections.defaultdict(set), collections.defaultdict(set)
    listing = subprocess.run(["nm", "--portability", "--print-file-name", *files], check=True, capture_output=True,
                             text=True).stdout
    for line in listing.splitlines():
        where, rest = line.split(": ", 1)
        symbol, kind = rest.split()[:2]
        if kind in "TDBRVWC":
            defined[symbol].add(files[where])
        elif kind == "U":
            needed[files[where]].add(symbol)
    return defined, needed


def uses(files, defined, needed):
    return {name: {other for symbol in needed[name] for other in defined.get(symbol, ())} - {name}
            for name in set(files.values())}


def circles(graph):
    """The largest sets whose members all lead to each other, of more than one member."""
    reached = {node: reach(graph, node) for node in graph}
    found = {frozenset(other for other in reached[node] if node in reached[other]) for node in graph}
    return [circle for circle in found if len(circle) > 1]


def reach(graph, start):
    seen, left = set(), [start]
    while left:
        for node in graph.get(left.pop(), ()):
            if node not in seen:
                seen.add(node)
                left.append(node)
    return seen


def room_of(name):
    return str(pathlib.PurePath(name).parent)


def between_rooms(graph):
    rooms = collections.defaultdict(set)
    for name, others in graph.items():
        rooms[room_of(name)] |= {room_of(other) for other in others} - {room_of(name)}
    return rooms


def named_twice(defined):
    for symbol, names in sorted(defined.items()):
        if len(names) > 1:
            yield f"{symbol} is defined more than once: " + ", ".join(sorted(names))


def complaints(graph):
    for circle in circles(between_rooms(graph)):
        yield "rooms use each other: " + ", ".join(sorted(circle))
    for circle in circles(graph):
        if len(circle) > MAX_FILES and len({room_of(name) for name in circle}) == 1:
            yield "more than %d files use each other: %s" % (MAX_FILES, ", ".join(sorted(circle)))


def main():
    source, built = map(pathlib.Path, sys.argv[1:3])
    files = {str(path): name for path, name in objects(source, built)}
    defined, needed = read_symbols(files)
    graph = uses(files, defined, needed)
    if "frozen/raw.c" not in graph.get("frozen/signal/handler.c", ()):
        sys.exit(f"{built} does not have the objects of {source}")
    found = [*named_twice(defined), *complaints(graph)]
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()

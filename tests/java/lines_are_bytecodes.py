#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes class files anew in which the line of each bytecode is its index and 1, so that whoever tells lines tells bytecodes.

lines_are_bytecodes.py FROM TO: all *.class of a folder, the Java Virtual Machine Specification, chapter 4."""
import os
import struct
import sys

import class_file


def changed(source, known, change):
    """The bytes of a list of attributes; change(name, content) gives the new content, None to leave one out."""
    kept = []
    for number, name, content in class_file.attributes(source, known):
        content = change(name, content)
        if content is not None:
            kept.append(struct.pack(">HI", number, len(content)) + content)
    return struct.pack(">H", len(kept)) + b"".join(kept)


def with_lines(code, known):
    """A Code attribute, with a line for each byte of it."""
    source = class_file.Bytes(code)
    head = source.take(4)
    size = source.number(4)
    body = source.take(size)
    handlers = source.number(2)
    table = source.take(8 * handlers)
    assert size < 65535, size
    lines = struct.pack(">H", size) + b"".join(struct.pack(">HH", i, i + 1) for i in range(size))
    return (head + struct.pack(">I", size) + body + struct.pack(">H", handlers) + table +
            changed(source, known, lambda name, content: lines if name == "LineNumberTable" else content))


def members(source, known):
    n = source.number(2)
    made = [struct.pack(">H", n)]
    for _ in range(n):
        made.append(source.take(6))
        made.append(changed(source, known,
                               lambda name, content: with_lines(content, known) if name == "Code" else content))
    return b"".join(made)


def rewrite(data):
    source = class_file.Bytes(data)
    source.take(8)
    known = class_file.constants(source)
    source.take(6)
    source.take(2 * source.number(2))
    head = data[:source.at]
    return head + members(source, known) + members(source, known) + data[source.at:]


def main(source, target):
    os.makedirs(target, exist_ok=True)
    for name in os.listdir(source):
        if name.endswith(".class"):
            with open(os.path.join(source, name), "rb") as file:
                data = rewrite(file.read())
            with open(os.path.join(target, name), "wb") as file:
                file.write(data)


if __name__ == "__main__":
    main(*sys.argv[1:])

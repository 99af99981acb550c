#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes class files anew in which the line of each bytecode is its index and 1, so that whoever tells lines tells bytecodes.

lines_are_bytecodes.py FROM TO: all *.class of a folder, the Java Virtual Machine Specification, chapter 4."""
import os
import struct
import sys

# Bytes of a constant behind its tag; Utf8 (1) has a length of its own.
CONSTANTS = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        self.at += size
        return self.data[self.at - size:self.at]

    def number(self, size):
        return int.from_bytes(self.take(size), "big")


def constants(source):
    """{number: text} of the Utf8 constants."""
    names, number, n = {}, 1, source.number(2)
    while number < n:
        tag = source.number(1)
        if tag == 1:
            names[number] = source.take(source.number(2)).decode("utf-8", "replace")
        else:
            source.take(CONSTANTS[tag])
        number += 2 if tag in (5, 6) else 1
    return names


def attributes(source, names, change):
    """The bytes of a list of attributes; change(name, content) gives the new content, None to leave one out."""
    kept = []
    for _ in range(source.number(2)):
        number, size = source.number(2), source.number(4)
        content = change(names[number], source.take(size))
        if content is not None:
            kept.append(struct.pack(">HI", number, len(content)) + content)
    return struct.pack(">H", len(kept)) + b"".join(kept)


def with_lines(code, names):
    """A Code attribute, with a line for each byte of it."""
    source = Bytes(code)
    head = source.take(4)
    size = source.number(4)
    body = source.take(size)
    handlers = source.number(2)
    table = source.take(8 * handlers)
    assert size < 65535, size
    lines = struct.pack(">H", size) + b"".join(struct.pack(">HH", i, i + 1) for i in range(size))
    return (head + struct.pack(">I", size) + body + struct.pack(">H", handlers) + table +
            attributes(source, names, lambda name, content: lines if name == "LineNumberTable" else content))


def members(source, names):
    n = source.number(2)
    made = [struct.pack(">H", n)]
    for _ in range(n):
        made.append(source.take(6))
        made.append(attributes(source, names,
                               lambda name, content: with_lines(content, names) if name == "Code" else content))
    return b"".join(made)


def rewrite(data):
    source = Bytes(data)
    source.take(8)
    names = constants(source)
    source.take(6)
    source.take(2 * source.number(2))
    head = data[:source.at]
    return head + members(source, names) + members(source, names) + data[source.at:]


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

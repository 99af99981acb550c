# SPDX-License-Identifier: Apache-2.0
"""Reads class files: the Java Virtual Machine Specification, chapter 4."""

# Bytes of a constant behind its tag; Utf8 (1) has a length of its own.
CONSTANTS = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
UTF8, LONG, DOUBLE = 1, 5, 6


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        self.at += size
        return self.data[self.at - size:self.at]

    def number(self, size):
        return int.from_bytes(self.take(size), "big")


def constants(source):
    """{number: (tag, content)}; of Utf8 the content is its text."""
    found, number, n = {}, 1, source.number(2)
    while number < n:
        tag = source.number(1)
        found[number] = (tag, source.take(source.number(2)).decode("utf-8", "replace") if tag == UTF8 else source.take(CONSTANTS[tag]))
        number += 2 if tag in (LONG, DOUBLE) else 1
    return found


def attributes(source, known):
    """(number of the name, name, content) of each of a list of attributes. `known`: the constants."""
    for _ in range(source.number(2)):
        number, size = source.number(2), source.number(4)
        yield number, known[number][1], source.take(size)

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the layout of a running Java virtual machine, as the unit tests read it (tests/unit/fixtures/).

    tests/java/record_layout.py PID "where it is from" > tests/unit/fixtures/hotspot-17.txt

Of the tables that its libjvm exports, what src/frozen/hotspot/hotspot.h wants of any version: with tabs between them,
    field   TYPE FIELD OFFSET TYPE-TEXT     (OFFSET is "static" where the table has an address)
    size    TYPE BYTES
    number  NAME VALUE
"""
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def wanted():
    """({(type, field)}, {type}, {constant}) of the lists in src/frozen/hotspot/hotspot.h."""
    text = open(os.path.join(TOP, "src/frozen/hotspot/hotspot.h")).read()
    lists = {name: re.findall(r'X\(\w+,[\s\\]*((?:"[^"]*"[,\s\\]*)+)', body.split("\n\n")[0])
             for name, body in re.findall(r"#define (SF_HOTSPOT_\w+)\(X\)(.*?)(?=#define|\nenum)", text, re.S)}
    lists = {name: [re.sub(r'"[\s\\]*"', "", row) for row in rows] for name, rows in lists.items()}
    words = {name: [[each.split("|") for each in re.findall('"([^"]*)"', row)] for row in rows]
             for name, rows in lists.items()}
    return ({(type, field) for types, fields in words["SF_HOTSPOT_FIELDS"] for type in types for field in fields},
            {type for types, in words["SF_HOTSPOT_SIZES"] for type in types},
            {name for names, in words["SF_HOTSPOT_NUMBERS"] for name in names})


class Jvm:
    def __init__(self, pid):
        self.memory = open("/proc/%d/mem" % pid, "rb", buffering=0)
        line = next(line for line in open("/proc/%d/maps" % pid) if line.rstrip().endswith("/libjvm.so"))
        path = "/proc/%d/root%s" % (pid, line.split()[-1])
        start = int(line.split("-")[0], 16)
        symbols = subprocess.run(["nm", "-D", path], check=True, capture_output=True, text=True).stdout
        self.symbols = {name.split("@")[0]: start + int(address, 16)
                        for address, _, name in re.findall(r"^(\w+) (\w) (gHotSpotVM\S+)", symbols, re.M)}

    def read(self, address, size):
        self.memory.seek(address)
        return self.memory.read(size)

    def number(self, address, size=8):
        return int.from_bytes(self.read(address, size), "little")

    def text(self, address):
        return self.read(address, 200).split(b"\0")[0].decode() if address else ""

    def variable(self, name):
        return self.number(self.symbols["gHotSpotVM" + name])

    def entries(self, table, entry, columns):
        """{column: value} of each entry; columns: {name: (symbol, bytes)}; the first one's 0 ends the table."""
        at, stride = self.variable(table), self.variable(entry + "ArrayStride")
        offsets = {name: (self.variable(entry + symbol), size) for name, (symbol, size) in columns.items()}
        while True:
            row = {name: self.number(at + offset, size) for name, (offset, size) in offsets.items()}
            if not row[next(iter(columns))]:
                return
            yield row
            at += stride


def main():
    jvm = Jvm(int(sys.argv[1]))
    fields, types, constants = wanted()
    print("# %s\n# recorded by tests/java/record_layout.py" % sys.argv[2])
    for row in jvm.entries("Structs", "StructEntry", {
            "type": ("TypeNameOffset", 8), "field": ("FieldNameOffset", 8), "text": ("TypeStringOffset", 8),
            "static": ("IsStaticOffset", 4), "offset": ("OffsetOffset", 8)}):
        name = jvm.text(row["type"]), jvm.text(row["field"])
        if name in fields:
            print("field", *name, "static" if row["static"] else row["offset"], jvm.text(row["text"]), sep="\t")
    for row in jvm.entries("Types", "TypeEntry", {"type": ("TypeNameOffset", 8), "size": ("SizeOffset", 8)}):
        if jvm.text(row["type"]) in types:
            print("size", jvm.text(row["type"]), row["size"], sep="\t")
    for kind, size in (("Int", 4), ("Long", 8)):
        for row in jvm.entries(kind + "Constants", kind + "ConstantEntry",
                               {"name": ("NameOffset", 8), "value": ("ValueOffset", size)}):
            if jvm.text(row["name"]) in constants:
                print("number", jvm.text(row["name"]), row["value"], sep="\t")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

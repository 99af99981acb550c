#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the Java callers in recordings: the code of each caller must have a call of the function above it, on the line that the frame
shows. The class files are the judge: those of the JDK, and those of the program.

usage: java_calls.py --jdk FOLDER [--classes JAR_OR_FOLDER]... [--examples N] RECORDING...

A pair is judged where two Java functions follow each other with no native frame between them. Not judged, and counted: functions of classes
that no file has (hidden classes, proxies), callers in which an invokedynamic or a method handle may call anything, what the virtual machine calls, and
callers that are marked as a guess. Prints how often each verdict was, times the samples, and the wrong pairs; exit status 1 if there are any.
"""
import argparse
import collections
import contextlib
import json
import os
import sqlite3
import struct
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "java"))
import class_file  # noqa: E402

# Operand bytes of each instruction (JVMS 6.5); the three of no fixed length are in skip().
OPERANDS = {**dict.fromkeys([16, 18, 188, *range(21, 26), *range(54, 59), 169], 1), **dict.fromkeys([17, 19, 20, 132, *range(153, 169), *range(178, 185), 187, 189, 192, 193, 198, 199], 2),
            197: 3, **dict.fromkeys([185, 186, 200, 201], 4)}
TABLESWITCH, LOOKUPSWITCH, WIDE, IINC, INVOKEDYNAMIC = 170, 171, 196, 132, 186
INVOKES = range(182, 187)
METHODS = (10, 11)   # tags of constants: of a class, of an interface
NATIVE = 0x0100


class Method:
    """What a method calls: {name: lines}; `opaque`: something in it may call anything."""
    def __init__(self):
        self.calls, self.opaque, self.has_lines, self.native = collections.defaultdict(set), False, False, False


def member(known, index):
    """(class, name) of a reference to a method; no class for a dynamic one."""
    tag, content = known[index]
    holder, name_and_type = struct.unpack(">HH", content)
    name = known[struct.unpack(">HH", known[name_and_type][1])[0]][1]
    return (known[int.from_bytes(known[holder][1], "big")][1] if tag in METHODS else "", name)


def skip(code, at):
    """Where the instruction behind the one at `at` begins."""
    op = code[at]
    if op in (TABLESWITCH, LOOKUPSWITCH):
        data = (at + 4) & ~3
        first, second = struct.unpack_from(">ii", code, data + 4) if op == TABLESWITCH else (struct.unpack_from(">i", code, data + 4)[0], 0)
        return data + (12 + 4 * (second - first + 1) if op == TABLESWITCH else 8 + 8 * first)
    if op == WIDE:
        return at + (6 if code[at + 1] == IINC else 4)
    return at + 1 + OPERANDS.get(op, 0)


def lines_of(table):
    """[(first pc, line)] of an attribute LineNumberTable."""
    return [struct.unpack(">HH", table.take(4)) for _ in range(table.number(2))]


def add_code(method, known, source):
    source.take(4)
    code, lines, at = source.take(source.number(4)), [], 0
    source.take(8 * source.number(2))   # handlers
    for _, name, content in class_file.attributes(source, known):
        lines += lines_of(class_file.Bytes(content)) if name == "LineNumberTable" else []
    method.has_lines |= bool(lines)
    lines.sort()
    while at < len(code):
        if code[at] in INVOKES:
            holder, name = member(known, int.from_bytes(code[at + 1:at + 3], "big"))
            method.opaque |= code[at] == INVOKEDYNAMIC or holder in ("java/lang/invoke/MethodHandle", "java/lang/invoke/VarHandle")
            method.calls[name].add(max((entry for entry in lines if entry[0] <= at), default=(0, 0))[1])
        at = skip(code, at)


def members(source, known):
    """(flags, name, attributes) of each field, or of each method."""
    for _ in range(source.number(2)):
        flags, name, _ = source.number(2), known[source.number(2)][1], source.take(2)
        yield flags, name, list(class_file.attributes(source, known))


def methods_of(data):
    """{name: Method}: overloaded methods are one."""
    source, methods = class_file.Bytes(data), collections.defaultdict(Method)
    source.take(8)
    known = class_file.constants(source)
    source.take(6)
    source.take(2 * source.number(2))   # interfaces
    list(members(source, known))        # fields
    for flags, name, attributes in members(source, known):
        methods[name].native |= bool(flags & NATIVE)
        for _, attribute, content in attributes:
            if attribute == "Code":
                add_code(methods[name], known, class_file.Bytes(content))
    return methods


def opened(recording):
    return contextlib.closing(sqlite3.connect("file:%s?mode=ro" % recording, uri=True))


def class_of(function):
    return function.split("(")[0].rpartition(".")[0]


def of_the_jdk(jdk, recordings, path):
    """The class files of all functions that are in the recordings, as far as the JDK has them."""
    names = set()
    for recording in recordings:
        with opened(recording) as database:
            names.update(class_of(name) for name, in database.execute("SELECT name FROM functions WHERE name LIKE '%.%(%'"))
    subprocess.run([os.path.join(jdk, "bin", "java"), "-XX:TieredStopAtLevel=1", os.path.join(os.path.dirname(__file__), "ModuleClasses.java"), path],
                   input="\n".join(sorted(names)), text=True, check=True)
    return path


class Classes:
    """Of jar files and folders; read when they are first named."""
    def __init__(self, paths):
        self.roots = [path for path in paths if os.path.isdir(path)]
        self.jars = [zipfile.ZipFile(path) for path in paths if not os.path.isdir(path)]
        self.known = {}

    def data(self, name):
        path = name.replace(".", "/") + ".class"
        for root in self.roots:
            if os.path.exists(os.path.join(root, path)):
                with open(os.path.join(root, path), "rb") as file:
                    return file.read()
        for jar in self.jars:
            for prefix in ("", "BOOT-INF/classes/", "WEB-INF/classes/"):
                if prefix + path in jar.NameToInfo:
                    return jar.read(prefix + path)
        return None

    def method(self, function):
        """None: no file has it."""
        holder, name = class_of(function), function.split("(")[0].rpartition(".")[2]
        if holder not in self.known:
            data = self.data(holder)
            self.known[holder] = methods_of(data) if data else {}
        return self.known[holder].get(name)


def judge(classes, caller, line, callee, is_guess):
    """"right", "wrong", or why the pair is not judged."""
    method, name = classes.method(caller), callee.split("(")[0].rpartition(".")[2]
    if not method or not classes.method(callee):
        return "no class file"
    if is_guess:
        return "guess"
    if name == "<clinit>" or method.native:
        return "called by the VM"
    if name in method.calls:
        lines = method.calls[name]
        return "right" if not line or not method.has_lines or line in lines or method.opaque else "wrong line"
    return "opaque" if method.opaque else "wrong"


JAVA_KINDS = {"interpreted", "c1", "c2", "native-method"}


def stacks(database):
    """(number of samples, [(function, line, whether its frame is a guess)]), innermost first; a function of None is not Java's."""
    java = {row[0]: row[1] == "guess" for row in database.execute(
        "SELECT f.id, v.word FROM frames f JOIN kinds k ON k.id = f.kind JOIN vias v ON v.id = f.via WHERE k.word IN (%s)" % ", ".join("?" * len(JAVA_KINDS)),
        sorted(JAVA_KINDS))}
    functions = collections.defaultdict(list)
    for frame, name, line in database.execute("SELECT frame, name, line FROM frame_functions ff JOIN functions fn ON fn.id = ff.function ORDER BY frame, seq"):
        functions[frame].append((name, line, java.get(frame)))
    nodes = {row[0]: row[1:] for row in database.execute("SELECT id, parent, frame FROM stacks")}
    for stack, n in database.execute("SELECT stack, count(*) FROM samples WHERE stack GROUP BY stack"):
        path = []
        while stack:
            stack, frame = nodes[stack]
            path += functions[frame] if frame in java and frame in functions else [(None, 0, False)]
        yield n, path


def judge_all(classes, recordings):
    """How often each verdict was, and the same of each wrong pair, times the samples."""
    found, wrong = collections.Counter(), collections.Counter()
    for recording in recordings:
        with opened(recording) as database:
            for n, path in stacks(database):
                for (callee, _, _), (caller, line, guess) in zip(path, path[1:]):
                    if not callee or not caller:
                        continue
                    verdict = judge(classes, caller, line, callee, guess)
                    found[verdict] += n
                    if verdict.startswith("wrong"):
                        wrong[verdict, callee, caller, line] += n
    return found, wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jdk", required=True)
    parser.add_argument("--classes", action="append", default=[])
    parser.add_argument("--examples", type=int, default=20)
    parser.add_argument("recordings", nargs="+")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="java-calls-") as folder:
        jdk = of_the_jdk(arguments.jdk, arguments.recordings, os.path.join(folder, "jdk.zip"))
        found, wrong = judge_all(Classes([jdk, *arguments.classes]), arguments.recordings)
    print(json.dumps(found))
    for (verdict, callee, caller, line), n in wrong.most_common(arguments.examples):
        print("%6d  %s: %s <- %s:%d" % (n, verdict, callee, caller, line))
    return 1 if wrong else 0


sys.exit(main())

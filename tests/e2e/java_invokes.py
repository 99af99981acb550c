# SPDX-License-Identifier: Apache-2.0
"""What the lines of Java's classes call, as javap reads it from them: by that, who called whom in a stack can be judged.

A caller stands at a line that holds a call of a method of its callee's name; if it does not, a frame is missing between
them, or is not of this stack.
"""
import collections
import re

import hanging

# A call of these may arrive in a method of any name.
ANY = {"invokedynamic", "invoke", "invokeExact", "invokeBasic", "linkToStatic", "linkToVirtual", "linkToSpecial",
       "linkToInterface", "linkToNative"}

# The routine that has unmounted a virtual thread returns to where its continuation was entered (HotSpot:
# sharedRuntime_x86_64.cpp, gen_continuation_yield).
UNMOUNTED = ("jdk.internal.vm.Continuation.doYield", "jdk.internal.vm.Continuation.run")


def called(text):
    """The name of the method that an instruction calls, or None."""
    call = re.match(r"\s*\d+: invoke(\w+) .*?// (?:Interface)?Method (\S+)", text)
    if re.match(r"\s*\d+: invokedynamic ", text):
        return "invokedynamic"
    if not call:
        return None
    return call.group(2).split(":")[0].rpartition(".")[2].strip('"')


def parsed(text, own):
    """{method: {line: {names of what is called there}}} of a class, overloaded methods in one."""
    methods, lines, calls, method = collections.defaultdict(lambda: collections.defaultdict(set)), [], {}, None

    def finish():
        for bci, name in calls.items():
            before = [line for start, line in sorted(lines) if start <= bci]
            if before:
                methods[method][before[-1]].add(name)
        for _, line in lines:
            methods[method][line]  # a line without calls is known, too
    for each in text.splitlines() + ["  static {};"]:
        head = re.match(r"  (?:[^(]* )?([\w$.]+)\(.*\).*;$", each) or re.match(r"  static \{(\})", each)
        row, number, name = re.match(r"\s+line (\d+): (\d+)$", each), re.match(r"\s*(\d+): \w", each), called(each)
        if head:
            finish()
            lines, calls = [], {}
            method = {own: "<init>", "}": "<clinit>"}.get(head.group(1), head.group(1))
        elif row:
            lines.append((int(row.group(2)), int(row.group(1))))
        elif number and name:
            calls[int(number.group(1))] = name
    return methods


class Calls:
    """Of the classes of a JDK and of the tests' own; each is read once."""

    def __init__(self, jdk):
        self.jdk, self.classes = jdk, {}

    def learn(self, names):
        """Reads these classes, all at once: a start of javap takes a second."""
        wanted = sorted(set(names) - set(self.classes))
        if not wanted:
            return
        text = hanging.run(self.jdk.tool("javap", "-c", "-l", "-p", "-cp", self.jdk.classes, *wanted)).stdout
        parts = re.split(r"(?m)^(?=[\w ]*\b(?:class|interface) [\w.$]+.*\{$)", text)
        self.classes.update({name: None for name in wanted})
        for part in parts[1:]:
            name = re.search(r"\b(?:class|interface) ([\w.$]+)", part).group(1)
            self.classes[name] = parsed(part, name)

    def may_be(self, caller, line, callee):
        """Whether `caller`, at this line, can have called `callee`; None: not known."""
        owner, _, method = caller.rpartition(".")
        lines = self.classes.get(owner)
        if not lines or line not in lines.get(method, ()):
            return None
        there = lines[method][line]
        if (callee, caller) == UNMOUNTED:
            return True
        return callee.rpartition(".")[2] in there or bool(there & ANY)

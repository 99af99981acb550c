#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rooms of src/, and what each room may include.

A room is a folder with C files; its sub-folders are rooms of their own. The headers of a room are its interface.

usage: check_layers.py SOURCE_FOLDER
"""
import pathlib
import re
import sys

# To add a room: its line here, behind the rooms that it may include. A name that ends in .h is one header of another room.
ROOMS = {
    "frozen": "frozen/hotspot/words.h frozen/coreclr/words.h",
    "frozen/memory": "frozen",
    "frozen/output": "frozen",
    "frozen/unwind": "frozen frozen/memory",
    "frozen/signal": "frozen frozen/memory frozen/output frozen/unwind",
    "frozen/hotspot": "frozen frozen/memory frozen/unwind frozen/signal",
    "frozen/coreclr": "frozen frozen/memory frozen/unwind frozen/signal",
    "frozen/toy": "frozen frozen/unwind",
    "base": "",
    "elf": "frozen frozen/memory base",
    "os": "frozen base",
    "os/linux": "frozen frozen/signal/interrupted_calls.h base os",
    "target": "frozen frozen/memory frozen/unwind base elf os",
    "unwind": "frozen frozen/unwind base elf target",
    "runtime": "frozen frozen/unwind base os target",
    "runtime/load": "base os",
    "runtime/hotspot": "frozen frozen/unwind frozen/hotspot base elf os target runtime runtime/load",
    "runtime/coreclr": "frozen frozen/memory frozen/unwind frozen/coreclr base elf os target runtime runtime/load",
    "runtime/toy": "frozen frozen/toy base elf os runtime",
    "symbols": "frozen/code_x86_64.h frozen/memory base elf os",
    "stream": "frozen frozen/output frozen/unwind frozen/signal base os",
    "capture": "frozen frozen/unwind base os",
    "capture/ptrace": "frozen frozen/output frozen/signal base os target capture",
    "capture/bpf": "frozen base os capture capture/ptrace",
    "capture/perf": "frozen frozen/memory/hash.h frozen/signal/ticks.h base os capture capture/ptrace capture/bpf",
    "capture/signal": "frozen frozen/output base elf os unwind runtime stream capture",
    "capture/choice": "base elf os capture",
    "recording/store": "frozen base",
    "recording": "frozen frozen/unwind base recording/store",
    "recording/profile": "frozen frozen/unwind base recording/store",
    "export": "base recording/profile",
    "session": "frozen frozen/unwind base elf os target unwind runtime symbols stream capture "
               "capture/signal/stream_reader.h recording recording/profile",
    "agent/libc": "frozen base os",
    "agent/clocks": "frozen frozen/signal base agent/libc",
    "agent/interpose": "frozen frozen/signal base agent/libc",
    "agent/threads": "frozen frozen/signal base stream agent/libc agent/clocks",
    "agent/host": "frozen frozen/signal base os stream agent/libc agent/agent.h",
    "agent/sampler": "frozen frozen/output frozen/signal base os stream agent/libc agent/clocks agent/threads agent/host "
                     "agent/agent.h agent/options.h",
    "agent/service": "frozen frozen/memory frozen/signal base os target unwind runtime stream agent/libc agent/clocks "
                     "agent/interpose/sampling_signal.h agent/host agent/threads/exec_preparation.h agent/sampler/threads.h agent/agent.h",
    "agent/java": "frozen frozen/signal frozen/hotspot base runtime agent/threads agent/host "
                  "agent/lifecycle.h agent/options.h agent/runtimes.h",
    "agent/coreclr": "frozen frozen/memory frozen/signal frozen/coreclr base os runtime/coreclr stream agent/libc agent/threads/events.h "
                     "agent/threads/note.h agent/sampler "
                     "agent/agent.h agent/lifecycle.h agent/options.h agent/runtimes.h",
    "agent": "frozen/child.h frozen/runtime_list.h frozen/unwind frozen/signal base os unwind runtime stream agent/libc agent/clocks agent/interpose agent/threads "
             "agent/host agent/sampler agent/service",
    "cli": "frozen base os capture capture/choice recording/profile export session",
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+/[^"/]+)"', re.MULTILINE)


def room_of(path):
    return str(pathlib.PurePath(path).parent)


def complaints(source):
    seen = set()
    for path in sorted(source.rglob("*.[ch]")):
        name = path.relative_to(source).as_posix()
        room = room_of(name)
        seen.add(room)
        if room not in ROOMS:
            yield f"{name}: {room} is no room (add it to {pathlib.Path(__file__).name})"
            continue
        allowed = ROOMS[room].split()
        for header in INCLUDE.findall(path.read_text()):
            if room_of(header) != room and room_of(header) not in allowed and header not in allowed:
                yield f"{name}: {room} may not include {header}"
    for room in sorted(ROOMS.keys() - seen):
        yield f"{room}: there is no such room (remove it from {pathlib.Path(__file__).name})"


def circles():
    """A room may not include a room whose line comes later: so there are no circles."""
    order = list(ROOMS)
    for room, allowed in ROOMS.items():
        for other in allowed.split():
            if other.endswith(".h"):
                continue
            if other not in ROOMS:
                yield f"{room} may include {other}, which is no room"
            elif order.index(other) > order.index(room):
                yield f"{room} may include {other}, whose line comes later: is this a circle?"


def main():
    source = pathlib.Path(sys.argv[1])
    if not (source / "frozen" / "unwind" / "walk.h").is_file():
        sys.exit(f"{source} is not the source folder")
    found = [*circles(), *complaints(source)]
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()

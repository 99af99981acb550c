#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time, memory and size of unwind tables for the ELF files of this machine with the most frames.

The peer is binutils' readelf -wF, which interprets the same frames into the same rows (as text,
thrown away here). elfutils' eu-readelf is left out: it takes more than four minutes for a libLLVM
of 200 MB.

    tables.py MAKE_TABLE [-n COUNT] [FILE...]

where MAKE_TABLE is built from bench/make_table.c.
"""
import argparse
import os
import stat
import subprocess
import time

ROOTS = ["/usr/lib", "/usr/bin", "/usr/local", "/opt", os.path.expanduser("~/.rustup")]
FRAME_SECTIONS = (".eh_frame", ".debug_frame")


def is_elf(path):
    try:
        with open(path, "rb") as file:
            head = file.read(20)
    except OSError:
        return False
    # 64-bit, little-endian, x86-64 or aarch64, and no relocatable or core file.
    return (head[:6] == b"\x7fELF\x02\x01" and head[16] in (2, 3)
            and int.from_bytes(head[18:20], "little") in (62, 183))


def largest(count):
    """The files above 20 MB with the most frame data."""
    found = {}
    for root in ROOTS:
        for folder, _, names in os.walk(root):
            if "/debug" in folder:
                continue
            for name in names:
                path = os.path.join(folder, name)
                try:
                    status = os.lstat(path)
                except OSError:
                    continue
                if status.st_size > 20_000_000 and stat.S_ISREG(status.st_mode):
                    found[status.st_dev, status.st_ino] = (status.st_size, path)
    elves = [path for _, path in found.values() if is_elf(path)]
    return sorted(elves, key=frame_bytes, reverse=True)[:count]


def frame_bytes(path):
    sections = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True).stdout
    total = 0
    for line in sections.splitlines():
        words = line.partition("]")[2].split()
        if words and words[0] in FRAME_SECTIONS:
            total += int(words[4], 16)
    return total


def measure(command):
    """Seconds that a command took, and its first line; the best of three."""
    best = None
    for _ in range(3):
        start = time.monotonic()
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        out = child.stdout.readline()
        while child.stdout.read(1 << 20):
            pass
        child.wait()
        run = (time.monotonic() - start, out)
        best = min(best, run) if best else run
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tool", help="the program made from bench/make_table.c")
    parser.add_argument("-n", type=int, default=8, help="how many files (8)")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()

    print(f"{'file':34} {'MB':>6} {'frames':>7} {'rows':>9} {'rules':>6} {'table':>7}"
          f" {'ours':>8} {'peak':>7} {'readelf -wF':>11} {'ratio':>7}")
    for path in args.files or largest(args.n):
        ours, out = measure([args.tool, path])
        if not out:
            continue
        rows, rules, size, peak = (int(word) for word in out.split())
        theirs, _ = measure(["readelf", "-wF", path])
        print(f"{os.path.basename(path)[:34]:34} {os.path.getsize(path) / 1e6:6.0f}"
              f" {frame_bytes(path) / 1e6:4.1f} MB {rows:9,} {rules:6,} {size / 1e6:4.1f} MB"
              f" {ours:6.3f} s {peak / 1e6:4.0f} MB {theirs:9.2f} s {theirs / ours:6.0f}x", flush=True)


if __name__ == "__main__":
    main()

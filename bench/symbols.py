#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory for naming 10,000 addresses, beside addr2line, eu-addr2line and llvm-symbolizer
on the same addresses in the same run. `symbolize` is built from bench/symbolize.c:

    symbols.py SYMBOLIZE PROGRAM [--addresses 10000]

where PROGRAM comes from make_big_debug.py.
"""
import argparse
import os
import random
import re
import resource
import shutil
import subprocess
import time

LIMIT = 120

PEERS = {
    "addr2line": ["addr2line", "-a", "-i", "-f", "-C", "-e"],
    "eu-addr2line": ["eu-addr2line", "-a", "-i", "-f", "-C", "-e"],
    "llvm-symbolizer": ["llvm-symbolizer", "-a", "-i", "-f", "-C", "--output-style=GNU", "-e"],
}


def pick_addresses(program, count):
    """Addresses spread over all functions of the program."""
    table = subprocess.run(["nm", "-S", "--defined-only", program], check=True,
                           capture_output=True, text=True).stdout
    functions = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tTwW] ", table, re.M)
    ranges = [(int(start, 16), int(size, 16)) for start, size in functions if int(size, 16)]
    random.seed(1)
    chosen = random.choices(ranges, [size for _, size in ranges], k=count)
    return [start + random.randrange(size) for start, size in chosen]


def measure(command, text):
    """Seconds, or None when it takes longer than LIMIT."""
    start = time.monotonic()
    try:
        subprocess.run(command, input=text, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return None
    return time.monotonic() - start


def peak_megabytes(command, text):
    """The largest resident size of one command, by a child of its own."""
    pid = os.fork()
    if pid == 0:
        subprocess.run(command, input=text, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
        os._exit(min(255, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 14))
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) * 16


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("symbolize")
    parser.add_argument("program")
    parser.add_argument("--addresses", type=int, default=10000)
    args = parser.parse_args()
    addresses = pick_addresses(args.program, args.addresses)
    text = "".join(f"{address:#x}\n" for address in addresses).encode()
    ours = measure([args.symbolize, args.program], text)
    memory = peak_megabytes([args.symbolize, args.program], text)
    print(f"stillframe       {ours:8.2f} s  {memory:5} MB")
    for name, command in PEERS.items():
        if not shutil.which(command[0]):
            print(f"{name:16} not installed")
            continue
        seconds = measure(command + [args.program], text)
        if seconds is None:
            print(f"{name:16} more than {LIMIT} s")
            continue
        memory = peak_megabytes(command + [args.program], text)
        print(f"{name:16} {seconds:8.2f} s  {memory:5} MB  {seconds / ours:6.1f} times ours")


if __name__ == "__main__":
    main()

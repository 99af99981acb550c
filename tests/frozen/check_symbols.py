#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the library of frozen code needs from outside, against a list of what it may need.

Frozen code runs while a thread is held that may own any lock (src/frozen/frozen.h). The poisoned
names there catch what is written; this catches what the compiler and macros make of it.

usage: check_symbols.py libsf_frozen.a
"""
import subprocess
import sys

ALLOWED = {
    "memcpy", "memmove", "memset",  # the compiler calls them for plain assignments, too
    "_GLOBAL_OFFSET_TABLE_",
}
# Calls that a sanitizer puts in; such a build is for tests and holds no threads.
SANITIZERS = ("__asan_", "__ubsan_", "__tsan_", "__msan_", "__sanitizer_", "__gcov_", "__llvm_")


def symbols(library, *options):
    lines = subprocess.run(["nm", "--portability", *options, library], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    return {line.split()[0] for line in lines if line and not line.endswith(":")}


def main():
    library = sys.argv[1]
    defined = symbols(library, "--defined-only", "--extern-only")
    if "sf_walk" not in defined:
        sys.exit(f"{library} does not define sf_walk: is this the library of frozen code?")
    wanted = {name for name in symbols(library, "--undefined-only") - defined - ALLOWED
              if not name.startswith(SANITIZERS)}
    for name in sorted(wanted):
        print(f"frozen code needs {name}, which it may not call (src/frozen/frozen.h)")
    sys.exit(1 if wanted else 0)


main()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Everything from frozen to session compiles for aarch64, without a warning: what only x86-64 can do has its other half.

The short form takes the files that name a machine, a register or a system call; STILLFRAME_LONG=1 takes all.
Headers of libraries are the host's: only declarations are looked at, nothing is linked. Exit status 77: no compiler.

    check_aarch64.py TOP
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

COMPILER = "aarch64-linux-gnu-gcc"
FOLDERS = ("frozen", "base", "elf", "os/linux", "target", "unwind", "symbols", "capture", "session")
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", '-DSF_VERSION="0"', '-DSF_LIBRARIES=""', "-fsyntax-only", "-Wall", "-Wextra", "-Wshadow",
         "-Wno-missing-field-initializers", "-Werror", "-idirafter", "/usr/include"]
OF_A_MACHINE = re.compile(r"x86_64|aarch64|sys/user\.h|sys/ptrace\.h|ucontext|\bSYS_|__NR_|\basm/|\bREG_|\bsf_raw\d")

top = pathlib.Path(sys.argv[1])
if not shutil.which(COMPILER):
    print("skipped: no %s (Debian: gcc-aarch64-linux-gnu)" % COMPILER)
    sys.exit(77)
sources = [path for folder in FOLDERS for path in sorted((top / "src" / folder).rglob("*.c"))
           if path.name not in ("user_regs_x86_64.c", "context_x86_64.c") and not path.name.endswith(".bpf.c")]
if os.environ.get("STILLFRAME_LONG") != "1":
    sources = [path for path in sources if OF_A_MACHINE.search(path.read_text())]
assert any(path.name == "user_regs_aarch64.c" for path in sources) and len(sources) > 30, sources
failed = 0
for path in sources:
    done = subprocess.run([COMPILER, *FLAGS, "-I", top / "src", path], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        failed += 1
        print(done.stderr)
print("%d files, %d do not compile" % (len(sources), failed))
sys.exit(failed > 0)

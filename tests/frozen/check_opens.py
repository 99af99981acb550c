#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every place of src/ that opens something by a name, makes a file, or runs a program, with the reason why it may. A name that
comes from outside (a target, a file's content, a recording, a stream) goes through src/base/foreign_file.h, and no library gets
it: so whoever adds a call has to say here where its name comes from.

usage: check_opens.py SOURCE_FOLDER
"""
import collections
import pathlib
import re
import sys

# Functions, and system calls, that take a name, and those of libraries that open files by names from what they read.
CALLS = re.compile(r"""(?<![\w.>"])(
    open|open64|openat|openat2|creat|fopen|fopen64|freopen|opendir|fdopendir|sf_folder_open|scandir|glob|nftw|ftw|open_by_handle_at|
    dlopen|dlmopen|mkstemp|mkostemp|mkstemps|mkdtemp|tmpfile|tempnam|mkfifo|mkfifoat|mknod|mknodat|memfd_create|shm_open|mq_open|sem_open|
    sqlite3_open|sqlite3_open16|sqlite3_open_v2|gzopen|gzopen64|BZ2_bzopen|
    elf_begin|elf_memory|elf_open|dwarf_begin|dwarf_begin_elf|dwarf_getalt|dwarf_cu_info|dwarf_get_units|dwfl_\w+|dwelf_elf_begin|debuginfod_\w+|
    execl|execle|execlp|execv|execve|execvp|execvpe|fexecve|execveat|posix_spawn|posix_spawnp|popen|system
    )\s*\(|\b(SYS_(?:open|openat|openat2|execve|execveat|memfd_create|open_by_handle_at))\b""", re.VERBOSE)

# What is neither code nor a call.
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)

# File: the calls in it, as often as they are there, and why that is fine. A file with a new call needs a look at where the name
# comes from.
MAY = {
    "base/cache_folder.c": ("open openat*3 sf_folder_open", "the user's own cache folder, and files there whose names stillframe makes"),
    "base/folder.c": ("openat sf_folder_open", "where it is called says where the name comes from"),
    "base/folder.h": ("sf_folder_open", "its declaration"),
    "base/foreign_file.c": ("open*3 openat*3", "names from outside: found with O_PATH, opened when it is a regular file"),
    "base/output_file.c": ("mkostemp open*3", "what the user named for writing, never through a link: the file, a new one beside it, or a device or FIFO found with O_PATH"),
    "elf/file.c": ("elf_begin elf_memory*3", "of descriptors and of memory: libelf opens nothing"),
    "elf/program.c": ("elf_begin open", "a descriptor; /proc/PID/exe with O_PATH"),
    "symbols/sources.c": ("elf_memory dwarf_begin_elf*2", "of a mapped file, with another one set for what it shares with others; of an "
                          "empty file in memory"),
    "symbols/split_file.c": ("elf_begin dwarf_cu_info*2", "a descriptor; libdw opens /dev/fd/N, which is written in the place of the name"),
    "symbols/lookup_child.c": ("fopen", "/proc/self/statm"),
    "target/image.c": ("memfd_create", "a copy of memory"),
    "os/linux/maps.c": ("open*2", "folders and links of /proc/PID with O_PATH"),
    "os/linux/proc.c": ("open*3", "files of /proc and /sys"),
    "os/linux/kernel_symbols.c": ("open", "files of /proc"),
    "os/linux/tracepoints.c": ("open openat*2", "the folder of tracefs, and below it names without a slash"),
    "os/linux/cgroup.c": ("open openat*2 sf_folder_open", "the control group that the user named, and what is below it, on its own kind of file system"),
    "os/linux/process.c": ("openat sf_folder_open*2", "/proc/PID/task, and a link in /proc/self/map_files"),
    "os/linux/channel.c": ("sf_folder_open", "the user's own folder of channels, through its descriptor"),
    "os/linux/channel_paths.c": ("open openat*2", "folders and sockets with O_PATH, never through a link; they are checked before use"),
    "os/linux/parcel.c": ("sf_folder_open", "/proc/thread-self/fd"),
    "os/linux/own_fd.c": ("open", "/dev/null"),
    "frozen/raw.c": ("SYS_openat", "files of /proc/self"),
    "frozen/memory/own_memory.c": ("SYS_openat", "/proc/self/mem"),
    "frozen/signal/interrupted_calls.c": ("SYS_openat*2 SYS_open*2", "numbers of calls that the target makes"),
    "capture/perf/sample.c": ("SYS_execve SYS_execveat", "numbers of calls that the target makes"),
    "agent/interpose/program.c": ("SYS_openat", "the program that the target executes; not waiting for a writer"),
    "agent/libc/own_proc.c": ("SYS_openat*2", "files of /proc/self"),
    "agent/libc/syscall_filter.c": ("SYS_memfd_create", "the number of a call that is tried"),
    "agent/host/memory.c": ("memfd_create", "the ring"),
    "agent/interpose/exec.c": ("execl execle execlp execv execve*4 execveat execvp execvpe*3 fexecve SYS_execve*2 SYS_execveat*2",
                                "the program's own calls, handed on"),
    "agent/interpose/syscall.c": ("SYS_execve SYS_execveat", "numbers of calls that the program makes"),
    "runtime/hotspot/load_target.c": ("openat", "in the folder of the virtual machine that is attached to, never through a link"),
    "runtime/load/load.c": ("openat", "a new file in the /tmp of the process, never through a link"),
    "runtime/load/target.c": ("open openat", "files and the root of /proc/PID; a socket in a folder of the process, never through a link"),
    "unwind/cache.c": ("openat", "a file without a name in the user's own cache folder"),
    "recording/store/one_file.c": ("sqlite3_open_v2", "through a VFS that has one descriptor and opens nothing"),
    "stream/file.c": ("open*2", "a stream that the user named: a new file, never through a link"),
    "session/import.c": ("mkdtemp", "a folder of our own"),
    "session/launch.c": ("execvp", "the command that the user gave"),
    "cli/main.c": ("open", "the root folder with O_PATH, in the place of a standard descriptor that is closed"),
    "cli/report.c": ("sf_folder_open", "the working folder of the user"),
}


def expected(text):
    """"open*2 openat" as {"open": 2, "openat": 1}."""
    return {word.split("*")[0]: int((word.split("*") + [1])[1]) for word in text.split()}


def calls_in(path):
    code = NO_CODE.sub(" ", path.read_text())
    code = re.sub(r"^\s*#\s*if.*$", "", code, flags=re.MULTILINE)
    return collections.Counter(a or b for a, b in CALLS.findall(code))


def complaints(source):
    seen = set()
    for path in sorted(source.rglob("*.[ch]")):
        name, found = str(path.relative_to(source)), dict(calls_in(path))
        if not found:
            continue
        seen.add(name)
        said = expected(MAY[name][0]) if name in MAY else {}
        if said != found:
            listed = " ".join(call if n == 1 else "%s*%d" % (call, n) for call, n in sorted(found.items()))
            yield "%s calls %s, and %s says %s: does the name come from outside? then src/base/foreign_file.h opens it" % (
                name, listed, pathlib.Path(__file__).name, repr(MAY[name][0]) if name in MAY else "nothing of it")
    for name in sorted(set(MAY) - seen):
        yield "%s opens nothing any more: take it out of %s" % (name, pathlib.Path(__file__).name)


def main():
    source = pathlib.Path(sys.argv[1])
    if not (source / "frozen" / "unwind" / "walk.h").is_file():
        sys.exit("%s is not the source folder" % source)
    found = list(complaints(source))
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process, by what the system shows of it: its threads, its descendants, what it is called, how
 * much CPU time it used, what is mapped where.
 */
#ifndef SF_OS_PROCESS_H
#define SF_OS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "frozen/arch.h"

struct sf_ids {
	SF_VEC(int32_t) ids;
};

static inline bool sf_ids_have(const struct sf_ids *ids, int32_t id)
{
	for (size_t i = 0; i < ids->ids.n; i++) {
		if (ids->ids.items[i] == id)
			return true;
	}
	return false;
}

/*
 * Appends the thread ids of a process, in ascending order of the kernel's list; false when it is
 * gone.
 */
bool sf_process_threads(int32_t pid, struct sf_ids *ret);

/* Appends all processes; false when they cannot be listed. */
bool sf_process_all(struct sf_ids *ret);

/*
 * Appends the processes whose parent is in `parents` and that are not in it already; to any depth.
 * Where the kernel lists the children of a thread (CONFIG_PROC_CHILDREN) it takes some microseconds
 * for each thread of the parents; elsewhere some for each process of the machine.
 */
bool sf_process_descendants(struct sf_ids *parents);

/* Whether the file system of processes (/proc) is there, and of this pid namespace. Else err has the reason. */
bool sf_process_check_system(struct sf_error *err);

/* The user, the rights (rights.h), and the processes that this user can look at, for people. */
void sf_process_rights(char *ret, size_t size);

/* Whether files in /proc/PID/map_files can be opened; by opening the first of its own. */
bool sf_process_opens_map_files(void);

/*
 * Whether a process can be looked at: it exists, and is not a kernel thread or a zombie. Else err has the reason.
 */
bool sf_process_check(int32_t pid, struct sf_error *err);

/*
 * Whether the files that a process runs may be read, without which an address in it means nothing. Else err has the
 * reason, and what would help.
 */
bool sf_process_check_reading(int32_t pid, struct sf_error *err);

/*
 * An id under which the system knows the process's memory: `pid`, or, when its first thread has
 * ended, that of another one. For maps, files and memory; everything else takes `pid`.
 */
int32_t sf_process_live_id(int32_t pid);

/*
 * A descriptor that stands for this process and for no later one with its id; -1 and errno (ENOSYS,
 * before Linux 5.3; EPERM, where a policy refuses it). The caller closes.
 */
int sf_process_open(int32_t pid);

/*
 * A signal to that process; false and errno, ESRCH when it is gone. `fd` -1: to the process that has
 * the id now.
 */
bool sf_process_signal(int fd, int32_t pid, int number);

/* Its short name; its command line with blanks between the words, cut to size. "" when unknown. */
void sf_process_name(int32_t pid, char *ret, size_t size);
void sf_process_command(int32_t pid, char *ret, size_t size);

/* Its effective user; UINT32_MAX when unknown. */
uint32_t sf_process_user(int32_t pid);

/* Whether it is a thread of the kernel. False when that is unknown. */
bool sf_process_is_kernel(int32_t pid);

/* Whether its program was started with this text in its environment. False when that may not be read. */
bool sf_process_environment_has(int32_t pid, const char *text);

/* CPU time of all its threads, the ended ones included; false when it is gone. */
bool sf_process_cpu(int32_t pid, uint64_t *ns_ret);

/*
 * CPU time of its descendants that have ended and were waited for, in steps of 10 ms; 0 when it is
 * gone.
 */
uint64_t sf_process_children_cpu(int32_t pid);

/*
 * Numbers that differ between a process and a later one with its id, and between two programs that it runs: when it
 * started, and where exec put its code and its first stack (0: it has no memory any more). And how many threads it has now,
 * a first one that has ended included. False when it is gone.
 */
struct sf_program {
	uint64_t started, code, stack;
	uint32_t n_threads;
};
bool sf_process_program(int32_t pid, struct sf_program *ret);

/*
 * It was killed, or exits, and its first thread is not gone yet: where CPUs are busy, other threads may be for long. True also where
 * only the first thread has ended.
 */
bool sf_process_is_ending(int32_t pid);

/* The `started` of a process that starts now. Several processes have the same: the unit is a hundredth of a second. */
uint64_t sf_process_start_clock(void);

static inline bool sf_program_is(const struct sf_program *a, const struct sf_program *b)
{
	return a->started == b->started && a->code == b->code && a->stack == b->stack;
}

/* The parent's pid, 0 when unknown. */
int32_t sf_process_parent(int32_t pid);

/*
 * The architecture of its executable; NULL when stillframe does not support it (32-bit ones, too).
 */
const struct sf_arch *sf_process_arch(int32_t pid);

/* Whether it runs a 32-bit program, whose registers, stacks and system calls are others. False when that is unknown. */
bool sf_process_is_32_bit(int32_t pid);

/* Fails for a process that does, or for a program that is one; err says what can read it. `pid` 0: it does not run yet. */
bool sf_process_check_width(int32_t pid, struct sf_error *err);
bool sf_fail_32_bit(const char *name, int32_t pid, struct sf_error *err);

/* A line of the process's memory map. `path` is valid during the callback. */
struct sf_mapping {
	uint64_t start, end, offset, inode, device;
	bool executable, readable;
	bool is_own;         /* writable, and shared with no other process */
	bool deleted;        /* the path ended in " (deleted)", which was taken off */
	const char *path;    /* "" for anonymous memory, "[vdso]", "[stack]", a file */
};
typedef bool sf_mapping_fn(const struct sf_mapping *mapping, void *arg); /* false: stop */

bool sf_process_maps(int32_t pid, sf_mapping_fn *fn, void *arg, struct sf_error *err);

/* Only executable mappings. It takes a tenth of the time where the kernel answers queries for them (Linux 6.11). */
bool sf_process_code_maps(int32_t pid, sf_mapping_fn *fn, void *arg, struct sf_error *err);

/*
 * Opens the file behind a mapping for reading: through /proc/PID/map_files where allowed, else the process's program
 * through /proc/PID/exe, else by its path below /proc/PID/root if the path still leads to the same file. Returns -1 and
 * sets errno when none works (ESTALE: the path leads to another file now).
 */
int sf_process_open_mapping(int32_t pid, const struct sf_mapping *mapping);

/* An O_PATH descriptor of the folder that the process has for "/"; -1 and errno. */
int sf_process_open_root(int32_t pid);

/*
 * The regular file at this absolute path as the process sees it: symbolic links stay below its root.
 * -1 and errno (ENXIO: no regular file).
 */
int sf_process_open_path(int32_t pid, const char *path);

/*
 * Reads memory of another process: all bytes up to the first that cannot be read; returns how many. errno is ESRCH where
 * the thread of this number has no memory any more. Signal-safe.
 */
size_t sf_process_read(int32_t pid, void *ret, uint64_t addr, size_t size);
/* The same, of a process whose first thread may have ended, which has no memory then. Not signal-safe. */
size_t sf_process_read_live(int32_t pid, void *ret, uint64_t addr, size_t size);

/* Whether the process has ended, or has got so far with its end that its memory is gone. */
bool sf_process_is_over(int32_t pid);

/* Writes to the memory of another process where that may write itself; returns how many bytes. */
size_t sf_process_write(int32_t pid, uint64_t addr, const void *bytes, size_t size);

#endif

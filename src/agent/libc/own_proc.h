/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads facts about the threads of this process from /proc, for the sampler. It uses raw system calls
 * and neither malloc nor stdio, because a held thread may own any lock. Each file is opened and closed at
 * once, for two reasons: an open one costs the program a descriptor, and it could close or replace
 * it. All is signal-safe.
 */
#ifndef SF_AGENT_LIBC_OWN_PROC_H
#define SF_AGENT_LIBC_OWN_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void sf_own_thread_fn(void *arg, int32_t tid);

/* Calls fn for each thread of this process. False when /proc cannot be read. */
bool sf_own_threads(sf_own_thread_fn *fn, void *arg);
/* A number that changes with how many there are; one system call. 0: not known. */
uint64_t sf_own_thread_count(void);

/*
 * Whether the program has threads beside the calling one; the agent has n_own. Whether it has none: its first thread is there
 * after its end, without a place to run (Z), for as long as one of the agent's is.
 */
bool sf_own_has_others(unsigned n_own);
bool sf_own_has_none(unsigned n_own);

/*
 * The text of /proc/self/task/TID/NAME, cut to size - 1, with a zero behind; false when the thread
 * is gone.
 */
bool sf_own_read(int32_t tid, const char *name, char *ret, size_t size);

/*
 * The value of this field of the thread's status, "\nName:\t", cut to size - 1; false where there is none. A status may be long:
 * a process has up to 65,536 groups. Signal-safe, with little stack.
 */
bool sf_own_status(int32_t tid, const char *field, char *ret, size_t size);

/* A path by which the file of a descriptor can be opened again, also where the descriptor has O_PATH. */
#define SF_OWN_FD_PATH 32
void sf_own_fd_path(int fd, char ret[SF_OWN_FD_PATH]);

/* The thread's name by the system, "" when it is gone. */
void sf_own_name(int32_t tid, char *ret, size_t size);

/* Whether it blocks this signal; false also when it is gone. */
bool sf_own_blocks(int32_t tid, int signal);

/* Whether the signal is pending for the process, and not for one thread; true also where /proc cannot be read. Signal-safe. */
bool sf_own_process_has_pending(int signal);

/* R S D T t Z X I, 0 when gone. */
char sf_own_letter(int32_t tid);

/* Where it sleeps. */
struct sf_own_place {
	bool     awake;      /* on a CPU, or ready for one: nothing else is known */
	int32_t  syscall;    /* number, or SF_SYSCALL_FAULT */
	uint64_t args[6];    /* when syscall >= 0 */
	uint64_t sp, pc;     /* 0: nowhere (a zombie) */
};

/* False: gone, or not readable (no /proc/.../syscall in this kernel, or a policy against it). */
bool sf_own_place(int32_t tid, struct sf_own_place *ret);

#endif

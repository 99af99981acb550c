/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A still: a thread that does not run, its registers, and a way to read its memory. Engines make
 * stills; all other code only uses them.
 */
#ifndef SF_FROZEN_STILL_H
#define SF_FROZEN_STILL_H

#include <stdint.h>

#include "frozen/arch.h"
#include "frozen/reader.h"
#include "frozen/runtime.h"

struct sf_code_map;

/* The state of a thread at its sample. Stored in recordings: add new states at the end. */
#define SF_STATES(X)                                                                               \
	X(RUNNING, "running", "on a CPU")                                                          \
	X(RUNNABLE, "runnable", "ready, waiting for a CPU")                                        \
	X(BLOCKED, "blocked", "asleep in a system call or a page fault")                           \
	X(STOPPED, "stopped", "stopped by job control, a debugger or the freezer")

enum sf_state {
#define X(name, word, text) SF_STATE_##name,
	SF_STATES(X)
#undef X
	SF_N_STATES
};

const char *sf_state_word(unsigned state); /* "unknown" outside the list. Signal-safe. */

/* `syscall` in a still: the number, or one of these. */
#define SF_SYSCALL_NONE (-1)       /* not in a system call */
#define SF_SYSCALL_FAULT (-2)      /* blocked, but in no system call: a page fault */
#define SF_SYSCALL_UNTOLD (-3)     /* blocked, and nothing says in what */

/* The cause of a sleep inside a system call or a page fault, as far as the kernel's frames show it. */
#define SF_CAUSES(X)                                                                               \
	X(NONE, "")                                                                                \
	X(BLOCK_IO, "block I/O")                                                                   \
	X(KERNEL_LOCK, "lock of the kernel")

enum sf_cause {
#define X(name, word) SF_CAUSE_##name,
	SF_CAUSES(X)
#undef X
};

enum sf_still_flags {
	SF_STILL_COPY = 1,      /* the stack is a copy; the thread runs again */
	SF_STILL_UNHELD = 2,    /* a thread that was not held: its switch count proves that it did not run while it was read */
	SF_STILL_TO_RUNTIME = 4, /* the walk stops where the code of a runtime begins */
	SF_STILL_IN_EXEC = 8,   /* in the kernel, about to run another program: the registers may be of the one before */
	SF_STILL_OPEN = 16,     /* a sleep whose begin is known: more of its time follows, until its end is recorded */
};

struct sf_still {
	const struct sf_arch *arch;
	struct sf_regs regs;
	struct sf_reader memory;
	const struct sf_code_map *map;  /* the process's code */
	void *scratch[SF_MAX_RUNTIMES]; /* memory for each runtime during a walk (runtime.h); NULL: none */
	int32_t  pid, tid;
	uint32_t flags;                 /* enum sf_still_flags */
	uint8_t  state;                 /* enum sf_state */
	uint8_t  cause;                 /* enum sf_cause, of a sleeping thread */
	uint64_t handles[SF_MAX_RUNTIMES]; /* of the thread in each runtime; 0: unknown, or none */
	int32_t  syscall;               /* number for this architecture, or SF_SYSCALL_... */
	uint64_t syscall_args[6];       /* meaningful when syscall >= 0 */
	uint64_t time_ns;               /* CLOCK_MONOTONIC of the sample */
	const uint64_t *kernel;         /* addresses of the kernel's frames, innermost first; NULL: none are known */
	uint32_t n_kernel;
	const uint64_t *chain;          /* of user mode, what the kernel found by the frame pointers when it took the sample: pc, and return addresses; NULL: it did not look */
	uint32_t n_chain;
	uint64_t switches;              /* switch count of an unheld thread; 0: unknown */
};

#endif

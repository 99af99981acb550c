/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results of an engine for `dump`: each thread of a process once, as far as the engine can see it.
 *
 * For each thread the engine calls still() at least once, unless there is no still, and then thread() once. A thread is
 * held only if it runs, if it is stopped amid its own code, or if its stack cannot be walked without registers that
 * only a hold gives and its system call continues after an interruption. No thread is held during a call. All calls
 * come from one thread of the engine.
 */
#ifndef SF_CAPTURE_DUMP_H
#define SF_CAPTURE_DUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/sink.h"
#include "os/task.h"

/* The result for one thread, after its last still. Valid during the call. */
struct sf_dump_seen {
	int32_t  tid;
	char     name[SF_TASK_NAME];
	uint8_t  state;           /* enum sf_state */
	int      loss;            /* enum sf_loss; -1: the last still() has its stack */
	bool     unheld;          /* that still was read while the thread slept */
	uint64_t switches;        /* its switch count then; 0: unknown */
	int32_t  syscall;         /* of a blocked or stopped thread; else SF_SYSCALL_NONE */
	uint64_t args[6];
	uint64_t held_ns;         /* at most (hold_time.h), the last time; 0: not held */
};

struct sf_dump_cost {
	uint64_t looking_ns;      /* from the first look at a thread to the last */
	uint64_t longest_hold_ns; /* 0: no thread was held */
};

struct sf_dump_sink {
	void *arg;

	/*
	 * Walks a still, whose map is NULL. The verdict SF_END_COPY asks for a longer copy, and SF_END_REGISTER for all
	 * registers: then another still of the thread may follow, which replaces this one.
	 */
	struct sf_verdict (*still)(void *arg, struct sf_still *still, struct sf_error *err);

	bool (*thread)(void *arg, const struct sf_dump_seen *seen, struct sf_error *err);
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source of what the kernel has saved of threads that are on no CPU: all their registers, without a hold. The parts that read
 * threads where they are ask it first, where an engine has one.
 */
#ifndef SF_CAPTURE_PTRACE_SAVED_H
#define SF_CAPTURE_PTRACE_SAVED_H

#include <stdbool.h>
#include <stdint.h>

#include "frozen/arch.h"
#include "os/task.h"

struct sf_saved {
	int32_t pid, tid;
	char name[SF_TASK_NAME];
	struct sf_task_look look;
	struct sf_regs regs;
	uint64_t switches;       /* as in struct sf_task_run: while it is the same, a thread that is blocked has not run since */
	uint64_t left_before;    /* times that it has left a CPU, read before all this, ... */
	uint64_t left_after;     /* ... and behind the moment at which it was on none */
};

struct sf_saved_source {
	void *arg;

	/*
	 * The saved registers and counts of a thread; `anew`: read now, and not together with its process's other
	 * threads before. False: it is on a CPU, has ended, or nothing can be said of it.
	 */
	bool (*get)(void *arg, int32_t pid, int32_t tid, bool anew, struct sf_saved *ret);
};

static inline bool sf_saved_get(const struct sf_saved_source *source, int32_t pid, int32_t tid, bool anew, struct sf_saved *ret)
{
	return source && source->get(source->arg, pid, tid, anew, ret);
}

/*
 * Whether the thread has not run since it was read. One that is blocked is counted before it runs. One that waits for a
 * CPU may have been counted already when it was read: it has not run if it is on no CPU now, and has left none since.
 */
bool sf_saved_stood(const struct sf_saved_source *source, const struct sf_saved *saved, uint64_t *switches_ret);

#endif

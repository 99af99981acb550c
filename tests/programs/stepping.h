/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps a thread through its code, one instruction after the other, and keeps the list of the calls that were stepped
 * over and have not returned. For programs that compare our walker's answers with these calls. x86-64.
 */
#ifndef SF_TESTS_STEPPING_H
#define SF_TESTS_STEPPING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

#include "session/walker.h"

#define STEPPING_CALLS 4096

struct stepping_call {
	uint64_t sp, pc;                 /* of the return address; the address */
	uint64_t popped;                 /* 8: sp may be above it, since it was popped and did not return */
};

struct stepping {
	int32_t pid, tid;
	struct sf_walker walker;
	struct user_regs_struct regs;    /* of the thread, now */
	struct stepping_call calls[STEPPING_CALLS]; /* the last one is the innermost */
	unsigned n_calls;
	int signal;                      /* that stopped the thread at the last step, and comes with the next; 0: none */
};

/* False: the process cannot be walked; why was said. */
bool stepping_open(struct stepping *stepping, int32_t pid, int32_t tid);

/* Seizes the thread, or stops it again after stepping_run. Forgets the calls. */
bool stepping_seize(struct stepping *stepping);
bool stepping_stop(struct stepping *stepping);
bool stepping_run(struct stepping *stepping);
void stepping_release(struct stepping *stepping);

/* One instruction. False: the thread has ended. */
bool stepping_step(struct stepping *stepping);

/*
 * Runs the thread, unstepped, until the innermost call has returned; for 200 ms at the most. For code that is not to be
 * judged. Some of that cannot be stepped: clock_gettime() in the vDSO starts over whenever the kernel has updated the
 * time meanwhile, which it does more often than slow steps get to the end. False: the thread has ended.
 */
bool stepping_run_call(struct stepping *stepping);

bool stepping_read(const struct stepping *stepping, void *ret, uint64_t addr, size_t size);

/*
 * The `i`th call from the innermost on. `stands`: whether its return address is still where the call put it: runtimes
 * replace some.
 */
const struct stepping_call *stepping_call(const struct stepping *stepping, unsigned i);
bool stepping_stands(const struct stepping *stepping, unsigned i);

/* What our walker says of the thread, now. */
const struct sf_trace *stepping_walk(struct stepping *stepping);

#endif

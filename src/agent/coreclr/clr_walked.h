/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that the runtime walks in a round, and the record of what came out: a sample, or a loss. All functions but
 * sf_clr_loss are for the sampler's thread, when the runtime's threads run again or are not suspended yet.
 */
#ifndef SF_AGENT_CLR_WALKED_H
#define SF_AGENT_CLR_WALKED_H

#include "agent/coreclr/clr_stack.h"
#include "agent/sampler/threads.h"
#include "frozen/ends.h"
#include "frozen/signal/workspace.h"

struct sf_code_map;

/* A thread that ran since its last sample. Zero but for the first two at the begin of a round. */
struct sf_clr_walked {
	struct sf_agent_thread *thread;
	uint64_t cpu_ns;             /* its clock before the suspension */
	bool is_managed;             /* the runtime has listed it */
	struct sf_clr_stack stack;
};

/* The properties that all records of a round share. Pointers are not owned. */
struct sf_clr_round {
	struct sf_workspace *workspace;
	struct sf_clr_info *info;
	const struct sf_code_map *map;
	struct sf_clr_pool *pool;    /* of the stacks */
	bool twice;                  /* stillframe's own walk is a second sample of the same moment, which stands for no time */
	uint64_t time_ns, pause_ns;  /* the suspension's begin and length */
};

/* The cause of a loss for this HRESULT, a failure; SF_LOSS_CLR_OTHER for one that is not listed. Any thread. */
enum sf_loss sf_clr_loss(int32_t result);

/* The thread's time since its last sample is a loss. */
void sf_clr_walked_lose(enum sf_loss cause, const struct sf_clr_walked *walked);

/* A failed call that is of no thread, or of one that is not known: a tick all the same. */
void sf_clr_lose_call(int32_t result);

/* A sample of a managed thread, or a loss. A native thread, or one that has left the runtime, is the sampler's to request. */
void sf_clr_walked_record(const struct sf_clr_round *round, struct sf_clr_walked *walked);

#endif

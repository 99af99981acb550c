/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that handlers use: slots, workspaces, the outbox. It is made at the first start and
 * never given back, as nothing shows when the last late handler has left; the next start uses it
 * again.
 */
#ifndef SF_AGENT_HOST_MEMORY_H
#define SF_AGENT_HOST_MEMORY_H

#include "agent/agent.h"

/* Slots, and room for stills that are kept, into sf_handler; with the walk in the handler each gets a workspace. */
bool sf_agent_make_slots(const struct sf_agent_options *options, struct sf_error *err);
/*
 * Every slot is free again, which may take as long as a thread that stands has patience. False: not
 * in time.
 */
bool sf_agent_wait_for_slots(void);
/* In a forked child no thread is in a handler. */
void sf_agent_empty_slots(void);

/*
 * A new, empty outbox into sf_handler, always at the same place. *fd_ret, if not NULL, is a sealed
 * memfd of it, the caller's to close; NULL: the memory is this process's alone.
 */
bool sf_agent_make_outbox(int *fd_ret, struct sf_error *err);
/* The set and the queue of managed places, empty, with keys of their own, into sf_handler. */
bool sf_agent_make_places(void);
/* The cache of the runtime in this slot (sf_runtime_ops), into sf_handler: empty, the first time. */
bool sf_agent_make_cache(uint32_t slot, size_t size);

/* Nobody writes into it any more; in a forked child the parent's is let go of. */
void sf_agent_leave_outbox(bool forked);

#endif

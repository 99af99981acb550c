/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the call: a single word, which both threads change by compare-and-exchange. */
#include "agent/sampler/round_call.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

enum { NO_CALL, CALL, LEFT };

static _Atomic uint32_t state;
static pid_t left_in;          /* the process; set before the state is LEFT */

static bool change(uint32_t from, uint32_t to)
{
	return atomic_compare_exchange_strong(&state, &from, to);
}

/* A forked child begins with its parent's state. */
void sf_round_call_begin(void)
{
	atomic_store(&state, CALL);
}

bool sf_round_call_end(void)
{
	return change(CALL, NO_CALL);
}

void sf_round_call_is_undone(void)
{
	atomic_store(&state, NO_CALL);
}

bool sf_round_call_leave(void)
{
	left_in = getpid();
	return change(CALL, LEFT);
}

bool sf_round_call_is_left(void)
{
	return atomic_load(&state) == LEFT && left_in == getpid();
}

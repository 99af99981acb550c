/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the program's signal actions from the kernel, to decide whether an interrupted system call
 * must fail with EINTR. Signal-safe.
 */
#include <signal.h>
#include <stddef.h>

#include "frozen/signal/actions.h"
#include "frozen/signal/chain.h"
#include "frozen/raw.h"

#include "frozen/frozen.h"

static struct sf_kernel_action installed_for(int signal)
{
	struct sf_kernel_action action = { 0 };

	sf_raw4(SYS_rt_sigaction, signal, NULL, &action, sizeof(action.mask));
	return action;
}

/* The program's action: of our signal it is the one that the chain keeps. */
static struct sf_kernel_action action_of(int signal, int ours)
{
	struct sf_kernel_action action;

	if (signal != ours)
		return installed_for(signal);
	sf_chain_get(&action);
	return action;
}

/* Whether one of these signals has a handler; flags not 0: a handler that lacks these flags. */
static bool any_without(uint64_t signals, int ours, uint64_t flags)
{
	for (int signal = 1; signals; signal++, signals >>= 1) {
		struct sf_kernel_action action;

		if (!(signals & 1))
			continue;
		action = action_of(signal, ours);
		if (action.handler != SF_CHAIN_DEFAULT && action.handler != SF_CHAIN_IGNORE &&
		    (!flags || !(action.flags & flags)))
			return true;
	}
	return false;
}

bool sf_actions_any(uint64_t signals, int ours)
{
	return any_without(signals, ours, 0);
}

bool sf_actions_break_off(uint64_t signals, int ours)
{
	return any_without(signals, ours, SA_RESTART);
}

bool sf_actions_ours_restarts(int ours)
{
	return installed_for(ours).flags & SA_RESTART;
}

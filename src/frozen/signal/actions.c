/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the program's signal actions from the kernel, to decide whether an interrupted system call
 * must fail with EINTR. Signal-safe.
 */
#include <signal.h>
#include <stddef.h>

#include "frozen/signal/actions.h"
#include "frozen/signal/chain.h"
#include "frozen/signal/state.h"
#include "frozen/raw.h"

#include "frozen/frozen.h"

/* The program's own: ours does not count. */
static bool has_handler(int signal)
{
	struct sf_kernel_action action = { 0 };

	if (signal == sf_handler.signal)
		sf_chain_get(&action);
	else
		sf_raw4(SYS_rt_sigaction, signal, NULL, &action, sizeof(action.mask));
	return action.handler != SF_CHAIN_DEFAULT && action.handler != SF_CHAIN_IGNORE;
}

bool sf_actions_any(uint64_t signals)
{
	for (int signal = 1; signals; signal++, signals >>= 1) {
		if ((signals & 1) && has_handler(signal))
			return true;
	}
	return false;
}

/* Whether one of these, without SA_RESTART, breaks a call off. */
bool sf_actions_break_off(uint64_t signals)
{
	for (int signal = 1; signals; signal++, signals >>= 1) {
		struct sf_kernel_action action = { 0 };

		if (!(signals & 1) || !has_handler(signal))
			continue;
		if (signal == sf_handler.signal)
			sf_chain_get(&action);
		else
			sf_raw4(SYS_rt_sigaction, signal, NULL, &action, sizeof(action.mask));
		if (!(action.flags & SA_RESTART))
			return true;
	}
	return false;
}

bool sf_actions_ours_restarts(void)
{
	struct sf_kernel_action action = { 0 };

	sf_raw4(SYS_rt_sigaction, sf_handler.signal, NULL, &action, sizeof(action.mask));
	return action.flags & SA_RESTART;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's own handlers, of any signal: ours, which stands in front of the program's
 * (chain.h), does not count. Sets of signals are as the kernel has them, bit 0 for signal 1.
 * Signal-safe.
 */
#ifndef SF_FROZEN_SIGNAL_ACTIONS_H
#define SF_FROZEN_SIGNAL_ACTIONS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The signals whose handlers can interrupt a system call. Faults of the thread itself raise the
 * excluded signals and interrupt no call; libc uses 32 and 33 for itself.
 */
#define SF_ACTIONS_BIT(signal) (UINT64_C(1) << ((signal) - 1))
#define SF_ACTIONS_INTERRUPTING                                                                    \
	(~(SF_ACTIONS_BIT(SIGSEGV) | SF_ACTIONS_BIT(SIGBUS) | SF_ACTIONS_BIT(SIGFPE) |             \
	   SF_ACTIONS_BIT(SIGILL) | SF_ACTIONS_BIT(SIGTRAP) | SF_ACTIONS_BIT(SIGSYS) |             \
	   SF_ACTIONS_BIT(32) | SF_ACTIONS_BIT(33)))

/* Whether one of these has a handler. `ours`: the signal that our handler is installed for. */
bool sf_actions_any(uint64_t signals, int ours);

/* Whether one of these has a handler without SA_RESTART, which breaks a call off. */
bool sf_actions_break_off(uint64_t signals, int ours);

/* Whether our own handler is installed with SA_RESTART. */
bool sf_actions_ours_restarts(int ours);

#endif

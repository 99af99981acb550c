/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about system calls that a signal interrupts, and the program's own handlers that can do so. Sets of signals are as
 * the kernel has them, bit 0 for signal 1. Signal-safe.
 */
#ifndef SF_FROZEN_SIGNAL_INTERRUPTED_CALLS_H
#define SF_FROZEN_SIGNAL_INTERRUPTED_CALLS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether this call, if it failed with EINTR, had no effect and may be made again unchanged. */
bool sf_call_mends(int32_t number);

/* Whether the call waits for a signal: by its nature, or because of its signal mask argument. */
bool sf_call_waits_for_signal(int32_t number, const uint64_t args[6]);

/* Whether the kernel itself makes the call again after a handler with SA_RESTART. */
bool sf_call_restarts(int32_t number, const uint64_t args[6]);

/* The signals that libc keeps for itself, below its SIGRTMIN: it ends and changes its threads by them (nptl(7)). */
#define SF_SIGNAL_CANCEL 32
#define SF_SIGNAL_SETXID 33

/* --- the program's own handlers, of any signal: ours, which stands in front of the program's (chain.h), does not count --- */

/*
 * The signals whose handlers can interrupt a system call. Faults of the thread itself raise the
 * excluded signals and interrupt no call, or the signals are libc's.
 */
#define SF_ACTIONS_BIT(signal) (UINT64_C(1) << ((signal) - 1))
#define SF_ACTIONS_INTERRUPTING                                                                    \
	(~(SF_ACTIONS_BIT(SIGSEGV) | SF_ACTIONS_BIT(SIGBUS) | SF_ACTIONS_BIT(SIGFPE) |             \
	   SF_ACTIONS_BIT(SIGILL) | SF_ACTIONS_BIT(SIGTRAP) | SF_ACTIONS_BIT(SIGSYS) |             \
	   SF_ACTIONS_BIT(SF_SIGNAL_CANCEL) | SF_ACTIONS_BIT(SF_SIGNAL_SETXID)))

/* Whether one of these has a handler. `ours`: the signal that our handler is installed for. */
bool sf_actions_any(uint64_t signals, int ours);

/* Whether one of these has a handler without SA_RESTART, which breaks a call off. */
bool sf_actions_break_off(uint64_t signals, int ours);

/* Whether our own handler is installed with SA_RESTART. */
bool sf_actions_ours_restarts(int ours);

#endif

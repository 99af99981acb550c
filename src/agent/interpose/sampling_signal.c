/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the sampling signal, installs our handler in front of the program's action, and keeps it
 * there. Ordinary code.
 */
#include "agent/interpose/sampling_signal.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "agent/libc/own_proc.h"
#include "frozen/child.h"
#include "frozen/signal/chain.h"
#include "frozen/signal/handler.h"
#include "frozen/signal/interrupted_calls.h"
#include "frozen/raw.h"

#define KERNEL_SIGSET_SIZE 8

/* The signal whose handler is ours; 0: none yet. It stays so until another one is wanted. */
static _Atomic int ours;
SF_CHILD_DATA static _Atomic bool installed;
static bool seen = true;      /* what the program does to signals; set when the agent is loaded */

void sf_agent_signal_set_seen(bool is_seen)
{
	seen = is_seen;
}

bool sf_agent_signal_is_ours(int number)
{
	return number > 0 && number == atomic_load_explicit(&ours, memory_order_acquire);
}

/* Whether the program has left it alone. */
static bool is_free(int number)
{
	struct sf_kernel_action action;

	if (sf_agent_signal_is_ours(number)) {
		sf_chain_get(&action);
	} else if (sf_raw4(SYS_rt_sigaction, number, 0, &action, KERNEL_SIGSET_SIZE) != 0) {
		return false;
	}
	return action.handler == (void *)SIG_DFL;
}

/* By the program's first thread: the caller may be one of ours, which blocks all. */
static bool is_let_in(int number)
{
	return !sf_own_blocks((int32_t)getpid(), number);
}

static bool fits_well(int number)
{
	return is_free(number) && is_let_in(number);
}

static int real_time_of(bool (*fits)(int number))
{
	for (int number = SIGRTMAX; number >= SIGRTMIN; number--) {
		if (fits(number))
			return number;
	}
	return 0;
}

static int choose_of(bool (*fits)(int number), bool prof_first)
{
	int number = prof_first && fits(SIGPROF) ? SIGPROF : real_time_of(fits);

	return !number && fits(SIGPROF) ? SIGPROF : number;
}

/* None is let in while libc makes a process or a thread, for as long as system() takes to begin a program (vfork(2)). */
static int choose(bool prof_first)
{
	int number = choose_of(fits_well, prof_first);

	return number ? number : choose_of(is_free, prof_first);
}

/* Another signal than the last time: that one gets the program's own action back. */
static void give_back(int number)
{
	struct sf_kernel_action action;
	struct sigaction restored = { 0 };

	sf_chain_get(&action);
	atomic_store_explicit(&ours, 0, memory_order_release);
	restored.sa_sigaction = action.handler;
	restored.sa_flags = (int)action.flags;
	memcpy(&restored.sa_mask, &action.mask, sizeof(action.mask));
	sigaction(number, &restored, NULL); /* libc's, or ours, which passes it on */
}

static bool install(int number, struct sf_error *err)
{
	int last = atomic_load_explicit(&ours, memory_order_relaxed);
	long error;

	sf_handler.config.signal = number;
	if (last == number) {
		sf_chain_check();
		return true;
	}
	if (last)
		give_back(last);
	error = sf_chain_install(number, sf_handler_enter);
	if (error) {
		errno = (int)-error;
		return sf_fail_os(err, "cannot install a handler for signal %d", number);
	}
	atomic_store_explicit(&ours, number, memory_order_release);
	return true;
}

bool sf_agent_signal_install(int wanted, bool for_perf, struct sf_error *err)
{
	int number = wanted ? wanted : choose(seen || for_perf);

	if (!number) {
		sf_fail(err, SF_E_UNSUPPORTED,
			"the program uses SIGPROF and all real-time signals");
		return sf_fail_hint(err, "Name one that may be shared: signal=PROF.");
	}
	if (!install(number, err))
		return false;
	atomic_store_explicit(&installed, true, memory_order_release);
	return true;
}

void sf_agent_signal_check(void)
{
	if (atomic_load_explicit(&installed, memory_order_acquire))
		sf_chain_check();
}

SF_CHILD_CODE void sf_agent_signal_remove(void)
{
	atomic_store_explicit(&installed, false, memory_order_release);
}

/*
 * Faults come at an instruction and cannot be put off; KILL, STOP and CONT do not wait for a
 * handler; CHLD is every program's own; the last two are libc's.
 */
static const int unusable[] = { SIGKILL, SIGSTOP, SIGCONT, SIGCHLD, SIGSEGV, SIGBUS, SIGILL, SIGFPE,
				SIGTRAP, SIGSYS, SIGABRT, SF_SIGNAL_CANCEL, SF_SIGNAL_SETXID };

static int usable(long number)
{
	if (number < 1 || number > SIGRTMAX)
		return 0;
	for (size_t i = 0; i < sizeof(unusable) / sizeof(unusable[0]); i++) {
		if (unusable[i] == number)
			return 0;
	}
	return (int)number;
}

/* Digits to their end, or -1. */
static long parse_digits(const char *text)
{
	char *end;
	long number;

	if (*text < '0' || *text > '9')
		return -1;
	number = strtol(text, &end, 10);
	return *end ? -1 : number;
}

/* "RTMIN", "RTMIN+3", "RTMAX-2". */
static int parse_real_time(const char *text)
{
	bool from_maximum = strncasecmp(text, "RTMAX", 5) == 0;
	long n = 0;

	if (text[5])
		n = text[5] == (from_maximum ? '-' : '+') ? parse_digits(text + 6) : -1;
	if (n < 0 || n > SIGRTMAX - SIGRTMIN)
		return 0;
	return usable(from_maximum ? SIGRTMAX - n : SIGRTMIN + n);
}

int sf_agent_signal_number(const char *text)
{
	if (*text >= '0' && *text <= '9')
		return usable(parse_digits(text));
	if (strncasecmp(text, "SIG", 3) == 0)
		text += 3;
	if (strncasecmp(text, "RTMIN", 5) == 0 || strncasecmp(text, "RTMAX", 5) == 0)
		return parse_real_time(text);
	for (int number = 1; number < SIGRTMIN; number++) {
		const char *name = sigabbrev_np(number);

		if (name && strcasecmp(name, text) == 0)
			return usable(number);
	}
	return 0;
}

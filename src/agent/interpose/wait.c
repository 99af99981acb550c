/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interposers for functions that wait for signals. A program that blocks all signals and takes each
 * pending one must not get ours. sigwait() and the related functions drop a signal of ours and wait
 * again. A signalfd() for more signals than ours is made without our signal.
 *
 * A program that reads exactly our signal from a signalfd gets our signals, too: they cannot be
 * distinguished before the program has read them. Such a program should select another signal for
 * stillframe (signal=).
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/signalfd.h>
#include <time.h>

#include "agent/interpose/interpose.h"
#include "agent/interpose/signals.h"
#include "frozen/raw.h"

#define NS_PER_S 1000000000

typedef int timedwait_fn(const sigset_t *, siginfo_t *, const struct timespec *);
typedef int signalfd_fn(int, const sigset_t *, int);

/* libc's, which is a cancellation point; before the agent's own constructor without it. */
static int wait_once(const sigset_t *set, siginfo_t *info, const struct timespec *time)
{
	timedwait_fn *next = (timedwait_fn *)sf_interpose_next(SF_NEXT_sigtimedwait);

	if (next)
		return next(set, info, time);
	return (int)sf_interpose_result(
		sf_raw4(SYS_rt_sigtimedwait, set, info, time, sizeof(uint64_t)));
}

static struct timespec left_until(uint64_t until_ns)
{
	uint64_t now_ns = sf_raw_now_ns();
	uint64_t left_ns = now_ns < until_ns ? until_ns - now_ns : 0;

	return (struct timespec){ .tv_sec = (time_t)(left_ns / NS_PER_S),
				  .tv_nsec = (long)(left_ns % NS_PER_S) };
}

static bool is_ours(int signal, const siginfo_t *info)
{
	const struct sf_interpose_hooks *hooks = atomic_load(&sf_interpose_hooks);

	return signal > 0 && hooks && sf_agent_signal_is_ours(signal) && hooks->is_sent(info);
}

SF_INTERPOSED int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *time)
{
	siginfo_t own_info, *into = info ? info : &own_info;
	struct timespec left = time ? *time : (struct timespec){ 0 };
	uint64_t until_ns = sf_raw_now_ns();
	int signal;

	until_ns += (uint64_t)left.tv_sec * NS_PER_S + (uint64_t)left.tv_nsec;
	while (is_ours(signal = wait_once(set, into, time ? &left : NULL), into))
		left = left_until(until_ns);
	return signal;
}

SF_INTERPOSED int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	return sigtimedwait(set, info, NULL);
}

SF_INTERPOSED int sigwait(const sigset_t *set, int *ret)
{
	int saved = errno, signal, error;

	do
		signal = sigtimedwait(set, NULL, NULL);
	while (signal < 0 && errno == EINTR);
	error = errno;
	errno = saved;
	if (signal < 0)
		return error;
	*ret = signal;
	return 0;
}

static bool is_empty(const sigset_t *set)
{
	for (int signal = 1; signal <= SIGRTMAX; signal++) {
		if (sigismember(set, signal) == 1)
			return false;
	}
	return true;
}

SF_INTERPOSED int signalfd(int fd, const sigset_t *mask, int flags)
{
	signalfd_fn *next = (signalfd_fn *)sf_interpose_find(SF_NEXT_signalfd);
	sigset_t others = *mask;

	for (int signal = 1; signal <= SIGRTMAX; signal++) {
		if (sf_agent_signal_is_ours(signal))
			sigdelset(&others, signal);
	}
	if (next)
		return next(fd, is_empty(&others) ? mask : &others, flags);
	errno = ENOSYS;
	return -1;
}

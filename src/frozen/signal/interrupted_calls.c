/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which calls a signal interrupts how: signal(7), "Interruption of system calls". The program's signal actions, which decide
 * whether an interrupted call must fail with EINTR, are read from the kernel. Signal-safe.
 */
#include <stddef.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "frozen/signal/chain.h"
#include "frozen/signal/interrupted_calls.h"
#include "frozen/raw.h"

#include "frozen/frozen.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441 /* the same number on every architecture */
#endif

/*
 * Each of these returns EINTR only when it has transferred, taken or changed nothing. A time-out
 * begins again from its full length; our signals come to running threads, so little of it had
 * passed. Two calls are not in the list, because a second call could have another effect: close (the
 * descriptor is closed already) and ioctl (the effect depends on the driver).
 *
 * To add one: a line here, and a case in tests/unit/test_context.c.
 */
static const int16_t mending[] = {
	SYS_futex, SYS_nanosleep, SYS_clock_nanosleep, SYS_ppoll, SYS_pselect6, SYS_epoll_pwait,
	SYS_epoll_pwait2, SYS_read, SYS_readv, SYS_pread64, SYS_write, SYS_writev, SYS_pwrite64,
	SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg, SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_accept,
	SYS_accept4, SYS_connect, SYS_msgrcv, SYS_msgsnd, SYS_mq_timedreceive, SYS_mq_timedsend,
	SYS_semop, SYS_semtimedop, SYS_rt_sigtimedwait, SYS_rt_sigsuspend, SYS_wait4, SYS_waitid,
	SYS_flock, SYS_fcntl, SYS_io_getevents, SYS_io_pgetevents, SYS_io_uring_enter, SYS_openat, SYS_getrandom,
#ifdef SYS_poll /* the older calls, which aarch64 never had */
	SYS_poll, SYS_select, SYS_epoll_wait, SYS_pause, SYS_open,
#endif
};

bool sf_call_mends(int32_t number)
{
	for (size_t i = 0; i < sizeof(mending) / sizeof(mending[0]); i++) {
		if (mending[i] == number)
			return true;
	}
	return false;
}

bool sf_call_waits_for_signal(int32_t number, const uint64_t args[6])
{
	switch (number) {
#ifdef SYS_pause
	case SYS_pause:
#endif
	case SYS_rt_sigsuspend:
		return true;
	case SYS_ppoll:
		return args[3] != 0;
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_io_uring_enter: /* or a time-out, which is in the same structure */
		return args[4] != 0;
	case SYS_pselect6:
	case SYS_io_pgetevents:
		return args[5] != 0;
	default:
		return false;
	}
}

/* A socket with a time-out; anything else that can be read or written is none. */
static bool has_timeout(uint64_t fd, int which)
{
	struct timeval time = { 0 };
	socklen_t size = sizeof(time);

	return sf_raw6(SYS_getsockopt, fd, SOL_SOCKET, which, (long)&time, (long)&size, 0) == 0 &&
	       (time.tv_sec || time.tv_usec);
}

bool sf_call_restarts(int32_t number, const uint64_t args[6])
{
	switch (number) {
	case SYS_wait4:
	case SYS_waitid:
	case SYS_flock:
	case SYS_fcntl:
#ifdef SYS_open
	case SYS_open:
#endif
	case SYS_openat:
	case SYS_mq_timedreceive:
	case SYS_mq_timedsend:
		return true;
	case SYS_futex:
		return args[3] == 0;
	case SYS_read:
	case SYS_readv:
	case SYS_pread64:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_accept:
	case SYS_accept4:
		return !has_timeout(args[0], SO_RCVTIMEO);
	case SYS_write:
	case SYS_writev:
	case SYS_pwrite64:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_connect:
		return !has_timeout(args[0], SO_SNDTIMEO);
	default:
		return false;
	}
}

/* --- the program's actions --- */

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

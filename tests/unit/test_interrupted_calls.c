/* SPDX-License-Identifier: Apache-2.0 */
/* Which system calls may be made again after a signal, and by which argument: signal(7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
#include <cmocka.h>

#include "frozen/signal/interrupted_calls.h"

#define EPOLL_PWAIT2 441

/* Whether a call waits for a signal when only argument `which` is not 0; -1: none is; 6: all are. */
static bool waits(int32_t number, int which)
{
	uint64_t args[6];

	for (int i = 0; i < 6; i++)
		args[i] = which == i || which == 6 ? UINT64_C(1) << 40 : 0;
	return sf_call_waits_for_signal(number, args);
}

/* A call with a mask lets signals through while it waits; its time-out, or its other arguments, make no difference. */
static void the_mask_alone_says_whether_a_signal_is_waited_for(void **state)
{
	static const struct { int32_t number; int mask; } masked[] = {
		{ SYS_ppoll, 3 }, { SYS_epoll_pwait, 4 }, { EPOLL_PWAIT2, 4 }, { SYS_pselect6, 5 }, { SYS_io_pgetevents, 5 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(masked) / sizeof(masked[0]); i++) {
		for (int which = -1; which < 6; which++)
			assert_int_equal(waits(masked[i].number, which), which == masked[i].mask);
		assert_true(waits(masked[i].number, 6));
	}
}

static void some_wait_by_themselves(void **state)
{
	static const int32_t never[] = { SYS_read, SYS_futex, SYS_clock_nanosleep, SYS_rt_sigtimedwait,
					 SYS_wait4, SYS_accept4 };
	(void)state;

	assert_true(waits(SYS_rt_sigsuspend, -1));
#ifdef SYS_pause
	assert_true(waits(SYS_pause, -1));
	assert_false(waits(SYS_poll, 6));
	assert_false(waits(SYS_epoll_wait, 6));
#endif
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		assert_false(waits(never[i], 6));
}

static void what_has_an_effect_is_not_made_again(void **state)
{
	static const int32_t never[] = { SYS_close, SYS_ioctl, SYS_execve, SYS_clone, SYS_exit, SYS_dup3, -1,
					 INT32_MAX };
	(void)state;

	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		assert_false(sf_call_mends(never[i]));
	assert_true(sf_call_mends(SYS_futex));       /* the first and the last of the list */
	assert_true(sf_call_mends(SYS_getrandom));
	assert_true(sf_call_mends(SYS_read));        /* number 0 */
}

static bool restarts(int32_t number, uint64_t first, uint64_t fourth)
{
	const uint64_t args[6] = { first, 1, 1, fourth, 1, 1 };

	return sf_call_restarts(number, args);
}

static void calls_restart_or_not(void **state)
{
	static const int32_t always[] = { SYS_wait4, SYS_waitid, SYS_flock, SYS_fcntl, SYS_openat,
					  SYS_mq_timedreceive, SYS_mq_timedsend };
	static const int32_t never[] = { SYS_ppoll, SYS_pselect6, SYS_epoll_pwait, SYS_clock_nanosleep,
					 SYS_rt_sigtimedwait, SYS_rt_sigsuspend, SYS_semtimedop, SYS_msgrcv,
					 SYS_msgsnd, SYS_io_getevents, SYS_io_pgetevents, SYS_io_uring_enter };
	(void)state;

	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		assert_true(restarts(always[i], 1, 1));
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		assert_false(restarts(never[i], 1, 0));
	assert_true(restarts(SYS_futex, 1, 0));      /* by its time-out, the fourth argument */
	assert_false(restarts(SYS_futex, 1, 1));
}

static const int32_t readers[] = { SYS_read, SYS_readv, SYS_pread64, SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg,
				   SYS_accept, SYS_accept4 };
static const int32_t writers[] = { SYS_write, SYS_writev, SYS_pwrite64, SYS_sendto, SYS_sendmsg, SYS_sendmmsg,
				   SYS_connect };

static void check_all(int fd, bool read_restarts, bool write_restarts)
{
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
		assert_int_equal(restarts(readers[i], (uint64_t)fd, 0), read_restarts);
	for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]); i++)
		assert_int_equal(restarts(writers[i], (uint64_t)fd, 0), write_restarts);
}

static void set_timeout(int fd, int which, struct timeval time)
{
	assert_int_equal(setsockopt(fd, SOL_SOCKET, which, &time, sizeof(time)), 0);
}

/* Reading by the socket's time-out for reading, writing by that for writing; whole seconds count, and so do parts. */
static void a_socket_s_own_timeout_counts(void **state)
{
	const struct timeval none = { 0, 0 }, seconds = { 7, 0 }, part = { 0, 500000 };
	int fds[2];
	(void)state;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	check_all(fds[0], true, true);
	set_timeout(fds[0], SO_RCVTIMEO, seconds);
	check_all(fds[0], false, true);
	set_timeout(fds[0], SO_RCVTIMEO, part);
	check_all(fds[0], false, true);
	set_timeout(fds[0], SO_RCVTIMEO, none);
	set_timeout(fds[0], SO_SNDTIMEO, part);
	check_all(fds[0], true, false);
	set_timeout(fds[0], SO_SNDTIMEO, seconds);
	check_all(fds[0], true, false);
	check_all(fds[1], true, true);
	close(fds[0]);
	close(fds[1]);
	check_all(-1, true, true);                   /* no socket at all */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_mask_alone_says_whether_a_signal_is_waited_for),
		cmocka_unit_test(some_wait_by_themselves),
		cmocka_unit_test(what_has_an_effect_is_not_made_again),
		cmocka_unit_test(calls_restart_or_not),
		cmocka_unit_test(a_socket_s_own_timeout_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

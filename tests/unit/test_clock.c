/* SPDX-License-Identifier: Apache-2.0 */
/* The alarm, which ends a call that does not return, and what it must not end. */
#include "os/clock.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#define MS 1000000u

static volatile sig_atomic_t handled;

static int open_alarm(void **state)
{
	(void)state;
	handled = 0;
	return sf_alarm_open(NULL) ? 0 : -1;
}

static int close_alarm(void **state)
{
	(void)state;
	sf_alarm_close();
	return 0;
}

/* As a call that the kernel makes again after each signal. */
static void wait_for_ever(void *arg)
{
	(void)arg;
	for (;;)
		pause();
}

static void do_nothing(void *arg)
{
	*(int *)arg += 1;
}

static void a_call_is_given_up(void **state)
{
	int n = 0;
	(void)state;

	sf_alarm_set(sf_now_ns() + 5 * MS);
	assert_false(sf_alarm_bound(wait_for_ever, NULL));
	sf_alarm_set(0);
	assert_true(sf_alarm_bound(do_nothing, &n));
	assert_int_equal(n, 1);
}

/* The alarm rings in the midst of the handler. */
static void end_it(int signal_number)
{
	(void)signal_number;
	raise(SIGRTMIN);
	handled = 1;
}

static void send_signal(void *arg)
{
	(void)arg;
	raise(SIGHUP);
	wait_for_ever(NULL);
}

static void a_signal_is_not_lost_with_the_call(void **state)
{
	(void)state;
	sf_alarm_handle_once(SIGHUP, end_it);
	assert_false(sf_alarm_bound(send_signal, NULL));
	assert_int_equal(handled, 1);
}

/* All CPUs together are never idle for longer than time goes by on each; and one sleeps a while here. */
static void idle_time_is_told(void **state)
{
	const uint64_t n_cpus = (uint64_t)sysconf(_SC_NPROCESSORS_CONF);
	const uint64_t idle_ns = sf_idle_ns(), now_ns = sf_now_ns();
	uint64_t more_ns;

	(void)state;
	assert_true(idle_ns > 0);
	sf_sleep_until(now_ns + 300000000);
	more_ns = sf_idle_ns() - idle_ns;
	assert_true(more_ns <= (sf_now_ns() - now_ns + 20000000) * n_cpus);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_call_is_given_up, open_alarm, close_alarm),
		cmocka_unit_test_setup_teardown(a_signal_is_not_lost_with_the_call, open_alarm,
						close_alarm),
		cmocka_unit_test(idle_time_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Launching a command while signals come. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "session/launch.h"

#define RINGS 20

static const struct sf_child_needs nothing;
static volatile sig_atomic_t n_rings, stopped_pid;

/* The command is let go only after many of them: whoever waits for it has been interrupted. */
static void on_alarm(int number)
{
	(void)number;
	if (++n_rings == RINGS)
		kill((pid_t)stopped_pid, SIGCONT);
}

static void ring(long microseconds)
{
	const struct itimerval period = { { 0, microseconds }, { 0, microseconds } };

	setitimer(ITIMER_REAL, &period, NULL);
}

/*
 * A recording that is ended by Ctrl-C at that moment took the command for one that cannot be started, and waited for
 * its end.
 */
static void a_signal_does_not_end_the_wait_for_the_exec(void **state)
{
	struct sigaction action = { .sa_handler = on_alarm }; /* without SA_RESTART, as record has it */
	char *const argv[] = { (char *)"sleep", (char *)"1000", NULL };
	struct sf_launched launched;
	struct sf_error err = { 0 };
	int status;

	(void)state;
	sigaction(SIGALRM, &action, NULL);
	assert_true(sf_launch(argv, &launched, &err));
	stopped_pid = launched.pid;
	kill(launched.pid, SIGSTOP);
	assert_int_equal(waitpid(launched.pid, &status, WUNTRACED), launched.pid);
	assert_true(WIFSTOPPED(status));
	ring(2000);
	assert_true(sf_launch_go(&launched, argv[0], &nothing, &err));
	assert_true(n_rings >= RINGS);
	ring(0);
	kill(launched.pid, SIGTERM);
	status = sf_launch_wait(&launched);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void what_cannot_be_started_is_told(void **state)
{
	char *const argv[] = { (char *)"/nonexistent/command", NULL };
	struct sf_launched launched;
	struct sf_error err = { 0 };

	(void)state;
	assert_true(sf_launch(argv, &launched, &err));
	assert_false(sf_launch_go(&launched, argv[0], &nothing, &err));
	assert_int_equal(err.code, SF_E_INPUT);
	assert_int_equal(sf_launch_wait(&launched), -1); /* it was taken note of */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_does_not_end_the_wait_for_the_exec),
		cmocka_unit_test(what_cannot_be_started_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

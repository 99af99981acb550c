/* SPDX-License-Identifier: Apache-2.0 */
/* How a thread comes before others. Each case is a child, as the way back takes a right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/cpu.h"

enum { LOWEST = 1, OTHER = 5 }; /* priorities */

static bool set_class(int class, int priority)
{
	const struct sched_param param = { .sched_priority = priority };

	return sched_setscheduler(0, class, &param) == 0;
}

static int priority(void)
{
	struct sched_param param;

	return sched_getparam(0, &param) == 0 ? param.sched_priority : -1;
}

static bool is_preferred(int class, int with_priority)
{
	sf_cpu_prefer();
	return (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == class && priority() == with_priority;
}

static bool an_ordinary_thread(void)
{
	return is_preferred(SCHED_FIFO, LOWEST) && is_preferred(SCHED_FIFO, LOWEST);
}

static bool one_that_yields_to_all(void)
{
	return set_class(SCHED_IDLE, 0) && is_preferred(SCHED_FIFO, LOWEST);
}

static bool one_of_its_own_class(void)
{
	return set_class(SCHED_RR, OTHER) && is_preferred(SCHED_RR, OTHER);
}

/* SIGXCPU would end it. */
static bool one_with_a_limit(void)
{
	const struct rlimit limit = { 1000, 1000 };

	return setrlimit(RLIMIT_RTTIME, &limit) == 0 && is_preferred(SCHED_OTHER, 0) && getpriority(PRIO_PROCESS, 0) == -20;
}

static bool its_children(void)
{
	int status = 1;

	sf_cpu_prefer();
	if (fork() == 0)
		_exit(sched_getscheduler(0) != SCHED_OTHER);
	return wait(&status) > 0 && status == 0;
}

static bool (*const cases[])(void) = { an_ordinary_thread, one_that_yields_to_all, one_of_its_own_class, one_with_a_limit, its_children };

static bool holds(bool (*body)(void))
{
	const pid_t pid = fork();
	int status = 1;

	if (pid == 0)
		_exit(!body());
	return waitpid(pid, &status, 0) == pid && status == 0;
}

static bool may_be_preferred(void)
{
	return set_class(SCHED_FIFO, LOWEST);
}

static void test_classes(void **state)
{
	(void)state;
	if (!holds(may_be_preferred)) {
		print_message("a real-time priority is not allowed here\n");
		skip();
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!holds(cases[i]))
			fail_msg("case %zu", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_classes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

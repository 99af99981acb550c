/* SPDX-License-Identifier: Apache-2.0 */
/* A signal to a process that has ended comes to nobody, also when another one has its id by now. And when a process started. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/process.h"

/* A child that waits, with this id (0: any); -1 and errno. */
static pid_t start(pid_t id)
{
	struct clone_args how = {
		.exit_signal = SIGCHLD,
		.set_tid = id ? (uintptr_t)&id : 0,
		.set_tid_size = id != 0,
	};
	const pid_t child = (pid_t)syscall(SYS_clone3, &how, sizeof(how));

	if (child == 0) {
		alarm(60);
		for (;;)
			pause();
	}
	return child;
}

static int end_of(pid_t child)
{
	int status = 0;

	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void it_comes_to_the_process_that_was_opened(void **state)
{
	const pid_t child = start(0);
	const int fd = sf_process_open(child);

	(void)state;
	assert_true(child > 0 && fd >= 0);
	assert_true(sf_process_signal(fd, child, SIGKILL));
	assert_int_equal(WTERMSIG(end_of(child)), SIGKILL);
	close(fd);
}

static void and_to_no_later_one_with_its_id(void **state)
{
	const pid_t first = start(0);
	const int fd = sf_process_open(first);
	pid_t second;

	(void)state;
	assert_true(first > 0 && fd >= 0);
	kill(first, SIGKILL);
	end_of(first);
	assert_false(sf_process_signal(fd, first, SIGTERM));
	assert_int_equal(errno, ESRCH);
	second = start(first);
	if (second < 0 && (errno == EPERM || errno == EEXIST || errno == ENOSYS)) {
		print_message("the rest: cannot choose the id of a process: %s\n", strerror(errno));
		close(fd);
		return;
	}
	assert_int_equal(second, first);
	assert_false(sf_process_signal(fd, first, SIGTERM));
	assert_int_equal(errno, ESRCH);
	/* By the id alone it would have come there. */
	assert_true(sf_process_signal(-1, first, SIGUSR1));
	assert_int_equal(WTERMSIG(end_of(second)), SIGUSR1);
	close(fd);
}

static void it_started_between_two_looks_at_the_clock(void **state)
{
	const uint64_t before = sf_process_start_clock();
	const pid_t child = start(0);
	const uint64_t after = sf_process_start_clock();
	struct sf_program program;

	(void)state;
	assert_true(child > 0 && sf_process_program(child, &program));
	assert_in_range(program.started, before, after);
	kill(child, SIGKILL);
	end_of(child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_comes_to_the_process_that_was_opened),
		cmocka_unit_test(and_to_no_later_one_with_its_id),
		cmocka_unit_test(it_started_between_two_looks_at_the_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

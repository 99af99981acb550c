/* SPDX-License-Identifier: Apache-2.0 */
/* Words of /proc for a thread that the kernel seldom writes: they are in a file of ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/task.h"

/* The result of a look at a thread of this process, if these are the words of its `syscall` file. */
static struct sf_task_look look_at(int32_t tid, const char *words)
{
	struct sf_task task = { .pid = getpid(), .tid = tid, .run_fd = -1, .stat_fd = -1 };
	struct sf_task_look look;

	task.look_fd = memfd_create("syscall", 0);
	assert_true(task.look_fd >= 0);
	assert_int_equal(write(task.look_fd, words, strlen(words)), (ssize_t)strlen(words));
	assert_true(sf_task_look(&task, &look));
	close(task.look_fd);
	return look;
}

#define NOWHERE "-1 0x7ffd00001000 0x401136\n"
#define IN_POLL "7 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffd00001000 0x401136\n"

static void test_words(void **state)
{
	struct sf_task_look look = look_at(gettid(), IN_POLL);

	(void)state;
	assert_int_equal(look.state, SF_STATE_BLOCKED);
	assert_int_equal(look.syscall, 7);
	assert_int_equal(look.args[5], 6);
	assert_true(look.placed && look.sp == 0x7ffd00001000 && look.pc == 0x401136);
	assert_int_equal(look_at(gettid(), "running\n").state, SF_STATE_RUNNING);
}

/* Let go, and in no run queue yet: this thread runs, whatever the file says. */
static void test_being_woken(void **state)
{
	struct sf_task_look look = look_at(gettid(), NOWHERE);

	(void)state;
	assert_int_equal(look.state, SF_STATE_RUNNING);
	assert_int_equal(look.syscall, SF_SYSCALL_NONE);
	assert_false(look.placed);
}

static int ends[2];
static _Atomic int32_t sleeper;

static void *sleep_on(void *arg)
{
	char byte;

	atomic_store(&sleeper, gettid());
	return read(ends[0], &byte, 1) == 0 ? arg : NULL;
}

/* It sleeps in none of its calls: a page fault. */
static void test_page_fault(void **state)
{
	struct sf_task_look look;
	pthread_t thread;
	int32_t tid;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pthread_create(&thread, NULL, sleep_on, NULL), 0);
	while (!(tid = atomic_load(&sleeper)) || sf_task_letter(getpid(), tid) != 'S')
		usleep(1000);
	look = look_at(tid, NOWHERE);
	close(ends[1]);
	pthread_join(thread, NULL);
	close(ends[0]);
	assert_int_equal(look.state, SF_STATE_BLOCKED);
	assert_int_equal(look.syscall, SF_SYSCALL_FAULT);
	assert_true(look.placed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_being_woken),
		cmocka_unit_test(test_page_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

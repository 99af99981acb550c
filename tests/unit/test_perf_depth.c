/* SPDX-License-Identifier: Apache-2.0 */
/* How deep the stacks of sleeping threads are, by where they sleep: of threads of this process, and of a child. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/perf/stacks.h"
#include "os/clock.h"
#include "os/perf_events.h"
#include "os/process.h"
#include "os/task.h"

#define DEEP 20000u
#define STACK ((size_t)256 << 10)
#define WAIT_NS UINT64_C(5000000000)

static sem_t goes_on;
static _Atomic int32_t tid;

/* The stack pointer of a thread that sleeps; waits until it does. */
static uint64_t sp_of(int32_t pid, int32_t thread)
{
	const uint64_t until_ns = sf_now_ns() + WAIT_NS;
	struct sf_task_look look = { 0 };
	struct sf_task task;

	assert_true(sf_task_open(pid, thread, &task));
	while ((!sf_task_look(&task, &look) || !look.placed) && sf_now_ns() < until_ns)
		sf_sleep_until(sf_now_ns() + 1000000);
	sf_task_close(&task);
	assert_true(look.placed);
	return look.sp;
}

static void *sleep_deep(void *arg)
{
	volatile char array[DEEP];

	array[0] = 0;
	tid = gettid();
	while (sem_wait(&goes_on) != 0)
		;
	return array[0] ? arg : NULL;
}

/* A thread with this stack, which sleeps at the depth DEEP in it. */
static pthread_t start(void *stack, size_t size)
{
	pthread_attr_t attributes;
	pthread_t thread;

	tid = 0;
	pthread_attr_init(&attributes);
	assert_int_equal(pthread_attr_setstack(&attributes, stack, size), 0);
	assert_int_equal(pthread_create(&thread, &attributes, sleep_deep, NULL), 0);
	pthread_attr_destroy(&attributes);
	while (!tid)
		sf_sleep_until(sf_now_ns() + 1000000);
	return thread;
}

static void end(pthread_t thread)
{
	sem_post(&goes_on);
	pthread_join(thread, NULL);
}

/* Between two mappings that cannot be read, so that it is one of its own. */
static char *map_stack(char **all_ret)
{
	const size_t guard = (size_t)sysconf(_SC_PAGESIZE);

	*all_ret = mmap(NULL, STACK + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(*all_ret != MAP_FAILED);
	assert_int_equal(mprotect(*all_ret + guard, STACK, PROT_READ | PROT_WRITE), 0);
	return *all_ret + guard;
}

static void test_to_the_end_of_the_mapping(void **state)
{
	const int32_t pid = getpid();
	char *all, *stack = map_stack(&all);
	pthread_t thread = start(stack, STACK);
	const uint64_t expected = (uintptr_t)stack + STACK - sp_of(pid, tid);

	(void)state;
	assert_in_range(expected, DEEP, DEEP + 10000);
	assert_int_equal(sf_perf_depth(&pid, 1), expected);
	end(thread);
	munmap(all, STACK + 2 * (size_t)sysconf(_SC_PAGESIZE));
}

/* Where the mapping goes on, it is no measure of the stack. */
static void test_a_stack_in_a_large_mapping(void **state)
{
	const int32_t pid = getpid();
	char *all, *stack = map_stack(&all);
	pthread_t thread = start(stack, STACK / 2);

	(void)state;
	assert_true((uintptr_t)stack + STACK - sp_of(pid, tid) > SF_PERF_MAX_STACK);
	assert_true(sf_perf_depth(&pid, 1) < DEEP);
	end(thread);
	munmap(all, STACK + 2 * (size_t)sysconf(_SC_PAGESIZE));
}

/* Arguments and environment are at the end of the first stack, and are no part of it. */
static void test_the_first_stack(void **state)
{
	volatile char array[DEEP];
	struct sf_program program;
	uint64_t expected = 0;
	int32_t pids[2];

	(void)state;
	array[0] = 0;
	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			pause();
			_exit(array[0]);
		}
		assert_true(sf_process_program(pids[i], &program));
		expected = program.stack - sp_of(pids[i], pids[i]);
	}
	assert_in_range(expected, DEEP, DEEP + 10000);
	assert_int_equal(sf_perf_depth(pids, 2), expected);
	for (int i = 0; i < 2; i++) {
		const uint64_t sps[] = { sp_of(pids[i], pids[i]) + 100, sp_of(pids[i], pids[i]) };

		assert_int_equal(sf_perf_depth_at(pids[i], sps, 1), expected - 100);
		assert_int_equal(sf_perf_depth_at(pids[i], sps, 2), expected);
		assert_int_equal(sf_perf_depth_at(pids[i], &(uint64_t){ 8 }, 1), 0);
	}
	for (int i = 0; i < 2; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

static void test_nothing_is_known(void **state)
{
	const int32_t none = 0x7ffffff0;

	(void)state;
	assert_int_equal(sf_perf_depth(&none, 1), 0);
	assert_int_equal(sf_perf_depth(NULL, 0), 0);
	assert_int_equal(sf_perf_depth_at(none, &(uint64_t){ 8 }, 1), 0);
	assert_int_equal(sf_perf_depth_at(getpid(), NULL, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_to_the_end_of_the_mapping),
		cmocka_unit_test(test_a_stack_in_a_large_mapping),
		cmocka_unit_test(test_the_first_stack),
		cmocka_unit_test(test_nothing_is_known),
	};

	sem_init(&goes_on, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

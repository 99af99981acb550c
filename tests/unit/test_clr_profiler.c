/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiler in .NET's sense (agent/coreclr/clr_profiler.h), from a runtime that is a table of functions here: it comes up
 * only where a part needs it, gets the events of all parts, and detaches with the last one.
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/coreclr/clr_profiler.h"
#include "runtime/coreclr/profiler_id.h"

#define REFUSED ((int32_t)0x80131360)

/* --- a runtime --- */

static struct {
	int32_t query, set_events, detach; /* HRESULTs */
	uint32_t low, high;
	unsigned n_queries, n_releases, n_detaches;
	bool detaches_another;             /* while it is asked to detach one: under a lock of its own */
} runtime;

static int32_t query(void *self, const void *id, void **ret)
{
	runtime.n_queries++;
	assert_true(sf_clr_is_id(id, sf_clr_info_12));
	*ret = runtime.query >= 0 ? self : NULL;
	return runtime.query;
}

static uint32_t release(void *self)
{
	(void)self;
	runtime.n_releases++;
	return 0;
}

static int32_t set_events(void *self, uint32_t low, uint32_t high)
{
	(void)self;
	runtime.low = low;
	runtime.high = high;
	return runtime.set_events;
}

static void *say_detached(void *arg)
{
	sf_clr_profiler_detached();
	sem_post(arg);
	return NULL;
}

/* ProfilerDetachSucceeded must return: the runtime calls it under the lock for which RequestProfilerDetach waits. */
static void detach_another(void)
{
	struct timespec until;
	pthread_t thread;
	sem_t said;

	sem_init(&said, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, say_detached, &said), 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 5;
	assert_int_equal(sem_timedwait(&said, &until), 0);
	pthread_join(thread, NULL);
}

static int32_t request_detach(void *self, uint32_t ms)
{
	(void)self;
	(void)ms;
	runtime.n_detaches++;
	if (runtime.detaches_another)
		detach_another();
	return runtime.detach;
}

static void *functions[115];
static void *const *object = functions;

static struct sf_clr_unknown *offered(void)
{
	functions[0] = (void *)query;
	functions[2] = (void *)release;
	functions[58] = (void *)request_detach;
	functions[82] = (void *)set_events;
	return (struct sf_clr_unknown *)(void *)&object;
}

/* --- parts --- */

static unsigned n_up, n_left;

static void came_up(struct sf_clr_info *info)
{
	assert_ptr_equal(info, &object);
	n_up++;
}

static void leaves(struct sf_clr_info *info)
{
	assert_ptr_equal(info, &object);
	n_left++;
}

static const struct sf_clr_part one = { .events_low = 1, .events_high = 16, .came_up = came_up, .leaves = leaves };
static const struct sf_clr_part two = { .events_low = 6, .came_up = came_up, .leaves = leaves };

static const struct sf_clr_part first = { .events_low = 1, .is_main = true, .came_up = came_up, .leaves = leaves };

static int set_up(void **state)
{
	(void)state;
	memset(&runtime, 0, sizeof(runtime));
	n_up = n_left = 0;
	return 0;
}

/* --- tests --- */

static void test_it_declines_where_no_part_needs_it(void **state)
{
	(void)state;
	assert_int_equal(sf_clr_profiler_arrive(offered()), SF_CLR_PROFILER_DECLINES);
	assert_int_equal(runtime.n_queries, 0);
	assert_false(sf_clr_profiler_is_up());
	sf_clr_profiler_end(&one);
	assert_int_equal(n_left, 0);
}

/* The library of a runtime in this process, as far as its memory map shows. */
static void *map_runtime(void)
{
	char folder[] = "/tmp/test_clr_profiler-XXXXXX", path[64];
	void *mapping;
	int fd;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/libcoreclr.so", folder);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	mapping = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(mapping != MAP_FAILED);
	close(fd);
	unlink(path);
	rmdir(folder);
	return mapping;
}

/* A runtime that starts has the library mapped already when it loads the agent: it is waited for, and not attached to. */
static void test_a_runtime_that_starts(void **state)
{
	void *mapping = map_runtime();
	struct sf_error err = { 0 };

	(void)state;
	assert_false(sf_clr_profiler_begin(&first, &err));
	assert_non_null(strstr(err.text, "has started"));
	sf_clr_profiler_expect();
	assert_true(sf_clr_profiler_begin(&first, NULL));
	assert_true(sf_clr_profiler_begin(&one, NULL));
	assert_false(sf_clr_profiler_is_up());
	assert_true(sf_clr_profiler_is_main());
	assert_int_equal(sf_clr_profiler_arrive(offered()), SF_CLR_OK);
	assert_int_equal(n_up, 2);
	sf_clr_profiler_end(&one);
	sf_clr_profiler_end(&first);
	sf_clr_profiler_detached();
	assert_false(sf_clr_profiler_begin(&first, &err));
	munmap(mapping, 4096);
}

static void test_a_life(void **state)
{
	(void)state;
	assert_true(sf_clr_profiler_begin(&one, NULL));
	assert_false(sf_clr_profiler_is_up());
	assert_int_equal(sf_clr_profiler_arrive(offered()), SF_CLR_OK);
	assert_true(sf_clr_profiler_is_up());
	assert_int_equal(sf_clr_profiler_arrive(offered()), SF_CLR_PROFILER_DECLINES);
	assert_int_equal(n_up, 1);
	assert_int_equal(runtime.low, 1);
	assert_int_equal(runtime.high, 16);
	assert_true(sf_clr_profiler_begin(&two, NULL));
	assert_int_equal(n_up, 2);
	assert_int_equal(runtime.low, 7);
	sf_clr_profiler_end(&one);
	assert_int_equal(runtime.low, 6);
	assert_int_equal(runtime.high, 0);
	assert_int_equal(runtime.n_detaches, 0);
	sf_clr_profiler_end(&two);
	assert_int_equal(n_left, 2);
	assert_int_equal(runtime.n_detaches, 1);
	assert_int_equal(runtime.low, 0);
	assert_false(sf_clr_profiler_is_up());
	assert_int_equal(runtime.n_releases, 0);
	sf_clr_profiler_detached();
	assert_int_equal(runtime.n_releases, 1);
}

/* A part that could not be served is not waited for: the next profile begins anew. */
static void test_the_runtime_refuses(void **state)
{
	struct sf_error err = { 0 };

	(void)state;
	assert_true(sf_clr_profiler_begin(&one, NULL));
	runtime.query = SF_CLR_E_NOINTERFACE;
	assert_int_equal(sf_clr_profiler_arrive(offered()), SF_CLR_E_NOINTERFACE);
	runtime.query = SF_CLR_OK;
	runtime.set_events = REFUSED;
	assert_int_equal(sf_clr_profiler_arrive(offered()), REFUSED);
	assert_int_equal(runtime.n_releases, 1);
	assert_false(sf_clr_profiler_is_up());
	assert_int_equal(n_up, 0);
	runtime.set_events = SF_CLR_OK;
	assert_int_equal(sf_clr_profiler_arrive(offered()), SF_CLR_OK);
	runtime.set_events = REFUSED;
	assert_false(sf_clr_profiler_begin(&two, &err));
	assert_non_null(strstr(err.text, "0x80131360"));
	assert_int_equal(n_up, 1);
	sf_clr_profiler_end(&two);
	assert_int_equal(n_left, 0);
	sf_clr_profiler_end(&one);
	assert_int_equal(n_left, 1);
	assert_false(sf_clr_profiler_is_up());
}

/* A profiler that may not detach stays, without events, and serves the next profile. */
static void test_it_may_not_detach(void **state)
{
	(void)state;
	runtime.detach = REFUSED;
	assert_true(sf_clr_profiler_begin(&one, NULL));
	assert_int_equal(sf_clr_profiler_arrive(offered()), SF_CLR_OK);
	sf_clr_profiler_end(&one);
	assert_int_equal(runtime.low, 0);
	assert_int_equal(n_left, 1);
	runtime.detach = SF_CLR_OK;
	assert_true(sf_clr_profiler_begin(&two, NULL));
	assert_int_equal(n_up, 2);
	assert_int_equal(runtime.low, 6);
	sf_clr_profiler_end(&two);
	assert_false(sf_clr_profiler_is_up());
}

/* The profiler of the profile before is long in leaving, and has left just when this profile ends. */
static void test_the_runtime_detaches_another_one_meanwhile(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		assert_true(sf_clr_profiler_begin(&one, NULL));
		assert_int_equal(sf_clr_profiler_arrive(offered()), SF_CLR_OK);
		runtime.detaches_another = i == 1;
		sf_clr_profiler_end(&one);
	}
	assert_int_equal(runtime.n_releases, 1);
	sf_clr_profiler_detached();
	assert_int_equal(runtime.n_releases, 2);
}

static void test_the_runtime_ends(void **state)
{
	(void)state;
	assert_true(sf_clr_profiler_begin(&one, NULL));
	assert_int_equal(sf_clr_profiler_arrive(offered()), SF_CLR_OK);
	sf_clr_profiler_shut_down();
	assert_int_equal(n_left, 1);
	assert_false(sf_clr_profiler_is_up());
	sf_clr_profiler_end(&one);
	assert_int_equal(n_left, 1);
	assert_int_equal(runtime.n_detaches, 0);
}

/* The next profile does not wait for it; what a late runtime says counts once for each. */
static void test_it_is_long_in_leaving(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		assert_true(sf_clr_profiler_begin(&one, NULL));
		assert_int_equal(sf_clr_profiler_arrive(offered()), SF_CLR_OK);
		assert_true(sf_clr_profiler_is_up());
		sf_clr_profiler_end(&one);
		assert_int_equal(sf_clr_profiler_arrive(offered()), SF_CLR_PROFILER_DECLINES);
	}
	for (unsigned i = 0; i < 30; i++)
		sf_clr_profiler_detached();
	assert_int_equal(runtime.n_detaches, 20);
	assert_int_equal(runtime.n_releases, 8);
}

/* The main profiler's place is taken only where a part needs it, and not in a runtime that has started. */
static void test_the_main_profiler(void **state)
{
	static const struct sf_clr_part main_part = { .events_low = 8, .is_main = true, .came_up = came_up };
	struct sf_error err = { 0 };

	(void)state;
	assert_true(sf_clr_profiler_begin(&one, NULL));
	assert_false(sf_clr_profiler_is_main());
	assert_true(sf_clr_profiler_begin(&main_part, NULL));
	assert_true(sf_clr_profiler_is_main());
	assert_int_equal(sf_clr_profiler_arrive(offered()), SF_CLR_OK);
	assert_int_equal(runtime.low, 9);
	sf_clr_profiler_end(&main_part);
	assert_false(sf_clr_profiler_is_main());
	assert_false(sf_clr_profiler_begin(&main_part, &err));
	assert_non_null(strstr(err.text, "has started"));
	assert_false(sf_clr_profiler_is_main());
	sf_clr_profiler_end(&one);
	sf_clr_profiler_detached();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_it_declines_where_no_part_needs_it, set_up),
		cmocka_unit_test_setup(test_a_life, set_up),
		cmocka_unit_test_setup(test_the_runtime_refuses, set_up),
		cmocka_unit_test_setup(test_it_may_not_detach, set_up),
		cmocka_unit_test_setup(test_the_runtime_detaches_another_one_meanwhile, set_up),
		cmocka_unit_test_setup(test_the_runtime_ends, set_up),
		cmocka_unit_test_setup(test_it_is_long_in_leaving, set_up),
		cmocka_unit_test_setup(test_the_main_profiler, set_up),
		cmocka_unit_test_setup(test_a_runtime_that_starts, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

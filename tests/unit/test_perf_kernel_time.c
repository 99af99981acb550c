/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which threads are held to find their CPU time in the kernel. The kernel's counts and words are replaced (--wrap), and
 * so are the hold and the search for the displaced thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "perf_thread.h"

#define PERIOD (10 * MS)
#define TOO_MANY 100

void __wrap_sf_ptrace_hold(struct sf_capture *capture, struct sf_thread *held, uint64_t time_ns)
{
	(void)capture, (void)time_ns;
	assert_ptr_equal(held, &thread);
	n_holds++;
}

void __wrap_sf_ptrace_sample_displaced(struct sf_capture *capture, struct sf_thread *displaced, uint64_t time_ns)
{
	(void)capture, (void)time_ns;
	assert_ptr_equal(displaced, &thread);
	assert_true(thread.kernel_time.holds);
	n_displaced++;
}

static int set_up(void **state)
{
	(void)state;
	perf = (struct sf_perf){ .base.period_ns = PERIOD, .events = { .period_ns = PERIOD }, .may_hold = true, .own_pid = 99 };
	perf.base.blocked_period_ns = 50 * MS;
	sf_perf_budget_begin(&perf.budget);
	sf_perf_kernel_time_begin(&perf);
	return watch_thread(&(struct sf_thread){ .serial = 1, .watched = true, .ran = true, .task = { .pid = 10, .tid = 10 } });
}

/* The thread uses so much CPU time, none of which has a sample. */
static void ran(uint64_t ms)
{
	run.cpu_ns += ms * MS;
	run.switches++;
	now_ns += ms * MS;
}

static void look_and_seek(void)
{
	assert_true(sf_thread_measure_and_look(&thread, now_ns));
	sf_perf_kernel_time_look(&perf, &thread);
	sf_perf_kernel_time_seek(&perf, now_ns);
}

/* The time is the real one, and the measure of the use of CPUs is not for this test. */
static void catch_displaced(void)
{
	thread.use.is_much = true;
	if (sf_perf_kernel_time_need(&perf, &thread))
		sf_perf_kernel_time_catch(&perf, &thread, now_ns);
}

static void a_displaced_thread_has_a_sample(void **state)
{
	(void)state;
	thread.account.beyond_ns = 3 * PERIOD;
	catch_displaced();
	assert_int_equal(n_displaced, 0);    /* it is not sought */
	thread.account.beyond_ns = 0;
	ran(20);
	look_and_seek();
	assert_int_equal(n_holds, 0);        /* it is not held where it is found, if it runs ... */
	catch_displaced();
	sleeps = true;
	catch_displaced();    /* ... but where it was displaced, also if it sleeps then */
	assert_int_equal(n_displaced, 2);
	thread.account.beyond_ns = 2 * PERIOD - 1;
	catch_displaced();
	assert_int_equal(n_displaced, 2);    /* the last period may be one of user mode */
}

/* The batch ends at 100 ms, and the count is read at 500: there may be samples of what the thread did meanwhile. */
static void a_late_count_is_no_time_in_the_kernel(void **state)
{
	(void)state;
	perf.events.began_ns = 100 * MS;
	thread.batch.period_ns = PERIOD;
	thread.account.cpu_ns = 410 * MS;
	thread.on_cpu.counted_ns = 500 * MS;
	sf_perf_kernel_time_split(&perf, &thread);
	assert_int_equal(thread.account.beyond_ns, 0);
	assert_false(thread.kernel_time.is_sought);
	thread.account.cpu_ns = 450 * MS;
	sf_perf_kernel_time_split(&perf, &thread);
	assert_true(thread.kernel_time.is_sought);
}

static void a_thread_that_is_not_displaced_is_held_late(void **state)
{
	(void)state;
	ran(400);
	thread.use.is_much = true;
	look_and_seek();
	assert_int_equal(n_holds, 0);
	ran(10);
	look_and_seek();
	assert_int_equal(n_holds, 1);
}

/* That uses little, or whose displacement the kernel does not show. */
static void a_running_thread_is_held(void **state)
{
	(void)state;
	thread.use.is_much = perf.base.displacement.is_missing = *state != NULL;
	ran(19);
	look_and_seek();
	assert_int_equal(n_holds, 0);        /* the last period may be one of user mode */
	ran(1);
	look_and_seek();
	assert_int_equal(n_holds, 1);
	assert_true(thread.kernel_time.holds);
}

/* It would stay stopped until the thread stops whose hold is requested already. */
static void one_thread_is_held_at_a_time(void **state)
{
	(void)state;
	perf.base.displacement.is_missing = true;
	ran(100);
	perf.base.n_requested = 1;
	look_and_seek();
	assert_int_equal(n_holds, 0);
	perf.base.n_requested = 0;
	look_and_seek();
	assert_int_equal(n_holds, 1);
}

/* A hold would break off the system call. */
static void a_sleeping_thread_is_not_held(void **state)
{
	(void)state;
	perf.base.displacement.is_missing = true;
	ran(100);
	sleeps = true;
	look_and_seek();
	assert_true(thread.kernel_time.is_sought);
	assert_int_equal(n_holds, 0);
}

/* Each look costs, also a look that finds no reason for a hold. */
static void a_thread_that_sleeps_on_is_not_sought(void **state)
{
	unsigned n = 0;

	(void)state;
	ran(100);
	sleeps = true;
	look_and_seek();
	for (; thread.kernel_time.is_sought && n < TOO_MANY; n++)
		sf_perf_kernel_time_seek(&perf, now_ns);
	assert_true(n > 1 && n < TOO_MANY);
}

static void own_and_unwatched_threads_are_not_held(void **state)
{
	(void)state;
	perf.base.displacement.is_missing = thread.use.is_much = true;
	ran(100);
	thread.task.pid = 99;
	look_and_seek();
	catch_displaced();
	thread.task.pid = 10;
	thread.watched = false;
	look_and_seek();
	catch_displaced();
	assert_int_equal(n_holds + n_displaced, 0);
}

static void none_is_held_where_the_kernel_is_sampled(void **state)
{
	(void)state;
	perf.base.displacement.is_missing = true;
	perf.events.kernel = true;
	sf_perf_kernel_time_begin(&perf);
	assert_false(perf.kernel_time.on);
	ran(100);
	look_and_seek();
	perf.events.kernel = perf.may_hold = false;
	sf_perf_kernel_time_begin(&perf);
	look_and_seek();
	assert_int_equal(n_holds, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_displaced_thread_has_a_sample),
		TEST(a_late_count_is_no_time_in_the_kernel),
		TEST(a_thread_that_is_not_displaced_is_held_late),
		TEST(a_running_thread_is_held),
		cmocka_unit_test_prestate_setup_teardown(a_running_thread_is_held, set_up, tear_down, &perf),
		TEST(one_thread_is_held_at_a_time),
		TEST(a_sleeping_thread_is_not_held),
		TEST(a_thread_that_sleeps_on_is_not_sought),
		TEST(own_and_unwatched_threads_are_not_held),
		TEST(none_is_held_where_the_kernel_is_sampled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

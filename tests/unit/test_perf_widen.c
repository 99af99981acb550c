/* SPDX-License-Identifier: Apache-2.0 */
/* When events of the threads become events of the CPUs. The counts, and what the kernel allows, are made up (--wrap). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "capture/perf/allowed.h"
#include "capture/perf/perf.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)

static struct sf_perf perf;
static struct sf_unseen counts;  /* what a look finds */
static uint64_t now_ns;
static unsigned n_looks;
static bool is_root;

void __wrap_sf_unseen_look(const struct sf_watch *watch, uint64_t little_ns, struct sf_unseen *ret);
bool __wrap_sf_perf_events_allowed(int32_t pid, bool *kernel_ret, struct sf_error *err);
bool __wrap_sf_perf_events_widen(struct sf_perf_events *events, struct sf_error *err);
bool __wrap_sf_thread_measure(struct sf_thread *thread, uint64_t at_ns, bool *ran_ret);

/* The counts of a thread are as they are. */
bool __wrap_sf_thread_measure(struct sf_thread *thread, uint64_t at_ns, bool *ran_ret)
{
	(void)thread;
	(void)ran_ret;
	assert_int_equal(at_ns, now_ns);
	return true;
}

void __wrap_sf_unseen_look(const struct sf_watch *watch, uint64_t little_ns, struct sf_unseen *ret)
{
	assert_ptr_equal(watch, &perf.base.watch);
	assert_int_equal(little_ns, (now_ns - 100 * S) / 512);
	n_looks++;
	*ret = counts;
}

bool __wrap_sf_perf_events_allowed(int32_t pid, bool *kernel_ret, struct sf_error *err)
{
	(void)err;
	assert_int_equal(pid, SF_PERF_ALL_THREADS);
	*kernel_ret = true;
	return is_root;
}

bool __wrap_sf_perf_events_widen(struct sf_perf_events *events, struct sf_error *err)
{
	(void)err;
	events->all = true;
	return true;
}

static void begin_at(unsigned rate)
{
	perf = (struct sf_perf){ .base.period_ns = S / rate, .events.n_cpus = 2 };
	counts = (struct sf_unseen){ 0 };
	now_ns = 100 * S;
	n_looks = 0;
	is_root = true;
	sf_perf_widen_if_short(&perf, now_ns); /* the first look: nothing is known of the time before */
}

/* The next look is due, 1 s after the last one. What it finds is of this second. Returns whether the events are widened. */
static bool widens(uint64_t cpu_ns, uint64_t unseen_ns, uint64_t switches)
{
	counts.cpu_ns += cpu_ns;
	counts.unseen_ns += unseen_ns;
	counts.switches = switches;
	now_ns += S;
	sf_perf_widen_if_short(&perf, now_ns);
	assert_int_equal(perf.base.watch.by_samples, perf.events.all);
	return perf.events.all;
}

static void short_lives(void **state)
{
	(void)state;
	begin_at(99);
	assert_false(widens(900 * MS, 80 * MS, 0));
	assert_true(widens(900 * MS, 90 * MS, 0));
	begin_at(99);
	assert_false(widens(20 * MS, 9 * MS, 0)); /* too little to matter, ... */
	assert_true(widens(20 * MS, 9 * MS, 0));  /* ... but not twice */
	begin_at(99);
	assert_false(widens(900 * MS, 0, 0));
	assert_true(widens(90 * MS, 10 * MS, 0)); /* since the last look */
}

/* As of redis: 10,000 switches a second of threads that use 400 ms. */
static void short_turns(void **state)
{
	(void)state;
	begin_at(499);
	assert_false(widens(400 * MS, 0, 900));
	assert_true(widens(400 * MS, 0, 10000));
	begin_at(4999);
	assert_false(widens(400 * MS, 0, 10000)); /* samples of all that runs would take more */
	begin_at(99);
	assert_false(widens(1900 * MS, 0, 4000)); /* less than a hundredth of the CPU time */
}

/* Of threads that use little each, chance would leave many without a sample; and at their ends some time is lost, unless switches are recorded without a pause. */
static void many_threads_that_use_little(void **state)
{
	static const struct {
		struct sf_switches switches;
		uint64_t n_paused, most;
	} cases[] = { { { true, 1 }, 0, 400 }, { { true, 1 }, 1, 40 }, { { false, 0 }, 0, 40 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin_at(1000);
		perf.base.watch.switches = cases[i].switches;
		perf.sleeps.n_paused = cases[i].n_paused;
		counts.n_ran = cases[i].most + 1;
		assert_false(widens(400 * MS, 0, 10000));
		counts.n_ran = cases[i].most;
		assert_true(widens(400 * MS, 0, 10000));
	}
}

/* After 64 periods a thread without a sample uses little. */
static void threads_without_a_sample(void **state)
{
	(void)state;
	begin_at(199);
	counts.unsampled_ns = 40 * MS;
	assert_false(widens(401 * MS, 0, 0));
	counts.unsampled_ns = 90 * MS;
	assert_true(widens(401 * MS, 0, 0));
	begin_at(199);
	counts.unsampled_ns = 9 * MS; /* too little to matter */
	assert_false(widens(9 * MS, 0, 0));
	begin_at(40);
	counts.unsampled_ns = 400 * MS;
	assert_false(widens(401 * MS, 0, 0)); /* as yet */
	assert_true(widens(401 * MS, 0, 0));
}

/* What they have used is their first samples', too. Those with a sample are as before. */
static void an_account_begins_anew(void **state)
{
	struct sf_thread threads[2] = { 0 }, *items[2] = { &threads[0], &threads[1] };

	(void)state;
	begin_at(199);
	for (int i = 0; i < 2; i++) {
		threads[i].watched = true;
		threads[i].run.cpu_ns = 7 * MS;
		threads[i].first_cpu_ns = 4 * MS;
		threads[i].account.cpu_ns = 3 * MS;
		threads[i].ran = i;
	}
	perf.base.watch.threads.items = items;
	perf.base.watch.threads.n = 2;
	counts.unsampled_ns = 400 * MS;
	assert_true(widens(401 * MS, 0, 0));
	assert_int_equal(threads[0].before_ns, 3 * MS);
	assert_true(threads[0].by_samples);
	assert_false(threads[1].by_samples);
	assert_int_equal(threads[1].before_ns, 0);
}

static void nobody_may(void **state)
{
	(void)state;
	begin_at(99);
	is_root = false;
	assert_false(widens(400 * MS, 0, 10000));
	is_root = true; /* there is no second try */
	assert_false(widens(400 * MS, 0, 10000));
	assert_int_equal(perf.period_wanted, 0); /* finer samples would not make switches cheaper */
}

/* Of a user who may not sample all that runs: once, and where there are not as many samples already. */
static void finer_samples(void **state)
{
	(void)state;
	begin_at(199);
	is_root = false;
	assert_false(widens(400 * MS, 0, 10000));
	assert_int_equal(perf.period_wanted, 0);
	assert_false(widens(900 * MS, 90 * MS, 0));
	assert_int_equal(perf.period_wanted, 300000);
	n_looks = 0;
	assert_false(widens(900 * MS, 900 * MS, 0));
	assert_int_equal(n_looks, 0);
	begin_at(199);
	is_root = false;
	counts.unsampled_ns = 90 * MS;
	assert_false(widens(401 * MS, 0, 0));
	assert_int_equal(perf.period_wanted, 300000);
	begin_at(1999);
	is_root = false;
	assert_false(widens(900 * MS, 90 * MS, 0));
	assert_int_equal(perf.period_wanted, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_lives),
		cmocka_unit_test(short_turns),
		cmocka_unit_test(many_threads_that_use_little),
		cmocka_unit_test(threads_without_a_sample),
		cmocka_unit_test(an_account_begins_anew),
		cmocka_unit_test(nobody_may),
		cmocka_unit_test(finer_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

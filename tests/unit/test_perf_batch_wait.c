/* SPDX-License-Identifier: Apache-2.0 */
/* The wait between two batches. The clock, the poll, the sleep, and which thread is displaced, are made up (--wrap). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "perf_thread.h"

#define SIZE 4096u

static uint64_t fills_ns; /* the ring is half full from `fills_ns` on */
static unsigned n_polls, n_sleeps;
static uint64_t jitter_ns;
static struct perf_event_mmap_page page;

uint64_t __wrap_sf_now_ns(void);
void __wrap_sf_sleep_until(uint64_t time_ns);
void __wrap_sf_perf_wait(const int *owners, size_t n, uint64_t until_ns);
void __wrap_sf_relay_rest(struct sf_relay *relay, uint64_t until_ns);
void __wrap_sf_alarm_set(uint64_t time_ns);
uint64_t __wrap_sf_outside_jitter(struct sf_capture *capture, uint64_t period_ns);
bool __wrap_sf_ptrace_aim(struct sf_capture *capture, sf_ptrace_need_fn *need, uint64_t until_ns);
struct sf_thread *__wrap_sf_ptrace_displaced(struct sf_capture *capture, sf_ptrace_need_fn *need);

bool __wrap_sf_ptrace_aim(struct sf_capture *capture, sf_ptrace_need_fn *need, uint64_t until_ns)
{
	assert_true(until_ns > now_ns);
	return need(capture, &thread) > SF_PTRACE_NEEDS_NONE;
}

struct sf_thread *__wrap_sf_ptrace_displaced(struct sf_capture *capture, sf_ptrace_need_fn *need)
{
	return need(capture, &thread) ? &thread : NULL;
}

void __wrap_sf_ptrace_sample_displaced(struct sf_capture *capture, struct sf_thread *displaced, uint64_t time_ns)
{
	(void)capture, (void)time_ns;
	assert_ptr_equal(displaced, &thread);
	n_displaced++;
	displaced->account.cpu_ns = 0;
}

uint64_t __wrap_sf_now_ns(void)
{
	return now_ns;
}

static void pass_until(uint64_t time_ns)
{
	if (time_ns > now_ns)
		now_ns = time_ns;
	if (now_ns >= fills_ns)
		page.data_head = page.data_tail + SIZE / 2;
}

void __wrap_sf_sleep_until(uint64_t time_ns)
{
	n_sleeps++;
	pass_until(time_ns);
}

void __wrap_sf_perf_wait(const int *owners, size_t n, uint64_t until_ns)
{
	assert_int_equal(n, 1);
	assert_int_equal(owners[0], 77);
	n_polls++;
	pass_until(until_ns < fills_ns ? until_ns : fills_ns);
}

void __wrap_sf_relay_rest(struct sf_relay *relay, uint64_t until_ns)
{
	(void)relay, (void)until_ns;
}

void __wrap_sf_alarm_set(uint64_t time_ns)
{
	assert_int_equal(time_ns, 0);
}

uint64_t __wrap_sf_outside_jitter(struct sf_capture *capture, uint64_t period_ns)
{
	(void)capture;
	return period_ns + jitter_ns;
}

static int begin(void **state)
{
	(void)state;
	fills_ns = UINT64_MAX;
	n_polls = n_sleeps = 0;
	jitter_ns = 0;
	page = (struct perf_event_mmap_page){ .data_tail = 5 };
	page.data_head = page.data_tail + SIZE / 2 - 1;
	perf = (struct sf_perf){ .last_wait.began_ns = 1000 * MS };
	perf.sleeps.switches.n_cpus = 1;
	perf.sleeps.switches.owners[0] = 77;
	perf.sleeps.switches.rings[0] = (struct sf_perf_ring){ .page = &page, .size = SIZE };
	if (watch_thread(&(struct sf_thread){ 0 }) < 0)
		return -1;
	now_ns = 1000 * MS;
	return 0;
}

/* A batch has begun 10 ms after the last wait, and n threads have ended. Returns for how long there is none now. */
static uint64_t wait_after(unsigned n, uint64_t end_ns)
{
	const uint64_t start_ns = now_ns + 10 * MS;

	now_ns = start_ns;
	perf.n_ends += n;
	sf_perf_wait_for_batch(&perf, now_ns, end_ns);
	return now_ns - start_ns;
}

/* Up to one end in 2 ms the kernel says when a ring is half full. Beyond that nobody polls, whom each end would wake. */
static void test_ends_wake_nobody(void **state)
{
	(void)state;
	assert_int_equal(wait_after(5, UINT64_MAX), 20 * MS);
	assert_int_equal(n_polls, 1);
	assert_int_equal(n_sleeps, 0);
	perf.last_wait.began_ns = now_ns;
	assert_int_equal(wait_after(6, UINT64_MAX), 20 * MS);
	assert_int_equal(n_polls, 1);
	assert_int_equal(n_sleeps, 10);
	perf.last_wait.began_ns = now_ns;
	assert_int_equal(wait_after(0, UINT64_MAX), 20 * MS); /* the ends before count no more */
	assert_int_equal(n_polls, 2);
}

static void test_a_ring_that_is_half_full(void **state)
{
	(void)state;
	fills_ns = now_ns + 10 * MS + 5 * MS;
	assert_int_equal(wait_after(0, UINT64_MAX), 5 * MS);
	tear_down(NULL);
	begin(NULL);
	fills_ns = now_ns + 10 * MS + 5 * MS;
	assert_int_equal(wait_after(50, UINT64_MAX), 6 * MS); /* found by the next look */
	assert_int_equal(n_polls, 0);
	assert_int_equal(wait_after(0, UINT64_MAX), 1 * MS); /* one that fills at once is no reason to do nothing else */
}

static void test_its_length(void **state)
{
	(void)state;
	assert_int_equal(wait_after(0, now_ns + 13 * MS), 3 * MS);
	perf.events.n_cpus = 0;
	perf.base.period_ns = perf.events.period_ns = 4 * MS;
	assert_int_equal(wait_after(0, UINT64_MAX), 40 * MS);
	perf.base.period_ns = perf.events.period_ns = 10 * MS;
	assert_int_equal(wait_after(0, UINT64_MAX), 50 * MS);
	perf.last_wait.began_ns = now_ns;
	assert_int_equal(wait_after(50, UINT64_MAX), 50 * MS);
	perf.base.options.prompt = true;
	assert_int_equal(wait_after(0, UINT64_MAX), 1 * MS);
}

/* In the first second. */
static void test_copies_that_are_too_short_are_soon_known(void **state)
{
	(void)state;
	perf.base.period_ns = perf.events.period_ns = 100 * MS;
	perf.sleeps.on = true;
	perf.sleeps.switches.stack_bytes = 8192;
	assert_int_equal(wait_after(0, UINT64_MAX), 10 * MS);
	perf.base.sampled_ns = 1000 * MS;
	assert_int_equal(wait_after(0, UINT64_MAX), 50 * MS);
	perf.base.sampled_ns = 0;
	perf.sleeps.switches.stack_bytes = SF_PERF_MAX_STACK; /* holes are to be found, too */
	assert_int_equal(wait_after(0, UINT64_MAX), 10 * MS);
}

/* Holds come at the ends of batches. */
static void test_no_program_is_in_step(void **state)
{
	(void)state;
	jitter_ns = 3 * MS;
	assert_int_equal(wait_after(0, UINT64_MAX), 23 * MS);
	perf.sleeps.on = true;
	assert_int_equal(wait_after(0, UINT64_MAX), 13 * MS);
}

/* The signal that says that a thread was displaced ends a poll. */
static void test_a_thread_that_is_sought(void **state)
{
	(void)state;
	perf.kernel_time.n_sought = 1;
	perf.base.period_ns = perf.events.period_ns = MS;
	wait_after(50, UINT64_MAX);
	assert_int_equal(n_polls, 1);
	assert_int_equal(n_displaced, 0);
}

/* Its stack is deeper than the kernel's copies: it has a sample where it was displaced, and none before the next sample is due. */
static void test_a_deep_thread(void **state)
{
	(void)state;
	perf.deep.n_due = 1;
	perf.base.period_ns = perf.events.period_ns = 7 * MS;
	sf_perf_budget_begin(&perf.budget);
	run = (struct sf_task_run){ .cpu_ns = 200 * MS, .switches = 1 };
	thread = (struct sf_thread){ .ran = true, .use.is_some = true, .run.cpu_ns = 200 * MS, .account.cpu_ns = 7 * MS,
				     .batch.n_held = 1 };
	assert_int_equal(wait_after(50, UINT64_MAX), 7 * MS);
	assert_int_equal(n_polls, 1);
	assert_int_equal(n_displaced, 1);
	wait_after(0, UINT64_MAX);
	assert_int_equal(n_displaced, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ends_wake_nobody, begin, tear_down),
		cmocka_unit_test_setup_teardown(test_a_ring_that_is_half_full, begin, tear_down),
		cmocka_unit_test_setup_teardown(test_its_length, begin, tear_down),
		cmocka_unit_test_setup_teardown(test_copies_that_are_too_short_are_soon_known, begin, tear_down),
		cmocka_unit_test_setup_teardown(test_no_program_is_in_step, begin, tear_down),
		cmocka_unit_test_setup_teardown(test_a_thread_that_is_sought, begin, tear_down),
		cmocka_unit_test_setup_teardown(test_a_deep_thread, begin, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

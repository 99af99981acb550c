/* SPDX-License-Identifier: Apache-2.0 */
/* The time that a sample of a thread of this process stands for: CPU time, and the wait for a CPU before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "frozen/signal/handler.h"
#include "frozen/signal/weight.h"

#define MS UINT64_C(1000000)
#define PERIOD_NS (2 * MS)
#define NOBODY INT32_MAX        /* a thread id */

/* The kernel's count of the thread's waits is replaced (--wrap). */
static bool is_counted;
static uint64_t counted_ns;

bool __wrap_sf_raw_wait_ns(int32_t tid, uint64_t *ns_ret);

bool __wrap_sf_raw_wait_ns(int32_t tid, uint64_t *ns_ret)
{
	assert_int_equal(tid, NOBODY);
	*ns_ret = counted_ns;
	return is_counted;
}

/* 30 ms on its clock, of which samples have stood for 10 ms; it has waited 7 ms for a CPU. */
static struct sf_thread_entry an_entry(void)
{
	struct sf_thread_entry entry = { .clock = -1 };

	atomic_store(&entry.tid, NOBODY);
	atomic_store(&entry.accounted_ns, 10 * MS);
	atomic_store(&entry.run_delay_ns, 7 * MS);
	atomic_store(&entry.period_ns, 16 * MS);
	return entry;
}

static int set_up(void **state)
{
	(void)state;
	is_counted = false;
	return 0;
}

static void a_cpu_sample_stands_for_its_wait_too(void **state)
{
	struct sf_thread_entry entry = an_entry();
	struct sf_weight_taken taken = sf_weigh(&entry, 30 * MS, PERIOD_NS);
	(void)state;

	assert_int_equal(taken.cpu_ns, 20 * MS);
	assert_int_equal(taken.wall_ns, 27 * MS);
	assert_int_equal(taken.ticks, 10);           /* of the period that was asked for */
	assert_int_equal(entry.accounted_ns, 30 * MS);
	assert_int_equal(entry.run_delay_ns, 0);
}

/* Each nanosecond once. */
static void a_second_sample_gets_what_came_since(void **state)
{
	struct sf_thread_entry entry = an_entry();
	struct sf_weight_taken taken;
	(void)state;

	sf_weigh(&entry, 30 * MS, PERIOD_NS);
	taken = sf_weigh(&entry, 34 * MS, PERIOD_NS);
	assert_int_equal(taken.cpu_ns, 4 * MS);
	assert_int_equal(taken.wall_ns, 4 * MS);
	assert_int_equal(taken.ticks, 2);
	taken = sf_weigh(&entry, 34 * MS, PERIOD_NS);
	assert_int_equal(taken.cpu_ns, 0);
	assert_int_equal(taken.wall_ns, 0);
	assert_int_equal(taken.ticks, 1);
	taken = sf_weigh(&entry, 33 * MS, PERIOD_NS);            /* read earlier, and late: nothing is taken back */
	assert_int_equal(taken.cpu_ns, 0);
	assert_int_equal(entry.accounted_ns, 34 * MS);
}

static void without_a_common_period_the_clock_s_own_counts(void **state)
{
	struct sf_thread_entry entry = an_entry();
	(void)state;

	assert_int_equal(sf_weigh(&entry, 10 * MS + 48 * MS, 0).ticks, 3);
}

static void a_waiting_sample_leaves_the_cpu_time(void **state)
{
	struct sf_thread_entry entry = an_entry();
	struct sf_weight_taken taken = sf_weigh_waiting(&entry);
	(void)state;

	assert_int_equal(taken.cpu_ns, 0);
	assert_int_equal(taken.wall_ns, 7 * MS);
	assert_int_equal(taken.ticks, 1);
	assert_int_equal(entry.accounted_ns, 10 * MS);
	assert_int_equal(entry.run_delay_ns, 0);
	assert_int_equal(sf_weigh(&entry, 30 * MS, PERIOD_NS).cpu_ns, 20 * MS);
}

#define WOKE_NS (3 * MS) /* before the request, woke the sampler */

/* How the sampler weighs a thread that answered `after_ns` after it was requested. */
static struct sf_slot requested(struct sf_thread_entry *entry, uint64_t after_ns)
{
	struct sf_slot slot = { .tid = NOBODY, .cpu_clock_ns = 30 * MS };

	atomic_store(&entry->requested_ns, 1000 * MS);
	atomic_store(&entry->requester_woke_ns, 1000 * MS - WOKE_NS);
	atomic_store(&entry->requested_run_delay_ns, 40 * MS);
	slot.entered_ns = 1000 * MS + after_ns;
	sf_weigh_requested(&slot, entry, PERIOD_NS);
	assert_true(slot.weighed);
	return slot;
}

/* Where the kernel does not say how long a thread waited, the time until its answer tells. */
static void an_early_answer_is_a_cpu_sample(void **state)
{
	struct sf_thread_entry entry = an_entry();
	struct sf_slot slot = requested(&entry, 200000);
	(void)state;

	assert_int_equal(slot.cpu_ns, 20 * MS);
	assert_int_equal(slot.wall_ns, 27 * MS);
	assert_int_equal(slot.ticks, 10);
}

static void a_late_answer_is_a_waiting_sample(void **state)
{
	struct sf_thread_entry entry = an_entry();
	struct sf_slot slot = requested(&entry, 200001);
	(void)state;

	assert_int_equal(slot.cpu_ns, 0);
	assert_int_equal(slot.wall_ns, 7 * MS);
	assert_int_equal(slot.ticks, 1);
	assert_int_equal(entry.accounted_ns, 10 * MS);
}

/* The thread answers 5 ms after the request. By the kernel's count its wait for a CPU lasted for wait_ns until then. */
static bool is_cpu_sample(uint64_t wait_ns)
{
	struct sf_thread_entry entry = an_entry();
	struct sf_slot slot;

	counted_ns = 40 * MS + wait_ns;
	slot = requested(&entry, 5 * MS);
	assert_int_equal(slot.cpu_ns, slot.ticks == 10 ? 20 * MS : 0);
	assert_int_equal(slot.wall_ns, slot.cpu_ns + 7 * MS);
	return slot.ticks == 10;
}

/* A wait that began before the request counts, unless it began as the sampler woke, in at most 20 us before. */
static void a_counted_wait_since_before_is_a_waiting_sample(void **state)
{
	(void)state;
	is_counted = true;
	assert_true(is_cpu_sample(0));
	assert_true(is_cpu_sample(5 * MS));
	assert_false(is_cpu_sample(5 * MS + 1));
	assert_false(is_cpu_sample(5 * MS + WOKE_NS - 1));
	assert_true(is_cpu_sample(5 * MS + WOKE_NS));
	assert_true(is_cpu_sample(5 * MS + WOKE_NS + 20000));
	assert_false(is_cpu_sample(5 * MS + WOKE_NS + 20001));
}

static enum sf_weight_decision decided(uint64_t after_ns)
{
	struct sf_thread_entry entry = an_entry();

	atomic_store(&entry.requested_ns, 1000 * MS);
	atomic_store(&entry.answered_ns, 1000 * MS + after_ns);
	sf_weight_decide(&entry, NOBODY);
	assert_int_equal(entry.answered_ns, 0);
	return (enum sf_weight_decision)entry.weight_decision;
}

static void the_sampler_decides_by_the_same_rule(void **state)
{
	struct sf_thread_entry entry = an_entry();
	(void)state;

	assert_int_equal(decided(200000), SF_WEIGHT_RAN);
	assert_int_equal(decided(200001), SF_WEIGHT_WAITED);
	sf_weight_decide(&entry, NOBODY);              /* the thread does not wait */
	assert_int_equal(entry.weight_decision, SF_WEIGHT_UNDECIDED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_cpu_sample_stands_for_its_wait_too, set_up),
		cmocka_unit_test_setup(a_second_sample_gets_what_came_since, set_up),
		cmocka_unit_test_setup(without_a_common_period_the_clock_s_own_counts, set_up),
		cmocka_unit_test_setup(a_waiting_sample_leaves_the_cpu_time, set_up),
		cmocka_unit_test_setup(an_early_answer_is_a_cpu_sample, set_up),
		cmocka_unit_test_setup(a_late_answer_is_a_waiting_sample, set_up),
		cmocka_unit_test_setup(a_counted_wait_since_before_is_a_waiting_sample, set_up),
		cmocka_unit_test_setup(the_sampler_decides_by_the_same_rule, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

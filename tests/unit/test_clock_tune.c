/* SPDX-License-Identifier: Apache-2.0 */
/* How often the sampler sets the perf clocks of others: at once where one is to ring less often, else as it costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/clocks/clocks.h"
#include "frozen/signal/handler.h"
#include "frozen/signal/rearm.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define PERIOD_NS MS
#define N_SEATS 4

static struct sf_thread_entry entries[N_SEATS];
static unsigned n_set[N_SEATS];
static uint64_t spared_ns[N_SEATS];
static uint64_t now_ns = 1000 * MS, cpu_ns, cost_ns;
static bool rings; /* between two looks */

void __wrap_sf_rearm(const struct sf_handler_config *config, struct sf_thread_entry *entry,
		     uint64_t period_ns);
uint64_t __wrap_sf_raw_thread_cpu_ns(void);

void __wrap_sf_rearm(const struct sf_handler_config *config, struct sf_thread_entry *entry,
		     uint64_t period_ns)
{
	assert_ptr_equal(config, &sf_handler.config);
	assert_int_equal(period_ns, atomic_load(&entry->period_ns));
	n_set[entry - entries]++;
	cpu_ns += cost_ns;
}

uint64_t __wrap_sf_raw_thread_cpu_ns(void)
{
	return cpu_ns;
}

static int set_up(void **state)
{
	(void)state;
	sf_handler.config.remote_clocks = sf_handler.config.jitter = rings = true;
	for (unsigned i = 0; i < N_SEATS; i++) {
		entries[i] = (struct sf_thread_entry){ 0 };
		atomic_store(&entries[i].flags, SF_ENTRY_PERF);
		atomic_store(&entries[i].clock, 7);
		atomic_store(&entries[i].period_ns, PERIOD_NS);
		atomic_store(&entries[i].set_period_ns, PERIOD_NS);
		n_set[i] = 0;
		spared_ns[i] = 0;
	}
	return 0;
}

/* So many looks, ten a second, at all. */
static void look(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		now_ns += 100 * MS;
		for (unsigned k = 0; k < N_SEATS; k++)
			sf_agent_clock_tune(&entries[k], now_ns, rings, &spared_ns[k]);
	}
}

static void cheap_ones_are_set_at_each_look(void **state)
{
	(void)state;
	cost_ns = 10 * US;
	look(100);
	for (unsigned i = 0; i < N_SEATS; i++)
		assert_int_equal(n_set[i], 100);
}

static void dear_ones_have_their_share(void **state)
{
	(void)state;
	cost_ns = 3 * MS;
	look(3000); /* five minutes */
	for (unsigned i = 0; i < N_SEATS; i++)
		assert_in_range(n_set[i], 99, 101);
}

static void a_longer_period_is_set_at_once(void **state)
{
	(void)state;
	cost_ns = 3 * MS;
	look(1);
	for (unsigned i = 0; i < N_SEATS; i++)
		n_set[i] = 0;
	atomic_store(&entries[1].period_ns, PERIOD_NS / 2);
	atomic_store(&entries[2].period_ns, 2 * PERIOD_NS);
	look(1);
	assert_int_equal(n_set[2], 1);
	assert_int_equal(atomic_load(&entries[2].set_period_ns), 2 * PERIOD_NS);
	assert_int_equal(n_set[0] + n_set[1] + n_set[3], 0);
	look(100);
	assert_int_equal(atomic_load(&entries[1].set_period_ns), PERIOD_NS / 2);
}

/*
 * Setting it would begin its period anew: then it would never ring for a thread that uses less than a period between
 * two looks.
 */
static void one_that_has_not_rung_is_left_alone(void **state)
{
	(void)state;
	rings = false;
	cost_ns = 10 * US;
	look(10);
	for (unsigned i = 0; i < N_SEATS; i++)
		assert_int_equal(n_set[i], 0);
	atomic_store(&entries[2].period_ns, 2 * PERIOD_NS);
	look(10);
	assert_int_equal(n_set[2], 1);
	rings = true;
	look(1);
	assert_int_equal(n_set[0], 1);
}

static void without_jitter_only_that(void **state)
{
	(void)state;
	sf_handler.config.jitter = false;
	cost_ns = 10 * US;
	look(10);
	for (unsigned i = 0; i < N_SEATS; i++)
		assert_int_equal(n_set[i], 0);
	atomic_store(&entries[1].period_ns, 2 * PERIOD_NS);
	look(10);
	assert_int_equal(n_set[1], 1);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup(fn, set_up)
	const struct CMUnitTest tests[] = {
		TEST(cheap_ones_are_set_at_each_look),
		TEST(one_that_has_not_rung_is_left_alone),
		TEST(dear_ones_have_their_share),
		TEST(a_longer_period_is_set_at_once),
		TEST(without_jitter_only_that),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

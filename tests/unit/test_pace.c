/* SPDX-License-Identifier: Apache-2.0 */
/* How often the ptrace engine may hold threads: never for more of the machine than its share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/pace.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

static struct sf_pace pace;
static uint64_t now_ns, cpu_ns, start_ns, start_cpu_ns;

static void begin(unsigned n_cpus)
{
	now_ns = start_ns = 5 * SECOND;
	cpu_ns = start_cpu_ns = 3 * SECOND;
	sf_pace_begin(&pace, n_cpus, now_ns, cpu_ns);
}

/* Ticks of this cost, each wanted a period after the last, for so long. */
static void go_on(uint64_t period_ns, uint64_t cost_ns, uint64_t length_ns)
{
	const uint64_t end_ns = now_ns + length_ns;
	uint64_t next_ns = now_ns;

	while (now_ns < end_ns) {
		now_ns += cost_ns;
		cpu_ns += cost_ns;
		next_ns = next_ns + period_ns > now_ns ? next_ns + period_ns : now_ns;
		next_ns = sf_pace_next(&pace, now_ns, cpu_ns, next_ns);
		assert_true(next_ns >= now_ns);
		now_ns = next_ns;
	}
}

/* Of all CPUs, since the last mark. */
static double share(void)
{
	const double taken = (double)(cpu_ns - start_cpu_ns);
	const double machine = (double)(now_ns - start_ns) * pace.n_cpus;

	start_ns = now_ns;
	start_cpu_ns = cpu_ns;
	return taken / machine;
}

static void cheap_ticks_come_when_they_are_wanted(void **state)
{
	(void)state;
	begin(2);
	go_on(MS, MS / 20, 10 * SECOND);
	assert_int_equal(pace.n_late, 0);
	assert_in_range(pace.n_ticks, 9999, 10001);
}

static void dear_ticks_take_their_share_and_no_more(void **state)
{
	static const unsigned counts[] = { 1, 2, 64 };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		begin(counts[i]);
		go_on(MS, 4 * MS, 10 * SECOND);
		share();
		go_on(MS, 4 * MS, 10 * SECOND);
		assert_float_equal(share(), counts[i] < 64 ? 0.05 : 1. / 64, 0.002);
	}
}

static void a_burst_is_let_through(void **state)
{
	(void)state;
	begin(2);
	go_on(MS, MS / 2, 50 * MS);
	assert_int_equal(pace.n_late, 0);
}

/* An hour of rest is no leave to take the machine for three minutes. */
static void what_is_saved_up_is_bounded(void **state)
{
	(void)state;
	begin(2);
	go_on(100 * MS, 0, 3600 * SECOND);
	share();
	go_on(MS, 4 * MS, 10 * SECOND);
	assert_true(share() < 0.054);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cheap_ticks_come_when_they_are_wanted),
		cmocka_unit_test(dear_ticks_take_their_share_and_no_more),
		cmocka_unit_test(a_burst_is_let_through),
		cmocka_unit_test(what_is_saved_up_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* How often the ptrace engine may hold threads: holding and walking never take more of the machine than their share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/ptrace/overhead_limit.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

static struct sf_overhead_limit limit;
static struct sf_overhead_limit_clocks clocks, mark;

static uint64_t idle_ns;
static double idle_share;   /* of all CPUs, as the next ticks find it */
static unsigned n_looked;   /* threads, at each tick */

static void begin_with(unsigned n_cpus, unsigned percent)
{
	clocks = mark = (struct sf_overhead_limit_clocks){ 5 * SECOND, 3 * SECOND, 11 * SECOND };
	idle_ns = 100 * SECOND;
	idle_share = 0;
	n_looked = 4;
	sf_overhead_limit_begin(&limit, n_cpus, percent, &clocks);
}

static void begin(unsigned n_cpus)
{
	begin_with(n_cpus, 5);
}

static void look(void)
{
	if (limit.looked_ns)
		idle_ns += (uint64_t)((double)(clocks.now_ns - limit.looked_ns) * limit.n_cpus * idle_share);
	sf_overhead_limit_look(&limit, clocks.now_ns, idle_ns);
}

/* Ticks that cost the holding thread so much, and others so much, each wanted a period after the last, for so long. */
static void go_on(uint64_t period_ns, uint64_t cost_ns, uint64_t walk_ns, uint64_t length_ns)
{
	const uint64_t end_ns = clocks.now_ns + length_ns;
	uint64_t next_ns = clocks.now_ns;

	while (clocks.now_ns < end_ns) {
		clocks.now_ns += cost_ns;
		clocks.holding_ns += cost_ns;
		clocks.all_ns += cost_ns + walk_ns;
		next_ns = next_ns + period_ns > clocks.now_ns ? next_ns + period_ns : clocks.now_ns;
		if (clocks.now_ns - limit.looked_ns >= SF_OVERHEAD_LOOK_NS)
			look();
		next_ns = sf_overhead_limit_next(&limit, &clocks, n_looked, next_ns);
		assert_true(next_ns >= clocks.now_ns);
		clocks.now_ns = next_ns;
	}
}

/* Of all CPUs, since the last mark. */
static double share(void)
{
	const double taken = (double)(clocks.all_ns - mark.all_ns);
	const double machine = (double)(clocks.now_ns - mark.now_ns) * limit.n_cpus;

	mark = clocks;
	return taken / machine;
}

static void cheap_ticks_come_when_they_are_wanted(void **state)
{
	(void)state;
	begin(2);
	go_on(MS, MS / 20, 0, 10 * SECOND);
	assert_int_equal(limit.late_ns, 0);
	assert_in_range(limit.n_ticks, 9999, 10001);
}

static void dear_ticks_take_their_share_and_no_more(void **state)
{
	static const unsigned counts[] = { 1, 2, 64 };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		begin(counts[i]);
		go_on(MS, 4 * MS, 0, 10 * SECOND);
		share();
		go_on(MS, 4 * MS, 0, 10 * SECOND);
		assert_float_equal(share(), counts[i] < 64 ? 0.05 : 1. / 64, 0.002);
		/* Of 20 s, with a tick of 4 ms every 80, every 40, and back to back. */
		assert_float_equal((double)limit.late_ns / SECOND, counts[i] == 1 ? 19 : counts[i] == 2 ? 18 : 0, 0.3);
	}
}

static void walking_is_in_the_share(void **state)
{
	(void)state;
	begin(2);
	go_on(MS, 4 * MS, 3 * MS, 10 * SECOND);
	share();
	go_on(MS, 4 * MS, 3 * MS, 10 * SECOND);
	assert_float_equal(share(), 0.05, 0.002);
}

/* A large program's tables are read: ten seconds of another thread. */
static void reading_does_not_stop_it(void **state)
{
	(void)state;
	begin(2);
	clocks.all_ns += 10 * SECOND;
	go_on(10 * MS, MS / 20, 0, 10 * SECOND);
	assert_int_equal(limit.late_ns, 0);
	go_on(MS, MS / 4, 0, 10 * SECOND);
	assert_in_range(limit.n_ticks, 1000 + 2000, 1000 + 2150); /* as if walking cost as much again */
}

/* Half a second in one tick that looked at two threads; in one that looked at a thousand it is what holding costs. */
static void one_dear_tick_does_not_stop_it(void **state)
{
	(void)state;
	begin_with(2, 2);
	n_looked = 2;
	go_on(10 * MS, MS / 20, 0, SECOND);
	mark = clocks;
	go_on(10 * MS, 500 * MS, 0, 10 * MS);
	assert_in_range(clocks.now_ns - mark.now_ns, 500 * MS, 511 * MS);
	mark = clocks;
	go_on(10 * MS, MS / 20, 0, SECOND);
	assert_in_range(limit.n_ticks, 195, 205);
	n_looked = 1000;
	go_on(10 * MS, 500 * MS, 0, 10 * MS);
	assert_true(clocks.now_ns - mark.now_ns > 10 * SECOND);
}

static void a_burst_is_let_through(void **state)
{
	(void)state;
	begin(2);
	go_on(MS, MS / 2, 0, 50 * MS);
	assert_int_equal(limit.late_ns, 0);
}

/* An hour of rest is no leave to take the machine for three minutes. */
static void what_is_saved_up_is_bounded(void **state)
{
	(void)state;
	begin(2);
	go_on(100 * MS, 0, 0, 3600 * SECOND);
	share();
	go_on(MS, 4 * MS, 0, 10 * SECOND);
	assert_true(share() < 0.054);
}

/* The share that it takes while so much of the machine is idle. */
static double share_beside(double idle)
{
	idle_share = idle;
	go_on(MS, 4 * MS, 0, 10 * SECOND);
	share();
	go_on(MS, 4 * MS, 0, 10 * SECOND);
	return share();
}

/* By turns: what counts is how it is now. */
static void a_busy_machine_is_spared(void **state)
{
	(void)state;
	begin_with(4, 0);
	assert_float_equal(share_beside(0), 0.02, 0.001);
	assert_int_equal(limit.late_share, 2);
	assert_float_equal(share_beside(0.5), 0.05, 0.002);
	assert_int_equal(limit.late_share, 5);
	assert_float_equal(share_beside(0.05), 0.02, 0.001);
}

static void what_is_asked_for_holds_whatever_is_idle(void **state)
{
	(void)state;
	begin_with(4, 10);
	assert_float_equal(share_beside(0), 0.1, 0.004);
	assert_float_equal(share_beside(0.9), 0.1, 0.004);
}

/*
 * Threads of which each sleep is to be read at 20 Hz, each for so long, beside ticks that are cheap. What the reads
 * took, of all CPUs.
 */
static double reads_beside_ticks(unsigned n, uint64_t read_ns)
{
	uint64_t due_ns[300] = { 0 }, n_reads = 0;
	const uint64_t start_ns = clocks.now_ns;

	while (clocks.now_ns < start_ns + 20 * SECOND) {
		for (unsigned i = 0; i < n; i++) {
			if (due_ns[i] > clocks.now_ns)
				continue;
			sf_overhead_limit_read(&limit, read_ns);
			due_ns[i] = clocks.now_ns + 50 * MS + sf_overhead_limit_put_off(&limit);
			n_reads++;
		}
		go_on(5 * MS, MS / 20, 0, 5 * MS);
	}
	return 2 * (double)(n_reads * read_ns) / (double)(clocks.now_ns - start_ns) / limit.n_cpus;
}

/* A quarter of the share is for threads that sleep. A few are read as often as they are due. */
static void sleeping_threads_leave_most_to_running_ones(void **state)
{
	(void)state;
	begin(2);
	assert_float_equal(reads_beside_ticks(300, 100000), 0.05 / 4, 0.002); /* a debt of one turn of all is left */
	begin(2);
	assert_float_equal(reads_beside_ticks(3, 100000), 2 * 3 * 20 * 100e-6 / 2, 0.0006);
	assert_int_equal(sf_overhead_limit_put_off(&limit), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cheap_ticks_come_when_they_are_wanted),
		cmocka_unit_test(dear_ticks_take_their_share_and_no_more),
		cmocka_unit_test(walking_is_in_the_share),
		cmocka_unit_test(reading_does_not_stop_it),
		cmocka_unit_test(one_dear_tick_does_not_stop_it),
		cmocka_unit_test(a_burst_is_let_through),
		cmocka_unit_test(what_is_saved_up_is_bounded),
		cmocka_unit_test(a_busy_machine_is_spared),
		cmocka_unit_test(sleeping_threads_leave_most_to_running_ones),
		cmocka_unit_test(what_is_asked_for_holds_whatever_is_idle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When threads are held of whose stacks the kernel's copies are not enough. The kernel's counts and words are replaced
 * (--wrap), and so are both ways of a hold, each of which takes the thread's CPU time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/ptrace/stack_copy.h"
#include "perf_thread.h"

#define PERIOD (5 * MS)

static bool proves_nothing;

static void take_time(const struct sf_thread *held)
{
	assert_ptr_equal(held, &thread);
	if (!proves_nothing)
		thread.account.cpu_ns = 0;
}

void __wrap_sf_ptrace_hold(struct sf_capture *capture, struct sf_thread *held, uint64_t time_ns)
{
	(void)capture, (void)time_ns;
	n_holds++;
	take_time(held);
}

void __wrap_sf_ptrace_sample_displaced(struct sf_capture *capture, struct sf_thread *displaced, uint64_t time_ns)
{
	(void)capture, (void)time_ns;
	n_displaced++;
	take_time(displaced);
}

static int set_up(void **state)
{
	(void)state;
	perf = (struct sf_perf){ .base.period_ns = PERIOD, .events = { .period_ns = PERIOD }, .may_hold = true };
	proves_nothing = false;
	return watch_thread(&(struct sf_thread){ .serial = 1, .watched = true, .ran = true, .task = { .pid = 10, .tid = 10 }, .run.cpu_ns = 900 * MS });
}

/* A batch has a sample of the thread, which has used so much CPU time. */
static void batch(uint64_t ms)
{
	run.cpu_ns += ms * MS;
	run.switches++;
	now_ns += ms * MS;
	sf_perf_deep_want(&perf, &thread);
	sf_perf_deep_hold(&perf, now_ns);
}

/* The thread is caught, and does not stand yet. */
static void note_requested(void)
{
	thread.use.is_some = true;
	sf_perf_deep_want(&perf, &thread);
	sf_perf_deep_catch(&perf, &thread, now_ns);
}

static void displace(void)
{
	if (sf_perf_deep_need(&perf, &thread))
		sf_perf_deep_catch(&perf, &thread, now_ns);
}

/* Where the holding thread comes upon it after a batch, depends on what the thread does. */
static void a_thread_is_held_when_it_is_displaced(void **state)
{
	(void)state;
	thread.use.is_some = true;
	batch(7);
	assert_int_equal(n_holds, 0);
	assert_int_equal(perf.deep.n_due, 1);
	assert_int_equal(sf_perf_deep_need(&perf, &thread), 1 + 7 * MS);
	displace();
	assert_int_equal(n_displaced, 1);
	assert_int_equal(sf_perf_deep_need(&perf, &thread), 0);
	sf_perf_deep_hold(&perf, now_ns);
	assert_int_equal(perf.deep.n_due, 0);
	assert_int_equal(n_holds, 0);
}

static void a_thread_that_is_not_displaced_is_held_late(void **state)
{
	(void)state;
	thread.use.is_some = thread.use.is_much = true;
	batch(199);
	assert_int_equal(n_holds, 0);
	thread.use.is_some = true; /* the measure of the use of CPUs is not for this test */
	batch(1);
	assert_int_equal(n_holds, 1);
	assert_int_equal(perf.deep.n_due, 0);
}

/* That uses little, or whose displacement the kernel does not show. */
static void a_running_thread_is_held(void **state)
{
	thread.use.is_some = perf.base.displacement.is_missing = *state != NULL;
	batch(1);
	displace();
	assert_int_equal(n_holds, 1);
	assert_int_equal(n_displaced, 0);
}

/* Whether the stack is deep where the thread will stand is not known yet: until then its time is kept back, and no other hold is requested. */
static void a_hold_that_is_requested_may_find_no_deep_stack(void **state)
{
	(void)state;
	proves_nothing = thread.hold.is_requested = true;
	note_requested();
	assert_int_equal(thread.batch.n_held, 1);
	assert_int_equal(sf_perf_deep_need(&perf, &thread), 0);
	thread.hold.is_requested = false;
	assert_int_not_equal(sf_perf_deep_need(&perf, &thread), 0);
}

/* Its process may go on without it, as that of a first thread does: no batch is short for its sake, and no scan comes sooner. */
static void a_thread_that_has_exited_is_left_alone(void **state)
{
	(void)state;
	thread.exited_ns = 1;
	perf.base.watch.next_scan_ns = 500 * MS;
	batch(1);
	assert_int_equal(n_holds, 0);
	assert_int_equal(perf.deep.n_due, 0);
	perf.base.blocked_period_ns = 50 * MS;
	sf_perf_look_at_due(&perf, now_ns);
	assert_int_equal(perf.base.watch.next_scan_ns, 500 * MS);
}

/* A hold would break off the system call. The thread is held later, also if it has no other sample until then. */
static void a_sleeping_thread_is_not_held(void **state)
{
	(void)state;
	sleeps = true;
	batch(1);
	assert_int_equal(n_holds, 0);
	assert_int_equal(perf.deep.n_due, 1);
	sleeps = false;
	run.switches++;
	sf_perf_deep_hold(&perf, now_ns);
	assert_int_equal(n_holds, 1);
}

/* Batches are short while a thread is due. One that sleeps on is due again at its next sample. */
static void a_thread_that_sleeps_on_is_not_due(void **state)
{
	unsigned n = 0;

	(void)state;
	sleeps = true;
	for (batch(1); perf.deep.n_due && n < 100; n++)
		sf_perf_deep_hold(&perf, now_ns);
	assert_in_range(n, 2, 99);
	sleeps = false;
	batch(1);
	assert_int_equal(n_holds, 1);
}

/* The hold was no evidence of where the thread spends CPU time: the time waits for another one. */
static void a_hold_that_proves_nothing(void **state)
{
	(void)state;
	proves_nothing = true;
	batch(1);
	assert_int_equal(n_holds, 1);
	assert_int_equal(perf.deep.n_due, 1);
	proves_nothing = false;
	sf_perf_deep_hold(&perf, now_ns);
	sf_perf_deep_hold(&perf, now_ns);
	assert_int_equal(n_holds, 2);
}

/* What a hold of 20 us weighs that finds the thread with so many bytes of stack below its first frame; 0: it gives no sample. */
static uint64_t weigh_at(uint64_t depth, uint64_t *hold_ns)
{
	struct sf_stack_copy copy = { 0 };
	struct sf_weight weight;

	atomic_store(&thread.needs.root_sp, 2 * MS);
	copy.regs.r[sf_arch_host()->sp] = 2 * MS - depth;
	*hold_ns = 20;
	return sf_ptrace_weigh_awake(&perf.base, &thread, false, true, hold_ns, &copy, &weight) ? weight.cpu_ns : 0;
}

/* Moments at which its stack is not deep have samples of their own. If a hold stood for them, too, they would weigh too much. */
/* The thread has used so much since its last sample; part of it is that of samples for which a hold is to stand. */
static void account(uint64_t cpu_ns, uint32_t n_held, uint64_t held_ns)
{
	thread.account.cpu_ns = cpu_ns;
	thread.account.awake_ns = (int64_t)cpu_ns;
	thread.batch.n_held = n_held;
	thread.batch.held_ns = held_ns;
}

static void a_hold_beside_the_deep_part_gives_no_sample(void **state)
{
	uint64_t hold_ns;

	(void)state;
	perf.base.period_ns = PERIOD;
	thread.use.is_much = true;
	account(7 * MS, 1, 5 * MS);
	assert_int_equal(weigh_at(1000, &hold_ns), 0);
	assert_int_equal(thread.account.cpu_ns, 7 * MS);
	assert_int_equal(thread.batch.n_held, 1);
	assert_int_equal(weigh_at(100000, &hold_ns), 5 * MS);
	assert_int_equal(thread.account.cpu_ns, 2 * MS); /* since the batch: of the next samples */
	assert_int_equal(hold_ns, 40); /* of both */
	assert_int_equal(thread.batch.n_held, 0);
	account(7 * MS, 1, 7 * MS);
	atomic_store(&thread.needs.leads.at[0], 0x1000); /* it uses another stack, too: nobody knows where it stands */
	assert_int_equal(weigh_at(1000, &hold_ns), 7 * MS);
	atomic_store(&thread.needs.leads.at[0], 0);
	account(200 * MS, 1, 200 * MS); /* it was never found in the deep part for long */
	assert_int_equal(weigh_at(1000, &hold_ns), 200 * MS);
	assert_int_equal(hold_ns, 20);
	account(7 * MS, 0, 0);          /* and now none is due, as by an engine that samples by holds only */
	assert_int_equal(weigh_at(1000, &hold_ns), 7 * MS);
}

/* The answer for a sample whose copy has `size` of the 65,528 bytes that it may have, so far below the first frame. */
static bool is_held_at(uint64_t depth, uint32_t size)
{
	uint64_t values[64] = { 0 };
	struct sf_perf_record record = { .pid = 10, .regs = values, .stack_size = size, .stack_room = SF_PERF_MAX_STACK };
	struct sf_regs regs;
	const uint64_t root_sp = UINT64_C(1) << 40;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		values[i] = root_sp - depth;
	sf_perf_load_regs(values, &regs);
	assert_int_equal(regs.r[sf_arch_host()->sp], root_sp - depth);
	atomic_store(&thread.needs.root_sp, root_sp);
	return sf_perf_deep_is(&perf, &thread, &record);
}

/* Before any walk has found that out. */
static void a_copy_that_is_certainly_cut_is_a_hold(void **state)
{
	const uint32_t full = SF_PERF_MAX_STACK;

	(void)state;
	perf.events.stack_bytes = full;
	assert_false(is_held_at(100000, full)); /* the first frame may be another one's */
	atomic_store(&thread.needs.n_same_root, SF_ROOT_SETTLED);
	assert_true(is_held_at(100000, full));
	assert_false(is_held_at(1000, full));
	assert_false(is_held_at(100000, full - 8));          /* the stack ends there */
	assert_false(is_held_at(UINT64_C(9) << 20, full));   /* it is another stack */
	atomic_store(&thread.needs.n_same_root, SF_ROOT_SETTLED - 1);
	assert_false(is_held_at(100000, full));
	atomic_store(&thread.needs.n_same_root, SF_ROOT_SETTLED);
	perf.events.stack_bytes = full / 2;                  /* there are longer ones */
	assert_false(is_held_at(100000, full));
	perf.events.stack_bytes = full;
	perf.may_hold = false;
	assert_false(is_held_at(100000, full));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_thread_is_held_when_it_is_displaced),
		TEST(a_thread_that_is_not_displaced_is_held_late),
		TEST(a_running_thread_is_held),
		cmocka_unit_test_prestate_setup_teardown(a_running_thread_is_held, set_up, tear_down, &perf),
		TEST(a_hold_that_is_requested_may_find_no_deep_stack),
		TEST(a_thread_that_has_exited_is_left_alone),
		TEST(a_sleeping_thread_is_not_held),
		TEST(a_thread_that_sleeps_on_is_not_due),
		TEST(a_hold_that_proves_nothing),
		TEST(a_hold_beside_the_deep_part_gives_no_sample),
		TEST(a_copy_that_is_certainly_cut_is_a_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

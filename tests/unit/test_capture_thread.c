/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accounts of a thread that is watched from outside: every nanosecond of its life and of its CPU time is in one
 * sample, once. The kernel's counts and words are replaced (--wrap), and so is the clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "capture/ptrace/stack_copy.h"
#include "capture/ptrace/thread.h"
#include "frozen/signal/weight.h"
#include "frozen/random.h"

#define MS UINT64_C(1000000)
#define PERIOD (10 * MS)

static struct sf_task_run run;
static struct sf_task_look look;
static bool is_gone, is_unseen;
static uint64_t now_ns;
static unsigned n_looks, n_closed;

bool __wrap_sf_task_open(int32_t pid, int32_t tid, struct sf_task *ret);
void __wrap_sf_task_close(struct sf_task *task);
bool __wrap_sf_task_name(int32_t pid, int32_t tid, char ret[SF_TASK_NAME]);
bool __wrap_sf_task_run(const struct sf_task *task, struct sf_task_run *ret);
bool __wrap_sf_task_look(const struct sf_task *task, struct sf_task_look *ret);
uint64_t __wrap_sf_now_ns(void);

bool __wrap_sf_task_open(int32_t pid, int32_t tid, struct sf_task *ret)
{
	*ret = SF_TASK_CLOSED(pid, tid);
	return true;
}

void __wrap_sf_task_close(struct sf_task *task)
{
	(void)task;
	n_closed++;
}

bool __wrap_sf_task_name(int32_t pid, int32_t tid, char ret[SF_TASK_NAME])
{
	(void)pid, (void)tid;
	strcpy(ret, "worker");
	return true;
}

bool __wrap_sf_task_run(const struct sf_task *task, struct sf_task_run *ret)
{
	(void)task;
	*ret = run;
	return !is_gone;
}

bool __wrap_sf_task_look(const struct sf_task *task, struct sf_task_look *ret)
{
	(void)task;
	n_looks++;
	*ret = look;
	return !is_unseen;
}

uint64_t __wrap_sf_now_ns(void)
{
	return now_ns;
}

static struct sf_thread *thread;

/* Came into sight at 1 s with 100 ms of CPU time and 20 ms of waits behind it, asleep. */
static int set_up(void **state)
{
	(void)state;
	is_gone = is_unseen = false;
	n_looks = n_closed = 0;
	now_ns = 1000 * MS;
	run = (struct sf_task_run){ .cpu_ns = 100 * MS, .wait_ns = 20 * MS, .switches = 5 };
	look = (struct sf_task_look){ .state = SF_STATE_BLOCKED };
	thread = sf_thread_create(3, 40, 41, 1000 * MS);
	return thread ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	sf_thread_destroy(thread);
	return 0;
}

/* The next look, so much later: the thread has used so much CPU time since, and does this. */
static void look_after(uint64_t ms, uint64_t cpu_ms, enum sf_state state)
{
	now_ns += ms * MS;
	run.cpu_ns += cpu_ms * MS;
	run.switches += cpu_ms != 0;
	look.state = (uint8_t)state;
	assert_true(sf_thread_look(thread, now_ns));
}

static void expect(struct sf_weight weight, uint64_t cpu_ms, uint64_t wall_ms, uint32_t ticks)
{
	assert_int_equal(weight.cpu_ns, cpu_ms * MS);
	assert_int_equal(weight.wall_ns, wall_ms * MS);
	assert_int_equal(weight.ticks, ticks);
}

static void a_new_thread_has_empty_accounts(void **state)
{
	(void)state;
	assert_int_equal(thread->serial, 3);
	assert_int_equal(thread->task.pid, 40);
	assert_int_equal(thread->task.tid, 41);
	assert_string_equal(thread->name, "worker");
	assert_int_equal(thread->cpu, -1);
	assert_int_equal(thread->needs.size, SF_COPY_FIRST);
	assert_int_equal(thread->first_cpu_ns, 100 * MS);
	expect(sf_thread_take_awake(thread, true, PERIOD), 0, 0, 1);
	expect(sf_thread_take_asleep(thread, PERIOD), 0, 0, 1);
}

static void one_that_is_gone_is_none(void **state)
{
	(void)state;
	is_gone = true;
	assert_null(sf_thread_create(1, 40, 41, 0));
	assert_int_equal(n_closed, 1);
	is_gone = false;
	is_unseen = true;
	assert_null(sf_thread_create(1, 40, 41, 0));
	assert_int_equal(n_closed, 2);
}

/* The time between two looks is spent in what was seen at the second one, if it ran in between. */
static void time_goes_to_what_was_seen(void **state)
{
	(void)state;
	look_after(30, 0, SF_STATE_BLOCKED);
	look_after(10, 10, SF_STATE_RUNNING);
	look_after(20, 15, SF_STATE_RUNNING);
	look_after(5, 1, SF_STATE_BLOCKED);
	assert_int_equal(thread->account.asleep_ns, 35 * MS);
	assert_int_equal(thread->account.awake_ns, 30 * MS);
	assert_int_equal(thread->account.cpu_ns, 26 * MS);
	assert_int_equal(thread->looked_ns, now_ns);
	expect(sf_thread_take_asleep(thread, PERIOD), 0, 35, 4);
	expect(sf_thread_take_awake(thread, true, PERIOD), 26, 30, 3);
	expect(sf_thread_take_asleep(thread, PERIOD), 0, 0, 1);
	expect(sf_thread_take_awake(thread, true, PERIOD), 0, 0, 1);
}

/* One that sleeps on is not looked at again, and its sample can be extended. */
static void a_sleep_is_looked_at_once(void **state)
{
	(void)state;
	thread->sampled = true;
	n_looks = 0;
	for (unsigned i = 1; i <= 300; i++) {
		look_after(1, 0, SF_STATE_RUNNING); /* which nobody sees: it has not run */
		assert_int_equal(thread->n_same, i < UINT8_MAX ? i : UINT8_MAX);
	}
	assert_int_equal(n_looks, 0);
	assert_true(thread->sampled);
	assert_int_equal(thread->account.asleep_ns, 300 * MS);
	run.switches++; /* it ran, for less than the kernel counts */
	look_after(1, 0, SF_STATE_BLOCKED);
	assert_int_equal(n_looks, 1);
	assert_int_equal(thread->n_same, 0);
	assert_false(thread->sampled);
	thread->sampled = true;
	run.cpu_ns += MS; /* CPU time alone says so too */
	look_after(1, 0, SF_STATE_BLOCKED);
	assert_int_equal(n_looks, 2);
	assert_false(thread->sampled);
}

static void one_that_runs_is_looked_at_each_time(void **state)
{
	(void)state;
	look_after(1, 1, SF_STATE_RUNNING);
	n_looks = 0;
	look_after(1, 0, SF_STATE_RUNNING);
	look_after(1, 0, SF_STATE_BLOCKED);
	assert_int_equal(n_looks, 2);
}

/*
 * A bursty sleeper at a low rate: it was seen asleep at each look, and used CPU time in between. The CPU time
 * of its sample is taken from the time asleep, so that elapsed time is as long as its life.
 */
static void cpu_time_is_paid_from_the_time_asleep(void **state)
{
	struct sf_weight awake, asleep;
	(void)state;

	for (unsigned i = 0; i < 10; i++)
		look_after(10, 4, SF_STATE_BLOCKED);
	awake = sf_thread_take_awake(thread, true, PERIOD);
	asleep = sf_thread_take_asleep(thread, PERIOD);
	expect(awake, 40, 40, 4);
	expect(asleep, 0, 60, 6);
	assert_int_equal(thread->account.awake_ns, 0);
	assert_int_equal(thread->account.asleep_ns, 0);
}

/* A sample of the sleep leaves what a later sample's CPU time will be paid from. So all samples add up to the thread's life. */
static void a_sleeping_sample_leaves_the_cpu_time(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 10; i++)
		look_after(10, 4, SF_STATE_BLOCKED);
	expect(sf_thread_take_asleep(thread, PERIOD), 0, 60, 6);
	assert_int_equal(thread->account.asleep_ns, 40 * MS);
	expect(sf_thread_take_awake(thread, true, PERIOD), 40, 40, 4);
	assert_int_equal(thread->account.awake_ns, 0);
	assert_int_equal(thread->account.asleep_ns, 0);
	look_after(60, 60, SF_STATE_RUNNING);
	look_after(40, 0, SF_STATE_BLOCKED);
	expect(sf_thread_take_awake(thread, true, PERIOD), 60, 60, 6);
	expect(sf_thread_take_asleep(thread, PERIOD), 0, 40, 4);
	/* 60 and 40, 60 and 40: 200 ms of its life, which was as long. */
	assert_int_equal(now_ns, 1000 * MS + 200 * MS);
}

/* As capture/ptrace/blocked.c does it. */
static void held(void)
{
	thread->hold.sleep = thread->look;
	thread->hold.switches = thread->run.switches;
	thread->hold.cpu_ns = thread->run.cpu_ns;
	thread->hold.is_new = thread->sampled = true;
}

/* Then the thread was put on a CPU so many times until it slept again, here or there. */
static void held_and_back(uint64_t switches, uint64_t sp)
{
	held();
	run.switches += switches;
	look.sp = sp;
	look_after(10, 0, SF_STATE_BLOCKED);
}

/* An interrupted sleep goes on, however often a busy machine takes the CPU away from the thread until it sleeps again. */
static void an_interrupted_sleep_is_one_sleep(void **state)
{
	(void)state;
	look = (struct sf_task_look){ .state = SF_STATE_BLOCKED, .syscall = 7, .placed = true, .sp = 0x1000 };
	run.switches++;
	look_after(10, 0, SF_STATE_BLOCKED);
	held_and_back(2, 0x1000);
	assert_true(sf_thread_was_held(thread) && thread->sampled);
	held_and_back(9, 0x1000);
	assert_true(sf_thread_was_held(thread) && thread->sampled);
	/* From then on, it is another sleep where it ran in between. */
	run.switches += 3;
	look_after(10, 0, SF_STATE_BLOCKED);
	assert_false(sf_thread_was_held(thread) || thread->sampled);
	held_and_back(2, 0x2000);
	assert_false(sf_thread_was_held(thread) || thread->sampled);
	look.sp = 0x1000;
	run.switches += 9;
	look_after(10, 0, SF_STATE_BLOCKED);
	assert_false(sf_thread_was_held(thread));
}

/* A thread that waits for a CPU after a hold, to go back to its sleep, has not left it. One that computes has. */
static void on_its_way_back_it_is_in_its_sleep(void **state)
{
	const struct sf_task_look asleep = { .state = SF_STATE_BLOCKED, .syscall = 7, .placed = true, .sp = 0x1000 };

	(void)state;
	look = asleep;
	run.switches++;
	look_after(10, 0, SF_STATE_BLOCKED);
	held();
	run.switches++;
	run.cpu_ns += 20000;
	look = (struct sf_task_look){ .syscall = SF_SYSCALL_NONE };
	look_after(4, 0, SF_STATE_RUNNING);
	assert_true(thread->sampled && !sf_thread_awake(thread));
	assert_int_equal(thread->look.sp, 0x1000);
	assert_int_equal(thread->account.awake_ns, 0);
	look = asleep;
	run.switches += 5;
	look_after(4, 0, SF_STATE_BLOCKED);
	assert_true(thread->sampled && !thread->hold.is_new);
	held();
	look = (struct sf_task_look){ .syscall = SF_SYSCALL_NONE };
	look_after(4, 1, SF_STATE_RUNNING);
	assert_true(!thread->sampled && sf_thread_awake(thread));
}

/* Its counts were read, after the hold, when it slept elsewhere already: no count says that it ran since. */
static void a_sleep_after_a_hold_is_another_one(void **state)
{
	(void)state;
	look = (struct sf_task_look){ .state = SF_STATE_BLOCKED, .syscall = 7, .placed = true, .sp = 0x1000 };
	run.switches++;
	look_after(10, 0, SF_STATE_BLOCKED);
	held();
	run.switches += 4;
	look.sp = 0x2000;
	sf_thread_settle(thread, now_ns, true, true);
	look_after(10, 0, SF_STATE_BLOCKED);
	assert_false(thread->sampled);
	assert_int_equal(thread->look.sp, 0x2000);
}

/* Only as much is borrowed as there is. */
static void a_debt_is_no_sleep(void **state)
{
	(void)state;
	look_after(3, 10, SF_STATE_BLOCKED);
	expect(sf_thread_take_awake(thread, true, PERIOD), 10, 10, 1);
	assert_int_equal(thread->account.asleep_ns, 0);
	assert_int_equal(thread->account.awake_ns, -7 * (int64_t)MS);
	thread->account.asleep_ns = -(int64_t)MS; /* below zero it is nothing to give, and is kept */
	expect(sf_thread_take_asleep(thread, PERIOD), 0, 0, 1);
	assert_int_equal(thread->account.asleep_ns, -(int64_t)MS);
	thread->account.cpu_ns = MS;
	sf_thread_take_awake(thread, true, PERIOD);
	assert_int_equal(thread->account.asleep_ns, -(int64_t)MS);
}

/*
 * A sample of a thread without a CPU takes the time awake that was not on a CPU. It leaves the CPU time, and as much of
 * the time awake. So the elapsed times of all samples add up to the thread's life, however much CPU time a later sample
 * stands for.
 */
static void a_waiting_sample_leaves_the_cpu_time(void **state)
{
	struct sf_weight weight;
	(void)state;

	look_after(30, 5, SF_STATE_RUNNING);
	expect(sf_thread_take_awake(thread, false, PERIOD), 0, 25, 3);
	assert_int_equal(thread->account.cpu_ns, 5 * MS);
	assert_int_equal(thread->account.awake_ns, 5 * MS);
	look_after(10, 5, SF_STATE_RUNNING);
	expect(sf_thread_take_awake(thread, false, PERIOD), 0, 5, 1);
	look_after(20, 20, SF_STATE_RUNNING);
	weight = sf_thread_take_awake(thread, true, PERIOD);
	expect(weight, 30, 30, 2);
	assert_true(weight.since_last);
	assert_int_equal(thread->account.awake_ns, 0);
}

/* The remainder of rounding goes to the next sample of the same kind, each kind by itself. */
static void ticks_add_up(void **state)
{
	uint32_t awake = 0, asleep = 0;
	(void)state;

	for (unsigned i = 0; i < 20; i++) {
		look_after(14, 14, SF_STATE_RUNNING);
		awake += sf_thread_take_awake(thread, true, PERIOD).ticks;
		look_after(16, 1, SF_STATE_BLOCKED);
		thread->account.cpu_ns = 0;
		asleep += sf_thread_take_asleep(thread, PERIOD).ticks;
	}
	assert_int_equal(awake, 28);
	assert_int_equal(asleep, 32);
}

static void expect_counted(uint64_t ms)
{
	assert_int_equal(thread->account.cpu_ns, ms * MS);
	assert_int_equal(thread->run.cpu_ns - thread->first_cpu_ns, ms * MS);
	assert_true(thread->run.cpu_ns - thread->kernel_time.counted_ns <= ms * MS);
	assert_true(thread->run.cpu_ns - thread->use.cpu_ns <= ms * MS);
}

/* Another thread has executed a program and has this one's id since: its count is its own, and nothing is negative. */
static void a_count_that_falls_is_another_thread_s(void **state)
{
	(void)state;
	look_after(30, 30, SF_STATE_RUNNING);
	run.cpu_ns = 2 * MS;
	look_after(10, 0, SF_STATE_RUNNING);
	expect_counted(30);
	look_after(10, 4, SF_STATE_RUNNING);
	expect_counted(34);
	run.cpu_ns += 5 * MS;
	run.switches = 2;
	look_after(10, 0, SF_STATE_RUNNING);
	expect_counted(34);
}

/* The other one has used more: no thread uses more CPU time than the time that passes. What it used is in its own account. */
static void a_count_that_grows_too_much_is_another_thread_s(void **state)
{
	bool ran;

	(void)state;
	look_after(30, 5, SF_STATE_RUNNING);
	run.wait_ns += 70 * MS;
	look_after(10, 600, SF_STATE_RUNNING);
	expect_counted(5);
	look_after(10, 4, SF_STATE_RUNNING);
	expect_counted(9);
	run.cpu_ns += 600 * MS;
	run.wait_ns += 70 * MS;
	run.switches++;
	now_ns += 10 * MS;
	assert_true(sf_thread_measure(thread, now_ns, &ran) && ran);
	expect_counted(9);
	assert_int_equal(thread->account.awake_ns, 50 * MS);
	assert_int_equal(thread->account.asleep_ns, 10 * MS);
}

/*
 * A CPU without the kernel's ticks, or one whose host does not run it, brings the count of a thread up to date seldom: then it
 * grows by all that the thread has used since it last changed.
 */
static void a_late_count_is_the_thread_s_own(void **state)
{
	bool ran;

	(void)state;
	look_after(10, 4, SF_STATE_RUNNING);
	for (int i = 0; i < 20; i++)
		look_after(10, 0, SF_STATE_RUNNING);
	run.cpu_ns += 200 * MS;
	look_after(10, 0, SF_STATE_RUNNING);
	expect_counted(204);
	for (int i = 0; i < 20; i++) {
		now_ns += 10 * MS;
		assert_true(sf_thread_measure(thread, now_ns, &ran) && !ran);
	}
	run.cpu_ns += 200 * MS;
	assert_true(sf_thread_measure(thread, now_ns, &ran) && ran);
	expect_counted(404);
}

/* That of a thread that sleeps is not late: what it grows by afterwards is used afterwards. */
static void the_count_of_one_that_sleeps_is_not_late(void **state)
{
	bool ran;

	(void)state;
	look_after(10, 4, SF_STATE_BLOCKED);
	for (int i = 0; i < 20; i++)
		look_after(10, 0, SF_STATE_BLOCKED);
	look_after(10, 100, SF_STATE_BLOCKED);
	expect_counted(4);
	for (int i = 0; i < 20; i++) {
		now_ns += 10 * MS;
		assert_true(sf_thread_measure(thread, now_ns, &ran) && !ran);
	}
	look_after(10, 100, SF_STATE_BLOCKED);
	expect_counted(4);
}

static void the_end_is_seen(void **state)
{
	(void)state;
	is_gone = true;
	assert_false(sf_thread_look(thread, now_ns + MS));
	is_gone = false;
	is_unseen = true;
	run.switches++;
	assert_false(sf_thread_look(thread, now_ns + MS));
}

/*
 * Held at a tick at 2 s, looked at so long after it (before it: below zero), stood 1 ms after the tick, after a wait of so
 * many nanoseconds. Whether it was on a CPU at the tick.
 */
static bool settled(int64_t looked_ns, uint64_t waited_ns)
{
	thread->hold.tick_ns = 2000 * MS;
	thread->looked_ns = thread->hold.tick_ns + (uint64_t)looked_ns;
	run.wait_ns += waited_ns;
	return sf_thread_settle(thread, thread->hold.tick_ns + MS, false, false);
}

/* Looked at and asked for at 2 s, it stands there so much later, after a wait of so many nanoseconds. */
static bool stands(bool in_wait, uint64_t later_ns, uint64_t waited_ns)
{
	thread->hold.tick_ns = thread->looked_ns = thread->hold.requested_ns = 2000 * MS;
	run.wait_ns += waited_ns;
	return sf_thread_settle(thread, thread->hold.requested_ns + later_ns, in_wait, in_wait);
}

/* It was in the call already, or it came there since: it woke up in it, gave its CPU away in it, or ran until there. */
static void in_a_wait_only_a_prompt_stop_counts(void **state)
{
	(void)state;
	assert_true(stands(true, 5000, 0));
	assert_false(stands(true, 5000, 1));
	assert_true(stands(false, 5000, 1));
	assert_true(stands(true, SF_PROMPT_NS, 0));
	assert_false(stands(true, SF_PROMPT_NS + 1, 0));
	assert_true(stands(false, SF_PROMPT_NS + 1, 0));
}

/* Wherever it stands, or in a call that does more than wait, after whatever wait. */
static void a_displaced_thread_is_where_it_ran(void **state)
{
	(void)state;
	thread->hold.displaced = SF_DISPLACED_ANYWHERE;
	assert_true(stands(true, MS, 1));
	thread->hold.displaced = SF_DISPLACED_IN_CALL;
	assert_false(stands(true, MS, 1));
	thread->hold.tick_ns = thread->looked_ns = 2000 * MS;
	run.wait_ns += MS / 2;
	assert_true(sf_thread_settle(thread, 2001 * MS, true, false));
	thread->hold.displaced = SF_DISPLACED_NOWHERE;
	assert_false(stands(true, MS, 1));
}

/* The short look counts no CPU time, and leaves it to the next look; only a thread that slept at both looks needs no more. */
static void a_napper_is_looked_at_shortly(void **state)
{
	(void)state;
	look_after(10, 1, SF_STATE_BLOCKED);
	run.cpu_ns += MS;
	run.switches++;
	assert_true(sf_thread_sleeps_again(thread, now_ns += 10 * MS));
	assert_int_equal(thread->account.asleep_ns, 20 * MS);
	assert_int_equal(thread->account.cpu_ns, MS);
	look.state = SF_STATE_RUNNING;
	assert_false(sf_thread_sleeps_again(thread, now_ns += 10 * MS));
	assert_int_equal(thread->account.asleep_ns, 20 * MS);
	look_after(0, 1, SF_STATE_RUNNING);
	assert_int_equal(thread->account.cpu_ns, 3 * MS);
	look.state = SF_STATE_BLOCKED;
	assert_false(sf_thread_sleeps_again(thread, now_ns));
	look_after(10, 1, SF_STATE_BLOCKED);
	look_after(10, 0, SF_STATE_BLOCKED); /* it sleeps on: what stands for it is cheaper to tell by its counts */
	assert_false(sf_thread_sleeps_again(thread, now_ns));
	is_unseen = true;
	assert_false(sf_thread_sleeps_again(thread, now_ns));
}

static void a_wait_since_before_the_tick_is_no_cpu(void **state)
{
	(void)state;
	assert_true(settled(0, 0));
	assert_true(settled(0, 5));                /* it woke, or gave its CPU away, since */
	assert_true(settled(0, MS));               /* since the tick: we came to its CPU */
	assert_true(settled(0, MS + 20000));       /* about then */
	assert_false(settled(0, MS + 20001));
	assert_false(settled(0, 100 * MS));
}

/* A sleep that began after the thread was looked at is our making, too; one that was under way then is not. */
static void a_wait_since_before_the_look_is_no_cpu(void **state)
{
	(void)state;
	assert_true(settled(-50000, MS + 50000));
	assert_false(settled(-50000, MS + 50001));
	assert_true(settled(500000, 500000));
	assert_false(settled(500000, 500001));
	assert_true(settled(500000, 980000));      /* about the tick */
	assert_false(settled(500000, 979999));
	assert_true(settled(500000, MS + 20000));
	assert_false(settled(500000, MS + 20001));
}

/* Its counts are read again, so that its sample has all CPU time up to where it stands. */
static void settling_counts(void **state)
{
	(void)state;
	run.cpu_ns += 8 * MS;
	settled(0, 0);
	assert_int_equal(thread->account.cpu_ns, 8 * MS);
	assert_int_equal(thread->run.cpu_ns, 108 * MS);
	is_gone = true;
	run.cpu_ns += 8 * MS;
	assert_true(settled(0, 100 * MS));
	assert_int_equal(thread->account.cpu_ns, 8 * MS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* A batch, so much later, of a thread that has run and waited for a CPU for so long. */
static void measure_after(uint64_t ms, uint64_t cpu_ms, uint64_t wait_ms)
{
	bool ran;

	now_ns += ms * MS;
	run.cpu_ns += cpu_ms * MS;
	run.wait_ns += wait_ms * MS;
	run.switches += cpu_ms != 0;
	assert_true(sf_thread_measure(thread, now_ns, &ran));
	assert_int_equal(ran, cpu_ms != 0);
}

/*
 * A hold that is requested so long after a look, released `ms` after the request, and stopped the thread for `stopped_ms`
 * of that at most. Since the look the thread has run and waited for a CPU for so long.
 */
static void hold_after(uint64_t later_ms, uint64_t ms, uint64_t cpu_ms, uint64_t wait_ms, uint64_t stopped_ms)
{
	const struct sf_task_run before = thread->run;

	now_ns += (later_ms + ms) * MS;
	run.cpu_ns += cpu_ms * MS;
	run.wait_ns += wait_ms * MS;
	stands(false, 0, 0);
	thread->hold.requested_ns = now_ns - ms * MS;
	sf_thread_add_hold(thread, &before, stopped_ms * MS, now_ns);
}

static void expect_account(uint64_t awake_ms, uint64_t asleep_ms, uint64_t cpu_ms)
{
	assert_int_equal(thread->account.awake_ns, awake_ms * MS);
	assert_int_equal(thread->account.asleep_ns, asleep_ms * MS);
	assert_int_equal(thread->account.cpu_ns, cpu_ms * MS);
}

/* A sleep of 10 s has its samples, and the kernel counts it as a wait for a CPU at its end. */
static void a_sleep_is_no_wait_for_a_cpu(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		measure_after(100, 0, 0);
		sf_thread_take_asleep(thread, PERIOD);
	}
	measure_after(100, 1, 10050);
	assert_int_equal(thread->account.awake_ns, SF_LONGEST_WAIT_NS);
	assert_int_equal(thread->account.asleep_ns, 100 * (int64_t)MS - SF_LONGEST_WAIT_NS);
}

/* A wait that was under way at the last looks, which have found it asleep before. */
static void a_wait_since_a_sleep_is_whole(void **state)
{
	(void)state;
	measure_after(100, 0, 0);
	measure_after(100, 0, 0);
	measure_after(50, 10, 190);
	assert_int_equal(thread->account.awake_ns, 200 * MS);
	assert_int_equal(thread->account.asleep_ns, 50 * MS);
}

/* The next batch's time contains the hold. */
static void a_hold_is_time_awake(void **state)
{
	(void)state;
	measure_after(100, 30, 20);
	hold_after(0, 25, 1, 20, 4);
	measure_after(25, 0, 0);
	expect_account(75, 75, 31);
}

/* The thread ran for 15 ms of 20, and a request took that long. It was stopped from then on. */
static void a_hold_is_awake_beside_what_ran_before(void **state)
{
	(void)state;
	measure_after(100, 30, 20);
	hold_after(20, 21, 14, 1, 21);
	measure_after(10, 0, 0);
	expect_account(86, 65, 44);
}

/* How long it was stopped is an upper bound: all of the time since the look, of which it ran for 15 ms until it stood. */
static void a_hold_is_not_longer_than_since_the_look(void **state)
{
	(void)state;
	measure_after(100, 30, 20);
	hold_after(5, 20, 15, 0, 20);
	measure_after(10, 0, 0);
	expect_account(75, 60, 45);
	hold_after(0, 20, 1, 2, 3); /* the counts lack a part of it */
	measure_after(10, 0, 0);
	expect_account(95, 70, 46);
}

/* For how long a thread was awake is measured, and not taken from the states of looks. */
static void measured_time_is_exact(void **state)
{
	(void)state;
	measure_after(100, 30, 20);
	measure_after(50, 0, 0);
	assert_int_equal(thread->account.awake_ns, 50 * MS);
	assert_int_equal(thread->account.asleep_ns, 100 * MS);
	assert_int_equal(thread->account.cpu_ns, 30 * MS);
	assert_int_equal(thread->n_same, 1);
}

/* Each of n samples has its share, and together they have all. */
static void shares_add_up(void **state)
{
	struct sf_weight sum = { 0 };
	(void)state;

	measure_after(100, 61, 10);
	for (uint32_t n = 6; n > 0; n--) {
		const struct sf_weight weight = sf_thread_take_share(thread, n, PERIOD);

		assert_in_range(weight.cpu_ns, 61 * MS / 6 - 6, 61 * MS / 6 + 6);
		sum.cpu_ns += weight.cpu_ns;
		sum.wall_ns += weight.wall_ns;
		sum.ticks += weight.ticks;
	}
	expect(sum, 61, 71, 7);
	expect(sf_thread_take_asleep(thread, PERIOD), 0, 29, 3);
	assert_int_equal(thread->account.cpu_ns, 0);
	assert_int_equal(thread->account.awake_ns, 0);
}

/* As an engine's batch leaves it: `beyond` of the CPU time since the last batch has no sample, and the rest has. */
static void run_beyond(uint64_t cpu_ms, uint64_t beyond_ms)
{
	measure_after(cpu_ms, cpu_ms, 0);
	thread->account.beyond_ns += beyond_ms * MS;
	thread->account.cpu_ns -= beyond_ms * MS;
	sf_thread_take_share(thread, 1, PERIOD);
}

/*
 * A thread with four parts of its CPU time in the kernel, and one in user mode. Each hold in a call takes what there
 * is, but for two periods.
 */
static void calls_take_the_time_beyond(void **state)
{
	struct sf_weight weight;
	(void)state;

	run_beyond(28, 18);
	assert_false(sf_thread_take_kernel_time(thread, true, PERIOD, &weight)); /* the last two periods may be of user mode */
	run_beyond(22, 12);
	assert_true(sf_thread_take_kernel_time(thread, true, PERIOD, &weight));
	expect(weight, 10, 10, 1);
	run_beyond(50, 40);
	assert_true(sf_thread_take_kernel_time(thread, true, PERIOD, &weight));
	expect(weight, 40, 40, 4);
	assert_int_equal(thread->account.beyond_ns, 2 * PERIOD);
	assert_int_equal(thread->account.awake_ns, 2 * PERIOD);
}

/*
 * One hold of ten finds the thread in a call: it stands for the time since the hold before, also where the time beyond
 * comes later.
 */
static void calls_are_owed_time(void **state)
{
	struct sf_weight weight;
	(void)state;

	run_beyond(20, 21);
	assert_false(sf_thread_take_kernel_time(thread, false, PERIOD, &weight));
	run_beyond(20, 4);
	assert_true(sf_thread_take_kernel_time(thread, true, PERIOD, &weight));
	expect(weight, 5, 5, 1); /* 15 of 20 are owed */
	run_beyond(20, 20);
	assert_false(sf_thread_take_kernel_time(thread, false, PERIOD, &weight)); /* it is kept for calls */
	run_beyond(1, 0);
	assert_true(sf_thread_take_kernel_time(thread, true, PERIOD, &weight));
	expect(weight, 16, 16, 1);
}

/* What calls leave over goes to where the thread stands amid its own code: page faults have no call. */
static void code_takes_what_calls_leave(void **state)
{
	struct sf_weight weight;
	(void)state;

	run_beyond(100, 70);
	assert_false(sf_thread_take_kernel_time(thread, false, PERIOD, &weight)); /* a hold in a call would have taken all */
	run_beyond(10, 10);
	assert_true(sf_thread_take_kernel_time(thread, false, PERIOD, &weight));
	assert_int_equal(weight.cpu_ns, 30 * MS);
	run_beyond(0, 0);
	assert_true(sf_thread_take_kernel_time(thread, false, PERIOD, &weight));
	assert_int_equal(weight.cpu_ns, 10 * MS);
	assert_false(sf_thread_take_kernel_time(thread, false, PERIOD, &weight));
}

/* A thread of which six holds of ten find it in calls, which are all that it does in the kernel. It uses ten periods between two. */
static void seldom_holds_leave_calls_their_time(void **state)
{
	uint64_t random = 7, in_calls_ns = 0, in_code_ns = 0;
	struct sf_weight weight;
	(void)state;

	for (unsigned i = 0; i < 1000; i++) {
		const bool in_call = (sf_random(&random) >> 32) % 10 < 6;

		run_beyond(100, 60);
		if (sf_thread_take_kernel_time(thread, in_call, PERIOD, &weight))
			*(in_call ? &in_calls_ns : &in_code_ns) += weight.cpu_ns;
	}
	assert_true(20 * in_code_ns < in_calls_ns);
}

/* A sleep that a batch has seen interrupted is looked at anew, and its sample does not stand for it. */
static void what_ran_is_seen_anew(void **state)
{
	(void)state;
	thread->sampled = true;
	assert_true(sf_thread_measure_and_look(thread, now_ns += MS));
	assert_int_equal(n_looks, 1); /* that of its creation */
	assert_true(thread->sampled);
	measure_after(1, 1, 0);
	assert_true(sf_thread_awake(thread));
	assert_true(sf_thread_measure_and_look(thread, now_ns += MS));
	assert_int_equal(n_looks, 2);
	assert_false(sf_thread_awake(thread));
	assert_false(thread->sampled);
}

static void a_measure_of_what_is_gone_changes_nothing(void **state)
{
	bool ran;
	(void)state;

	is_gone = true;
	assert_false(sf_thread_measure(thread, now_ns + MS, &ran));
	assert_false(sf_thread_measure_and_look(thread, now_ns + MS));
	assert_int_equal(thread->account.awake_ns + thread->account.asleep_ns, 0);
}

static void run_turns(unsigned n, uint64_t cpu_ns, uint64_t ns)
{
	while (n-- > 0) {
		run.switches++;
		run.cpu_ns += cpu_ns;
		assert_true(sf_thread_look(thread, now_ns += ns));
		sf_thread_measure_use(thread);
	}
}

/* The measure is made anew after 100 ms. */
static void the_use_of_cpus_is_measured(void **state)
{
	(void)state;
	run_turns(99, MS / 5, MS);
	assert_false(sf_thread_needs_displacement(thread));
	run_turns(1, MS / 5, MS);
	assert_true(sf_thread_needs_displacement(thread));
	run_turns(50, MS, 2 * MS);
	assert_false(sf_thread_needs_displacement(thread)); /* each turn is long */
	for (int i = 0; i < 2; i++)
		sf_thread_note_place(thread, true);
	assert_false(sf_thread_needs_displacement(thread));
	sf_thread_note_place(thread, true);
	assert_true(sf_thread_needs_displacement(thread));  /* but most are in calls */
	run_turns(50, MS / 40, 2 * MS);
	assert_true(sf_thread_needs_displacement(thread));  /* it uses 1.25 % of a CPU */
	assert_false(thread->use.is_much);
	run_turns(50, MS / 60, 2 * MS);
	assert_false(sf_thread_needs_displacement(thread)); /* less than 1 % */
	run_turns(50, MS, 2 * MS);
	for (int i = 0; i < 4; i++)
		sf_thread_note_place(thread, false);
	assert_false(sf_thread_needs_displacement(thread));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_measure_of_what_is_gone_changes_nothing),
		TEST(what_ran_is_seen_anew),
		TEST(shares_add_up),
		TEST(calls_take_the_time_beyond),
		TEST(calls_are_owed_time),
		TEST(code_takes_what_calls_leave),
		TEST(seldom_holds_leave_calls_their_time),
		TEST(measured_time_is_exact),
		TEST(a_sleep_is_no_wait_for_a_cpu),
		TEST(a_wait_since_a_sleep_is_whole),
		TEST(a_hold_is_time_awake),
		TEST(a_hold_is_awake_beside_what_ran_before),
		TEST(a_hold_is_not_longer_than_since_the_look),
		TEST(a_new_thread_has_empty_accounts),
		TEST(one_that_is_gone_is_none),
		TEST(time_goes_to_what_was_seen),
		TEST(a_sleep_is_looked_at_once),
		TEST(one_that_runs_is_looked_at_each_time),
		TEST(cpu_time_is_paid_from_the_time_asleep),
		TEST(a_sleeping_sample_leaves_the_cpu_time),
		TEST(an_interrupted_sleep_is_one_sleep),
		TEST(on_its_way_back_it_is_in_its_sleep),
		TEST(a_sleep_after_a_hold_is_another_one),
		TEST(a_debt_is_no_sleep),
		TEST(a_waiting_sample_leaves_the_cpu_time),
		TEST(ticks_add_up),
		TEST(a_count_that_falls_is_another_thread_s),
		TEST(a_count_that_grows_too_much_is_another_thread_s),
		TEST(a_late_count_is_the_thread_s_own),
		TEST(the_count_of_one_that_sleeps_is_not_late),
		TEST(the_end_is_seen),
		TEST(a_wait_since_before_the_tick_is_no_cpu),
		TEST(a_wait_since_before_the_look_is_no_cpu),
		TEST(settling_counts),
		TEST(in_a_wait_only_a_prompt_stop_counts),
		TEST(a_displaced_thread_is_where_it_ran),
		TEST(a_napper_is_looked_at_shortly),
		TEST(the_use_of_cpus_is_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

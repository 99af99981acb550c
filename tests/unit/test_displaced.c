/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that a holding thread displaced from a CPU is recognised, by the kernel's own counts. A child is busy on one
 * CPU and another child sleeps; this test's thread sleeps on the CPU of the busy one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/ptrace/displaced.h"
#include "os/clock.h"
#include "os/cpu.h"
#include "os/hold.h"

#define REST_NS 1000000
#define TRIES 20000 /* of a millisecond or more: on a busy machine other programs run on the CPU, too */

static int cpu; /* that the busy thread may use */
static struct sf_task self;
static struct sf_thread *busy, *asleep;

static pid_t start(void (*fn)(void))
{
	const pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			fn();
	}
	return pid;
}

static void move_to(int to)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(to, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* The first CPU, or the last one, that this process may use. */
static int end_of_cpus(bool last)
{
	cpu_set_t set;
	int found = -1;

	sched_getaffinity(0, sizeof(set), &set);
	for (int i = 0; i < CPU_SETSIZE && (last || found < 0); i++)
		found = CPU_ISSET(i, &set) ? i : found;
	return found;
}

static void spin(void)
{
	for (volatile int i = 0; i < 1000; i++)
		;
}

static void wait_for_signal(void)
{
	pause();
}

static struct sf_thread *start_thread(void (*fn)(void))
{
	const pid_t pid = start(fn);
	struct sf_thread *thread;

	assert_true(pid > 0);
	thread = sf_thread_create(1, pid, pid, sf_now_ns());
	assert_non_null(thread);
	return thread;
}

static void end_thread(struct sf_thread *thread)
{
	const pid_t pid = thread->task.pid;

	sf_thread_destroy(thread);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void wait_until(const struct sf_thread *thread, char state)
{
	while (sf_task_letter(thread->task.pid, thread->task.tid) != state)
		usleep(1000);
}

static int begin(void **state)
{
	int first;
	(void)state;

	assert_true(sf_task_open(getpid(), gettid(), &self));
	first = end_of_cpus(false);
	cpu = end_of_cpus(true);
	move_to(cpu); /* a child inherits that, and is on no other CPU even before its first instruction */
	busy = start_thread(spin);
	asleep = start_thread(wait_for_signal);
	wait_until(busy, 'R');
	wait_until(asleep, 'S');
	move_to(first);
	sf_cpu_prefer();
	return 0;
}

static int end(void **state)
{
	(void)state;
	end_thread(busy);
	end_thread(asleep);
	sf_task_close(&self);
	sf_cpu_move(-1);
	return 0;
}

static bool rest(struct sf_displacement *displacement, struct sf_thread *thread)
{
	const uint64_t until_ns = sf_now_ns() + REST_NS;

	sf_displacement_aim(displacement, &self, thread, until_ns);
	sf_sleep_until(until_ns);
	return sf_displacement_woke(displacement, &self);
}

static void skip_without_counts(void)
{
	if (!sf_task_turn_ns(&self)) {
		print_message("no se.exec_start in /proc/PID/task/TID/sched\n");
		skip();
	}
}

static void the_displaced_thread_is_recognised(void **state)
{
	struct sf_displacement displacement = { 0 };
	unsigned n_found = 0;
	(void)state;

	skip_without_counts();
	for (int i = 0; i < TRIES && !n_found; i++) {
		assert_true(rest(&displacement, busy));
		assert_int_equal(sched_getcpu(), cpu);
		assert_int_equal(displacement.tid, busy->task.tid);
		assert_false(sf_displacement_is_of(&displacement, asleep));
		n_found += sf_displacement_is_of(&displacement, busy) && displacement.waited_ns < REST_NS;
	}
	assert_int_equal(n_found, 1);
}

/* The CPU of a thread that sleeps is free, or another thread's. */
static void a_thread_that_sleeps_on_is_not_displaced(void **state)
{
	struct sf_displacement displacement = { 0 };
	(void)state;

	skip_without_counts();
	for (int i = 0; i < 20; i++) {
		assert_true(rest(&displacement, asleep));
		assert_false(sf_displacement_is_of(&displacement, asleep));
	}
}

static void only_the_end_of_the_sleep_counts(void **state)
{
	struct sf_displacement displacement = { 0 };
	(void)state;

	skip_without_counts();
	assert_false(sf_displacement_woke(&displacement, &self)); /* not aimed */
	sf_displacement_aim(&displacement, &self, busy, sf_now_ns() + UINT64_C(1000000000));
	assert_false(sf_displacement_woke(&displacement, &self)); /* woken before */
	assert_true(rest(&displacement, busy));
	assert_false(sf_displacement_woke(&displacement, &self)); /* that sleep has been used */
}

/* A holding thread that had to wait for the CPU says less. */
static void a_wait_says_less(void **state)
{
	struct sf_displacement displacement = { .waited_ns = 1000 };
	(void)state;

	busy->look.state = SF_STATE_RUNNING;
	asleep->look.state = SF_STATE_BLOCKED;
	for (int is_busy = 0; is_busy < 2; is_busy++) {
		assert_int_equal(sf_displacement_place(&displacement, busy, is_busy), SF_DISPLACED_ANYWHERE);
		assert_int_equal(sf_displacement_place(&displacement, asleep, is_busy), SF_DISPLACED_ANYWHERE);
	}
	for (displacement.waited_ns = 20000; displacement.waited_ns < 50000; displacement.waited_ns += 20000) {
		const bool is_long = displacement.waited_ns > 20000; /* longer than most calls */

		assert_int_equal(sf_displacement_place(&displacement, busy, false), SF_DISPLACED_IN_CALL);
		assert_int_equal(sf_displacement_place(&displacement, busy, true), is_long ? SF_DISPLACED_NOWHERE : SF_DISPLACED_IN_CALL);
		assert_int_equal(sf_displacement_place(&displacement, asleep, false), SF_DISPLACED_NOWHERE);
	}
}

/* Nor may the time without a sample of a thread that runs little be more than its samples stand for. */
static void a_thread_does_not_wait_for_ever(void **state)
{
	struct sf_thread thread = { .ran = false, .first_cpu_ns = 7, .use = { .is_much = true } };
	(void)state;

	for (int ran = 0; ran < 2; ran++) {
		const uint64_t most_ns = (ran ? 40 : 4) * REST_NS;

		thread.ran = ran;
		thread.account.cpu_ns = most_ns - 1;
		thread.run.cpu_ns = 7 + thread.account.cpu_ns;
		assert_false(sf_thread_is_overdue(&thread, REST_NS));
		thread.account.cpu_ns = most_ns;
		assert_true(sf_thread_is_overdue(&thread, REST_NS));
	}
	thread.use.is_much = false;
	thread.account.cpu_ns = 0;
	thread.run.cpu_ns = 7;
	assert_true(sf_thread_is_overdue(&thread, REST_NS)); /* it has no sample */
	thread.run.cpu_ns = 7 + 1999;
	thread.account.cpu_ns = 999;
	assert_false(sf_thread_is_overdue(&thread, REST_NS)); /* 1000 ns have samples */
	thread.account.cpu_ns = 1000;
	assert_true(sf_thread_is_overdue(&thread, REST_NS));
	thread.run.cpu_ns = 7 + 100 * REST_NS;
	thread.account.cpu_ns = 40 * REST_NS;
	assert_true(sf_thread_is_overdue(&thread, REST_NS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_displaced_thread_is_recognised),
		cmocka_unit_test(a_thread_that_sleeps_on_is_not_displaced),
		cmocka_unit_test(only_the_end_of_the_sleep_counts),
		cmocka_unit_test(a_wait_says_less),
		cmocka_unit_test(a_thread_does_not_wait_for_ever),
	};

	return cmocka_run_group_tests(tests, begin, end);
}

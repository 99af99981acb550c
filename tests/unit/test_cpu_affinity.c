/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUs that the sampler may run on, by the threads that wake it (agent/sampler/scheduling.h). */
#include "agent/sampler/scheduling.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <unistd.h>

#include "frozen/raw.h"

#define MS UINT64_C(1000000)
#define NOW UINT64_C(1000000000)

static cpu_set_t cpus_now(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	return cpus;
}

static cpu_set_t only(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET((size_t)cpu, &cpus);
	return cpus;
}

static int one_of(const cpu_set_t *cpus, int other_than)
{
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET((size_t)cpu, cpus) && cpu != other_than)
			return cpu;
	}
	return -1;
}

static void assert_cpus(cpu_set_t expected)
{
	cpu_set_t now = cpus_now();

	assert_true(CPU_EQUAL(&now, &expected));
}

static cpu_set_t all;          /* that this process may use */
static struct sf_cpu_affinity affinity;

static int tear_down(void **state)
{
	(void)state;
	return sched_setaffinity(0, sizeof(all), &all);
}

static struct sf_wake_up wake_up;

static int set_up(void **state)
{
	(void)state;
	wake_up = (struct sf_wake_up){ 0 };
	sf_cpu_affinity_init(&affinity, &wake_up);
	sf_cpu_affinity_move(&affinity, NOW, NOW + 50 * MS);
	return 0;
}

/* A sleeper's: whether it was woken before its time was over. */
static void *sleeps(void *until_ns)
{
	sf_wake_up_wait(&wake_up, 0, *(uint64_t *)until_ns);
	return (void *)(uintptr_t)(sf_raw_now_ns() < *(uint64_t *)until_ns);
}

/* The first thread that posts gets no CPU before it has woken the sleeper: threads that post next do not wait for that. */
static void a_late_waker_is_not_waited_for(void **state)
{
	uint64_t until_ns = sf_raw_now_ns() + 5000 * MS;
	pthread_t sleeper;
	void *was_woken;

	(void)state;
	atomic_store(&wake_up.sleeper, 0);
	assert_int_equal(pthread_create(&sleeper, NULL, sleeps, &until_ns), 0);
	while (atomic_load(&wake_up.asleep) != SF_SLEEPER_ASLEEP)
		sched_yield();
	atomic_store(&wake_up.asleep, SF_SLEEPER_BEING_WOKEN);
	usleep(20000); /* it has come into its sleep: no post has kept it from that */
	sf_wake_up_post(&wake_up);
	pthread_join(sleeper, &was_woken);
	assert_true(was_woken);
	assert_int_equal(atomic_load(&wake_up.asleep), SF_SLEEPER_AWAKE);
}

/* As if we slept. The CPU on which it rang, -1: nobody was brought there. */
static int ring(void)
{
	atomic_store(&wake_up.asleep, SF_SLEEPER_ASLEEP);
	sf_wake_up_post(&wake_up);
	assert_int_equal(atomic_load(&wake_up.asleep), SF_SLEEPER_AWAKE);
	return (int)atomic_load(&wake_up.brought_to) - 1;
}

static void is_brought_where_it_rings(void **state)
{
	const int cpu = one_of(&all, -1), other = one_of(&all, cpu);
	const cpu_set_t here = only(cpu), there = only(other);

	(void)state;
	sf_cpu_affinity_move(&affinity, NOW, NOW + 50 * MS);
	assert_cpus(all);
	if (other < 0)
		skip();
	assert_int_equal(sched_setaffinity(0, sizeof(here), &here), 0);
	assert_int_equal(ring(), cpu);
	assert_int_equal(sched_setaffinity(0, sizeof(there), &there), 0);
	assert_int_equal(ring(), other);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	atomic_store(&wake_up.brought_to, 0);
	assert_cpus(only(ring()));
}

static void stays_where_it_is_when_awake(void **state)
{
	(void)state;
	sf_wake_up_post(&wake_up);
	assert_cpus(all);
}

static void nobody_brings_it_where_it_is_not_let_in(void **state)
{
	(void)state;
	assert_cpus(only(ring()));
	sf_cpu_affinity_woke(&affinity, NOW + 60 * MS);
	sf_cpu_affinity_move(&affinity, NOW + 60 * MS, NOW + 100 * MS);
	assert_cpus(only(ring()));
	sf_cpu_affinity_woke(&affinity, NOW + 121 * MS);
	sf_cpu_affinity_move(&affinity, NOW + 121 * MS, NOW + 200 * MS);
	assert_cpus(all);
	assert_int_equal(ring(), -1);
	assert_cpus(all);
	sf_cpu_affinity_move(&affinity, NOW + 9000 * MS, NOW + 9050 * MS);
	assert_int_equal(ring(), -1);
	sf_cpu_affinity_move(&affinity, NOW + 10200 * MS, NOW + 10250 * MS);
	assert_cpus(only(ring()));
}

static void leaves_it_as_the_program_has_set_it(void **state)
{
	cpu_set_t theirs;
	int other;

	(void)state;
	other = one_of(&all, ring());
	if (other < 0)
		skip();
	theirs = only(other);
	assert_int_equal(sched_setaffinity(0, sizeof(theirs), &theirs), 0);
	sf_cpu_affinity_woke(&affinity, NOW + 121 * MS);
	sf_cpu_affinity_move(&affinity, NOW + 121 * MS, NOW + 200 * MS);
	assert_cpus(theirs);
}

static void is_late(uint64_t now_ns)
{
	sf_cpu_affinity_woke(&affinity, now_ns);
	sf_cpu_affinity_move(&affinity, now_ns, now_ns + 50 * MS);
}

/* As if the thread that wakes this one had got no CPU for a while, in the middle of its post. */
static void it_is_not_the_programs_where_a_waking_thread_is_late(void **state)
{
	const int cpu = ring(), other = one_of(&all, cpu);
	cpu_set_t there;

	(void)state;
	if (other < 0)
		skip();
	atomic_store(&wake_up.bringing, (uint32_t)other + 1);
	is_late(NOW + 121 * MS);
	assert_cpus(all);
	there = only(other);
	assert_int_equal(sched_setaffinity(0, sizeof(there), &there), 0);
	atomic_store(&wake_up.brought_to, (uint32_t)cpu + 1);
	is_late(NOW + 321 * MS);
	assert_cpus(all);
}

/* The kernel refuses it where a thread of the program runs where this one may not. */
static void it_is_not_where_nobody_could_bring_it(void **state)
{
	(void)state;
	atomic_store(&wake_up.sleeper, INT32_MAX);
	assert_int_equal(ring(), -1);
}

static void nobody_brings_what_has_ended(void **state)
{
	(void)state;
	sf_cpu_affinity_end(&affinity);
	assert_int_equal(ring(), -1);
	assert_cpus(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(is_brought_where_it_rings, set_up, tear_down),
		cmocka_unit_test_setup_teardown(stays_where_it_is_when_awake, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nobody_brings_it_where_it_is_not_let_in, set_up, tear_down),
		cmocka_unit_test_setup_teardown(leaves_it_as_the_program_has_set_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(it_is_not_the_programs_where_a_waking_thread_is_late, set_up, tear_down),
		cmocka_unit_test_setup_teardown(it_is_not_where_nobody_could_bring_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nobody_brings_what_has_ended, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_late_waker_is_not_waited_for, set_up, tear_down),
	};

	all = cpus_now();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

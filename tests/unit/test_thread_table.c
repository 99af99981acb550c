/* SPDX-License-Identifier: Apache-2.0 */
/* The table of entries: finding, leaving, collisions, running full, and many who claim the same ones at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "apart.h"
#include "form.h"
#include "frozen/raw.h"
#include "frozen/signal/thread_table.h"

static struct sf_thread_entry *entries;

static int fresh(void **state)
{
	(void)state;
	free(entries);
	entries = calloc(SF_THREAD_TABLE_SIZE, sizeof(*entries));
	return entries ? 0 : -1;
}

static struct sf_thread_entry *claim(int32_t tid, bool wanted_new)
{
	bool is_new = !wanted_new;
	struct sf_thread_entry *entry = sf_thread_table_claim(entries, tid, &is_new);

	if (entry)
		assert_int_equal(is_new, wanted_new);
	return entry;
}

static void test_find(void **state)
{
	struct sf_thread_entry *entry = claim(1, true);

	(void)state;
	assert_non_null(entry);
	assert_int_equal(atomic_load(&entry->clock), -1);
	assert_int_not_equal(entry->random, 0);
	assert_ptr_equal(sf_thread_table_find(entries, 1), entry);
	assert_ptr_equal(claim(1, false), entry);
	assert_null(sf_thread_table_find(entries, 2));
	assert_null(sf_thread_table_find(entries, 0));
	assert_null(sf_thread_table_find(entries, -1));
	assert_null(sf_thread_table_find(entries, INT32_MIN));
	assert_null(claim(0, true));
	assert_null(claim(-1, true));
}

static void test_left_seats_are_empty_again(void **state)
{
	struct sf_thread_entry *entry = claim(77, true);

	(void)state;
	atomic_store(&entry->flags, 7);
	atomic_store(&entry->serial, 8);
	atomic_store(&entry->label, 9);
	atomic_store(&entry->accounted_ns, 10);
	atomic_store(&entry->run_delay_ns, 11);
	atomic_store(&entry->period_ns, 12);
	atomic_store(&entry->n_samples, 13);
	atomic_store(&entry->request, 1);
	atomic_store(&entry->clock, 14);
	sf_thread_table_leave(entry);
	assert_null(sf_thread_table_find(entries, 77));
	assert_ptr_equal(claim(77 + SF_THREAD_TABLE_SIZE, true), entry);
	assert_int_equal(entry->flags + entry->serial + entry->label + entry->request, 0);
	assert_int_equal(entry->accounted_ns + entry->run_delay_ns + entry->period_ns + entry->n_samples, 0);
	assert_int_equal(atomic_load(&entry->clock), -1);
}

/* A thread whose entry is behind others is found when they have left. */
static void test_collisions(void **state)
{
	struct sf_thread_entry *first = claim(5, true), *second = claim(5 + SF_THREAD_TABLE_SIZE, true);
	struct sf_thread_entry *third = claim(5 + 2 * SF_THREAD_TABLE_SIZE, true);

	(void)state;
	assert_true(first != second && second != third && first != third);
	sf_thread_table_leave(first);
	assert_ptr_equal(sf_thread_table_find(entries, 5 + SF_THREAD_TABLE_SIZE), second);
	assert_ptr_equal(claim(5 + 2 * SF_THREAD_TABLE_SIZE, false), third);
	sf_thread_table_leave(second);
	assert_ptr_equal(sf_thread_table_find(entries, 5 + 2 * SF_THREAD_TABLE_SIZE), third);
	assert_ptr_equal(claim(5 + 3 * SF_THREAD_TABLE_SIZE, true), first);
}

static void test_full(void **state)
{
	(void)state;
	for (int32_t tid = 1; tid <= SF_THREAD_TABLE_SIZE; tid++)
		assert_non_null(claim(tid, true));
	assert_null(claim(SF_THREAD_TABLE_SIZE + 1, true));
	assert_null(sf_thread_table_find(entries, SF_THREAD_TABLE_SIZE + 1));
	sf_thread_table_leave(sf_thread_table_find(entries, 40));
	assert_non_null(claim(SF_THREAD_TABLE_SIZE + 1, true));
}

/* A claim of the same entry that is stopped in its midst leaves this: it must not come true. */
static void test_strikes_out_other_bids(void **state)
{
	struct sf_thread_entry *entry;

	(void)state;
	for (int32_t behind = 0; behind < 3; behind++) {
		fresh(NULL);
		for (int32_t i = 0; i < behind; i++)
			claim(50 + (i + 1) * SF_THREAD_TABLE_SIZE, true);
		atomic_store(&entries[50 + behind].tid, -50);
		entry = claim(50, true);
		assert_ptr_equal(entry, &entries[50 + behind + 1]);
		assert_int_not_equal(atomic_load(&entries[50 + behind].tid), -50);
	}
}

/* Several times as many threads as the table has places: that they come and go leaves no trace that fills it. */
static void test_churn(void **state)
{
	const int32_t n = (is_long_form() ? 12 : 3) * SF_THREAD_TABLE_SIZE;
	(void)state;

	for (int32_t tid = 1; tid < n; tid++) {
		struct sf_thread_entry *entry = claim(tid, true);

		assert_non_null(entry);
		sf_thread_table_leave(entry);
	}
}

static void test_takes_cpu_time_once(void **state)
{
	struct sf_thread_entry *entry = claim(9, true);
	uint32_t ticks;

	(void)state;
	entry->period_ns = 1000;
	entry->accounted_ns = 500;
	assert_int_equal(sf_thread_entry_take_cpu(entry, 3900, &ticks), 3400);
	assert_int_equal(ticks, 3);
	assert_int_equal(sf_thread_entry_take_cpu(entry, 3900, &ticks), 0);
	assert_int_equal(ticks, 1);
	assert_int_equal(sf_thread_entry_take_cpu(entry, 100, &ticks), 0);
	assert_int_equal(sf_thread_entry_take_cpu(entry, 4000, &ticks), 100);
}

#define N_THREADS 2 /* no more than there are processors */
#define ROUNDS 15000
#define LONG_ROUNDS 60000
#define FEWEST 5000       /* ... that are made in any case; where others want the processors, each takes milliseconds */
#define ENOUGH_NS UINT64_C(20000000000)

/* All at once: a barrier that sleeps wakes one after the other. */
static _Atomic uint32_t n_arrived;

static void meet(void)
{
	const uint32_t place = atomic_fetch_add(&n_arrived, 1);
	const uint32_t last = place - place % N_THREADS + N_THREADS;

	for (unsigned i = 1; (int32_t)(atomic_load(&n_arrived) - last) < 0; i++) {
		if (i % 4096 == 0)
			sched_yield();
	}
}

static struct sf_thread_entry *claimed[N_THREADS];
static bool was_new[N_THREADS], enough;
static int32_t n_rounds;
static uint64_t began_ns;
static _Atomic uint32_t n_wrong;

static void check_claims(int32_t tid)
{
	unsigned n_new = 0;

	for (unsigned i = 0; i < N_THREADS; i++) {
		n_new += was_new[i];
		n_wrong += !claimed[i] || claimed[i] != claimed[0];
	}
	n_wrong += n_new != 1;
	if (claimed[0])
		sf_thread_table_leave(claimed[0]);
	n_wrong += sf_thread_table_find(entries, tid) != NULL;
}

/* Each with a neighbour in the way that comes and goes, so that places before the entry fall free meanwhile. */
static void *claim_together(void *arg)
{
	const uintptr_t number = (uintptr_t)arg;

	run_apart((unsigned)number);
	for (int32_t round = 0; round < n_rounds && !enough; round++) {
		const int32_t tid = 100 + round % 8, other = tid + (int32_t)(number + 1) * SF_THREAD_TABLE_SIZE;
		bool is_new;
		struct sf_thread_entry *neighbour = sf_thread_table_claim(entries, other, &is_new);

		meet();
		if (neighbour && number == 0)
			sf_thread_table_leave(neighbour);
		claimed[number] = sf_thread_table_claim(entries, tid, &was_new[number]);
		if (neighbour && number != 0)
			sf_thread_table_leave(neighbour);
		meet();
		if (number == 0) {
			check_claims(tid);
			enough = round >= FEWEST && sf_raw_now_ns() - began_ns > ENOUGH_NS;
		}
		meet();
	}
	return NULL;
}

static void test_all_claim_the_same(void **state)
{
	pthread_t threads[N_THREADS];

	(void)state;
	n_arrived = 0;
	n_rounds = is_long_form() ? LONG_ROUNDS : ROUNDS;
	began_ns = sf_raw_now_ns();
	for (uintptr_t i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, claim_together, (void *)i), 0);
	for (unsigned i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(n_wrong, 0);
}

static _Atomic uint64_t cpu_clock, taken;
static _Atomic unsigned n_taking;

static void *take_often(void *arg)
{
	const unsigned n = is_long_form() ? 300000 : 75000;
	uint32_t ticks;

	run_apart(atomic_fetch_add(&n_taking, 1));
	meet();
	for (unsigned i = 0; i < n; i++)
		taken += sf_thread_entry_take_cpu(arg, atomic_fetch_add(&cpu_clock, 7) + 7, &ticks);
	return NULL;
}

static void test_two_that_take_share(void **state)
{
	struct sf_thread_entry *entry = claim(12, true);
	pthread_t threads[2];
	uint32_t ticks;

	(void)state;
	n_arrived = 0;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_often, entry), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	taken += sf_thread_entry_take_cpu(entry, cpu_clock, &ticks);
	assert_int_equal(taken, cpu_clock);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, fresh)
	const struct CMUnitTest tests[] = {
		TEST(test_find),
		TEST(test_left_seats_are_empty_again),
		TEST(test_collisions),
		TEST(test_full),
		TEST(test_strikes_out_other_bids),
		TEST(test_churn),
		TEST(test_takes_cpu_time_once),
		TEST(test_all_claim_the_same),
		TEST(test_two_that_take_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hand-shake: each transition by itself, and then threads that keep entering slots while samplers take,
 * walk, cancel and let go. A walk checks that nothing of the slot changes in its midst, which is what a thread
 * that is not held any more would do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "apart.h"
#include "form.h"
#include "frozen/raw.h"
#include "frozen/signal/slot.h"

#define MS UINT64_C(1000000)
#define LONG (60000 * MS)

static struct sf_slot slot;
static struct sf_wake_up wake_up;

static int fresh(void **state)
{
	(void)state;
	sf_slot_init(&slot, 3);
	memset(&wake_up, 0, sizeof(wake_up));
	return 0;
}

static enum sf_slot_state state_of(const struct sf_slot *which)
{
	return sf_slot_state(atomic_load(&which->word));
}

/* --- one thread --- */

static void test_starts_free(void **state)
{
	(void)state;
	assert_int_equal(slot.number, 3);
	assert_int_equal(state_of(&slot), SF_SLOT_FREE);
	assert_null(atomic_load(&slot.map));
	assert_false(sf_slot_take(&slot));
}

static void test_an_answer_in_time(void **state)
{
	uint32_t generation, second;

	(void)state;
	assert_true(sf_slot_request(&slot, &generation));
	assert_false(sf_slot_request(&slot, &second));
	assert_true(sf_slot_answer(&slot, generation));
	assert_false(sf_slot_answer(&slot, generation));
	assert_false(sf_slot_cancel(&slot, generation));
	assert_false(sf_slot_take(&slot));
	sf_slot_leave(&slot);
	assert_int_equal(state_of(&slot), SF_SLOT_FREE);
}

static void test_a_late_answer_finds_another_generation(void **state)
{
	uint32_t first, second;

	(void)state;
	assert_true(sf_slot_request(&slot, &first));
	assert_true(sf_slot_cancel(&slot, first));
	assert_false(sf_slot_cancel(&slot, first));
	assert_false(sf_slot_answer(&slot, first));
	assert_true(sf_slot_request(&slot, &second));
	assert_int_not_equal(first, second);
	assert_false(sf_slot_answer(&slot, first));
	assert_true(sf_slot_answer(&slot, second));
	sf_slot_leave(&slot);
}

static void test_generations_begin_again(void **state)
{
	uint32_t generation;

	(void)state;
	atomic_store(&slot.word, sf_slot_word(SF_SLOT_MAX_GENERATION, SF_SLOT_FREE));
	assert_true(sf_slot_request(&slot, &generation));
	assert_int_equal(generation, 0);
	assert_int_equal(state_of(&slot), SF_SLOT_REQUESTED);
	assert_true(sf_slot_answer(&slot, generation));
}

static void test_claims_what_is_free(void **state)
{
	struct sf_slot slots[3];
	uint32_t generation;

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		sf_slot_init(&slots[i], i);
	assert_true(sf_slot_request(&slots[1], &generation));
	assert_ptr_equal(sf_slot_claim(slots, 3, 1), &slots[2]);
	assert_ptr_equal(sf_slot_claim(slots, 3, 1), &slots[0]);
	assert_null(sf_slot_claim(slots, 3, 7));
	sf_slot_leave(&slots[2]);
	assert_ptr_equal(sf_slot_claim(slots, 3, 0), &slots[2]);
}

static void test_lets_itself_go(void **state)
{
	uint64_t before_ns;

	(void)state;
	assert_non_null(sf_slot_claim(&slot, 1, 0));
	before_ns = sf_raw_now_ns();
	assert_false(sf_slot_stand(&slot, &wake_up, 5 * MS));
	assert_true(sf_raw_now_ns() - before_ns >= 5 * MS);
	assert_int_equal(state_of(&slot), SF_SLOT_FREE);
	assert_int_equal(sf_wake_up_count(&wake_up), 1);
}

static void test_the_bell_that_rang_is_not_waited_for(void **state)
{
	(void)state;
	assert_non_null(sf_slot_claim(&slot, 1, 0));
	assert_false(sf_slot_stand(&slot, &wake_up, 1));
	sf_wake_up_wait(&wake_up, 0, UINT64_MAX); /* would never end */
	sf_wake_up_wait(&wake_up, 1, sf_raw_now_ns() + 2 * MS);
}

/* --- threads --- */

#define N_THREADS 6

/* By thread, from 1: it is in sf_slot_stand. */
static _Atomic bool stands[N_THREADS + 1];

static bool stand_as(struct sf_slot *which, unsigned number, uint64_t patience_ns)
{
	bool walked;

	atomic_store(&stands[number], true);
	walked = sf_slot_stand(which, &wake_up, patience_ns);
	atomic_store(&stands[number], false);
	return walked;
}

static _Atomic int32_t standing_tid;

/* However long the machine takes to let it run until it sleeps. */
static void wait_until_asleep(void)
{
	const struct timespec a_moment = { 0, 1000000 };
	char path[64], letter = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)standing_tid);
	while (letter != 'S') {
		FILE *file = fopen(path, "r");

		assert_non_null(file);
		assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &letter), 1);
		fclose(file);
		nanosleep(&a_moment, NULL);
	}
}

static void *stand_once(void *arg)
{
	(void)arg;
	standing_tid = (int32_t)sf_raw0(SYS_gettid);
	return (void *)(uintptr_t)(sf_slot_claim(&slot, 1, 0) && stand_as(&slot, 1, LONG));
}

static void test_a_walk_is_waited_for(void **state)
{
	const struct timespec a_moment = { 0, 2000000 };
	pthread_t thread;
	void *walked;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, stand_once, NULL), 0);
	sf_wake_up_wait(&wake_up, 0, sf_raw_now_ns() + LONG);
	assert_true(sf_slot_take(&slot));
	assert_false(sf_slot_take(&slot));
	/* A wake that is somebody else's must not let it go. */
	for (int i = 0; i < 5; i++) {
		sf_raw_futex_wake(&slot.word, 100);
		nanosleep(&a_moment, NULL);
		assert_int_equal(state_of(&slot), SF_SLOT_WALKING);
		assert_true(stands[1]);
	}
	/* It may go, and sleeps until it is told. */
	wait_until_asleep();
	sf_slot_release(&slot);
	nanosleep(&a_moment, NULL);
	assert_int_equal(state_of(&slot), SF_SLOT_FREE);
	assert_true(stands[1]);
	sf_slot_wake(&slot);
	assert_int_equal(pthread_join(thread, &walked), 0);
	assert_non_null(walked);
}

#define N_SLOTS 4
#define LONG_ROUNDS 25000
#define ROUNDS 2500

static struct sf_slot slots[N_SLOTS];
static uint32_t least_rounds; /* of each thread, and more until some were walked and some gave up */
static _Atomic uint32_t n_standing, n_walked, n_wrong, n_given_up, n_busy, n_rounds, n_sampling;

/* The fields must be all the same number while the thread stands. */
static void fill(struct sf_slot *which, unsigned number, uint64_t value)
{
	which->tid = (int32_t)number;
	which->entered_ns = which->cpu_ns = which->wall_ns = value;
	for (unsigned i = 0; i < SF_MAX_REGS; i++)
		which->regs.r[i] = value;
}

static bool is_whole(const struct sf_slot *which)
{
	const uint64_t value = which->cpu_ns;
	bool same = which->entered_ns == value && which->wall_ns == value && stands[which->tid] &&
		    state_of(which) == SF_SLOT_WALKING;

	for (unsigned i = 0; i < SF_MAX_REGS; i++)
		same = same && which->regs.r[i] == value;
	return same;
}

/* On a busy machine most rounds find no slot while the sampler waits for a CPU. */
static bool is_enough(uint64_t rounds)
{
	return rounds >= least_rounds && n_walked > least_rounds && n_given_up > 0;
}

/* Every seventh has little patience, so that giving up and being taken race. */
static void stand(struct sf_slot *which, unsigned number, uint64_t value)
{
	fill(which, number, value);
	if (!stand_as(which, number, value % 7 ? LONG : 1 + value % 20000))
		atomic_fetch_add(&n_given_up, 1);
}

static void *enter_often(void *arg)
{
	const unsigned number = (unsigned)(uintptr_t)arg;

	run_apart(number);
	for (uint64_t i = 0; !is_enough(i); i++) {
		struct sf_slot *which = sf_slot_claim(slots, N_SLOTS, number);

		if (which)
			stand(which, number, (uint64_t)number << 32 | i);
		else
			atomic_fetch_add(&n_busy, 1);
		atomic_fetch_add(&n_rounds, 1);
		if (!which)
			sched_yield();
	}
	atomic_fetch_sub(&n_standing, 1);
	return NULL;
}

static void walk(struct sf_slot *which)
{
	if (!is_whole(which))
		atomic_fetch_add(&n_wrong, 1);
	if (atomic_fetch_add(&n_walked, 1) % 16 == 0)
		sched_yield();
	if (!is_whole(which))
		atomic_fetch_add(&n_wrong, 1);
	sf_slot_release(which);
	sf_slot_wake(which);
}

/* Two of these by mistake must do no harm: they do not even wait, so that they often want the same slot. */
static void *sample(void *arg)
{
	const bool is_alone = arg;

	if (!is_alone)
		run_apart(atomic_fetch_add(&n_sampling, 1));
	while (atomic_load(&n_standing)) {
		uint32_t heard = sf_wake_up_count(&wake_up);

		for (unsigned i = 0; i < N_SLOTS; i++) {
			if (sf_slot_take(&slots[i]))
				walk(&slots[i]);
		}
		if (is_alone)
			sf_wake_up_wait(&wake_up, heard, sf_raw_now_ns() + MS);
	}
	return NULL;
}

static void run_samplers(unsigned n)
{
	pthread_t threads[N_THREADS], samplers[2];

	for (uint32_t i = 0; i < N_SLOTS; i++)
		sf_slot_init(&slots[i], i);
	n_walked = n_wrong = n_given_up = n_busy = n_rounds = 0;
	least_rounds = is_long_form() ? LONG_ROUNDS : ROUNDS;
	n_standing = N_THREADS;
	for (uintptr_t i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, enter_often, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(pthread_create(&samplers[i], NULL, sample, (void *)(uintptr_t)(n == 1)),
				 0);
	for (unsigned i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(pthread_join(samplers[i], NULL), 0);
	assert_int_equal(n_wrong, 0);
	assert_int_equal(n_walked + n_given_up + n_busy, n_rounds);
	for (unsigned i = 0; i < N_SLOTS; i++)
		assert_int_equal(state_of(&slots[i]), SF_SLOT_FREE);
}

static void test_many_threads(void **state)
{
	(void)state;
	run_samplers(1);
}

static void test_two_samplers(void **state)
{
	(void)state;
	run_samplers(2);
}

/*
 * Requests: the signal is a mailbox of the last four, which the thread answers now or much later. So answers come in
 * time, race with the cancelling, and come when the slot is used again.
 */
static _Atomic uint64_t mail[4];
static _Atomic uint32_t n_entered, n_late;

static void *answer_often(void *arg)
{
	const unsigned number = (unsigned)(uintptr_t)arg;

	for (uint64_t i = 0; atomic_load(&n_standing); i++) {
		uint64_t letter = atomic_exchange(&mail[i % 4], 0);

		if (letter == 0) {
			sched_yield();
		} else if (!sf_slot_answer(&slot, (uint32_t)letter)) {
			atomic_fetch_add(&n_late, 1);
		} else {
			atomic_fetch_add(&n_entered, 1);
			stand(&slot, number, i);
		}
	}
	return NULL;
}

/* Cancels some at once, and some when they have waited. True: it was entered. */
static bool ask(uint32_t round)
{
	uint32_t generation, heard = sf_wake_up_count(&wake_up);

	if (!sf_slot_request(&slot, &generation))
		return false;
	atomic_store(&mail[round % 4], UINT64_C(1) << 32 | generation);
	if (round % 3)
		sf_wake_up_wait(&wake_up, heard, sf_raw_now_ns() + 20000);
	if (sf_slot_cancel(&slot, generation))
		return false;
	while (!sf_slot_take(&slot)) {
		/* Entering; or it gave up at once. */
		if (state_of(&slot) == SF_SLOT_FREE)
			return true;
		sched_yield();
	}
	walk(&slot);
	return true;
}

static void test_late_and_cancelled_answers(void **state)
{
	const uint32_t n = is_long_form() ? 60000 : 15000;
	pthread_t threads[3];
	uint32_t n_asked = 0;

	(void)state;
	n_walked = n_wrong = n_given_up = n_entered = n_late = 0;
	n_standing = 1;
	for (uintptr_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, answer_often, (void *)(i + 1)), 0);
	for (uint32_t i = 0; i < n || n_entered <= 100 || n_late <= 100; i++)
		n_asked += ask(i);
	n_standing = 0;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(n_wrong, 0);
	assert_int_equal(n_asked, n_entered);
	assert_int_equal(n_walked + n_given_up, n_entered);
	assert_int_equal(state_of(&slot), SF_SLOT_FREE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, fresh)
	const struct CMUnitTest tests[] = {
		TEST(test_starts_free),
		TEST(test_an_answer_in_time),
		TEST(test_a_late_answer_finds_another_generation),
		TEST(test_generations_begin_again),
		TEST(test_claims_what_is_free),
		TEST(test_lets_itself_go),
		TEST(test_the_bell_that_rang_is_not_waited_for),
		TEST(test_a_walk_is_waited_for),
		TEST(test_many_threads),
		TEST(test_two_samplers),
		TEST(test_late_and_cancelled_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

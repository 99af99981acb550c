/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler's turn at the slots (sf_handler_serve): who stands is walked, let go, and woken when all have been walked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "frozen/raw.h"
#include "handler_rig.h"

#define RING (1u << 20)
#define ROUNDS 300
#define LONG UINT64_C(60000000000)

static pthread_barrier_t begin, end;
static _Atomic int32_t tids[SF_RIG_SLOTS];
static _Atomic unsigned n_walked, n_too_early;

static int start(void **state)
{
	(void)state;
	pthread_barrier_init(&begin, NULL, SF_RIG_SLOTS + 1);
	pthread_barrier_init(&end, NULL, SF_RIG_SLOTS + 1);
	n_walked = n_too_early = 0;
	return sf_rig_start(SF_MODE_SAMPLER, RING) ? 0 : -1;
}

static int stop(void **state)
{
	(void)state;
	sf_rig_stop();
	pthread_barrier_destroy(&begin);
	pthread_barrier_destroy(&end);
	return 0;
}

/* Nobody stands a second time in a round: so once all have been walked no slot is in use. */
static bool is_one_in_use(void)
{
	for (uint32_t i = 0; i < SF_RIG_SLOTS; i++) {
		if (sf_slot_state(atomic_load(&sf_handler.link.slots[i].word)) != SF_SLOT_FREE)
			return true;
	}
	return false;
}

static void fill(struct sf_slot *slot, const struct sf_thread_entry *entry)
{
	slot->tid = (int32_t)syscall(SYS_gettid);
	slot->entry = (uint32_t)(entry - sf_handler.link.entries);
	slot->entered_ns = slot->tick_ns = sf_raw_now_ns();
	slot->cpu_ns = slot->wall_ns = slot->ticks = 1;
	slot->regs = (struct sf_regs){ 0 };
}

static void *stand_each_round(void *arg)
{
	const unsigned number = (unsigned)(uintptr_t)arg;
	struct sf_thread_entry *entry = sf_rig_enter(number + 1, 0);

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct sf_slot *slot;

		pthread_barrier_wait(&begin);
		slot = sf_slot_claim(sf_handler.link.slots, SF_RIG_SLOTS, number);
		fill(slot, entry);
		atomic_store(&tids[number], slot->tid);
		atomic_fetch_add(&n_walked, sf_slot_stand(slot, &sf_handler.link.wake_up, LONG));
		atomic_fetch_add(&n_too_early, is_one_in_use());
		pthread_barrier_wait(&end);
	}
	sf_rig_leave(entry);
	return NULL;
}

static bool is_asleep(int32_t tid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
	fclose(file);
	return state == 'S';
}

/* Held, and in the kernel: who does not sleep yet may leave as soon as it has been walked. */
static void wait_until_all_sleep(void)
{
	const struct timespec a_moment = { 0, 20000 };

	for (unsigned i = 0; i < SF_RIG_SLOTS; i++) {
		int32_t tid;

		while (!(tid = atomic_load(&tids[i])))
			nanosleep(&a_moment, NULL);
		while (!is_asleep(tid))
			nanosleep(&a_moment, NULL);
		atomic_store(&tids[i], 0);
	}
}

/* While a thread is walked, this many times another one comes to a slot that is free. */
static unsigned n_coming;
static struct sf_thread_entry *coming_entry;

enum sf_end __real_sf_handler_sample(struct sf_handler *handler, struct sf_workspace *workspace, struct sf_slot *slot);
enum sf_end __wrap_sf_handler_sample(struct sf_handler *handler, struct sf_workspace *workspace, struct sf_slot *slot);

static void come(uint32_t hint)
{
	struct sf_slot *slot = sf_slot_claim(sf_handler.link.slots, SF_RIG_SLOTS, hint);

	assert_non_null(slot);
	fill(slot, coming_entry);
	atomic_store(&slot->word, sf_slot_word(sf_slot_generation(slot->word), SF_SLOT_HELD));
}

enum sf_end __wrap_sf_handler_sample(struct sf_handler *handler, struct sf_workspace *workspace, struct sf_slot *slot)
{
	if (n_coming) {
		n_coming--;
		come(slot->number + 1);
	}
	return __real_sf_handler_sample(handler, workspace, slot);
}

/* A walked thread is woken soon, also if others come as fast as they are walked. */
static void there_is_an_end_to_those_who_come(void **state)
{
	(void)state;
	coming_entry = sf_rig_enter(1, 0);
	n_coming = 1000;
	come(0);
	assert_in_range(sf_handler_serve(&sf_handler, sf_rig_workspace()), SF_SERVED_AT_ONCE,
			SF_SERVED_AT_ONCE + SF_RIG_SLOTS - 1);
	n_coming = 0;
	while (sf_handler_serve(&sf_handler, sf_rig_workspace()))
		;
	sf_rig_drain();
	sf_rig_leave(coming_entry);
}

static void who_is_woken_finds_all_walked(void **state)
{
	pthread_t threads[SF_RIG_SLOTS];

	(void)state;
	for (unsigned i = 0; i < SF_RIG_SLOTS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, stand_each_round,
						(void *)(uintptr_t)i), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&begin);
		wait_until_all_sleep();
		assert_int_equal(sf_handler_serve(&sf_handler, sf_rig_workspace()), SF_RIG_SLOTS);
		assert_int_equal(sf_handler_serve(&sf_handler, sf_rig_workspace()), 0);
		pthread_barrier_wait(&end);
	}
	for (unsigned i = 0; i < SF_RIG_SLOTS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(n_walked, SF_RIG_SLOTS * ROUNDS);
	assert_int_equal(n_too_early, 0);
	sf_rig_drain();
	assert_int_equal(sf_rig_sums[0].n_samples, SF_RIG_SLOTS * ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_is_woken_finds_all_walked, start, stop),
		cmocka_unit_test_setup_teardown(there_is_an_end_to_those_who_come, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

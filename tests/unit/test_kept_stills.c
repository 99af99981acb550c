/* SPDX-License-Identifier: Apache-2.0 */
/* Stills whose code the map lacked, walked again by another map, when their threads have long run on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "frozen/raw.h"
#include "handler_rig.h"

#define DEPTH 8
#define FRAMES 6                    /* of a walk, which so ends before libc's code, for which there are no tables */
#define LONG_NS UINT64_C(200000000) /* more than a map is waited for, and less than a search is */
#define LONGEST_NS UINT64_C(600000000)

static struct sf_kept_stills *kept;
static struct sf_code_map *whole;
static struct sf_code_map lacking = { .serial = 1 };

static int start(void **state)
{
	size_t size;

	(void)state;
	if (!sf_rig_start(SF_MODE_HANDLER, 1u << 20))
		return -1;
	size = sizeof(*whole) + sf_handler.code.map->n_regions * sizeof(whole->regions[0]);
	whole = malloc(size);
	kept = mmap(NULL, sizeof(*kept), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!whole || kept == MAP_FAILED)
		return -1;
	memcpy(whole, sf_handler.code.map, size);
	whole->serial = 2;
	sf_handler.code.map = &lacking;
	sf_handler.link.kept = kept;
	sf_rig_workspace()->trace.capacity = FRAMES;
	for (unsigned i = 0; i < SF_RIG_SLOTS; i++)
		sf_handler.link.slots[i].workspace->trace.capacity = FRAMES;
	sf_rig_enter(1, 0);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	sf_rig_stop();
	munmap(kept, sizeof(*kept));
	free(whole);
	return 0;
}

/* Not by libc: the tick comes in this program's own code, which keeps frame pointers. */
static void tick(void)
{
	siginfo_t info = { .si_signo = SF_RIG_SIGNAL, .si_code = SI_QUEUE };

	info.si_pid = sf_handler.config.pid;
	info.si_ptr = (void *)(uintptr_t)sf_handler_value(sf_handler.config.cookie, SF_NO_SLOT, 0);
	assert_int_equal(sf_raw4(SYS_rt_tgsigqueueinfo, info.si_pid, sf_raw0(SYS_gettid), SF_RIG_SIGNAL, &info), 0);
}

static __attribute__((noinline)) void tick_below(unsigned depth)
{
	if (depth)
		tick_below(depth - 1);
	else
		tick();
	__asm__ volatile(""); /* no tail call */
}

static __attribute__((noinline)) void overwrite_the_stack(void)
{
	volatile uint8_t bytes[16384];

	memset((void *)bytes, 0x5a, sizeof(bytes));
}

static void walk_kept(uint64_t now_ns)
{
	sf_handler_walk_kept(&sf_handler, sf_rig_workspace(), now_ns);
	sf_rig_drain();
}

/* As the service thread does it, to no effect. */
static void searches(unsigned n)
{
	atomic_fetch_add(&sf_handler.code.n_searches, n);
}

static void test_it_is_walked_by_the_next_map(void **state)
{
	(void)state;
	tick_below(DEPTH);
	overwrite_the_stack();
	walk_kept(sf_raw_now_ns());
	assert_int_equal(sf_rig_sums[1].n_samples, 0);
	assert_int_equal(sf_handler.code.map_stale, 1);
	assert_true(sf_kept_stills_any(kept));

	sf_handler.code.map = whole;
	walk_kept(sf_raw_now_ns());
	assert_int_equal(sf_rig_sums[1].n_samples, 1);
	assert_int_equal(sf_rig_sums[1].n_frames, FRAMES);
	assert_false(sf_kept_stills_any(kept));
}

/* What no map gets is of the program's own making: its samples come, cut, and for a while none of them is kept. */
static void test_code_that_no_map_gets(void **state)
{
	(void)state;
	tick();
	walk_kept(sf_raw_now_ns());
	assert_int_equal(sf_rig_sums[1].n_samples, 0);
	searches(2);
	walk_kept(sf_raw_now_ns());
	assert_int_equal(sf_rig_sums[1].n_samples, 0);
	walk_kept(sf_raw_now_ns() + LONG_NS);
	assert_int_equal(sf_rig_sums[1].n_samples, 1);
	tick();
	sf_rig_drain();
	assert_int_equal(sf_rig_sums[1].n_samples, 2);
	assert_false(sf_kept_stills_any(kept));
	assert_true(kept->not_before_ns > sf_raw_now_ns());

	kept->not_before_ns = 0;
	tick_below(DEPTH);
	sf_handler.code.map = whole;
	walk_kept(sf_raw_now_ns());
	assert_int_equal(sf_rig_sums[1].n_samples, 3);
	assert_int_equal(kept->pause_ns, 0);
}

/*
 * The service thread gets no CPU: that there is no other map yet says nothing of the code. The first search to end may have
 * begun before the still was taken.
 */
static void test_a_late_search_says_nothing_of_the_code(void **state)
{
	(void)state;
	tick_below(DEPTH);
	searches(1);
	walk_kept(sf_raw_now_ns() + LONG_NS);
	assert_int_equal(sf_rig_sums[1].n_samples, 0);
	sf_handler.code.map = whole;
	walk_kept(sf_raw_now_ns() + LONG_NS);
	assert_int_equal(sf_rig_sums[1].n_frames, FRAMES);

	sf_handler.code.map = &lacking;
	tick();
	walk_kept(sf_raw_now_ns() + LONGEST_NS);
	assert_int_equal(sf_rig_sums[1].n_samples, 2);
	assert_int_equal(kept->not_before_ns, 0);
	tick();
	assert_true(sf_kept_stills_any(kept));
}

static void test_a_thread_is_settled_alone(void **state)
{
	struct sf_thread_entry *entry = sf_thread_table_find(sf_handler.link.entries, (int32_t)sf_raw0(SYS_gettid));

	(void)state;
	tick();
	atomic_store(&entry->serial, 2); /* as another thread */
	tick();
	sf_handler_settle_kept(&sf_handler, sf_rig_workspace(), 2);
	sf_rig_drain();
	assert_int_equal(sf_rig_sums[1].n_samples, 0);
	assert_int_equal(sf_rig_sums[2].n_samples, 1);
	sf_handler_settle_kept(&sf_handler, sf_rig_workspace(), 0);
	sf_rig_drain();
	assert_int_equal(sf_rig_sums[1].n_samples, 1);
	assert_false(sf_kept_stills_any(kept));
}

/* All that a thread has used is in samples, and there is a sample for each tick. */
static void test_there_is_room_for_some(void **state)
{
	struct sf_thread_entry *entry = sf_thread_table_find(sf_handler.link.entries, (int32_t)sf_raw0(SYS_gettid));

	(void)state;
	for (unsigned i = 0; i < SF_N_KEPT_STILLS + 3; i++)
		tick();
	sf_rig_drain();
	assert_int_equal(sf_rig_sums[1].n_samples, 3);
	assert_int_equal(entry->n_samples, SF_N_KEPT_STILLS + 3);
	atomic_store(&kept->hurry, 1);
	walk_kept(sf_raw_now_ns());
	assert_int_equal(sf_rig_sums[1].n_samples, SF_N_KEPT_STILLS + 3);
	kept->not_before_ns = 0;
	tick(); /* none is kept while they are wanted */
	sf_rig_drain();
	assert_int_equal(sf_rig_sums[1].n_samples, SF_N_KEPT_STILLS + 4);
	assert_int_equal(sf_rig_sums[1].cpu_ns, entry->accounted_ns);
	atomic_store(&kept->hurry, 0);
}

static void test_a_full_outbox(void **state)
{
	const struct sf_thread_entry *entry = sf_thread_table_find(sf_handler.link.entries, (int32_t)sf_raw0(SYS_gettid));

	(void)state;
	tick_below(DEPTH);
	assert_true(entry->accounted_ns > 0);
	sf_handler.code.map = whole;
	while (sf_output_lose(&sf_handler.output, 3, SF_LOSS_GONE, 0, 0, 1))
		;
	sf_handler_walk_kept(&sf_handler, sf_rig_workspace(), sf_raw_now_ns());
	assert_false(sf_kept_stills_any(kept));
	sf_rig_drain();
	assert_int_equal(sf_rig_sums[1].n_samples, 0);
	assert_int_equal(entry->accounted_ns, 0); /* its next sample stands for that, too */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_it_is_walked_by_the_next_map, start, stop),
		cmocka_unit_test_setup_teardown(test_code_that_no_map_gets, start, stop),
		cmocka_unit_test_setup_teardown(test_a_late_search_says_nothing_of_the_code, start, stop),
		cmocka_unit_test_setup_teardown(test_a_thread_is_settled_alone, start, stop),
		cmocka_unit_test_setup_teardown(test_there_is_room_for_some, start, stop),
		cmocka_unit_test_setup_teardown(test_a_full_outbox, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

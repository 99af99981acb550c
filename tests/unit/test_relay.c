/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of stacks that are too short: each walk tells how long the next copy is to be, but
 * where walks are behind, copies that were taken before that are on their way already. The walks
 * here wait until they are let, and end where the copy does.
 */
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/ptrace/relay.h"
#include "frozen/raw.h"
#include "os/clock.h"

#define SHORT 4096u

static struct sf_relay *relay;
static struct sf_thread *thread;
static sem_t may_walk, reached;
static uint64_t needed;              /* bytes of stack, by the walks */
static unsigned n_whole, n_kept_cut; /* samples */
static uint32_t ticks_kept, ticks_lost[SF_N_LOSSES];
static uint64_t cpu_kept_ns;
static bool is_held;                 /* stills are copies of a thread that is held, and not the kernel's */
static unsigned n_walked, other_every; /* so many walks, the last one of each so many, end at another stack; 0: none */
static uint64_t walk_ns;             /* CPU time that a walk takes at the least */
static bool is_below_sp;             /* walks need what lies below sp, and only copies of a held thread have it */

static struct sf_verdict walk(void *arg, uint32_t serial, struct sf_still *still,
			      const struct sf_weight *weight, uint64_t hold_ns, bool last,
			      struct sf_error *err)
{
	const bool cut = still->memory.window_size < needed;

	(void)arg, (void)serial, (void)hold_ns, (void)err;
	sem_wait(&may_walk);
	for (const uint64_t start_ns = sf_raw_thread_cpu_ns(); sf_raw_thread_cpu_ns() - start_ns < walk_ns;)
		continue;
	n_whole += !cut;
	n_kept_cut += cut && last;
	ticks_kept += !cut || last ? weight->ticks : 0;
	cpu_kept_ns += !cut || last ? weight->cpu_ns : 0;
	if (is_below_sp)
		return (struct sf_verdict){ .end = is_held ? SF_END_ROOT : SF_END_OTHER_STACK, .stack_used = needed, .below_sp = true };
	if (other_every && !(++n_walked % other_every))
		return (struct sf_verdict){ .end = SF_END_OTHER_STACK };
	return (struct sf_verdict){ .end = cut ? SF_END_COPY : SF_END_ROOT, .stack_used = needed };
}

/* Comes in its turn: what was sent before it is done with. */
static bool note_reached(void *arg, uint32_t serial, enum sf_loss cause,
			 const struct sf_weight *weight, struct sf_error *err)
{
	(void)arg, (void)serial, (void)err;
	ticks_lost[cause] += weight->ticks;
	sem_post(&reached);
	return true;
}

static bool thread_end(void *arg, uint32_t serial, uint64_t time_ns, uint64_t cpu_ns, struct sf_error *err)
{
	(void)arg, (void)serial, (void)time_ns, (void)cpu_ns, (void)err;
	return true;
}

static bool idle(void *arg, uint64_t now_ns, struct sf_error *err)
{
	(void)arg, (void)now_ns, (void)err;
	return true;
}

static int open_relay(void **state)
{
	const struct sf_sink sink = { .sample = walk, .loss = note_reached, .thread_end = thread_end,
					.idle = idle };
	(void)state;

	n_whole = n_kept_cut = ticks_kept = n_walked = other_every = 0;
	cpu_kept_ns = 0;
	is_held = is_below_sp = false;
	walk_ns = 0;
	memset(ticks_lost, 0, sizeof(ticks_lost));
	sem_init(&may_walk, 0, 0);
	sem_init(&reached, 0, 0);
	thread = sf_thread_create(1, getpid(), getpid(), sf_now_ns());
	assert_non_null(thread);
	atomic_store(&thread->needs.size, SHORT);
	assert_true(sf_relay_open(&sink, &relay, NULL));
	return 0;
}

static int close_relay(void **state)
{
	(void)state;
	assert_true(!relay || sf_relay_close(relay, NULL));
	if (thread)
		sf_thread_destroy(thread);
	return 0;
}

/* A still as long as is wanted now, of a stack that is longer. */
static void send_still_in(enum sf_state state)
{
	const uint32_t want = atomic_load(&thread->needs.size);
	const struct sf_weight weight = { .ticks = 1, .cpu_ns = state == SF_STATE_RUNNING };
	struct sf_stack_copy *copy = sf_relay_reserve(relay, want);

	assert_non_null(copy);
	*copy = (struct sf_stack_copy){ .pid = getpid(), .tid = getpid(), .stack_start = 0x1000,
				    .stack_size = want, .stack_more = 1, .state = (uint8_t)state, .follows_leads = is_held };
	sf_relay_send(relay, thread, &weight, 1);
}

static void send_still(void)
{
	send_still_in(SF_STATE_RUNNING);
}

static void let_walk(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sem_post(&may_walk);
	sf_relay_loss(relay, thread, SF_LOSS_GONE, &(struct sf_weight){ 0 });
	sem_wait(&reached);
}

static void copies_taken_too_early_are_no_tries(void **state)
{
	(void)state;
	needed = 3 * SHORT;
	for (unsigned i = 0; i < 20; i++)
		send_still();
	let_walk(20);
	assert_int_equal(n_whole + n_kept_cut, 0);
	/* All of them say the same: four times as much. */
	assert_int_equal(atomic_load(&thread->needs.size), 4 * SHORT);
	send_still();
	let_walk(1);
	assert_int_equal(n_whole, 1);
	assert_int_equal(n_kept_cut, 0);
	assert_int_equal(ticks_kept, 21);
}

/* Not to one that waits for a CPU, or sleeps. */
static void cpu_time_of_a_cut_copy_goes_to_the_next_on_a_cpu(void **state)
{
	(void)state;
	needed = 3 * SHORT;
	send_still();
	let_walk(1);
	send_still_in(SF_STATE_RUNNABLE);
	send_still_in(SF_STATE_BLOCKED);
	let_walk(2);
	assert_int_equal(n_whole, 2);
	assert_int_equal(cpu_kept_ns, 0);
	send_still();
	let_walk(1);
	assert_int_equal(cpu_kept_ns, 2);
	assert_int_equal(ticks_kept, 4);
}

/* The only copy of a sleep is kept, and says for how much it had room, also where it ends before. */
static void the_only_copy_says_that_it_was_too_short(void **state)
{
	static const uint32_t sizes[] = { 2 * SHORT, SHORT, SHORT }, rooms[] = { 0, 0, 5 * SHORT }, known[] = { 2 * SHORT, SHORT, 5 * SHORT };

	(void)state;
	needed = 3 * SHORT;
	for (unsigned i = 0; i < 3; i++) {
		const struct sf_weight weight = { .ticks = 1 };
		struct sf_stack_copy *copy = sf_relay_reserve(relay, sizes[i]);

		assert_non_null(copy);
		*copy = (struct sf_stack_copy){ .pid = getpid(), .tid = getpid(), .stack_start = 0x1000,
					    .stack_size = sizes[i], .stack_more = 1, .is_only = true, .room = rooms[i] };
		assert_int_equal(sf_relay_only_cut(relay), i ? 2 * SHORT : 0);
		sf_relay_send(relay, thread, &weight, 1);
		let_walk(1);
		assert_int_equal(atomic_load(&thread->needs.only_cut), known[i]);
	}
	assert_int_equal(n_kept_cut, 3);
	assert_int_equal(sf_relay_only_cut(relay), 5 * SHORT);
}

static void what_is_never_enough_is_kept_in_the_end(void **state)
{
	unsigned sent = 0;
	(void)state;

	for (needed = UINT64_MAX; !n_kept_cut && sent < 50; sent++) {
		send_still();
		let_walk(1);
	}
	assert_int_equal(n_kept_cut, 1);
	assert_int_equal(ticks_kept, sent);
	assert_true(sent <= 6);
}

/* A thread that lives on at the end of the recording is not gone; and what was carried is a loss, however it came about. */
static void what_is_carried_at_the_end_is_a_loss(void **state)
{
	(void)state;
	needed = 3 * SHORT;
	send_still();
	atomic_store(&thread->needs.size, 2 * SHORT); /* outdated by now */
	let_walk(1);
	sf_relay_thread_end(relay, thread, sf_now_ns(), SF_LOSS_REST);
	thread = NULL;
	assert_true(sf_relay_close(relay, NULL));
	relay = NULL;
	assert_int_equal(n_whole + n_kept_cut, 0);
	assert_int_equal(ticks_lost[SF_LOSS_REST], 1);
	assert_int_equal(ticks_lost[SF_LOSS_GONE], 0);
}

static void needed_later(uint64_t bytes, unsigned n)
{
	needed = bytes;
	for (unsigned i = 0; i < n; i++) {
		send_still();
		let_walk(1);
	}
}

static bool needs_longer_copies_after(unsigned n)
{
	needed_later(SHORT, n);
	return sf_thread_needs_longer_copies(thread);
}

/* As Go's threads, which call on another stack now and then: most samples are whole, and would be lost by holds. */
static void a_thread_that_is_on_another_stack_at_times_is_not_held(void **state)
{
	(void)state;
	other_every = 5;
	assert_false(needs_longer_copies_after(100));
}

static void a_thread_that_is_on_another_stack_for_half_of_the_time_is_held(void **state)
{
	(void)state;
	other_every = 2;
	assert_true(needs_longer_copies_after(100));
}

/* As OpenSSL's SHA-512. The copies reach to the thread's first frame: that is not enough, and is again when no walk needs more. */
static void a_thread_that_keeps_its_frame_below_sp_is_held(void **state)
{
	(void)state;
	atomic_store(&thread->needs.root_sp, 0x8000);
	assert_int_not_equal(sf_thread_whole_size(thread, 0x7000), 0);
	is_below_sp = true;
	assert_true(needs_longer_copies_after(30));
	assert_int_equal(sf_thread_whole_size(thread, 0x7000), 0);
	is_held = true;
	assert_true(needs_longer_copies_after(100));
	is_below_sp = false;
	assert_false(needs_longer_copies_after(200));
	assert_int_not_equal(sf_thread_whole_size(thread, 0x2000 - SHORT), 0);
}

/* The thread is held when its stack is deep, and all its other samples are small copies. */
static void what_deep_moments_need_is_kept(void **state)
{
	(void)state;
	is_held = true;
	needed = 100000;
	atomic_store(&thread->needs.size, 30000);
	send_still();
	let_walk(1);
	assert_int_equal(atomic_load(&thread->needs.deep_size), 4 * 30000);
	send_still();
	let_walk(1);
	is_held = false;
	needed_later(SHORT, 200);
	thread->batch.n_held = 0;
	assert_in_range(sf_thread_copy_plan(thread).size, SHORT, 50000);
	thread->batch.n_held = 1;
	assert_in_range(sf_thread_copy_plan(thread).size, 100000, 200000);
}

/* Many walks in a row come to the same one. */
static void a_first_frame_settles(void **state)
{
	(void)state;
	needed_later(SHORT, SF_ROOT_SETTLED);
	assert_int_equal(atomic_load(&thread->needs.n_same_root), SF_ROOT_SETTLED - 1);
	needed_later(SHORT, 2);
	assert_int_equal(atomic_load(&thread->needs.n_same_root), SF_ROOT_SETTLED);
	needed_later(SHORT + 64, 1); /* of another stack */
	assert_int_equal(atomic_load(&thread->needs.n_same_root), 0);
	needed_later(SHORT + 64, 1);
	assert_int_equal(atomic_load(&thread->needs.n_same_root), 1);
	is_held = true;
	needed_later(UINT64_MAX, 1);
	assert_int_equal(atomic_load(&thread->needs.n_same_root), 0);
}

/* A copy of a thread that is held ends above its first frame: where it is cut all the same, that frame is on another stack. */
static void a_first_frame_above_a_cut_copy_is_forgotten(void **state)
{
	(void)state;
	needed_later(SHORT, 1);
	assert_int_equal(atomic_load(&thread->needs.root_sp), 0x1000 + SHORT);
	assert_int_equal(sf_thread_copy_plan(thread).root_sp, 0x1000 + SHORT);
	needed_later(UINT64_MAX, 1); /* the kernel's */
	assert_int_equal(atomic_load(&thread->needs.root_sp), 0x1000 + SHORT);
	is_held = true;
	needed_later(UINT64_MAX, 1);
	assert_int_equal(atomic_load(&thread->needs.root_sp), 0);
	needed_later(SHORT, 1);
	atomic_store(&thread->needs.leads.at[0], 0x2000);
	assert_int_equal(sf_thread_copy_plan(thread).root_sp, 0);
}

/* Until the engine has seen it. */
static void a_cut_copy_is_not_forgotten(void **state)
{
	(void)state;
	needed = SHORT + 1;
	send_still();
	let_walk(1);
	assert_int_equal(atomic_load(&thread->needs.cut_at), SHORT);
	needed_later(SHORT, 5);
	assert_int_equal(atomic_load(&thread->needs.cut_at), SHORT);
	is_held = true;
	needed_later(UINT64_MAX, 1);
	assert_int_equal(atomic_load(&thread->needs.cut_at), SHORT);
}

/* What takes far longer than the others has read files. */
static void what_a_walk_usually_takes(void **state)
{
	uint64_t usual_ns;
	(void)state;

	needed = SHORT;
	assert_int_equal(sf_relay_usual_walk_ns(relay), 0);
	walk_ns = 100000;
	for (unsigned i = 0; i < 300; i++) {
		send_still();
		let_walk(1);
	}
	usual_ns = sf_relay_usual_walk_ns(relay);
	assert_in_range(usual_ns, 90000, 1000000);
	walk_ns = 50000000;
	send_still();
	let_walk(1);
	assert_in_range(sf_relay_usual_walk_ns(relay), usual_ns, usual_ns + usual_ns / 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(copies_taken_too_early_are_no_tries, open_relay,
						close_relay),
		cmocka_unit_test_setup_teardown(the_only_copy_says_that_it_was_too_short, open_relay, close_relay),
		cmocka_unit_test_setup_teardown(what_is_never_enough_is_kept_in_the_end, open_relay,
						close_relay),
		cmocka_unit_test_setup_teardown(cpu_time_of_a_cut_copy_goes_to_the_next_on_a_cpu, open_relay, close_relay),
		cmocka_unit_test_setup_teardown(a_thread_that_is_on_another_stack_at_times_is_not_held, open_relay, close_relay),
		cmocka_unit_test_setup_teardown(a_thread_that_is_on_another_stack_for_half_of_the_time_is_held, open_relay, close_relay),
		cmocka_unit_test_setup_teardown(a_thread_that_keeps_its_frame_below_sp_is_held, open_relay, close_relay),
		cmocka_unit_test_setup_teardown(what_deep_moments_need_is_kept, open_relay, close_relay),
		cmocka_unit_test_setup_teardown(a_first_frame_settles, open_relay, close_relay),
		cmocka_unit_test_setup_teardown(a_first_frame_above_a_cut_copy_is_forgotten, open_relay, close_relay),
		cmocka_unit_test_setup_teardown(a_cut_copy_is_not_forgotten, open_relay, close_relay),
		cmocka_unit_test_setup_teardown(what_is_carried_at_the_end_is_a_loss, open_relay, close_relay),
		cmocka_unit_test_setup_teardown(what_a_walk_usually_takes, open_relay, close_relay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleeps out of hand-made rings: their lengths, who ended them, what is made of short ones, and of those that a batch
 * cuts. The threads, their counts, the clock and the relay are made up (--wrap).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "capture/perf/stacks.h"
#include "capture/perf/perf.h"
#include "os/kernel_symbols.h"
#include "perf_rings.h"

#define MS UINT64_C(1000000)
#define SIZE 65536u
#define WAKING 7
#define WAKEUP 8

static struct perf_event_mmap_page *switches[2], *wakings;
static struct sf_perf perf;
static struct sf_thread thread;
static struct sf_task_run run;
static uint64_t clock_ns;
static bool has_ended, waker_has_ended;
static uint32_t longest_cut;
static uint32_t depth, n_depths; /* of the stacks of full copies, and how often it was asked for */

/* The samples and events that were sent, as text. */
static char told[2000];
static union {
	struct sf_stack_copy copy;
	uint8_t room[sizeof(struct sf_stack_copy) + 2 * SF_PERF_MAX_RECORD];
} buffer;
static enum sf_copy_result read_result; /* of a thread that is read where it sleeps ... */
static uint64_t read_pc, read_sp;       /* ... there */

bool __wrap_sf_task_look(const struct sf_task *task, struct sf_task_look *ret);
enum sf_copy_result __wrap_sf_copy_blocked(const struct sf_task *task, const struct sf_task_look *look, const struct sf_copy_plan *plan,
					   struct sf_pages *pages, struct sf_stack_copy *ret);
bool __wrap_sf_task_run(const struct sf_task *task, struct sf_task_run *ret);
bool __wrap_sf_task_name(int32_t pid, int32_t tid, char ret[SF_TASK_NAME]);
struct sf_thread *__wrap_sf_watch_find(const struct sf_watch *watch, int32_t tid);
struct sf_thread *__wrap_sf_watch_add_thread(struct sf_watch *watch, int32_t pid, int32_t tid, uint64_t now_ns);
void __wrap_sf_watch_add_process(struct sf_watch *watch, int32_t pid, int32_t parent, const char *name);
struct sf_stack_copy *__wrap_sf_relay_reserve_waiting(struct sf_relay *relay, uint32_t want);
void __wrap_sf_relay_send(struct sf_relay *relay, struct sf_thread *of, const struct sf_weight *weight, uint64_t hold_ns);
void __wrap_sf_relay_again(struct sf_relay *relay, const struct sf_thread *of, uint64_t time_ns, const struct sf_weight *weight);
void __wrap_sf_relay_woken(struct sf_relay *relay, const struct sf_thread *of, int32_t waker, const char *name);
uint32_t __wrap_sf_relay_only_cut(const struct sf_relay *relay);
uint32_t __wrap_sf_perf_depth_at(int32_t pid, const uint64_t *sps, size_t n);
uint64_t __wrap_sf_now_ns(void);

bool __wrap_sf_task_run(const struct sf_task *task, struct sf_task_run *ret)
{
	(void)task;
	*ret = run;
	return !has_ended;
}

bool __wrap_sf_task_look(const struct sf_task *task, struct sf_task_look *ret)
{
	(void)task;
	*ret = (struct sf_task_look){ .placed = true };
	return true;
}

enum sf_copy_result __wrap_sf_copy_blocked(const struct sf_task *task, const struct sf_task_look *look, const struct sf_copy_plan *plan,
					   struct sf_pages *pages, struct sf_stack_copy *ret)
{
	(void)task, (void)look, (void)pages;
	assert_true(plan->size >= SF_PERF_MAX_STACK);
	*ret = (struct sf_stack_copy){ .flags = SF_STILL_UNHELD, .stack_size = 1000, .regs.pc = read_pc };
	ret->regs.r[sf_arch_host()->sp] = read_sp;
	return read_result;
}

bool __wrap_sf_task_name(int32_t pid, int32_t tid, char ret[SF_TASK_NAME])
{
	(void)pid;
	if (!waker_has_ended)
		snprintf(ret, SF_TASK_NAME, "named%d", tid);
	return !waker_has_ended;
}

struct sf_thread *__wrap_sf_watch_find(const struct sf_watch *watch, int32_t tid)
{
	(void)watch;
	return tid == 10 ? &thread : NULL;
}

struct sf_thread *__wrap_sf_watch_add_thread(struct sf_watch *watch, int32_t pid, int32_t tid, uint64_t now_ns)
{
	(void)watch, (void)pid, (void)tid, (void)now_ns;
	return NULL;
}

void __wrap_sf_watch_add_process(struct sf_watch *watch, int32_t pid, int32_t parent, const char *name)
{
	(void)watch, (void)pid, (void)parent, (void)name;
}

struct sf_stack_copy *__wrap_sf_relay_reserve_waiting(struct sf_relay *relay, uint32_t want)
{
	(void)relay;
	assert_true(want <= 2 * SF_PERF_MAX_RECORD);
	return &buffer.copy;
}

static void tell(const char *what, uint64_t a, uint64_t b)
{
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s %g %g; ", what, (double)a / 1e6, (double)b / 1e6);
}

void __wrap_sf_relay_send(struct sf_relay *relay, struct sf_thread *of, const struct sf_weight *weight, uint64_t hold_ns)
{
	(void)relay, (void)hold_ns;
	assert_ptr_equal(of, &thread);
	assert_int_equal(buffer.copy.state, SF_STATE_BLOCKED);
	assert_true(buffer.copy.flags & SF_STILL_OPEN);
	assert_int_equal(weight->cpu_ns, 0);
	tell("sample", buffer.copy.time_ns, weight->wall_ns);
}

void __wrap_sf_relay_again(struct sf_relay *relay, const struct sf_thread *of, uint64_t time_ns, const struct sf_weight *weight)
{
	(void)relay, (void)of;
	tell("again", time_ns, weight->wall_ns);
}

void __wrap_sf_relay_woken(struct sf_relay *relay, const struct sf_thread *of, int32_t waker, const char *name)
{
	(void)relay, (void)of;
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "by %d %s; ", waker, name);
}

uint32_t __wrap_sf_relay_only_cut(const struct sf_relay *relay)
{
	(void)relay;
	return longest_cut;
}

/* The registers of all records. */
static struct sf_regs regs_of_record(void)
{
	uint64_t made[64];
	struct sf_regs regs;

	for (unsigned i = 0; i < sf_perf_n_regs; i++)
		made[i] = 0x1000 + i;
	sf_perf_load_regs(made, &regs);
	return regs;
}

/* Of threads with full copies: of process 10, all of whose records have the same stack pointer. */
uint32_t __wrap_sf_perf_depth_at(int32_t pid, const uint64_t *sps, size_t n)
{
	assert_int_equal(pid, 10);
	assert_true(n > 0);
	assert_int_equal(sps[n - 1], regs_of_record().r[sf_arch_host()->sp]);
	n_depths++;
	return depth;
}

/* Where it is not 0, stillframe has no CPU for so long after each look at the clock. */
static uint64_t waits_ns;

uint64_t __wrap_sf_now_ns(void)
{
	const uint64_t now_ns = clock_ns;

	clock_ns += waits_ns;
	return now_ns;
}

static int set_up(void **state)
{
	(void)state;
	perf = (struct sf_perf){
		.events = { .kernel = true, .period_ns = MS },
		.sleeps = {
			.on = true, .has_wakings = true, .knows_kernel = true, .min_ns = MS, .waking = WAKING, .woken_offset = 24,
			.switches = { .kind = SF_PERF_SWITCHES, .n_cpus = 2, .stack_bytes = 256 },
			.wakings = { .kind = SF_PERF_WAKINGS, .n_cpus = 1 },
		},
	};
	perf.base.watch.options = &perf.base.options;
	perf.base.options.blocked_rate_mhz = 20000;
	perf.base.blocked_period_ns = 50 * MS;
	perf.base.random = 1;
	sf_perf_budget_begin(&perf.budget);
	for (int i = 0; i < 2; i++) {
		switches[i] = made_ring(SIZE);
		sf_perf_ring_init(&perf.sleeps.switches.rings[i], switches[i], RING_PAGE, SIZE);
	}
	switches[0]->data_head = switches[0]->data_tail = SIZE - 64; /* the first record wraps */
	wakings = made_ring(SIZE);
	sf_perf_ring_init(&perf.sleeps.wakings.rings[0], wakings, RING_PAGE, SIZE);
	run = (struct sf_task_run){ 0 };
	thread = (struct sf_thread){ .serial = 1, .watched = true, .needs.size = SF_COPY_FIRST, .task = { .pid = 10, .tid = 10 } };
	has_ended = waker_has_ended = false;
	read_result = SF_COPY_MOVED;
	clock_ns = waits_ns = 0;
	longest_cut = depth = n_depths = 0;
	told[0] = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		sf_perf_ring_deinit(&perf.sleeps.switches.rings[i]);
		free(switches[i]);
	}
	sf_perf_ring_deinit(&perf.sleeps.wakings.rings[0]);
	free(wakings);
	free(thread.sleep.record);
	sf_vec_deinit(&perf.sleeps.noted);
	sf_vec_deinit(&perf.sleeps.kept);
	return 0;
}

static void append_switch(unsigned cpu, uint64_t time_ns, uint16_t misc)
{
	struct made_record made;

	made_begin(&made, PERF_RECORD_SWITCH, misc);
	made_identity(&made, 10, 10, time_ns, cpu);
	made_end(&made);
	ring_append(switches[cpu], SIZE, made.bytes, made.size);
}

/* The copy of the stack takes 0.01 ms. */
static void leaves(unsigned cpu, double ms, bool is_preempted)
{
	const uint64_t chain[] = { PERF_CONTEXT_KERNEL, 0xffffffff81000000 };
	struct made_record made;

	made_sample(&made, 10, 10, (uint64_t)(ms * 1e6), chain, 2, PERF_SAMPLE_REGS_ABI_64, 256, 256);
	ring_append(switches[cpu], SIZE, made.bytes, made.size);
	append_switch(cpu, (uint64_t)((ms + 0.01) * 1e6),
		      PERF_RECORD_MISC_SWITCH_OUT | (is_preempted ? PERF_RECORD_MISC_SWITCH_OUT_PREEMPT : 0));
}

static void comes(unsigned cpu, double ms)
{
	append_switch(cpu, (uint64_t)(ms * 1e6), 0);
}

/* By thread 33; of whom does not matter where the flags say that it was interrupted. */
static void waking(uint16_t tracepoint, double ms, int32_t woken, uint8_t flags)
{
	uint8_t fields[44] = { 0 };
	const uint32_t size = sizeof(fields);
	struct made_record made;

	memcpy(fields, &tracepoint, sizeof(tracepoint));
	fields[2] = flags;
	memcpy(fields + 24, &woken, sizeof(woken));
	made_begin(&made, PERF_RECORD_SAMPLE, 0);
	made_identity(&made, 30, 33, (uint64_t)(ms * 1e6), 0);
	made_put(&made, &size, sizeof(size));
	made_put(&made, fields, sizeof(fields));
	made_end(&made);
	ring_append(wakings, SIZE, made.bytes, made.size);
}

/* The kernel's counts grow as the records say: how long it slept is what is left. */
static void late_batch(double now_ms, double late_ms, double cpu_ms, double wait_ms)
{
	run.cpu_ns += (uint64_t)(cpu_ms * 1e6);
	run.wait_ns += (uint64_t)(wait_ms * 1e6);
	run.switches += cpu_ms > 0;
	clock_ns = (uint64_t)((now_ms + late_ms) * 1e6);
	sf_perf_batch(&perf, (uint64_t)(now_ms * 1e6));
}

static void batch(double now_ms, double cpu_ms, double wait_ms)
{
	late_batch(now_ms, 0, cpu_ms, wait_ms);
}

static void test_until_it_was_ready(void **state)
{
	(void)state;
	leaves(0, 1, false);
	waking(WAKING, 3.9, 10, 0);
	waking(WAKEUP, 4, 10, 0);
	waking(WAKEUP, 4.2, 99, 0);
	comes(1, 4.5);               /* on another CPU, and after a wait for it */
	batch(10, 6.5, 0.5);
	assert_string_equal(told, "sample 4 3; by 33 named33; ");
	assert_int_equal(thread.account.asleep_ns, 0);
}

/*
 * A thread goes to sleep, and is woken, while the rings are read: its waking is in the batch, its sleep in the next one. It
 * waits for a CPU then, and does not sleep.
 */
static void test_woken_while_the_rings_are_read(void **state)
{
	(void)state;
	waits_ns = 5 * MS;
	waking(WAKING, 13.9, 10, 0);
	waking(WAKEUP, 14, 10, 0);
	batch(10, 10, 0);
	leaves(0, 11, false);
	comes(1, 42);
	batch(50, 9, 28);
	assert_string_equal(told, "sample 14 3; by 33 named33; ");
}

/* The record of its stack is the last one of a batch, and the record that it leaves its CPU the first one of the next. */
static void test_a_batch_ends_as_it_leaves(void **state)
{
	(void)state;
	waits_ns = MS;
	leaves(0, 9.995, false);
	batch(10, 9.995, 0);
	assert_string_equal(told, "");
	waking(WAKEUP, 14, 10, 0);
	comes(0, 14);
	leaves(0, 19.995, false);
	batch(20, 5.995, 0);
	assert_string_equal(told, "sample 14 4.005; by -1 ; ");
	batch(30, 0, 0);
	assert_string_equal(told, "sample 14 4.005; by -1 ; sample 30 10.005; ");
	comes(0, 31);
	leaves(0, 39.995, true);
	batch(40, 8.995, 0);
	comes(0, 48);
	batch(50, 2, 8.005);
	assert_string_equal(told, "sample 14 4.005; by -1 ; sample 30 10.005; again 31 1; by -1 ; ");
	assert_int_equal(perf.sleeps.n_kept_bytes, 0);
}

/* A clock that is not the kernel's: what comes later than now is in the batch. */
static void test_records_of_another_clock(void **state)
{
	(void)state;
	leaves(0, 1001, false);
	waking(WAKEUP, 1003, 10, 0);
	comes(0, 1004);
	batch(10, 10, 0);
	assert_string_equal(told, "sample 1003 2; by -1 ; ");
}

/* What was recorded just before the events paused is read in the pause, in which the thread may do anything. */
static void test_records_before_a_pause(void **state)
{
	(void)state;
	perf.sleeps.paused_until_ns = 500 * MS;
	leaves(0, 5, false);
	batch(10, 5, 0);
	batch(300, 290, 0);
	assert_string_equal(told, "");
	comes(0, 299);
	batch(310, 10, 0);
	assert_false(thread.sleeps.are_recorded);
	assert_int_equal(thread.on_cpu.since_ns, 0);
}

/* The records of ends are in other rings. */
static struct perf_event_mmap_page *begin_ends(void)
{
	struct perf_event_mmap_page *page = made_ring(SIZE);

	perf.events.n_cpus = 1;
	sf_perf_ring_init(&perf.events.rings[0], page, RING_PAGE, SIZE);
	return page;
}

static void end(struct perf_event_mmap_page *page, double ms)
{
	struct made_record made;

	made_begin(&made, PERF_RECORD_EXIT, 0);
	made_ids(&made, 10, 1);
	made_ids(&made, 10, 1);
	made_u64(&made, (uint64_t)(ms * 1e6));
	made_identity(&made, 10, 10, (uint64_t)(ms * 1e6), 0);
	made_end(&made);
	ring_append(page, SIZE, made.bytes, made.size);
}

static void end_ends(struct perf_event_mmap_page *page)
{
	sf_perf_ring_deinit(&perf.events.rings[0]);
	perf.events.n_cpus = 0;
	free(page);
}

/* A thread gets a CPU, and ends, while the rings are read. */
static void test_an_end_while_the_rings_are_read(void **state)
{
	struct perf_event_mmap_page *ends = begin_ends();

	(void)state;
	sf_on_cpu_counted(&thread.on_cpu, 0, MS);
	append_switch(0, 5 * MS, PERF_RECORD_MISC_SWITCH_OUT);
	comes(0, 11);
	end(ends, 12);
	waits_ns = 5 * MS;
	batch(10, 0, 0);
	assert_int_equal(thread.on_cpu.ran_ns, 4 * MS);
	batch(20, 0, 0);
	assert_int_equal(thread.on_cpu.ran_ns, 5 * MS);
	end_ends(ends);
}

/* It had its CPU before it was known, and kept it. */
static void test_an_end_without_a_switch(void **state)
{
	struct perf_event_mmap_page *ends = begin_ends();

	(void)state;
	sf_on_cpu_counted(&thread.on_cpu, 0, 60 * MS);
	end(ends, 75);
	batch(80, 0, 0);
	assert_int_equal(thread.on_cpu.ran_ns, 15 * MS);
	end_ends(ends);
}

/* The kernel counts the sleep of 30 ms as a wait for a CPU. Of that, what counts may be wrong by is left. */
static void test_a_sleep_that_is_counted_as_a_wait(void **state)
{
	(void)state;
	leaves(0, 1, false);
	waking(WAKEUP, 31, 10, 0);
	comes(0, 31.01);
	batch(40, 9.99, 30.01);
	assert_string_equal(told, "sample 31 30; by -1 ; ");
	assert_int_equal(thread.account.awake_ns, 15 * MS);
	assert_int_equal(thread.account.asleep_ns, -5 * (int64_t)MS);
}

/* The next sample stands for what its thread has slept without records, too. Since that sleep it may have slept again. */
static void test_sleeps_without_records(void **state)
{
	(void)state;
	leaves(0, 1, false);
	waking(WAKEUP, 3, 10, 0);
	comes(0, 3);
	batch(10, 8, 0);
	batch(110, 40, 0);
	leaves(0, 112, false);
	waking(WAKEUP, 117, 10, 0);
	comes(0, 117);
	batch(120, 5, 0);
	assert_string_equal(told, "sample 3 2; by -1 ; sample 117 62; by -1 ; ");
	assert_int_equal(thread.account.asleep_ns, 3 * MS);
}

/* An interrupt is no thread; a thread that is woken while its stack is copied is woken, too. */
static void test_by_an_interrupt(void **state)
{
	(void)state;
	leaves(0, 1, false);
	waking(WAKING, 1.005, 10, 0x08);
	waking(WAKEUP, 3, 10, 0x08);
	comes(0, 3);
	batch(10, 8, 0);
	assert_string_equal(told, "sample 3 2; by 0 ; ");
}

static void sleep_once(double from_ms)
{
	leaves(0, from_ms, false);
	waking(WAKING, from_ms + 1.9, 10, 0);
	waking(WAKEUP, from_ms + 2, 10, 0);
	comes(0, from_ms + 2);
	batch(from_ms + 4, 3, 0);
}

/* A waker whose end comes before its record is read. */
static void test_by_one_that_has_ended(void **state)
{
	(void)state;
	waker_has_ended = true;
	sleep_once(1);
	assert_string_equal(told, "sample 3 2; by 33 an ended thread; ");
	waker_has_ended = false;
	sleep_once(6);
	waker_has_ended = true;
	*told = 0;
	sleep_once(11);
	assert_string_equal(told, "sample 13 2; by 33 named33; ");
}

static void test_preempted_is_not_asleep(void **state)
{
	(void)state;
	leaves(0, 1, true);
	comes(0, 8);
	batch(10, 3, 7);
	assert_string_equal(told, "");
	assert_true(thread.sleeps.are_recorded);
}

/* Of sleeps below the least length one stands for all, once they are as long together. */
static void test_short_ones_together(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		leaves(0, 1 + i, false);
		waking(WAKEUP, 1.4 + i, 10, 0);
		comes(0, 1.4 + i);
	}
	batch(10, 8, 0);
	assert_string_equal(told, "sample 3.4 1.2; by -1 ; ");
	assert_int_equal(thread.sleeps.short_ns, 4 * MS / 5);
}

/* A sleep that goes on has its sample at the end of the batch, and the rest of its length when it is over. */
static void test_over_several_batches(void **state)
{
	(void)state;
	leaves(0, 5, false);
	batch(10, 5, 0);
	assert_string_equal(told, "sample 10 5; ");
	clock_ns = 20 * MS;
	sf_perf_sleeps_begin(&perf.sleeps, clock_ns);
	assert_true(sf_perf_sleeps_look(&perf, &thread, 21 * MS));
	assert_string_equal(told, "sample 10 5; again 20 10; ");
	waking(WAKING, 38, 10, 0);
	waking(WAKEUP, 38, 10, 0);
	comes(0, 39);
	batch(40, 1, 1);
	assert_string_equal(told, "sample 10 5; again 20 10; again 38 18; by 33 named33; ");
	assert_int_equal(thread.sleeps.sampled_ns, 33 * MS);
}

/*
 * The kernel's copy of a sleep that goes on was too short: it is looked at, once, and its rest belongs to what the look
 * has read.
 */
static void test_a_copy_that_is_too_short(void **state)
{
	(void)state;
	leaves(0, 5, false);
	batch(10, 5, 0);
	thread.needs.only_cut = 256;
	clock_ns = 20 * MS;
	sf_perf_sleeps_begin(&perf.sleeps, clock_ns);
	assert_false(sf_perf_sleeps_look(&perf, &thread, 21 * MS));
	assert_string_equal(told, "sample 10 5; again 20 10; ");
	assert_true(sf_thread_awake(&thread)); /* so that the look reads where it sleeps */
	thread.sampled = true;
	sf_perf_sleeps_looked(&perf, &thread);
	assert_false(sf_perf_sleeps_look(&perf, &thread, 22 * MS)); /* by looks from now on */
	assert_true(thread.sleep.has_sample);
	waking(WAKEUP, 38, 10, 0);
	comes(0, 39);
	batch(40, 1, 1);
	assert_string_equal(told, "sample 10 5; again 20 10; again 38 18; by -1 ; ");
}

/* Of records that are not the thread's. */
static void batch_of_others(double ms)
{
	waking(WAKEUP, ms, 99, 0);
	batch(ms, 0, 0);
}

/* At the end of the batch in which it is known, whichever thread sleeps next, and once for each size. */
static void test_copies_grow_as_soon_as_one_is_too_short(void **state)
{
	(void)state;
	batch_of_others(10);
	assert_int_equal(perf.sleeps.stack_wanted, 0);
	longest_cut = 256;
	batch_of_others(20);
	assert_int_equal(perf.sleeps.stack_wanted, 4 * 256);
	perf.sleeps.stack_wanted = 0; /* but these could not be opened */
	batch_of_others(30);
	assert_int_equal(perf.sleeps.stack_wanted, 0);
	perf.sleeps.switches.stack_bytes = 4 * 256;
	batch_of_others(40);
	assert_int_equal(perf.sleeps.stack_wanted, 0); /* a copy of the earlier size */
	longest_cut = 4 * 256;
	batch_of_others(50);
	assert_int_equal(perf.sleeps.stack_wanted, 16 * 256);
	perf.sleeps.switches.stack_bytes = longest_cut = 32768;
	batch_of_others(60);
	assert_int_equal(perf.sleeps.stack_wanted, 4 * 32768);
	perf.sleeps.stack_wanted = 0;
	perf.sleeps.switches.stack_bytes = longest_cut = SF_PERF_MAX_STACK; /* there are no longer ones */
	batch_of_others(70);
	assert_int_equal(perf.sleeps.stack_wanted, 0);
}

/* Where a stack goes on behind a full copy, before a walk has shown that. */
static void test_copies_grow_where_stacks_are_deeper(void **state)
{
	(void)state;
	depth = 256; /* this copy has all of it */
	leaves(0, 2, false);
	batch(10, 2, 0);
	assert_int_equal(n_depths, 1);
	assert_int_equal(perf.sleeps.stack_wanted, 0);
	depth = 257;
	batch_of_others(20); /* in which no copy was full */
	assert_int_equal(n_depths, 1);
	comes(0, 21);
	leaves(0, 22, false);
	batch(30, 2, 1);
	assert_int_equal(n_depths, 2);
	assert_int_equal(perf.sleeps.stack_wanted, 4 * 256);
	perf.sleeps.stack_wanted = 0;
	perf.sleeps.switches.stack_bytes = 4 * 256;
	comes(0, 31);
	leaves(0, 32, false); /* a copy of the earlier size */
	batch(40, 2, 1);
	assert_int_equal(n_depths, 2);
	assert_int_equal(perf.sleeps.stack_wanted, 0);
}

/* A look costs some: where environments make all copies of a program full there is an end of them. */
static void sleeps_at(double ms, uint32_t how_deep)
{
	depth = how_deep;
	leaves(0, ms, false);
	comes(0, ms + 2);
	batch(ms + 5, 1, 0);
}

/* A command that has just been launched: its copies are longer than those of its records, which are full. */
static void launch(void)
{
	perf.sleeps.later_bytes = 256;
	perf.sleeps.switches.stack_bytes = SF_PERF_STACK_LAUNCHED;
	perf.sleeps.attached_ns = clock_ns;
}

static void test_copies_shrink_after_the_start_of_a_command(void **state)
{
	(void)state;
	launch();
	sleeps_at(50, 300); /* the loader's */
	sleeps_at(150, 200);
	assert_int_equal(perf.sleeps.stack_wanted, 0);
	sleeps_at(310, 200);
	assert_int_equal(perf.sleeps.stack_wanted, 256);
	perf.sleeps.stack_wanted = 0;
	sleeps_at(410, 200);
	assert_int_equal(perf.sleeps.stack_wanted, 0); /* once */
}

static void test_copies_of_a_command_that_sleeps_deep_do_not_shrink(void **state)
{
	(void)state;
	launch();
	sleeps_at(150, 300);
	sleeps_at(310, 200);
	assert_int_equal(perf.sleeps.stack_wanted, 0);
}

static void test_looks_at_depths_have_an_end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		leaves(0, 10.0 * i + 2, false);
		comes(0, 10.0 * i + 4);
		batch(10.0 * i + 10, 2, 0);
	}
	assert_in_range(n_depths, 20, 100);
}

/* A thread that sleeps in that place, in a batch in which its copy was full. */
static void sleeps_on(uint64_t pc, uint64_t sp, enum sf_copy_result result)
{
	read_pc = pc;
	read_sp = sp;
	read_result = result;
	leaves(0, (double)clock_ns / 1e6 + 1, false);
	batch((double)clock_ns / 1e6 + 5, 1, 0);
}

/*
 * A copy that is full may not be all of the stack. While the thread sleeps in the same place, its stack is read there. The
 * sample has all registers.
 */
static void test_a_sleep_that_goes_on_is_read(void **state)
{
	const struct sf_regs regs = regs_of_record();
	const uint64_t sp = regs.r[sf_arch_host()->sp];
	(void)state;

	sleeps_on(regs.pc, sp, SF_COPY_DONE);
	assert_string_equal(told, "sample 5 4; ");
	assert_int_equal(buffer.copy.stack_size, 1000);
	assert_int_equal(buffer.copy.room, 1000);
	assert_memory_equal(&buffer.copy.regs, &regs, sizeof(regs));
	assert_false(buffer.copy.flags & SF_STILL_UNHELD);
	sleeps_on(regs.pc + 1, sp, SF_COPY_DONE);
	assert_int_equal(buffer.copy.stack_size, 256);
	sleeps_on(regs.pc, sp + 8, SF_COPY_DONE);
	assert_int_equal(buffer.copy.stack_size, 256);
	sleeps_on(regs.pc, sp, SF_COPY_MOVED);
	assert_int_equal(buffer.copy.stack_size, 256);
}

/* The kernel's frame of all records is in this function from now on. */
static void sleep_in(const char *function)
{
	struct sf_kernel_symbols symbols = { 0 };
	char line[100];

	snprintf(line, sizeof(line), "ffffffff80000000 T %s", function);
	assert_true(sf_kernel_symbols_add(&symbols, line) && sf_kernel_symbols_add(&symbols, "ffffffff82000000 T last"));
	sf_kernel_symbols_sort(&symbols);
	sf_perf_waits_deinit(&perf.sleeps.waits);
	assert_true(sf_perf_waits_take(&perf.sleeps.waits, &symbols));
	sf_kernel_symbols_deinit(&symbols);
}

/*
 * Of a thread that has begun to run another program, and has no sample in it, only in a call that is this program's own:
 * elsewhere the registers may be of the program before.
 */
static void test_a_sleep_after_an_exec_is_read(void **state)
{
	static const char *const functions[] = { "__x64_sys_futex", "__x64_sys_execve", "__x64_sys_execveat", "asm_exc_page_fault", "other" };
	const struct sf_regs regs = regs_of_record();
	(void)state;

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		sleep_in(functions[i]);
		thread.exec_ns = clock_ns + 1;
		sleeps_on(regs.pc, regs.r[sf_arch_host()->sp], SF_COPY_DONE);
		assert_int_equal(buffer.copy.stack_size, i == 0 ? 1000 : 256);
	}
	sf_perf_waits_deinit(&perf.sleeps.waits);
}

/*
 * A thread that sleeps in the call that runs another program has the kernel's frames with it: the program before may be gone
 * when the stack is walked, and then it has no others.
 */
static void test_a_sleep_in_an_exec(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		sleep_in(i ? "__x64_sys_execve" : "__x64_sys_futex");
		leaves(0, 1 + 10 * i, false);
		batch(10 + 10 * i, 1, 0);
		assert_int_equal((buffer.copy.flags & SF_STILL_IN_EXEC) != 0, i);
		assert_int_equal(buffer.copy.n_kernel, i);
		comes(0, 10.1 + 10 * i);
		batch(10.5 + 10 * i, 0, 0);
	}
	sf_perf_waits_deinit(&perf.sleeps.waits);
}

/* It has the kernel's copy alone. */
static void test_a_sleep_that_is_over_is_not_read(void **state)
{
	const struct sf_regs regs = regs_of_record();
	(void)state;

	read_pc = regs.pc;
	read_sp = regs.r[sf_arch_host()->sp];
	read_result = SF_COPY_DONE;
	sleep_once(1);
	assert_int_equal(buffer.copy.stack_size, 256);
}

/* What a shorter copy lacked is no reason to look at a thread. */
static void test_a_shorter_copy_says_nothing_of_the_longest(void **state)
{
	(void)state;
	perf.sleeps.switches.stack_bytes = SF_PERF_MAX_STACK;
	thread.needs.only_cut = SF_PERF_MAX_STACK / 4;
	leaves(0, 2, false);
	batch(4, 2, 0);
	assert_string_equal(told, "sample 4 2; ");
	assert_true(thread.sleeps.are_recorded);
	assert_int_equal(thread.needs.only_cut, 0);
}

/* One that is short as yet is kept, with its stack, which is not in the ring any more. */
static void test_kept_for_the_next_batch(void **state)
{
	(void)state;
	leaves(0, 9.5, false);
	batch(10, 9.5, 0);
	assert_string_equal(told, "");
	assert_int_equal(perf.sleeps.kept.n, 1);
	memset((uint8_t *)switches[0] + RING_PAGE, 0xff, SIZE);
	waking(WAKEUP, 11.5, 10, 0);
	comes(1, 11.5);
	batch(20, 8.5, 0);
	assert_string_equal(told, "sample 11.5 2; by -1 ; ");
	assert_int_equal(perf.sleeps.kept.n, 0);
	assert_int_equal(perf.sleeps.n_kept_bytes, 0);
	assert_null(thread.sleep.record);
}

/* Where nothing says when it was woken, a sleep is no longer than the kernel's counts leave. */
static void test_without_wakings(void **state)
{
	(void)state;
	leaves(0, 1, false);
	comes(0, 100);
	batch(100, 1, 60);
	assert_string_equal(told, "sample 100 44; by -1 ; "); /* 39 by the counts; 5 ms more than that are let pass */
}

/* stillframe itself waits for a CPU amid the batch, and reads the counts then. The thread has run meanwhile. */
static void test_counts_are_of_the_moment_they_are_read(void **state)
{
	(void)state;
	leaves(0, 1, false);
	comes(0, 43);
	late_batch(44, 50, 52, 0);
	assert_string_equal(told, "sample 43 42; by -1 ; ");
	assert_int_equal(thread.account.asleep_ns, 0);
}

static void lose(void)
{
	struct made_record made;

	made_begin(&made, PERF_RECORD_LOST, 0);
	made_u64(&made, 1);
	made_u64(&made, 5);
	made_identity(&made, 10, 10, 9 * MS, 0);
	made_end(&made);
	ring_append(switches[0], SIZE, made.bytes, made.size);
}

/* After a loss, and of a thread whose copies are too short, looks are what is left. */
static void test_what_is_not_told_is_looked_at(void **state)
{
	struct sf_thread *threads[] = { &thread };
	bool has_run;

	(void)state;
	perf.base.watch.threads.items = threads;
	perf.base.watch.threads.n = 1;
	leaves(0, 2, false);
	batch(4, 2, 0);
	assert_false(sf_thread_awake(&thread));
	lose();
	batch(10, 3, 0);
	assert_int_equal(perf.sleeps.n_lost, 5);
	assert_false(thread.sleeps.are_recorded);
	assert_true(sf_thread_awake(&thread)); /* so that the look reads where it sleeps */
	assert_false(sf_perf_sleeps_look(&perf, &thread, 10 * MS));
	thread.needs.only_cut = SF_PERF_MAX_STACK;
	leaves(0, 12, false);
	batch(20, 5, 0);
	assert_false(thread.sleeps.are_recorded);
	assert_string_equal(told, "sample 4 2; ");
	thread.sampled = sf_thread_measure(&thread, 21 * MS, &has_run); /* the look has read it */
	sf_thread_take_asleep(&thread, MS);
	clock_ns = 21 * MS;
	sf_perf_sleeps_looked(&perf, &thread);
	comes(0, 20.5);             /* before the look, which found the sleep after this */
	leaves(0, 20.7, false);
	waking(WAKEUP, 25, 10, 0);
	comes(0, 25);
	batch(30, 5, 0);
	assert_string_equal(told, "sample 4 2; again 25 4; by -1 ; ");
}

/* Too many sleeps: a part of them has samples, which stand for all of the time. */
static void test_a_part_stands_for_all(void **state)
{
	uint64_t sum_ns;

	(void)state;
	perf.sleeps.all_from_ns = 20 * MS;
	for (int i = 0; i < 80; i++) {
		leaves(0, 1 + 3 * i, false);
		waking(WAKEUP, 3 + 3 * i, 10, 0);
		comes(0, 3 + 3 * i);
	}
	batch(250, 90, 0);
	sum_ns = thread.sleeps.sampled_ns + thread.sleeps.passed_ns;
	assert_int_equal(sum_ns, 160 * MS);
	assert_in_range(perf.sleeps.n_sent, 1, 30); /* a tenth of 80 */
	assert_int_equal(perf.sleeps.n_wanted, 80);
}

/* A thread that ends after two sleeps, and is told three times: no more sleeps have room than there are. */
static void test_an_end_counts_once(void **state)
{
	(void)state;
	sleep_in("do_task_dead");
	for (int i = 0; i < 3; i++) {
		leaves(0, 1 + 3 * i, false);
		if (i < 2)
			comes(0, 3 + 3 * i);
	}
	batch(20, 3, 0);
	assert_string_equal(told, "");
	assert_int_equal(perf.sleeps.n_wanted, 3);
	assert_int_equal(perf.sleeps.n_sent, 3);
	sf_perf_waits_deinit(&perf.sleeps.waits);
}

/*
 * A sleep that the limit passes over and that goes on is not looked at, which would cost more than its walk. It has its
 * sample when it is long enough for that, with all of its time. Its length counts once.
 */
static void test_what_is_passed_over_is_not_looked_at(void **state)
{
	(void)state;
	thread.sleeps.sampled_ns = MS; /* it is not the first one */
	perf.sleeps.all_from_ns = 1000 * MS;
	leaves(0, 3, false); /* the lot of this time is 0.96 */
	batch(10, 3, 0);
	assert_string_equal(told, "");
	assert_int_equal(perf.sleeps.n_wanted, 1);
	for (int ms = 30; ms <= 70; ms += 20) {
		batch(ms, 0, 0);
		assert_string_equal(told, "");
		assert_int_equal(perf.sleeps.wanted_ns, (ms - 3) * MS);
		assert_int_equal(perf.sleeps.n_wanted, 1); /* also where a scan reads several batches before the limit is looked at */
		assert_true(thread.sleeps.are_recorded);
		assert_true(sf_perf_sleeps_look(&perf, &thread, (uint64_t)ms * MS + 1));
	}
	batch(2003, 0, 0);
	assert_string_equal(told, "sample 2003 2000; ");
	waking(WAKEUP, 2010, 10, 0);
	comes(0, 2010);
	batch(2020, 10, 0);
	assert_string_equal(told, "sample 2003 2000; again 2010 7; by -1 ; ");
	assert_int_equal(perf.sleeps.n_kept_bytes, 0);
}

/* The thread's first one has a sample whatever that costs, unless such walks have run into debt. It stands for itself. */
static void test_the_first_one_has_a_sample(void **state)
{
	(void)state;
	perf.sleeps.all_from_ns = 1000000 * MS;
	perf.sleeps.credit_ns = -SF_PERF_WALK_CREDIT_NS;
	for (int i = 0; i < 3; i++) {
		leaves(0, 3 + 10 * i, false);
		waking(WAKEUP, 5 + 10 * i, 10, 0);
		comes(0, 5 + 10 * i);
		batch(10 + 10 * i, 8, 0);
		assert_string_equal(told, i < 1 ? "" : "sample 15 2; by -1 ; ");
		perf.sleeps.credit_ns = 0;
	}
	assert_int_equal(thread.sleeps.passed_ns, 4 * MS);
}

/* The sleeps that go on at the end of the recording have samples, also those that the limit has passed over, and for the thread's others. */
static void test_at_the_end_all_have_samples(void **state)
{
	(void)state;
	thread.sleeps.sampled_ns = MS;
	perf.sleeps.all_from_ns = 1000000 * MS;
	leaves(0, 1, false);
	waking(WAKEUP, 3, 10, 0);
	comes(0, 3);
	leaves(0, 5, false);
	batch(10, 3, 0);
	assert_string_equal(told, "");
	perf.base.last_tick = true;
	batch(20, 0, 0);
	assert_string_equal(told, "sample 20 17; ");
	assert_int_equal(thread.sleeps.passed_ns, 0);
}

/* Walks of sleeps give way to samples of CPU time, but for a sixteenth of the limit. */
static void test_samples_of_cpu_time_come_first(void **state)
{
	static const struct {
		uint64_t part;
		unsigned least, most;
	} cases[] = { { SF_PERF_ALL, 360, 440 }, { SF_PERF_ALL / 4 * 3, 180, 220 }, { SF_PERF_ALL / 4, 45, 55 }, { 0, 45, 55 } };

	(void)state;
	perf.base.limit.share = 2;
	perf.base.limit.n_cpus = 1;
	for (unsigned i = 0; i < 4; i++) {
		perf.budget.part = cases[i].part;
		perf.sleeps.paid_ns = 1000 * MS;
		perf.sleeps.credit_ns = 0;
		perf.sleeps.n_wanted = 1000;
		perf.sleeps.wanted_ns = 1000000 * MS;
		perf.sleeps.n_sent = 0;
		sf_perf_sleeps_limit(&perf, 2000 * MS);
		assert_in_range(1000000 * MS / perf.sleeps.all_from_ns, cases[i].least, cases[i].most);
	}
}

/* A thread that has ended has no counts: its sleeps have their lengths all the same. */
static void test_of_an_ended_thread(void **state)
{
	(void)state;
	leaves(0, 1, false);
	comes(0, 81);
	has_ended = true;
	batch(100, 0, 0);
	assert_string_equal(told, "sample 81 80; by -1 ; ");
}

static void test_a_program_that_is_refused_has_no_sleeps(void **state)
{
	(void)state;
	thread.is_refused = true;
	leaves(0, 1, false);
	comes(0, 4);
	leaves(0, 5, false);
	batch(10, 3, 0);
	assert_string_equal(told, "");
}

/* It came into sight when its first records were read: what it slept before is in no count, and has its length all the same. */
static void test_before_it_came_into_sight(void **state)
{
	(void)state;
	thread.seen_ns = thread.sleeps.met_ns = 20 * MS;
	leaves(0, 1, false);
	comes(0, 16);
	leaves(0, 18, false);
	batch(20, 0, 0);
	assert_string_equal(told, "sample 16 15; by -1 ; sample 20 2; ");
	assert_int_equal(thread.account.asleep_ns, 0);
	comes(0, 24);
	batch(30, 6, 0);
	assert_string_equal(told, "sample 16 15; by -1 ; sample 20 2; again 24 4; by -1 ; ");
	assert_int_equal(thread.account.asleep_ns, 0);
}

static void stack_of(unsigned cpu, double ms)
{
	struct made_record made;

	made_sample(&made, 10, 10, (uint64_t)(ms * 1e6), NULL, 0, PERF_SAMPLE_REGS_ABI_64, 256, 256);
	ring_append(switches[cpu], SIZE, made.bytes, made.size);
}

/* While events with longer copies take the place of others each switch is told twice. */
static void test_told_twice(void **state)
{
	(void)state;
	stack_of(0, 1);
	stack_of(0, 1.001);
	for (int i = 0; i < 2; i++)
		append_switch(0, (uint64_t)(1.002e6 + i), PERF_RECORD_MISC_SWITCH_OUT);
	waking(WAKEUP, 5, 10, 0);
	comes(0, 5.1);
	comes(0, 5.101);
	batch(10, 5.9, 0.1);
	assert_string_equal(told, "sample 5 3.999; by -1 ; ");
	assert_true(thread.sleeps.are_recorded);
}

/* 70 switches in each 10 ms, of which the limit allows 1 ms. Returns whether the events pause in 0.5 s. */
static bool pauses_with(uint32_t stack_bytes)
{
	perf.sleeps.switches.stack_bytes = SF_PERF_MAX_STACK;
	perf.base.limit.share = 5;
	perf.base.limit.n_cpus = 2;
	for (uint64_t ms = 1010; ms <= 1500; ms += 10) {
		perf.sleeps.n_switches = 70;
		perf.sleeps.n_copied = (uint64_t)70 * stack_bytes;
		sf_perf_sleeps_limit(&perf, ms * MS);
	}
	return perf.sleeps.n_paused;
}

/* The limit counts what was copied, not the room for it. */
static void test_what_is_not_copied_costs_nothing(void **state)
{
	(void)state;
	assert_false(pauses_with(256));
	assert_true(pauses_with(SF_PERF_MAX_STACK));
}

/* All threads of the machine wake others. Where that is too often, it is no longer told. */
static void test_wakings_have_a_limit(void **state)
{
	(void)state;
	perf.base.limit.share = 5;
	perf.base.limit.n_cpus = 2;
	for (uint64_t ms = 100; ms <= 2000; ms += 100) {
		for (int i = 0; i < 200; i++)
			waking(WAKEUP, (double)ms - 1, 99, 0);
		batch((double)ms, 0, 0);
		sf_perf_sleeps_limit(&perf, ms * MS);
	}
	assert_true(perf.sleeps.has_wakings); /* 2,000 a second */
	for (uint64_t ms = 2001; perf.sleeps.has_wakings && ms <= 2400; ms++) {
		for (int i = 0; i < 200; i++)
			waking(WAKEUP, (double)ms - 0.1, 99, 0);
		batch((double)ms, 0, 0);
		sf_perf_sleeps_limit(&perf, ms * MS);
	}
	assert_false(perf.sleeps.has_wakings); /* 200,000 a second */
	waking(WAKEUP, 2400, 99, 0);
	batch(2410, 0, 0);
	assert_int_equal(wakings->data_tail, wakings->data_head); /* else the ring would be full for ever */
	assert_true(perf.sleeps.on);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_until_it_was_ready),
		TEST(test_woken_while_the_rings_are_read),
		TEST(test_a_batch_ends_as_it_leaves),
		TEST(test_sleeps_without_records),
		TEST(test_a_sleep_that_is_counted_as_a_wait),
		TEST(test_records_of_another_clock),
		TEST(test_records_before_a_pause),
		TEST(test_an_end_while_the_rings_are_read),
		TEST(test_an_end_without_a_switch),
		TEST(test_by_an_interrupt),
		TEST(test_by_one_that_has_ended),
		TEST(test_preempted_is_not_asleep),
		TEST(test_short_ones_together),
		TEST(test_over_several_batches),
		TEST(test_a_copy_that_is_too_short),
		TEST(test_copies_grow_as_soon_as_one_is_too_short),
		TEST(test_copies_grow_where_stacks_are_deeper),
		TEST(test_copies_shrink_after_the_start_of_a_command),
		TEST(test_copies_of_a_command_that_sleeps_deep_do_not_shrink),
		TEST(test_looks_at_depths_have_an_end),
		TEST(test_a_sleep_that_goes_on_is_read),
		TEST(test_a_sleep_after_an_exec_is_read),
		TEST(test_a_sleep_in_an_exec),
		TEST(test_a_sleep_that_is_over_is_not_read),
		TEST(test_a_shorter_copy_says_nothing_of_the_longest),
		TEST(test_kept_for_the_next_batch),
		TEST(test_without_wakings),
		TEST(test_counts_are_of_the_moment_they_are_read),
		TEST(test_what_is_not_told_is_looked_at),
		TEST(test_a_part_stands_for_all),
		TEST(test_an_end_counts_once),
		TEST(test_what_is_passed_over_is_not_looked_at),
		TEST(test_the_first_one_has_a_sample),
		TEST(test_at_the_end_all_have_samples),
		TEST(test_samples_of_cpu_time_come_first),
		TEST(test_of_an_ended_thread),
		TEST(test_before_it_came_into_sight),
		TEST(test_a_program_that_is_refused_has_no_sleeps),
		TEST(test_told_twice),
		TEST(test_what_is_not_copied_costs_nothing),
		TEST(test_wakings_have_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

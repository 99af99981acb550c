/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shadow stacks (frozen/coreclr/shadow_stack.h), as hooks write them and readers see them. Frames of the tests are
 * numbers: a method at depth n has the frame BASE - 16 * n.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/coreclr/shadow_writer.h"

#define DEPTH 64
#define BASE UINT64_C(0x7fff00000000)
#define FRAMES 256

static struct sf_shadow_entry entries[DEPTH];
static struct sf_shadow_stack stack;

static uint64_t frame(unsigned depth)
{
	return BASE - 16 * depth;
}

static int set_up(void **state)
{
	(void)state;
	memset(entries, 0, sizeof(entries));
	stack = (struct sf_shadow_stack){ .entries = entries, .mask = DEPTH - 1 };
	return 0;
}

/* A method's number is its FunctionID, and its pc. */
static void enter(unsigned method, unsigned depth)
{
	sf_shadow_enter(&stack, method, method, frame(depth));
}

static void leave(unsigned method, unsigned depth)
{
	sf_shadow_leave(&stack, method, frame(depth));
}

/* Reads with the stack pointer of this depth; `methods`: the innermost first, 0 at the end. */
static void is_read(unsigned depth, enum sf_end end, const unsigned *methods)
{
	struct sf_frame frames[FRAMES];
	struct sf_trace trace = { .frames = frames, .capacity = FRAMES, .end = SF_END_EMPTY };
	uint32_t n = 0;

	assert_int_equal(sf_shadow_read(&stack, frame(depth), &trace), SF_SHADOW_READ);
	for (; methods[n]; n++) {
		assert_true(n < trace.n_frames);
		assert_int_equal(frames[n].pc, methods[n]);
		assert_int_equal(frames[n].via, SF_VIA_HOOKS);
	}
	assert_int_equal(trace.n_frames, n);
	assert_int_equal(trace.end, end);
}

#define IS(depth, ...) is_read(depth, SF_END_ROOT, (const unsigned[]){ __VA_ARGS__, 0 })
#define IS_EMPTY(depth) is_read(depth, SF_END_ROOT, (const unsigned[]){ 0 })

static void test_methods_are_entered_and_left(void **state)
{
	(void)state;
	IS_EMPTY(0);
	enter(1, 1);
	enter(2, 2);
	enter(2, 3);
	IS(3, 2, 2, 1);
	leave(2, 3);
	IS(2, 2, 1);
	enter(3, 3);
	IS(3, 3, 2, 1);
	leave(3, 3);
	leave(2, 2);
	leave(1, 1);
	IS_EMPTY(0);
}

static void test_a_tail_call_takes_the_frame(void **state)
{
	(void)state;
	enter(1, 1);
	enter(2, 2);
	leave(2, 2);
	enter(3, 2);
	IS(2, 3, 1);
}

/* A method whose frame is larger when it leaves than when it was entered. */
static void test_a_frame_that_grew(void **state)
{
	(void)state;
	enter(1, 1);
	leave(1, 20);
	IS_EMPTY(0);
}

static void test_what_was_left_without_a_hook(void **state)
{
	(void)state;
	enter(1, 1);
	enter(2, 2);
	enter(3, 3);
	IS(2, 2, 1); /* the thread stands in method 2 again */
	enter(4, 3);
	IS(3, 4, 2, 1);
	enter(5, 2); /* a callee of method 1 */
	IS(2, 5, 1);
	enter(6, 3);
	leave(1, 1);
	IS_EMPTY(3);
}

static void test_the_leave_of_an_unknown_method(void **state)
{
	(void)state;
	leave(9, 5);
	enter(1, 1);
	leave(9, 2);
	IS(2, 1);
}

/* The code that handles an exception runs at depth 20, above the frames that are unwound. */
#define HANDLER 20

static void test_an_exception_unwinds(void **state)
{
	(void)state;
	for (unsigned i = 1; i <= 4; i++)
		enter(i, i);
	sf_shadow_unwind_begins(&stack, 4);
	IS(HANDLER, 4, 3, 2, 1);
	sf_shadow_unwind_ends(&stack);
	sf_shadow_unwind_begins(&stack, 3);
	enter(7, HANDLER); /* in the finally block of method 3 */
	IS(HANDLER, 7, 3, 2, 1);
	leave(7, HANDLER);
	sf_shadow_unwind_ends(&stack);
	sf_shadow_unwind_begins(&stack, 2);
	sf_shadow_caught(&stack);
	enter(8, HANDLER); /* in the catch block of method 2 */
	IS(HANDLER, 8, 2, 1);
	leave(8, HANDLER);
	enter(9, 3);       /* method 2 goes on */
	IS(3, 9, 2, 1);
}

static void test_recursion_is_unwound_from_the_innermost(void **state)
{
	(void)state;
	enter(1, 1);
	for (unsigned i = 2; i <= 4; i++)
		enter(2, i);
	for (unsigned i = 0; i < 2; i++) {
		sf_shadow_unwind_begins(&stack, 2);
		sf_shadow_unwind_ends(&stack);
	}
	IS(HANDLER, 2, 1);
}

/* .NET 9 dispatches exceptions in managed code, whose methods have entries, too. */
static void test_entries_above_the_unwound_frame(void **state)
{
	(void)state;
	enter(1, 1);
	enter(2, 2);
	enter(7, HANDLER);
	sf_shadow_unwind_begins(&stack, 2);
	enter(8, HANDLER + 1);
	sf_shadow_unwind_ends(&stack);
	IS(HANDLER + 1, 8, 7, 1);
	sf_shadow_unwind_begins(&stack, 1);
	sf_shadow_caught(&stack);
	IS(1, 1); /* the dispatch has ended without a hook */
	enter(3, 2);
	IS(2, 3, 1);
}

static void test_exceptions_in_finally_blocks(void **state)
{
	(void)state;
	for (unsigned i = 1; i <= 3; i++)
		enter(i, i);
	sf_shadow_unwind_begins(&stack, 3);
	enter(4, HANDLER);
	sf_shadow_unwind_begins(&stack, 4);
	sf_shadow_unwind_ends(&stack);
	sf_shadow_unwind_begins(&stack, 3); /* the finally block catches it */
	sf_shadow_caught(&stack);
	IS(HANDLER, 3, 2, 1);
	sf_shadow_unwind_begins(&stack, 3); /* the finally block throws: its frame begins again, and ends once */
	sf_shadow_unwind_ends(&stack);
	sf_shadow_unwind_begins(&stack, 2);
	IS(HANDLER, 2, 1);
	sf_shadow_unwind_ends(&stack);
	sf_shadow_unwind_begins(&stack, 1);
	sf_shadow_caught(&stack);
	IS(HANDLER, 1);
	sf_shadow_unwind_ends(&stack); /* of nothing */
	IS(HANDLER, 1);
}

/* Each leaves a frame that begins and does not end. */
static void test_many_exceptions_out_of_finally_blocks(void **state)
{
	(void)state;
	enter(1, 1);
	for (unsigned i = 0; i < 2 * SF_SHADOW_UNWINDS; i++) {
		enter(2, 2);
		enter(3, 3);
		sf_shadow_unwind_begins(&stack, 3);
		sf_shadow_unwind_begins(&stack, 3);
		sf_shadow_unwind_ends(&stack);
		sf_shadow_unwind_begins(&stack, 2);
		sf_shadow_unwind_ends(&stack);
		IS(HANDLER, 1);
		sf_shadow_unwind_begins(&stack, 1);
		sf_shadow_caught(&stack);
	}
}

static void test_methods_without_hooks_are_unwound(void **state)
{
	(void)state;
	enter(1, 1);
	enter(2, 3);
	sf_shadow_unwind_begins(&stack, 9);
	sf_shadow_unwind_ends(&stack);
	sf_shadow_unwind_begins(&stack, 2);
	sf_shadow_unwind_begins(&stack, 9); /* in the finally block */
	sf_shadow_caught(&stack);
	IS(HANDLER, 2, 1);
	sf_shadow_unwind_ends(&stack);
	IS(HANDLER, 1);
}

static void test_more_unwinds_than_there_is_room_for(void **state)
{
	(void)state;
	stack.base = 77;
	for (unsigned i = 1; i <= SF_SHADOW_UNWINDS + 3; i++) {
		enter(i, i);
		sf_shadow_unwind_begins(&stack, i);
	}
	for (unsigned i = 0; i < 10 * SF_SHADOW_UNWINDS; i++)
		sf_shadow_unwind_ends(&stack);
	assert_int_equal(stack.base, 77);
	IS(HANDLER, 19, 18, 17);
}

static void test_a_deep_stack_keeps_the_innermost(void **state)
{
	unsigned methods[DEPTH + 1] = { 0 };

	(void)state;
	for (unsigned i = 1; i <= DEPTH + 10; i++)
		enter(i, i);
	for (unsigned i = 0; i < DEPTH; i++)
		methods[i] = DEPTH + 10 - i;
	is_read(DEPTH + 10, SF_END_DEPTH, methods);
	for (unsigned i = DEPTH + 10; i > 5; i--)
		leave(i, i);
	is_read(5, SF_END_DEPTH, (const unsigned[]){ 0 }); /* those were lost */
	enter(7, 6);
	is_read(6, SF_END_DEPTH, (const unsigned[]){ 7, 0 });
	leave(7, 6);
	leave(1, 1);
	IS_EMPTY(0);
	enter(1, 1);
	IS(1, 1);
}

static void test_a_full_trace(void **state)
{
	struct sf_frame frames[2];
	struct sf_trace trace = { .frames = frames, .capacity = 2 };

	(void)state;
	for (unsigned i = 1; i <= 3; i++)
		enter(i, i);
	assert_int_equal(sf_shadow_read(&stack, frame(3), &trace), SF_SHADOW_READ);
	assert_int_equal(trace.n_frames, 2);
	assert_int_equal(trace.end, SF_END_DEPTH);
}

/* --- a reader beside a writer --- */

static _Atomic bool over;

/* A pc is the number of its push, and that of the caller's: a reader sees whether two entries belong together. */
static void *write_at_random(void *arg)
{
	uint32_t numbers[FRAMES] = { 0 }, depth = 0, number = 0;
	uint64_t random = 1;

	(void)arg;
	while (!over) {
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		if (depth && (random >> 62 == 0 || depth == DEPTH + 20)) {
			leave(5, depth--);
			continue;
		}
		depth++;
		numbers[depth] = ++number;
		sf_shadow_enter(&stack, 5, (uint64_t)number << 32 | numbers[depth - 1], frame(depth));
		if (depth > 2 && random >> 60 == 15) /* left without a hook */
			depth -= 2;
	}
	return NULL;
}

static void check_chain(const struct sf_trace *trace)
{
	for (uint32_t i = 0; i + 1 < trace->n_frames; i++) {
		assert_int_equal((uint32_t)trace->frames[i].pc, trace->frames[i + 1].pc >> 32);
		assert_true(trace->frames[i].sp < trace->frames[i + 1].sp);
	}
}

static void test_a_reader_beside_a_writer(void **state)
{
	struct sf_frame frames[FRAMES];
	struct sf_trace trace = { .frames = frames, .capacity = FRAMES };
	unsigned n_read = 0, n_changed = 0;
	pthread_t writer;

	(void)state;
	over = false;
	assert_int_equal(pthread_create(&writer, NULL, write_at_random, NULL), 0);
	while ((n_read < 1000 || n_changed < 1000) && n_read < 20000000) {
		trace.n_frames = 0;
		if (sf_shadow_read(&stack, 0, &trace) == SF_SHADOW_READ) {
			check_chain(&trace);
			n_read++;
		} else {
			assert_int_equal(trace.n_frames, 0);
			n_changed++;
		}
	}
	over = true;
	pthread_join(writer, NULL);
	assert_true(n_read >= 1000);
	assert_true(n_changed > 0);
}

/* --- threads --- */

static struct sf_shadow_table *new_table(void)
{
	struct sf_shadow_table *table = calloc(1, sizeof(*table));

	assert_non_null(table);
	for (unsigned i = 0; i < SF_SHADOW_THREADS; i++) {
		table->stacks[i].entries = entries;
		table->stacks[i].mask = DEPTH - 1;
	}
	return table;
}

static void test_each_thread_has_its_stack(void **state)
{
	struct sf_shadow_table *table = new_table();
	struct sf_shadow_stack *own = sf_shadow_own(table, 4096, getpid());

	(void)state;
	assert_non_null(own);
	assert_ptr_equal(sf_shadow_own(table, 4096, getpid()), own);
	assert_ptr_equal(sf_shadow_find(table, gettid()), own);
	assert_null(sf_shadow_find(table, gettid() + 1));
	sf_shadow_begin_thread(table, 4096); /* a new thread has got the thread pointer of one that ended */
	assert_null(sf_shadow_find(table, gettid()));
	sf_shadow_begin_thread(table, 8192); /* it had none */
	own = sf_shadow_own(table, 4096, getpid());
	assert_ptr_equal(sf_shadow_find(table, gettid()), own);
	free(table);
}

/* A thread id that no thread has. */
static int32_t ended(void)
{
	const pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	return pid;
}

static void test_stacks_of_ended_threads(void **state)
{
	struct sf_shadow_table *table = new_table();
	const int32_t gone = ended();

	(void)state;
	for (unsigned i = 0; i < SF_SHADOW_THREADS; i++)
		table->owners[i] = getppid(); /* no thread of this process, but one that is asked for in that one */
	table->n_used = SF_SHADOW_THREADS;
	assert_null(sf_shadow_own(table, 4096, getppid()));
	assert_null(sf_shadow_own(table, 4096, getppid()));
	assert_int_equal(table->n_without, 1);
	table->owners[7] = gone;
	assert_ptr_equal(sf_shadow_own(table, 8192, getppid()), &table->stacks[7]);
	assert_int_equal(sf_shadow_tid(table->owners[7]), gettid());
	free(table);
}

/* The calling thread has a stack, and calls itself ended: another one takes the stack. */
struct taker {
	struct sf_shadow_table *table;
	struct sf_shadow_stack *taken;
	int32_t tid;
};

static void *take_stack(void *arg)
{
	struct taker *taker = arg;

	taker->tid = gettid();
	taker->taken = sf_shadow_own(taker->table, 8192, getppid());
	return NULL;
}

/* All stacks have been used, so one of an ended thread is taken. Then a new thread gets that one's thread pointer. */
static void test_a_stack_that_another_thread_has_taken(void **state)
{
	struct taker taker = { .table = new_table() };
	pthread_t thread;

	(void)state;
	for (unsigned i = 0; i < SF_SHADOW_THREADS; i++)
		taker.table->owners[i] = getppid();
	taker.table->owners[7] = 0;
	assert_ptr_equal(sf_shadow_own(taker.table, 4096, getppid()), &taker.table->stacks[7]);
	taker.table->owners[7] = ended();
	assert_int_equal(pthread_create(&thread, NULL, take_stack, &taker), 0);
	pthread_join(thread, NULL);
	assert_ptr_equal(taker.taken, &taker.table->stacks[7]);
	sf_shadow_begin_thread(taker.table, 4096);
	assert_ptr_equal(sf_shadow_find(taker.table, taker.tid), taker.taken);
	free(taker.table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_methods_are_entered_and_left, set_up),
		cmocka_unit_test_setup(test_a_tail_call_takes_the_frame, set_up),
		cmocka_unit_test_setup(test_a_frame_that_grew, set_up),
		cmocka_unit_test_setup(test_what_was_left_without_a_hook, set_up),
		cmocka_unit_test_setup(test_the_leave_of_an_unknown_method, set_up),
		cmocka_unit_test_setup(test_an_exception_unwinds, set_up),
		cmocka_unit_test_setup(test_recursion_is_unwound_from_the_innermost, set_up),
		cmocka_unit_test_setup(test_entries_above_the_unwound_frame, set_up),
		cmocka_unit_test_setup(test_exceptions_in_finally_blocks, set_up),
		cmocka_unit_test_setup(test_many_exceptions_out_of_finally_blocks, set_up),
		cmocka_unit_test_setup(test_methods_without_hooks_are_unwound, set_up),
		cmocka_unit_test_setup(test_more_unwinds_than_there_is_room_for, set_up),
		cmocka_unit_test_setup(test_a_deep_stack_keeps_the_innermost, set_up),
		cmocka_unit_test_setup(test_a_full_trace, set_up),
		cmocka_unit_test_setup(test_a_reader_beside_a_writer, set_up),
		cmocka_unit_test(test_each_thread_has_its_stack),
		cmocka_unit_test(test_stacks_of_ended_threads),
		cmocka_unit_test(test_a_stack_that_another_thread_has_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

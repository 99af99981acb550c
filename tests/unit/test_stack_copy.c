/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stills of another process's threads: what is copied of a stack, the proof that a sleeper did not move, and how long the
 * next copy is. /proc and the process's memory are replaced (--wrap).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "capture/ptrace/stack_copy.h"
#include "os/pages.h"
#include "os/process.h"

#define SP UINT64_C(0x7ffd00001000)
#define PC UINT64_C(0x401136)
#define OTHER_SP UINT64_C(0x7fff00002008)
#define KIB 1024u

static struct sf_task_look looked_again;
static uint64_t switches[2];
static unsigned n_runs;
static bool has_run[2], has_look;
static size_t readable;
static struct { int32_t pid, tid; uint64_t addr; size_t size; unsigned n, after; } reads;
static struct sf_pages no_pages;
static bool points_to_others;

bool __wrap_sf_task_run(const struct sf_task *task, struct sf_task_run *ret);
bool __wrap_sf_task_look(const struct sf_task *task, struct sf_task_look *ret);
size_t __wrap_sf_pages_read(struct sf_pages *pages, int32_t pid, int32_t tid, void *ret, uint64_t addr, size_t size);
bool __wrap_sf_hold_registers(struct sf_held *held, struct sf_regs *ret);

bool __wrap_sf_task_run(const struct sf_task *task, struct sf_task_run *ret)
{
	(void)task;
	assert_true(n_runs < 2);
	*ret = (struct sf_task_run){ .switches = switches[n_runs] };
	return has_run[n_runs++];
}

bool __wrap_sf_task_look(const struct sf_task *task, struct sf_task_look *ret)
{
	(void)task;
	assert_int_equal(n_runs, 1); /* after the first count, or it would prove nothing */
	*ret = looked_again;
	return has_look;
}

size_t __wrap_sf_pages_read(struct sf_pages *pages, int32_t pid, int32_t tid, void *ret, uint64_t addr, size_t size)
{
	(void)pages;
	reads.pid = pid;
	reads.tid = tid;
	reads.addr = addr;
	reads.size = size;
	reads.n++;
	reads.after = n_runs;
	memset(ret, 0x5a, size < readable ? size : readable);
	/* Each stack has words that point to the other one. */
	for (size_t i = 0; points_to_others && i + 8 <= size; i += 8)
		memcpy((uint8_t *)ret + i, &(uint64_t){ addr < SP + 4096 ? OTHER_SP : SP }, 8);
	return size < readable ? size : readable;
}

static struct { int32_t pid, tid; uint64_t since_ns; } turned;

void __wrap_sf_memory_turn(struct sf_memory *memory, int32_t pid, int32_t tid, uint64_t since_ns);

void __wrap_sf_memory_turn(struct sf_memory *memory, int32_t pid, int32_t tid, uint64_t since_ns)
{
	(void)memory;
	turned.pid = pid;
	turned.tid = tid;
	turned.since_ns = since_ns;
}

static bool can_be_held;

bool __wrap_sf_hold_registers(struct sf_held *held, struct sf_regs *ret)
{
	(void)held;
	ret->known = 0;
	ret->pc = PC;
	sf_reg_set(ret, sf_arch_host()->sp, SP);
	return can_be_held;
}

static struct sf_task_look look;
static struct sf_copy_plan plan;
static const struct sf_task task = { .pid = 40, .tid = 41 };
static union {
	struct sf_stack_copy copy;
	uint8_t room[sizeof(struct sf_stack_copy) + 32 * KIB];
} buffer;
static struct sf_stack_copy *const copy = &buffer.copy;

/* Asleep in call 7, for ever. */
static int set_up(void **state)
{
	(void)state;
	look = (struct sf_task_look){ .state = SF_STATE_BLOCKED, .placed = true, .syscall = 7,
				      .args = { 1, 2, 3, 4, 5, 6 }, .sp = SP, .pc = PC };
	looked_again = look;
	plan = (struct sf_copy_plan){ .size = 4 * KIB };
	switches[0] = switches[1] = 12;
	has_run[0] = has_run[1] = has_look = can_be_held = true;
	n_runs = 0;
	readable = SIZE_MAX;
	points_to_others = false;
	memset(&reads, 0, sizeof(reads));
	memset(&buffer, 0xff, sizeof(buffer));
	return 0;
}

static enum sf_copy_result take(void)
{
	n_runs = 0;
	return sf_copy_blocked(&task, &look, &plan, &no_pages, copy);
}

static void a_sleeper_is_taken(void **state)
{
	(void)state;
	assert_int_equal(take(), SF_COPY_DONE);
	assert_int_equal(copy->pid, 40);
	assert_int_equal(copy->tid, 41);
	assert_int_equal(copy->state, SF_STATE_BLOCKED);
	assert_int_equal(copy->syscall, 7);
	assert_int_equal(copy->flags, SF_STILL_COPY | SF_STILL_UNHELD);
	assert_int_equal(copy->switches, 12);
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(copy->args[i], i + 1);
	assert_int_equal(copy->regs.pc, PC);
	assert_int_equal(copy->regs.r[sf_arch_host()->sp], SP);
}

/* By the thread's own id, from the red zone on; cut if as much came as was wanted. */
static void its_stack_is_copied(void **state)
{
	(void)state;
	take();
	assert_int_equal(reads.n, 1);
	assert_int_equal(reads.pid, 40);
	assert_int_equal(reads.tid, 41);
	assert_int_equal(reads.addr, SP - sf_arch_host()->red_zone);
	assert_int_equal(reads.size, 4 * KIB);
	assert_int_equal(copy->stack_start, SP - sf_arch_host()->red_zone);
	assert_int_equal(copy->stack_size, 4 * KIB);
	assert_int_equal(copy->stack_more, 1);
	readable = 4 * KIB - 1;
	take();
	assert_int_equal(copy->stack_size, 4 * KIB - 1);
	assert_int_equal(copy->stack_more, 0);
}

/* A copy that ends before its room may end at a hole in the stack. So it tells how long one is that reaches an address. */
static void a_hole_may_be_at_its_end(void **state)
{
	uint64_t beyond = SP + 300 * KIB;

	(void)state;
	readable = KIB;
	take();
	assert_true(sf_copy_up_to(copy, beyond) >= beyond - copy->stack_start + 8);
	assert_int_equal(sf_copy_up_to(copy, copy->stack_start + 4 * KIB - 8), 0); /* there was room for it */
	assert_int_equal(sf_copy_up_to(copy, SP + SF_COPY_MAX), 0);
	assert_int_equal(sf_copy_up_to(copy, SP - 4 * KIB), 0);
	copy->follows_leads = false; /* a kernel's copy */
	assert_int_equal(sf_copy_up_to(copy, beyond), 0);
}

/* The copy is between the two counts, or they would prove nothing. */
static void the_copy_is_between_the_counts(void **state)
{
	(void)state;
	take();
	assert_int_equal(reads.after, 1);
	assert_int_equal(n_runs, 2);
}

static void one_that_ran_meanwhile_has_moved(void **state)
{
	(void)state;
	switches[1]++;
	assert_int_equal(take(), SF_COPY_MOVED);
}

static void one_that_is_elsewhere_has_moved(void **state)
{
	(void)state;
	looked_again.sp += 8;
	assert_int_equal(take(), SF_COPY_MOVED);
	set_up(NULL);
	looked_again.pc++;
	assert_int_equal(take(), SF_COPY_MOVED);
	set_up(NULL);
	looked_again.syscall++;
	assert_int_equal(take(), SF_COPY_MOVED);
	set_up(NULL);
	looked_again.placed = false;
	assert_int_equal(take(), SF_COPY_MOVED);
	assert_int_equal(reads.n, 0);
}

static void one_that_ended_is_gone(void **state)
{
	(void)state;
	has_run[0] = false;
	assert_int_equal(take(), SF_COPY_GONE);
	has_run[0] = true, has_run[1] = false;
	assert_int_equal(take(), SF_COPY_GONE);
	has_run[1] = true, has_look = false;
	assert_int_equal(take(), SF_COPY_GONE);
}

static void one_that_is_nowhere_is_not_taken(void **state)
{
	(void)state;
	look.placed = false;
	assert_int_equal(take(), SF_COPY_NOT_PLACED);
	assert_int_equal(n_runs, 0);
	assert_int_equal(reads.n, 0);
}

static void a_held_thread_is_taken(void **state)
{
	struct sf_held held = { .tid = 41 };
	(void)state;

	assert_true(sf_copy_held(&held, 40, &plan, &no_pages, copy));
	assert_int_equal(copy->pid, 40);
	assert_int_equal(copy->tid, 41);
	assert_int_equal(copy->syscall, SF_SYSCALL_NONE);
	assert_int_equal(copy->flags, SF_STILL_COPY);
	assert_int_equal(copy->switches, 0);
	assert_int_equal(reads.pid, 40);
	assert_int_equal(reads.tid, 41);
	assert_int_equal(reads.addr, SP - sf_arch_host()->red_zone);
	can_be_held = false;
	reads.n = 0;
	assert_false(sf_copy_held(&held, 40, &plan, &no_pages, copy));
	assert_int_equal(reads.n, 0);
}

/* A buffer becomes a still: everything in it, and the copy as its window. */
static void a_still_has_what_was_taken(void **state)
{
	struct sf_memory *memory = sf_memory_create();
	struct sf_copied_still copied;
	struct sf_still *const still = &copied.still;
	(void)state;

	assert_non_null(memory);
	assert_int_equal(take(), SF_COPY_DONE);
	copy->time_ns = 77;
	copy->taken_ns = 78;
	sf_stack_copy_still(copy, sf_arch_host(), memory, &copied);
	assert_ptr_equal(still->arch, sf_arch_host());
	assert_true(turned.pid == 40 && turned.tid == 41 && turned.since_ns == 78);
	assert_int_equal(still->pid, 40);
	assert_int_equal(still->tid, 41);
	assert_int_equal(still->state, SF_STATE_BLOCKED);
	assert_int_equal(still->syscall, 7);
	assert_int_equal(still->flags, SF_STILL_COPY | SF_STILL_UNHELD);
	assert_int_equal(still->time_ns, 77);
	assert_int_equal(still->switches, 12);
	assert_int_equal(still->regs.pc, PC);
	assert_memory_equal(still->syscall_args, copy->args, sizeof(copy->args));
	assert_ptr_equal(still->memory.window, copy->stack);
	assert_int_equal(still->memory.window_start, copy->stack_start);
	assert_int_equal(still->memory.window_size, 4 * KIB);
	assert_true(still->memory.stack_end > copy->stack_start + SF_COPY_MAX);
	copy->stack_more = 0;
	sf_stack_copy_still(copy, sf_arch_host(), memory, &copied);
	assert_int_equal(still->memory.stack_end, 0);
	sf_memory_destroy(memory);
}

/*
 * Where a word points to another stack, that stack is copied in the same hold, from a little below. A word that was not copied
 * leads nowhere, and a stack is copied once.
 */
static void another_stack_is_copied_too(void **state)
{
	struct sf_held held = { .tid = 41 };
	struct sf_copied_still copied;
	struct sf_memory *memory = sf_memory_create();
	uint64_t word;
	(void)state;

	assert_non_null(memory);
	points_to_others = true;
	plan = (struct sf_copy_plan){ .size = 4 * KIB, .n_leads = 3, .leads = { 0x1000, SP + 64, SP + 72 } };
	assert_int_equal(sf_copy_plan_room(&plan), 16 * KIB + 3 * 4352);
	assert_true(sf_copy_held(&held, 40, &plan, &no_pages, copy));
	assert_int_equal(reads.n, 2);
	assert_int_equal(copy->n_others, 1);
	assert_int_equal(copy->others[0].start, OTHER_SP - 4352);
	assert_int_equal(copy->others[0].size, 4 * KIB + 4352);
	sf_stack_copy_still(copy, sf_arch_host(), memory, &copied);
	assert_true(sf_read_u64(&copied.still.memory, OTHER_SP, &word));
	assert_int_equal(word, SP);
	sf_memory_destroy(memory);
}

static bool read_here(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	(void)reader;
	memcpy(ret, (const void *)(uintptr_t)addr, size);
	return true;
}

/* What a thread does later on its stacks is not read. The walk ends, and it is known where. */
static void no_other_stack_is_read_later(void **state)
{
	struct sf_copied_still copied;
	struct sf_memory *memory = sf_memory_create();
	struct sf_reader outside;
	uint64_t here = 7, word = 0;
	(void)state;

	assert_non_null(memory);
	assert_int_equal(take(), SF_COPY_DONE);
	sf_stack_copy_still(copy, sf_arch_host(), memory, &copied);
	copied.still.memory.read = read_here;
	outside = sf_reader_outside(&copied.still.memory);
	assert_false(sf_read_u64(&copied.still.memory, (uint64_t)(uintptr_t)&here, &word));
	assert_true(sf_read_u64(&outside, (uint64_t)(uintptr_t)&here, &word));
	assert_int_equal(word, 7);
	assert_int_equal(sf_why_unread(&copied.still.memory, OTHER_SP, 8), SF_END_OTHER_STACK);
	assert_int_equal(copied.unread, OTHER_SP);
	assert_int_equal(sf_why_unread(&copied.still.memory, SP + 4 * KIB, 8), SF_END_COPY);
	sf_memory_destroy(memory);
}

/* The highest word that points to the lowest place of the frame: the handler's own frames, below, may have such words, too. */
static void a_lead_is_the_word_that_points_there(void **state)
{
	uint64_t words[64] = { [3] = OTHER_SP + 8, [5] = OTHER_SP, [40] = OTHER_SP, [41] = OTHER_SP + 24, [50] = OTHER_SP - 8192 };
	struct sf_still still = {
		.memory = { .window = (const uint8_t *)words, .window_start = SP, .window_size = sizeof(words), .copied = true },
	};
	struct sf_stack_leads leads = { 0 };
	(void)state;

	assert_false(sf_stack_leads_find(&leads, &still, PC));
	assert_true(sf_stack_leads_find(&leads, &still, OTHER_SP + 40));
	assert_false(sf_stack_leads_find(&leads, &still, OTHER_SP + 48));
	plan = sf_stack_leads_plan(&leads, 9);
	assert_int_equal(plan.size, 9);
	assert_int_equal(plan.n_leads, 1);
	assert_int_equal(plan.leads[0], SP + 40 * 8);
	/* A pointer to exactly there is a frame pointer: the word of it that is known is no news, and another one is. */
	assert_true(sf_stack_leads_find(&leads, &still, OTHER_SP + 24));
	plan = sf_stack_leads_plan(&leads, 9);
	assert_int_equal(plan.leads[1], SP + 41 * 8);
	/* A function without a frame has the frame pointer of the other stack in its register. */
	assert_false(sf_stack_leads_find(&leads, &still, 2 * OTHER_SP + 8));
	sf_reg_set(&still.regs, sf_arch_host()->fp, 2 * OTHER_SP);
	assert_true(sf_stack_leads_find(&leads, &still, 2 * OTHER_SP + 8));
	plan = sf_stack_leads_plan(&leads, 9);
	assert_int_equal(plan.leads[2], SF_LEAD_FP);
}

/* A quarter more than was needed, and 2 KiB; whole KiB. */
static void the_next_copy_is_as_long_as_was_needed(void **state)
{
	(void)state;
	assert_int_equal(sf_copy_next(2 * KIB, 0), 2 * KIB);
	assert_int_equal(sf_copy_next(2 * KIB, 8 * KIB), 12 * KIB);
	assert_int_equal(sf_copy_next(2 * KIB, 8 * KIB + 816), 12 * KIB); /* 1,023 over it, with a quarter */
	assert_int_equal(sf_copy_next(2 * KIB, 8 * KIB + 820), 13 * KIB);
	assert_int_equal(sf_copy_next(12 * KIB, 8 * KIB), 12 * KIB);
	assert_int_equal(sf_copy_next(SF_COPY_MAX, SF_COPY_MAX), SF_COPY_MAX);
	assert_int_equal(sf_copy_next(KIB, UINT64_C(1) << 40), SF_COPY_MAX);
	assert_int_equal(sf_copy_next(140 * KIB, 8 * KIB), 140 * KIB - 2 * KIB); /* a part of the way */
	assert_int_equal(sf_copy_next(SF_COPY_FIRST, 0), SF_COPY_FIRST - (SF_COPY_FIRST - 2 * KIB) / 64);
}

/* A tenth of the walks needs 150 KiB. Were the other ones to end that, its copies would be cut, and its time go to them. */
static void a_depth_that_comes_and_goes_has_its_room(void **state)
{
	uint32_t want = sf_copy_next(0, 150 * KIB);
	(void)state;

	for (unsigned i = 0; i < 9; i++)
		want = sf_copy_next(want, KIB);
	assert_true(want > 150 * KIB);
}

/* A quarter more than lies up to there, and 2 KiB; whole KiB. */
static void no_more_is_copied_than_up_to_the_first_frame(void **state)
{
	(void)state;
	plan = (struct sf_copy_plan){ .size = 16 * KIB, .root_sp = SP - sf_arch_host()->red_zone + 4 * KIB };
	take();
	assert_int_equal(reads.size, 7 * KIB);
	assert_int_equal(copy->room, 7 * KIB);
	assert_true(copy->stack_more);
	plan.root_sp = SP + 100 * KIB;
	take();
	assert_int_equal(reads.size, 16 * KIB);
	plan.root_sp = SP - KIB; /* of another stack */
	take();
	assert_int_equal(reads.size, 16 * KIB);
}

static void a_copy_that_was_too_short_is_followed_by_a_longer_one(void **state)
{
	(void)state;
	assert_int_equal(sf_copy_more(4 * KIB, 4 * KIB), 16 * KIB);
	assert_int_equal(sf_copy_more(32 * KIB, 4 * KIB), 32 * KIB); /* known meanwhile */
	assert_int_equal(sf_copy_more(16 * KIB, 4 * KIB), 16 * KIB);
	assert_int_equal(sf_copy_more(KIB, SF_COPY_MAX), SF_COPY_MAX);
	assert_int_equal(sf_copy_more(KIB, SF_COPY_MAX / 4 + 1), SF_COPY_MAX);
	assert_int_equal(sf_copy_more(KIB, UINT32_MAX), SF_COPY_MAX);
	assert_int_equal(sf_copy_more(KIB, 1u << 30), SF_COPY_MAX);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_sleeper_is_taken),
		TEST(its_stack_is_copied),
		TEST(a_hole_may_be_at_its_end),
		TEST(the_copy_is_between_the_counts),
		TEST(one_that_ran_meanwhile_has_moved),
		TEST(one_that_is_elsewhere_has_moved),
		TEST(one_that_ended_is_gone),
		TEST(one_that_is_nowhere_is_not_taken),
		TEST(a_held_thread_is_taken),
		TEST(a_still_has_what_was_taken),
		TEST(another_stack_is_copied_too),
		TEST(no_other_stack_is_read_later),
		TEST(a_lead_is_the_word_that_points_there),
		TEST(the_next_copy_is_as_long_as_was_needed),
		TEST(a_depth_that_comes_and_goes_has_its_room),
		TEST(no_more_is_copied_than_up_to_the_first_frame),
		TEST(a_copy_that_was_too_short_is_followed_by_a_longer_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

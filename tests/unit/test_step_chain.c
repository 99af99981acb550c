/* SPDX-License-Identifier: Apache-2.0 */
/* Walks of Go's system stack, of whose goroutine there is no copy: by the addresses that the kernel found there, or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "recorded.h"

enum { RBP = 6, RSP = 7 };

#define GO 0x500000
#define C 0x600000
#define STACK 0x7f0000       /* g0: it is copied */
#define GOROUTINE 0x900000   /* it is not */
#define SIZE 0x1000

/*
 * The program: at 0x000 `caller`, with a frame of 40 bytes, which calls systemstack; 0x100 `callee`, which systemstack calls, with 16;
 * 0x200 systemstack; 0x300 goexit; 0x400 `outer`, with 32, which calls `caller`; 0x500 a clock with 40, which calls C on g0 itself.
 */
#define BEHIND_SWITCH (GO + 0x208)
#define GOEXIT (GO + 0x301)
#define CALL (GO + 0x50)
#define OUTER (GO + 0x450)
#define RECORD (GOROUTINE + 0x800)

static struct recorded r;
static struct table_builder go;
static const uint8_t call_rax[] = { 0xff, 0xd0 };

static void build_go(void)
{
	static const uint8_t sizes[] = { 40, 16, 8, 8, 32, 40 };

	table_start(&go, &sf_arch_x86_64);
	go.flags = SF_TABLE_GO;
	for (unsigned i = 0; i < sizeof(sizes); i++) {
		struct sf_rules bare = simple_rules(RSP, 8, -8), framed = simple_rules(RSP, sizes[i], -8);

		table_row(&go, 0x100 * i, &bare);
		if (sizes[i] > 8)
			table_row(&go, 0x100 * i + 4, &framed);
	}
	table_finish(&go);
}

/* The thread is in `callee`, whose record leads to that of `caller`. */
static int start(void **state)
{
	static const uint8_t systemstack[] = { 0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3f, 0xff, 0xd7, 0x48, 0x8b, 0x60, 0x38, 0xc3 };

	(void)state;
	recorded_init(&r, &sf_arch_x86_64);
	build_go();
	recorded_memory(&r, GO, SIZE);
	recorded_memory(&r, C, SIZE);
	recorded_memory(&r, STACK, SIZE);
	recorded_memory(&r, GOROUTINE, SIZE);
	recorded_region(&r, GO, GO + SIZE, &go.table, 1);
	recorded_region(&r, C, C + SIZE, NULL, 2);
	recorded_bytes(&r, GO + 0x200, systemstack, sizeof(systemstack));
	recorded_call(&r, CALL, GO + 0x200);
	recorded_call(&r, OUTER, GO);
	r.still.regs.pc = GO + 0x120;
	recorded_reg(&r, RSP, STACK + 0x100);
	recorded_reg(&r, RBP, STACK + 0x100);
	recorded_put(&r, STACK + 0x100, RECORD);
	recorded_put(&r, STACK + 0x108, BEHIND_SWITCH);
	recorded_window(&r, STACK, SIZE, 0);
	r.still.memory.copied = true;
	return 0;
}

/* What the kernel found: up to ten addresses, and 0. */
static enum sf_end walk(const uint64_t *chain)
{
	r.still.chain = chain;
	r.still.n_chain = 0;
	while (chain && chain[r.still.n_chain])
		r.still.n_chain++;
	return recorded_walk(&r);
}

#define FOUND(...) ((const uint64_t[]){ __VA_ARGS__, 0 })
#define assert_callers(...) check_callers((const uint64_t[]){ __VA_ARGS__ }, sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))
#define assert_no_caller() assert_int_equal(r.trace.n_frames, 2)

/* Behind systemstack. */
static void check_callers(const uint64_t *pcs, uint32_t n)
{
	assert_int_equal(r.trace.n_frames, 2 + n);
	assert_int_equal(r.frames[1].pc, BEHIND_SWITCH);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(r.frames[2 + i].pc, pcs[i]);
		assert_int_equal(r.frames[2 + i].via, SF_VIA_CHAIN);
		assert_int_equal(r.frames[2 + i].flags, 0);
	}
}

/* The caller of systemstack is not among the addresses: it is what is called at the next one. */
static void the_caller_is_what_was_called(void **state)
{
	(void)state;
	assert_int_equal(walk(FOUND(GO + 0x120, BEHIND_SWITCH, OUTER, GOEXIT)), SF_END_ROOT);
	assert_callers(CALL, OUTER, GOEXIT);
}

static void a_still_without_a_chain_lacks_one(void **state)
{
	(void)state;
	assert_int_equal(walk(NULL), SF_END_OTHER_STACK);
	assert_true(r.trace.lacks_chain);
	walk(FOUND(GO + 0x120));
	assert_false(r.trace.lacks_chain);
}

/* Its code does not say which of two calls it was. A call behind its end is another function's. */
static void a_function_with_several_calls_is_shown_at_its_start(void **state)
{
	(void)state;
	recorded_call(&r, GO + 0x150, GO + 0x200);
	walk(FOUND(GO + 0x120, BEHIND_SWITCH, OUTER, GOEXIT));
	assert_callers(CALL, OUTER, GOEXIT);
	recorded_call(&r, GO + 0x90, GO + 0x200);
	assert_int_equal(walk(FOUND(GO + 0x120, BEHIND_SWITCH, OUTER, GOEXIT)), SF_END_ROOT);
	assert_callers(GO + 2, OUTER, GOEXIT);
}

static void no_caller_is_made_up(void **state)
{
	(void)state;
	assert_int_equal(walk(FOUND(GO + 0x120, BEHIND_SWITCH)), SF_END_OTHER_STACK); /* the kernel found no more */
	assert_no_caller();
	assert_int_equal(walk(FOUND(GO + 0x120, OUTER, GOEXIT)), SF_END_OTHER_STACK); /* another moment */
	assert_no_caller();
	assert_int_equal(walk(FOUND(GO + 0x120, BEHIND_SWITCH, OUTER + 1, GOEXIT)), SF_END_OTHER_STACK); /* behind no call */
	assert_no_caller();
	recorded_bytes(&r, OUTER - 2, call_rax, sizeof(call_rax)); /* what is called there is not known */
	assert_int_equal(walk(FOUND(GO + 0x120, BEHIND_SWITCH, OUTER, GOEXIT)), SF_END_OTHER_STACK);
	assert_no_caller();
	recorded_call(&r, OUTER, GO + 0x100); /* it does not call systemstack */
	assert_int_equal(walk(FOUND(GO + 0x120, BEHIND_SWITCH, OUTER, GOEXIT)), SF_END_OTHER_STACK);
	assert_no_caller();
}

/*
 * morestack calls directly. What called it has made no record, and the chain has neither that nor its caller. The return address into
 * the caller lies in the frame of what morestack has called.
 */
static void a_stack_that_grows(void **state)
{
	static const uint8_t sets_sp[] = { 0x48, 0x89, 0xdc };
	const uint64_t *const found = FOUND(GO + 0x120, BEHIND_SWITCH, OUTER, GOEXIT);

	(void)state;
	recorded_bytes(&r, GO + 0x200, sets_sp, sizeof(sets_sp));
	recorded_call(&r, BEHIND_SWITCH, GO + 0x100);
	recorded_reg(&r, RSP, STACK + 0xc0);
	go.rules[3].cfa.value = 0x50; /* of `callee` */
	table_finish(&go);
	recorded_put(&r, STACK + 0xd8, OUTER); /* not in what is called at OUTER */
	assert_int_equal(walk(found), SF_END_OTHER_STACK);
	assert_no_caller();
	recorded_put(&r, STACK + 0xe0, GO + 0x70);
	recorded_call(&r, GO + 0x70, GO + 0x100); /* of a function that does not call morestack */
	assert_int_equal(walk(found), SF_END_OTHER_STACK);
	assert_no_caller();
	recorded_call(&r, GO + 0x70, GO + 0x500);
	recorded_call(&r, GO + 0x580, GO + 0x600);                 /* morestack_noctxt, which jumps on */
	recorded_bytes(&r, GO + 0x600, &(uint8_t){ 0xe9 }, 1);
	recorded_put32(&r, GO + 0x601, (uint32_t)(GO + 0x200 - (GO + 0x605)));
	assert_int_equal(walk(found), SF_END_ROOT);
	assert_callers(GO + 0x580, GO + 0x70, OUTER, GOEXIT);
	assert_int_equal(walk(NULL), SF_END_OTHER_STACK);
	assert_true(r.trace.lacks_chain);
	recorded_bytes(&r, OUTER - 5, (const uint8_t[]){ 0x90, 0x90, 0x90, 0xff, 0xd0 }, 5); /* what it calls is not known */
	recorded_put(&r, STACK + 0xd8, RECORD - 32);
	assert_int_equal(walk(found), SF_END_OTHER_STACK);
	assert_no_caller();
	recorded_put(&r, STACK + 0xd8, RECORD - 24);
	assert_int_equal(walk(found), SF_END_ROOT);
	assert_callers(GO + 0x580, GO + 0x70, OUTER, GOEXIT);
}

/* The kernel has a limit; and frame pointers lead anywhere in code that does not keep them. */
static void the_chain_ends_early(void **state)
{
	(void)state;
	assert_int_equal(walk(FOUND(GO + 0x120, BEHIND_SWITCH, OUTER)), SF_END_OTHER_STACK);
	assert_callers(CALL, OUTER);
	recorded_bytes(&r, C + 0x80 - 2, call_rax, sizeof(call_rax));
	assert_int_equal(walk(FOUND(GO + 0x120, BEHIND_SWITCH, OUTER, C + 0x80, GOEXIT)), SF_END_OTHER_STACK);
	assert_callers(CALL, OUTER);
	assert_int_equal(walk(FOUND(GO + 0x120, BEHIND_SWITCH, OUTER, OUTER + 1, GOEXIT)), SF_END_OTHER_STACK);
	assert_callers(CALL, OUTER);
}

/*
 * A goroutine's first function, in another call by now. Its record proves that it is there still, with a return address below it that
 * its rules lead from.
 */
static void a_first_function_is_read_later(void **state)
{
	const uint64_t *const found = FOUND(GO + 0x120, BEHIND_SWITCH, GOEXIT);

	(void)state;
	recorded_put(&r, RECORD + 8, GOEXIT);
	assert_int_equal(walk(found), SF_END_OTHER_STACK);
	assert_no_caller();
	recorded_bytes(&r, GO + 0x70 - 2, call_rax, sizeof(call_rax));
	recorded_put(&r, RECORD - 24, GO + 0x70); /* 40 bytes lead elsewhere */
	assert_int_equal(walk(found), SF_END_OTHER_STACK);
	assert_no_caller();
	recorded_put(&r, RECORD - 32, GO + 0x70);
	assert_int_equal(walk(found), SF_END_ROOT);
	assert_callers(CALL, GOEXIT);
	recorded_put(&r, RECORD + 8, OUTER); /* another function's record by now */
	assert_int_equal(walk(found), SF_END_OTHER_STACK);
	assert_no_caller();
}

/* A function that went to g0 itself has a record: the next address is in its caller. */
static void a_function_that_left_its_record(void **state)
{
	static const uint8_t clock[] = { 0x48, 0x8b, 0x62, 0x38, 0x48, 0x83, 0xec, 0x10, 0x48, 0x83, 0xe4, 0xf0, 0xff, 0xd0,
					 0x4c, 0x89, 0xe4, 0x48, 0x83, 0xc4, 0x18, 0xc3 };

	(void)state;
	recorded_bytes(&r, GO + 0x500, clock, sizeof(clock));
	r.still.regs.pc = GO + 0x50c; /* at the call */
	recorded_reg(&r, RBP, RECORD);
	assert_int_equal(walk(NULL), SF_END_OTHER_STACK);
	assert_true(r.trace.lacks_chain);
	assert_int_equal(walk(FOUND(GO + 0x50c, OUTER, GOEXIT)), SF_END_ROOT);
	assert_int_equal(r.trace.n_frames, 3);
	assert_int_equal(r.frames[1].pc, OUTER);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, start)
	const struct CMUnitTest tests[] = {
		TEST(the_caller_is_what_was_called),
		TEST(a_still_without_a_chain_lacks_one),
		TEST(a_function_with_several_calls_is_shown_at_its_start),
		TEST(no_caller_is_made_up),
		TEST(a_stack_that_grows),
		TEST(the_chain_ends_early),
		TEST(a_first_function_is_read_later),
		TEST(a_function_that_left_its_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker in a function that can leave its frame for an exception's handler, as libgcc's _Unwind_RaiseException does, on x86-64.
 * Its frame is overwritten before it leaves: the registers first, the return address at last.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "recorded.h"

enum { RBX = 3, RBP = 6, RSP = 7 };

#define APP 0x400000
#define UNWINDER 0x500000
#define STACK 0x7f0000
#define SIZE 0x2000

/* In the program: */
#define THROWS 0x110  /* behind a call of the unwinder's stub, with a frame of 16 bytes */
#define CATCHES 0x210 /* behind a call of THROWS, with a frame of 16 bytes */
#define BY_RBP 0x310  /* behind a call of the unwinder's stub, with a frame pointer */
#define FIRST 0x410   /* in a thread's first function, behind a call by a register */
#define STUB 0x800
#define SLOT 0x900

/* In the unwinder: LEAVES, with a frame pointer, and its places. */
#define LEAVES 0x100
#define SEARCHED 0x200   /* behind the call that looks for a handler: two calls are left */
#define INSTALLED 0x20b  /* behind the call that overwrites the frame: one is left */
#define TOLD 0x210       /* behind the last one */
#define MOVED 0x220      /* behind mov %rcx, %rsp */
#define INSTALLS 0xc00   /* the function that is called there, without a frame */

/* From SEARCHED on: cmp $7, %eax; call; call; mov 8 registers' worth; mov (%rbp), %rbp; mov %rcx, %rsp; pop %rcx; jmp *%rcx */
static const uint8_t leaves[] = {
	0x83, 0xf8, 0x07, 0x48, 0x89, 0xde, 0xe8, 0, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0x48, 0x89, 0xc1, 0x48, 0x8d, 0x4c, 0x0d, 0x08,
	0x90, 0x48, 0x8b, 0x6d, 0x00, 0x48, 0x89, 0xcc, 0x59, 0xff, 0xe1,
};

static struct recorded r;
static struct table_builder app, unwinder;

static void build_tables(void)
{
	struct sf_rules bare = simple_rules(RSP, 8, -8), framed = simple_rules(RSP, 16, -8), first = simple_rules(RSP, 8, -8);
	struct sf_rules by_rbp = simple_rules(RBP, 16, -8);

	by_rbp.saved[1] = (struct sf_rule){ .how = SF_HOW_AT_CFA, .value = -16 };
	first.ra.how = SF_HOW_UNDEFINED;
	table_start(&app, &sf_arch_x86_64);
	table_row(&app, 0, &bare);
	table_row(&app, 0x100, &framed);
	table_row(&app, 0x300, &by_rbp);
	table_row(&app, 0x400, &first);
	table_row(&app, STUB, &bare);
	table_finish(&app);
	by_rbp.flags = SF_RULES_LEAVES;
	table_start(&unwinder, &sf_arch_x86_64);
	table_row(&unwinder, 0, &bare);
	table_row(&unwinder, LEAVES, &by_rbp);
	table_row(&unwinder, INSTALLS, &bare);
	table_finish(&unwinder);
}

/* The frame of LEAVES lies from STACK + 0x100 on, and its frame pointer at 0x180. */
static int start(void **state)
{
	static const uint8_t stub[] = { 0xff, 0x25 };
	(void)state;

	recorded_init(&r, &sf_arch_x86_64);
	build_tables();
	recorded_memory(&r, APP, SIZE);
	recorded_memory(&r, UNWINDER, SIZE);
	recorded_memory(&r, STACK, SIZE);
	recorded_region(&r, APP, APP + SIZE, &app.table, 1);
	recorded_region(&r, UNWINDER, UNWINDER + SIZE, &unwinder.table, 2);
	recorded_bytes(&r, UNWINDER + SEARCHED, leaves, sizeof(leaves));
	recorded_call(&r, APP + THROWS, APP + STUB);
	recorded_call(&r, APP + BY_RBP, APP + STUB);
	recorded_call(&r, APP + CATCHES, APP + 0x100);
	recorded_bytes(&r, APP + FIRST - 2, (const uint8_t[]){ 0xff, 0xd0 }, 2);
	recorded_bytes(&r, APP + STUB, stub, sizeof(stub));
	recorded_put32(&r, APP + STUB + 2, SLOT - (STUB + 6));
	recorded_put(&r, APP + SLOT, UNWINDER + LEAVES);
	recorded_put(&r, STACK + 0x180, STACK + 0x300); /* rbp, of the caller or of the handler's function */
	recorded_put(&r, STACK + 0x188, APP + THROWS);
	recorded_put(&r, STACK + 0x198, APP + FIRST);
	recorded_reg(&r, RBP, STACK + 0x180);
	return 0;
}

/* The thread stands in the function that is called behind `offset` in LEAVES, or there itself. */
static enum sf_end walk(uint32_t offset, bool is_callee)
{
	recorded_put(&r, STACK + 0xf8, UNWINDER + offset);
	r.still.regs.pc = UNWINDER + (is_callee ? INSTALLS : offset);
	recorded_reg(&r, RSP, STACK + (is_callee ? 0xf8 : 0x100));
	return recorded_walk(&r);
}

static void assert_cut(uint32_t offset, bool is_callee)
{
	assert_int_equal(walk(offset, is_callee), SF_END_NO_RULE);
	assert_int_equal(r.trace.n_frames, is_callee ? 2 : 1);
}

static void assert_whole(uint32_t offset, bool is_callee)
{
	assert_int_equal(walk(offset, is_callee), SF_END_ROOT);
	assert_int_equal(r.trace.n_frames, is_callee ? 4 : 3);
	assert_int_equal(r.trace.frames[is_callee ? 2 : 1].pc, APP + THROWS);
}

static void a_return_address_that_is_not_overwritten_counts(void **state)
{
	(void)state;
	assert_whole(SEARCHED, true);
	assert_whole(INSTALLED, true);
	assert_whole(INSTALLED, false);
	assert_whole(TOLD, true);
}

/* The handler's function called THROWS, and not the unwinder. */
static void an_overwritten_one_is_no_caller(void **state)
{
	(void)state;
	recorded_put(&r, STACK + 0x188, APP + CATCHES);
	assert_cut(INSTALLED, true);
	assert_cut(INSTALLED, false);
	assert_cut(TOLD, true);
	assert_cut(TOLD, false);
	recorded_put(&r, STACK + 0x188, APP + FIRST);
	assert_cut(INSTALLED, true);
	recorded_put(&r, STACK + 0x188, 0);
	assert_cut(INSTALLED, true);
}

/* Where sp is set, and behind it. The frame pointer is the handler's by then. */
static void a_frame_that_was_left_is_none(void **state)
{
	(void)state;
	recorded_put(&r, STACK + 0x388, APP + CATCHES);
	recorded_reg(&r, RBP, STACK + 0x380);
	assert_cut(MOVED - 3, false);
	assert_cut(MOVED, false);
	assert_cut(MOVED + 1, false);
}

/* Before the frame is overwritten, its caller is whatever the rules say. */
static void most_of_the_function_leaves_nothing(void **state)
{
	(void)state;
	recorded_put(&r, STACK + 0x188, APP + CATCHES);
	assert_int_equal(walk(SEARCHED, true), SF_END_ROOT);
	assert_int_equal(r.trace.frames[2].pc, APP + CATCHES);
}

/* The caller needs rbp, which may be the handler's. */
static void registers_may_be_the_handlers(void **state)
{
	(void)state;
	recorded_put(&r, STACK + 0x188, APP + BY_RBP);
	recorded_put(&r, STACK + 0x308, APP + FIRST);
	assert_int_equal(walk(SEARCHED, true), SF_END_ROOT);
	assert_int_equal(walk(INSTALLED, true), SF_END_REGISTER);
	assert_int_equal(r.trace.n_frames, 3);
}

/* A call of another function of the unwinder's file, or of one that is far before the place. */
static void the_call_goes_to_this_function(void **state)
{
	(void)state;
	recorded_put(&r, APP + SLOT, UNWINDER + INSTALLS);
	assert_cut(INSTALLED, true);
	recorded_put(&r, APP + SLOT, UNWINDER - 0x1000);
	assert_cut(INSTALLED, true);
	recorded_call(&r, APP + THROWS, UNWINDER + LEAVES);
	assert_whole(INSTALLED, true);
}

#define TEST(f) cmocka_unit_test_setup(f, start)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_return_address_that_is_not_overwritten_counts),
		TEST(an_overwritten_one_is_no_caller),
		TEST(a_frame_that_was_left_is_none),
		TEST(most_of_the_function_leaves_nothing),
		TEST(registers_may_be_the_handlers),
		TEST(the_call_goes_to_this_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker in code that OCaml's compiler makes, and in OCaml's runtime, on x86-64: where an exception is thrown, and where a call of
 * the collector lies behind a function's return. The rules of both are those of the files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "recorded.h"

enum { RSP = 7, R11 = 11, R13 = 13, R14 = 14 };

#define CODE 0x400000
#define STACK 0x7f0000
#define SIZE 0x1000

/* In the code: */
#define THROWS 0x100  /* a function that throws, with a frame of 0x18 bytes */
#define RAISE 0x200   /* caml_raise_exn */
#define CATCHES 0x300 /* a function with a frame of 8 bytes, and a handler */
#define HANDLER 0x338 /* its handler, which begins a row: the byte before it is a function's end */
#define DETOUR 0x391  /* its call of the collector */
#define COLLECT 0x500 /* caml_call_gc */
#define FIRST 0x700   /* a thread's first function */
#define OTHER 0x800   /* a function without a frame */

static struct recorded r;
static struct table_builder code;

static const uint8_t call_rax[] = { 0xff, 0xd0 };

/* mov 0x10(%r14), %rsp; pop 0x10(%r14); pop %r11; jmp *%r11 */
static const uint8_t throws[] = { 0x49, 0x8b, 0x66, 0x10, 0x41, 0x8f, 0x46, 0x10, 0x41, 0x5b, 0x41, 0xff, 0xe3 };

/* testq $1, 0xe8(%r14); jne 1f; mov 0x10(%r14), %rsp; pop 0x10(%r14); ret; 1: mov %rax, %r12; mov %rax, %rdi; pop %rsi; mov %rsp, %rdx; call */
static const uint8_t raise_exn[] = {
	0x49, 0xf7, 0x86, 0xe8, 0, 0, 0, 1, 0, 0, 0, 0x75, 0x09, 0x49, 0x8b, 0x66, 0x10, 0x41, 0x8f, 0x46, 0x10, 0xc3,
	0x49, 0x89, 0xc4, 0x48, 0x89, 0xc7, 0x5e, 0x48, 0x89, 0xe2, 0xe8, 0, 0, 0, 0,
};

/* At CATCHES: sub $8, %rsp; push %r11; push 0x10(%r14); mov %rsp, 0x10(%r14); (DETOUR goes back here) mov %rax, %rbx; pop 0x10(%r14); add $16, %rsp; ret */
static const uint8_t catches[] = {
	0x48, 0x83, 0xec, 0x08, 0x41, 0x53, 0x41, 0xff, 0x76, 0x10, 0x49, 0x89, 0x66, 0x10,
	0x48, 0x89, 0xc3, 0x41, 0x8f, 0x46, 0x10, 0x48, 0x83, 0xc4, 0x10, 0xc3,
};
#define BACK (CATCHES + 14)

static void row(uint32_t offset, int32_t distance)
{
	const struct sf_rules rules = simple_rules(RSP, distance, -8);

	table_row(&code, offset, &rules);
}

static void build_table(void)
{
	struct sf_rules first = simple_rules(RSP, 8, -8);

	first.ra.how = SF_HOW_UNDEFINED;
	table_start(&code, &sf_arch_x86_64);
	code.flags = SF_TABLE_POPS_RETURN;
	row(0, 8);
	row(THROWS, 0x20);
	row(RAISE, 8);
	row(RAISE + 21, 0);
	row(CATCHES, 8);
	row(CATCHES + 4, 16);
	row(CATCHES + 6, 24);
	row(CATCHES + 10, 32);
	row(CATCHES + 21, 24);
	row(CATCHES + 25, 8);
	row(HANDLER, 16);
	row(COLLECT, 0xf8);
	table_row(&code, FIRST, &first);
	row(OTHER, 8);
	table_finish(&code);
}

static int start(void **state)
{
	(void)state;
	recorded_init(&r, &sf_arch_x86_64);
	build_table();
	recorded_memory(&r, CODE, SIZE);
	recorded_memory(&r, STACK, SIZE);
	recorded_region(&r, CODE, CODE + SIZE, &code.table, 1);
	recorded_bytes(&r, CODE + THROWS, throws, sizeof(throws));
	recorded_bytes(&r, CODE + RAISE, raise_exn, sizeof(raise_exn));
	recorded_bytes(&r, CODE + CATCHES, catches, sizeof(catches));
	recorded_bytes(&r, CODE + FIRST + 0x10 - sizeof(call_rax), call_rax, sizeof(call_rax));
	recorded_bytes(&r, CODE + OTHER + 0x10 - sizeof(call_rax), call_rax, sizeof(call_rax));
	recorded_reg(&r, RSP, STACK + 0x100);
	return 0;
}

static void stands_at(uint32_t offset, uint64_t sp)
{
	r.still.regs.pc = CODE + offset;
	recorded_reg(&r, RSP, sp);
}

static void assert_frame(unsigned i, uint32_t offset, uint64_t sp, uint8_t via)
{
	assert_true(i < r.trace.n_frames);
	assert_int_equal(r.frames[i].pc, CODE + offset);
	assert_int_equal(r.frames[i].sp, sp);
	assert_int_equal(r.frames[i].via, via);
}

/*
 * A handler's record at STACK + 0x100, and the handler's function, whose caller is the first one. By the rules of the function that
 * throws, its caller would be OTHER.
 */
static void put_record(void)
{
	recorded_put(&r, STACK + 0x100, STACK + 0x400);
	recorded_put(&r, STACK + 0x108, CODE + HANDLER);
	recorded_put(&r, STACK + 0x118, CODE + FIRST + 0x10);
	recorded_put(&r, STACK + 0x120, CODE + OTHER + 0x10);
	recorded_put(&r, STACK + 0x128, CODE + OTHER + 0x10);
}

static void assert_caught(uint32_t offset, uint64_t sp)
{
	stands_at(offset, sp);
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_int_equal(r.trace.n_frames, 3);
	assert_frame(1, HANDLER, STACK + 0x110, SF_VIA_HANDLER);
	assert_true(r.frames[1].flags & SF_FRAME_EXACT);
	assert_frame(2, FIRST + 0x10, STACK + 0x120, SF_VIA_ROWS);
}

/* Where the compiler throws in line, and where the runtime does. */
static void a_throw_goes_on_in_the_handler(void **state)
{
	(void)state;
	put_record();
	assert_caught(THROWS + 4, STACK + 0x100);
	assert_caught(THROWS + 8, STACK + 0x108);
	recorded_reg(&r, R11, CODE + HANDLER);
	assert_caught(THROWS + 10, STACK + 0x110);
	assert_caught(RAISE + 17, STACK + 0x100);
	assert_caught(RAISE + 21, STACK + 0x108);
}

/* mov %rdi, %r14 ... pop 0x10(%r14); mov 8(%r14), %r15; ret: of caml_raise_exception. And a word that is far from r14. */
static void throws_have_other_forms(void **state)
{
	static const uint8_t loads[] = { 0x49, 0x8b, 0x66, 0x10, 0x41, 0x8f, 0x46, 0x10, 0x4d, 0x8b, 0x7e, 0x08, 0xc3 };
	static const uint8_t far[] = { 0x49, 0x8b, 0xa6, 0, 1, 0, 0, 0x41, 0x8f, 0x86, 0, 1, 0, 0, 0x4d, 0x8b, 0xbe, 0, 1, 0, 0, 0xc3 };
	(void)state;

	put_record();
	recorded_bytes(&r, CODE + THROWS, loads, sizeof(loads));
	assert_caught(THROWS + 4, STACK + 0x100);
	assert_caught(THROWS + 8, STACK + 0x108);
	assert_caught(THROWS + 12, STACK + 0x108);
	recorded_bytes(&r, CODE + THROWS, far, sizeof(far));
	assert_caught(THROWS + 7, STACK + 0x100);
	assert_caught(THROWS + 14, STACK + 0x108);
	assert_caught(THROWS + 21, STACK + 0x108);
}

/* Before sp is set the rules hold. */
static void a_throw_that_begins_has_its_caller(void **state)
{
	(void)state;
	put_record();
	recorded_put(&r, STACK + 0x118, CODE + OTHER + 0x10);
	recorded_put(&r, STACK + 0x120, CODE + FIRST + 0x10);
	stands_at(THROWS, STACK + 0x100);
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_frame(1, OTHER + 0x10, STACK + 0x120, SF_VIA_ROWS);
	assert_frame(2, FIRST + 0x10, STACK + 0x128, SF_VIA_ROWS);
}

/* Code that differs from a throw in one thing, with pc at its second instruction: the rules hold. */
static void other_code_is_no_throw(void **state)
{
	static const struct {
		uint8_t at, byte;
	} differences[] = {
		{ 0, 0x48 }, /* by rsi */
		{ 1, 0x89 }, /* sp is stored */
		{ 2, 0x6e }, /* rbp is loaded */
		{ 3, 0x18 }, /* another word */
		{ 5, 0x8b }, /* loaded, not popped */
		{ 4, 0x40 }, /* popped to where rsi leads */
		{ 9, 0x5a }, /* r10 is popped */
		{ 12, 0xd3 }, /* a call */
	};
	(void)state;

	put_record();
	for (unsigned i = 0; i < sizeof(differences) / sizeof(differences[0]); i++) {
		recorded_bytes(&r, CODE + THROWS, throws, sizeof(throws));
		recorded_bytes(&r, CODE + THROWS + differences[i].at, &differences[i].byte, 1);
		stands_at(THROWS + 4, STACK + 0x100);
		recorded_walk(&r);
		assert_frame(1, FIRST + 0x10, STACK + 0x120, SF_VIA_ROWS);
	}
}

/* No guess is made: what is no code, or was not copied, or is in a register that is not known, ends the walk. */
static void a_throw_to_nowhere_is_a_cut(void **state)
{
	(void)state;
	put_record();
	recorded_put(&r, STACK + 0x108, STACK);
	stands_at(THROWS + 4, STACK + 0x100);
	assert_int_equal(recorded_walk(&r), SF_END_NO_CODE);
	assert_int_equal(r.trace.n_frames, 1);
	stands_at(THROWS + 4, STACK + SIZE);
	assert_int_equal(recorded_walk(&r), SF_END_MEMORY);
	stands_at(THROWS + 10, STACK + 0x110);
	assert_int_equal(recorded_walk(&r), SF_END_REGISTER);
	assert_int_equal(r.trace.n_frames, 1);
}

/* A frame that is further out calls: it has not set sp. */
static void a_caller_does_not_throw(void **state)
{
	(void)state;
	put_record();
	recorded_put(&r, STACK + 0xf8, CODE + THROWS + 4);
	stands_at(OTHER, STACK + 0xf8);
	recorded_walk(&r);
	assert_frame(1, THROWS + 4, STACK + 0x100, SF_VIA_ROWS);
	assert_frame(2, FIRST + 0x10, STACK + 0x120, SF_VIA_ROWS);
}

/*
 * Behind the return of caml_raise_exn its rules say that the return address is below sp. So it is only behind the pop there, up to
 * the call.
 */
static void rules_behind_a_return_are_left_over(void **state)
{
	static const struct {
		uint8_t offset;
		bool holds;
	} places[] = { { 22, false }, { 25, false }, { 28, false }, { 29, true }, { 32, true }, { 37, false } };
	(void)state;

	recorded_put(&r, STACK + 0xf8, CODE + FIRST + 0x10);
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		stands_at(RAISE + places[i].offset, STACK + 0x100);
		assert_int_equal(recorded_walk(&r), places[i].holds ? SF_END_ROOT : SF_END_NO_RULE);
		assert_int_equal(r.trace.n_frames, places[i].holds ? 2 : 1);
	}
}

/* Of two words that were popped the last one is just below sp, and a rule for it is not for the one before. */
static void only_the_last_word_was_just_popped(void **state)
{
	static const uint8_t pops[] = { 0x5e, 0x5f }; /* pop %rsi; pop %rdi */
	const struct sf_rules deeper = simple_rules(RSP, 0, -16);
	(void)state;

	row(OTHER + 0x20, 0);
	table_row(&code, OTHER + 0x22, &deeper);
	table_finish(&code);
	recorded_bytes(&r, CODE + OTHER + 0x20, pops, sizeof(pops));
	recorded_put(&r, STACK + 0xf8, CODE + FIRST + 0x10);
	stands_at(OTHER + 0x20, STACK + 0x100);
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	stands_at(OTHER + 0x21, STACK + 0x100);
	assert_int_equal(recorded_walk(&r), SF_END_NO_RULE);
	recorded_put(&r, STACK + 0xf0, CODE + FIRST + 0x10);
	stands_at(OTHER + 0x22, STACK + 0x100);
	assert_int_equal(recorded_walk(&r), SF_END_NO_RULE);
}

/* Behind its call, DETOUR has a jump of five bytes to `target`. */
static void put_detour(uint32_t target)
{
	const uint8_t call = 0xe8, jump = 0xe9;

	recorded_bytes(&r, CODE + DETOUR, &call, 1);
	recorded_put32(&r, CODE + DETOUR + 1, COLLECT - (DETOUR + 5));
	recorded_bytes(&r, CODE + DETOUR + 5, &jump, 1);
	recorded_put32(&r, CODE + DETOUR + 6, target - (DETOUR + 10));
}

/* The frame that DETOUR is in: its two words for the handler, one of its own, the return address. By DETOUR's rules it is at 0x8. */
static void put_detoured_frame(uint64_t sp)
{
	recorded_put(&r, sp + 0x8, CODE + OTHER + 0x10);
	recorded_put(&r, sp + 0x18, CODE + FIRST + 0x10);
}

static void assert_detoured(unsigned i, uint32_t offset, uint64_t sp)
{
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_int_equal(r.trace.n_frames, i + 2);
	assert_int_equal(r.frames[i].pc, CODE + offset);
	assert_frame(i + 1, FIRST + 0x10, sp + 0x20, SF_VIA_ROWS);
}

/* The collector's routine has saved all registers, or stands at its first instruction; and the call itself, and the jump. */
static void a_detour_has_the_rules_of_where_it_goes_back(void **state)
{
	const uint64_t sp = STACK + 0x300;
	(void)state;

	put_detour(BACK);
	put_detoured_frame(sp);
	recorded_put(&r, sp - 8, CODE + DETOUR + 5);
	stands_at(COLLECT + 0x10, sp - 0xf8);
	assert_detoured(1, DETOUR + 5, sp);
	stands_at(OTHER, sp - 8);
	assert_detoured(1, DETOUR + 5, sp);
	stands_at(DETOUR, sp);
	assert_detoured(0, DETOUR, sp);
	stands_at(DETOUR + 5, sp);
	assert_detoured(0, DETOUR + 5, sp);
}

/* or $2, %rax, where a handler of caml_start_program ends, and then the jump. */
static void an_instruction_may_come_before_the_jump(void **state)
{
	static const uint8_t marks[] = { 0x90, 0x48, 0x83, 0xc8, 0x02 };
	(void)state;

	put_detour(BACK);
	recorded_bytes(&r, CODE + DETOUR, marks, sizeof(marks));
	put_detoured_frame(STACK + 0x300);
	stands_at(DETOUR + 1, STACK + 0x300);
	assert_detoured(0, DETOUR + 1, STACK + 0x300);
}

/* Where the code says neither, no caller is made up. */
static void a_detour_that_the_code_does_not_confirm_is_a_cut(void **state)
{
	const uint8_t more = 0x18; /* add $24, %rsp */
	(void)state;

	put_detour(BACK);
	put_detoured_frame(STACK + 0x300);
	recorded_bytes(&r, CODE + CATCHES + 24, &more, 1);
	stands_at(DETOUR, STACK + 0x300);
	assert_int_equal(recorded_walk(&r), SF_END_NO_RULE);
	assert_int_equal(r.trace.n_frames, 1);
}

/* A jump to where the rules have the same distance, or back to nothing that rules cover, or forward: the own rules hold. */
static void a_jump_elsewhere_is_no_detour(void **state)
{
	static const uint32_t targets[] = { CATCHES + 4, HANDLER, FIRST, OTHER };
	(void)state;

	recorded_put(&r, STACK + 0x308, CODE + FIRST + 0x10);
	for (unsigned i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		put_detour(targets[i]);
		stands_at(DETOUR, STACK + 0x300);
		assert_int_equal(recorded_walk(&r), SF_END_ROOT);
		assert_frame(1, FIRST + 0x10, STACK + 0x310, SF_VIA_ROWS);
	}
}

/* A function that has just returned to it from a small frame did not save all registers: the code is not read. */
static void the_code_of_few_frames_is_read(void **state)
{
	(void)state;

	put_detour(BACK);
	recorded_window(&r, STACK, SIZE, 0);
	recorded_put(&r, STACK + 0x200, CODE + OTHER + 0x10);
	recorded_put(&r, STACK + 0x208, CODE + DETOUR + 5);
	recorded_put(&r, STACK + 0x218, CODE + FIRST + 0x10);
	stands_at(OTHER, STACK + 0x200);
	r.n_reads = 0;
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_int_equal(r.n_reads, 4); /* at the leaf: a throw, two instructions; of its caller: one */
}

#define TEST(f) cmocka_unit_test_setup(f, start)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_throw_goes_on_in_the_handler),
		TEST(throws_have_other_forms),
		TEST(a_throw_that_begins_has_its_caller),
		TEST(other_code_is_no_throw),
		TEST(a_throw_to_nowhere_is_a_cut),
		TEST(a_caller_does_not_throw),
		TEST(rules_behind_a_return_are_left_over),
		TEST(only_the_last_word_was_just_popped),
		TEST(a_detour_has_the_rules_of_where_it_goes_back),
		TEST(an_instruction_may_come_before_the_jump),
		TEST(a_detour_that_the_code_does_not_confirm_is_a_cut),
		TEST(a_jump_elsewhere_is_no_detour),
		TEST(the_code_of_few_frames_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of functions that are hard to find in their code: frozen/exit_x86_64.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "frozen/arch.h"
#include "frozen/arch_x86_64.h"
#include "frozen/reader.h"

#define AT UINT64_C(0x10000)

static bool find_exit(const uint8_t *code, size_t size, struct sf_exit *ret)
{
	const struct sf_reader reader = { .window = code, .window_start = AT, .window_size = size };

	return sf_x86_find_exit(&reader, AT, ret);
}

#define FIND(ret, ...) find_exit((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), ret)

/* In functions that align their stack, as libvpx' and dav1d's do. What is found counts from the old sp. */
static void an_old_sp_on_the_stack(void **state)
{
	struct sf_exit exit;
	(void)state;

	/* add $64, %rsp; pop %rsp; ret */
	assert_true(FIND(&exit, 0x48, 0x83, 0xc4, 0x40, 0x5c, 0xc3) && exit.is_kept && exit.kept_sp == 64 && exit.size == 0);
	/* mov 96(%rsp), %rsp; pop %rbp; pop %rbx; ret */
	assert_true(FIND(&exit, 0x48, 0x8b, 0x64, 0x24, 0x60, 0x5d, 0x5b, 0xc3));
	assert_true(exit.is_kept && exit.kept_sp == 96 && exit.size == 16 && exit.saved_fp == 0);
	assert_true(FIND(&exit, 0x5b, 0xc3) && !exit.is_kept);
	/* push %rax; pop %rsp; ret: behind pc */
	assert_false(FIND(&exit, 0x50, 0x5c, 0xc3));
	/* pop %rsp twice, and behind pop %rbp */
	assert_false(FIND(&exit, 0x5c, 0x5c, 0xc3));
	assert_false(FIND(&exit, 0x5d, 0x5c, 0xc3));
	/* mov 96(%rsp), %esp; mov 96(%rbx), %rsp */
	assert_false(FIND(&exit, 0x8b, 0x64, 0x24, 0x60, 0xc3));
	assert_false(FIND(&exit, 0x48, 0x8b, 0x63, 0x60, 0xc3));
}

static void behind_an_unknown_jump(void **state)
{
	struct sf_exit exit;
	(void)state;

	/* pop %rbx; jmp *%rcx; and what lies behind that */
	assert_true(FIND(&exit, 0x5b, 0xff, 0xe1, 0xc3) && exit.is_guess && exit.size == 8 && exit.jump == AT + 3);
	assert_true(FIND(&exit, 0x5b, 0xc3) && !exit.jump);
}

static void a_long_function(void **state)
{
	uint8_t code[3002];
	struct sf_exit exit;
	(void)state;

	memset(code, 0x90, sizeof(code));
	memcpy(code + 3000, (const uint8_t[]){ 0x5b, 0xc3 }, 2); /* pop %rbx; ret */
	assert_true(find_exit(code, sizeof(code), &exit) && exit.size == 8);
}

static void many_jumps(void **state)
{
	uint8_t code[86];
	struct sf_exit exit;
	(void)state;

	/* jne to the next instruction, 40 times; je over; jmp to itself; over: pop %rbx; ret */
	for (unsigned i = 0; i < 40; i++)
		memcpy(code + 2 * i, (const uint8_t[]){ 0x75, 0x00 }, 2);
	memcpy(code + 80, (const uint8_t[]){ 0x74, 0x02, 0xeb, 0xfe, 0x5b, 0xc3 }, 6);
	assert_true(find_exit(code, sizeof(code), &exit) && exit.size == 8);
}

/* In V8's functions, which take arguments from the stack whose number they do not know. rcx is 2 in DWARF's numbers. */
static void a_return_address_in_a_register(void **state)
{
	struct sf_exit exit;
	(void)state;

	/* pop %rbp; pop %rcx; lea 8(%r15), %rsp; push %rcx; ret, from each of its instructions on */
	assert_true(FIND(&exit, 0x5d, 0x59, 0x49, 0x8d, 0x67, 0x08, 0x51, 0xc3) && !exit.is_held && exit.size == 8 &&
		    exit.saved_fp == 0);
	assert_true(FIND(&exit, 0x59, 0x49, 0x8d, 0x67, 0x08, 0x51, 0xc3) && !exit.is_held && exit.size == 0);
	assert_true(FIND(&exit, 0x49, 0x8d, 0x67, 0x08, 0x51, 0xc3) && exit.is_held && exit.held == 2 && !exit.has_given);
	assert_true(FIND(&exit, 0x51, 0xc3) && exit.is_held && exit.held == 2 && exit.has_given);
	assert_true(FIND(&exit, 0xc3) && !exit.is_held && exit.size == 0);
	/* pop %r10; lea (%rsp,%rcx,8), %rsp; push %r10; ret */
	assert_true(FIND(&exit, 0x41, 0x5a, 0x48, 0x8d, 0x24, 0xcc, 0x41, 0x52, 0xc3) && !exit.is_held && exit.size == 0);
	assert_true(FIND(&exit, 0x48, 0x8d, 0x24, 0xcc, 0x41, 0x52, 0xc3) && exit.is_held && exit.held == 10 && !exit.has_given);
	/* pop %rcx; add $16, %rsp; push %rcx; ret */
	assert_true(FIND(&exit, 0x59, 0x48, 0x83, 0xc4, 0x10, 0x51, 0xc3) && !exit.is_held && exit.size == 0);
	/* Another register is pushed; none is moved away meanwhile: pop %rcx; push %rcx; ret; sp goes the other way. */
	assert_false(FIND(&exit, 0x59, 0x49, 0x8d, 0x67, 0x08, 0x52, 0xc3));
	assert_true(FIND(&exit, 0x59, 0x51, 0xc3) && !exit.is_held && exit.size == 0);
	assert_false(FIND(&exit, 0x48, 0x83, 0xec, 0x10, 0x51, 0xc3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_old_sp_on_the_stack),
		cmocka_unit_test(behind_an_unknown_jump),
		cmocka_unit_test(a_long_function),
		cmocka_unit_test(many_jumps),
		cmocka_unit_test(a_return_address_in_a_register),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker on x86-64 stills: rows, frame pointers, leaves without either, signals, and every way
 * to end. See test_walk_aarch64.c for what a link register changes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "recorded_frames.h"

enum { RAX = 0, RCX = 2, RBX = 3, RSI = 4, RBP = 6, RSP = 7, R12 = 12, R13 = 13 };

/* Two images with rows, code without (a JIT's), the C library's trampoline, two stacks. */
#define APP 0x400000
#define LIBC 0x500000
#define JIT 0x600000
#define BARE 0x680000
#define STACK 0x7f0000
#define ALTSTACK 0x900000
#define SIZE 0x1000

/* In the C library: */
#define TRAMPOLINE 0x800

static struct recorded r;
static struct table_builder app, libc;

static const uint8_t trampoline[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
static const uint8_t call_rax[] = { 0xff, 0xd0 };

/*
 * APP: 0x000 pushes nothing (CFA = rsp + 8), 0x100 has a frame of 32 bytes and keeps rbx at CFA - 16,
 * 0x200 is framed by rbp, 0x300 is a thread's first function, 0x400 a gap, 0x500 like 0x000.
 */
static void build_app(void)
{
	struct sf_rules bare = simple_rules(RSP, 8, -8), framed = simple_rules(RSP, 32, -8);
	struct sf_rules by_rbp = simple_rules(RBP, 16, -8), first = simple_rules(RSP, 8, -8);

	framed.saved[0] = (struct sf_rule){ .how = SF_HOW_AT_CFA, .value = -16 };
	by_rbp.saved[1] = (struct sf_rule){ .how = SF_HOW_AT_CFA, .value = -16 };
	first.ra.how = SF_HOW_UNDEFINED;
	table_start(&app, &sf_arch_x86_64);
	table_row(&app, 0, &bare);
	table_row(&app, 0x100, &framed);
	table_row(&app, 0x200, &by_rbp);
	table_row(&app, 0x300, &first);
	table_row(&app, 0x400, NULL);
	table_row(&app, 0x500, &bare);
	table_finish(&app);
}

/* As glibc: the trampoline's rules start one byte before it and are marked as a signal frame. */
static void build_libc(bool trampoline_has_rules)
{
	struct sf_rules bare = simple_rules(RSP, 8, -8), signal = simple_rules(RSP, 8, -8);

	signal.flags = SF_RULES_SIGNAL;
	table_start(&libc, &sf_arch_x86_64);
	table_row(&libc, 0, &bare);
	if (trampoline_has_rules)
		table_row(&libc, TRAMPOLINE - 1, &signal);
	else
		table_row(&libc, TRAMPOLINE, NULL);
	table_row(&libc, TRAMPOLINE + sizeof(trampoline), &bare);
	table_finish(&libc);
}

static int start(void **state)
{
	(void)state;
	recorded_init(&r, &sf_arch_x86_64);
	build_app();
	build_libc(true);
	recorded_memory(&r, APP, SIZE);
	recorded_memory(&r, LIBC, SIZE);
	recorded_memory(&r, JIT, SIZE);
	recorded_memory(&r, STACK, SIZE);
	recorded_memory(&r, ALTSTACK, SIZE);
	recorded_bytes(&r, LIBC + TRAMPOLINE, trampoline, sizeof(trampoline));
	recorded_region(&r, APP, APP + SIZE, &app.table, 1);
	recorded_region(&r, LIBC, LIBC + SIZE, &libc.table, 2);
	recorded_region(&r, JIT, JIT + SIZE, NULL, 0);
	recorded_reg(&r, RSP, STACK + 0x100);
	return 0;
}

/* A call instruction whose return address is `pc`. */
static void put_call(uint64_t pc)
{
	recorded_bytes(&r, pc - sizeof(call_rax), call_rax, sizeof(call_rax));
}

#define CODE SF_VIA_CODE, 0

/* A leaf, a framed function, one framed by rbp, the first. */
static void rows_lead_to_the_root(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x10;
	recorded_reg(&r, RBP, STACK + 0x140);
	recorded_put(&r, STACK + 0x100, APP + 0x120);
	recorded_put(&r, STACK + 0x120, APP + 0x220);
	recorded_put(&r, STACK + 0x148, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { APP + 0x10, STACK + 0x100, LEAF },
		      { APP + 0x120, STACK + 0x108, ROWS },
		      { APP + 0x220, STACK + 0x128, ROWS },
		      { APP + 0x310, STACK + 0x150, ROWS });
	assert_int_equal(r.frames[1].image, 1);
	assert_int_equal(r.frames[1].address, 0x120);
}

/* The call may be a function's last instruction, and the region's: the byte before it counts. */
static void return_addresses_belong_to_the_call(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x10;
	recorded_put(&r, STACK + 0x100, APP + 0x200); /* still in 0x100 */
	recorded_put(&r, STACK + 0x120, LIBC + SIZE);
	recorded_put(&r, STACK + 0x128, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { APP + 0x10, STACK + 0x100, LEAF },
		      { APP + 0x200, STACK + 0x108, ROWS },
		      { LIBC + SIZE, STACK + 0x128, ROWS },
		      { APP + 0x310, STACK + 0x130, ROWS });
	assert_int_equal(r.frames[2].image, 2);
	assert_int_equal(r.frames[2].address, SIZE);
}

static void a_leafs_pc_is_exact(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x100; /* the first instruction: the rules of 0x100, not of 0x000 */
	recorded_put(&r, STACK + 0x118, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { APP + 0x100, STACK + 0x100, LEAF },
		      { APP + 0x310, STACK + 0x120, ROWS });
}

static void a_zero_return_address_is_the_root(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x10;
	assert_frames(SF_END_ROOT, { APP + 0x10, STACK + 0x100, LEAF });
}

static void a_return_address_in_no_code_is_not_a_frame(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x10;
	recorded_put(&r, STACK + 0x100, 0x123456);
	assert_frames(SF_END_NO_CODE, { APP + 0x10, STACK + 0x100, LEAF });
}

/* rbx is kept by the leaf and saved by the framed function: an expression reads it further up. */
static void saved_registers_are_followed(void **state)
{
	static const uint8_t rbx_plus_8[] = { 0x73, 8 };
	struct sf_rules rules = simple_rules(RSP, 0, -8);
	(void)state;

	rules.cfa = table_expression(&app, SF_HOW_EXPRESSION, rbx_plus_8, sizeof(rbx_plus_8));
	table_row(&app, 0x600, &rules);
	table_finish(&app);
	r.still.regs.pc = APP + 0x10;
	recorded_reg(&r, RBX, 0xbad);
	recorded_put(&r, STACK + 0x100, APP + 0x120);
	recorded_put(&r, STACK + 0x118, STACK + 0x200); /* rbx */
	recorded_put(&r, STACK + 0x120, APP + 0x620);
	recorded_put(&r, STACK + 0x200, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { APP + 0x10, STACK + 0x100, LEAF },
		      { APP + 0x120, STACK + 0x108, ROWS },
		      { APP + 0x620, STACK + 0x128, ROWS },
		      { APP + 0x310, STACK + 0x208, ROWS });
}

/*
 * Every rule of a row reads the registers of the frame that is left, also those that another rule of the row
 * restores, before it or after it in their order (rbx, rbp, r12 ...), and its stack pointer.
 */
static void rules_of_a_row_do_not_see_each_other(void **state)
{
	static const uint8_t rbx_plus_8[] = { 0x73, 8 };
	struct sf_rules crossed = simple_rules(RSP, 32, -8), by_r13 = simple_rules(R13, 0, -8);
	struct sf_rules by_rbx = simple_rules(RBX, 0, -8), by_rbp = simple_rules(RBP, 0, -8);
	struct sf_rules by_r12 = simple_rules(R12, 0, -8);
	(void)state;

	crossed.saved[0] = (struct sf_rule){ .how = SF_HOW_REGISTER, .reg = RBP };
	crossed.saved[1] = (struct sf_rule){ .how = SF_HOW_REGISTER_PLUS, .reg = RBX, .value = 0x40 };
	crossed.saved[2] = table_expression(&app, SF_HOW_EXPRESSION, rbx_plus_8, sizeof(rbx_plus_8));
	crossed.saved[3] = (struct sf_rule){ .how = SF_HOW_REGISTER_PLUS, .reg = RSP, .value = 0x110 };
	table_row(&app, 0x600, &crossed);
	table_row(&app, 0x700, &by_rbx);
	table_row(&app, 0x800, &by_rbp);
	table_row(&app, 0x900, &by_r12);
	table_row(&app, 0xa00, &by_r13);
	table_finish(&app);
	r.still.regs.pc = APP + 0x610;
	recorded_reg(&r, RBX, STACK + 0x300);
	recorded_reg(&r, RBP, STACK + 0x200);
	recorded_put(&r, STACK + 0x118, APP + 0x710);
	recorded_put(&r, STACK + 0x1f8, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { APP + 0x610, STACK + 0x100, LEAF },
		      { APP + 0x710, STACK + 0x120, ROWS },
		      { APP + 0x310, STACK + 0x200, ROWS }); /* rbx is what rbp was */
	recorded_put(&r, STACK + 0x118, APP + 0x810);
	recorded_put(&r, STACK + 0x338, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { APP + 0x610, STACK + 0x100, LEAF },
		      { APP + 0x810, STACK + 0x120, ROWS },
		      { APP + 0x310, STACK + 0x340, ROWS }); /* rbp is what rbx was, and 0x40 */
	recorded_put(&r, STACK + 0x118, APP + 0x910);
	recorded_put(&r, STACK + 0x300, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { APP + 0x610, STACK + 0x100, LEAF },
		      { APP + 0x910, STACK + 0x120, ROWS },
		      { APP + 0x310, STACK + 0x308, ROWS }); /* r12 is what rbx was, and 8 */
	recorded_put(&r, STACK + 0x118, APP + 0xa10);
	recorded_put(&r, STACK + 0x208, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { APP + 0x610, STACK + 0x100, LEAF },
		      { APP + 0xa10, STACK + 0x120, ROWS },
		      { APP + 0x310, STACK + 0x210, ROWS }); /* r13 is what rsp was, and 0x110 */
}

/* A register whose rule is "undefined", or cannot be applied, is unknown further up; that alone ends no walk. */
static void lost_registers_are_unknown(void **state)
{
	const struct sf_rule lost[] = {
		{ .how = SF_HOW_UNDEFINED },
		{ .how = SF_HOW_REGISTER, .reg = R12 },          /* not known */
		{ .how = SF_HOW_AT_CFA, .value = 0x100000 },     /* cannot be read */
		{ .how = 200 },
	};
	struct sf_rules losing = simple_rules(RSP, 32, -8), by_rbx = simple_rules(RBX, 0, -8);
	(void)state;

	table_row(&app, 0x600, &losing);
	table_row(&app, 0x700, &by_rbx);
	r.still.regs.pc = APP + 0x610;
	recorded_reg(&r, RBX, STACK + 0x300);
	recorded_put(&r, STACK + 0x118, APP + 0x710);
	recorded_put(&r, STACK + 0x2f8, APP + 0x310);
	for (unsigned i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
		app.rules[app.n_rules - 2].saved[0] = lost[i];
		table_finish(&app);
		assert_frames(SF_END_REGISTER,
			      { APP + 0x610, STACK + 0x100, LEAF },
			      { APP + 0x710, STACK + 0x120, ROWS });
	}
	app.rules[app.n_rules - 2].saved[0] = (struct sf_rule){ .how = SF_HOW_SAME };
	table_finish(&app);
	assert_frames(SF_END_ROOT,
		      { APP + 0x610, STACK + 0x100, LEAF },
		      { APP + 0x710, STACK + 0x120, ROWS },
		      { APP + 0x310, STACK + 0x300, ROWS });
	app.rules[app.n_rules - 2].saved[0] = (struct sf_rule){ .how = SF_HOW_CFA_PLUS, .value = 0x40 };
	table_finish(&app);
	recorded_put(&r, STACK + 0x158, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { APP + 0x610, STACK + 0x100, LEAF },
		      { APP + 0x710, STACK + 0x120, ROWS },
		      { APP + 0x310, STACK + 0x160, ROWS });
}

/*
 * A row says that rbp and r12 lie in their slots, also behind the instructions that took them from there. The stack is
 * a copy that begins at sp. The registers have their values again only if the code before pc shows these instructions.
 */
static void what_was_popped_is_in_its_register(void **state)
{
	static const struct {
		uint8_t code[4];
		enum sf_end by_rbp, by_r12;
	} cases[] = {
		{ { 0x90, 0x41, 0x5c, 0x5d }, SF_END_ROOT, SF_END_ROOT },         /* pop %r12; pop %rbp */
		{ { 0x90, 0x41, 0x5c, 0xc9 }, SF_END_ROOT, SF_END_ROOT },         /* pop %r12; leave */
		{ { 0x90, 0x90, 0x5b, 0x5d }, SF_END_ROOT, SF_END_REGISTER },     /* pop %rbx; pop %rbp */
		{ { 0x90, 0x41, 0x5c, 0x5b }, SF_END_REGISTER, SF_END_ROOT },     /* pop %r12; pop %rbx */
		{ { 0x41, 0x5c, 0x5d, 0x90 }, SF_END_REGISTER, SF_END_REGISTER }, /* pop %r12; pop %rbp; nop */
		{ { 0x41, 0x5d, 0x41, 0x5d }, SF_END_REGISTER, SF_END_REGISTER }, /* pop %r13; pop %r13 */
	};
	struct sf_rules popped = simple_rules(RSP, 8, -8), by_rbp = simple_rules(RBP, 16, -8), by_r12 = simple_rules(R12, 16, -8);
	(void)state;

	popped.saved[1] = (struct sf_rule){ .how = SF_HOW_AT_CFA, .value = -16 };
	popped.saved[2] = (struct sf_rule){ .how = SF_HOW_AT_CFA, .value = -24 };
	table_row(&app, 0x600, &popped);
	table_row(&app, 0x700, &by_rbp);
	table_row(&app, 0x800, &by_r12);
	table_finish(&app);
	r.still.regs.pc = APP + 0x614;
	recorded_reg(&r, RSP, STACK);
	recorded_reg(&r, RBP, STACK + 0x200);
	recorded_reg(&r, R12, STACK + 0x300);
	recorded_put(&r, STACK + 0x208, APP + 0x310);
	recorded_put(&r, STACK + 0x308, APP + 0x310);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		recorded_bytes(&r, APP + 0x610, cases[i].code, sizeof(cases[i].code));
		recorded_put(&r, STACK, APP + 0x710);
		assert_int_equal(recorded_walk(&r), cases[i].by_rbp);
		recorded_put(&r, STACK, APP + 0x810);
		assert_int_equal(recorded_walk(&r), cases[i].by_r12);
	}
}

/*
 * The same where the function goes on behind these instructions: they are before the row, which begins where they have
 * moved the CFA.
 */
static void what_was_popped_stays_in_its_register(void **state)
{
	static const uint8_t pop_and_add[] = { 0x5d, 0x48, 0x01, 0xc8 }, other_pop_and_add[] = { 0x5b, 0x48, 0x01, 0xc8 };
	struct sf_rules framed = simple_rules(RBP, 16, -8), popped = simple_rules(RSP, 8, -8);
	(void)state;

	framed.saved[1] = popped.saved[1] = (struct sf_rule){ .how = SF_HOW_AT_CFA, .value = -16 };
	table_row(&app, 0x600, &framed);
	table_row(&app, 0x611, &popped);
	table_row(&app, 0x700, &framed);
	table_finish(&app);
	r.still.regs.pc = APP + 0x614;
	recorded_reg(&r, RSP, STACK);
	recorded_reg(&r, RBP, STACK + 0x200);
	recorded_put(&r, STACK, APP + 0x710);
	recorded_put(&r, STACK + 0x208, APP + 0x310);
	recorded_bytes(&r, APP + 0x610, pop_and_add, sizeof(pop_and_add));
	assert_frames(SF_END_ROOT,
		      { APP + 0x614, STACK, LEAF },
		      { APP + 0x710, STACK + 8, ROWS },
		      { APP + 0x310, STACK + 0x210, ROWS });
	recorded_bytes(&r, APP + 0x610, other_pop_and_add, sizeof(other_pop_and_add));
	assert_int_equal(recorded_walk(&r), SF_END_REGISTER);
}

/* An expression may be the last bytes of the table's, and not one byte longer. */
static void an_expression_ends_with_its_table(void **state)
{
	static const uint8_t rsp_plus_8[] = { 0x77, 8 };
	struct sf_rules rules = simple_rules(RSP, 8, -8);
	(void)state;

	table_expression(&app, SF_HOW_EXPRESSION, rsp_plus_8, sizeof(rsp_plus_8)); /* before it */
	rules.cfa = table_expression(&app, SF_HOW_EXPRESSION, rsp_plus_8, sizeof(rsp_plus_8));
	table_row(&app, 0x600, &rules);
	table_finish(&app);
	r.still.regs.pc = APP + 0x610;
	recorded_put(&r, STACK + 0x100, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { APP + 0x610, STACK + 0x100, LEAF },
		      { APP + 0x310, STACK + 0x108, ROWS });
	app.rules[app.n_rules - 1].cfa.size++;
	table_finish(&app);
	app.block[app.table.header->size] = 0x96; /* what follows the table would do: nop */
	assert_frames(SF_END_EXPRESSION, { APP + 0x610, STACK + 0x100, LEAF });
	app.rules[app.n_rules - 1].cfa.size = sizeof(rsp_plus_8);
	app.rules[app.n_rules - 1].cfa.value = (int32_t)app.blob_size + 1;
	table_finish(&app);
	memcpy(app.block + app.table.header->size + 1, rsp_plus_8, sizeof(rsp_plus_8));
	assert_frames(SF_END_EXPRESSION, { APP + 0x610, STACK + 0x100, LEAF });
}

/* A register's expression starts with the CFA on its stack, the CFA's own with nothing. */
static void expressions_start_with_the_cfa(void **state)
{
	static const uint8_t minus_8[] = { 0x38, 0x1c }, nop[] = { 0x96 };
	struct sf_rules rules = simple_rules(RSP, 32, 0);
	(void)state;

	rules.ra = table_expression(&app, SF_HOW_AT_EXPRESSION, minus_8, sizeof(minus_8));
	table_row(&app, 0x600, &rules);
	rules = simple_rules(RSP, 0, -8);
	rules.cfa = table_expression(&app, SF_HOW_EXPRESSION, nop, sizeof(nop));
	table_row(&app, 0x700, &rules);
	table_finish(&app);
	r.still.regs.pc = APP + 0x610;
	recorded_put(&r, STACK + 0x118, APP + 0x710);
	assert_frames(SF_END_EXPRESSION,
		      { APP + 0x610, STACK + 0x100, LEAF },
		      { APP + 0x710, STACK + 0x120, ROWS });
}

/* The PLT's rules ask for pc as register 16. */
static void expressions_know_the_pc(void **state)
{
	static const uint8_t plt[] = { 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22 };
	struct sf_rules rules = simple_rules(RSP, 0, -8);
	(void)state;

	rules.cfa = table_expression(&app, SF_HOW_EXPRESSION, plt, sizeof(plt));
	table_row(&app, 0x600, &rules);
	table_finish(&app);
	r.still.regs.pc = APP + 0x60b; /* the index is pushed: CFA = rsp + 16 */
	recorded_put(&r, STACK + 0x108, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { APP + 0x60b, STACK + 0x100, LEAF },
		      { APP + 0x310, STACK + 0x110, ROWS });
}

static void an_unknown_register_ends_the_walk(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x220;
	assert_frames(SF_END_REGISTER, { APP + 0x220, STACK + 0x100, LEAF });
}

/* Caller-saved registers are lost in a call, even if no rule says so: where they lead is no return address. */
static void caller_saved_registers_are_lost(void **state)
{
	struct sf_rules by_rax = simple_rules(0, 16, -8);
	(void)state;

	table_row(&app, 0x600, &by_rax);
	table_finish(&app);
	recorded_reg(&r, 0, STACK + 0x180);
	r.still.regs.pc = APP + 0x610;
	recorded_put(&r, STACK + 0x188, APP + 0x610);
	assert_frames(SF_END_REGISTER,
		      { APP + 0x610, STACK + 0x100, LEAF },
		      { APP + 0x610, STACK + 0x190, ROWS });
}

/* Rules that count from such a register behind a call, as those of OpenSSL's assembly: what is called leaves it alone. */
static void build_by_rax(void)
{
	struct sf_rules by_rax = simple_rules(0, 16, -8);

	table_row(&app, 0x600, &by_rax);
	table_finish(&app);
	recorded_reg(&r, 0, STACK + 0x180);
	recorded_put(&r, STACK + 0x100, APP + 0x610);
	recorded_put(&r, STACK + 0x188, APP + 0x310);
	put_call(APP + 0x310);
}

static void a_cfa_in_a_register_that_calls_do_not_keep(void **state)
{
	(void)state;
	build_by_rax();
	r.still.regs.pc = APP + 0x50;
	assert_frames(SF_END_ROOT,
		      { APP + 0x50, STACK + 0x100, LEAF },
		      { APP + 0x610, STACK + 0x108, ROWS },
		      { APP + 0x310, STACK + 0x190, ROWS });
	r.still.regs.known &= ~UINT64_C(1); /* of a thread that was not interrupted */
	assert_frames(SF_END_REGISTER,
		      { APP + 0x50, STACK + 0x100, LEAF },
		      { APP + 0x610, STACK + 0x108, ROWS });
}

/* Code without rules may have changed the register. */
static void a_cfa_behind_code_without_rules(void **state)
{
	(void)state;
	build_by_rax();
	r.still.regs.pc = JIT + 0x50;
	recorded_call(&r, APP + 0x610, JIT + 0x40);
	recorded_reg(&r, RBP, STACK + 0x140);
	assert_frames(SF_END_REGISTER,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { APP + 0x610, STACK + 0x108, GUESS });
}

static void a_stack_that_moves_down_is_stuck(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x220;
	recorded_reg(&r, RBP, STACK + 0xf0); /* CFA = sp: not above, and this leaf was called */
	recorded_put(&r, STACK + 0xf8, APP + 0x220);
	recorded_put(&r, STACK + 0xf0, STACK + 0xf0);
	assert_frames(SF_END_STUCK,
		      { APP + 0x220, STACK + 0x100, LEAF },
		      { APP + 0x220, STACK + 0x100, ROWS });
	recorded_reg(&r, RBP, STACK + 0xe8);
	recorded_put(&r, STACK + 0xf0, APP + 0x220);
	assert_frames(SF_END_STUCK, { APP + 0x220, STACK + 0x100, LEAF });
}

static void unreadable_and_uncopied_are_told_apart(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x120;
	recorded_window(&r, STACK, 0x110, STACK + SIZE);
	assert_frames(SF_END_COPY, { APP + 0x120, STACK + 0x100, LEAF });
	recorded_reg(&r, RSP, STACK + 0x100 - 0x8 - 0x18); /* across the edge */
	recorded_window(&r, STACK, 0xfc, STACK + SIZE);
	assert_frames(SF_END_COPY, { APP + 0x120, STACK + 0xe0, LEAF });
	recorded_reg(&r, RSP, 0x1000);
	assert_frames(SF_END_MEMORY, { APP + 0x120, 0x1000, LEAF });
}

/* Functions that keep their caller's sp below their own: at *(rsp - 8), in the red zone (APP + 0x600), and at *(rsp - 256). */
static void keep_below_sp(void)
{
	static const uint8_t at_below[] = { 0x77, 0x78, 0x06, 0x23, 0x08 }, at_far[] = { 0x77, 0x80, 0x7e, 0x06, 0x23, 0x08 };
	struct sf_rules below = simple_rules(RSP, 8, -8), far = below, bare = below;

	below.cfa = table_expression(&app, SF_HOW_EXPRESSION, at_below, sizeof(at_below));
	far.cfa = table_expression(&app, SF_HOW_EXPRESSION, at_far, sizeof(at_far));
	table_row(&app, 0x600, &below);
	table_row(&app, 0x700, &far);
	table_row(&app, 0x800, &bare);
	table_finish(&app);
	r.still.regs.pc = APP + 0x610;
	r.still.memory.copied = true;
	recorded_put(&r, STACK + 0xf8, STACK + 0x140);
	recorded_put(&r, STACK + 0x140, APP + 0x310);
}

static void what_is_needed_below_sp_is_told(void **state)
{
	(void)state;
	keep_below_sp();
	recorded_window(&r, STACK, SIZE, 0);
	assert_frames(SF_END_ROOT, { APP + 0x610, STACK + 0x100, LEAF }, { APP + 0x310, STACK + 0x148, ROWS });
	assert_true(r.trace.below_sp);
	r.still.memory.window += 0x100;
	r.still.memory.window_start += 0x100;
	assert_frames(SF_END_OTHER_STACK, { APP + 0x610, STACK + 0x100, LEAF });
	assert_true(r.trace.below_sp);
	r.still.regs.pc = APP + 0x710;
	assert_frames(SF_END_OTHER_STACK, { APP + 0x710, STACK + 0x100, LEAF });
	assert_false(r.trace.below_sp);
	r.still.regs.pc = APP + 0x10;
	recorded_put(&r, STACK + 0x100, APP + 0x310);
	assert_frames(SF_END_ROOT, { APP + 0x10, STACK + 0x100, LEAF }, { APP + 0x310, STACK + 0x108, ROWS });
	assert_false(r.trace.below_sp);
}

/* At the first instruction of a function without rows, called from one: fp is still the caller's. */
static void enter_without_rows(uint64_t entry)
{
	static const uint8_t push_mov[] = { 0x55, 0x48, 0x89, 0xe5 };

	recorded_bytes(&r, entry, push_mov, sizeof(push_mov));
	recorded_reg(&r, RBP, STACK + 0x140);
	recorded_put(&r, STACK + 0x100, JIT + 0x80);
	recorded_put(&r, STACK + 0x148, APP + 0x310);
	r.still.regs.pc = entry;
}

static void assert_entered(uint64_t entry)
{
	assert_frames(SF_END_ROOT,
		      { entry, STACK + 0x100, LEAF },
		      { JIT + 0x80, STACK + 0x108, GUESS },
		      { APP + 0x310, STACK + 0x150, CHAIN });
}

/* Where a copied stack ends is not known; libraries are often not far above it. */
static void code_above_a_copied_stack_can_be_read(void **state)
{
	(void)state;

	recorded_region(&r, ALTSTACK, ALTSTACK + SIZE, NULL, 0);
	recorded_window(&r, STACK, 0x200, ALTSTACK + SIZE);
	enter_without_rows(ALTSTACK + 0x50);
	assert_entered(ALTSTACK + 0x50);
}

static void the_window_needs_no_calls(void **state)
{
	(void)state;
	rows_lead_to_the_root(NULL);
	assert_true(r.n_reads > 0);
	r.n_reads = 0;
	recorded_window(&r, STACK, SIZE, 0);
	rows_lead_to_the_root(NULL);
	assert_int_equal(r.n_reads, 0);
}

static void depth_is_only_cut_when_there_is_more(void **state)
{
	(void)state;
	r.trace.capacity = 4;
	rows_lead_to_the_root(NULL);
	r.trace.capacity = 3;
	assert_int_equal(recorded_walk(&r), SF_END_DEPTH);
	assert_int_equal(r.trace.n_frames, 3);
	r.trace.capacity = 0;
	assert_int_equal(recorded_walk(&r), SF_END_DEPTH);
	assert_int_equal(r.trace.n_frames, 0);
}

static void nothing_known_is_empty(void **state)
{
	(void)state;
	r.still.regs.known = 0;
	assert_int_equal(recorded_walk(&r), SF_END_EMPTY);
	assert_int_equal(r.trace.n_frames, 0);
	r.still.arch = NULL;
	assert_int_equal(recorded_walk(&r), SF_END_EMPTY);
}

/* Frame pointers lead through code of no file, and the stack is whole: it may have other frames when its runtime is known. */
static void code_of_no_file_amid_a_whole_stack(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x10;
	recorded_reg(&r, RBP, STACK + 0x140);
	recorded_put(&r, STACK + 0x100, JIT + 0x80);
	put_call(JIT + 0x80);
	recorded_put(&r, STACK + 0x140, STACK + 0x180);
	recorded_put(&r, STACK + 0x148, APP + 0x310);
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_int_equal(r.trace.n_frames, 3);
	assert_false(sf_trace_may_be_stale(&r.trace));
	assert_true(sf_trace_has_code_of_no_file(&r.trace));
	recorded_put(&r, STACK + 0x100, APP + 0x310);
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_false(sf_trace_has_code_of_no_file(&r.trace));
}

static bool go_on_at_the_root(const struct sf_runtime *runtime, struct sf_cursor *cursor)
{
	(void)runtime;
	cursor->regs.known = 0;
	cursor->regs.pc = APP + 0x310;
	recorded_put(&r, STACK + 0x200, 0);
	sf_reg_set(&cursor->regs, RSP, STACK + 0x200);
	cursor->exact = false;
	cursor->via = SF_VIA_ANCHOR;
	return true;
}

/* To a copy of the map: the recorded one is for all tests. */
static void add_runtime(const struct sf_runtime *runtime)
{
	_Alignas(8) static uint8_t bytes[sizeof(struct sf_code_map) + 8 * sizeof(struct sf_region)];
	struct sf_code_map *map = (struct sf_code_map *)bytes;

	assert_true(r.still.map->n_regions <= 8);
	memcpy(map, r.still.map, sizeof(*map) + r.still.map->n_regions * sizeof(struct sf_region));
	map->runtimes[0] = runtime;
	map->n_runtimes = 1;
	r.still.map = map;
}

/*
 * Where a runtime leads on from code that the map does not have, the stack may be whole, and is another one with a newer
 * map: the thread, or a caller, may stand in a library that has just been loaded.
 */
static void a_map_without_the_code_is_stale_also_where_a_runtime_leads_on(void **state)
{
	static const struct {
		uint64_t pc, caller;
		bool stale;
	} cases[] = { { 0x900000, 0, true }, { APP + 0x10, 0x900000, true }, { JIT + 0x50, 0, false } };
	static const struct sf_runtime_ops ops = { .resume = go_on_at_the_root };
	const struct sf_runtime runtime = { .ops = &ops };
	(void)state;

	add_runtime(&runtime);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		r.still.regs.pc = cases[i].pc;
		recorded_put(&r, STACK + 0x100, cases[i].caller);
		assert_int_equal(recorded_walk(&r), SF_END_ROOT);
		assert_int_equal(r.trace.n_frames, 2);
		assert_int_equal(sf_trace_may_be_stale(&r.trace), cases[i].stale);
	}
}

/* A JIT's frames keep frame pointers; the C library's rows take over above them. */
static void frame_pointers_where_no_row_covers(void **state)
{
	(void)state;
	r.still.regs.pc = JIT + 0x50;
	recorded_reg(&r, RBP, STACK + 0x140);
	put_call(JIT + 0x80);
	recorded_put(&r, STACK + 0x140, STACK + 0x180);
	recorded_put(&r, STACK + 0x148, JIT + 0x80);
	recorded_put(&r, STACK + 0x180, 0);
	recorded_put(&r, STACK + 0x188, LIBC + 0x20);
	recorded_put(&r, STACK + 0x190, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { JIT + 0x80, STACK + 0x150, CHAIN },
		      { LIBC + 0x20, STACK + 0x190, CHAIN },
		      { APP + 0x310, STACK + 0x198, ROWS });
	assert_int_equal(r.frames[0].image, 0);
	assert_int_equal(r.frames[0].address, JIT + 0x50);
}

/*
 * As call_into_lisp of SBCL: it has the frame at +0x180, and makes the record of what it calls at +0x140. Where that is left by
 * the frame pointer, the rules need the record's address in it.
 */
static void a_frame_that_its_caller_made(void **state)
{
	static const uint8_t at_rbp_plus_16[] = { 0x76, 0, 0x06, 0x40, 0x22 }, at_rbp_minus_8[] = { 0x76, 0x78, 0x06 };
	struct sf_rules rules = simple_rules(RBP, 16, -8);
	(void)state;

	rules.saved[1] = (struct sf_rule){ .how = SF_HOW_AT_CFA, .value = -16 };
	rules.cfa = table_expression(&app, SF_HOW_EXPRESSION, at_rbp_plus_16, sizeof(at_rbp_plus_16));
	table_row(&app, 0x600, &rules);
	rules.cfa = table_expression(&app, SF_HOW_EXPRESSION, at_rbp_minus_8, sizeof(at_rbp_minus_8));
	table_row(&app, 0x700, &rules);
	table_finish(&app);
	r.still.regs.pc = JIT + 0x50;
	recorded_reg(&r, RBP, STACK + 0x140);
	put_call(APP + 0x620);
	put_call(APP + 0x720);
	recorded_put(&r, STACK + 0x140, STACK + 0x180);
	recorded_put(&r, STACK + 0x148, APP + 0x620);
	recorded_put(&r, STACK + 0x180, STACK + 0x1c0);
	recorded_put(&r, STACK + 0x188, LIBC + 0x20);
	recorded_put(&r, STACK + 0x190, APP + 0x310);
	recorded_put(&r, STACK + 0x1c8, LIBC + 0x30); /* what calls the caller */
	assert_frames(SF_END_ROOT,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { APP + 0x620, STACK + 0x150, CHAIN },
		      { LIBC + 0x20, STACK + 0x190, ROWS },
		      { APP + 0x310, STACK + 0x198, ROWS });
	/* Code whose stack was realigned has its CFA before its own record. */
	recorded_put(&r, STACK + 0x148, APP + 0x720);
	recorded_put(&r, STACK + 0x178, STACK + 0x1a0);
	recorded_put(&r, STACK + 0x198, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { APP + 0x720, STACK + 0x150, CHAIN },
		      { APP + 0x310, STACK + 0x1a0, ROWS });
}

static void a_gap_between_functions_too(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x450;
	recorded_reg(&r, RBP, STACK + 0x140);
	put_call(APP + 0x310);
	recorded_put(&r, STACK + 0x148, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { APP + 0x450, STACK + 0x100, LEAF },
		      { APP + 0x310, STACK + 0x150, CHAIN });
}

/*
 * A gap that begins with a system call, as glibc leaves one where clone returns: to the caller, and
 * in the new thread, whose frame pointer is still the caller's.
 */
static void a_thread_that_was_just_made_has_no_caller(void **state)
{
	static const uint8_t code[] = { 0x0f, 0x05, 0x48, 0x85, 0xc0 }; /* syscall; test %rax, %rax */
	(void)state;

	recorded_bytes(&r, APP + 0x400, code, sizeof(code));
	put_call(LIBC + 0x20);
	r.still.regs.pc = APP + 0x402;
	recorded_reg(&r, RAX, 0);
	recorded_reg(&r, RBP, STACK + 0x140);
	recorded_put(&r, STACK + 0x148, LIBC + 0x20);
	assert_frames(SF_END_ROOT, { APP + 0x402, STACK + 0x100, LEAF });
	/* Too far behind the call to be its gap. */
	r.still.regs.pc = APP + 0x440;
	assert_frames(SF_END_ROOT,
		      { APP + 0x440, STACK + 0x100, LEAF },
		      { LIBC + 0x20, STACK + 0x150, CHAIN });
}

/* The row before the gap (CFA = rsp + 8) holds for who made it, before the call and after. */
static void who_makes_a_thread_is_where_it_was(void **state)
{
	static const uint8_t code[] = { 0x0f, 0x05, 0x48, 0x85, 0xc0 };
	const struct sf_rules bare = simple_rules(RSP, 8, -8);
	(void)state;

	table_row(&app, 0x700, &bare);
	table_row(&app, 0x780, NULL);
	table_row(&app, 0x790, &bare);
	table_finish(&app);
	recorded_bytes(&r, APP + 0x780, code, sizeof(code));
	recorded_put(&r, STACK + 0x100, APP + 0x310);
	recorded_reg(&r, RAX, 1234);
	r.still.regs.pc = APP + 0x782;
	assert_frames(SF_END_ROOT,
		      { APP + 0x782, STACK + 0x100, LEAF },
		      { APP + 0x310, STACK + 0x108, ROWS });
	/* A caller that sleeps until the new process has its program: its result is not known. */
	r.still.regs.known = UINT64_C(1) << RSP;
	assert_frames(SF_END_ROOT,
		      { APP + 0x782, STACK + 0x100, LEAF },
		      { APP + 0x310, STACK + 0x108, ROWS });
	recorded_reg(&r, RAX, 0);
	r.still.regs.pc = APP + 0x780;
	assert_frames(SF_END_ROOT,
		      { APP + 0x780, STACK + 0x100, LEAF },
		      { APP + 0x310, STACK + 0x108, ROWS });
}

/* Of the function that sets it. One that keeps no frame pointer only has it from its caller. */
static void a_zero_frame_pointer_is_the_root(void **state)
{
	static const uint8_t clears_fp[][3] = { { 0x48, 0x31, 0xed }, { 0x48, 0x33, 0xed }, { 0x48, 0x29, 0xed }, { 0x48, 0x2b, 0xed } };
	(void)state;
	r.still.regs.pc = JIT + 0x50;
	put_call(JIT + 0x80);
	recorded_reg(&r, RBP, STACK + 0x140);
	recorded_put(&r, STACK + 0x140, 0);
	recorded_put(&r, STACK + 0x148, JIT + 0x80);
	assert_frames(SF_END_NO_RULE,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { JIT + 0x80, STACK + 0x150, CHAIN });
	for (unsigned i = 0; i < 4; i++) {
		recorded_bytes(&r, JIT + 0x60, clears_fp[i], 3);
		assert_frames(SF_END_ROOT,
			      { JIT + 0x50, STACK + 0x100, LEAF },
			      { JIT + 0x80, STACK + 0x150, CHAIN });
	}
}

/* As lld puts it: nothing before it can be read. */
static void a_first_function_at_the_start_of_the_code_is_the_root(void **state)
{
	(void)state;
	r.still.regs.pc = JIT + 0x50;
	recorded_bytes(&r, JIT, &(uint8_t[]){ 0x31, 0xed }, 2);
	put_call(JIT + 0x2a);
	recorded_reg(&r, RBP, STACK + 0x140);
	recorded_put(&r, STACK + 0x148, JIT + 0x2a);
	assert_frames(SF_END_ROOT,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { JIT + 0x2a, STACK + 0x150, CHAIN });
}

/* The first record of a stack that the program makes itself, as Erlang does: it leads to code that was not called. */
static void a_zero_is_the_root_where_nobody_called(void **state)
{
	(void)state;
	r.still.regs.pc = JIT + 0x50;
	put_call(JIT + 0x80);
	recorded_reg(&r, RBP, STACK + 0x140);
	recorded_put(&r, STACK + 0x140, STACK + 0x180);
	recorded_put(&r, STACK + 0x148, JIT + 0x80);
	recorded_put(&r, STACK + 0x180, 0);
	recorded_put(&r, STACK + 0x188, JIT + 0x200);
	assert_frames(SF_END_ROOT,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { JIT + 0x80, STACK + 0x150, CHAIN },
		      { JIT + 0x200, STACK + 0x190, SF_VIA_FRAME_POINTER, SF_FRAME_EXACT });
	put_call(JIT + 0x200);
	assert_frames(SF_END_NO_RULE,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { JIT + 0x80, STACK + 0x150, CHAIN },
		      { JIT + 0x200, STACK + 0x190, CHAIN });
}

/*
 * Compiled code with frame pointers calls C on the thread's stack. Its own stack is elsewhere, here at a lower address: the C
 * code gives the frame pointer back, and the record's return address is behind a call.
 */
static void code_without_rules_calls_on_another_stack(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x10;
	recorded_reg(&r, RBP, STACK + 0x40);
	recorded_put(&r, STACK + 0x100, JIT + 0x50);
	put_call(JIT + 0x80);
	recorded_put(&r, STACK + 0x40, STACK + 0x60);
	recorded_put(&r, STACK + 0x48, JIT + 0x80);
	recorded_put(&r, STACK + 0x68, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { APP + 0x10, STACK + 0x100, LEAF },
		      { JIT + 0x50, STACK + 0x108, ROWS },
		      { JIT + 0x80, STACK + 0x50, CHAIN },
		      { APP + 0x310, STACK + 0x70, CHAIN });
	recorded_put(&r, STACK + 0x40, STACK + 0x10); /* from record to record it only goes up */
	assert_frames(SF_END_NO_RULE,
		      { APP + 0x10, STACK + 0x100, LEAF },
		      { JIT + 0x50, STACK + 0x108, ROWS },
		      { JIT + 0x80, STACK + 0x50, CHAIN });
	recorded_put(&r, STACK + 0x48, JIT + 0x90);   /* behind no call */
	assert_frames(SF_END_NO_RULE,
		      { APP + 0x10, STACK + 0x100, LEAF },
		      { JIT + 0x50, STACK + 0x108, ROWS });
	recorded_put(&r, STACK + 0x48, 0);            /* no thread's first frame, but memory that the stack was moved from */
	assert_frames(SF_END_NO_RULE,
		      { APP + 0x10, STACK + 0x100, LEAF },
		      { JIT + 0x50, STACK + 0x108, ROWS });
}

/*
 * musl's functions between a thread's first one and the program's: without rules and without frame pointers. The first
 * one is known by all of its bytes before the call.
 */
static void a_first_function_near(void **state)
{
	static const uint8_t clone[] = { 0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1 };
	static const uint8_t start_code[] = { 0x48, 0x31, 0xed, 0x48, 0x89, 0xe7, 0x48, 0x8d, 0x35, 1, 2, 3, 4, 0x48, 0x83, 0xe4, 0xf0, 0xe8, 5, 6, 7, 8 };
	static const struct {
		const uint8_t *code;
		size_t size;
	} firsts[] = { { clone, sizeof(clone) }, { start_code, sizeof(start_code) } };
	(void)state;

	r.still.regs.pc = JIT + 0x50;
	put_call(JIT + 0x80);
	recorded_reg(&r, RBP, STACK + 0x140);
	recorded_put(&r, STACK + 0x140, 7); /* no frame pointer: the function keeps something else there */
	recorded_put(&r, STACK + 0x148, JIT + 0x80);
	recorded_put(&r, STACK + 0x150, JIT + 0x90);  /* pushed; behind no such call */
	recorded_put(&r, STACK + 0x158, JIT + 0x140);
	for (size_t i = 0; i < 2; i++) {
		recorded_bytes(&r, JIT + 0x140 - firsts[i].size, firsts[i].code, firsts[i].size);
		assert_frames(SF_END_ROOT,
			      { JIT + 0x50, STACK + 0x100, LEAF },
			      { JIT + 0x80, STACK + 0x150, CHAIN },
			      { JIT + 0x140, STACK + 0x160, GUESS });
		recorded_bytes(&r, JIT + 0x140 - firsts[i].size, &(uint8_t){ 0x90 }, 1);
		assert_frames(SF_END_NO_RULE,
			      { JIT + 0x50, STACK + 0x100, LEAF },
			      { JIT + 0x80, STACK + 0x150, CHAIN });
	}
}

/* Code without frame pointers keeps whatever it likes in that register, also for its callee's leaf. */
static void a_zero_is_no_root_where_no_frame_was_made(void **state)
{
	(void)state;
	r.still.regs.pc = JIT + 0x50;
	recorded_reg(&r, RBP, 0);
	assert_frames(SF_END_NO_RULE, { JIT + 0x50, STACK + 0x100, LEAF });
	recorded_call(&r, JIT + 0x80, JIT + 0x40);
	recorded_put(&r, STACK + 0x100, JIT + 0x80);
	assert_frames(SF_END_NO_RULE,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { JIT + 0x80, STACK + 0x108, GUESS });
}

struct bad_chain {
	uint64_t fp, pc;
	enum sf_end end;
};

static void frame_pointers_that_lead_nowhere(void **state)
{
	static const struct bad_chain chains[] = {
		{ STACK + 0x141, 0, SF_END_NO_RULE },           /* not aligned */
		{ STACK + 0xf8, APP + 0x310, SF_END_NO_RULE },  /* below sp */
		{ STACK + 0x140, 0x123456, SF_END_NO_RULE },    /* to no code */
		{ 0x1000000, 0, SF_END_MEMORY },
		{ UINT64_MAX - 7, 0, SF_END_NO_RULE },
	};
	(void)state;

	r.still.regs.pc = JIT + 0x50;
	for (unsigned i = 0; i < sizeof(chains) / sizeof(chains[0]); i++) {
		recorded_reg(&r, RBP, chains[i].fp);
		if (chains[i].pc)
			recorded_put(&r, chains[i].fp + 8, chains[i].pc);
		assert_frames(chains[i].end, { JIT + 0x50, STACK + 0x100, LEAF });
	}
	r.still.regs.known &= ~(UINT64_C(1) << RBP);
	assert_frames(SF_END_REGISTER, { JIT + 0x50, STACK + 0x100, LEAF });
}

static void a_broken_chain_above_a_call(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x10;
	recorded_reg(&r, RBP, STACK + 0x140);
	recorded_put(&r, STACK + 0x100, JIT + 0x50);
	recorded_put(&r, STACK + 0x148, 0x123456);
	assert_frames(SF_END_NO_RULE,
		      { APP + 0x10, STACK + 0x100, LEAF },
		      { JIT + 0x50, STACK + 0x108, ROWS });
}

/* The function's first and last instructions: the frame on fp is the caller's. */
static void edges_of_a_function_without_rows(void **state)
{
	static const uint8_t ret[] = { 0xc3 };
	(void)state;

	enter_without_rows(JIT + 0x50);
	recorded_bytes(&r, JIT + 0x60, ret, sizeof(ret));
	assert_entered(JIT + 0x50);
	r.still.regs.pc = JIT + 0x60;
	assert_frames(SF_END_ROOT,
		      { JIT + 0x60, STACK + 0x100, LEAF },
		      { JIT + 0x80, STACK + 0x108, GUESS },
		      { APP + 0x310, STACK + 0x150, CHAIN });
	/* One instruction later rbp has been pushed. */
	r.still.regs.pc = JIT + 0x51;
	recorded_reg(&r, RSP, STACK + 0xf8);
	recorded_put(&r, STACK + 0xf8, STACK + 0x140);
	assert_frames(SF_END_ROOT,
		      { JIT + 0x51, STACK + 0xf8, LEAF },
		      { JIT + 0x80, STACK + 0x108, GUESS },
		      { APP + 0x310, STACK + 0x150, CHAIN });
}

/* In the middle of a leaf that makes no frame: what is on top of the stack was called to here. */
static void a_direct_call_to_here_is_believed(void **state)
{
	(void)state;
	r.still.regs.pc = JIT + 0x50;
	recorded_call(&r, JIT + 0x80, JIT + 0x40);
	put_call(APP + 0x310);
	recorded_reg(&r, RBP, STACK + 0x140);
	recorded_put(&r, STACK + 0x100, JIT + 0x80);
	recorded_put(&r, STACK + 0x148, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { JIT + 0x80, STACK + 0x108, GUESS },
		      { APP + 0x310, STACK + 0x150, CHAIN });
}

/* A return address of an earlier call may still lie on top of a frame: its target gives it away. */
static void a_stale_return_address_is_not(void **state)
{
	(void)state;
	r.still.regs.pc = JIT + 0x50;
	recorded_call(&r, JIT + 0x80, JIT + 0x400);
	put_call(APP + 0x310);
	recorded_reg(&r, RBP, STACK + 0x140);
	recorded_put(&r, STACK + 0x100, JIT + 0x80);
	recorded_put(&r, STACK + 0x148, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { APP + 0x310, STACK + 0x150, CHAIN });
}

/* With no direct call as evidence, a record that leads behind a call goes before what is on top. */
static void weaker_evidence_in_its_order(void **state)
{
	(void)state;
	r.still.regs.pc = JIT + 0x50;
	put_call(JIT + 0x80);
	put_call(APP + 0x310);
	recorded_reg(&r, RBP, STACK + 0x140);
	recorded_put(&r, STACK + 0x100, JIT + 0x80);
	recorded_put(&r, STACK + 0x148, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { APP + 0x310, STACK + 0x150, CHAIN });

	recorded_put(&r, STACK + 0x148, APP + 0x320); /* code, but behind no call */
	assert_frames(SF_END_ROOT,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { JIT + 0x80, STACK + 0x108, GUESS },
		      { APP + 0x320, STACK + 0x150, CHAIN });

	recorded_put(&r, STACK + 0x100, 0); /* nothing better: a trampoline may have pushed it */
	assert_frames(SF_END_ROOT,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { APP + 0x320, STACK + 0x150, GUESS });
}

/* As a function of OpenBLAS: mov %rbx, %rsp; pop %rbx; ret. Its own stack is aligned far below. */
static void an_aligned_function_without_rules(void **state)
{
	static const uint8_t code[] = { 0x90, 0x48, 0x89, 0xdc, 0x5b, 0xc3 };
	(void)state;

	r.still.regs.pc = JIT + 0x50;
	recorded_bytes(&r, JIT + 0x50, code, sizeof(code));
	recorded_reg(&r, RBP, 1);
	recorded_reg(&r, RBX, STACK + 0x800);
	recorded_put(&r, STACK + 0x808, APP + 0x310);
	assert_frames(SF_END_NO_RULE, { JIT + 0x50, STACK + 0x100, LEAF });
	put_call(APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { APP + 0x310, STACK + 0x810, GUESS });
	recorded_reg(&r, RBX, STACK + 0x80); /* below its stack */
	recorded_put(&r, STACK + 0x88, APP + 0x310);
	assert_frames(SF_END_NO_RULE, { JIT + 0x50, STACK + 0x100, LEAF });
}

/*
 * As x264's routines in assembly, which call others: call; mov %rcx, %rsp; ret. The other one is nop; ret. With pop %rcx before ret it
 * has a frame.
 */
static void an_aligned_function_that_has_called(void **state)
{
	static const uint8_t called[] = { 0x90, 0xc3 }, with_frame[] = { 0x90, 0x59, 0xc3 };
	static const uint8_t aligned[] = { 0xe8, 0, 0, 0, 0, 0x48, 0x89, 0xcc, 0xc3 };
	(void)state;

	r.still.regs.pc = JIT + 0x50;
	recorded_bytes(&r, JIT + 0x50, called, sizeof(called));
	recorded_bytes(&r, JIT + 0x80, aligned, sizeof(aligned));
	recorded_reg(&r, RBP, 1);
	recorded_reg(&r, RCX, STACK + 0x800);
	recorded_put(&r, STACK + 0x100, JIT + 0x80);
	recorded_put(&r, STACK + 0x800, APP + 0x310);
	put_call(JIT + 0x80);
	put_call(APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { JIT + 0x80, STACK + 0x108, CODE },
		      { APP + 0x310, STACK + 0x808, GUESS });
	recorded_bytes(&r, JIT + 0x50, with_frame, sizeof(with_frame));
	recorded_put(&r, STACK + 0x108, JIT + 0x80);
	assert_frames(SF_END_NO_RULE, { JIT + 0x50, STACK + 0x100, LEAF }, { JIT + 0x80, STACK + 0x110, CODE });
}

/* As OpenSSL's bn_gather5: mov %r10, %rsp; ret. Its rules say that it took nothing from the stack. */
static void rules_that_lead_to_no_return_address(void **state)
{
	static const uint8_t code[] = { 0x90, 0x4c, 0x89, 0xd4, 0xc3 };
	(void)state;

	r.still.regs.pc = APP + 0x10;
	recorded_bytes(&r, APP + 0x10, code, sizeof(code));
	recorded_reg(&r, 10, STACK + 0x200);
	recorded_put(&r, STACK + 0x200, APP + 0x310);
	assert_frames(SF_END_ROOT, { APP + 0x10, STACK + 0x100, LEAF });
	put_call(APP + 0x310);
	assert_frames(SF_END_ROOT, { APP + 0x10, STACK + 0x100, LEAF }, { APP + 0x310, STACK + 0x208, GUESS });
	assert_false(r.trace.by_zero);
	recorded_put(&r, STACK + 0x100, UINT64_MAX);
	assert_frames(SF_END_ROOT, { APP + 0x10, STACK + 0x100, LEAF }, { APP + 0x310, STACK + 0x208, GUESS });
	recorded_put(&r, STACK + 0x100, 0x123456); /* that may be code which is not in the map yet: a guess would hide it */
	assert_frames(SF_END_NO_CODE, { APP + 0x10, STACK + 0x100, LEAF });
	recorded_put(&r, STACK + 0x100, APP + 0x320); /* rules come first */
	assert_frames(SF_END_ROOT, { APP + 0x10, STACK + 0x100, LEAF }, { APP + 0x320, STACK + 0x108, ROWS });
}

/*
 * As glibc's __mpn_addmul_1, by which printf makes decimals: pop %rbp; pop %rbx; ret. Its rules know of no push. The word at sp
 * may be code that a newer map has, so one is looked for all the same.
 */
static void rules_that_know_of_no_push(void **state)
{
	static const uint8_t code[] = { 0x90, 0x5d, 0x5b, 0xc3 };
	(void)state;

	r.still.regs.pc = APP + 0x10;
	recorded_bytes(&r, APP + 0x10, code, sizeof(code));
	recorded_put(&r, STACK + 0x100, 0x123456);
	recorded_put(&r, STACK + 0x110, APP + 0x310);
	assert_frames(SF_END_NO_CODE, { APP + 0x10, STACK + 0x100, LEAF });
	put_call(APP + 0x310);
	assert_frames(SF_END_ROOT, { APP + 0x10, STACK + 0x100, LEAF }, { APP + 0x310, STACK + 0x118, CODE });
	assert_true(sf_trace_may_be_stale(&r.trace));
}

static const struct sf_region *find_managed(const struct sf_runtime *runtime, uint64_t pc)
{
	static struct sf_region region;

	region = (struct sf_region){ .start = JIT, .end = JIT + SIZE, .runtime = runtime };
	return pc - JIT < SIZE ? &region : NULL;
}

static enum sf_step end_in_managed(const struct sf_runtime *runtime, struct sf_cursor *cursor, enum sf_end *why)
{
	(void)runtime;
	(void)why;
	cursor->trace->frames[cursor->trace->n_frames - 1].kind = SF_KIND_JITTED;
	return SF_STEP_ROOT;
}

/*
 * As .NET's ResolveWorkerChainLookupAsmStub, to which a stub jumps that has pushed words: pop %rdx; jmp *%rax. Its rules lead to
 * such a word. The runtime would go on at the last call of native code, further out: the managed code between would be left out.
 */
static void rules_that_know_of_no_push_below_managed_code(void **state)
{
	static const uint8_t code[] = { 0x5a, 0xff, 0xe0 };
	static const struct sf_runtime_ops ops = { .find = find_managed, .step = end_in_managed, .resume = go_on_at_the_root };
	const struct sf_runtime runtime = { .ops = &ops, .start = JIT, .end = JIT + SIZE };
	(void)state;

	add_runtime(&runtime);
	r.still.regs.pc = APP + 0x10;
	recorded_bytes(&r, APP + 0x10, code, sizeof(code));
	recorded_put(&r, STACK + 0x100, 0x123456);
	recorded_put(&r, STACK + 0x108, JIT + 0x80);
	put_call(JIT + 0x80);
	assert_frames(SF_END_ROOT, { APP + 0x10, STACK + 0x100, LEAF }, { JIT + 0x80, STACK + 0x110, GUESS });
	assert_true(sf_trace_may_be_stale(&r.trace));
	recorded_put(&r, STACK + 0x108, LIBC + 0x80);
	put_call(LIBC + 0x80);
	assert_frames(SF_END_ROOT, { APP + 0x10, STACK + 0x100, LEAF }, { APP + 0x310, STACK + 0x200, SF_VIA_ANCHOR, 0 });
}

/*
 * As LuaJIT's lj_vm_ffi_call, whose rules count from the frame pointer all along: at its return that is the caller's register. A
 * guess, behind a jump to an unknown place, would hide that there may be another stack.
 */
static void rules_that_lead_out_of_the_stack(void **state)
{
	static const uint8_t code[] = { 0xc3 }, jump[] = { 0x58, 0xff, 0xe0 };
	(void)state;

	r.still.regs.pc = APP + 0x210;
	recorded_bytes(&r, APP + 0x210, code, sizeof(code));
	recorded_reg(&r, RBP, 0x123456);
	recorded_put(&r, STACK + 0x100, APP + 0x310);
	recorded_put(&r, STACK + 0x108, APP + 0x310);
	assert_frames(SF_END_MEMORY, { APP + 0x210, STACK + 0x100, LEAF });
	put_call(APP + 0x310);
	assert_frames(SF_END_ROOT, { APP + 0x210, STACK + 0x100, LEAF }, { APP + 0x310, STACK + 0x108, CODE });
	recorded_bytes(&r, APP + 0x210, jump, sizeof(jump));
	assert_frames(SF_END_MEMORY, { APP + 0x210, STACK + 0x100, LEAF });
}

/*
 * Haskell's code by GHC: jmp *(%rbx). All of it leaves sp alone, so the code at the second word below r13 shows where the return
 * address is: add $16432, %rsp; ret. Words on the way there may be return addresses, too, of earlier calls.
 */
static void code_that_leaves_sp_alone(void **state)
{
	static const uint8_t goes_on[] = { 0xff, 0x23 }, leaves[] = { 0x48, 0x81, 0xc4, 0x30, 0x40, 0, 0, 0xc3 }, pops[] = { 0x5b, 0xc3 };
	const uint64_t caller = STACK + 0x100 + 0x4030;
	(void)state;

	recorded_memory(&r, STACK + 0x4000, SIZE);
	r.still.regs.pc = JIT + 0x50;
	recorded_bytes(&r, JIT + 0x50, goes_on, sizeof(goes_on));
	recorded_bytes(&r, LIBC + 0x100, leaves, sizeof(leaves));
	recorded_reg(&r, RBP, 1);
	recorded_put(&r, ALTSTACK + 0x18, LIBC + 0x100);
	recorded_put(&r, caller, APP + 0x310);
	put_call(APP + 0x310);
	assert_frames(SF_END_NO_RULE, { JIT + 0x50, STACK + 0x100, LEAF });
	recorded_reg(&r, R13, ALTSTACK + 0x28);
	assert_frames(SF_END_ROOT, { JIT + 0x50, STACK + 0x100, LEAF }, { APP + 0x310, caller + 8, CODE });

	recorded_bytes(&r, JIT + 0x50, pops, sizeof(pops));
	recorded_put(&r, STACK + 0x108, JIT + 0x250);
	put_call(JIT + 0x250);
	assert_frames(SF_END_ROOT, { JIT + 0x50, STACK + 0x100, LEAF }, { APP + 0x310, caller + 8, CODE });
	recorded_put(&r, caller, 0); /* around a call */
	recorded_put(&r, caller + 8, APP + 0x310);
	assert_frames(SF_END_ROOT, { JIT + 0x50, STACK + 0x100, LEAF }, { APP + 0x310, caller + 16, CODE });
	recorded_put(&r, ALTSTACK + 0x18, JIT + 0x50); /* code of no file, and of a small frame: no such table */
	assert_frames(SF_END_NO_RULE, { JIT + 0x50, STACK + 0x100, LEAF }, { JIT + 0x250, STACK + 0x110, CODE });
	recorded_bytes(&r, LIBC + 0x100, pops, sizeof(pops));
	recorded_put(&r, ALTSTACK + 0x18, LIBC + 0x100);
	recorded_put(&r, STACK + 0x108, APP + 0x310);
	recorded_bytes(&r, JIT + 0x50, goes_on, sizeof(goes_on));
	assert_frames(SF_END_NO_RULE, { JIT + 0x50, STACK + 0x100, LEAF });
}

/* Where the return address is behind the end of the copy, a longer copy is needed. */
static void code_without_rules_on_a_short_copy(void **state)
{
	static const uint8_t code[] = { 0x48, 0x81, 0xc4, 0x00, 0x04, 0, 0, 0xc3 }; /* add $1024, %rsp; ret */
	(void)state;

	r.still.regs.pc = JIT + 0x50;
	recorded_bytes(&r, JIT + 0x50, code, sizeof(code));
	recorded_put(&r, STACK + 0x500, APP + 0x310);
	put_call(APP + 0x310);
	recorded_window(&r, STACK + 0x100, 0x200, STACK + SIZE);
	assert_frames(SF_END_COPY, { JIT + 0x50, STACK + 0x100, LEAF });
	recorded_window(&r, STACK + 0x100, 0x800, STACK + SIZE);
	assert_frames(SF_END_ROOT,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { APP + 0x310, STACK + 0x508, CODE });
}

/* Above code without rules, fp and sp are all that is known; above a bare leaf, what calls keep. */
static void registers_above_code_without_rows(void **state)
{
	struct sf_rules by_rbx = simple_rules(RBX, 16, -8), by_rax = simple_rules(0, 16, -8);
	(void)state;

	table_row(&app, 0x600, &by_rbx);
	table_row(&app, 0x700, &by_rax);
	table_finish(&app);
	r.still.regs.pc = JIT + 0x50;
	recorded_reg(&r, RBX, STACK + 0x180);
	recorded_reg(&r, 0, STACK + 0x180);
	recorded_reg(&r, RBP, STACK + 0x140);
	recorded_put(&r, STACK + 0x148, APP + 0x610);
	recorded_put(&r, STACK + 0x188, APP + 0x310);
	assert_frames(SF_END_REGISTER,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { APP + 0x610, STACK + 0x150, GUESS });

	recorded_call(&r, APP + 0x610, JIT + 0x40);
	recorded_put(&r, STACK + 0x100, APP + 0x610);
	assert_frames(SF_END_ROOT,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { APP + 0x610, STACK + 0x108, GUESS },
		      { APP + 0x310, STACK + 0x190, ROWS });
	recorded_call(&r, APP + 0x710, JIT + 0x40);
	recorded_put(&r, STACK + 0x100, APP + 0x710);
	assert_frames(SF_END_REGISTER,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { APP + 0x710, STACK + 0x108, GUESS });
}

/*
 * pop %rcx; lea 8(%r15), %rsp; push %rcx; ret, behind leave: the frame pointer is the caller's. The return address is on the
 * stack, then only in the register, and on the stack again.
 */
static void a_return_address_in_a_register(void **state)
{
	static const uint8_t code[] = { 0x59, 0x49, 0x8d, 0x67, 0x08, 0x51, 0xc3 };
	static const struct { uint8_t at, sp; } places[] = { { 0, 0 }, { 1, 8 }, { 5, 0x20 }, { 6, 0x18 } };
	(void)state;

	recorded_bytes(&r, JIT + 0x50, code, sizeof(code));
	put_call(JIT + 0x250);
	put_call(APP + 0x310);
	recorded_put(&r, STACK + 0x100, JIT + 0x250);
	recorded_put(&r, STACK + 0x118, JIT + 0x250);
	recorded_put(&r, STACK + 0x148, APP + 0x310);
	for (unsigned i = 0; i < 4; i++) {
		const uint64_t sp = STACK + 0x100 + places[i].sp;
		const bool is_popped = i == 1 || i == 2;

		r.still.regs.pc = JIT + 0x50 + places[i].at;
		recorded_reg(&r, RSP, sp);
		recorded_reg(&r, RBP, STACK + 0x140);
		recorded_reg(&r, RCX, JIT + 0x250);
		assert_frames(SF_END_ROOT,
			      { r.still.regs.pc, sp, LEAF },
			      { JIT + 0x250, is_popped ? sp : sp + 8, CODE },
			      { APP + 0x310, STACK + 0x150, CHAIN });
	}
	r.still.regs.known &= ~(UINT64_C(1) << RCX);
	recorded_reg(&r, RSP, STACK + 0x108);
	r.still.regs.pc = JIT + 0x51;
	assert_frames(SF_END_ROOT, { JIT + 0x51, STACK + 0x108, LEAF }, { APP + 0x310, STACK + 0x150, CHAIN });
}

/*
 * In a file without rules a function with a frame pointer is called by one that has its caller's still, and takes 8 bytes: lea
 * 8(%rsp), %rsp; ret. In no file all code has frame pointers.
 */
static void a_function_with_its_callers_frame_pointer(void **state)
{
	static const uint8_t leaves[] = { 0xc9, 0xc3 }, plain[] = { 0x48, 0x8d, 0x64, 0x24, 0x08, 0xc3 };
	(void)state;

	recorded_memory(&r, BARE, SIZE);
	recorded_region(&r, BARE, BARE + SIZE, NULL, 3);
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t code = i ? JIT : BARE;

		recorded_bytes(&r, code + 0x50, leaves, sizeof(leaves));
		recorded_bytes(&r, code + 0x250, plain, sizeof(plain));
		put_call(code + 0x250);
		put_call(APP + 0x320);
		put_call(APP + 0x310);
		r.still.regs.pc = code + 0x50;
		recorded_reg(&r, RBP, STACK + 0x110);
		recorded_put(&r, STACK + 0x110, STACK + 0x140);
		recorded_put(&r, STACK + 0x118, code + 0x250);
		recorded_put(&r, STACK + 0x128, APP + 0x320);
		recorded_put(&r, STACK + 0x148, APP + 0x310);
		if (i)
			assert_frames(SF_END_ROOT,
				      { code + 0x50, STACK + 0x100, LEAF },
				      { code + 0x250, STACK + 0x120, CHAIN },
				      { APP + 0x310, STACK + 0x150, CHAIN });
		else
			assert_frames(SF_END_ROOT,
				      { code + 0x50, STACK + 0x100, LEAF },
				      { code + 0x250, STACK + 0x120, CHAIN },
				      { APP + 0x320, STACK + 0x130, CODE });
	}
}

/* pop %rbx; pop %rbp; ret: two words lie between sp and the return address. Also where a frame pointer of 0 led here. */
static void by_the_code_of_the_function(void **state)
{
	static const uint8_t epilogue[] = { 0x5b, 0x5d, 0xc3 };
	(void)state;

	r.still.regs.pc = JIT + 0x50;
	recorded_bytes(&r, JIT + 0x60, epilogue, sizeof(epilogue));
	put_call(APP + 0x310);
	recorded_reg(&r, RBP, STACK + 0x140);
	recorded_put(&r, STACK + 0x148, APP + 0x310);
	recorded_put(&r, STACK + 0x108, 0);
	recorded_put(&r, STACK + 0x110, JIT + 0x250);
	put_call(JIT + 0x250);
	assert_frames(SF_END_NO_RULE,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { JIT + 0x250, STACK + 0x118, CODE });
	recorded_bytes(&r, JIT + 0x260, epilogue, sizeof(epilogue));
	recorded_put(&r, STACK + 0x128, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { JIT + 0x250, STACK + 0x118, CODE },
		      { APP + 0x310, STACK + 0x130, CODE });
	recorded_put(&r, STACK + 0x110, JIT + 0x251); /* behind no call: the frame pointer is tried */
	assert_frames(SF_END_ROOT,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { APP + 0x310, STACK + 0x150, CHAIN });
}

/*
 * SBCL, push -8(%rbx); ret: the function has given the frame pointer back to its caller, and its record, which ends where rbx
 * leads, has the return address.
 */
static void a_record_that_the_frame_pointer_has_left(void **state)
{
	static const uint8_t returns_values[] = { 0xff, 0x73, 0xf8, 0xc3 };
	(void)state;

	r.still.regs.pc = JIT + 0x50;
	recorded_bytes(&r, JIT + 0x50, returns_values, sizeof(returns_values));
	recorded_reg(&r, RBP, STACK + 0x140);
	recorded_put(&r, STACK + 0x148, APP + 0x310);
	put_call(APP + 0x310);
	recorded_reg(&r, RBX, STACK + 0x120);
	recorded_put(&r, STACK + 0x110, STACK + 0x140);
	recorded_put(&r, STACK + 0x118, JIT + 0x250);
	put_call(JIT + 0x250);
	assert_frames(SF_END_ROOT,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { JIT + 0x250, STACK + 0x120, CHAIN },
		      { APP + 0x310, STACK + 0x150, CHAIN });
	r.still.regs.known &= ~(UINT64_C(1) << RBX);
	assert_frames(SF_END_ROOT,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { APP + 0x310, STACK + 0x150, CHAIN });
}

/* A call through a null pointer: nothing is known of pc, but who called is on top of the stack. */
static void a_jump_to_nowhere_has_a_caller(void **state)
{
	(void)state;
	r.still.regs.pc = 0;
	put_call(APP + 0x120);
	recorded_put(&r, STACK + 0x100, APP + 0x120);
	recorded_put(&r, STACK + 0x120, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { 0, STACK + 0x100, LEAF },
		      { APP + 0x120, STACK + 0x108, GUESS },
		      { APP + 0x310, STACK + 0x128, ROWS });
	assert_int_equal(r.frames[0].image, 0);

	recorded_bytes(&r, APP + 0x11e, (uint8_t[]){ 0x90, 0x90 }, 2); /* not behind a call */
	assert_frames(SF_END_NO_CODE, { 0, STACK + 0x100, LEAF });
}

/* The kernel's frame at `sp`, for a signal that interrupted these. */
static void put_sigframe(uint64_t sp, uint64_t pc, uint64_t interrupted_sp, uint64_t rbp)
{
	recorded_put(&r, sp + 120, rbp);
	recorded_put(&r, sp + 160, interrupted_sp);
	recorded_put(&r, sp + 168, pc);
}

/* A handler at LIBC + 0x10 that was called for code at APP + 0x200, by rows of rbp. */
static void assert_signal_walk(uint64_t handler_sp)
{
	r.still.regs.pc = LIBC + 0x10;
	recorded_reg(&r, RSP, handler_sp);
	recorded_put(&r, handler_sp, LIBC + TRAMPOLINE);
	put_sigframe(handler_sp + 8, APP + 0x200, STACK + 0x600, STACK + 0x640);
	recorded_put(&r, STACK + 0x648, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { LIBC + 0x10, handler_sp, LEAF },
		      { LIBC + TRAMPOLINE, handler_sp + 8, SF_VIA_ROWS, SF_FRAME_EXACT },
		      { APP + 0x200, STACK + 0x600, SF_VIA_SIGNAL, SF_FRAME_EXACT },
		      { APP + 0x310, STACK + 0x650, ROWS });
}

static void signals_on_the_same_stack(void **state)
{
	(void)state;
	assert_signal_walk(STACK + 0x100);
}

static void signals_on_other_stacks_above_and_below(void **state)
{
	(void)state;
	assert_signal_walk(ALTSTACK + 0x100);
	recorded_memory(&r, 0x10000, SIZE);
	assert_signal_walk(0x10100);
}

/* musl's trampoline has no rules, and the byte before it is in a function that has. */
static void a_trampoline_without_rules(void **state)
{
	(void)state;
	build_libc(false);
	assert_signal_walk(STACK + 0x100);
}

/* Go's has rules like any function, and the byte before it is another's. */
static void a_trampoline_with_ordinary_rules(void **state)
{
	struct sf_rules bare = simple_rules(RSP, 8, -8);
	(void)state;

	table_start(&libc, &sf_arch_x86_64);
	table_row(&libc, 0, &bare);
	bare.cfa.value = 16; /* so that it is a row of its own */
	table_row(&libc, TRAMPOLINE, &bare);
	table_finish(&libc);
	assert_signal_walk(STACK + 0x100);
}

/* It has no frame yet where it starts, as the function whose start Go's asmcgocall notes. */
static void gos_trampoline_is_no_noted_start(void **state)
{
	struct sf_rules bare = simple_rules(RSP, 8, -8);
	(void)state;

	table_start(&libc, &sf_arch_x86_64);
	libc.flags = SF_TABLE_GO;
	table_row(&libc, 0, &bare);
	table_row(&libc, 0x20, NULL);
	table_row(&libc, TRAMPOLINE, &bare);
	table_finish(&libc);
	assert_signal_walk(STACK + 0x100);
}

/* The shape that makecontext puts below a context's function: a function that starts there, behind no call. */
static void a_frame_that_nobody_called_is_the_root(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x10;
	recorded_put(&r, STACK + 0x100, APP + 0x500);
	recorded_put(&r, STACK + 0x108, APP + 0x120);
	assert_frames(SF_END_ROOT,
		      { APP + 0x10, STACK + 0x100, LEAF },
		      { APP + 0x500, STACK + 0x108, ROWS });

	/* Behind a function's last byte there may have been a call that never returns. */
	recorded_put(&r, STACK + 0x100, APP + 0x100);
	recorded_put(&r, STACK + 0x108, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { APP + 0x10, STACK + 0x100, LEAF },
		      { APP + 0x100, STACK + 0x108, ROWS },
		      { APP + 0x310, STACK + 0x110, ROWS });
}

/* qemu-user's is at the start of a page of its own: the byte before it is in no code at all. */
static void a_trampoline_at_the_start_of_its_region(void **state)
{
	struct sf_region *libc_region = &r.map->regions[1];
	(void)state;

	r.map->regions[3] = r.map->regions[2];
	r.map->n_regions = 4;
	libc_region->end = LIBC + TRAMPOLINE - 1;
	r.map->regions[2] = (struct sf_region){ .start = LIBC + TRAMPOLINE, .end = LIBC + SIZE };
	assert_signal_walk(STACK + 0x100);
}

static void a_trampoline_in_code_without_a_table(void **state)
{
	(void)state;
	r.map->regions[1].table = NULL;
	recorded_bytes(&r, LIBC + 0x10, &(uint8_t){ 0xc3 }, 1);
	r.still.regs.pc = LIBC + 0x10;
	recorded_put(&r, STACK + 0x100, LIBC + TRAMPOLINE);
	put_sigframe(STACK + 0x108, APP + 0x10, STACK + 0x600, 0);
	assert_frames(SF_END_ROOT,
		      { LIBC + 0x10, STACK + 0x100, LEAF },
		      { LIBC + TRAMPOLINE, STACK + 0x108, SF_VIA_GUESS, SF_FRAME_EXACT },
		      { APP + 0x10, STACK + 0x600, SF_VIA_SIGNAL, SF_FRAME_EXACT });
}

/* All registers come back, those that calls lose as well: a leaf of any kind may be interrupted. */
static void a_signal_frame_restores_everything(void **state)
{
	struct sf_rules by_rax = simple_rules(0, 16, -8);
	(void)state;

	table_row(&app, 0x600, &by_rax);
	table_finish(&app);
	r.still.regs.pc = LIBC + 0x10;
	recorded_put(&r, STACK + 0x100, LIBC + TRAMPOLINE);
	put_sigframe(STACK + 0x108, APP + 0x610, STACK + 0x600, 0);
	recorded_put(&r, STACK + 0x108 + 144, STACK + 0x680); /* rax */
	recorded_put(&r, STACK + 0x688, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { LIBC + 0x10, STACK + 0x100, LEAF },
		      { LIBC + TRAMPOLINE, STACK + 0x108, SF_VIA_ROWS, SF_FRAME_EXACT },
		      { APP + 0x610, STACK + 0x600, SF_VIA_SIGNAL, SF_FRAME_EXACT },
		      { APP + 0x310, STACK + 0x690, ROWS });
}

/* A thread in the trampoline's own system call stands behind that, where the rules of the trampoline have ended. */
static void a_thread_in_sigreturn(void **state)
{
	(void)state;
	r.map->regions[1].table = NULL;
	r.still.regs.pc = LIBC + TRAMPOLINE + sizeof(trampoline);
	recorded_reg(&r, RSP, STACK + 0x108);
	put_sigframe(STACK + 0x108, APP + 0x10, STACK + 0x600, 0);
	assert_frames(SF_END_ROOT,
		      { LIBC + TRAMPOLINE + sizeof(trampoline), STACK + 0x108, LEAF },
		      { APP + 0x10, STACK + 0x600, SF_VIA_SIGNAL, SF_FRAME_EXACT });
	recorded_bytes(&r, LIBC + TRAMPOLINE + 3, &(uint8_t){ 0x0e }, 1); /* another call */
	assert_frames(SF_END_REGISTER, { LIBC + TRAMPOLINE + sizeof(trampoline), STACK + 0x108, LEAF });
}

/* The handler of a call through NULL: the interrupted pc is nowhere, and is a frame all the same. */
static void an_interrupted_jump_to_nowhere(void **state)
{
	(void)state;
	r.still.regs.pc = LIBC + 0x10;
	recorded_put(&r, STACK + 0x100, LIBC + TRAMPOLINE);
	put_sigframe(STACK + 0x108, 0, STACK + 0x600, 0);
	put_call(APP + 0x310);
	recorded_put(&r, STACK + 0x600, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { LIBC + 0x10, STACK + 0x100, LEAF },
		      { LIBC + TRAMPOLINE, STACK + 0x108, SF_VIA_ROWS, SF_FRAME_EXACT },
		      { 0, STACK + 0x600, SF_VIA_SIGNAL, SF_FRAME_EXACT },
		      { APP + 0x310, STACK + 0x608, GUESS });
}

static void a_signal_frame_beyond_the_copy(void **state)
{
	(void)state;
	r.still.regs.pc = LIBC + 0x10;
	recorded_put(&r, STACK + 0x100, LIBC + TRAMPOLINE);
	recorded_window(&r, STACK, 0x140, STACK + SIZE);
	assert_frames(SF_END_COPY,
		      { LIBC + 0x10, STACK + 0x100, LEAF },
		      { LIBC + TRAMPOLINE, STACK + 0x108, ROWS });
}

/* Rules that are marked as a signal frame but are not the kernel's: followed like others. */
static void a_signal_frame_of_ones_own(void **state)
{
	struct sf_rules signal = simple_rules(RSP, -0x80, 0x88); /* down, to another stack */
	(void)state;

	signal.flags = SF_RULES_SIGNAL;
	table_row(&app, 0x600, &signal);
	table_finish(&app);
	r.still.regs.pc = APP + 0x610;
	recorded_put(&r, STACK + 0x108, APP + 0x300);
	assert_frames(SF_END_ROOT,
		      { APP + 0x610, STACK + 0x100, LEAF },
		      { APP + 0x300, STACK + 0x80, SF_VIA_SIGNAL, SF_FRAME_EXACT });
}

#define GOEXIT (LIBC + 0x301)
#define SWITCH (LIBC + 0x200)
#define BEHIND_SWITCH (SWITCH + 8)
#define GOROUTINE (ALTSTACK + 0x800)
#define CLOCK (LIBC + 0x440)
#define BEHIND_CLOCK (CLOCK + 14)

/*
 * A Go program: 0x000 a function with 32 bytes, 0x100 another one with 16 bytes, 0x200 systemstack, 0x300 goexit,
 * 0x400 a clock with 32 bytes. The thread is in the
 * second one, on g0, whose top is at STACK + 0x110. The first one called systemstack, on a stack below. Its frame record is at
 * GOROUTINE.
 */
static void be_on_system_stack(void)
{
	static const uint8_t code[] = { 0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3f, 0xff, 0xd7, 0x48, 0x8b, 0x60, 0x38, 0xc3 };
	struct sf_rules caller = simple_rules(RSP, 40, -8), callee = simple_rules(RSP, 16, -8), bare = simple_rules(RSP, 8, -8);
	struct sf_rules clock = simple_rules(RSP, 32, -8);

	table_start(&libc, &sf_arch_x86_64);
	libc.flags = SF_TABLE_GO;
	table_row(&libc, 0, &caller);
	table_row(&libc, 0x100, &callee);
	table_row(&libc, 0x200, &bare);
	table_row(&libc, 0x300, &bare);
	table_row(&libc, 0x400, &clock);
	table_finish(&libc);
	recorded_bytes(&r, SWITCH, code, sizeof(code));
	recorded_call(&r, LIBC + 0x50, SWITCH);
	put_call(APP + 0x50);
	r.still.regs.pc = LIBC + 0x120;
	recorded_reg(&r, RBP, STACK + 0x100);
	recorded_put(&r, STACK + 0x100, GOROUTINE);
	recorded_put(&r, STACK + 0x108, BEHIND_SWITCH);
	recorded_put(&r, STACK + 0x110, APP + 0x50); /* of a call long ago */
	recorded_put(&r, GOROUTINE - 32, LIBC + 0x50);
	recorded_put(&r, GOROUTINE, 0);
	recorded_put(&r, GOROUTINE + 8, GOEXIT);
	recorded_put(&r, GOROUTINE + 16, APP + 0x50);
}

static void a_goroutine_under_the_system_stack(void **state)
{
	(void)state;
	be_on_system_stack();
	assert_frames(SF_END_ROOT,
		      { LIBC + 0x120, STACK + 0x100, LEAF },
		      { BEHIND_SWITCH, STACK + 0x110, ROWS },
		      { LIBC + 0x50, GOROUTINE - 24, CHAIN },
		      { GOEXIT, GOROUTINE + 16, ROWS });
}

/* Where the thread stands between setting sp and the call, and where it has come back. */
static void the_switch_itself(void **state)
{
	(void)state;
	be_on_system_stack();
	recorded_reg(&r, RSP, STACK + 0x110);
	recorded_reg(&r, RBP, GOROUTINE);
	for (uint64_t pc = SWITCH + 3; pc <= BEHIND_SWITCH; pc += pc == SWITCH + 3 ? 3 : 2) {
		r.still.regs.pc = pc;
		assert_frames(SF_END_ROOT,
			      { pc, STACK + 0x110, LEAF },
			      { LIBC + 0x50, GOROUTINE - 24, CHAIN },
			      { GOEXIT, GOROUTINE + 16, ROWS });
	}
	r.still.regs.pc = BEHIND_SWITCH + 4; /* ret */
	recorded_reg(&r, RSP, GOROUTINE - 32);
	assert_frames(SF_END_ROOT,
		      { BEHIND_SWITCH + 4, GOROUTINE - 32, LEAF },
		      { LIBC + 0x50, GOROUTINE - 24, ROWS },
		      { GOEXIT, GOROUTINE + 16, ROWS });
}

/*
 * What lies at the top of g0 is no caller: without a proof the walk ends, and where nobody comes back to it is the
 * first frame.
 */
static void no_caller_is_made_up_for_a_switch(void **state)
{
	static const uint8_t pop_and_jump[] = { 0x58, 0xe9, 0, 0, 0, 0 };
	(void)state;

	be_on_system_stack();
	recorded_call(&r, LIBC + 0x50, SWITCH - 0x40); /* another function is called there */
	assert_frames(SF_END_NO_RULE,
		      { LIBC + 0x120, STACK + 0x100, LEAF },
		      { BEHIND_SWITCH, STACK + 0x110, ROWS });
	recorded_reg(&r, RBP, 0);
	assert_frames(SF_END_NO_RULE,
		      { LIBC + 0x120, STACK + 0x100, LEAF },
		      { BEHIND_SWITCH, STACK + 0x110, ROWS });
	recorded_bytes(&r, BEHIND_SWITCH, pop_and_jump, sizeof(pop_and_jump));
	assert_frames(SF_END_ROOT,
		      { LIBC + 0x120, STACK + 0x100, LEAF },
		      { BEHIND_SWITCH, STACK + 0x110, ROWS });
}

/*
 * A Go function with a frame that goes to g0 itself, to call the vDSO's clock, called by the function at 0. Its own
 * record, on the goroutine's stack, is where the frame pointer leads. What its rules find on g0 is of a call long ago.
 */
static void be_in_a_clock(void)
{
	static const uint8_t code[] = { 0x48, 0x8b, 0x62, 0x38, 0x48, 0x83, 0xec, 0x10, 0x48, 0x83, 0xe4, 0xf0, 0xff, 0xd0,
					0x4c, 0x89, 0xe4, 0x48, 0x83, 0xc4, 0x18, 0xc3 };

	be_on_system_stack();
	recorded_bytes(&r, CLOCK, code, sizeof(code));
	recorded_call(&r, LIBC + 0x50, LIBC + 0x400);
	r.still.regs.pc = APP + 0x10; /* the vDSO */
	recorded_put(&r, STACK + 0x100, BEHIND_CLOCK);
	recorded_put(&r, STACK + 0x120, APP + 0x50);
	recorded_reg(&r, RBP, GOROUTINE - 40);
	recorded_put(&r, GOROUTINE - 40, GOROUTINE);
}

static void a_goroutine_under_a_clock(void **state)
{
	(void)state;
	be_in_a_clock();
	assert_frames(SF_END_ROOT,
		      { APP + 0x10, STACK + 0x100, LEAF },
		      { BEHIND_CLOCK, STACK + 0x108, ROWS },
		      { LIBC + 0x50, GOROUTINE - 24, CHAIN },
		      { GOEXIT, GOROUTINE + 16, ROWS });
	recorded_reg(&r, RSP, STACK + 0x108);
	r.still.regs.pc = CLOCK + 12; /* at the call */
	assert_frames(SF_END_ROOT,
		      { CLOCK + 12, STACK + 0x108, LEAF },
		      { LIBC + 0x50, GOROUTINE - 24, CHAIN },
		      { GOEXIT, GOROUTINE + 16, ROWS });
}

/* What the clock does with its answer, on g0 still: up to 81 bytes behind the instruction that set sp. */
static void a_goroutine_under_a_clock_that_has_its_answer(void **state)
{
	static const uint8_t back[] = { 0x4c, 0x89, 0xe4, 0x48, 0x83, 0xc4, 0x18, 0xc3 };
	const uint64_t end = CLOCK + 4 + 81;
	(void)state;

	be_in_a_clock();
	for (uint64_t pc = BEHIND_CLOCK; pc < end; pc++)
		recorded_bytes(&r, pc, (uint8_t[]){ 0x90 }, 1);
	recorded_bytes(&r, end, back, sizeof(back));
	recorded_reg(&r, RSP, STACK + 0x108);
	for (uint64_t pc = BEHIND_CLOCK; pc <= end; pc++) {
		r.still.regs.pc = pc;
		assert_frames(SF_END_ROOT,
			      { pc, STACK + 0x108, LEAF },
			      { LIBC + 0x50, GOROUTINE - 24, CHAIN },
			      { GOEXIT, GOROUTINE + 16, ROWS });
	}
}

/* A record is believed only with a return address of a call. */
static void no_caller_is_made_up_for_a_clock(void **state)
{
	(void)state;
	be_in_a_clock();
	recorded_put(&r, GOROUTINE - 32, LIBC + 0x58);
	assert_frames(SF_END_NO_RULE,
		      { APP + 0x10, STACK + 0x100, LEAF },
		      { BEHIND_CLOCK, STACK + 0x108, ROWS });
}

static void guessed_rules_are_marked(void **state)
{
	struct sf_rules plt = simple_rules(RSP, 8, -8);
	(void)state;

	plt.flags = SF_RULES_GUESS;
	table_row(&app, 0x600, &plt);
	table_finish(&app);
	r.still.regs.pc = APP + 0x610;
	recorded_put(&r, STACK + 0x100, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { APP + 0x610, STACK + 0x100, LEAF },
		      { APP + 0x310, STACK + 0x108, GUESS });
}

/* Rules with numbers that no builder writes: each ends the walk, none is believed. */
static void damaged_rules_are_ends(void **state)
{
	const struct sf_rule rules[] = {
		{ .how = 200 },
		{ .how = SF_HOW_REGISTER_PLUS, .reg = 200 },
		{ .how = SF_HOW_EXPRESSION, .value = -1, .size = 1 },
		{ .how = SF_HOW_EXPRESSION, .value = 1000, .size = 1 },
		{ .how = SF_HOW_EXPRESSION, .value = 0, .size = 65535 },
		{ .how = SF_HOW_AT_CFA, .value = 8 },   /* the CFA from itself */
		{ .how = SF_HOW_SAME },
	};
	const enum sf_end ends[] = { SF_END_NO_RULE, SF_END_REGISTER, SF_END_EXPRESSION,
				     SF_END_EXPRESSION, SF_END_EXPRESSION, SF_END_NO_RULE,
				     SF_END_NO_RULE };
	struct sf_rules spoilt = simple_rules(RSP, 8, -8);
	(void)state;

	table_row(&app, 0x600, &spoilt);
	r.still.regs.pc = APP + 0x610;
	for (unsigned i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		app.rules[app.n_rules - 1].cfa = rules[i];
		table_finish(&app);
		assert_frames(ends[i], { APP + 0x610, STACK + 0x100, LEAF });
	}
}

#define TEST(name) cmocka_unit_test_setup(name, start)

/* Code of .NET's NativeAOT: 0x100 has pushed rbp and rbx, and has 8 bytes more. Its rules say nothing of its end. */
static void be_in_managed_code(void)
{
	struct sf_rules body = simple_rules(RSP, 32, -8);

	body.saved[0] = (struct sf_rule){ .how = SF_HOW_AT_CFA, .value = -24 };
	body.saved[1] = (struct sf_rule){ .how = SF_HOW_AT_CFA, .value = -16 };
	body.flags = SF_RULES_PROLOGUE;
	table_start(&libc, &sf_arch_x86_64);
	libc.flags = SF_TABLE_NATIVEAOT;
	table_row(&libc, 0x100, &body);
	table_row(&libc, 0x200, NULL);
	table_finish(&libc);
	recorded_put(&r, STACK + 0x108, 0xb);
	recorded_put(&r, STACK + 0x110, 0xbb);
	recorded_put(&r, STACK + 0x118, APP + 0x110);
	/* In APP's frame at 0x100: rbx, the return address to a thread's first function. */
	recorded_put(&r, STACK + 0x130, 0xbbb);
	recorded_put(&r, STACK + 0x138, APP + 0x310);
}

/* add $8, %rsp; pop %rbx; pop %rbp; and three ways to leave: ret, jmp *(%r11) with REX.W, jmp to before the function. */
static void an_epilogue_without_rules(void **state)
{
	static const uint8_t ends[][5] = { { 0xc3 }, { 0x49, 0xff, 0x23 }, { 0xe9, 0, 0xfe, 0xff, 0xff } };
	static const uint8_t code[] = { 0x48, 0x83, 0xc4, 0x08, 0x5b, 0x5d };
	static const uint8_t at[] = { 0, 4, 5, 6 };
	(void)state;

	be_in_managed_code();
	for (size_t end = 0; end < 3; end++) {
		recorded_bytes(&r, LIBC + 0x110, code, sizeof(code));
		recorded_bytes(&r, LIBC + 0x110 + sizeof(code), ends[end], sizeof(ends[end]));
		for (unsigned i = 0; i < sizeof(at); i++) {
			r.still.regs.pc = LIBC + 0x110 + at[i];
			recorded_reg(&r, RSP, STACK + 0x100 + 8 * i);
			assert_frames(SF_END_ROOT,
				      { LIBC + 0x110 + at[i], STACK + 0x100 + 8 * i, LEAF },
				      { APP + 0x110, STACK + 0x120, SF_VIA_RUNTIME },
				      { APP + 0x310, STACK + 0x140, ROWS });
		}
	}
}

/* A jump within the function, one of a switch, and what is behind a call are none. */
static void what_only_looks_like_an_epilogue(void **state)
{
	static const uint8_t codes[][4] = { { 0xeb, 0x10 }, { 0xff, 0xe0 }, { 0x90, 0xc3 } };
	static const uint8_t epilogue[] = { 0x48, 0x83, 0xc4, 0x08, 0x5b, 0x5d, 0xc3 };
	(void)state;

	be_in_managed_code();
	for (size_t i = 0; i < 3; i++) {
		recorded_bytes(&r, LIBC + 0x110, codes[i], sizeof(codes[i]));
		r.still.regs.pc = LIBC + 0x110;
		recorded_reg(&r, RSP, STACK + 0x100);
		assert_frames(SF_END_ROOT,
			      { LIBC + 0x110, STACK + 0x100, LEAF },
			      { APP + 0x110, STACK + 0x120, ROWS },
			      { APP + 0x310, STACK + 0x140, ROWS });
	}
	recorded_bytes(&r, LIBC + 0x110, epilogue, sizeof(epilogue));
	r.still.regs.pc = APP + 0x10;
	recorded_reg(&r, RSP, STACK + 0xf8);
	recorded_put(&r, STACK + 0xf8, LIBC + 0x110);
	assert_frames(SF_END_ROOT,
		      { APP + 0x10, STACK + 0xf8, LEAF },
		      { LIBC + 0x110, STACK + 0x100, ROWS },
		      { APP + 0x110, STACK + 0x120, ROWS },
		      { APP + 0x310, STACK + 0x140, ROWS });
}

/*
 * A suspension has replaced a return address by that of a routine, which is behind no call: it is no thread's first function.
 * Behind a call that does not return, the start of a function is one.
 */
static void a_hijacked_return_of_nativeaot(void **state)
{
	static const uint8_t call[] = { 0xe8, 0, 0, 0, 0 };
	struct sf_rules rules = simple_rules(RSP, 16, -8);
	(void)state;

	be_in_managed_code();
	table_row(&libc, 0x400, &rules);
	table_finish(&libc);
	recorded_put(&r, STACK + 0x118, LIBC + 0x400);
	recorded_put(&r, STACK + 0x128, APP + 0x110);
	recorded_put(&r, STACK + 0x140, 0xbbb);
	recorded_put(&r, STACK + 0x148, APP + 0x310);
	r.still.regs.pc = LIBC + 0x110;
	recorded_reg(&r, RSP, STACK + 0x100);
	assert_int_equal(recorded_walk(&r), SF_END_RUNTIME);
	assert_int_equal(r.trace.n_frames, 2);
	assert_int_equal(r.frames[1].pc, LIBC + 0x400);
	assert_true(r.frames[1].flags & SF_FRAME_EXACT); /* its name is that of the routine */
	be_in_managed_code();
	table_row(&libc, 0x300, &rules);
	table_row(&libc, 0x400, &rules);
	table_finish(&libc);
	recorded_put(&r, STACK + 0x118, LIBC + 0x400);
	recorded_bytes(&r, LIBC + 0x400 - sizeof(call), call, sizeof(call));
	assert_frames(SF_END_ROOT,
		      { LIBC + 0x110, STACK + 0x100, LEAF },
		      { LIBC + 0x400, STACK + 0x120, ROWS },
		      { APP + 0x110, STACK + 0x130, ROWS },
		      { APP + 0x310, STACK + 0x150, ROWS });
}

/* The routine that throws for a hardware fault: its caller is the instruction that has faulted, with all its registers. */
static void a_fault_in_managed_code(void **state)
{
	static const uint8_t code[] = {
		0x48, 0x89, 0xe0, 0x48, 0x83, 0xe4, 0xf0, 0x48, 0x31, 0xd2, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55,
		0x41, 0x54, 0x52, 0x53, 0x52, 0x55, 0x50, 0x56, 0x48, 0x8d, 0xa4, 0x24, 0x00, 0x01, 0x00, 0x00,
	};
	struct sf_rules throws = simple_rules(RSP, 0x100 + 88, -8);
	(void)state;

	be_in_managed_code();
	throws.saved[1] = (struct sf_rule){ .how = SF_HOW_AT_CFA, .value = -72 };
	table_row(&libc, 0x400 + sizeof(code), &throws);
	table_finish(&libc);
	recorded_bytes(&r, LIBC + 0x400, code, sizeof(code));
	r.still.regs.pc = LIBC + 0x440;
	recorded_reg(&r, RSP, STACK);
	recorded_put(&r, STACK + 0x100, LIBC + 0x120);  /* where it has faulted */
	recorded_put(&r, STACK + 0x108, STACK + 0x200); /* its sp */
	recorded_put(&r, STACK + 0x150, APP + 0x50);    /* what the rules take for a return address */
	recorded_put(&r, STACK + 0x218, APP + 0x110);
	recorded_put(&r, STACK + 0x238, APP + 0x310);
	assert_frames(SF_END_ROOT,
		      { LIBC + 0x440, STACK, LEAF },
		      { LIBC + 0x120, STACK + 0x200, SF_VIA_RUNTIME, SF_FRAME_EXACT },
		      { APP + 0x110, STACK + 0x220, ROWS },
		      { APP + 0x310, STACK + 0x240, ROWS });
	recorded_put(&r, STACK + 0x108, STACK + 0x80); /* below the routine's own frame */
	assert_int_equal(recorded_walk(&r), SF_END_STUCK);
	recorded_reg(&r, RSI, LIBC + 0x120);
	recorded_reg(&r, RAX, STACK + 0x200);
	for (unsigned done = 0; done <= 24; done += done == 0 ? 3 : done == 3 ? 4 : 17) { /* while it is saving */
		r.still.regs.pc = LIBC + 0x400 + done;
		recorded_reg(&r, RSP, done ? STACK + 0x1f0 : STACK + 0x200);
		assert_frames(SF_END_ROOT,
			      { LIBC + 0x400 + done, done ? STACK + 0x1f0 : STACK + 0x200, LEAF },
			      { LIBC + 0x120, STACK + 0x200, SF_VIA_RUNTIME, SF_FRAME_EXACT },
			      { APP + 0x110, STACK + 0x220, ROWS },
			      { APP + 0x310, STACK + 0x240, ROWS });
	}
	r.still.regs.pc = LIBC + 0x440;
	recorded_reg(&r, RSP, STACK);
	libc.flags = 0; /* in any other program the rules are right */
	table_finish(&libc);
	recorded_walk(&r);
	assert_int_equal(r.trace.frames[1].pc, APP + 0x50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rows_lead_to_the_root),
		TEST(return_addresses_belong_to_the_call),
		TEST(a_leafs_pc_is_exact),
		TEST(a_zero_return_address_is_the_root),
		TEST(a_return_address_in_no_code_is_not_a_frame),
		TEST(saved_registers_are_followed),
		TEST(rules_of_a_row_do_not_see_each_other),
		TEST(lost_registers_are_unknown),
		TEST(what_was_popped_is_in_its_register),
		TEST(what_was_popped_stays_in_its_register),
		TEST(an_expression_ends_with_its_table),
		TEST(expressions_start_with_the_cfa),
		TEST(expressions_know_the_pc),
		TEST(an_unknown_register_ends_the_walk),
		TEST(caller_saved_registers_are_lost),
		TEST(a_cfa_in_a_register_that_calls_do_not_keep),
		TEST(a_cfa_behind_code_without_rules),
		TEST(a_stack_that_moves_down_is_stuck),
		TEST(unreadable_and_uncopied_are_told_apart),
		TEST(what_is_needed_below_sp_is_told),
		TEST(code_above_a_copied_stack_can_be_read),
		TEST(the_window_needs_no_calls),
		TEST(depth_is_only_cut_when_there_is_more),
		TEST(nothing_known_is_empty),
		TEST(code_of_no_file_amid_a_whole_stack),
		TEST(a_map_without_the_code_is_stale_also_where_a_runtime_leads_on),
		TEST(frame_pointers_where_no_row_covers),
		TEST(a_frame_that_its_caller_made),
		TEST(a_gap_between_functions_too),
		TEST(a_thread_that_was_just_made_has_no_caller),
		TEST(who_makes_a_thread_is_where_it_was),
		TEST(a_zero_frame_pointer_is_the_root),
		TEST(a_first_function_at_the_start_of_the_code_is_the_root),
		TEST(a_zero_is_the_root_where_nobody_called),
		TEST(code_without_rules_calls_on_another_stack),
		TEST(a_first_function_near),
		TEST(a_zero_is_no_root_where_no_frame_was_made),
		TEST(frame_pointers_that_lead_nowhere),
		TEST(a_broken_chain_above_a_call),
		TEST(edges_of_a_function_without_rows),
		TEST(a_direct_call_to_here_is_believed),
		TEST(a_stale_return_address_is_not),
		TEST(weaker_evidence_in_its_order),
		TEST(registers_above_code_without_rows),
		TEST(an_aligned_function_without_rules),
		TEST(an_aligned_function_that_has_called),
		TEST(code_that_leaves_sp_alone),
		TEST(rules_that_lead_to_no_return_address),
		TEST(rules_that_know_of_no_push),
		TEST(rules_that_know_of_no_push_below_managed_code),
		TEST(rules_that_lead_out_of_the_stack),
		TEST(code_without_rules_on_a_short_copy),
		TEST(a_return_address_in_a_register),
		TEST(a_function_with_its_callers_frame_pointer),
		TEST(by_the_code_of_the_function),
		TEST(a_record_that_the_frame_pointer_has_left),
		TEST(a_jump_to_nowhere_has_a_caller),
		TEST(signals_on_the_same_stack),
		TEST(signals_on_other_stacks_above_and_below),
		TEST(a_trampoline_without_rules),
		TEST(a_trampoline_with_ordinary_rules),
		TEST(gos_trampoline_is_no_noted_start),
		TEST(a_frame_that_nobody_called_is_the_root),
		TEST(a_trampoline_at_the_start_of_its_region),
		TEST(a_trampoline_in_code_without_a_table),
		TEST(a_signal_frame_restores_everything),
		TEST(an_interrupted_jump_to_nowhere),
		TEST(a_thread_in_sigreturn),
		TEST(a_signal_frame_beyond_the_copy),
		TEST(a_signal_frame_of_ones_own),
		TEST(a_goroutine_under_the_system_stack),
		TEST(the_switch_itself),
		TEST(no_caller_is_made_up_for_a_switch),
		TEST(a_goroutine_under_a_clock),
		TEST(a_goroutine_under_a_clock_that_has_its_answer),
		TEST(no_caller_is_made_up_for_a_clock),
		TEST(an_epilogue_without_rules),
		TEST(what_only_looks_like_an_epilogue),
		TEST(a_hijacked_return_of_nativeaot),
		TEST(a_fault_in_managed_code),
		TEST(guessed_rules_are_marked),
		TEST(damaged_rules_are_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

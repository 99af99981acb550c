/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker on aarch64 stills: the link register, signed return addresses, frame records whose place
 * in the frame is not known, and the kernel's signal frame.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "recorded_frames.h"

enum { X0, X19 = 19, FP = 29, LR = 30, SP = 31 };

#define APP UINT64_C(0xaaaaaaaa0000)
#define JIT UINT64_C(0xaaaaaaab0000)
#define VDSO UINT64_C(0xffffb0000000)
#define STACK UINT64_C(0xffffffff0000)
#define SIZE 0x1000
#define TRAMPOLINE 0x800

/* The upper bits that a pointer authentication code leaves; 55 says user space and stays 0. */
#define SIGNED(address) ((address) | UINT64_C(0x7f3a) << 48)

#define BL_BACK_16 0x97fffffc
#define BLR_X1 0xd63f0020
#define STP_FP_LR 0xa9be7bfd
#define RET 0xd65f03c0
#define MOV_FP_0 0xd280001d

static struct recorded r;
static struct table_builder app, vdso;

/*
 * APP: 0x000 a leaf without a frame (CFA = sp, return address in lr), 0x100 32 bytes with the record
 * at the bottom and x19 at CFA - 16, 0x200 a thread's first function,
 * 0x300 another leaf, 0x310 a gap.
 */
static void build_app(void)
{
	struct sf_rules leaf = simple_rules(SP, 0, 0), framed = simple_rules(SP, 32, -24);
	struct sf_rules first = simple_rules(SP, 0, 0);

	leaf.ra.how = SF_HOW_SAME;
	framed.flags = SF_RULES_PAC;
	framed.saved[10] = (struct sf_rule){ .how = SF_HOW_AT_CFA, .value = -32 };
	framed.saved[0] = (struct sf_rule){ .how = SF_HOW_AT_CFA, .value = -16 };
	first.ra.how = SF_HOW_UNDEFINED;
	table_start(&app, &sf_arch_aarch64);
	table_row(&app, 0, &leaf);
	table_row(&app, 0x100, &framed);
	table_row(&app, 0x200, &first);
	table_row(&app, 0x300, &leaf);
	table_row(&app, 0x310, NULL);
	table_finish(&app);
}

static void build_vdso(void)
{
	struct sf_rules signal = simple_rules(SP, 0, 0);

	signal.flags = SF_RULES_SIGNAL;
	table_start(&vdso, &sf_arch_aarch64);
	table_row(&vdso, TRAMPOLINE - 4, &signal);
	table_finish(&vdso);
}

static int start(void **state)
{
	(void)state;
	recorded_init(&r, &sf_arch_aarch64);
	build_app();
	build_vdso();
	recorded_memory(&r, APP, SIZE);
	recorded_memory(&r, JIT, SIZE);
	recorded_memory(&r, VDSO, SIZE);
	recorded_memory(&r, STACK, SIZE);
	recorded_put32(&r, VDSO + TRAMPOLINE, 0xd2801168);
	recorded_put32(&r, VDSO + TRAMPOLINE + 4, 0xd4000001);
	recorded_region(&r, APP, APP + SIZE, &app.table, 1);
	recorded_region(&r, JIT, JIT + SIZE, NULL, 0);
	recorded_region(&r, VDSO, VDSO + SIZE, &vdso.table, 2);
	recorded_reg(&r, SP, STACK + 0x100);
	recorded_reg(&r, FP, 0);
	return 0;
}

/* The leaf leaves sp where it is, which only a leaf may. */
static void a_leaf_returns_by_lr(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x10;
	recorded_reg(&r, LR, APP + 0x120);
	recorded_put(&r, STACK + 0x108, APP + 0x210);
	assert_frames(SF_END_ROOT,
		      { APP + 0x10, STACK + 0x100, LEAF },
		      { APP + 0x120, STACK + 0x100, ROWS },
		      { APP + 0x210, STACK + 0x120, ROWS });
}

static void signatures_are_taken_off(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x10;
	recorded_reg(&r, LR, SIGNED(APP + 0x120));
	recorded_put(&r, STACK + 0x108, SIGNED(APP + 0x120));
	recorded_put(&r, STACK + 0x128, SIGNED(APP + 0x210));
	assert_frames(SF_END_ROOT,
		      { APP + 0x10, STACK + 0x100, LEAF },
		      { APP + 0x120, STACK + 0x100, ROWS },
		      { APP + 0x120, STACK + 0x120, ROWS },
		      { APP + 0x210, STACK + 0x140, ROWS });
}

/* lr is lost in the call: rules that ask for it above one cannot be followed. */
static void lr_is_not_known_above_a_call(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x10;
	recorded_reg(&r, LR, APP + 0x20);
	assert_frames(SF_END_REGISTER,
		      { APP + 0x10, STACK + 0x100, LEAF },
		      { APP + 0x20, STACK + 0x100, ROWS });
}

static void lr_unknown_at_the_leaf(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x10;
	assert_frames(SF_END_REGISTER, { APP + 0x10, STACK + 0x100, LEAF });
}

/* Rows restore fp for code without rows above them. */
static void a_chain_above_rows(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x110;
	recorded_put(&r, STACK + 0x100, STACK + 0x180); /* the saved fp */
	recorded_put(&r, STACK + 0x108, JIT + 0x50);
	recorded_put(&r, STACK + 0x180, STACK + 0x1c0);
	recorded_put(&r, STACK + 0x188, SIGNED(JIT + 0x90));
	recorded_put(&r, STACK + 0x1c0, 0);
	recorded_put(&r, STACK + 0x1c8, APP + 0x210);
	assert_frames(SF_END_ROOT,
		      { APP + 0x110, STACK + 0x100, LEAF },
		      { JIT + 0x50, STACK + 0x120, ROWS },
		      { JIT + 0x90, STACK + 0x190, CHAIN },
		      { APP + 0x210, STACK + 0x1d0, CHAIN });
}

/*
 * The record may lie anywhere in the frame, so behind it sp is not known. Rules that count from sp
 * would lead astray; the chain goes on until one counts from fp.
 */
static void rows_above_a_chain_do_not_trust_sp(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x110;
	recorded_put(&r, STACK + 0x100, STACK + 0x180);
	recorded_put(&r, STACK + 0x108, JIT + 0x50);
	recorded_put(&r, STACK + 0x180, STACK + 0x1c0);
	recorded_put(&r, STACK + 0x188, APP + 0x120); /* 48 more bytes of JIT's frame follow */
	recorded_put(&r, STACK + 0x198, JIT + 0xbad);
	recorded_put(&r, STACK + 0x1c0, 0);
	recorded_put(&r, STACK + 0x1c8, JIT + 0x90);
	recorded_put32(&r, JIT + 0x80, MOV_FP_0);
	assert_frames(SF_END_ROOT,
		      { APP + 0x110, STACK + 0x100, LEAF },
		      { JIT + 0x50, STACK + 0x120, ROWS },
		      { APP + 0x120, STACK + 0x190, CHAIN },
		      { JIT + 0x90, STACK + 0x1d0, CHAIN });
}

static void edges_of_a_function_without_rows(void **state)
{
	const uint32_t edges[] = { STP_FP_LR, RET };
	(void)state;

	for (unsigned i = 0; i < 2; i++) {
		start(NULL);
		recorded_put32(&r, JIT + 0x50, edges[i]);
		r.still.regs.pc = JIT + 0x50;
		recorded_reg(&r, LR, SIGNED(JIT + 0x90));
		recorded_reg(&r, FP, STACK + 0x140);
		recorded_put(&r, STACK + 0x148, APP + 0x210);
		assert_frames(SF_END_ROOT,
			      { JIT + 0x50, STACK + 0x100, LEAF },
			      { JIT + 0x90, STACK + 0x100, GUESS },
			      { APP + 0x210, STACK + 0x150, CHAIN });
	}
}

/* In the middle: lr is the caller's if that called here, and stale if this function made calls. */
static void a_leaf_without_rows(void **state)
{
	(void)state;
	r.still.regs.pc = JIT + 0x50;
	recorded_put32(&r, JIT + 0x50 + 0x2c, BL_BACK_16);
	recorded_put32(&r, APP + 0x20c, BLR_X1);
	recorded_reg(&r, LR, JIT + 0x80); /* bl JIT + 0x6c: above pc, so not here */
	recorded_reg(&r, FP, STACK + 0x140);
	recorded_put(&r, STACK + 0x148, APP + 0x210);
	assert_frames(SF_END_ROOT,
		      { JIT + 0x50, STACK + 0x100, LEAF },
		      { APP + 0x210, STACK + 0x150, CHAIN });
	r.still.regs.pc = JIT + 0x70;
	assert_frames(SF_END_ROOT,
		      { JIT + 0x70, STACK + 0x100, LEAF },
		      { JIT + 0x80, STACK + 0x100, GUESS },
		      { APP + 0x210, STACK + 0x150, CHAIN });
}

/* A gap that begins with a system call, where clone returns: to its caller and in the new thread. */
static void clone_returns_twice(void **state)
{
	(void)state;
	recorded_put32(&r, APP + 0x310, 0xd4000001); /* svc #0 */
	r.still.regs.pc = APP + 0x314;
	recorded_reg(&r, LR, APP + 0x210);
	recorded_reg(&r, X0, 1234);
	assert_frames(SF_END_ROOT,
		      { APP + 0x314, STACK + 0x100, LEAF },
		      { APP + 0x210, STACK + 0x100, ROWS });
	recorded_reg(&r, X0, 0);
	assert_frames(SF_END_ROOT, { APP + 0x314, STACK + 0x100, LEAF });
}

static void a_jump_to_nowhere_has_a_caller(void **state)
{
	(void)state;
	r.still.regs.pc = 0;
	recorded_put32(&r, APP + 0x20c, BLR_X1);
	recorded_reg(&r, LR, APP + 0x210);
	assert_frames(SF_END_ROOT,
		      { 0, STACK + 0x100, LEAF },
		      { APP + 0x210, STACK + 0x100, GUESS });
	recorded_reg(&r, LR, 0);
	assert_frames(SF_END_NO_CODE, { 0, STACK + 0x100, LEAF });
}

/* Even a leaf without a frame is left by its lr, which only the kernel's frame has. */
static void a_signal_interrupts_a_leaf(void **state)
{
	const uint64_t regs = STACK + 0x120 + 128 + 176 + 8;
	(void)state;

	r.still.regs.pc = APP + 0x110;
	recorded_put(&r, STACK + 0x108, VDSO + TRAMPOLINE);
	recorded_put(&r, regs + 8 * LR, SIGNED(APP + 0x120));
	recorded_put(&r, regs + 8 * SP, STACK + 0x600);
	recorded_put(&r, regs + 8 * 32, APP + 0x10);
	recorded_put(&r, STACK + 0x608, APP + 0x210);
	assert_frames(SF_END_ROOT,
		      { APP + 0x110, STACK + 0x100, LEAF },
		      { VDSO + TRAMPOLINE, STACK + 0x120, SF_VIA_ROWS, SF_FRAME_EXACT },
		      { APP + 0x10, STACK + 0x600, SF_VIA_SIGNAL, SF_FRAME_EXACT },
		      { APP + 0x120, STACK + 0x600, ROWS },
		      { APP + 0x210, STACK + 0x620, ROWS });
}

/* Behind a chain sp is a lower bound, so the kernel's frame, which is found by it, is not looked for. */
static void a_signal_frame_behind_a_chain(void **state)
{
	(void)state;
	r.still.regs.pc = APP + 0x110;
	recorded_put(&r, STACK + 0x100, STACK + 0x180);
	recorded_put(&r, STACK + 0x108, JIT + 0x50);
	recorded_put(&r, STACK + 0x180, STACK + 0x1c0);
	recorded_put(&r, STACK + 0x188, VDSO + TRAMPOLINE);
	assert_frames(SF_END_REGISTER,
		      { APP + 0x110, STACK + 0x100, LEAF },
		      { JIT + 0x50, STACK + 0x120, ROWS },
		      { VDSO + TRAMPOLINE, STACK + 0x190, CHAIN });
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_leaf_returns_by_lr),
		TEST(signatures_are_taken_off),
		TEST(lr_is_not_known_above_a_call),
		TEST(lr_unknown_at_the_leaf),
		TEST(a_chain_above_rows),
		TEST(rows_above_a_chain_do_not_trust_sp),
		TEST(edges_of_a_function_without_rows),
		TEST(a_leaf_without_rows),
		TEST(clone_returns_twice),
		TEST(a_jump_to_nowhere_has_a_caller),
		TEST(a_signal_interrupts_a_leaf),
		TEST(a_signal_frame_behind_a_chain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

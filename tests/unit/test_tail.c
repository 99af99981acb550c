/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks with the tail of an earlier walk: they give the trace that a walk without one gives, whatever has changed since.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "form.h"
#include "frozen/random.h"
#include "recorded.h"

enum { RAX = 0, RBX = 3, RBP = 6, RSP = 7, R12 = 12, R13 = 13 };

#define APP 0x400000
#define STACK 0x7f0000
#define SIZE 0x1000
#define SP (STACK + 0x100)
#define N_FRAMES 40
#define ROUNDS 5000 /* of random walks: 250 stacks */
#define LONG_ROUNDS 20000

/* Where functions of each kind are in APP. */
enum kind {
	BARE = 0x000, FRAMED = 0x100, BY_RBP = 0x200, FIRST = 0x300,
	BY_RBX = 0x400, KEEPS_R12 = 0x500, READS_BELOW = 0x600, GUESSED = 0x700, BY_RAX = 0x800,
};

static struct recorded r;
static struct table_builder app;
static struct sf_frame tail_frames[N_FRAMES], frames[RECORDED_FRAMES];
static struct sf_tail_regs tail_regs[N_FRAMES], walk_regs[RECORDED_FRAMES];
static uint8_t tail_bytes[SIZE];
static struct sf_tail tail;
static uint64_t top;      /* behind the stack that was built */
static uint64_t rbp_at;   /* where the next value of rbp is kept; 0: in the register */

static struct sf_rule at_cfa(int32_t value)
{
	return (struct sf_rule){ .how = SF_HOW_AT_CFA, .value = value };
}

static void build_app(void)
{
	static const uint8_t rbx_plus_16[] = { 0x73, 16 };
	struct sf_rules bare = simple_rules(RSP, 8, -8), framed = simple_rules(RSP, 32, -8), by_rbp = simple_rules(RBP, 16, -8);
	struct sf_rules first = simple_rules(RSP, 8, -8), by_rbx = simple_rules(RSP, 0, -8), keeps = simple_rules(RSP, 24, -8);
	struct sf_rules below = simple_rules(RSP, 24, -8), guessed = simple_rules(RSP, 8, -8), by_rax = simple_rules(RAX, 16, -8);

	table_start(&app, &sf_arch_x86_64);
	framed.saved[0] = at_cfa(-16);
	by_rbp.saved[1] = at_cfa(-16);
	first.ra.how = SF_HOW_UNDEFINED;
	by_rbx.cfa = table_expression(&app, SF_HOW_EXPRESSION, rbx_plus_16, sizeof(rbx_plus_16));
	keeps.saved[2] = at_cfa(-16);
	below.saved[1] = at_cfa(-48);
	guessed.flags = SF_RULES_GUESS;
	table_row(&app, BARE, &bare);
	table_row(&app, FRAMED, &framed);
	table_row(&app, BY_RBP, &by_rbp);
	table_row(&app, FIRST, &first);
	table_row(&app, BY_RBX, &by_rbx);
	table_row(&app, KEEPS_R12, &keeps);
	table_row(&app, READS_BELOW, &below);
	table_row(&app, GUESSED, &guessed);
	table_row(&app, BY_RAX, &by_rax);
	table_finish(&app);
}

static int start(void **state)
{
	(void)state;
	recorded_init(&r, &sf_arch_x86_64);
	build_app();
	recorded_memory(&r, STACK, SIZE);
	recorded_memory(&r, APP, SIZE);
	recorded_region(&r, APP, APP + SIZE, &app.table, 1);
	recorded_window(&r, STACK, SIZE, 0);
	r.map->serial = 1;
	r.still.regs.pc = APP + BARE + 1;
	recorded_reg(&r, RSP, SP);
	recorded_reg(&r, RBX, 0x1234);
	recorded_reg(&r, R12, 0x5678);
	recorded_reg(&r, R13, 0x9abc);
	top = SP;
	rbp_at = 0;
	tail = (struct sf_tail){ .frames = tail_frames, .regs = tail_regs, .capacity = N_FRAMES, .bytes = tail_bytes, .size = SIZE };
	return 0;
}

static void keep_rbp(uint64_t value)
{
	if (rbp_at)
		recorded_put(&r, rbp_at, value);
	else
		recorded_reg(&r, RBP, value);
}

/* The innermost function that is not built yet is of this kind, and is called by one of kind `caller`. */
static void build(enum kind kind, enum kind caller)
{
	top += kind == BARE || kind == GUESSED ? 8 : kind == FRAMED ? 32 : 24;
	recorded_put(&r, top - 8, APP + caller + 0x20);
	if (kind == BY_RBP)
		keep_rbp(top - 16);
	if (kind == BY_RBP || kind == READS_BELOW)
		rbp_at = top - (kind == BY_RBP ? 16 : 48);
}

static void build_all(const enum kind *kinds, unsigned n)
{
	r.still.regs.pc = APP + kinds[0] + 1;
	for (unsigned i = 0; i < n; i++)
		build(kinds[i], i + 1 < n ? kinds[i + 1] : FIRST);
	keep_rbp(0);
}

/* Walks without the tail and with it: both give the same. Returns how many frames were walked. */
static uint32_t walk(void)
{
	struct sf_trace trace = { .frames = frames, .capacity = r.trace.capacity };
	struct sf_tail_walk with = { .tail = &tail, .regs = walk_regs, .capacity = RECORDED_FRAMES };

	recorded_walk(&r);
	assert_int_equal(sf_walk_with_tail(&r.still, &with, &trace), r.trace.end);
	assert_int_equal(trace.n_frames, r.trace.n_frames);
	assert_int_equal(trace.by_zero, r.trace.by_zero);
	assert_memory_equal(trace.frames, r.trace.frames, trace.n_frames * sizeof(*frames));
	return with.has_met ? with.n_walked : trace.n_frames;
}

static const enum kind usual[] = { BARE, FRAMED, BY_RBP, KEEPS_R12, FRAMED, BY_RBP };
#define N_USUAL (sizeof(usual) / sizeof(*usual))

/* The leaf stands elsewhere: it is walked, and the frame that called it is met. */
static void outer_frames_are_not_walked_again(void **state)
{
	(void)state;
	build_all(usual, N_USUAL);
	assert_int_equal(walk(), N_USUAL + 1);
	r.still.regs.pc += 5;
	assert_int_equal(walk(), 2);
	assert_int_equal(r.trace.n_frames, N_USUAL + 1);
	assert_int_equal(tail.n, N_USUAL);
}

/* A call more, and one less. */
static void inner_frames_are_walked(void **state)
{
	static const enum kind more[] = { KEEPS_R12, BARE };
	uint64_t sp;
	(void)state;

	build_all(usual, N_USUAL);
	walk();
	sp = SP - 24 - 8;
	r.still.regs.pc = APP + more[0] + 1;
	recorded_reg(&r, RSP, sp);
	recorded_put(&r, sp + 8, 0x5678);
	recorded_put(&r, sp + 16, APP + more[1] + 9);
	recorded_put(&r, sp + 24, APP + BARE + 2);
	assert_int_equal(walk(), 4);
	assert_int_equal(r.trace.n_frames, N_USUAL + 3);
	assert_int_equal(walk(), 2);
	recorded_reg(&r, RSP, SP);
	r.still.regs.pc = APP + BARE + 1;
	assert_int_equal(walk(), 2);
}

/* Each byte of the stack, return addresses among them, once in the tail and once back. */
static void a_changed_byte_is_seen(void **state)
{
	(void)state;
	build_all(usual, N_USUAL);
	walk();
	for (uint64_t addr = SP; addr < top; addr++) {
		uint8_t *byte = &r.pieces[0].bytes[addr - STACK];

		*byte ^= 0x40;
		walk();
		*byte ^= 0x40;
		walk();
	}
}

static void a_changed_return_address_changes_the_stack(void **state)
{
	(void)state;
	build_all(usual, N_USUAL);
	walk();
	recorded_put(&r, SP + 8 + 32 - 8, APP + BY_RBP + 0x21);
	walk();
	assert_int_equal(frames[2].pc, APP + BY_RBP + 0x21);
}

/* rbp is in its register up to the frame that is found by it. */
static void a_changed_register_is_seen(void **state)
{
	(void)state;
	build_all(usual, N_USUAL);
	walk();
	recorded_reg(&r, RBP, r.still.regs.r[RBP] + 24);
	walk();
	recorded_reg(&r, RBP, r.still.regs.r[RBP] - 24);
	r.still.regs.known &= ~(UINT64_C(1) << RBP);
	walk();
	assert_int_equal(r.trace.end, SF_END_REGISTER);
}

/* A register that is saved further out has its old value from there on. */
static void registers_that_were_saved_do_not_matter(void **state)
{
	(void)state;
	build_all(usual, N_USUAL);
	walk();
	recorded_reg(&r, RBX, 0x4321);
	assert_int_equal(walk(), 3);
	recorded_reg(&r, R12, 0x8765);
	assert_int_equal(walk(), 5);
}

/* The word below the frame of the third function, in the second one's, becomes rbp, by which the fourth one is left. */
static void steps_that_read_beyond_their_frame(void **state)
{
	static const enum kind kinds[] = { BARE, KEEPS_R12, READS_BELOW, BY_RBP, BARE };
	(void)state;

	build_all(kinds, 5);
	assert_int_equal(walk(), 6);
	assert_int_equal(tail.n, 3);
	assert_int_equal(walk(), 4);
	recorded_put(&r, SP + 8, 0);
	walk();
	assert_int_not_equal(r.trace.end, SF_END_ROOT);
}

static void steps_by_expressions(void **state)
{
	static const enum kind kinds[] = { BARE, BARE, BY_RBX, BARE, BARE };
	(void)state;

	build_all(kinds, 5);
	recorded_reg(&r, RBX, SP + 8 + 8 + 24 - 16);
	assert_int_equal(walk(), 6);
	assert_int_equal(r.trace.end, SF_END_ROOT);
	assert_int_equal(tail.n, 3);
	assert_int_equal(walk(), 4);
}

/* The tail does not compare rax. */
static void steps_by_a_register_that_calls_do_not_keep(void **state)
{
	static const enum kind kinds[] = { BARE, BARE, BY_RAX, BARE, BARE };
	static const uint8_t call_rax[] = { 0xff, 0xd0 };
	(void)state;

	build_all(kinds, 5);
	recorded_bytes(&r, APP + BARE + 0x20 - sizeof(call_rax), call_rax, sizeof(call_rax));
	recorded_reg(&r, RAX, SP + 8 + 8 + 24 - 16);
	assert_int_equal(walk(), 6);
	assert_int_equal(r.trace.end, SF_END_ROOT);
	assert_int_equal(tail.n, 3);
	assert_int_equal(walk(), 4);
	recorded_reg(&r, RAX, SP + 8 + 8 + 24 + 8 - 16);
	assert_int_equal(walk(), 4);
	assert_int_equal(r.trace.n_frames, 5);
}

static const uint8_t trampoline[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
static const uint8_t no_code[sizeof(trampoline)];

/* The code at a return address decides where a row begins there: it may be a signal's trampoline. */
static void steps_that_read_code(void **state)
{
	(void)state;
	build_all(usual, N_USUAL);
	recorded_put(&r, SP, APP + BY_RBP);
	walk();
	assert_int_equal(r.trace.end, SF_END_ROOT);
	assert_int_equal(tail.n, N_USUAL - 1);
	recorded_bytes(&r, APP + BY_RBP, trampoline, sizeof(trampoline));
	walk();
	assert_int_not_equal(r.trace.end, SF_END_ROOT);
}

/* So it does where a region begins there. */
static void steps_from_the_start_of_a_region(void **state)
{
	(void)state;
	build_all(usual, N_USUAL);
	r.map->regions[0].end = APP + BY_RBP;
	recorded_region(&r, APP + BY_RBP + 0x20, APP + SIZE, &app.table, 1);
	r.map->regions[1].bias = APP;
	recorded_bytes(&r, APP + BY_RBP + 0x20, trampoline, sizeof(trampoline));
	walk();
	assert_int_equal(r.trace.end, SF_END_ROOT);
	recorded_bytes(&r, APP + BY_RBP + 0x20, no_code, sizeof(no_code));
	walk();
	assert_int_equal(r.trace.end, SF_END_NO_CODE);
}

/* How a frame was found is up to the one that it called this time. */
static void the_frame_that_is_met_has_another_callee(void **state)
{
	(void)state;
	build_all(usual, N_USUAL);
	walk();
	r.still.regs.pc = APP + BARE + 1;
	recorded_reg(&r, RSP, SP - 8);
	recorded_put(&r, SP - 8, APP + GUESSED + 9);
	assert_int_equal(walk(), 3);
	assert_int_equal(frames[2].via, SF_VIA_GUESS);
	assert_int_equal(walk(), 2);
}

static void a_root_by_zero_has_no_tail(void **state)
{
	(void)state;
	build_all(usual, N_USUAL);
	recorded_put(&r, top - 8, 0);
	walk();
	assert_true(r.trace.by_zero);
	assert_int_equal(tail.n, 0);
}

static void a_tail_is_of_one_map(void **state)
{
	(void)state;
	build_all(usual, N_USUAL);
	walk();
	r.map->serial++;
	r.map->regions[0].image = 2;
	assert_int_equal(walk(), N_USUAL + 1);
	assert_int_equal(frames[3].image, 2);
}

static void maps_without_a_serial_and_with_runtimes_have_none(void **state)
{
	static const struct sf_runtime runtime;
	(void)state;

	build_all(usual, N_USUAL);
	walk();
	r.map->serial = 0;
	assert_int_equal(walk(), N_USUAL + 1);
	assert_int_equal(walk(), N_USUAL + 1);
	r.map->serial = 1;
	assert_int_equal(walk(), N_USUAL + 1);
	r.map->runtimes[0] = &runtime;
	r.map->n_runtimes = 1;
	assert_int_equal(walk(), N_USUAL + 1);
	assert_int_equal(tail.n, 0);
}

static void a_copy_that_is_too_short_is_seen(void **state)
{
	(void)state;
	build_all(usual, N_USUAL);
	walk();
	for (uint64_t end = SP + 8; end < top; end += 8) {
		recorded_window(&r, STACK, end - STACK, STACK + SIZE);
		walk();
		assert_int_equal(r.trace.end, SF_END_COPY);
	}
	recorded_window(&r, STACK, SIZE, 0);
	assert_int_equal(walk(), 2);
}

static void a_walk_that_is_too_deep_is_cut(void **state)
{
	(void)state;
	build_all(usual, N_USUAL);
	walk();
	for (r.trace.capacity = 1; r.trace.capacity <= N_USUAL; r.trace.capacity++) {
		walk();
		assert_int_equal(r.trace.end, SF_END_DEPTH);
	}
	assert_int_equal(walk(), 2);
}

/* Then the outer part is kept. */
static void a_tail_without_room(void **state)
{
	(void)state;
	build_all(usual, N_USUAL);
	tail.capacity = 3;
	walk();
	assert_int_equal(tail.n, 3);
	assert_int_equal(tail.n_wanted, N_USUAL);
	assert_int_equal(walk(), N_USUAL - 1);
	start(NULL);
	build_all(usual, N_USUAL);
	tail.size = 40;
	walk();
	assert_int_equal(tail.n, 2);
	assert_int_equal(tail.size_wanted, top - SP - 8);
	assert_int_equal(walk(), N_USUAL);
	tail = (struct sf_tail){ 0 };
	assert_int_equal(walk(), N_USUAL + 1);
}

static void build_at_random(uint64_t *random)
{
	static const enum kind kinds[] = { BARE, FRAMED, BY_RBP, KEEPS_R12, GUESSED };
	enum kind chosen[N_FRAMES];
	const unsigned n = 1 + (sf_random(random) >> 32) % N_FRAMES;

	start(NULL);
	for (unsigned i = 0; i < n; i++)
		chosen[i] = kinds[(sf_random(random) >> 32) % (sizeof(kinds) / sizeof(*kinds))];
	build_all(chosen, n);
}

/* A word of the stack is another one at each second walk, and a register now and then. */
static void random_stacks(void **state)
{
	const unsigned n = is_long_form() ? LONG_ROUNDS : ROUNDS;
	uint64_t random = 7, addr, kept;
	uint32_t n_all = 0, n_walked = 0;
	(void)state;

	for (unsigned i = 0; i < n; i++) {
		if (i % 20 == 0)
			build_at_random(&random);
		n_walked += walk();
		n_all += r.trace.n_frames;
		addr = SP + (sf_random(&random) >> 32) % ((top - SP) / 8) * 8;
		memcpy(&kept, r.pieces[0].bytes + (addr - STACK), sizeof(kept));
		recorded_put(&r, addr, APP + (sf_random(&random) >> 40) % SIZE);
		walk();
		recorded_put(&r, addr, kept);
		if ((sf_random(&random) >> 32 & 7) == 0)
			r.still.regs.r[sf_arch_x86_64.saved[(sf_random(&random) >> 32) % 3]] += 8;
	}
	assert_in_range(n_walked, 1, n_all / 4 * 3);
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(outer_frames_are_not_walked_again),
		TEST(inner_frames_are_walked),
		TEST(a_changed_byte_is_seen),
		TEST(a_changed_return_address_changes_the_stack),
		TEST(a_changed_register_is_seen),
		TEST(registers_that_were_saved_do_not_matter),
		TEST(steps_that_read_beyond_their_frame),
		TEST(steps_by_expressions),
		TEST(steps_by_a_register_that_calls_do_not_keep),
		TEST(steps_that_read_code),
		TEST(steps_from_the_start_of_a_region),
		TEST(the_frame_that_is_met_has_another_callee),
		TEST(a_root_by_zero_has_no_tail),
		TEST(a_tail_is_of_one_map),
		TEST(maps_without_a_serial_and_with_runtimes_have_none),
		TEST(a_copy_that_is_too_short_is_seen),
		TEST(a_walk_that_is_too_deep_is_cut),
		TEST(a_tail_without_room),
		TEST(random_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames inferred where the frame pointer is not known: what proves one, what does not, and that
 * words left on the stack, by chance or on purpose, prove nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "recorded.h"

enum { RBX = 3, RBP = 6, RSP = 7 };

#define APP 0x400000
#define LIBC 0x500000
#define DATA 0x600000
#define STACK 0x7f0000
#define SIZE 0x1000

/* In the app: functions, and where they call. In the C library: a bare system call. */
#define ASLEEP 0x200        /* keeps a frame pointer, 32 bytes of locals; calls sleep */
#define ASLEEP_RETURN 0x240
#define CALLER 0x300        /* keeps a frame pointer; calls ASLEEP */
#define CALLER_RETURN 0x340
#define ALSO_CALLS 0x360    /* in CALLER, another such call */
#define FIRST 0x500         /* a thread's first; calls CALLER */
#define FIRST_RETURN 0x540
#define STUB 0x600          /* a PLT's */
#define TRAMPOLINE 0x700    /* a signal's */
#define SLEEP 0x10

/*
 * ASLEEP called sleep, its sp is AT; the locals are below its frame record, then comes CALLER's
 * frame, of 16 bytes, and FIRST's.
 */
#define AT (STACK + 0x100)
#define RECORD (AT + 0x20)
#define CALLER_AT (RECORD + 16)
#define CALLER_RECORD (CALLER_AT + 16)

static struct recorded r;
static struct table_builder app, libc;

static void put_code(uint64_t offset, const void *bytes, size_t size)
{
	recorded_bytes(&r, APP + offset, bytes, size);
}
#define CODE(offset, ...)                                                                          \
	put_code((offset), (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

/* A frame record: the frame pointer of the function above, and where to return to in it. */
static void put_record(uint64_t at, uint64_t fp, uint64_t pc)
{
	recorded_put(&r, at, fp);
	recorded_put(&r, at + 8, pc);
}

/*
 * The rows of a function that begins, behind `skip` bytes, with push %rbp, and, behind `between` more, mov %rsp,
 * %rbp.
 */
static void add_framed(uint32_t offset, uint32_t skip, uint32_t between)
{
	struct sf_rules entry = simple_rules(RSP, 8, -8), pushed = simple_rules(RSP, 16, -8);
	struct sf_rules body = simple_rules(RBP, 16, -8), left = simple_rules(RSP, 8, -8);

	pushed.saved[1] = body.saved[1] = left.saved[1] =
		(struct sf_rule){ .how = SF_HOW_AT_CFA, .value = -16 };
	table_row(&app, offset, &entry);
	table_row(&app, offset + skip + 1, &pushed);
	table_row(&app, offset + skip + between + 4, &body);
	table_row(&app, offset + 0x20, &left);   /* leave; ret in the midst */
	table_row(&app, offset + 0x21, &body);
	table_row(&app, offset + 0xf0, &left);
}

static void build_app(uint32_t skip, uint32_t between)
{
	struct sf_rules bare = simple_rules(RSP, 8, -8), first = simple_rules(RSP, 16, -8);

	first.ra.how = SF_HOW_UNDEFINED;
	table_start(&app, &sf_arch_x86_64);
	table_row(&app, 0, &bare);
	add_framed(ASLEEP, skip, between);
	add_framed(CALLER, 0, 0);
	table_row(&app, CALLER + 0x100, NULL);
	table_row(&app, FIRST, &first);
	table_row(&app, STUB, &bare);
	table_row(&app, TRAMPOLINE, &bare);
	table_finish(&app);
}

static void build_libc(void)
{
	struct sf_rules bare = simple_rules(RSP, 8, -8);

	table_start(&libc, &sf_arch_x86_64);
	table_row(&libc, 0, &bare);
	table_finish(&libc);
}

/* push %rbp; mov %rsp, %rbp; sub $32, %rsp */
#define PROLOGUE 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20

static int start(void **state)
{
	(void)state;
	recorded_init(&r, &sf_arch_x86_64);
	build_app(0, 0);
	build_libc();
	recorded_memory(&r, APP, SIZE);
	recorded_memory(&r, LIBC, SIZE);
	recorded_memory(&r, DATA, SIZE);
	recorded_memory(&r, STACK, SIZE);
	recorded_region(&r, APP, APP + SIZE, &app.table, 1);
	recorded_region(&r, LIBC, LIBC + SIZE, &libc.table, 2);
	CODE(ASLEEP, PROLOGUE);
	CODE(CALLER, PROLOGUE);
	recorded_call(&r, APP + ASLEEP_RETURN, LIBC);
	recorded_call(&r, APP + CALLER_RETURN, APP + ASLEEP);
	recorded_call(&r, APP + ALSO_CALLS, APP + ASLEEP);
	recorded_call(&r, APP + FIRST_RETURN, APP + CALLER);
	r.still.regs.pc = LIBC + SLEEP;
	recorded_reg(&r, RSP, AT - 8);
	recorded_put(&r, AT - 8, APP + ASLEEP_RETURN);
	put_record(RECORD, CALLER_RECORD, APP + CALLER_RETURN);
	put_record(CALLER_RECORD, 0, APP + FIRST_RETURN);
	return 0;
}

/* Moves what stands above ASLEEP's locals up, as alloca does: its code takes from sp by a register. */
static void take_more(uint64_t by)
{
	recorded_put(&r, RECORD, 0);
	recorded_put(&r, RECORD + 8, 0);
	recorded_put(&r, CALLER_RECORD, 0);
	recorded_put(&r, CALLER_RECORD + 8, 0);
	put_record(RECORD + by, CALLER_RECORD + by, APP + CALLER_RETURN);
	put_record(CALLER_RECORD + by, 0, APP + FIRST_RETURN);
	CODE(ASLEEP + 0x30, 0x48, 0x29, 0xc4); /* sub %rax, %rsp */
}

static void check_frame(unsigned i, uint64_t pc, uint64_t sp, enum sf_via via)
{
	assert_int_equal(r.frames[i].pc, pc);
	assert_int_equal(r.frames[i].sp, sp);
	assert_int_equal(r.frames[i].via, via);
}

static void assert_whole(uint64_t above)
{
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_int_equal(r.trace.n_frames, 4);
	check_frame(0, LIBC + SLEEP, AT - 8, SF_VIA_LEAF);
	check_frame(1, APP + ASLEEP_RETURN, AT, SF_VIA_ROWS);
	check_frame(2, APP + CALLER_RETURN, CALLER_AT + above, SF_VIA_INFERRED);
	check_frame(3, APP + FIRST_RETURN, CALLER_RECORD + 16 + above, SF_VIA_ROWS);
}

static void assert_not_inferred(void)
{
	assert_int_equal(recorded_walk(&r), SF_END_REGISTER);
	assert_int_equal(r.trace.n_frames, 2);
}

/* --- what proves a frame --- */

static void a_call_of_this_function_proves_its_frame(void **state)
{
	(void)state;
	assert_whole(0);
}

/* A call of ASLEEP that was left further up: it disturbs where the frame's size is not known. */
static void leave_another(void)
{
	put_record(RECORD + 0x200, CALLER_RECORD + 0x200, APP + ALSO_CALLS);
	put_record(CALLER_RECORD + 0x200, 0, APP + FIRST_RETURN);
}

static void one_that_only_keeps_registers_is_proven_too(void **state)
{
	(void)state;
	/* push %rbp; mov %rsp, %rbp; push %r12; push %rbx; sub $16, %rsp */
	CODE(ASLEEP, 0x55, 0x48, 0x8b, 0xec, 0x41, 0x54, 0x53, 0x48, 0x81, 0xec, 0x10, 0, 0, 0);
	assert_whole(0);
	/* With mov %rdi, %r12; mov %esi, %ebx; xor %r9, %r9 between them; the frame is known whole. */
	CODE(ASLEEP, 0x55, 0x48, 0x8b, 0xec, 0x41, 0x54, 0x49, 0x89, 0xfc, 0x89, 0xf3, 0x53, 0x4d,
	     0x31, 0xc9, 0x48, 0x81, 0xec, 0x10, 0, 0, 0);
	assert_whole(0);
	leave_another();
	assert_whole(0);
	/* sub %rax, %rsp; mov %rax, %rsp: not known */
	CODE(ASLEEP + 0x28, 0x48, 0x29, 0xc4);
	assert_not_inferred();
	CODE(ASLEEP + 0x28, 0x48, 0x89, 0xc4);
	assert_not_inferred();
}

struct instruction {
	uint8_t size, bytes[12];
};

/* push %rbp; mov %rsp, %rbp; push %r12; this; push %rbx; sub $16, %rsp */
static void put_between(const struct instruction *instruction)
{
	static const uint8_t nothing[0x20];

	put_code(ASLEEP, nothing, sizeof(nothing));
	CODE(ASLEEP, 0x55, 0x48, 0x89, 0xe5, 0x41, 0x54);
	put_code(ASLEEP + 6, instruction->bytes, instruction->size);
	CODE(ASLEEP + 6 + instruction->size, 0x53, 0x48, 0x83, 0xec, 0x10);
}

static void other_instructions_may_stand_between(void **state)
{
	static const struct instruction others[] = {
		{ 4, { 0x4c, 0x8d, 0x75, 0xb0 } },                   /* lea -0x50(%rbp), %r14 */
		{ 7, { 0x48, 0x8d, 0x9d, 0x50, 0xff, 0xff, 0xff } }, /* lea -0xb0(%rbp), %rbx */
		{ 5, { 0x4c, 0x8d, 0x64, 0x24, 0x08 } },             /* lea 8(%rsp), %r12 */
		{ 4, { 0x4c, 0x8d, 0x24, 0x07 } },                   /* lea (%rdi,%rax), %r12 */
		{ 7, { 0x48, 0x8d, 0x3d, 1, 2, 3, 4 } },             /* lea 0x4030201(%rip), %rdi */
		{ 8, { 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0 } },    /* mov 0x28, %rax */
		{ 2, { 0x8b, 0x07 } },                               /* mov (%rdi), %eax */
		{ 3, { 0x89, 0x45, 0xf0 } },                         /* mov %eax, -16(%rbp) */
		{ 7, { 0xc7, 0x45, 0xf8, 0x10, 0, 0, 0 } },          /* movl $16, -8(%rbp) */
		{ 7, { 0x48, 0xc7, 0xc0, 1, 0, 0, 0 } },             /* mov $1, %rax */
		{ 7, { 0x48, 0x69, 0xff, 0x40, 0x42, 0x0f, 0 } },    /* imul $1000000, %rdi, %rdi */
	};
	(void)state;

	leave_another();
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		put_between(&others[i]);
		assert_whole(0);
	}
}

static void but_none_that_sets_the_stack_pointer(void **state)
{
	static const struct instruction others[] = {
		{ 4, { 0x48, 0x8d, 0x60, 0x08 } },             /* lea 8(%rax), %rsp */
		{ 3, { 0x48, 0x89, 0xc4 } },                   /* mov %rax, %rsp */
		{ 3, { 0x48, 0x8b, 0x20 } },                   /* mov (%rax), %rsp */
		{ 3, { 0x48, 0x31, 0xc4 } },                   /* xor %rax, %rsp */
		{ 7, { 0x48, 0x69, 0xe0, 1, 0, 0, 0 } },       /* imul $1, %rax, %rsp */
		{ 7, { 0x48, 0xc7, 0xc4, 0, 0, 1, 0 } },       /* mov $0x10000, %rsp */
	};
	(void)state;

	leave_another();
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		put_between(&others[i]);
		assert_not_inferred();
	}
}

static void and_before_the_frame_pointer_is_set(void **state)
{
	(void)state;
	build_app(0, 7);
	leave_another();
	/* push %rbp; imul $1000000, %rdi, %rdi; mov %rsp, %rbp; sub $32, %rsp */
	CODE(ASLEEP, 0x55, 0x48, 0x69, 0xff, 0x40, 0x42, 0x0f, 0, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20);
	assert_whole(0);
	CODE(ASLEEP, 0x53); /* push %rbx */
	assert_not_inferred();
	CODE(ASLEEP, 0x55, 0x48, 0x69, 0xff, 0x40, 0x42, 0x0f, 0, 0x48, 0x89, 0xe6); /* mov %rsp, %rsi */
	assert_not_inferred();
}

static void a_known_frame_pointer_needs_no_proof(void **state)
{
	unsigned n_reads;
	(void)state;

	recorded_reg(&r, RBP, RECORD);
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	check_frame(2, APP + CALLER_RETURN, CALLER_AT, SF_VIA_ROWS);
	n_reads = r.n_reads;
	r.n_reads = 0;
	CODE(ASLEEP, 0, 0, 0, 0);
	recorded_call(&r, APP + CALLER_RETURN, APP);
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_int_equal(r.n_reads, n_reads);
}

static void it_may_begin_with_endbr64(void **state)
{
	(void)state;
	build_app(4, 0);
	CODE(ASLEEP, 0xf3, 0x0f, 0x1e, 0xfa, PROLOGUE);
	assert_whole(0);
	recorded_call(&r, APP + CALLER_RETURN, APP + ASLEEP + 4); /* nobody calls there */
	assert_not_inferred();
}

static void it_may_be_the_frame_in_which_the_thread_stands(void **state)
{
	(void)state;
	r.still.regs.pc = APP + ASLEEP_RETURN;
	recorded_reg(&r, RSP, AT);
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_int_equal(r.trace.n_frames, 3);
	check_frame(1, APP + CALLER_RETURN, CALLER_AT, SF_VIA_INFERRED);
	/* Not in a page fault: it may stand where its frame is half taken down. */
	r.still.syscall = SF_SYSCALL_FAULT;
	assert_int_equal(recorded_walk(&r), SF_END_REGISTER);
	assert_int_equal(r.trace.n_frames, 1);
}

static void put_stub(bool has_bnd, uint64_t slot_holds)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xf2 };
	const uint64_t jump = APP + STUB + (has_bnd ? 5 : 4);

	recorded_bytes(&r, APP + STUB, endbr, sizeof(endbr));
	recorded_bytes(&r, jump, &(uint16_t){ 0x25ff }, 2);
	recorded_put32(&r, jump + 2, (uint32_t)(DATA + 0x80 - (jump + 6)));
	recorded_put(&r, DATA + 0x80, slot_holds);
	recorded_call(&r, APP + CALLER_RETURN, APP + STUB);
}

static void a_call_through_a_plt_proves_it(void **state)
{
	(void)state;
	put_stub(true, APP + ASLEEP);
	assert_whole(0);
	put_stub(false, APP + ASLEEP);
	assert_whole(0);
}

static void a_plt_that_leads_elsewhere_does_not(void **state)
{
	(void)state;
	put_stub(true, APP + CALLER);
	assert_not_inferred();
	put_stub(true, APP + STUB + 6); /* not yet bound */
	assert_not_inferred();
}

static void recurse(void)
{
	const uint64_t above = RECORD + 16;

	recorded_call(&r, APP + ASLEEP + 0x60, APP + ASLEEP);
	put_record(RECORD, above + 0x20, APP + ASLEEP + 0x60);
	put_record(above + 0x20, above + 0x40, APP + CALLER_RETURN);
	put_record(above + 0x40, 0, APP + FIRST_RETURN);
}

/* The next call of the same function stands right above; only one place is possible, though. */
static void recursion_does_not_confuse_it(void **state)
{
	const uint64_t above = RECORD + 16;
	(void)state;

	recurse();
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_int_equal(r.trace.n_frames, 5);
	check_frame(2, APP + ASLEEP + 0x60, above, SF_VIA_INFERRED);
	check_frame(3, APP + CALLER_RETURN, above + 0x30, SF_VIA_ROWS);
}

/* The rules say that the frame is larger than the prologue shows: then another place is possible. */
static void a_prologue_that_does_not_show_all_is_not_trusted(void **state)
{
	(void)state;
	recurse();
	app.rules[app.rows[3].rules].saved[0] =
		(struct sf_rule){ .how = SF_HOW_AT_CFA, .value = -56 };
	app.rules[app.rows[5].rules].saved[0] = app.rules[app.rows[3].rules].saved[0];
	table_finish(&app);
	assert_not_inferred();
}

/* push %rbp; mov %rsp, %rbp; sub $24, %rsp: something else was pushed, too. */
static void nor_one_that_leaves_the_stack_unaligned(void **state)
{
	(void)state;
	CODE(ASLEEP + 7, 0x18);
	assert_whole(0);
	recurse();
	assert_not_inferred();
}

/* --- what was left on the stack --- */

static void what_was_left_in_the_locals_is_none(void **state)
{
	(void)state;
	put_record(AT, CALLER_RECORD, APP + ALSO_CALLS);
	assert_whole(0);
	put_record(AT + 16, CALLER_RECORD, APP + ALSO_CALLS);
	assert_whole(0);
}

static void a_frame_of_unknown_size_is_searched_for(void **state)
{
	(void)state;
	take_more(0x60);
	assert_whole(0x60);
	recorded_put(&r, RECORD + 0x68, 0);
	recorded_put(&r, CALLER_RECORD + 0x68, 0);
	take_more(0x800);
	assert_whole(0x800);
}

static void two_that_could_be_it_are_none(void **state)
{
	(void)state;
	take_more(0x60);
	put_record(RECORD + 0x20, CALLER_RECORD + 0x60, APP + ALSO_CALLS);
	assert_not_inferred();
	take_more(0x60);
	recorded_put(&r, RECORD + 0x28, 0);
	assert_whole(0x60);
	put_record(RECORD, CALLER_RECORD + 0x60, APP + ALSO_CALLS);
	assert_not_inferred();
}

/* A frame above that ends in 0 may be one, or anything. */
static void one_that_leads_to_nothing_is_none(void **state)
{
	(void)state;
	take_more(0x60);
	recorded_put(&r, CALLER_RECORD + 0x68, 0);
	assert_not_inferred();
}

/* The caller's frame pointer that goes with it leads nowhere. */
static void one_that_cannot_be_left_is_none(void **state)
{
	static const uint64_t wrong[] = { 0, 1, STACK, DATA, RECORD, UINT64_MAX - 8, RECORD + 0x21 };
	(void)state;

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		take_more(0x60);
		put_record(RECORD + 0x20, wrong[i], APP + ALSO_CALLS);
		assert_whole(0x60);
		put_record(RECORD + 0x60, wrong[i], APP + CALLER_RETURN);
		assert_not_inferred();
	}
}

/* Its own frame is where it must be, and an older one, higher up, is no better. */
/* nop; nop; nop; call *%rax */
static void call_indirectly(void)
{
	static const uint8_t code[] = { 0x90, 0x90, 0x90, 0xff, 0xd0 };

	recorded_bytes(&r, APP + CALLER_RETURN - sizeof(code), code, sizeof(code));
}

static void an_indirect_call_counts_where_it_must_be(void **state)
{
	(void)state;
	call_indirectly();
	assert_whole(0);
}

static void an_indirect_call_elsewhere_proves_nothing(void **state)
{
	(void)state;
	call_indirectly();
	take_more(0x100);
	assert_not_inferred();
}

static void nor_one_whose_frame_leads_to_nothing(void **state)
{
	(void)state;
	call_indirectly();
	recorded_put(&r, CALLER_RECORD + 8, 0);
	assert_not_inferred();
}

static void a_tail_call_proves_nothing(void **state)
{
	(void)state;
	recorded_call(&r, APP + CALLER_RETURN, APP + 0x100); /* which jumped to ASLEEP */
	assert_not_inferred();
	take_more(0x60);
	assert_not_inferred();
	/* That a call of ASLEEP was left further up does not help. */
	leave_another();
	assert_not_inferred();
}

#define JUMPER 0x100

/* jmp ASLEEP, or beside it, at the end of a function that was called. */
static void put_jump(uint64_t offset, uint64_t target)
{
	recorded_call(&r, APP + offset + 5, target);
	CODE(offset, 0xe9);
}

static void one_that_is_seen_to_jump_here_does(void **state)
{
	(void)state;
	recorded_call(&r, APP + CALLER_RETURN, APP + JUMPER);
	put_jump(JUMPER + 0x33, APP + ASLEEP);
	assert_whole(0);
	put_jump(JUMPER + 0x33, APP + ASLEEP + 1);
	assert_not_inferred();
	put_jump(JUMPER + 0x33, APP + ASLEEP);
	recorded_put(&r, CALLER_RECORD + 8, 0);   /* a frame that leads to nothing */
	assert_not_inferred();
	put_record(CALLER_RECORD, 0, APP + FIRST_RETURN);
	take_more(0x60);   /* a place that is not certain */
	assert_not_inferred();
}

/* --- a signal's handler --- */

#define CONTEXT CALLER_AT

/* ASLEEP is a handler that interrupted CALLER: the kernel's frame, as far as it is read. */
static void be_a_handler(void)
{
	static const uint8_t code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };

	put_code(TRAMPOLINE, code, sizeof(code));
	recorded_put(&r, RECORD + 8, APP + TRAMPOLINE);
	for (unsigned i = 0; i < 17; i++)
		recorded_put(&r, CONTEXT + 40 + 8 * i, 0);
	recorded_put(&r, CONTEXT + 40 + 8 * 10, STACK + 0x300);  /* rbp */
	recorded_put(&r, CONTEXT + 40 + 8 * 15, STACK + 0x2f0);  /* rsp */
	recorded_put(&r, CONTEXT + 40 + 8 * 16, APP + CALLER_RETURN + 2);
	put_record(STACK + 0x300, 0, APP + FIRST_RETURN);
}

static void a_handler_is_left_where_its_trampoline_must_be(void **state)
{
	(void)state;
	be_a_handler();
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_int_equal(r.trace.n_frames, 5);
	check_frame(2, APP + TRAMPOLINE, CONTEXT, SF_VIA_INFERRED);
	check_frame(3, APP + CALLER_RETURN + 2, STACK + 0x2f0, SF_VIA_SIGNAL);
	check_frame(4, APP + FIRST_RETURN, STACK + 0x310, SF_VIA_ROWS);
}

static void but_not_to_where_no_code_is_nor_from_elsewhere(void **state)
{
	(void)state;
	be_a_handler();
	recorded_put(&r, CONTEXT + 40 + 8 * 16, DATA);
	assert_not_inferred();
	be_a_handler();
	CODE(ASLEEP + 0x30, 0x48, 0x29, 0xc4); /* sub %rax, %rsp: its frame may end elsewhere */
	assert_not_inferred();
}

static void an_address_of_code_alone_is_none(void **state)
{
	(void)state;
	recorded_put(&r, RECORD + 8, APP + CALLER_RETURN + 1);
	assert_not_inferred();
	recorded_put(&r, RECORD + 8, 0x123456);
	assert_not_inferred();
}

static void a_place_that_is_not_aligned_is_none(void **state)
{
	(void)state;
	take_more(0x68);
	assert_not_inferred();
	put_record(RECORD + 0x68, CALLER_RECORD + 0x100, APP + CALLER_RETURN);
	put_record(CALLER_RECORD + 0x100, 0, APP + FIRST_RETURN);
	assert_not_inferred();
}

/* --- what must be known of the function --- */

static void without_its_first_bytes_nothing_is_known(void **state)
{
	(void)state;
	CODE(ASLEEP, 0x90);
	assert_not_inferred();
}

/* The rows go back into another function, or into a gap. */
static void nor_without_its_first_rows(void **state)
{
	(void)state;
	for (unsigned i = 1; i <= 3; i++) {
		build_app(0, 0);
		app.rows[i].rules = app.rows[i == 1 ? 4 : 0].rules;
		table_finish(&app);
		assert_not_inferred();
	}
	build_app(0, 0);
	app.rules[app.rows[4].rules].flags = SF_RULES_NONE;
	table_finish(&app);
	assert_not_inferred();
}

/* --- bounds --- */

static void the_copy_may_end_before_it(void **state)
{
	(void)state;
	recorded_window(&r, STACK, AT - STACK + 0x28, STACK + SIZE);
	assert_not_inferred();
	recorded_window(&r, STACK, AT - STACK + 0x100, STACK + SIZE);
	assert_whole(0);
}

static bool (*read_recorded)(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size);
static uint64_t filler;

/* Stack without end, the same word everywhere. */
static bool read_filled(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	uint64_t *words = ret;

	if (addr < AT || addr >= UINT64_C(1) << 40)
		return read_recorded(reader, ret, addr, size);
	r.n_reads++;
	for (size_t i = 0; i < size / 8; i++)
		words[i] = filler;
	return true;
}

static void a_stack_full_of_code_takes_a_bounded_time(void **state)
{
	static const uint64_t fillers[] = { APP + CALLER_RETURN, APP + FIRST_RETURN, APP + 0x77,
					    APP + ASLEEP, STACK, 0 };
	(void)state;

	read_recorded = r.still.memory.read;
	r.still.memory.read = read_filled;
	for (unsigned i = 0; i < sizeof(fillers) / sizeof(fillers[0]); i++) {
		for (unsigned is_fixed = 0; is_fixed < 2; is_fixed++) {
			filler = fillers[i];
			r.n_reads = 0;
			CODE(ASLEEP + 0x30, 0x48, is_fixed ? 0x90 : 0x29, 0xc4);
			assert_not_inferred();
			assert_true(r.n_reads < 4096);
		}
	}
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, start)
	const struct CMUnitTest tests[] = {
		T(a_call_of_this_function_proves_its_frame),
		T(one_that_only_keeps_registers_is_proven_too),
		T(other_instructions_may_stand_between),
		T(but_none_that_sets_the_stack_pointer),
		T(and_before_the_frame_pointer_is_set),
		T(a_known_frame_pointer_needs_no_proof),
		T(it_may_begin_with_endbr64),
		T(it_may_be_the_frame_in_which_the_thread_stands),
		T(a_call_through_a_plt_proves_it),
		T(a_plt_that_leads_elsewhere_does_not),
		T(recursion_does_not_confuse_it),
		T(a_prologue_that_does_not_show_all_is_not_trusted),
		T(nor_one_that_leaves_the_stack_unaligned),
		T(what_was_left_in_the_locals_is_none),
		T(a_frame_of_unknown_size_is_searched_for),
		T(two_that_could_be_it_are_none),
		T(one_that_cannot_be_left_is_none),
		T(one_that_leads_to_nothing_is_none),
		T(an_indirect_call_counts_where_it_must_be),
		T(an_indirect_call_elsewhere_proves_nothing),
		T(nor_one_whose_frame_leads_to_nothing),
		T(a_tail_call_proves_nothing),
		T(one_that_is_seen_to_jump_here_does),
		T(a_handler_is_left_where_its_trampoline_must_be),
		T(but_not_to_where_no_code_is_nor_from_elsewhere),
		T(an_address_of_code_alone_is_none),
		T(a_place_that_is_not_aligned_is_none),
		T(without_its_first_bytes_nothing_is_known),
		T(nor_without_its_first_rows),
		T(the_copy_may_end_before_it),
		T(a_stack_full_of_code_takes_a_bounded_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks of managed frames of CoreCLR in hand-made memory: bodies by their unwind information at each instruction,
 * funclets, stubs, hijacked return addresses, explicit frames, and structures that make no sense.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "frozen/coreclr/code.h"
#include "recorded.h"

enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12 };

#define HEAP 0x600000         /* jitted code */
#define HEAP_SIZE 0x1000
#define DATA 0x700000         /* the runtime's structures */
#define NATIVE 0x500000       /* native code that has no rules: nobody can walk it */
#define STACK 0x7f0000
#define SIZE 0x1000

/* In DATA: */
#define NODE (DATA + 0x000)
#define MAP (DATA + 0x100)
#define THREAD (DATA + 0x400)
#define HEADERS (DATA + 0x900)
#define DYNAMIC (DATA + 0xb00)  /* a MethodDesc */
#define NAME (DATA + 0xb80)

/* In HEAP: */
#define MAIN (HEAP + 0x100)   /* push rbp; push rbx; sub rsp, 32; ... add rsp, 32; pop rbx; pop rbp; ret */
#define BARE (HEAP + 0x200)   /* no frame at all */
#define STUB (HEAP + 0x300)
#define CALLED (MAIN + 0x20)  /* behind a call in MAIN */

static struct recorded r;
static struct table_builder native;
static struct sf_coreclr coreclr;
static struct sf_clr_range ranges[1];

static const uint8_t prologue[] = { 0x55, 0x53, 0x48, 0x83, 0xec, 0x20 };
static const uint8_t epilogue[] = { 0x48, 0x83, 0xc4, 0x20, 0x5b, 0x5d, 0xc3 };
static const uint8_t call[] = { 0xff, 0xd0 };
/* Behind 6 bytes: 32 bytes allocated; behind 2: rbx pushed; behind 1: rbp pushed. */
static const uint8_t main_info[] = { 0x19, 6, 3, 0, 6, 0x32, 2, 0x30, 1, 0x50 };
static const uint8_t bare_info[] = { 0x19, 0, 0, 0 };

/* Only what walks need, as .NET 10 has it. */
static void set_layout(struct sf_clr_layout *layout)
{
	memset(layout->fields, 0xff, sizeof(layout->fields));
	layout->fields[SF_CLR_HEAP_END] = 24;
	layout->fields[SF_CLR_HEAP_BASE] = 32;
	layout->fields[SF_CLR_HEAP_MAP] = 40;
	layout->fields[SF_CLR_HEADER_METHOD] = 24;
	layout->fields[SF_CLR_HEADER_N_UNWIND] = 32;
	layout->fields[SF_CLR_HEADER_UNWIND] = 36;
	layout->fields[SF_CLR_THREAD_STATE] = 0;
	layout->fields[SF_CLR_THREAD_FRAME] = 8;
	layout->fields[SF_CLR_THREAD_OS_ID] = 296;
	layout->fields[SF_CLR_FRAME_NEXT] = 8;
	layout->fields[SF_CLR_CALL_SP] = 24;
	layout->fields[SF_CLR_CALL_RETURN] = 32;
	layout->fields[SF_CLR_CALL_FP] = 40;
	layout->frames[SF_CLR_FRAME_INLINED_CALL] = 1;
	layout->last_stub_kind = 15;
	layout->nibble_map = 2;
	layout->fields[SF_CLR_MAP_TOP] = 0;
}

/* The nibble for a start that is a multiple of 32. */
static void add_start(uint64_t start)
{
	const uint64_t offset = start - HEAP, word = MAP + offset / 256 * 4;
	uint32_t present;

	assert_true(sf_read(&r.still.memory, &present, word, sizeof(present)));
	recorded_put32(&r, word, present | 1u << (28 - offset / 32 % 8 * 4));
}

static void add_method(unsigned number, uint64_t start, uint32_t size, const uint8_t *info, size_t info_size)
{
	const uint64_t header = HEADERS + number * 0x80, at = HEAP + 0x800 + number * 0x40;

	add_start(start);
	recorded_put(&r, start - 8, header);
	recorded_put(&r, header + 24, 0x1000 + number * 8);
	recorded_put32(&r, header + 32, 1);
	recorded_put32(&r, header + 36, (uint32_t)(start - HEAP));
	recorded_put32(&r, header + 40, (uint32_t)(start - HEAP) + size);
	recorded_put32(&r, header + 44, (uint32_t)(at - HEAP));
	recorded_bytes(&r, at, info, info_size);
}

static void add_code(void)
{
	add_method(0, MAIN, 0x40, main_info, sizeof(main_info));
	add_method(1, BARE, 0x10, bare_info, sizeof(bare_info));
	add_start(STUB);
	recorded_put(&r, STUB - 8, 4);
	recorded_bytes(&r, MAIN, prologue, sizeof(prologue));
	recorded_bytes(&r, CALLED - sizeof(call), call, sizeof(call));
	recorded_bytes(&r, MAIN + 0x30, epilogue, sizeof(epilogue));
}

static int start(void **state)
{
	(void)state;
	recorded_init(&r, &sf_arch_x86_64);
	recorded_memory(&r, NATIVE, SIZE);
	recorded_memory(&r, HEAP, HEAP_SIZE);
	recorded_memory(&r, DATA, SIZE);
	recorded_memory(&r, STACK, SIZE);
	recorded_region(&r, NATIVE, NATIVE + SIZE, NULL, 1);
	coreclr = (struct sf_coreclr){
		.runtime = { .ops = &sf_coreclr_ops, .start = 1, .end = UINT64_MAX },
		.ranges = ranges, .n_ranges = 1,
	};
	set_layout(&coreclr.layout);
	ranges[0] = (struct sf_clr_range){
		.region = { .start = HEAP, .end = HEAP + HEAP_SIZE, .runtime = &coreclr.runtime },
		.code = SF_CLR_CODE_JITTED, .base = HEAP, .heap = NODE,
	};
	recorded_put(&r, NODE + 24, HEAP + HEAP_SIZE);
	recorded_put(&r, NODE + 32, HEAP);
	recorded_put(&r, NODE + 40, MAP);
	add_code();
	r.map->runtimes[0] = &coreclr.runtime;
	r.map->n_runtimes = 1;
	recorded_reg(&r, RBX, 0x33);
	recorded_reg(&r, RBP, 0);
	return 0;
}

/* MAIN's frame with its stack pointer at `sp`, called by nobody. */
static void put_frame(uint64_t sp)
{
	recorded_put(&r, sp + 32, 0x1b1b);     /* rbx */
	recorded_put(&r, sp + 40, 0xbbbb);     /* rbp */
	recorded_put(&r, sp + 48, 0);
}

static void check_main(unsigned i, uint64_t pc)
{
	assert_true(i < r.trace.n_frames);
	assert_int_equal(r.frames[i].pc, pc);
	assert_true(sf_kind_is_managed(r.frames[i].kind));
	assert_int_equal(r.frames[i].token, MAIN);
	assert_int_equal(r.frames[i].id, 0x1000 >> 3);
}

/* Each instruction of the prologue and of the epilogue: where the return address is then. */
static void each_instruction(void **state)
{
	static const struct {
		uint64_t offset, return_at;
	} at[] = {
		{ 0, 0 }, { 1, 8 }, { 2, 16 }, { 6, 48 }, { 0x10, 48 },
		{ 0x30, 48 }, { 0x34, 16 }, { 0x35, 8 }, { 0x36, 0 },
	};

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		start(state);
		r.still.regs.pc = MAIN + at[i].offset;
		recorded_reg(&r, RSP, STACK + 0x100);
		recorded_put(&r, STACK + 0x100 + at[i].return_at, CALLED);
		put_frame(STACK + 0x108 + at[i].return_at);
		assert_int_equal(recorded_walk(&r), SF_END_ROOT);
		assert_int_equal(r.trace.n_frames, 2);
		check_main(0, MAIN + at[i].offset);
		check_main(1, CALLED);
		assert_int_equal(r.frames[1].sp, STACK + 0x108 + at[i].return_at);
	}
}

/* Behind the end of a body there is nothing, although the map of starts leads to it. */
static void behind_the_end(void **state)
{
	(void)state;
	r.still.regs.pc = MAIN + 0x50;
	recorded_reg(&r, RSP, STACK + 0x100);
	assert_int_equal(recorded_walk(&r), SF_END_NO_RULE);
	assert_int_equal(r.trace.n_frames, 1);
}

static void a_stub_that_has_pushed_words(void **state)
{
	for (unsigned n = 0; n < 3; n++) {
		start(state);
		r.still.regs.pc = STUB + 4;
		recorded_reg(&r, RSP, STACK + 0x100);
		for (unsigned i = 0; i < n; i++)
			recorded_put(&r, STACK + 0x100 + 8 * i, MAIN + 0x10); /* code, but behind no call */
		recorded_put(&r, STACK + 0x100 + 8 * n, CALLED);
		put_frame(STACK + 0x108 + 8 * n);
		assert_int_equal(recorded_walk(&r), SF_END_ROOT);
		assert_int_equal(r.trace.n_frames, 2);
		assert_int_equal(r.frames[0].kind, SF_KIND_STUB);
		assert_int_equal(r.frames[0].id, 4);
		check_main(1, CALLED);
	}
}

/* A fault at the first instruction: its frame looks as if the instruction were a return address. */
static void a_fault_at_the_start(void **state)
{
	(void)state;
	r.still.regs.pc = BARE + 4;
	recorded_reg(&r, RSP, STACK + 0x100);
	recorded_put(&r, STACK + 0x100, MAIN);
	recorded_put(&r, STACK + 0x108, CALLED);
	put_frame(STACK + 0x110);
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_int_equal(r.trace.n_frames, 3);
	check_main(1, MAIN);
	assert_true(r.frames[1].flags & SF_FRAME_EXACT);
	check_main(2, CALLED);
}

/* The return address leads into native code, where no call is: the Thread has the original. */
static void put_hijack(uint32_t thread_state)
{
	r.still.regs.pc = BARE + 4;
	recorded_reg(&r, RSP, STACK + 0x100);
	recorded_put(&r, STACK + 0x100, NATIVE + 0x40);
	put_frame(STACK + 0x108);
	recorded_put32(&r, THREAD, thread_state);
	recorded_put(&r, THREAD + 8, UINT64_MAX);
	recorded_put(&r, THREAD + 152, CALLED);
	recorded_put(&r, THREAD + 160, STACK + 0x100);
	r.still.handles[0] = THREAD;
}

static void a_hijacked_return(void **state)
{
	(void)state;
	put_hijack(0x80);
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_int_equal(r.trace.n_frames, 2);
	check_main(1, CALLED);
}

/* When the thread's state does not say so, the fields are of an earlier suspension. */
static void a_stale_hijack(void **state)
{
	(void)state;
	put_hijack(0);
	assert_int_equal(recorded_walk(&r), SF_END_RUNTIME);
	assert_int_equal(r.trace.n_frames, 1);
}

/* Of a copied stack they are taken if it goes on from there: the thread may have run since. */
static void a_hijack_of_the_time_of_the_copy(void **state)
{
	(void)state;
	put_hijack(0);
	recorded_put(&r, STACK + 0x138, CALLED);
	put_frame(STACK + 0x140);
	assert_int_equal(recorded_walk(&r), SF_END_RUNTIME);
	r.still.flags = SF_STILL_COPY;
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_int_equal(r.trace.n_frames, 3);
	check_main(1, CALLED);
	check_main(2, CALLED);
	recorded_put(&r, STACK + 0x138, MAIN + 0x10); /* code, but behind no call */
	assert_int_equal(recorded_walk(&r), SF_END_RUNTIME);
	assert_int_equal(r.trace.n_frames, 1);
}

/* The caller may be native: then its rules lead on. */
static void a_hijack_of_a_native_caller(void **state)
{
	struct sf_rules rules = simple_rules(RSP, 16, -8);

	(void)state;
	put_hijack(0);
	table_start(&native, &sf_arch_x86_64);
	table_row(&native, 0, &rules);
	r.map->regions[0].table = table_finish(&native);
	recorded_bytes(&r, NATIVE + 0x80 - sizeof(call), call, sizeof(call));
	recorded_put(&r, THREAD + 152, NATIVE + 0x80);
	recorded_put(&r, STACK + 0x110, CALLED);
	put_frame(STACK + 0x118);
	r.still.flags = SF_STILL_COPY;
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_int_equal(r.trace.n_frames, 3);
	assert_int_equal(r.frames[1].pc, NATIVE + 0x80);
	check_main(2, CALLED);
	recorded_put(&r, STACK + 0x110, MAIN + 0x10); /* code, but behind no call */
	assert_int_equal(recorded_walk(&r), SF_END_RUNTIME);
	assert_int_equal(r.trace.n_frames, 1);
}

/*
 * When the Thread has a later one, the stack itself has the original again: as it is now, if the caller's frame is still the
 * one that was copied.
 */
static void a_hijack_that_is_over(void **state)
{
	static _Alignas(8) uint8_t copy[SIZE];
	struct sf_reader *memory = &r.still.memory;

	(void)state;
	put_hijack(0x80);
	recorded_put(&r, THREAD + 160, STACK + 0x180);
	recorded_put(&r, STACK + 0x138, CALLED);
	put_frame(STACK + 0x140);
	assert_true(sf_read(memory, copy, STACK, SIZE));
	recorded_put(&r, STACK + 0x100, CALLED);
	memory->window = copy;
	memory->window_start = STACK;
	memory->window_size = SIZE;
	assert_int_equal(recorded_walk(&r), SF_END_RUNTIME);
	r.still.flags = SF_STILL_COPY;
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_int_equal(r.trace.n_frames, 3);
	check_main(1, CALLED);
	check_main(2, CALLED);
	recorded_put(&r, STACK + 0x138, MAIN + 0x10); /* another frame by now */
	assert_int_equal(recorded_walk(&r), SF_END_RUNTIME);
	recorded_put(&r, STACK + 0x138, CALLED);
	recorded_put(&r, STACK + 0x100, MAIN + 0x10); /* code, but behind no call */
	assert_int_equal(recorded_walk(&r), SF_END_RUNTIME);
	assert_int_equal(r.trace.n_frames, 1);
}

/* Native code without rules: the explicit frame leads to the managed caller. */
static void put_native(uint64_t frame)
{
	r.still.regs.pc = NATIVE + 0x40;
	recorded_reg(&r, RSP, STACK + 0x100);
	recorded_put(&r, THREAD + 8, frame);
	r.still.handles[0] = THREAD;
	put_frame(STACK + 0x300);
	recorded_put(&r, STACK + 0x200, 1);
	recorded_put(&r, STACK + 0x208, UINT64_MAX);
	recorded_put(&r, STACK + 0x218, STACK + 0x300);
	recorded_put(&r, STACK + 0x220, CALLED);
	recorded_put(&r, STACK + 0x228, 0xbbbb);
}

static void an_explicit_frame(void **state)
{
	(void)state;
	put_native(STACK + 0x200);
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_int_equal(r.trace.n_frames, 2);
	check_main(1, CALLED);
	assert_int_equal(r.frames[1].via, SF_VIA_ANCHOR);
}

/*
 * Rules that are wrong find a return address of 0: that is no end where the thread has an explicit frame above. By a
 * rule it is one.
 */
static void an_explicit_frame_above_a_false_end(void **state)
{
	struct sf_rules wrong = simple_rules(RSP, 8, -8), last = simple_rules(RSP, 8, -8);

	last.ra.how = SF_HOW_UNDEFINED;
	(void)state;
	put_native(STACK + 0x200);
	table_start(&native, &sf_arch_x86_64);
	table_row(&native, 0, &wrong);
	r.map->regions[0].table = table_finish(&native);
	recorded_put(&r, STACK + 0x100, 0);
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_int_equal(r.trace.n_frames, 2);
	check_main(1, CALLED);
	assert_int_equal(r.frames[1].via, SF_VIA_ANCHOR);
	recorded_put(&r, THREAD + 8, UINT64_MAX);
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_int_equal(r.trace.n_frames, 1);
	recorded_put(&r, THREAD + 8, STACK + 0x200);
	table_start(&native, &sf_arch_x86_64);
	table_row(&native, 0, &last);
	r.map->regions[0].table = table_finish(&native);
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	assert_int_equal(r.trace.n_frames, 1);
}

/*
 * In the routine to which hijacked return addresses lead, before the original one is in its place, some word is there: 0,
 * one that leads to no code. The Thread has the original, while its state says so.
 */
static void the_routine_of_hijacked_returns(void **state)
{
	static const uint64_t words[] = { 0, 0x123456 };
	const uint64_t slot = STACK + 0x108;
	struct sf_rules rules = simple_rules(RSP, 16, -8);

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		start(state);
		r.still.regs.pc = NATIVE + 0x40;
		r.still.handles[0] = THREAD;
		recorded_put32(&r, THREAD, 0x80);
		recorded_put(&r, THREAD + 8, UINT64_MAX);
		recorded_put(&r, THREAD + 152, CALLED);
		recorded_put(&r, THREAD + 160, slot);
		recorded_reg(&r, RSP, STACK + 0x100);
		table_start(&native, &sf_arch_x86_64);
		table_row(&native, 0, &rules);
		r.map->regions[0].table = table_finish(&native);
		recorded_put(&r, slot, words[i]);
		put_frame(slot + 8);
		assert_int_equal(recorded_walk(&r), SF_END_ROOT);
		assert_int_equal(r.trace.n_frames, 2);
		check_main(1, CALLED);
		assert_int_equal(r.frames[1].sp, slot + 8);
		recorded_put32(&r, THREAD, 0);
		recorded_walk(&r);
		assert_int_equal(r.trace.n_frames, 1);
	}
}

/*
 * The list of a thread that has run since its stack was copied lacks the inner frame: the outer one would leave out what is
 * between them. Of a held thread the list is right.
 */
static void an_explicit_frame_that_is_no_longer_in_the_list(void **state)
{
	static const uint32_t flags[] = { SF_STILL_COPY, 0 };

	for (unsigned i = 0; i < 2; i++) {
		start(state);
		put_native(STACK + 0x200);
		recorded_put(&r, STACK + 0x180, 1);
		recorded_put(&r, STACK + 0x198, STACK + 0x1c0);
		recorded_put(&r, STACK + 0x1a0, CALLED);
		recorded_put(&r, STACK + 0x1a8, 0xbbbb);
		r.still.flags = flags[i];
		assert_int_equal(recorded_walk(&r) == SF_END_ROOT, i == 1);
		recorded_put(&r, STACK + 0x1a0, 0); /* not active: it was in no call */
		assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	}
}

/* A frame that is not active (no return address), one that leads down, and a circle. */
static void explicit_frames_that_lead_nowhere(void **state)
{
	(void)state;
	put_native(STACK + 0x200);
	recorded_put(&r, STACK + 0x220, 0);
	assert_int_not_equal(recorded_walk(&r), SF_END_ROOT);
	start(state);
	put_native(STACK + 0x200);
	recorded_put(&r, STACK + 0x218, STACK + 0x80);
	assert_int_not_equal(recorded_walk(&r), SF_END_ROOT);
	start(state);
	put_native(STACK + 0x200);
	recorded_put(&r, STACK + 0x220, 0);
	recorded_put(&r, STACK + 0x208, STACK + 0x200);
	assert_int_not_equal(recorded_walk(&r), SF_END_ROOT);
}

/* A count of functions and unwind codes that lie. */
static void structures_that_lie(void **state)
{
	static const uint8_t bad_version[] = { 0x1a, 0, 0, 0, 0, 0 }, bad_op[] = { 0x19, 0, 1, 0, 0, 0x0f };
	static const uint8_t short_code[] = { 0x19, 0, 1, 0, 0, 0x01 };
	const uint8_t *const infos[] = { bad_version, bad_op, short_code };

	for (unsigned i = 0; i < 3; i++) {
		start(state);
		r.still.regs.pc = BARE + 4;
		recorded_reg(&r, RSP, STACK + 0x100);
		recorded_put(&r, STACK + 0x100, CALLED);
		recorded_bytes(&r, HEAP + 0x840, infos[i], 6);
		assert_int_equal(recorded_walk(&r), SF_END_RUNTIME);
	}
	start(state);
	r.still.regs.pc = BARE + 4;
	recorded_reg(&r, RSP, STACK + 0x100);
	recorded_put32(&r, HEADERS + 0x80 + 32, 0xffffffff);
	assert_int_equal(recorded_walk(&r), SF_END_NO_RULE);
}

static uint32_t id_of_main(void)
{
	r.still.regs.pc = MAIN + 0x10;
	recorded_reg(&r, RSP, STACK + 0x100);
	put_frame(STACK + 0x100);
	assert_int_equal(recorded_walk(&r), SF_END_ROOT);
	return r.frames[0].id;
}

/* The id of MAIN's frame, where its MethodDesc is a dynamic method's with this name. */
static uint32_t id_of_dynamic(const char *name)
{
	recorded_bytes(&r, NAME, name, strlen(name) + 1);
	return id_of_main();
}

/* The runtime uses a dynamic method's code and its MethodDesc again for the next one. Only its name differs. */
static void a_dynamic_method_is_known_by_its_name(void **state)
{
	uint32_t first, second;

	(void)state;
	coreclr.layout.fields[SF_CLR_METHOD_FLAGS] = 6;
	coreclr.layout.fields[SF_CLR_DYNAMIC_NAME] = 24;
	recorded_put(&r, HEADERS + 24, DYNAMIC);
	recorded_put32(&r, DYNAMIC + 4, 7u << 16);
	recorded_put(&r, DYNAMIC + 24, NAME);
	assert_int_equal(id_of_dynamic("First"), DYNAMIC >> 3); /* code that is never freed */
	ranges[0].is_collectible = true;
	first = id_of_dynamic("First");
	second = id_of_dynamic("Second");
	assert_int_not_equal(first, second);
	assert_int_equal(id_of_dynamic("First"), first);
	/* A name that goes on, on the next page. */
	recorded_put(&r, DYNAMIC + 24, DATA + SIZE - 4);
	recorded_bytes(&r, DATA + SIZE - 4, "Long", 4);
	assert_int_not_equal(id_of_dynamic(""), first);
	/* A method of another kind, and one that cannot be read. */
	recorded_put32(&r, DYNAMIC + 4, 5u << 16);
	assert_int_equal(id_of_dynamic("First"), DYNAMIC >> 3);
	recorded_put(&r, HEADERS + 24, 0x1000);
	assert_int_equal(id_of_dynamic("First"), 0x1000 >> 3);
}

/* When an assembly is unloaded, the next one may have all its structures where the first one had them. */
static void a_method_that_may_be_unloaded_is_known_by_its_assembly(void **state)
{
	struct sf_clr_layout *layout = &coreclr.layout;
	uint32_t first, second;

	(void)state;
	layout->fields[SF_CLR_METHOD_FLAGS] = 6;
	layout->fields[SF_CLR_METHOD_INDEX] = 2;
	layout->fields[SF_CLR_CHUNK_TABLE] = 0;
	layout->fields[SF_CLR_TABLE_MODULE] = 8;
	layout->fields[SF_CLR_MODULE_BASE] = 0;
	layout->fields[SF_CLR_MODULE_NAME] = 8;
	layout->sizes[SF_CLR_SIZE_CHUNK] = 16;
	layout->method_alignment = 8;
	recorded_put(&r, HEADERS + 24, DYNAMIC);
	recorded_put32(&r, DYNAMIC, 2u << 16);                 /* the third of its chunk */
	recorded_put(&r, DYNAMIC - 32, DYNAMIC + 0x20);        /* its MethodTable, */
	recorded_put(&r, DYNAMIC + 0x28, DYNAMIC + 0x40);      /* the Module, */
	recorded_put(&r, DYNAMIC + 0x40, NATIVE);              /* the file, */
	recorded_put(&r, DYNAMIC + 0x48, NAME);                /* and its name */
	recorded_bytes(&r, NAME, "Plugin", 7);
	assert_int_equal(id_of_main(), DYNAMIC >> 3); /* code that is never freed */
	ranges[0].is_collectible = true;
	first = id_of_main();
	recorded_put32(&r, NATIVE + 0x88, 0x12345678);         /* the file's time stamp */
	second = id_of_main();
	assert_int_not_equal(first, second);
	recorded_put32(&r, NATIVE + 0x88, 0);
	assert_int_equal(id_of_main(), first);
	recorded_bytes(&r, NAME, "Plugon", 7);
	assert_int_not_equal(id_of_main(), first);
	recorded_put(&r, DYNAMIC + 0x40, 0x10);                /* a file that cannot be read */
	recorded_put(&r, DYNAMIC + 0x48, 0);
	assert_int_equal(id_of_main(), DYNAMIC >> 3);
}

/* Version 1 of the nibble map goes back over words of 0; version 2 has words that point. */
static void nibble_maps(void **state)
{
	uint64_t found;

	(void)state;
	recorded_put32(&r, MAP + 0x0c, 0);
	coreclr.layout.nibble_map = 1;
	assert_true(sf_clr_find_start(&coreclr.layout, NODE, &r.still.memory, HEAP + 0x7f0, &found));
	assert_int_equal(found, BARE);
	coreclr.layout.nibble_map = 2;
	assert_false(sf_clr_find_start(&coreclr.layout, NODE, &r.still.memory, HEAP + 0x7f0, &found));
	recorded_put32(&r, MAP + 7 * 4, 0x200 | 9);
	assert_true(sf_clr_find_start(&coreclr.layout, NODE, &r.still.memory, HEAP + 0x7f0, &found));
	assert_int_equal(found, BARE);
	assert_false(sf_clr_find_start(&coreclr.layout, NODE, &r.still.memory, HEAP + HEAP_SIZE, &found));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_instruction, start),
		cmocka_unit_test_setup(behind_the_end, start),
		cmocka_unit_test_setup(a_stub_that_has_pushed_words, start),
		cmocka_unit_test_setup(a_fault_at_the_start, start),
		cmocka_unit_test_setup(a_hijacked_return, start),
		cmocka_unit_test_setup(a_stale_hijack, start),
		cmocka_unit_test_setup(a_hijack_of_the_time_of_the_copy, start),
		cmocka_unit_test_setup(a_hijack_of_a_native_caller, start),
		cmocka_unit_test_setup(a_hijack_that_is_over, start),
		cmocka_unit_test_setup(an_explicit_frame, start),
		cmocka_unit_test_setup(an_explicit_frame_above_a_false_end, start),
		cmocka_unit_test_setup(the_routine_of_hijacked_returns, start),
		cmocka_unit_test_setup(an_explicit_frame_that_is_no_longer_in_the_list, start),
		cmocka_unit_test_setup(explicit_frames_that_lead_nowhere, start),
		cmocka_unit_test_setup(structures_that_lie, start),
		cmocka_unit_test_setup(a_dynamic_method_is_known_by_its_name, start),
		cmocka_unit_test_setup(a_method_that_may_be_unloaded_is_known_by_its_assembly, start),
		cmocka_unit_test_setup(nibble_maps, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

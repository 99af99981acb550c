/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual machine made by hand: its tables are read, its stacks walked, its methods named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fake_jvm.h"
#include "runtime/hotspot/examine.h"
#include "runtime/hotspot/metadata.h"
#include "runtime/hotspot/names.h"
#include "runtime/hotspot/scopes.h"
#include "runtime/hotspot/self_test.h"
#include "runtime/hotspot/threads.h"

enum { RAX = 0, RDX = 1, RCX = 2, RBX = 3, RBP = 6, RSP = 7, R11 = 11, R13 = 13, R15 = 15 };

static void reg(struct fake_jvm *jvm, unsigned number, uint64_t value)
{
	sf_reg_set(&jvm->still.regs, number, value);
}

static void start(struct fake_jvm *jvm, uint64_t pc, uint64_t sp, uint64_t fp)
{
	jvm->still.regs = (struct sf_regs){ .pc = pc };
	reg(jvm, RSP, sp);
	reg(jvm, RBP, fp);
}

static void put(struct fake_jvm *jvm, uint64_t address, uint64_t value)
{
	fake_put(jvm, address, value, 8);
}

/* An interpreter's frame whose fp is at `fp`. */
static void put_interpreted(struct fake_jvm *jvm, uint64_t fp, uint64_t method, unsigned bci,
			    uint64_t return_pc, uint64_t caller_sp, uint64_t caller_fp)
{
	put(jvm, fp + 8, return_pc);
	put(jvm, fp, caller_fp);
	put(jvm, fp - 8, caller_sp);
	put(jvm, fp - 24, method);
	put(jvm, jvm->version == 8 ? fp - 56 : fp - 64, fake_bytecode(jvm, method, bci));
}

/* The entry from native code at `fp`; nothing stands above it. */
static void put_entry(struct fake_jvm *jvm, uint64_t fp)
{
	put(jvm, fp, 0);
	put(jvm, fp + 8, 0x7f0000001000); /* in no code: the walk ends there */
}

static void assert_frame(const struct fake_jvm *jvm, unsigned i, enum sf_frame_kind kind, uint64_t token)
{
	assert_true(i < jvm->trace.n_frames);
	assert_string_equal(sf_kind_word(jvm->frames[i].kind), sf_kind_word(kind));
	assert_int_equal(jvm->frames[i].token, token);
}

static void test_interpreted_frames(void **state)
{
	struct fake_jvm *jvm = *state;
	uint64_t inner = fake_method(jvm, "a/Inner", "in", "()V", "Inner.java", 20);
	uint64_t outer = fake_method(jvm, "a/Outer", "out", "()V", "Outer.java", 20);
	uint64_t sp = FAKE_STACK + 0x100, fp1 = FAKE_STACK + 0x200, fp2 = FAKE_STACK + 0x300,
		 fp3 = FAKE_STACK + 0x400;

	put_interpreted(jvm, fp1, inner, 5, jvm->interpreter, fp1 + 16, fp2);
	put_interpreted(jvm, fp2, outer, 7, jvm->call_stub_return, fp2 + 32, fp3);
	put_entry(jvm, fp3);
	start(jvm, jvm->interpreter, sp, fp1);
	reg(jvm, R13, fake_bytecode(jvm, inner, 9)); /* where it stands: not yet in the frame */
	assert_int_equal(sf_walk(&jvm->still, &jvm->trace), SF_END_NO_CODE);
	assert_int_equal(jvm->trace.n_frames, 3);
	assert_frame(jvm, 0, SF_KIND_INTERPRETED, inner);
	assert_int_equal(jvm->frames[0].bci, 9);
	assert_frame(jvm, 1, SF_KIND_INTERPRETED, outer);
	assert_int_equal(jvm->frames[1].bci, 7);
	assert_int_equal(jvm->frames[1].sp, fp1 + 16);
	assert_frame(jvm, 2, SF_KIND_STUB, jvm->call_stub_return);
}

/*
 * Before it calls a leaf routine, the interpreter does not put its place into the frame: what stands there is of an earlier
 * call. The entry of a method that calls one has no frame: that is its caller's, which has called Java.
 */
static void test_interpreter_calls_a_routine(void **state)
{
	static const uint8_t ret = 0xc3;
	struct fake_jvm *jvm = *state;
	uint64_t method = fake_method(jvm, "a/B", "method", "()V", NULL, 8);
	uint64_t sp = FAKE_STACK + 0x200, fp = FAKE_STACK + 0x300;
	uint64_t stub = fake_code(jvm, &(struct fake_code){
		.name = "StubRoutines (compiler stubs)", .size = 64, .frame_complete = -1 });

	fake_bytes(jvm, stub + 16, &ret, 1);
	put_interpreted(jvm, fp, method, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
	put_entry(jvm, fp + 0x100);
	for (unsigned i = 0; i < 2; i++) {
		put(jvm, sp, i ? jvm->entry + 1 : jvm->interpreter);
		start(jvm, stub + 16, sp, fp);
		reg(jvm, R13, fake_bytecode(jvm, method, 5)); /* the routine's, for all that is known */
		sf_walk(&jvm->still, &jvm->trace);
		assert_int_equal(jvm->trace.n_frames, 3);
		assert_frame(jvm, 1, SF_KIND_INTERPRETED, method);
		assert_int_equal(jvm->frames[1].bci, i ? 2 : -1);
	}
}

static void test_entering_interpreter(void **state)
{
	static const struct {
		int at;              /* from "push rbp" */
		bool pushed, moved;
	} places[] = { { -8, false, false }, { 0, false, false }, { 1, true, false }, { 4, true, true } };
	struct fake_jvm *jvm = *state;
	uint64_t callee = fake_method(jvm, "a/B", "callee", "()V", NULL, 8);
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t sp = FAKE_STACK + 0x200, fp = FAKE_STACK + 0x300;

	put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
	put_entry(jvm, fp + 0x100);
	put(jvm, sp, jvm->interpreter);
	put(jvm, sp - 8, fp);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		start(jvm, jvm->entry_frame + (uint64_t)(int64_t)places[i].at,
		      sp - 8 * places[i].pushed, places[i].moved ? sp - 8 : fp);
		reg(jvm, RBX, callee);
		reg(jvm, R13, sp + 8);
		sf_walk(&jvm->still, &jvm->trace);
		assert_int_equal(jvm->trace.n_frames, 3);
		assert_frame(jvm, 0, SF_KIND_INTERPRETED, callee);
		assert_int_equal(jvm->frames[0].bci, 0);
		assert_frame(jvm, 1, SF_KIND_INTERPRETED, caller);
		assert_int_equal(jvm->frames[1].sp, sp + 8);
	}
}

/*
 * The interpreter has put the Method into a new frame, and nothing below it. The stack is a copy that begins at sp: the
 * rest of the frame cannot be read.
 */
static void test_interpreter_pushes_slots(void **state)
{
	struct fake_jvm *jvm = *state;
	uint64_t callee = fake_method(jvm, "a/B", "callee", "()V", NULL, 8);
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t fp = FAKE_STACK + 0x200, callers = FAKE_STACK + 0x300;
	struct sf_trace *trace = &jvm->trace;

	put_interpreted(jvm, callers, caller, 2, jvm->call_stub_return, callers + 16, callers + 0x100);
	put_entry(jvm, callers + 0x100);
	put_interpreted(jvm, fp, callee, 0, jvm->interpreter, fp + 16, callers);
	for (uint64_t sp = fp - 24; sp >= fp - 72; sp -= 8) {
		jvm->still.memory.window = jvm->bytes + (sp - FAKE_BASE);
		jvm->still.memory.window_start = sp;
		jvm->still.memory.window_size = FAKE_STACK + FAKE_STACK_SIZE - sp;
		jvm->still.memory.copied = true;
		start(jvm, jvm->entry_frame + 40, sp, fp);
		reg(jvm, R13, fake_bytecode(jvm, callee, 0));
		sf_walk(&jvm->still, trace);
		assert_int_equal(trace->n_frames, 3);
		assert_frame(jvm, 0, SF_KIND_INTERPRETED, callee);
		assert_int_equal(jvm->frames[0].bci, 0);
		assert_frame(jvm, 1, SF_KIND_INTERPRETED, caller);
		assert_int_equal(jvm->frames[1].via, SF_VIA_RUNTIME);
	}
}

/* A method compiled by C2: the usual prologue, a call, and the usual end. */
static uint64_t make_compiled(struct fake_jvm *jvm, uint64_t method, uint64_t inlined)
{
	uint64_t code = fake_code(jvm, &(struct fake_code){
		.name = "nmethod", .size = 192, .frame_size = 4, .frame_complete = 28, .entry = 16,
		.method = method, .compile_id = 42, .level = 4, .pc = 48, .inlined = inlined,
		.inlined_bci = 1 });
	static const uint8_t prologue[] = { 0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff, 0x55,
					    0x48, 0x83, 0xec, 0x10 };
	static const uint8_t call[] = { 0xe8, 0, 0, 0, 0 };
	static const uint8_t end[] = { 0x48, 0x83, 0xc4, 0x10, 0x5d, 0x49, 0x3b, 0xa7, 0x40, 3, 0, 0,
				       0x0f, 0x87, 0, 0, 0, 0, 0xc3 };
	/* polls that other blocks stand before */
	static const uint8_t polls[] = { 0xf4, 0x49, 0x3b, 0x67, 0x28, 0x0f, 0x87, 0, 0, 0, 0, 0xc3,
					 0xf4, 0x49, 0x3b, 0xa7, 0x40, 3, 0, 0, 0x0f, 0x87, 0, 0, 0, 0, 0xc3 };

	/* the end of one that may use the stack's reserved zone */
	static const uint8_t reserved[] = { 0x48, 0x83, 0xc4, 0x10, 0x5d, 0x49, 0x3b, 0xa7, 0xb8, 5, 0, 0,
					    0x0f, 0x82, 0x3d, 0, 0, 0 };

	fake_bytes(jvm, code + 16, prologue, sizeof(prologue));
	fake_bytes(jvm, code + 43, call, sizeof(call));
	fake_bytes(jvm, code + 64, end, sizeof(end));
	fake_bytes(jvm, code + 88, polls, sizeof(polls));
	fake_bytes(jvm, code + 120, reserved, sizeof(reserved));
	return code;
}

/* Wherever in a compiled method a thread stands, the caller is the same. */
static void test_compiled_top(void **state)
{
	static const struct {
		unsigned pc, depth;  /* bytes from sp to behind the return address */
		bool saved;          /* rbp is the method's own, the caller's is on the stack */
	} places[] = {
		{ 0, 8, false }, { 16, 8, false }, { 23, 8, false }, { 24, 16, true }, { 28, 32, true },
		{ 40, 32, true }, { 64, 32, true }, { 68, 16, true }, { 69, 8, false }, { 76, 8, false },
		{ 82, 8, false }, { 89, 8, false }, { 93, 8, false }, { 101, 8, false },
		{ 120, 32, true }, { 124, 16, true }, { 125, 8, false }, { 132, 8, false },
	};
	struct fake_jvm *jvm = *state;
	uint64_t method = fake_method(jvm, "a/B", "compiled", "()V", NULL, 8);
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t code = make_compiled(jvm, method, 0), top = FAKE_STACK + 0x200, fp = top + 0x100;

	put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
	put_entry(jvm, fp + 0x100);
	put(jvm, top - 8, jvm->interpreter);
	put(jvm, top - 16, fp);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		start(jvm, code + places[i].pc, top - places[i].depth, places[i].saved ? 0x1234 : fp);
		sf_walk(&jvm->still, &jvm->trace);
		assert_int_equal(jvm->trace.n_frames, 3);
		assert_string_equal(sf_kind_word(jvm->frames[0].kind), "c2");
		assert_int_equal(jvm->frames[0].id, 42);
		assert_frame(jvm, 1, SF_KIND_INTERPRETED, caller);
		assert_int_equal(jvm->frames[1].sp, top);
	}
}

/*
 * A search in a string that C2 has inlined pushes words, and pops sp at its end. Where the return address would be without
 * them an older one stands, of a method whose caller is not there.
 */
static void test_pushed_by_a_search(void **state)
{
	static const uint8_t end_of_search[] = { 0x5c, 0xeb, 29 }; /* pop rsp; jmp to the end of the method */
	static const uint8_t call[] = { 0xe8, 0, 0, 0, 0 };
	struct fake_jvm *jvm = *state;
	uint64_t method = fake_method(jvm, "a/B", "compiled", "()V", NULL, 8);
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t code = make_compiled(jvm, method, 0), top = FAKE_STACK + 0x200, fp = top + 0x100;
	uint64_t stale = fake_code(jvm, &(struct fake_code){
		.name = "nmethod", .size = 96, .frame_size = 6, .frame_complete = 28, .method = method, .compile_id = 43, .level = 4 });

	fake_bytes(jvm, code + 32, end_of_search, sizeof(end_of_search));
	fake_bytes(jvm, stale + 43, call, sizeof(call));
	put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
	put_entry(jvm, fp + 0x100);
	put(jvm, top - 8, jvm->interpreter);
	put(jvm, top - 16, fp);
	put(jvm, top - 40, stale + 48);
	put(jvm, top - 64, top - 32); /* what is popped */
	start(jvm, code + 32, top - 64, 0x1234);
	sf_walk(&jvm->still, &jvm->trace);
	assert_int_equal(jvm->trace.n_frames, 3);
	assert_int_equal(jvm->frames[0].kind, SF_KIND_C2);
	assert_frame(jvm, 1, SF_KIND_INTERPRETED, caller);
	assert_int_equal(jvm->frames[1].sp, top);
	assert_int_equal(jvm->frames[1].via, SF_VIA_RUNTIME);
}

/* The entry of a method that is not to be entered any more is overwritten by a jump. */
static void test_not_entrant(void **state)
{
	struct fake_jvm *jvm = *state;
	uint64_t method = fake_method(jvm, "a/B", "compiled", "()V", NULL, 8);
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t code = make_compiled(jvm, method, 0), top = FAKE_STACK + 0x200, fp = top + 0x100;

	put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
	put_entry(jvm, fp + 0x100);
	fake_bytes(jvm, code + 16, "\xe9\x11\x22\x33\x44", 5);
	put(jvm, top - 8, jvm->interpreter);
	put(jvm, top - 16, fp);
	start(jvm, code + 24, top - 16, 0x1234);
	sf_walk(&jvm->still, &jvm->trace);
	assert_int_equal(jvm->trace.n_frames, 3);
	assert_frame(jvm, 1, SF_KIND_INTERPRETED, caller);
}

/*
 * The routine that finds an exception's handler has its return address in a register, at first and
 * in the end; what the thrower has on top of the stack looks like another one.
 */
static void test_exception(void **state)
{
	static const struct {
		unsigned pc, depth;
		bool popped;
	} places[] = {
		{ 0, 0, true }, { 1, 8, false }, { 5, 32, false }, { 15, 32, false }, { 20, 32, false },
		{ 24, 8, false }, { 25, 0, true }, { 28, 0, true }, { 42, 0, true },
	};
	static const uint8_t bytes[] = {
		0x52, 0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24, 0x10, 0xe8, 0, 0, 0, 0, 0x48, 0x8b,
		0x6c, 0x24, 0x10, 0x48, 0x83, 0xc4, 0x18, 0x5a, 0x4c, 0x8b, 0xc0, 0x41, 0xff, 0xe0,
		[36] = 0x48, 0x83, 0xc4, 0x10, 0x5d, 0x5a, 0x41, 0xff, 0xe2,
	};
	struct fake_jvm *jvm = *state;
	uint64_t method = fake_method(jvm, "a/B", "thrower", "()V", NULL, 8);
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t code = make_compiled(jvm, method, 0), sp = FAKE_STACK + 0x200, fp = sp + 0x100;
	uint64_t blob = fake_code(jvm, &(struct fake_code){
		.name = "ExceptionBlob", .size = 64, .frame_size = 4, .frame_complete = -1 });

	fake_bytes(jvm, blob, bytes, sizeof(bytes));
	put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
	put_entry(jvm, fp + 0x100);
	put(jvm, sp + 24, jvm->interpreter);
	put(jvm, sp + 16, fp);
	for (unsigned i = 0; i < 2; i++)
		put(jvm, sp + i * 8, jvm->interpreter);
	put(jvm, sp - 16, fp);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		put(jvm, sp - 8, places[i].popped ? 0 : code + 48);
		start(jvm, blob + places[i].pc, sp - places[i].depth, fp);
		reg(jvm, RDX, places[i].pc == 15 || places[i].pc == 20 || places[i].pc == 24 ?
			      0 : code + 48);
		sf_walk(&jvm->still, &jvm->trace);
		assert_int_equal(jvm->trace.n_frames, 4);
		assert_int_equal(jvm->frames[1].pc, code + 48);
		assert_int_equal(jvm->frames[1].sp, sp);
		assert_frame(jvm, 2, SF_KIND_INTERPRETED, caller);
	}
}

/* Between a call and the interpreter, in the caller's own code: nothing but the return address is pushed. */
static void test_static_call_stub(void **state)
{
	static const unsigned places[] = { 96, 106 };
	struct fake_jvm *jvm = *state;
	uint64_t method = fake_method(jvm, "a/B", "compiled", "()V", NULL, 8);
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t code = make_compiled(jvm, method, 0), sp = FAKE_STACK + 0x200, fp = sp + 0x100;

	fake_bytes(jvm, code + 96, "\x48\xbb", 2);
	put(jvm, code + 98, caller);
	fake_bytes(jvm, code + 106, "\xe9\0\0\0\0", 5);
	put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
	put_entry(jvm, fp + 0x100);
	put(jvm, sp, code + 48);
	put(jvm, sp + 32, jvm->interpreter);
	put(jvm, sp + 24, fp);
	for (size_t i = 0; i < 2; i++) {
		start(jvm, code + places[i], sp, fp);
		sf_walk(&jvm->still, &jvm->trace);
		assert_int_equal(jvm->trace.n_frames, 4);
		assert_int_equal(jvm->frames[0].kind, SF_KIND_STUB);
		assert_int_equal(jvm->frames[1].pc, code + 48);
		assert_int_equal(jvm->frames[1].kind, SF_KIND_C2);
		assert_frame(jvm, 2, SF_KIND_INTERPRETED, caller);
	}
}

/*
 * A compiled method calls an interpreted one: wherever the thread stands between them, the caller is the same, though
 * what compiled code keeps in fp is the frame of one that is further up.
 */
struct between {
	unsigned pc;
	int sp;              /* words above the callee's arguments */
	uint64_t rax, rdx, rcx, rbx, r11, r13; /* 1: the return address, 2: the caller's sp */
};

static void assert_between(struct fake_jvm *jvm, uint64_t start_of_code, const struct between *places, size_t n)
{
	const uint64_t sp = FAKE_STACK + 0x200, fp = sp + 0x100;
	uint64_t method = fake_method(jvm, "a/B", "compiled", "()V", NULL, 8);
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t code = make_compiled(jvm, method, 0);
	const uint64_t values[] = { 0x1235, code + 48, sp };

	put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
	put_entry(jvm, fp + 0x100);
	for (int i = -8; i < 4; i++)
		put(jvm, sp + (uint64_t)(int64_t)i * 8, code + 48); /* many are stale */
	put(jvm, sp + 24, jvm->interpreter);
	put(jvm, sp + 16, fp);
	for (size_t i = 0; i < n; i++) {
		start(jvm, start_of_code + places[i].pc, sp + (uint64_t)(int64_t)places[i].sp * 8, fp);
		reg(jvm, RAX, values[places[i].rax]);
		reg(jvm, RDX, values[places[i].rdx]);
		reg(jvm, RCX, values[places[i].rcx]);
		reg(jvm, RBX, values[places[i].rbx]);
		reg(jvm, R11, values[places[i].r11]);
		reg(jvm, R13, values[places[i].r13]);
		sf_walk(&jvm->still, &jvm->trace);
		assert_int_equal(jvm->trace.n_frames, 4);
		assert_int_equal(jvm->frames[0].kind, SF_KIND_STUB);
		assert_int_equal(jvm->frames[1].kind, SF_KIND_C2);
		assert_int_equal(jvm->frames[1].pc, code + 48);
		assert_int_equal(jvm->frames[1].sp, sp);
		assert_int_equal(jvm->frames[1].via, SF_VIA_RUNTIME);
		assert_frame(jvm, 2, SF_KIND_INTERPRETED, caller);
	}
}

static void test_adapter(void **state)
{
	static const uint8_t older[] = { /* pop rax; mov r13, rsp; sub rsp, 64; mov [rsp], rax; ... jmp rcx */
		0x58, 0x4c, 0x8b, 0xec, 0x48, 0x83, 0xec, 0x40, 0x48, 0x89, 0x04, 0x24, 0x48, 0x89, 0x74, 0x24,
		0x38, 0x48, 0x8b, 0x4b, 0x38, 0xff, 0xe1,
	}, newer[] = { /* lea r13, [rsp+8]; pop rax; sub rsp, 16; push rax; ... */
		0x4c, 0x8d, 0x6c, 0x24, 0x08, 0x58, 0x48, 0x83, 0xec, 0x10, 0x50, 0x89, 0x54, 0x24, 0x08,
		0x48, 0x8b, 0x4b, 0x38, 0xff, 0xe1,
	};
	static const struct between in_older[] = {
		{ .pc = 16, .sp = -1 }, { .pc = 17, .rax = 1 }, { .pc = 20, .rax = 1, .r13 = 2 },
		{ .pc = 24, .sp = -8, .rax = 1, .r13 = 2 }, { .pc = 28, .sp = -8, .r13 = 2 },
		{ .pc = 37, .sp = -8, .r13 = 2 },
	}, in_newer[] = {
		{ .pc = 16, .sp = -1 }, { .pc = 21, .sp = -1, .r13 = 2 }, { .pc = 22, .rax = 1, .r13 = 2 },
		{ .pc = 26, .sp = -2, .rax = 1, .r13 = 2 }, { .pc = 27, .sp = -3, .r13 = 2 },
		{ .pc = 35, .sp = -3, .r13 = 2 },
	};
	struct fake_jvm *jvm = *state;
	uint64_t blob = fake_code(jvm, &(struct fake_code){ .name = "I2C/C2I adapters", .size = 128 });

	fake_bytes(jvm, blob + 16, older, sizeof(older));
	assert_between(jvm, blob, in_older, sizeof(in_older) / sizeof(in_older[0]));
	blob = fake_code(jvm, &(struct fake_code){ .name = "I2C/C2I adapters", .size = 128 });
	fake_bytes(jvm, blob + 16, newer, sizeof(newer));
	assert_between(jvm, blob, in_newer, sizeof(in_newer) / sizeof(in_newer[0]));
}

/*
 * A collector is asked before the arguments are moved, with registers pushed: the caller is the one
 * whose call is of this Method, not one of those whose return addresses are stale below it.
 */
static void test_adapter_asks_the_collector(void **state)
{
	static const unsigned pushed[] = { 8, 0x80, 0xc8, 0x180, 0x1e8 };
	struct fake_jvm *jvm = *state;
	const uint64_t sp = FAKE_STACK + 0x400, fp = sp + 0x100;
	uint64_t called = fake_method(jvm, "a/B", "called", "()V", NULL, 8);
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t blob = fake_code(jvm, &(struct fake_code){ .name = "I2C/C2I adapters", .size = 128 });
	uint64_t other = make_compiled(jvm, caller, 0), code = make_compiled(jvm, caller, 0);

	fake_bytes(jvm, code + 43, "\xe8\x30", 2); /* to the stub */
	fake_bytes(jvm, code + 96, "\x48\xbb", 2);
	put(jvm, code + 98, called);
	fake_bytes(jvm, code + 106, "\xe9\0\0\0\0", 5);
	put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
	put_entry(jvm, fp + 0x100);
	for (uint64_t at = sp - 0x200; at < sp - 8; at += 8)
		put(jvm, at, other + 48);
	put(jvm, sp - 0x20, code + 48); /* the same call, when it was made before */
	put(jvm, sp, 0x1235);
	put(jvm, sp - 8, code + 48);
	put(jvm, sp + 16, fp);
	put(jvm, sp + 24, jvm->interpreter);
	for (size_t i = 0; i < sizeof(pushed) / sizeof(pushed[0]); i++) {
		start(jvm, blob + 32, sp - pushed[i], fp);
		reg(jvm, RBX, called);
		reg(jvm, R13, sp - 0x18);
		sf_walk(&jvm->still, &jvm->trace);
		assert_int_equal(jvm->trace.n_frames, 4);
		assert_int_equal(jvm->frames[0].kind, SF_KIND_STUB);
		assert_int_equal(jvm->frames[1].pc, code + 48);
		assert_int_equal(jvm->frames[1].sp, sp);
		assert_int_equal(jvm->frames[1].via, SF_VIA_RUNTIME);
		assert_frame(jvm, 2, SF_KIND_INTERPRETED, caller);
	}
}

static void test_leaving_interpreter(void **state)
{
	/* leave; movb [r15+d], 0; pop r13; mov rsp, rbx; cmp rsp, [r15+d]; jb; movq [r15+d], 0; jmp r13 */
	static const uint8_t returns[] = {
		0xc9, 0x41, 0xc6, 0x87, 0xbe, 3, 0, 0, 0, 0x41, 0x5d, 0x48, 0x8b, 0xe3, 0x49, 0x3b, 0xa7, 0x20, 6, 0,
		0, 0x72, 0x0b, 0x49, 0xc7, 0x87, 0x20, 6, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe5,
	}, native[] = { /* leave; pop rdi; mov rsp, r11; jmp rdi */
		0xc9, 0x5f, 0x49, 0x8b, 0xe3, 0xff, 0xe7,
	}, throws[] = { /* leave; pop rdx; mov rsp, rbx; push rax; push rdx; call; mov rbx, rax; pop rdx; pop rax; jmp rbx */
		0xc9, 0x5a, 0x48, 0x8b, 0xe3, 0x50, 0x52, 0xe8, 0, 0, 0, 0, 0x48, 0x8b, 0xd8, 0x5a, 0x58, 0xff, 0xe3,
	}, loops[] = { /* leave; movb [r15+d], 0; pop rcx; mov rsp, rdx; and rsp, -16; push rcx; jmp [rbx+d] */
		0xc9, 0x41, 0xc6, 0x87, 0xbe, 3, 0, 0, 0, 0x59, 0x48, 0x8b, 0xe2, 0x48, 0x83, 0xe4, 0xf0, 0x51,
		0xff, 0xa3, 0x90, 0, 0, 0,
	};
	static const struct between in_returns[] = {
		{ .pc = 1, .sp = -3, .rbx = 2 }, { .pc = 9, .sp = -3, .rbx = 2 },
		{ .pc = 11, .sp = -2, .rbx = 2, .r13 = 1 }, { .pc = 14, .r13 = 1 }, { .pc = 23, .r13 = 1 },
		{ .pc = 34, .r13 = 1 },
	}, in_native[] = {
		{ .pc = 1, .sp = -3, .r11 = 2 },
	}, in_throws[] = {
		{ .pc = 1, .sp = -3, .rbx = 2 }, { .pc = 2, .sp = -2, .rbx = 2, .rdx = 1 }, { .pc = 5, .rdx = 1 },
		{ .pc = 6, .sp = -1, .rdx = 1 }, { .pc = 7, .sp = -2, .rdx = 1 }, { .pc = 12, .sp = -2 },
		{ .pc = 16, .sp = -1, .rdx = 1 }, { .pc = 17, .rdx = 1 },
	}, in_loops[] = {
		{ .pc = 1, .sp = -3, .rdx = 2 }, { .pc = 9, .sp = -3, .rdx = 2 },
		{ .pc = 10, .sp = -2, .rdx = 2, .rcx = 1 }, { .pc = 13, .rdx = 2, .rcx = 1 }, { .pc = 17, .rcx = 1 },
		{ .pc = 18, .sp = -1, .rcx = 1 },
	};
	struct fake_jvm *jvm = *state;
	uint64_t code = jvm->interpreter + 100;

	fake_bytes(jvm, code, returns, sizeof(returns));
	assert_between(jvm, code, in_returns, sizeof(in_returns) / sizeof(in_returns[0]));
	fake_bytes(jvm, code, native, sizeof(native));
	assert_between(jvm, code, in_native, sizeof(in_native) / sizeof(in_native[0]));
	fake_bytes(jvm, code, throws, sizeof(throws));
	assert_between(jvm, code, in_throws, sizeof(in_throws) / sizeof(in_throws[0]));
	fake_bytes(jvm, code, loops, sizeof(loops));
	assert_between(jvm, code, in_loops, sizeof(in_loops) / sizeof(in_loops[0]));
}

/*
 * Registers that were pushed around a call are passed over, with the return addresses that are stale in them; and the one
 * word that C2 of JDK 8 makes room for in its pow(), or that it pushes to compare strings. Where the code leads to the
 * caller, that is no guess.
 */
static void test_pushed_registers(void **state)
{
	static const uint8_t pops[] = { 0x59, 0x48, 0x83, 0xc4, 16, 0x5d, 0xc3 }; /* pop rcx; add rsp, 16; pop rbp; ret */
	static const uint8_t leads_elsewhere[] = { 0x48, 0x83, 0xc4, 16, 0x5d, 0xc3 };
	static const uint8_t leads_beyond[] = { 0x59, 0x59, 0x48, 0x83, 0xc4, 16, 0x5d, 0xc3 }; /* to another return address */
	static const struct {
		unsigned n;
		const uint8_t *code;
		size_t size;
		enum sf_via via;
	} cases[] = {
		{ 83, NULL, 0, SF_VIA_GUESS },
		{ 1, NULL, 0, SF_VIA_GUESS },
		{ 1, pops, sizeof(pops), SF_VIA_RUNTIME },
		{ 2, pops, sizeof(pops), SF_VIA_GUESS },
		{ 1, leads_elsewhere, sizeof(leads_elsewhere), SF_VIA_GUESS },
		{ 1, leads_beyond, sizeof(leads_beyond), SF_VIA_GUESS },
	};
	struct fake_jvm *jvm = *state;
	uint64_t method = fake_method(jvm, "a/B", "compiled", "()V", NULL, 8);
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t code = make_compiled(jvm, method, 0), sp = FAKE_STACK + 0x200;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint64_t top = sp + 8 * (4 + cases[i].n), fp = top + 0x100;

		if (cases[i].code)
			fake_bytes(jvm, code + 48, cases[i].code, cases[i].size);
		for (unsigned k = 0; k < 20; k++)
			put(jvm, sp + 8 * k, 0);
		put(jvm, sp + 8 * 20, jvm->interpreter);
		put(jvm, sp + 8 * 30, jvm->call_stub_return);
		put(jvm, sp + 8 * 40, code + 48);
		put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
		put_entry(jvm, fp + 0x100);
		put(jvm, top, jvm->interpreter);
		put(jvm, top - 8, jvm->interpreter);
		put(jvm, top - 16, fp);
		start(jvm, code + 48, sp, fp);
		sf_walk(&jvm->still, &jvm->trace);
		assert_int_equal(jvm->trace.n_frames, 3);
		assert_int_equal(jvm->frames[1].sp, top);
		assert_int_equal(jvm->frames[1].via, cases[i].via);
		assert_frame(jvm, 1, SF_KIND_INTERPRETED, caller);
	}
}

/*
 * C1 pushes two words for its test for subtypes: where the return address would be without them an older one may stand. The
 * caller of that routine is a guess as long as its code cannot be followed.
 */
static void test_pushed_arguments(void **state)
{
	static const uint8_t call_pops[] = { 0xe8, 0, 0, 0, 0, 0x41, 0x58, 0x5b, 0x74, 0 }; /* call; pop r8; pop rbx; je */
	static const uint8_t end[] = { 0x48, 0x83, 0xc4, 32, 0xc3 }; /* add rsp, 32; ret */
	static const enum sf_via vias[] = { SF_VIA_GUESS, SF_VIA_RUNTIME };
	struct fake_jvm *jvm = *state;
	uint64_t method = fake_method(jvm, "a/B", "compiled", "()V", NULL, 8);
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t stub = fake_code(jvm, &(struct fake_code){
		.name = "C1 Runtime slow_subtype_check_blob", .size = 64, .frame_size = -1,
		.frame_complete = -1 });
	uint64_t code = fake_code(jvm, &(struct fake_code){
		.name = "nmethod", .size = 128, .frame_size = 4, .frame_complete = 28, .entry = 16,
		.method = method, .compile_id = 42, .level = 3 });
	uint64_t sp = FAKE_STACK + 0x200, called = sp + 8 * 5, top = called + 8 * (2 + 4), fp = top + 0x100;

	fake_bytes(jvm, code + 43, call_pops, sizeof(call_pops));
	put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
	put_entry(jvm, fp + 0x100);
	put(jvm, called - 8, code + 48);             /* below it the routine's four */
	put(jvm, top - 24, jvm->call_stub_return);   /* stale */
	put(jvm, top - 16, fp);
	put(jvm, top - 8, jvm->interpreter);
	for (size_t i = 0; i < sizeof(vias) / sizeof(vias[0]); i++) {
		if (vias[i] == SF_VIA_RUNTIME)
			fake_bytes(jvm, stub + 32, end, sizeof(end));
		start(jvm, stub + 32, sp, 0x1234);
		sf_walk(&jvm->still, &jvm->trace);
		assert_int_equal(jvm->trace.n_frames, 4);
		assert_int_equal(jvm->frames[1].kind, SF_KIND_C1);
		assert_int_equal(jvm->frames[1].via, vias[i]);
		assert_frame(jvm, 2, SF_KIND_INTERPRETED, caller);
		assert_int_equal(jvm->frames[2].sp, top);
		assert_int_equal(jvm->frames[2].via, SF_VIA_RUNTIME);
	}
}

/*
 * The slow part of a barrier puts registers below the frame. Words there, and in the frame, may be return addresses that are stale. In the code that
 * has made the frame ready to go, what is added to sp is the frame itself.
 */
static void test_slow_parts_of_barriers(void **state)
{
	/* sub rsp, 32; mov [rsp], rax; call; mov rax, [rsp]; vmovdqu xmm0, [rsp+8]; add rsp, 32; jmp */
	static const uint8_t c2[] = { 0x48, 0x83, 0xec, 32, 0x48, 0x89, 0x04, 0x24, 0xe8, 0, 0, 0, 0, 0x48, 0x8b, 0x04, 0x24,
				      0xc5, 0xfa, 0x6f, 0x44, 0x24, 8, 0x48, 0x83, 0xc4, 32, 0xeb, 0 };
	/* push rax; sub rsp, 16; call; lea rsp, [rsp+16]; mov rdx, rax; pop rax; jmp [rip+n] */
	static const uint8_t c1[] = { 0x50, 0x48, 0x83, 0xec, 16, 0xe8, 0, 0, 0, 0, 0x48, 0x8d, 0x64, 0x24, 16, 0x48, 0x8b, 0xd0, 0x58, 0xff, 0x25, 0, 0, 0, 0 };
	static const struct {
		const uint8_t *code;
		size_t size, at;
		unsigned pushed;
		bool called;
	} cases[] = {
		{ c2, sizeof(c2), 0, 0, false }, { c2, sizeof(c2), 4, 4, false }, { c2, sizeof(c2), 8, 4, false }, { c2, sizeof(c2), 13, 4, true },
		{ c2, sizeof(c2), 13, 4, false }, { c2, sizeof(c2), 23, 4, false }, { c2, sizeof(c2), 27, 0, false },
		{ c1, sizeof(c1), 0, 0, false }, { c1, sizeof(c1), 1, 1, false }, { c1, sizeof(c1), 5, 3, false }, { c1, sizeof(c1), 10, 3, true },
		{ c1, sizeof(c1), 15, 1, false }, { c1, sizeof(c1), 18, 1, false }, { c1, sizeof(c1), 19, 0, false },
	};
	static const uint8_t end[] = { 0x48, 0x83, 0xc4, 32, 0xc3 }; /* add rsp, 32; ret */
	struct fake_jvm *jvm = *state;
	uint64_t method = fake_method(jvm, "a/B", "compiled", "()V", NULL, 8);
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t stub = fake_code(jvm, &(struct fake_code){
		.name = "C1 Runtime a_barrier_blob", .size = 64, .frame_size = -1, .frame_complete = -1 });
	uint64_t code = make_compiled(jvm, method, 0), part = code + 150;

	fake_bytes(jvm, stub + 32, end, sizeof(end));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint64_t sp = FAKE_STACK + 0x200, top = sp + 8 * (cases[i].pushed + 4), fp = top + 0x100;
		const unsigned n_routine = cases[i].called ? 5 : 0; /* the words of the routine, and its return address */

		for (uint64_t at = sp - 8 * n_routine; at < top; at += 8)
			put(jvm, at, jvm->call_stub_return); /* stale */
		put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
		put_entry(jvm, fp + 0x100);
		put(jvm, top - 16, fp);
		put(jvm, top - 8, jvm->interpreter);
		fake_bytes(jvm, part, cases[i].code, cases[i].size);
		if (cases[i].called)
			put(jvm, sp - 8, part + cases[i].at);
		start(jvm, cases[i].called ? stub + 32 : part + cases[i].at, sp - 8 * n_routine, 0x1234);
		sf_walk(&jvm->still, &jvm->trace);
		assert_int_equal(jvm->trace.n_frames, 3 + cases[i].called);
		assert_frame(jvm, 1 + cases[i].called, SF_KIND_INTERPRETED, caller);
		assert_int_equal(jvm->frames[1 + cases[i].called].sp, top);
		assert_int_equal(jvm->frames[1 + cases[i].called].via, SF_VIA_RUNTIME);
	}
}

/*
 * The caller of a hand-written routine follows from the code between pc and its return, whatever the frame pointer holds: here
 * it leads to a stale return address, as does the word on top of the stack.
 */
static void test_following_routines(void **state)
{
	static const struct {
		const char *what;
		unsigned size, words;  /* of code; between sp and the return address */
		bool fp_holds;         /* it is the routine's own: where the saved one stands, just below the return address */
		bool found;
		uint8_t code[32];
	} routines[] = {
		{ "ret", 1, 0, false, true, { 0xc3 } },
		{ "add rsp, 24; pop rbx; ret", 6, 4, false, true, { 0x48, 0x83, 0xc4, 24, 0x5b, 0xc3 } },
		{ "push r12; sub rsp, 512; add rsp, 520; ret", 17, 0, false, true,
		  { 0x41, 0x54, 0x48, 0x81, 0xec, 0, 2, 0, 0, 0x48, 0x81, 0xc4, 8, 2, 0, 0, 0xc3 } },
		{ "push rbp; mov rbp, rsp; and rsp, -64; leave; ret", 10, 0, false, true,
		  { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xc0, 0xc9, 0xc3 } },
		{ "mov r9, rsp; sub rsp, 64; and rsp, -64; mov rsp, r9; ret", 15, 0, false, true,
		  { 0x49, 0x89, 0xe1, 0x48, 0x83, 0xec, 64, 0x48, 0x83, 0xe4, 0xc0, 0x4c, 0x89, 0xcc, 0xc3 } },
		{ "mov rcx, rsp; sub rsp, 16; push rcx; pop rsp; ret", 10, 0, false, true,
		  { 0x48, 0x89, 0xe1, 0x48, 0x83, 0xec, 16, 0x51, 0x5c, 0xc3 } },
		{ "push rax; pop rsp; ret", 3, 0, false, false, { 0x50, 0x5c, 0xc3 } },
		{ "add rsp, 8; mov rax, r14; pop rdx; jmp rbx", 10, 1, false, true, { 0x48, 0x83, 0xc4, 8, 0x4c, 0x89, 0xf0, 0x5a, 0xff, 0xe3 } },
		{ "pop rdx; pop rcx; jmp rbx", 4, 0, false, false, { 0x5a, 0x59, 0xff, 0xe3 } },
		{ "pop rdx; jmp [rbx]", 3, 0, false, false, { 0x5a, 0xff, 0x23 } },
		{ "vmovdqu; leave; ret", 6, 3, true, true, { 0xc5, 0xfe, 0x6f, 0x06, 0xc9, 0xc3 } },
		{ "lea rsp, [rbp-8]; pop rbx; pop rbp; ret", 7, 9, true, true, { 0x48, 0x8d, 0x65, 0xf8, 0x5b, 0x5d, 0xc3 } },
		{ "a loop: dec ecx; jne -4; pop rbx; ret", 6, 1, false, true, { 0xff, 0xc9, 0x75, 0xfc, 0x5b, 0xc3 } },
		{ "the way past a dead end: je +2; ud2; pop rbx; ret", 6, 1, false, true, { 0x74, 2, 0x0f, 0x0b, 0x5b, 0xc3 } },
		{ "the way past a jump in a register: jne +2; jmp rax; ret", 5, 0, false, true, { 0x75, 2, 0xff, 0xe0, 0xc3 } },
		{ "jmp to itself", 2, 0, false, false, { 0xeb, 0xfe } },
		{ "jmp rax", 2, 0, false, false, { 0xff, 0xe0 } },
		{ "mov rsp, rax; ret", 4, 0, false, false, { 0x48, 0x89, 0xc4, 0xc3 } },
		{ "add rsp, rax; pop rbx; ret", 5, 1, false, false, { 0x48, 0x01, 0xc4, 0x5b, 0xc3 } },
		{ "cmp rsp, rax; test rbp, rbp; leave; ret", 8, 3, true, true, { 0x48, 0x39, 0xc4, 0x48, 0x85, 0xed, 0xc9, 0xc3 } },
		{ "mov ebp, 1; leave; ret", 7, 3, true, false, { 0xbd, 1, 0, 0, 0, 0xc9, 0xc3 } },
		{ "xor rbp, rbp; leave; ret", 5, 3, true, false, { 0x48, 0x31, 0xed, 0xc9, 0xc3 } },
		{ "leave, but rbp is a number; ret", 7, 0, false, false, { 0xbd, 1, 0, 0, 0, 0xc9, 0xc3 } },
		{ "no instruction", 1, 0, false, false, { 0x06 } },
	};
	struct fake_jvm *jvm = *state;
	uint64_t method = fake_method(jvm, "a/B", "compiled", "()V", NULL, 8);
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t code = make_compiled(jvm, method, 0), sp = FAKE_STACK + 0x200;

	for (size_t i = 0; i < sizeof(routines) / sizeof(routines[0]); i++) {
		const uint64_t stub = fake_code(jvm, &(struct fake_code){
			.name = "StubRoutines (compiler stubs)", .size = 64, .frame_complete = -1 });
		const uint64_t returns = sp + 8 * routines[i].words, top = returns + 8 + 8 * 4, fp = top + 0x100;

		fake_bytes(jvm, stub + 16, routines[i].code, routines[i].size);
		put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
		put_entry(jvm, fp + 0x100);
		for (uint64_t at = sp - 64; at < top; at += 8)
			put(jvm, at, jvm->call_stub_return); /* stale */
		put(jvm, returns, code + 48);
		put(jvm, top - 16, fp);
		put(jvm, top - 8, jvm->interpreter);
		if (routines[i].fp_holds)
			put(jvm, returns - 8, fp);
		start(jvm, stub + 16, sp, routines[i].fp_holds ? returns - 8 : returns + 16);
		sf_walk(&jvm->still, &jvm->trace);
		if (!routines[i].found) {
			if (jvm->trace.n_frames > 1 && jvm->frames[1].via != SF_VIA_GUESS)
				fail_msg("%s: a caller that is no guess", routines[i].what);
			continue;
		}
		if (jvm->trace.n_frames != 4 || jvm->frames[1].pc != code + 48 || jvm->frames[1].sp != returns + 8 ||
		    jvm->frames[1].via != SF_VIA_RUNTIME)
			fail_msg("%s: %u frames", routines[i].what, jvm->trace.n_frames);
		assert_frame(jvm, 2, SF_KIND_INTERPRETED, caller);
	}
}

/*
 * A call that has a new target goes by way of two instructions in a buffer, which make no frame. Neither the frame pointer
 * nor code behind the jump says who the caller is.
 */
static void test_inline_cache_buffer(void **state)
{
	static const uint8_t code[] = { 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 0xe9, 0, 0, 0, 0x10 };
	struct fake_jvm *jvm = *state;
	uint64_t method = fake_method(jvm, "a/B", "compiled", "()V", NULL, 8);
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t compiled = make_compiled(jvm, method, 0);
	uint64_t buffer = fake_code(jvm, &(struct fake_code){ .name = "InlineCacheBuffer", .size = 256, .frame_complete = -1 });
	uint64_t sp = FAKE_STACK + 0x200, top = sp + 8 + 8 * 4, fp = top + 0x100;

	fake_bytes(jvm, buffer + 64, code, sizeof(code));
	put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
	put_entry(jvm, fp + 0x100);
	put(jvm, sp, compiled + 48);
	put(jvm, top - 16, fp);
	put(jvm, top - 8, jvm->interpreter);
	for (unsigned at = 64; at <= 74; at += 10) {
		start(jvm, buffer + at, sp, fp);
		sf_walk(&jvm->still, &jvm->trace);
		assert_int_equal(jvm->trace.n_frames, 4);
		assert_int_equal(jvm->frames[1].kind, SF_KIND_C2);
		assert_int_equal(jvm->frames[1].via, SF_VIA_RUNTIME);
		assert_frame(jvm, 2, SF_KIND_INTERPRETED, caller);
	}
}

/*
 * The wrapper of Object.hashCode() returns before it makes its frame where the object has its hash. Where the caller would be
 * if the frame were there, a stale return address stands.
 */
static void test_wrapper_returns_early(void **state)
{
	static const uint8_t code[] = {
		0x48, 0x8b, 0x06,                                     /* mov rax, [rsi] */
		0xa8, 1, 0x74, 5,                                     /* test al, 1; je +5 */
		0x48, 0xc1, 0xe8, 8, 0xc3,                            /* shr rax, 8; ret */
		0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10,       /* push rbp; mov rbp, rsp; sub rsp, 16 */
	};
	static const uint8_t starts[] = { 0, 3, 5, 7, 11 };
	struct fake_jvm *jvm = *state;
	uint64_t hash = fake_method(jvm, "java/lang/Object", "hashCode", "()I", NULL, 0);
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t wrapper = fake_code(jvm, &(struct fake_code){
		.name = "native nmethod", .size = 128, .frame_size = 4, .frame_complete = 52, .entry = 32,
		.method = hash, .compile_id = 42 });
	uint64_t sp = FAKE_STACK + 0x200, fp = sp + 0x100;

	fake_bytes(jvm, wrapper + 32, code, sizeof(code));
	put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
	put_entry(jvm, fp + 0x100);
	put(jvm, sp, jvm->interpreter);
	put(jvm, sp + 3 * 8, jvm->call_stub_return); /* stale */
	for (size_t i = 0; i < sizeof(starts); i++) {
		start(jvm, wrapper + 32 + starts[i], sp, fp);
		sf_walk(&jvm->still, &jvm->trace);
		assert_int_equal(jvm->trace.n_frames, 3);
		assert_int_equal(jvm->frames[0].kind, SF_KIND_NATIVE_METHOD);
		assert_frame(jvm, 1, SF_KIND_INTERPRETED, caller);
		assert_int_equal(jvm->frames[1].via, SF_VIA_RUNTIME);
	}
}

/*
 * At the entry of methods a routine may look whether they are to be entered at all (StubGenerator::
 * generate_method_entry_barrier). It keeps a word below its return address; if the method is not
 * entered, that is where the method's caller is, and the method's frame has lost its caller's fp.
 */
static void test_entry_barrier(void **state)
{
	static const struct {
		int sp, fp;          /* bytes from the word that it keeps; fp 0: not its own */
		bool refused;
	} places[] = {
		{ 8, 0, false }, { 0, 0, false }, { -8, 0, false }, { -8, -8, false }, { -0x110, -8, false },
		{ -0x110, -8, true }, { 0, 0, true },
	};
	struct fake_jvm *jvm = *state;
	uint64_t method = fake_method(jvm, "a/B", "compiled", "()V", NULL, 8);
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t stub = fake_code(jvm, &(struct fake_code){
		.name = "StubRoutines (final stubs)", .size = 512, .frame_complete = -1 });
	uint64_t code = make_compiled(jvm, method, 0);
	uint64_t top = FAKE_STACK + 0x300, word = top - 48, fp = top + 0x100;

	put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
	put_entry(jvm, fp + 0x100);
	put(jvm, top - 8, jvm->interpreter);
	put(jvm, word + 8, code + 48);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const bool refused = places[i].refused;

		put(jvm, top - 16, refused ? jvm->interpreter + 8 : fp);
		put(jvm, word, refused ? top - 8 : UINT64_MAX);
		put(jvm, word - 8, refused ? fp : 0x1234);
		start(jvm, stub + 64, word + (uint64_t)(int64_t)places[i].sp,
		      places[i].fp ? word + (uint64_t)(int64_t)places[i].fp : refused ? fp : 0x1234);
		sf_walk(&jvm->still, &jvm->trace);
		assert_int_equal(jvm->trace.n_frames, 4);
		assert_int_equal(jvm->frames[1].pc, code + 48);
		assert_int_equal(jvm->frames[1].sp, word + 16);
		assert_frame(jvm, 2, SF_KIND_INTERPRETED, caller);
		assert_int_equal(jvm->frames[2].sp, top);
	}
}

/*
 * An address that looks like a compiled caller that native code has called is stale: only the machine's own code calls
 * these.
 */
static void test_stale_native_callers(void **state)
{
	static const uint8_t call[] = { 0xe8, 0, 0, 0, 0 };
	struct fake_jvm *jvm = *state;
	struct sf_code_map *map = (struct sf_code_map *)jvm->map_bytes;
	uint64_t method = fake_method(jvm, "a/B", "compiled", "()V", NULL, 8);
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t code = make_compiled(jvm, method, 0), sp = FAKE_STACK + 0x200;
	uint64_t top = sp + 8 * (4 + 30), fp = top + 0x100, native = fake_alloc(jvm, 64);

	map->regions[0] = (struct sf_region){ .start = native, .end = native + 64, .image = 1 };
	map->n_regions = 1;
	fake_bytes(jvm, native, call, sizeof(call));
	put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
	put_entry(jvm, fp + 0x100);
	put(jvm, top - 8, jvm->interpreter);
	put(jvm, top - 16, fp);
	put(jvm, sp + 8 * 10, code + 48);
	put(jvm, sp + 8 * (10 + 4), native + sizeof(call));
	start(jvm, code + 48, sp, fp);
	sf_walk(&jvm->still, &jvm->trace);
	map->n_regions = 0;
	assert_int_equal(jvm->trace.n_frames, 3);
	assert_int_equal(jvm->frames[1].sp, top);
	assert_frame(jvm, 1, SF_KIND_INTERPRETED, caller);
}

/* The routine that throws again copies its return address while it makes its frame. */
static void test_rethrow(void **state)
{
	static const struct {
		unsigned pc, depth;
	} places[] = { { 0, 8 }, { 7, 32 }, { 12, 32 }, { 17, 40 }, { 21, 32 }, { 28, 32 } };
	static const uint8_t bytes[] = {
		0x48, 0x81, 0xec, 0x18, 0, 0, 0, 0x48, 0x89, 0x6c, 0x24, 0x10, 0x48, 0xff, 0x74, 0x24, 0x18,
		0x48, 0x8f, 0x04, 0x24, 0x49, 0x89, 0xa7, 0x90, 2, 0, 0,
	};
	struct fake_jvm *jvm = *state;
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t top = FAKE_STACK + 0x200, fp = top + 0x100;
	uint64_t blob = fake_code(jvm, &(struct fake_code){
		.name = "_rethrow_Java", .size = 64, .frame_size = 4, .frame_complete = -1 });

	fake_bytes(jvm, blob, bytes, sizeof(bytes));
	put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
	put_entry(jvm, fp + 0x100);
	put(jvm, top - 8, jvm->interpreter);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		put(jvm, top - 16, places[i].pc < 12 ? 0 : fp);
		put(jvm, top - 32, places[i].pc < 21 ? 0 : jvm->interpreter);
		put(jvm, top - 40, places[i].pc == 17 ? jvm->interpreter : 0);
		start(jvm, blob + places[i].pc, top - places[i].depth, fp);
		sf_walk(&jvm->still, &jvm->trace);
		assert_int_equal(jvm->trace.n_frames, 3);
		assert_int_equal(jvm->frames[1].sp, top);
		assert_frame(jvm, 1, SF_KIND_INTERPRETED, caller);
	}
}

/*
 * The routine that takes an exception to a handler of C1's leaves by the handler's address, before which no call stands. The
 * frame pointer is that of the interpreter, further out.
 */
static void test_handler_of_the_caller(void **state)
{
	static const uint8_t end[] = { 0x48, 0x89, 0x45, 8, 0xc9, 0x59, 0xff, 0xe1 }; /* mov [rbp+8], rax; leave; pop rcx; jmp rcx */
	static const struct {
		unsigned pc, depth;
	} places[] = { { 4, 16 }, { 5, 8 }, { 6, 0 } };
	struct fake_jvm *jvm = *state;
	uint64_t method = fake_method(jvm, "a/B", "compiled", "()V", NULL, 8);
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t code = make_compiled(jvm, method, 0), sp = FAKE_STACK + 0x200, top = sp + 8 * 4, fp = top + 0x100;
	uint64_t blob = fake_code(jvm, &(struct fake_code){
		.name = "handle_exception_from_callee Runtime1 stub", .size = 64, .frame_size = 2, .frame_complete = -1 });

	fake_bytes(jvm, blob, end, sizeof(end));
	put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
	put_entry(jvm, fp + 0x100);
	put(jvm, top - 8, jvm->interpreter);
	put(jvm, top - 16, fp);
	put(jvm, sp - 8, code + 40);
	put(jvm, sp - 16, fp);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		start(jvm, blob + places[i].pc, sp - places[i].depth, i == 0 ? sp - 16 : fp);
		reg(jvm, RCX, i < 2 ? 0 : code + 40);
		sf_walk(&jvm->still, &jvm->trace);
		assert_int_equal(jvm->trace.n_frames, 4);
		assert_int_equal(jvm->frames[1].kind, SF_KIND_C2);
		assert_int_equal(jvm->frames[1].sp, sp);
		assert_int_equal(jvm->frames[1].via, SF_VIA_RUNTIME);
		assert_frame(jvm, 2, SF_KIND_INTERPRETED, caller);
	}
}

/*
 * Of a virtual thread's frames the oldest on the stack returns to a stub; below it is the entry of its
 * continuation, which the thread knows of this moment, where the stack may be of an earlier one.
 */
static void test_continuation(void **state)
{
	enum { SIZE = 0x400, ENTRY = 64 };
	static const uint8_t call[] = { 0xe8, 0, 0, 0, 0 };
	struct fake_jvm *jvm = calloc(1, sizeof(*jvm));
	char note[SF_HOTSPOT_NOTE];
	uint8_t copy[SIZE];
	uint64_t top = FAKE_STACK + 0x100, far = top + 0x60, spin, run, other, entered, stub, noted;
	int32_t distance;
	(void)state;

	assert_non_null(jvm);
	jvm->version = 25;
	assert_true(fake_jvm_make(jvm, note, NULL));
	spin = make_compiled(jvm, fake_method(jvm, "a/B", "spin", "()V", NULL, 8), 0);
	run = make_compiled(jvm, fake_method(jvm, "a/B", "run", "()V", NULL, 8), 0);
	other = make_compiled(jvm, fake_method(jvm, "a/B", "other", "()V", NULL, 8), 0);
	entered = fake_code(jvm, &(struct fake_code){
		.name = "nmethod", .size = 128, .frame_size = ENTRY / 8 + 2, .frame_complete = 28, .entry = 16,
		.method = fake_method(jvm, "a/B", "enter", "()V", NULL, 8), .compile_id = 7, .level = 4,
		.pc = 48, .inlined_bci = 1 });
	fake_bytes(jvm, entered + 43, call, sizeof(call));
	stub = fake_code(jvm, &(struct fake_code){
		.name = "StubRoutines (continuation stubs)", .size = 128, .frame_complete = -1 });
	noted = jvm->thread + jvm->hotspot.fields[SF_HS_THREAD_CONTINUATION].at;
	put(jvm, jvm->hotspot.fields[SF_HS_CONTINUATION_RETURN].at, entered + 48);
	put(jvm, top - 8, stub + 8);
	for (uint64_t at = top; at <= far; at += far - top) {
		put(jvm, at + ENTRY, at + 0x200);
		put(jvm, at + ENTRY + 8, run + 48);
	}
	start(jvm, spin + 40, top - 32, 0x1234);
	reg(jvm, R15, jvm->thread);

	/* As it always is: the entry is right below. */
	put(jvm, noted, top);
	sf_walk(&jvm->still, &jvm->trace);
	assert_int_equal(jvm->frames[1].kind, SF_KIND_HEAP);
	assert_int_equal(jvm->frames[2].sp, top);
	assert_int_equal(jvm->frames[3].sp, top + ENTRY + 16);

	/* Frames are being fetched: it is further down. */
	put(jvm, noted, far);
	sf_walk(&jvm->still, &jvm->trace);
	assert_int_equal(jvm->frames[1].kind, SF_KIND_HEAP);
	assert_int_equal(jvm->frames[2].sp, far);

	/* In a copy that is older than the note: what stands there has changed. */
	memcpy(copy, jvm->bytes + (FAKE_STACK - FAKE_BASE), SIZE);
	put(jvm, far + ENTRY, 0);
	jvm->still.memory.window = copy;
	jvm->still.memory.window_start = FAKE_STACK;
	jvm->still.memory.window_size = SIZE;
	sf_walk(&jvm->still, &jvm->trace);
	assert_int_equal(jvm->frames[1].kind, SF_KIND_HEAP);
	assert_int_equal(jvm->frames[2].sp, top);

	/* And what stands here is of another call: frames that are half made. */
	distance = (int32_t)(other + 16 - (run + 48));
	fake_bytes(jvm, run + 44, &distance, sizeof(distance));
	sf_walk(&jvm->still, &jvm->trace);
	assert_int_not_equal(jvm->frames[1].kind, SF_KIND_HEAP);
	free(jvm);
}

/* The same with JDK 21, whose tables do not know what a continuation's entry is. */
static void test_untold_continuation(void **state)
{
	enum { FIELD = 0x320, ENTRY = 64 };
	static const uint8_t call[] = { 0xe8, 0, 0, 0, 0 }, fetches[] = { 0x49, 0x8b, 0xa7, 0x20, 3, 0, 0 };
	struct fake_jvm *jvm = calloc(1, sizeof(*jvm));
	char note[SF_HOTSPOT_NOTE];
	uint64_t top = FAKE_STACK + 0x100, far = top + 0x400, spin, run, stub, caller;
	(void)state;

	assert_non_null(jvm);
	jvm->version = 21;
	assert_true(fake_jvm_make(jvm, note, NULL));
	assert_int_equal(jvm->hotspot.sizes[SF_HS_SIZE_CONTINUATION], 0);
	spin = make_compiled(jvm, fake_method(jvm, "a/B", "spin", "()V", NULL, 8), 0);
	run = make_compiled(jvm, fake_method(jvm, "a/B", "run", "()V", NULL, 8), 0);
	caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	stub = fake_code(jvm, &(struct fake_code){
		.name = "StubRoutines (continuation stubs)", .size = 128, .frame_complete = -1 });
	fake_bytes(jvm, stub + 3, call, sizeof(call));
	fake_bytes(jvm, stub + 8, fetches, sizeof(fetches));
	put(jvm, top - 8, stub + 8);
	for (uint64_t at = top; at <= far; at += far - top) {
		put(jvm, at, at + 0x300);        /* of the entry: another one, and an object */
		put(jvm, at + 8, 0x1234);
		put(jvm, at + ENTRY, 0x1234);
		put(jvm, at + ENTRY + 8, run + 48);
		put(jvm, at + ENTRY + 16 + 8 * 2, at + 0x100);
		put(jvm, at + ENTRY + 16 + 8 * 3, jvm->interpreter);
		put_interpreted(jvm, at + 0x100, caller, 2, jvm->call_stub_return, at + 0x110, at + 0x180);
		put_entry(jvm, at + 0x180);
	}
	start(jvm, spin + 40, top - 32, 0x1234);
	reg(jvm, R15, jvm->thread);
	for (unsigned i = 0; i < 3; i++) {
		/* Noted as right below; while frames are fetched, further down; not noted. */
		const uint64_t noted = i == 0 ? top : i == 1 ? far : 0, at = i == 1 ? far : top;

		put(jvm, jvm->thread + FIELD, noted);
		sf_walk(&jvm->still, &jvm->trace);
		assert_int_equal(jvm->trace.n_frames, 5);
		assert_int_equal(jvm->frames[1].kind, SF_KIND_HEAP);
		assert_int_equal(jvm->frames[2].pc, run + 48);
		assert_int_equal(jvm->frames[2].sp, at + ENTRY + 16);
		assert_int_equal(jvm->frames[2].via, i == 1 ? SF_VIA_RUNTIME : SF_VIA_GUESS);
		assert_frame(jvm, 3, SF_KIND_INTERPRETED, caller);
	}

	/* It has come further in that code, and calls the machine. */
	fake_bytes(jvm, stub + 35, call, sizeof(call));
	put(jvm, top - 8, stub + 40);
	put(jvm, jvm->thread + FIELD, far);
	sf_walk(&jvm->still, &jvm->trace);
	assert_int_equal(jvm->frames[1].kind, SF_KIND_HEAP);
	assert_int_equal(jvm->frames[2].sp, far + ENTRY + 16);
	free(jvm);
}

static void test_scopes(void **state)
{
	struct fake_jvm *jvm = *state;
	uint64_t method = fake_method(jvm, "a/B", "compiled", "()V", NULL, 8);
	uint64_t inlined = fake_method(jvm, "a/B", "inlined", "()V", NULL, 8);
	uint64_t code = make_compiled(jvm, method, inlined);
	struct sf_java_scopes scopes;
	struct sf_blob blob;

	assert_true(sf_hotspot_blob(&jvm->hotspot, &jvm->memory, code + 47, &blob));
	assert_int_equal(blob.class, SF_BLOB_COMPILED);
	sf_java_scopes_find(&jvm->hotspot, &jvm->memory, &blob, code + 48, false, &scopes);
	assert_int_equal(scopes.n, 2);
	assert_false(scopes.approximate);
	assert_int_equal(scopes.items[0].method, inlined);
	assert_int_equal(scopes.items[0].bci, 1);
	assert_int_equal(scopes.items[1].method, method);
	assert_int_equal(scopes.items[1].bci, 3);
	/* Where it was interrupted nothing is known of what is inlined. */
	sf_java_scopes_find(&jvm->hotspot, &jvm->memory, &blob, code + 40, true, &scopes);
	assert_int_equal(scopes.n, 1);
	assert_true(scopes.approximate);
	assert_int_equal(scopes.items[0].method, method);
	/* With DebugNonSafepoints it is. A call of a leaf routine has no record in either case. */
	for (int i = 0; i < 2; i++) {
		jvm->hotspot.describes_all = i;
		sf_java_scopes_find(&jvm->hotspot, &jvm->memory, &blob, code + 40, true, &scopes);
		assert_int_equal(scopes.n, i ? 2 : 1);
		assert_int_equal(scopes.approximate, !i);
		sf_java_scopes_find(&jvm->hotspot, &jvm->memory, &blob, code + 40, false, &scopes);
		assert_int_equal(scopes.n, 1);
		assert_true(scopes.approximate);
		assert_int_equal(scopes.items[0].method, method);
	}
}

/* Between two records of a method: a bytecode of one of them is the place only if the other one is on the same line. */
static void test_lines_between_records(void **state)
{
	static const struct {
		int before, behind, found;
	} places[] = { { 3, 3, 3 }, { 3, 4, -1 }, { 4, 6, 6 } }; /* from bytecode 4 on all are on one line */
	struct fake_jvm *jvm = *state;
	const struct fake_code wanted = {
		.name = "nmethod", .size = 96, .frame_size = 4, .level = 4, .pc = 48, .compile_id = 7, .n_after = 1,
		.method = fake_method(jvm, "a/B", "compiled", "()V", NULL, 8),
	};
	const uint64_t code = fake_code(jvm, &wanted), records = code + wanted.size, scopes_data = records + 16 * 4;
	struct sf_java_scopes scopes;
	struct sf_blob blob;

	fake_put(jvm, records + 16 * 2, 60, 4);
	fake_put(jvm, records + 16 * 2 + 4, 16, 4);
	fake_bytes(jvm, scopes_data + 16, "\0\1", 2);
	assert_true(sf_hotspot_blob(&jvm->hotspot, &jvm->memory, code + 48, &blob));
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		fake_put(jvm, scopes_data + 3, (uint64_t)places[i].before + 1, 1);
		fake_put(jvm, scopes_data + 18, (uint64_t)places[i].behind + 1, 1);
		sf_java_scopes_find(&jvm->hotspot, &jvm->memory, &blob, code + 55, true, &scopes);
		assert_int_equal(scopes.n, 1);
		assert_true(scopes.approximate);
		assert_int_equal(scopes.items[0].bci, places[i].found);
	}
}

/* A record without an oop map is no safepoint's: the compiler described the instructions between safepoints, too. */
static void test_described_code(void **state)
{
	struct fake_jvm *jvm = *state;
	const bool is_told = sf_hotspot_has(&jvm->hotspot, SF_HS_OOP_MAPS_N);
	const struct fake_code wanted = {
		.name = "nmethod", .size = 96, .frame_size = 4, .level = 4, .pc = 48, .inlined_bci = 1, .compile_id = 7,
		.method = fake_method(jvm, "a/B", "compiled", "()V", NULL, 8), .n_between = 1,
		.inlined = fake_method(jvm, "a/B", "inlined", "()V", NULL, 8),
	};
	const uint64_t code = fake_code(jvm, &wanted);
	struct sf_java_scopes scopes;
	struct sf_blob blob;

	assert_true(sf_hotspot_blob(&jvm->hotspot, &jvm->memory, code + 40, &blob));
	sf_java_scopes_find(&jvm->hotspot, &jvm->memory, &blob, code + 40, true, &scopes);
	assert_int_equal(scopes.n, is_told ? 2 : 1);
	assert_int_equal(scopes.approximate, !is_told);
	assert_int_equal(scopes.items[0].method, is_told ? wanted.inlined : wanted.method);
}

/*
 * The slow part of a barrier stands behind all that is described, and jumps back behind its instruction. That says what it
 * is part of where instructions are described, and nothing where only safepoints are.
 */
static void test_slow_parts(void **state)
{
	static const uint8_t slow[] = {
		0xf0, 0x83, 0x44, 0x24, 0xc0, 0, 0x80, 0x3e, 0,   /* lock add dword [rsp-64], 0; cmp byte [rsi], 0 */
		0x74, 0x05, 0xe8, 0, 0, 0, 0,                     /* je +5; call */
		0xe9, 0xdc, 0xff, 0xff, 0xff,                     /* jmp -36 */
		0x90, 0xeb, 0x7f, 0xe9, 0xd6, 0xff, 0xff, 0xff,   /* nop; jmp 127; jmp -42 */
	};
	static const uint8_t starts[] = { 0, 6, 9, 11, 16 };
	struct fake_jvm *jvm = *state;
	const struct fake_code wanted = {
		.name = "nmethod", .size = 96, .frame_size = 4, .level = 4, .pc = 48, .inlined_bci = 1, .compile_id = 7,
		.method = fake_method(jvm, "a/B", "compiled", "()V", NULL, 8),
		.inlined = fake_method(jvm, "a/B", "inlined", "()V", NULL, 8),
	};
	const uint64_t code = fake_code(jvm, &wanted);
	struct sf_java_scopes scopes;
	struct sf_blob blob;

	fake_bytes(jvm, code + 63, slow, sizeof(slow)); /* it jumps to 48; the other one goes elsewhere */
	assert_true(sf_hotspot_blob(&jvm->hotspot, &jvm->memory, code + 63, &blob));
	for (unsigned described = 0; described < 2; described++) {
		jvm->hotspot.describes_all = described;
		for (size_t i = 0; i < sizeof(starts); i++) {
			sf_java_scopes_find(&jvm->hotspot, &jvm->memory, &blob, code + 63 + starts[i], true, &scopes);
			assert_int_equal(scopes.n, described ? 2 : 1);
			assert_int_equal(scopes.approximate, !described);
			assert_int_equal(scopes.items[0].method, described ? wanted.inlined : wanted.method);
		}
		sf_java_scopes_find(&jvm->hotspot, &jvm->memory, &blob, code + 84, true, &scopes);
		assert_int_equal(scopes.n, 1);
		assert_true(scopes.approximate);
	}
}

/*
 * Into a method that calls nothing nothing is inlined, and no record is needed to know that. An interpreter has put its own
 * bytecodes in place of others: one for a field and its return, or one for a call.
 */
static void test_method_that_calls_nothing(void **state)
{
	static const struct {
		unsigned size;
		uint8_t codes[4];
		bool is_sure;
	} methods[] = {
		{ 5, { 0x2a, 0xb4, 0x01, 0xac }, true },   /* aload_0; getfield; ireturn */
		{ 5, { 0xdd, 0xcb, 0x01, 0xac }, true },   /* as the interpreter has rewritten it */
		{ 5, { 0x2a, 0xb6, 0x01, 0xac }, false },  /* invokevirtual */
		{ 5, { 0x2a, 0xe3, 0x01, 0xac }, false },  /* a call of HotSpot's own */
		{ 5, { 0xca, 0xb4, 0x01, 0xac }, false },  /* a breakpoint */
		{ 129, { 0x2a, 0xb4, 0x01, 0xac }, false },
	};
	struct fake_jvm *jvm = *state;
	struct sf_java_scopes scopes;
	struct sf_blob blob;

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		const uint64_t method = fake_method(jvm, "a/B", "get", "()I", NULL, methods[i].size);
		const uint64_t code = fake_code(jvm, &(struct fake_code){
			.name = "nmethod", .size = 96, .frame_size = 4, .method = method, .compile_id = 7, .level = 4, .pc = 48 });

		fake_bytes(jvm, fake_bytecode(jvm, method, 0), methods[i].codes, sizeof(methods[i].codes));
		assert_true(sf_hotspot_blob(&jvm->hotspot, &jvm->memory, code + 40, &blob));
		sf_java_scopes_find(&jvm->hotspot, &jvm->memory, &blob, code + 40, true, &scopes);
		assert_int_equal(scopes.n, 1);
		assert_int_equal(scopes.items[0].method, method);
		assert_int_equal(scopes.approximate, !methods[i].is_sure);
	}
}

/* The record is found wherever it is among others: they need not lie evenly over the code. */
static void test_many_scopes(void **state)
{
	struct fake_jvm *jvm = *state;
	uint64_t method = fake_method(jvm, "a/B", "compiled", "()V", NULL, 8);
	struct sf_java_scopes scopes;
	struct sf_blob blob;

	for (unsigned i = 0; i < 64; i++) {
		const struct fake_code wanted = {
			.name = "nmethod", .size = 96, .frame_size = 4, .method = method, .compile_id = i + 1,
			.level = 4, .pc = 48, .n_before = i % 8 * 5, .n_after = i / 8 * 5,
		};
		const uint64_t code = fake_code(jvm, &wanted);

		assert_true(sf_hotspot_blob(&jvm->hotspot, &jvm->memory, code, &blob));
		sf_java_scopes_find(&jvm->hotspot, &jvm->memory, &blob, code + 48, false, &scopes);
		assert_int_equal(scopes.n, 1);
		assert_int_equal(scopes.items[0].method, method);
		assert_int_equal(scopes.items[0].bci, 3);
		assert_false(scopes.approximate);
		/* Of the one before nothing is said, so it is the method at no known bytecode; so of the last, behind all. */
		sf_java_scopes_find(&jvm->hotspot, &jvm->memory, &blob, code + 49, false, &scopes);
		assert_int_equal(scopes.items[0].bci, -1);
		sf_java_scopes_find(&jvm->hotspot, &jvm->memory, &blob, code + 97, false, &scopes);
		assert_int_equal(scopes.items[0].bci, -1);
		sf_java_scopes_find(&jvm->hotspot, &jvm->memory, &blob, code, false, &scopes);
		assert_int_equal(scopes.items[0].bci, -1);
	}
}

/* Up to where the heap has grown, and no further than that can be; else not at all. */
static void test_lend_code(void **state)
{
	struct fake_jvm *jvm = *state;
	struct sf_hotspot *hotspot = &jvm->hotspot;
	const uint64_t field = hotspot->fields[SF_HS_SPACE_COMMITTED].at;
	const uint64_t said = hotspot->heaps[0].memory_space + field;
	const uint64_t map_size = FAKE_CODE_SIZE / 128;
	static const struct {
		uint64_t said, lent; /* bytes */
	} cases[] = {
		{ FAKE_CODE_SIZE, FAKE_CODE_SIZE }, { 4096, 4096 }, { FAKE_CODE_SIZE + 1, 0 }, { 0, 0 },
		{ (uint64_t)-8, 0 },
	};

	assert_false(sf_hotspot_loads(hotspot, FAKE_CODE, 1));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint64_t lent = cases[i].lent;

		put(jvm, said, FAKE_CODE + cases[i].said);
		sf_hotspot_lend_code(hotspot, &jvm->memory);
		assert_int_equal(sf_hotspot_loads(hotspot, FAKE_CODE, 1), lent != 0);
		assert_int_equal(sf_hotspot_loads(hotspot, FAKE_CODE, lent ? lent : 1), lent != 0);
		assert_false(sf_hotspot_loads(hotspot, FAKE_CODE, lent + 1));
		assert_false(sf_hotspot_loads(hotspot, FAKE_CODE + lent, 1));
		assert_false(sf_hotspot_loads(hotspot, FAKE_CODE - 1, 1));
		assert_false(sf_hotspot_loads(hotspot, FAKE_CODE + 1, UINT64_MAX));
		assert_true(sf_hotspot_loads(hotspot, jvm->segmap, map_size));
		assert_false(sf_hotspot_loads(hotspot, jvm->segmap + 1, map_size));
	}
	/* It says so, and there is nothing. */
	put(jvm, said, FAKE_CODE + FAKE_CODE_SIZE);
	put(jvm, hotspot->heaps[0].segmap_space + field, jvm->segmap);
	sf_hotspot_lend_code(hotspot, &(struct sf_reader){ .read = NULL });
	assert_false(sf_hotspot_loads(hotspot, FAKE_CODE, 1));
	sf_hotspot_lend_code(hotspot, &jvm->memory);
	assert_true(sf_hotspot_loads(hotspot, FAKE_CODE, 1));
	assert_false(sf_hotspot_loads(hotspot, jvm->segmap, 1));
	put(jvm, said, FAKE_BASE + FAKE_SIZE + 1);
	put(jvm, hotspot->heaps[0].memory_space + hotspot->fields[SF_HS_SPACE_HIGH].at, FAKE_BASE + FAKE_SIZE + 1);
	sf_hotspot_lend_code(hotspot, &jvm->memory);
	assert_false(sf_hotspot_loads(hotspot, FAKE_CODE, 1));
	put(jvm, said, FAKE_CODE + FAKE_CODE_SIZE);
	hotspot->fields[SF_HS_SPACE_COMMITTED].width = 0;
	sf_hotspot_lend_code(hotspot, &jvm->memory);
	assert_false(sf_hotspot_loads(hotspot, FAKE_CODE, 1));
}

/*
 * A native method waits in code that cannot be walked: the thread's note of its last frame leads
 * on.
 */
static void test_anchor(void **state)
{
	struct fake_jvm *jvm = *state;
	uint64_t caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	uint64_t fp = FAKE_STACK + 0x300;

	put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
	put_entry(jvm, fp + 0x100);
	put(jvm, jvm->thread + 656, FAKE_STACK + 0x280);
	put(jvm, jvm->thread + 664, jvm->interpreter);
	put(jvm, jvm->thread + 672, fp);
	start(jvm, 0x7f0000002000, FAKE_STACK + 0x100, 0);
	assert_int_equal(sf_walk(&jvm->still, &jvm->trace), SF_END_NO_CODE);
	assert_int_equal(jvm->trace.n_frames, 1);
	jvm->still.handles[0] = jvm->thread;
	sf_walk(&jvm->still, &jvm->trace);
	assert_int_equal(jvm->trace.n_frames, 3);
	assert_frame(jvm, 1, SF_KIND_INTERPRETED, caller);
	assert_string_equal(sf_via_word(jvm->frames[1].via), "anchor");
}

static void test_methods(void **state)
{
	struct fake_jvm *jvm = *state;
	uint64_t method = fake_method(jvm, "java/util/Map$Entry", "put",
				      "(Ljava/lang/Object;I[[J)Ljava/lang/Object;", "Map.java", 8);
	struct sf_java_method read;

	assert_true(sf_java_method_read(&jvm->hotspot, &jvm->memory, method, &read));
	assert_string_equal(read.name, "java.util.Map$Entry.put(Object, int, long[][])");
	assert_string_equal(read.file, "java/util/Map.java");
	assert_int_equal(sf_java_line(&jvm->hotspot, &jvm->memory, read.constant, 0), 100);
	assert_int_equal(sf_java_line(&jvm->hotspot, &jvm->memory, read.constant, 2), 102);
	assert_int_equal(sf_java_line(&jvm->hotspot, &jvm->memory, read.constant, 7), 104);
	assert_int_equal(sf_java_line(&jvm->hotspot, &jvm->memory, read.constant, -1), 0);
	/* Bytecode 0: line 100; 3: 101 and 102, as scalac writes it; 6: 103. A stack trace of Java's has the first one at 3. */
	fake_bytes(jvm, fake_bytecode(jvm, method, 8) + 4, "\x19\x01\x19\0", 4);
	assert_int_equal(sf_java_line(&jvm->hotspot, &jvm->memory, read.constant, 2), 100);
	assert_int_equal(sf_java_line(&jvm->hotspot, &jvm->memory, read.constant, 3), 101);
	assert_int_equal(sf_java_line(&jvm->hotspot, &jvm->memory, read.constant, 4), 102);
	assert_int_equal(sf_java_line(&jvm->hotspot, &jvm->memory, read.constant, 6), 103);
	assert_false(sf_java_method_read(&jvm->hotspot, &jvm->memory, method + 4, &read));
	assert_false(sf_java_method_read(&jvm->hotspot, &jvm->memory, 0x7f0000000000, &read));
}

static void test_names(void **state)
{
	char hidden[] = "Demo$$Lambda$7+0x00007f3931002220", newer[] = "Demo$$Lambda+0x000000003b003558";
	char form[] = "java/lang/invoke/LambdaForm$MH/0x0000000800c3", plain[] = "a/Lambda$1";
	char name[40];

	(void)state;
	sf_java_clean_class(hidden);
	assert_string_equal(hidden, "Demo$$Lambda");
	sf_java_clean_class(newer);
	assert_string_equal(newer, "Demo$$Lambda");
	sf_java_clean_class(form);
	assert_string_equal(form, "java/lang/invoke/LambdaForm$MH");
	sf_java_clean_class(plain);
	assert_string_equal(plain, "a/Lambda$1");
	sf_java_method_name("a/B", "m", "no descriptor", name, sizeof(name));
	assert_string_equal(name, "a.B.m");
	sf_java_method_name("a/B", "m", "(Lunfinished", name, sizeof(name));
	assert_string_equal(name, "a.B.m");
	sf_java_method_name("a/B", "m", "(Ljava/lang/Object;Ljava/lang/Object;Ljava/lang/Object;)V", name,
			    20);
	assert_string_equal(name, "a.B.m(Object, Objec"); /* cut to size */
}

static void test_threads(void **state)
{
	struct fake_jvm *jvm = *state;
	struct sf_java_threads threads = { 0 };

	assert_true(sf_java_threads_list(&jvm->hotspot, &jvm->memory, &threads));
	assert_int_equal(threads.items.n, 1);
	assert_int_equal(threads.items.items[0].tid, 77);
	assert_int_equal(threads.items.items[0].address, jvm->thread);
	assert_true(sf_hotspot_is_thread(&jvm->hotspot, &jvm->memory, jvm->thread, 77));
	assert_false(sf_hotspot_is_thread(&jvm->hotspot, &jvm->memory, jvm->thread, 78));
	sf_vec_deinit(&threads.items);
}

/*
 * Without a field that only names need there are no names; without one that walking needs,
 * nothing.
 */
static void test_missing(void **state)
{
	struct fake_jvm *jvm = calloc(1, sizeof(*jvm));
	char note[SF_HOTSPOT_NOTE];
	struct sf_error err = { 0 };

	(void)state;
	assert_non_null(jvm);
	jvm->left_out = "_source_file_name_index";
	assert_true(fake_jvm_make(jvm, note, NULL));
	assert_non_null(strstr(note, "without source files"));
	assert_non_null(strstr(note, "_source_file_name_index"));
	memset(jvm, 0, sizeof(*jvm));
	jvm->left_out = "_segmap";
	assert_false(fake_jvm_make(jvm, note, &err));
	assert_int_equal(err.code, SF_E_UNSUPPORTED);
	assert_non_null(strstr(err.text, "CodeHeap._segmap"));
	free(jvm);
}

static bool is_77(void *arg, int32_t tid)
{
	(void)arg;
	return tid == 77;
}

static bool is_none(void *arg, int32_t tid)
{
	(void)arg;
	(void)tid;
	return false;
}

/* A field that does not read as it must is given up, with a word: lines, names, threads, everything. */
static void test_self_test(void **state)
{
	struct fake_jvm *jvm = *state;
	struct sf_hotspot hotspot;
	struct sf_java_method read;
	char note[SF_HOTSPOT_NOTE];
	struct sf_error err = { 0 };
	uint64_t lines = fake_bytecode(jvm, jvm->thread_run, 8);

	sf_hotspot_self_test_threads(&jvm->hotspot, &jvm->memory, is_77, NULL, strcpy(note, ""), sizeof(note));
	assert_string_equal(note, "");
	sf_hotspot_self_test_threads(&jvm->hotspot, &jvm->memory, is_none, NULL, note, sizeof(note));
	assert_non_null(strstr(note, "without the full names of threads"));
	assert_false(sf_hotspot_is_thread(&jvm->hotspot, &jvm->memory, jvm->thread, 77));

	fake_bytes(jvm, lines, "\xff\x00\xff\xff\xff\xff", 6);
	assert_true(sf_hotspot_attach(&jvm->memory, &jvm->exports, &hotspot, note, &err));
	assert_memory_equal(note, "without lines (self-test", 24);
	assert_true(sf_java_method_read(&hotspot, &jvm->memory, jvm->thread_run, &read));
	assert_string_equal(read.name, "java.lang.Thread.run()");
	assert_int_equal(sf_java_line(&hotspot, &jvm->memory, read.constant, 0), 0);

	assert_true(sf_java_method_read(&jvm->hotspot, &jvm->memory, jvm->thread_run, &read));
	fake_put(jvm, read.constant + jvm->hotspot.fields[SF_HS_CONST_NAME].at, 2, 2);
	assert_true(sf_hotspot_attach(&jvm->memory, &jvm->exports, &hotspot, note, &err));
	assert_memory_equal(note, "without the names of methods (self-test", 39);
	assert_false(sf_java_method_read(&hotspot, &jvm->memory, jvm->thread_run, &read));

	memset(jvm->bytes + (jvm->segmap - FAKE_BASE), 0xff, FAKE_CODE_SIZE / 128);
	assert_false(sf_hotspot_attach(&jvm->memory, &jvm->exports, &hotspot, note, &err));
	assert_int_equal(err.code, SF_E_UNSUPPORTED);
	assert_non_null(strstr(err.text, "self-test"));
}

/* The same of every layout that was recorded: a compiled method with an inlined one, called by an interpreted one. */
static void walk_and_describe(struct fake_jvm *jvm)
{
	uint64_t caller = fake_method(jvm, "a/B", "caller", "(I)V", "B.java", 8);
	uint64_t method = fake_method(jvm, "a/C", "method", "()V", "C.java", 8);
	uint64_t code = make_compiled(jvm, method, caller), sp = FAKE_STACK + 0x100, fp = sp + 0x200;
	struct sf_java_method read;
	struct sf_java_scopes scopes;
	struct sf_blob blob;

	put_interpreted(jvm, fp, caller, 2, jvm->call_stub_return, fp + 16, fp + 0x100);
	put_entry(jvm, fp + 0x100);
	put(jvm, sp + 24, jvm->interpreter);
	put(jvm, sp + 16, fp);
	start(jvm, code + 48, sp, 0);
	jvm->still.regs.known = 1 << RSP;
	sf_walk(&jvm->still, &jvm->trace);
	assert_int_equal(jvm->trace.n_frames, 3);
	assert_int_equal(jvm->frames[0].id, 42);
	assert_frame(jvm, 1, SF_KIND_INTERPRETED, caller);
	assert_int_equal(jvm->frames[1].bci, 2);
	assert_frame(jvm, 2, SF_KIND_STUB, jvm->call_stub_return);

	assert_true(sf_hotspot_blob(&jvm->hotspot, &jvm->memory, code + 47, &blob));
	assert_int_equal(blob.level, 4);
	sf_java_scopes_find(&jvm->hotspot, &jvm->memory, &blob, code + 48, false, &scopes);
	assert_int_equal(scopes.n, 2);
	assert_int_equal(scopes.items[0].method, caller);
	assert_int_equal(scopes.items[1].bci, 3);

	assert_true(sf_java_method_read(&jvm->hotspot, &jvm->memory, caller, &read));
	assert_string_equal(read.name, "a.B.caller(int)");
	assert_string_equal(read.file, "a/B.java");
	assert_int_equal(sf_java_line(&jvm->hotspot, &jvm->memory, read.constant, 2), 102);
}

static void test_every_layout(void **state)
{
	static const unsigned versions[] = { 8, 11, 17, 21, 25, 26 };
	struct fake_jvm *jvm = malloc(sizeof(*jvm));

	(void)state;
	assert_non_null(jvm);
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		struct sf_java_objects objects;
		char note[SF_HOTSPOT_NOTE], name[64];
		struct sf_error err = { 0 };

		memset(jvm, 0, sizeof(*jvm));
		jvm->version = versions[i];
		if (!fake_jvm_make(jvm, note, &err))
			fail_msg("JDK %u: %s", versions[i], err.text);
		assert_string_equal(note, "");
		assert_int_equal(jvm->hotspot.version, versions[i]);
		walk_and_describe(jvm);
		assert_true(sf_hotspot_is_thread(&jvm->hotspot, &jvm->memory, jvm->thread, 77));
		sf_java_objects_init(&objects, &jvm->hotspot, &jvm->memory);
		assert_true(sf_java_thread_name(&jvm->hotspot, &jvm->memory, &objects, jvm->thread, name,
						sizeof(name)));
		assert_string_equal(name, "a thread with a long name");
	}
	free(jvm);
}

/* Whether it can be attached to; else it is not refused for good. */
static bool has_started(struct fake_jvm *jvm, struct sf_hotspot *ret)
{
	char note[SF_HOTSPOT_NOTE];
	struct sf_error err = { 0 };
	const bool attached = sf_hotspot_attach(&jvm->memory, &jvm->exports, ret, note, &err);

	assert_int_equal(err.code, attached ? SF_E_NONE : SF_E_GONE);
	return attached;
}

static void test_not_started(void **state)
{
	struct fake_jvm *jvm = *state;
	struct sf_hotspot hotspot;
	uint64_t list = 0;

	assert_true(sf_hotspot_get(&jvm->hotspot, &jvm->memory, SF_HS_THREADS, 0, &list));
	fake_put(jvm, list + jvm->hotspot.fields[SF_HS_THREADS_LENGTH].at, 0, 4);
	assert_false(has_started(jvm, &hotspot));
	fake_put(jvm, list + jvm->hotspot.fields[SF_HS_THREADS_LENGTH].at, 1, 4);
	assert_true(has_started(jvm, &hotspot));

	put(jvm, jvm->hotspot.fields[SF_HS_CALL_STUB].at, 0);
	assert_false(has_started(jvm, &hotspot));
}

/* In JDK 25 its first thread is listed before the interpreter is made: before any of it is, and half way. */
static void test_interpreter_half_made(void **state)
{
	struct fake_jvm *jvm = *state;
	struct sf_hotspot hotspot;
	uint64_t queue = 0, list = 0, end;

	assert_true(sf_hotspot_get(&jvm->hotspot, &jvm->memory, SF_HS_INTERPRETER, 0, &queue));
	assert_true(sf_hotspot_get(&jvm->hotspot, &jvm->memory, SF_HS_THREADS, 0, &list));
	end = queue + jvm->hotspot.fields[SF_HS_QUEUE_END].at;
	fake_put(jvm, end, 0, 4);
	assert_false(has_started(jvm, &hotspot));
	fake_put(jvm, end, 256, 4);
	assert_false(has_started(jvm, &hotspot));
	fake_put(jvm, end, 512, 4);
	assert_true(has_started(jvm, &hotspot));
	assert_int_equal(hotspot.n_entries, 1);

	/* Where what it does not need is not given back: with the second thread. */
	fake_put(jvm, end, 256, 4);
	fake_put(jvm, list + jvm->hotspot.fields[SF_HS_THREADS_LENGTH].at, 2, 4);
	assert_true(has_started(jvm, &hotspot));
	assert_int_equal(hotspot.n_entries, 1);
}

/* A virtual machine's words on its build never move the cursor of a terminal. */
static void test_its_release_is_clean_text(void **state)
{
	struct fake_jvm *jvm = calloc(1, sizeof(*jvm));
	struct sf_jvm_facts facts;
	uint64_t place;
	(void)state;

	assert_non_null(jvm);
	assert_true(fake_jvm_make(jvm, (char[SF_HOTSPOT_NOTE]){ 0 }, NULL));
	place = fake_alloc(jvm, 8);
	fake_put(jvm, place, fake_string(jvm, "17.0.1\x1b[2J\xc2\x9b"), 8);
	jvm->hotspot.fields[SF_HS_RELEASE] =
		(struct sf_hotspot_field){ .at = place, .width = 8, .is_static = true };
	sf_jvm_facts(&jvm->hotspot, &jvm->memory, &facts);
	assert_memory_equal(facts.release, "17.0.1", 6);
	assert_null(strpbrk(facts.release, "\x1b\xc2\x9b"));
	free(jvm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_its_release_is_clean_text),
		cmocka_unit_test_setup_teardown(test_interpreted_frames, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_interpreter_calls_a_routine, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_entering_interpreter, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_interpreter_pushes_slots, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_compiled_top, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_pushed_by_a_search, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_not_entrant, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_exception, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_rethrow, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_handler_of_the_caller, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_pushed_registers, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_pushed_arguments, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_slow_parts_of_barriers, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_following_routines, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_inline_cache_buffer, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_wrapper_returns_early, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_entry_barrier, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_stale_native_callers, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_adapter, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_adapter_asks_the_collector, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_leaving_interpreter, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_static_call_stub, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test(test_continuation),
		cmocka_unit_test(test_untold_continuation),
		cmocka_unit_test_setup_teardown(test_scopes, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_slow_parts, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_method_that_calls_nothing, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_many_scopes, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_lines_between_records, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_described_code, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_lend_code, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_anchor, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_methods, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test(test_names),
		cmocka_unit_test_setup_teardown(test_threads, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_every_layout),
		cmocka_unit_test_setup_teardown(test_self_test, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_not_started, fake_jvm_set_up, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_interpreter_half_made, fake_jvm_set_up, fake_jvm_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

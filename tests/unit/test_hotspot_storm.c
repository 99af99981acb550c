/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moments that runs of a storm of deoptimization showed, in a virtual machine made by hand: code
 * and words on the stack are as they were recorded there, addresses are the fake's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_jvm.h"

enum { RBX = 3, RBP = 6, RSP = 7, R13 = 13, R15 = 15 };

#define TOP (FAKE_STACK + 0x400)     /* fp of the interpreted method that all chains lead to */

static uint64_t caller;              /* that method */

static void put(struct fake_jvm *jvm, uint64_t address, uint64_t value)
{
	fake_put(jvm, address, value, 8);
}

/* An interpreted method at TOP, called from native code. */
static int make(void **state)
{
	struct fake_jvm *jvm;

	assert_int_equal(fake_jvm_set_up(state), 0);
	jvm = *state;
	caller = fake_method(jvm, "a/B", "caller", "()V", NULL, 8);
	put(jvm, TOP + 8, jvm->call_stub_return);
	put(jvm, TOP, TOP + 0x100);
	put(jvm, TOP - 8, TOP + 16);
	put(jvm, TOP - 24, caller);
	put(jvm, TOP - 64, fake_bytecode(jvm, caller, 2));
	put(jvm, TOP + 0x100, 0);
	put(jvm, TOP + 0x108, 0x7f0000001000); /* in no code: the walk ends there */
	return 0;
}

static void start(struct fake_jvm *jvm, uint64_t pc, uint64_t sp, uint64_t fp)
{
	jvm->still.regs = (struct sf_regs){ .pc = pc };
	sf_reg_set(&jvm->still.regs, RSP, sp);
	sf_reg_set(&jvm->still.regs, RBP, fp);
	sf_reg_set(&jvm->still.regs, R15, jvm->thread);
}

/* The chain that is expected: what stands at `i`, then the interpreted method. */
static void assert_caller(const struct fake_jvm *jvm, unsigned i)
{
	assert_int_equal(jvm->trace.n_frames, i + 2);
	assert_string_equal(sf_kind_word(jvm->frames[i].kind), "interpreted");
	assert_int_equal(jvm->frames[i].token, caller);
	assert_int_equal(jvm->trace.end, SF_END_NO_CODE);
}

static uint64_t make_compiled(struct fake_jvm *jvm, int frame_size)
{
	return fake_code(jvm, &(struct fake_code){
		.name = "nmethod", .size = 128, .frame_size = frame_size, .frame_complete = 12,
		.method = fake_method(jvm, "a/B", "compiled", "()V", NULL, 8), .compile_id = 42,
		.level = 4 });
}

/*
 * The interpreter goes on in compiled code, in a loop: by an entry behind the method's own. C2's
 * code for a loop has nothing but a call in that one's place.
 */
static void test_loop_entry(void **state)
{
	static const uint8_t prologue[] = { 0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff, 0x55,
					    0x48, 0x83, 0xec, 0x40, 0x66, 0x66, 0x90 };
	static const uint8_t call[sizeof(prologue)] = { 0xe8, 0, 0, 0, 0, 0x90, 0x90, 0x90 };
	static const struct {
		unsigned at, pushed;
	} places[] = { { 0, 0 }, { 7, 0 }, { 8, 8 }, { 12, 72 }, { 15, 72 } };
	static const unsigned loop_entries[] = { 89, 16 };
	struct fake_jvm *jvm = *state;
	const uint64_t top = FAKE_STACK + 0x200; /* where the return address is */

	for (unsigned i = 0; i < 2; i++) {
		const uint64_t code = fake_code(jvm, &(struct fake_code){
			.name = "nmethod", .size = 256, .frame_size = 10, .frame_complete = 27,
			.method = caller, .compile_id = 42, .level = i ? 4 : 3,
			.loop_entry = loop_entries[i] });

		fake_bytes(jvm, code, i ? call : prologue, sizeof(prologue));
		fake_bytes(jvm, code + loop_entries[i], prologue, sizeof(prologue));
		for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
			put(jvm, top, jvm->interpreter);
			put(jvm, top - 8, places[k].pushed ? TOP : 0x1234);
			start(jvm, code + loop_entries[i] + places[k].at, top - places[k].pushed, TOP);
			sf_walk(&jvm->still, &jvm->trace);
			assert_caller(jvm, 1);
			assert_int_equal(jvm->frames[1].sp, top + 8);
			assert_int_equal(jvm->frames[1].via, SF_VIA_RUNTIME);
		}
	}
}

/*
 * SafepointBlob for a poll in a loop: of JDK 17 and 25, and of JDK 8; the note is at 0x100 in
 * the JavaThread.
 */
#define POLL_STORE 39
static const uint8_t polls[][64] = {
	{ 0x53, 0x55, 0x48, 0x8b, 0xec, 0x9c, 0x48, 0x83, 0xec, 0x08,
	  0x48, 0x81, 0xec, 0x80, 0, 0, 0, 0x48, 0x89, 0x44, 0x24, 0x78,
	  0x90, 0x90, 0x90, 0x49, 0x89, 0xa7, 0x90, 0x02, 0, 0,
	  0x49, 0x8b, 0x9f, 0, 1, 0, 0, 0x48, 0x89, 0x5d, 0x08, 0x49, 0x8b, 0xff, 0xe8 },
	{ 0x53, 0x55, 0x48, 0x89, 0xe5, 0x9c, 0x48, 0x83, 0xec, 0x08,
	  0x48, 0x81, 0xec, 0x80, 0, 0, 0, 0x48, 0x89, 0x44, 0x24, 0x78,
	  0x90, 0x90, 0x90, 0x49, 0x89, 0xa7, 0x90, 0x02, 0, 0,
	  0x49, 0x8b, 0xbf, 0, 1, 0, 0, 0x48, 0x89, 0x7d, 0x08, 0x4c, 0x89, 0xff, 0xe8 },
};

static uint64_t make_poll(struct fake_jvm *jvm, const uint8_t *bytes)
{
	uint64_t blob = fake_code(jvm, &(struct fake_code){
		.name = "SafepointBlob", .size = 512, .frame_size = 32, .frame_complete = -1 });

	fake_bytes(jvm, blob, bytes, 64);
	return blob;
}

/*
 * Wherever the routine of a loop's poll stands before it has put the return address in its
 * place: the loop's method is known by the thread's note. Words in the method's own frame look
 * like return addresses.
 */
static void test_poll_in_a_loop(void **state)
{
	static const struct {
		unsigned pc, pushed;
		bool made;           /* rbp is the routine's own */
	} places[] = {
		{ 0, 0, false }, { 1, 8, false }, { 2, 16, false }, { 5, 16, true },
		{ 17, 160, true },
		{ 32, 160, true }, { POLL_STORE, 160, true }, { POLL_STORE + 4, 160, true },
	};
	struct fake_jvm *jvm = *state;
	const uint64_t code = make_compiled(jvm, 6), sp = FAKE_STACK + 0x200;

	for (unsigned which = 0; which < 2; which++) {
		const uint64_t blob = make_poll(jvm, polls[which]);

		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			const bool stored = places[i].pc > POLL_STORE;

			put(jvm, jvm->thread + 0x100, stored ? 0 : code + 80);
			put(jvm, sp, jvm->interpreter); /* stale, in the loop's frame */
			put(jvm, sp + 16, jvm->interpreter);
			put(jvm, sp + 32, TOP);
			put(jvm, sp + 40, jvm->interpreter);
			put(jvm, sp - 8, stored ? code + 80 : 0x1235);
			put(jvm, sp - 16, 0x1236);
			start(jvm, blob + places[i].pc, sp - places[i].pushed,
			      places[i].made ? sp - 16 : 0x1236);
			sf_walk(&jvm->still, &jvm->trace);
			assert_caller(jvm, 2);
			assert_int_equal(jvm->frames[1].pc, code + 80);
			assert_int_equal(jvm->frames[1].sp, sp);
			assert_int_equal(jvm->frames[1].via, SF_VIA_RUNTIME);
			assert_int_equal(jvm->frames[2].via, SF_VIA_RUNTIME);
		}
	}
}

/* The note is of another poll by now: what does not fit is not shown. */
static void test_poll_noted_later(void **state)
{
	struct fake_jvm *jvm = *state;
	const uint64_t other = make_compiled(jvm, 8), sp = FAKE_STACK + 0x200;
	const uint64_t blob = make_poll(jvm, polls[0]);
	const uint64_t notes[] = { other + 80, 0, blob + 8 };

	put(jvm, sp + 32, TOP);
	put(jvm, sp + 40, jvm->interpreter);
	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
		put(jvm, jvm->thread + 0x100, notes[i]);
		start(jvm, blob, sp, 0x1236);
		sf_walk(&jvm->still, &jvm->trace);
		assert_true(jvm->trace.n_frames < 2 || jvm->frames[1].pc != notes[i]);
	}
}

/*
 * Sine is called where power, or the machine, was called before: behind sine's locals stands that
 * call's return address. All are called by the interpreter; the routines begin with push rbp; mov rbp,
 * rsp.
 */
static void test_left_over_call(void **state)
{
	struct fake_jvm *jvm = *state;
	const uint64_t stubs = fake_code(jvm, &(struct fake_code){
		.name = "StubRoutines (2)", .size = 256, .frame_complete = -1 });
	const uint64_t sine = stubs + 0x80, sp = FAKE_STACK + 0x200, fp = sp + 24;
	const uint64_t to_power = jvm->interpreter, to_sine = jvm->interpreter + 16;
	const int32_t power_by = (int32_t)(stubs + 0x10 - to_power);
	const int32_t sine_by = (int32_t)(sine - to_sine), machine_by = -0x100000;

	fake_bytes(jvm, to_power - 5, "\xe8", 1);
	fake_bytes(jvm, to_power - 4, &power_by, 4);
	fake_bytes(jvm, to_sine - 5, "\xe8", 1);
	fake_bytes(jvm, to_sine - 4, &sine_by, 4);
	put(jvm, sp, to_power);
	put(jvm, sp + 16, 0x1237);
	put(jvm, fp, TOP);
	put(jvm, fp + 8, to_sine);
	start(jvm, sine + 0x40, sp, fp);
	sf_walk(&jvm->still, &jvm->trace);
	assert_caller(jvm, 1);
	assert_int_equal(jvm->frames[1].pc, to_sine);
	fake_bytes(jvm, to_power - 4, &machine_by, 4);
	sf_walk(&jvm->still, &jvm->trace);
	assert_int_equal(jvm->frames[1].pc, to_sine);
	/* At sine's first instruction it is the other way round: fp is the caller's. */
	fake_bytes(jvm, to_power - 4, &power_by, 4);
	put(jvm, sp, to_sine);
	start(jvm, sine, sp, TOP);
	sf_walk(&jvm->still, &jvm->trace);
	assert_caller(jvm, 1);
	assert_int_equal(jvm->frames[1].pc, to_sine);
}

/* A copy that ends within what a step reads is too short; that is not the same as unreadable. */
static void test_copy_ends_in_a_record(void **state)
{
	struct fake_jvm *jvm = *state;
	const uint64_t first = FAKE_STACK + 0x200, entry = TOP + 0x100;

	put(jvm, first, jvm->interpreter);
	for (uint64_t end = TOP + 16; end < entry + 16; end++) {
		jvm->still.memory.window_size = end - FAKE_STACK;
		jvm->still.memory.stack_end = FAKE_STACK + FAKE_STACK_SIZE;
		start(jvm, jvm->interpreter, first, TOP);
		assert_int_equal(sf_walk(&jvm->still, &jvm->trace), SF_END_COPY);
	}
}

/* MethodHandle.invokeBasic as compiled code calls it: it finds its target, and jumps there. */
static void test_method_handle(void **state)
{
	struct fake_jvm *jvm = *state;
	const uint64_t code = make_compiled(jvm, 4), sp = FAKE_STACK + 0x200;
	const uint64_t wrapper = fake_code(jvm, &(struct fake_code){
		.name = "native nmethod", .size = 64, .frame_size = 0, .frame_complete = 32,
		.method = fake_method(jvm, "a/B", "invokeBasic", "()V", NULL, 8),
		.compile_id = 43 });

	fake_bytes(jvm, code + 43, "\xe8", 1);
	put(jvm, sp, code + 48);
	put(jvm, sp + 8 + 16, TOP);
	put(jvm, sp + 8 + 24, jvm->interpreter);
	start(jvm, wrapper + 16, sp, TOP); /* fp leads past the caller */
	sf_walk(&jvm->still, &jvm->trace);
	assert_caller(jvm, 2);
	assert_int_equal(jvm->frames[1].pc, code + 48);
	assert_int_equal(jvm->frames[1].via, SF_VIA_RUNTIME);
}

/* Two methods of which one was inlined into the other are being replaced by interpreted ones. */
struct unpacked {
	uint64_t stub, blob, sp;       /* the blob has called the stub */
	uint64_t top, fp;              /* of the blob's frame; its fp, or another one */
	uint64_t inner, outer;         /* methods */
};

static uint64_t field(const struct fake_jvm *jvm, enum sf_hotspot_field_name name)
{
	return jvm->hotspot.fields[name].at;
}

/* The thread's notes of them; their caller's stack begins at `end`. */
static uint64_t make_array(struct fake_jvm *jvm, const struct unpacked *unpacked, uint64_t end)
{
	const uint32_t size = jvm->hotspot.sizes[SF_HS_SIZE_VFRAMES];
	const uint32_t element = jvm->hotspot.sizes[SF_HS_SIZE_VFRAME];
	const uint64_t array = fake_alloc(jvm, size + element), first = array + size - element;
	const uint64_t frame = array + field(jvm, SF_HS_VFRAMES_CALLER);
	const uint64_t frame_end = frame + frame - array - field(jvm, SF_HS_VFRAMES_ORIGINAL);
	const uint64_t methods[] = { unpacked->inner, unpacked->outer };

	fake_put(jvm, array + field(jvm, SF_HS_VFRAMES_N), 2, 4);
	put(jvm, frame, end);
	put(jvm, frame + 8, jvm->interpreter);
	put(jvm, frame_end - 16, TOP);
	put(jvm, frame_end - 8, end);
	for (unsigned i = 0; i < 2; i++) {
		put(jvm, first + i * element + field(jvm, SF_HS_VFRAME_METHOD), methods[i]);
		fake_put(jvm, first + i * element + field(jvm, SF_HS_VFRAME_BCI), 3 + i, 4);
	}
	return array;
}

static struct unpacked make_unpacked(struct fake_jvm *jvm, const char *name)
{
	struct unpacked unpacked = {
		.stub = fake_code(jvm, &(struct fake_code){
			.name = "a stub", .size = 64, .frame_size = 2, .frame_complete = 4 }),
		.blob = fake_code(jvm, &(struct fake_code){
			.name = name, .size = 128, .frame_size = 20, .frame_complete = -1 }),
		.sp = FAKE_STACK + 0x100,
		.top = FAKE_STACK + 0x108 + 160,
		.fp = TOP,
		.inner = fake_method(jvm, "a/B", "inner", "()V", NULL, 8),
		.outer = fake_method(jvm, "a/B", "outer", "()V", NULL, 8),
	};

	fake_bytes(jvm, unpacked.stub + 40, "\xc3", 1);
	put(jvm, unpacked.sp, unpacked.blob + 64);
	return unpacked;
}

/* Their frames, without Methods yet; returns where their caller's stack begins. */
static uint64_t put_skeletons(struct fake_jvm *jvm, const struct unpacked *unpacked)
{
	const uint64_t fp1 = unpacked->top + 0x40, fp2 = fp1 + 0x60, end = fp2 + 0x20;

	put(jvm, unpacked->top - 16, fp1);
	put(jvm, unpacked->top - 8, jvm->interpreter);
	put(jvm, fp1, fp2);
	put(jvm, fp1 + 8, jvm->interpreter);
	put(jvm, fp1 - 8, fp1 + 16);
	put(jvm, fp2, TOP);
	put(jvm, fp2 + 8, jvm->interpreter);
	put(jvm, fp2 - 8, end);
	return end;
}

static void walk_unpacked(struct fake_jvm *jvm, const struct unpacked *unpacked, uint64_t now,
			  uint64_t last)
{
	put(jvm, jvm->thread + field(jvm, SF_HS_THREAD_VFRAMES), now);
	put(jvm, jvm->thread + field(jvm, SF_HS_THREAD_LAST_VFRAMES), last);
	start(jvm, unpacked->stub + 40, unpacked->sp, unpacked->fp);
	sf_walk(&jvm->still, &jvm->trace);
}

static void assert_unpacked(const struct fake_jvm *jvm, uint64_t inner, uint64_t outer)
{
	assert_caller(jvm, 4);
	assert_int_equal(jvm->frames[2].token, inner);
	assert_int_equal(jvm->frames[3].token, outer);
	assert_string_equal(sf_kind_word(jvm->frames[2].kind), "interpreted");
	assert_string_equal(sf_kind_word(jvm->frames[3].kind), "interpreted");
}

/*
 * By what the thread notes now, or noted last, if it is of this stack; of a later moment it is
 * not taken.
 */
static void test_unpacking(void **state)
{
	static const char *const names[] = { "DeoptimizationBlob", "UncommonTrapBlob" };
	struct fake_jvm *jvm = *state;

	for (unsigned i = 0; i < 4; i++) {
		struct unpacked unpacked = make_unpacked(jvm, names[i / 2]);
		uint64_t end, array, later;

		if (i % 2) { /* it has aligned sp since it has made its frame */
			unpacked.top += 8;
			unpacked.fp = unpacked.top - 16;
		}
		end = put_skeletons(jvm, &unpacked);
		array = make_array(jvm, &unpacked, end);
		later = make_array(jvm, &unpacked, TOP + 16);

		walk_unpacked(jvm, &unpacked, array, later);
		assert_unpacked(jvm, unpacked.inner, unpacked.outer);
		assert_int_equal(jvm->frames[2].bci, 3);
		assert_int_equal(jvm->frames[3].bci, 4);
		walk_unpacked(jvm, &unpacked, 0, array);
		assert_unpacked(jvm, unpacked.inner, unpacked.outer);
		walk_unpacked(jvm, &unpacked, later, array);
		assert_unpacked(jvm, unpacked.inner, unpacked.outer);
		walk_unpacked(jvm, &unpacked, later, later);
		assert_unpacked(jvm, 0, 0);
	}
}

/* The compiled method's frame is still there. The record says that it stands at `pc`. */
static void walk_compiled(struct fake_jvm *jvm, const struct unpacked *unpacked, uint64_t pc, uint64_t end)
{
	const uint64_t array = make_array(jvm, unpacked, end);

	put(jvm, array + field(jvm, SF_HS_VFRAMES_ORIGINAL) + 8, pc);
	walk_unpacked(jvm, unpacked, 0, array);
}

static void assert_compiled(const struct fake_jvm *jvm, uint64_t pc)
{
	assert_caller(jvm, 3);
	assert_int_equal(jvm->frames[2].pc, pc);
}

/* The thread is between the method's frame, which is gone, and the first skeleton. */
static void test_unpacking_without_frames(void **state)
{
	struct fake_jvm *jvm = *state;
	const struct unpacked unpacked = make_unpacked(jvm, "DeoptimizationBlob");

	put(jvm, jvm->thread + field(jvm, SF_HS_THREAD_VFRAMES), make_array(jvm, &unpacked, unpacked.sp));
	start(jvm, unpacked.blob + 64, unpacked.sp, unpacked.fp);
	sf_walk(&jvm->still, &jvm->trace);
	assert_caller(jvm, 3);
	assert_int_equal(jvm->frames[1].token, unpacked.inner);
	assert_int_equal(jvm->frames[2].token, unpacked.outer);
}

/* By a record that ends in the same place, but is of another deoptimization, nothing is told. */
static void test_unpacking_begins(void **state)
{
	struct fake_jvm *jvm = *state;
	const struct unpacked unpacked = make_unpacked(jvm, "DeoptimizationBlob");
	const uint64_t code = make_compiled(jvm, 4), end = unpacked.top + 32;

	put(jvm, unpacked.top - 8, code + 48);
	put(jvm, end - 16, TOP);
	put(jvm, end - 8, jvm->interpreter);
	walk_compiled(jvm, &unpacked, code + 48, end);
	assert_unpacked(jvm, unpacked.inner, unpacked.outer);
	walk_compiled(jvm, &unpacked, code + 48, end + 8);
	assert_compiled(jvm, code + 48);
	walk_compiled(jvm, &unpacked, code + 64, end); /* of another place in the method */
	assert_compiled(jvm, code + 48);
	put(jvm, end - 8, jvm->interpreter + 4);       /* another caller is there by now */
	walk_compiled(jvm, &unpacked, code + 48, end);
	assert_compiled(jvm, code + 48);
}

/* Its return address was replaced, the real one is kept in the frame. */
static void test_unpacking_of_a_marked_frame(void **state)
{
	struct fake_jvm *jvm = *state;
	const struct unpacked unpacked = make_unpacked(jvm, "DeoptimizationBlob");
	const uint64_t code = make_compiled(jvm, 4), end = unpacked.top + 32;

	fake_mark(jvm, code, 100, 8);
	put(jvm, unpacked.top - 8, code + 100);
	put(jvm, unpacked.top + 8, code + 48);
	put(jvm, end - 16, TOP);
	put(jvm, end - 8, jvm->interpreter);
	walk_compiled(jvm, &unpacked, code + 48, end);
	assert_unpacked(jvm, unpacked.inner, unpacked.outer);
	walk_compiled(jvm, &unpacked, code + 64, end);
	assert_compiled(jvm, code + 48);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_loop_entry, make, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_poll_in_a_loop, make, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_poll_noted_later, make, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_left_over_call, make, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_copy_ends_in_a_record, make, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_method_handle, make, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_unpacking, make, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_unpacking_begins, make, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_unpacking_without_frames, make, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_unpacking_of_a_marked_frame, make, fake_jvm_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Known facts of a virtual machine's methods are not read again, and changed ones are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <sys/mman.h>
#include <unistd.h>

#include "fake_jvm.h"
#include "form.h"
#include "frozen/hotspot/metadata_cache.h"
#include "frozen/signal/workspace.h"

#define RSP 7
#define DEEP 100   /* frames of each kind: more than one walk takes on trust */
#define WORDS 4    /* of a compiled frame */
#define PAGE 4096
#define FRAME 128  /* bytes of an interpreted one */

/* Where calls return to, in bytes from the start of the code. */
#define FIRST_CALL 48
#define LAST_CALL 112

/* The megabyte of a virtual machine made by hand, where its addresses say. */
struct rig {
	struct fake_jvm jvm;
	uint8_t *memory;
	struct sf_own_memory access;
	struct sf_workspace *workspace;
	struct sf_known known;
	uint64_t code[DEEP], methods[DEEP], name;
};

static uint64_t make_code(struct fake_jvm *jvm, unsigned number)
{
	static const uint8_t call[] = { 0xe8, 0, 0, 0, 0 };
	const uint64_t code = fake_code(jvm, &(struct fake_code){
		.name = "nmethod", .size = 128, .frame_size = WORDS, .frame_complete = 28, .entry = 16,
		.loop_entry = 20, .method = FAKE_BASE + 16 * number, .compile_id = number + 1, .level = 4 });

	fake_bytes(jvm, code + FIRST_CALL - 5, call, sizeof(call));
	fake_bytes(jvm, code + LAST_CALL - 5, call, sizeof(call));
	return code;
}

/* As in HotSpot: one string for all of them. Where it is. */
static uint64_t share_name(struct rig *rig)
{
	const struct sf_hotspot *hotspot = &rig->jvm.hotspot;
	struct sf_blob first, blob;

	assert_true(sf_hotspot_blob(hotspot, &rig->jvm.memory, rig->code[0], &first));
	for (unsigned i = 1; i < DEEP; i++) {
		assert_true(sf_hotspot_blob(hotspot, &rig->jvm.memory, rig->code[i], &blob));
		fake_put(&rig->jvm, blob.address + hotspot->fields[SF_HS_BLOB_NAME].at, first.name, 8);
	}
	return first.name;
}

/* Compiled methods, called by as many interpreted ones, the outermost from native code. */
static void make_stack(struct rig *rig, unsigned n, unsigned call)
{
	struct fake_jvm *jvm = &rig->jvm;
	const uint64_t sp = FAKE_STACK + 0x100, fp = sp + 8 * WORDS * n + FRAME;

	for (unsigned i = 1; i <= n; i++)
		fake_put(jvm, sp + 8 * (WORDS * i - 1), i < n ? rig->code[i] + call : jvm->interpreter, 8);
	fake_put(jvm, sp + 8 * (WORDS * n - 2), fp, 8);
	for (unsigned i = 0; i < n; i++) {
		const uint64_t at = fp + i * FRAME;

		fake_put(jvm, at + 8, i + 1 < n ? jvm->interpreter : jvm->call_stub_return, 8);
		fake_put(jvm, at, at + FRAME, 8);
		fake_put(jvm, at - 8, at + 16, 8);
		fake_put(jvm, at - 24, rig->methods[i], 8);
		fake_put(jvm, at - 64, fake_bytecode(jvm, rig->methods[i], i % 8), 8);
	}
	fake_put(jvm, fp + n * FRAME, 0, 8);
	fake_put(jvm, fp + n * FRAME + 8, 0x7f0000001000, 8); /* in no code: the walk ends there */
	jvm->still.regs = (struct sf_regs){ .pc = rig->code[0] + call };
	sf_reg_set(&jvm->still.regs, RSP, sp);
	memcpy(rig->memory, jvm->bytes, FAKE_SIZE);
}

static int make(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	char note[SF_HOTSPOT_NOTE];

	assert_non_null(rig);
	*state = rig;
	rig->jvm.version = 25;
	assert_true(fake_jvm_make(&rig->jvm, note, NULL));
	assert_true(sf_own_memory_probe(&rig->access));
	assert_true(rig->access.gathers);
	rig->workspace = sf_workspace_create(&rig->access, 4 * DEEP, 16384);
	assert_non_null(rig->workspace);
	rig->memory = mmap((void *)(uintptr_t)FAKE_BASE, FAKE_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	assert_ptr_equal(rig->memory, (void *)(uintptr_t)FAKE_BASE);
	for (unsigned i = 0; i < DEEP; i++) {
		rig->code[i] = make_code(&rig->jvm, i);
		rig->methods[i] = fake_method(&rig->jvm, "a/B", "m", "()V", NULL, 8);
	}
	rig->name = share_name(rig);
	make_stack(rig, 3, FIRST_CALL);
	return 0;
}

static int destroy(void **state)
{
	struct rig *rig = *state;

	munmap(rig->memory, FAKE_SIZE);
	sf_workspace_destroy(rig->workspace);
	sf_own_memory_close(&rig->access);
	free(rig);
	return 0;
}

static struct sf_metadata_cache *trust_of(const struct rig *rig)
{
	return rig->workspace->scratch[rig->jvm.hotspot.runtime.slot];
}

static enum sf_end walk(struct rig *rig, struct sf_known *known)
{
	rig->workspace->caches[0] = known;
	return sf_workspace_walk(rig->workspace, &rig->jvm.still);
}

/* A walk with what is known sees what one sees that reads all, piece by piece. */
static void assert_as_read(struct rig *rig)
{
	const struct sf_trace *trace = &rig->workspace->trace;
	static struct sf_frame frames[4 * DEEP];
	enum sf_end end;
	uint32_t n;

	rig->access.gathers = false;
	end = walk(rig, NULL);
	n = trace->n_frames;
	memcpy(frames, trace->frames, n * sizeof(frames[0]));
	rig->access.gathers = true;
	assert_int_equal(walk(rig, &rig->known), end);
	assert_int_equal(trace->n_frames, n);
	assert_memory_equal(trace->frames, frames, n * sizeof(frames[0]));
}

static uint8_t *header_of(const struct rig *rig, unsigned number)
{
	const struct sf_hotspot *hotspot = &rig->jvm.hotspot;
	struct sf_blob blob;

	assert_true(sf_hotspot_blob(hotspot, &rig->jvm.memory, rig->code[number], &blob));
	return rig->memory + (sf_hotspot_header(hotspot, blob.address) - FAKE_BASE);
}

/* How many frames there are when all three of each kind are seen. */
#define ALL 7

static void test_what_is_known_is_not_read_again(void **state)
{
	struct rig *rig = *state;
	const struct sf_metadata_cache *trust = trust_of(rig);
	const struct sf_trace *trace = &rig->workspace->trace;

	walk(rig, &rig->known);
	assert_int_equal(trace->n_frames, ALL);
	assert_int_equal(trust->n, 0);
	walk(rig, NULL);
	assert_int_equal(trace->n_frames, ALL);
	assert_int_equal(trust->n, 0);
	walk(rig, &rig->known);
	assert_int_equal(trace->n_frames, ALL);
	assert_int_equal(trust->n, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(trace->frames[i].kind, SF_KIND_C2);
		assert_int_equal(trace->frames[i].id, i + 1);
		assert_int_equal(trace->frames[3 + i].kind, SF_KIND_INTERPRETED);
		assert_int_equal(trace->frames[3 + i].token, rig->methods[i]);
		assert_int_equal(trace->frames[3 + i].bci, i);
	}
}

static uint8_t class_at(struct rig *rig, uint64_t pc)
{
	struct sf_blob blob;

	assert_true(sf_metadata_cache_blob(trust_of(rig), &rig->jvm.hotspot, &rig->jvm.memory, pc, &blob));
	return blob.class;
}

/* A name is read once, and not again for each piece that has it: but where nothing is trusted, or no more. */
static void test_names(void **state)
{
	struct rig *rig = *state;
	const struct sf_trace *trace = &rig->workspace->trace;
	struct sf_blob blob;

	walk(rig, &rig->known);
	rig->code[1] = rig->code[10];
	rig->code[2] = rig->code[20];
	make_stack(rig, 3, FIRST_CALL);
	memset(rig->memory + (rig->name - FAKE_BASE), 'x', 3);
	walk(rig, &rig->known);
	assert_int_equal(trace->n_frames, ALL);
	assert_int_equal(trace->frames[1].kind, SF_KIND_C2);
	assert_int_equal(trace->frames[1].id, 11);
	walk(rig, NULL);
	assert_int_not_equal(trace->frames[1].kind, SF_KIND_C2);

	trust_of(rig)->known = &rig->known;
	sf_metadata_cache_begin(trust_of(rig));
	assert_int_equal(class_at(rig, rig->jvm.interpreter), SF_BLOB_INTERPRETER);
	assert_true(sf_hotspot_blob(&rig->jvm.hotspot, &rig->jvm.memory, rig->jvm.interpreter, &blob));
	fake_bytes(&rig->jvm, rig->name, "xxx", 3);
	fake_bytes(&rig->jvm, blob.name, "xxx", 3);
	assert_int_equal(class_at(rig, rig->code[30]), SF_BLOB_COMPILED);
	assert_int_equal(class_at(rig, rig->jvm.interpreter), SF_BLOB_INTERPRETER);
	sf_metadata_cache_end(trust_of(rig));
	assert_int_equal(class_at(rig, rig->code[30]), SF_BLOB_RUNTIME);
	assert_int_equal(class_at(rig, rig->jvm.interpreter), SF_BLOB_RUNTIME);
}

/* Of each bit, or of one of each byte. */
static void assert_changes_are_read(struct rig *rig, uint8_t *bytes, size_t size, bool one)
{
	for (size_t i = 0; i < size; i++) {
		const uint8_t was = bytes[i];

		for (unsigned bit = one ? i % 8 : 0; bit < 8; bit += one ? 8 : 1) {
			assert_as_read(rig); /* and it is known again */
			bytes[i] = (uint8_t)(was ^ 1u << bit);
			assert_as_read(rig);
			bytes[i] = was;
		}
	}
}

/* Each byte that is read of a piece of code and of a method, changed since. */
static void test_what_has_changed_is_read(void **state)
{
	struct rig *rig = *state;
	const struct sf_hotspot *hotspot = &rig->jvm.hotspot;
	struct sf_method method;

	assert_true(hotspot->header_size > 100 && hotspot->header_size < SF_HOTSPOT_MAX_HEADER);
	assert_changes_are_read(rig, header_of(rig, 1), hotspot->header_size, false);
	assert_true(sf_hotspot_method(hotspot, &rig->jvm.memory, rig->methods[1], &method));
	assert_changes_are_read(rig, rig->memory + (method.address - FAKE_BASE), 16, false);
	assert_changes_are_read(rig, rig->memory + (method.constant - FAKE_BASE),
				hotspot->sizes[SF_HS_SIZE_CONST_METHOD], false);
}

static void test_freed_and_made_anew(void **state)
{
	struct rig *rig = *state;
	const struct sf_trace *trace = &rig->workspace->trace;
	const struct sf_hotspot *hotspot = &rig->jvm.hotspot;
	struct sf_blob blob;

	walk(rig, &rig->known);
	assert_true(sf_hotspot_blob(hotspot, &rig->jvm.memory, rig->code[2], &blob));
	*(uint32_t *)(uintptr_t)(blob.address + hotspot->fields[SF_HS_NM_COMPILE_ID].at) = 4711;
	walk(rig, &rig->known);
	assert_int_equal(trace->n_frames, ALL);
	assert_int_equal(trace->frames[2].id, 4711);
	assert_false(trust_of(rig)->is_over);
	assert_int_equal(trust_of(rig)->n, 3);
	/* Freed, it is no code. */
	header_of(rig, 2)[hotspot->fields[SF_HS_BLOCK_USED].at] = 0;
	walk(rig, &rig->known);
	assert_true(trace->n_frames < ALL);
}

static void test_a_method_made_anew(void **state)
{
	struct rig *rig = *state;
	const struct sf_hotspot *hotspot = &rig->jvm.hotspot;
	struct sf_method method;

	walk(rig, &rig->known);
	assert_true(sf_hotspot_method(hotspot, &rig->jvm.memory, rig->methods[1], &method));
	*(uint16_t *)(uintptr_t)(method.constant + hotspot->fields[SF_HS_CONST_CODE_SIZE].at) = 7;
	for (unsigned i = 0; i < 2; i++) {
		walk(rig, &rig->known);
		assert_int_equal(rig->workspace->trace.n_frames, ALL);
		assert_false(trust_of(rig)->is_over);
		assert_int_equal(trust_of(rig)->n, 2 + i);
	}
}

/* Two threads keep something at once, so that neither is kept whole. */
static void tear(_Atomic uint64_t *known, size_t n, size_t n_words, unsigned word, const void *other)
{
	uint64_t value;

	memcpy(&value, (const uint8_t *)other + 8 * word, sizeof(value));
	for (size_t i = 0; i < n; i++) {
		if (atomic_load(&known[i * n_words]))
			atomic_store(&known[i * n_words + word], value);
	}
}

static void test_torn(void **state)
{
	struct rig *rig = *state;
	const struct sf_hotspot *hotspot = &rig->jvm.hotspot;
	struct sf_method method;

	for (unsigned from = 0; from < 3; from++) {
		assert_true(sf_hotspot_method(hotspot, &rig->jvm.memory, rig->methods[from], &method));
		for (unsigned word = 0; word < SF_METHOD_WORDS; word++) {
			assert_as_read(rig);
			tear(rig->known.methods[0], SF_KNOWN_METHODS, SF_METHOD_WORDS, word, &method);
			assert_as_read(rig);
		}
	}
}

static void test_more_than_are_taken(void **state)
{
	struct rig *rig = *state;
	const struct sf_hotspot *hotspot = &rig->jvm.hotspot;
	struct sf_method last;

	make_stack(rig, DEEP, FIRST_CALL);
	for (unsigned i = 0; i < 3; i++) {
		assert_as_read(rig);
		assert_int_equal(rig->workspace->trace.n_frames, 2 * DEEP + 1);
	}
	assert_int_equal(trust_of(rig)->n, SF_CACHED_METADATA);
	/* Those for which there was no room. */
	assert_changes_are_read(rig, header_of(rig, DEEP - 1), hotspot->header_size, !is_long_form());
	assert_true(sf_hotspot_method(hotspot, &rig->jvm.memory, rig->methods[DEEP - 1], &last));
	assert_changes_are_read(rig, rig->memory + (last.constant - FAKE_BASE),
				hotspot->sizes[SF_HS_SIZE_CONST_METHOD], !is_long_form());
}

/* The kernel gives nothing of a method that is known: it is as if it were not. */
static void test_a_method_that_cannot_be_read(void **state)
{
	struct rig *rig = *state;
	struct sf_method method;
	uint8_t *page;

	assert_as_read(rig);
	assert_int_equal(rig->workspace->trace.n_frames, ALL);
	assert_true(sf_hotspot_method(&rig->jvm.hotspot, &rig->jvm.memory, rig->methods[1], &method));
	page = rig->memory + ((method.constant - FAKE_BASE) & ~(PAGE - 1ul));
	assert_int_equal(mprotect(page, PAGE, PROT_NONE), 0);
	assert_as_read(rig);
	assert_int_equal(rig->workspace->trace.frames[4].bci, -1);
	assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_WRITE), 0);
	assert_as_read(rig);
	assert_int_equal(rig->workspace->trace.frames[4].bci, 1);
}

static void test_code_that_cannot_be_read(void **state)
{
	struct rig *rig = *state;
	uint8_t *code = rig->memory + (FAKE_CODE - FAKE_BASE), *code_of_some;

	rig->code[2] = rig->code[50];
	make_stack(rig, 3, FIRST_CALL);
	assert_as_read(rig);
	assert_int_equal(rig->workspace->trace.n_frames, ALL);
	/* Only what is below the innermost, which alone would do for a walk. */
	code_of_some = rig->memory + ((rig->code[50] - FAKE_BASE) & ~(PAGE - 1ul));
	assert_int_equal(mprotect(code_of_some, 2 * PAGE, PROT_NONE), 0);
	walk(rig, &rig->known);
	assert_true(rig->workspace->trace.n_frames < ALL);
	assert_false(trust_of(rig)->is_over);
	assert_int_equal(mprotect(code, FAKE_CODE_SIZE, PROT_NONE), 0);
	assert_as_read(rig);
	assert_true(rig->workspace->trace.n_frames < ALL);
	assert_int_equal(mprotect(code, FAKE_CODE_SIZE, PROT_READ), 0);
	assert_as_read(rig);
	assert_int_equal(rig->workspace->trace.n_frames, ALL);
}

/* Wherever in the code it stands. Also where the stack does not go on. */
static void test_wherever_it_stands(void **state)
{
	struct rig *rig = *state;
	const uint64_t start = rig->jvm.hotspot.code.start;
	uint8_t *behind = rig->memory + (FAKE_STACK - FAKE_BASE) + PAGE;

	for (unsigned stack = 0; stack < 2; stack++) {
		for (uint64_t pc = start; pc < rig->code[3]; pc++) {
			rig->jvm.still.regs.pc = pc;
			assert_as_read(rig);
		}
		assert_int_equal(mprotect(behind, PAGE, PROT_NONE), 0);
	}
	rig->jvm.still.regs.pc = rig->code[0] + FIRST_CALL;
	assert_as_read(rig);
	assert_int_equal(rig->workspace->trace.n_frames, ALL);
	assert_true(rig->workspace->piece_size < PAGE);
	/* No stack at all, and no code. */
	rig->jvm.still.regs.r[RSP] = FAKE_BASE - 4096;
	assert_as_read(rig);
	rig->jvm.still.regs.pc = rig->jvm.hotspot.code.end - 1;
	assert_as_read(rig);
	rig->jvm.still.regs.pc = FAKE_BASE;
	assert_as_read(rig);
}

/* The next walk of a thread reads as much of the stack as the last one needed; and more when it needs more. */
static void test_as_much_as_was_wanted(void **state)
{
	struct rig *rig = *state;
	const struct sf_workspace *workspace = rig->workspace;
	const uint64_t sp = FAKE_STACK + 0x100;
	uint64_t top;

	walk(rig, &rig->known);
	assert_int_equal(workspace->piece_size, workspace->piece_capacity);
	top = workspace->top;
	assert_in_range(top, sp, sp + 0x300);
	assert_as_read(rig);
	assert_int_equal(workspace->piece_start + workspace->piece_size, top);
	make_stack(rig, DEEP, FIRST_CALL);
	assert_as_read(rig);
	assert_true(workspace->top > top);
	make_stack(rig, 3, LAST_CALL);
	assert_as_read(rig);
	/* Another thread's: far above, and below. */
	for (unsigned i = 0; i < 2; i++) {
		sf_reg_set(&rig->jvm.still.regs, RSP, i ? FAKE_STACK - 0x8000 : sp + 0x8000);
		walk(rig, &rig->known);
		assert_int_equal(workspace->piece_size, workspace->piece_capacity);
		assert_as_read(rig);
		assert_true(workspace->piece_size < workspace->piece_capacity);
	}
}

/* --- what can be loaded --- */

/* All of the code heap, or its first bytes. */
static void lend(struct rig *rig, uint64_t size)
{
	struct sf_hotspot_heap *heap = &rig->jvm.hotspot.heaps[0];

	atomic_store(&heap->loads_to, size ? FAKE_CODE + size : 0);
	atomic_store(&heap->segmap_loads_to, size ? rig->jvm.segmap + FAKE_CODE_SIZE / 128 : 0);
}

/* With what is lent a walk sees what one sees that reads all. */
static void assert_as_without(struct rig *rig, uint64_t size)
{
	const struct sf_trace *trace = &rig->workspace->trace;
	static struct sf_frame frames[4 * DEEP];
	enum sf_end end;
	uint32_t n;

	lend(rig, 0);
	end = walk(rig, NULL);
	n = trace->n_frames;
	memcpy(frames, trace->frames, n * sizeof(frames[0]));
	lend(rig, size);
	assert_int_equal(walk(rig, &rig->known), end);
	assert_int_equal(trace->n_frames, n);
	assert_memory_equal(trace->frames, frames, n * sizeof(frames[0]));
}

/* Nothing tells any more where a piece of code begins. */
static void lose_segments(struct rig *rig)
{
	memset(rig->memory + (rig->jvm.segmap - FAKE_BASE), 0xff, FAKE_CODE_SIZE / 128);
}

/* It is looked at itself, so that nothing of it is on trust. */
static void test_code_is_loaded(void **state)
{
	struct rig *rig = *state;
	const struct sf_trace *trace = &rig->workspace->trace;

	for (uint64_t pc = rig->jvm.hotspot.code.start; pc < rig->code[3]; pc++) {
		rig->jvm.still.regs.pc = pc;
		assert_as_without(rig, FAKE_CODE_SIZE);
	}
	rig->jvm.still.regs.pc = rig->code[1] + FIRST_CALL;
	assert_as_without(rig, FAKE_CODE_SIZE);
	rig->jvm.still.regs.pc = rig->code[0] + FIRST_CALL;
	walk(rig, &rig->known);
	assert_int_equal(trace->n_frames, ALL);
	assert_int_equal(trust_of(rig)->n, 3);
	lose_segments(rig);
	walk(rig, &rig->known);
	assert_true(trace->n_frames < ALL);
}

/* Bytes that were not lent may be nowhere: also where they are in one piece with lent ones. */
static void test_code_that_is_not_lent(void **state)
{
	struct rig *rig = *state;
	const uint64_t last = rig->code[DEEP - 1] - FAKE_CODE, lent = last - last % PAGE;
	uint8_t *behind = rig->memory + (FAKE_CODE - FAKE_BASE) + lent;

	assert_in_range(lent, PAGE, last);
	assert_int_equal(mprotect(behind, FAKE_CODE_SIZE - lent, PROT_NONE), 0);
	assert_as_without(rig, lent);
	assert_int_equal(rig->workspace->trace.n_frames, ALL);
	for (uint64_t pc = FAKE_CODE + lent - 300; pc < FAKE_CODE + lent + 300; pc++) {
		rig->jvm.still.regs.pc = pc;
		assert_as_without(rig, lent);
	}
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, make, destroy)
	const struct CMUnitTest tests[] = {
		T(test_what_is_known_is_not_read_again),
		T(test_names),
		T(test_what_has_changed_is_read),
		T(test_freed_and_made_anew), T(test_a_method_made_anew), T(test_torn), T(test_more_than_are_taken),
		T(test_a_method_that_cannot_be_read),
		T(test_code_that_cannot_be_read), T(test_wherever_it_stands), T(test_as_much_as_was_wanted),
		T(test_code_is_loaded), T(test_code_that_is_not_lent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

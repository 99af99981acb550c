/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of a libjvm that do not fit together: what cannot be is not taken in, so that nothing reads by
 * it. Tables are those of a machine made by hand, with a number in them changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fake_use.h"
#include "frozen/hotspot/step.h"

#define STRUCT_STRIDE 48 /* of the entries that fake_tables.c makes */
#define TYPE_STRIDE 40
#define TEXT 16          /* where in an entry its columns are */
#define IS_STATIC 24
#define OFFSET 32
#define ADDRESS 40
#define SIZE 32

static const unsigned versions[] = { 8, 11, 17, 21, 25, 26 };

static uint64_t method;

static int make(void **state)
{
	assert_int_equal(fake_jvm_set_up(state), 0);
	method = fake_jvm_fill(*state);
	return 0;
}

static uint64_t table_of(const struct fake_jvm *jvm, enum sf_hotspot_export table)
{
	uint64_t start;

	memcpy(&start, jvm->bytes + (jvm->exports.at[table] - FAKE_BASE), sizeof(start));
	return start;
}

/* Where the entry of a field is. */
static uint64_t entry_of(struct fake_jvm *jvm, const char *type, const char *name)
{
	const struct fake_field *field = fake_layout_field(&jvm->layout, type, name);

	assert_non_null(field);
	return table_of(jvm, SF_HE_STRUCTS) + STRUCT_STRIDE * (uint64_t)(field - jvm->layout.fields);
}

static uint64_t size_entry_of(struct fake_jvm *jvm, const char *type)
{
	uint64_t at = table_of(jvm, SF_HE_TYPES);

	for (unsigned i = 0; i < jvm->layout.n_values; i++) {
		if (!jvm->layout.values[i].is_size)
			continue;
		if (strcmp(jvm->layout.values[i].name, type) == 0)
			return at;
		at += TYPE_STRIDE;
	}
	fail();
	return 0;
}

/* Attached to anew, and walked and described if it may be. The note is "" where it is refused. */
static bool attach(struct fake_jvm *jvm, char note[SF_HOTSPOT_NOTE], struct sf_error *err)
{
	*err = (struct sf_error){ 0 };
	note[0] = 0;
	if (!sf_hotspot_attach(&jvm->memory, &jvm->exports, &jvm->hotspot, note, err))
		return false;
	jvm->still.regs = (struct sf_regs){ .pc = jvm->interpreter };
	sf_reg_set(&jvm->still.regs, 7, FAKE_STACK + 0x100);
	sf_reg_set(&jvm->still.regs, 6, FAKE_STACK + 0x200);
	fake_jvm_use(jvm, method);
	return true;
}

static bool is_taken(const struct fake_jvm *jvm, enum sf_hotspot_field_name name)
{
	return sf_hotspot_has(&jvm->hotspot, name);
}

static bool is_in(const char *list, const char *word)
{
	const char *at = strstr(list, word);
	const size_t n = strlen(word);

	for (; at; at = strstr(at + 1, word)) {
		if ((at == list || at[-1] == '|') && (!at[n] || at[n] == '|'))
			return true;
	}
	return false;
}

/* Everything that a real machine tells is within the limits. */
static void test_real_tables_are_within_limits(void **state)
{
	static const char *const names[SF_HS_N_FIELDS][2] = {
#define X(name, types, fields, width) { types, fields },
		SF_HOTSPOT_FIELDS(X)
#undef X
	};
	static const char *const sizes[SF_HS_N_SIZES] = {
#define X(name, types) types,
		SF_HOTSPOT_SIZES(X)
#undef X
	};
	struct fake_jvm *jvm = *state;
	char note[SF_HOTSPOT_NOTE];

	for (size_t v = 0; v < sizeof(versions) / sizeof(versions[0]); v++) {
		memset(jvm, 0, sizeof(*jvm));
		jvm->version = versions[v];
		assert_true(fake_jvm_make(jvm, note, NULL));
		for (unsigned f = 0; f < jvm->layout.n_fields; f++) {
			const struct fake_field *field = &jvm->layout.fields[f];

			for (unsigned i = 0; i < SF_HS_N_FIELDS; i++) {
				if (is_in(names[i][0], field->type) && is_in(names[i][1], field->name) &&
				    !is_taken(jvm, i))
					fail_msg("JDK %u: %s.%s", versions[v], field->type, field->name);
			}
		}
		for (unsigned n = 0; n < jvm->layout.n_values; n++) {
			for (unsigned i = 0; i < SF_HS_N_SIZES && jvm->layout.values[n].is_size; i++)
				assert_true(!is_in(sizes[i], jvm->layout.values[n].name) ||
					    jvm->hotspot.sizes[i] == jvm->layout.values[n].value);
		}
	}
}

/* The header of a piece of code is read into a buffer, and its fields are behind that of its block. */
static void test_sizes_beyond_their_limits(void **state)
{
	static const struct {
		const char *type;
		uint64_t size;
	} wrong[] = {
		{ "HeapBlock", 0 }, { "HeapBlock", 8 }, { "HeapBlock", SF_HOTSPOT_MAX_BLOCK + 1 },
		{ "HeapBlock", SF_HOTSPOT_MAX_HEADER }, { "HeapBlock", 1 << 20 },
		{ "HeapBlock", UINT64_MAX }, { "HeapBlock", UINT64_C(1) << 32 | 16 },
		{ "ConstMethod", 0 }, { "ConstMethod", SF_HOTSPOT_MAX_CONST + 1 },
		{ "ConstMethod", 8 }, { "ConstMethod", 1 << 20 },
	};
	struct fake_jvm *jvm = *state;
	char note[SF_HOTSPOT_NOTE];
	struct sf_error err;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const uint64_t at = size_entry_of(jvm, wrong[i].type) + SIZE;
		const uint64_t good = fake_layout_value(&jvm->layout, wrong[i].type);

		fake_put(jvm, at, wrong[i].size, 8);
		assert_false(attach(jvm, note, &err));
		assert_int_equal(err.code, SF_E_UNSUPPORTED);
		assert_non_null(strstr(err.text, wrong[i].type));
		fake_put(jvm, at, good, 8);
		assert_true(attach(jvm, note, &err));
		assert_string_equal(note, "");
	}
}

static void test_fields_beyond_their_limits(void **state)
{
	static const struct {
		const char *type, *name;
		uint64_t offset;
		const char *lost; /* NULL: all */
	} wrong[] = {
		{ "CodeBlob", "_name", SF_HOTSPOT_MAX_BLOB - 8 + 1, NULL },
		{ "CodeBlob", "_size", SF_HOTSPOT_MAX_HEADER, NULL },
		{ "CodeBlob", "_code_begin", UINT64_MAX, NULL },
		{ "CodeBlob", "_frame_size", UINT64_MAX - 7, NULL },
		{ "HeapBlock::Header", "_used", 16, NULL }, /* in the CodeBlob */
		{ "VirtualSpace", "_low_boundary", 1 << 19, NULL },
		{ "ConstMethod", "_code_size", 47, NULL },
		{ "nmethod", "_comp_level", SF_HOTSPOT_MAX_BLOB, "which compiler made a method" },
		{ "nmethod", "_orig_pc_offset", UINT64_MAX, "lines of deoptimized methods" },
		{ "PcDesc", "_scope_decode_offset", 16, "inlined calls and lines" },
		{ "OSThread", "_thread_id", UINT64_C(1) << 40, "the full names of threads" },
	};
	struct fake_jvm *jvm = *state;
	char note[SF_HOTSPOT_NOTE];
	struct sf_error err;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const struct fake_field *field = fake_layout_field(&jvm->layout, wrong[i].type, wrong[i].name);
		const uint64_t at = entry_of(jvm, wrong[i].type, wrong[i].name) + OFFSET;

		fake_put(jvm, at, wrong[i].offset, 8);
		assert_int_equal(attach(jvm, note, &err), wrong[i].lost != NULL);
		assert_non_null(strstr(wrong[i].lost ? note : err.text,
				       wrong[i].lost ? wrong[i].lost : wrong[i].name));
		fake_put(jvm, at, field->offset, 8);
	}
}

/* An address where an offset is expected, an offset where an address is; a pointer that is no pointer. */
static void test_fields_of_another_kind(void **state)
{
	static const struct {
		const char *type, *name;
		bool pointer;    /* which is called an int */
	} wrong[] = {
		{ "CodeBlob", "_size", false }, { "HeapBlock::Header", "_used", false },
		{ "Method", "_constMethod", false }, { "CodeCache", "_heaps", false },
		{ "StubRoutines", "_call_stub_return_address", false },
		{ "Method", "_constMethod", true }, { "CodeBlob", "_name", true },
	};
	struct fake_jvm *jvm = *state;
	const uint64_t text = fake_string(jvm, "int");
	char note[SF_HOTSPOT_NOTE];
	struct sf_error err;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const struct fake_field *field = fake_layout_field(&jvm->layout, wrong[i].type, wrong[i].name);
		const uint64_t at = entry_of(jvm, wrong[i].type, wrong[i].name);
		uint8_t before[STRUCT_STRIDE];

		memcpy(before, jvm->bytes + (at - FAKE_BASE), sizeof(before));
		if (wrong[i].pointer)
			fake_put(jvm, at + TEXT, text, 8);
		else
			fake_put(jvm, at + IS_STATIC, !field->is_static, 4);
		fake_put(jvm, at + ADDRESS, field->is_static ? field->address : FAKE_BASE + 64, 8);
		assert_false(attach(jvm, note, &err));
		assert_int_equal(err.code, SF_E_UNSUPPORTED);
		assert_non_null(strstr(err.text, wrong[i].name));
		fake_bytes(jvm, at, before, sizeof(before));
	}
	assert_true(attach(jvm, note, &err));
}

/* A heap of all addresses would make all code Java's; the interpreter would end before it begins. */
static void test_places_that_cannot_be(void **state)
{
	struct fake_jvm *jvm = *state;
	const struct fake_field *memory = fake_layout_field(&jvm->layout, "CodeHeap", "_memory");
	const struct fake_field *high = fake_layout_field(&jvm->layout, "VirtualSpace", "_high_boundary");
	const struct fake_field *limit = fake_layout_field(&jvm->layout, "StubQueue", "_stub_buffer");
	const uint64_t heap = jvm->hotspot.heaps[0].memory_space - memory->offset;
	char note[SF_HOTSPOT_NOTE];
	struct sf_error err;
	uint64_t queue;

	fake_put(jvm, heap + memory->offset + high->offset, UINT64_MAX, 8);
	assert_false(attach(jvm, note, &err));
	fake_put(jvm, heap + memory->offset + high->offset, FAKE_CODE + FAKE_CODE_SIZE, 8);
	assert_true(attach(jvm, note, &err));
	assert_true(sf_hotspot_get(&jvm->hotspot, &jvm->memory, SF_HS_INTERPRETER, 0, &queue));
	fake_put(jvm, queue + limit->offset, UINT64_MAX - 100, 8);
	assert_false(attach(jvm, note, &err));
}

/* --- what a walk costs at most --- */

static unsigned n_reads;
static bool (*real_read)(const struct sf_reader *reader, void *ret, uint64_t address, size_t size);

static bool count_read(const struct sf_reader *reader, void *ret, uint64_t address, size_t size)
{
	n_reads++;
	return real_read(reader, ret, address, size);
}

static void count_reads(struct fake_jvm *jvm)
{
	real_read = jvm->memory.read;
	jvm->memory.read = jvm->still.memory.read = count_read;
	n_reads = 0;
}

/* From segment to segment, by small steps or by those that are just too large for what is read at once, up to the start. */
static void test_long_ways_through_the_segment_map(void **state)
{
	struct fake_jvm *jvm = *state;
	const uint32_t n = FAKE_CODE_SIZE >> jvm->hotspot.heaps[0].log2_segment;
	struct sf_blob blob;

	count_reads(jvm);
	for (unsigned back = 1; back <= 65; back += 64) {
		for (uint32_t i = 0; i < n; i++)
			fake_put(jvm, jvm->segmap + i, i < back ? i : back, 1);
		n_reads = 0;
		sf_hotspot_blob(&jvm->hotspot, &jvm->memory, FAKE_CODE + FAKE_CODE_SIZE - 1, &blob);
		assert_in_range(n_reads, 1, n / 60 + 4);
	}
	for (uint32_t i = 0; i < n; i++) /* it leads nowhere */
		fake_put(jvm, jvm->segmap + i, 0xff, 1);
	assert_false(sf_hotspot_blob(&jvm->hotspot, &jvm->memory, FAKE_CODE + FAKE_CODE_SIZE - 1, &blob));
}

#define WORDS 87         /* from one frame to the next */
#define FIRST_WORDS 85

static void put_word(struct fake_jvm *jvm, unsigned word, uint64_t value)
{
	fake_put(jvm, FAKE_STACK + 8 * (uint64_t)word, value, 8);
}

/*
 * Each frame's caller is found by looking, in the last of the words that may be pushed; what stands before it leads a long way
 * through the segment map, to nothing. Two words that are popped behind the call hide what shows the caller to be right.
 */
static void make_guesses(struct fake_jvm *jvm, uint64_t returns)
{
	const uint64_t wrong = FAKE_CODE + FAKE_CODE_SIZE - 8;
	unsigned word = FIRST_WORDS;

	for (unsigned i = 0; i < FAKE_STACK_SIZE / 8; i++)
		put_word(jvm, i, wrong);
	put_word(jvm, 1, 0);
	put_word(jvm, FIRST_WORDS - 1, returns);
	for (; word + WORDS <= FAKE_STACK_SIZE / 8; word += WORDS) {
		put_word(jvm, word + 1, returns);
		put_word(jvm, word + 3, 0);
		put_word(jvm, word + WORDS - 1, returns);
	}
}

static void test_stacks_that_are_all_guesses(void **state)
{
	struct fake_jvm *jvm = *state;
	static const uint8_t around[] = { 0xe8, 0, 0, 0, 0, 0x58, 0x58 }; /* a call, and pops behind it */
	const uint64_t code = fake_code(jvm, &(struct fake_code){
		.name = "nmethod", .size = 128, .frame_size = 2, .frame_complete = 28, .method = method,
		.level = 1 });
	const uint32_t n = FAKE_CODE_SIZE >> jvm->hotspot.heaps[0].log2_segment;
	unsigned looks;

	fake_bytes(jvm, code + 59, around, sizeof(around));
	for (uint64_t i = (code + 512 - FAKE_CODE) >> jvm->hotspot.heaps[0].log2_segment; i < n; i++)
		fake_put(jvm, jvm->segmap + i, 1, 1);
	make_guesses(jvm, code + 64);
	count_reads(jvm);
	jvm->still.regs = (struct sf_regs){ .pc = code + 64 };
	sf_reg_set(&jvm->still.regs, 7, FAKE_STACK);
	sf_walk(&jvm->still, &jvm->trace);
	assert_in_range(jvm->trace.n_frames, 10, jvm->trace.capacity - 1);
	looks = SF_HOTSPOT_LOOKS + SF_HOTSPOT_LOOKS_PER_FRAME * jvm->trace.capacity;
	assert_in_range(n_reads, looks, 40 * looks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_real_tables_are_within_limits, make, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_sizes_beyond_their_limits, make, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_fields_beyond_their_limits, make, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_fields_of_another_kind, make, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_places_that_cannot_be, make, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_long_ways_through_the_segment_map, make, fake_jvm_tear_down),
		cmocka_unit_test_setup_teardown(test_stacks_that_are_all_guesses, make, fake_jvm_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Java virtual machine whose tables are made up: each field, size, number and exported variable of a
 * real layout may say anything, or the tables are the input's from the first to the last entry. An
 * input is
 *
 * 	1 byte	  low 3 bits: whose layout; bit 3: tables of fields and sizes that the input makes up,
 * 	          4 bytes for each field and 3 for each size
 * 	          pc, sp, fp, r13, r15, rbx, rax: 3 bytes each, from the start of its memory
 * 	          the rest: changes, 1 byte kind and what that takes (`changes` below)
 *
 * What is missing is zero.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fake_use.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STRUCT_STRIDE 48 /* of the entries that tests/unit/fake_tables.c makes */
#define TYPE_STRIDE 40
#define INT_STRIDE 16
#define MADE_UP 8

static const unsigned registers[] = { 7, 6, 13, 15, 3, 0 };
static const unsigned versions[] = { 8, 11, 17, 21, 25, 26 };
#define N_VERSIONS (sizeof(versions) / sizeof(versions[0]))

static const char *const texts[] = { "int", "uint32_t", "u2", "bool", "int16_t", "address" };
#define N_TEXTS (sizeof(texts) / sizeof(texts[0]))

static const char *const names[SF_HS_N_FIELDS][2] = {
#define X(name, types, fields, width) { types, fields },
	SF_HOTSPOT_FIELDS(X)
#undef X
};

static const char *const size_names[SF_HS_N_SIZES] = {
#define X(name, types) types,
	SF_HOTSPOT_SIZES(X)
#undef X
};

/* Numbers at which something may end. */
static const uint64_t edges[] = {
	0, 1, 4, 7, 8, 9, 16, 24, 32, 33, 40, 48, 64, 88, 95, 96, 97, 128, 255, 256, 328, 336, 360, 368,
	384, 392, 393, 399, 400, 401, 408, 4096, 65535, 65536, (1 << 20) - 1, 1 << 20, 1 << 24,
	INT32_MAX, UINT32_MAX, UINT64_C(1) << 32, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX - 4096,
	UINT64_MAX - 8, UINT64_MAX - 7, UINT64_MAX, FAKE_BASE, FAKE_CODE, FAKE_STACK,
};
#define N_EDGES (sizeof(edges) / sizeof(edges[0]))

struct input {
	const uint8_t *bytes;
	size_t size;
};

static uint64_t take(struct input *input, size_t size)
{
	const size_t n = size < input->size ? size : input->size;
	uint64_t value = 0;

	memcpy(&value, input->bytes, n);
	input->bytes += n;
	input->size -= n;
	return value;
}

/* An edge, or any number. */
static uint64_t take_value(struct input *input)
{
	uint64_t which = take(input, 1);

	return which < N_EDGES ? edges[which] : take(input, which < 128 ? 2 : 8);
}

/* --- machines without a fault, made once --- */

struct good {
	struct fake_jvm jvm;
	uint64_t method;
	uint64_t fields, sizes;            /* tables with room for all that is looked for */
	uint64_t types[SF_HS_N_FIELDS], words[SF_HS_N_FIELDS], size_words[SF_HS_N_SIZES];
	uint64_t texts[N_TEXTS];
};

/* The first of the words between bars. */
static uint64_t first_word(struct fake_jvm *jvm, const char *list)
{
	char word[96];
	size_t n = strcspn(list, "|");

	memcpy(word, list, n);
	word[n] = 0;
	return fake_string(jvm, word);
}

static void make_good(struct good *good, unsigned version)
{
	char note[SF_HOTSPOT_NOTE];

	good->jvm.version = version;
	if (!fake_jvm_make(&good->jvm, note, NULL))
		abort();
	good->method = fake_jvm_fill(&good->jvm);
	good->fields = fake_alloc(&good->jvm, STRUCT_STRIDE * (SF_HS_N_FIELDS + 1));
	good->sizes = fake_alloc(&good->jvm, TYPE_STRIDE * (SF_HS_N_SIZES + 1));
	for (unsigned i = 0; i < SF_HS_N_FIELDS; i++) {
		good->types[i] = first_word(&good->jvm, names[i][0]);
		good->words[i] = first_word(&good->jvm, names[i][1]);
	}
	for (unsigned i = 0; i < SF_HS_N_SIZES; i++)
		good->size_words[i] = first_word(&good->jvm, size_names[i]);
	for (unsigned i = 0; i < N_TEXTS; i++)
		good->texts[i] = fake_string(&good->jvm, texts[i]);
}

static const struct good *find_good(unsigned which)
{
	static struct good *made[N_VERSIONS];

	if (!made[which]) {
		made[which] = calloc(1, sizeof(*made[which]));
		if (!made[which])
			abort();
		make_good(made[which], versions[which]);
	}
	return made[which];
}

/* --- tables that the input makes up --- */

static void make_up_fields(struct fake_jvm *jvm, const struct good *good, struct input *input)
{
	uint64_t at = good->fields;

	for (unsigned i = 0; i < SF_HS_N_FIELDS; i++, at += STRUCT_STRIDE) {
		const unsigned flags = (unsigned)take(input, 1);
		const uint64_t value = take(input, 3);

		if (flags & 1) /* this one is not there */
			continue;
		fake_put(jvm, at, good->types[i], 8);
		fake_put(jvm, at + 8, good->words[i], 8);
		fake_put(jvm, at + 16, flags & 2 ? good->texts[(flags >> 5) % N_TEXTS] : 0, 8);
		fake_put(jvm, at + 24, (flags >> 2 & 1) ^ good->jvm.hotspot.fields[i].is_static, 4);
		fake_put(jvm, at + 32, flags & 8 ? edges[value % N_EDGES] : value & 511, 8);
		fake_put(jvm, at + 40, good->jvm.hotspot.fields[i].is_static && !(flags & 16) ?
			 good->jvm.hotspot.fields[i].at : FAKE_BASE + value % FAKE_SIZE, 8);
	}
	fake_put(jvm, jvm->exports.at[SF_HE_STRUCTS], good->fields, 8);
}

static void make_up_sizes(struct fake_jvm *jvm, const struct good *good, struct input *input)
{
	uint64_t at = good->sizes;

	for (unsigned i = 0; i < SF_HS_N_SIZES; i++, at += TYPE_STRIDE) {
		const unsigned flags = (unsigned)take(input, 1);
		const uint64_t value = take(input, 2);

		fake_put(jvm, at, good->size_words[i], 8);
		fake_put(jvm, at + 32, flags & 1 ? edges[value % N_EDGES] : value, 8);
	}
	fake_put(jvm, jvm->exports.at[SF_HE_TYPES], good->sizes, 8);
}

/* --- changes --- */

static uint64_t table_of(const struct fake_jvm *jvm, enum sf_hotspot_export table)
{
	uint64_t start;

	memcpy(&start, jvm->bytes + (jvm->exports.at[table] - FAKE_BASE), 8);
	return start;
}

/* Puts it where it is in the machine's memory. */
static void put(struct fake_jvm *jvm, uint64_t address, uint64_t value)
{
	if (address >= FAKE_BASE && address <= FAKE_BASE + FAKE_SIZE - 8)
		fake_put(jvm, address, value, 8);
}

static void change_field(struct fake_jvm *jvm, struct input *input)
{
	const uint64_t at = table_of(jvm, SF_HE_STRUCTS) + STRUCT_STRIDE * take(input, 1);
	const uint64_t column = take(input, 1) % 6;

	put(jvm, at + 8 * column, take_value(input));
}

static void change_size(struct fake_jvm *jvm, struct input *input)
{
	const uint64_t at = table_of(jvm, SF_HE_TYPES) + TYPE_STRIDE * (take(input, 1) % 16);

	put(jvm, at + 32, take_value(input));
}

static void change_number(struct fake_jvm *jvm, struct input *input)
{
	const uint64_t at = table_of(jvm, SF_HE_INTS) + INT_STRIDE * (take(input, 1) % 4);

	put(jvm, at + 8, take_value(input));
}

static void change_export(struct fake_jvm *jvm, struct input *input)
{
	const uint64_t at = jvm->exports.at[take(input, 1) % SF_HE_N];

	put(jvm, at, take_value(input));
}

/* One field is called as another one, or has the text of another. */
static void change_name(struct fake_jvm *jvm, struct input *input)
{
	const uint64_t table = table_of(jvm, SF_HE_STRUCTS);
	const uint64_t to = table + STRUCT_STRIDE * take(input, 1), from = table + STRUCT_STRIDE * take(input, 1);
	uint64_t names_of[2];

	if (from < FAKE_BASE || from > FAKE_BASE + FAKE_SIZE - sizeof(names_of))
		return;
	memcpy(names_of, jvm->bytes + (from - FAKE_BASE), sizeof(names_of));
	put(jvm, to, names_of[0]);
	put(jvm, to + 8, names_of[1]);
}

static void change_bytes(struct fake_jvm *jvm, struct input *input)
{
	uint32_t address = (uint32_t)take(input, 3) % (FAKE_SIZE - 16);
	unsigned n = take(input, 1) & 15;

	for (unsigned i = 0; i < n; i++)
		jvm->bytes[address + i] = (uint8_t)take(input, 1);
}

static void change(struct fake_jvm *jvm, struct input *input)
{
	static void (*const changes[])(struct fake_jvm *jvm, struct input *input) = {
		change_field, change_size, change_number, change_export, change_name, change_bytes,
	};

	while (input->size)
		changes[take(input, 1) % (sizeof(changes) / sizeof(changes[0]))](jvm, input);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fake_jvm jvm;
	struct input input = { data, size };
	char note[SF_HOTSPOT_NOTE] = "";
	struct sf_error err = { 0 };
	const struct good *good;
	unsigned mode = (unsigned)take(&input, 1);

	good = find_good((mode & 7) % N_VERSIONS);
	fake_jvm_copy(&jvm, &good->jvm);
	jvm.still.regs.pc = FAKE_BASE + take(&input, 3);
	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++)
		sf_reg_set(&jvm.still.regs, registers[i], FAKE_BASE + take(&input, 3));
	if (mode & MADE_UP) {
		make_up_fields(&jvm, good, &input);
		make_up_sizes(&jvm, good, &input);
	}
	change(&jvm, &input);
	if (!sf_hotspot_attach(&jvm.memory, &jvm.exports, &jvm.hotspot, note, &err)) {
		if (!err.text[0] || memchr(note, 0, sizeof(note)) == NULL)
			abort();
		return 0;
	}
	fake_jvm_use(&jvm, good->method);
	return 0;
}

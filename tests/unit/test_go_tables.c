/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind rows and names from the tables of Go's runtime, in each of their forms; and tables that are damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <unistd.h>

#include "elf/go_tables.h"
#include "elf_builder.h"
#include "frozen/arch.h"
#include "unwind/unwind.h"

#define TEXT 0x1000u
#define SIZE 320
#define LISTS 80
#define NAMES 110
#define FUNCTIONS 128
#define N 3

static const uint8_t code[0x100] = { 0xc3 };
static uint8_t tables[SIZE];

/* By the first word: where the text's address is (0: nowhere), the number of the word with the lists' offset, and sizes. */
static const struct form {
	uint32_t magic;
	unsigned text, names, lists, size, name_at, list_at;
} forms[] = {
	{ 0xfffffffa, 0, 2, 5, 8, 8, 20 },
	{ 0xfffffff0, 2, 3, 6, 4, 4, 16 },
	{ 0xfffffff1, 2, 3, 6, 4, 4, 16 },
};

static void put(size_t at, uint64_t value, size_t size)
{
	memcpy(tables + at, &value, size);
}

static void put_function(const struct form *form, unsigned i, uint64_t start, uint32_t distances, uint32_t lines)
{
	const size_t at = FUNCTIONS + 2 * form->size * i, described = 80 + 40 * i;

	put(at, start + (form->text ? 0 : TEXT), form->size);
	put(at + form->size, described, form->size);
	put(FUNCTIONS + described + form->name_at, 1 + 4 * i, 4);
	put(FUNCTIONS + described + form->list_at, distances, 4);
	put(FUNCTIONS + described + form->list_at + 8, lines, 4);
}

/* At 0 one with a frame of 8 bytes, which has 26 bytes of code. At 32 one of C. From 48 to 64 one with a frame from its start on. */
static void make(const struct form *form)
{
	static const uint8_t lists[] = {
		0,
		2, 4, 16, 18, 15, 4, 0,  /* 0 for 4 bytes, 8 for 18, 0 for 4 */
		2, 10, 8, 16, 0,         /* lines: 26 bytes */
		34, 16, 2, 16,           /* 16, for 16 bytes; what follows is another function's */
		2, 6, 0,                 /* 0 for 6 bytes, and as lines */
	};

	memset(tables, 0, sizeof(tables));
	put(0, form->magic, 4);
	put(6, 1, 1);
	put(7, 8, 1);
	put(8, N, 8);
	put(8 + 8 * form->text, form->text ? TEXT : N, 8);
	put(8 + 8 * form->names, NAMES, 8);
	memcpy(tables + NAMES, "\0m.a\0m.b\0m.c", 13);
	put(8 + 8 * form->lists, LISTS, 8);
	put(16 + 8 * form->lists, FUNCTIONS, 8);
	memcpy(tables + LISTS, lists, sizeof(lists));
	put_function(form, 0, 0, 1, 8);
	put_function(form, 1, 32, 0, 0);
	put_function(form, 2, 48, 13, 15);
	put(FUNCTIONS + 2 * form->size * N, 64 + (form->text ? 0 : TEXT), form->size);
}

static struct sf_table build(size_t size, bool with_go, uint16_t machine, void **block_ret)
{
	const struct elf_part parts[] = {
		{ .name = ".text", .segment = PT_LOAD, .segment_flags = PF_R | PF_X, .section_flags = SHF_ALLOC | SHF_EXECINSTR,
		  .address = TEXT, .bytes = code, .size = sizeof(code) },
		{ .name = ".gopclntab", .section_flags = SHF_ALLOC, .address = 0x4000, .bytes = tables, .size = size },
		{ .name = with_go ? ".go.buildinfo" : ".other", .section_flags = SHF_ALLOC, .address = 0x6000, .bytes = code, .size = 16 },
	};
	const struct elf_description description = { .machine = machine, .parts = parts, .n_parts = 3 };
	struct sf_error err = { 0 };
	struct sf_table table;
	size_t block_size;
	int fd = elf_build_fd(&description);

	assert_true(sf_unwind_build(fd, block_ret, &block_size, &err));
	assert_true(sf_table_init(&table, *block_ret, block_size));
	close(fd);
	return table;
}

/* -1: no rule. */
static int cfa_at(const struct sf_table *table, uint64_t offset)
{
	const struct sf_rules *rules = sf_table_find(table, TEXT + offset);

	if (!rules)
		return -1;
	assert_int_equal(rules->cfa.how, SF_HOW_REGISTER_PLUS);
	assert_int_equal(rules->cfa.reg, sf_arch_x86_64.sp);
	assert_int_equal(rules->ra.how, SF_HOW_AT_CFA);
	assert_int_equal(rules->ra.value, -8);
	return rules->cfa.value;
}

static void each_form(void **state)
{
	static const struct { uint64_t offset; int cfa; } places[] = {
		{ 0, 8 }, { 3, 8 }, { 4, 16 }, { 21, 16 }, { 22, 8 }, { 25, 8 }, { 26, -1 }, { 32, -1 }, { 47, -1 }, { 48, 24 },
		{ 63, 24 }, { 64, -1 },
	};
	void *block;
	(void)state;

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct sf_table table;

		make(&forms[i]);
		table = build(SIZE, true, EM_X86_64, &block);
		assert_true(table.header->flags & SF_TABLE_GO);
		for (size_t j = 0; j < sizeof(places) / sizeof(places[0]); j++) {
			if (cfa_at(&table, places[j].offset) != places[j].cfa)
				fail_msg("form %zu, offset %zu: %d", i, (size_t)places[j].offset, cfa_at(&table, places[j].offset));
		}
		sf_unwind_close(block, table.header->size);
	}
}

static bool open_go(struct sf_go_tables *ret)
{
	return sf_go_tables_open(&(struct sf_section){ .bytes = tables, .size = SIZE }, ret);
}

static void names(void **state)
{
	struct sf_go_tables go;
	(void)state;

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		make(&forms[i]);
		assert_true(open_go(&go));
		assert_int_equal(go.n, N);
		assert_string_equal(sf_go_name(&go, 0), "m.a");
		assert_string_equal(sf_go_name(&go, 2), "m.c");
		assert_int_equal(sf_go_entry(&go, 1), TEXT + 32);
		put(8 + 8 * forms[i].names, NAMES - 1, 8); /* where the first name is empty */
		assert_true(open_go(&go));
		assert_null(sf_go_name(&go, 0));
		put(8 + 8 * forms[i].names, SIZE, 8);
		assert_true(open_go(&go));
		assert_null(sf_go_name(&go, 0));
		put(8 + 8 * forms[i].names, SIZE - 2, 8); /* no zero behind it */
		put(SIZE - 1, 'x', 1);
		assert_true(open_go(&go));
		assert_null(sf_go_name(&go, 0));
	}
}

/* Also with the rules of the one before it, and with no byte between them: steps look for the starts of functions. */
static void each_function_starts_a_row(void **state)
{
	struct sf_table table;
	void *block;
	(void)state;

	make(&forms[1]);
	put_function(&forms[1], 1, 26, 17, 17);
	table = build(SIZE, true, EM_X86_64, &block);
	assert_int_equal(cfa_at(&table, 25), 8);
	assert_int_equal(cfa_at(&table, 26), 8);
	assert_true(sf_table_starts_row(&table, TEXT + 26));
	assert_false(sf_table_starts_row(&table, TEXT + 25));
	sf_unwind_close(block, table.header->size);
}

/* Whether the first function has rows. */
static bool has_rows(size_t size, bool with_go, uint16_t machine)
{
	void *block;
	struct sf_table table = build(size, with_go, machine, &block);
	const bool has = table.header->n_rows && sf_table_find(&table, TEXT);

	sf_unwind_close(block, table.header->size);
	return has;
}

static void what_are_no_such_tables(void **state)
{
	(void)state;

	make(&forms[1]);
	assert_true(has_rows(SIZE, true, EM_X86_64));
	assert_false(has_rows(SIZE, false, EM_X86_64));
	assert_false(has_rows(SIZE, true, EM_AARCH64));
	put(0, 0xfffffff2, 4);
	assert_false(has_rows(SIZE, true, EM_X86_64));
	make(&forms[1]);
	put(7, 4, 1); /* pointers of 4 bytes */
	assert_false(has_rows(SIZE, true, EM_X86_64));
	make(&forms[1]);
	put(24, 0, 8); /* the text's address is in a relocation */
	assert_false(has_rows(SIZE, true, EM_X86_64));
	make(&forms[1]);
	put(8, UINT64_MAX, 8); /* functions */
	assert_false(has_rows(SIZE, true, EM_X86_64));
}

/* Offsets beyond the section, lists that do not end, values below 0 and bytes for nothing: no function, and no crash. */
static void damaged_tables(void **state)
{
	(void)state;

	make(&forms[1]);
	put(LISTS + 1, 3, 1); /* 0 becomes -3 */
	assert_false(has_rows(SIZE, true, EM_X86_64));
	make(&forms[1]);
	put(LISTS + 2, 0, 1); /* for no bytes */
	assert_false(has_rows(SIZE, true, EM_X86_64));
	make(&forms[1]);
	memset(tables + LISTS + 1, 0x80, FUNCTIONS - LISTS - 1);
	assert_false(has_rows(SIZE, true, EM_X86_64));
	for (size_t size = 1; size < SIZE; size++) {
		make(&forms[1]);
		has_rows(size, true, EM_X86_64);
	}
	for (size_t at = 8; at < SIZE; at++) {
		struct sf_go_tables go;

		make(&forms[at % 3]);
		put(at, 0xff, 1);
		has_rows(SIZE, true, EM_X86_64);
		for (uint64_t i = 0; open_go(&go) && i < go.n; i++)
			sf_go_name(&go, i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_form),
		cmocka_unit_test(names),
		cmocka_unit_test(each_function_starts_a_row),
		cmocka_unit_test(what_are_no_such_tables),
		cmocka_unit_test(damaged_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

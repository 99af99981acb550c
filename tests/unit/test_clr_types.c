/* SPDX-License-Identifier: Apache-2.0 */
/* Names of .NET types whose structures lie, in hand-made memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/coreclr/types.h"

#define BASE 0x10000u
#define SIZE 0x5000u
#define TABLE (BASE + 0x100)            /* a MethodTable: flags, more flags, module, class, dictionaries */
#define DICTIONARIES (BASE + 0x208)     /* behind their numbers; one, and its arguments */
#define ARGUMENTS (BASE + 0x300)
#define N_ARGUMENTS 16u
#define GENERIC 0x10u
#define METHOD (BASE + 0x400)           /* a MethodDesc of a generic method */
#define MODULE (BASE + 0x500)           /* of an emitted assembly: the pointer to its metadata */
#define METADATA (BASE + 0xff8)         /* its size, and its bytes */
#define NAME (BASE + 0x600)             /* as UTF-8, and its path as UTF-16 */
#define IMAGE (BASE + 0x2000)           /* an assembly's first page; behind it nothing, and its section at RVA */
#define HOLE (IMAGE + PAGE)
#define PAGE 0x1000u
#define RVA (2 * PAGE)
#define IN_FILE 0x400u                  /* where the section lies in the file */
#define IMAGE_METADATA 0xc00u           /* bytes: they begin in the file's first page, and end behind it */

static uint8_t bytes[SIZE];
static unsigned n_reads;
static struct sf_clr_description description;
static struct sf_clr_modules modules;

static bool read_bytes(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	(void)reader;
	n_reads++;
	if (addr < BASE || size > SIZE || addr - BASE > SIZE - size || (addr < HOLE + PAGE && addr + size > HOLE))
		return false;
	memcpy(ret, bytes + (addr - BASE), size);
	return true;
}

static const struct sf_reader memory = { .read = read_bytes };
static const struct sf_clr_naming naming = { &description, &memory, &modules };

static void put(uint64_t addr, uint64_t value)
{
	memcpy(bytes + (addr - BASE), &value, sizeof(value));
}

/* A generic type that has itself for each of its arguments. */
static int make(void **state)
{
	struct sf_clr_layout *layout = &description.layout;

	(void)state;
	memset(bytes, 0, sizeof(bytes));
	memset(layout->fields, 0xff, sizeof(layout->fields)); /* SF_CLR_NO_FIELD */
	layout->fields[SF_CLR_TABLE_FLAGS] = 0;
	layout->fields[SF_CLR_TABLE_FLAGS2] = 8;
	layout->fields[SF_CLR_TABLE_MODULE] = 16;
	layout->fields[SF_CLR_TABLE_CANON] = 24;
	layout->fields[SF_CLR_TABLE_ARGUMENTS] = 32;
	layout->fields[SF_CLR_DICTIONARY_N] = 0;
	layout->fields[SF_CLR_DICTIONARY_N_ARGUMENTS] = 2;
	layout->fields[SF_CLR_GENERIC_ARGUMENTS] = 0;
	layout->fields[SF_CLR_GENERIC_N_ARGUMENTS] = 8;
	layout->fields[SF_CLR_MODULE_DYNAMIC] = 0;
	layout->fields[SF_CLR_METADATA_SIZE] = 0;
	layout->fields[SF_CLR_METADATA_BYTES] = 8;
	put(TABLE, GENERIC);
	put(TABLE + 8, 2u << 8);
	put(TABLE + 16, BASE + 0x500);
	put(TABLE + 32, DICTIONARIES);
	put(DICTIONARIES - 8, 1 | N_ARGUMENTS << 16);
	put(DICTIONARIES, ARGUMENTS);
	for (unsigned i = 0; i < N_ARGUMENTS; i++)
		put(ARGUMENTS + 8 * i, TABLE);
	put(METHOD, ARGUMENTS);
	put(METHOD + 8, N_ARGUMENTS);
	n_reads = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	sf_clr_modules_deinit(&modules);
	modules = (struct sf_clr_modules){ 0 };
	return 0;
}

/* Sixteen to the power of each depth would be some hundred million. */
static void types_that_are_their_own_arguments(void **state)
{
	const struct sf_clr_method method = { .desc = METHOD, .table = TABLE, .module = BASE + 0x500, .row = 1,
					      .kind = SF_CLR_METHOD_GENERIC };
	struct sf_clr_method_name name;
	char text[64];

	(void)state;
	sf_clr_name_type(&naming, TABLE, text, sizeof(text));
	assert_string_equal(text, "?"); /* its module has no metadata */
	assert_in_range(n_reads, 16, 20000);
	n_reads = 0;
	assert_false(sf_clr_name_method(&naming, &method, &name));
	assert_in_range(n_reads, 16, 20000);
}

/* Its metadata ends where nothing can be read. */
static void metadata_that_cannot_be_read_is_not_kept(void **state)
{
	const struct sf_clr_module *module;

	(void)state;
	put(MODULE, METADATA);
	put(METADATA, 1u << 20);
	assert_null(sf_clr_modules_find(&modules, &description, &memory, MODULE));
	assert_int_equal(modules.items.n, 1);
	module = &modules.items.items[0];
	assert_null(module->bytes);
	assert_int_equal(modules.n_bytes, 0);
}

static void put_u32(uint64_t addr, uint32_t value)
{
	memcpy(bytes + (addr - BASE), &value, sizeof(value));
}

static void put_image(void)
{
	const uint64_t coff = IMAGE + 0x40, optional = coff + 24, section = optional + 240;
	const uint32_t header[] = { 72, 0, RVA + 0x100, IMAGE_METADATA };

	put_u32(IMAGE, 0x5a4d);
	put_u32(IMAGE + 0x3c, 0x40);
	put_u32(coff, 0x4550);
	put_u32(coff + 4, 1u << 16);                  /* one section */
	put_u32(coff + 20, 240);
	put_u32(optional, 0x20b);
	put_u32(optional + 112 + 14 * 8, RVA);        /* the CLI header */
	put_u32(section + 8, PAGE);
	put_u32(section + 12, RVA);
	put_u32(section + 16, PAGE);
	put_u32(section + 20, IN_FILE);
	memcpy(bytes + (IMAGE + RVA - BASE), header, sizeof(header));
	put_u32(IMAGE + RVA + 0x100, 0x424a5342);     /* the metadata's magic; it is none otherwise */
	memcpy(bytes + (IMAGE + IN_FILE - BASE), bytes + (IMAGE + RVA - BASE), PAGE - IN_FILE);
}

/* Its first page shows the metadata's begin where the file has it, but the whole lies where the section is. */
static void metadata_that_begins_in_the_first_page(void **state)
{
	(void)state;
	put_image();
	description.layout.fields[SF_CLR_MODULE_BASE] = 32;
	put(MODULE + 32, IMAGE);
	assert_null(sf_clr_modules_find(&modules, &description, &memory, MODULE));
	assert_true(modules.items.items[0].is_mapped);
	assert_int_equal(modules.n_bytes, IMAGE_METADATA);
}

/* A Module with this name, which is its path, too, and with metadata that is none. */
static void put_module(const char *name)
{
	description.layout.fields[SF_CLR_MODULE_PATH] = 16;
	description.layout.fields[SF_CLR_MODULE_NAME] = 24;
	memset(bytes + (NAME - BASE), 0, 32);
	memcpy(bytes + (NAME - BASE), name, strlen(name));
	for (size_t at = 0; name[at]; at++)
		bytes[NAME - BASE + 16 + 2 * at] = (uint8_t)name[at]; /* UTF-16 */
	put(MODULE + 16, NAME + 16);
	put(MODULE + 24, NAME);
	put(MODULE, METADATA);
	put(METADATA, 64);
}

/* An assembly was unloaded, and another one has its Module in the same place. It is read; nothing is kept of the first. */
static void a_module_in_the_place_of_another_one_is_read(void **state)
{
	static const char names[2][8] = { "First", "Second" };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		put_module(names[i / 2]);
		assert_null(sf_clr_modules_find(&modules, &description, &memory, MODULE)); /* it is no metadata */
		assert_int_equal(modules.items.n, 1);
		assert_string_equal(modules.items.items[0].path, names[i / 2]);
		assert_int_equal(modules.n_bytes, 64);
	}
	put(MODULE + 24, 0); /* the process has ended */
	assert_null(sf_clr_modules_find(&modules, &description, &memory, MODULE));
	assert_string_equal(modules.items.items[0].path, names[1]);
}

/* A process that lies has another module at the same address each time that one is looked for. */
static void modules_in_each_others_place_have_a_limit(void **state)
{
	char name[8];

	(void)state;
	for (unsigned i = 0; i < SF_CLR_MAX_MODULES + 2; i++) {
		snprintf(name, sizeof(name), "%u", i);
		put_module(name);
		assert_null(sf_clr_modules_find(&modules, &description, &memory, MODULE));
	}
	snprintf(name, sizeof(name), "%u", SF_CLR_MAX_MODULES - 1);
	assert_string_equal(modules.items.items[0].path, name);
	modules.items.items[0].is_open = true;
	assert_null(sf_clr_modules_find(&modules, &description, &memory, MODULE)); /* it is not the last one that was read */
	put_module(name);
	assert_non_null(sf_clr_modules_find(&modules, &description, &memory, MODULE));
}

/* Each address is another module: those of a process that lies have no end. */
static void modules_have_a_limit(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= SF_CLR_MAX_MODULES + 2; i++)
		assert_null(sf_clr_modules_find(&modules, &description, &memory, UINT64_C(0x10000000) * i));
	assert_int_equal(modules.items.n, SF_CLR_MAX_MODULES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(types_that_are_their_own_arguments, make, end),
		cmocka_unit_test_setup_teardown(metadata_that_cannot_be_read_is_not_kept, make, end),
		cmocka_unit_test_setup_teardown(a_module_in_the_place_of_another_one_is_read, make, end),
		cmocka_unit_test_setup_teardown(modules_in_each_others_place_have_a_limit, make, end),
		cmocka_unit_test_setup_teardown(metadata_that_begins_in_the_first_page, make, end),
		cmocka_unit_test_setup_teardown(modules_have_a_limit, make, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

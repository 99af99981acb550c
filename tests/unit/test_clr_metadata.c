/* SPDX-License-Identifier: Apache-2.0 */
/* Names and lines from the metadata and the PDBs of real .NET assemblies (fixtures/dotnet), and
 * what damaged ones do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/block.h"
#include "base/cleanup.h"
#include "runtime/coreclr/names.h"
#include "runtime/coreclr/pdb.h"

/* Bytes in a block of their own size, so that the address sanitizer sees each read beyond them. */
struct file {
	uint8_t *bytes;
	size_t size;
};

static struct file read_fixture(const char *name)
{
	struct file file = { 0 };
	char path[1024];
	FILE *in;

	snprintf(path, sizeof(path), SF_SOURCE_ROOT "/tests/unit/fixtures/dotnet/%s", name);
	in = fopen(path, "rb");
	assert_non_null(in);
	assert_int_equal(fseek(in, 0, SEEK_END), 0);
	file.size = (size_t)ftell(in);
	rewind(in);
	file.bytes = malloc(file.size);
	assert_non_null(file.bytes);
	assert_int_equal(fread(file.bytes, 1, file.size, in), file.size);
	fclose(in);
	return file;
}

static bool open_assembly(const struct file *file, struct sf_clr_image *image,
			  struct sf_clr_metadata *ret)
{
	struct sf_bytes bytes;

	if (!sf_clr_image_open(image, file->bytes, file->size, false))
		return false;
	bytes = sf_clr_image_metadata(image);
	return sf_clr_metadata_open(ret, bytes.at, sf_bytes_left(&bytes));
}

/* The MethodDef row with this raw name, the nth of those that share it. */
static uint32_t find_method(const struct sf_clr_metadata *metadata, const char *raw, unsigned nth)
{
	for (uint32_t row = 1; row <= sf_clr_n_rows(metadata, SF_CLR_METHOD_DEF); row++) {
		static struct sf_clr_method_name name;

		assert_true(sf_clr_method_name(metadata, row, NULL, &name));
		if (!strcmp(name.raw, raw) && nth-- == 0)
			return row;
	}
	fail_msg("no method %s", raw);
	return 0;
}

/* The method that a developer wrote, for each form that the compiler makes; the line of the first
 * statement, 0 where there is none. */
static const struct {
	const char *raw, *written;
	uint32_t line;
} names[] = {
	{ "Program.<Main>$", "Program.Main(string[])", 0 },
	{ "Program.<<Main>$>g__Local|0_0", "Program.Main.Local(int)", 7 },
	{ "Program+<<<Main>$>g__LocalAsync|0_1>d.MoveNext", "Program.Main.LocalAsync(int) [async]",
	  8 },
	{ "Program+<<Main>$>d__0.MoveNext", "Program.Main(string[]) [async]", 6 },
	{ "Program+<>c.<<Main>$>b__0_2", "Program.Main.lambda#2(int)", 0 },
	{ "Program+<>c+<<<Main>$>b__0_2>d.MoveNext", "Program.Main.lambda#2(int) [async]", 9 },
	{ "Demo.Outer`1+Inner`1.Work",
	  "Demo.Outer<T>.Inner<U>.Work(Dictionary<T, List<U>>, ref int)", 21 },
	{ "Demo.Outer`1+Inner`1.Generic", "Demo.Outer<T>.Inner<U>.Generic<V>(V, U[], T[,])", 22 },
	{ "Demo.Outer`1+Inner`1+<>c__DisplayClass1_0`1.<Generic>b__0",
	  "Demo.Outer<T>.Inner<U>.Generic.lambda#0()", 22 },
	{ "Demo.Plain.get_Size", "Demo.Plain.Size.get()", 28 },
	{ "Demo.Plain.set_Size", "Demo.Plain.Size.set(int)", 28 },
	{ "Demo.Plain.get_Item", "Demo.Plain.Item.get(int)", 29 },
	{ "Demo.Plain..cctor", "Demo.Plain..cctor()", 30 },
	{ "Demo.Plain..ctor", "Demo.Plain..ctor()", 31 },
	{ "Demo.Plain+<Numbers>d__8.MoveNext", "Demo.Plain.Numbers(int) [iterator]", 32 },
	{ "Demo.Plain+<Async>d__9.MoveNext", "Demo.Plain.Async(string, int) [async]", 35 },
	{ "Demo.Plain+<Async>d__10.MoveNext", "Demo.Plain.Async(int) [async]", 38 },
	{ "Demo.Plain+<>c.<Async>b__9_1", "Demo.Plain.Async.lambda#1(int)", 36 },
	{ "Demo.Plain.Pointers",
	  "Demo.Plain.Pointers(int*, delegate*<int, void>, nint, nuint, object, decimal, DateTime, "
	  "int?)",
	  39 },
	{ "Demo.Plain.op_Addition", "Demo.Plain.op_Addition(Plain, Plain)", 40 },
	{ "Demo.Plain.<Nested>g__One|13_0", "Demo.Plain.Nested.One(int)", 41 },
	{ "Demo.Plain.<Nested>g__Two|13_1", "Demo.Plain.Nested.Two(int)", 41 },
	{ "<>f__AnonymousType0`2.get_A", "AnonymousType<A, B>.A.get()", 0 },
	{ "Demo.Thing.Demo.IThing.Do", "Demo.Thing.Demo.IThing.Do()", 45 },
	{ "Demo.Thing.Demo.IThing.get_Count", "Demo.Thing.Demo.IThing.Count.get()", 45 },
	{ "Demo.<Program>FD837EAC3E075EDE3568E5757EF0B1B23BD9455F8162945BB720570668BFAC022__Hidden`1.Count",
	  "Demo.Hidden<T>.Count(Hidden<T>)", 46 },
	{ "Demo.Pairs+<>c.<Sum>b__0_1", "Demo.Pairs.Sum.lambda#1(AnonymousType<int, string>)", 47 },
};

static void known_names_and_lines(void **state)
{
	SF_CLEANUP(free) uint8_t *assembly_bytes = NULL, *pdb_bytes = NULL;
	const struct file assembly = read_fixture("names.dll"),
			  pdb_file = read_fixture("names.pdb");
	struct sf_clr_metadata metadata, pdb;
	struct sf_clr_image image;
	struct sf_clr_pdb_name pdb_name;
	(void)state;

	assembly_bytes = assembly.bytes;
	pdb_bytes = pdb_file.bytes;
	assert_true(open_assembly(&assembly, &image, &metadata));
	assert_true(sf_clr_metadata_open(&pdb, pdb_file.bytes, pdb_file.size));
	assert_true(sf_clr_image_pdb_name(&image, &pdb_name));
	assert_string_equal(pdb_name.path, "/src/obj/Release/net10.0/names.pdb");
	assert_true(sf_clr_pdb_is(&pdb, &pdb_name));
	pdb_name.id[19] ^= 1;
	assert_false(sf_clr_pdb_is(&pdb, &pdb_name));
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const uint32_t method = find_method(&metadata, names[i].raw, 0);
		static struct sf_clr_method_name name;
		struct sf_clr_line line;
		char path[64];

		assert_true(sf_clr_method_name(&metadata, method, NULL, &name));
		assert_string_equal(name.written, names[i].written);
		assert_int_equal(sf_clr_pdb_line(&pdb, method, 0, &line), names[i].line != 0);
		assert_int_equal(line.line, names[i].line);
		if (!line.line)
			continue;
		sf_clr_pdb_document(&pdb, line.document, path, sizeof(path));
		assert_string_equal(path, "/src/Program.cs");
	}
}

/* Each statement of a method has its own line: the last one that begins at or before the offset. */
static void lines_within_a_method(void **state)
{
	const struct file assembly = read_fixture("names.dll"),
			  pdb_file = read_fixture("names.pdb");
	SF_CLEANUP(free) uint8_t *assembly_bytes = NULL, *pdb_bytes = NULL;
	struct sf_clr_metadata metadata, pdb;
	struct sf_clr_image image;
	uint32_t main_row, last = 0, seen = 0;
	(void)state;

	assembly_bytes = assembly.bytes;
	pdb_bytes = pdb_file.bytes;
	assert_true(open_assembly(&assembly, &image, &metadata));
	assert_true(sf_clr_metadata_open(&pdb, pdb_file.bytes, pdb_file.size));
	main_row = find_method(&metadata, "Program+<<Main>$>d__0.MoveNext", 0);
	for (uint32_t il = 0; il < 0x300; il++) {
		struct sf_clr_line line;

		assert_true(sf_clr_pdb_line(&pdb, main_row, il, &line));
		assert_in_range(line.line, 6, 14);
		seen += line.line != last;
		last = line.line;
	}
	assert_in_range(seen, 6, 40);
	for (uint32_t i = 0; i < 5; i++) {
		static const uint32_t awaits[] = { 11, 11, 13 };
		struct sf_clr_line line;
		uint32_t il;

		assert_int_equal(sf_clr_pdb_await(&pdb, main_row, i, &il), i < 3);
		if (i >= 3)
			continue;
		assert_true(sf_clr_pdb_line(&pdb, main_row, il, &line));
		assert_int_equal(line.line, awaits[i]);
	}
	assert_false(sf_clr_pdb_await(&pdb, find_method(&metadata, "Program.<Main>$", 0), 0, &last));
}

static void arguments_that_are_known(void **state)
{
	const struct file assembly = read_fixture("names.dll");
	SF_CLEANUP(free) uint8_t *assembly_bytes = NULL;
	static const char *const of_type[] = { "string", "Demo.Plain" }, *const of_method[] = {
		"int"
	};
	const struct sf_clr_arguments arguments = { of_type, of_method, 2, 1 };
	struct sf_clr_metadata metadata;
	struct sf_clr_image image;
	static struct sf_clr_method_name name;
	(void)state;

	assembly_bytes = assembly.bytes;
	assert_true(open_assembly(&assembly, &image, &metadata));
	assert_true(sf_clr_method_name(&metadata,
				       find_method(&metadata, "Demo.Outer`1+Inner`1.Generic", 0),
				       &arguments, &name));
	assert_string_equal(
		name.written,
		"Demo.Outer<string>.Inner<Demo.Plain>.Generic<int>(int, Demo.Plain[], string[,])");
	assert_false(sf_clr_method_name(&metadata, 0, NULL, &name));
	assert_false(sf_clr_method_name(&metadata, sf_clr_n_rows(&metadata, SF_CLR_METHOD_DEF) + 1,
					NULL, &name));
}

static void a_pdb_inside(void **state)
{
	const struct file assembly = read_fixture("embedded.dll");
	SF_CLEANUP(free) uint8_t *assembly_bytes = NULL;
	uint8_t *pdb_bytes;
	struct sf_clr_metadata metadata, pdb;
	struct sf_clr_image image;
	struct sf_clr_pdb_name pdb_name;
	struct sf_clr_line line;
	size_t size;
	(void)state;

	assembly_bytes = assembly.bytes;
	assert_true(open_assembly(&assembly, &image, &metadata));
	pdb_bytes = sf_clr_image_embedded_pdb(&image, &size);
	assert_non_null(pdb_bytes);
	assert_true(sf_clr_metadata_open(&pdb, pdb_bytes, size));
	assert_true(sf_clr_image_pdb_name(&image, &pdb_name));
	assert_true(sf_clr_pdb_is(&pdb, &pdb_name));
	assert_true(
		sf_clr_pdb_line(&pdb, find_method(&metadata, "Demo.Embedded.Twice", 0), 0, &line));
	assert_in_range(line.line, 6, 7);
	sf_block_free(pdb_bytes);
}

struct pieces {
	const struct file *file;
	uint8_t *bytes;
	size_t n_read;
};

static bool read_piece(const void *arg, const uint8_t *piece, size_t size)
{
	struct pieces *pieces = (struct pieces *)(uintptr_t)arg;
	const size_t at = (size_t)(piece - pieces->bytes);

	assert_true(at <= pieces->file->size && size <= pieces->file->size - at);
	memcpy(pieces->bytes + at, pieces->file->bytes + at, size);
	pieces->n_read += size;
	return true;
}

/* Of a large file only the headers, the debug directory and the PDB are read. */
static void a_pdb_inside_by_pieces(void **state)
{
	const struct file assembly = read_fixture("embedded.dll");
	SF_CLEANUP(free) uint8_t *bytes = calloc(1, assembly.size);
	struct pieces pieces = { .file = &assembly, .bytes = bytes };
	struct sf_clr_metadata pdb;
	struct sf_clr_image image;
	uint8_t *pdb_bytes;
	size_t size;
	(void)state;

	read_piece(&pieces, bytes, 1024);
	assert_true(sf_clr_image_open(&image, bytes, assembly.size, false));
	image.fetch = read_piece;
	image.fetch_arg = &pieces;
	pdb_bytes = sf_clr_image_embedded_pdb(&image, &size);
	assert_non_null(pdb_bytes);
	assert_true(sf_clr_metadata_open(&pdb, pdb_bytes, size));
	assert_true(pieces.n_read < assembly.size);
	sf_block_free(pdb_bytes);
	free(assembly.bytes);
}

/* Every method and every line of whatever the bytes are. */
static void use_all(const struct file *file)
{
	static struct sf_clr_method_name name;
	struct sf_clr_metadata metadata;
	struct sf_clr_image image;
	char path[64];

	if (!open_assembly(file, &image, &metadata) &&
	    !sf_clr_metadata_open(&metadata, file->bytes, file->size))
		return;
	for (uint32_t row = 1; row <= sf_clr_n_rows(&metadata, SF_CLR_METHOD_DEF); row++)
		sf_clr_method_name(&metadata, row, NULL, &name);
	for (uint32_t row = 1; row <= sf_clr_n_rows(&metadata, SF_CLR_METHOD_DEBUG); row++) {
		struct sf_clr_line line;

		if (sf_clr_pdb_line(&metadata, row, 1000, &line))
			sf_clr_pdb_document(&metadata, line.document, path, sizeof(path));
	}
}

/* Files that end early, and files with a damaged byte: whatever comes out, nothing is read beyond
 * them (address sanitizer). */
static void damaged_files(void **state)
{
	static const char *const fixtures[] = { "names.dll", "names.pdb", "embedded.dll" };
	(void)state;

	for (size_t i = 0; i < sizeof(fixtures) / sizeof(*fixtures); i++) {
		const struct file whole = read_fixture(fixtures[i]);
		SF_CLEANUP(free) uint8_t *bytes = NULL;
		uint64_t random = 1;

		bytes = whole.bytes;
		for (size_t size = 0; size < whole.size; size += 97) {
			struct file part = { malloc(size + 1), size };

			assert_non_null(part.bytes);
			memcpy(part.bytes, whole.bytes, size);
			use_all(&part);
			free(part.bytes);
		}
		for (unsigned n = 0; n < 400; n++) {
			uint8_t *byte;

			random = random * 6364136223846793005u + 1442695040888963407u;
			byte = &whole.bytes[(random >> 33) % whole.size];
			*byte ^= (uint8_t)(random >> 24 | 1);
			use_all(&whole);
		}
	}
}

/* ECMA-335, II.23.2, the examples there. */
static void compressed_numbers(void **state)
{
	static const struct {
		uint8_t bytes[4];
		uint32_t value;
	} numbers[] = {
		{ { 0x03 }, 0x03 },
		{ { 0x7f }, 0x7f },
		{ { 0x80, 0x80 }, 0x80 },
		{ { 0xae, 0x57 }, 0x2e57 },
		{ { 0xbf, 0xff }, 0x3fff },
		{ { 0xc0, 0x00, 0x40, 0x00 }, 0x4000 },
		{ { 0xdf, 0xff, 0xff, 0xff }, 0x1fffffff },
	};
	static const struct {
		uint8_t bytes[4];
		int32_t value;
	} signed_numbers[] = {
		{ { 0x06 }, 3 },
		{ { 0x7b }, -3 },
		{ { 0x80, 0x80 }, 64 },
		{ { 0x01 }, -64 },
		{ { 0xc0, 0x00, 0x40, 0x00 }, 8192 },
		{ { 0x80, 0x01 }, -8192 },
		{ { 0xdf, 0xff, 0xff, 0xfe }, 268435455 },
		{ { 0xc0, 0x00, 0x00, 0x01 }, -268435456 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		struct sf_bytes in = sf_bytes_of(numbers[i].bytes, 4);

		assert_int_equal(sf_clr_compressed(&in), numbers[i].value);
	}
	for (size_t i = 0; i < sizeof(signed_numbers) / sizeof(*signed_numbers); i++) {
		struct sf_bytes in = sf_bytes_of(signed_numbers[i].bytes, 4);

		assert_int_equal(sf_clr_compressed_signed(&in), signed_numbers[i].value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_names_and_lines),
		cmocka_unit_test(lines_within_a_method),
		cmocka_unit_test(arguments_that_are_known),
		cmocka_unit_test(a_pdb_inside),
		cmocka_unit_test(a_pdb_inside_by_pieces),
		cmocka_unit_test(damaged_files),
		cmocka_unit_test(compressed_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

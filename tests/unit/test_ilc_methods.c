/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of methods from the tables of a program by ILC: of a small program that is put together here, and of the same
 * program with mistakes in its tables.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "elf_builder.h"
#include "symbols/ilc_methods.h"
#include "symbols/symbols.h"

/* Addresses in the program. */
#define CODE 0x1000u
#define CODE_SIZE 0x400u
#define MODULES 0x2000u
#define FRAMES 0x2800u
#define DATA 0x3000u
#define STACK_TRACE 0x3200u
#define INVOKE 0x3400u
#define TYPES 0x3600u
#define REFERENCES 0x3700u
#define HANDLERS 0x3800u             /* data to which unwind information leads */
#define METADATA 0x4000u
#define DATA_SIZE 0x2000u

#define STEP 0x20u
#define CODE_OF(i) (CODE + STEP * (i))

/* Bytes, the first of which is at `address`. */
struct blob {
	uint8_t *bytes;
	uint64_t address;
	size_t n;
};

static struct program {
	uint8_t data[DATA_SIZE], frames[0x400];
	Elf64_Rela relocations[16];
	size_t n_relocations;
	uint16_t version;
	unsigned offset_bits;
	struct blob metadata, stack_trace, references, frame;
	uint32_t n_methods;
} program;

/* Records that tests refer to. */
static struct {
	uint32_t box, inner, closure, machine, plain, twin, int32, list, run, both, shared, self;
} records;

static void put(struct blob *blob, const void *bytes, size_t n)
{
	memcpy(blob->bytes + blob->n, bytes, n);
	blob->n += n;
}

static void put_u8(struct blob *blob, unsigned value)
{
	put(blob, &(uint8_t){ (uint8_t)value }, 1);
}

static void put_u32(struct blob *blob, uint32_t value)
{
	put(blob, &value, 4);
}

/* In the shortest form. */
static void put_number(struct blob *blob, uint32_t value)
{
	unsigned size = 1;
	uint64_t coded;

	while (size < 5 && value >> 7 * size)
		size++;
	if (size == 5) {
		put_u8(blob, 0x0f);
		put_u32(blob, value);
		return;
	}
	coded = (uint64_t)value << size | ((1u << (size - 1)) - 1);
	put(blob, &coded, size);
}

/* In the longest form, so that it may be filled in later. */
static void put_long(struct blob *blob, uint32_t value)
{
	put_u8(blob, 0x0f);
	put_u32(blob, value);
}

static void put_numbers(struct blob *blob, unsigned n)
{
	while (n--)
		put_number(blob, 0);
}

static void put_relative(struct blob *blob, uint64_t address)
{
	put_u32(blob, (uint32_t)(address - (blob->address + blob->n)));
}

static void put_handle(uint32_t type, uint32_t offset)
{
	put_number(&program.metadata, offset << (32 - program.offset_bits) | type);
}

static uint32_t here(void)
{
	return (uint32_t)program.metadata.n;
}

static uint32_t string(const char *text)
{
	const uint32_t at = here();

	put_number(&program.metadata, (uint32_t)strlen(text));
	put(&program.metadata, text, strlen(text));
	return at;
}

static uint32_t reference_space(const char *name, uint32_t parent)
{
	const uint32_t text = string(name), at = here();

	put_handle(parent ? SF_ILC_NAMESPACE_REFERENCE : SF_ILC_NULL, parent);
	put_number(&program.metadata, text);
	return at;
}

/* A reference to a type in a namespace; `space` 0: in none. */
static uint32_t reference(const char *name, uint32_t space)
{
	const uint32_t text = string(name), at = here();

	put_handle(space ? SF_ILC_NAMESPACE_REFERENCE : SF_ILC_NULL, space);
	put_number(&program.metadata, text);
	return at;
}

static uint32_t wrapped(uint32_t type, uint32_t offset)
{
	const uint32_t at = here();

	put_handle(type, offset);
	return at;
}

static uint32_t variable(uint32_t number)
{
	const uint32_t at = here();

	put_number(&program.metadata, number);
	return at;
}

static uint32_t parameter(const char *name)
{
	const uint32_t text = string(name), at = here();

	put_numbers(&program.metadata, 3);
	put_number(&program.metadata, text);
	return at;
}

static void put_list(const uint32_t *offsets, uint32_t n)
{
	put_number(&program.metadata, n);
	for (uint32_t i = 0; i < n; i++)
		put_number(&program.metadata, offsets[i]);
}

/* A type definition with one generic parameter, or none. */
static uint32_t definition(const char *name, uint32_t space, uint32_t enclosing, uint32_t parameter_record, const uint32_t *methods, uint32_t n)
{
	const uint32_t text = string(name), at = here();

	put_numbers(&program.metadata, 2);
	put_number(&program.metadata, space);
	put_number(&program.metadata, text);
	put_numbers(&program.metadata, 2);
	put_number(&program.metadata, enclosing);
	put_number(&program.metadata, 0);    /* the list of nested types */
	put_list(methods, n);
	put_numbers(&program.metadata, 3);
	put_list(&parameter_record, parameter_record != 0);
	return at;
}

struct type {
	uint32_t type, offset;
};

static uint32_t signature(const struct type *types, uint32_t n)
{
	const uint32_t at = here();

	put_numbers(&program.metadata, 2);
	put_handle(SF_ILC_TYPE_REFERENCE, records.int32);
	put_number(&program.metadata, n);
	for (uint32_t i = 0; i < n; i++)
		put_handle(types[i].type, types[i].offset);
	put_number(&program.metadata, 0);
	return at;
}

static uint32_t method_record(const char *name, uint32_t signature_record)
{
	const uint32_t text = string(name), at = here();

	put_numbers(&program.metadata, 2);
	put_number(&program.metadata, text);
	put_number(&program.metadata, signature_record);
	put_numbers(&program.metadata, 3);
	return at;
}

/* Adds an entry with all that it can have. `arguments` 0: it is not generic. */
static void trace(struct type owner, const char *name, uint32_t signature_record, uint32_t arguments)
{
	struct blob *map = &program.stack_trace;
	const uint32_t text = string(name);

	put_u8(map, 1 | 2 | (arguments ? 8 : 4));
	put_u32(map, owner.type << program.offset_bits | owner.offset);
	put_number(map, text);
	put_number(map, signature_record);
	if (arguments)
		put_number(map, arguments);
	put_relative(map, CODE_OF(program.n_methods++));
}

/* A list of signature types of every kind. */
static uint32_t rich_signature(void)
{
	const struct type list = { SF_ILC_TYPE_REFERENCE, records.list }, int32 = { SF_ILC_TYPE_REFERENCE, records.int32 };
	const uint32_t first = variable(0), of_method = variable(0);
	uint32_t array, instance, many, modified;

	array = wrapped(SF_ILC_TYPE_VARIABLE, first);
	instance = here();
	put_handle(list.type, list.offset);
	put_number(&program.metadata, 1);
	put_handle(int32.type, int32.offset);
	many = here();
	put_handle(int32.type, int32.offset);
	put_number(&program.metadata, 3);
	modified = here();
	put_u8(&program.metadata, 0);
	put_handle(int32.type, int32.offset);
	put_handle(int32.type, int32.offset);
	{
		const struct type types[] = {
			int32,
			{ SF_ILC_BY_REFERENCE, wrapped(SF_ILC_SIMPLE_ARRAY, array) },
			{ SF_ILC_METHOD_VARIABLE, of_method },
			{ SF_ILC_TYPE_SPECIFICATION, wrapped(SF_ILC_INSTANTIATION, instance) },
			{ SF_ILC_ARRAY, many },
			{ SF_ILC_POINTER, wrapped(SF_ILC_FUNCTION_POINTER, first) },
			{ SF_ILC_MODIFIED_TYPE, modified },
			{ SF_ILC_BY_REFERENCE, wrapped(SF_ILC_TYPE_DEFINITION, records.closure) },
		};

		return signature(types, sizeof(types) / sizeof(types[0]));
	}
}

static uint32_t name_list(const char *name)
{
	const uint32_t text = string(name), at = here();

	put_number(&program.metadata, 1);
	put_handle(SF_ILC_STRING, text);
	return at;
}

/* The namespace "Demo" of assembly 0, with these types. */
static void put_assembly(uint32_t root)
{
	const uint32_t at = here();
	uint32_t start = 4;

	put_numbers(&program.metadata, 7);
	put_number(&program.metadata, 3);    /* a key */
	put(&program.metadata, "key", 3);
	put_number(&program.metadata, 0);
	put_number(&program.metadata, root);
	/* The list of assemblies, behind the signature. */
	memcpy(program.metadata.bytes + start, &(uint8_t){ 1 << 1 }, 1);
	memcpy(program.metadata.bytes + start + 2, &at, 4);
}

static uint32_t name_space(const char *name, const uint32_t *types, uint32_t n_types, uint32_t parent)
{
	const uint32_t text = string(name), at = here();

	put_handle(parent ? SF_ILC_NAMESPACE_DEFINITION : SF_ILC_NULL, parent);
	put_number(&program.metadata, text);
	put_list(types, n_types);
	put_numbers(&program.metadata, 2);
	return at;
}

static void put_metadata(void)
{
	uint32_t system, generic, nothing, demo;

	put_u32(&program.metadata, 0xdeaddffd);
	put_u8(&program.metadata, 0);        /* the list of assemblies: one, to be filled in */
	put_long(&program.metadata, 0);
	system = reference_space("System", reference_space("", 0));
	generic = reference_space("Generic", reference_space("Collections", system));
	records.int32 = reference("Int32", system);
	records.list = reference("List`1", generic);
	nothing = signature(NULL, 0);
	records.run = method_record("Run", nothing);
	records.both = method_record("Both", nothing);
	records.shared = method_record(".ctor", nothing);
	demo = name_space("Demo", NULL, 0, name_space("", NULL, 0, 0));
	records.box = definition("Box`1", demo, 0, parameter("T"), NULL, 0);
	records.inner = definition("Inner", demo, records.box, parameter("T"), NULL, 0);
	records.closure = definition("<>c__DisplayClass1_0", demo, records.box, parameter("T"), NULL, 0);
	records.machine = definition("<Later>d__3", demo, records.inner, parameter("T"), NULL, 0);
	records.plain = definition("Plain", demo, 0, 0, (const uint32_t[]){ records.run, records.shared }, 2);
	records.twin = definition("Twin", demo, 0, 0, (const uint32_t[]){ records.both, records.shared }, 2);
	put_assembly(name_space("", (const uint32_t[]){ records.plain, records.twin }, 2, 0));
	records.self = wrapped(SF_ILC_TYPE_SPECIFICATION, here());
}

static void put_traced(void)
{
	const struct type box = { SF_ILC_TYPE_DEFINITION, records.box }, inner = { SF_ILC_TYPE_DEFINITION, records.inner };
	const uint32_t rich = rich_signature(), nothing = signature(NULL, 0);

	put_u8(&program.stack_trace, 16);    /* hidden, and without a name */
	put_relative(&program.stack_trace, CODE_OF(program.n_methods++));
	trace(inner, "Wait", rich, name_list("TKey"));
	trace((struct type){ SF_ILC_TYPE_DEFINITION, records.closure }, "<Main>b__2_1", nothing, 0);
	trace((struct type){ SF_ILC_TYPE_DEFINITION, records.machine }, "MoveNext", nothing, 0);
	trace(box, "get_Size", nothing, 0);
	trace(box, "<Main>g__Local|2_0", nothing, 0);
	trace((struct type){ SF_ILC_TYPE_REFERENCE, records.int32 }, "Parse", nothing, 0);
	/* Of the same owner, with the same name. */
	put_u8(&program.stack_trace, 0);
	put_relative(&program.stack_trace, CODE_OF(program.n_methods++));
}

/* A hash table of one bucket, in which all entries follow their numbers. */
static void put_table(struct blob *table, const uint32_t entries[][4], const unsigned *n_numbers, unsigned n)
{
	uint8_t end;

	put_u8(table, 0);                    /* one bucket, whose places have one byte */
	put_u8(table, 2);
	end = (uint8_t)(2 + 6 * n);
	put_u8(table, end);
	table->n += 6 * n;
	for (unsigned i = 0; i < n; i++) {
		struct blob link = { table->bytes, table->address, 3 + 6 * i };

		put_u8(&link, 0x55);
		put_long(&link, (uint32_t)(table->n - link.n));
		for (unsigned k = 0; k < n_numbers[i]; k++)
			put_number(table, entries[i][k]);
	}
}

static uint32_t refer(uint64_t address)
{
	const uint32_t number = (uint32_t)(program.references.n / 4);

	put_relative(&program.references, address);
	return number;
}

static struct blob blob_at(uint64_t address)
{
	return (struct blob){ program.data + (address - DATA), address, 0 };
}

/* Run by its record, Both of Plain by the type map, and a constructor that two types have. */
static void put_invoked(void)
{
	struct blob map = blob_at(INVOKE), types = blob_at(TYPES);
	const uint32_t plain = refer(0x9000), other = refer(0x9008);
	const uint32_t first = program.n_methods;
	const uint32_t entries[][4] = {
		{ 0x20, records.run, other, refer(CODE_OF(first)) },
		{ 0x20, records.both, plain, refer(CODE_OF(first + 1)) },
		{ 0x20, records.shared, other, refer(CODE_OF(first + 2)) },
		{ 0, records.run, other },
	};

	put_table(&map, entries, (const unsigned[]){ 4, 4, 4, 3 }, 4);
	put_table(&types, (const uint32_t[][4]){ { plain, SF_ILC_TYPE_DEFINITION << program.offset_bits | records.plain } },
		  (const unsigned[]){ 2 }, 1);
	program.n_methods += 3;
}

static void put_cie(void)
{
	static const uint8_t cie[] = { 0x18, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'L', 'R', 0, 1, 0x78, 16, 2, 0x1b, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0, 0, 0 };

	put(&program.frame, cie, sizeof(cie));
}

/* Code with unwind information, whose own data is at `lsda`; 0: it has none. */
static void put_fde(uint64_t start, uint64_t lsda)
{
	put_u32(&program.frame, 20);
	put_u32(&program.frame, (uint32_t)program.frame.n);
	put_relative(&program.frame, start);
	put_u32(&program.frame, STEP);
	put_u8(&program.frame, 4);
	if (lsda)
		put_relative(&program.frame, lsda);
	else
		put_u32(&program.frame, 0);
	put(&program.frame, "\0\0\0", 3);
}

/* All methods but the last are code of their own; behind them a funclet of method 1, and a thunk. */
static void put_frames(void)
{
	struct blob handlers = blob_at(HANDLERS);
	const uint32_t n = program.n_methods;

	put_u8(&handlers, 0);
	put_u8(&handlers, 1);
	put_relative(&handlers, HANDLERS);
	put_u32(&handlers, CODE_OF(n) - CODE_OF(1));
	put_cie();
	for (uint32_t i = 0; i < n; i++)
		put_fde(CODE_OF(i), i % 2 ? HANDLERS : 0);
	put_fde(CODE_OF(n), HANDLERS + 1);
	put_fde(CODE_OF(n + 1), HANDLERS);
	put_u32(&program.frame, 0);
}

/* Pointers are in relocations only, as lld leaves them. */
static void relocate(uint64_t place, uint64_t value)
{
	program.relocations[program.n_relocations++] =
		(Elf64_Rela){ .r_offset = place, .r_info = ELF64_R_INFO(0, R_X86_64_RELATIVE), .r_addend = (int64_t)value };
}

static void put_header(void)
{
	const struct {
		uint32_t id;
		uint64_t start, end;
	} tables[] = {
		{ 301, TYPES, REFERENCES }, { 306, INVOKE, TYPES }, { 308, REFERENCES, REFERENCES + program.references.n },
		{ 313, METADATA, METADATA + program.metadata.n }, { 327, STACK_TRACE, STACK_TRACE + program.stack_trace.n },
	};
	const unsigned n = sizeof(tables) / sizeof(tables[0]);
	struct blob header = blob_at(DATA);

	put(&header, "RTR", 4);
	put(&header, &program.version, 2);
	put(&header, "\0\0\0\0\0", 6);
	put_u8(&header, n);
	put(&header, "\0\x18\1", 3);
	for (unsigned i = 0; i < n; i++) {
		put_u32(&header, tables[i].id);
		put_u32(&header, 1);
		relocate(DATA + header.n, tables[i].start);
		relocate(DATA + header.n + 8, tables[i].end);
		header.n += 16;
	}
	relocate(MODULES, DATA);
}

static void make_program(uint16_t version, unsigned offset_bits)
{
	program = (struct program){ .version = version, .offset_bits = offset_bits };
	program.metadata = blob_at(METADATA);
	program.stack_trace = blob_at(STACK_TRACE);
	program.references = blob_at(REFERENCES);
	program.frame = (struct blob){ program.frames, FRAMES, 0 };
	program.stack_trace.n = 4;
	put_metadata();
	put_traced();
	memcpy(program.stack_trace.bytes, &program.n_methods, 4);
	put_invoked();
	put_frames();
	put_header();
	assert_true(METADATA + program.metadata.n <= DATA + DATA_SIZE && STACK_TRACE + program.stack_trace.n <= INVOKE);
}

static const uint8_t no_bytes[CODE_SIZE];

static uint8_t *build(size_t *size_ret)
{
	const struct elf_part parts[] = {
		{ "__managedcode", PT_LOAD, PF_R | PF_X, SHF_ALLOC | SHF_EXECINSTR, CODE, 0, no_bytes, CODE_SIZE },
		{ "__modules", PT_LOAD, PF_R | PF_W, SHF_ALLOC | SHF_WRITE, MODULES, 0, no_bytes, 8 },
		{ ".rela.dyn", 0, 0, SHF_ALLOC, 0x100, 0, program.relocations, program.n_relocations * sizeof(Elf64_Rela) },
		{ ".eh_frame", PT_LOAD, PF_R, SHF_ALLOC, FRAMES, 0, program.frames, program.frame.n },
		{ ".rodata", PT_LOAD, PF_R, SHF_ALLOC, DATA, 0, program.data, METADATA - DATA + program.metadata.n },
	};
	const struct elf_description description = { .machine = EM_X86_64, .parts = parts, .n_parts = sizeof(parts) / sizeof(parts[0]) };

	return elf_build(&description, size_ret);
}

/* The methods of the program; they are closed with `elf`. */
static struct sf_ilc_methods read_methods(struct sf_elf *elf)
{
	struct sf_ilc_methods methods;
	size_t size;
	uint8_t *file = build(&size);

	assert_true(sf_elf_open_memory(file, size, elf, NULL));
	assert_true(sf_ilc_methods_read(elf, &methods));
	return methods;
}

static void close_methods(struct sf_elf *elf, struct sf_ilc_methods *methods)
{
	sf_ilc_methods_deinit(methods);
	sf_elf_close(elf);
}

static const char *name_at(const struct sf_ilc_methods *methods, uint64_t start)
{
	static char buffer[1024];
	const struct sf_ilc_method *method = sf_ilc_methods_find(methods, start);
	struct sf_text text = sf_text_in(buffer, sizeof(buffer));

	if (!method)
		return NULL;
	sf_ilc_put_method(&text, &methods->metadata, method);
	return buffer;
}

/* By the number of their code. */
static const char *const names[] = {
	NULL,
	"Demo.Box<T>.Inner.Wait<TKey>(int, ref T[], TKey, System.Collections.Generic.List<int>, int[,,], delegate**, int)",
	"Demo.Box<T>.Main.lambda#1()",
	"Demo.Box<T>.Inner.Later()",
	"Demo.Box<T>.Size.get()",
	"Demo.Box<T>.Main.Local()",
	"System.Int32.Parse()",
	"System.Int32.Parse()",
	/* By the invoke map. */
	"Demo.Plain.Run()",
	"Demo.Plain.Both()",
	NULL,
	/* A funclet, and a thunk. */
	"Demo.Box<T>.Inner.Wait<TKey>(int, ref T[], TKey, System.Collections.Generic.List<int>, int[,,], delegate**, int)",
	NULL,
};
#define N_NAMES (sizeof(names) / sizeof(names[0]))

static void methods_have_names(void **state)
{
	static const struct {
		uint16_t version;
		unsigned offset_bits;
	} versions[] = { { 9, 24 }, { 10, 24 }, { 16, 25 } };

	(void)state;
	for (size_t v = 0; v < sizeof(versions) / sizeof(versions[0]); v++) {
		struct sf_ilc_methods methods;
		struct sf_elf elf;

		make_program(versions[v].version, versions[v].offset_bits);
		methods = read_methods(&elf);
		for (size_t i = 0; i < N_NAMES; i++) {
			const char *name = name_at(&methods, CODE_OF(i));

			if (names[i])
				assert_non_null(name);
			else
				assert_null(name);
			if (name)
				assert_string_equal(name, names[i]);
		}
		assert_null(name_at(&methods, CODE_OF(1) + 1));
		close_methods(&elf, &methods);
	}
}

static void keep_name(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	char (*found)[256] = arg;

	assert_int_equal(n, 1);
	snprintf(found[index], sizeof(found[index]), "%s", locations[0].function);
}

static void addresses_have_names(void **state)
{
	const uint64_t addresses[] = { CODE_OF(8) + 3, CODE_OF(11) + 3, CODE_OF(12) + 3 };
	char found[3][256] = { "", "", "" };
	struct sf_symbols *symbols;
	size_t size;
	uint8_t *file;
	FILE *out = tmpfile();

	(void)state;
	assert_non_null(out);
	make_program(16, 25);
	file = build(&size);
	assert_int_equal(fwrite(file, 1, size, out), size);
	free(file);
	assert_int_equal(fflush(out), 0);
	assert_true(sf_symbols_open(fileno(out), "/app/demo", true, &symbols, NULL));
	assert_true(sf_symbols_resolve(symbols, addresses, 3, keep_name, found, NULL));
	assert_string_equal(found[0], names[8]);
	assert_string_equal(found[1], names[11]);
	assert_string_equal(found[2], "0x1180 in demo");
	sf_symbols_close(symbols);
	fclose(out);
}

/* How many methods the program has, as it is now. */
static size_t count(void)
{
	struct sf_elf elf;
	struct sf_ilc_methods methods = read_methods(&elf);
	const size_t n = methods.items.n;

	close_methods(&elf, &methods);
	return n;
}

static void mistakes_leave_no_names(void **state)
{
	(void)state;
	make_program(17, 25);                /* a version that was not tried */
	assert_int_equal(count(), 0);
	make_program(16, 25);
	assert_int_equal(count(), 9);
	program.data[0] = 'r';
	assert_int_equal(count(), 0);
	make_program(16, 25);
	program.metadata.bytes[0]++;
	assert_int_equal(count(), 0);
	make_program(16, 25);
	program.stack_trace.bytes[0]--;      /* entries are left over */
	assert_int_equal(count(), 0);
	make_program(16, 25);
	program.stack_trace.bytes[0]++;      /* or missing */
	assert_int_equal(count(), 0);
	make_program(16, 25);
	program.stack_trace.bytes[4] |= 32;  /* what it is to change is not known */
	assert_int_equal(count(), 0);
	make_program(16, 25);
	program.stack_trace.bytes[7] ^= 0x40; /* an address that is no code */
	assert_int_equal(count(), 0);
	make_program(16, 25);
	program.n_relocations--;             /* the header is nowhere */
	assert_int_equal(count(), 0);
	make_program(16, 25);
	memset(program.data + (INVOKE - DATA), 0xff, TYPES - INVOKE);
	assert_int_equal(count(), 7);        /* the others stay */
}

/* Records that lead to themselves: a type that is itself, a parameter that is an array of itself, a type in itself. */
static void circles_end(void **state)
{
	const struct type self = { SF_ILC_TYPE_SPECIFICATION, 0 };
	struct sf_ilc_method method = { 0 };
	struct sf_ilc_metadata metadata;
	uint32_t array, of_self, in_itself;
	struct blob patch;
	char buffer[256];
	struct sf_text text = sf_text_in(buffer, sizeof(buffer));

	(void)state;
	make_program(16, 25);
	array = wrapped(SF_ILC_SIMPLE_ARRAY, here());
	of_self = signature(&(struct type){ SF_ILC_SIMPLE_ARRAY, array }, 1);
	in_itself = definition("Loop", 0, 0x1fff, 0, NULL, 0);
	patch = program.metadata;
	/* The enclosing type is behind flags, base, namespace, name, and two sizes. */
	patch.n = in_itself + 5;
	while (memcmp(patch.bytes + patch.n, &(uint16_t){ 0x1fff << 2 | 1 }, 2) != 0)
		patch.n++;
	assert_true(in_itself < 1u << 14);
	put(&patch, &(uint16_t){ (uint16_t)(in_itself << 2 | 1) }, 2);
	metadata = (struct sf_ilc_metadata){ { program.metadata.bytes, program.metadata.n, METADATA }, 25 };

	method.owner = (struct sf_ilc_handle){ self.type, records.self };
	method.signature = of_self;
	sf_ilc_put_method(&text, &metadata, &method);
	assert_string_equal(buffer, "?.(?[][][][][][][][][][][][][][][][])");
	method.owner = (struct sf_ilc_handle){ SF_ILC_TYPE_DEFINITION, in_itself };
	text = sf_text_in(buffer, sizeof(buffer));
	sf_ilc_put_method(&text, &metadata, &method);
	assert_non_null(strstr(buffer, "Loop.Loop.Loop"));
}

/*
 * Each byte of the tables gets other values: whatever comes of it, reading ends, and stays in the file. Zeros behind the
 * header are mostly room between tables.
 */
static void any_byte_may_be_wrong(void **state)
{
	static const uint8_t changes[] = { 0x01, 0x80, 0xff };

	(void)state;
	make_program(16, 25);
	for (size_t i = 0; i < METADATA - DATA + program.metadata.n; i++) {
		for (size_t k = 0; k < sizeof(changes) && (program.data[i] || i < 0x100); k++) {
			struct sf_ilc_methods methods;
			struct sf_elf elf;

			program.data[i] ^= changes[k];
			methods = read_methods(&elf);
			for (size_t m = 0; m < N_NAMES; m++)
				name_at(&methods, CODE_OF(m));
			close_methods(&elf, &methods);
			program.data[i] ^= changes[k];
		}
	}
}

static void numbers_have_five_sizes(void **state)
{
	static const uint8_t bytes[] = { 0x02, 0xfe, 0x01, 0x80, 0xff, 0xff, 0xfb, 0xff, 0xff, 0x07, 0x00, 0x00, 0x80, 0x0f, 1, 0, 0, 0x80, 0x1f };
	struct sf_bytes at = sf_bytes_of(bytes, sizeof(bytes)), same = at;

	(void)state;
	assert_int_equal(sf_ilc_number(&at), 1);
	assert_int_equal(sf_ilc_number(&at), 127);
	assert_int_equal(sf_ilc_number(&at), 0x2000);
	at.at -= 2;
	same.at = bytes + 1;
	assert_int_equal(sf_ilc_signed_number(&same), -1);
	assert_int_equal(sf_ilc_signed_number(&same), -0x2000);
	same.at = bytes + 10 - 1;
	assert_int_equal(sf_ilc_number(&same), 0x8000000);
	same.at = bytes + 9;
	assert_int_equal(sf_ilc_signed_number(&same), -0x8000000);
	assert_int_equal(sf_ilc_number(&same), 0x80000001u);
	assert_false(same.bad);
	sf_ilc_number(&same);                /* a form that there is not */
	assert_true(same.bad);
	same = sf_bytes_of(bytes + 9, 3);    /* cut */
	sf_ilc_number(&same);
	assert_true(same.bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_five_sizes),
		cmocka_unit_test(methods_have_names),
		cmocka_unit_test(addresses_have_names),
		cmocka_unit_test(mistakes_leave_no_names),
		cmocka_unit_test(circles_end),
		cmocka_unit_test(any_byte_may_be_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the names and lines of Java methods. The target's memory is hostile input.
 *
 * A Method leads to its ConstMethod, that to the constant pool of its class, and the pool's slots
 * to names (HotSpot: oops/method.hpp, constMethod.hpp, constantPool.hpp, symbol.hpp).
 */
#include "runtime/hotspot/metadata.h"

#include <stdio.h>
#include <string.h>

#include "runtime/hotspot/names.h"
#include "runtime/hotspot/unsigned5.h"

#define MAX_SYMBOL 65535
#define MAX_LINE_TABLE 65536

/* Bytes that are read ahead of what has no known size: what most have. */
#define MAX_BYTECODES 128     /* of methods that are looked through for calls */
#define LINES_AHEAD 64
#define SOURCE_AHEAD 48

#define SYMBOL_HEAD 8        /* bytes of a symbol that tell its length */
#define MAX_AHEAD 512        /* of its text, as much as is shown */

static bool symbol_length(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			  uint64_t symbol, uint64_t *ret)
{
	if (sf_hotspot_get(hotspot, memory, SF_HS_SYMBOL_LENGTH, symbol, ret))
		return true;
	if (!sf_hotspot_get(hotspot, memory, SF_HS_SYMBOL_LENGTH_REFS, symbol, ret))
		return false;
	*ret = *ret >> 16 & 0xffff;
	return true;
}

bool sf_java_symbol(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		    uint64_t symbol, char *ret, size_t size)
{
	uint64_t length;

	ret[0] = 0;
	if (symbol < 4096 || !sf_hotspot_has(hotspot, SF_HS_SYMBOL_BODY))
		return false;
	if (!symbol_length(hotspot, memory, symbol, &length) || length == 0 || length > MAX_SYMBOL)
		return false;
	if (length > size - 1)
		length = size - 1;
	if (!sf_read(memory, ret, symbol + hotspot->fields[SF_HS_SYMBOL_BODY].at, length)) {
		ret[0] = 0;
		return false;
	}
	ret[length] = 0;
	return strlen(ret) == length;
}

static uint64_t slot_of(const struct sf_hotspot *hotspot, uint64_t pool, uint64_t index)
{
	return pool + hotspot->sizes[SF_HS_SIZE_POOL] + 8 * index;
}

/* The symbol that is in a slot of a pool. */
static bool read_slot(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		      uint64_t pool, uint64_t index, uint64_t *ret)
{
	if (!sf_read_u64(memory, slot_of(hotspot, pool, index), ret))
		return false;
	*ret &= ~UINT64_C(1); /* some versions tag the pointer in its lowest bit */
	return true;
}

bool sf_java_pool_symbol(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			 uint64_t pool, uint64_t index, char *ret, size_t size)
{
	uint64_t length, symbol;

	ret[0] = 0;
	if (index == 0 || (sf_hotspot_get(hotspot, memory, SF_HS_POOL_LENGTH, pool, &length) &&
			   index >= length))
		return false;
	return read_slot(hotspot, memory, pool, index, &symbol) &&
	       sf_java_symbol(hotspot, memory, symbol, ret, size);
}

/* The file is in the class's package. */
static void make_file(const char *class_name, const char *source, char *ret, size_t size)
{
	const char *slash = strrchr(class_name, '/');
	int package = slash ? (int)(slash - class_name) + 1 : 0;

	if (source[0])
		snprintf(ret, size, "%.*s%s", package, class_name, source);
}

/* The constant that holds the source file's name, in the pool or (up to JDK 14) the class. */
static void read_source(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			uint64_t pool, uint64_t holder, char *ret, size_t size)
{
	uint64_t index;

	ret[0] = 0;
	if (sf_hotspot_get(hotspot, memory, SF_HS_POOL_SOURCE, pool, &index) ||
	    sf_hotspot_get(hotspot, memory, SF_HS_CLASS_SOURCE, holder, &index))
		sf_java_pool_symbol(hotspot, memory, pool, index, ret, size);
}

bool sf_java_method_read(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			 uint64_t method, struct sf_java_method *ret)
{
	char class_name[512] = "", name[256] = "", signature[512] = "", source[256];
	uint64_t pool, holder = 0, symbol = 0, index;
	struct sf_method found;

	memset(ret, 0, sizeof(*ret));
	if (!sf_hotspot_method(hotspot, memory, method, &found))
		return false;
	ret->constant = found.constant;
	pool = found.pool;
	if (sf_hotspot_get(hotspot, memory, SF_HS_POOL_HOLDER, pool, &holder) &&
	    sf_hotspot_get(hotspot, memory, SF_HS_CLASS_NAME, holder, &symbol))
		sf_java_symbol(hotspot, memory, symbol, class_name, sizeof(class_name));
	if (sf_hotspot_get(hotspot, memory, SF_HS_CONST_NAME, ret->constant, &index))
		sf_java_pool_symbol(hotspot, memory, pool, index, name, sizeof(name));
	if (sf_hotspot_get(hotspot, memory, SF_HS_CONST_SIGNATURE, ret->constant, &index))
		sf_java_pool_symbol(hotspot, memory, pool, index, signature, sizeof(signature));
	if (!class_name[0] || !name[0])
		return false;
	sf_java_clean_class(class_name);
	read_source(hotspot, memory, pool, holder, source, sizeof(source));
	make_file(class_name, source, ret->file, sizeof(ret->file));
	sf_java_method_name(class_name, name, signature, ret->name, sizeof(ret->name));
	snprintf(ret->linkage, sizeof(ret->linkage), "%.480s.%.240s%.300s", class_name, name,
		 signature);
	return true;
}

/* A cursor in the compressed line table, which is read a piece at a time. */
struct line_table {
	struct sf_unsigned5 in;
	uint32_t bci, line;
};

/*
 * Reads the next entry; false at the end. A short entry has five bits of bci and three of line. Other
 * entries have two signed numbers.
 */
static bool next_line(struct line_table *table)
{
	uint32_t bci, line;
	uint8_t byte;

	if (!sf_unsigned5_byte(&table->in, &byte) || byte == 0)
		return false;
	if (byte != 0xff) {
		table->bci += byte >> 3;
		table->line += byte & 7;
		return true;
	}
	if (!sf_unsigned5_next(&table->in, &bci) || !sf_unsigned5_next(&table->in, &line))
		return false;
	table->bci += (bci >> 1) ^ (0u - (bci & 1));
	table->line += (line >> 1) ^ (0u - (line & 1));
	return true;
}

uint32_t sf_java_line(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		      uint64_t constant, int32_t bci)
{
	struct line_table table = { 0 };
	uint64_t flags, code_size;
	uint32_t best = 0, best_bci = 0;

	if (bci < 0 || !sf_hotspot_get(hotspot, memory, SF_HS_CONST_FLAGS, constant, &flags) ||
	    !(flags & (uint64_t)hotspot->numbers[SF_HS_NUMBER_HAS_LINES]) ||
	    !sf_hotspot_get(hotspot, memory, SF_HS_CONST_CODE_SIZE, constant, &code_size))
		return 0;
	sf_unsigned5_start(&table.in, hotspot, memory,
			   constant + hotspot->sizes[SF_HS_SIZE_CONST_METHOD] + code_size);
	for (unsigned i = 0; i < MAX_LINE_TABLE && next_line(&table); i++) {
		/*
		 * Not always in order: the last one before the wanted bytecode counts. Of several at the bytecode itself it
		 * is the first one, as in Java's own stack traces (HotSpot: Method::line_number_from_bci).
		 */
		if (table.bci <= (uint32_t)bci && (!best || table.bci >= best_bci)) {
			best = table.line;
			best_bci = table.bci;
		}
		if (table.bci == (uint32_t)bci)
			break;
	}
	return best < 1u << 24 ? best : 0;
}

/*
 * Whether this bytecode, or operand of one, may be a call: invokevirtual to invokedynamic, or one that HotSpot puts in place of
 * others, which begin with a breakpoint. The two dozen behind it are for fields and local variables, in all JDKs (HotSpot:
 * interpreter/bytecodes.hpp).
 */
static bool may_be_call(uint8_t byte)
{
	return (byte >= 0xb6 && byte <= 0xba) || byte == 0xca || byte > 0xe1;
}

bool sf_java_calls_nothing(const struct sf_hotspot *hotspot, const struct sf_reader *memory, uint64_t method)
{
	uint8_t codes[MAX_BYTECODES];
	struct sf_method read;
	bool calls = false;

	if (!sf_hotspot_method(hotspot, memory, method, &read) || !read.code_size || read.code_size > sizeof(codes) ||
	    !sf_read(memory, codes, read.constant + hotspot->sizes[SF_HS_SIZE_CONST_METHOD], read.code_size))
		return false;
	for (uint64_t i = 0; i < read.code_size; i++)
		calls = calls || may_be_call(codes[i]);
	return !calls;
}

/* --- reading ahead, a step for all of them at once --- */

struct expecting {
	const struct sf_hotspot *hotspot;
	const struct sf_reader *memory;
	const struct sf_prefetch *ahead;
};

static bool get(const struct expecting *in, enum sf_hotspot_field_name name, uint64_t base,
		uint64_t *ret)
{
	return sf_hotspot_get(in->hotspot, in->memory, name, base, ret);
}

static void want_field(const struct expecting *in, enum sf_hotspot_field_name name, uint64_t base)
{
	if (sf_hotspot_has(in->hotspot, name))
		sf_prefetch_want(in->ahead, base + in->hotspot->fields[name].at,
			      in->hotspot->fields[name].width);
}

static void want_slot(const struct expecting *in, enum sf_hotspot_field_name index, uint64_t base,
		      uint64_t pool)
{
	uint64_t i;

	if (get(in, index, base, &i))
		sf_prefetch_want(in->ahead, slot_of(in->hotspot, pool, i), 8);
}

/* The symbol in a slot that is there. */
static uint64_t symbol_in(const struct expecting *in, enum sf_hotspot_field_name index, uint64_t base,
			  uint64_t pool)
{
	uint64_t i, symbol;

	return get(in, index, base, &i) &&
		       read_slot(in->hotspot, in->memory, pool, i, &symbol) ? symbol : 0;
}

static void want_head(const struct expecting *in, uint64_t symbol)
{
	if (symbol)
		sf_prefetch_want(in->ahead, symbol, SYMBOL_HEAD);
}

/* Its head is there. */
static void want_text(const struct expecting *in, uint64_t symbol)
{
	uint64_t length;

	if (symbol && symbol_length(in->hotspot, in->memory, symbol, &length))
		sf_prefetch_want(in->ahead, symbol + in->hotspot->fields[SF_HS_SYMBOL_BODY].at,
			      length < MAX_AHEAD ? length : MAX_AHEAD);
}

/* False: there is none. */
static bool get_pool(const struct expecting *in, const struct sf_java_expected *of, uint64_t *ret)
{
	return of->constant && get(in, SF_HS_CONST_POOL, of->constant, ret);
}

/* Its Method is there. */
static void want_constant(const struct expecting *in, const struct sf_java_expected *of)
{
	if (of->constant)
		sf_prefetch_want(in->ahead, of->constant, in->hotspot->sizes[SF_HS_SIZE_CONST_METHOD]);
}

/* Its ConstMethod is there. */
static void want_pool(const struct expecting *in, const struct sf_java_expected *of)
{
	uint64_t lines = of->constant + in->hotspot->sizes[SF_HS_SIZE_CONST_METHOD];
	uint64_t code_size, pool;

	if (!of->constant || !get(in, SF_HS_CONST_CODE_SIZE, of->constant, &code_size))
		return;
	lines += code_size;
	sf_prefetch_want(in->ahead, lines, sf_unsigned5_reads(lines, LINES_AHEAD));
	if (!get_pool(in, of, &pool))
		return;
	want_field(in, SF_HS_POOL_LENGTH, pool);
	want_field(in, SF_HS_POOL_HOLDER, pool);
	want_field(in, SF_HS_POOL_SOURCE, pool);
	want_slot(in, SF_HS_CONST_NAME, of->constant, pool);
	want_slot(in, SF_HS_CONST_SIGNATURE, of->constant, pool);
}

/* Its ConstantPool is there. */
static void want_names(const struct expecting *in, const struct sf_java_expected *of)
{
	uint64_t pool, holder;

	if (!get_pool(in, of, &pool))
		return;
	want_head(in, symbol_in(in, SF_HS_CONST_NAME, of->constant, pool));
	want_head(in, symbol_in(in, SF_HS_CONST_SIGNATURE, of->constant, pool));
	want_slot(in, SF_HS_POOL_SOURCE, pool, pool);
	if (!get(in, SF_HS_POOL_HOLDER, pool, &holder))
		return;
	want_field(in, SF_HS_CLASS_NAME, holder);
	want_field(in, SF_HS_CLASS_SOURCE, holder);
}

/* Its class is there. */
static void want_class_names(const struct expecting *in, const struct sf_java_expected *of)
{
	uint64_t pool, holder, symbol;

	if (!get_pool(in, of, &pool))
		return;
	want_text(in, symbol_in(in, SF_HS_CONST_NAME, of->constant, pool));
	want_text(in, symbol_in(in, SF_HS_CONST_SIGNATURE, of->constant, pool));
	want_head(in, symbol_in(in, SF_HS_POOL_SOURCE, pool, pool));
	if (!get(in, SF_HS_POOL_HOLDER, pool, &holder))
		return;
	want_slot(in, SF_HS_CLASS_SOURCE, holder, pool);
	if (get(in, SF_HS_CLASS_NAME, holder, &symbol))
		want_head(in, symbol);
}

/* Prefetches the names of the class and of its source file. Up to JDK 14 the class has the slot of the file's name. */
static void want_class_texts(const struct expecting *in, const struct sf_java_expected *of)
{
	uint64_t pool, holder, symbol;

	if (!get_pool(in, of, &pool))
		return;
	want_text(in, symbol_in(in, SF_HS_POOL_SOURCE, pool, pool));
	if (!get(in, SF_HS_POOL_HOLDER, pool, &holder))
		return;
	if (get(in, SF_HS_CLASS_NAME, holder, &symbol))
		want_text(in, symbol);
	symbol = symbol_in(in, SF_HS_CLASS_SOURCE, holder, pool);
	if (symbol)
		sf_prefetch_want(in->ahead, symbol, SOURCE_AHEAD);
}

void sf_java_methods_expect(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			    const struct sf_prefetch *ahead, struct sf_java_expected *methods, size_t n)
{
	/* To add one: a step may read what those before it wanted. */
	static void (*const steps[])(const struct expecting *in, const struct sf_java_expected *of) = {
		want_constant, want_pool, want_names, want_class_names, want_class_texts,
	};
	const struct expecting in = { hotspot, memory, ahead };

	for (size_t i = 0; i < n; i++)
		want_field(&in, SF_HS_METHOD_CONST, methods[i].method);
	sf_prefetch_fetch(ahead);
	for (size_t i = 0; i < n; i++) {
		if (!get(&in, SF_HS_METHOD_CONST, methods[i].method, &methods[i].constant) ||
		    !sf_hotspot_is_metadata(methods[i].constant))
			methods[i].constant = 0;
	}
	for (size_t step = 0; step < sizeof(steps) / sizeof(steps[0]); step++) {
		for (size_t i = 0; i < n; i++)
			steps[step](&in, &methods[i]);
		sf_prefetch_fetch(ahead);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
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

bool sf_java_symbol(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		    uint64_t symbol, char *ret, size_t size)
{
	uint64_t length;

	ret[0] = 0;
	if (symbol < 4096 || !sf_hotspot_has(hotspot, SF_HS_SYMBOL_BODY))
		return false;
	if (!sf_hotspot_get(hotspot, memory, SF_HS_SYMBOL_LENGTH, symbol, &length)) {
		if (!sf_hotspot_get(hotspot, memory, SF_HS_SYMBOL_LENGTH_REFS, symbol, &length))
			return false;
		length = length >> 16 & 0xffff;
	}
	if (length == 0 || length > MAX_SYMBOL)
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

bool sf_java_pool_symbol(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			 uint64_t pool, uint64_t index, char *ret, size_t size)
{
	uint64_t length, symbol;

	ret[0] = 0;
	if (index == 0 || (sf_hotspot_get(hotspot, memory, SF_HS_POOL_LENGTH, pool, &length) &&
			   index >= length))
		return false;
	if (!sf_read_u64(memory, pool + hotspot->sizes[SF_HS_SIZE_POOL] + 8 * index, &symbol))
		return false;
	/* Some versions tag the pointer in its lowest bit. */
	return sf_java_symbol(hotspot, memory, symbol & ~UINT64_C(1), ret, size);
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
 * One entry: false at the end. Short: five bits of bci and three of line; else two signed
 * numbers.
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
		/* Not always in order: the last one before the wanted bytecode counts. */
		if (table.bci <= (uint32_t)bci && (!best || table.bci >= best_bci)) {
			best = table.line;
			best_bci = table.bci;
		}
	}
	return best < 1u << 24 ? best : 0;
}

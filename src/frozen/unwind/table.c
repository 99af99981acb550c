/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking things up in an unwind table. The block may come from a hostile file: sizes are checked
 * once, by sf_table_init; the numbers inside rows and rules each time that they are used.
 */
#include <stdatomic.h>
#include <stddef.h>

#include "frozen/memory/hash.h"
#include "frozen/unwind/table.h"

#include "frozen/frozen.h"

#define LOG2_GUESSES 12

static bool is_ours(const struct sf_table_header *header, size_t size)
{
	return header->magic == SF_TABLE_MAGIC && header->version == SF_TABLE_VERSION &&
	       header->size >= sizeof(*header) && header->size <= size;
}

/* Takes n items off what is left of the block; false when they are not there. */
static bool take(uint64_t *left, uint64_t n, size_t item_size)
{
	uint64_t size;

	if (__builtin_mul_overflow(n, (uint64_t)item_size, &size) || size > *left)
		return false;
	*left -= size;
	return true;
}

bool sf_table_init(struct sf_table *ret, const void *block, size_t size)
{
	const struct sf_table_header *header = block;
	uint64_t left;

	if ((uintptr_t)block % _Alignof(struct sf_table_header) != 0 || size < sizeof(*header) ||
	    !is_ours(header, size))
		return false;
	left = header->size - sizeof(*header);
	if (!take(&left, header->n_rows, sizeof(struct sf_row)) ||
	    !take(&left, header->n_rules, sizeof(struct sf_rules)) ||
	    !take(&left, header->blob_size, 1))
		return false;
	ret->header = header;
	ret->rows = (const struct sf_row *)(header + 1);
	ret->rules = (const struct sf_rules *)(ret->rows + header->n_rows);
	ret->blob = (const uint8_t *)(ret->rules + header->n_rules);
	return true;
}

/*
 * A cache of row numbers by address. An entry is a guess: it is checked before it is used, so it may belong to another
 * table. Walks look up the same addresses again and again, and a binary search misses the processor's cache at nearly
 * each step. In the 200,000 rows of a virtual machine's library the search was a fifth of the cost of handler walks beside
 * a compiler. With the cache it is a tenth.
 */
static _Atomic uint32_t guesses[1u << LOG2_GUESSES];

static _Atomic uint32_t *guess_for(const struct sf_table *table, uint64_t offset)
{
	return &guesses[sf_hash((uintptr_t)table->rows ^ offset << 8, LOG2_GUESSES)];
}

static bool is_row_of(const struct sf_table *table, uint32_t i, uint64_t offset)
{
	const uint32_t n = table->header->n_rows;

	return i < n && table->rows[i].offset <= offset &&
	       (i + 1 == n || offset < table->rows[i + 1].offset);
}

/* The last row whose offset is not above: it is always in rows[0 .. n - 1]. */
static uint32_t search(const struct sf_table *table, uint64_t offset)
{
	uint32_t i = 0;

	for (uint32_t n = table->header->n_rows; n > 1;) {
		const uint32_t half = n / 2;

		i += table->rows[i + half].offset <= offset ? half : 0;
		n -= half;
	}
	return i;
}

static const struct sf_row *find_row(const struct sf_table *table, uint64_t address)
{
	const uint64_t offset = address - table->header->base;
	_Atomic uint32_t *guess;
	uint32_t i;

	if (address < table->header->base || offset > UINT32_MAX)
		return NULL;
	guess = guess_for(table, offset);
	i = atomic_load_explicit(guess, memory_order_relaxed);
	if (is_row_of(table, i, offset))
		return &table->rows[i];
	if (table->header->n_rows == 0 || table->rows[0].offset > offset)
		return NULL;
	i = search(table, offset);
	atomic_store_explicit(guess, i, memory_order_relaxed);
	return &table->rows[i];
}

bool sf_table_range(const struct sf_table *table, uint64_t address, struct sf_row_range *ret)
{
	const struct sf_table_header *header = table->header;
	const struct sf_row *row = find_row(table, address);

	if (!row || row->rules >= header->n_rules)
		return false;
	ret->rules = &table->rules[row->rules];
	ret->start = header->base + row->offset;
	ret->end =
		row + 1 < table->rows + header->n_rows ? header->base + row[1].offset : UINT64_MAX;
	return true;
}

const struct sf_rules *sf_table_find(const struct sf_table *table, uint64_t address)
{
	struct sf_row_range row;

	return sf_table_range(table, address, &row) && !(row.rules->flags & SF_RULES_NONE) ? row.rules
											   : NULL;
}

bool sf_table_starts_row(const struct sf_table *table, uint64_t address)
{
	const struct sf_row *row = find_row(table, address);

	return row && table->header->base + row->offset == address;
}

const uint8_t *sf_table_expression(const struct sf_table *table, const struct sf_rule *rule)
{
	const uint32_t blob_size = table->header->blob_size;

	if (rule->value < 0 || (uint32_t)rule->value > blob_size || rule->size > blob_size - (uint32_t)rule->value)
		return NULL;
	return table->blob + rule->value;
}

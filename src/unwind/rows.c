/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the rows of a table and writes the table's block.
 *
 * Rules are interned as they come, so a row is 8 bytes from the start. A span is a stretch of
 * addresses and the function whose rows hold in it; settling a source turns overlapping spans
 * into disjoint ones and puts them into the holes of what was settled before. No row moves
 * until packing.
 */
#include "unwind/rows.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

#include "base/intern.h"
#include "base/search.h"
#include "base/vec.h"
#include "unwind/spans.h"

/*
 * Distinct rule sets and bytes of expressions in one table. The most seen is 1,452 and some
 * hundred bytes (2,330 files, tests/unit/test_unwind_files). The bounds keep a hostile file from
 * making 120 bytes out of each 3 of its own. A function that would go beyond is left out, and a walk
 * that comes there has no rule for it.
 */
#define MAX_RULES (1u << 16)
#define MAX_EXPRESSIONS (1u << 16)
#define MAX_BLOB ((size_t)4 << 20)

/*
 * Functions and rows of one table, 16 and 8 bytes each, several times while it is made. chromium has
 * some 600,000 functions. Those that come behind are left out.
 */
#define MAX_FUNCTIONS ((size_t)1 << 20)
#define MAX_ROWS ((size_t)4 << 20)

struct sf_rows {
	uint64_t base;
	uint64_t end;
	struct sf_intern *rules;
	struct sf_intern *expressions;
	SF_VEC(int32_t) offsets;  /* of expressions in the blob, by number - 1 */
	SF_VEC(uint8_t) blob;
	SF_VEC(struct sf_row) rows;
	struct sf_spans fresh;       /* of this source, as they came */
	struct sf_spans settled;     /* of earlier ones: sorted, disjoint */
	size_t n_functions;
	struct sf_span current;
	bool overfull;            /* a bound was hit in the current function: it is dropped */
	uint64_t flagged, flagged_size;
	uint32_t flag;
	uint64_t lowered;
	int32_t lowered_by;
};

/* Row rules are interned numbers (from 1) until packing; those of a gap are the first. */
#define GAP 1

static const struct sf_rules gap_rules = {
	.cfa.how = SF_HOW_UNDEFINED,
	.flags = SF_RULES_NONE,
};

struct sf_rows *sf_rows_create(uint64_t start, uint64_t end)
{
	struct sf_rows *rows = calloc(1, sizeof(*rows));

	if (!rows)
		return NULL;
	rows->base = start;
	rows->end = end;
	rows->rules = sf_intern_create();
	rows->expressions = sf_intern_create();
	if (!rows->rules || !rows->expressions ||
	    sf_intern_add(rows->rules, &gap_rules, sizeof(gap_rules), NULL) != GAP) {
		sf_rows_destroy(rows);
		return NULL;
	}
	return rows;
}

void sf_rows_destroy(struct sf_rows *rows)
{
	if (!rows)
		return;
	sf_intern_destroy(rows->rules);
	sf_intern_destroy(rows->expressions);
	sf_vec_deinit(&rows->offsets);
	sf_vec_deinit(&rows->blob);
	sf_vec_deinit(&rows->rows);
	sf_vec_deinit(&rows->fresh);
	sf_vec_deinit(&rows->settled);
	free(rows);
}

void sf_rows_flag(struct sf_rows *rows, uint64_t start, uint64_t size, uint32_t flag)
{
	rows->flagged = start;
	rows->flagged_size = size;
	rows->flag = flag;
}

void sf_rows_lower(struct sf_rows *rows, uint64_t start, int32_t by)
{
	rows->lowered = start;
	rows->lowered_by = by;
}

/* The rules as the table has them for the current function. */
static struct sf_rules mend(const struct sf_rows *rows, const struct sf_rules *rules)
{
	const uint64_t start = rows->base + rows->current.start;
	struct sf_rules mended = *rules;

	if (start - rows->flagged < rows->flagged_size)
		mended.flags |= rows->flag;
	if (rows->lowered && start == rows->lowered && mended.cfa.how == SF_HOW_REGISTER_PLUS)
		mended.cfa.value = (int32_t)((uint32_t)mended.cfa.value - (uint32_t)rows->lowered_by);
	return mended;
}

bool sf_rows_begin(struct sf_rows *rows, uint64_t start, uint64_t end)
{
	if (end > rows->end)
		end = rows->end;
	if (start < rows->base || start >= end)
		return false;
	rows->current = (struct sf_span){
		.start = (uint32_t)(start - rows->base),
		.end = (uint32_t)(end - rows->base),
		.first = (uint32_t)rows->rows.n,
	};
	rows->overfull = false;
	return rows->n_functions < MAX_FUNCTIONS && rows->rows.n < MAX_ROWS &&
	       !sf_spans_cover(&rows->settled, rows->current.start, rows->current.end);
}

static uint32_t intern_rules(struct sf_rows *rows, const struct sf_rules *rules)
{
	if (sf_intern_count(rows->rules) >= MAX_RULES) {
		rows->overfull = true;
		return GAP;
	}
	return sf_intern_add(rows->rules, rules, sizeof(*rules), NULL);
}

bool sf_rows_add(struct sf_rows *rows, uint64_t address, const struct sf_rules *rules)
{
	struct sf_span *current = &rows->current;
	struct sf_row row, *last;
	struct sf_rules mended;

	rows->overfull |= rows->rows.n >= MAX_ROWS;
	if (address - rows->base >= current->end || rows->overfull)
		return true;
	row.offset = (uint32_t)(address - rows->base);
	mended = mend(rows, rules);
	row.rules = intern_rules(rows, &mended);
	if (!row.rules)
		return false;
	last = current->n_rows ? &rows->rows.items[rows->rows.n - 1] : NULL;
	if (last && last->offset == row.offset) {
		last->rules = row.rules;
		return true;
	}
	if (last && last->rules == row.rules)
		return true;
	current->n_rows++;
	return sf_vec_push(&rows->rows, row);
}

bool sf_rows_end(struct sf_rows *rows, bool keep)
{
	if (!keep || rows->overfull || !rows->current.n_rows) {
		rows->rows.n = rows->current.first;
		return true;
	}
	rows->n_functions++;
	return sf_vec_push(&rows->fresh, rows->current);
}

bool sf_rows_any(const struct sf_rows *rows)
{
	return rows->n_functions > 0;
}

static bool store_expression(struct sf_rows *rows, const uint8_t *bytes, size_t size)
{
	if (!sf_vec_push(&rows->offsets, (int32_t)rows->blob.n) ||
	    !sf_vec_reserve(&rows->blob, size))
		return false;
	if (size)
		memcpy(rows->blob.items + rows->blob.n, bytes, size);
	rows->blob.n += size;
	return true;
}

bool sf_rows_expression(struct sf_rows *rows, const uint8_t *bytes, size_t size, int32_t *ret)
{
	uint32_t number;
	bool is_new;

	if (rows->blob.n + size > MAX_BLOB ||
	    sf_intern_count(rows->expressions) >= MAX_EXPRESSIONS) {
		rows->overfull = true;
		*ret = 0;
		return true;
	}
	number = sf_intern_add(rows->expressions, bytes, size, &is_new);
	if (!number || (is_new && !store_expression(rows, bytes, size)))
		return false;
	*ret = rows->offsets.items[number - 1];
	return true;
}

bool sf_rows_settle(struct sf_rows *rows)
{
	struct sf_spans flat = { 0 }, merged = { 0 };
	bool ok;

	if (!rows->fresh.n)
		return true;
	sf_spans_sort(&rows->fresh);
	ok = sf_spans_flatten(&rows->fresh, &flat) &&
	     sf_spans_merge(&rows->settled, &flat, &merged);
	sf_vec_deinit(&rows->fresh);
	sf_vec_deinit(&flat);
	sf_vec_deinit(&rows->settled);
	rows->settled = merged;
	return ok;
}

/* Where packed rows go; `rows` NULL only counts. */
struct packing {
	struct sf_row *rows;
	size_t n;
	uint32_t start; /* offset of the first row */
	uint32_t last;  /* rules of the last row, to merge equal neighbours; 0: it takes no other row */
};

static void pack_row(struct packing *packing, uint32_t offset, uint32_t rules)
{
	if (packing->n && packing->last == rules)
		return;
	if (packing->rows)
		packing->rows[packing->n] = (struct sf_row){ .offset = offset - packing->start,
							     .rules = rules - 1 };
	packing->last = rules;
	packing->n++;
}

/* The row of a function that holds at `offset`; its first one holds before it, too. */
static uint32_t find_row(const struct sf_row *rows, uint32_t n, uint32_t offset)
{
	const size_t begun = sf_count_before(n, i, rows[i].offset <= offset);

	return begun ? (uint32_t)begun - 1 : 0;
}

static void pack_span(struct packing *packing, const struct sf_span *span,
		      const struct sf_row *rows)
{
	uint32_t i = find_row(rows, span->n_rows, span->start);

	if (rows[0].offset == span->start) /* each function starts a row, also where no byte lies before it */
		packing->last = 0;
	pack_row(packing, span->start, rows[i].rules);
	for (i++; i < span->n_rows && rows[i].offset < span->end; i++)
		pack_row(packing, rows[i].offset, rows[i].rules);
}

/* All rows in order, with gaps, and a gap behind the last. Their number. */
static size_t pack_rows(const struct sf_rows *rows, struct sf_row *ret)
{
	struct packing packing = {
		.rows = ret, .start = rows->settled.n ? rows->settled.items[0].start : 0,
	};
	uint32_t end = 0;

	for (size_t i = 0; i < rows->settled.n; i++) {
		const struct sf_span *span = &rows->settled.items[i];

		if (packing.n && span->start > end)
			pack_row(&packing, end, GAP);
		pack_span(&packing, span, rows->rows.items + span->first);
		end = span->end;
	}
	if (packing.n)
		pack_row(&packing, end, GAP);
	return packing.n;
}

static void copy_rules(struct sf_rules *ret, const struct sf_intern *rules)
{
	uint32_t n = sf_intern_count(rules);

	for (uint32_t i = 0; i < n; i++)
		memcpy(&ret[i], sf_intern_get(rules, i + 1, NULL), sizeof(*ret));
}

/* Rules count from sp, and the return address is below it. */
static bool pops_return(const struct sf_rules *rules, uint8_t sp)
{
	return rules->cfa.how == SF_HOW_REGISTER_PLUS && rules->cfa.reg == sp && rules->ra.how == SF_HOW_AT_CFA &&
	       (int64_t)rules->cfa.value + rules->ra.value < 0;
}

static uint16_t flags_of(const struct sf_intern *rules, const struct sf_arch *arch)
{
	uint16_t flags = 0;

	for (uint32_t i = 0; i < sf_intern_count(rules); i++)
		flags |= pops_return(sf_intern_get(rules, i + 1, NULL), arch->sp) ? SF_TABLE_POPS_RETURN : 0;
	return flags;
}

uint32_t sf_rows_checksum(const void *block, size_t size)
{
	struct sf_table_header header;
	uLong sum;

	memcpy(&header, block, sizeof(header));
	header.checksum = 0;
	sum = crc32_z(0, (const uint8_t *)&header, sizeof(header));
	return (uint32_t)crc32_z(sum, (const uint8_t *)block + sizeof(header),
				 size - sizeof(header));
}

bool sf_rows_pack(const struct sf_rows *rows, const struct sf_table_header *known, void **ret,
		  size_t *size_ret, struct sf_error *err)
{
	struct sf_table_header header = *known;
	size_t n_rows = pack_rows(rows, NULL);
	size_t n_rules = n_rows ? sf_intern_count(rows->rules) : 0;
	size_t blob_size = n_rows ? rows->blob.n : 0;
	uint8_t *block, *at;

	header.magic = SF_TABLE_MAGIC;
	header.version = SF_TABLE_VERSION;
	header.flags |= n_rows ? flags_of(rows->rules, sf_arch_by_machine(known->elf_machine)) : 0;
	header.n_rows = (uint32_t)n_rows;
	header.n_rules = (uint32_t)n_rules;
	header.blob_size = (uint32_t)blob_size;
	header.base = n_rows ? rows->base + rows->settled.items[0].start : 0;
	header.size = sizeof(header) + n_rows * sizeof(struct sf_row) +
		      n_rules * sizeof(struct sf_rules) + blob_size;
	if (n_rows > UINT32_MAX)
		return sf_fail(err, SF_E_INPUT, "too many unwind rows: %zu", n_rows);
	block = mmap(NULL, header.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (block == MAP_FAILED)
		return sf_fail_memory(err);

	at = block + sizeof(header);
	pack_rows(rows, (struct sf_row *)at);
	at += n_rows * sizeof(struct sf_row);
	if (n_rules)
		copy_rules((struct sf_rules *)at, rows->rules);
	at += n_rules * sizeof(struct sf_rules);
	if (blob_size)
		memcpy(at, rows->blob.items, blob_size);
	header.checksum = 0;
	memcpy(block, &header, sizeof(header));
	((struct sf_table_header *)block)->checksum = sf_rows_checksum(block, header.size);
	*size_ret = header.size;
	*ret = block;
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads rows and heaps of metadata that is open, and finds rows that belong together.
 *
 * ECMA-335 (6th edition), II.22 (tables), II.23.2 (compressed numbers), II.24.2 (heaps).
 */
#include "runtime/coreclr/metadata.h"

#include "base/search.h"

#define GUID_SIZE 16u

uint32_t sf_clr_value(const struct sf_clr_metadata *metadata, enum sf_clr_table table, uint32_t row,
		      unsigned column)
{
	const struct sf_clr_rows *rows = &metadata->tables[table];
	const uint8_t *at;
	uint32_t value = 0;

	if (row == 0 || row > rows->n)
		return 0;
	at = rows->first + (size_t)(row - 1) * rows->size;
	for (unsigned i = 0; i < column; i++)
		at += rows->width[i];
	memcpy(&value, at, rows->width[column]);
	return value;
}

const char *sf_clr_string(const struct sf_clr_metadata *metadata, enum sf_clr_table table,
			  uint32_t row, unsigned column)
{
	struct sf_bytes strings = metadata->strings;
	const char *text;

	sf_bytes_take(&strings, sf_clr_value(metadata, table, row, column));
	text = sf_bytes_string(&strings);
	return text ? text : "";
}

struct sf_bytes sf_clr_blob_at(const struct sf_clr_metadata *metadata, uint32_t offset)
{
	struct sf_bytes blobs = metadata->blobs;
	const uint8_t *start;
	uint32_t size;

	sf_bytes_take(&blobs, offset);
	size = sf_clr_compressed(&blobs);
	start = sf_bytes_take(&blobs, size);
	return sf_bytes_of(start, start ? size : 0);
}

struct sf_bytes sf_clr_blob(const struct sf_clr_metadata *metadata, enum sf_clr_table table,
			    uint32_t row, unsigned column)
{
	return sf_clr_blob_at(metadata, sf_clr_value(metadata, table, row, column));
}

const uint8_t *sf_clr_guid(const struct sf_clr_metadata *metadata, enum sf_clr_table table, uint32_t row,
			   unsigned column)
{
	const uint32_t number = sf_clr_value(metadata, table, row, column); /* from 1 */
	struct sf_bytes guids = metadata->guids;

	if (!number)
		return NULL;
	sf_bytes_take(&guids, (uint64_t)(number - 1) * GUID_SIZE);
	return sf_bytes_take(&guids, GUID_SIZE);
}

uint32_t sf_clr_compressed(struct sf_bytes *bytes)
{
	const uint32_t first = sf_bytes_u8(bytes);

	if (first < 0x80)
		return first;
	if (first < 0xc0)
		return (first & 0x3f) << 8 | sf_bytes_u8(bytes);
	return (first & 0x1f) << 24 | __builtin_bswap32((uint32_t)sf_bytes_number(bytes, 3) << 8);
}

int32_t sf_clr_compressed_signed(struct sf_bytes *bytes)
{
	const size_t left = sf_bytes_left(bytes);
	const uint32_t value = sf_clr_compressed(bytes);
	const size_t size = left - sf_bytes_left(bytes);
	const int32_t range = size == 1 ? 1 << 6 : size == 2 ? 1 << 13 : 1 << 28;

	return (int32_t)(value >> 1) - (value & 1 ? range : 0);
}

uint32_t sf_clr_find(const struct sf_clr_metadata *metadata, enum sf_clr_table table,
		     unsigned column, uint32_t value)
{
	const uint32_t n = sf_clr_n_rows(metadata, table);
	const uint32_t row = 1 + (uint32_t)sf_count_before(n, i, sf_clr_value(metadata, table, (uint32_t)i + 1, column) < value);

	return sf_clr_value(metadata, table, row, column) == value && value ? row : 0;
}

void sf_clr_methods(const struct sf_clr_metadata *metadata, uint32_t type, uint32_t *first_ret,
		    uint32_t *end_ret)
{
	const uint32_t n = sf_clr_n_rows(metadata, SF_CLR_METHOD_DEF);
	const uint32_t first =
		sf_clr_value(metadata, SF_CLR_TYPE_DEF, type, SF_CLR_TYPE_DEF_METHODS);
	uint32_t end = sf_clr_value(metadata, SF_CLR_TYPE_DEF, type + 1, SF_CLR_TYPE_DEF_METHODS);

	if (type >= sf_clr_n_rows(metadata, SF_CLR_TYPE_DEF) || end > n + 1)
		end = n + 1;
	*first_ret = first ? first : end;
	*end_ret = end;
}

uint32_t sf_clr_find_method(const struct sf_clr_metadata *metadata, uint32_t type, const char *name)
{
	uint32_t method, end;

	sf_clr_methods(metadata, type, &method, &end);
	for (; method < end; method++) {
		if (!strcmp(sf_clr_string(metadata, SF_CLR_METHOD_DEF, method, SF_CLR_METHOD_DEF_NAME), name))
			return method;
	}
	return 0;
}

/* The TypeDef row whose list in this column has a row. */
static uint32_t owner_of(const struct sf_clr_metadata *metadata, unsigned column, uint32_t row)
{
	const uint32_t n = sf_clr_n_rows(metadata, SF_CLR_TYPE_DEF);

	/* The last type whose list begins at or before this row; types with empty lists begin
	 * where the next one does. */
	return (uint32_t)sf_count_before(n, i, sf_clr_value(metadata, SF_CLR_TYPE_DEF, (uint32_t)i + 1, column) <= row);
}

uint32_t sf_clr_owner(const struct sf_clr_metadata *metadata, uint32_t method)
{
	return method && method <= sf_clr_n_rows(metadata, SF_CLR_METHOD_DEF) ?
		owner_of(metadata, SF_CLR_TYPE_DEF_METHODS, method) : 0;
}

uint32_t sf_clr_field_owner(const struct sf_clr_metadata *metadata, uint32_t field)
{
	return field && field <= sf_clr_n_rows(metadata, SF_CLR_FIELD) ?
		owner_of(metadata, SF_CLR_TYPE_DEF_FIELDS, field) : 0;
}

enum sf_clr_table sf_clr_type_def_or_ref(uint32_t coded, uint32_t *row_ret)
{
	static const enum sf_clr_table tables[] = { SF_CLR_TYPE_DEF, SF_CLR_TYPE_REF,
						    SF_CLR_TYPE_SPEC, SF_CLR_TYPE_SPEC };

	*row_ret = coded >> 2;
	return tables[coded & 3];
}

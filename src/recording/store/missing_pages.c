/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the pages that a database lacks, and makes pages for their places. The file is hostile input. */
#include "recording/store/missing_pages.h"

#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/search.h"
#include "recording/store/pages.h"

#define HEADER 100             /* of the database, in front of page 1 */
#define INTERIOR_INDEX 0x02
#define LEAF_INDEX 0x0a
#define LEAF_TABLE 0x0d
#define INTERIOR_HEADER 12u
#define CELL (SF_PAGE_SIZE - 16u)

static uint32_t get(const uint8_t *bytes, unsigned n)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < n; i++)
		value = value << 8 | bytes[i];
	return value;
}

static bool read_page(int fd, uint32_t number, uint8_t *ret)
{
	return pread(fd, ret, SF_PAGE_SIZE, (off_t)sf_page_offset(number)) == SF_PAGE_SIZE;
}

static bool is_missing(const struct sf_missing_pages *missing, uint32_t number)
{
	return missing->promised && number && sf_page_offset(number) + SF_PAGE_SIZE > missing->there;
}

static bool note_child(struct sf_missing_pages *missing, uint32_t number)
{
	return !is_missing(missing, number) || sf_vec_push(&missing->of_indexes, number);
}

/* The children of a page that is no leaf: one for each cell, and the last one in its header. */
static bool note_children(const uint8_t *page, struct sf_missing_pages *missing)
{
	const uint32_t n_cells = get(page + 3, 2);

	for (uint32_t i = 0; i < n_cells && INTERIOR_HEADER + 2 * i + 2 <= SF_PAGE_SIZE; i++) {
		const uint32_t at = get(page + INTERIOR_HEADER + 2 * i, 2);

		if (at + 4 <= SF_PAGE_SIZE && !note_child(missing, get(page + at, 4)))
			return false;
	}
	return note_child(missing, get(page + 8, 4));
}

static int by_number(const void *left, const void *right)
{
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return sf_order(a, b);
}

/* Only pages that are there tell of which kind their missing children are. */
static int find_kinds(int fd, struct sf_missing_pages *missing)
{
	uint8_t page[SF_PAGE_SIZE];

	for (uint32_t number = 2; !is_missing(missing, number); number++) {
		if (!read_page(fd, number, page))
			return SQLITE_IOERR_READ;
		if (page[0] == INTERIOR_INDEX && !note_children(page, missing))
			return SQLITE_NOMEM;
	}
	if (missing->of_indexes.n)
		qsort(missing->of_indexes.items, missing->of_indexes.n, sizeof(*missing->of_indexes.items), by_number);
	return SQLITE_OK;
}

int sf_missing_pages_find(int fd, struct sf_missing_pages *ret)
{
	uint8_t header[HEADER];
	struct stat status;
	uint64_t promised;

	sf_missing_pages_deinit(ret);
	if (fstat(fd, &status) != 0)
		return SQLITE_IOERR_FSTAT;
	if (pread(fd, header, sizeof(header), 0) != HEADER || memcmp(header, "SQLite format 3", 16) != 0 ||
	    get(header + 16, 2) != SF_PAGE_SIZE)
		return SQLITE_OK;
	promised = (uint64_t)get(header + 28, 4) * SF_PAGE_SIZE;
	if ((uint64_t)status.st_size >= promised || status.st_size < (off_t)SF_PAGE_SIZE)
		return SQLITE_OK;
	ret->there = (uint64_t)status.st_size;
	ret->promised = promised;
	return find_kinds(fd, ret);
}

void sf_missing_pages_deinit(struct sf_missing_pages *missing)
{
	sf_vec_deinit(&missing->of_indexes);
	*missing = (struct sf_missing_pages){ 0 };
}

/* A leaf with one cell. Its record has a header that says that there are no columns, and is of row 1. */
bool sf_missing_pages_make(const struct sf_missing_pages *missing, uint32_t number, uint8_t *ret)
{
	static const uint8_t table_cell[] = { 1, 1, 1 }, index_cell[] = { 1, 1 };
	bool is_index;

	if (!is_missing(missing, number))
		return false;
	is_index = missing->of_indexes.n && bsearch(&number, missing->of_indexes.items, missing->of_indexes.n,
						    sizeof(*missing->of_indexes.items), by_number);
	memset(ret, 0, SF_PAGE_SIZE);
	ret[0] = is_index ? LEAF_INDEX : LEAF_TABLE;
	ret[4] = 1;
	ret[5] = ret[8] = CELL >> 8;
	ret[6] = ret[9] = CELL & 0xff;
	memcpy(ret + CELL, is_index ? index_cell : table_cell, is_index ? sizeof(index_cell) : sizeof(table_cell));
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The redo record of a recording: written by commit.c, found and read by one_file.c. */
#include "recording/store/redo.h"

#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define CHUNK 65536u
#define CHECKED 40u /* bytes of the trailer that its checksum covers */
#define FNV_START 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

static const char magic[16] = "stillframe redo";

static uint64_t sum_bytes(uint64_t sum, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++)
		sum = (sum ^ bytes[i]) * FNV_PRIME;
	return sum;
}

static void put(uint8_t *to, uint64_t value, unsigned size)
{
	for (unsigned i = size; i-- > 0; value >>= 8)
		to[i] = (uint8_t)value;
}

static uint64_t get(const uint8_t *from, unsigned size)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < size; i++)
		value = value << 8 | from[i];
	return value;
}

static bool read_at(int fd, void *data, size_t size, uint64_t offset)
{
	return pread(fd, data, size, (off_t)offset) == (ssize_t)size;
}

bool sf_redo_checksum(int fd, uint64_t start, uint64_t end, uint64_t *ret)
{
	uint64_t sum = FNV_START;
	uint8_t chunk[CHUNK];

	for (uint64_t at = start, size; at < end; at += size) {
		size = end - at < CHUNK ? end - at : CHUNK;
		if (!read_at(fd, chunk, size, at))
			return false;
		sum = sum_bytes(sum, chunk, size);
	}
	*ret = sum;
	return true;
}

/* The page numbers and the trailer, malloc. */
static uint8_t *make_end(int fd, const struct sf_page *pages, size_t n, uint64_t size)
{
	uint8_t *end = calloc(1, 4 * n + SF_REDO_TRAILER), *trailer = end + 4 * n;
	uint64_t before, sum = FNV_START;

	if (!end || !sf_redo_checksum(fd, 0, SF_PAGE_SIZE, &before)) {
		free(end);
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		put(end + 4 * i, pages[i].number, 4);
		sum = sum_bytes(sum, pages[i].data, SF_PAGE_SIZE);
	}
	memcpy(trailer, magic, sizeof(magic));
	put(trailer + 16, size, 8);
	put(trailer + 24, n, 4);
	put(trailer + 28, SF_PAGE_SIZE, 4);
	put(trailer + 32, before, 8);
	put(trailer + CHECKED, sum_bytes(sum, end, 4 * n + CHECKED), 8);
	return end;
}

int sf_redo_append(int fd, uint64_t start, const struct sf_page *pages, size_t n, uint64_t size)
{
	SF_CLEANUP(free) uint8_t *end = NULL;
	int code;

	if (n > SF_REDO_MAX_PAGES || pages[0].number != 1)
		return SQLITE_INTERNAL; /* a gigabyte of changes; or SQLite did not count them */
	end = make_end(fd, pages, n, size);
	if (!end)
		return SQLITE_NOMEM;
	code = sf_pages_append(fd, pages, n, start);
	if (code != SQLITE_OK)
		return code;
	return sf_write_at(fd, end, 4 * n + SF_REDO_TRAILER, start + n * SF_PAGE_SIZE);
}

/* The numbers of the pages ascend, begin with 1, and stay inside the database. */
static bool take_numbers(int fd, struct sf_redo *redo)
{
	uint64_t at = redo->start + (uint64_t)redo->n * SF_PAGE_SIZE;
	uint32_t last = 0;

	if (!read_at(fd, redo->numbers, 4 * (size_t)redo->n, at))
		return false;
	for (uint32_t i = 0; i < redo->n; i++) {
		uint32_t number = (uint32_t)get((const uint8_t *)&redo->numbers[i], 4);

		if (number <= last || sf_page_offset(number) >= redo->size)
			return false;
		redo->numbers[i] = last = number;
	}
	return redo->numbers[0] == 1;
}

/*
 * Page 1 is as it was before, or as it is in the record; if not, another program has changed the
 * database since, and the record is of no use any more.
 */
static bool fits_page_one(int fd, const struct sf_redo *redo, uint64_t before)
{
	uint64_t now, then;

	return sf_redo_checksum(fd, 0, SF_PAGE_SIZE, &now) &&
	       (now == before ||
		(sf_redo_checksum(fd, redo->start, redo->start + SF_PAGE_SIZE, &then) &&
		 now == then));
}

static bool take_trailer(const uint8_t *trailer, uint64_t file_size, struct sf_redo *ret)
{
	uint64_t size = get(trailer + 16, 8), n = get(trailer + 24, 4), record;

	record = n * (SF_PAGE_SIZE + 4) + SF_REDO_TRAILER;
	if (memcmp(trailer, magic, sizeof(magic)) != 0 || get(trailer + 28, 4) != SF_PAGE_SIZE ||
	    n < 1 || n > SF_REDO_MAX_PAGES || record > file_size || size % SF_PAGE_SIZE ||
	    size > file_size - record)
		return false;
	*ret = (struct sf_redo){ .size = size, .start = file_size - record, .n = (uint32_t)n };
	return true;
}

int sf_redo_find(int fd, struct sf_redo *ret)
{
	uint8_t trailer[SF_REDO_TRAILER];
	struct stat status;
	uint64_t end, sum;

	*ret = (struct sf_redo){ 0 };
	if (fstat(fd, &status) != 0)
		return SQLITE_IOERR_FSTAT;
	end = (uint64_t)status.st_size;
	if (end < SF_REDO_TRAILER || !read_at(fd, trailer, sizeof(trailer), end - SF_REDO_TRAILER) ||
	    !take_trailer(trailer, end, ret))
		return SQLITE_OK;
	ret->numbers = calloc(ret->n, sizeof(*ret->numbers));
	if (!ret->numbers)
		return SQLITE_NOMEM;
	if (!take_numbers(fd, ret) ||
	    !sf_redo_checksum(fd, ret->start, end - SF_REDO_TRAILER + CHECKED, &sum) ||
	    sum != get(trailer + CHECKED, 8) || !fits_page_one(fd, ret, get(trailer + 32, 8)))
		sf_redo_deinit(ret);
	return SQLITE_OK;
}

void sf_redo_deinit(struct sf_redo *redo)
{
	free(redo->numbers);
	*redo = (struct sf_redo){ 0 };
}

uint64_t sf_redo_offset(const struct sf_redo *redo, uint32_t number)
{
	uint32_t low = 0, high = redo->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (redo->numbers[middle] == number)
			return redo->start + (uint64_t)middle * SF_PAGE_SIZE;
		if (redo->numbers[middle] < number)
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}

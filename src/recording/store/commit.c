/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a transaction, the redo record that makes them one, and what becomes of it when a step fails. */
#include "recording/store/commit.h"

#include <errno.h>
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

/* --- the redo record --- */

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

static int append_record(int fd, uint64_t start, const struct sf_page *pages, size_t n, uint64_t size)
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

struct record {
	uint64_t size;     /* of the database, in bytes */
	uint64_t start;    /* of the first page of the record in the file */
	uint32_t n;        /* pages */
	uint64_t before;   /* checksum of page 1 */
};

static bool read_trailer(int fd, uint64_t file_size, struct record *ret)
{
	uint8_t trailer[SF_REDO_TRAILER];
	uint64_t size, n, record, sum;

	if (file_size < SF_REDO_TRAILER || !read_at(fd, trailer, sizeof(trailer), file_size - SF_REDO_TRAILER))
		return false;
	size = get(trailer + 16, 8);
	n = get(trailer + 24, 4);
	record = n * (SF_PAGE_SIZE + 4) + SF_REDO_TRAILER;
	if (memcmp(trailer, magic, sizeof(magic)) != 0 || get(trailer + 28, 4) != SF_PAGE_SIZE ||
	    n < 1 || n > SF_REDO_MAX_PAGES || record > file_size || size % SF_PAGE_SIZE ||
	    size > file_size - record)
		return false;
	*ret = (struct record){ size, file_size - record, (uint32_t)n, get(trailer + 32, 8) };
	return sf_redo_checksum(fd, ret->start, file_size - SF_REDO_TRAILER + CHECKED, &sum) &&
	       sum == get(trailer + CHECKED, 8);
}

/*
 * Page 1 is as it was before, or as it is in the record; if not, another program has changed the
 * database since, and the record is of no use any more.
 */
static bool fits_page_one(int fd, const struct record *record)
{
	uint64_t now, then;

	return sf_redo_checksum(fd, 0, SF_PAGE_SIZE, &now) &&
	       (now == record->before ||
		(sf_redo_checksum(fd, record->start, record->start + SF_PAGE_SIZE, &then) && now == then));
}

/* The numbers of the pages ascend, begin with 1, and stay inside the database. `none`: a number is wrong. */
static int read_pages(int fd, const struct record *record, struct sf_pages *pages, bool *none)
{
	const uint64_t numbers = record->start + (uint64_t)record->n * SF_PAGE_SIZE;
	uint32_t last = 0;

	for (uint32_t i = 0; i < record->n; i++) {
		uint8_t number[4], data[SF_PAGE_SIZE];

		if (!read_at(fd, number, sizeof(number), numbers + 4 * (uint64_t)i) ||
		    !read_at(fd, data, sizeof(data), record->start + (uint64_t)i * SF_PAGE_SIZE))
			return SQLITE_IOERR_READ;
		*none = get(number, 4) <= last || (i == 0 && get(number, 4) != 1) ||
			sf_page_offset((uint32_t)get(number, 4)) >= record->size;
		if (*none)
			return SQLITE_OK;
		last = (uint32_t)get(number, 4);
		if (!sf_pages_put(pages, last, data))
			return SQLITE_NOMEM;
	}
	return SQLITE_OK;
}

int sf_redo_find(int fd, struct sf_pages *pages, uint64_t *size_ret)
{
	struct record record;
	struct stat status;
	bool none = false;
	int code;

	sf_pages_drop(pages, 0);
	if (fstat(fd, &status) != 0)
		return SQLITE_IOERR_FSTAT;
	if (!read_trailer(fd, (uint64_t)status.st_size, &record) || !fits_page_one(fd, &record))
		return SQLITE_OK;
	code = read_pages(fd, &record, pages, &none);
	if (code != SQLITE_OK || none)
		sf_pages_drop(pages, 0);
	*size_ret = record.size;
	return code;
}

/* --- the steps --- */

/* Cuts off what is behind the database. */
static int cut(struct sf_commit *commit)
{
	commit->longer = ftruncate(commit->fd, (off_t)commit->size) != 0;
	return commit->longer ? SQLITE_IOERR_TRUNCATE : SQLITE_OK;
}

/* Steps 3 and 4. A record that cannot be cut off is repeated by readers, which changes nothing. */
static int settle(struct sf_commit *commit)
{
	int code = sf_pages_write(commit->fd, commit->pages.list.items, commit->pages.list.n);

	if (code != SQLITE_OK) {
		commit->error = errno;
		return code;
	}
	sf_pages_drop(&commit->pages, 0);
	commit->logged = false;
	cut(commit);
	return SQLITE_OK;
}

int sf_commit_put(struct sf_commit *commit, uint32_t number, const void *data)
{
	int code = commit->logged ? settle(commit) : SQLITE_OK;
	uint64_t end = sf_page_offset(number) + SF_PAGE_SIZE;

	if (code != SQLITE_OK || commit->failed)
		return code;
	if (!sf_pages_put(&commit->pages, number, data))
		return SQLITE_NOMEM;
	if (end > commit->new_size)
		commit->new_size = end;
	return SQLITE_OK;
}

int sf_commit_truncate(struct sf_commit *commit, uint64_t size)
{
	int code = commit->logged ? settle(commit) : SQLITE_OK;

	if (code != SQLITE_OK || commit->failed)
		return code;
	sf_pages_drop(&commit->pages, (uint32_t)(size / SF_PAGE_SIZE) + 1);
	commit->new_size = size;
	return SQLITE_OK;
}

/* A file that nobody could open by its name any more would get the rest of the recording. */
static int check_name(const struct sf_commit *commit)
{
	struct stat status;

	if (fstat(commit->fd, &status) != 0)
		return SQLITE_IOERR_FSTAT;
	return status.st_nlink ? SQLITE_OK : SQLITE_READONLY_DBMOVED;
}

/* Steps 1 and 2. */
static int log_pages(struct sf_commit *commit, size_t n_old)
{
	const struct sf_page *pages = commit->pages.list.items;
	uint64_t end = commit->size > commit->new_size ? commit->size : commit->new_size;
	int code = check_name(commit);

	if (code == SQLITE_OK && commit->longer)
		code = cut(commit);
	if (code == SQLITE_OK)
		code = sf_pages_write(commit->fd, pages + n_old, commit->pages.list.n - n_old);
	if (code == SQLITE_OK && n_old)
		code = append_record(commit->fd, end, pages, n_old, commit->new_size);
	return code;
}

/* How many of the collected pages the database has already. */
static size_t count_old(const struct sf_commit *commit)
{
	return sf_pages_from(&commit->pages, (uint32_t)(commit->size / SF_PAGE_SIZE) + 1);
}

int sf_commit_sync(struct sf_commit *commit)
{
	size_t n_old = count_old(commit);
	int code;

	if (commit->logged || (!commit->pages.list.n && commit->new_size == commit->size))
		return SQLITE_OK;
	code = log_pages(commit, n_old);
	if (code != SQLITE_OK) {
		commit->error = errno;
		sf_commit_drop(commit);
		commit->failed = true;
		cut(commit);
		return code;
	}
	commit->size = commit->new_size;
	sf_pages_drop(&commit->pages, n_old ? commit->pages.list.items[n_old - 1].number + 1 : 0);
	commit->logged = true;
	settle(commit);
	return SQLITE_OK;
}

void sf_commit_drop(struct sf_commit *commit)
{
	commit->failed = false;
	commit->new_size = commit->size;
	if (!commit->logged)
		sf_pages_drop(&commit->pages, 0);
}

void sf_commit_deinit(struct sf_commit *commit)
{
	if (commit->logged)
		settle(commit);
	sf_pages_drop(&commit->pages, 0);
}

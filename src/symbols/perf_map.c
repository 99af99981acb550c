/* SPDX-License-Identifier: Apache-2.0 */
/* Goes through a perf map once, line by line, and notes for each address the last line that has it. */
#include "symbols/perf_map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/search.h"

#define MAX_NAME ((size_t)4 << 10) /* what is longer is cut */

struct text {
	const char *at, *end;
};

struct wanted {
	uint64_t address;
	size_t index;
	struct text name; /* at is NULL: no line has the address */
};

static int by_address(const void *left, const void *right)
{
	const struct wanted *a = left, *b = right;

	return sf_order(a->address, b->address);
}

/* Takes a number of hexadecimal digits and the blank behind it. False: there is none. */
static bool take_number(struct text *line, uint64_t *ret)
{
	const char *const begin = line->at;

	*ret = 0;
	for (; line->at < line->end && line->at - begin < 16; line->at++) {
		const char digit = *line->at;

		if (digit >= '0' && digit <= '9')
			*ret = *ret << 4 | (uint64_t)(digit - '0');
		else if ((digit | 0x20) >= 'a' && (digit | 0x20) <= 'f')
			*ret = *ret << 4 | (uint64_t)((digit | 0x20) - 'a' + 10);
		else
			break;
	}
	return line->at > begin && line->at < line->end && *line->at++ == ' ';
}

/* Some writers put 0x in front of a number. */
static void skip_prefix(struct text *line)
{
	if (line->end - line->at > 2 && line->at[0] == '0' && (line->at[1] | 0x20) == 'x')
		line->at += 2;
}

static bool take_line(struct text line, uint64_t *start_ret, uint64_t *size_ret, struct text *name_ret)
{
	skip_prefix(&line);
	if (!take_number(&line, start_ret))
		return false;
	skip_prefix(&line);
	if (!take_number(&line, size_ret))
		return false;
	*name_ret = line;
	return line.at < line.end;
}

/* The first one that is not below `address`. */
static size_t find_first(const struct wanted *wanted, size_t n, uint64_t address)
{
	return sf_count_before(n, i, wanted[i].address < address);
}

static void note_line(struct text line, struct wanted *wanted, size_t n)
{
	uint64_t start, size;
	struct text name;

	if (!take_line(line, &start, &size, &name))
		return;
	for (size_t i = find_first(wanted, n, start); i < n && wanted[i].address - start < size; i++)
		wanted[i].name = name;
}

static void note_lines(struct text text, struct wanted *wanted, size_t n)
{
	while (text.at < text.end) {
		const char *end = memchr(text.at, '\n', (size_t)(text.end - text.at));
		const struct text line = { text.at, end ? end : text.end };

		note_line(line, wanted, n);
		text.at = line.end + 1;
		if (!end)
			break;
	}
}

/* Whoever receives names compares them by their places, so each text has one. */
static bool report(struct sf_intern *texts, const struct wanted *wanted, sf_location_fn *fn, void *arg)
{
	const size_t size = (size_t)(wanted->name.end - wanted->name.at);
	const uint32_t number = sf_intern_add(texts, wanted->name.at, size < MAX_NAME ? size : MAX_NAME, NULL);
	struct sf_location location = { .file = "" };

	if (!number)
		return false;
	location.function = location.linkage = sf_intern_get(texts, number, NULL);
	if (*location.function)
		fn(wanted->index, &location, 1, arg);
	return true;
}

static bool report_all(const struct wanted *wanted, size_t n, sf_location_fn *fn, void *arg)
{
	struct sf_intern *texts = sf_intern_create();
	bool fine = texts != NULL;

	for (size_t i = 0; fine && i < n; i++)
		fine = !wanted[i].name.at || report(texts, &wanted[i], fn, arg);
	sf_intern_destroy(texts);
	return fine;
}

bool sf_perf_map_find(const char *text, size_t size, const uint64_t *addresses, size_t n, sf_location_fn *fn, void *arg)
{
	SF_CLEANUP(free) struct wanted *wanted = calloc(n ? n : 1, sizeof(*wanted));

	if (!wanted)
		return false;
	for (size_t i = 0; i < n; i++)
		wanted[i] = (struct wanted){ .address = addresses[i], .index = i };
	qsort(wanted, n, sizeof(*wanted), by_address);
	note_lines((struct text){ text, text + size }, wanted, n);
	return report_all(wanted, n, fn, arg);
}

bool sf_perf_map_resolve(int fd, const uint64_t *addresses, size_t n, sf_location_fn *fn, void *arg)
{
	struct stat status;
	void *text;
	bool fine;

	if (fstat(fd, &status) != 0 || status.st_size <= 0)
		return true;
	text = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		return true;
	fine = sf_perf_map_find(text, (size_t)status.st_size, addresses, n, fn, arg);
	munmap(text, (size_t)status.st_size);
	return fine;
}

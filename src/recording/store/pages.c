/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of changed pages of a recording, and writing them to the file.
 *
 * A sorted array: SQLite hands pages over in ascending order, so they are put at its end.
 */
#include "recording/store/pages.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "base/search.h"
#include "base/whole_io.h"

size_t sf_pages_from(const struct sf_pages *pages, uint32_t number)
{
	return sf_count_before(pages->list.n, i, pages->list.items[i].number < number);
}

const struct sf_page *sf_pages_get(const struct sf_pages *pages, uint32_t number)
{
	size_t place = sf_pages_from(pages, number);

	if (place == pages->list.n || pages->list.items[place].number != number)
		return NULL;
	return &pages->list.items[place];
}

static bool insert(struct sf_pages *pages, size_t place, uint32_t number, const void *data)
{
	struct sf_page page = { number, malloc(SF_PAGE_SIZE) };
	struct sf_page *there;

	if (!page.data || !sf_vec_reserve(&pages->list, 1)) {
		free(page.data);
		return false;
	}
	memcpy(page.data, data, SF_PAGE_SIZE);
	there = pages->list.items + place;
	memmove(there + 1, there, (pages->list.n - place) * sizeof(*there));
	*there = page;
	pages->list.n++;
	return true;
}

bool sf_pages_put(struct sf_pages *pages, uint32_t number, const void *data)
{
	size_t place = sf_pages_from(pages, number);

	if (place == pages->list.n || pages->list.items[place].number != number)
		return insert(pages, place, number, data);
	memcpy(pages->list.items[place].data, data, SF_PAGE_SIZE);
	return true;
}

void sf_pages_drop(struct sf_pages *pages, uint32_t number)
{
	size_t first = sf_pages_from(pages, number);

	for (size_t i = first; i < pages->list.n; i++)
		free(pages->list.items[i].data);
	pages->list.n = first;
	if (!first)
		sf_vec_deinit(&pages->list);
}

static int failed(void)
{
	return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

int sf_write_at(int fd, const void *data, size_t size, uint64_t offset)
{
	const uint8_t *from = data;

	if (!sf_file_may_end_at(offset + size) ||
	    !sf_move_all(done, size, pwrite(fd, from + done, size - done, (off_t)(offset + done))))
		return failed();
	return SQLITE_OK;
}

int sf_pages_append(int fd, const struct sf_page *pages, size_t n, uint64_t offset)
{
	int code = SQLITE_OK;

	for (size_t i = 0; i < n && code == SQLITE_OK; i++)
		code = sf_write_at(fd, pages[i].data, SF_PAGE_SIZE, offset + i * SF_PAGE_SIZE);
	return code;
}

int sf_pages_write(int fd, const struct sf_page *pages, size_t n)
{
	int code = SQLITE_OK;

	for (size_t i = 0; i < n && code == SQLITE_OK; i++)
		code = sf_write_at(fd, pages[i].data, SF_PAGE_SIZE, sf_page_offset(pages[i].number));
	return code;
}

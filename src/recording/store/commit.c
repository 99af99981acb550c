/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a transaction, and what becomes of it when one of them fails. */
#include "recording/store/commit.h"

#include <errno.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording/store/redo.h"

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
		code = sf_redo_append(commit->fd, end, pages, n_old, commit->new_size);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the entries of a folder by getdents64(2). */
#include "base/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool sf_folder_open(struct sf_folder *ret, int parent, const char *path)
{
	ret->at = ret->end = 0;
	ret->fd = openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return ret->fd >= 0;
}

void sf_folder_close(struct sf_folder *folder)
{
	if (folder->fd >= 0)
		close(folder->fd);
	folder->fd = -1;
}

static bool read_more(struct sf_folder *folder)
{
	const ssize_t n = getdents64(folder->fd, folder->entries, sizeof(folder->entries));

	folder->at = 0;
	folder->end = n > 0 ? (size_t)n : 0;
	return n > 0;
}

const char *sf_folder_next(struct sf_folder *folder)
{
	while (folder->at < folder->end || read_more(folder)) {
		const struct dirent64 *entry = (const struct dirent64 *)(folder->entries + folder->at);

		folder->at += entry->d_reclen;
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			return entry->d_name;
	}
	return NULL;
}

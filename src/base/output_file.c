/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens output files, or writes them beside their place and then renames them. The same rules (is_ours()) hold for a file
 * that is opened and for one that is replaced.
 */
#include "base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/leftovers.h"

static bool is_ours(const struct stat *status, const char *path, struct sf_error *err)
{
	if (S_ISLNK(status->st_mode))
		sf_fail(err, SF_E_INPUT, "%s is a symbolic link: not written", path);
	else if (!S_ISREG(status->st_mode))
		sf_fail(err, SF_E_INPUT, "%s is not a regular file: not written", path);
	else if (status->st_uid != geteuid())
		sf_fail(err, SF_E_DENIED, "%s belongs to user %u: not written", path,
			(unsigned)status->st_uid);
	else if (status->st_nlink > 1)
		sf_fail(err, SF_E_INPUT, "%s is one of several names of a file: not written", path);
	else
		return true;
	return sf_fail_hint(err, "Give another name with -o, or remove it first.");
}

static bool fail_to_write(const char *path, struct sf_error *err)
{
	sf_fail_os(err, "cannot write %s", path);
	return sf_fail_hint(err, "Give another place with -o.");
}

bool sf_output_file_check(const char *path, struct sf_error *err)
{
	struct stat status;

	if (!*path) {
		sf_fail(err, SF_E_INPUT, "the name of the file to write is empty");
		return sf_fail_hint(err, "Give another name with -o.");
	}
	if (lstat(path, &status) == 0)
		return is_ours(&status, path, err);
	return errno == ENOENT || fail_to_write(path, err);
}

bool sf_output_file_open(const char *path, int *ret, struct sf_error *err)
{
	const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	SF_CLEANUP(close) int fd = -1;
	struct stat status;

	if (!sf_output_file_check(path, err))
		return false;
	fd = open(path, flags, 0600);
	if (fd < 0)
		return fail_to_write(path, err);
	if (fstat(fd, &status) != 0)
		return sf_fail_os(err, "cannot look at %s", path);
	if (!is_ours(&status, path, err))
		return false;
	*ret = sf_steal_fd(&fd);
	return true;
}

/* The number of our descriptor that the path names; -1: it names none. */
static int named_descriptor(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };

	if (strcmp(path, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	if (strcmp(path, "/dev/stderr") == 0)
		return STDERR_FILENO;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const char *number = path + strlen(folders[i]);

		if (strncmp(path, folders[i], strlen(folders[i])) == 0 && *number &&
		    strlen(number) < 8 && number[strspn(number, "0123456789")] == 0)
			return atoi(number);
	}
	return -1;
}

/* Takes the descriptor. */
static bool write_to(struct sf_draft *draft, int fd, struct sf_error *err)
{
	draft->file = fd < 0 ? NULL : fdopen(fd, "w");
	if (draft->file)
		return true;
	sf_fail_os(err, "cannot write %s", draft->path);
	if (fd >= 0)
		close(fd);
	return false;
}

static bool is_written_in_place(const struct stat *status)
{
	return (S_ISCHR(status->st_mode) || S_ISFIFO(status->st_mode)) &&
	       (status->st_uid == 0 || status->st_uid == geteuid());
}

/* Opens what was looked at, and not whatever has its name by now. */
static int open_found(int found)
{
	char again[sizeof("/proc/self/fd/") + 3 * sizeof(int)];

	snprintf(again, sizeof(again), "/proc/self/fd/%d", found);
	return open(again, O_WRONLY | O_CLOEXEC | O_NOCTTY);
}

/* True also when it failed: draft->file is NULL then. False: the path is for an ordinary file. */
static bool open_in_place(struct sf_draft *draft, struct sf_error *err)
{
	SF_CLEANUP(close) int found = -1;
	int number = named_descriptor(draft->path);
	struct stat status;

	if (number >= 0) {
		write_to(draft, fcntl(number, F_DUPFD_CLOEXEC, 0), err);
		return true;
	}
	found = open(draft->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (found < 0 || fstat(found, &status) != 0 || !is_written_in_place(&status))
		return false;
	write_to(draft, open_found(found), err);
	return true;
}

static void free_temporary(struct sf_draft *draft)
{
	sf_leftover_forget(draft->temporary);
	free(sf_steal(&draft->temporary));
}

static bool open_beside(struct sf_draft *draft, struct sf_error *err)
{
	struct stat status;
	int fd;

	draft->was_free = lstat(draft->path, &status) != 0;
	if (!sf_output_file_check(draft->path, err))
		return false;
	if (asprintf(&draft->temporary, "%s.XXXXXX", draft->path) < 0) {
		draft->temporary = NULL;
		return sf_fail_memory(err);
	}
	sf_leftover_add(draft->temporary);
	fd = mkostemp(draft->temporary, O_CLOEXEC);
	if (fd >= 0)
		return write_to(draft, fd, err);
	fail_to_write(draft->path, err);
	free_temporary(draft);
	return false;
}

bool sf_draft_open(struct sf_draft *draft, const char *path, struct sf_error *err)
{
	*draft = (struct sf_draft){ .path = path };
	if (open_in_place(draft, err) ? draft->file != NULL : open_beside(draft, err))
		return true;
	sf_draft_abandon(draft);
	return false;
}

static bool rename_to_place(struct sf_draft *draft, struct sf_error *err)
{
	if (draft->was_free && renameat2(AT_FDCWD, draft->temporary, AT_FDCWD, draft->path,
					 RENAME_NOREPLACE) == 0)
		return true;
	/* The name is not free any more, or the file system has no such call. */
	if (!sf_output_file_check(draft->path, err))
		return false;
	return rename(draft->temporary, draft->path) == 0 ||
	       sf_fail_os(err, "cannot rename %s to %s", draft->temporary, draft->path);
}

bool sf_draft_finish(struct sf_draft *draft, struct sf_error *err)
{
	if (fclose(sf_steal(&draft->file)) != 0)
		return sf_fail_os(err, "cannot write %s", draft->path);
	if (!draft->temporary)
		return true;
	if (!rename_to_place(draft, err))
		return false;
	free_temporary(draft);
	return true;
}

void sf_draft_abandon(struct sf_draft *draft)
{
	if (draft->file)
		fclose(sf_steal(&draft->file));
	if (draft->temporary)
		unlink(draft->temporary);
	free_temporary(draft);
}

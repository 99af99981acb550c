/* SPDX-License-Identifier: Apache-2.0 */
/* Loads an agent into a process from a forked child that has the rights of the target's user, and shows the process its library. */
#include "runtime/load/load.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "base/whole_io.h"

#define CHUNK 65536
#define MAX_LIBRARY (INT64_C(256) << 20)

/* --- a library where the process can open it --- */

/* The same file stands under the same path there, and its user may read it: we are that user. */
static bool is_seen(const struct sf_load_target *target, const char *path, int fd)
{
	SF_CLEANUP(close) int found = path[0] == '/' && target->root >= 0 ?
					      sf_foreign_find(target->root, path) : -1;
	char again[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
	struct stat own, its;

	snprintf(again, sizeof(again), "/proc/self/fd/%d", found);
	return found >= 0 && fstat(fd, &own) == 0 && fstat(found, &its) == 0 &&
	       own.st_dev == its.st_dev && own.st_ino == its.st_ino && access(again, R_OK) == 0;
}

static bool copy_bytes(int from, int to, struct sf_error *err)
{
	char bytes[CHUNK];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(from, bytes, sizeof(bytes), at)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sf_fail_os(err, "cannot read the agent");
		if (at > MAX_LIBRARY)
			return sf_fail(err, SF_E_INPUT, "the agent is too large to be copied");
		if (!sf_move_all(done, (size_t)n, write(to, bytes + done, (size_t)n - done)))
			return sf_fail_os(err, "cannot copy the agent into the target's /tmp");
		at += n;
	}
	return true;
}

static bool copy(const struct sf_load_target *target, int from, struct sf_load_library *ret,
		 struct sf_error *err)
{
	SF_CLEANUP(close) int to = -1;
	unsigned long long number = 0;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return sf_fail_os(err, "cannot make up a name");
	snprintf(ret->copy, sizeof(ret->copy), "libstillframe-agent-%016llx.so", number);
	to = openat(target->tmp, ret->copy, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC,
		    0500);
	if (to < 0) {
		ret->copy[0] = 0;
		return sf_fail_os(err, "cannot copy the agent into the /tmp of pid %d",
				  target->pid);
	}
	snprintf(ret->path, sizeof(ret->path), "/tmp/%s", ret->copy);
	if (copy_bytes(from, to, err))
		return true;
	sf_load_library_hide(target, ret);
	return false;
}

bool sf_load_library_show(const struct sf_load_target *target, const char *path, int fd,
			  struct sf_load_library *ret, struct sf_error *err)
{
	*ret = (struct sf_load_library){ 0 };
	if (!is_seen(target, path, fd))
		return copy(target, fd, ret, err);
	if (strlen(path) >= sizeof(ret->path))
		return sf_fail(err, SF_E_INPUT, "the path of the agent is too long");
	memcpy(ret->path, path, strlen(path) + 1);
	return true;
}

void sf_load_library_hide(const struct sf_load_target *target,
			  const struct sf_load_library *library)
{
	if (library->copy[0])
		unlinkat(target->tmp, library->copy, 0);
}

/* --- in the child, as the target's user --- */

static bool become(const struct sf_load_target *target, struct sf_error *err)
{
	if (geteuid() != 0 || (target->uid == 0 && target->gid == getegid()))
		return true;
	if (setgroups(1, &(gid_t){ target->gid }) == 0 &&
	    setresgid(target->gid, target->gid, target->gid) == 0 &&
	    setresuid(target->uid, target->uid, target->uid) == 0)
		return true;
	return sf_fail_os(err, "cannot become user %u, whose process pid %d is",
			  target->uid, target->pid);
}

/* `fd` is open on our library; -1: `path` is one that the target has. */
static bool load_as_target(const struct sf_load_target *target, const char *path, int fd,
			   const char *options, sf_load_fn *load, struct sf_error *err)
{
	struct sf_load_library library;
	bool ok;

	if (!become(target, err))
		return false;
	if (fd < 0)
		return load(target, path, options, err);
	if (!sf_load_library_show(target, path, fd, &library, err))
		return false;
	ok = load(target, library.path, options, err);
	sf_load_library_hide(target, &library);
	return ok;
}

/* --- here --- */

struct outcome {
	bool ok;
	struct sf_error err;
};

static void read_outcome(int fd, struct outcome *ret)
{
	size_t used = 0;
	ssize_t n;

	while (used < sizeof(*ret) &&
	       ((n = read(fd, (char *)ret + used, sizeof(*ret) - used)) > 0 ||
		(n < 0 && errno == EINTR)))
		used += n > 0 ? (size_t)n : 0;
	if (used == sizeof(*ret))
		return;
	*ret = (struct outcome){ 0 };
	sf_fail(&ret->err, SF_E_SYSTEM, "the attempt to load the agent was ended from outside");
}

static bool in_child(const struct sf_load_target *target, const char *path, int fd,
		     const char *options, sf_load_fn *load, struct sf_error *err)
{
	struct outcome outcome = { 0 };
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return sf_fail_os(err, "cannot make a pipe");
	child = fork();
	if (child == 0) {
		ssize_t n;

		outcome.ok = load_as_target(target, path, fd, options, load, &outcome.err);
		n = write(ends[1], &outcome, sizeof(outcome));
		_exit(n == sizeof(outcome) ? 0 : 1);
	}
	close(ends[1]);
	if (child < 0) {
		close(ends[0]);
		return sf_fail_os(err, "cannot make a process");
	}
	read_outcome(ends[0], &outcome);
	close(ends[0]);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	if (!outcome.ok && err)
		*err = outcome.err;
	return outcome.ok;
}

/* Finds an agent that was loaded earlier. Such an agent is used again, and not loaded twice. */
static bool find_earlier(const struct sf_load_target *target, char *ret, size_t size,
			 struct sf_error *err)
{
	bool deleted;

	sf_load_mapped(target->pid, "libstillframe-agent", ret, size, &deleted);
	if (!*ret || !deleted)
		return true;
	return sf_fail(err, SF_E_UNSUPPORTED,
		       "an agent is in pid %d already, and does not listen; its "
		       "file, %.200s, is gone",
		       target->pid, ret);
}

static bool load_new(const struct sf_load_target *target, const char *library, const char *options,
		     sf_load_fn *load, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = -1;

	if (!sf_foreign_open(AT_FDCWD, library, &fd, err))
		return false;
	return in_child(target, library, fd, options, load, err);
}

bool sf_load(const struct sf_load_target *target, const char *library, const char *options,
	     sf_load_fn *load, struct sf_error *err)
{
	char earlier[PATH_MAX];

	if (!find_earlier(target, earlier, sizeof(earlier), err))
		return false;
	return *earlier ? in_child(target, earlier, -1, options, load, err) :
			  load_new(target, library, options, load, err);
}

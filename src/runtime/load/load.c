/* SPDX-License-Identifier: Apache-2.0 */
/* Loads an agent into a process from a forked child that has the rights of the target's user. */
#include "runtime/load/load.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "runtime/load/library.h"

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

/* SPDX-License-Identifier: Apache-2.0 */
/* Loads an agent into a running JVM from a forked child that has the rights of the target's user. */
#include "runtime/hotspot/load.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "runtime/hotspot/load_library.h"
#include "runtime/hotspot/load_reply.h"
#include "runtime/hotspot/load_socket.h"
#include "runtime/hotspot/load_target.h"

#define MAX_REPLY 65536

/* --- in the child, as the target's user --- */

static bool become(const struct sf_load_target *target, struct sf_error *err)
{
	if (geteuid() != 0 || (target->uid == 0 && target->gid == getegid()))
		return true;
	if (setgroups(1, &(gid_t){ target->gid }) == 0 &&
	    setresgid(target->gid, target->gid, target->gid) == 0 &&
	    setresuid(target->uid, target->uid, target->uid) == 0)
		return true;
	return sf_fail_os(err, "cannot become user %u, whose Java virtual machine pid %d is",
			  target->uid, target->pid);
}

static long ask(const struct sf_load_target *target, unsigned version, const char *command,
		const char *const arguments[SF_LOAD_ARGUMENTS], char *ret, struct sf_error *err)
{
	char request[SF_LOAD_MAX_REQUEST];
	size_t size = sf_load_request(version, command, arguments, request, sizeof(request));
	SF_CLEANUP(close) int fd = -1;

	if (!size) {
		sf_fail(err, SF_E_INPUT, "the path or the options of the agent are too long");
		return -1;
	}
	fd = sf_load_connect(target, err);
	return fd < 0 ? -1 : sf_load_ask(target, fd, request, size, ret, MAX_REPLY, err);
}

/* The older protocol wherever it has room: all know it. */
static bool choose_version(const struct sf_load_target *target,
			   const char *const arguments[SF_LOAD_ARGUMENTS], unsigned *ret,
			   struct sf_error *err)
{
	static const char *const none[SF_LOAD_ARGUMENTS] = { "", "", "" };
	static char reply[MAX_REPLY];
	long size;

	*ret = 1;
	if (sf_load_fits_v1(arguments))
		return true;
	*ret = 2;
	size = ask(target, 1, "getversion", none, reply, err);
	if (size < 0)
		return false;
	return sf_load_knows_v2(reply, (size_t)size) ||
	       sf_fail(err, SF_E_UNSUPPORTED,
		       "no agent can be loaded into pid %d: its Java virtual machine "
		       "takes paths and options of up to %d bytes",
		       target->pid, SF_LOAD_MAX_V1);
}

static bool load(const struct sf_load_target *target, const char *path, const char *options,
		 struct sf_error *err)
{
	const char *const arguments[SF_LOAD_ARGUMENTS] = { path, "true", options };
	static char reply[MAX_REPLY];
	unsigned version;
	long size;

	if (!choose_version(target, arguments, &version, err))
		return false;
	size = ask(target, version, "load", arguments, reply, err);
	return size >= 0 && sf_load_judge(reply, (size_t)size, target->pid, err);
}

/* `fd` is open on our library; -1: `path` is one that the target has. */
static bool load_as_target(const struct sf_load_target *target, const char *path, int fd,
			   const char *options, struct sf_error *err)
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
		     const char *options, struct sf_error *err)
{
	struct outcome outcome = { 0 };
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return sf_fail_os(err, "cannot make a pipe");
	child = fork();
	if (child == 0) {
		ssize_t n;

		outcome.ok = load_as_target(target, path, fd, options, &outcome.err);
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

bool sf_hotspot_loadable(int32_t pid, struct sf_error *err)
{
	struct sf_load_target target;
	bool ok = sf_load_target_open(pid, &target, err);

	sf_load_target_close(&target);
	return ok;
}

/* Finds an agent that was loaded earlier. Such an agent is used again, and not loaded twice. */
static bool find_earlier(const struct sf_load_target *target, char *ret, size_t size,
			 struct sf_error *err)
{
	bool deleted;

	sf_load_target_mapped(target, "libstillframe-agent", ret, size, &deleted);
	if (!*ret || !deleted)
		return true;
	return sf_fail(err, SF_E_UNSUPPORTED,
		       "an agent is in pid %d already, and does not listen; its "
		       "file, %.200s, is gone",
		       target->pid, ret);
}

static bool load_new(const struct sf_load_target *target, const char *library, const char *options,
		     struct sf_error *err)
{
	SF_CLEANUP(close) int fd = -1;

	if (!sf_foreign_open(AT_FDCWD, library, &fd, err))
		return false;
	return in_child(target, library, fd, options, err);
}

bool sf_hotspot_load(int32_t pid, const char *library, const char *options, struct sf_error *err)
{
	struct sf_load_target target;
	char earlier[PATH_MAX];
	bool ok = sf_load_target_open(pid, &target, err) &&
		  find_earlier(&target, earlier, sizeof(earlier), err);

	if (ok && *earlier)
		ok = in_child(&target, earlier, -1, options, err);
	else if (ok)
		ok = load_new(&target, library, options, err);
	sf_load_target_close(&target);
	return ok;
}

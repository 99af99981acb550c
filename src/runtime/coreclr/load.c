/* SPDX-License-Identifier: Apache-2.0 */
/* Has a running .NET process load the agent: what there is, and the request. */
#include "runtime/coreclr/load.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "os/clock.h"
#include "os/process.h"
#include "runtime/coreclr/load_socket.h"
#include "runtime/coreclr/profiler_id.h"
#include "runtime/load/load.h"

#define MAX_REPLY 1024
#define STOP_NS UINT64_C(2000000000) /* a runtime that ends meanwhile does not answer */

/* A program of a single file has no library of the runtime, and listens. */
static bool listens(int32_t pid)
{
	char folder[PATH_MAX], name[SF_CLR_SOCKET_NAME], path[PATH_MAX + SF_CLR_SOCKET_NAME + 1];
	SF_CLEANUP(close) int root = sf_process_open_root(sf_process_live_id(pid));
	SF_CLEANUP(close) int file = -1;
	struct stat about;

	if (root < 0 || !sf_clr_socket_name(pid, folder, name))
		return false;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = sf_foreign_find(root, path);
	return file >= 0 && fstat(file, &about) == 0 && S_ISSOCK(about.st_mode);
}

bool sf_clr_is_in(int32_t pid)
{
	char path[PATH_MAX];
	bool deleted;

	sf_load_mapped(pid, "libcoreclr.so", path, sizeof(path), &deleted);
	return *path || listens(pid);
}

bool sf_clr_loadable(int32_t pid, struct sf_error *err)
{
	struct sf_load_target target;
	bool ok = sf_load_target_open(pid, &target, err) && sf_clr_socket_check(&target, err);

	sf_load_target_close(&target);
	return ok;
}

static bool attach_as(const struct sf_load_target *target, const char *library, const char *options,
		      int32_t expected, struct sf_error *err)
{
	uint8_t request[SF_CLR_MAX_MESSAGE], reply[MAX_REPLY] = { 0 };
	const size_t size = sf_clr_message_attach(library, options, request, sizeof(request));
	long n;

	if (!size)
		return sf_fail(err, SF_E_INPUT, "the path of the agent is too long for .NET, or is not UTF-8");
	n = sf_clr_socket_ask(target, request, size, reply, sizeof(reply), err);
	return n >= 0 && sf_clr_message_judge(reply, (size_t)n, target->pid, expected, err);
}

/* In the child, as the target's user. */
static bool attach(const struct sf_load_target *target, const char *library, const char *options,
		   struct sf_error *err)
{
	return attach_as(target, library, options, SF_CLR_PROFILER_DECLINES, err);
}

bool sf_clr_load(int32_t pid, const char *library, const char *options, struct sf_error *err)
{
	struct sf_load_target target;
	bool ok = sf_load_target_open(pid, &target, err) && sf_load(&target, library, options, attach, err);

	sf_load_target_close(&target);
	return ok;
}

bool sf_clr_attach_self(const char *name, struct sf_error *err)
{
	struct sf_load_target target;
	char path[PATH_MAX];
	bool deleted, ok;

	sf_load_mapped(getpid(), name, path, sizeof(path), &deleted);
	if (!*path)
		return sf_fail(err, SF_E_UNSUPPORTED, "no agent is mapped in this process");
	ok = sf_load_target_open(getpid(), &target, err) &&
	     attach_as(&target, path, "", SF_CLR_PROFILER_STAYS, err);
	sf_load_target_close(&target);
	return ok;
}

void sf_clr_stop_own_session(uint64_t session)
{
	uint8_t request[64], reply[MAX_REPLY] = { 0 };
	const size_t size = sf_clr_message_stop(session, request, sizeof(request));
	struct sf_load_target target;

	if (sf_load_target_open(getpid(), &target, NULL)) {
		target.until_ns = sf_now_ns() + STOP_NS;
		sf_clr_socket_ask(&target, request, size, reply, sizeof(reply), NULL);
	}
	sf_load_target_close(&target);
}

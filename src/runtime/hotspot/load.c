/* SPDX-License-Identifier: Apache-2.0 */
/* Has a running JVM load an agent: the requests. */
#include "runtime/hotspot/load.h"

#include <stddef.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "runtime/hotspot/load_reply.h"
#include "runtime/hotspot/load_socket.h"
#include "runtime/hotspot/load_target.h"
#include "runtime/load/load.h"

#define MAX_REPLY 65536

/* --- in the child, as the target's user --- */

static long ask(const struct sf_load_target *target, unsigned version, const char *command,
		const char *const arguments[SF_JVM_LOAD_ARGUMENTS], char *ret, struct sf_error *err)
{
	char request[SF_JVM_LOAD_MAX_REQUEST];
	size_t size = sf_jvm_load_request(version, command, arguments, request, sizeof(request));
	SF_CLEANUP(close) int fd = -1;

	if (!size) {
		sf_fail(err, SF_E_INPUT, "the path or the options of the agent are too long");
		return -1;
	}
	fd = sf_jvm_load_connect(target, err);
	return fd < 0 ? -1 : sf_jvm_load_ask(target, fd, request, size, ret, MAX_REPLY, err);
}

/* The older protocol wherever it has room: all know it. */
static bool choose_version(const struct sf_load_target *target,
			   const char *const arguments[SF_JVM_LOAD_ARGUMENTS], unsigned *ret,
			   struct sf_error *err)
{
	static const char *const none[SF_JVM_LOAD_ARGUMENTS] = { "", "", "" };
	static char reply[MAX_REPLY];
	long size;

	*ret = 1;
	if (sf_jvm_load_fits_v1(arguments))
		return true;
	*ret = 2;
	size = ask(target, 1, "getversion", none, reply, err);
	if (size < 0)
		return false;
	return sf_jvm_load_knows_v2(reply, (size_t)size) ||
	       sf_fail(err, SF_E_UNSUPPORTED,
		       "no agent can be loaded into pid %d: its Java virtual machine "
		       "takes paths and options of up to %d bytes",
		       target->pid, SF_JVM_LOAD_MAX_V1);
}

static bool load(const struct sf_load_target *target, const char *path, const char *options,
		 struct sf_error *err)
{
	const char *const arguments[SF_JVM_LOAD_ARGUMENTS] = { path, "true", options };
	static char reply[MAX_REPLY];
	unsigned version;
	long size;

	if (!choose_version(target, arguments, &version, err))
		return false;
	size = ask(target, version, "load", arguments, reply, err);
	return size >= 0 && sf_jvm_load_judge(reply, (size_t)size, target->pid, err);
}

/* --- here --- */

bool sf_hotspot_loadable(int32_t pid, struct sf_error *err)
{
	struct sf_load_target target;
	bool ok = sf_jvm_load_open(pid, &target, err);

	sf_load_target_close(&target);
	return ok;
}

bool sf_hotspot_load(int32_t pid, const char *library, const char *options, struct sf_error *err)
{
	struct sf_load_target target;
	bool ok = sf_jvm_load_open(pid, &target, err) && sf_load(&target, library, options, load, err);

	sf_load_target_close(&target);
	return ok;
}

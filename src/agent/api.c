/* SPDX-License-Identifier: Apache-2.0 */
/* The C API, include/stillframe.h. The message of a failure is kept for the thread that made the call. */
#include "stillframe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/agent.h"
#include "agent/control.h"
#include "agent/threads/api_guard.h"
#include "agent/threads/thread_register.h"
#include "base/foreign_file.h"
#include "base/cleanup.h"
#include "base/output_file.h"
#include "base/whole_io.h"
#include "stream/file.h"

/* On the heap of the loader, made at a thread's first failure: never touched by a handler. */
static _Thread_local char last_error[512];

static int to_errno(const struct sf_error *err)
{
	static const int by_code[] = {
		[SF_E_SYSTEM] = EIO,	   [SF_E_NO_MEMORY] = ENOMEM, [SF_E_INPUT] = EINVAL,
		[SF_E_DENIED] = EPERM,	   [SF_E_GONE] = ESRCH,	      [SF_E_UNSUPPORTED] = ENOTSUP,
	};

	if (err->os_errno)
		return err->os_errno;
	return err->code > 0 && err->code <= SF_E_UNSUPPORTED ? by_code[err->code] : EINVAL;
}

/* A call of the API keeps errno. */
struct call {
	int saved_errno;
	struct sf_error err;
};

static struct call begin(void)
{
	return (struct call){ .saved_errno = errno };
}

/* 0, or the error number of what failed. */
static int finish(const struct call *call, bool ok)
{
	errno = call->saved_errno;
	if (ok)
		return 0;
	snprintf(last_error, sizeof(last_error), "%s", call->err.text);
	return to_errno(&call->err);
}

static bool start(const char *text, struct sf_error *err)
{
	struct sf_agent_options options;
	bool ok = sf_agent_options_parse(&options, text, err);

	if (ok && options.connect)
		ok = sf_control_call(options.connect, sf_agent_start, err);
	else if (ok)
		ok = sf_agent_start(&options, -1, err);
	sf_agent_options_deinit(&options); /* empty, if they were moved out */
	return ok;
}

int sf_profile_start(const char *options)
{
	struct call call = begin();
	const char *text = options ? options : secure_getenv("STILLFRAME");
	bool ok;

	sf_api_guard_begin();
	ok = start(text ? text : "", &call.err);
	sf_api_guard_end();
	return finish(&call, ok);
}

int sf_profile_stop(void)
{
	struct call call = begin();
	bool ok;

	sf_api_guard_begin();
	ok = sf_agent_stop(NULL, &call.err);
	sf_api_guard_end();
	return finish(&call, ok);
}

static int pause_or_resume(bool pause)
{
	struct call call = begin();
	bool ok = sf_agent_running() ||
		  sf_fail(&call.err, SF_E_INPUT,
			  "nothing is being sampled: sf_profile_start() comes first");

	if (ok) {
		sf_api_guard_begin();
		sf_agent_pause(pause);
		sf_api_guard_end();
	}
	return finish(&call, ok);
}

int sf_profile_pause(void)
{
	return pause_or_resume(true);
}

int sf_profile_resume(void)
{
	return pause_or_resume(false);
}

static bool copy_bytes(int from, int to, const char *path, struct sf_error *err)
{
	char bytes[16384];
	ssize_t n;

	while ((n = read(from, bytes, sizeof(bytes))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sf_fail_os(err, "cannot read the stream file");
		if (!sf_write_all(to, bytes, (size_t)n))
			return sf_fail_os(err, "cannot write %s", path);
	}
	return true;
}

static bool is_same(int from, int to)
{
	struct stat one, other;

	return fstat(from, &one) == 0 && fstat(to, &other) == 0 && one.st_dev == other.st_dev &&
	       one.st_ino == other.st_ino;
}

/* Where the copy goes: a new file, or one that is ours and a stream, or empty. */
static bool open_copy(const char *path, int *ret, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = -1;

	if (!sf_output_file_open(path, &fd, err) || !sf_stream_may_replace(fd, path, err))
		return false;
	*ret = sf_steal_fd(&fd);
	return true;
}

static bool copy_file(const char *path, struct sf_error *err)
{
	SF_CLEANUP(close) int from = -1;
	SF_CLEANUP(close) int to = -1;

	if (!sf_foreign_open_user(sf_agent_output(), &from, err) || !open_copy(path, &to, err))
		return false;
	if (!sf_stream_is(from))
		return sf_fail(err, SF_E_INPUT, "%s is not the stream any more", sf_agent_output());
	if (is_same(from, to))
		return true;
	if (ftruncate(to, 0) != 0)
		return sf_fail_os(err, "cannot write %s", path);
	return copy_bytes(from, to, path, err);
}

static bool write_profile(const char *path, struct sf_error *err)
{
	if (sf_agent_running() && !sf_agent_flush(err))
		return false;
	if (!sf_agent_output()[0])
		return sf_fail(err, SF_E_INPUT, "there is no stream file: %s", sf_agent_running() ?
			       "stillframe itself receives what is sampled" :
			       "sf_profile_start() comes first");
	return !path || copy_file(path, err);
}

int sf_profile_write(const char *path)
{
	struct call call = begin();

	return finish(&call, write_profile(path, &call.err));
}

const char *sf_profile_error(void)
{
	return last_error;
}

int sf_thread_register(void)
{
	struct call call = begin();

	return finish(&call, sf_agent_thread_register(&call.err));
}

int sf_thread_unregister(void)
{
	struct call call = begin();

	sf_agent_thread_unregister();
	return finish(&call, true);
}

int sf_thread_name(const char *name)
{
	struct call call = begin();

	return finish(&call, sf_agent_thread_rename(name, &call.err));
}

int sf_label_set(const char *key, const char *value)
{
	struct call call = begin();

	return finish(&call, sf_agent_thread_label(key, value, &call.err));
}

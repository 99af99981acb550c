/* SPDX-License-Identifier: Apache-2.0 */
/* Where the sockets of os/channel.h stand. */
#include "os/linux/channel_paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/channel.h"
#include "os/linux/proc.h"

bool sf_channel_own_folder(char *ret, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (runtime && *runtime == '/')
		return (size_t)snprintf(ret, size, "%s/stillframe", runtime) < size;
	return (size_t)snprintf(ret, size, "/tmp/stillframe-%u", (unsigned)geteuid()) < size;
}

bool sf_channel_check_folder(const char *path, uid_t owner, struct sf_error *err)
{
	struct stat about;

	if (lstat(path, &about) != 0)
		return sf_fail_os(err, "cannot look at %s", path);
	if (!S_ISDIR(about.st_mode))
		return sf_fail(err, SF_E_INPUT, "%s is not a folder", path);
	if (about.st_uid != owner || (about.st_mode & (S_IWGRP | S_IWOTH))) {
		sf_fail(err, SF_E_DENIED, "%s is not safe: it belongs to user %u, mode %03o", path,
			(unsigned)about.st_uid, about.st_mode & 07777u);
		return sf_fail_hint(err, "It has to be user %u's own, mode 0700. Remove it, or set "
					 "XDG_RUNTIME_DIR.", (unsigned)owner);
	}
	return true;
}

static bool make_folder(char *ret, size_t size, struct sf_error *err)
{
	if (!sf_channel_own_folder(ret, size))
		return sf_fail(err, SF_E_INPUT, "XDG_RUNTIME_DIR is too long for a socket's path");
	if (mkdir(ret, 0700) != 0 && errno != EEXIST)
		return sf_fail_os(err, "cannot make the folder %s", ret);
	return sf_channel_check_folder(ret, geteuid(), err);
}

static bool own_path(const char *what, int32_t pid, char ret[SF_CHANNEL_PATH], struct sf_error *err)
{
	char folder[SF_CHANNEL_PATH - 32];

	if (!make_folder(folder, sizeof(folder), err))
		return false;
	snprintf(ret, SF_CHANNEL_PATH, "%s/%s-%d.sock", folder, what, pid);
	return true;
}

bool sf_channel_collector_path(int32_t pid, char ret[SF_CHANNEL_PATH], struct sf_error *err)
{
	return own_path("record", pid, ret, err);
}

/* A process as it is seen from where it lives. */
struct place {
	int32_t pid;        /* here */
	int32_t inner_pid;  /* in its own container */
	uid_t uid;
};

static bool find_place(int32_t pid, struct place *ret)
{
	char path[32], text[4096], *line;
	struct stat about;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (stat(path, &about) != 0)
		return false;
	*ret = (struct place){ .pid = pid, .inner_pid = pid, .uid = about.st_uid };
	if (!sf_proc_read(pid, 0, "status", text, sizeof(text)))
		return true;
	line = strstr(text, "\nNSpid:");
	if (line) {
		line[1 + strcspn(line + 1, "\n")] = 0;
		ret->inner_pid = atoi(strrchr(line, '\t') + 1);
	}
	return true;
}

/*
 * Where another process's folder may be, best first. To add one: a line, and what is put in for %d
 * and %u.
 */
static bool guess_folder(unsigned i, const struct place *place, char *ret, size_t size)
{
	switch (i) {
	case 0:
		if (!sf_channel_own_folder(ret, size))
			*ret = 0;
		return true;
	case 1:
		snprintf(ret, size, "/run/user/%u/stillframe", (unsigned)place->uid);
		return true;
	case 2:
		snprintf(ret, size, "/tmp/stillframe-%u", (unsigned)place->uid);
		return true;
	case 3: /* in a container with folders of its own */
		snprintf(ret, size, "/proc/%d/root/tmp/stillframe-%u", place->pid,
			 (unsigned)place->uid);
		return true;
	default:
		return false;
	}
}

bool sf_channel_agent_path(int32_t pid, char ret[SF_CHANNEL_PATH], struct sf_error *err)
{
	char folder[SF_CHANNEL_PATH - 32];
	struct place place;
	struct stat about;

	if (pid == getpid())
		return own_path("agent", pid, ret, err);
	if (!find_place(pid, &place))
		return sf_fail_os(err, "cannot look at pid %d", pid);
	for (unsigned i = 0; guess_folder(i, &place, folder, sizeof(folder)); i++) {
		if (!sf_channel_check_folder(folder, place.uid, NULL))
			continue;
		snprintf(ret, SF_CHANNEL_PATH, "%s/agent-%d.sock", folder, place.inner_pid);
		if (lstat(ret, &about) == 0 && S_ISSOCK(about.st_mode))
			return true;
	}
	sf_fail(err, SF_E_GONE, "no agent listens in pid %d", pid);
	if (err)
		err->os_errno = ENOENT;
	return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Where the sockets of os/channel.h stand. */
#include "os/linux/channel_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "os/channel.h"
#include "os/linux/proc.h"
#include "os/process.h"
#include "os/task.h"

#define FOLDER_SIZE (SF_CHANNEL_PATH - 32) /* a socket's name goes behind it */

/*
 * The number of folders of /tmp that are tried. A name there may be taken by an attacker, or by a user who
 * has the same number in another user namespace.
 */
#define TMP_FOLDERS 10
#define TMP_NAME 40

/* --- names --- */

/* The i-th name in /tmp that is for this user and this kind of socket. False: there are no more. */
static bool tmp_name(unsigned i, uid_t uid, const char *kind, char ret[TMP_NAME])
{
	if (i == 0)
		snprintf(ret, TMP_NAME, "stillframe-%u%s", (unsigned)uid, kind);
	else
		snprintf(ret, TMP_NAME, "stillframe-%u%s-%u", (unsigned)uid, kind, i);
	return i < TMP_FOLDERS;
}

static bool tmp_folder(unsigned i, const char *kind, char *ret, size_t size)
{
	char name[TMP_NAME];
	const bool is_one = tmp_name(i, geteuid(), kind, name);

	snprintf(ret, size, "/tmp/%s", name);
	return is_one;
}

bool sf_channel_all_folder(unsigned i, char *ret, size_t size)
{
	return tmp_folder(i, "-all", ret, size);
}

bool sf_channel_own_folder(unsigned i, char *ret, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (runtime && *runtime == '/') {
		if ((size_t)snprintf(ret, size, "%s/stillframe", runtime) >= size)
			*ret = 0;
		return i == 0;
	}
	return tmp_folder(i, "", ret, size);
}

/* --- folders --- */

int sf_channel_open_folder(int at, const char *path, uid_t owner, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = openat(at, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat about;

	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP)) {
		sf_fail(err, SF_E_INPUT, "%s is not a folder", path);
		return -1;
	}
	if (fd < 0 || fstat(fd, &about) != 0) {
		sf_fail_os(err, "cannot look at %s", path);
		return -1;
	}
	if ((owner != SF_CHANNEL_ANYBODY && about.st_uid != owner) ||
	    (about.st_mode & (S_IWGRP | S_IWOTH))) {
		sf_fail(err, SF_E_DENIED, "%s is not safe: it belongs to user %u, mode %03o", path,
			(unsigned)about.st_uid, about.st_mode & 07777u);
		sf_fail_hint(err, "It has to be user %u's own, mode 0700. Remove it, or set XDG_RUNTIME_DIR.",
			     owner == SF_CHANNEL_ANYBODY ? (unsigned)about.st_uid : (unsigned)owner);
		return -1;
	}
	return sf_steal_fd(&fd);
}

int sf_channel_open_socket(int folder, const char *name)
{
	SF_CLEANUP(close) int fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat about, around;

	if (fd < 0 || fstat(fd, &about) != 0 || fstat(folder, &around) != 0)
		return -1;
	if (!S_ISSOCK(about.st_mode) || about.st_uid != around.st_uid) {
		errno = ENOTSOCK;
		return -1;
	}
	return sf_steal_fd(&fd);
}

/* Whether it is there, made if need be, and safe. */
static bool make_folder(const char *path, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = -1;

	if (!*path)
		return sf_fail(err, SF_E_INPUT, "XDG_RUNTIME_DIR is too long for a socket's path");
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return sf_fail_os(err, "cannot make the folder %s", path);
	fd = sf_channel_open_folder(AT_FDCWD, path, geteuid(), err);
	return fd >= 0;
}

typedef bool folder_fn(unsigned i, char *ret, size_t size);

/* The first one that is safe; what is wrong with the best one where none is. */
static bool choose_folder(folder_fn *folders, char ret[FOLDER_SIZE], struct sf_error *err)
{
	for (unsigned i = 0; folders(i, ret, FOLDER_SIZE); i++) {
		if (make_folder(ret, i == 0 ? err : NULL))
			return true;
	}
	return false;
}

static bool own_path(folder_fn *folders, const char *what, int32_t pid, char ret[SF_CHANNEL_PATH], struct sf_error *err)
{
	char folder[FOLDER_SIZE];

	if (!choose_folder(folders, folder, err))
		return false;
	snprintf(ret, SF_CHANNEL_PATH, "%s/%s-%d.sock", folder, what, pid);
	return true;
}

bool sf_channel_agent_path(int32_t pid, char ret[SF_CHANNEL_PATH], struct sf_error *err)
{
	return own_path(sf_channel_own_folder, "agent", pid, ret, err);
}

bool sf_channel_collector_path(int32_t pid, bool for_all, char ret[SF_CHANNEL_PATH], struct sf_error *err)
{
	return own_path(for_all ? sf_channel_all_folder : sf_channel_own_folder, "record", pid, ret, err);
}

/* --- the agent in another process --- */

/* A process as it is seen from where it lives. */
struct place {
	int32_t pid;
	uid_t uid, inner_uid;   /* of its user, here and in its own user namespace */
	char socket[32];        /* the name, which has the pid in its own pid namespace */
};

/* Its user namespace calls this user so; the same where it has none of its own (user_namespaces(7)). */
static uid_t find_inner_uid(int32_t pid, uid_t uid)
{
	unsigned inner, outer, count;
	char text[4096];
	int used = 0;

	if (!sf_proc_read(pid, 0, "uid_map", text, sizeof(text)))
		return uid;
	for (const char *at = text; sscanf(at, "%u %u %u%n", &inner, &outer, &count, &used) == 3; at += used) {
		if (uid >= outer && uid - outer < count)
			return inner + (uid - outer);
	}
	return uid;
}

static bool find_place(int32_t pid, struct place *ret)
{
	char path[32];
	struct stat about;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (stat(path, &about) != 0)
		return false;
	*ret = (struct place){ .pid = pid, .uid = about.st_uid, .inner_uid = find_inner_uid(pid, about.st_uid) };
	snprintf(ret->socket, sizeof(ret->socket), "agent-%d.sock", sf_task_inner_id(pid, pid));
	return true;
}

static int look_in(const struct place *place, int at, const char *path)
{
	SF_CLEANUP(close) int folder = sf_channel_open_folder(at, path, place->uid, NULL);

	return folder < 0 ? -1 : sf_channel_open_socket(folder, place->socket);
}

/* In all folders that it may have chosen there: by the number of its user, as it sees that itself and as it is seen here. */
static int look_in_tmp(const struct place *place, int tmp)
{
	const uid_t uids[] = { place->inner_uid, place->uid };
	const unsigned n = place->inner_uid == place->uid ? 1 : 2;
	char name[TMP_NAME];
	int fd = -1;

	for (unsigned u = 0; u < n && fd < 0; u++) {
		for (unsigned i = 0; fd < 0 && tmp_name(i, uids[u], "", name); i++)
			fd = look_in(place, tmp, name);
	}
	return fd;
}

/* In a container with folders of its own: links there, also absolute ones, stay below its root. */
static int look_in_its_tmp(const struct place *place)
{
	SF_CLEANUP(close) int root = sf_process_open_root(place->pid);
	SF_CLEANUP(close) int tmp = root < 0 ? -1 : sf_foreign_find(root, "/tmp");

	return tmp < 0 ? -1 : look_in_tmp(place, tmp);
}

static int look_in_ours(const struct place *place)
{
	SF_CLEANUP(close) int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return tmp < 0 ? -1 : look_in_tmp(place, tmp);
}

/* The folder of whoever looks, if that is one user with who is looked for. */
static int look_where_we_listen(const struct place *place)
{
	char folder[FOLDER_SIZE];

	return sf_channel_own_folder(0, folder, sizeof(folder)) && *folder ?
		       look_in(place, AT_FDCWD, folder) : -1;
}

static int look_where_the_system_says(const struct place *place)
{
	char folder[FOLDER_SIZE];

	snprintf(folder, sizeof(folder), "/run/user/%u/stillframe", (unsigned)place->uid);
	return look_in(place, AT_FDCWD, folder);
}

int sf_channel_find_agent(int32_t pid, struct sf_error *err)
{
	/* Where its folder may be, best first. To add one: a line. */
	static int (*const looks[])(const struct place *place) = {
		look_where_we_listen, look_where_the_system_says, look_in_ours, look_in_its_tmp,
	};
	struct place place;
	int fd = -1;

	if (!find_place(pid, &place)) {
		sf_fail_os(err, "cannot look at pid %d", pid);
		return -1;
	}
	for (size_t i = 0; fd < 0 && i < sizeof(looks) / sizeof(looks[0]); i++)
		fd = looks[i](&place);
	if (fd < 0) {
		sf_fail(err, SF_E_GONE, "no agent listens in pid %d", pid);
		if (err)
			err->os_errno = ENOENT;
	}
	return fd;
}

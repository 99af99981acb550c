/* SPDX-License-Identifier: Apache-2.0 */
/* A process before an agent is loaded into it: its user, its state, its folders, and the socket at which it listens. */
#include "runtime/load/target.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "base/whole_io.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/task.h"

#define ALL_NS UINT64_C(30000000000)  /* for everything */

/* --- small files of /proc --- */

static int open_of(int32_t pid, const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return open(path, flags | O_CLOEXEC);
}

long sf_load_read_text(int32_t pid, const char *name, char *ret, size_t size)
{
	SF_CLEANUP(close) int fd = open_of(pid, name, O_RDONLY);
	size_t used = 0;
	ssize_t n = 1;

	if (fd < 0)
		return -1;
	while (used < size - 1 && (n = read(fd, ret + used, size - 1 - used)) > 0)
		used += (size_t)n;
	ret[used] = 0;
	return n < 0 ? -1 : (long)used;
}

bool sf_load_status_number(const char *status, const char *name, unsigned n, int base, uint64_t *ret)
{
	const char *at = strstr(status, name);
	char *end;

	if (!at)
		return false;
	at += strlen(name);
	do {
		*ret = strtoull(at, &end, base);
		if (end == at)
			return false;
		at = end;
	} while (n-- > 0);
	return true;
}

/* --- what it has mapped --- */

struct wanted {
	const char *name;
	char *path;
	size_t size;
	bool deleted;
};

static bool find_file(const struct sf_mapping *mapping, void *arg)
{
	struct wanted *wanted = arg;
	const char *slash = strrchr(mapping->path, '/');

	if (!slash || strncmp(slash + 1, wanted->name, strlen(wanted->name)) != 0)
		return true;
	wanted->deleted = mapping->deleted;
	snprintf(wanted->path, wanted->size, "%s", mapping->path);
	return false;
}

void sf_load_mapped(int32_t pid, const char *name, char *ret, size_t size, bool *deleted_ret)
{
	struct wanted wanted = { .name = name, .path = ret, .size = size };

	*ret = 0;
	sf_process_maps(sf_process_live_id(pid), find_file, &wanted, NULL);
	*deleted_ret = wanted.deleted;
}

/* --- its program, its user --- */

/*
 * The map that was opened belongs to the memory that the process had then. exec gives it another
 * one, and the old map is empty from then on.
 */
bool sf_load_target_is_same(const struct sf_load_target *target)
{
	char byte;

	return target->maps < 0 || pread(target->maps, &byte, 1, 0) == 1;
}

/* False for a stopped process: it would not execute requests now, but all of them when it continues. */
static bool check_running(int32_t pid, const char *status, struct sf_error *err)
{
	const char *state = strstr(status, "\nState:\t");

	if (!state || (state[8] != 'T' && state[8] != 't'))
		return true;
	sf_fail(err, SF_E_UNSUPPORTED, "no agent can be loaded into pid %d: it is stopped", pid);
	return sf_fail_hint(
		err, "Let it go on (kill -CONT %d), or see where it stands: stillframe dump -p %d",
		pid, pid);
}

static bool read_user(struct sf_load_target *target, struct sf_error *err)
{
	char status[4096];
	uint64_t uid, gid;

	if (sf_load_read_text(target->pid, "status", status, sizeof(status)) < 0 ||
	    !sf_load_status_number(status, "\nUid:", 1, 10, &uid) ||
	    !sf_load_status_number(status, "\nGid:", 1, 10, &gid))
		return sf_fail_os(err, "cannot look at pid %d", target->pid);
	target->uid = (uint32_t)uid;
	target->gid = (uint32_t)gid;
	if (!check_running(target->pid, status, err))
		return false;
	if (geteuid() == 0 || geteuid() == target->uid)
		return true;
	sf_fail(err, SF_E_DENIED, "no agent can be loaded into pid %d: it is user %u's, and its runtime "
		"listens to its own user only", target->pid, target->uid);
	return sf_fail_hint(err, "Run stillframe as that user, or as root.");
}

/* --- its folders --- */

/* Below its root: a link there, also an absolute one, leads to where it leads for the process. */
static int find_tmp(int root)
{
	SF_CLEANUP(close) int found = root >= 0 ? sf_foreign_find(root, "/tmp") : -1;
	struct stat about;

	if (found < 0 || fstat(found, &about) != 0)
		return -1;
	if (!S_ISDIR(about.st_mode)) {
		errno = ENOTDIR;
		return -1;
	}
	return sf_steal_fd(&found);
}

static bool open_folders(struct sf_load_target *target, struct sf_error *err)
{
	int32_t id = sf_process_live_id(target->pid);

	target->root = open_of(id, "root", O_PATH | O_DIRECTORY);
	target->tmp = find_tmp(target->root);
	if (target->tmp < 0)
		return sf_fail_os(err, "no agent can be loaded into pid %d: cannot open its /tmp",
				  target->pid);
	target->folder = open_of(id, "cwd", O_PATH | O_DIRECTORY);
	return true;
}

bool sf_load_target_open(int32_t pid, struct sf_load_target *ret, struct sf_error *err)
{
	*ret = (struct sf_load_target){
		.pid = pid, .root = -1, .tmp = -1, .folder = -1, .process = sf_process_open(pid),
		.maps = open_of(sf_process_live_id(pid), "maps", O_RDONLY),
		.until_ns = sf_now_ns() + ALL_NS };
	ret->inner_pid = sf_task_inner_id(pid, pid);
	return read_user(ret, err) && open_folders(ret, err);
}

void sf_load_target_close(struct sf_load_target *target)
{
	int *const folders[] = { &target->root, &target->tmp, &target->folder,
				 &target->process, &target->maps };

	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		if (*folders[i] >= 0)
			close(*folders[i]);
		*folders[i] = -1;
	}
}

/* --- a socket in one of its folders --- */

int sf_load_socket_file(const struct sf_load_target *target, int folder, const char *name)
{
	struct stat about;
	SF_CLEANUP(close) int fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &about) != 0)
		return -1;
	if (!S_ISSOCK(about.st_mode) || about.st_uid != target->uid) {
		errno = EPERM;
		return -1;
	}
	return sf_steal_fd(&fd);
}

/* The one who listens is the process that is meant. 0: of a namespace that is not below ours. */
static bool is_target(int fd, const struct sf_load_target *target)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       (peer.pid == target->pid || peer.pid == 0) && peer.uid == target->uid;
}

int sf_load_socket_connect(const struct sf_load_target *target, int folder, const char *name)
{
	const struct timeval limit = { .tv_sec = 5 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	SF_CLEANUP(close) int file = sf_load_socket_file(target, folder, name);
	SF_CLEANUP(close) int fd = -1;

	if (file < 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", file);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
		return -1;
	if (!is_target(fd, target)) {
		errno = EPERM;
		return -1;
	}
	return sf_steal_fd(&fd);
}

bool sf_load_socket_send(int fd, const char *bytes, size_t size)
{
	return sf_move_all(done, size, send(fd, bytes + done, size - done, MSG_NOSIGNAL));
}

long sf_load_socket_receive(int fd, char *ret, size_t size, uint64_t until_ns)
{
	for (;;) {
		uint64_t now_ns = sf_now_ns();
		struct pollfd wanted = { .fd = fd, .events = POLLIN };
		int n = now_ns < until_ns ?
			poll(&wanted, 1, (int)((until_ns - now_ns) / 1000000 + 1)) : 0;

		if (n == 0)
			errno = ETIMEDOUT;
		if (n == 0 || (n < 0 && errno != EINTR))
			return -1;
		if (n > 0)
			return recv(fd, ret, size, MSG_DONTWAIT);
	}
}

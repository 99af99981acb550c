/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channel between two processes (os/channel.h) on Linux.
 *
 * Unix sockets of type SOCK_SEQPACKET (unix(7)). Nothing here waits for the other end but
 * sf_channel_connect (a full queue of callers, at most CALL_S).
 */
#include "os/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/folder.h"
#include "os/linux/channel_paths.h"

#define CALL_S 5
#define QUEUE 64
#define LEFT_S 60           /* who binds a socket listens on it at once */

/* --- who is at the other end --- */

static bool get_peer(int channel, struct ucred *ret)
{
	socklen_t size = sizeof(*ret);

	return getsockopt(channel, SOL_SOCKET, SO_PEERCRED, ret, &size) == 0;
}

bool sf_channel_peer(int channel, int32_t *pid_ret)
{
	struct ucred peer;
	bool known = get_peer(channel, &peer);

	if (known)
		*pid_ret = peer.pid;
	return known;
}

/* Root calls everybody; nobody else calls another user's. */
static bool check_peer(int channel, bool called, struct sf_error *err)
{
	struct ucred peer;

	if (!get_peer(channel, &peer))
		return sf_fail_os(err, "cannot see who is at the other end of a socket");
	if (peer.uid == geteuid() || peer.uid == 0 || (called && geteuid() == 0))
		return true;
	return sf_fail(err, SF_E_DENIED, "the other end of the socket is user %u's",
		       (unsigned)peer.uid);
}

/* --- addresses --- */

/*
 * A socket is called by the descriptor of its folder, or by its own: the name that leads to it may lead elsewhere by
 * now. Of the thread, which may have a table of its own (own_fd.h). Without /proc the name has to do.
 */
#define BY_DESCRIPTOR "/proc/thread-self/fd/%d"

struct place {
	int folder;
	const char *name, *path; /* the same socket: in the folder, and from "/" */
};

typedef int call_fn(int fd, const struct sockaddr *address, socklen_t size); /* bind() or connect() */

static int call_by_name(call_fn *fn, int fd, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int result;

	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s", name) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	do
		result = fn(fd, (const struct sockaddr *)&address, sizeof(address));
	while (result != 0 && errno == EINTR);
	return result;
}

/* By the path below /proc; where there is no /proc, by `name`. NULL: there is /proc. */
static int call_by(call_fn *fn, int fd, const char *path, const char *name)
{
	int result = call_by_name(fn, fd, path);

	return result != 0 && name && (errno == ENOENT || errno == EACCES) ? call_by_name(fn, fd, name) : result;
}

static int bind_at(int fd, const struct place *place)
{
	char path[SF_CHANNEL_PATH];

	snprintf(path, sizeof(path), BY_DESCRIPTOR "/%s", place->folder, place->name);
	return call_by(bind, fd, path, place->path);
}

/* `socket`: an O_PATH descriptor of it. `name` NULL: there is /proc. */
static int connect_to(int fd, int socket, const char *name)
{
	char path[SF_CHANNEL_PATH];

	snprintf(path, sizeof(path), BY_DESCRIPTOR, socket);
	return call_by(connect, fd, path, name);
}

static int open_socket(int flags, struct sf_error *err)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);

	if (fd < 0)
		sf_fail_os(err, "cannot make a socket");
	return fd;
}

/* --- folders --- */

/* The folder of a socket, opened; -1. `ret` is of that and of `path`. */
static int open_place(const char *path, uid_t owner, struct place *ret, struct sf_error *err)
{
	char folder[SF_CHANNEL_PATH];
	const char *slash = strrchr(path, '/');

	*ret = (struct place){ .folder = -1, .path = path };
	if (!slash || slash == path || !slash[1] || strlen(path) >= sizeof(folder)) {
		sf_fail(err, SF_E_INPUT, "%s is in no folder of ours, or too long for a socket", path);
		return -1;
	}
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
	ret->name = slash + 1;
	ret->folder = sf_channel_open_folder(AT_FDCWD, folder, owner, err);
	return ret->folder;
}

/* --- listening --- */

static bool somebody_listens(const struct place *place)
{
	SF_CLEANUP(close) int socket = sf_channel_open_socket(place->folder, place->name);
	SF_CLEANUP(close) int fd = open_socket(SOCK_NONBLOCK, NULL);

	/* EAGAIN: its queue is full. Anything but a refusal leaves what stands there alone. */
	return socket < 0 || fd < 0 || connect_to(fd, socket, place->path) == 0 || errno != ECONNREFUSED;
}

static bool bind_to(int fd, const struct place *place, struct sf_error *err)
{
	if (bind_at(fd, place) == 0)
		return true;
	if (errno != EADDRINUSE)
		return sf_fail_os(err, "cannot listen on %s", place->path);
	if (somebody_listens(place))
		return sf_fail(err, SF_E_INPUT, "somebody listens on %s already", place->path);
	if (unlinkat(place->folder, place->name, 0) == 0 && bind_at(fd, place) == 0)
		return true;
	return sf_fail_os(err, "cannot listen on %s", place->path);
}

int sf_channel_listen(const char *path, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = -1;
	struct place place;
	SF_CLEANUP(close) int folder = open_place(path, geteuid(), &place, err);

	if (folder < 0)
		return -1;
	fd = open_socket(SOCK_NONBLOCK, err);
	if (fd < 0)
		return -1;
	fchmod(fd, 0600); /* before bind: the mode that its name gets */
	if (!bind_to(fd, &place, err))
		return -1;
	if (listen(fd, QUEUE) != 0) {
		sf_fail_os(err, "cannot listen on %s", path);
		return -1;
	}
	return sf_steal_fd(&fd);
}

bool sf_channel_open_to_all(const char *path, struct sf_error *err)
{
	struct place place;
	SF_CLEANUP(close) int folder = open_place(path, geteuid(), &place, err);

	if (folder < 0)
		return false;
	if (fchmodat(folder, ".", 0711, 0) != 0 || fchmodat(folder, place.name, 0666, 0) != 0)
		return sf_fail_os(err, "cannot open %s to other users", path);
	return true;
}

void sf_channel_remove(const char *path)
{
	struct place place;
	SF_CLEANUP(close) int folder = open_place(path, geteuid(), &place, NULL);
	SF_CLEANUP(close) int socket = folder < 0 ? -1 : sf_channel_open_socket(folder, place.name);

	if (socket >= 0)
		unlinkat(folder, place.name, 0);
}

/* Its end was never told: the process was killed, or became another program. */
static bool is_left_behind(const struct place *place)
{
	struct stat about;

	return fstatat(place->folder, place->name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISSOCK(about.st_mode) && about.st_uid == geteuid() &&
	       about.st_mtime + LEFT_S < time(NULL) && !somebody_listens(place);
}

static void sweep(const char *folder)
{
	SF_CLEANUP(close) int found = sf_channel_open_folder(AT_FDCWD, folder, geteuid(), NULL);
	SF_CLEANUP(folder) struct sf_folder entries = { .fd = -1 };
	char path[PATH_MAX];
	const char *name;

	if (found < 0 || !sf_folder_open(&entries, found, "."))
		return;
	while ((name = sf_folder_next(&entries))) {
		const struct place place = { found, name, path };

		snprintf(path, sizeof(path), "%s/%s", folder, name);
		if (is_left_behind(&place))
			unlinkat(found, name, 0);
	}
}

void sf_channel_sweep(void)
{
	char folder[SF_CHANNEL_PATH - 32];

	for (unsigned i = 0; sf_channel_own_folder(i, folder, sizeof(folder)); i++)
		sweep(folder);
	for (unsigned i = 0; sf_channel_all_folder(i, folder, sizeof(folder)); i++)
		sweep(folder);
}

int sf_channel_accept_any(int listener, bool *is_own_ret, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (err)
		*err = (struct sf_error){ 0 };
	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			sf_fail_os(err, "cannot answer a call on a socket");
		return -1;
	}
	*is_own_ret = check_peer(fd, false, NULL);
	return sf_steal_fd(&fd);
}

int sf_channel_accept(int listener, struct sf_error *err)
{
	bool is_own;
	SF_CLEANUP(close) int fd = sf_channel_accept_any(listener, &is_own, err);

	return fd >= 0 && is_own ? sf_steal_fd(&fd) : -1;
}

/* --- calling --- */

/* `socket`: an O_PATH descriptor; `path` NULL: there is no name for it here. `whom` is for messages. */
static int call(int socket, const char *path, const char *whom, struct sf_error *err)
{
	const struct timeval limit = { .tv_sec = CALL_S };
	SF_CLEANUP(close) int fd = open_socket(0, err);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect_to(fd, socket, path) != 0) {
		sf_fail_os(err, "cannot reach %s", whom);
		return -1;
	}
	return check_peer(fd, true, err) ? sf_steal_fd(&fd) : -1;
}

/* Root calls everybody; others call themselves and root. */
static int open_place_of_peer(const char *path, struct place *ret, struct sf_error *err)
{
	const uid_t own = geteuid();

	if (open_place(path, own == 0 ? SF_CHANNEL_ANYBODY : own, ret, err) < 0 && own != 0)
		open_place(path, 0, ret, err);
	return ret->folder;
}

int sf_channel_connect(const char *path, struct sf_error *err)
{
	struct place place;
	SF_CLEANUP(close) int folder = open_place_of_peer(path, &place, err);
	SF_CLEANUP(close) int socket = -1;

	if (folder < 0)
		return -1;
	socket = sf_channel_open_socket(folder, place.name);
	if (socket < 0) {
		sf_fail_os(err, "cannot reach %s", path);
		return -1;
	}
	return call(socket, path, path, err);
}

int sf_channel_call(int32_t pid, struct sf_error *err)
{
	SF_CLEANUP(close) int socket = sf_channel_find_agent(pid, err);
	char whom[48];

	snprintf(whom, sizeof(whom), "the agent in pid %d", pid);
	return socket < 0 ? -1 : call(socket, NULL, whom, err);
}

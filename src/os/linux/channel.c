/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channel between two processes (os/channel.h) on Linux.
 *
 * Unix sockets of type SOCK_SEQPACKET (unix(7)). Nothing here waits for the other end but
 * sf_channel_connect (a full queue of callers, at most CALL_S) and sf_channel_receive (the caller's
 * time-out).
 */
#include "os/channel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/clock.h"
#include "os/linux/channel_paths.h"

#define CALL_S 5
#define QUEUE 64
#define LEFT_S 60           /* who binds a socket listens on it at once */
#define MAX_DESCRIPTORS 16 /* of a message, that are closed if they are not wanted */

/* --- who is at the other end --- */

static bool trusts(uid_t uid)
{
	return uid == geteuid() || uid == 0;
}

bool sf_channel_peer(int channel, int32_t *pid_ret)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(channel, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
		return false;
	*pid_ret = peer.pid;
	return true;
}

/* Root calls everybody; nobody else calls another user's. */
static bool check_peer(int channel, bool called, struct sf_error *err)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(channel, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
		return sf_fail_os(err, "cannot see who is at the other end of a socket");
	if (trusts(peer.uid) || (called && geteuid() == 0))
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

static bool set_address(struct sockaddr_un *ret, const char *path)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return (size_t)snprintf(ret->sun_path, sizeof(ret->sun_path), "%s", path) < sizeof(ret->sun_path);
}

static bool has_no_proc(void)
{
	return errno == ENOENT || errno == EACCES;
}

static int bind_by_name(int fd, const char *name)
{
	struct sockaddr_un address;

	if (!set_address(&address, name)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return bind(fd, (const struct sockaddr *)&address, sizeof(address));
}

static int bind_at(int fd, const struct place *place)
{
	char path[SF_CHANNEL_PATH];

	snprintf(path, sizeof(path), BY_DESCRIPTOR "/%s", place->folder, place->name);
	return bind_by_name(fd, path) == 0 ? 0 : has_no_proc() ? bind_by_name(fd, place->path) : -1;
}

static int connect_by_name(int fd, const char *name)
{
	struct sockaddr_un address;
	int result;

	if (!set_address(&address, name)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	do
		result = connect(fd, (const struct sockaddr *)&address, sizeof(address));
	while (result != 0 && errno == EINTR);
	return result;
}

/* `socket`: an O_PATH descriptor of it. `path` NULL: there is /proc. */
static int connect_to(int fd, int socket, const char *path)
{
	char own[SF_CHANNEL_PATH];

	snprintf(own, sizeof(own), BY_DESCRIPTOR, socket);
	return connect_by_name(fd, own) == 0 ? 0 : path && has_no_proc() ? connect_by_name(fd, path) : -1;
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
	int fd = found < 0 ? -1 : openat(found, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	SF_CLEANUP(closedir) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	char path[PATH_MAX];
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL) {
		const struct place place = { found, entry->d_name, path };

		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (is_left_behind(&place))
			unlinkat(found, entry->d_name, 0);
	}
}

void sf_channel_sweep(void)
{
	char folder[SF_CHANNEL_PATH - 32];

	for (unsigned i = 0; sf_channel_own_folder(i, folder, sizeof(folder)); i++)
		sweep(folder);
}

int sf_channel_accept(int listener, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (err)
		*err = (struct sf_error){ 0 };
	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			sf_fail_os(err, "cannot answer a call on a socket");
		return -1;
	}
	return check_peer(fd, false, NULL) ? sf_steal_fd(&fd) : -1;
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

/* --- messages --- */

static void attach(struct msghdr *message, struct cmsghdr *room, size_t size, int fd)
{
	message->msg_control = room;
	message->msg_controllen = size;
	room->cmsg_level = SOL_SOCKET;
	room->cmsg_type = SCM_RIGHTS;
	room->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(room), &fd, sizeof(fd));
}

bool sf_channel_send(int channel, const void *bytes, size_t size, int fd, struct sf_error *err)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .room = { 0 } };
	struct iovec piece = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = size };
	struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1 };
	ssize_t n;

	if (!size || size > SF_CHANNEL_MAX)
		return sf_fail(err, SF_E_INPUT, "a message of %zu bytes cannot be sent", size);
	if (fd >= 0)
		attach(&message, &control.header, sizeof(control.room), fd);
	do
		n = sendmsg(channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)size || sf_fail_os(err, "cannot send a message");
}

/* The one descriptor that came, else -1; any other is closed. */
static int take_descriptor(struct msghdr *message, bool *too_many_ret)
{
	int taken = -1;

	*too_many_ret = (message->msg_flags & MSG_CTRUNC) != 0;
	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part;
	     part = CMSG_NXTHDR(message, part)) {
		size_t n = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd), sizeof(fd));
			if (taken < 0) {
				taken = fd;
				continue;
			}
			close(fd);
			*too_many_ret = true;
		}
	}
	return taken;
}

/* Receives a message without waiting. -1 and EAGAIN: there is none. */
static long receive_now(int channel, void *ret, size_t size, int *fd_ret, struct sf_error *err)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(MAX_DESCRIPTORS * sizeof(int))];
	} control;
	struct iovec piece = { .iov_base = ret, .iov_len = size };
	struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control.room,
				  .msg_controllen = sizeof(control.room) };
	ssize_t n = recvmsg(channel, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	SF_CLEANUP(close) int fd = -1;
	bool too_many;

	if (n < 0 && errno == ECONNRESET)
		return 0;
	if (n < 0) {
		sf_fail_os(err, "cannot receive a message");
		return -1;
	}
	fd = take_descriptor(&message, &too_many);
	if (too_many || (message.msg_flags & MSG_TRUNC)) {
		sf_fail(err, SF_E_INPUT, "a message is too large");
		errno = EMSGSIZE;
		return -1;
	}
	if (n > 0)
		*fd_ret = sf_steal_fd(&fd);
	return n;
}

/* Milliseconds until `end_ns`, for poll(); -1: for ever. */
static int time_left(int timeout_ms, uint64_t end_ns)
{
	uint64_t now_ns = sf_now_ns();

	if (timeout_ms < 0)
		return -1;
	return now_ns < end_ns ? (int)((end_ns - now_ns + 999999) / 1000000) : 0;
}

long sf_channel_receive(int channel, void *ret, size_t size, int *fd_ret, int timeout_ms,
			struct sf_error *err)
{
	uint64_t end_ns = sf_now_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * 1000000;
	struct pollfd wanted = { .fd = channel, .events = POLLIN };

	*fd_ret = -1;
	for (;;) {
		int n = poll(&wanted, 1, time_left(timeout_ms, end_ns));

		if (n > 0) {
			long got = receive_now(channel, ret, size, fd_ret, err);

			if (got >= 0 || (errno != EAGAIN && errno != EINTR))
				return got;
		}
		if (n < 0 && errno != EINTR) {
			sf_fail_os(err, "cannot wait for a message");
			return -1;
		}
		if (time_left(timeout_ms, end_ns) == 0) {
			errno = ETIMEDOUT;
			sf_fail_os(err, "no message came");
			return -1;
		}
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
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

static bool set_address(const char *path, struct sockaddr_un *ret, struct sf_error *err)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(ret->sun_path))
		return sf_fail(err, SF_E_INPUT, "the path of a socket is too long: %s", path);
	memcpy(ret->sun_path, path, strlen(path));
	return true;
}

static int open_socket(int flags, struct sf_error *err)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);

	if (fd < 0)
		sf_fail_os(err, "cannot make a socket");
	return fd;
}

/* --- listening --- */

static bool somebody_listens(const struct sockaddr_un *address)
{
	SF_CLEANUP(close) int fd = open_socket(SOCK_NONBLOCK, NULL);

	/* EAGAIN: its queue is full. Anything but a refusal leaves what stands there alone. */
	return fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
	       errno != ECONNREFUSED;
}

static bool bind_to(int fd, const struct sockaddr_un *address, struct sf_error *err)
{
	const struct sockaddr *any = (const struct sockaddr *)address;

	if (bind(fd, any, sizeof(*address)) == 0)
		return true;
	if (errno != EADDRINUSE)
		return sf_fail_os(err, "cannot listen on %s", address->sun_path);
	if (somebody_listens(address))
		return sf_fail(err, SF_E_INPUT, "somebody listens on %s already",
			       address->sun_path);
	if (unlink(address->sun_path) == 0 && bind(fd, any, sizeof(*address)) == 0)
		return true;
	return sf_fail_os(err, "cannot listen on %s", address->sun_path);
}

static bool check_folder_of(const char *path, struct sf_error *err)
{
	char folder[SF_CHANNEL_PATH];
	const char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return sf_fail(err, SF_E_INPUT, "%s is in no folder of ours", path);
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
	return sf_channel_check_folder(folder, geteuid(), err);
}

int sf_channel_listen(const char *path, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = -1;
	struct sockaddr_un address;

	if (!set_address(path, &address, err) || !check_folder_of(path, err))
		return -1;
	fd = open_socket(SOCK_NONBLOCK, err);
	if (fd < 0)
		return -1;
	fchmod(fd, 0600); /* before bind: the mode that its name gets */
	if (!bind_to(fd, &address, err))
		return -1;
	if (listen(fd, QUEUE) != 0) {
		sf_fail_os(err, "cannot listen on %s", path);
		return -1;
	}
	return sf_steal_fd(&fd);
}

/* Its end was never told: the process was killed, or became another program. */
static bool is_left_behind(int folder, const char *name, const struct sockaddr_un *address)
{
	struct stat about;

	return fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(about.st_mode) &&
	       about.st_uid == geteuid() && about.st_mtime + LEFT_S < time(NULL) &&
	       !somebody_listens(address);
}

void sf_channel_sweep(void)
{
	char folder[SF_CHANNEL_PATH - 32], path[PATH_MAX];
	struct sockaddr_un address;
	struct dirent *entry;
	DIR *dir;

	if (!sf_channel_own_folder(folder, sizeof(folder)) ||
	    !sf_channel_check_folder(folder, geteuid(), NULL) || !(dir = opendir(folder)))
		return;
	while ((entry = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (set_address(path, &address, NULL) &&
		    is_left_behind(dirfd(dir), entry->d_name, &address))
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	closedir(dir);
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

int sf_channel_connect(const char *path, struct sf_error *err)
{
	const struct timeval limit = { .tv_sec = CALL_S };
	SF_CLEANUP(close) int fd = -1;
	struct sockaddr_un address;
	int result;

	if (!set_address(path, &address, err))
		return -1;
	fd = open_socket(0, err);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	do
		result = connect(fd, (const struct sockaddr *)&address, sizeof(address));
	while (result != 0 && errno == EINTR);
	if (result != 0) {
		sf_fail_os(err, "cannot reach %s", path);
		return -1;
	}
	return check_peer(fd, true, err) ? sf_steal_fd(&fd) : -1;
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

/* One message that is there. -1 and EAGAIN: there is none. */
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

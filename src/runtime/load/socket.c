/* SPDX-License-Identifier: Apache-2.0 */
/* Connects to a process that listens at a socket in one of its folders. */
#include "runtime/load/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/clock.h"

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
	while (size) {
		ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		bytes += n;
		size -= (size_t)n;
	}
	return true;
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

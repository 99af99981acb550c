/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of a channel (os/channel.h), and descriptors with them: SCM_RIGHTS of unix(7). */
#include "os/channel.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/clock.h"

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
	if (fd >= 0) {
		control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
						   .cmsg_len = CMSG_LEN(sizeof(fd)) };
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		message.msg_control = control.room;
		message.msg_controllen = sizeof(control.room);
	}
	do
		n = sendmsg(channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)size || sf_fail_os(err, "cannot send a message");
}

/*
 * Receives a message without waiting. -1 and EAGAIN: there is none. There is room for one descriptor: the kernel gives no
 * more (MSG_CTRUNC).
 */
static long receive_now(int channel, void *ret, size_t size, int *fd_ret, struct sf_error *err)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec piece = { .iov_base = ret, .iov_len = size };
	struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control.room,
				  .msg_controllen = CMSG_LEN(sizeof(int)) };
	ssize_t n = recvmsg(channel, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	SF_CLEANUP(close) int fd = -1;

	if (n < 0 && errno == ECONNRESET)
		return 0;
	if (n < 0) {
		sf_fail_os(err, "cannot receive a message");
		return -1;
	}
	if (CMSG_FIRSTHDR(&message) && control.header.cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	if (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) {
		sf_fail(err, SF_E_INPUT, "a message is too large");
		errno = EMSGSIZE;
		return -1;
	}
	if (n > 0)
		*fd_ret = sf_steal_fd(&fd);
	return n;
}

/* Waits until a message is there, or the end of the other side; false and errno: the time is over. */
static bool wait_for_message(int channel, int timeout_ms)
{
	const uint64_t end_ns = sf_now_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * 1000000;
	struct pollfd wanted = { .fd = channel, .events = POLLIN };
	int n;

	while ((n = poll(&wanted, 1, timeout_ms)) < 0 && errno == EINTR) {
		const uint64_t now_ns = sf_now_ns();

		if (timeout_ms > 0)
			timeout_ms = now_ns < end_ns ? (int)((end_ns - now_ns + 999999) / 1000000) : 0;
	}
	if (n == 0)
		errno = ETIMEDOUT;
	return n > 0;
}

long sf_channel_receive(int channel, void *ret, size_t size, int *fd_ret, int timeout_ms,
			struct sf_error *err)
{
	long n;

	*fd_ret = -1;
	do {
		if (!wait_for_message(channel, timeout_ms)) {
			sf_fail_os(err, "no message came");
			return -1;
		}
		n = receive_now(channel, ret, size, fd_ret, err);
	} while (n < 0 && (errno == EAGAIN || errno == EINTR));
	return n;
}

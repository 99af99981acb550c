/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that wait in a socket: SCM_RIGHTS of unix(7). */
#include "os/parcel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/folder.h"

#define MAX 250       /* the kernel passes 253 at once; an agent has about five */
#define FIRST 3       /* 0, 1 and 2 are /dev/null in a table of its own */

struct message {
	uint64_t secret;
	int32_t n, numbers[MAX];
};

union rights {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(MAX * sizeof(int))];
};

bool sf_parcel_make(struct sf_parcel *ret)
{
	const struct sockaddr_un any = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t size = sizeof(ret->name);

	*ret = (struct sf_parcel){ .socket = SF_NO_OWN_FD };
	if (fd < 0)
		return false;
	/* Without a name to bind to the kernel chooses a free one. */
	if (bind(fd, (const struct sockaddr *)&any, sizeof(any.sun_family)) != 0 ||
	    getsockname(fd, (struct sockaddr *)&ret->name, &size) != 0 ||
	    getrandom(&ret->secret, sizeof(ret->secret), GRND_NONBLOCK) != sizeof(ret->secret)) {
		close(fd);
		return false;
	}
	ret->name_size = size;
	ret->socket = sf_own_fd_make(fd);
	return true;
}

/* --- in --- */

/* Where there is no /proc, as after chroot(): each number is looked at. That takes a millisecond or two. */
static bool search(struct message *message)
{
	for (int fd = FIRST; fd < SF_OWN_FD_END; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		if (message->n == MAX)
			return false;
		message->numbers[message->n++] = fd;
	}
	return true;
}

static bool list(struct message *message)
{
	SF_CLEANUP(folder) struct sf_folder folder;
	const char *name;
	bool fits = true;

	if (!sf_folder_open(&folder, AT_FDCWD, "/proc/thread-self/fd"))
		return search(message);
	while ((name = sf_folder_next(&folder))) {
		const int fd = atoi(name);

		if (fd < FIRST || fd == folder.fd)
			continue;
		fits = fits && message->n < MAX;
		if (fits)
			message->numbers[message->n++] = fd;
	}
	return fits;
}

static bool send_all(const struct sf_parcel *parcel, int fd, struct message *message)
{
	struct iovec part = { message, sizeof(*message) };
	union rights rights = { 0 };
	struct msghdr header = {
		.msg_name = (void *)&parcel->name, .msg_namelen = parcel->name_size,
		.msg_iov = &part, .msg_iovlen = 1,
		.msg_control = &rights, .msg_controllen = CMSG_SPACE((size_t)message->n * sizeof(int)),
	};
	struct cmsghdr *control = CMSG_FIRSTHDR(&header);

	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	control->cmsg_len = CMSG_LEN((size_t)message->n * sizeof(int));
	memcpy(CMSG_DATA(control), message->numbers, (size_t)message->n * sizeof(int));
	return sendmsg(fd, &header, MSG_DONTWAIT) == (ssize_t)sizeof(*message);
}

bool sf_parcel_fill(const struct sf_parcel *parcel)
{
	struct message message = { .secret = parcel->secret };
	bool ok;
	int fd;

	if (!list(&message))
		return false;
	if (!message.n)
		return true;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ok = fd >= 0 && send_all(parcel, fd, &message);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* --- out --- */

static int receive(const struct sf_parcel *parcel, struct message *message, int fds[MAX])
{
	struct iovec part = { message, sizeof(*message) };
	union rights rights;
	struct msghdr header = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof(rights),
	};
	ssize_t size = recvmsg(parcel->socket.fd, &header, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *control = size == (ssize_t)sizeof(*message) ? CMSG_FIRSTHDR(&header) : NULL;
	int n;

	if (!control || control->cmsg_type != SCM_RIGHTS || message->secret != parcel->secret)
		return -1;
	n = (int)((control->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(fds, CMSG_DATA(control), (size_t)n * sizeof(int));
	return n == message->n && !(header.msg_flags & MSG_CTRUNC) ? n : -1;
}

static bool is_among(int fd, const int *numbers, int n)
{
	for (int i = 0; i < n; i++) {
		if (numbers[i] == fd)
			return true;
	}
	return false;
}

/* A free number that is not one of these. */
static int move_off(int fd, const int *numbers, int n)
{
	int from = FIRST, moved;

	while (is_among(fd, numbers, n)) {
		moved = fcntl(fd, F_DUPFD_CLOEXEC, from);
		close(fd);
		if (moved < 0)
			return -1;
		from = moved + 1;
		fd = moved;
	}
	return fd;
}

/* First out of the way of all numbers, the socket, too: one may have come under the number of another. */
static bool number(const struct message *message, int fds[MAX])
{
	bool ok = true;

	for (int i = 0; i < message->n; i++) {
		fds[i] = move_off(fds[i], message->numbers, message->n);
		ok = ok && fds[i] >= 0;
	}
	for (int i = 0; ok && i < message->n; i++) {
		ok = dup3(fds[i], message->numbers[i], O_CLOEXEC) >= 0;
		close(fds[i]);
	}
	return ok;
}

bool sf_parcel_take(struct sf_parcel *parcel)
{
	struct message message;
	int fds[MAX], n;

	if (!sf_own_fd_is_ours(&parcel->socket))
		return false;
	n = receive(parcel, &message, fds);
	close(parcel->socket.fd);
	return n > 0 && number(&message, fds);
}

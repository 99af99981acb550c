/* SPDX-License-Identifier: Apache-2.0 */
/* Sends and receives the messages between stillframe and an agent. Received messages are hostile input. */
#include "stream/control.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/channel.h"
#include "stream/record.h"

#define HEADER offsetof(struct sf_control, text)

bool sf_control_send(int channel, enum sf_control_kind kind, const char *text, int fd,
		     struct sf_error *err)
{
	struct sf_control message = {
		.magic = SF_CONTROL_MAGIC,
		.version = SF_STREAM_VERSION,
		.kind = (uint16_t)kind,
		.size = (uint32_t)strlen(text ? text : ""),
		.pid = getpid(),
	};

	if (message.size >= SF_CONTROL_TEXT)
		return sf_fail(err, SF_E_INPUT, "a message of %u bytes is too long", message.size);
	memcpy(message.text, text ? text : "", message.size);
	return sf_channel_send(channel, &message, HEADER + message.size, fd, err);
}

static bool check(const struct sf_control *message, size_t size, bool has_fd, struct sf_error *err)
{
	if (size < HEADER || message->magic != SF_CONTROL_MAGIC)
		return sf_fail(err, SF_E_INPUT, "the other end does not speak as stillframe does");
	if (message->version != SF_STREAM_VERSION)
		return sf_fail(err, SF_E_INPUT, "the other end is of another version of stillframe "
			       "(%u, this is %d)", message->version, SF_STREAM_VERSION);
	if (message->kind < SF_CONTROL_START || message->kind > SF_CONTROL_DONE)
		return sf_fail(err, SF_E_INPUT,
			       "the other end sent a message of no known kind (%u)", message->kind);
	if (message->size >= SF_CONTROL_TEXT || message->size != size - HEADER ||
	    memchr(message->text, 0, message->size))
		return sf_fail(err, SF_E_INPUT, "the other end sent a damaged message");
	if (has_fd && message->kind != SF_CONTROL_READY)
		return sf_fail(err, SF_E_INPUT,
			       "the other end sent a descriptor that nobody wants");
	return true;
}

int sf_control_receive(int channel, struct sf_control *ret, int *fd_ret, int timeout_ms,
		       struct sf_error *err)
{
	SF_CLEANUP(close) int fd = -1;
	long n;

	if (fd_ret)
		*fd_ret = -1;
	n = sf_channel_receive(channel, ret, sizeof(*ret), &fd, timeout_ms, err);
	if (n <= 0)
		return (int)n;
	if (!check(ret, (size_t)n, fd >= 0, err))
		return -1;
	ret->text[ret->size] = 0;
	if (fd_ret)
		*fd_ret = sf_steal_fd(&fd);
	return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a runtime of .NET says in bytes: the payloads of its events (runtime/coreclr/events.h), and the replies of its
 * diagnostics socket (runtime/coreclr/load_socket.h). The first byte chooses the event, or the reply. The rest are the
 * bytes, in memory that ends behind them.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/clock.h"
#include "runtime/coreclr/events.h"
#include "runtime/coreclr/load_socket.h"
#include "runtime/coreclr/profiler_id.h"
#include "runtime/coreclr/utf16.h"

#define PID 42
#define MAX_REPLY 256
#define MAX_SENT 4096          /* a socket takes so much at once */
#define PATIENCE_NS UINT64_C(10000000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* The label is text: with an end, and UTF-8. */
static void read_event(const struct sf_clr_event_kind *kind, const uint8_t *payload, size_t size)
{
	uint16_t units[SF_CLR_MAX_LABEL + 2];
	char label[SF_CLR_MAX_LABEL];

	memset(label, 'x', sizeof(label));
	sf_clr_event_label(kind, payload, size, label);
	must(memchr(label, 0, sizeof(label)));
	must(sf_clr_write_utf16(label, units, sizeof(units) / sizeof(*units)) > 0);
	must(sf_clr_event_amount(kind, payload, size) < UINT64_C(1) << 48);
	must(sf_clr_event_size(kind, payload, size) < UINT64_C(1) << 48);
}

/* A reply that is taken has the agreed result, and one that is not has a reason. */
static void judge(const uint8_t *reply, size_t size, int32_t expected)
{
	struct sf_error err = { 0 };
	const bool taken = sf_clr_message_judge(reply, size, PID, expected, &err);

	must(taken ? size >= SF_CLR_MESSAGE_HEADER + sizeof(expected) : err.text[0] != 0);
	must(!taken || memcmp(reply + SF_CLR_MESSAGE_HEADER, &expected, sizeof(expected)) == 0);
}

/* As the reply comes: in a stream that ends, of which no more is read than there is room for. */
static void read_reply(const uint8_t *bytes, size_t size)
{
	const struct sf_load_target target = { .pid = PID, .until_ns = sf_now_ns() + PATIENCE_NS };
	struct sf_error err = { 0 };
	uint8_t *reply = calloc(1, MAX_REPLY);
	int ends[2];
	long n;

	must(reply && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	size = size < MAX_SENT ? size : MAX_SENT;
	must(write(ends[1], bytes, size) == (ssize_t)size && shutdown(ends[1], SHUT_WR) == 0);
	n = sf_clr_socket_receive(&target, ends[0], reply, MAX_REPLY, &err);
	close(ends[0]);
	close(ends[1]);
	must(n <= (long)size && (n > 0 || err.text[0]));
	if (n > 0) {
		judge(reply, (size_t)n, SF_CLR_PROFILER_DECLINES);
		judge(reply, (size_t)n, SF_CLR_PROFILER_STAYS);
	}
	free(reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sf_clr_event_kind *kind;

	if (!size)
		return 0;
	kind = sf_clr_event_kind(data[0]);
	if (kind)
		read_event(kind, data + 1, size - 1);
	else
		read_reply(data + 1, size - 1);
	return 0;
}

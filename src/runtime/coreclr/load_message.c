/* SPDX-License-Identifier: Apache-2.0 */
/* Writes requests to .NET's diagnostics socket, and judges the replies. Replies are hostile input. */
#include "runtime/coreclr/load_message.h"

#include <string.h>

#include "runtime/coreclr/profiler_id.h"
#include "runtime/coreclr/utf16.h"

#define MAGIC "DOTNET_IPC_V1" /* with its zero */
#define EVENT_PIPE_SET 2
#define STOP_TRACING 1
#define PROFILER_SET 3
#define ATTACH 1
#define ANSWER_SET 0xff
#define PATIENCE_MS 5000      /* for a collection to end, where a profiler wants events of the collector; ours does not */
#define MAX_PATH_UNITS 4096

/* --- requests --- */

struct writer {
	uint8_t *bytes;
	size_t size, used;
	bool full;
};

static void put(struct writer *to, const void *bytes, size_t size)
{
	to->full |= size > to->size - to->used;
	if (to->full)
		return;
	memcpy(to->bytes + to->used, bytes, size);
	to->used += size;
}

/* Little-endian. */
static void put_number(struct writer *to, uint32_t value, unsigned size)
{
	const uint8_t bytes[4] = { (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24) };

	put(to, bytes, size);
}

/* Its units are counted with the zero behind. */
static void put_text(struct writer *to, const char *text)
{
	uint16_t units[MAX_PATH_UNITS];
	const size_t n = sf_clr_write_utf16(text, units, MAX_PATH_UNITS);

	to->full |= n == 0;
	put_number(to, (uint32_t)n, 4);
	for (size_t i = 0; i < n; i++)
		put_number(to, units[i], 2);
}

static void put_header(struct writer *to, size_t size, uint8_t set, uint8_t number)
{
	put(to, MAGIC, sizeof(MAGIC));
	put_number(to, (uint32_t)size, 2);
	put_number(to, set, 1);
	put_number(to, number, 1);
	put_number(to, 0, 2);
}

size_t sf_clr_message_attach(const char *library, const char *options, uint8_t *ret, size_t size)
{
	static const uint8_t id[] = SF_CLR_PROFILER_ID;
	struct writer to = { .bytes = ret, .size = size };
	size_t used;

	put_header(&to, 0, PROFILER_SET, ATTACH);
	put_number(&to, PATIENCE_MS, 4);
	put(&to, id, sizeof(id));
	put_text(&to, library);
	put_number(&to, (uint32_t)strlen(options) + 1, 4);
	put(&to, options, strlen(options) + 1);
	used = to.full || to.used > UINT16_MAX ? 0 : to.used;
	to.used = 0;
	put_header(&to, used, PROFILER_SET, ATTACH);
	return used;
}

size_t sf_clr_message_stop(uint64_t session, uint8_t *ret, size_t size)
{
	struct writer to = { .bytes = ret, .size = size };

	put_header(&to, SF_CLR_MESSAGE_HEADER + sizeof(session), EVENT_PIPE_SET, STOP_TRACING);
	put_number(&to, (uint32_t)session, 4);
	put_number(&to, (uint32_t)(session >> 32), 4);
	return to.full ? 0 : to.used;
}

/* --- replies --- */

static uint32_t number_at(const uint8_t *bytes, unsigned size)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < size; i++)
		value |= (uint32_t)bytes[i] << (8 * i);
	return value;
}

size_t sf_clr_message_size(const uint8_t *message)
{
	const size_t size = number_at(message + sizeof(MAGIC), 2);

	return memcmp(message, MAGIC, sizeof(MAGIC)) == 0 && size >= SF_CLR_MESSAGE_HEADER ? size : 0;
}

/* To add one: the number (CoreCLR: inc/corerror.xml), what it means, what to do. */
static const struct {
	uint32_t number;
	const char *meaning, *hint;
} refusals[] = {
	{ 0x8007007e, "its loader did not take the agent: its libc is another one, or has no room for the agent's thread-local "
		      "variables", "Start it with LD_PRELOAD=.../libstillframe-agent.so and STILLFRAME=listen." },
	{ 0x80131368, "its runtime takes no profilers while it runs", NULL },
	{ 0x8013136a, "another profiler is in it already, and its runtime takes no second one", NULL },
	{ 0x80131371, "its runtime is starting", "Try again." },
	{ 0x80131384, "its runtime has another diagnostics protocol", NULL },
	{ 0x80131385, "its runtime takes no profilers: it is NativeAOT or Mono, or older than .NET Core 3", NULL },
	{ 0x80131386, "its runtime has another diagnostics protocol", NULL },
	{ 0x80004005, "the agent could not begin", "STILLFRAME_VERBOSE=1 in its environment has it say why." },
};

static bool refuse(uint32_t number, int pid, struct sf_error *err)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
		if (refusals[i].number != number)
			continue;
		sf_fail(err, SF_E_UNSUPPORTED, "no agent can be loaded into pid %d: %s", pid, refusals[i].meaning);
		return refusals[i].hint && sf_fail_hint(err, "%s", refusals[i].hint);
	}
	return sf_fail(err, SF_E_UNSUPPORTED, "the .NET runtime in pid %d did not load the agent: error 0x%08x", pid, number);
}

/* A set of commands, 0 for success, and the session. */
bool sf_clr_message_is_stopped(const uint8_t *reply, size_t size)
{
	return size >= SF_CLR_MESSAGE_HEADER && sf_clr_message_size(reply) == size && reply[16] == ANSWER_SET && reply[17] == 0;
}

/* A set of commands, a number in it, and what the runtime or the agent returned. */
bool sf_clr_message_judge(const uint8_t *reply, size_t size, int pid, int32_t expected, struct sf_error *err)
{
	uint32_t number;

	if (size < SF_CLR_MESSAGE_HEADER + 4 || sf_clr_message_size(reply) != size || reply[16] != ANSWER_SET)
		return sf_fail(err, SF_E_INPUT, "the diagnostics socket of pid %d answers, but not as .NET's do", pid);
	number = number_at(reply + SF_CLR_MESSAGE_HEADER, 4);
	return number == (uint32_t)expected || refuse(number, pid, err);
}

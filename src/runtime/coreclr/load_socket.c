/* SPDX-License-Identifier: Apache-2.0 */
/* Connects to .NET's diagnostics socket, and exchanges one request and its reply, for load.c. Replies are hostile input. */
#include "runtime/coreclr/load_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "os/process.h"
#include "os/task.h"
#include "runtime/coreclr/profiler_id.h"
#include "runtime/coreclr/utf16.h"
#include "runtime/load/target.h"

#define MAX_ENVIRONMENT (1u << 20)
#define DEFAULT_FOLDER "/tmp"
#define SWITCHED_OFF "Start it without DOTNET_EnableDiagnostics=0 and DOTNET_EnableDiagnostics_IPC=0."
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

/* The size that a message of at least SF_CLR_MESSAGE_HEADER bytes says it has; 0: it is none. */
static size_t message_size(const uint8_t *message)
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

/* A set of commands, a number in it, and what the runtime or the agent returned. */
bool sf_clr_message_judge(const uint8_t *reply, size_t size, int pid, int32_t expected, struct sf_error *err)
{
	uint32_t number;

	if (size < SF_CLR_MESSAGE_HEADER + 4 || message_size(reply) != size || reply[16] != ANSWER_SET)
		return sf_fail(err, SF_E_INPUT, "the diagnostics socket of pid %d answers, but not as .NET's do", pid);
	number = number_at(reply + SF_CLR_MESSAGE_HEADER, 4);
	return number == (uint32_t)expected || refuse(number, pid, err);
}

/* --- where it is --- */

/* The value of a variable among words with a zero behind each; NULL: it is not there. */
static const char *value_in(const char *words, size_t size, const char *name)
{
	const size_t length = strlen(name);

	for (size_t i = 0; i < size; i += strlen(words + i) + 1) {
		if (strncmp(words + i, name, length) == 0 && words[i + length] == '=')
			return words + i + length + 1;
	}
	return NULL;
}

static void read_folder(int32_t pid, char ret[PATH_MAX])
{
	SF_CLEANUP(free) char *words = malloc(MAX_ENVIRONMENT);
	const long size = words ? sf_load_read_text(sf_process_live_id(pid), "environ", words, MAX_ENVIRONMENT) : -1;
	const char *value = size > 0 ? value_in(words, (size_t)size, "TMPDIR") : NULL;

	snprintf(ret, PATH_MAX, "%s", value && *value ? value : DEFAULT_FOLDER);
}

bool sf_clr_socket_name(int32_t pid, char folder_ret[PATH_MAX], char name_ret[SF_CLR_SOCKET_NAME])
{
	struct sf_program program;

	if (!sf_process_program(pid, &program))
		return false;
	read_folder(pid, folder_ret);
	snprintf(name_ret, SF_CLR_SOCKET_NAME, "dotnet-diagnostic-%d-%llu-socket", sf_task_inner_id(pid, pid),
		 (unsigned long long)program.started);
	return true;
}

/* The folder below the target's root, O_PATH; -1 and errno. */
static int open_folder(const struct sf_load_target *target, char path[PATH_MAX], char name[SF_CLR_SOCKET_NAME])
{
	if (!sf_clr_socket_name(target->pid, path, name)) {
		errno = ESRCH;
		return -1;
	}
	return sf_foreign_find(target->root, path);
}

/* --- reaching it --- */

static bool fail(const struct sf_load_target *target, const char *folder, const char *name, struct sf_error *err)
{
	const int error = errno;

	switch (error) {
	case ENOENT:
	case ECONNREFUSED: /* a process with the same id left it behind */
		sf_fail(err, SF_E_UNSUPPORTED, "no agent can be loaded into pid %d: its .NET runtime does not listen at %s/%s, as "
			"it sees that folder", target->pid, folder, name);
		return sf_fail_hint(err, SWITCHED_OFF);
	case EPERM:
		return sf_fail(err, SF_E_DENIED, "no agent can be loaded into pid %d: %s/%s, as it sees that folder, is not its own",
			       target->pid, folder, name);
	case EAGAIN:
		return sf_fail(err, SF_E_UNSUPPORTED, "no agent can be loaded into pid %d: too many wait already for its .NET "
			       "runtime to take up their requests", target->pid);
	default:
		return sf_fail_os(err, "no agent can be loaded into pid %d: cannot connect to its %s/%s", target->pid, folder,
				  name);
	}
}

bool sf_clr_socket_check(const struct sf_load_target *target, struct sf_error *err)
{
	char path[PATH_MAX], name[SF_CLR_SOCKET_NAME];
	SF_CLEANUP(close) int folder = open_folder(target, path, name);
	SF_CLEANUP(close) int file = folder < 0 ? -1 : sf_load_socket_file(target, folder, name);

	return file >= 0 || fail(target, path, name, err);
}

static int connect_to(const struct sf_load_target *target, struct sf_error *err)
{
	char path[PATH_MAX], name[SF_CLR_SOCKET_NAME];
	SF_CLEANUP(close) int folder = open_folder(target, path, name);
	const int fd = folder < 0 ? -1 : sf_load_socket_connect(target, folder, name);

	if (fd < 0)
		fail(target, path, name, err);
	return fd;
}

/* --- one request --- */

/* The bytes still to be read of a message of which `used` bytes are there; 0: it is whole, or it is none. */
static size_t missing(const uint8_t *message, size_t used, size_t room)
{
	size_t size = SF_CLR_MESSAGE_HEADER;

	if (used >= size)
		size = message_size(message);
	return size <= used || size > room ? 0 : size - used;
}

static long no_answer(const struct sf_load_target *target, struct sf_error *err)
{
	if (errno == ECONNRESET || errno == EPIPE) {
		sf_fail(err, SF_E_GONE, "no agent was loaded into pid %d: its .NET runtime hung up, as it does when it ends",
			target->pid);
		return -1;
	}
	if (errno != ETIMEDOUT) {
		sf_fail_os(err, "the .NET runtime in pid %d does not answer", target->pid);
		return -1;
	}
	sf_fail(err, SF_E_UNSUPPORTED, "no agent was loaded into pid %d: its .NET runtime has a request for it, and does not answer",
		target->pid);
	sf_fail_hint(err, "What hangs is seen with stillframe dump, which needs no agent.");
	return -1;
}

long sf_clr_socket_receive(const struct sf_load_target *target, int fd, uint8_t *ret, size_t size, struct sf_error *err)
{
	size_t used = 0, left;
	long n = 1;

	while (n != 0 && (left = missing(ret, used, size)) != 0) {
		n = sf_load_socket_receive(fd, (char *)ret + used, left, target->until_ns);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n < 0)
			return no_answer(target, err);
		used += (size_t)n;
	}
	errno = ECONNRESET;
	return used ? (long)used : no_answer(target, err);
}

long sf_clr_socket_ask(const struct sf_load_target *target, const uint8_t *request, size_t request_size,
		       uint8_t *ret, size_t size, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = connect_to(target, err);

	if (fd < 0)
		return -1;
	if (!sf_load_socket_send(fd, (const char *)request, request_size))
		return no_answer(target, err);
	return sf_clr_socket_receive(target, fd, ret, size, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Connects to .NET's diagnostics socket, and exchanges one request and its reply, for load.c. */
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
#include "runtime/coreclr/load_message.h"
#include "runtime/load/socket.h"

#define MAX_ENVIRONMENT (1u << 20)
#define DEFAULT_FOLDER "/tmp"
#define SWITCHED_OFF "Start it without DOTNET_EnableDiagnostics=0 and DOTNET_EnableDiagnostics_IPC=0."

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
		size = sf_clr_message_size(message);
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

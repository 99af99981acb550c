/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading the agent by .NET's diagnostics socket, from a process that stands for a .NET program: this one, with
 * --listen. What listens there may say anything, or nothing; whoever tries has one message then, and in time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "folder.h"
#include "os/clock.h"
#include "os/process.h"
#include "runtime/coreclr/load.h"
#include "runtime/coreclr/load_socket.h"
#include "runtime/coreclr/profiler_id.h"
#include "runtime/coreclr/utf16.h"

#define HEADER "DOTNET_IPC_V1\0"
#define DECLINES HEADER "\x18\0\xff\xff\0\0\x75\x13\x13\x80"
#define PATH "/bin/sh"    /* for a library */

/* --- messages --- */

static void test_a_request(void **state)
{
	static const char expected[] = HEADER "\x3d\0\x03\x01\0\0" "\x88\x13\0\0"
		"\x54\x2a\x1c\x6f\x7e\x3b\x0f\x4d\x9a\x8b\x5e\x2d\x7c\x41\xf0\xa3"
		"\x03\0\0\0" "/\0\xe4\0\0\0" "\x07\0\0\0" "listen";
	uint8_t bytes[128];

	(void)state;
	assert_int_equal(sf_clr_message_attach("/\xc3\xa4", "listen", bytes, sizeof(bytes)), sizeof(expected));
	assert_memory_equal(bytes, expected, sizeof(expected));
	for (size_t room = 0; room < sizeof(expected); room++)
		assert_int_equal(sf_clr_message_attach("/\xc3\xa4", "listen", bytes, room), 0);
}

static void test_paths(void **state)
{
	static const char *const wrong[] = { "/\xff", "/\xc3", "/\xc0\xaf", "/\xed\xa0\x80", "/\xf4\x90\x80\x80", "/\x80" };
	static const uint16_t smile[] = { '/', 0xd83d, 0xde00, 0 };
	uint16_t units[8];
	uint8_t bytes[SF_CLR_MAX_MESSAGE];
	char path[8192];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(sf_clr_message_attach(wrong[i], "", bytes, sizeof(bytes)), 0);
	assert_int_equal(sf_clr_write_utf16("/\xf0\x9f\x98\x80", units, 8), 4);
	assert_memory_equal(units, smile, sizeof(smile));
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	assert_int_equal(sf_clr_message_attach(path, "", bytes, sizeof(bytes)), 0);
}

static void test_garbage(void **state)
{
	uint8_t bytes[64];
	struct sf_error err;

	(void)state;
	srandom(3);
	for (int i = 0; i < 20000; i++) {
		size_t size = (size_t)(random() % (long)sizeof(bytes));

		memcpy(bytes, DECLINES, sizeof(DECLINES) - 1);
		for (size_t j = i % 2 ? 14 : 0; j < sizeof(bytes); j++)
			bytes[j] = (uint8_t)random();
		if (!sf_clr_message_judge(bytes, size, 42, SF_CLR_PROFILER_DECLINES, &err))
			assert_true(err.text[0] && strlen(err.text) < sizeof(err.text));
	}
}

/* --- a process that listens --- */

static char folder[64];

struct child {
	pid_t pid;
	int news;
};

/* The socket's name is the process's own, or that of another one. */
static int bind_socket(pid_t pid)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct sf_program program;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!sf_process_program(pid, &program))
		return -1;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/dotnet-diagnostic-%d-%llu-socket", folder, pid,
		 (unsigned long long)program.started);
	return bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 ? fd : -1;
}

/* What a process does that has got a request; the last word of its command line. */
static const struct {
	const char *name, *reply;
	size_t size;
	const char *message;  /* of who asked; NULL: it is content */
} replies[] = {
#define REPLY(name, bytes, message) { name, bytes, sizeof(bytes) - 1, message }
	REPLY("declines", DECLINES, NULL),
	REPLY("success", HEADER "\x18\0\xff\0\0\0\0\0\0\0", "error 0x00000000"),
	REPLY("another profiler", HEADER "\x18\0\xff\xff\0\0\x6a\x13\x13\x80", "another profiler is in it"),
	REPLY("no libc", HEADER "\x18\0\xff\xff\0\0\x7e\0\x07\x80", "its loader did not take the agent"),
	REPLY("longer", HEADER "\x1c\0\xff\xff\0\0\x85\x13\x13\x80zzzz", "NativeAOT"),
	REPLY("an unknown error", HEADER "\x18\0\xff\xff\0\0\x34\x12\0\x80", "error 0x80001234"),
	REPLY("nothing", "", "hung up"),
	REPLY("half a header", HEADER "\x18", "not as .NET's do"),
	REPLY("half a reply", HEADER "\x18\0\xff\xff\0\0\x75\x13", "not as .NET's do"),
	REPLY("another magic", "DOTNET_IPC_V2\0\x18\0\xff\xff\0\0\x75\x13\x13\x80", "not as .NET's do"),
	REPLY("size of nothing", HEADER "\0\0\xff\xff\0\0\x75\x13\x13\x80", "not as .NET's do"),
	REPLY("size of much", HEADER "\xff\xff\xff\xff\0\0\x75\x13\x13\x80", "not as .NET's do"),
	REPLY("not a reply", HEADER "\x18\0\x03\x01\0\0\x75\x13\x13\x80", "not as .NET's do"),
#undef REPLY
};

#define N_REPLIES (sizeof(replies) / sizeof(*replies))

static void answer(int fd, const char *how)
{
	uint8_t expected[1024], got[1024];
	const size_t size = sf_clr_message_attach(PATH, "listen", expected, sizeof(expected));

	if (recv(fd, got, size, MSG_WAITALL) != (ssize_t)size || memcmp(got, expected, size) != 0)
		_exit(93);
	for (size_t i = 0; i < N_REPLIES; i++) {
		if (strcmp(replies[i].name, how) == 0 &&
		    send(fd, replies[i].reply, replies[i].size, MSG_NOSIGNAL) != (ssize_t)replies[i].size)
			_exit(94);
	}
	if (strcmp(how, "silence") == 0)
		pause();
}

static _Noreturn void serve(const char *where, const char *how)
{
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(folder, sizeof(folder), "%s", where);
	fd = strcmp(how, "no socket") == 0 ? -1 : bind_socket(getpid());
	if (strcmp(how, "nobody listens") != 0)
		listen(fd, 1);
	if (write(STDOUT_FILENO, "!", 1) != 1 || fd < 0)
		pause();
	for (;;) {
		int caller = accept(fd, NULL, NULL);

		if (caller < 0)
			pause();
		answer(caller, how);
		close(caller);
	}
}

static struct child start(const char *how)
{
	int ends[2];
	struct child child;
	char byte;

	assert_int_equal(pipe(ends), 0);
	child.pid = fork();
	if (child.pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		setenv("TMPDIR", folder, 1);
		execl("/proc/self/exe", "test_clr_load", "--listen", folder, how, NULL);
		_exit(95);
	}
	close(ends[1]);
	child.news = ends[0];
	assert_int_equal(read(child.news, &byte, 1), 1);
	return child;
}

static void finish(struct child *child)
{
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	close(child->news);
}

static void test_replies(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_REPLIES; i++) {
		struct child child = start(replies[i].name);
		struct sf_error err = { 0 };
		bool ok;

		assert_true(sf_clr_is_in(child.pid));
		assert_true(sf_clr_loadable(child.pid, &err));
		ok = sf_clr_load(child.pid, PATH, "listen", &err);
		if (replies[i].message && !strstr(err.text, replies[i].message))
			fail_msg("%s: %s", replies[i].name, err.text);
		assert_int_equal(ok, replies[i].message == NULL);
		finish(&child);
	}
}

static void test_silence(void **state)
{
	struct child child = start("silence");
	struct sf_load_target target;
	struct sf_error err = { 0 };
	uint8_t request[1024], reply[1024];
	const size_t size = sf_clr_message_attach(PATH, "listen", request, sizeof(request));

	(void)state;
	assert_true(sf_load_target_open(child.pid, &target, &err));
	target.until_ns = sf_now_ns() + 100000000;
	assert_int_equal(sf_clr_socket_ask(&target, request, size, reply, sizeof(reply), &err), -1);
	assert_non_null(strstr(err.text, "does not answer"));
	sf_load_target_close(&target);
	finish(&child);
}

static void check_refused(const struct child *child, const char *message)
{
	struct sf_error err = { 0 };

	assert_false(sf_clr_load(child->pid, PATH, "listen", &err));
	if (!strstr(err.text, message))
		fail_msg("%s", err.text);
}

static void test_no_socket(void **state)
{
	struct child child = start("no socket");
	struct sf_error err = { 0 };

	(void)state;
	assert_false(sf_clr_is_in(child.pid));
	assert_false(sf_clr_loadable(child.pid, &err));
	assert_non_null(strstr(err.text, "does not listen at"));
	check_refused(&child, "does not listen at");
	finish(&child);
}

static void test_nobody_listens(void **state)
{
	struct child child = start("nobody listens");

	(void)state;
	check_refused(&child, "does not listen at");
	finish(&child);
}

/* Another process has put a socket there. */
static void test_another_process(void **state)
{
	struct child child = start("no socket");
	int fd = bind_socket(child.pid);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(listen(fd, 1), 0);
	check_refused(&child, "is not its own");
	close(fd);
	finish(&child);
}

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/var/tmp/test_clr_load.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return folder_remove(folder);
}

int main(int n, char **args)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_request),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_replies),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_no_socket),
		cmocka_unit_test(test_nobody_listens),
		cmocka_unit_test(test_another_process),
	};

	if (n == 4 && strcmp(args[1], "--listen") == 0)
		serve(args[2], args[3]);
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

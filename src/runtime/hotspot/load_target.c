/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JVM that is to load an agent: checks that it can before anything is done to it, connects to its attach socket, and
 * exchanges one request and its reply. For load.c.
 */
#include "runtime/hotspot/load_target.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/clock.h"
#include "os/process.h"
#include "runtime/hotspot/flags.h"
#include "runtime/hotspot/jvm.h"
#include "runtime/hotspot/load.h"
#include "runtime/hotspot/threads.h"
#include "runtime/load/target.h"

#define START_NS UINT64_C(2000000000) /* a machine that just starts has no handler for SIGQUIT
				       * yet */
#define LOOK_NS 20000000
#define MAX_TEXT (128u << 10)
#define LISTEN_NS UINT64_C(10000000000)
#define FIRST_PAUSE_NS 10000000  /* between looks for its socket, */
#define LONGEST_PAUSE_NS 200000000

#define BUSY "It takes one request at a time, also those of jcmd and its like, and none while all its threads stand " \
	"still. What hangs is seen with stillframe dump, which needs no agent."

/* --- is it one --- */

struct library {
	struct sf_mapping mapping;
	int fd;
	bool found;
	int32_t pid;
};

static bool is_file(const struct sf_mapping *mapping, const char *name)
{
	const char *slash = strrchr(mapping->path, '/');

	return slash && strcmp(slash + 1, name) == 0;
}

static bool find_machine(const struct sf_mapping *mapping, void *arg)
{
	struct library *library = arg;

	if (mapping->offset != 0 || !is_file(mapping, "libjvm.so"))
		return true;
	library->found = true;
	library->mapping = *mapping;
	if (library->pid)
		library->fd = sf_process_open_mapping(library->pid, mapping);
	return false;
}

bool sf_hotspot_is_in(int32_t pid)
{
	struct library library = { .fd = -1 };

	sf_process_maps(sf_process_live_id(pid), find_machine, &library, NULL);
	return library.found;
}

/* --- its flags --- */

static bool read_memory(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	return sf_process_read(*(const int32_t *)reader->arg, ret, addr, size) == size;
}

/* As the machine itself has it; -1: its memory cannot be read. */
static int flag_in_memory(int32_t pid, const char *name)
{
	int32_t id = sf_process_live_id(pid);
	struct library library = { .fd = -1, .pid = id };
	struct sf_reader memory = { .read = read_memory, .arg = &id };
	struct sf_jvm *jvm = NULL;
	int value = -1;

	sf_process_maps(id, find_machine, &library, NULL);
	if (library.fd >= 0) {
		jvm = sf_jvm_attach(&memory, library.fd, library.mapping.start, NULL);
		close(library.fd);
	}
	if (jvm)
		value = sf_java_flag(sf_jvm_hotspot(jvm), &memory, name);
	sf_jvm_destroy(jvm);
	return value;
}

/* The value of a flag in a list of words, of which the last counts. `size` bytes, with zeros and blanks between words. */
static int flag_in_words(const char *text, size_t size, const char *name, int before)
{
	char on[64], off[64];
	int value = before;

	snprintf(on, sizeof(on), "-XX:+%s", name);
	snprintf(off, sizeof(off), "-XX:-%s", name);
	for (size_t i = 0; i + strlen(on) <= size; i++) {
		if (strncmp(text + i, on, strlen(on)) == 0)
			value = 1;
		if (strncmp(text + i, off, strlen(off)) == 0)
			value = 0;
	}
	return value;
}

/* Its command line, and the environment's variables with options for it. */
static int flag_in_texts(int32_t pid, const char *name)
{
	static const char *const files[] = { "environ", "cmdline" };
	char *text = malloc(MAX_TEXT);
	int value = -1;

	for (size_t i = 0; text && i < sizeof(files) / sizeof(*files); i++) {
		long size = sf_load_read_text(pid, files[i], text, MAX_TEXT);

		if (size > 0)
			value = flag_in_words(text, (size_t)size, name, value);
	}
	free(text);
	return value;
}

static bool refuses_attach(int32_t pid)
{
	int value = flag_in_memory(pid, "DisableAttachMechanism");

	return (value < 0 ? flag_in_texts(pid, "DisableAttachMechanism") : value) > 0;
}

/* --- its signals --- */

static bool catches_quit(const char *status)
{
	uint64_t caught;

	return sf_load_status_number(status, "\nSigCgt:", 0, 16, &caught) &&
	       (caught >> (SIGQUIT - 1) & 1);
}

/* Without a handler SIGQUIT would end it. */
static bool check_signal(int32_t pid, struct sf_error *err)
{
	uint64_t until_ns = sf_now_ns() + START_NS;
	char status[4096];

	for (;;) {
		if (sf_load_read_text(pid, "status", status, sizeof(status)) < 0)
			return sf_fail_os(err, "cannot look at pid %d", pid);
		if (catches_quit(status))
			return true;
		if (sf_now_ns() > until_ns)
			break;
		sf_sleep_until(sf_now_ns() + LOOK_NS);
	}
	sf_fail(err, SF_E_UNSUPPORTED,
		"no agent can be loaded into pid %d: its Java virtual machine "
		"does not listen to SIGQUIT (-Xrs, or it is starting or ending)",
		pid);
	return sf_fail_hint(
		err,
		"Start it with -agentpath:.../libstillframe-agent.so=listen, or without -Xrs.");
}

/*
 * Whether it still runs the program that was looked at, and that catches SIGQUIT: exec takes all handlers
 * away, and the next program would be ended by the signal. To be called right before it is sent.
 */
static bool still_catches_quit(const struct sf_load_target *target, struct sf_error *err)
{
	char status[4096];

	if (sf_load_read_text(target->pid, "status", status, sizeof(status)) >= 0 &&
	    catches_quit(status) && sf_load_target_is_same(target))
		return true;
	return sf_fail(err, SF_E_GONE,
		       "no agent was loaded into pid %d: its Java virtual machine has ended, or its process "
		       "runs another program by now", target->pid);
}

bool sf_jvm_load_open(int32_t pid, struct sf_load_target *ret, struct sf_error *err)
{
	if (!sf_load_target_open(pid, ret, err) || !check_signal(pid, err))
		return false;
	if (!refuses_attach(pid))
		return true;
	sf_fail(err, SF_E_UNSUPPORTED,
		"no agent can be loaded into pid %d: its Java virtual machine was "
		"started with -XX:+DisableAttachMechanism",
		pid);
	return sf_fail_hint(
		err, "Start it without, or with -agentpath:.../libstillframe-agent.so=listen.");
}

/* --- its socket --- */

/* -1 and errno: nobody listens there (yet). The machine makes the file with mode 0600. */
static int try_connect(const struct sf_load_target *target)
{
	char name[32];

	snprintf(name, sizeof(name), ".java_pid%d", target->inner_pid);
	return sf_load_socket_connect(target, target->tmp, name);
}

/* --- the trigger --- */

/*
 * The machine obeys it only where its own user, or root, owns it; some file systems change owners.
 */
static bool make_trigger_in(const struct sf_load_target *target, int folder, const char *name, bool *made_ret)
{
	SF_CLEANUP(close) int fd = -1;
	struct stat about;

	*made_ret = false;
	if (folder < 0)
		return false;
	fd = openat(folder, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		/* Somebody else attaches at this moment, or was killed when he did. */
		return errno == EEXIST &&
		       fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
		       S_ISREG(about.st_mode) && about.st_uid == target->uid;
	*made_ret = true;
	if (fstat(fd, &about) == 0 && about.st_uid == target->uid)
		return true;
	unlinkat(folder, name, 0);
	*made_ret = false;
	return false;
}

static int wait_for_socket(const struct sf_load_target *target, struct sf_error *err)
{
	uint64_t until_ns = sf_now_ns() + LISTEN_NS, pause_ns = FIRST_PAUSE_NS;
	int fd;

	while ((fd = try_connect(target)) < 0 && sf_now_ns() < until_ns) {
		sf_sleep_until(sf_now_ns() + pause_ns);
		pause_ns = pause_ns < LONGEST_PAUSE_NS ? pause_ns * 5 / 4 : LONGEST_PAUSE_NS;
	}
	if (fd < 0) {
		sf_fail(err, SF_E_UNSUPPORTED,
			"no agent can be loaded into pid %d: its Java virtual "
			"machine did not begin to listen in %u s",
			target->pid, (unsigned)(LISTEN_NS / 1000000000));
		sf_fail_hint(err, "Is it stopped, or its CPU quota used up? Its socket would be "
				  "/tmp/.java_pid%d, as it sees /tmp.", target->inner_pid);
	}
	return fd;
}

/*
 * A later process with the same id never gets it: the pidfd stands for one process. But exec keeps the
 * process, and no call sends a signal only if a program still runs. So the program is looked at
 * right before; an exec within the microseconds between the two lets the signal through.
 */
static bool ask_to_listen(const struct sf_load_target *target, struct sf_error *err)
{
	return still_catches_quit(target, err) &&
	       (sf_process_signal(target->process, target->pid, SIGQUIT) ||
		sf_fail_os(err, "cannot send SIGQUIT to pid %d", target->pid));
}

/* Once: where it listens already, a second SIGQUIT would print a thread dump. */
static int trigger(const struct sf_load_target *target, struct sf_error *err)
{
	int folder = target->tmp, fd = -1;
	bool made, ready;
	char name[32];

	snprintf(name, sizeof(name), ".attach_pid%d", target->inner_pid);
	ready = make_trigger_in(target, folder, name, &made);
	if (!ready) {
		folder = target->folder;
		ready = make_trigger_in(target, folder, name, &made);
	}
	if (!ready)
		sf_fail_os(err,
			   "no agent can be loaded into pid %d: cannot make the file %s in its "
			   "/tmp",
			   target->pid, name);
	else if (ask_to_listen(target, err))
		fd = wait_for_socket(target, err);
	if (made)
		unlinkat(folder, name, 0);
	return fd;
}

int sf_jvm_load_connect(const struct sf_load_target *target, struct sf_error *err)
{
	int fd = try_connect(target);

	if (fd >= 0)
		return fd;
	switch (errno) {
	case ENOENT:
	case ECONNREFUSED: /* a machine with the same id left it behind. The new one replaces it */
		return trigger(target, err);
	case EPERM:
		sf_fail(err, SF_E_DENIED,
			"no agent can be loaded into pid %d: /tmp/.java_pid%d, as it sees "
			"/tmp, is not its own",
			target->pid, target->inner_pid);
		return -1;
	case EAGAIN: /* it listens: SIGQUIT would print a thread dump */
		sf_fail(err, SF_E_UNSUPPORTED,
			"no agent can be loaded into pid %d: too many wait already for "
			"its Java virtual machine to take up their requests",
			target->pid);
		sf_fail_hint(err, BUSY);
		return -1;
	default:
		sf_fail_os(
			err,
			"no agent can be loaded into pid %d: cannot connect to its /tmp/.java_pid%d",
			target->pid, target->inner_pid);
		return -1;
	}
}

/* --- one request --- */

static long no_answer(const struct sf_load_target *target, struct sf_error *err)
{
	if (errno != ETIMEDOUT) {
		sf_fail_os(err, "the Java virtual machine does not answer");
		return -1;
	}
	sf_fail(err, SF_E_UNSUPPORTED,
		"no agent was loaded into pid %d: its Java virtual machine has a request for "
		"it, and does not answer",
		target->pid);
	sf_fail_hint(err, BUSY);
	return -1;
}

long sf_jvm_load_ask(const struct sf_load_target *target, int fd, const char *request,
		     size_t request_size, char *ret, size_t size, struct sf_error *err)
{
	size_t used = 0;
	long n;

	if (!sf_load_socket_send(fd, request, request_size)) {
		sf_fail_os(err, "cannot talk to the Java virtual machine");
		return -1;
	}
	while (used < size && (n = sf_load_socket_receive(fd, ret + used, size - used, target->until_ns)) != 0) {
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n < 0)
			return no_answer(target, err);
		used += (size_t)n;
	}
	if (used == size) {
		sf_fail(err, SF_E_INPUT, "the Java virtual machine's answer is too long to be one");
		return -1;
	}
	return (long)used;
}

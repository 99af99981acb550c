/* SPDX-License-Identifier: Apache-2.0 */
/* Connects to a JVM's attach socket, and exchanges one request and its reply, for load.c. */
#include "runtime/hotspot/load_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/clock.h"
#include "os/process.h"
#include "runtime/load/socket.h"

#define LISTEN_NS UINT64_C(10000000000)
#define LOOK_NS 10000000
#define LOOK_MAX_NS 200000000

#define BUSY "It takes one request at a time, also those of jcmd and its like, and none while all its threads stand " \
	"still. What hangs is seen with stillframe dump, which needs no agent."

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
static bool make_trigger_in(const struct sf_load_target *target, int folder, const char *name,
			    bool *made_ret)
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
	uint64_t until_ns = sf_now_ns() + LISTEN_NS, pause_ns = LOOK_NS;
	int fd;

	while ((fd = try_connect(target)) < 0 && sf_now_ns() < until_ns) {
		sf_sleep_until(sf_now_ns() + pause_ns);
		pause_ns = pause_ns < LOOK_MAX_NS ? pause_ns * 5 / 4 : LOOK_MAX_NS;
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
	return sf_jvm_load_catches(target, err) &&
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a JVM can load an agent, before anything is done to it. For load.c. */
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
#include "base/foreign_file.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/task.h"
#include "runtime/hotspot/flags.h"
#include "runtime/hotspot/jvm.h"
#include "runtime/hotspot/load.h"
#include "runtime/hotspot/threads.h"

#define START_NS UINT64_C(2000000000) /* a machine that just starts has no handler for SIGQUIT
				       * yet */
#define ALL_NS UINT64_C(30000000000)  /* for everything */
#define LOOK_NS 20000000
#define MAX_TEXT (128u << 10)

/* --- small files of /proc --- */

static int open_text(int32_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Its bytes, cut to size - 1, with a zero behind; how many, -1 when it cannot be read. */
static long read_text(int32_t pid, const char *name, char *ret, size_t size)
{
	SF_CLEANUP(close) int fd = open_text(pid, name);
	size_t used = 0;
	ssize_t n = 1;

	if (fd < 0)
		return -1;
	while (used < size - 1 && (n = read(fd, ret + used, size - 1 - used)) > 0)
		used += (size_t)n;
	ret[used] = 0;
	return n < 0 ? -1 : (long)used;
}

/* The n-th number, in this base, behind a name in /proc/PID/status. */
static bool status_number(const char *status, const char *name, unsigned n, int base, uint64_t *ret)
{
	const char *at = strstr(status, name);
	char *end;

	if (!at)
		return false;
	at += strlen(name);
	do {
		*ret = strtoull(at, &end, base);
		if (end == at)
			return false;
		at = end;
	} while (n-- > 0);
	return true;
}

/* --- is it one --- */

struct library {
	struct sf_mapping mapping;
	int fd;
	const char *name;
	char *path;
	size_t size;
	bool found, deleted;
	int32_t pid;
};

static bool starts_with(const struct sf_mapping *mapping, const char *name)
{
	const char *slash = strrchr(mapping->path, '/');

	return slash && strncmp(slash + 1, name, strlen(name)) == 0;
}

static bool is_file(const struct sf_mapping *mapping, const char *name)
{
	return starts_with(mapping, name) && strcmp(strrchr(mapping->path, '/') + 1, name) == 0;
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

static bool find_library(const struct sf_mapping *mapping, void *arg)
{
	struct library *library = arg;

	if (!starts_with(mapping, library->name))
		return true;
	library->found = true;
	library->deleted = mapping->deleted;
	snprintf(library->path, library->size, "%s", mapping->path);
	return false;
}

void sf_load_target_mapped(const struct sf_load_target *target, const char *name, char *ret,
			   unsigned long size, bool *deleted_ret)
{
	struct library library = { .fd = -1, .name = name, .path = ret, .size = size };

	*ret = 0;
	sf_process_maps(sf_process_live_id(target->pid), find_library, &library, NULL);
	*deleted_ret = library.deleted;
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
		long size = read_text(pid, files[i], text, MAX_TEXT);

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

/* --- its signals, its user --- */

static bool catches_quit(const char *status)
{
	uint64_t caught;

	return status_number(status, "\nSigCgt:", 0, 16, &caught) &&
	       (caught >> (SIGQUIT - 1) & 1);
}

/* Without a handler SIGQUIT would end it. */
static bool check_signal(int32_t pid, struct sf_error *err)
{
	uint64_t until_ns = sf_now_ns() + START_NS;
	char status[4096];

	for (;;) {
		if (read_text(pid, "status", status, sizeof(status)) < 0)
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
 * The map that was opened belongs to the memory that the process had then. exec gives it another
 * one, and the old map is empty from then on.
 */
static bool has_same_memory(const struct sf_load_target *target)
{
	char byte;

	return target->maps < 0 || pread(target->maps, &byte, 1, 0) == 1;
}

bool sf_load_target_catches(const struct sf_load_target *target, struct sf_error *err)
{
	char status[4096];

	if (read_text(target->pid, "status", status, sizeof(status)) >= 0 &&
	    catches_quit(status) && has_same_memory(target))
		return true;
	return sf_fail(err, SF_E_GONE,
		       "no agent was loaded into pid %d: its Java virtual machine has ended, or its process "
		       "runs another program by now", target->pid);
}

/* False for a stopped process: it would not execute requests now, but all of them when it continues. */
static bool check_running(int32_t pid, const char *status, struct sf_error *err)
{
	const char *state = strstr(status, "\nState:\t");

	if (!state || (state[8] != 'T' && state[8] != 't'))
		return true;
	sf_fail(err, SF_E_UNSUPPORTED, "no agent can be loaded into pid %d: it is stopped", pid);
	return sf_fail_hint(
		err, "Let it go on (kill -CONT %d), or see where it stands: stillframe dump -p %d",
		pid, pid);
}

static bool read_user(struct sf_load_target *target, struct sf_error *err)
{
	char status[4096];
	uint64_t uid, gid;

	if (read_text(target->pid, "status", status, sizeof(status)) < 0 ||
	    !status_number(status, "\nUid:", 1, 10, &uid) ||
	    !status_number(status, "\nGid:", 1, 10, &gid))
		return sf_fail_os(err, "cannot look at pid %d", target->pid);
	target->uid = (uint32_t)uid;
	target->gid = (uint32_t)gid;
	if (!check_running(target->pid, status, err))
		return false;
	if (geteuid() == 0 || geteuid() == target->uid)
		return true;
	sf_fail(err, SF_E_DENIED, "no agent can be loaded into pid %d: it is user %u's, and a Java "
		"virtual machine listens to its own user only", target->pid, target->uid);
	return sf_fail_hint(err, "Run stillframe as that user, or as root.");
}

/* --- its folders --- */

static int open_folder(int32_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Below its root: a link there, also an absolute one, leads to where it leads for the process. */
static int find_tmp(int root)
{
	SF_CLEANUP(close) int found = root >= 0 ? sf_foreign_find(root, "/tmp") : -1;
	struct stat about;

	if (found < 0 || fstat(found, &about) != 0)
		return -1;
	if (!S_ISDIR(about.st_mode)) {
		errno = ENOTDIR;
		return -1;
	}
	return sf_steal_fd(&found);
}

static bool open_folders(struct sf_load_target *target, struct sf_error *err)
{
	int32_t id = sf_process_live_id(target->pid);

	target->root = open_folder(id, "root");
	target->tmp = find_tmp(target->root);
	if (target->tmp < 0)
		return sf_fail_os(err, "no agent can be loaded into pid %d: cannot open its /tmp",
				  target->pid);
	target->folder = open_folder(id, "cwd");
	return true;
}

bool sf_load_target_open(int32_t pid, struct sf_load_target *ret, struct sf_error *err)
{
	*ret = (struct sf_load_target){
		.pid = pid, .root = -1, .tmp = -1, .folder = -1, .process = sf_process_open(pid),
		.maps = open_text(sf_process_live_id(pid), "maps"),
		.until_ns = sf_now_ns() + ALL_NS };
	ret->inner_pid = sf_task_inner_id(pid, pid);
	if (!read_user(ret, err) || !check_signal(pid, err) || !open_folders(ret, err))
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

void sf_load_target_close(struct sf_load_target *target)
{
	int *const folders[] = { &target->root, &target->tmp, &target->folder,
				 &target->process, &target->maps };

	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		if (*folders[i] >= 0)
			close(*folders[i]);
		*folders[i] = -1;
	}
}

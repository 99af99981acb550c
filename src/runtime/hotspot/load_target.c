/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a JVM can load an agent, before anything is done to it. For load.c. */
#include "runtime/hotspot/load_target.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/process.h"
#include "runtime/hotspot/flags.h"
#include "runtime/hotspot/jvm.h"
#include "runtime/hotspot/load.h"
#include "runtime/hotspot/threads.h"

#define START_NS UINT64_C(2000000000) /* a machine that just starts has no handler for SIGQUIT
				       * yet */
#define LOOK_NS 20000000
#define MAX_TEXT (128u << 10)

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

bool sf_jvm_load_catches(const struct sf_load_target *target, struct sf_error *err)
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

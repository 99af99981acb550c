/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns a stream file into a recording, and loads what a view shows: a recording, named where it was cut short, or a
 * stream, by way of a temporary recording.
 *
 * The stream is opened once and read twice: its first PROCESS record says what the recording is about, and must
 * be known before anything else is written. Names come from the files that still are what was
 * mapped then, as for an interrupted recording.
 */
#include "session/import.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "base/hex.h"
#include "base/leftovers.h"
#include "base/output.h"
#include "capture/signal/stream_reader.h"
#include "elf/facts.h"
#include "session/naming.h"
#include "session/recorder.h"
#include "session/session.h"
#include "stream/file.h"

SF_DEFINE_CLEANUP(struct sf_stream_file *, sf_stream_file_close)

#define IDLE_NS 100000000

/* The content of the stream's first PROCESS record; zero if there is none. */
struct about {
	uint64_t time_ns, unix_ns;
	uint64_t rate_mhz, blocked_rate_mhz;
	uint16_t elf_machine;
	char command[1024];
};

static void take_about(struct about *ret, const struct sf_stream_process *process)
{
	size_t size = process->command_size;
	const char *text = process->text + process->name_size;

	if (!size) {
		text = process->text;
		size = process->name_size;
	}
	*ret = (struct about){
		.time_ns = process->time_ns,
		.unix_ns = process->unix_ns,
		.rate_mhz = process->rate_mhz,
		.blocked_rate_mhz = process->blocked_rate_mhz,
		.elf_machine = process->elf_machine,
	};
	snprintf(ret->command, sizeof(ret->command), "%.*s", (int)size, text);
}

static bool read_about(int fd, const char *name, struct about *ret, struct sf_error *err)
{
	SF_CLEANUP(sf_stream_file_close) struct sf_stream_file *file = NULL;
	const struct sf_record_header *record;

	*ret = (struct about){ .command = "a process that did not say its name" };
	if (!sf_stream_file_read(fd, name, &file, err))
		return false;
	while ((record = sf_stream_file_next(file, NULL))) {
		if (record->type == SF_STREAM_PROCESS) {
			take_about(ret, (const void *)record);
			break;
		}
	}
	return true;
}

static bool create(const char *output, const struct about *about, struct sf_recording **ret,
		   struct sf_error *err)
{
	return sf_recording_create(output, &(struct sf_recording_about){
		.command = about->command,
		.engine = SF_FEED_ENGINE,
		.host = "", /* not in the stream */
		.version = SF_VERSION,
		.start_unix_ns = about->unix_ns,
		.start_monotonic_ns = about->time_ns,
		.rate_mhz = about->rate_mhz,
		.blocked_rate_mhz = about->blocked_rate_mhz,
		.arch = sf_arch_by_machine(about->elf_machine),
	}, ret, err);
}

struct import {
	struct sf_stream_file *file;
	struct sf_recording *recording;
	struct sf_recorder recorder;
	struct sf_sink sink;
	struct sf_feed feed;
	struct sf_feeds feeds;
	uint64_t idle_ns;
};

/* Time passes as the records say. */
static bool pass_time(struct import *import, struct sf_error *err)
{
	if (import->feed.last_ns < import->idle_ns + IDLE_NS)
		return true;
	import->idle_ns = import->feed.last_ns;
	return import->sink.idle(import->sink.arg, import->idle_ns, err);
}

/* Why there is no more, for the note; NULL: the stream is whole. */
static const char *what_is_missing(const struct import *import, const struct sf_error *stopped)
{
	if (stopped->code != SF_E_NONE)
		return stopped->text;
	if (sf_stream_file_is_cut(import->file))
		return "The stream was cut off in the middle of a record.";
	if (!import->feed.ended)
		return "The stream has no end: the program was killed, or still runs.";
	return NULL;
}

/* Where something is missing, the recording is not complete, and the note says why. */
static bool note_missing(struct import *import, const struct sf_error *stopped,
			 struct sf_error *err)
{
	const char *what = what_is_missing(import, stopped);
	char text[700];

	if (!what)
		return true;
	sf_recording_cut_short(import->recording);
	snprintf(text, sizeof(text), "%s What stands before that is here.", what);
	return import->sink.note(import->sink.arg, import->feed.pid, text, err);
}

static bool feed_all(struct import *import, struct sf_error *err)
{
	const struct sf_record_header *record;
	struct sf_error stopped;

	while ((record = sf_stream_file_next(import->file, &stopped))) {
		if (!sf_feed_record(&import->feed, &import->sink, record, err) ||
		    !pass_time(import, err))
			return false;
	}
	return sf_feed_finish(&import->feed, &import->sink, err) && sf_feeds_finish(&import->feeds, &import->sink, err) &&
	       note_missing(import, &stopped, err);
}

static bool fill(struct import *import, struct sf_error *err)
{
	struct sf_name_sources sources = { .lookup = sf_lookup_begin(NULL) };
	bool fine;

	if (!sf_recorder_init(&import->recorder, import->recording, SF_MAX_DEPTH, err))
		return false;
	import->recorder.offline = true;
	import->sink = sf_recorder_sink(&import->recorder);
	fine = sf_feed_init(&import->feed, 0, &import->feeds, err);
	if (fine) {
		fine = feed_all(import, err) &&
		       sf_session_name_all(import->recording, import->recorder.walker.images, &sources, err);
		sf_feed_deinit(&import->feed);
	}
	sf_name_sources_deinit(&sources);
	sf_recorder_deinit(&import->recorder);
	return fine;
}

static bool import_open(int fd, const char *name, const char *output, struct sf_error *err)
{
	SF_CLEANUP(sf_stream_file_close) struct sf_stream_file *file = NULL;
	struct import import = { 0 };
	struct about about;

	if (!read_about(fd, name, &about, err) || !sf_stream_file_read(fd, name, &file, err) ||
	    !create(output, &about, &import.recording, err))
		return false;
	import.file = file;
	if (!fill(&import, err)) {
		sf_recording_abandon(import.recording);
		return false;
	}
	return sf_recording_finish(import.recording, 0, err);
}

bool sf_import(const char *stream, const char *output, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = -1;

	return sf_foreign_open_user(stream, &fd, err) && import_open(fd, stream, output, err);
}

/* A folder of our own, so that nobody else gets at the file. */
static char *make_folder(struct sf_error *err)
{
	const char *above = getenv("TMPDIR");
	char *folder;

	if (asprintf(&folder, "%s/stillframe-XXXXXX", above && *above ? above : "/tmp") < 0) {
		sf_fail_memory(err);
		return NULL;
	}
	if (mkdtemp(folder))
		return folder;
	sf_fail_os(err, "cannot make a temporary folder %s", folder);
	sf_fail_hint(err, "Set TMPDIR to a folder with room for the recording.");
	free(folder);
	return NULL;
}

bool sf_import_load(int fd, const char *name, bool split_kinds, struct sf_profile **ret, struct sf_error *err)
{
	const struct sf_load_options options = { .split_kinds = split_kinds };
	SF_CLEANUP(free) char *folder = make_folder(err);
	SF_CLEANUP(free) char *path = NULL;
	bool done;

	if (!folder)
		return false;
	if (asprintf(&path, "%s/import.sfr", folder) < 0) {
		path = NULL;
		rmdir(folder);
		return sf_fail_memory(err);
	}
	sf_leftover_add(folder);
	sf_leftover_add(path);
	done = import_open(fd, name, path, err) && sf_profile_load(path, &options, ret, err);
	if (done)
		(*ret)->bytes_missing = !(*ret)->complete; /* of the stream */
	unlink(path);
	rmdir(folder);
	sf_leftover_forget(path);
	sf_leftover_forget(folder);
	return done;
}

/* The addresses of a module of a loaded profile. */
struct late {
	struct sf_late_names *names;
	bool failed;
};

static void on_location(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	const size_t left_out = sf_inlined_left_out(n);
	struct late *late = arg;

	late->failed = late->failed || !sf_late_names_put(late->names, index, locations + left_out, n - left_out);
}

/* Opens the file at the path if it is still the file that was mapped; else -1. */
static int open_module(const char *path, const char *build_id)
{
	char hex[2 * SF_ELF_MAX_BUILD_ID + 1] = "";
	SF_CLEANUP(close) int fd = -1;
	uint8_t found[SF_ELF_MAX_BUILD_ID];
	size_t size;

	if (path[0] != '/' || !build_id[0] || !sf_foreign_open(AT_FDCWD, path, &fd, NULL))
		return -1;
	sf_elf_build_id(fd, found, &size);
	sf_hex(found, size, hex);
	return strcmp(hex, build_id) == 0 ? sf_steal_fd(&fd) : -1;
}

static bool name_late(struct sf_late_names *names, const char *path, const char *build_id,
		      const uint64_t *addresses, size_t n, void *arg)
{
	struct late late = { .names = names };
	SF_CLEANUP(close) int fd = open_module(path, build_id);
	const struct sf_lookup_image image = { .fd = fd, .path = path, .addresses = addresses, .n = n, .arg = &late };
	struct sf_lookup *lookup = arg;
	const char *note;

	if (fd >= 0)
		sf_lookup_resolve(lookup, &image, 1, on_location, NULL);
	if (late.failed)
		return false;
	note = sf_lookup_note(lookup);
	return !note || sf_late_names_note(names, note);
}

static bool load_recording(const char *path, bool split_kinds, struct sf_profile **ret, struct sf_error *err)
{
	struct sf_lookup lookup = sf_lookup_begin(NULL);
	const struct sf_load_options options = { .namer = { .name = name_late, .arg = &lookup }, .split_kinds = split_kinds };

	return sf_profile_load(path, &options, ret, err);
}

/* A device or a FIFO is not even opened. */
bool sf_session_load(const char *path, bool split_kinds, struct sf_profile **ret, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = -1;

	if (!sf_foreign_open_user(path, &fd, err))
		return false;
	if (sf_stream_is(fd))
		return sf_import_load(fd, path, split_kinds, ret, err);
	return load_recording(path, split_kinds, ret, err);
}

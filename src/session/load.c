/* SPDX-License-Identifier: Apache-2.0 */
/* Finishing a recording that a killed stillframe left behind, and loading any, or a stream. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "session/import.h"
#include "session/naming.h"
#include "session/session.h"
#include "elf/facts.h"
#include "stream/file.h"

/* The module's file, if what stands at its path now is what was mapped then; else -1. */
static int open_module(const struct sf_recording_module *module)
{
	uint8_t build_id[32];
	struct stat stat;
	size_t size;
	int fd;

	if (module->path[0] != '/' || !module->build_id_size)
		return -1;
	fd = open(module->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode)) {
		sf_elf_build_id(fd, build_id, &size);
		if (size == module->build_id_size && memcmp(build_id, module->build_id, size) == 0)
			return fd;
	}
	close(fd);
	return -1;
}

static bool finish(const char *path, struct sf_error *err)
{
	struct sf_apart apart = sf_apart_begin(NULL);
	struct sf_recording *recording;
	size_t n;

	if (!sf_recording_reopen(path, &recording, err))
		return false;
	sf_recording_modules(recording, &n);
	for (size_t i = 0; i < n; i++) {
		const struct sf_recording_module *module = &sf_recording_modules(recording, &n)[i];
		SF_CLEANUP(close) int fd = open_module(module);

		if (!sf_session_name_module(recording, &apart, module->number, fd, module->path,
					    err)) {
			sf_recording_abandon(recording);
			return false;
		}
	}
	if (!sf_session_note_names(recording, &apart, err)) {
		sf_recording_abandon(recording);
		return false;
	}
	return sf_recording_finish(recording, 0, err);
}

bool sf_session_load(const char *path, struct sf_profile **ret, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = -1;

	if (sf_stream_find(path, &fd, NULL) && sf_stream_is(fd))
		return sf_import_load(fd, path, ret, err);
	if (!sf_profile_load(path, ret, err))
		return false;
	if ((*ret)->complete || !finish(path, NULL))
		return true; /* as it is: with addresses for names */
	sf_profile_destroy(*ret);
	return sf_profile_load(path, ret, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* From a file's symbols to a recording that is written, or to a profile that is loaded. */
#include "session/naming.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "base/hex.h"
#include "elf/facts.h"

bool sf_session_name_all(struct sf_recording *recording, struct sf_images *images, struct sf_name_sources *sources,
			 struct sf_error *err)
{
	struct sf_name_round round = { 0 };
	bool fine = sf_name_round_take(&round, recording, images, true, err), done;
	const char *note;

	if (fine)
		sf_name_round_look_up(&round, sources);
	fine = fine && sf_name_round_put(&round, recording, SIZE_MAX, &done, err);
	sf_name_round_deinit(&round);
	note = fine ? sf_lookup_note(&sources->lookup) : NULL;
	return fine && (!note || sf_recording_note(recording, 0, note, err));
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

struct sf_profile_namer sf_session_namer(struct sf_lookup *lookup)
{
	return (struct sf_profile_namer){ .name = name_late, .arg = lookup };
}

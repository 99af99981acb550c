/* SPDX-License-Identifier: Apache-2.0 */
/* From a file's symbols to a recording that is written, or to a profile that is loaded. */
#include "session/naming.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "elf/facts.h"
#include "os/kernel_symbols.h"

#define MAX_INLINED 64

struct naming {
	struct sf_recording *recording; /* NULL: `late` is named */
	struct sf_late_names *late;
	uint32_t module;
	const uint64_t *addresses;
	struct sf_error *err;
	bool failed;
};

static bool put(struct naming *naming, size_t index, const struct sf_location *names, size_t n)
{
	if (naming->late)
		return sf_late_names_put(naming->late, index, names, n);
	return sf_recording_names(naming->recording, naming->module, naming->addresses[index],
				  names, n, naming->err);
}

static void on_location(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	struct naming *naming = arg;

	if (naming->failed)
		return;
	if (n > MAX_INLINED) { /* the outermost is the function itself: keep it */
		locations += n - MAX_INLINED;
		n = MAX_INLINED;
	}
	naming->failed = !put(naming, index, locations, n);
}

/* From the file behind `fd`, which is or was at `path`. One that cannot be read names nothing. */
static bool name_from(struct naming *naming, struct sf_lookup *lookup, size_t n, int fd, const char *path)
{
	if (n && fd >= 0)
		sf_lookup_resolve(lookup, fd, path, naming->addresses, n, on_location, naming, NULL);
	return !naming->failed;
}

/* Addresses without a name stay without. */
static bool name_kernel(struct naming *naming, size_t n)
{
	struct sf_kernel_symbols symbols = { 0 };
	bool fine = true;

	if (n)
		sf_kernel_symbols_load(&symbols);
	for (size_t i = 0; fine && i < n; i++) {
		const char *name = sf_kernel_symbols_find(&symbols, naming->addresses[i]);
		const struct sf_location location = { .function = name, .linkage = name, .file = "" };

		fine = !name || put(naming, i, &location, 1);
	}
	sf_kernel_symbols_deinit(&symbols);
	return fine;
}

static bool name_module(struct sf_recording *recording, struct sf_lookup *lookup,
			const struct sf_image *image, struct sf_error *err)
{
	SF_CLEANUP(free) uint64_t *addresses = NULL;
	struct naming naming = { .recording = recording, .module = image->number, .err = err };
	size_t n;

	if (!sf_recording_unnamed(recording, image->number, &addresses, &n, err))
		return false;
	naming.addresses = addresses;
	if (image->is_kernel)
		return name_kernel(&naming, n);
	return name_from(&naming, lookup, n, image->fd, image->path);
}

bool sf_session_name_all(struct sf_recording *recording, struct sf_images *images,
			 const atomic_bool *stop, struct sf_error *err)
{
	struct sf_lookup lookup = sf_lookup_begin(stop);
	const char *note;

	for (uint32_t number = 1; number <= sf_images_count(images); number++) {
		if (!name_module(recording, &lookup, sf_images_get(images, number), err))
			return false;
	}
	note = sf_lookup_note(&lookup);
	return !note || sf_recording_note(recording, 0, note, err);
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
	for (size_t i = 0; i < size; i++)
		snprintf(hex + 2 * i, 3, "%02x", found[i]);
	return strcmp(hex, build_id) == 0 ? sf_steal_fd(&fd) : -1;
}

static bool name_late(struct sf_late_names *names, const char *path, const char *build_id,
		      const uint64_t *addresses, size_t n, void *arg)
{
	struct naming naming = { .late = names, .addresses = addresses };
	SF_CLEANUP(close) int fd = open_module(path, build_id);
	struct sf_lookup *lookup = arg;
	const char *note;

	if (!name_from(&naming, lookup, n, fd, path))
		return false;
	note = sf_lookup_note(lookup);
	return !note || sf_late_names_note(names, note);
}

struct sf_profile_namer sf_session_namer(struct sf_lookup *lookup)
{
	return (struct sf_profile_namer){ .name = name_late, .arg = lookup };
}

/* SPDX-License-Identifier: Apache-2.0 */
/* From a file's symbols to a recording that is written, or to a profile that is loaded. */
#include "session/naming.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "base/vec.h"
#include "elf/facts.h"

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

/* Addresses without a name stay without. */
static bool name_kernel(struct naming *naming, struct sf_kernel_names *names, size_t n)
{
	const struct sf_kernel_symbols *symbols = sf_kernel_names_for(names, naming->addresses, n);
	bool fine = true;

	for (size_t i = 0; fine && i < n; i++) {
		const char *name = sf_kernel_symbols_find(symbols, naming->addresses[i]);
		const struct sf_location location = { .function = name, .linkage = name, .file = "" };

		fine = !name || put(naming, i, &location, 1);
	}
	return fine;
}

/* The images with addresses that have no name yet. */
struct unnamed {
	struct sf_kernel_names *kernel;
	SF_VEC(struct naming) all;               /* whose addresses are owned */
	SF_VEC(struct sf_lookup_image) images;   /* those of files, each with its `struct naming` once all are found */
};

static bool add_image(struct unnamed *unnamed, struct sf_recording *recording, const struct sf_image *image, struct sf_error *err)
{
	struct naming naming = { .recording = recording, .module = image->number, .err = err };
	struct sf_lookup_image lookup = { .fd = image->fd, .path = image->path };
	uint64_t *addresses;
	bool fine;

	if (!sf_recording_unnamed(recording, image->number, &addresses, &lookup.n, err))
		return false;
	naming.addresses = lookup.addresses = addresses;
	if (image->is_kernel)
		fine = name_kernel(&naming, unnamed->kernel, lookup.n);
	else
		fine = (sf_vec_push(&unnamed->all, naming) && sf_vec_push(&unnamed->images, lookup)) || sf_fail_memory(err);
	if (image->is_kernel || !fine)
		free(addresses);
	return fine;
}

/* One that cannot be read names nothing. */
static bool name_files(struct unnamed *unnamed, struct sf_lookup *lookup)
{
	bool fine = true;

	for (size_t i = 0; i < unnamed->images.n; i++)
		unnamed->images.items[i].arg = &unnamed->all.items[i];
	sf_lookup_resolve(lookup, unnamed->images.items, unnamed->images.n, on_location, NULL);
	for (size_t i = 0; i < unnamed->all.n; i++)
		fine &= !unnamed->all.items[i].failed;
	return fine;
}

static void forget(struct unnamed *unnamed)
{
	for (size_t i = 0; i < unnamed->all.n; i++)
		free((uint64_t *)unnamed->all.items[i].addresses);
	sf_vec_deinit(&unnamed->all);
	sf_vec_deinit(&unnamed->images);
}

bool sf_session_name_all(struct sf_recording *recording, struct sf_images *images, struct sf_kernel_names *kernel,
			 const atomic_bool *stop, struct sf_error *err)
{
	struct sf_lookup lookup = sf_lookup_begin(stop);
	struct unnamed unnamed = { .kernel = kernel };
	bool fine = true;
	const char *note;

	for (uint32_t number = 1; fine && number <= sf_images_count(images); number++) {
		const struct sf_image *image = sf_images_get(images, number);

		if (image->fd >= 0 || image->is_kernel)
			fine = add_image(&unnamed, recording, image, err);
	}
	fine = fine && name_files(&unnamed, &lookup);
	forget(&unnamed);
	note = fine ? sf_lookup_note(&lookup) : NULL;
	return fine && (!note || sf_recording_note(recording, 0, note, err));
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
	const struct sf_lookup_image image = { .fd = fd, .path = path, .addresses = addresses, .n = n, .arg = &naming };
	struct sf_lookup *lookup = arg;
	const char *note;

	if (fd >= 0)
		sf_lookup_resolve(lookup, &image, 1, on_location, NULL);
	if (naming.failed)
		return false;
	note = sf_lookup_note(lookup);
	return !note || sf_late_names_note(names, note);
}

struct sf_profile_namer sf_session_namer(struct sf_lookup *lookup)
{
	return (struct sf_profile_namer){ .name = name_late, .arg = lookup };
}

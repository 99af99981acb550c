/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All images of a session: each file that any watched process maps executable, once. Numbers
 * start at 1 and are dense; images live as long as the set.
 *
 * A target chooses how many files it maps, and what is in them. There are limits for all of them
 * together: on files (image.h) and on tables. An image beyond one of them is an image without,
 * and its note says so.
 */
#ifndef SF_TARGET_IMAGES_H
#define SF_TARGET_IMAGES_H

#include "os/process.h"
#include "target/image.h"

struct sf_images;

/*
 * Makes an image's unwind table, by its fd: fills table, table_block and table_size, or note.
 * Called from several threads at once, for different images. `unload` frees the block.
 */
struct sf_image_loader {
	void (*load)(struct sf_image *image);
	void (*unload)(struct sf_image *image);
	bool serial;      /* in the calling thread only: inside a program that is not ours */
};

struct sf_images *sf_images_create(const struct sf_image_loader *loader); /* NULL: no memory */
void sf_images_destroy(struct sf_images *images);                         /* takes NULL */

/*
 * In a forked child: the set goes on, and no file of it is open. The descriptors are the parent's, perhaps in a table that
 * the child does not have. False: some images have not been loaded, and could not be any more.
 */
bool sf_images_forked(struct sf_images *images);

/*
 * From now on all work on images ends when this becomes true: those that are not loaded by then have
 * no tables.
 */
void sf_images_stop_on(struct sf_images *images, const atomic_bool *stop);

/*
 * The image behind a mapping of this process, opened (not yet loaded) if it is new; NULL when
 * memory ran out. An image whose file cannot be opened is still an image: fd is -1 and note says
 * why. If that is since the process has ended, the file has another image once a process shows it.
 */
struct sf_image *sf_images_find(struct sf_images *images, int32_t pid,
				const struct sf_mapping *mapping);

/*
 * Finds the image that was seen, or adds it. A new image is opened, but not yet loaded. Its file is the
 * one below /proc/PID/root if `pid` is not 0, else the one at its path. The build id must be the same
 * (without a build id: device and inode). "[vdso]" is our own if the build ids agree. If no file fits,
 * the image has none, and its note says why. For the same file sf_images_find returns the same image.
 * NULL: no memory.
 */
struct sf_image *sf_images_add(struct sf_images *images, int32_t pid,
			       const struct sf_image_seen *seen);

/* Loads the tables of all images that have none yet, on all CPUs. */
void sf_images_load(struct sf_images *images);

struct sf_image *sf_images_get(struct sf_images *images, uint32_t number);
uint32_t sf_images_count(const struct sf_images *images);

#endif

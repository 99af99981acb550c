/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a session's images, and the limits on them. A target chooses how many files it maps. So limits hold for
 * all images together: open files, files copied from memory, and the bytes of such copies. An image beyond one of them
 * has no file (fd is -1), and its note says so.
 *
 * Ordinary code, one thread at a time.
 */
#ifndef SF_TARGET_IMAGE_FILES_H
#define SF_TARGET_IMAGE_FILES_H

#include "os/process.h"
#include "target/image.h"

struct sf_image_files {
	const struct sf_work *work;  /* the owner's: copying ends with it */
	uint64_t memory_bytes;       /* in copies of memory, */
	uint32_t n_copies, n_open;   /* of so many; open files */
};

/*
 * Opens the file behind a mapping of this process for an image without one, and reads its build id. The caller closes
 * image->fd. False: the process has ended since its mappings were listed, and the file is not found without it; for
 * another process that maps it, it may be.
 */
bool sf_image_files_open(struct sf_image_files *files, struct sf_image *image, int32_t pid, const struct sf_mapping *mapping);

/* A file by the record of a mapping: from an agent inside a process, or from a stream that was written earlier. */
struct sf_image_seen {
	const char *path;        /* as in /proc/PID/maps, " (deleted)" and all */
	uint64_t inode, device;  /* of the file, as in the list of mappings; 0: none */
	const uint8_t *build_id;
	size_t build_id_size;    /* 0: none */
};

/* Whether this build id is the one that was seen. */
bool sf_image_seen_as(const struct sf_image_seen *seen, const uint8_t *build_id, size_t size);

/*
 * Opens the file that was seen for an image without one: below /proc/PID/root if `pid` is not 0, else at image->path.
 * The image gets the build id that was seen.
 */
void sf_image_files_open_seen(struct sf_image_files *files, struct sf_image *image, int32_t pid,
			      const struct sf_image_seen *seen);

#endif

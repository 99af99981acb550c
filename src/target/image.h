/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image: the content of an ELF file, shared by all processes that map it. An image is always accessed
 * by a file descriptor. Usually this is the mapped file itself, even if the file was deleted or replaced
 * or is in another mount namespace. Otherwise it is a memfd with a copy of the file from the process's
 * memory (the vDSO; a deleted file that this user may not open).
 */
#ifndef SF_TARGET_IMAGE_H
#define SF_TARGET_IMAGE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "elf/facts.h"
#include "elf/work.h"
#include "frozen/unwind/table.h"
#include "os/process.h"

struct sf_image {
	uint32_t number;        /* in the recording; from 1 */
	char    *path;          /* as the process's maps show it, without " (deleted)"; "[vdso]" */
	int      fd;            /* readable, at any offset; -1 when nothing could be opened */
	bool     from_memory;   /* fd is a copy of memory: no section headers, perhaps gaps */
	bool     is_kernel;     /* no file: code of the kernel, by its addresses */
	bool     is_perf_map;   /* no ELF file, but the names of code in no file (perf_map_file.h) */
	bool     deleted;       /* the path is gone or names another file now */
	uint64_t inode, device; /* as in the list of mappings */
	uint64_t volume;        /* the open file's own device, if that is another one: other files may have both numbers; else 0 */
	int64_t  changed_ns, written_ns; /* of the open file: st_ctim and st_mtim while its content was this image's */
	bool     is_rewritten;  /* it has other content by now: fd names nothing of this image any more, ... */
	struct sf_image *successor; /* ... and this is the image of the other content, once a process shows it; not owned */
	uint8_t  build_id[SF_ELF_MAX_BUILD_ID];
	size_t   build_id_size; /* 0: none */
	size_t   n_code;        /* executable segments, read when the file was opened; one in nearly all files */
	struct sf_elf_code *code;
	struct sf_table table;  /* table.header is NULL: none could be made */
	struct sf_work *work;   /* what making a table counts as; shared by all images of a set */
	void    *table_block;   /* what table points into; the loader's, see images.h */
	size_t   table_size;
	char     note[200];     /* why the file or the table is missing; "" if nothing is */
};

/*
 * Where the file's headers want the byte at `offset` of it to be; false when no segment holds it.
 */
bool sf_image_address(const struct sf_image *image, uint64_t offset, uint64_t *ret);

/* The path of a perf map (perf_map_file.h) has the number of its process in between. */
#define SF_PERF_MAP_BEGIN "/tmp/perf-"
#define SF_PERF_MAP_END ".map"
bool sf_is_perf_map_path(const char *path);

/*
 * Whether the open file was written to, in place, since the image was made. One system call, unless the file was renamed, linked
 * or written to. For good: the image's file is not used any more.
 */
bool sf_image_is_rewritten(struct sf_image *image);

/*
 * The device of the file behind a mapping, by the file itself. On btrfs that is another one for each subvolume, where the list
 * of mappings has one for all, and files of several subvolumes have the same number. 0: it cannot be had.
 */
uint64_t sf_mapping_volume(int32_t pid, const struct sf_mapping *mapping);

/*
 * Closes the file: for an agent, which must not hold descriptors in a process that is not its own. A table that is missing by
 * then stays so, unless the caller opens the file anew.
 */
void sf_image_close(struct sf_image *image);

/*
 * The files of a session's images, and the limits on them. A target chooses how many files it maps. So limits hold for
 * all images together: open files, files copied from memory, and the bytes of such copies. An image beyond one of them
 * has no file (fd is -1), and its note says so. Ordinary code, one thread at a time.
 */
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

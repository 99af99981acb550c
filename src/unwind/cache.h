/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables on disk (base/cache_folder.h), by what they are made from: tables-VERSION/DIGEST-ARCH. The number in the
 * folder's name is the format's, SF_TABLE_VERSION, so versions of stillframe do not fight over a file.
 *
 * The digest (unwind/inputs.h) is the only protection against files with another file's identity. The table of a
 * hostile file is kept too, but it is used only for files with the same unwind sections.
 *
 * A file whose checksum is not right is a miss, too.
 */
#ifndef SF_UNWIND_CACHE_H
#define SF_UNWIND_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/digest.h"
#include "frozen/arch.h"
#include "frozen/unwind/table.h"

/* All files together; beyond it those that were not used for longest go. */
#define SF_CACHE_LIMIT ((uint64_t)1 << 30)

struct sf_cache_key {
	uint8_t made_from[SF_DIGEST_SIZE];
	const struct sf_arch *arch;
};

/* The open cache. Owned by one thread. */
struct sf_cache {
	int folder;
	bool in_file; /* tables are read into a file ... */
	int file;     /* ... this one, without a name; -1: not yet */
	off_t end;    /* of what the file has */
};

/*
 * in_file: where the cache's file system is local and supports files without a name, tables are read into one. No other
 * process can open it, and the kernel can take its pages back, so a table in a watched program needs no memory that cannot
 * be reclaimed. The file lives as long as a table in it. Otherwise tables are in anonymous memory.
 * False: the folder, which is made if it is missing, cannot be had or is not safe.
 */
bool sf_cache_open(struct sf_cache *ret, bool in_file);

/* Tables that were read stay. Takes one that could not be opened, too. */
void sf_cache_close(struct sf_cache *cache);

/* Which folder that is, the same in every process that sees it. False: none can be had. */
#define SF_CACHE_ID 40
bool sf_cache_id(char ret[SF_CACHE_ID]);

/* Reads a table into memory of its own; munmap it. False: not there, or not to be trusted. */
bool sf_cache_get(struct sf_cache *cache, const struct sf_cache_key *key, void **ret, size_t *size_ret);

/* Writes a table: all of it or nothing, whoever else does the same. False: it is not there. */
bool sf_cache_put(const struct sf_cache *cache, const struct sf_cache_key *key, const void *block, size_t size);

#endif

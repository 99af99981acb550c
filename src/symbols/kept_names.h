/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that earlier look-ups found, on disk (base/cache_folder.h): names-VERSION/DIGEST. Unpacking the debug data of
 * libc takes 50 ms of CPU time, and most recordings need the same few names of it.
 *
 * DIGEST is of all that the names come from (sf_symbols_digest), so no file can have names kept for another one. A file
 * begins with a digest of the rest of it: after a crash of the machine it may be damaged. For src/symbols only.
 */
#ifndef SF_SYMBOLS_KEPT_NAMES_H
#define SF_SYMBOLS_KEPT_NAMES_H

#include "base/cache_folder.h"
#include "base/vec.h"
#include "symbols/symbols.h"

/* The answer to an address. */
struct sf_kept_name {
	uint64_t address;
	size_t at;               /* where it lies in `bytes` */
};

struct sf_kept_names {
	char name[SF_CACHE_NAME];        /* of the file */
	uint8_t *bytes;                  /* of the file, behind its own digest; they stay where they are */
	size_t size;
	SF_VEC(struct sf_kept_name) of;  /* by address */
	SF_VEC(uint8_t) added;           /* bytes of further answers */
	SF_VEC(struct sf_location) locations; /* of the answer that was found last */
	bool no_memory;                  /* an answer could not be added: none is written */
};

/* Reads what is kept under the digest. Where nothing is, there are no names. */
void sf_kept_names_open(const uint8_t digest[SF_DIGEST_SIZE], struct sf_kept_names *ret);

/*
 * The locations at an address, innermost first; their texts are valid until deinit, they themselves until the next
 * call. NULL: not kept.
 */
const struct sf_location *sf_kept_names_find(struct sf_kept_names *names, uint64_t address, size_t *n_ret);

/* Adds an answer that was not found. */
void sf_kept_names_add(struct sf_kept_names *names, uint64_t address, const struct sf_location *locations, size_t n);

/* Writes what was added, if there is something, to what was kept. Nothing is said where that fails. */
void sf_kept_names_write(const struct sf_kept_names *names);

void sf_kept_names_deinit(struct sf_kept_names *names);

#endif

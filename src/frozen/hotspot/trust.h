/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What walks met before of a virtual machine, its code and its methods, so that the next one need
 * not read it again: it takes that on trust, and when it has come to its end all that it took is
 * read in one request to the kernel. What is not what it was is forgotten, and the thread walked
 * again; if that happens once more, without trust. So a walk tells of nothing that was not there
 * when it ended.
 *
 * Code that can be loaded (hotspot.h) is looked at itself, each time.
 *
 * What is known is shared by all threads, without a lock: what two of them write at once is not
 * true of anything, and does not stand the comparison.
 */
#ifndef SF_FROZEN_TRUST_H
#define SF_FROZEN_TRUST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "frozen/hotspot/hotspot.h"

#define SF_KNOWN_PLACES 8192   /* powers of two: 430 KB in all, of which what is used is touched */
#define SF_KNOWN_BLOBS 4096
#define SF_KNOWN_METHODS 1024

/* All zeroes: nothing is known. Made and freed by ordinary code. */
struct sf_known {
	_Atomic uint64_t starts[SF_KNOWN_PLACES];                  /* of a piece, by an address in its code */
	_Atomic uint64_t blobs[SF_KNOWN_BLOBS][SF_BLOB_WORDS];     /* by their address, as methods */
	_Atomic uint64_t methods[SF_KNOWN_METHODS][SF_METHOD_WORDS];
	struct sf_hotspot_names names;
};

#define SF_TRUSTED 64          /* pieces of code that one walk may take, and as many methods */
#define SF_TRUST_MARKS 256
#define SF_TRUST_BYTES                                                                             \
	(SF_TRUSTED * (SF_HOTSPOT_MAX_HEADER + sizeof(uint64_t) + SF_HOTSPOT_MAX_CONST))

/* How many of one kind a walk took, and where each stands, + 1: by its address. */
struct sf_taken {
	uint32_t n;
	uint8_t marks[SF_TRUST_MARKS];
};

/* What one walk took. One walk at a time. */
struct sf_trust {
	struct sf_known *known;        /* NULL: nothing is taken, and nothing kept; not owned */
	bool is_over;                  /* nothing more is taken, but what is read is kept */
	struct sf_taken of_blobs, of_methods;
	uint64_t blobs[SF_TRUSTED][SF_BLOB_WORDS];
	uint64_t methods[SF_TRUSTED][SF_METHOD_WORDS];
	struct iovec pieces[3 * SF_TRUSTED];
};

/* A walk begins. Signal-safe, as the rest is. */
void sf_trust_begin(struct sf_trust *trust);
/* It begins anew, without trust. */
void sf_trust_end(struct sf_trust *trust);

/* As sf_hotspot_blob and sf_hotspot_method, if need be. `trust` NULL: nothing is known. */
bool sf_trust_blob(struct sf_trust *trust, const struct sf_hotspot *hotspot,
		   const struct sf_reader *memory, uint64_t pc, struct sf_blob *ret);
bool sf_trust_method(struct sf_trust *trust, const struct sf_hotspot *hotspot,
		     const struct sf_reader *memory, uint64_t address, struct sf_method *ret);

/* Fills `pieces` with what is to be read to prove what was taken; how many. 0: nothing was. */
unsigned sf_trust_pieces(struct sf_trust *trust, const struct sf_hotspot *hotspot,
			 size_t *size_ret);
/*
 * Whether all is as it was taken, by their bytes, one behind the other, or NULL where not all can be read; forgets what
 * is not.
 */
bool sf_trust_stands(const struct sf_trust *trust, const struct sf_hotspot *hotspot,
		     const uint8_t *bytes);

#endif

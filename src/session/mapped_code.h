/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code of a process that has ended before its last stills are walked. Its memory cannot be read any more, but the files that it
 * had mapped can. Code without unwind rules is read instruction by instruction, and has no callers without that.
 *
 * Only code that the process has mapped from a file, and only when it has ended: what a live process refuses is not there.
 */
#ifndef SF_SESSION_MAPPED_CODE_H
#define SF_SESSION_MAPPED_CODE_H

#include "frozen/still.h"
#include "target/images.h"

#define SF_MAPPED_CODE_PIECE 1024u

struct sf_mapped_code {
	struct sf_reader own;           /* of the still */
	const struct sf_still *still;
	struct sf_images *images;       /* not owned, like the still */
	uint64_t piece_start, piece_size; /* what was read last */
	uint8_t piece[SF_MAPPED_CODE_PIECE];
};

/* From here to the end the still's reads of code go on to files. `images`: those of still->map, whatever map that is then. */
void sf_mapped_code_begin(struct sf_mapped_code *code, struct sf_still *still, struct sf_images *images);
void sf_mapped_code_end(const struct sf_mapped_code *code, struct sf_still *still);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pprof message while it is written, shared by pprof.c (samples and facts) and pprof_places.c (locations, functions,
 * mappings), and by nothing else.
 *
 * The fields of a protobuf message may come in any order, and the elements of a repeated field in several pieces
 * (protobuf.dev/programming-guides/encoding, "Last One Wins"). So each element is packed as a message of its own as soon
 * as it is known, and only strings and numbers of what was packed stay in memory.
 */
#ifndef SF_EXPORT_PPROF_H
#define SF_EXPORT_PPROF_H

#include <stdio.h>
#include <zlib.h>

#include "base/intern.h"
#include "base/vec.h"
#include "profile.pb-c.h"
#include "recording/profile/profile.h"

typedef Perftools__Profiles__Profile profile_t;
typedef Perftools__Profiles__Line line_t;

/* A gzip member, written to a stream as its contents come. The same contents give the same bytes. */
struct sf_gzip {
	z_stream stream;
	FILE *out;
};

struct sf_pprof {
	ProtobufCBuffer base;                   /* first: `append` gets its address */
	struct sf_gzip gzip;
	const struct sf_profile *profile;
	struct sf_intern *strings, *locations;  /* a location is its frames' numbers */
	SF_VEC(uint32_t) frames;                /* of the location at hand, innermost first */
	SF_VEC(uint64_t) stack;                 /* locations of the sample at hand, innermost first */
	bool *function_used;                    /* by function */
	uint64_t *module_end;                   /* by module: the end of the addresses in it; 0: it is not used */
	bool no_memory;
};

/* Writes a part of the message: the fields that are set. */
static inline void sf_pprof_put(struct sf_pprof *pprof, const profile_t *part)
{
	protobuf_c_message_pack_to_buffer(&part->base, &pprof->base);
}

/* The index of a string; "" is always 0. Without memory it is 0, too, and pprof->no_memory is set. */
static inline int64_t sf_pprof_string(struct sf_pprof *pprof, const char *text)
{
	uint32_t number;

	if (!text || !*text)
		return 0;
	number = sf_intern_string(pprof->strings, text);
	pprof->no_memory |= !number;
	return number;
}

/* Fills pprof->stack with the locations of a stack, and writes those that are new. False: no memory. */
bool sf_pprof_stack(struct sf_pprof *pprof, uint32_t node);

/* Writes the functions and mappings of the locations that were written. */
void sf_pprof_places(struct sf_pprof *pprof);

/* Samples without any frame stand in a function of their own, behind the last real one. */
static inline uint32_t sf_pprof_no_stack(const struct sf_profile *profile)
{
	return profile->n_functions ? profile->n_functions : 1;
}

#endif

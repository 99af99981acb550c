/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A body: a piece of managed code with unwind information of its own. It is the main part of a method, or a funclet (the
 * code of a catch, finally or filter clause).
 */
#ifndef SF_FROZEN_CORECLR_CODE_H
#define SF_FROZEN_CORECLR_CODE_H

#include "frozen/coreclr/coreclr.h"
#include "frozen/reader.h"

struct sf_clr_body {
	uint64_t start, end;    /* of the code with this unwind information */
	uint64_t method_start;  /* of the method that it belongs to */
	uint64_t unwind;        /* address of its UNWIND_INFO */
	uint64_t header;        /* JITTED: the RealCodeHeader */
	uint64_t method;        /* JITTED: the MethodDesc */
	uint32_t function;      /* PRECOMPILED: index of the method's first function */
	uint32_t stub_kind;     /* of a stub; 0: unknown */
};

enum sf_clr_found {
	SF_CLR_FOUND_NOTHING,   /* no code is here, or the structures make no sense */
	SF_CLR_FOUND_UNREAD,    /* the structures could not be read */
	SF_CLR_FOUND_BODY,
	SF_CLR_FOUND_STUB,      /* code that owns no frame */
};

/* The body at pc, in this range. Signal-safe. */
enum sf_clr_found sf_clr_find_body(const struct sf_clr_layout *layout, const struct sf_clr_range *range,
				   const struct sf_reader *memory, uint64_t pc,
				   struct sf_clr_body *ret);

/*
 * The start of the code block that pc is in, by the code heap's nibble map; false: there is none. The node is the
 * range's heap. Signal-safe.
 */
bool sf_clr_find_start(const struct sf_clr_layout *layout, uint64_t heap, const struct sf_reader *memory,
		       uint64_t pc, uint64_t *ret);

#endif

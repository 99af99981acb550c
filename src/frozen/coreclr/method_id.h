/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of managed code, by which it is recognised that other code has taken its place. */
#ifndef SF_FROZEN_CORECLR_METHOD_ID_H
#define SF_FROZEN_CORECLR_METHOD_ID_H

#include "frozen/coreclr/coreclr.h"
#include "frozen/reader.h"

/* The MethodDescChunk that a MethodDesc is in. False: it cannot be read. Signal-safe, as all below. */
bool sf_clr_chunk_of(const struct sf_clr_layout *layout, const struct sf_reader *memory, uint64_t method, uint64_t *ret);

/*
 * A mark by which a module differs from another one whose Module is in its place, once its assembly is unloaded: a hash of the
 * assembly's name and of the start of its file, which has the time or a digest of its content. False: nothing of it can be read.
 */
bool sf_clr_module_mark(const struct sf_clr_layout *layout, const struct sf_reader *memory, uint64_t module, uint32_t *ret);

/*
 * The id of jitted code in this range, whose MethodDesc this is. It differs where the code's place was used again for another
 * method's code. A dynamic method's MethodDesc is used again, too, with another name, so its name is in the id. The mark of a
 * module that may be unloaded is in it, too.
 */
uint32_t sf_clr_method_id(const struct sf_clr_layout *layout, const struct sf_clr_range *range, const struct sf_reader *memory,
			  uint64_t method);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mark by which a Method differs from the next one in its place. When a class is unloaded, the structures of a class of the
 * same shape may come to the same addresses, all of them. Only the names differ. Hostile input.
 */
#ifndef SF_RUNTIME_HOTSPOT_METHOD_MARK_H
#define SF_RUNTIME_HOTSPOT_METHOD_MARK_H

#include "frozen/hotspot/hotspot.h"

struct sf_method_mark {      /* no padding */
	uint64_t method, constant; /* the addresses of the Method and its ConstMethod */
	uint64_t names;            /* a hash of those of its class and of itself; 0: they cannot be read */
};

/* That of the Method at this address now. */
struct sf_method_mark sf_java_method_mark(const struct sf_hotspot *hotspot, const struct sf_reader *memory, uint64_t method);

/* Whether it still is. If not, what was read of it meanwhile may be of the next one in its place. */
bool sf_java_method_is_there(const struct sf_hotspot *hotspot, const struct sf_reader *memory, const struct sf_method_mark *mark);

#endif

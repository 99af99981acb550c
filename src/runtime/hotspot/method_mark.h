/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mark by which a Method differs from the next one in its place. When a class is unloaded, the structures of a class of the
 * same shape may come to the same addresses, all of them. Only the names differ. Hostile input.
 */
#ifndef SF_RUNTIME_HOTSPOT_METHOD_MARK_H
#define SF_RUNTIME_HOTSPOT_METHOD_MARK_H

#include "frozen/hotspot/hotspot.h"

/* A hash of the names of its class and of itself; 0: they cannot be read. `constant`: its ConstMethod. */
uint64_t sf_java_method_mark(const struct sf_hotspot *hotspot, const struct sf_reader *memory, uint64_t constant);

#endif

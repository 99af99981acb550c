/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the tables that libjvm exports to the fields, sizes and numbers of a struct sf_hotspot.
 * Hostile input.
 */
#ifndef SF_RUNTIME_HOTSPOT_TABLES_H
#define SF_RUNTIME_HOTSPOT_TABLES_H

#include "frozen/hotspot/hotspot.h"
#include "runtime/hotspot/exports.h"

/*
 * Fills fields, sizes and numbers of *ret, with none that is beyond its limit (limits.h). False (SF_E_GONE) when the
 * tables cannot be read (yet: they are set while the library is loaded).
 */
bool sf_hotspot_read_tables(const struct sf_reader *memory,
			    const struct sf_hotspot_exports *exports, struct sf_hotspot *ret,
			    struct sf_error *err);

/*
 * A string in the target: at most size - 1 bytes of it, terminated. False, and "", when its first
 * byte cannot be read.
 */
bool sf_hotspot_read_string(const struct sf_reader *memory, uint64_t address, char *ret,
			    size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The flags of a Java virtual machine (-XX), in the table that it exports. Hostile input. */
#ifndef SF_RUNTIME_HOTSPOT_FLAGS_H
#define SF_RUNTIME_HOTSPOT_FLAGS_H

#include "frozen/hotspot/hotspot.h"

/* A flag that is true or false. */
struct sf_java_flag {
	uint64_t name;           /* the address of its name */
	uint64_t address;        /* of its value, a byte */
	uint8_t  value;
	bool     is_default;     /* it was not set; false also where that is not known */
};

/* False: the virtual machine has no flag of this name, or it cannot be read. */
bool sf_java_flag_find(const struct sf_hotspot *hotspot, const struct sf_reader *memory, const char *name,
		       struct sf_java_flag *ret);

/* The value of a flag, such as "DebugNonSafepoints"; -1: it has none of this name. */
int sf_java_flag(const struct sf_hotspot *hotspot, const struct sf_reader *memory, const char *name);

#endif

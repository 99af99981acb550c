/* SPDX-License-Identifier: Apache-2.0 */
/* The table of flags is an array of structs that the other tables describe (HotSpot: runtime/flags/jvmFlag.hpp). */
#include "runtime/hotspot/flags.h"

#include <string.h>

#include "runtime/hotspot/tables.h"

#define MAX_FLAGS 16384
#define ORIGIN_MASK 15u /* JVMFlag::VALUE_ORIGIN_MASK; 0 there is JVMFlagOrigin::DEFAULT, in 8 to 26 */

static bool get(const struct sf_hotspot *hotspot, const struct sf_reader *memory, enum sf_hotspot_field_name field,
		uint64_t base, uint64_t *ret)
{
	return sf_hotspot_get(hotspot, memory, field, base, ret);
}

/* The place of a flag in the table; 0: none. */
static uint64_t find_entry(const struct sf_hotspot *hotspot, const struct sf_reader *memory, const char *name)
{
	const uint32_t stride = hotspot->sizes[SF_HS_SIZE_FLAG];
	uint64_t flags, n, text;
	char found[64];

	if (!stride || !get(hotspot, memory, SF_HS_FLAGS, 0, &flags) || !get(hotspot, memory, SF_HS_N_FLAGS, 0, &n) ||
	    n > MAX_FLAGS)
		return 0;
	for (uint64_t i = 0; i < n; i++) {
		if (!get(hotspot, memory, SF_HS_FLAG_NAME, flags + i * stride, &text))
			return 0;
		if (sf_hotspot_read_string(memory, text, found, sizeof(found)) && strcmp(found, name) == 0)
			return flags + i * stride;
	}
	return 0;
}

bool sf_java_flag_find(const struct sf_hotspot *hotspot, const struct sf_reader *memory, const char *name,
		       struct sf_java_flag *ret)
{
	const uint64_t entry = find_entry(hotspot, memory, name);
	uint64_t origin;

	if (!entry || !get(hotspot, memory, SF_HS_FLAG_NAME, entry, &ret->name) ||
	    !get(hotspot, memory, SF_HS_FLAG_ADDRESS, entry, &ret->address) ||
	    !sf_read(memory, &ret->value, ret->address, 1))
		return false;
	ret->is_default = get(hotspot, memory, SF_HS_FLAG_ORIGIN, entry, &origin) && (origin & ORIGIN_MASK) == 0;
	return true;
}

int sf_java_flag(const struct sf_hotspot *hotspot, const struct sf_reader *memory, const char *name)
{
	struct sf_java_flag flag;

	return sf_java_flag_find(hotspot, memory, name, &flag) ? flag.value : -1;
}

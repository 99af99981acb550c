/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the names by which a Method is known again. The target's memory is hostile input. */
#include "runtime/hotspot/method_mark.h"

#include "runtime/hotspot/metadata.h"

#define NAME_SIZE 256            /* of longer names the start counts */
#define FNV_PRIME UINT64_C(0x100000001b3)  /* of the hash FNV-1a, which is in the public domain */
#define FNV_BASIS UINT64_C(0xcbf29ce484222325)

static uint64_t add(uint64_t hash, const char *name)
{
	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * FNV_PRIME;
	return hash * FNV_PRIME;
}

static uint64_t hash_names(const struct sf_hotspot *hotspot, const struct sf_reader *memory, uint64_t constant)
{
	uint64_t pool, holder, symbol, index;
	char of_class[NAME_SIZE], own[NAME_SIZE];

	if (!constant || !sf_hotspot_get(hotspot, memory, SF_HS_CONST_POOL, constant, &pool) ||
	    !sf_hotspot_get(hotspot, memory, SF_HS_POOL_HOLDER, pool, &holder) ||
	    !sf_hotspot_get(hotspot, memory, SF_HS_CLASS_NAME, holder, &symbol) ||
	    !sf_java_symbol(hotspot, memory, symbol, of_class, sizeof(of_class)) ||
	    !sf_hotspot_get(hotspot, memory, SF_HS_CONST_NAME, constant, &index) ||
	    !sf_java_pool_symbol(hotspot, memory, pool, index, own, sizeof(own)))
		return 0;
	return add(add(FNV_BASIS, of_class), own);
}

struct sf_method_mark sf_java_method_mark(const struct sf_hotspot *hotspot, const struct sf_reader *memory, uint64_t method)
{
	struct sf_method_mark ret = { .method = method };

	sf_hotspot_get(hotspot, memory, SF_HS_METHOD_CONST, method, &ret.constant);
	ret.names = hash_names(hotspot, memory, ret.constant);
	return ret;
}

bool sf_java_method_is_there(const struct sf_hotspot *hotspot, const struct sf_reader *memory, const struct sf_method_mark *mark)
{
	const struct sf_reader anew = sf_reader_anew(memory);
	const struct sf_method_mark now = sf_java_method_mark(hotspot, &anew, mark->method);

	return now.constant == mark->constant && now.names == mark->names;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* HotSpot's functions for the walker: its side of frozen/runtime.h. All signal-safe. */
#include "frozen/hotspot/hotspot.h"
#include "frozen/hotspot/step.h"
#include "frozen/hotspot/metadata_cache.h"

#include "frozen/frozen.h"

_Static_assert(offsetof(struct sf_hotspot, runtime) == 0, "a runtime is the first member");
_Static_assert(sizeof(struct sf_metadata_cache) <= SF_RUNTIME_SCRATCH, "a walk has room for what it takes");
_Static_assert(SF_METADATA_CACHE_BYTES <= SF_RUNTIME_PROOF, "all that a walk takes can be proved");

const struct sf_hotspot *sf_hotspot_of(const struct sf_code_map *map)
{
	for (size_t i = 0; map && i < map->n_runtimes; i++) {
		if (map->runtimes[i]->ops == &sf_hotspot_ops)
			return (const struct sf_hotspot *)map->runtimes[i];
	}
	return NULL;
}

static const struct sf_region *find(const struct sf_runtime *runtime, uint64_t pc)
{
	const struct sf_hotspot *hotspot = (const struct sf_hotspot *)runtime;

	return sf_hotspot_holds(hotspot, pc) ? &hotspot->code : NULL;
}

static bool is_thread(const struct sf_runtime *runtime, const struct sf_reader *memory,
		      uint64_t handle, int32_t tid)
{
	return sf_hotspot_is_thread((const struct sf_hotspot *)runtime, memory, handle, tid);
}

static bool loads(const struct sf_runtime *runtime, uint64_t addr, uint64_t size)
{
	return sf_hotspot_loads((const struct sf_hotspot *)runtime, addr, size);
}

static void begin(void *scratch, void *cache, bool uses_it)
{
	struct sf_metadata_cache *trust = scratch;

	trust->known = cache;
	if (uses_it)
		sf_metadata_cache_begin(trust);
	else
		sf_metadata_cache_end(trust);
}

static unsigned proof(const struct sf_runtime *runtime, void *scratch,
		      const struct iovec **pieces_ret, size_t *size_ret)
{
	struct sf_metadata_cache *trust = scratch;

	*pieces_ret = trust->pieces;
	return sf_metadata_cache_pieces(trust, (const struct sf_hotspot *)runtime, size_ret);
}

static bool is_proved(const struct sf_runtime *runtime, const void *scratch, const uint8_t *bytes)
{
	return sf_metadata_cache_stands(scratch, (const struct sf_hotspot *)runtime, bytes);
}

const struct sf_runtime_ops sf_hotspot_ops = {
	.find = find,
	.step = sf_hotspot_step,
	.resume = sf_hotspot_resume,
	.is_thread = is_thread,
	.loads = loads,
	.cache_size = sizeof(struct sf_known),
	.begin = begin,
	.proof = proof,
	.is_proved = is_proved,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads facts about a Java virtual machine from its memory, for `stillframe doctor`. */
#include "runtime/hotspot/facts.h"

#include "base/output.h"
#include "runtime/hotspot/tables.h"
#include "runtime/hotspot/threads.h"

void sf_jvm_facts(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		  struct sf_jvm_facts *ret)
{
	struct sf_java_objects objects;
	uint64_t text;

	*ret = (struct sf_jvm_facts){
		.describes_all = sf_java_flag(hotspot, memory, "DebugNonSafepoints"),
		.attach_disabled = sf_java_flag(hotspot, memory, "DisableAttachMechanism"),
		.signals_reduced = sf_java_flag(hotspot, memory, "ReduceSignalUsage"),
		.agents_allowed = sf_java_flag(hotspot, memory, "EnableDynamicAgentLoading"),
	};
	if (sf_hotspot_get(hotspot, memory, SF_HS_RELEASE, 0, &text))
		sf_hotspot_read_string(memory, text, ret->release, sizeof(ret->release));
	sf_sanitize(ret->release);
	sf_java_objects_init(&objects, hotspot, memory);
	ret->z_without_colours = sf_java_flag(hotspot, memory, "UseZGC") == 1 && !objects.z_shift;
}

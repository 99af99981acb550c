/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the lines of `stillframe doctor` that say what can be shown of Java in a process. */
#ifndef SF_RUNTIME_HOTSPOT_EXAMINE_H
#define SF_RUNTIME_HOTSPOT_EXAMINE_H

#include "runtime/hotspot/finder.h"
#include "runtime/runtime.h"

/* Facts about a virtual machine, from its memory only. */
struct sf_jvm_facts {
	char release[96];          /* "17.0.15+6"; of JDK 8, HotSpot's own number; "" */
	bool describes_all;        /* it was started with DebugNonSafepoints */
	int  attach_disabled;      /* DisableAttachMechanism; the flags are 1 or 0, -1: it does not say */
	int  signals_reduced;      /* ReduceSignalUsage (-Xrs): no attaching either */
	int  agents_allowed;       /* EnableDynamicAgentLoading, since JDK 9 */
	bool z_without_colours;    /* a ZGC whose references cannot be followed with certainty */
};

void sf_jvm_facts(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		  struct sf_jvm_facts *ret);

/* After an attempt to attach. */
void sf_jvm_examine(const struct sf_jvm_finder *finder, struct sf_images *images,
		    const struct sf_runtime_findings *findings);

#endif

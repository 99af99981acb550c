/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Java virtual machine of a process, seen from outside or by the process itself: found among
 * its files, attached to when it has started. Ordinary code, one thread at a time.
 */
#ifndef SF_RUNTIME_HOTSPOT_FINDER_H
#define SF_RUNTIME_HOTSPOT_FINDER_H

#include "runtime/hotspot/flags.h"
#include "runtime/hotspot/jvm.h"

/* HotSpot's state of a process: zero to begin with. */
struct sf_jvm_finder {
	struct sf_jvm *jvm;               /* NULL: none, or none that can be walked */
	char note[560];                   /* why not, or what is missing; "" */
	uint32_t image;                   /* its libjvm, 0: none found */
	uint64_t bias;
	bool refused;                     /* no other try will do */
	struct sf_java_debug_info debug_info;
	bool noted;                       /* the note was given to the user */
};

#endif

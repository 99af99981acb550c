/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Java virtual machine of a process, seen from outside or by the process itself: found among
 * its files, attached to when it has started. Ordinary code, one thread at a time.
 */
#ifndef SF_RUNTIME_HOTSPOT_FINDER_H
#define SF_RUNTIME_HOTSPOT_FINDER_H

#include "runtime/hotspot/jvm.h"
#include "target/images.h"
#include "target/process.h"

/* Zero it to begin with. */
struct sf_jvm_finder {
	struct sf_jvm *jvm;               /* NULL: none, or none that can be walked */
	char note[560];                   /* why not, or what is missing; "" */
	uint64_t looked_ns, tried_ns;     /* the map that was seen; the last try */
	uint32_t image;                   /* its libjvm, 0: none found */
	uint64_t bias;
	unsigned tries;
	bool refused;                     /* no other try will do */
	bool told;                        /* the note was given to the user */
};

void sf_jvm_finder_deinit(struct sf_jvm_finder *finder);  /* leaves it as new */

/*
 * Looks for one in the process's map, when that is new. True: there is one, and it is time to try
 * to attach.
 */
bool sf_jvm_finder_look(struct sf_jvm_finder *finder, const struct sf_process *process,
			struct sf_images *images);

/*
 * Tries, reading through `memory` (whose arg must live as long as what is found). True: attached.
 */
bool sf_jvm_finder_attach(struct sf_jvm_finder *finder, const struct sf_process *process,
			  struct sf_images *images, const struct sf_reader *memory);

/* A message to the user about the JVM. Each message is returned once; NULL if there is no new one. */
const char *sf_jvm_finder_news(struct sf_jvm_finder *finder);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Java virtual machine of a watched process: found among its files, attached to when it has
 * started.
 */
#ifndef SF_SESSION_JAVA_H
#define SF_SESSION_JAVA_H

#include "base/vec.h"
#include "runtime/hotspot/jvm.h"
#include "target/images.h"
#include "target/process.h"

struct sf_java {
	struct sf_jvm *jvm;               /* NULL: none, or none that can be walked */
	char note[560];                   /* why not, or what is missing; "" */
	uint64_t looked_ns, tried_ns;     /* the map that was seen; the last try */
	uint32_t image;                   /* its libjvm, 0: none found */
	uint64_t bias;
	unsigned tries;
	bool refused;                     /* no other try will do */
	bool told;                        /* the note was given to the user */
	bool has_inner_ids, inner_ids;    /* its threads' ids differ in its own pid namespace */
	SF_VEC(uint32_t) recorded;        /* the recording's number of each place */
};

void sf_java_deinit(struct sf_java *java);  /* leaves it as new */

/*
 * Looks for one in the process's map, when that is new, and attaches. What is found is put into
 * the map and into process->hotspot. Nothing happens when there is none, or when there is nothing
 * new to try.
 */
void sf_java_look(struct sf_java *java, struct sf_process *process, struct sf_images *images);

/* sf_jvm_thread and sf_jvm_thread_name by the ids that we see. */
uint64_t sf_java_thread(struct sf_java *java, int32_t pid, int32_t tid);
bool sf_java_name(struct sf_java *java, int32_t pid, int32_t tid, char *ret, size_t size);

#endif

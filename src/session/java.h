/* SPDX-License-Identifier: Apache-2.0 */
/* The Java virtual machine of a process that is watched from outside. */
#ifndef SF_SESSION_JAVA_H
#define SF_SESSION_JAVA_H

#include "base/vec.h"
#include "runtime/hotspot/finder.h"
#include "target/memory.h"

struct sf_java {
	struct sf_jvm *jvm;               /* the finder's; NULL: none, or none that can be walked */
	struct sf_jvm_finder finder;
	struct sf_memory *memory;         /* what `jvm` reads; NULL before there is something to try */
	int32_t memory_id;                /* sf_process_live_id() of the process */
	bool has_inner_ids, inner_ids;    /* its threads' ids differ in its own pid namespace */
	SF_VEC(uint32_t) recorded;        /* the recording's number of each place */
};

void sf_java_deinit(struct sf_java *java);  /* leaves it as new */

/*
 * Looks for one in the process's map, when that is new, and attaches. What is found is put into
 * the map and into the process. Nothing happens when there is none, or when there is nothing
 * new to try.
 */
void sf_java_look(struct sf_java *java, struct sf_process *process, struct sf_images *images);

/* What is read of the machine from now on is of now, and no older. */
void sf_java_renew(struct sf_java *java);

/* sf_jvm_thread and sf_jvm_thread_name by the ids that we see. */
uint64_t sf_java_thread(struct sf_java *java, int32_t pid, int32_t tid);
bool sf_java_name(struct sf_java *java, int32_t pid, int32_t tid, char *ret, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Java virtual machine in a process: its description for the walker, and names for what the
 * walker finds. Names are read soon after the sample, by the thread that walks (never while a
 * thread is held), and kept: a class that is unloaded later keeps its names. Ordinary code, one
 * thread at a time.
 */
#ifndef SF_RUNTIME_HOTSPOT_JVM_H
#define SF_RUNTIME_HOTSPOT_JVM_H

#include "base/error.h"
#include "frozen/hotspot/hotspot.h"
#include "frozen/trace.h"
#include "runtime/runtime.h"

struct sf_jvm;

/*
 * `fd`: the libjvm that a process has mapped with this bias; `memory` (copied, its arg is not)
 * reads that process. NULL when it cannot be walked, with the reason; SF_E_GONE when it has not
 * started yet and a later try may do. To be destroyed by the caller.
 */
struct sf_jvm *sf_jvm_attach(const struct sf_reader *memory, int fd, uint64_t bias,
			     struct sf_error *err);
void sf_jvm_destroy(struct sf_jvm *jvm); /* takes NULL */

/* Belongs to the jvm, lives as long. */
const struct sf_hotspot *sf_jvm_hotspot(const struct sf_jvm *jvm);

/* Reads what the jvm is in. */
const struct sf_reader *sf_jvm_memory(const struct sf_jvm *jvm);

/*
 * Gives up what needs the list of its threads if these are not the process's: self_test.h. Before
 * anyone walks.
 */
void sf_jvm_try_threads(struct sf_jvm *jvm, bool (*is_thread)(void *arg, int32_t tid), void *arg);

/* A text that names the missing data and the details that are not available without it; "" if nothing is missing. */
const char *sf_jvm_note(const struct sf_jvm *jvm);

/*
 * For a JVM in the calling process: from now on, its present code heaps may be read by plain loads
 * (frozen/hotspot/hotspot.h). The code heaps grow, so this function is to be called regularly.
 */
void sf_jvm_lend_code(struct sf_jvm *jvm);

/*
 * The number of a managed frame (sf_kind_is_managed), from 1; the same code gets the same number again. The
 * frame is described when it occurs for the first time. 0: no memory.
 */
uint32_t sf_jvm_place(struct sf_jvm *jvm, const struct sf_frame *frame);

/*
 * Prefetches the memory that is needed to describe these frames, as far as they are new. The memory that the jvm reads
 * must find the data that `ahead` has fetched.
 */
void sf_jvm_expect(struct sf_jvm *jvm, const struct sf_prefetch *ahead,
		   const struct sf_frame *const *frames, size_t n);

/*
 * The functions at a place, innermost first, valid until the next place is described; 0 only when memory
 * ran out.
 */
size_t sf_jvm_functions(struct sf_jvm *jvm, uint32_t place, const struct sf_location **ret);

/* The JavaThread of a thread, 0 if it has none. `tid` as its own pid namespace numbers it. */
uint64_t sf_jvm_thread(struct sf_jvm *jvm, int32_t tid);

/* The full name of a Java thread; false, and "", when it is none or its name cannot be read now. */
bool sf_jvm_thread_name(struct sf_jvm *jvm, int32_t tid, char *ret, size_t size);

/* As runtime.h says. */
bool sf_jvm_lock_wait(struct sf_jvm *jvm, int32_t tid, bool timed, struct sf_lock_wait *ret);

#endif

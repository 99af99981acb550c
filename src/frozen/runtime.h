/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime in a process, as the walker sees it: a virtual machine or an interpreter that makes code of
 * its own, or keeps frames of its own. This is the frozen side of the interface for runtimes: all of it
 * may run while a thread is held. The ordinary side, which recognises a runtime and names its frames, is
 * src/runtime/runtime.h.
 *
 * Lifetimes. A struct sf_runtime describes one runtime in one process. It is made by ordinary code, is
 * published with a code map, and does not change while a map has it, except for what its own header
 * declares atomic.
 *
 * Replacement. A runtime whose code ranges come and go lists them in its object. Ordinary code makes a new
 * object when the list is renewed (sf_runtime_driver.refresh in src/runtime/runtime.h), and the next code map has
 * the new object. A walk has one map, so it sees one list from its beginning to its end. The old object is freed
 * when no map that a walk may use has it. From outside that is at once, because the session's thread walks and
 * refreshes. In the agent it is when the last old map that has it is freed (src/agent/service/map_publisher.c).
 * Facts that outlive an object, such as described keys, belong to the driver's state.
 *
 * A runtime identifies a thread by a handle (sf_still.handles): a number that no other code interprets.
 *
 * Each runtime is the first member of its own struct. Its functions are signal-safe, read memory only
 * through the still's reader or where `loads` allows it, and are bounded in time.
 */
#ifndef SF_FROZEN_RUNTIME_H
#define SF_FROZEN_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frozen/ends.h"

#define SF_MAX_RUNTIMES 4               /* in one process */
#define SF_RUNTIME_SCRATCH 16384        /* bytes of scratch memory that one walk has for each runtime */

struct iovec;
struct sf_cursor;
struct sf_reader;
struct sf_region;
struct sf_runtime_ops;

struct sf_runtime {
	const struct sf_runtime_ops *ops;
	uint64_t start, end;     /* all code of the runtime lies between; other code may lie there, too */
	uint32_t slot;           /* its index in all arrays of SF_MAX_RUNTIMES */
};

enum sf_step {
	SF_STEP_TAKEN,    /* the cursor stands in the caller */
	SF_STEP_ROOT,     /* there is no caller */
	SF_STEP_FAILED,   /* `why` says why */
	SF_STEP_NOT_MINE, /* another stepper must try */
};

/* A function that a runtime does not need is NULL, where that is said. */
struct sf_runtime_ops {
	/*
	 * The region that holds pc, which names this runtime (sf_region.runtime), or NULL. Called for addresses
	 * from `start` up to `end`. A region of a runtime takes precedence over the mapped file at its address.
	 */
	const struct sf_region *(*find)(const struct sf_runtime *runtime, uint64_t pc);

	/*
	 * A step out of a frame in one of these regions: a stepper (walk.h). Gives the frame its kind and its key
	 * (sf_frame.token, id, bci), from which the ordinary side finds functions and lines.
	 */
	enum sf_step (*step)(const struct sf_runtime *runtime, struct sf_cursor *cursor,
			     enum sf_end *why);

	/*
	 * For a walk that the native steppers cannot continue: moves the cursor to the nearest outer frame of which
	 * the runtime has a record. The record is found by the thread's handle, or by explicit frames on the stack.
	 * False: there is none. May be NULL.
	 */
	bool (*resume)(const struct sf_runtime *runtime, struct sf_cursor *cursor);

	/*
	 * Whether all that `resume` takes is on the stack, and the thread's data says only where: then a copied stack can be
	 * resumed, though the thread has run since.
	 */
	bool resumes_by_stack;

	/*
	 * Whether `handle` is (still) the handle of this thread, as its own pid namespace numbers it. May be NULL if
	 * the runtime has no handles.
	 */
	bool (*is_thread)(const struct sf_runtime *runtime, const struct sf_reader *memory,
			  uint64_t handle, int32_t tid);

	/*
	 * For the runtime of the own process: whether these bytes can be loaded without the kernel's help, because the
	 * runtime never unmaps them (docs/design.md, section 14). May be NULL.
	 */
	bool (*loads)(const struct sf_runtime *runtime, uint64_t addr, uint64_t size);

	/*
	 * A cache of structures that earlier walks have read, for walks inside the process. All threads share its
	 * `cache_size` zeroed bytes without a lock. Each walk has SF_RUNTIME_SCRATCH bytes of scratch memory
	 * (sf_still.scratch), in which it notes the entries that it uses. 0 and NULL: the runtime has no cache.
	 */
	size_t cache_size;
	/* A walk begins. `cache` NULL: there is none. `uses_it` false: the walk fills the cache only. */
	void (*begin)(void *scratch, void *cache, bool uses_it);
	/*
	 * The memory that must be read again to revalidate the entries that the walk used. Returns the number of
	 * pieces, and their total size, which is at most SF_RUNTIME_PROOF.
	 */
	unsigned (*proof)(const struct sf_runtime *runtime, void *scratch,
			  const struct iovec **pieces_ret, size_t *size_ret);
	/*
	 * Whether the used entries are still valid. `bytes`: the contents of these pieces, one after the other; NULL:
	 * they cannot be read. Removes entries that are not valid from the cache.
	 */
	bool (*is_proved)(const struct sf_runtime *runtime, const void *scratch,
			  const uint8_t *bytes);
};

#define SF_RUNTIME_PROOF 32768

/* Whether one of the own process's runtimes lets these bytes be loaded. Signal-safe. */
static inline bool sf_runtimes_load(const struct sf_runtime *const *runtimes, size_t n, uint64_t addr, uint64_t size)
{
	for (size_t i = 0; i < n; i++) {
		if (runtimes[i]->ops->loads && runtimes[i]->ops->loads(runtimes[i], addr, size))
			return true;
	}
	return false;
}

#endif

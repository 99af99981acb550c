/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread store of CoreCLR: its Thread objects, by the ids that the system has for their threads, and what these say of
 * their threads. Ordinary code; hostile input.
 */
#ifndef SF_RUNTIME_CORECLR_THREADS_H
#define SF_RUNTIME_CORECLR_THREADS_H

#include "base/vec.h"
#include "runtime/coreclr/objects.h"
#include "runtime/runtime.h"
#include "target/lock_wait.h"

struct sf_clr_thread {
	int32_t tid;           /* in the process's own pid namespace */
	uint64_t thread;       /* the Thread object */
};

struct sf_clr_threads {
	SF_VEC(struct sf_clr_thread) items;
};

/* Replaces the list by the present one. False: it cannot be read. */
bool sf_clr_threads_read(const struct sf_clr_description *description, const struct sf_reader *memory,
			 struct sf_clr_threads *threads);
void sf_clr_threads_deinit(struct sf_clr_threads *threads);

/* NULL: the thread has no Thread object. */
const struct sf_clr_thread *sf_clr_threads_find(const struct sf_clr_threads *threads, int32_t tid);

/* The fields of managed threads that are read, once they are known. Zero it to begin with. */
struct sf_clr_thread_fields {
	uint64_t table;        /* of System.Threading.Thread; 0: not known yet */
	uint32_t name, native;
};

/*
 * The name that a Thread object's thread has in the program, and in parentheses its role, unless the name says it. A
 * reading counts as objects.h says.
 */
enum sf_naming sf_clr_thread_name(const struct sf_clr_naming *naming, struct sf_clr_thread_fields *fields, uint64_t thread,
			char *ret, size_t size);

/*
 * Which monitor a managed thread waits to enter, and which thread has it. `major`: the runtime's version. `thread`: the
 * Thread that waits; `threads`: all of them. A reading counts as objects.h says. False: the thread waits for no monitor, or
 * the runtime's records of that are not as they are known to be.
 */
bool sf_clr_lock_wait(const struct sf_clr_naming *naming, unsigned major, const struct sf_clr_threads *threads, uint64_t thread,
		      struct sf_lock_wait *ret);

#endif

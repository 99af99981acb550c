/* SPDX-License-Identifier: Apache-2.0 */
/* The thread store of CoreCLR: its Thread objects, by the ids that the system has for their threads. Ordinary code. */
#ifndef SF_RUNTIME_CORECLR_THREADS_H
#define SF_RUNTIME_CORECLR_THREADS_H

#include "base/vec.h"
#include "runtime/coreclr/description.h"

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

#endif

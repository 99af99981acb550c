/* SPDX-License-Identifier: Apache-2.0 */
/* The runtimes of one process, of every kind in the list (list.h). Ordinary code, one thread at a time. */
#ifndef SF_RUNTIME_RUNTIMES_H
#define SF_RUNTIME_RUNTIMES_H

#include "runtime/list.h"
#include "runtime/runtime.h"

/* Zero it to begin with. */
struct sf_runtimes {
	void *states[SF_N_RUNTIMES];       /* of each driver; NULL: not looked for yet */
	bool attached[SF_N_RUNTIMES];
};

void sf_runtimes_deinit(struct sf_runtimes *runtimes);   /* leaves it as new */

/* The driver in a slot of the list. */
const struct sf_runtime_driver *sf_runtimes_driver(uint32_t slot);

/*
 * Looks for runtimes in the process's map, and attaches. Before each attempt `prepare` gives the reader of the
 * process, or false if there is none now. True: one was attached to, and the next map will have it.
 */
typedef bool sf_runtimes_prepare_fn(void *arg, uint32_t slot, struct sf_reader *ret);
bool sf_runtimes_look(struct sf_runtimes *runtimes, struct sf_process *process,
		      struct sf_images *images, sf_runtimes_prepare_fn *prepare, void *arg);

/* Whether one is attached to. */
bool sf_runtimes_any(const struct sf_runtimes *runtimes);

/* The functions of each driver (runtime.h), for those that are attached to. */
void sf_runtimes_refresh(struct sf_runtimes *runtimes);
const char *sf_runtimes_news(struct sf_runtimes *runtimes); /* also for those that are not */
uint32_t sf_runtimes_place(struct sf_runtimes *runtimes, const struct sf_frame *frame);
size_t sf_runtimes_functions(struct sf_runtimes *runtimes, const struct sf_frame *frame,
			     uint32_t place, const struct sf_location **ret);
void sf_runtimes_expect(struct sf_runtimes *runtimes, const struct sf_prefetch *ahead,
			const struct sf_frame *const *frames, size_t n);
uint64_t sf_runtimes_thread(struct sf_runtimes *runtimes, uint32_t slot, int32_t tid);
bool sf_runtimes_thread_name(struct sf_runtimes *runtimes, int32_t tid, char *ret, size_t size);
void sf_runtimes_examine(struct sf_runtimes *runtimes, struct sf_images *images,
			 const struct sf_runtime_findings *findings);

/* The driver that can load the agent into this process; NULL: none. */
const struct sf_runtime_driver *sf_runtimes_loader(int32_t pid);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The runtimes of one process, of every kind in the list (frozen/runtime_list.h). Ordinary code, one thread at a time. */
#ifndef SF_RUNTIME_RUNTIMES_H
#define SF_RUNTIME_RUNTIMES_H

#include "base/vec.h"
#include "frozen/runtime_list.h"
#include "runtime/runtime.h"

/* An object that a refresh replaced, or whose runtime is gone. */
struct sf_replaced_runtime {
	const struct sf_runtime *object;
	uint32_t slot;
};

/* For a runtime that is not attached to. */
struct sf_runtime_search {
	bool looked, found;                /* whether the driver was asked; its answer */
	uint64_t map_ns;                   /* the time of the map that it was asked about */
	unsigned n_tries;                  /* attempts to attach */
	uint64_t tried_ns;                 /* the end of the last attempt; 0: there was none */
};

/* Zero it to begin with. */
struct sf_runtimes {
	void *states[SF_N_RUNTIMES];       /* of each driver; NULL: not looked for yet */
	const struct sf_runtime *attached[SF_N_RUNTIMES];  /* what walks use; NULL: not attached to */
	struct sf_runtime_search searches[SF_N_RUNTIMES];
	bool may_have_news;                /* a driver has looked or attached since none had news */
	bool completes;                    /* the process may be written to: runtime.h, complete() */
	bool completed[SF_N_RUNTIMES];     /* that is over */
	SF_VEC(struct sf_replaced_runtime) replaced;       /* walks may use these still */
	uint64_t refreshed_ns, refresh_cost_ns;            /* the last refresh, and its CPU time */
};

/* Leaves it as new. No walk may be under way. */
void sf_runtimes_deinit(struct sf_runtimes *runtimes);

/* The driver in a slot of the list. */
const struct sf_runtime_driver *sf_runtimes_driver(uint32_t slot);

/*
 * Looks for runtimes in the process's map, and attaches. Before each attempt `prepare` gives the reader of the
 * process, or false if there is none now. True: one was attached to; the process has it, and the next map will.
 */
typedef bool sf_runtimes_prepare_fn(void *arg, uint32_t slot, struct sf_reader *ret);
bool sf_runtimes_look(struct sf_runtimes *runtimes, struct sf_process *process,
		      struct sf_images *images, sf_runtimes_prepare_fn *prepare, void *arg);

/* Whether one is attached to. */
bool sf_runtimes_any(const struct sf_runtimes *runtimes);

/*
 * Refreshes those that are attached to, if that is due: ten times in a second at most, in a hundredth of the time at
 * most; or, if a walk has met unknown code, after 2 ms, in a twentieth of the time at most. True: an object was
 * replaced, or a runtime is gone. The process has the new objects, and the next map will. `inside`: as in runtime.h.
 */
bool sf_runtimes_refresh(struct sf_runtimes *runtimes, struct sf_process *process, bool inside,
			 bool unknown_code);
/*
 * Gives replaced objects back to their drivers, except those that `is_used`: that are in a map which a walk may use. NULL:
 * no walk uses any.
 */
typedef bool sf_runtimes_is_used_fn(void *arg, const struct sf_runtime *object);
void sf_runtimes_release(struct sf_runtimes *runtimes, sf_runtimes_is_used_fn *is_used, void *arg);

/* The functions of each driver (runtime.h), for those that are attached to. */
const char *sf_runtimes_news(struct sf_runtimes *runtimes); /* also for those that are not */
uint32_t sf_runtimes_place(struct sf_runtimes *runtimes, const struct sf_frame *frame);
uint8_t sf_runtimes_kind(struct sf_runtimes *runtimes, const struct sf_frame *frame, uint32_t place);
size_t sf_runtimes_functions(struct sf_runtimes *runtimes, const struct sf_frame *frame,
			     uint32_t place, const struct sf_location **ret);
void sf_runtimes_expect(struct sf_runtimes *runtimes, const struct sf_prefetch *ahead,
			const struct sf_frame *const *frames, size_t n);
uint64_t sf_runtimes_thread(struct sf_runtimes *runtimes, uint32_t slot, int32_t tid);

/*
 * The name of a thread. A collector may move the name while it is read. So the name is read twice, and both readings
 * must be the same. `renew` is called before each: it makes the caller's memory of the process forget what was read
 * before.
 */
enum sf_naming sf_runtimes_thread_name(struct sf_runtimes *runtimes, int32_t tid, void (*renew)(void *arg), void *arg,
				       char ret[SF_RUNTIME_NAME]);

/* The lock for which a thread waits, if two readings have the same; `renew` as above. */
bool sf_runtimes_lock_wait(struct sf_runtimes *runtimes, int32_t tid, const struct sf_trace *trace, bool timed,
			   void (*renew)(void *arg), void *arg, struct sf_lock_wait *ret);

/* As sf_runtime_driver.purpose. */
const char *sf_runtimes_purpose(struct sf_runtimes *runtimes, const struct sf_trace *trace);

/* The awaiters of a trace's functions (runtime.h), at most SF_MAX_AWAITERS; read twice, with `renew` as for names. */
#define SF_MAX_AWAITERS 128
uint32_t sf_runtimes_awaiters(struct sf_runtimes *runtimes, const struct sf_still *still, const struct sf_trace *trace,
			      void (*renew)(void *arg), void *arg, struct sf_frame ret[SF_MAX_AWAITERS], uint32_t *at_ret);
void sf_runtimes_examine(struct sf_runtimes *runtimes, struct sf_images *images,
			 const struct sf_runtime_findings *findings);

/* The driver whose recording from inside has this word (runtime.h); NULL: none. */
const struct sf_runtime_driver *sf_runtimes_inside(const char *word);

/* The driver that can load the agent into this process; NULL: none. */
const struct sf_runtime_driver *sf_runtimes_loader(int32_t pid);

#endif

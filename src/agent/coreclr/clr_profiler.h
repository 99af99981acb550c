/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profiler in .NET's sense, for as long as a part of the agent needs one. Without such a part the agent declines to
 * be a profiler when the runtime loads it. The profiler is one that only takes notifications (LoadAsNotificationOnly),
 * so the place of the main profiler stays free, or another one's. It is the main profiler only where a part needs that.
 *
 * The profiler comes up in one of two ways. A runtime that starts with the agent in its variables for profilers
 * (profiler.c) finds the parts that need it. In a runtime that has started, the agent sends the command AttachProfiler
 * to its own process (runtime/coreclr/load.h). When the last part ends, the profiler detaches (RequestProfilerDetach).
 *
 * Parts begin and end with a profile, under the agent's lock. The runtime calls the rest on its own threads.
 */
#ifndef SF_AGENT_CLR_PROFILER_H
#define SF_AGENT_CLR_PROFILER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/coreclr/clr_info.h"
#include "base/error.h"

/* An event of EventPipe, as EventPipeEventDelivered gives it. Valid during the call. */
struct sf_clr_event {
	uint32_t id;
	const uint8_t *data;       /* the payload, hostile */
	uint32_t size;
	uintptr_t thread;          /* ThreadID, 0: none */
};

/*
 * A part of the agent that needs the profiler; constant, and never freed. A function that it does not need is NULL.
 * The runtime may call the functions for notifications on any of its threads until after `leaves`, and at once on several.
 */
struct sf_clr_part {
	uint32_t events_low, events_high; /* COR_PRF_MONITOR, COR_PRF_HIGH_MONITOR */
	bool is_main;                     /* it needs the place of the main profiler, from the program's start on */

	/* The profiler is up. On the thread that begins the profile, or on a thread of the runtime. */
	void (*came_up)(struct sf_clr_info *info);
	/*
	 * The part calls no function of `info` any more when this returns. The profile ends, or the runtime does. Not called
	 * where the profiler did not come up. Called once.
	 */
	void (*leaves)(struct sf_clr_info *info);

	/* Notifications. To add one: a line here, a function in profiler.c and its slot there. */
	void (*thread_destroyed)(uintptr_t thread);
	void (*thread_assigned)(uintptr_t thread);  /* on this thread, before its first managed code */
	void (*unwind_begins)(uintptr_t function);  /* on the thread with the exception, as the next two */
	void (*unwind_ends)(uintptr_t none);
	void (*caught)(uintptr_t function);
	void (*event_delivered)(const struct sf_clr_event *event);
};

#define SF_CLR_MAX_PARTS 4

/*
 * The part needs the profiler from now on. True also when no runtime has started yet: the profiler then comes up with the
 * runtime. False: the runtime of this process did not take the profiler, and why.
 */
bool sf_clr_profiler_begin(const struct sf_clr_part *part, struct sf_error *err);
/*
 * The part needs the profiler no longer: `leaves`, and the profiler detaches with its last part. Takes one that did not
 * begin.
 */
void sf_clr_profiler_end(const struct sf_clr_part *part);

/* Whether the profiler is up. */
bool sf_clr_profiler_is_up(void);

/*
 * No profiler came up in a profile that needs one. Writes what follows from it, and the reason as far as it shows in the process,
 * as a note for the user into the stream.
 */
void sf_clr_profiler_note_absence(const char *consequence);

/* --- for profiler.c: what the runtime calls --- */

/* A runtime that starts is loading the library. It offers the agent to be a profiler next. */
void sf_clr_profiler_expect(void);

/*
 * The runtime offers the agent to be a profiler: `unknown` is its ICorProfilerInfo. Returns the HRESULT for the runtime:
 * SF_CLR_OK, or SF_CLR_PROFILER_DECLINES if no part needs the profiler.
 */
int32_t sf_clr_profiler_arrive(struct sf_clr_unknown *unknown);
/* The runtime ends. Parts make no call afterwards. */
void sf_clr_profiler_shut_down(void);
/* A profiler that was to detach has detached. */
void sf_clr_profiler_detached(void);
/* Whether the profiler is to be the main one: a part needs that. */
bool sf_clr_profiler_is_main(void);
/* The part in this place, or NULL. Any thread, no lock. */
const struct sf_clr_part *sf_clr_profiler_part(unsigned i);

#endif

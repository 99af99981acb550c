/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ordinary side of the interface for runtimes: recognising one in a process, attaching to it, naming its
 * frames and its threads. The frozen side, which steps over its frames, is src/frozen/runtime.h.
 *
 * A driver is one kind of runtime. Its functions take a state, which it makes for one process. Data about a binary
 * (offsets by build id, for instance) may be kept across states. A state is used by one thread at a time.
 * No thread is held while a driver's function runs. Everything that is read from a process is hostile input.
 */
#ifndef SF_RUNTIME_RUNTIME_H
#define SF_RUNTIME_RUNTIME_H

#include "base/error.h"
#include "base/location.h"
#include "frozen/runtime.h"
#include "frozen/reader.h"
#include "frozen/still.h"
#include "frozen/trace.h"
#include "runtime/prefetch.h"
#include "target/images.h"
#include "target/lock_wait.h"
#include "target/process.h"

/* Receives the lines that `stillframe doctor` prints of a process. `advice` says what is missing and what would help. */
struct sf_runtime_findings {
	void (*add)(const struct sf_runtime_findings *findings, bool good, const char *text,
		    const char *advice);
	const void *arg;
};

#define SF_RUNTIME_NAME 256    /* room for a thread's name, with what a runtime adds */

/* Whether a runtime has a name for a thread. */
enum sf_naming {
	SF_UNNAMED,           /* it has none */
	SF_NAMED,
	SF_NAMED_LATER,       /* it cannot be read while a collector moves it */
};

/* An event of a runtime, which the agent samples in place of time (runtime/events.h). */
struct sf_runtime_event {
	const char *name;     /* as in --event NAME */
	const char *unit;     /* of its amounts: "events", "bytes" */
	const char *left_out; /* what the names of the runtime's innermost functions begin with, which get to the event; NULL: there are none */
};

/*
 * The pause is `pause_ns` after each of the first `n_easy` attempts. It doubles with each later attempt, `max_doublings` times
 * at most.
 */
struct sf_runtime_tries {
	uint64_t pause_ns;
	unsigned n_easy, max_doublings;
};

struct sf_runtime_driver {
	const struct sf_runtime_ops *ops;

	/* A state for one process; NULL: no memory. */
	void *(*create)(void);
	void (*destroy)(void *state);

	/*
	 * Looks for the runtime in the process's map: when the map is new, and after each attempt to attach. True: it is
	 * there, and an attempt may succeed.
	 */
	bool (*look)(void *state, const struct sf_process *process, struct sf_images *images);

	/*
	 * Tries to attach, reading through `memory` (copied; its arg must live as long as the state). Returns the
	 * object that walks use, which the state owns. NULL: not now, or never; see `look`.
	 */
	const struct sf_runtime *(*attach)(void *state, const struct sf_process *process,
					   struct sf_images *images, const struct sf_reader *memory);

	/* The pause between two attempts to attach, and how it grows: a runtime that is starting is tried often at first. */
	struct sf_runtime_tries tries;

	/*
	 * Makes the runtime keep complete records of calls that it inlines into the code that it compiles from now on, by
	 * writing to the process. Called after each attempt to attach, with its arguments, if whoever watches may write
	 * to the process, until it returns true: done, or there is nothing to do. `destroy` sets back what was written.
	 * May be NULL.
	 */
	bool (*complete)(void *state, const struct sf_process *process, struct sf_images *images,
			 const struct sf_reader *memory);

	/*
	 * Renews what walks use, such as the list of code ranges. Called for every runtime that is attached to: at
	 * intervals, when a walk met code that is in no region, and when the process has a new map. The reader given to
	 * `attach` reads the state of the process from now on. `inside`: the process is this one, and walks are under
	 * way on other threads. From outside, no walk is under way.
	 *
	 * Returns the object to use from now on. `present`: nothing has changed but atomic fields. Another one: a new
	 * object, which replaces `present` in the next code map. `present` itself must not change, as walks may use it
	 * until `detach`. NULL: the runtime is gone, and is looked for again. May be NULL.
	 */
	const struct sf_runtime *(*refresh)(void *state, const struct sf_process *process,
					    const struct sf_runtime *present, bool inside);

	/*
	 * No walk uses this object any more: it was replaced, or the runtime is gone, or the session ends. Called once
	 * for each object that `attach` and `refresh` returned. A description that was given stays valid. May be NULL.
	 */
	void (*detach)(void *state, const struct sf_runtime *object);

	/* A message to the user about the runtime. Each message is returned once; NULL if there is no new one. */
	const char *(*news)(void *state);

	/*
	 * The number of a frame of this runtime, from 1; the same key gets the same number again. A new key is
	 * described at once, as its code can be gone later, and keeps that description when the code is gone. So code
	 * that takes the place of other code must have another key: another token or another id. 0: no memory.
	 */
	uint32_t (*place)(void *state, const struct sf_frame *frame);
	/*
	 * The kind of the frames at a place, for a runtime whose walk cannot say more than that the code is managed; enum
	 * sf_frame_kind. May be NULL: it is as the walk says.
	 */
	uint8_t (*kind)(void *state, uint32_t place);
	/*
	 * The functions at a place, innermost first, valid until the next call of this or of `place`; their texts live as
	 * long as the state.
	 * 0: no memory.
	 */
	size_t (*functions)(void *state, uint32_t place, const struct sf_location **ret);
	/* Frames whose places are used next: reads ahead what they need. May be NULL. */
	void (*expect)(void *state, const struct sf_prefetch *ahead,
		       const struct sf_frame *const *frames, size_t n);

	/*
	 * The handle of a thread, as its own pid namespace numbers it, and the runtime's name for it, UTF-8, with its
	 * role where the name does not say it. 0: the runtime has none. A name can be wrong while a collector moves the
	 * objects that it is read from: it counts if a second reading has the same. May be NULL.
	 */
	uint64_t (*thread)(void *state, int32_t tid);
	enum sf_naming (*thread_name)(void *state, int32_t tid, char *ret, size_t size);

	/*
	 * The lock for which a blocked thread with this trace waits, and the lock's owner, by their own ids. `timed`:
	 * its wait in the kernel has a time-out. Fills all of *ret, the same for the same. It counts if a second
	 * reading has the same, and if the thread has not run meanwhile. False: nothing, or it cannot be read. May be
	 * NULL.
	 */
	bool (*lock_wait)(void *state, int32_t tid, const struct sf_trace *trace, bool timed, struct sf_lock_wait *ret);

	/*
	 * The purpose of the wait of a blocked thread with this trace, by its functions: "waits for a task"; a
	 * constant. NULL: they do not say. May be NULL.
	 */
	const char *(*purpose)(void *state, const struct sf_trace *trace);

	/*
	 * The asynchronous functions that await one of the trace, and those that await them, innermost first: frames
	 * with keys for `place`. They are not on the thread's stack; in a trace they belong in front of frame
	 * `*at_ret`. Objects are read as for `thread_name`, so a result counts if a second reading has the same. 0:
	 * there are none, or they cannot be found. May be NULL.
	 */
	uint32_t (*awaiters)(void *state, const struct sf_still *still, const struct sf_trace *trace, struct sf_frame *ret,
			     uint32_t capacity, uint32_t *at_ret);

	/* Reports what can be shown of the runtime in this process, after an attempt to attach. May be NULL. */
	void (*examine)(void *state, struct sf_images *images,
			const struct sf_runtime_findings *findings);

	/*
	 * The signal whose handler leaves its frames on the alternate stack in use and goes on elsewhere; 0: there is none.
	 * The agent does not interrupt this handler.
	 */
	int undisturbed_signal;

	/* The i-th event that the agent's part of this runtime reports; NULL behind the last. May be NULL: it has none. */
	const struct sf_runtime_event *(*event)(size_t i);

	/*
	 * Loading the agent into a running process by the runtime's own means: whether the process has such a runtime,
	 * whether it would load a library, and doing it. All NULL: it cannot.
	 */
	bool (*is_in)(int32_t pid);
	bool (*is_loadable)(int32_t pid, struct sf_error *err);
	bool (*load)(int32_t pid, const char *library, const char *options, struct sf_error *err);

	/*
	 * The word for --engine by which a user asks for a recording from inside of this runtime only
	 * (frozen/runtime_list.h), and the runtime in words. It can load the agent, also at its start by SF_LAUNCH_LOADS.
	 * NULL: there is no such word.
	 */
	const char *inside, *inside_text;
};

#endif

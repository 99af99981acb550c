/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sink: the functions to which an engine gives its results, in the order in which they happened. All calls come from
 * one thread, and no thread of the target is held meanwhile: a sink is ordinary code. An engine that yields stills calls
 * sample(), and the sink walks. An engine that yields finished stacks calls image(), describe() and trace(). Both kinds call
 * the other functions.
 *
 * A tick of a thread ends as a sample(), an again() or a loss(). Its `cpu_ns` and `wall_ns` are the part of the time
 * since the thread's last one for which this one stands.
 */
#ifndef SF_CAPTURE_SINK_H
#define SF_CAPTURE_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/location.h"
#include "frozen/ends.h"
#include "frozen/still.h"
#include "frozen/trace.h"
#include "os/process.h"

struct sf_weight {
	uint64_t cpu_ns, wall_ns;
	uint64_t amount;      /* of the measure (struct sf_measure), if there is one; else 0 */
	uint32_t ticks;
	bool     since_last;  /* cpu_ns is all that the thread used since its last sample with CPU time, and not a period of a clock */
};

/* A measure is added up over samples, beside time or in its place: an event. Texts are valid during the call. */
struct sf_measure {
	const char *name;     /* of the event: "page-faults" */
	const char *unit;     /* of amounts: "events", "bytes" */
	bool     is_counted;  /* it is over, and in all there were: */
	uint64_t counted;
};

/* The result of the walk of a still, for the engine's next still of that thread. */
struct sf_verdict {
	enum sf_end end;
	uint64_t stack_used;  /* bytes from the start of the window that the walk needed */
	bool     lacks_chain; /* the walk ended where sf_still.chain, which the still does not have, would lead on */
	bool     below_sp;    /* the walk needs what lies below the stack pointer, which the kernel's copies do not have */
	bool     failed;      /* the sink cannot go on: `err` says why */
};

/* A file that frames of finished stacks are in. Text is zero-terminated, valid during the call. */
struct sf_image_number {
	uint32_t number;        /* the engine's for this process, from 1 */
	const char *path, *note;
	uint64_t inode, device;
	const uint8_t *build_id;
	size_t build_id_size;
};

/* The functions of a managed frame, innermost first: what was inlined, and the function itself. Valid during the call. */
struct sf_described_frame {
	uint64_t key;           /* the address of such frames in a trace */
	const struct sf_location *functions;
	size_t n;
};

/* The facts about a sample with a finished walk, besides the trace. */
struct sf_seen {
	uint64_t time_ns;
	uint64_t hold_ns;       /* 0: not held */
	uint8_t  state;         /* enum sf_state */
	uint32_t flags;         /* enum sf_still_flags */
	int32_t  syscall;
	const char *label_key, *label_value; /* NULL: it has none */
	const char *second_key, *second_value; /* of a second label; NULL: it has none */
};

struct sf_sink {
	void *arg;

	/* A process came into sight, or runs another program since (exec). */
	bool (*process)(void *arg, int32_t pid, int32_t parent, struct sf_error *err);

	/*
	 * A process that came into sight begins here, in the order of what is told: where its code could not be read it has
	 * the code that its parent has now. NULL in the place of the function: the sink does not use this.
	 */
	bool (*process_forked)(void *arg, int32_t pid, int32_t parent, struct sf_error *err);

	/*
	 * A process has ended: what is kept of its code may be given back. It may not have come into sight. NULL in the
	 * place of the function: the sink keeps it.
	 */
	bool (*process_end)(void *arg, int32_t pid, struct sf_error *err);

	/*
	 * Code that a process has mapped since process() was called for it. For processes that end before their maps are
	 * read. NULL in the place of the function: the sink does not use them.
	 */
	bool (*mapping)(void *arg, int32_t pid, const struct sf_mapping *mapping, struct sf_error *err);

	/*
	 * The name that a process gives itself, if it does; called after process(). NULL in the place of the function: the
	 * sink does not use these names.
	 */
	bool (*process_name)(void *arg, int32_t pid, int32_t parent, const char *name,
			     const char *command_line, struct sf_error *err);

	/* A thread came into sight, or has another name. `serial` is never used again. */
	bool (*thread)(void *arg, uint32_t serial, int32_t pid, int32_t tid, const char *name,
		       uint64_t time_ns, struct sf_error *err);

	/* The thread has ended, or the recording ends. cpu_ns: the kernel's count, for the time in which it was watched. */
	bool (*thread_end)(void *arg, uint32_t serial, uint64_t time_ns, uint64_t cpu_ns,
			   struct sf_error *err);

	/*
	 * still->map is NULL: the sink has the maps. Valid during the call. hold_ns 0: not held.
	 * Where the copy of the stack turns out too short (SF_END_COPY) the sample is only
	 * kept if it is the `last` try; else its weight comes again with the next one.
	 */
	struct sf_verdict (*sample)(void *arg, uint32_t serial, struct sf_still *still,
				    const struct sf_weight *weight, uint64_t hold_ns, bool last,
				    struct sf_error *err);

	/* An image that frames of `pid` will name by its number. */
	bool (*image)(void *arg, int32_t pid, const struct sf_image_number *image,
		      struct sf_error *err);

	/*
	 * A sample with its walk done. The frames' image numbers are those of `image` for its process;
	 * the address of a managed frame is the key of its description, which may come later or never.
	 */
	bool (*trace)(void *arg, uint32_t serial, const struct sf_trace *trace,
		      const struct sf_seen *seen, const struct sf_weight *weight,
		      struct sf_error *err);

	/* Describes managed frames of `pid`. NULL in the place of the function: the sink does not use descriptions. */
	bool (*describe)(void *arg, int32_t pid, const struct sf_described_frame *frame,
			 struct sf_error *err);

	/*
	 * The measure of the amounts in weights, before the first of them; and again at the end, with the count of
	 * those that were watched. NULL in the place of the function: the sink does not use amounts.
	 */
	bool (*measure)(void *arg, const struct sf_measure *measure, struct sf_error *err);

	/*
	 * CPU time that the engine's own threads have used in a process that is watched. NULL in the place of the function:
	 * the sink does not use it.
	 */
	bool (*engine_cost)(void *arg, int32_t pid, uint64_t cpu_ns, struct sf_error *err);

	/* Something that the user should read, once, with the summary and in the recording. */
	bool (*note)(void *arg, int32_t pid, const char *text, struct sf_error *err);

	/* The thread has not moved since its last sample, which stands for this tick too. */
	bool (*again)(void *arg, uint32_t serial, uint64_t time_ns, const struct sf_weight *weight,
		      struct sf_error *err);

	/*
	 * The sleep of the thread's last sample (SF_STILL_OPEN) has ended. It was woken by the thread `waker`; 0: by an
	 * interrupt; below 0: that is not known. NULL in the place of the function: the sink does not use it.
	 */
	bool (*woken)(void *arg, uint32_t serial, int32_t waker, const char *waker_name, struct sf_error *err);

	/* serial 0: of no known thread. */
	bool (*loss)(void *arg, uint32_t serial, enum sf_loss cause, const struct sf_weight *weight,
		     struct sf_error *err);

	/* Called about ten times a second while nothing else happens, and in between. */
	bool (*idle)(void *arg, uint64_t now_ns, struct sf_error *err);
};

#endif

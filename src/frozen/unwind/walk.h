/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker: from a still to a trace. A loop that finds the region of a pc and lets its
 * stepper step; it checks that the stack pointer moves up and that the depth is bounded.
 */
#ifndef SF_FROZEN_UNWIND_WALK_H
#define SF_FROZEN_UNWIND_WALK_H

#include "frozen/still.h"
#include "frozen/trace.h"
#include "frozen/unwind/code_map.h"
#include "frozen/unwind/tail.h"

/* A position in a walk. */
struct sf_cursor {
	const struct sf_still *still;
	struct sf_regs regs;
	uint64_t passed;  /* a bit for each register that calls do not keep, where only rules led here: regs.r has the innermost frame's value */
	bool exact;       /* pc is not a return address */
	uint8_t via;
	struct sf_trace *trace; /* its last frame is the one to step from; a stepper may set its kind and
				 * key */
	uint32_t n_looks; /* counted by steppers of runtimes, which have a limit for the whole walk */
	struct sf_tail_walk *tail; /* NULL: the walk has none */
	const uint64_t *chain; /* the address of still->chain by which the next step is taken; NULL: the stack is read */
	uint64_t lacking; /* with it: a return address before that one, which the kernel did not find; 0: none */
};

/*
 * The region of a frame's code, or NULL. A return address belongs to the region of the call before it.
 * The exception is a signal trampoline: no call leads to it, and it may be at the start of its
 * region. Signal-safe.
 */
const struct sf_region *sf_frame_region(const struct sf_still *still, uint64_t pc, bool exact);

/* Whether the code at pc is a signal's trampoline. Signal-safe. */
bool sf_is_sigreturn(const struct sf_still *still, uint64_t pc);

/*
 * A stepper: one way to get from a frame to its caller. To add one: write step_NAME.c, add it
 * to `steppers` in walk.c in the order in which they are tried, and to meson.build.
 * `region` may be NULL, or without a table, but not where `steppers` says that a table is needed.
 */
typedef enum sf_step sf_step_fn(struct sf_cursor *cursor, const struct sf_region *region,
				enum sf_end *why);

sf_step_fn sf_step_switch, sf_step_chain, sf_step_nativeaot, sf_step_throw, sf_step_detour, sf_step_made_frame, sf_step_rows, sf_step_clone, sf_step_sigreturn,
	sf_step_first, sf_step_code, sf_step_frame_pointer;

/*
 * Steps once by these rules of the table, for any pc. Used by steppers that find the valid rules at a
 * pc for which the table has none. Signal-safe.
 */
enum sf_step sf_step_by_rules(struct sf_cursor *cursor, const struct sf_table *table,
			      const struct sf_rules *rules, enum sf_end *why);

/*
 * The same from a function that can leave for an exception's handler (SF_RULES_LEAVES). Where it does, its frame has some of the
 * handler's registers already. Signal-safe.
 */
enum sf_step sf_step_leaving(struct sf_cursor *cursor, const struct sf_table *table, const struct sf_rules *rules, enum sf_end *why);

/* Called only where the other steppers end with SF_END_REGISTER; fails with SF_END_REGISTER, too. */
sf_step_fn sf_step_inferred;

/*
 * Walks `still` into `trace` and returns the end, also in trace->end. The first frame is the
 * innermost one. Bounded by trace->capacity. Signal-safe.
 */
enum sf_end sf_walk(const struct sf_still *still, struct sf_trace *trace);

/* The same trace, found with the tail of an earlier walk where there is one, and kept for the next one. Signal-safe. */
enum sf_end sf_walk_with_tail(const struct sf_still *still, struct sf_tail_walk *tail, struct sf_trace *trace);

/*
 * Whether a newer code map may change this trace: its end says so, or it has code of no file, or the walk came to code that
 * the map does not have, or it went on by the instructions of code without rules, which a runtime may own that is not
 * attached to yet. Signal-safe.
 */
bool sf_trace_may_be_stale(const struct sf_trace *trace);

/*
 * Whether there is code of no file anywhere in the trace, also where frame pointers led through it: a runtime may own it that
 * is not attached to yet. Signal-safe.
 */
bool sf_trace_has_code_of_no_file(const struct sf_trace *trace);

#endif

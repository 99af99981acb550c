/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tail of a thread's last walk: its outer frames, with the registers in each of them and the bytes of the stack
 * by which they were found. Where a later walk of the thread comes to one of these frames with the same registers, and
 * the bytes from there on are the same, the frames further out are the same, too, and are not walked again.
 *
 * Why that is so: the step out of each frame of a tail is a plain one. It depends on nothing but the registers, the
 * bytes between the frame's sp and its caller's, and the code map. So all steps from such a frame to the root depend on
 * the registers in that frame, on the bytes from its sp to the root's, and on the map. All of these are compared
 * themselves, none by a digest. It does not matter of which walk a tail is, nor of which thread. A map with a runtime has
 * no tails: what is code of the runtime may change without a new map.
 */
#ifndef SF_FROZEN_UNWIND_TAIL_H
#define SF_FROZEN_UNWIND_TAIL_H

#include "frozen/still.h"
#include "frozen/trace.h"

struct sf_cursor;

/* The callee-saved registers of a frame; its pc and sp are in its struct sf_frame. */
struct sf_tail_regs {
	uint64_t known;                /* as in struct sf_regs */
	uint64_t saved[SF_MAX_SAVED];  /* in the order of sf_arch.saved; 0 where unknown */
	bool is_whole;                 /* no other register is known, and the frame's pc is a return address */
	bool is_plain;                 /* so was the step out of it */
};

/*
 * The owner gives the memory, zeroes the rest, and keeps a tail for each thread.
 */
struct sf_tail {
	struct sf_frame *frames;     /* room for so many frames; the last n are the tail, innermost first */
	struct sf_tail_regs *regs;   /* beside them */
	uint32_t capacity, n;
	uint8_t *bytes;              /* room for so many bytes; the last ones are the stack from the first frame's sp up to `top` */
	uint32_t size;
	uint64_t top;                /* the root's sp */
	uint64_t map;                /* the serial of the code map */
	uint32_t n_wanted;           /* set by a walk: room in which all of its tail would have been kept */
	uint64_t size_wanted;
};

/* One walk with a tail. Zero but for the first three fields at its begin. */
struct sf_tail_walk {
	struct sf_tail *tail;        /* NULL: without one */
	struct sf_tail_regs *regs;   /* room for so many of the walk's frames, innermost first; the owner's */
	uint32_t capacity;
	uint32_t at;                 /* the frame of the tail that is compared next */
	uint32_t n_walked;           /* frames, the meeting one among them */
	bool has_met, has_compared;
	uint64_t same_from;          /* from this address on the bytes are those of the tail, as far as they were compared */
};

/* Before the walk: drops a tail of another map. Signal-safe, as all that follow. */
void sf_tail_begin(struct sf_tail_walk *walk, const struct sf_still *still);

/*
 * Notes the last frame of the cursor's trace, whose registers the cursor has. True: it is in the tail. Then the frames
 * further out were appended to the trace, and the walk has ended at the root.
 */
bool sf_tail_meet(struct sf_tail_walk *walk, const struct sf_cursor *cursor);

/* Notes that the step out of that frame was a plain one. */
void sf_tail_plain(struct sf_tail_walk *walk);

/* After the walk: what it has found is the tail for the next one. Where it did not end at the root, the tail stays. */
void sf_tail_end(struct sf_tail_walk *walk, const struct sf_still *still, const struct sf_trace *trace);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a walk ends, and why a tick is lost: every reason there is, in two lists, each with the
 * sentence that a user reads. Every trace carries one end; every loss carries one cause.
 *
 * To add one: add a line here, and say in docs/endings.md what a user can do about it.
 * The numbers are stored in recordings: add at the foot, never reorder.
 */
#ifndef SF_FROZEN_ENDS_H
#define SF_FROZEN_ENDS_H

#include "frozen/runtime_list.h"

/* X(NAME, short name for tables and JSON, sentence) */
#define SF_ENDS(X)                                                                                 \
	X(ROOT, "root", "reached the thread's first frame")                                        \
	X(DEPTH, "depth", "more frames than --max-depth")                                          \
	X(NO_RULE, "no-rule", "no unwind rule covers this address, and frame pointers lead nowhere") \
	X(NO_CODE, "no-code", "the address is in no mapped code")                                  \
	X(MEMORY, "memory", "the stack could not be read")                                         \
	X(COPY, "copy", "the copy of the stack was too short")                                     \
	X(REGISTER, "register", "needs a register that only the running thread knows")             \
	X(STUCK, "stuck", "the next frame is not above this one")                                  \
	X(EXPRESSION, "expression", "an unwind expression failed or ran too long")                 \
	X(EMPTY, "empty", "nothing is known of the stack")                                         \
	X(RUNTIME, "runtime", "a frame of a runtime could not be made out")                        \
	SF_RUNTIME_ENDS(X)                                                                         \
	X(OTHER_STACK, "other-stack", "the stack goes on in memory that was not copied while the thread stood")

/* Ticks at which a thread was due and no sample came of it. */
#define SF_LOSSES(X)                                                                               \
	X(GONE, "gone", "the thread ended before its first sample, or its next one")                \
	X(LATE, "late", "the thread did not stop in time")                                         \
	X(RING_FULL, "ring-full", "the collector was behind and the buffer was full")              \
	X(DENIED, "denied", "the kernel refused to stop the thread")                               \
	X(BUSY, "busy", "another tracer holds the thread")                                         \
	X(MOVED, "moved", "the thread ran while its stack was being read")                         \
	X(UNSEEN, "unseen", "CPU time of threads that came and went between two looks")            \
	X(DEAF, "deaf", "the thread blocks the signal that samples it")                            \
	X(NO_SLOT, "no-slot", "too many threads were being sampled at once")                       \
	X(KERNEL, "kernel", "the thread was in the kernel, where this user may not sample")     \
	X(REST, "rest", "the thread ran before its first sample or after its last one, and no sample stands for that") \
	X(NARROW, "32-bit", "the thread ran 32-bit code, whose stacks are not read")               \
	SF_RUNTIME_LOSSES(X)

enum sf_end {
#define X(name, word, text) SF_END_##name,
	SF_ENDS(X)
#undef X
	SF_N_ENDS
};

enum sf_loss {
#define X(name, word, text) SF_LOSS_##name,
	SF_LOSSES(X)
#undef X
	SF_N_LOSSES
};

/* The short name and the sentence; "unknown" for a number outside the list. Signal-safe. */
const char *sf_end_word(unsigned end);
const char *sf_end_text(unsigned end);
const char *sf_loss_word(unsigned loss);
const char *sf_loss_text(unsigned loss);

#endif

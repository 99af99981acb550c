/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of the stacks that threads leave for an alternate one. In a signal handler with a stack of its own the
 * kernel's copy of a sample has that stack only. So the tracepoint signal_deliver copies the stack of a thread each
 * time that such a handler is about to be called. While the handler runs, the stack that was left does not change, and
 * the thread's samples get it as their second stack.
 *
 * Only with `all`: elsewhere such threads are held (perf.h). It needs tracefs, as root has it; where that is missing,
 * such stacks end with `other-stack`.
 */
#ifndef SF_CAPTURE_PERF_SIGNALS_H
#define SF_CAPTURE_PERF_SIGNALS_H

#include "capture/perf/events.h"
#include "capture/perf/record.h"

#define SF_PERF_LEFT_BYTES 16384u  /* of a stack that was left */
#define SF_PERF_LEFT_STACKS 64u    /* so many are kept, of a thread each: those that were used last */

/* A stack that a thread has left. */
struct sf_perf_left {
	int32_t pid, tid;              /* 0: none */
	uint64_t time_ns;              /* of the signal, or of the thread's last sample in its handler */
	uint64_t sp, pc;               /* where the thread was interrupted; the bytes are from sp on */
	uint32_t size;
	bool cut;
	uint8_t bytes[SF_PERF_LEFT_BYTES];
};

struct sf_perf_signals {
	struct sf_perf_events events;
	struct sf_perf_left *left;     /* SF_PERF_LEFT_STACKS of them; NULL: the kernel has no such events */
};

/* Opens the events, disabled; `like`: those of the clock, with `all`. Where that fails there are none. */
void sf_perf_signals_open(struct sf_perf_signals *signals, const struct sf_perf_events *like);
void sf_perf_signals_close(struct sf_perf_signals *signals);

/* A handler is about to be called: keeps the copy in the place of the thread's last one, or of the one that was used longest ago. */
void sf_perf_signals_take(struct sf_perf_signals *signals, const struct sf_perf_record *record);

/*
 * The stack that the thread of a sample has left, valid until the next call of sf_perf_signals_take(). NULL: there is
 * none, or the sample's own copy has it, or has no words that say where the thread was interrupted.
 */
const struct sf_perf_left *sf_perf_signals_find(const struct sf_perf_signals *signals, const struct sf_perf_record *record);

#endif

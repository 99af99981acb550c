/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AGCT: a walk that uses HotSpot's AsyncGetCallTrace (HotSpot: prims/forte.cpp). Our walker finds the
 * native frames up to the first Java frame. AsyncGetCallTrace finds the Java frames.
 *
 * This is an exception to the rules of frozen code: the virtual machine's code runs in our handler,
 * and we cannot bound its time or its effects. Therefore AGCT is off by default (--java-walk=agct
 * turns it on). It runs on the interrupted thread only (--walk=handler). It is called through a
 * pointer that agent/java/jvm_walk.c sets.
 */
#ifndef SF_FROZEN_HOTSPOT_AGCT_H
#define SF_FROZEN_HOTSPOT_AGCT_H

#include <stdint.h>

#include <stdatomic.h>

#include "frozen/signal/handler.h"

/*
 * A frame as the machine gives it (ASGCT_CallFrame), with the Method itself in the place of its
 * jmethodID.
 */
struct sf_agct_frame {
	int32_t  bci;       /* index of the bytecode; -1 unknown, -3 a native method */
	uint32_t padding;
	uint64_t method;    /* 0: the machine has made no id for it */
};

#define SF_AGCT_ERRORS 10   /* answers 0 to -10 are SF_END_AGCT_0 and what follows it */

/*
 * Asks for the Java frames of the calling thread, whose JavaThread is `thread`, where `ucontext`
 * interrupted it: their number, innermost first, or 0 and below for why there are none.
 */
typedef int32_t sf_ask_fn(struct sf_agct_frame *frames, uint32_t capacity, uint64_t thread,
			  void *ucontext);

/* Set before sf_handler.code.own_walk is sf_agct_walk. */
extern sf_ask_fn *_Atomic sf_agct_ask;

/*
 * Walks what stands in still into workspace->trace, by sf_agct_ask where the thread is in Java; a thread
 * that is none of the machine's as always. Only on the thread itself. The rows of workspace->packed
 * are written over.
 */
sf_own_walk_fn sf_agct_walk;

#endif

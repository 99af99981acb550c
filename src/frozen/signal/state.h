/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the signal handler: everything that it touches is in one object per process,
 * sf_handler. The object is made before the first signal, and is not freed while a signal may come.
 */
#ifndef SF_FROZEN_SIGNAL_STATE_H
#define SF_FROZEN_SIGNAL_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "frozen/ends.h"
#include "frozen/output/outbox.h"
#include "frozen/output/frame_keys.h"
#include "frozen/signal/thread_table.h"
#include "frozen/memory/own_memory.h"
#include "frozen/signal/slot.h"

enum sf_handler_mode {
	SF_MODE_OFF,     /* our own signals are swallowed */
	SF_MODE_SAMPLER, /* --walk=sampler */
	SF_MODE_HANDLER, /* --walk=handler */
};

/* si_value of our signals: 16 bits of cookie, 16 of slot (timers: SF_NO_SLOT), 32 of generation. */
#define SF_NO_SLOT 0xffffu

#define SF_MAX_SLOTS 64

/*
 * A walk by a runtime's own stack function: walks the calling thread, which was interrupted at
 * `ucontext`, into workspace->trace.
 */
typedef enum sf_end sf_own_walk_fn(struct sf_workspace *workspace, struct sf_still *still,
				   const struct sf_thread_entry *entry, void *ucontext);

struct sf_handler_state {
	_Atomic uint32_t mode;
	int32_t  pid;
	uint16_t cookie;                   /* never 0 */
	int      signal;
	const struct sf_arch *arch;
	struct sf_own_memory access;
	struct sf_slot *slots;
	uint32_t n_slots;
	struct sf_wake_up wake_up;         /* the sampler sleeps on it */
	struct sf_wake_up service_wake_up; /* the service thread sleeps on it */
	_Atomic uint64_t outbox_full;      /* bytes in the outbox at which the service thread is woken;
					    * 0: another process empties the outbox */
	struct sf_thread_entry *entries;
	struct sf_outbox_header *_Atomic outbox; /* NULL: no reader; its memory stays mapped */
	const struct sf_code_map *_Atomic map;
	struct sf_frame_keys *_Atomic places;  /* set before a map with a runtime; else NULL */
	void *_Atomic caches[SF_MAX_RUNTIMES]; /* set like `places`; their content outlives a profile */
	_Atomic uint64_t met_on;           /* the CPU of the last tick, and the number of ticks in a
					    * row on that CPU */
	_Atomic uint32_t map_stale;        /* a walk met code that is not in the map */
	sf_own_walk_fn *_Atomic own_walk;  /* of a runtime, in mode HANDLER; NULL: sf_handler_walk walks
					    * the threads */
	bool     walks_twice;              /* each sample is taken twice, the second time by own_walk */
	uint64_t period_ns;                /* of the CPU clock; 0: none */
	bool     jitter;
	uint64_t kernel_tick_ns;           /* 1/HZ; 0: not known */
	uint64_t patience_ns;              /* for which a thread waits in a slot for the sampler */
	bool     clocks_apart;             /* perf descriptors are in the sampler's own table: no
					    * handler sets them */

	/*
	 * The address behind the system call instruction of the agent's syscall(2), which leaves the
	 * number at the stack pointer; 0: none.
	 */
	uint64_t marked_syscall;

	_Atomic uint32_t n_with_serial;    /* threads with a serial; counted after the serial is stored */

	/* Counters for the summary and the tests. */
	_Atomic uint64_t n_foreign;        /* signals that were not ours */
	_Atomic uint64_t n_late;           /* answers that came too late */
	_Atomic uint64_t n_no_slot;        /* ticks that found every slot taken */
	_Atomic uint64_t n_mended;         /* interrupted system calls that were restarted */
	_Atomic uint64_t n_backed_off;
};

extern struct sf_handler_state sf_handler;

/* The two halves of met_on, which is a hint: a tick that a racing thread overwrites is not counted. */
static inline uint32_t sf_met_cpu(uint64_t met)
{
	return (uint32_t)(met >> 32);
}

static inline uint32_t sf_met_run(uint64_t met)
{
	return (uint32_t)met;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stillframe inside a process: everything that a signal handler touches, in one object that is made
 * before the first signal and never freed while one may come. One per process, sf_inside.
 *
 * A signal is ours if it says so: from our timer (si_value has our cookie), from our
 * perf event (si_fd is the thread's clock), or queued by our sampler (cookie, slot, generation).
 * All others go on to whoever had the signal before (frozen/chain.h). One of ours may still be
 * pending long after its clock was taken off, in a thread that blocks it: so the cookie is chosen
 * once in the life of a process.
 */
#ifndef SF_FROZEN_INSIDE_H
#define SF_FROZEN_INSIDE_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "frozen/ends.h"
#include "frozen/outbox.h"
#include "frozen/places.h"
#include "frozen/seats.h"
#include "frozen/self.h"
#include "frozen/slot.h"

enum sf_inside_mode {
	SF_INSIDE_OFF,     /* our own signals are swallowed */
	SF_INSIDE_SAMPLER, /* --walk=sampler */
	SF_INSIDE_HANDLER, /* --walk=handler */
};

/* si_value of our signals: 16 bits of cookie, 16 of slot (timers: SF_NO_SLOT), 32 of generation. */
#define SF_NO_SLOT 0xffffu

#define SF_MAX_SLOTS 64

/*
 * A walk by the functions of a runtime itself: of the calling thread, which `ucontext` interrupted, into
 * workspace->trace.
 */
typedef enum sf_end sf_own_walk_fn(struct sf_workspace *workspace, struct sf_still *still,
				   const struct sf_seat *seat, void *ucontext);

struct sf_inside {
	_Atomic uint32_t mode;
	int32_t  pid;
	uint16_t cookie;                   /* never 0 */
	int      signal;
	const struct sf_arch *arch;
	struct sf_self_access access;
	struct sf_slot *slots;
	uint32_t n_slots;
	struct sf_bell bell;               /* the sampler sleeps on it */
	struct sf_bell keeper_bell;        /* the keeper does */
	_Atomic uint64_t outbox_full;      /* bytes in the outbox for which the keeper is rung; 0:
					    * somebody else empties it */
	struct sf_seat *seats;
	struct sf_outbox_header *_Atomic outbox; /* NULL: nobody listens; its place stays mapped */
	const struct sf_code_map *_Atomic map;
	struct sf_places *_Atomic places;  /* set before a map with a runtime; else NULL */
	void *_Atomic caches[SF_MAX_RUNTIMES]; /* the same; what they hold outlives a profile */
	_Atomic uint64_t met_on;           /* the CPU of the last tick, and how many in a row were
					    * there */
	_Atomic uint32_t map_stale;        /* a walk met code that the map does not know */
	sf_own_walk_fn *_Atomic own_walk;  /* of a runtime, in mode HANDLER; NULL: threads are walked by
					    * sf_inside_walk */
	bool     walks_twice;              /* each sample is taken twice, the second time by own_walk */
	uint64_t period_ns;                /* of the CPU clock; 0: none */
	bool     jitter;
	uint64_t kernel_tick_ns;           /* 1/HZ; 0: not known */
	uint64_t patience_ns;              /* that a thread stands for a sampler that does not come */
	bool     clocks_apart;             /* perf descriptors are in the sampler's own table: no
					    * handler sets them */

	/*
	 * Behind the instruction of the agent's syscall(2), which leaves the number at the stack
	 * pointer; 0: none.
	 */
	uint64_t marked_syscall;

	_Atomic uint32_t n_seated;         /* threads that were given a serial: counted once their seats say so */

	/* Counted, for the summary and the tests. */
	_Atomic uint64_t n_foreign;        /* signals that were not ours */
	_Atomic uint64_t n_late;           /* answers that came too late */
	_Atomic uint64_t n_no_slot;        /* ticks that found every slot taken */
	_Atomic uint64_t n_mended;         /* system calls that our signal would have made fail */
	_Atomic uint64_t n_backed_off;
};

extern struct sf_inside sf_inside;

/* Of met_on. A tick that another thread's overwrites is not counted: it is a hint. */
static inline uint32_t sf_met_cpu(uint64_t met)
{
	return (uint32_t)(met >> 32);
}

static inline uint32_t sf_met_run(uint64_t met)
{
	return (uint32_t)met;
}

/* The si_value that says "ours", and what it says. Signal-safe. */
uint64_t sf_inside_value(uint16_t cookie, uint32_t slot, uint32_t generation);

/*
 * The signal handler, for rt_sigaction with SA_SIGINFO and every signal blocked meanwhile. errno is
 * kept (nothing here sets it), the context too except for sf_context_mend. Signal-safe by nature.
 */
void sf_inside_handler(int signal, siginfo_t *info, void *ucontext);

/*
 * Walks what stands in a slot, puts the sample into the outbox, and says how it ended. Without room
 * in the outbox it becomes a loss, or if not even that has room, the thread's next sample speaks
 * for it. The sampler calls it between sf_slot_take and sf_slot_release; whom it asked is weighed
 * first (weight.h). Signal-safe.
 */
enum sf_end sf_inside_sample(struct sf_workspace *workspace, struct sf_slot *slot);

/*
 * The sampler's turn: walks those who stand, in whichever slot, and lets them go. How many. They are
 * woken when nobody stands any more, or when this many have been walked and the pass over the slots
 * is done, as threads may come as fast as they are walked. Who comes meanwhile may be left to the
 * next turn; the bell says so. Signal-safe.
 */
#define SF_SERVED_AT_ONCE 16
unsigned sf_inside_serve(struct sf_workspace *workspace);

/*
 * sf_workspace_walk of a thread that has a seat (NULL: none is known): where native code cannot be
 * walked, the record that a runtime has of the thread is used. Signal-safe.
 */
enum sf_end sf_inside_walk(struct sf_workspace *workspace, struct sf_still *still,
			   const struct sf_seat *seat);

/*
 * Puts workspace->trace into the outbox as this sample, whose number of frames and end are filled
 * in. False: there was no room, and what it speaks for is still to be spoken for. Signal-safe.
 */
bool sf_inside_put(struct sf_workspace *workspace, struct sf_stream_sample *sample);

/*
 * A record into the outbox: read once, as a stop may take it away meanwhile. True also when nobody
 * listens; false: no room. Signal-safe.
 */
bool sf_inside_tell(uint16_t type, const struct sf_outbox_piece *pieces, unsigned n);

/* Puts a loss into the outbox; false: no room. Signal-safe. */
bool sf_inside_lose(uint32_t serial, enum sf_loss cause, uint64_t cpu_ns, uint64_t wall_ns,
		    uint32_t ticks);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the signal handler: the configuration of the profile, the link between threads and
 * the sampler, the code that is known, and the output. The kernel gives a handler no argument of
 * ours, so the handler finds the four parts through one object for each process, sf_handler. Every
 * other function of this folder gets the part that it needs as a parameter.
 *
 * All memory that the parts point to exists before the first signal, and stays mapped while a signal
 * may come.
 */
#ifndef SF_FROZEN_SIGNAL_STATE_H
#define SF_FROZEN_SIGNAL_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "frozen/ends.h"
#include "frozen/output/frame_keys.h"
#include "frozen/signal/event.h"
#include "frozen/signal/kept_stills.h"
#include "frozen/signal/output.h"
#include "frozen/signal/slot.h"
#include "frozen/signal/thread_table.h"
#include "frozen/signal/workspace.h"

enum sf_handler_mode {
	SF_MODE_OFF,     /* our own signals are swallowed */
	SF_MODE_SAMPLER, /* --walk=sampler */
	SF_MODE_HANDLER, /* --walk=handler */
};

/* si_value of our signals: 16 bits of cookie, 16 of slot (timers: SF_NO_SLOT), 32 of generation. */
#define SF_NO_SLOT 0xffffu

#define SF_MAX_SLOTS 64

/* The configuration: set while the mode is SF_MODE_OFF, and constant while a profile runs. */
struct sf_handler_config {
	int32_t  pid;
	uint16_t cookie;                   /* never 0; one for the life of the process */
	int      signal;
	const struct sf_arch *arch;
	uint64_t period_ns;                /* of the CPU clock; 0: none */
	uint64_t kernel_tick_ns;           /* 1/HZ */
	uint64_t patience_ns;              /* for which a thread waits in a slot for the sampler */
	bool     jitter;
	bool     some_threads;             /* the options exclude some: a thread is watched when the sampler says so */
	bool     walks_twice;              /* each sample is taken twice, by own_walk or held_walk, and by sf_handler_walk */
	bool     remote_clocks;            /* perf descriptors are in the sampler's own table: no
					    * handler can set them */
	/*
	 * The address behind the system call instruction of the agent's syscall(2), which leaves the
	 * number at the stack pointer; 0: none.
	 */
	uint64_t marked_syscall;
};

/* The link between the threads of the program and the sampler. */
struct sf_handler_link {
	_Atomic uint32_t mode;             /* enum sf_handler_mode */
	struct sf_slot *slots;
	uint32_t n_slots;
	struct sf_thread_entry *entries;   /* the thread table; NULL: no profile has begun yet */
	struct sf_wake_up wake_up;         /* the sampler sleeps on it */
	struct sf_kept_stills *kept;       /* NULL: no still is kept */
	_Atomic uint32_t last_serial;      /* of threads, in the stream */
	_Atomic uint32_t n_with_serial;    /* threads that got a serial; counted after the serial is
					    * stored */
};

struct sf_handler_code;

/*
 * A walk by a runtime's own stack function: walks the calling thread, which was interrupted at
 * `ucontext`, into workspace->trace.
 */
typedef enum sf_end sf_own_walk_fn(const struct sf_handler_code *code,
				   struct sf_workspace *workspace, struct sf_still *still,
				   const struct sf_thread_entry *entry, void *ucontext);

/*
 * A walk of a held thread by what a runtime has noted of it, in any mode, into workspace->trace. False: it gave no
 * stack, and the cause of the loss.
 */
typedef bool sf_held_walk_fn(const struct sf_handler_code *code, struct sf_workspace *workspace, struct sf_still *still,
			     const struct sf_thread_entry *entry, enum sf_loss *cause_ret);

/* Why the code map is to be read again: the greater one counts. */
enum sf_map_fault {
	SF_MAP_LACKS_CODE = 1, /* a walk met code that is not in it */
	SF_MAP_MISLEADS,       /* code has gone, and other code may be in its place */
};

/* The code that is known, and the means to walk through it. */
struct sf_handler_code {
	struct sf_own_memory memory;       /* how the memory of this process is read */
	const struct sf_code_map *_Atomic map;
	_Atomic uint32_t map_stale;        /* enum sf_map_fault, 0: none is known */
	_Atomic uint64_t n_searches;       /* of the service thread for code that the map lacks: those that have ended */
	struct sf_frame_keys *_Atomic frame_keys; /* set before a map with a runtime; else NULL */
	void *_Atomic caches[SF_MAX_RUNTIMES];    /* set like frame_keys; their content outlives a
						   * profile */
	sf_own_walk_fn *_Atomic own_walk;  /* of a runtime, in mode HANDLER; NULL: sf_handler_walk walks
					    * the threads */
	sf_held_walk_fn *_Atomic held_walk; /* NULL: sf_handler_walk */
};

/* Counters for the summary and the tests. */
struct sf_handler_counts {
	_Atomic uint64_t foreign;          /* signals that were not ours */
	_Atomic uint64_t late;             /* answers that came too late */
	_Atomic uint64_t no_slot;          /* ticks that found every slot taken */
	_Atomic uint64_t mended;           /* interrupted system calls that were restarted */
	_Atomic uint64_t backed_off;
};

struct sf_handler {
	struct sf_handler_config config;
	struct sf_handler_link link;
	struct sf_handler_code code;
	struct sf_handler_output output;
	struct sf_handler_counts counts;
	struct sf_event_meter event;       /* of a profile of events */
};

/* Defined in handler.c. In frozen code only sf_handler_enter names it. */
extern struct sf_handler sf_handler;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent: stillframe inside a process. It starts and stops a profile, and continues correctly
 * when the program forks, executes another program, exits or unloads it. One profile runs at a time.
 * All functions are ordinary code. They may be called from any thread unless their comment says
 * otherwise. One mutex orders start and stop.
 *
 *   sampler.h   the thread that holds others: ticks, slots, walks     (only when sampling)
 *
 *   service.h   the service thread: maps, tables, the stream's file, the channel
 *
 *   threads.h   the watched threads           clocks.h   CPU clocks
 *   signals.h   the sampling signal           blocked_sample.h   blocked samples
 *
 * The agent has two threads while it samples, and one more while it listens (control.h). It has none
 * before.
 */
#ifndef SF_AGENT_AGENT_H
#define SF_AGENT_AGENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "agent/options.h"
#include "base/error.h"
#include "frozen/signal/handler.h"

struct sf_agent_threads;
struct sf_sampler;
struct sf_service;          /* the service thread's */

/* A profile under way: what the parts below share. Owned by agent.c, lives from start to stop. */
struct sf_agent {
	struct sf_agent_options options;
	struct sf_agent_threads *threads;
	const struct sf_agent_clock_kind *clock;  /* of CPU time; NULL: wall only */
	struct sf_sampler *sampler;               /* NULL also where it was left behind (sampler/sampler.h) */
	uint64_t left_cpu_ns;                     /* the CPU time of that one */
	struct sf_service *keep;
	struct sf_workspace *workspace;           /* the sampler's */
	char     why[256];                        /* why the profile ends early; "": it does not */
	_Atomic bool deserted;                    /* the program's threads have ended; set by the sampler, for the service thread */
	_Atomic bool paused;                      /* read by the sampler; ticks are dropped meanwhile */
	/*
	 * The sampler increments this at every turn of its loop, at a point where it uses no code map.
	 * The service thread frees a map when no slot names it, and when it was replaced before the
	 * last two increments.
	 */
	_Atomic uint64_t n_quiet;
};

/*
 * Starts a profile: memory, slots, entries, handler, first code map, threads, clocks. On failure
 * nothing is left; EBUSY in err->os_errno means that a profile is running already. `channel`: the
 * socket of a caller (stream/control.h), which gets READY with the outbox; on success the service
 * thread owns it, on failure the caller does. -1: the service thread writes options.out. On success
 * the options are moved out of *options.
 */
bool sf_agent_start(struct sf_agent_options *options, int channel, struct sf_error *err);

/*
 * Stops the clocks, waits for running handlers, writes END, ends the threads, and frees. True also
 * when no profile is running; false when the stream could not be written in full. `why`: the reason
 * for stillframe, if stillframe did not request the stop; or NULL.
 */
bool sf_agent_stop(const char *why, struct sf_error *err);
bool sf_agent_running(void);
void sf_agent_pause(bool pause);

/* For aside.c, which has the lock SF_FORK_PROFILE. */
struct sf_agent *sf_agent_locked(void);    /* the profile under way, or NULL */
void sf_agent_switch_on_locked(void);      /* its threads are back */
void sf_agent_end_locked(void);            /* the sampler does not come back: the profile ends */
void sf_agent_abandon_locked(void);        /* nor does the service thread: it ends as if the process had been killed */

/* Waits until the service thread has brought the stream file up to date. */
bool sf_agent_flush(struct sf_error *err);

/* The path of the stream file, also after the stop, until the next start; "" when there is none. */
const char *sf_agent_output(void);

/* Like sf_agent_flush, before an exec: waits at most `ns`, and takes no lock. */
void sf_agent_flush_within(uint64_t ns);

/*
 * In a forked child, which does not sample. images_are_whole: fork() met no change of them. True: a profile was running in the
 * parent, with these options; the caller owns them now. Their strings are copies of the parent's memory.
 */
bool sf_agent_after_fork_in_child(bool images_are_whole, struct sf_agent_options *options_ret);

#endif

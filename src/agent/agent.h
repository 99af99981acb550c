/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stillframe inside a process: starting, stopping, and surviving what programs do (fork, exec,
 * exit, unloading). One profile at a time. All functions are ordinary code, and may be called from
 * any thread unless they say otherwise; one mutex orders start and stop.
 *
 *   sampler.h   the thread that holds others: ticks, slots, walks     (only when sampling)
 *   keeper.h    the thread for everything that may wait: maps, tables, the stream's file, the channel
 *   threads.h   who is watched                clocks.h   what rings
 *   signals.h   which signal, whose it was    asleep.h   sleeping threads
 *
 * Two threads exist while sampling, one more while listening (control.h), none before.
 */
#ifndef SF_AGENT_AGENT_H
#define SF_AGENT_AGENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "agent/options.h"
#include "base/error.h"
#include "frozen/inside.h"

struct sf_agent_threads;
struct sf_sampler;
struct sf_keep;          /* the keeper's */

/* A profile under way: what the parts below share. Owned by agent.c, lives from start to stop. */
struct sf_agent {
	struct sf_agent_options options;
	struct sf_agent_threads *threads;
	const struct sf_agent_clock_kind *clock;  /* of CPU time; NULL: wall only */
	struct sf_sampler *sampler;
	struct sf_keep *keep;
	struct sf_workspace *workspace;           /* the sampler's */
	char     why[256];                        /* it ends before anybody asked; "": it does not */
	_Atomic bool paused;                      /* the sampler looks; ticks are swallowed meanwhile */
	/*
	 * Counted up by the sampler at every turn of its loop, where it uses no code map: a map
	 * that was replaced before the last two counts, and that no slot names, is freed by the
	 * keeper.
	 */
	_Atomic uint64_t n_quiet;
};

/*
 * Starts: memory, slots, seats, handler, first code map, threads, clocks. On failure nothing is
 * left; EBUSY in err->os_errno says that a profile is under way. `channel`: a caller of
 * stream/control.h, which gets READY with the outbox, and is the keeper's from then on (the
 * caller's still, on failure); -1: the keeper writes options.out. Options are moved out of *options
 * on success.
 */
bool sf_agent_start(struct sf_agent_options *options, int channel, struct sf_error *err);

/*
 * Stops clocks, waits for handlers under way, writes END, ends the threads, frees. True also when
 * not running; false when the stream could not be written in full. `why`: for stillframe, if it did
 * not ask for it; or NULL.
 */
bool sf_agent_stop(const char *why, struct sf_error *err);
bool sf_agent_running(void);
void sf_agent_pause(bool pause);

/* The keeper is asked to bring the stream file up to date now; waits for it. */
bool sf_agent_flush(struct sf_error *err);

/* The path of the stream file, also after the stop, until the next start; "" when there is none. */
const char *sf_agent_output(void);

/* The same as flush, but waits at most so long, and takes no lock: before an exec. */
void sf_agent_flush_within(uint64_t ns);

/* Around fork(): no start or stop is under way while a process is copied; the copy is off. */
void sf_agent_before_fork(void);
void sf_agent_after_fork(void);
/*
 * True: a profile was under way in the parent, with these options, which are the caller's now.
 * Their strings are the parent's, copied with the rest.
 */
bool sf_agent_after_fork_in_child(struct sf_agent_options *options_ret);

/*
 * Sampling is over by itself (duration, the collector has gone): called by the keeper, stops from
 * its own thread. False: somebody else is stopping (and waits for the keeper) or starting; go on.
 */
bool sf_agent_stop_from_keeper(void);

#endif

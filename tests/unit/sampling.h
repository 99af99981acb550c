/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile of the test itself, without agent.c, the service thread or a file: sf_handler is filled by
 * hand, there is no code map (so every trace has one frame), and the records are added up when it
 * ends. For tests of the agent's sampler. One at a time.
 */
#ifndef SF_TESTS_SAMPLING_H
#define SF_TESTS_SAMPLING_H

#include <stdint.h>

#include "agent/agent.h"
#include "agent/clocks/clocks.h"
#include "agent/sampler/sampler.h"
#include "agent/sampler/threads.h"
#include "frozen/ends.h"

#define MAX_SERIALS 60000

struct counted {
	int32_t  tid;
	char     name[64];
	uint32_t n_samples, n_waiting, n_asleep, n_again, n_rests, n_loss[SF_N_LOSSES], n_ends, label;
	uint64_t ticks, cpu_ns, wall_ns, asleep_wall_ns, lost_ns[SF_N_LOSSES], lost_ticks;
	uint64_t end_cpu_ns;
	int32_t  syscall;
};

struct sampling {
	struct sf_agent agent;
	struct counted *by_serial;       /* MAX_SERIALS; 0: of no thread */
	struct counted sum;
	uint32_t n_serials;
	uint64_t lost_records;
	char     last_label[600];
	uint64_t process_cpu_ns;         /* of all but the sampler, meanwhile, by the kernel */
	uint64_t began_cpu_ns;
};

/* As options are by default: both clocks, all threads, 999 Hz, 20 Hz. */
struct sf_agent_options sampling_options(void);

/* kind: NULL for clock=wall. */
void sampling_start(struct sampling *sampling, const struct sf_agent_options *options,
		    const struct sf_agent_clock_kind *kind, enum sf_handler_mode mode);
void sampling_stop(struct sampling *sampling);
void sampling_free(struct sampling *sampling);

/*
 * With a full outbox from the start on: nothing finds room in it until sampling_make_room(), which
 * throws away what is in it.
 */
void sampling_start_full(struct sampling *sampling, const struct sf_agent_options *options,
			 const struct sf_agent_clock_kind *kind, enum sf_handler_mode mode);
void sampling_make_room(void);

/* Bytes of records that have been told so far. */
uint64_t sampling_told(void);

/* The last thread with this id, or name; NULL: none. */
struct counted *sampling_by_tid(struct sampling *sampling, int32_t tid);
struct counted *sampling_by_name(struct sampling *sampling, const char *name);

uint64_t sampling_lost_ns(const struct counted *counted);

/* Uses so much CPU time of the calling thread. */
void burn(uint64_t ns);
/*
 * The same, and goes on until a sample has spoken for it: however late a busy machine lets anybody look, who does so loses
 * nothing to it. How much more that took; after half a second a clock that does not ring is given up. Nothing more
 * of a thread that has no entry.
 */
uint64_t burn_until_heard(uint64_t ns);
uint64_t own_cpu_ns(void);

#endif

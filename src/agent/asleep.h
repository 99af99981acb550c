/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample of a thread that sleeps in a system call, without waking it: pc and sp from
 * /proc/self/task/TID/syscall, its stack read through the kernel, walked by the rows, proven by
 * its CPU clock to have slept throughout (capture/take.h does the same from outside).
 */
#ifndef SF_AGENT_ASLEEP_H
#define SF_AGENT_ASLEEP_H

#include <stdbool.h>

#include "agent/agent.h"
#include "agent/threads.h"
#include "stream/record.h"

/*
 * thread->cpu_ns was read before, and is part of the proof. It speaks for thread->asleep_ns. Only
 * the sampler calls it. False: it was awake, or woke up meanwhile.
 */
bool sf_asleep_sample(struct sf_agent *agent, struct sf_agent_thread *thread, uint64_t now_ns);

/*
 * Its present sleep has a sample whose walk was cut, and since then code was mapped, or a virtual
 * machine was attached to or has told of its thread: another sample may be whole.
 */
bool sf_asleep_is_out_of_date(const struct sf_agent_thread *thread);

/*
 * It sleeps on: its last sample speaks for thread->asleep_ns, too. Told at once; or now and then.
 */
void sf_asleep_again(const struct sf_agent_options *options, struct sf_agent_thread *thread,
		     uint64_t now_ns);
void sf_asleep_on(const struct sf_agent_options *options, struct sf_agent_thread *thread,
		  uint64_t now_ns);

#endif

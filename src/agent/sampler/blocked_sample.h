/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocked samples: samples of a thread that sleeps in a system call, without a signal. pc and sp come
 * from /proc/self/task/TID/syscall. The stack is read through the kernel and walked by unwind rows.
 * The thread's CPU clock proves that it slept throughout.
 */
#ifndef SF_AGENT_SAMPLER_BLOCKED_SAMPLE_H
#define SF_AGENT_SAMPLER_BLOCKED_SAMPLE_H

#include <stdbool.h>

#include "agent/agent.h"
#include "agent/sampler/threads.h"
#include "stream/record.h"

/*
 * Samples a blocked thread; the sample accounts for thread->asleep_ns. thread->cpu_ns must have been
 * read before, as a part of the proof. Only the sampler calls this. False: the thread was awake, or
 * woke up meanwhile.
 */
bool sf_blocked_sample_take(struct sf_agent *agent, struct sf_agent_thread *thread, uint64_t now_ns);

/*
 * Whether a new sample of the same sleep may be complete: the walk of the last one was cut, and since
 * then code was mapped, a runtime was attached, or the thread got a handle.
 */
bool sf_blocked_sample_is_out_of_date(const struct sf_agent_thread *thread);

/*
 * The thread still sleeps: its last sample accounts for thread->asleep_ns, too. `again` writes the
 * AGAIN record at once; `on` writes it at intervals.
 */
void sf_blocked_sample_again(const struct sf_agent_options *options, struct sf_agent_thread *thread,
		     uint64_t now_ns);
void sf_blocked_sample_on(const struct sf_agent_options *options, struct sf_agent_thread *thread,
		  uint64_t now_ns);

#endif

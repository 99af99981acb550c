/* SPDX-License-Identifier: Apache-2.0 */
/* Advice after a recording: why nothing was sampled, and which option shows what is missing. */
#ifndef SF_CLI_ADVICE_H
#define SF_CLI_ADVICE_H

#include "session/session.h"

/* CPU time of the processes that the recorded ones started, as the kernel counts it; of ended ones that were waited for. */
struct sf_children_cpu {
	uint64_t before_ns; /* until the recording began */
	uint64_t ns;        /* since; 0: unknown, or they are in the recording */
	bool have_no_agent; /* they were to be in the recording */
};
void sf_children_cpu_begin(struct sf_children_cpu *cpu, const struct sf_session_options *options);
/* Before a launched command is waited for. */
void sf_children_cpu_end(struct sf_children_cpu *cpu, const struct sf_session_options *options,
			 const struct sf_session_result *result);

/*
 * Adds a hint at --children, or at another engine, to the notes, where most of the CPU time was that of processes which
 * were not recorded.
 */
void sf_advise_children(const struct sf_children_cpu *cpu, struct sf_session_result *result);

/*
 * Whether there is a sample. If not, err has the reason; `ended`: the launched command has, `name`: its own or the
 * process's.
 */
bool sf_check_sampled(const struct sf_session_options *options, const struct sf_session_result *result, bool ended,
		      const char *name, struct sf_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's end of stream/control.h: calling a stillframe that waits, or waiting for one to call.
 */
#ifndef SF_AGENT_CONTROL_H
#define SF_AGENT_CONTROL_H

#include <stdbool.h>

#include "agent/agent.h"

/* Begins a profile as sf_agent_start does, which is above this file. */
typedef bool sf_control_start_fn(struct sf_agent_options *options, int channel, struct sf_error *err);

/*
 * Calls the stillframe at options.connect, takes its START, starts, and answers READY; at most 5 s.
 * On any failure the program runs on without being sampled. Called before main() and in forked
 * children.
 */
bool sf_control_call(const char *path, sf_control_start_fn *start, struct sf_error *err);

/* The thread that listens, for options.listen. It serves one caller after the other. */
bool sf_control_listen(sf_control_start_fn *start, struct sf_error *err);
void sf_control_unlisten(void);
int32_t sf_control_listener_tid(void); /* 0: none */

/*
 * The listener's thread ends, if there is one, and another one goes on later; the socket stays. Both by the same thread. False:
 * not now, and nothing was done.
 */
bool sf_control_leave(void);
void sf_control_return(void);

/* In a forked child, which has no listener: closes its copy of the socket. */
void sf_control_after_fork_in_child(void);

#endif

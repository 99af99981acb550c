/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which signal is ours: the one asked for; else SIGPROF, if the program has left it alone; else the
 * highest real-time signal that it has left alone. Where the program's sigaction() is not ours (we
 * were loaded into it while it ran, or by a virtual machine) it is the other way round: our handler
 * stays, the program sees it there, and who wants SIGPROF for itself later, as the recorder of a
 * virtual machine does, refuses to start. The program's own handler, installed before or
 * after, keeps its signals (frozen/chain.h): sigaction() and signal() are interposed, so that it
 * sees and changes its own action and not ours; where the interposition does not reach (a static
 * call, libc's own), the keeper notices the change and puts ours back in front.
 */
#ifndef SF_AGENT_SIGNALS_H
#define SF_AGENT_SIGNALS_H

#include <stdbool.h>

#include "base/error.h"

/* Whether the program's calls of sigaction() come to us. True until this says otherwise. */
void sf_agent_signal_set_seen(bool seen);

/*
 * Chooses and installs; the number is in sf_inside.signal. `wanted` 0: choose, SIGPROF if it can be had and
 * `for_perf`, as perf clocks take no real-time signal.
 */
bool sf_agent_signal_install(int wanted, bool for_perf, struct sf_error *err);
/* Ours is still in front? Called by the keeper about five times a second. */
void sf_agent_signal_check(void);
/*
 * Sampling is over, and no clock is armed any more. Our handler stays in front of the program's own
 * action until the process ends: a tick that is still under way must not meet SIG_DFL, which would
 * kill the program, nor a handler that does not expect it; nobody can know when the last one came.
 * What the program sees and changes is its own action, and the next start finds the handler where
 * it was.
 */
void sf_agent_signal_remove(void);

/*
 * Whether our handler stands in front of this signal's action: what the program does to it goes to
 * the chain.
 */
bool sf_agent_signal_is_ours(int signal);

/* "SIGUSR2", "USR2", "RTMIN+3", "27": its number, 0 if it is none that can be used. */
int sf_agent_signal_number(const char *text);

#endif

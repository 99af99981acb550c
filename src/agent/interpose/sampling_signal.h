/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of the sampling signal: the configured one; else SIGPROF, if the program does not use it; else the highest
 * real-time signal that the program does not use. If the agent was loaded while the program ran, or by a virtual
 * machine, then the program's sigaction() is not interposed, and the order is reversed. The reason: the agent's handler
 * stays and is visible to the program, and code that installs a handler for SIGPROF later, such as the recorder of a
 * virtual machine, refuses to start.
 *
 * The program's own handler, installed before or after ours, keeps its signals (frozen/signal/chain.h).
 * sigaction() and signal() are interposed, so that the program sees and changes its own action and not
 * ours. Calls that the interposition does not reach (static calls, libc's own calls) may replace our
 * handler. The service thread notices that and puts our handler back in front.
 */
#ifndef SF_AGENT_INTERPOSE_SAMPLING_SIGNAL_H
#define SF_AGENT_INTERPOSE_SAMPLING_SIGNAL_H

#include <stdbool.h>

#include "base/error.h"

/* Whether the program's calls of sigaction() come to us. True until this says otherwise. */
void sf_agent_signal_set_seen(bool seen);

/*
 * Chooses and installs; the number is in sf_handler.config.signal. `wanted` 0: choose, SIGPROF if it can be had and
 * `for_perf`, as perf clocks take no real-time signal.
 */
bool sf_agent_signal_install(int wanted, bool for_perf, struct sf_error *err);
/* Ours is still in front? Called by the service thread about five times a second. */
void sf_agent_signal_check(void);
/*
 * Called when sampling is over and no clock is armed any more. The agent's handler stays in front of the program's own
 * action until the process ends, since a signal may still be pending: by SIG_DFL it would kill the program, and a
 * handler of the program does not expect it. Nothing shows which signal was the last one. The program sees and changes
 * its own action as before. The next start uses the installed handler again.
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigpending(), in front of libc's: of the signal that we took, the program sees what is pending for itself. It may wait for what
 * it has seen, by functions that drop signals of ours (signal.c), and would wait for ever. Signal-safe.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "agent/interpose/interpose.h"
#include "agent/interpose/sampling_signal.h"
#include "frozen/raw.h"
#include "frozen/signal/handler.h"

void sf_interpose_pending(uint8_t *set, size_t size)
{
	const struct sf_interpose_hooks *hooks = atomic_load(&sf_interpose_hooks);
	const int signal = sf_handler.config.signal;
	const unsigned at = (unsigned)(signal - 1) / 8;
	const uint8_t bit = (uint8_t)(1u << (unsigned)(signal - 1) % 8);

	if (sf_agent_signal_is_ours(signal) && at < size && set[at] & bit && hooks && hooks->drop_sent())
		set[at] &= (uint8_t)~bit;
}

SF_INTERPOSED int sigpending(sigset_t *set)
{
	const long result = sf_interpose_result(sf_raw2(SYS_rt_sigpending, set, sizeof(uint64_t)));

	if (result == 0)
		sf_interpose_pending((uint8_t *)set, sizeof(uint64_t));
	return (int)result;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The clock that all times are on, and an alarm that ends a wait. */
#ifndef SF_OS_CLOCK_H
#define SF_OS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

uint64_t sf_now_ns(void);      /* CLOCK_MONOTONIC. Signal-safe. */
uint64_t sf_unix_now_ns(void); /* CLOCK_REALTIME. Signal-safe. */

/* How long this machine's CPUs have been idle, all together, in steps of 10 ms; 0: unknown. */
uint64_t sf_idle_ns(void);

void sf_sleep_until(uint64_t time_ns); /* or until a signal */

/*
 * The calling thread's alarm: from `time_ns` on, and then every 2 ms until it is set anew, a
 * blocking call of this thread returns with EINTR. 0 turns it off. One thread of a process may have
 * one.
 */
bool sf_alarm_open(struct sf_error *err);

/*
 * Calls fn(arg), and gives up on it (false) when the alarm rings meanwhile: for a system call that
 * does not return with EINTR but starts again by itself. `fn` makes that one call and nothing else;
 * when it is given up, whether the call was made is not known.
 */
bool sf_alarm_bound(void (*fn)(void *arg), void *arg);
void sf_alarm_set(uint64_t time_ns);
void sf_alarm_close(void);

/*
 * Installs a handler, for one delivery, for a signal that may reach a thread with an alarm. The alarm waits until the
 * handler has returned. Otherwise the alarm, which gives up a call, would end the handler too, and the signal would be
 * lost.
 */
void sf_alarm_handle_once(int signal_number, void (*handler)(int signal_number));

#endif

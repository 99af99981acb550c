/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which thread the holding thread has displaced from a CPU.
 *
 * A sample of CPU time is right on average only if it comes at a moment that the scheduler does not choose. The holding
 * thread gets a CPU as soon as it wakes, or when the thread that runs there leaves the kernel or goes to sleep. So where
 * it then finds a thread depends on what that thread did: calls that wait are seen too seldom.
 *
 * So the holding thread sleeps on the CPU on which a thread last ran, until a moment of its own. The timer's interrupt
 * comes on that CPU, and the kernel puts the holding thread in the place of the thread that runs there, at the end of its
 * system call at the latest. That thread has been displaced. Where it is now it also was at that moment: in that call, or
 * at that instruction. This holds also if it sleeps now: then it was in the call in which it sleeps.
 *
 * Of a thread that has left a CPU, and of the one that came in its place, the kernel has the same time (sf_task_turn_ns).
 *
 * For the holding thread.
 */
#ifndef SF_CAPTURE_PTRACE_DISPLACED_H
#define SF_CAPTURE_PTRACE_DISPLACED_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/ptrace/thread.h"

struct sf_displacement {
	bool     is_missing;   /* this kernel does not show what is needed */
	bool     is_aimed;     /* the holding thread is on the CPU of a thread, for the sleep to come */
	int32_t  tid;          /* that thread */
	uint64_t until_ns;     /* when that sleep ends */
	uint64_t wait_ns;      /* the holding thread's waits for a CPU, all together, before that sleep */
	uint64_t waited_ns;    /* its wait at the end of that sleep */
	uint64_t turn_ns;      /* when the holding thread came to the CPU, by its run queue's clock */
};

/* Before a sleep until until_ns: moves the holding thread, `self`, to the CPU on which `thread` last ran. */
void sf_displacement_aim(struct sf_displacement *displacement, const struct sf_task *self, struct sf_thread *thread, uint64_t until_ns);

/* After it. False: the holding thread slept on no CPU of a thread, or something else has woken it. */
bool sf_displacement_woke(struct sf_displacement *displacement, struct sf_task *self);

/* Whether this is the thread that was displaced. Its state is not looked at. */
bool sf_displacement_is_of(const struct sf_displacement *displacement, struct sf_thread *thread);

/*
 * Where the thread, which was displaced, must be now to have been there at that moment. The holding thread gets the CPU
 * at once, or at the end of the thread's system call. If it has waited for longer than a call takes, the thread is in a
 * long call, or the kernel let the thread run on: on a busy machine it does so for a thread that is owed CPU time, unless
 * the holding thread has a real-time priority (os/cpu.h).
 */
enum sf_displaced_place sf_displacement_place(const struct sf_displacement *displacement, const struct sf_thread *thread,
					      bool machine_is_busy);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of one thread's sleep (sleeps.h). Short sleeps and those that the cost limit passes over are put off: the
 * thread's next sample stands for them, too. A sleep that goes on has its sample when it is long enough, and is extended
 * then.
 *
 * Owned by the holding thread.
 */
#ifndef SF_CAPTURE_PERF_SLEEP_SAMPLE_H
#define SF_CAPTURE_PERF_SLEEP_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

struct sf_perf;
struct sf_thread;

/* The thread is on a CPU again at `time_ns`: sends the sample of its sleep, or adds what its sample does not stand for. */
void sf_perf_sleep_finish(struct sf_perf *perf, struct sf_thread *thread, uint64_t time_ns, uint64_t now_ns);

/*
 * The sleep goes on: sends its sample, up to `end_ns`. thread->sleep.has_sample says whether there is one. False: the
 * cost limit has no room for it as yet, and its record is kept.
 */
bool sf_perf_sleep_send_open(struct sf_perf *perf, struct sf_thread *thread, uint64_t end_ns, uint64_t now_ns);

/* The sleep has a sample and goes on: adds its time up to `end_ns`. */
void sf_perf_sleep_extend(struct sf_perf *perf, struct sf_thread *thread, uint64_t end_ns, uint64_t now_ns);

/* Forgets the sleep, and frees the copy of its record. */
void sf_perf_sleep_forget(struct sf_thread *thread);

/* What a walk has found of a shorter copy than the kernel's longest says nothing of later ones. */
void sf_perf_sleep_forget_cut(struct sf_thread *thread);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread that perf's engine watches, for tests of when it is held: the kernel's counts and words are replaced (--wrap).
 * Include cmocka.h first.
 */
#ifndef SF_TESTS_PERF_THREAD_H
#define SF_TESTS_PERF_THREAD_H

#include "capture/perf/perf.h"

#define MS UINT64_C(1000000)

static struct sf_perf perf;
static struct sf_thread thread;
static struct sf_task_run run;
static uint64_t now_ns;
static unsigned n_holds, n_displaced;
static bool sleeps;

bool __wrap_sf_task_run(const struct sf_task *task, struct sf_task_run *ret);
bool __wrap_sf_task_look(const struct sf_task *task, struct sf_task_look *ret);
void __wrap_sf_ptrace_hold(struct sf_capture *capture, struct sf_thread *held, uint64_t time_ns);
void __wrap_sf_ptrace_sample_displaced(struct sf_capture *capture, struct sf_thread *displaced, uint64_t time_ns);

bool __wrap_sf_task_run(const struct sf_task *task, struct sf_task_run *ret)
{
	(void)task;
	*ret = run;
	return true;
}

bool __wrap_sf_task_look(const struct sf_task *task, struct sf_task_look *ret)
{
	(void)task;
	*ret = (struct sf_task_look){ .state = sleeps ? SF_STATE_BLOCKED : SF_STATE_RUNNING };
	return true;
}

/* `begun`: the thread as it is at first. */
static int watch_thread(const struct sf_thread *begun)
{
	perf.base.watch.options = &perf.base.options;
	thread = *begun;
	run = thread.run;
	now_ns = 0;
	n_holds = n_displaced = 0;
	sleeps = false;
	return sf_vec_push(&perf.base.watch.threads, &thread) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	sf_vec_deinit(&perf.base.watch.threads);
	return 0;
}

#endif

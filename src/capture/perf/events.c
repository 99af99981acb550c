/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the perf events of a target, replaces them and closes them. */
#include "capture/perf/events.h"

#include <errno.h>
#include <unistd.h>

#include "capture/perf/allowed.h"
#include "os/clock.h"
#include "os/process.h"

#define MAX_LISTINGS 100 /* of threads that start others without end */

static void close_fds(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

void sf_perf_events_close(struct sf_perf_events *events)
{
	close_fds(events->fds.items, events->fds.n);
	close_fds(events->meters.items, events->meters.n);
	sf_vec_deinit(&events->fds);
	sf_vec_deinit(&events->meters);
	sf_perf_events_close_rings(events);
}

static struct sf_perf_event event_of(const struct sf_perf_events *events, int32_t tid, int cpu)
{
	return (struct sf_perf_event){
		.kind = events->kind, .tid = tid, .in_cgroup = events->cgroup != 0, .cpu = cpu,
		.stack_bytes = events->stack_bytes, .user_chain = events->user_chain, .children = events->children, .kernel = events->kernel,
		.type = events->type, .config = events->config, .each = events->each, .on_exec = events->on_exec && !events->waits,
	};
}

static int open_at(const struct sf_perf_events *events, int32_t tid, size_t i, uint32_t tracepoint)
{
	struct sf_perf_event event = event_of(events, tid, events->cpus[i]);
	const bool counts = events->enabled && !event.on_exec && !events->waits;
	int fd;

	event.tracepoint = tracepoint;
	event.period_ns = events->periods_ns[i];
	fd = sf_perf_open_event(&event);
	if (fd < 0 || ((!events->filter || sf_perf_set_filter(fd, events->filter)) && sf_perf_redirect(fd, events->owners[i]) &&
		       (!counts || sf_perf_enable(fd))))
		return fd;
	close(fd);
	return -1;
}

static int open_event(const struct sf_perf_events *events, int32_t tid, size_t i)
{
	return open_at(events, tid, i, events->tracepoint);
}

static int open_second(const struct sf_perf_events *events, int32_t tid, size_t i)
{
	return open_at(events, tid, i, events->second_tracepoint);
}

static int open_meter(const struct sf_perf_events *events, int32_t tid, size_t i)
{
	struct sf_perf_event event = event_of(events, tid, events->all ? events->cpus[i] : SF_PERF_ALL_CPUS);
	int fd;

	event.kind = SF_PERF_METER;
	fd = sf_perf_open_event(&event);
	if (fd >= 0 && events->enabled && !event.on_exec)
		sf_perf_enable(fd);
	return fd;
}

typedef int open_fn(const struct sf_perf_events *events, int32_t tid, size_t i);

/* Appends the `n` events of a thread to `fds`. False: refused; a thread that has ended is none. */
static bool open_all(const struct sf_perf_events *events, int32_t tid, open_fn *open_one, size_t n, struct sf_perf_fds *fds,
		     struct sf_error *err)
{
	for (size_t i = 0; i < n; i++) {
		const int fd = open_one(events, tid, i);

		if (fd < 0 && errno == ESRCH)
			return true;
		if (fd < 0 && errno == ENODEV)
			continue; /* the CPU is offline */
		if (fd < 0)
			return sf_perf_fail_open(tid, events->cpus[i], errno, err);
		if (!sf_vec_push(fds, fd)) {
			close(fd);
			return sf_fail_memory(err);
		}
	}
	return true;
}

/* Of all threads, too: SF_PERF_ALL_THREADS. Those that wait to take the place of others have meters already. */
static bool attach_thread(struct sf_perf_events *events, int32_t tid, struct sf_error *err)
{
	const bool is_metered = events->kind == SF_PERF_COUNTED && !events->waits;

	return (!is_metered || open_all(events, tid, open_meter, events->all ? events->n_cpus : 1, &events->meters, err)) &&
	       open_all(events, tid, open_event, events->n_cpus, &events->fds, err) &&
	       (!events->second_tracepoint || open_all(events, tid, open_second, events->n_cpus, &events->fds, err));
}

/* Attaches those that are not in `done` yet, and appends them to it. *more_ret: there were some. */
static bool attach_new(struct sf_perf_events *events, int32_t pid, struct sf_ids *done, bool *more_ret,
		       struct sf_error *err)
{
	struct sf_ids listed = { 0 };
	const size_t n_before = done->ids.n;
	bool fine = true;

	sf_process_threads(pid, &listed);
	for (size_t i = 0; fine && i < listed.ids.n; i++) {
		const int32_t tid = listed.ids.items[i];

		if (sf_ids_have(done, tid))
			continue;
		fine = sf_vec_push(&done->ids, tid) ? attach_thread(events, tid, err) : sf_fail_memory(err);
	}
	*more_ret = done->ids.n > n_before;
	sf_vec_deinit(&listed.ids);
	return fine;
}

/* A thread that starts while the others are listed has its parent's events, or is in the next list. */
static bool attach_process(struct sf_perf_events *events, int32_t pid, struct sf_error *err)
{
	struct sf_ids done = { 0 };
	bool more = true, fine = true;

	for (int i = 0; fine && more && i < MAX_LISTINGS; i++)
		fine = attach_new(events, pid, &done, &more, err);
	sf_vec_deinit(&done.ids);
	return fine;
}

/* What stands for all threads that are watched, where the CPUs are. */
static int32_t tid_of_all(const struct sf_perf_events *events)
{
	return events->cgroup ? events->cgroup : SF_PERF_ALL_THREADS;
}

bool sf_perf_events_attach(struct sf_perf_events *events, const int32_t *pids, size_t n, struct sf_error *err)
{
	if (events->all)
		return attach_thread(events, tid_of_all(events), err);
	for (size_t i = 0; i < n; i++) {
		if (!attach_process(events, pids[i], err))
			return false;
	}
	return true;
}

static void enable(const struct sf_perf_fds *fds, size_t first)
{
	for (size_t i = first; i < fds->n; i++)
		sf_perf_enable(fds->items[i]);
}

static void disable(const struct sf_perf_fds *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sf_perf_disable(fds->items[i]);
}

/* The meters count whatever there is a sample of. */
void sf_perf_events_enable(struct sf_perf_events *events)
{
	events->enabled = true;
	enable(&events->meters, 0);
	enable(&events->fds, 0);
}

void sf_perf_events_disable(struct sf_perf_events *events)
{
	events->enabled = false;
	disable(&events->fds, events->fds.n);
	disable(&events->meters, events->meters.n);
}

uint64_t sf_perf_events_counted(const struct sf_perf_events *events)
{
	uint64_t sum = events->counted_before, count;

	for (size_t i = 0; i < events->meters.n; i++)
		sum += sf_perf_count(events->meters.items[i], &count) ? count : 0;
	return sum;
}

/* No event is in two samples: the new ones begin when the old ones have ended. */
static void hand_over(struct sf_perf_events *events, size_t n_old)
{
	disable(&events->fds, n_old);
	events->renewed_ns = sf_now_ns();
	events->each_before = events->each;
	if (events->enabled)
		enable(&events->fds, n_old);
}

/* The events behind the first `n_old` take the place of those; not `fine`: they are closed. */
static bool replace(struct sf_perf_events *events, size_t n_old, bool fine)
{
	const size_t n_new = events->fds.n - n_old;

	if (!fine || !n_new) {
		close_fds(events->fds.items + n_old, n_new);
		events->fds.n = n_old;
		return false;
	}
	if (events->kind == SF_PERF_COUNTED)
		hand_over(events, n_old);
	close_fds(events->fds.items, n_old);
	for (size_t i = 0; i < n_new; i++)
		events->fds.items[i] = events->fds.items[n_old + i];
	events->fds.n = n_new;
	return true;
}

/* Opens the events of all threads anew, in the place of those that are open. */
static bool renew(struct sf_perf_events *events, const int32_t *pids, size_t n, struct sf_error *err)
{
	const size_t n_old = events->fds.n;
	bool fine;

	events->waits = events->kind == SF_PERF_COUNTED;
	fine = replace(events, n_old, sf_perf_events_attach(events, pids, n, err));
	events->waits = false;
	return fine;
}

bool sf_perf_events_set_each(struct sf_perf_events *events, uint64_t each, const int32_t *pids, size_t n, struct sf_error *err)
{
	const uint64_t before = events->each;

	events->each = each;
	if (!renew(events, pids, n, err)) {
		events->each = before;
		return false;
	}
	events->each_before = before;
	return true;
}

bool sf_perf_events_resize(struct sf_perf_events *events, uint32_t bytes, const int32_t *pids, size_t n, struct sf_error *err)
{
	const uint32_t before = events->stack_bytes;

	if (bytes < before)
		events->stack_bytes = bytes;
	else
		sf_perf_events_make_room(events, bytes);
	if (events->stack_bytes == before)
		return true;
	if (!renew(events, pids, n, err)) {
		events->stack_bytes = before;
		return false;
	}
	return true;
}

bool sf_perf_events_add_chain(struct sf_perf_events *events, const int32_t *pids, size_t n, struct sf_error *err)
{
	if (events->user_chain)
		return true;
	events->user_chain = true;
	if (!renew(events, pids, n, err)) {
		events->user_chain = false;
		return false;
	}
	return true;
}

bool sf_perf_events_refine(struct sf_perf_events *events, uint64_t period_ns, const int32_t *pids, size_t n, struct sf_error *err)
{
	const uint64_t before_ns = events->period_ns;
	const uint32_t bytes = events->stack_bytes;

	sf_perf_events_set_period(events, period_ns);
	if (renew(events, pids, n, err))
		return true;
	sf_perf_events_set_period(events, before_ns);
	events->stack_bytes = bytes;
	return false;
}

/* Those of the CPUs: each counts what runs on its own one, until that goes offline. */
static bool renew_meters(struct sf_perf_events *events, struct sf_error *err)
{
	if (events->kind != SF_PERF_COUNTED || !events->all)
		return true;
	events->counted_before = sf_perf_events_counted(events);
	close_fds(events->meters.items, events->meters.n);
	events->meters.n = 0;
	return open_all(events, tid_of_all(events), open_meter, events->n_cpus, &events->meters, err);
}

bool sf_perf_events_follow_cpus(struct sf_perf_events *events, const int32_t *pids, size_t n, struct sf_error *err)
{
	bool fine;

	if (!events->fds.n)
		return true;
	fine = sf_perf_events_add_rings(events, err);
	fine &= renew_meters(events, err);
	return renew(events, pids, n, err) && fine;
}

bool sf_perf_events_widen(struct sf_perf_events *events, struct sf_error *err)
{
	const size_t n_old = events->fds.n;

	events->all = replace(events, n_old, attach_thread(events, SF_PERF_ALL_THREADS, err));
	return events->all;
}

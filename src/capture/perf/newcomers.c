/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that have no sample yet. */
#include "capture/perf/newcomers.h"

#include <stdbool.h>
#include <string.h>

#include "base/search.h"

#define MAX_DEPTH 64 /* ancestors: ids that were given again may make a circle */

/* The place of the first one whose pid is not smaller. New pids are mostly the largest. */
static size_t place_of(const struct sf_perf_newcomers *newcomers, int32_t pid)
{
	return sf_count_before(newcomers->known.n, i, newcomers->known.items[i].pid < pid);
}

static struct sf_perf_newcomer *find(const struct sf_perf_newcomers *newcomers, int32_t pid)
{
	const size_t at = place_of(newcomers, pid);

	return at < newcomers->known.n && newcomers->known.items[at].pid == pid ? &newcomers->known.items[at] : NULL;
}

const struct sf_perf_newcomer *sf_perf_newcomers_find(const struct sf_perf_newcomers *newcomers, int32_t pid)
{
	return find(newcomers, pid);
}

static void forget(struct sf_perf_newcomers *newcomers, struct sf_perf_newcomer *newcomer)
{
	const size_t at = (size_t)(newcomer - newcomers->known.items);

	memmove(newcomer, newcomer + 1, (--newcomers->known.n - at) * sizeof(*newcomer));
}

/* A part at once: each time, the others are moved. */
static void drop_some(struct sf_perf_newcomers *newcomers)
{
	const size_t n = newcomers->known.n / 8;

	newcomers->known.n -= n;
	newcomers->n_dropped += n;
	memmove(newcomers->known.items, newcomers->known.items + n, newcomers->known.n * sizeof(newcomers->known.items[0]));
}

/* NULL: no memory. */
static struct sf_perf_newcomer *add(struct sf_perf_newcomers *newcomers, int32_t pid)
{
	struct sf_perf_newcomer *found = find(newcomers, pid);
	size_t at;

	if (found)
		return found;
	if (newcomers->known.n >= SF_PERF_MAX_NEWCOMERS)
		drop_some(newcomers);
	at = place_of(newcomers, pid);
	if (!sf_vec_push(&newcomers->known, (struct sf_perf_newcomer){ 0 }))
		return NULL;
	found = &newcomers->known.items[at];
	memmove(found + 1, found, (newcomers->known.n - 1 - at) * sizeof(*found));
	*found = (struct sf_perf_newcomer){ .pid = pid };
	return found;
}

static void set_name(struct sf_perf_newcomer *newcomer, const char *name)
{
	memset(newcomer->name, 0, sizeof(newcomer->name));
	memccpy(newcomer->name, name, 0, sizeof(newcomer->name) - 1);
}

/* An id may be given again: what another process had under it counts no more. */
void sf_perf_newcomers_fork(struct sf_perf_newcomers *newcomers, int32_t pid, int32_t parent, const char *name, uint64_t time_ns)
{
	struct sf_perf_newcomer *newcomer = add(newcomers, pid);

	if (!newcomer)
		return;
	*newcomer = (struct sf_perf_newcomer){ .pid = pid, .parent = parent, .began_ns = time_ns };
	set_name(newcomer, name);
}

void sf_perf_newcomers_exec(struct sf_perf_newcomers *newcomers, int32_t pid, const char *name, uint64_t time_ns)
{
	struct sf_perf_newcomer *newcomer = add(newcomers, pid);

	if (!newcomer)
		return;
	if (!newcomer->first_exec_ns || time_ns < newcomer->first_exec_ns)
		newcomer->first_exec_ns = time_ns;
	if (time_ns < newcomer->exec_ns)
		return;
	newcomer->exec_ns = time_ns;
	set_name(newcomer, name);
}

void sf_perf_newcomers_take(struct sf_perf_newcomers *newcomers, int32_t pid, struct sf_perf_newcomer *ret)
{
	struct sf_perf_newcomer *newcomer = find(newcomers, pid);

	*ret = newcomer ? *newcomer : (struct sf_perf_newcomer){ .pid = pid };
	if (newcomer)
		forget(newcomers, newcomer);
}

static bool had_program(const struct sf_perf_newcomer *newcomer, uint64_t time_ns)
{
	return newcomer->first_exec_ns && newcomer->first_exec_ns <= time_ns;
}

int32_t sf_perf_newcomers_origin(const struct sf_perf_newcomers *newcomers, const struct sf_perf_newcomer *of)
{
	const struct sf_perf_newcomer *parent = find(newcomers, of->parent);
	uint64_t began_ns = of->began_ns;
	int32_t origin = of->parent;

	for (unsigned i = 0; i < MAX_DEPTH && parent && parent->parent && !had_program(parent, began_ns); i++) {
		began_ns = parent->began_ns;
		origin = parent->parent;
		parent = find(newcomers, origin);
	}
	return origin;
}

void sf_perf_newcomers_exit(struct sf_perf_newcomers *newcomers, int32_t pid, uint64_t time_ns)
{
	(void)sf_vec_push(&newcomers->ended, ((struct sf_perf_ended){ pid, time_ns }));
}

int32_t sf_perf_newcomers_next_ended(struct sf_perf_newcomers *newcomers, uint64_t before_ns)
{
	const struct sf_perf_ended ended = newcomers->ended.n ? newcomers->ended.items[0] : (struct sf_perf_ended){ 0 };
	struct sf_perf_newcomer *newcomer;

	if (!ended.pid || ended.time_ns >= before_ns)
		return 0;
	memmove(newcomers->ended.items, newcomers->ended.items + 1, --newcomers->ended.n * sizeof(ended));
	newcomer = find(newcomers, ended.pid);
	if (newcomer)
		forget(newcomers, newcomer);
	return ended.pid;
}

void sf_perf_newcomers_deinit(struct sf_perf_newcomers *newcomers)
{
	sf_vec_deinit(&newcomers->known);
	sf_vec_deinit(&newcomers->ended);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that need a profiler, and its life: it comes up, gets its event mask, and detaches. Where none comes up: why. */
#include "agent/coreclr/clr_profiler.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/libc/fork_lock.h"
#include "agent/threads/note.h"
#include "runtime/coreclr/load.h"
#include "runtime/coreclr/profiler_id.h"

/*
 * Until the runtime's first look whether the profiler is out of use. Its next look comes five seconds later (CoreCLR:
 * vm/profdetach.cpp), so the first one should not come while the runtime is still leaving the calls that end the
 * profile.
 */
#define DETACH_MS 200
#define MAX_LEAVING 8
#define MAX_NOTE 256

/*
 * `lock` protects all but the arrays, which the runtime's threads use without it. It is held for no call that waits for
 * another thread, except `leaves`. RequestProfilerDetach waits: for the lock under which the runtime calls
 * ProfilerDetachSucceeded (CoreCLR: vm/profdetach.cpp).
 */
static pthread_mutex_t *const lock = &sf_fork_mutexes[SF_FORK_RUNTIME];
static const struct sf_clr_part *_Atomic parts[SF_CLR_MAX_PARTS];
static struct sf_clr_info *info;     /* NULL: the profiler is not up */
/* Of profilers that the runtime is detaching; NULL: a free place. */
static struct sf_clr_info *_Atomic leaving[MAX_LEAVING];
static int32_t arrival;              /* the HRESULT of setting the events, where the profiler could not come up */
static bool expected;                /* a runtime that starts is about to call sf_clr_profiler_arrive */
static pid_t owner;                  /* whose profiler it is: a forked child has none */

const struct sf_clr_part *sf_clr_profiler_part(unsigned i)
{
	return atomic_load_explicit(&parts[i], memory_order_acquire);
}

/* --- parts --- */

static bool replace(const struct sf_clr_part *from, const struct sf_clr_part *to)
{
	for (unsigned i = 0; i < SF_CLR_MAX_PARTS; i++) {
		if (sf_clr_profiler_part(i) != from)
			continue;
		atomic_store_explicit(&parts[i], to, memory_order_release);
		return true;
	}
	return false;
}

static bool are_there_any(void)
{
	bool any = false;

	for (unsigned i = 0; i < SF_CLR_MAX_PARTS; i++)
		any |= sf_clr_profiler_part(i) != NULL;
	return any;
}

bool sf_clr_profiler_is_main(void)
{
	bool any = false;

	for (unsigned i = 0; i < SF_CLR_MAX_PARTS; i++) {
		const struct sf_clr_part *part = sf_clr_profiler_part(i);

		any |= part && part->is_main;
	}
	return any;
}

static int32_t set_events(struct sf_clr_info *of)
{
	uint32_t low = 0, high = 0;

	for (unsigned i = 0; i < SF_CLR_MAX_PARTS; i++) {
		const struct sf_clr_part *part = sf_clr_profiler_part(i);

		low |= part ? part->events_low : 0;
		high |= part ? part->events_high : 0;
	}
	return sf_clr_set_events(of, low, high);
}

static void come_up(const struct sf_clr_part *part)
{
	if (part && part->came_up)
		part->came_up(info);
}

static void leave(const struct sf_clr_part *part)
{
	if (part && part->leaves)
		part->leaves(info);
}

/* --- what the runtime calls --- */

static int32_t take(struct sf_clr_unknown *unknown)
{
	void *found = NULL;
	int32_t result = sf_clr_query(unknown, sf_clr_info_12, &found);

	if (result >= 0)
		result = set_events(found);
	if (result < 0) {
		if (found)
			sf_clr_release(found);
		return result;
	}
	info = found;
	owner = getpid();
	for (unsigned i = 0; i < SF_CLR_MAX_PARTS; i++)
		come_up(sf_clr_profiler_part(i));
	return SF_CLR_OK;
}

void sf_clr_profiler_expect(void)
{
	expected = true;
}

int32_t sf_clr_profiler_arrive(struct sf_clr_unknown *unknown)
{
	int32_t result = SF_CLR_PROFILER_DECLINES;

	pthread_mutex_lock(lock);
	expected = false;
	if (!info && are_there_any())
		arrival = result = take(unknown);
	pthread_mutex_unlock(lock);
	return result;
}

void sf_clr_profiler_shut_down(void)
{
	pthread_mutex_lock(lock);
	for (unsigned i = 0; info && i < SF_CLR_MAX_PARTS; i++)
		leave(sf_clr_profiler_part(i));
	info = NULL;
	pthread_mutex_unlock(lock);
}

/* Any of the profilers that leave is released: the runtime calls none of them any more. */
void sf_clr_profiler_detached(void)
{
	for (unsigned i = 0; i < MAX_LEAVING; i++) {
		struct sf_clr_info *of = atomic_exchange(&leaving[i], NULL);

		if (!of)
			continue;
		sf_clr_release(of);
		return;
	}
}

/* --- begin --- */

static bool attach(struct sf_error *err)
{
	if (!sf_clr_attach_self("libstillframe-agent", err))
		return false;
	return sf_clr_profiler_is_up() ||
	       sf_fail(err, SF_E_UNSUPPORTED, "the .NET runtime took the agent as a profiler and let go of it: error 0x%08x",
		       (uint32_t)arrival);
}

static bool is_up(void)
{
	return info && owner == getpid();
}

/* The profiler is up already: it gets the events of one part more. */
static bool join(const struct sf_clr_part *part, struct sf_error *err)
{
	const int32_t result = set_events(info);

	if (result < 0)
		return sf_fail(err, SF_E_UNSUPPORTED, "the .NET runtime refuses the events of a profiler: error 0x%08x",
			       (uint32_t)result);
	come_up(part);
	return true;
}

static bool begin(const struct sf_clr_part *part, bool *attaches_ret, struct sf_error *err)
{
	const bool has_started = is_up() || (!expected && sf_clr_is_in(getpid()));

	*attaches_ret = false;
	if (part->is_main && has_started)
		return sf_fail(err, SF_E_UNSUPPORTED, "the .NET runtime has started, and only the profiler that it starts with may set hooks");
	if (!replace(NULL, part))
		return sf_fail(err, SF_E_UNSUPPORTED, "too many parts of the agent need a .NET profiler");
	*attaches_ret = has_started && !is_up();
	if (!is_up() || join(part, err))
		return true;
	replace(part, NULL);
	return false;
}

bool sf_clr_profiler_begin(const struct sf_clr_part *part, struct sf_error *err)
{
	bool attaches, ok;

	pthread_mutex_lock(lock);
	ok = begin(part, &attaches, err);
	pthread_mutex_unlock(lock);
	if (!ok || !attaches || attach(err))
		return ok;
	sf_clr_profiler_end(part); /* a late answer finds no part */
	return false;
}

/* --- end --- */

/* Its place among those that leave, NULL: they are too many, and this one is never released. */
static struct sf_clr_info *_Atomic *expect_detached(struct sf_clr_info *of)
{
	for (unsigned i = 0; i < MAX_LEAVING; i++) {
		struct sf_clr_info *none = NULL;

		if (atomic_compare_exchange_strong(&leaving[i], &none, of))
			return &leaving[i];
	}
	return NULL;
}

/* A runtime that refuses keeps a profiler without events, which the next profile uses. */
static void keep(struct sf_clr_info *of)
{
	pthread_mutex_lock(lock);
	if (!info)
		info = of;
	pthread_mutex_unlock(lock);
}

/* Without the lock. The runtime may say that it has detached the profiler before it returns. */
static void detach(struct sf_clr_info *of)
{
	struct sf_clr_info *_Atomic *place = expect_detached(of);
	struct sf_clr_info *still = of;

	if (sf_clr_request_detach(of, DETACH_MS) >= 0)
		return;
	if (!place || atomic_compare_exchange_strong(place, &still, NULL))
		keep(of);
}

/* The profiler that is to detach, NULL: none. */
static struct sf_clr_info *end(const struct sf_clr_part *part)
{
	struct sf_clr_info *of = info;

	if (!replace(part, NULL) || !is_up())
		return NULL;
	leave(part);
	set_events(of);
	if (are_there_any())
		return NULL;
	info = NULL;
	return of;
}

void sf_clr_profiler_end(const struct sf_clr_part *part)
{
	struct sf_clr_info *of;

	pthread_mutex_lock(lock);
	of = end(part);
	pthread_mutex_unlock(lock);
	if (of)
		detach(of);
}

bool sf_clr_profiler_is_up(void)
{
	bool result;

	pthread_mutex_lock(lock);
	result = is_up();
	pthread_mutex_unlock(lock);
	return result;
}

/* --- why none came up: a runtime that does not load a profiler prints nothing --- */

static bool is_set_to(const char *variable, const char *value)
{
	const char *found = getenv(variable);

	return found && strcmp(found, value) == 0;
}

/* In the order in which a reason counts. */
static const char *reason(void)
{
	if (!sf_clr_is_in(getpid()))
		return "there was none in the process";
	if (is_set_to("DOTNET_EnableDiagnostics", "0"))
		return "DOTNET_EnableDiagnostics=0 forbids profilers";
	if (is_set_to("DOTNET_EnableDiagnostics_Profiler", "0"))
		return "DOTNET_EnableDiagnostics_Profiler=0 forbids profilers";
	if (!is_set_to("CORECLR_ENABLE_NOTIFICATION_PROFILERS", "1") && !is_set_to("CORECLR_ENABLE_PROFILING", "1"))
		return "it started without the variables by which it loads the agent, and after the profile";
	return "it did not load the agent as a profiler, and does not say why";
}

void sf_clr_profiler_note_absence(const char *consequence)
{
	char text[MAX_NOTE];

	snprintf(text, sizeof(text), "%s: %s", consequence, reason());
	sf_note(text);
}

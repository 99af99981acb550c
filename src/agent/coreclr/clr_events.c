/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session of EventPipe from inside, with the one event that is sampled. The runtime delivers each to the profiler on the
 * thread on which it happens, before that thread goes on (CoreCLR: ep-session.c, EP_SESSION_TYPE_SYNCHRONOUS), and walks no
 * stack for it. That thread may hold locks of the runtime, and may be one that no collection can wait for: so nothing here
 * calls the runtime, allocates, or takes a lock.
 */
#include "agent/coreclr/clr_events.h"

#include <stdatomic.h>
#include <string.h>

#include "agent/coreclr/clr_profiler.h"
#include "agent/threads/events.h"
#include "frozen/runtime_list.h"
#include "runtime/coreclr/events.h"
#include "runtime/coreclr/load.h"
#include "runtime/coreclr/utf16.h"

#define MAX_PROVIDER 64

_Static_assert(SF_EVENT_TEXT >= SF_CLR_MAX_LABEL, "a label has room for the value");

static const struct sf_clr_event_kind *_Atomic wanted; /* NULL: none */
static uint64_t session;                                /* 0: none; changed by came_up and leaves only */
static bool ends;                                       /* the profile ends, and not the runtime */
static bool came;                                       /* the profiler came up in this profile */
static int32_t refused;                                 /* the HRESULT, where the session could not be started */

/* --- an event --- */

struct occurrence {
	const struct sf_clr_event_kind *kind;
	const struct sf_clr_event *event;
};

static void write_number(uint64_t number, char ret[SF_AGENT_EVENT_NUMBER])
{
	char digits[SF_AGENT_EVENT_NUMBER];
	unsigned n = 0;

	do
		digits[n++] = (char)('0' + number % 10);
	while ((number /= 10) != 0);
	for (unsigned i = 0; i < n; i++)
		ret[i] = digits[n - 1 - i];
	ret[n] = 0;
}

static void describe(const void *arg, struct sf_agent_event_label *ret)
{
	const struct occurrence *seen = arg;
	const uint64_t size = sf_clr_event_size(seen->kind, seen->event->data, seen->event->size);

	sf_clr_event_label(seen->kind, seen->event->data, seen->event->size, ret->value);
	ret->key = *ret->value ? seen->kind->key : NULL;
	ret->value_size = (uint16_t)strlen(ret->value);
	if (size) {
		ret->second_key = "size";
		write_number(size, ret->second_value);
	}
}

/* The session has other events of the same keywords, too. */
static void event_delivered(const struct sf_clr_event *event)
{
	const struct sf_clr_event_kind *kind = atomic_load_explicit(&wanted, memory_order_acquire);
	const struct occurrence seen = { kind, event };
	const uint64_t amount = kind && event->id == kind->id ? sf_clr_event_amount(kind, event->data, event->size) : 0;

	if (amount)
		sf_agent_event(amount, describe, &seen);
}

/* --- the session --- */

static void came_up(struct sf_clr_info *info)
{
	const struct sf_clr_event_kind *kind = atomic_load(&wanted);
	uint16_t provider[MAX_PROVIDER];
	struct sf_clr_provider config = { .name = provider, .keywords = kind->keywords, .level = kind->level };

	came = true;
	sf_clr_write_utf16(SF_CLR_PROVIDER, provider, MAX_PROVIDER);
	refused = sf_clr_start_session(info, 1, &config, 0, &session);
	if (refused < 0)
		session = 0;
}

/* Where the runtime ends, its sessions end with it, and nobody is left to ask. */
static void leaves(struct sf_clr_info *info)
{
	(void)info;
	if (session && ends)
		sf_clr_stop_own_session(session);
	session = 0;
}

static const struct sf_clr_part part = {
	.events_high = SF_CLR_HIGH_MONITOR_EVENT_PIPE,
	.came_up = came_up,
	.leaves = leaves,
	.event_delivered = event_delivered,
};

/* --- the profile --- */

bool sf_clr_events_begin(const struct sf_agent_options *options, struct sf_error *err)
{
	const struct sf_runtime_event_choice *choice = &options->wanted_event;

	came = false;
	refused = 0;
	atomic_store(&wanted, NULL); /* a forked child has its parent's */
	if (!choice->event || choice->slot != SF_RUNTIME_CORECLR)
		return true;
	atomic_store(&wanted, sf_clr_event_kind(choice->place));
	if (!sf_clr_profiler_begin(&part, err))
		return false;
	if (refused >= 0)
		return true;
	return sf_fail(err, SF_E_UNSUPPORTED, "the .NET runtime does not start a session of events: error 0x%08x", (uint32_t)refused);
}

void sf_clr_events_stop(void)
{
	if (atomic_load(&wanted) && !came)
		sf_clr_profiler_note_absence("no .NET runtime reported an event");
}

void sf_clr_events_end(void)
{
	ends = true;
	sf_clr_profiler_end(&part);
	ends = false;
	atomic_store(&wanted, NULL);
}

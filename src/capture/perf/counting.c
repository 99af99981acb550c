/* SPDX-License-Identifier: Apache-2.0 */
/* Gives the samples of an event their weights, adds them up, and decides how many events there are for one sample. */
#include "capture/perf/counting.h"

#include "capture/engine.h"
#include "capture/perf/perf.h"

#define NS_PER_S UINT64_C(1000000000)
#define BURST 1000                      /* samples that come at once are let through: what one ring holds */
#define STEP_MIN 4                      /* the number rises by this factor at least: each change loses some events */
#define STEP_PART 100                   /* and by one of so many parts of the samples at the most: a short burst says little */
#define PAUSE_FIRST_NS UINT64_C(1000000000)
#define PAUSE_MAX_NS UINT64_C(16000000000)
#define ROOM 8                          /* the number falls where there are so many times fewer samples than may be ... */
#define AIM 2                           /* ... to where there would be one of so many parts */
#define MAX_EACH (UINT64_C(1) << 40)

/* --- the pace --- */

void sf_perf_pace_begin(struct sf_perf_pace *pace, uint64_t least, uint64_t most, uint64_t now_ns)
{
	*pace = (struct sf_perf_pace){ .least = least, .most = most ? most : 1, .since_ns = now_ns, .pause_ns = PAUSE_FIRST_NS };
}

static void begin_anew(struct sf_perf_pace *pace, uint64_t now_ns)
{
	pace->n = 0;
	pace->since_ns = now_ns;
}

static uint64_t raise(const struct sf_perf_pace *pace, uint64_t each, uint64_t allowed)
{
	const uint64_t most = pace->n / STEP_PART;
	uint64_t factor = pace->n / (allowed + 1);

	factor = factor > most ? most : factor;
	factor = factor < STEP_MIN ? STEP_MIN : factor;
	return each > MAX_EACH / factor ? each : each * factor;
}

/* `allowed` is of the time since the last change. */
static uint64_t lower(const struct sf_perf_pace *pace, uint64_t each, uint64_t allowed)
{
	const uint64_t wanted = (uint64_t)((unsigned __int128)each * (pace->n + 1) * AIM / allowed);

	return wanted < pace->least ? pace->least : wanted;
}

uint64_t sf_perf_pace_look(struct sf_perf_pace *pace, uint64_t each, uint64_t n, uint64_t now_ns)
{
	const uint64_t passed_ns = now_ns - pace->since_ns;
	const uint64_t allowed = (uint64_t)((unsigned __int128)pace->most * passed_ns / 1000000000);

	pace->n += n;
	if (pace->n > allowed + BURST || (passed_ns >= pace->pause_ns && pace->n > allowed)) {
		each = raise(pace, each, allowed);
		begin_anew(pace, now_ns);
	} else if (passed_ns >= pace->pause_ns && each > pace->least && pace->n * ROOM < allowed) {
		each = lower(pace, each, allowed);
		pace->pause_ns = pace->pause_ns < PAUSE_MAX_NS ? 2 * pace->pause_ns : PAUSE_MAX_NS;
		begin_anew(pace, now_ns);
	} else if (passed_ns >= pace->pause_ns) {
		begin_anew(pace, now_ns);
	}
	return each;
}

/* --- samples and their sum --- */

bool sf_perf_counting_open(struct sf_perf *perf, struct sf_error *err)
{
	struct sf_perf_counting *counting = &perf->counting;
	struct sf_perf_named_event *event = &counting->event;
	const char *wanted = sf_setting_event(perf->base.options.settings);

	if (!wanted)
		return true;
	if (!sf_perf_event_parse(wanted, event, err) || !sf_perf_event_find(event, perf->events.kernel, err))
		return false;
	counting->on = true;
	perf->events.kind = SF_PERF_COUNTED;
	perf->events.type = event->type;
	perf->events.config = event->config;
	perf->events.each = event->each ? event->each : event->least;
	perf->events.on_exec = perf->base.options.child != 0;
	perf->widening.refused = true;
	return true;
}

void sf_perf_counting_begin(struct sf_perf *perf, uint64_t now_ns)
{
	const uint64_t period_ns = perf->base.period_ns ? perf->base.period_ns : NS_PER_S;

	if (!perf->counting.on)
		return;
	sf_relay_leave_out_times(perf->base.relay);
	sf_perf_pace_begin(&perf->counting.pace, perf->counting.event.least, NS_PER_S * perf->events.n_cpus / period_ns, now_ns);
}

/* The number of events for which the record stands, also if it was written before the last change of the pace. */
static uint64_t events_of(const struct sf_perf *perf, const struct sf_perf_record *record)
{
	return record->time_ns < perf->events.renewed_ns ? perf->events.each_before : perf->events.each;
}

/* The idle task, and what is not watched: its events are in the kernel's count, and no loss. */
static bool is_other(const struct sf_perf *perf, const struct sf_perf_record *record, const struct sf_thread *thread)
{
	if (thread)
		return !thread->watched || thread->is_refused;
	return record->pid == 0 || !sf_perf_concerns(perf, record->pid) || sf_watch_is_refused(&perf->base.watch, record->pid);
}

/* Its events go to the thread's next sample, or at its end to its last one. */
static void pass_over(struct sf_thread *thread, const struct sf_weight *weight)
{
	thread->batch.passed.amount += weight->amount;
	thread->batch.passed.ticks += weight->ticks;
}

void sf_perf_counting_sample(struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record)
{
	struct sf_perf_counting *counting = &perf->counting;
	struct sf_weight weight = { .amount = events_of(perf, record), .ticks = 1 };

	counting->n++;
	if (is_other(perf, record, thread)) {
		counting->others += weight.amount;
		return;
	}
	counting->seen += weight.amount;
	if (!thread) { /* its id was another one's until now */
		sf_relay_loss(perf->base.relay, NULL, SF_LOSS_GONE, &weight);
		return;
	}
	pass_over(thread, &weight);
	if (!thread->batch.n || !sf_perf_budget_has_room(&perf->budget, record->time_ns))
		return;
	thread->batch.n--;
	if (!sf_perf_send_event(perf, thread, record, &thread->batch.passed))
		return;
	thread->batch.passed = (struct sf_weight){ 0 };
	perf->n_samples++;
}

void sf_perf_counting_lost(struct sf_perf *perf, const struct sf_perf_record *record)
{
	perf->counting.n += record->n_lost;
	perf->counting.n_no_room += record->n_lost;
	perf->counting.no_room += record->n_lost * events_of(perf, record);
}

uint64_t sf_perf_counting_pace(struct sf_perf *perf, uint64_t now_ns)
{
	struct sf_perf_counting *counting = &perf->counting;
	const uint64_t n = counting->n - counting->n_before;

	if (!counting->on || counting->event.each)
		return perf->events.each;
	counting->n_before = counting->n;
	return sf_perf_pace_look(&counting->pace, perf->events.each, n, now_ns);
}

/* The missing events. As many of them as the lost records stand for are lost for want of room in the rings. */
static void lose_missing(struct sf_perf *perf, uint64_t missing)
{
	const struct sf_perf_counting *counting = &perf->counting;
	struct sf_weight no_room = { .amount = counting->no_room < missing ? counting->no_room : missing };
	struct sf_weight rest = { .amount = missing - no_room.amount };

	no_room.ticks =
		counting->no_room
			? (uint32_t)((unsigned __int128)counting->n_no_room * no_room.amount / counting->no_room)
			: 0;
	sf_relay_loss(perf->base.relay, NULL, SF_LOSS_RING_FULL, &no_room);
	sf_relay_loss(perf->base.relay, NULL, SF_LOSS_REST, &rest);
}

/* Whose the missing events were is not known: the part of what is watched is taken to be that which it has of the samples. */
void sf_perf_counting_end(struct sf_perf *perf)
{
	struct sf_perf_counting *counting = &perf->counting;
	const uint64_t counted = sf_perf_events_counted(&perf->events), known = counting->seen + counting->others;
	uint64_t missing = counted > known ? counted - known : 0;

	if (counting->others)
		missing = (uint64_t)((unsigned __int128)missing * counting->seen / known);
	lose_missing(perf, missing);
	counting->counted = counting->seen + missing;
}

bool sf_perf_counting_report(const struct sf_perf *perf, const struct sf_sink *sink, bool over, struct sf_error *err)
{
	const struct sf_measure measure = {
		.name = perf->counting.event.name, .unit = "events", .is_counted = over, .counted = perf->counting.counted,
	};

	return !perf->counting.on || !sink->measure || sink->measure(sink->arg, &measure, err);
}

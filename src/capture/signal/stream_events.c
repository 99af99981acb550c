/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a runtime's events: what is measured, samples with an amount and a label, and losses. Hostile input. */
#include "capture/signal/stream_feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* The first measure of all feeds holds: an agent that names another one has run wild. */
static bool is_measured(struct sf_feed *feed, const struct sf_sink *sink, const char *name, const char *unit, struct sf_error *err)
{
	struct sf_feeds *feeds = feed->feeds;
	const struct sf_measure measure = { .name = name, .unit = unit };

	if (*feeds->measure)
		return strcmp(feeds->measure, name) == 0 || sf_fail(err, SF_E_INPUT, "process %d counts another event than it was told to", feed->pid);
	snprintf(feeds->measure, sizeof(feeds->measure), "%s", name);
	snprintf(feeds->unit, sizeof(feeds->unit), "%s", unit);
	return !sink->measure || sink->measure(sink->arg, &measure, err);
}

bool sf_feed_measure(struct sf_feed *feed, const struct sf_sink *sink,
			 const struct sf_record_header *record, struct sf_error *err)
{
	const struct sf_stream_measure *measure = (const void *)record;
	char name[sizeof(feed->feeds->measure)], unit[sizeof(feed->feeds->unit)];

	if (feed->left_out)
		return true;
	snprintf(name, sizeof(name), "%.*s", measure->name_size, measure->text);
	snprintf(unit, sizeof(unit), "%.*s", measure->unit_size, measure->text + measure->name_size);
	if (!*name || !is_measured(feed, sink, name, unit, err))
		return !*name;
	if (!measure->is_counted) {
		feed->feeds->n_counting++;
		return true;
	}
	feed->feeds->n_counted++;
	feed->feeds->counted += measure->counted;
	return feed->feeds->counted <= SF_FEED_MAX_SUM || sf_fail(err, SF_E_INPUT, "the events of process %d add up to more than there can be", feed->pid);
}

/* An amount of the measure, and one tick. */
static bool weigh_event(struct sf_feed *feed, struct sf_weight *ret, uint64_t amount, struct sf_error *err)
{
	if (!sf_feed_weigh(feed, NULL, ret, 0, 0, 1, err))
		return false;
	ret->amount = amount;
	feed->amount += amount;
	return feed->amount <= SF_FEED_MAX_SUM || sf_fail(err, SF_E_INPUT, "the events of process %d add up to more than there can be", feed->pid);
}

/* Whether samples may carry this label: one that they carry already, or one that has room. */
static bool may_label(struct sf_feed *feed, const char *text, size_t size)
{
	if (!feed->event_labels)
		feed->event_labels = sf_intern_create();
	if (!feed->event_labels || sf_intern_find(feed->event_labels, text, size))
		return feed->event_labels != NULL;
	return sf_feed_take_room(feed, SF_FEED_LABELS, 1) && sf_feed_take_room(feed, SF_FEED_LABEL_TEXT, size + 2) &&
	       sf_intern_add(feed->event_labels, text, size, NULL);
}

bool sf_feed_event(struct sf_feed *feed, const struct sf_sink *sink,
		       const struct sf_record_header *record, struct sf_error *err)
{
	const struct sf_stream_event *event = (const void *)record;
	const char *text = (const char *)&event->frames[event->n_frames];
	struct sf_feed_thread *thread = sf_feed_find_thread(feed, event->serial);
	SF_CLEANUP(free) char *key = strndup(text, event->key_size);
	SF_CLEANUP(free) char *value = strndup(text + event->key_size, event->value_size);
	const char *second = text + event->key_size + event->value_size;
	SF_CLEANUP(free) char *second_key = strndup(second, event->second_key_size);
	SF_CLEANUP(free) char *second_value = strndup(second + event->second_key_size, event->second_value_size);
	const bool labelled = event->key_size && may_label(feed, text, (size_t)event->key_size + event->value_size);
	const bool twice = event->second_key_size &&
			   may_label(feed, second, (size_t)event->second_key_size + event->second_value_size);
	const struct sf_seen seen = {
		.time_ns = sf_feed_take_time(feed, event->time_ns),
		.hold_ns = event->hold_ns,
		.state = SF_STATE_RUNNING,
		.syscall = SF_SYSCALL_NONE,
		.label_key = labelled ? key : NULL,
		.label_value = labelled ? value : NULL,
		.second_key = twice ? second_key : NULL,
		.second_value = twice ? second_value : NULL,
	};
	struct sf_weight weight;
	struct sf_trace trace;

	if (!key || !value || !second_key || !second_value)
		return sf_fail_memory(err);
	if (!*feed->feeds->measure)
		return sf_fail(err, SF_E_INPUT, "process %d has an event, and counts none", feed->pid);
	if (!weigh_event(feed, &weight, event->amount, err))
		return false;
	if (!thread)
		return sink->loss(sink->arg, 0, SF_LOSS_RING_FULL, &weight, err);
	if (!sf_feed_take_frames(feed, event->frames, event->n_frames))
		return sf_fail_memory(err);
	trace = (struct sf_trace){ feed->frames.items, event->n_frames, event->n_frames, (enum sf_end)event->end };
	return sink->trace(sink->arg, thread->serial, &trace, &seen, &weight, err);
}

bool sf_feed_event_loss(struct sf_feed *feed, const struct sf_sink *sink,
			    const struct sf_record_header *record, struct sf_error *err)
{
	const struct sf_stream_event_loss *loss = (const void *)record;
	struct sf_feed_thread *thread = sf_feed_find_thread(feed, loss->serial);
	struct sf_weight weight;

	if (!*feed->feeds->measure)
		return sf_fail(err, SF_E_INPUT, "process %d has lost events, and counts none", feed->pid);
	return weigh_event(feed, &weight, loss->amount, err) &&
	       sink->loss(sink->arg, thread ? thread->serial : 0, (enum sf_loss)loss->cause, &weight, err);
}

bool sf_feeds_finish(const struct sf_feeds *feeds, const struct sf_sink *sink, struct sf_error *err)
{
	const struct sf_measure measure = {
		.name = feeds->measure,
		.unit = feeds->unit,
		.is_counted = true,
		.counted = feeds->counted,
	};

	if (!*feeds->measure || feeds->n_counted < feeds->n_counting)
		return true;
	return !sink->measure || sink->measure(sink->arg, &measure, err);
}

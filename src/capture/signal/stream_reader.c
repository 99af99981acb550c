/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the records of one process and calls the sink. Hostile input. */
#include "capture/signal/stream_feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static bool feed_process(struct sf_feed *feed, const struct sf_sink *sink,
			 const struct sf_record_header *record, struct sf_error *err)
{
	const struct sf_stream_process *process = (const void *)record;
	const char *command = process->text + process->name_size;
	SF_CLEANUP(free) char *name_copy = strndup(process->text, process->name_size);
	SF_CLEANUP(free) char *command_copy = strndup(command, process->command_size);

	if (!name_copy || !command_copy)
		return sf_fail_memory(err);
	if (!sf_feed_start_anew(feed, sink, err))
		return false;
	feed->left_out = !sf_feed_take_room(feed, SF_FEED_PROCESSES, 1);
	if (feed->left_out)
		return true;
	if (!feed->pid_given)
		feed->pid = process->pid;
	sf_feed_set_clock(feed, process);
	sf_feed_take_time(feed, process->time_ns);
	return sink->process(sink->arg, feed->pid, process->parent, err) &&
	       (!sink->process_name ||
		sink->process_name(sink->arg, feed->pid, process->parent, name_copy, command_copy,
				   err));
}

static bool feed_thread(struct sf_feed *feed, const struct sf_sink *sink,
			const struct sf_record_header *record, struct sf_error *err)
{
	const struct sf_stream_thread *thread = (const void *)record;
	SF_CLEANUP(free) char *name = strndup(thread->name, thread->name_size);
	struct sf_feed_thread *known = sf_feed_find_thread(feed, thread->serial);
	uint64_t time_ns;

	/* The system's is the same, cut to 15 bytes, or the full one comes again. */
	if (known && known->full_name && !thread->is_full)
		return true;
	if (!known && (feed->left_out || !sf_feed_take_room(feed, SF_FEED_THREADS, 1)))
		return true;

	time_ns = sf_feed_take_time(feed, thread->time_ns);
	if (!name)
		return sf_fail_memory(err);
	if (!known) {
		if (!sf_vec_push(&feed->threads,
				 (struct sf_feed_thread){ .serial = feed->feeds->n_serials + 1 }) ||
		    !sf_intern_add(feed->numbers, &thread->serial, sizeof(thread->serial), NULL))
			return sf_fail_memory(err);
		feed->feeds->n_serials++;
		known = &feed->threads.items[feed->threads.n - 1];
	}
	known->full_name |= thread->is_full != 0;
	return sink->thread(sink->arg, known->serial, feed->pid, thread->tid, name, time_ns, err);
}

static bool feed_thread_end(struct sf_feed *feed, const struct sf_sink *sink,
			    const struct sf_record_header *record, struct sf_error *err)
{
	const struct sf_stream_thread_end *end = (const void *)record;
	struct sf_feed_thread *thread = sf_feed_find_thread(feed, end->serial);
	const uint64_t time_ns = sf_feed_take_time(feed, end->time_ns);

	if (!thread || thread->ended)
		return true;
	thread->ended = true;
	return sink->thread_end(sink->arg, thread->serial, time_ns, end->cpu_ns, err);
}

static bool feed_image(struct sf_feed *feed, const struct sf_sink *sink,
		       const struct sf_record_header *record, struct sf_error *err)
{
	const struct sf_stream_image *image = (const void *)record;
	SF_CLEANUP(free) char *path = strndup(image->text, image->path_size);
	SF_CLEANUP(free) char *note = strndup(image->text + image->path_size, image->note_size);
	const struct sf_image_number seen = {
		.number = image->number,
		.path = path,
		.note = note,
		.inode = image->inode,
		.device = image->device,
		.build_id = image->build_id,
		.build_id_size = image->build_id_size,
	};

	if (!path || !note)
		return sf_fail_memory(err);
	if (feed->left_out || !sf_feed_take_room(feed, SF_FEED_IMAGES, 1))
		return true;
	return !sink->image || sink->image(sink->arg, feed->pid, &seen, err);
}

static bool feed_sample(struct sf_feed *feed, const struct sf_sink *sink,
			const struct sf_record_header *record, struct sf_error *err)
{
	const struct sf_stream_sample *sample = (const void *)record;
	struct sf_feed_thread *thread = sf_feed_find_thread(feed, sample->serial);
	const struct sf_feed_label *label = sample->label ? sf_feed_find_label(feed, sample->label) : NULL;
	const struct sf_seen seen = {
		.time_ns = sf_feed_take_time(feed, sample->time_ns),
		.hold_ns = sample->hold_ns,
		.state = sample->state,
		.flags = sample->still_flags,
		.syscall = sample->syscall,
		.label_key = label ? label->key : NULL,
		.label_value = label ? label->value : NULL,
	};
	struct sf_weight weight;
	struct sf_trace trace;

	if (!sf_feed_weigh(feed, thread, &weight, sample->cpu_ns, sample->wall_ns, sample->ticks, err))
		return false;
	weight.since_last = true;
	if (!thread)
		return sink->loss(sink->arg, 0, SF_LOSS_RING_FULL, &weight, err);
	if (!sf_feed_take_frames(feed, sample->frames, sample->n_frames))
		return sf_fail_memory(err);
	trace = (struct sf_trace){ feed->frames.items, sample->n_frames, sample->n_frames,
				   (enum sf_end)sample->end };
	return sink->trace(sink->arg, thread->serial, &trace, &seen, &weight, err);
}

static bool feed_again(struct sf_feed *feed, const struct sf_sink *sink,
		       const struct sf_record_header *record, struct sf_error *err)
{
	const struct sf_stream_again *again = (const void *)record;
	struct sf_feed_thread *thread = sf_feed_find_thread(feed, again->serial);
	const uint64_t time_ns = sf_feed_take_time(feed, again->time_ns);
	struct sf_weight weight;

	if (!sf_feed_weigh(feed, thread, &weight, again->cpu_ns, again->wall_ns, again->ticks, err))
		return false;
	if (!thread)
		return sink->loss(sink->arg, 0, SF_LOSS_RING_FULL, &weight, err);
	return sink->again(sink->arg, thread->serial, time_ns, &weight, err);
}

static bool feed_loss(struct sf_feed *feed, const struct sf_sink *sink,
		      const struct sf_record_header *record, struct sf_error *err)
{
	const struct sf_stream_loss *loss = (const void *)record;
	struct sf_feed_thread *thread = sf_feed_find_thread(feed, loss->serial);
	struct sf_weight weight;

	return sf_feed_weigh(feed, thread, &weight, loss->cpu_ns, loss->wall_ns, loss->ticks, err) &&
	       sink->loss(sink->arg, thread ? thread->serial : 0, (enum sf_loss)loss->cause, &weight,
			  err);
}

/* The first of a number holds: numbers are never used again. */
static bool feed_label(struct sf_feed *feed, const struct sf_sink *sink,
		       const struct sf_record_header *record, struct sf_error *err)
{
	const struct sf_stream_label *label = (const void *)record;
	size_t size = (size_t)label->key_size + label->value_size + 2;
	char *text, *value;
	(void)sink;

	if (sf_feed_find_label(feed, label->number) || !sf_feed_take_room(feed, SF_FEED_LABELS, 1) ||
	    !sf_feed_take_room(feed, SF_FEED_LABEL_TEXT, size))
		return true;
	text = calloc(1, size);
	value = text ? text + label->key_size + 1 : NULL;
	if (!text || !sf_vec_reserve(&feed->labels, 1) ||
	    !sf_intern_add(feed->label_numbers, &label->number, sizeof(label->number), NULL)) {
		free(text);
		return sf_fail_memory(err);
	}
	memcpy(text, label->text, label->key_size);
	memcpy(value, label->text + label->key_size, label->value_size);
	return sf_vec_push(&feed->labels, (struct sf_feed_label){ text, value });
}

static bool feed_note(struct sf_feed *feed, const struct sf_sink *sink,
		      const struct sf_record_header *record, struct sf_error *err)
{
	const struct sf_stream_note *note = (const void *)record;
	SF_CLEANUP(free) char *text = strndup(note->text, note->size);

	if (!text)
		return sf_fail_memory(err);
	if (!sf_feed_take_room(feed, SF_FEED_NOTES, 1))
		return true;
	return !sink->note || sink->note(sink->arg, feed->pid, text, err);
}

static bool feed_end(struct sf_feed *feed, const struct sf_sink *sink,
		     const struct sf_record_header *record, struct sf_error *err)
{
	const struct sf_stream_end *end = (const void *)record;

	sf_feed_take_time(feed, end->time_ns);
	feed->ended = true;
	if (sink->engine_cost && !sink->engine_cost(sink->arg, feed->pid, end->agent_cpu_ns, err))
		return false;
	return sf_feed_lost(feed, sink, end->lost_records, err);
}

/* The next text of a place's record, zero-terminated: from *text to *copies, which move on. */
static const char *take_text(const char **text, size_t size, char **copies)
{
	const char *ret = *copies;

	memcpy(*copies, *text, size);
	(*copies)[size] = 0;
	*copies += size + 1;
	*text += size;
	return ret;
}

static bool feed_place(struct sf_feed *feed, const struct sf_sink *sink,
		       const struct sf_record_header *record, struct sf_error *err)
{
	const struct sf_stream_place *place = (const void *)record;
	struct sf_location functions[SF_STREAM_MAX_FUNCTIONS];
	const struct sf_described_frame described = { place->key, functions, place->n_functions };
	const char *text = (const char *)&place->functions[place->n_functions];
	SF_CLEANUP(free) char *memory = malloc(place->text_size + 3 * (size_t)place->n_functions);
	char *copies = memory;

	if (!memory)
		return sf_fail_memory(err);
	if (feed->left_out)
		return true;
	for (uint32_t i = 0; i < place->n_functions; i++) {
		const struct sf_stream_function *function = &place->functions[i];

		functions[i] = (struct sf_location){
			.function = take_text(&text, function->name_size, &copies),
			.linkage = take_text(&text, function->linkage_size, &copies),
			.file = take_text(&text, function->file_size, &copies),
			.line = function->line,
			.inlined = function->flags & SF_STREAM_INLINED,
			.approximate = function->flags & SF_STREAM_APPROXIMATE,
		};
	}
	return !sink->describe || sink->describe(sink->arg, feed->pid, &described, err);
}

/* --- a runtime's events: what is measured, samples with an amount and labels, and losses --- */

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

static bool feed_measure(struct sf_feed *feed, const struct sf_sink *sink,
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

static bool feed_event(struct sf_feed *feed, const struct sf_sink *sink,
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

static bool feed_event_loss(struct sf_feed *feed, const struct sf_sink *sink,
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

/* --- all records --- */

/* To add a record: its line here. */
static bool (*const feeders[SF_STREAM_N_TYPES])(struct sf_feed *feed, const struct sf_sink *sink,
						const struct sf_record_header *record,
						struct sf_error *err) = {
	[SF_STREAM_PROCESS] = feed_process,
	[SF_STREAM_THREAD] = feed_thread,
	[SF_STREAM_THREAD_END] = feed_thread_end,
	[SF_STREAM_IMAGE] = feed_image,
	[SF_STREAM_SAMPLE] = feed_sample,
	[SF_STREAM_AGAIN] = feed_again,
	[SF_STREAM_LOSS] = feed_loss,
	[SF_STREAM_LABEL] = feed_label,
	[SF_STREAM_NOTE] = feed_note,
	[SF_STREAM_END] = feed_end,
	[SF_STREAM_PLACE] = feed_place,
	[SF_STREAM_MEASURE] = feed_measure,
	[SF_STREAM_EVENT] = feed_event,
	[SF_STREAM_EVENT_LOSS] = feed_event_loss,
};

bool sf_feed_record(struct sf_feed *feed, const struct sf_sink *sink,
		    const struct sf_record_header *record, struct sf_error *err)
{
	if (record->type >= SF_STREAM_N_TYPES || !feeders[record->type])
		return true;
	return feeders[record->type](feed, sink, record, err) &&
	       sf_feed_note_limits(feed, sink, err);
}

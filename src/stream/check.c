/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the records of a stream, by type. Records are hostile input. */
#include "stream/check.h"

#include "frozen/ends.h"
#include "frozen/signal/handler.h"
#include "frozen/still.h"
#include "frozen/trace.h"

/*
 * No clock counts to 73 years, and no program to so many events. Sums of a few such numbers overflow nowhere. Code that
 * adds up many of them checks the sum.
 */
#define MAX_NS (UINT64_C(1) << 61)

/* Checks a record that is large enough for its struct, and returns the error in it; NULL: none. */
typedef const char *check_fn(const struct sf_record_header *record);

/* Whether `needed` bytes follow the struct of `fixed` bytes that the record begins with. */
static bool fits(const struct sf_record_header *record, size_t fixed, uint64_t needed)
{
	return needed <= record->size - fixed;
}

static const char *check_process(const struct sf_record_header *record)
{
	const struct sf_stream_process *process = (const void *)record;

	if (!fits(record, sizeof(*process), (uint64_t)process->name_size + process->command_size))
		return "a process whose name is longer than its record";
	if (process->pid <= 0 || process->parent < 0)
		return "a process whose id is none";
	if (process->walk > SF_MODE_HANDLER)
		return "a process that is walked in an unknown way";
	if (process->time_ns > MAX_NS || process->unix_ns > INT64_MAX ||
	    process->rate_mhz > INT64_MAX || process->blocked_rate_mhz > INT64_MAX)
		return "a process whose times are out of range";
	return NULL;
}

static const char *check_thread(const struct sf_record_header *record)
{
	const struct sf_stream_thread *thread = (const void *)record;

	if (!fits(record, sizeof(*thread), thread->name_size))
		return "a thread whose name is longer than its record";
	if (!thread->serial || thread->tid <= 0 || thread->time_ns > MAX_NS)
		return "a thread whose numbers are out of range";
	return NULL;
}

static const char *check_thread_end(const struct sf_record_header *record)
{
	const struct sf_stream_thread_end *end = (const void *)record;

	if (!end->serial || end->time_ns > MAX_NS || end->cpu_ns > MAX_NS)
		return "a thread's end whose numbers are out of range";
	return NULL;
}

static const char *check_image(const struct sf_record_header *record)
{
	const struct sf_stream_image *image = (const void *)record;

	if (!fits(record, sizeof(*image), (uint64_t)image->path_size + image->note_size))
		return "an image whose path is longer than its record";
	if (!image->number || image->build_id_size > sizeof(image->build_id))
		return "an image whose numbers are out of range";
	return NULL;
}

static const char *check_frames(const struct sf_stream_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct sf_stream_frame *frame = &frames[i];

		if (frame->via >= SF_N_VIAS)
			return "a frame that was found in an unknown way";
		if (frame->kind != SF_KIND_NATIVE && !sf_kind_is_managed(frame->kind))
			return "a frame of a kind that no walk finds";
	}
	return NULL;
}

static const char *check_sample(const struct sf_record_header *record)
{
	const struct sf_stream_sample *sample = (const void *)record;

	if (sample->n_frames > SF_MAX_DEPTH ||
	    !fits(record, sizeof(*sample), sample->n_frames * sizeof(sample->frames[0])))
		return "a sample with more frames than its record has room for";
	if (sample->state >= SF_N_STATES || sample->end >= SF_N_ENDS)
		return "a sample with an unknown state or end";
	if (sample->syscall < SF_SYSCALL_FAULT || sample->syscall > INT16_MAX)
		return "a sample in an impossible system call";
	if (!sample->serial || sample->time_ns > MAX_NS || sample->cpu_ns > MAX_NS ||
	    sample->wall_ns > MAX_NS || sample->hold_ns > MAX_NS)
		return "a sample whose numbers are out of range";
	return check_frames(sample->frames, sample->n_frames);
}

static const char *check_again(const struct sf_record_header *record)
{
	const struct sf_stream_again *again = (const void *)record;

	if (!again->serial || again->time_ns > MAX_NS || again->cpu_ns > MAX_NS ||
	    again->wall_ns > MAX_NS)
		return "a repeated sample whose numbers are out of range";
	return NULL;
}

static const char *check_loss(const struct sf_record_header *record)
{
	const struct sf_stream_loss *loss = (const void *)record;

	if (loss->cause >= SF_N_LOSSES)
		return "a loss of unknown cause";
	if (loss->cpu_ns > MAX_NS || loss->wall_ns > MAX_NS)
		return "a loss whose times are out of range";
	return NULL;
}

static const char *check_label(const struct sf_record_header *record)
{
	const struct sf_stream_label *label = (const void *)record;

	if (!fits(record, sizeof(*label), (uint64_t)label->key_size + label->value_size))
		return "a label that is longer than its record";
	return label->number ? NULL : "a label without a number";
}

static const char *check_note(const struct sf_record_header *record)
{
	const struct sf_stream_note *note = (const void *)record;

	return fits(record, sizeof(*note), note->size) ? NULL
						       : "a note that is longer than its record";
}

static const char *check_end(const struct sf_record_header *record)
{
	const struct sf_stream_end *end = (const void *)record;

	if (end->time_ns > MAX_NS || end->agent_cpu_ns > MAX_NS)
		return "an end whose times are out of range";
	return NULL;
}

static const char *check_place(const struct sf_record_header *record)
{
	const struct sf_stream_place *place = (const void *)record;
	uint64_t text = 0;

	if (!place->key || !place->n_functions || place->n_functions > SF_STREAM_MAX_FUNCTIONS)
		return "a place whose numbers are out of range";
	if (!fits(record, sizeof(*place),
		  place->n_functions * sizeof(place->functions[0]) + (uint64_t)place->text_size))
		return "a place that is longer than its record";
	for (uint32_t i = 0; i < place->n_functions; i++) {
		const struct sf_stream_function *function = &place->functions[i];

		text += (uint64_t)function->name_size + function->linkage_size +
			function->file_size;
	}
	return text <= place->text_size ? NULL : "a place whose names are longer than its text";
}

static const char *check_measure(const struct sf_record_header *record)
{
	const struct sf_stream_measure *measure = (const void *)record;

	if (!fits(record, sizeof(*measure), (uint64_t)measure->name_size + measure->unit_size))
		return "a measure whose name is longer than its record";
	return measure->name_size && measure->unit_size && measure->counted <= MAX_NS ? NULL : "a measure without a name, or whose count is out of range";
}

static const char *check_event(const struct sf_record_header *record)
{
	const struct sf_stream_event *event = (const void *)record;

	if (event->n_frames > SF_MAX_DEPTH ||
	    !fits(record, sizeof(*event),
		  event->n_frames * sizeof(event->frames[0]) + (uint64_t)event->key_size + event->value_size +
			  event->second_key_size + event->second_value_size))
		return "an event with more frames and text than its record has room for";
	if (event->end >= SF_N_ENDS)
		return "an event with an unknown end";
	if (!event->serial || event->time_ns > MAX_NS || event->hold_ns > MAX_NS || event->amount > MAX_NS)
		return "an event whose numbers are out of range";
	return check_frames(event->frames, event->n_frames);
}

static const char *check_event_loss(const struct sf_record_header *record)
{
	const struct sf_stream_event_loss *loss = (const void *)record;

	return loss->cause < SF_N_LOSSES && loss->amount <= MAX_NS ? NULL : "lost events of unknown cause, or too many";
}

/* A record of a known type is at least its struct. To add a type: its function in `contents`. */
static const struct {
	size_t size;
	const char *small; /* what is wrong with a smaller one */
} structs[SF_STREAM_N_TYPES] = {
#define X(NAME, type, text)                                                                        \
	[SF_STREAM_##NAME] = { sizeof(struct type), "a record too small for its type (" #NAME ")" },
	SF_STREAM_TYPES(X)
#undef X
};

static check_fn *const contents[SF_STREAM_N_TYPES] = {
	[SF_STREAM_PROCESS] = check_process,
	[SF_STREAM_THREAD] = check_thread,
	[SF_STREAM_THREAD_END] = check_thread_end,
	[SF_STREAM_IMAGE] = check_image,
	[SF_STREAM_SAMPLE] = check_sample,
	[SF_STREAM_AGAIN] = check_again,
	[SF_STREAM_LOSS] = check_loss,
	[SF_STREAM_LABEL] = check_label,
	[SF_STREAM_NOTE] = check_note,
	[SF_STREAM_END] = check_end,
	[SF_STREAM_PLACE] = check_place,
	[SF_STREAM_MEASURE] = check_measure,
	[SF_STREAM_EVENT] = check_event,
	[SF_STREAM_EVENT_LOSS] = check_event_loss,
};

const char *sf_stream_check(const struct sf_record_header *record, size_t size)
{
	if (size < sizeof(*record) || record->size != size || size % 8 != 0)
		return "a record whose size is not its own";
	if (size > SF_STREAM_MAX_RECORD)
		return "a record larger than any can be";
	if (record->type == SF_STREAM_FILLER || record->type >= SF_STREAM_N_TYPES)
		return NULL; /* passed over */
	if (size < structs[record->type].size)
		return structs[record->type].small;
	return contents[record->type](record);
}

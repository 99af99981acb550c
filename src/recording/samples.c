/* SPDX-License-Identifier: Apache-2.0 */
/* Writes samples with their stacks, losses, holds and the measure to a recording, and counts the totals over them. */
#include <stdio.h>
#include <string.h>

#include "recording/writer.h"

#define MIN_BURST 512 /* samples; fewer are written when sf_recording_tick is called with the time */

/*
 * --- stacks ---
 *
 * A trace becomes a number. Frames are interned by their content. Stacks are interned as a trie of
 * (caller's stack, frame), so that a stack is one number and shares its outer frames with other stacks.
 * The caller's number is always the smaller one; readers rely on it.
 */

/* A return address stands behind the call; the byte before it is in the call. */
static struct sf_frame_key key_of(const struct sf_frame *frame)
{
	bool exact = (frame->flags & SF_FRAME_EXACT) != 0;

	if (sf_kind_is_managed(frame->kind))
		return (struct sf_frame_key){
			.address = frame->address,
			.kind = frame->kind,
			.via = frame->via,
			.exact = exact,
		};
	return (struct sf_frame_key){
		.address = frame->address - (exact ? 0 : 1),
		.module = frame->image,
		.kind = frame->kind == SF_KIND_KERNEL ? SF_KIND_KERNEL : SF_KIND_NATIVE,
		.via = frame->via,
		.exact = exact,
	};
}

/* Every module that a frame names is in the file, even one that was never added. */
static bool ensure_module(struct sf_recording *recording, uint32_t number)
{
	const struct sf_recording_module unknown = {
		.number = number, .path = "", .build_id = (const uint8_t *)"",
		.note = "nothing is known of it",
	};

	return number == 0 || sf_recording_module(recording, &unknown, NULL);
}

/* Frames and stacks that are there already are always shown. */
static bool has_room(struct sf_recording *recording, const struct sf_frame_key *key, uint32_t parent)
{
	struct sf_stack_key node = { .parent = parent };

	if (sf_recording_is_below(SF_LIMIT_FRAMES, sf_intern_count(recording->frames)) &&
	    sf_recording_is_below(SF_LIMIT_STACKS, sf_intern_count(recording->stacks)))
		return true;
	node.frame = sf_intern_find(recording->frames, key, sizeof(*key));
	if (!node.frame && !sf_recording_has_room(recording, SF_LIMIT_FRAMES,
						  sf_intern_count(recording->frames)))
		return false;
	return (node.frame && sf_intern_find(recording->stacks, &node, sizeof(node))) ||
	       sf_recording_has_room(recording, SF_LIMIT_STACKS,
				     sf_intern_count(recording->stacks));
}

static bool push(struct sf_recording *recording, const struct sf_frame_key *key, uint32_t *stack)
{
	struct sf_stack_key node = { .parent = *stack };
	bool is_new;

	node.frame = sf_intern_add(recording->frames, key, sizeof(*key), &is_new);
	if (!node.frame || (is_new && !ensure_module(recording, key->module)))
		return false;
	if (is_new && sf_kind_is_managed(key->kind) &&
	    !sf_recording_name_managed(recording, node.frame, key->address))
		return false;
	*stack = sf_intern_add(recording->stacks, &node, sizeof(node), NULL);
	return *stack != 0;
}

static bool push_label(struct sf_recording *recording, enum sf_frame_kind kind, const char *label,
		       uint32_t *stack)
{
	struct sf_frame_key key = { .kind = (uint8_t)kind, .exact = 1 };

	key.address = sf_recording_text(recording, label);
	return key.address && push(recording, &key, stack);
}

static bool push_cut(struct sf_recording *recording, enum sf_end end, uint32_t *stack)
{
	char label[128];

	snprintf(label, sizeof(label), "[cut: %s]", sf_end_text(end));
	return push_label(recording, SF_KIND_CUT, label, stack);
}

/* In the place of a stack for which there is no room. */
static bool push_left_out(struct sf_recording *recording, uint32_t *stack)
{
	*stack = 0;
	return push_label(recording, SF_KIND_CUT, "[stack left out: there are too many]", stack);
}

/* The frames that are not known yet, from the outermost of them inwards. */
static bool push_frames(struct sf_recording *recording, const struct sf_trace *trace,
			uint32_t n_known, uint32_t *stacks, uint32_t *stack)
{
	for (uint32_t i = n_known; i < trace->n_frames; i++) {
		struct sf_frame_key key = key_of(&trace->frames[trace->n_frames - 1 - i]);

		if (has_room(recording, &key, *stack) ? !push(recording, &key, stack)
						      : !push_left_out(recording, stack))
			return false;
		if (stacks)
			stacks[i] = *stack;
	}
	return true;
}

bool sf_recording_stack(struct sf_recording *recording, const struct sf_trace *trace,
			   const char *wait, uint32_t n_known, uint32_t *stacks, uint32_t *ret,
			   struct sf_error *err)
{
	uint32_t stack = n_known ? stacks[n_known - 1] : 0;

	if ((!n_known && trace->end != SF_END_ROOT && !push_cut(recording, trace->end, &stack)) ||
	    !push_frames(recording, trace, n_known, stacks, &stack) ||
	    (wait && !push_label(recording, SF_KIND_WAIT, wait, &stack)))
		return sf_fail_memory(err);
	*ret = stack;
	return true;
}

/* --- samples --- */

static void count_sample(struct sf_recording_totals *totals,
			 const struct sf_recording_sample *sample)
{
	totals->samples++;
	totals->ticks += sample->ticks;
	totals->cpu_seen_ns += sample->cpu_ns;
	totals->amount_seen += sample->amount;
	totals->has_times |= sample->wall_ns || sample->cpu_ns;
	if (sample->end < SF_N_ENDS)
		totals->ends_by[sample->end] += sample->ticks;
	if (sample->unheld)
		totals->unheld += sample->ticks;
}

struct sf_recording_row sf_recording_next_row(const struct sf_recording *recording)
{
	return (struct sf_recording_row){ .n_saves = recording->n_saves + 1, .index = recording->samples.n };
}

void sf_recording_give_half(struct sf_recording *recording, const struct sf_recording_row *row, struct sf_recording_sample *sample)
{
	const uint64_t half_ns = sample->cpu_ns / 2;
	struct sf_recording_sample *before;

	if (row->n_saves != recording->n_saves + 1)
		return;
	before = &recording->samples.items[row->index];
	before->cpu_ns += half_ns;
	before->wall_ns += half_ns;
	recording->totals.cpu_seen_ns += half_ns;
	(void)sf_recording_count_managed(recording, before->stack, half_ns); /* there is room since its first count */
	sample->cpu_ns -= half_ns;
	sample->wall_ns -= half_ns < sample->wall_ns ? half_ns : sample->wall_ns;
}

bool sf_recording_sample(struct sf_recording *recording, const struct sf_recording_sample *sample,
			 struct sf_error *err)
{
	struct sf_recording_sample row = *sample;

	row.time_ns = sf_recording_relative(recording, sample->time_ns);
	if (!sf_vec_push(&recording->samples, row) || !sf_recording_count_managed(recording, sample->stack, sample->cpu_ns))
		return sf_fail_memory(err);
	count_sample(&recording->totals, sample);
	/* A sample may be wrong about what time it is: not a burst for each. */
	if (recording->samples.n < MIN_BURST)
		return true;
	return sf_recording_tick(recording, sample->time_ns, err);
}

/*
 * --- losses ---
 *
 * Most threads have losses of few causes or of none: there is a row for each thread and cause that occurs. A loss without
 * room for its row is one of no known thread, so that the sums hold.
 */

/* NULL: there is no room. */
static struct sf_loss_row *add_row(struct sf_recording *recording, const struct sf_loss_key *key)
{
	if (!sf_recording_has_room(recording, SF_LIMIT_LOSSES, recording->losses.n) ||
	    !sf_vec_push(&recording->losses, (struct sf_loss_row){ .dirty = false }))
		return NULL;
	if (!sf_intern_add(recording->loss_keys, key, sizeof(*key), NULL)) {
		recording->losses.n--;
		return NULL;
	}
	return &recording->losses.items[recording->losses.n - 1];
}

static struct sf_loss_row *row_of(struct sf_recording *recording, uint32_t thread, enum sf_loss cause)
{
	const struct sf_loss_key key = { .thread = thread, .cause = cause };
	const uint32_t number = thread ? sf_intern_find(recording->loss_keys, &key, sizeof(key)) : 0;
	struct sf_loss_row *row = NULL;

	if (number)
		return &recording->losses.items[number - 1];
	if (thread)
		row = add_row(recording, &key);
	return row ? row : &recording->no_thread[cause];
}

static void count_loss(struct sf_recording_totals *totals, enum sf_loss cause, const struct sf_lost *lost)
{
	totals->losses += lost->ticks;
	totals->losses_by[cause] += lost->ticks;
	totals->ticks += lost->ticks;
	totals->cpu_lost_ns += lost->cpu_ns;
	totals->cpu_lost_by[cause] += lost->cpu_ns;
	totals->amount_lost += lost->amount;
	if (cause == SF_LOSS_UNSEEN) /* counted by the kernel, for no thread that we knew */
		totals->cpu_counted_ns += lost->cpu_ns;
}

void sf_recording_loss(struct sf_recording *recording, uint32_t thread, enum sf_loss cause, const struct sf_lost *lost)
{
	struct sf_loss_row *row;

	if (!lost->ticks && !lost->cpu_ns && !lost->wall_ns && !lost->amount)
		return;
	row = row_of(recording, thread, cause);
	row->lost.ticks += lost->ticks;
	row->lost.cpu_ns += lost->cpu_ns;
	row->lost.wall_ns += lost->wall_ns;
	row->lost.amount += lost->amount;
	row->dirty = true;
	count_loss(&recording->totals, cause, lost);
}

/* --- what else there is --- */

bool sf_recording_label(struct sf_recording *recording, const char *key, const char *value,
			uint32_t *ret, struct sf_error *err)
{
	const struct sf_label_key label = {
		.key = sf_recording_text(recording, key),
		.value = sf_recording_text(recording, value),
	};

	if (!label.key || !label.value)
		return sf_fail_memory(err);
	*ret = sf_intern_add(recording->labels, &label, sizeof(label), NULL);
	return *ret || sf_fail_memory(err);
}

bool sf_recording_note(struct sf_recording *recording, int32_t pid, const char *text,
		       struct sf_error *err)
{
	const struct sf_note_key note = { .pid = pid, .text = sf_recording_text(recording, text) };

	return (note.text && sf_intern_add(recording->notes, &note, sizeof(note), NULL)) ||
	       sf_fail_memory(err);
}

bool sf_recording_measure(struct sf_recording *recording, const char *name, const char *unit, struct sf_error *err)
{
	recording->measure = sf_recording_text(recording, name);
	recording->measure_unit = sf_recording_text(recording, unit);
	recording->measure_dirty = true;
	if (!recording->measure || !recording->measure_unit)
		return sf_fail_memory(err);
	snprintf(recording->totals.measure, sizeof(recording->totals.measure), "%s",
		 sf_recording_string(recording, recording->measure));
	snprintf(recording->totals.unit, sizeof(recording->totals.unit), "%s", sf_recording_string(recording, recording->measure_unit));
	return true;
}

void sf_recording_counted(struct sf_recording *recording, uint64_t amount)
{
	recording->totals.amount_counted = amount;
	recording->is_counted = recording->measure_dirty = true;
}

void sf_recording_hold(struct sf_recording *recording, uint64_t hold_ns)
{
	sf_histogram_add(&recording->holds, hold_ns, 1);
	recording->holds_dirty = true;
}

void sf_recording_totals(const struct sf_recording *recording, struct sf_recording_totals *ret)
{
	*ret = recording->totals;
	sf_recording_total_managed(recording, ret);
	ret->unsaved = recording->samples.n;
	ret->holds = recording->holds.n;
	ret->hold_p50_ns = sf_histogram_percentile(&recording->holds, 0.50);
	ret->hold_p99_ns = sf_histogram_percentile(&recording->holds, 0.99);
	ret->hold_max_ns = recording->holds.max_ns;
}

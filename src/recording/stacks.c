/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns a trace into a number. Frames are interned by their content. Stacks are interned as a trie of
 * (caller's stack, frame), so that a stack is one number and shares its outer frames with other stacks.
 * The caller's number is always the smaller one; readers rely on it.
 */
#include <stdio.h>
#include <string.h>

#include "recording/writer.h"

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

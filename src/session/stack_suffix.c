/* SPDX-License-Identifier: Apache-2.0 */
/* The stack suffix: the outermost frames that equal those of a thread's last sample. */
#include "session/stack_suffix.h"

#include <stdlib.h>

void sf_stack_suffix_deinit(struct sf_stack_suffix *suffix)
{
	free(suffix->frames);
	free(suffix->stacks);
	*suffix = (struct sf_stack_suffix){ 0 };
}

static bool make_room(struct sf_stack_suffix *suffix, uint32_t n)
{
	struct sf_frame *frames;
	uint32_t *stacks;

	if (n <= suffix->capacity)
		return true;
	frames = realloc(suffix->frames, n * sizeof(*frames));
	if (frames)
		suffix->frames = frames;
	stacks = realloc(suffix->stacks, n * sizeof(*stacks));
	if (stacks)
		suffix->stacks = stacks;
	if (!frames || !stacks)
		return false;
	suffix->capacity = n;
	return true;
}

/* The id says whether a token was used again for other code (frozen/trace.h). */
static bool same(const struct sf_frame *a, const struct sf_frame *b)
{
	return a->pc == b->pc && a->sp == b->sp && a->token == b->token && a->id == b->id &&
	       a->bci == b->bci && a->kind == b->kind && a->via == b->via && a->flags == b->flags &&
	       a->image == b->image && a->address == b->address;
}

bool sf_stack_suffix_match(struct sf_stack_suffix *suffix, const struct sf_trace *trace)
{
	const uint32_t n = trace->end == SF_END_ROOT ? trace->n_frames : 0;

	suffix->n_same = 0;
	if (!make_room(suffix, trace->n_frames))
		return false;
	while (suffix->n_same < n && suffix->n_same < suffix->n &&
	       same(&suffix->frames[suffix->n_same], &trace->frames[n - 1 - suffix->n_same]))
		suffix->n_same++;
	suffix->n = n;
	for (uint32_t i = suffix->n_same; i < n; i++)
		suffix->frames[i] = trace->frames[n - 1 - i];
	return true;
}

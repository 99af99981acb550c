/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a walk with the tail of the thread's last one, and keeps its own tail. */
#include "frozen/unwind/tail.h"

#include <string.h>

#include "frozen/unwind/walk.h"

#include "frozen/frozen.h"

#define WORD 8u
#define MANY 8u /* words that are compared at once */

void sf_tail_begin(struct sf_tail_walk *walk, const struct sf_still *still)
{
	struct sf_tail *tail = walk->tail;

	if (!tail)
		return;
	if (!still->map || !still->map->serial || still->map->n_runtimes) {
		tail->n = 0;
		walk->tail = NULL;
		return;
	}
	if (tail->map != still->map->serial)
		tail->n = 0;
	tail->map = still->map->serial;
	walk->at = tail->capacity - tail->n;
}

static void note_regs(const struct sf_cursor *cursor, struct sf_tail_regs *ret)
{
	const struct sf_arch *arch = cursor->still->arch;
	uint64_t kept = UINT64_C(1) << arch->sp;

	*ret = (struct sf_tail_regs){ .known = cursor->regs.known };
	for (unsigned i = 0; i < arch->n_saved; i++) {
		kept |= UINT64_C(1) << arch->saved[i];
		ret->saved[i] = sf_reg_known(&cursor->regs, arch->saved[i]) ? cursor->regs.r[arch->saved[i]] : 0;
	}
	ret->is_whole = !cursor->exact && (ret->known & ~kept) == 0 && sf_reg_known(&cursor->regs, arch->sp);
}

static bool same_words(const void *a, const void *b, unsigned n)
{
	uint64_t differences = 0;

	for (unsigned i = 0; i < n; i++) {
		uint64_t left, right;

		memcpy(&left, (const uint8_t *)a + i * WORD, WORD);
		memcpy(&right, (const uint8_t *)b + i * WORD, WORD);
		differences |= left ^ right;
	}
	return !differences;
}

static bool same_regs(const struct sf_tail_regs *a, const struct sf_tail_regs *b)
{
	return a->known == b->known && same_words(a->saved, b->saved, SF_MAX_SAVED);
}

/* The bytes from sp up to the root's; NULL: the window does not have them all. */
static const uint8_t *in_window(const struct sf_reader *memory, uint64_t sp, uint64_t top)
{
	const uint64_t offset = sp - memory->window_start, size = top - sp;

	if (sp < memory->window_start || top < sp || offset > memory->window_size || size > memory->window_size - offset)
		return NULL;
	return memory->window + offset;
}

/* How many of the `size` bytes below `top` are those of the tail, in whole words. `now` ends at `top`. */
static uint64_t count_same(const struct sf_tail *tail, const uint8_t *now, uint64_t size)
{
	const uint8_t *then = tail->bytes + tail->size;
	uint64_t same = 0;

	while (size - same >= MANY * WORD && same_words(then - same - MANY * WORD, now - same - MANY * WORD, MANY))
		same += MANY * WORD;
	while (size - same >= WORD && same_words(then - same - WORD, now - same - WORD, 1))
		same += WORD;
	return same;
}

/* Compared once for a walk: the frames further out need fewer bytes. */
static bool same_bytes(struct sf_tail_walk *walk, const struct sf_reader *memory, uint64_t sp)
{
	const struct sf_tail *tail = walk->tail;
	const uint8_t *now = in_window(memory, sp, tail->top);

	if (!now)
		return false;
	if (!walk->has_compared)
		walk->same_from = tail->top - count_same(tail, now + (tail->top - sp), tail->top - sp);
	walk->has_compared = true;
	return sp >= walk->same_from;
}

/* The frame of the tail that has this sp; NULL: there is none. */
static const struct sf_frame *find(struct sf_tail_walk *walk, uint64_t sp)
{
	const struct sf_tail *tail = walk->tail;

	while (walk->at < tail->capacity && tail->frames[walk->at].sp < sp)
		walk->at++;
	return walk->at < tail->capacity && tail->frames[walk->at].sp == sp ? &tail->frames[walk->at] : NULL;
}

/* The frames of the tail behind the one that was met. */
static bool append(struct sf_tail_walk *walk, struct sf_trace *trace)
{
	const struct sf_tail *tail = walk->tail;
	const uint32_t n = tail->capacity - walk->at - 1;

	if (n > trace->capacity - trace->n_frames)
		return false;
	memcpy(trace->frames + trace->n_frames, tail->frames + walk->at + 1, n * sizeof(*trace->frames));
	trace->n_frames += n;
	return true;
}

bool sf_tail_meet(struct sf_tail_walk *walk, const struct sf_cursor *cursor)
{
	struct sf_tail_regs *regs = &walk->regs[walk->n_walked];
	const struct sf_frame *frame;

	if (!walk->tail || walk->n_walked == walk->capacity) {
		walk->tail = NULL;
		return false;
	}
	walk->n_walked++;
	note_regs(cursor, regs);
	if (!regs->is_whole)
		return false;
	frame = find(walk, cursor->regs.r[cursor->still->arch->sp]);
	walk->has_met = frame && frame->pc == cursor->regs.pc && same_regs(regs, &walk->tail->regs[walk->at]) &&
			same_bytes(walk, &cursor->still->memory, frame->sp) && append(walk, cursor->trace);
	return walk->has_met;
}

void sf_tail_plain(struct sf_tail_walk *walk)
{
	if (walk->tail)
		walk->regs[walk->n_walked - 1].is_plain = walk->regs[walk->n_walked - 1].is_whole;
}

/* The first of the frames from which on all up to `end` were left by plain steps. */
static uint32_t first_plain(const struct sf_tail_walk *walk, uint32_t end)
{
	while (end > 0 && walk->regs[end - 1].is_plain)
		end--;
	return end;
}

/* The first of the frames from `first` up to `end` for which the tail has room, with their bytes. */
static uint32_t first_with_room(const struct sf_tail *tail, const struct sf_trace *trace, const struct sf_reader *memory,
				uint32_t first, uint32_t end, uint32_t room)
{
	if (end - first > room)
		first = end - room;
	while (first < end && (tail->top - trace->frames[first].sp > tail->size ||
			       !in_window(memory, trace->frames[first].sp, tail->top)))
		first++;
	return first;
}

/* Puts these frames of the trace before the frame `at` of the tail, and their bytes, which end at `until`, before its bytes. */
static void put(struct sf_tail_walk *walk, const struct sf_still *still, const struct sf_trace *trace, uint32_t first,
		uint32_t end, uint32_t at, uint64_t until)
{
	struct sf_tail *tail = walk->tail;
	const uint32_t n = end - first;
	const uint64_t sp = trace->frames[first].sp;

	memcpy(tail->frames + at - n, trace->frames + first, n * sizeof(*tail->frames));
	memcpy(tail->regs + at - n, walk->regs + first, n * sizeof(*tail->regs));
	memcpy(tail->bytes + tail->size - (tail->top - sp), in_window(&still->memory, sp, tail->top), until - sp);
	tail->n = tail->capacity - (at - n);
}

void sf_tail_end(struct sf_tail_walk *walk, const struct sf_still *still, const struct sf_trace *trace)
{
	struct sf_tail *tail = walk->tail;
	uint32_t end = walk->n_walked, at, first;
	uint64_t until;

	if (!tail || !end || trace->end != SF_END_ROOT || trace->by_zero)
		return;
	if (walk->has_met) {
		end--;
		at = walk->at;
		until = trace->frames[end].sp;
		tail->n = tail->capacity - at;
		tail->frames[at] = trace->frames[end]; /* found from another callee, perhaps in another way */
	} else {
		at = tail->capacity;
		until = tail->top = trace->frames[end - 1].sp;
		tail->n = 0;
	}
	first = first_plain(walk, end);
	tail->n_wanted = tail->n + end - first;
	tail->size_wanted = first < end ? tail->top - trace->frames[first].sp : 0;
	first = first_with_room(tail, trace, &still->memory, first, end, at);
	if (first < end)
		put(walk, still, trace, first, end, at, until);
}

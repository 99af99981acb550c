/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts and merges overlapping stretches of addresses, each with the rows of a function. */
#include "unwind/spans.h"

#include <stdlib.h>

#include "base/search.h"
#include "base/vec.h"

bool sf_spans_cover(const struct sf_spans *disjoint, uint32_t start, uint32_t end)
{
	const size_t low = sf_count_before(disjoint->n, i, disjoint->items[i].end <= start);

	return low < disjoint->n && disjoint->items[low].start <= start &&
	       disjoint->items[low].end >= end;
}

static int compare_spans(const void *a, const void *b)
{
	const struct sf_span *x = a, *y = b;

	return x->start != y->start ? sf_order(x->start, y->start) : sf_order(y->first, x->first);
}

static bool is_sorted(const struct sf_spans *spans)
{
	for (size_t i = 1; i < spans->n; i++) {
		if (compare_spans(&spans->items[i - 1], &spans->items[i]) > 0)
			return false;
	}
	return true;
}

void sf_spans_sort(struct sf_spans *spans)
{
	if (!is_sorted(spans))
		qsort(spans->items, spans->n, sizeof(spans->items[0]), compare_spans);
}

/* Appends the part of `span` between two offsets, if there is any. */
static bool push_part(struct sf_spans *spans, const struct sf_span *span, uint32_t start,
		      uint32_t end)
{
	struct sf_span part = *span;

	if (start >= end)
		return true;
	part.start = start;
	part.end = end;
	return sf_vec_push(spans, part);
}

/* Closes open spans, innermost first, up to `until`; *at is how far `ret` goes. */
static bool close_spans(struct sf_spans *open, uint32_t *at, uint32_t until, struct sf_spans *ret)
{
	while (open->n && *at < until) {
		const struct sf_span *top = &open->items[open->n - 1];
		uint32_t end = top->end < until ? top->end : until;

		if (!push_part(ret, top, *at, end))
			return false;
		if (*at < end)
			*at = end;
		if (top->end <= until)
			open->n--;
	}
	return true;
}

bool sf_spans_flatten(const struct sf_spans *sorted, struct sf_spans *ret)
{
	struct sf_spans open = { 0 };
	uint32_t at = 0;
	bool ok = true;

	for (size_t i = 0; ok && i < sorted->n; i++) {
		const struct sf_span *span = &sorted->items[i];

		ok = close_spans(&open, &at, span->start, ret) && sf_vec_push(&open, *span);
		at = span->start;
	}
	ok = ok && close_spans(&open, &at, UINT32_MAX, ret);
	sf_vec_deinit(&open);
	return ok;
}

static uint32_t end_of(const struct sf_spans *spans)
{
	return spans->n ? spans->items[spans->n - 1].end : 0;
}

bool sf_spans_merge(const struct sf_spans *first, const struct sf_spans *second,
		    struct sf_spans *ret)
{
	size_t next = 0;

	for (size_t i = 0; i < second->n; i++) {
		const struct sf_span *span = &second->items[i];
		uint32_t start = span->start > end_of(ret) ? span->start : end_of(ret);

		for (; next < first->n && first->items[next].start < span->end; next++) {
			const struct sf_span *winner = &first->items[next];

			if (!push_part(ret, span, start, winner->start) ||
			    !sf_vec_push(ret, *winner))
				return false;
			start = winner->end > start ? winner->end : start;
		}
		if (!push_part(ret, span, start, span->end))
			return false;
	}
	for (; next < first->n; next++) {
		if (!sf_vec_push(ret, first->items[next]))
			return false;
	}
	return true;
}

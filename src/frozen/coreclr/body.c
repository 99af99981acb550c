/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the body that a pc is in: in a heap of jitted code, or among the functions of a precompiled image. Signal-safe. */
#include "frozen/coreclr/body.h"

#include "frozen/frozen.h"

#define MAX_BODIES 4096      /* of one method: its main part and its funclets */
#define CHUNK 16             /* functions read at once */
#define WORD 8

/* The function of a method that holds pc. A method's functions ascend, and the first one is its main part. */
static enum sf_clr_found find_function(const struct sf_clr_range *range, const struct sf_reader *memory,
				       uint64_t functions, uint32_t n, uint64_t pc,
				       struct sf_clr_body *ret)
{
	struct sf_clr_function items[CHUNK];
	const uint64_t rva = pc - range->base;

	for (uint32_t done = 0; done < n; done += CHUNK) {
		const uint32_t now = n - done < CHUNK ? n - done : CHUNK;

		if (!sf_read(memory, items, functions + done * sizeof(items[0]),
			     now * sizeof(items[0])))
			return SF_CLR_FOUND_UNREAD;
		for (uint32_t i = 0; i < now; i++) {
			if (rva < items[i].begin || rva >= items[i].end)
				continue;
			ret->start = range->base + items[i].begin;
			ret->end = range->base + items[i].end;
			ret->unwind = range->base + items[i].unwind;
			return SF_CLR_FOUND_BODY;
		}
	}
	return SF_CLR_FOUND_NOTHING;
}

static enum sf_clr_found find_jitted(const struct sf_clr_layout *layout, const struct sf_clr_range *range,
				     const struct sf_reader *memory, uint64_t pc,
				     struct sf_clr_body *ret)
{
	uint32_t n;

	if (!sf_clr_find_start(layout, range->heap, memory, pc, &ret->method_start))
		return SF_CLR_FOUND_NOTHING;
	if (!sf_read_u64(memory, ret->method_start - WORD, &ret->header))
		return SF_CLR_FOUND_UNREAD;
	if (ret->header <= layout->last_stub_kind) {
		ret->stub_kind = (uint32_t)ret->header;
		return SF_CLR_FOUND_STUB;
	}
	if (!sf_clr_get(layout, memory, SF_CLR_HEADER_METHOD, ret->header, &ret->method) ||
	    !sf_clr_get_u32(layout, memory, SF_CLR_HEADER_N_UNWIND, ret->header, &n))
		return SF_CLR_FOUND_UNREAD;
	if (!n || n > MAX_BODIES || !sf_clr_has(layout, SF_CLR_HEADER_UNWIND))
		return SF_CLR_FOUND_NOTHING;
	return find_function(range, memory, ret->header + layout->fields[SF_CLR_HEADER_UNWIND], n,
			     pc, ret);
}

/* The last function that does not begin above; the first if there is none. */
static uint32_t search(const struct sf_clr_functions *functions, uint64_t rva)
{
	uint32_t at = 0;

	for (uint32_t n = functions->n; n > 1; n -= n / 2)
		at += functions->items[at + n / 2].begin <= rva ? n / 2 : 0;
	return at;
}

static enum sf_clr_found find_precompiled(const struct sf_clr_range *range, uint64_t pc,
					  struct sf_clr_body *ret)
{
	const struct sf_clr_functions *functions = range->functions;
	const uint64_t rva = pc - range->base;
	const struct sf_clr_function *found;

	if (pc >= range->thunks && pc < range->thunks_end)
		return SF_CLR_FOUND_STUB;
	if (!functions || !functions->n)
		return SF_CLR_FOUND_NOTHING;
	ret->function = search(functions, rva);
	found = &functions->items[ret->function];
	if (rva < found->begin || rva >= found->end)
		return SF_CLR_FOUND_NOTHING;
	ret->start = ret->method_start = range->base + found->begin;
	ret->end = range->base + found->end;
	ret->unwind = range->base + found->unwind;
	return SF_CLR_FOUND_BODY;
}

enum sf_clr_found sf_clr_find_body(const struct sf_clr_layout *layout, const struct sf_clr_range *range,
				   const struct sf_reader *memory, uint64_t pc,
				   struct sf_clr_body *ret)
{
	*ret = (struct sf_clr_body){ 0 };
	switch ((enum sf_clr_code)range->code) {
	case SF_CLR_CODE_JITTED:
		return find_jitted(layout, range, memory, pc, ret);
	case SF_CLR_CODE_PRECOMPILED:
		return find_precompiled(range, pc, ret);
	case SF_CLR_CODE_STUBS:
		ret->stub_kind = range->stub_kind;
		return SF_CLR_FOUND_STUB;
	}
	return SF_CLR_FOUND_NOTHING;
}

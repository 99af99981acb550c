/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sorted array of PcDesc says where in the scopes' data the record of an address starts; a
 * record is three compressed numbers: where the caller's record is, which method, which bytecode
 * + 1. Where the arrays are has changed with the JDK (HotSpot: code/nmethod.hpp,
 * code/debugInfoRec.cpp).
 */
#include "runtime/hotspot/scopes.h"

#include "runtime/hotspot/unsigned5.h"

#define MAX_PC_DESCS (1 << 20)
#define MAX_METADATA (1 << 20)

struct arrays {
	const struct sf_hotspot *hotspot;
	const struct sf_reader *memory;
	uint64_t pcs, n_pcs;
	uint64_t data;
	uint64_t methods;
};

static bool get(const struct arrays *arrays, enum sf_hotspot_field_name field, uint64_t base,
		uint64_t *ret)
{
	return sf_hotspot_get(arrays->hotspot, arrays->memory, field, base, ret);
}

/* Up to 22 in the blob itself; 23 and 24 behind its code; from 25 on in memory of their own. */
static bool find_methods(struct arrays *arrays, uint64_t blob)
{
	uint64_t base, offset;

	if (get(arrays, SF_HS_BLOB_MUTABLE, blob, &base)) {
		arrays->methods = base;
		return get(arrays, SF_HS_BLOB_RELOCATION_SIZE, blob, &offset) &&
		       (arrays->methods += offset);
	}
	if (!get(arrays, SF_HS_NM_METADATA, blob, &offset))
		return false;
	arrays->methods = blob + offset;
	if (sf_hotspot_has(arrays->hotspot, SF_HS_NM_IMMUTABLE)) {
		if (!get(arrays, SF_HS_BLOB_DATA_OFFSET, blob, &base))
			return false;
		arrays->methods += base;
	}
	return true;
}

static bool find_arrays(struct arrays *arrays, uint64_t blob)
{
	bool apart = sf_hotspot_has(arrays->hotspot, SF_HS_NM_IMMUTABLE);
	uint64_t base = blob, pcs, data = 0, end, size = arrays->hotspot->sizes[SF_HS_SIZE_PC_DESC];

	if ((apart && !get(arrays, SF_HS_NM_IMMUTABLE, blob, &base)) ||
	    !get(arrays, SF_HS_NM_SCOPES_PCS, blob, &pcs) || !size)
		return false;
	if (!get(arrays, SF_HS_NM_SCOPES_BEGIN, blob, &arrays->data)) {
		if (!get(arrays, SF_HS_NM_SCOPES_DATA, blob, &data))
			return false;
		arrays->data = base + data;
	}
	if (!get(arrays, apart ? SF_HS_NM_SCOPES_DATA : SF_HS_NM_DEPENDENCIES, blob, &end) ||
	    end <= pcs || (end - pcs) / size > MAX_PC_DESCS)
		return false;
	arrays->pcs = base + pcs;
	arrays->n_pcs = (end - pcs) / size;
	return find_methods(arrays, blob);
}

static bool pc_at(const struct arrays *arrays, uint64_t i, int64_t *ret)
{
	uint64_t value;

	if (!get(arrays, SF_HS_PC_OFFSET,
		 arrays->pcs + i * arrays->hotspot->sizes[SF_HS_SIZE_PC_DESC], &value))
		return false;
	*ret = (int64_t)value;
	return true;
}

/* The first record at or behind `offset`; n_pcs when there is none or the array cannot be read. */
static uint64_t find_pc(const struct arrays *arrays, int64_t offset)
{
	uint64_t low = 0, high = arrays->n_pcs;
	int64_t pc;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (!pc_at(arrays, middle, &pc))
			return arrays->n_pcs;
		if (pc < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The chain of scopes of one record, innermost first. */
static void read_chain(const struct arrays *arrays, uint64_t i, struct sf_java_scopes *ret)
{
	uint64_t descriptor = arrays->pcs + i * arrays->hotspot->sizes[SF_HS_SIZE_PC_DESC];
	uint64_t offset, method;
	uint32_t sender, index, bci;
	struct sf_unsigned5 in;

	ret->n = 0;
	if (i >= arrays->n_pcs || !get(arrays, SF_HS_PC_SCOPE, descriptor, &offset))
		return;
	/* Callers' records come earlier, so this ends. */
	while (offset != 0 && (int64_t)offset > 0 && ret->n < SF_JAVA_MAX_INLINED) {
		sf_unsigned5_start(&in, arrays->hotspot, arrays->memory, arrays->data + offset);
		if (!sf_unsigned5_next(&in, &sender) || !sf_unsigned5_next(&in, &index) ||
		    !sf_unsigned5_next(&in, &bci) || index == 0 || index > MAX_METADATA ||
		    !sf_read_u64(arrays->memory, arrays->methods + 8 * ((uint64_t)index - 1),
				 &method))
			break;
		ret->items[ret->n++] = (struct sf_java_scope){ method, (int32_t)(bci - 1) };
		if (sender >= offset)
			break;
		offset = sender;
	}
}

/* Keeps of `above` the outer calls that `below` shares with it. */
static void keep_common(struct sf_java_scopes *above, const struct sf_java_scopes *below)
{
	unsigned common = 0, most = above->n < below->n ? above->n : below->n;

	while (common < most) {
		const struct sf_java_scope *a = &above->items[above->n - 1 - common];
		const struct sf_java_scope *b = &below->items[below->n - 1 - common];

		if (a->method != b->method)
			break;
		common++;
		if (a->bci != b->bci)
			break;
	}
	for (unsigned i = 0; i < common; i++)
		above->items[i] = above->items[above->n - common + i];
	above->n = common;
}

static void find_chain(const struct arrays *arrays, const struct sf_blob *blob, uint64_t pc,
		       bool exact, struct sf_java_scopes *ret)
{
	const int64_t offset = (int64_t)(pc - blob->code_start);
	uint64_t i = find_pc(arrays, offset);
	struct sf_java_scopes below;
	int64_t found;

	if (i >= arrays->n_pcs || !pc_at(arrays, i, &found))
		return;
	read_chain(arrays, i, ret);
	if (found == offset)
		return;
	/* Where all code is described, a record speaks for what is before it. */
	if (exact && arrays->hotspot->describes_all)
		return;
	ret->approximate = true;
	/* A call of a leaf routine has no record: the next one is the nearest. */
	if (!exact)
		return;
	below.n = 0;
	if (i > 0)
		read_chain(arrays, i - 1, &below);
	keep_common(ret, &below);
}

void sf_java_scopes_find(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			 const struct sf_blob *blob, uint64_t pc, bool exact,
			 struct sf_java_scopes *ret)
{
	struct arrays arrays = { .hotspot = hotspot, .memory = memory };

	ret->n = 0;
	ret->approximate = false;
	if (blob->class == SF_BLOB_COMPILED && find_arrays(&arrays, blob->address))
		find_chain(&arrays, blob, pc, exact, ret);
	/* The outermost is the compiled method itself: nothing else can be right. */
	if (ret->n > 0 && ret->items[ret->n - 1].method != blob->method)
		ret->n = 0;
	if (ret->n == 0 && blob->method) {
		ret->items[0] = (struct sf_java_scope){ blob->method, -1 };
		ret->n = 1;
		ret->approximate = blob->class == SF_BLOB_COMPILED;
	}
}

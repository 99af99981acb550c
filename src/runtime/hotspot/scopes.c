/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the methods and bytecodes, inlined ones included, of an address in compiled Java code.
 *
 * A sorted array of PcDesc says where in the scopes' data the record of an address starts; a
 * record is three compressed numbers: where the caller's record is, which method, which bytecode
 * + 1. Where the arrays are has changed with the JDK (HotSpot: code/nmethod.hpp,
 * code/debugInfoRec.cpp).
 */
#include "runtime/hotspot/scopes.h"

#include "frozen/hotspot/instruction.h"
#include "runtime/hotspot/metadata.h"
#include "runtime/hotspot/unsigned5.h"

#define MAX_PC_DESCS (1 << 20)
#define MAX_METADATA (1 << 20)
#define SLOW_PART 256    /* bytes of code that are looked through for the jump back from a slow part */

/* Bytes that are read ahead. */
#define PCS_AHEAD 512    /* around where a record is expected */
#define DATA_AHEAD 192   /* with those of its callers, which come before it */
#define RECORD 64        /* ... from where it starts on */
#define METHODS_AHEAD 128

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

static uint64_t record_at(const struct arrays *arrays, uint64_t i)
{
	return arrays->pcs + i * arrays->hotspot->sizes[SF_HS_SIZE_PC_DESC];
}

static bool pc_at(const struct arrays *arrays, uint64_t i, int64_t *ret)
{
	uint64_t value;

	if (!get(arrays, SF_HS_PC_OFFSET, record_at(arrays, i), &value))
		return false;
	*ret = (int64_t)value;
	return true;
}

/* The range for the search of a record: the record is not before `low`, and not behind `high`. */
struct between {
	uint64_t low, high;
	uint64_t step;       /* how far from the last look the next one is, as long as one side is not known */
};

/* Records lie about evenly over the code: not far from where this one is expected. */
static uint64_t look_next(struct between *between, uint64_t n)
{
	const uint64_t low = between->low, high = between->high, step = between->step;

	between->step = 2 * step;
	if (low > 0 && high == n && step < n - low)
		return low + step;
	if (low == 0 && high < n && step < high)
		return high - step;
	return low + (high - low) / 2;
}

static uint64_t guess_pc(const struct arrays *arrays, int64_t offset, uint64_t size)
{
	const uint64_t i = size ? arrays->n_pcs * (uint64_t)offset / size : 0;

	return i < arrays->n_pcs ? i : arrays->n_pcs - 1;
}

/* The first record at or behind `offset`; n_pcs when there is none or the array cannot be read. */
static uint64_t find_pc(const struct arrays *arrays, int64_t offset, uint64_t size)
{
	const uint64_t n = arrays->n_pcs;
	struct between between = { .high = n, .step = 1 };
	uint64_t i;
	int64_t pc;

	for (i = guess_pc(arrays, offset, size); between.low < between.high; i = look_next(&between, n)) {
		if (!pc_at(arrays, i, &pc))
			return n;
		if (pc < offset)
			between.low = i + 1;
		else
			between.high = i;
	}
	return between.low;
}

/* The chain of scopes of one record, innermost first. */
static void read_chain(const struct arrays *arrays, uint64_t i, struct sf_java_scopes *ret)
{
	uint64_t offset, method;
	uint32_t sender, index, bci;
	struct sf_unsigned5 in;

	ret->n = 0;
	if (i >= arrays->n_pcs || !get(arrays, SF_HS_PC_SCOPE, record_at(arrays, i), &offset))
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

static uint32_t line_of(const struct arrays *arrays, const struct sf_java_scope *scope)
{
	uint64_t constant;

	return get(arrays, SF_HS_METHOD_CONST, scope->method, &constant) ?
		       sf_java_line(arrays->hotspot, arrays->memory, constant, scope->bci) : 0;
}

/* Keeps of `above` the outer calls that `below` shares with it; of the innermost the bytecode, if it is on the same line. */
static void keep_common(const struct arrays *arrays, struct sf_java_scopes *above, const struct sf_java_scopes *below)
{
	unsigned common = 0, most = above->n < below->n ? above->n : below->n;

	while (common < most) {
		struct sf_java_scope *a = &above->items[above->n - 1 - common];
		const struct sf_java_scope *b = &below->items[below->n - 1 - common];

		if (a->method != b->method)
			break;
		common++;
		if (a->bci == b->bci)
			continue;
		if (line_of(arrays, a) != line_of(arrays, b))
			a->bci = -1;
		break;
	}
	for (unsigned i = 0; i < common; i++)
		above->items[i] = above->items[above->n - common + i];
	above->n = common;
}

/*
 * Whether the compiler has described the instructions between safepoints, too (DebugNonSafepoints, which may have been on for a
 * part of the time). Each record of a safepoint, and no other, has an oop map (HotSpot: code/debugInfoRec.cpp,
 * add_safepoint and add_non_safepoint). So more records than oop maps prove that there are others. The first record and
 * the last are limits, and describe nothing.
 */
static bool is_described(const struct arrays *arrays, uint64_t blob)
{
	uint64_t maps, n;

	if (arrays->hotspot->describes_all)
		return true;
	return sf_hotspot_has(arrays->hotspot, SF_HS_OOP_MAPS_N) && get(arrays, SF_HS_BLOB_OOP_MAPS, blob, &maps) &&
	       (!maps || get(arrays, SF_HS_OOP_MAPS_N, maps, &n)) && arrays->n_pcs > 2 + (maps ? n : 0);
}

static bool is_jmp(const struct sf_instruction *in)
{
	return in->map == SF_MAP_ONE && (in->opcode == 0xe9 || in->opcode == 0xeb);
}

/* A jump in a register, ret and hlt. */
static bool leads_nowhere(const struct sf_instruction *in)
{
	return in->map == SF_MAP_ONE && (in->opcode == 0xc3 || in->opcode == 0xf4 || (in->opcode == 0xff && (in->reg & 6) == 4));
}

/*
 * Slow parts of instructions stand behind all that is described: of barriers of garbage collectors (HotSpot: BarrierStubC2;
 * of G1's since JDK 24). Such a part is of the instruction behind which it jumps back. `end`: where the last record is.
 * -1: this is none.
 */
static int64_t find_way_back(const struct arrays *arrays, const struct sf_blob *blob, int64_t offset, int64_t end)
{
	const uint64_t pc = blob->code_start + (uint64_t)offset, left = blob->code_end - pc;
	const size_t n = left < SLOW_PART ? (size_t)left : SLOW_PART;
	uint8_t code[SLOW_PART];
	struct sf_instruction in;

	if (!sf_read(arrays->memory, code, pc, n))
		return -1;
	for (size_t at = 0; sf_instruction_decode(code + at, n - at, &in); at += in.size) {
		const int64_t to = offset + (int64_t)(at + in.size) + in.immediate;

		if (in.is_vector)
			continue;
		if ((sf_instruction_is_conditional(&in) || is_jmp(&in)) && to >= 0 && to <= end)
			return to;
		if (is_jmp(&in) || leads_nowhere(&in))
			return -1;
	}
	return -1;
}

/*
 * Where the instruction at `offset` is described, whose record is the i-th; itself, where nothing else is known. The last record
 * is the limit: what has that one is behind all that is described.
 */
static int64_t place_of(const struct arrays *arrays, const struct sf_blob *blob, int64_t offset, uint64_t i)
{
	int64_t end, back;

	if (i < 2 || i + 1 != arrays->n_pcs || !pc_at(arrays, i - 1, &end) || !is_described(arrays, blob->address))
		return offset;
	back = find_way_back(arrays, blob, offset, end);
	return back < 0 ? offset : back;
}

static void find_chain(const struct arrays *arrays, const struct sf_blob *blob, uint64_t pc,
		       bool exact, struct sf_java_scopes *ret)
{
	const uint64_t size = blob->code_end - blob->code_start;
	const int64_t here = (int64_t)(pc - blob->code_start);
	uint64_t i = find_pc(arrays, here, size);
	const int64_t offset = place_of(arrays, blob, here, i);
	struct sf_java_scopes below;
	int64_t found;

	if (offset != here)
		i = find_pc(arrays, offset, size);

	if (i >= arrays->n_pcs || !pc_at(arrays, i, &found))
		return;
	read_chain(arrays, i, ret);
	if (found == offset)
		return;
	/* Where all instructions are described, a record speaks for what is before it. */
	if (exact && is_described(arrays, blob->address))
		return;
	/* As little as an instruction between safepoints has a call of a leaf routine a record of its own. */
	ret->approximate = true;
	below.n = 0;
	if (i > 0)
		read_chain(arrays, i - 1, &below);
	keep_common(arrays, ret, &below);
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
	/* Nothing is inlined into a method that calls nothing, as most that return a field. */
	if (ret->approximate && ret->n == 1 && sf_java_calls_nothing(hotspot, memory, ret->items[0].method))
		ret->approximate = false;
}

bool sf_java_compiled(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		      const struct sf_frame *frame, struct sf_blob *ret)
{
	const uint8_t class = frame->kind == SF_KIND_NATIVE_METHOD ? SF_BLOB_WRAPPER : SF_BLOB_COMPILED;
	const uint64_t pc = frame->pc - !(frame->flags & SF_FRAME_EXACT);
	uint8_t header[SF_HOTSPOT_MAX_HEADER];

	return sf_read(memory, header, sf_hotspot_header(hotspot, frame->token),
		       hotspot->header_size) &&
	       sf_hotspot_blob_from(hotspot, frame->token, class, header, ret) &&
	       pc >= ret->code_start && pc < ret->code_end && ret->compile_id == frame->id;
}

/* --- reading ahead, a step for all of them at once --- */

/* Of a frame, of which this is wanted. False: it has none. */
static bool find_expected(struct arrays *arrays, const struct sf_frame *frame, struct sf_blob *blob)
{
	return (frame->kind == SF_KIND_C1 || frame->kind == SF_KIND_C2) &&
	       sf_java_compiled(arrays->hotspot, arrays->memory, frame, blob) &&
	       find_arrays(arrays, blob->address) && arrays->n_pcs;
}

static void want_records(struct arrays *arrays, const struct sf_prefetch *ahead,
			 const struct sf_frame *frame)
{
	struct sf_blob blob;
	uint64_t i;

	if (!find_expected(arrays, frame, &blob))
		return;
	i = guess_pc(arrays, (int64_t)(frame->pc - blob.code_start), blob.code_end - blob.code_start);
	sf_prefetch_want(ahead, record_at(arrays, i) - PCS_AHEAD / 2, PCS_AHEAD);
	sf_prefetch_want(ahead, arrays->methods, METHODS_AHEAD);
}

static void want_data(struct arrays *arrays, const struct sf_prefetch *ahead,
		      const struct sf_frame *frame)
{
	struct sf_blob blob;
	uint64_t i, offset, before, start;

	if (!find_expected(arrays, frame, &blob))
		return;
	i = find_pc(arrays, (int64_t)(frame->pc - blob.code_start), blob.code_end - blob.code_start);
	if (i >= arrays->n_pcs || !get(arrays, SF_HS_PC_SCOPE, record_at(arrays, i), &offset))
		return;
	before = offset < DATA_AHEAD - RECORD ? offset : DATA_AHEAD - RECORD;
	start = arrays->data + offset - before;
	sf_prefetch_want(ahead, start, sf_unsigned5_reads(start, before + RECORD));
}

void sf_java_scopes_expect(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			   const struct sf_prefetch *ahead, const struct sf_frame *const *frames, size_t n)
{
	struct arrays arrays = { .hotspot = hotspot, .memory = memory };

	for (size_t i = 0; i < n; i++)
		want_records(&arrays, ahead, frames[i]);
	sf_prefetch_fetch(ahead);
	for (size_t i = 0; i < n; i++)
		want_data(&arrays, ahead, frames[i]);
	sf_prefetch_fetch(ahead);
}

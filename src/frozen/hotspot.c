/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a virtual machine's structures: fields by their description, pieces of code by an
 * address in them, methods. The heap of code is divided into segments; a byte for each says how
 * far back its piece starts (HotSpot: memory/heap.cpp, CodeHeap::find_start).
 */
#include <string.h>

#include "frozen/hotspot.h"

#include "frozen/frozen.h"

/* A byte of the segment map leads back by at most 254; hops of one are legal, too. */
#define MAX_HOPS 1000
#define SEGMENT_FREE 0xff
#define MAX_BLOB_SIZE (64 << 20)
#define MAX_FRAME_WORDS (1 << 17)

static uint64_t widen(const uint8_t *bytes, const struct sf_hotspot_field *field)
{
	uint64_t value = 0;
	unsigned unused = 64 - 8u * field->width;

	memcpy(&value, bytes, field->width);
	if (field->is_signed)
		return (uint64_t)((int64_t)(value << unused) >> unused);
	return value;
}

bool sf_hotspot_get(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		    enum sf_hotspot_field_name name, uint64_t base, uint64_t *ret)
{
	const struct sf_hotspot_field *field = &hotspot->fields[name];
	uint8_t bytes[8];

	if (!field->width || field->width > sizeof(bytes) ||
	    !sf_read(memory, bytes, field->is_static ? field->at : base + field->at, field->width))
		return false;
	*ret = widen(bytes, field);
	return true;
}

/* What was read of a piece of code, in one go. */
struct header {
	const struct sf_hotspot *hotspot;
	uint64_t address;
	uint8_t bytes[SF_HOTSPOT_MAX_HEADER];
};

/* A field of the header, or `otherwise` when this virtual machine does not have it. */
static uint64_t take(const struct header *header, enum sf_hotspot_field_name name,
		     uint64_t otherwise)
{
	const struct sf_hotspot_field *field = &header->hotspot->fields[name];

	if (!field->width || field->at > sizeof(header->bytes) - sizeof(uint64_t))
		return otherwise;
	return widen(header->bytes + field->at, field);
}

/*
 * A place in the piece of code: by a pointer, or by an offset from `base`; 0 when neither is
 * there.
 */
static uint64_t take_place(const struct header *header, enum sf_hotspot_field_name pointer,
			   enum sf_hotspot_field_name offset, uint64_t base)
{
	if (sf_hotspot_has(header->hotspot, pointer))
		return take(header, pointer, 0);
	return sf_hotspot_has(header->hotspot, offset) ? base + take(header, offset, 0) : 0;
}

/* What the name says; the first that fits. To add one: add a line. */
static const struct {
	const char *start;
	uint8_t class;
} classes[] = {
	{ "nmethod", SF_BLOB_COMPILED },
	{ "native nmethod", SF_BLOB_WRAPPER },
	{ "Interpreter", SF_BLOB_INTERPRETER },
	{ "vtable chunks", SF_BLOB_VTABLE },
	{ "I2C/C2I adapters", SF_BLOB_ADAPTER },
	{ "MethodHandles adapters", SF_BLOB_ADAPTER },
	{ "StubRoutines (continuation", SF_BLOB_CONTINUATIONS },
	{ "StubRoutines", SF_BLOB_STUBS },
	{ "DeoptimizationBlob", SF_BLOB_DEOPT },
	{ "UncommonTrapBlob", SF_BLOB_DEOPT },
};

static uint8_t class_of(const char *name)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		const char *start = classes[i].start;
		size_t n = 0;

		while (start[n] && start[n] == name[n])
			n++;
		if (!start[n])
			return classes[i].class;
	}
	return SF_BLOB_RUNTIME;
}

/* A string whose end is not known: what can be read of it, in pieces that stay on one page. */
static bool read_name(const struct sf_reader *memory, uint64_t address, char ret[SF_BLOB_NAME])
{
	size_t n = 0;

	memset(ret, 0, SF_BLOB_NAME);
	while (address && n < SF_BLOB_NAME - 1) {
		size_t room = 4096 - (size_t)((address + n) & 4095);
		size_t size = SF_BLOB_NAME - 1 - n < room ? SF_BLOB_NAME - 1 - n : room;

		if (!sf_read(memory, ret + n, address + n, size)) {
			ret[n] = 0;
			break;
		}
		for (; size > 0 && ret[n]; size--)
			n++;
		if (size > 0)
			break;
	}
	return ret[0] != 0;
}

static const struct sf_hotspot_heap *find_heap(const struct sf_hotspot *hotspot, uint64_t pc)
{
	for (uint32_t i = 0; i < hotspot->n_heaps && i < SF_HOTSPOT_HEAPS; i++) {
		const struct sf_hotspot_heap *heap = &hotspot->heaps[i];

		if (pc >= heap->low && pc < heap->high && heap->log2_segment < 32)
			return heap;
	}
	return NULL;
}

/* The block that holds pc, 0 if there is none. */
static uint64_t find_block(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			   uint64_t pc)
{
	const struct sf_hotspot_heap *heap = find_heap(hotspot, pc);
	uint64_t segment;
	uint8_t back;

	if (!heap)
		return 0;
	segment = (pc - heap->low) >> heap->log2_segment;
	for (unsigned i = 0; i < MAX_HOPS; i++) {
		if (!sf_read(memory, &back, heap->segmap + segment, 1) || back == SEGMENT_FREE ||
		    back > segment)
			return 0;
		if (back == 0)
			return heap->low + (segment << heap->log2_segment);
		segment -= back;
	}
	return 0;
}

static bool read_header(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			uint64_t block, struct header *ret)
{
	const struct sf_hotspot_field *used = &hotspot->fields[SF_HS_BLOCK_USED];
	uint32_t size = hotspot->header_size;
	uint8_t block_header[16];

	if (size > sizeof(ret->bytes) || used->at >= sizeof(block_header) ||
	    !sf_read(memory, block_header, block, sizeof(block_header)) || !block_header[used->at])
		return false;
	ret->hotspot = hotspot;
	ret->address = block + hotspot->sizes[SF_HS_SIZE_BLOCK];
	memset(ret->bytes, 0, sizeof(ret->bytes));
	return sf_read(memory, ret->bytes, ret->address, size);
}

static void fill_compiled(const struct header *header, struct sf_blob *blob)
{
	blob->entry = take_place(header, SF_HS_NM_ENTRY, SF_HS_NM_ENTRY_OFFSET, blob->code_start);
	blob->deopt = take_place(header, SF_HS_NM_DEOPT, SF_HS_NM_DEOPT_OFFSET, blob->address);
	blob->deopt_mh = take_place(header, SF_HS_NM_DEOPT_MH, SF_HS_NM_DEOPT_MH_OFFSET,
				    blob->address);
	blob->method = take(header, SF_HS_NM_METHOD, 0);
	blob->orig_pc = (int64_t)take(header, SF_HS_NM_ORIG_PC, 0);
	blob->compile_id = (uint32_t)take(header, SF_HS_NM_COMPILE_ID, 0);
	blob->level = (uint8_t)take(header, SF_HS_NM_LEVEL, 0);
	if (blob->entry < blob->code_start || blob->entry >= blob->code_end)
		blob->entry = blob->code_start;
	/* Code that is not for a loop says its start. */
	blob->loop_entry = take(header, SF_HS_NM_LOOP_ENTRY, 0);
	if (blob->loop_entry <= blob->entry || blob->loop_entry >= blob->code_end)
		blob->loop_entry = 0;
}

bool sf_hotspot_blob(const struct sf_hotspot *hotspot, const struct sf_reader *memory, uint64_t pc,
		     struct sf_blob *ret)
{
	uint64_t block = find_block(hotspot, memory, pc), size;
	struct header header;
	int64_t words;

	if (!block || !read_header(hotspot, memory, block, &header))
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->address = header.address;
	size = take(&header, SF_HS_BLOB_SIZE, 0);
	ret->code_start = take_place(&header, SF_HS_BLOB_CODE_BEGIN, SF_HS_BLOB_CODE_OFFSET,
				     ret->address);
	ret->code_end = take_place(&header, SF_HS_BLOB_CODE_END, SF_HS_BLOB_DATA_OFFSET,
				   ret->address);
	if (size > MAX_BLOB_SIZE || ret->code_start < ret->address ||
	    ret->code_end < ret->code_start || ret->code_end - ret->address > size ||
	    pc < ret->code_start || pc >= ret->code_end)
		return false;
	words = (int64_t)take(&header, SF_HS_BLOB_FRAME_SIZE, 0);
	ret->frame_size = words < 0 || words > MAX_FRAME_WORDS ? -1 : (int32_t)words;
	ret->frame_complete = (int32_t)take(&header, SF_HS_BLOB_FRAME_COMPLETE, (uint64_t)-1);
	if (!read_name(memory, take(&header, SF_HS_BLOB_NAME, 0), ret->name))
		return false;
	ret->class = class_of(ret->name);
	if (ret->class == SF_BLOB_COMPILED || ret->class == SF_BLOB_WRAPPER)
		fill_compiled(&header, ret);
	return true;
}

bool sf_hotspot_method(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		       uint64_t method, uint64_t bcp, int32_t *bci_ret, uint32_t *id_ret)
{
	uint64_t constant, pool, code_size, start;

	*bci_ret = -1;
	if (method < 4096 || method % 8 != 0 ||
	    !sf_hotspot_get(hotspot, memory, SF_HS_METHOD_CONST, method, &constant) ||
	    constant < 4096 || constant % 8 != 0 ||
	    !sf_hotspot_get(hotspot, memory, SF_HS_CONST_POOL, constant, &pool) ||
	    pool < 4096 || pool % 8 != 0 ||
	    !sf_hotspot_get(hotspot, memory, SF_HS_CONST_CODE_SIZE, constant, &code_size))
		return false;
	if (id_ret)
		*id_ret = (uint32_t)(constant >> 3);
	/* The bytecodes follow the ConstMethod at once. */
	start = constant + hotspot->sizes[SF_HS_SIZE_CONST_METHOD];
	if (bcp >= start && bcp - start < code_size)
		*bci_ret = (int32_t)(bcp - start);
	return true;
}

bool sf_hotspot_is_thread(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			  uint64_t thread, int32_t tid)
{
	uint64_t os, id;

	return sf_hotspot_get(hotspot, memory, SF_HS_THREAD_OS, thread, &os) && os &&
	       sf_hotspot_get(hotspot, memory, SF_HS_OS_ID, os, &id) && (int32_t)id == tid;
}

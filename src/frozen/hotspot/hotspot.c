/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a virtual machine's structures: fields by their description, methods, threads, and pieces of its code. Signal-safe.
 */
#include "frozen/hotspot/hotspot.h"
#include "frozen/memory/hash.h"

#include "frozen/frozen.h"

bool sf_hotspot_get(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		    enum sf_hotspot_field_name name, uint64_t base, uint64_t *ret)
{
	const struct sf_hotspot_field *field = &hotspot->fields[name];
	uint8_t bytes[8] = { 0 };

	if (!field->width || field->width > sizeof(bytes) ||
	    !sf_read(memory, bytes, field->is_static ? field->at : base + field->at, field->width))
		return false;
	*ret = sf_hotspot_widen(field, bytes);
	return true;
}

bool sf_hotspot_method_from(const struct sf_hotspot *hotspot, uint64_t address, uint64_t constant,
			    const uint8_t *bytes, struct sf_method *ret)
{
	const uint32_t size = hotspot->sizes[SF_HS_SIZE_CONST_METHOD];

	*ret = (struct sf_method){
		.address = address, .constant = constant,
		.pool = sf_hotspot_pick(hotspot, SF_HS_CONST_POOL, bytes, size, 0),
		.code_size = sf_hotspot_pick(hotspot, SF_HS_CONST_CODE_SIZE, bytes, size, 0),
	};
	return sf_hotspot_is_metadata(constant) && sf_hotspot_is_metadata(ret->pool);
}

bool sf_hotspot_method(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		       uint64_t address, struct sf_method *ret)
{
	const uint32_t size = hotspot->sizes[SF_HS_SIZE_CONST_METHOD];
	uint8_t bytes[SF_HOTSPOT_MAX_CONST];
	uint64_t constant;

	return sf_hotspot_is_metadata(address) && size <= sizeof(bytes) &&
	       sf_hotspot_get(hotspot, memory, SF_HS_METHOD_CONST, address, &constant) &&
	       sf_hotspot_is_metadata(constant) && sf_read(memory, bytes, constant, size) &&
	       sf_hotspot_method_from(hotspot, address, constant, bytes, ret);
}

int32_t sf_hotspot_bci(const struct sf_hotspot *hotspot, const struct sf_method *method,
		       uint64_t bcp)
{
	/* The bytecodes follow the ConstMethod at once. */
	const uint64_t start = method->constant + hotspot->sizes[SF_HS_SIZE_CONST_METHOD];

	return bcp >= start && bcp - start < method->code_size ? (int32_t)(bcp - start) : -1;
}

bool sf_hotspot_is_thread(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			  uint64_t thread, int32_t tid)
{
	uint64_t os, id;

	return sf_hotspot_get(hotspot, memory, SF_HS_THREAD_OS, thread, &os) && os &&
	       sf_hotspot_get(hotspot, memory, SF_HS_OS_ID, os, &id) && (int32_t)id == tid;
}

/*
 * --- pieces of code ---
 *
 * The heap of code is divided into segments; a byte for each says how far back its piece starts (HotSpot: memory/heap.cpp,
 * CodeHeap::find_start). There is a block's header, and behind it a CodeBlob.
 */

/*
 * A byte of the segment map leads back by at most 254; hops of one are legal, too. The map is read in pieces that are on
 * one page: so many lead over code of 3 MB.
 */
#define MAP_PIECE 64
#define MAX_PIECES 100
#define SEGMENT_FREE 0xff
#define MAX_BLOB_SIZE (64 << 20)
#define MAX_FRAME_WORDS (1 << 17)

/* --- where it begins --- */

static const struct sf_hotspot_heap *find_heap(const struct sf_hotspot *hotspot, uint64_t pc)
{
	for (uint32_t i = 0; i < hotspot->n_heaps && i < SF_HOTSPOT_HEAPS; i++) {
		const struct sf_hotspot_heap *heap = &hotspot->heaps[i];

		if (pc >= heap->low && pc < heap->high && heap->log2_segment < 32)
			return heap;
	}
	return NULL;
}

/* A piece of a segment map: of the segments from `first` on. */
struct map_piece {
	uint64_t first;
	uint32_t n;
	uint8_t bytes[MAP_PIECE];
};

/* The piece that ends with this segment. */
static bool read_piece(const struct sf_hotspot_heap *heap, const struct sf_reader *memory,
		       uint64_t segment, struct map_piece *ret)
{
	const uint64_t before = (heap->segmap + segment) % MAP_PIECE;

	ret->n = (uint32_t)(before < segment ? before : segment) + 1;
	ret->first = segment - (ret->n - 1);
	return sf_read(memory, ret->bytes, heap->segmap + ret->first, ret->n);
}

uint64_t sf_hotspot_blob_start(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			       uint64_t pc)
{
	const struct sf_hotspot_heap *heap = find_heap(hotspot, pc);
	uint64_t segment = heap ? (pc - heap->low) >> heap->log2_segment : 0;
	struct map_piece piece;
	uint8_t back;

	for (unsigned i = 0; heap && i < MAX_PIECES && read_piece(heap, memory, segment, &piece); i++) {
		while (segment >= piece.first) {
			back = piece.bytes[segment - piece.first];
			if (back == 0)
				return heap->low + (segment << heap->log2_segment) +
				       hotspot->sizes[SF_HS_SIZE_BLOCK];
			if (back == SEGMENT_FREE || back > segment)
				return 0;
			segment -= back;
		}
	}
	return 0;
}

/* --- what its header says --- */

/* The bytes of a block and its CodeBlob. */
struct header {
	const struct sf_hotspot *hotspot;
	uint64_t address;        /* of the CodeBlob */
	const uint8_t *bytes;    /* hotspot->header_size of them */
};

/* A field of the CodeBlob, or `otherwise` when this virtual machine does not have it. */
static uint64_t take(const struct header *header, enum sf_hotspot_field_name name,
		     uint64_t otherwise)
{
	const struct sf_hotspot *hotspot = header->hotspot;
	const uint32_t block = hotspot->sizes[SF_HS_SIZE_BLOCK];

	return sf_hotspot_pick(hotspot, name, header->bytes + block, hotspot->header_size - block,
			       otherwise);
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

static bool is_used(const struct header *header)
{
	const struct sf_hotspot_field *used = &header->hotspot->fields[SF_HS_BLOCK_USED];

	return used->at < header->hotspot->header_size && header->bytes[used->at];
}

/* Fills the fields that every piece of code has, except for its class, which follows from its name. */
static bool fill(const struct header *header, struct sf_blob *ret)
{
	const uint64_t size = take(header, SF_HS_BLOB_SIZE, 0);
	const int64_t words = (int64_t)take(header, SF_HS_BLOB_FRAME_SIZE, 0);

	*ret = (struct sf_blob){
		.address = header->address,
		.code_start = take_place(header, SF_HS_BLOB_CODE_BEGIN, SF_HS_BLOB_CODE_OFFSET,
					 header->address),
		.code_end = take_place(header, SF_HS_BLOB_CODE_END, SF_HS_BLOB_DATA_OFFSET,
				       header->address),
		.frame_size = words < 0 || words > MAX_FRAME_WORDS ? -1 : (int32_t)words,
		.frame_complete = (int32_t)take(header, SF_HS_BLOB_FRAME_COMPLETE, (uint64_t)-1),
		.name = take(header, SF_HS_BLOB_NAME, 0),
	};
	return is_used(header) && size <= MAX_BLOB_SIZE && ret->code_start >= ret->address &&
	       ret->code_end >= ret->code_start && ret->code_end - ret->address <= size;
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

static void classify(const struct header *header, uint8_t class, struct sf_blob *ret)
{
	ret->class = class;
	if (class == SF_BLOB_COMPILED || class == SF_BLOB_WRAPPER)
		fill_compiled(header, ret);
}

/* --- what it is --- */

/* Classes by the start of the name; the first match counts. To add one: add a line. */
static const struct {
	const char *start;
	uint8_t class;
} classes[] = {
	{ "nmethod", SF_BLOB_COMPILED },
	{ "native nmethod", SF_BLOB_WRAPPER },
	{ "Interpreter", SF_BLOB_INTERPRETER },
	{ "vtable chunks", SF_BLOB_VTABLE },
	{ "InlineCacheBuffer", SF_BLOB_VTABLE }, /* a call's new target waits there for a safepoint: mov rax, i64; jmp */
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

bool sf_hotspot_blob_from(const struct sf_hotspot *hotspot, uint64_t address, uint8_t class,
			  const uint8_t *bytes, struct sf_blob *ret)
{
	const struct header header = { hotspot, address, bytes };

	if (!fill(&header, ret))
		return false;
	classify(&header, class, ret);
	return true;
}

static _Atomic uint64_t *place_of(struct sf_hotspot_names *names, uint64_t address)
{
	return &names->known[sf_hash(address, 32) % SF_HOTSPOT_NAMES];
}

static bool find_class(const struct sf_reader *memory, struct sf_hotspot_names *names,
		       uint64_t address, uint8_t *ret)
{
	const uint64_t known = names ? atomic_load_explicit(place_of(names, address),
							    memory_order_relaxed) : 0;
	char name[SF_BLOB_NAME];

	if (known && known >> SF_HOTSPOT_NAME_SHIFT == address) {
		*ret = (uint8_t)(known - 1);
		return true;
	}
	if (!read_name(memory, address, name))
		return false;
	*ret = class_of(name);
	if (names)
		atomic_store_explicit(place_of(names, address),
				      address << SF_HOTSPOT_NAME_SHIFT | (*ret + 1u),
				      memory_order_relaxed);
	return true;
}

bool sf_hotspot_blob_at(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			uint64_t address, uint64_t pc, struct sf_hotspot_names *names,
			struct sf_blob *ret)
{
	uint8_t bytes[SF_HOTSPOT_MAX_HEADER];
	const struct header header = { hotspot, address, bytes };
	uint8_t class;

	if (!sf_read(memory, bytes, sf_hotspot_header(hotspot, address), hotspot->header_size) ||
	    !fill(&header, ret) || pc < ret->code_start || pc >= ret->code_end ||
	    !find_class(memory, names, ret->name, &class))
		return false;
	classify(&header, class, ret);
	return true;
}

bool sf_hotspot_blob(const struct sf_hotspot *hotspot, const struct sf_reader *memory, uint64_t pc,
		     struct sf_blob *ret)
{
	const uint64_t start = sf_hotspot_blob_start(hotspot, memory, pc);

	return start && sf_hotspot_blob_at(hotspot, memory, start, pc, NULL, ret);
}

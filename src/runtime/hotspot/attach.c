/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attaches to a HotSpot JVM: reads its tables, checks that they are sufficient, and finds the code heaps and the
 * interpreter.
 */
#include "runtime/hotspot/attach.h"

#include <stdio.h>
#include <string.h>

#include "runtime/hotspot/self_test.h"
#include "runtime/hotspot/tables.h"
#include "runtime/hotspot/threads.h"
#include "frozen/runtime_list.h"

#define MAX_CODELETS 4096
#define MAX_ENTRY_SIZE 16384
#define MAX_HEAP (UINT64_C(4) << 30) /* HotSpot: CODE_CACHE_SIZE_LIMIT is 2 GB */
#define MAX_INTERPRETER (64u << 20)

#define FIELDS_END SF_HS_N_FIELDS

/*
 * The fields that are needed: one of each line must exist. If none exists, the details named by `lost`
 * are not available; `lost` NULL: no frame can be walked. To add a need: add a line.
 */
static const struct need {
	uint16_t any_of[3];      /* FIELDS_END: no more */
	const char *lost;
} needs[] = {
	{ { SF_HS_CODE_HEAPS, SF_HS_CODE_HEAP, FIELDS_END }, NULL },
	{ { SF_HS_HEAP_MEMORY, FIELDS_END }, NULL },
	{ { SF_HS_HEAP_SEGMAP, FIELDS_END }, NULL },
	{ { SF_HS_HEAP_LOG2, FIELDS_END }, NULL },
	{ { SF_HS_SPACE_LOW, FIELDS_END }, NULL },
	{ { SF_HS_SPACE_HIGH, FIELDS_END }, NULL },
	{ { SF_HS_BLOCK_USED, FIELDS_END }, NULL },
	{ { SF_HS_CALL_STUB, FIELDS_END }, NULL },
	{ { SF_HS_INTERPRETER, FIELDS_END }, NULL },
	{ { SF_HS_BLOB_NAME, FIELDS_END }, NULL },
	{ { SF_HS_BLOB_SIZE, FIELDS_END }, NULL },
	{ { SF_HS_BLOB_CODE_BEGIN, SF_HS_BLOB_CODE_OFFSET, FIELDS_END }, NULL },
	{ { SF_HS_BLOB_CODE_END, SF_HS_BLOB_DATA_OFFSET, FIELDS_END }, NULL },
	{ { SF_HS_BLOB_FRAME_SIZE, FIELDS_END }, NULL },
	{ { SF_HS_METHOD_CONST, FIELDS_END }, NULL },
	{ { SF_HS_CONST_POOL, FIELDS_END }, NULL },
	{ { SF_HS_CONST_CODE_SIZE, FIELDS_END }, NULL },
	{ { SF_HS_NM_METHOD, FIELDS_END }, "the names of compiled methods" },
	{ { SF_HS_NM_ENTRY, SF_HS_NM_ENTRY_OFFSET, FIELDS_END },
	  "callers of methods being entered" },
	{ { SF_HS_NM_LEVEL, FIELDS_END }, "which compiler made a method" },
	{ { SF_HS_NM_COMPILE_ID, FIELDS_END }, "telling compiled methods apart" },
	{ { SF_HS_NM_DEOPT, SF_HS_NM_DEOPT_OFFSET, FIELDS_END }, "lines of deoptimized methods" },
	{ { SF_HS_NM_ORIG_PC, FIELDS_END }, "lines of deoptimized methods" },
	{ { SF_HS_NM_SCOPES_PCS, FIELDS_END }, "inlined calls and lines of compiled methods" },
	{ { SF_HS_NM_SCOPES_BEGIN, SF_HS_NM_SCOPES_DATA, FIELDS_END },
	  "inlined calls and lines of compiled methods" },
	{ { SF_HS_NM_METADATA, SF_HS_BLOB_MUTABLE, FIELDS_END },
	  "inlined calls and lines of compiled methods" },
	{ { SF_HS_PC_SCOPE, FIELDS_END }, "inlined calls and lines of compiled methods" },
	{ { SF_HS_CONST_NAME, FIELDS_END }, "the names of methods" },
	{ { SF_HS_POOL_HOLDER, FIELDS_END }, "the names of classes" },
	{ { SF_HS_CLASS_NAME, FIELDS_END }, "the names of classes" },
	{ { SF_HS_SYMBOL_BODY, FIELDS_END }, "all names" },
	{ { SF_HS_SYMBOL_LENGTH, SF_HS_SYMBOL_LENGTH_REFS, FIELDS_END }, "all names" },
	{ { SF_HS_CONST_FLAGS, FIELDS_END }, "lines" },
	{ { SF_HS_POOL_SOURCE, SF_HS_CLASS_SOURCE, FIELDS_END }, "source files" },
	{ { SF_HS_THREADS, SF_HS_FIRST_THREAD, FIELDS_END }, "the full names of threads" },
	{ { SF_HS_THREAD_OS, FIELDS_END }, "the full names of threads" },
	{ { SF_HS_OS_ID, FIELDS_END }, "the full names of threads" },
	{ { SF_HS_THREAD_OBJECT, FIELDS_END }, "the full names of threads" },
	{ { SF_HS_CLASS_FIELDS, SF_HS_CLASS_FIELD_STREAM, FIELDS_END },
	  "the full names of threads" },
	{ { SF_HS_THREAD_ANCHOR, FIELDS_END },
	  "Java frames below native ones that cannot be walked" },
	{ { SF_HS_THREAD_VFRAMES, FIELDS_END }, "frames of methods that are being deoptimized" },
};

static const char *const field_names[SF_HS_N_FIELDS] = {
#define X(name, types, fields, width) types "." fields,
	SF_HOTSPOT_FIELDS(X)
#undef X
};

/* The same for sizes. */
static const struct {
	uint16_t size;
	const char *name, *lost;
} needed_sizes[] = {
	{ SF_HS_SIZE_BLOCK, "HeapBlock", NULL },
	{ SF_HS_SIZE_CONST_METHOD, "ConstMethod", NULL },
	{ SF_HS_SIZE_POOL, "ConstantPool", "the names of methods" },
	{ SF_HS_SIZE_PC_DESC, "PcDesc", "inlined calls and lines of compiled methods" },
};

static bool is_met(const struct sf_hotspot *hotspot, const struct need *need)
{
	for (size_t i = 0; i < 3 && need->any_of[i] != FIELDS_END; i++) {
		if (sf_hotspot_has(hotspot, need->any_of[i]))
			return true;
	}
	return false;
}

/* Collects the details that are not available in one sentence. Successive equal details are named once. */
struct losses {
	char *note;
	size_t n;
	const char *last;
};

static void add_loss(struct losses *losses, const char *lost, const char *for_want_of)
{
	if (strcmp(losses->last, lost) != 0 && losses->n < SF_HOTSPOT_NOTE)
		losses->n += (size_t)snprintf(losses->note + losses->n, SF_HOTSPOT_NOTE - losses->n,
					      "%s%s (no %s)", losses->n ? "; " : "without ", lost,
					      for_want_of);
	losses->last = lost;
}

static bool check_fields(const struct sf_hotspot *hotspot, struct losses *losses, struct sf_error *err)
{
	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		const struct need *need = &needs[i];
		const char *name = field_names[need->any_of[0]];

		if (is_met(hotspot, need))
			continue;
		if (!need->lost)
			return sf_fail(err, SF_E_UNSUPPORTED,
				       "its libjvm does not tell where %s is, or tells what cannot be",
				       name);
		add_loss(losses, need->lost, name);
	}
	return true;
}

static bool check_sizes(const struct sf_hotspot *hotspot, struct losses *losses, struct sf_error *err)
{
	for (size_t i = 0; i < sizeof(needed_sizes) / sizeof(needed_sizes[0]); i++) {
		const char *name = needed_sizes[i].name, *lost = needed_sizes[i].lost;

		if (hotspot->sizes[needed_sizes[i].size])
			continue;
		if (!lost)
			return sf_fail(err, SF_E_UNSUPPORTED,
				       "its libjvm does not tell how large a %s is, or tells what cannot be",
				       name);
		add_loss(losses, lost, name);
	}
	return true;
}

static bool check_needs(const struct sf_hotspot *hotspot, char note[SF_HOTSPOT_NOTE],
			struct sf_error *err)
{
	struct losses losses = { note, 0, "" };

	note[0] = 0;
	return check_fields(hotspot, &losses, err) && check_sizes(hotspot, &losses, err);
}

/* Bytes of the largest CodeBlob with the largest block are what readers have room for (limits.h). */
_Static_assert(SF_HOTSPOT_MAX_BLOB + SF_HOTSPOT_MAX_BLOCK <= SF_HOTSPOT_MAX_HEADER, "they have");

/* The size of the block before a CodeBlob and of the CodeBlob's fields, which are read together in one piece. */
static uint32_t header_size(const struct sf_hotspot *hotspot)
{
	uint64_t size = 0;

	for (unsigned i = SF_HS_BLOB_NAME; i <= SF_HS_NM_ORIG_PC; i++) {
		const struct sf_hotspot_field *field = &hotspot->fields[i];

		if (field->width && field->at + 8 > size)
			size = field->at + 8;
	}
	return (uint32_t)size + hotspot->sizes[SF_HS_SIZE_BLOCK];
}

struct attaching {
	const struct sf_reader *memory;
	struct sf_hotspot *hotspot;
};

static bool get(const struct attaching *attaching, enum sf_hotspot_field_name field, uint64_t base,
		uint64_t *ret)
{
	return sf_hotspot_get(attaching->hotspot, attaching->memory, field, base, ret);
}

static bool add_heap(const struct attaching *attaching, uint64_t heap)
{
	struct sf_hotspot *hotspot = attaching->hotspot;
	const uint64_t memory = heap + hotspot->fields[SF_HS_HEAP_MEMORY].at;
	const uint64_t segmap = heap + hotspot->fields[SF_HS_HEAP_SEGMAP].at;
	struct sf_hotspot_heap *ret = &hotspot->heaps[hotspot->n_heaps];
	uint64_t log2;

	if (hotspot->n_heaps >= SF_HOTSPOT_HEAPS || !heap ||
	    !get(attaching, SF_HS_SPACE_LOW, memory, &ret->low) ||
	    !get(attaching, SF_HS_SPACE_HIGH, memory, &ret->high) ||
	    !get(attaching, SF_HS_SPACE_LOW, segmap, &ret->segmap) ||
	    !get(attaching, SF_HS_HEAP_LOG2, heap, &log2) || ret->low >= ret->high ||
	    ret->high - ret->low > MAX_HEAP || log2 < 3 || log2 > 24)
		return false;
	ret->log2_segment = (uint32_t)log2;
	ret->memory_space = memory;
	ret->segmap_space = segmap;
	hotspot->n_heaps++;
	return true;
}

static bool find_heaps(const struct attaching *attaching)
{
	uint64_t list, n, data, heap;

	if (get(attaching, SF_HS_CODE_HEAP, 0, &heap))
		return add_heap(attaching, heap);
	if (!get(attaching, SF_HS_CODE_HEAPS, 0, &list) || !list ||
	    !get(attaching, SF_HS_LIST_LEN, list, &n) || !n || n > SF_HOTSPOT_HEAPS ||
	    !get(attaching, SF_HS_LIST_DATA, list, &data))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		if (!sf_read_u64(attaching->memory, data + 8 * i, &heap) ||
		    !add_heap(attaching, heap))
			return false;
	}
	return true;
}

static void find_bounds(struct sf_hotspot *hotspot)
{
	struct sf_region *code = &hotspot->code;

	*code = (struct sf_region){ .start = UINT64_MAX, .runtime = &hotspot->runtime };
	for (uint32_t i = 0; i < hotspot->n_heaps; i++) {
		if (hotspot->heaps[i].low < code->start)
			code->start = hotspot->heaps[i].low;
		if (hotspot->heaps[i].high > code->end)
			code->end = hotspot->heaps[i].high;
	}
	hotspot->runtime = (struct sf_runtime){ .ops = &sf_hotspot_ops, .start = code->start, .end = code->end,
						.slot = SF_RUNTIME_HOTSPOT };
}

/* Where in an entry of the interpreter "push rbp; mov rbp, rsp" stands; `end` when it does not. */
static uint64_t find_frame(const struct attaching *attaching, uint64_t start, uint64_t end)
{
	static const uint8_t forms[2][4] = {
		{ 0x55, 0x48, 0x8b, 0xec }, { 0x55, 0x48, 0x89, 0xe5 },
	};
	uint8_t code[MAX_ENTRY_SIZE];
	const size_t n = end - start;

	if (n > sizeof(code) || !sf_read(attaching->memory, code, start, n))
		return end;
	for (size_t i = 0; i + 4 <= n; i++) {
		if (memcmp(code + i, forms[0], 4) == 0 || memcmp(code + i, forms[1], 4) == 0)
			return start + i;
	}
	return end;
}

static void add_entry(const struct attaching *attaching, uint64_t codelet, uint64_t size)
{
	struct sf_hotspot *hotspot = attaching->hotspot;
	uint64_t text, start = codelet + hotspot->sizes[SF_HS_SIZE_CODELET], end = codelet + size;
	char name[64];

	if (hotspot->n_entries >= SF_HOTSPOT_ENTRIES || start >= end ||
	    !get(attaching, SF_HS_CODELET_TEXT, codelet, &text) ||
	    !sf_hotspot_read_string(attaching->memory, text, name, sizeof(name)) ||
	    !strstr(name, "method entry point"))
		return;
	hotspot->entries[hotspot->n_entries++] = (struct sf_hotspot_entry){
		.start = start, .end = end, .frame = find_frame(attaching, start, end),
	};
}

/* SIZE_MAX: there is no telling. */
static size_t count_threads(const struct attaching *attaching)
{
	struct sf_java_threads threads = { 0 };
	const struct sf_hotspot *hotspot = attaching->hotspot;
	const bool listed = sf_hotspot_has(hotspot, SF_HS_THREAD_OS) &&
			    sf_hotspot_has(hotspot, SF_HS_OS_ID) &&
			    sf_java_threads_list(hotspot, attaching->memory, &threads);
	const size_t n = listed ? threads.items.n : SIZE_MAX;

	sf_vec_deinit(&threads.items);
	return n;
}

/*
 * Finds the interpreter's code and its entries. False until the JVM has made the interpreter: before, not all entries
 * exist, and the memory reserved for the interpreter includes memory that other code gets later. The JVM frees the unused
 * rest when it has made the interpreter (HotSpot: TemplateInterpreter::initialize_code). Where this cannot be seen,
 * a second thread shows that the interpreter is made. The first thread is no proof: it is listed after the
 * interpreter was made in JDK 17, and before in JDK 25 (Threads::create_vm: Threads::add, then init_globals2).
 */
static bool find_interpreter(const struct attaching *attaching)
{
	const size_t n_threads = count_threads(attaching); /* first: what is read then is of later */
	struct sf_hotspot *hotspot = attaching->hotspot;
	uint64_t queue, start, limit, end, size, at;

	if (!get(attaching, SF_HS_INTERPRETER, 0, &queue) || !queue ||
	    !get(attaching, SF_HS_QUEUE_BUFFER, queue, &start) ||
	    !get(attaching, SF_HS_QUEUE_LIMIT, queue, &limit) || !start || limit > MAX_INTERPRETER ||
	    start > UINT64_MAX - limit)
		return false;
	if (!get(attaching, SF_HS_QUEUE_END, queue, &end) || end > limit)
		end = 0;
	if (!n_threads || (n_threads == 1 && end != limit))
		return false;
	hotspot->interpreter_start = start;
	hotspot->interpreter_end = start + limit;
	at = start;
	for (unsigned i = 0; i < MAX_CODELETS && at < start + end; i++, at += size) {
		if (!get(attaching, SF_HS_CODELET_SIZE, at, &size) || !size || size > limit)
			break;
		add_entry(attaching, at, size);
	}
	return true;
}

static void find_version(const struct attaching *attaching)
{
	uint64_t version;

	if (sf_hotspot_has(attaching->hotspot, SF_HS_CODE_HEAP))
		attaching->hotspot->version = 8;
	else if (get(attaching, SF_HS_VERSION, 0, &version) && version < 256)
		attaching->hotspot->version = (uint8_t)version;
}

bool sf_hotspot_attach(const struct sf_reader *memory, const struct sf_hotspot_exports *exports,
		       struct sf_hotspot *ret, char note_ret[SF_HOTSPOT_NOTE],
		       struct sf_error *err)
{
	struct attaching attaching = { memory, ret };

	*ret = (struct sf_hotspot){ 0 };
	if (!sf_hotspot_read_tables(memory, exports, ret, err) ||
	    !check_needs(ret, note_ret, err))
		return false;
	ret->header_size = header_size(ret);
	find_version(&attaching);
	if (!find_heaps(&attaching) ||
	    !get(&attaching, SF_HS_CALL_STUB, 0, &ret->call_stub_return) ||
	    !ret->call_stub_return || !find_interpreter(&attaching))
		return sf_fail(err, SF_E_GONE, "its Java virtual machine has not started yet");
	find_bounds(ret);
	return sf_hotspot_self_test(ret, memory, note_ret, SF_HOTSPOT_NOTE, err);
}

/* Up to where it has grown; 0 when that cannot be told, or what is last there cannot be read. */
static uint64_t grown_to(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			 uint64_t space, uint64_t start)
{
	uint64_t end, limit;
	uint8_t last;

	if (!sf_hotspot_get(hotspot, memory, SF_HS_SPACE_COMMITTED, space, &end) ||
	    !sf_hotspot_get(hotspot, memory, SF_HS_SPACE_HIGH, space, &limit) || end <= start ||
	    end > limit || !sf_read(memory, &last, end - 1, 1))
		return 0;
	return end;
}

void sf_hotspot_lend_code(struct sf_hotspot *hotspot, const struct sf_reader *memory)
{
	for (uint32_t i = 0; i < hotspot->n_heaps; i++) {
		struct sf_hotspot_heap *heap = &hotspot->heaps[i];

		atomic_store(&heap->loads_to, grown_to(hotspot, memory, heap->memory_space, heap->low));
		atomic_store(&heap->segmap_loads_to,
			     grown_to(hotspot, memory, heap->segmap_space, heap->segmap));
	}
}

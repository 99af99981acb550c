/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_jvm.h"

#include <stdlib.h>
#include <string.h>

#define SEGMENT 128
#define HEADER 336           /* of a piece of code, before its code; a multiple of 16 */
#define TEXT_SLOTS 8

/* The fields as JDK 17 has them (x86-64), from its own tables. */
static const struct {
	const char *type, *field, *text;
	uint64_t offset;
} fields[] = {
	{ "GrowableArrayBase", "_len", "int", 0 }, { "GrowableArray<int>", "_data", "int*", 8 },
	{ "CodeHeap", "_memory", "VirtualSpace", 8 }, { "CodeHeap", "_segmap", "VirtualSpace", 120 },
	{ "CodeHeap", "_log2_segment_size", "int", 256 },
	{ "VirtualSpace", "_low_boundary", "char*", 0 },
	{ "VirtualSpace", "_high_boundary", "char*", 8 },
	{ "HeapBlock::Header", "_used", "bool", 8 },
	{ "StubQueue", "_stub_buffer", "address", 8 }, { "StubQueue", "_buffer_limit", "int", 20 },
	{ "StubQueue", "_queue_end", "int", 28 },
	{ "InterpreterCodelet", "_description", "const char*", 0 },
	{ "InterpreterCodelet", "_size", "int", 8 },
	{ "CodeBlob", "_name", "const char*", 96 }, { "CodeBlob", "_size", "int", 12 },
	{ "CodeBlob", "_frame_complete_offset", "int", 20 }, { "CodeBlob", "_frame_size", "int", 28 },
	{ "CodeBlob", "_code_begin", "address", 32 }, { "CodeBlob", "_code_end", "address", 40 },
	{ "CompiledMethod", "_method", "Method*", 112 },
	{ "CompiledMethod", "_scopes_data_begin", "address", 120 },
	{ "CompiledMethod", "_deopt_handler_begin", "address", 128 },
	{ "CompiledMethod", "_deopt_mh_handler_begin", "address", 136 },
	{ "nmethod", "_orig_pc_offset", "int", 300 }, { "nmethod", "_metadata_offset", "int", 260 },
	{ "nmethod", "_scopes_pcs_offset", "int", 268 },
	{ "nmethod", "_dependencies_offset", "int", 272 },
	{ "nmethod", "_verified_entry_point", "address", 224 },
	{ "nmethod", "_compile_id", "int", 304 }, { "nmethod", "_comp_level", "int", 308 },
	{ "PcDesc", "_pc_offset", "int", 0 }, { "PcDesc", "_scope_decode_offset", "int", 4 },
	{ "Method", "_constMethod", "ConstMethod*", 8 },
	{ "ConstMethod", "_constants", "ConstantPool*", 8 }, { "ConstMethod", "_flags", "u2", 28 },
	{ "ConstMethod", "_code_size", "u2", 32 }, { "ConstMethod", "_name_index", "u2", 34 },
	{ "ConstMethod", "_signature_index", "u2", 36 },
	{ "ConstantPool", "_length", "int", 60 },
	{ "ConstantPool", "_pool_holder", "InstanceKlass*", 24 },
	{ "ConstantPool", "_source_file_name_index", "u2", 54 },
	{ "Klass", "_name", "Symbol*", 24 }, { "Klass", "_super", "Klass*", 120 },
	{ "InstanceKlass", "_constants", "ConstantPool*", 232 },
	{ "InstanceKlass", "_fields", "Array<u2>*", 456 },
	{ "InstanceKlass", "_java_fields_count", "u2", 310 },
	{ "Symbol", "_length", "u2", 4 }, { "Symbol", "_body", NULL, 6 },
	{ "ThreadsList", "_length", "const uint", 4 },
	{ "ThreadsList", "_threads", "JavaThread *const *const", 16 },
	{ "JavaThread", "_osthread", "OSThread*", 560 },
	{ "OSThread", "_thread_id", "OSThread::thread_id_t", 208 },
	{ "JavaThread", "_threadObj", "OopHandle", 648 },
	{ "JavaThread", "_anchor", "JavaFrameAnchor", 656 },
	{ "JavaThread", "_vframe_array_head", "vframeArray*", 712 },
	{ "JavaFrameAnchor", "_last_Java_sp", "intptr_t*", 0 },
	{ "JavaFrameAnchor", "_last_Java_pc", "address", 8 },
	{ "JavaFrameAnchor", "_last_Java_fp", "intptr_t*", 16 },
	{ "vframeArray", "_original", "frame", 16 }, { "vframeArray", "_caller", "frame", 64 },
	{ "vframeArray", "_frames", "int", 172 },
	{ "vframeArrayElement", "_method", "Method*", 56 },
	{ "vframeArrayElement", "_bci", "int", 48 },
};

static const struct {
	const char *type;
	uint64_t size;
} sizes[] = {
	{ "HeapBlock", 16 }, { "InterpreterCodelet", 16 }, { "ConstMethod", 48 },
	{ "ConstantPool", 72 }, { "PcDesc", 16 }, { "vframeArray", 5464 },
	{ "vframeArrayElement", 88 },
};

static uint8_t *at(struct fake_jvm *jvm, uint64_t address, size_t size)
{
	if (address < FAKE_BASE || address - FAKE_BASE > FAKE_SIZE - size)
		abort();
	return jvm->bytes + (address - FAKE_BASE);
}

uint64_t fake_alloc(struct fake_jvm *jvm, size_t size)
{
	uint64_t address = jvm->used;

	jvm->used = (address + size + 15) & ~UINT64_C(15);
	if (jvm->used > FAKE_CODE)
		abort();
	return address;
}

void fake_put(struct fake_jvm *jvm, uint64_t address, uint64_t value, unsigned width)
{
	memcpy(at(jvm, address, width), &value, width);
}

void fake_bytes(struct fake_jvm *jvm, uint64_t address, const void *bytes, size_t size)
{
	memcpy(at(jvm, address, size), bytes, size);
}

uint64_t fake_string(struct fake_jvm *jvm, const char *text)
{
	uint64_t address = fake_alloc(jvm, strlen(text) + 1);

	fake_bytes(jvm, address, text, strlen(text) + 1);
	return address;
}

static bool read_fake(const struct sf_reader *reader, void *ret, uint64_t address, size_t size)
{
	const struct fake_jvm *jvm = reader->arg;

	if (address < FAKE_BASE || size > FAKE_SIZE || address - FAKE_BASE > FAKE_SIZE - size)
		return false;
	memcpy(ret, jvm->bytes + (address - FAKE_BASE), size);
	return true;
}

/* An exported variable. */
static void export(struct fake_jvm *jvm, enum sf_hotspot_export which, uint64_t value)
{
	jvm->exports.at[which] = fake_alloc(jvm, 8);
	fake_put(jvm, jvm->exports.at[which], value, 8);
}

struct entries {
	uint64_t next;
};

static void add_field(struct fake_jvm *jvm, struct entries *table, const char *type,
		      const char *field, const char *text, uint64_t offset, uint64_t address)
{
	if (jvm->left_out && strcmp(jvm->left_out, field) == 0)
		return;
	fake_put(jvm, table->next, fake_string(jvm, type), 8);
	fake_put(jvm, table->next + 8, fake_string(jvm, field), 8);
	fake_put(jvm, table->next + 16, text ? fake_string(jvm, text) : 0, 8);
	fake_put(jvm, table->next + 24, address != 0, 4);
	fake_put(jvm, table->next + 32, offset, 8);
	fake_put(jvm, table->next + 40, address, 8);
	table->next += 48;
}

/* A static field, which is where the value is. */
static void add_static(struct fake_jvm *jvm, struct entries *table, const char *type,
		       const char *field, const char *text, uint64_t value)
{
	uint64_t address = fake_alloc(jvm, 8);

	fake_put(jvm, address, value, 8);
	add_field(jvm, table, type, field, text, 0, address);
}

static uint64_t make_symbol(struct fake_jvm *jvm, const char *text)
{
	uint64_t symbol = fake_alloc(jvm, 6 + strlen(text));

	fake_put(jvm, symbol + 4, strlen(text), 2);
	fake_bytes(jvm, symbol + 6, text, strlen(text));
	return symbol;
}

uint64_t fake_method(struct fake_jvm *jvm, const char *class_name, const char *name,
		     const char *signature, const char *source, unsigned code_size)
{
	uint64_t method = fake_alloc(jvm, 88), constant = fake_alloc(jvm, 48 + code_size + 32);
	uint64_t pool = fake_alloc(jvm, 72 + 8 * TEXT_SLOTS), class = fake_alloc(jvm, 472);
	uint64_t lines = constant + 48 + code_size;
	const char *texts[] = { NULL, name, signature, source };

	fake_put(jvm, method + 8, constant, 8);
	fake_put(jvm, constant + 8, pool, 8);
	fake_put(jvm, constant + 28, 1, 2);
	fake_put(jvm, constant + 32, code_size, 2);
	fake_put(jvm, constant + 34, 1, 2);
	fake_put(jvm, constant + 36, 2, 2);
	fake_put(jvm, pool + 24, class, 8);
	fake_put(jvm, pool + 54, source ? 3 : 0, 2);
	fake_put(jvm, pool + 60, TEXT_SLOTS, 4);
	for (unsigned i = 1; i < 4 && texts[i]; i++)
		fake_put(jvm, pool + 72 + 8 * i, make_symbol(jvm, texts[i]) | (i == 1), 8);
	fake_put(jvm, class + 24, make_symbol(jvm, class_name), 8);
	/* bytecode 0: line 100, in the long form (0, 200 zigzag); then one more line each */
	fake_bytes(jvm, lines, "\xff\x00\xc8\x00", 4);
	fake_bytes(jvm, lines + 4, "\x09\x09\x09\x09", 5);
	return method;
}

uint64_t fake_bytecode(struct fake_jvm *jvm, uint64_t method, unsigned bci)
{
	uint64_t constant;

	memcpy(&constant, at(jvm, method + 8, 8), 8);
	return constant + 48 + bci;
}

/* Records: at 1 the method itself at bytecode 3; at 4 the inlined one, called from there. */
static void add_scopes(struct fake_jvm *jvm, uint64_t blob, uint64_t tail, const struct fake_code *code)
{
	const uint8_t outer[] = { 0, 0, 1, 4, 1, 2, (uint8_t)(code->inlined_bci + 1) };
	const struct { int32_t pc, scope, object, flags; } descriptors[] = {
		{ -1, 0, 0, 0 }, { (int32_t)code->pc, code->inlined ? 4 : 1, 0, 0 },
		{ (int32_t)code->size, 0, 0, 0 },
	};

	fake_bytes(jvm, tail, outer, sizeof(outer));
	fake_put(jvm, blob + 120, tail, 8);
	fake_put(jvm, tail + 16, code->method, 8);
	fake_put(jvm, tail + 24, code->inlined, 8);
	fake_put(jvm, blob + 260, tail + 16 - blob, 4);
	fake_bytes(jvm, tail + 32, descriptors, sizeof(descriptors));
	fake_put(jvm, blob + 268, tail + 32 - blob, 4);
	fake_put(jvm, blob + 272, tail + 32 + sizeof(descriptors) - blob, 4);
}

uint64_t fake_code(struct fake_jvm *jvm, const struct fake_code *code)
{
	uint64_t block = jvm->next_code, blob = block + 16, start = blob + HEADER;
	uint64_t end = start + code->size, size = HEADER + code->size + 128;
	unsigned segments = (unsigned)((16 + size + SEGMENT - 1) / SEGMENT);

	fake_put(jvm, block + 8, 1, 1);
	fake_put(jvm, blob + 12, size, 4);
	fake_put(jvm, blob + 20, (uint64_t)code->frame_complete, 4);
	fake_put(jvm, blob + 28, (uint64_t)code->frame_size, 4);
	fake_put(jvm, blob + 32, start, 8);
	fake_put(jvm, blob + 40, end, 8);
	fake_put(jvm, blob + 96, fake_string(jvm, code->name), 8);
	fake_put(jvm, blob + 112, code->method, 8);
	fake_put(jvm, blob + 224, start + code->entry, 8);
	fake_put(jvm, blob + 304, code->compile_id, 4);
	fake_put(jvm, blob + 308, code->level, 4);
	memset(at(jvm, start, code->size), 0xcc, code->size);
	if (code->pc)
		add_scopes(jvm, blob, (end + 15) & ~UINT64_C(15), code);
	for (unsigned i = 0; i < segments; i++)
		fake_put(jvm, jvm->segmap + (block - FAKE_CODE) / SEGMENT + i, i ? 1 : 0, 1);
	jvm->next_code = block + (uint64_t)segments * SEGMENT;
	return start;
}

static uint64_t make_heaps(struct fake_jvm *jvm)
{
	uint64_t list = fake_alloc(jvm, 16), data = fake_alloc(jvm, 8), heap = fake_alloc(jvm, 264);

	jvm->segmap = fake_alloc(jvm, FAKE_CODE_SIZE / SEGMENT);
	memset(at(jvm, jvm->segmap, FAKE_CODE_SIZE / SEGMENT), 0xff, FAKE_CODE_SIZE / SEGMENT);
	fake_put(jvm, list, 1, 4);
	fake_put(jvm, list + 8, data, 8);
	fake_put(jvm, data, heap, 8);
	fake_put(jvm, heap + 8, FAKE_CODE, 8);
	fake_put(jvm, heap + 16, FAKE_CODE + FAKE_CODE_SIZE, 8);
	fake_put(jvm, heap + 120, jvm->segmap, 8);
	fake_put(jvm, heap + 256, 7, 4);
	jvm->next_code = FAKE_CODE;
	return list;
}

/* A codelet with an entry, and behind it room for return addresses. */
static uint64_t make_interpreter(struct fake_jvm *jvm)
{
	uint64_t queue = fake_alloc(jvm, 32);
	uint64_t start = fake_code(jvm, &(struct fake_code){ .name = "Interpreter", .size = 512,
							     .frame_complete = -1 });

	fake_put(jvm, queue + 8, start, 8);
	fake_put(jvm, queue + 20, 512, 4);
	fake_put(jvm, queue + 28, 256, 4);
	fake_put(jvm, start, fake_string(jvm, "method entry point (kind = zerolocals)"), 8);
	fake_put(jvm, start + 8, 256, 4);
	jvm->entry = start + 32;
	jvm->entry_frame = start + 64;
	fake_bytes(jvm, jvm->entry_frame, "\x55\x48\x8b\xec", 4);
	jvm->interpreter = start + 300;
	return queue;
}

static uint64_t make_threads(struct fake_jvm *jvm)
{
	uint64_t list = fake_alloc(jvm, 24), items = fake_alloc(jvm, 8), os = fake_alloc(jvm, 256);

	jvm->thread = fake_alloc(jvm, 1024);
	fake_put(jvm, list + 4, 1, 4);
	fake_put(jvm, list + 16, items, 8);
	fake_put(jvm, items, jvm->thread, 8);
	fake_put(jvm, jvm->thread + 560, os, 8);
	fake_put(jvm, os + 208, 77, 4);
	return list;
}

static void make_structs(struct fake_jvm *jvm)
{
	uint64_t start = fake_alloc(jvm, 48 * 128);
	struct entries table = { start };
	uint64_t heaps = make_heaps(jvm), interpreter = make_interpreter(jvm);

	jvm->call_stub_return = fake_code(jvm, &(struct fake_code){
		.name = "StubRoutines (1)", .size = 64, .frame_complete = -1 }) + 32;
	add_static(jvm, &table, "CodeCache", "_heaps", "GrowableArray<CodeHeap*>*", heaps);
	add_static(jvm, &table, "StubRoutines", "_call_stub_return_address", "address",
		   jvm->call_stub_return);
	add_static(jvm, &table, "AbstractInterpreter", "_code", "StubQueue*", interpreter);
	add_static(jvm, &table, "Abstract_VM_Version", "_vm_major_version", "int", 17);
	add_static(jvm, &table, "ThreadsSMRSupport", "_java_thread_list", "ThreadsList*",
		   make_threads(jvm));
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		add_field(jvm, &table, fields[i].type, fields[i].field, fields[i].text,
			  fields[i].offset, 0);
	export(jvm, SF_HE_STRUCTS, start);
	export(jvm, SF_HE_STRUCT_TYPE, 0);
	export(jvm, SF_HE_STRUCT_FIELD, 8);
	export(jvm, SF_HE_STRUCT_TEXT, 16);
	export(jvm, SF_HE_STRUCT_STATIC, 24);
	export(jvm, SF_HE_STRUCT_OFFSET, 32);
	export(jvm, SF_HE_STRUCT_ADDRESS, 40);
	export(jvm, SF_HE_STRUCT_STRIDE, 48);
}

static void make_sizes(struct fake_jvm *jvm)
{
	uint64_t start = fake_alloc(jvm, 40 * 16), next = start;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++, next += 40) {
		fake_put(jvm, next, fake_string(jvm, sizes[i].type), 8);
		fake_put(jvm, next + 32, sizes[i].size, 8);
	}
	export(jvm, SF_HE_TYPES, start);
	export(jvm, SF_HE_TYPE_NAME, 0);
	export(jvm, SF_HE_TYPE_SIZE, 32);
	export(jvm, SF_HE_TYPE_STRIDE, 40);
}

static void make_numbers(struct fake_jvm *jvm)
{
	uint64_t start = fake_alloc(jvm, 64);

	fake_put(jvm, start, fake_string(jvm, "ConstMethod::_has_linenumber_table"), 8);
	fake_put(jvm, start + 8, 1, 4);
	export(jvm, SF_HE_INTS, start);
	export(jvm, SF_HE_INT_NAME, 0);
	export(jvm, SF_HE_INT_VALUE, 8);
	export(jvm, SF_HE_INT_STRIDE, 16);
	export(jvm, SF_HE_LONGS, fake_alloc(jvm, 16));
	export(jvm, SF_HE_LONG_NAME, 0);
	export(jvm, SF_HE_LONG_VALUE, 8);
	export(jvm, SF_HE_LONG_STRIDE, 16);
}

static void make_still(struct fake_jvm *jvm)
{
	struct sf_code_map *map = (struct sf_code_map *)jvm->map_bytes;

	*map = (struct sf_code_map){ .hotspot = &jvm->hotspot };
	jvm->still = (struct sf_still){
		.arch = &sf_arch_x86_64,
		.map = map,
		.memory = jvm->memory,
		.tid = 77,
	};
	jvm->still.memory.window = at(jvm, FAKE_STACK, FAKE_STACK_SIZE);
	jvm->still.memory.window_start = FAKE_STACK;
	jvm->still.memory.window_size = FAKE_STACK_SIZE;
	jvm->trace = (struct sf_trace){ .frames = jvm->frames, .capacity = 64 };
}

bool fake_jvm_make(struct fake_jvm *jvm, char note_ret[SF_HOTSPOT_NOTE], struct sf_error *err)
{
	jvm->used = FAKE_BASE + 4096;
	jvm->memory = (struct sf_reader){ .read = read_fake, .arg = jvm };
	make_structs(jvm);
	make_sizes(jvm);
	make_numbers(jvm);
	make_still(jvm);
	return sf_hotspot_attach(&jvm->memory, &jvm->exports, &jvm->hotspot, note_ret, err);
}

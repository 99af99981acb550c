/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_jvm.h"
#include "fake_tables.h"

#include <stdlib.h>
#include <string.h>

#define SEGMENT 128
#define HEADER 336           /* of a piece of code, before its code; a multiple of 16 */
#define TEXT_SLOTS 8

static struct fake_field *find_field(struct fake_jvm *jvm, const char *type, const char *name)
{
	return fake_layout_field(&jvm->layout, type, name);
}

static uint64_t value_of(const struct fake_jvm *jvm, const char *name)
{
	return fake_layout_value(&jvm->layout, name);
}

static size_t room_of(const struct fake_jvm *jvm, const char *type, const char *base)
{
	return fake_layout_room(&jvm->layout, type, base);
}

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

/* Nothing happens where this version does not have the field. */
static void set(struct fake_jvm *jvm, uint64_t base, const char *type, const char *name, uint64_t value)
{
	const struct fake_field *field = find_field(jvm, type, name);

	if (field)
		fake_put(jvm, field->is_static ? field->address : base + field->offset, value,
			 fake_layout_width(field));
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

static uint64_t make_symbol(struct fake_jvm *jvm, const char *text)
{
	const struct fake_field *body = find_field(jvm, "Symbol", "_body");
	uint64_t symbol = fake_alloc(jvm, body->offset + strlen(text) + 8);

	set(jvm, symbol, "Symbol", "_length", strlen(text));
	set(jvm, symbol, "Symbol", "_length_and_refcount", strlen(text) << 16 | 1);
	fake_bytes(jvm, symbol + body->offset, text, strlen(text));
	return symbol;
}

/* A class with a pool that holds these texts from slot 1 on, up to a NULL. */
static uint64_t make_class(struct fake_jvm *jvm, const char *name, const char *const *texts)
{
	uint64_t class = fake_alloc(jvm, room_of(jvm, "InstanceKlass", "Klass"));
	uint64_t pool = fake_alloc(jvm, value_of(jvm, "ConstantPool") + 8 * TEXT_SLOTS);

	set(jvm, class, "Klass", "_name", make_symbol(jvm, name));
	set(jvm, class, "InstanceKlass", "_constants", pool);
	set(jvm, pool, "ConstantPool", "_pool_holder", class);
	set(jvm, pool, "ConstantPool", "_length", TEXT_SLOTS);
	for (unsigned i = 1; i < TEXT_SLOTS && texts[i - 1]; i++)
		fake_put(jvm, pool + value_of(jvm, "ConstantPool") + 8 * i,
			 make_symbol(jvm, texts[i - 1]) | (i == 1), 8);
	return class;
}

static uint64_t pool_of(struct fake_jvm *jvm, uint64_t class)
{
	uint64_t pool;

	memcpy(&pool, at(jvm, class + find_field(jvm, "InstanceKlass", "_constants")->offset, 8), 8);
	return pool;
}

/* From JDK 20 on no byte is 0: HotSpot, utilities/unsigned5.hpp. */
static uint64_t put_unsigned5(struct fake_jvm *jvm, uint64_t address, uint32_t value)
{
	const uint32_t excluded = jvm->version >= 20, low = 192 - excluded;

	if (value < low) {
		fake_put(jvm, address, value + excluded, 1);
		return address + 1;
	}
	fake_put(jvm, address, excluded + low + (value - low) % 64, 1);
	return put_unsigned5(jvm, address + 1, (value - low) / 64);
}

uint64_t fake_method(struct fake_jvm *jvm, const char *class_name, const char *name,
		     const char *signature, const char *source, unsigned code_size)
{
	const char *const texts[] = { name, signature, source, NULL };
	uint64_t method = fake_alloc(jvm, 88), class = make_class(jvm, class_name, texts);
	uint64_t header = value_of(jvm, "ConstMethod"), constant = fake_alloc(jvm, header + code_size + 32);
	uint64_t lines = constant + header + code_size, pool = pool_of(jvm, class);

	set(jvm, method, "Method", "_constMethod", constant);
	set(jvm, constant, "ConstMethod", "_constants", pool);
	set(jvm, constant, "ConstMethod", "_flags", 1);
	set(jvm, constant, "ConstMethod", "_flags._flags", 1);
	set(jvm, constant, "ConstMethod", "_code_size", code_size);
	set(jvm, constant, "ConstMethod", "_name_index", 1);
	set(jvm, constant, "ConstMethod", "_signature_index", 2);
	set(jvm, pool, "ConstantPool", "_source_file_name_index", source ? 3 : 0);
	set(jvm, class, "InstanceKlass", "_source_file_name_index", source ? 3 : 0);
	/* at bytecode 3 another one is called, if there is room */
	if (code_size > 3)
		fake_put(jvm, constant + header + 3, 0xb8, 1);
	/* bytecode 0: line 100, in the long form (0, 200 zigzag); then one more line each */
	fake_put(jvm, lines, 0xff, 1);
	lines = put_unsigned5(jvm, put_unsigned5(jvm, lines + 1, 0), 200);
	fake_bytes(jvm, lines, "\x09\x09\x09\x09", 5);
	return method;
}

uint64_t fake_bytecode(struct fake_jvm *jvm, uint64_t method, unsigned bci)
{
	uint64_t constant;

	memcpy(&constant, at(jvm, method + find_field(jvm, "Method", "_constMethod")->offset, 8), 8);
	return constant + value_of(jvm, "ConstMethod") + bci;
}

/*
 * Debug information at `tail`: descriptors, records, methods. Records: at 1 the method itself at bytecode 3; at 4 the
 * inlined one, called from there. Where each part is said to be differs: in the blob, behind its code, apart.
 */
static void add_scopes(struct fake_jvm *jvm, uint64_t blob, uint64_t tail, const struct fake_code *code)
{
	const uint8_t outer[] = { 0, 0, 1, 4, 1, 2, (uint8_t)(code->inlined_bci + 1) };
	const unsigned n_descriptors = code->n_before + code->n_after + 3;
	const bool apart = find_field(jvm, "nmethod", "_immutable_data");
	const uint64_t base = apart ? tail : blob, data = tail + 16 * n_descriptors, methods = data + 256;

	for (unsigned i = 0; i < n_descriptors; i++) {
		const bool is_first = i == 0, is_last = i + 1 == n_descriptors, is_it = i == code->n_before + 1;
		const int32_t pc = (int32_t)(code->pc + i - code->n_before - 1);

		fake_put(jvm, tail + 16 * i, (uint32_t)(is_first ? -1 : is_last ? (int32_t)code->size : pc), 4);
		fake_put(jvm, tail + 16 * i + 4, !is_it ? 0 : code->inlined ? 4 : 1, 4);
	}
	if (find_field(jvm, "ImmutableOopMapSet", "_count")) {
		set(jvm, blob, "CodeBlob", "_oop_maps", methods + 64);
		set(jvm, methods + 64, "ImmutableOopMapSet", "_count", n_descriptors - 2 - code->n_between);
	}
	for (unsigned i = 0; i < sizeof(outer); i++)
		put_unsigned5(jvm, data + i, outer[i]);
	fake_put(jvm, methods, code->method, 8);
	fake_put(jvm, methods + 8, code->inlined, 8);
	set(jvm, blob, "nmethod", "_immutable_data", tail);
	set(jvm, blob, "nmethod", "_scopes_pcs_offset", tail - base);
	set(jvm, blob, "nmethod", "_scopes_data_offset", data - base);
	set(jvm, blob, "nmethod", "_dependencies_offset", data - base);
	set(jvm, blob, "CompiledMethod", "_scopes_data_begin", data);
	set(jvm, blob, "nmethod", "_metadata_offset", methods - blob);
	set(jvm, blob, "CodeBlob", "_mutable_data", tail);
	set(jvm, blob, "CodeBlob", "_relocation_size", methods - tail);
}

uint64_t fake_code(struct fake_jvm *jvm, const struct fake_code *code)
{
	uint64_t block = jvm->next_code, blob = block + value_of(jvm, "HeapBlock"), start = blob + HEADER;
	uint64_t end = start + code->size, size = HEADER + code->size + 384 + 16 * (code->n_before + code->n_after);
	unsigned segments = (unsigned)((16 + size + SEGMENT - 1) / SEGMENT);

	set(jvm, block, "HeapBlock::Header", "_used", 1);
	set(jvm, blob, "CodeBlob", "_size", size);
	set(jvm, blob, "CodeBlob", "_frame_complete_offset", (uint64_t)code->frame_complete);
	set(jvm, blob, "CodeBlob", "_frame_size", (uint64_t)code->frame_size);
	set(jvm, blob, "CodeBlob", "_code_begin", start);
	set(jvm, blob, "CodeBlob", "_code_offset", HEADER);
	set(jvm, blob, "CodeBlob", "_code_end", end);
	set(jvm, blob, "CodeBlob", "_data_offset", end - blob);
	set(jvm, blob, "CodeBlob", "_name", fake_string(jvm, code->name));
	set(jvm, blob, "CompiledMethod", "_method", code->method);
	set(jvm, blob, "nmethod", "_method", code->method);
	set(jvm, blob, "nmethod", "_verified_entry_point", start + code->entry);
	set(jvm, blob, "nmethod", "_verified_entry_offset", code->entry);
	set(jvm, blob, "nmethod", "_osr_entry_point", start + code->loop_entry);
	set(jvm, blob, "nmethod", "_compile_id", code->compile_id);
	set(jvm, blob, "nmethod", "_comp_level", code->level);
	memset(at(jvm, start, code->size), 0xcc, code->size);
	if (code->pc)
		add_scopes(jvm, blob, (end + 15) & ~UINT64_C(15), code);
	for (unsigned i = 0; i < segments; i++)
		fake_put(jvm, jvm->segmap + (block - FAKE_CODE) / SEGMENT + i, i ? 1 : 0, 1);
	jvm->next_code = block + (uint64_t)segments * SEGMENT;
	return start;
}

void fake_mark(struct fake_jvm *jvm, uint64_t code, unsigned handler, unsigned kept)
{
	const uint64_t blob = code - HEADER;

	set(jvm, blob, "CompiledMethod", "_deopt_handler_begin", code + handler);
	set(jvm, blob, "nmethod", "_deopt_handler_begin", code + handler);
	set(jvm, blob, "nmethod", "_deopt_handler_offset", HEADER + handler);
	set(jvm, blob, "nmethod", "_orig_pc_offset", kept);
}

static void set_space(struct fake_jvm *jvm, uint64_t heap, const char *name, uint64_t low, uint64_t high)
{
	uint64_t space = heap + find_field(jvm, "CodeHeap", name)->offset;

	set(jvm, space, "VirtualSpace", "_low_boundary", low);
	set(jvm, space, "VirtualSpace", "_high_boundary", high);
	set(jvm, space, "VirtualSpace", "_high", high);
}

/* One heap: in a list, up to JDK 8 alone. */
static void make_heaps(struct fake_jvm *jvm)
{
	uint64_t list = fake_alloc(jvm, 64), data = fake_alloc(jvm, 8), heap = fake_alloc(jvm, 300);

	jvm->segmap = fake_alloc(jvm, FAKE_CODE_SIZE / SEGMENT);
	memset(at(jvm, jvm->segmap, FAKE_CODE_SIZE / SEGMENT), 0xff, FAKE_CODE_SIZE / SEGMENT);
	set(jvm, list, "GrowableArrayBase", "_len", 1);
	set(jvm, list, "GenericGrowableArray", "_len", 1);
	set(jvm, list, "GrowableArray<int>", "_data", data);
	fake_put(jvm, data, heap, 8);
	set_space(jvm, heap, "_memory", FAKE_CODE, FAKE_CODE + FAKE_CODE_SIZE);
	set_space(jvm, heap, "_segmap", jvm->segmap, jvm->segmap + FAKE_CODE_SIZE / SEGMENT);
	set(jvm, heap, "CodeHeap", "_log2_segment_size", 7);
	set(jvm, 0, "CodeCache", "_heaps", list);
	set(jvm, 0, "CodeCache", "_heap", heap);
	jvm->next_code = FAKE_CODE;
}

static void make_codelet(struct fake_jvm *jvm, uint64_t at, const char *description)
{
	set(jvm, at, "InterpreterCodelet", "_description", fake_string(jvm, description));
	set(jvm, at, "InterpreterCodelet", "_size", 256);
}

/* A codelet with an entry, and one for return addresses. */
static void make_interpreter(struct fake_jvm *jvm)
{
	uint64_t queue = fake_alloc(jvm, 48);
	uint64_t start = fake_code(jvm, &(struct fake_code){ .name = "Interpreter", .size = 512,
							     .frame_complete = -1 });

	set(jvm, queue, "StubQueue", "_stub_buffer", start);
	set(jvm, queue, "StubQueue", "_buffer_limit", 512);
	set(jvm, queue, "StubQueue", "_queue_end", 512);
	make_codelet(jvm, start, "method entry point (kind = zerolocals)");
	make_codelet(jvm, start + 256, "return entry points");
	jvm->entry = start + 32;
	jvm->entry_frame = start + 64;
	fake_bytes(jvm, jvm->entry_frame, "\x55\x48\x8b\xec", 4);
	jvm->interpreter = start + 300;
	set(jvm, 0, "AbstractInterpreter", "_code", queue);
}

/* A class with two fields, whose names are the first two of its pool. */
static uint64_t make_fielded(struct fake_jvm *jvm, const char *name, const char *const *fields,
			     const uint16_t offsets[2])
{
	uint64_t class = make_class(jvm, name, fields), list = fake_alloc(jvm, 64), at_byte = list + 4;

	set(jvm, class, "InstanceKlass", "_fields", list);
	set(jvm, class, "InstanceKlass", "_java_fields_count", 2);
	set(jvm, class, "InstanceKlass", "_fieldinfo_stream", list);
	if (find_field(jvm, "InstanceKlass", "_fieldinfo_stream")) {
		at_byte = put_unsigned5(jvm, put_unsigned5(jvm, at_byte, 2), 0);
		for (unsigned i = 0; i < 2; i++) {
			const uint32_t words[] = { i + 1, 3, offsets[i], 2, 0 };

			for (unsigned j = 0; j < 5; j++)
				at_byte = put_unsigned5(jvm, at_byte, words[j]);
		}
		return class;
	}
	for (unsigned i = 0; i < 2; i++) {
		const uint16_t words[6] = { 2, (uint16_t)(i + 1), 3, 0, (uint16_t)(offsets[i] << 2 | 1), 0 };

		fake_bytes(jvm, at_byte + i * sizeof(words), words, sizeof(words));
	}
	return class;
}

/* References and classes are 32 bits wide, with no base. In JDK 8 a string's characters are 16 bits wide. */
static uint64_t make_string(struct fake_jvm *jvm, const char *text)
{
	static const char *const fields[] = { "value", "coder", "I", NULL };
	static const char *const old_fields[] = { "value", "hash", "I", NULL };
	const bool wide = jvm->version == 8;
	uint64_t class = make_fielded(jvm, "java/lang/String", wide ? old_fields : fields,
				      (const uint16_t[2]){ 12, 16 });
	uint64_t string = fake_alloc(jvm, 24), array = fake_alloc(jvm, 16 + 2 * strlen(text));

	fake_put(jvm, string + 8, class, 4);
	fake_put(jvm, string + 12, array, 4);
	fake_put(jvm, array + 12, strlen(text), 4);
	for (size_t i = 0; text[i]; i++)
		fake_put(jvm, array + 16 + (wide ? 2 * i : i), (uint8_t)text[i], wide ? 2 : 1);
	return string;
}

/* java.lang.Thread is what a self-test looks at. */
static void make_methods(struct fake_jvm *jvm, uint64_t class)
{
	uint64_t list = fake_alloc(jvm, 8 + 2 * 8);

	jvm->thread_run = fake_method(jvm, "java/lang/Thread", "run", "()V", "Thread.java", 8);
	fake_put(jvm, list, 2, 4);
	fake_put(jvm, list + 8, fake_method(jvm, "java/lang/Thread", "start", "()V", "Thread.java", 8), 8);
	fake_put(jvm, list + 16, jvm->thread_run, 8);
	set(jvm, class, "InstanceKlass", "_methods", list);
	set(jvm, 0, "vmClasses", "_klasses[static_cast<int>(vmClassID::Thread_klass_knum)]", class);
	set(jvm, 0, "SystemDictionary", "_well_known_klasses[SystemDictionary::Thread_klass_knum]", class);
}

static void make_thread_object(struct fake_jvm *jvm)
{
	static const char *const fields[] = { "name", "eetop", "J", NULL };
	const struct fake_field *field = find_field(jvm, "JavaThread", "_threadObj");
	uint64_t class = make_fielded(jvm, "java/lang/Thread", fields, (const uint16_t[2]){ 12, 16 });
	uint64_t object = fake_alloc(jvm, 32), slot = fake_alloc(jvm, 8);

	make_methods(jvm, class);
	fake_put(jvm, object + 8, class, 4);
	fake_put(jvm, object + 12, make_string(jvm, "a thread with a long name"), 4);
	fake_put(jvm, object + 16, jvm->thread, 8);
	fake_put(jvm, slot, object, 8);
	set(jvm, jvm->thread, "JavaThread", "_threadObj", strcmp(field->text, "oop") == 0 ? object : slot);
}

static void make_threads(struct fake_jvm *jvm)
{
	uint64_t list = fake_alloc(jvm, 64), items = fake_alloc(jvm, 16), os = fake_alloc(jvm, 256);

	jvm->thread = fake_alloc(jvm, room_of(jvm, "JavaThread", "Thread"));
	set(jvm, list, "ThreadsList", "_length", 1);
	set(jvm, list, "ThreadsList", "_threads", items);
	fake_put(jvm, items, jvm->thread, 8);
	fake_put(jvm, items + 8, jvm->thread, 8); /* counts where the length says so */
	set(jvm, jvm->thread, "JavaThread", "_osthread", os);
	set(jvm, jvm->thread, "Thread", "_osthread", os);
	set(jvm, os, "OSThread", "_thread_id", 77);
	set(jvm, 0, "ThreadsSMRSupport", "_java_thread_list", list);
	set(jvm, 0, "Threads", "_thread_list", jvm->thread);
	make_thread_object(jvm);
}

/* Its contents, when the tables have said where the static fields are. */
static void make_machine(struct fake_jvm *jvm)
{
	make_heaps(jvm);
	make_interpreter(jvm);
	jvm->call_stub_return = fake_code(jvm, &(struct fake_code){
		.name = "StubRoutines (1)", .size = 64, .frame_complete = -1 }) + 32;
	set(jvm, 0, "StubRoutines", "_call_stub_return_address", jvm->call_stub_return);
	/* JDK 8 tells HotSpot's own number. */
	set(jvm, 0, "Abstract_VM_Version", "_vm_major_version", jvm->version == 8 ? 25 : jvm->version);
	make_threads(jvm);
}

static void make_still(struct fake_jvm *jvm)
{
	struct sf_code_map *map = (struct sf_code_map *)jvm->map_bytes;

	*map = (struct sf_code_map){ .runtimes = { &jvm->hotspot.runtime }, .n_runtimes = 1 };
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
	if (!jvm->version)
		jvm->version = 17;
	fake_layout_read(&jvm->layout, jvm->version);
	fake_tables_make(jvm);
	make_machine(jvm);
	make_still(jvm);
	return sf_hotspot_attach(&jvm->memory, &jvm->exports, &jvm->hotspot, note_ret, err);
}

int fake_jvm_set_up(void **state)
{
	struct fake_jvm *jvm = calloc(1, sizeof(*jvm));
	char note[SF_HOTSPOT_NOTE];

	*state = jvm;
	return jvm && fake_jvm_make(jvm, note, NULL) && !*note ? 0 : -1;
}

int fake_jvm_tear_down(void **state)
{
	free(*state);
	return 0;
}

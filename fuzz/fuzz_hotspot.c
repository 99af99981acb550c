/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Java virtual machine whose memory is garbage here and there: its tables, its code, its
 * methods, its threads. An input is
 *
 * 	1 byte	  bit 0: attach again after the garbage is in
 * 	          pc, sp, fp, r13, r15, rbx, rax: 4 bytes each, from the start of its memory
 * 	          the rest: patches of 3 bytes address, 1 byte size (up to 15), as many bytes
 *
 * What is missing is zero.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fake_jvm.h"
#include "runtime/hotspot/metadata.h"
#include "runtime/hotspot/scopes.h"
#include "runtime/hotspot/threads.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const unsigned registers[] = { 7, 6, 13, 15, 3, 0 };

struct input {
	const uint8_t *bytes;
	size_t size;
};

static uint64_t take(struct input *input, size_t size)
{
	const size_t n = size < input->size ? size : input->size;
	uint64_t value = 0;

	memcpy(&value, input->bytes, n);
	input->bytes += n;
	input->size -= n;
	return value;
}

/* The machine without garbage, made once, with a method that is compiled and one that is not. */
static const struct fake_jvm *good(uint64_t *method_ret)
{
	static struct fake_jvm jvm;
	static uint64_t method;
	char note[SF_HOTSPOT_NOTE];

	if (!method) {
		if (!fake_jvm_make(&jvm, note, NULL))
			abort();
		method = fake_method(&jvm, "a/B", "m", "(ILjava/lang/String;)V", "B.java", 16);
		fake_code(&jvm, &(struct fake_code){
			.name = "nmethod", .size = 256, .frame_size = 4, .frame_complete = 28,
			.entry = 16, .method = method, .compile_id = 1, .level = 4, .pc = 48,
			.inlined = method, .inlined_bci = 1 });
		fake_code(&jvm, &(struct fake_code){
			.name = "native nmethod", .size = 128, .frame_size = 6, .method = method });
		fake_code(&jvm, &(struct fake_code){
			.name = "DeoptimizationBlob", .size = 128, .frame_size = 20 });
		fake_code(&jvm, &(struct fake_code){ .name = "I2C/C2I adapters", .size = 128 });
		fake_code(&jvm, &(struct fake_code){
			.name = "StubRoutines (continuationstubs)", .size = 128 });
	}
	*method_ret = method;
	return &jvm;
}

static void spoil(struct fake_jvm *jvm, struct input *input)
{
	while (input->size) {
		uint32_t address = (uint32_t)take(input, 3) % (FAKE_SIZE - 16);
		unsigned n = take(input, 1) & 15;

		for (unsigned i = 0; i < n; i++)
			jvm->bytes[address + i] = (uint8_t)take(input, 1);
	}
}

static void describe(const struct fake_jvm *jvm, const struct sf_frame *frame)
{
	static struct sf_java_scopes scopes;
	static struct sf_java_method method;
	struct sf_blob blob;

	if (sf_java_method_read(&jvm->hotspot, &jvm->memory, frame->token, &method))
		sf_java_line(&jvm->hotspot, &jvm->memory, method.constant, frame->bci);
	if (!sf_hotspot_blob(&jvm->hotspot, &jvm->memory, frame->pc, &blob))
		return;
	sf_java_scopes_find(&jvm->hotspot, &jvm->memory, &blob, frame->pc,
			    frame->flags & SF_FRAME_EXACT, &scopes);
	if (scopes.n > SF_JAVA_MAX_INLINED)
		abort();
}

static void look_at_threads(const struct fake_jvm *jvm)
{
	struct sf_java_threads threads = { 0 };
	struct sf_java_objects objects;
	char name[64];

	sf_java_objects_init(&objects, &jvm->hotspot, &jvm->memory);
	sf_java_threads_list(&jvm->hotspot, &jvm->memory, &threads);
	for (size_t i = 0; i < threads.items.n && i < 4; i++)
		sf_java_thread_name(&jvm->hotspot, &jvm->memory, &objects,
				    threads.items.items[i].address, name, sizeof(name));
	sf_vec_deinit(&threads.items);
}

static void start(struct fake_jvm *jvm, const struct fake_jvm *from)
{
	memcpy(jvm, from, sizeof(*jvm));
	jvm->memory.arg = jvm;
	jvm->still.memory.arg = jvm;
	jvm->still.memory.window = jvm->bytes + (FAKE_STACK - FAKE_BASE);
	jvm->still.map = (struct sf_code_map *)jvm->map_bytes;
	((struct sf_code_map *)jvm->map_bytes)->runtimes[0] = &jvm->hotspot.runtime;
	jvm->hotspot.code.runtime = &jvm->hotspot.runtime;
	jvm->trace.frames = jvm->frames;
	jvm->still.handles[0] = jvm->thread;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fake_jvm jvm;
	struct input input = { data, size };
	char note[SF_HOTSPOT_NOTE];
	uint64_t method;
	bool again;

	start(&jvm, good(&method));
	again = take(&input, 1) & 1;
	jvm.still.regs.pc = FAKE_BASE + take(&input, 4);
	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++)
		sf_reg_set(&jvm.still.regs, registers[i], FAKE_BASE + take(&input, 4));
	spoil(&jvm, &input);
	if (again && !sf_hotspot_attach(&jvm.memory, &jvm.exports, &jvm.hotspot, note, NULL))
		return 0;
	if (sf_walk(&jvm.still, &jvm.trace) >= SF_N_ENDS || jvm.trace.n_frames > jvm.trace.capacity)
		abort();
	for (uint32_t i = 0; i < jvm.trace.n_frames; i++) {
		if (jvm.frames[i].kind >= SF_N_KINDS || jvm.frames[i].via >= SF_N_VIAS)
			abort();
		describe(&jvm, &jvm.frames[i]);
	}
	describe(&jvm, &(struct sf_frame){ .pc = jvm.still.regs.pc, .token = method, .bci = 3 });
	look_at_threads(&jvm);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A made Java virtual machine in use: see the header. */
#include "fake_use.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "runtime/hotspot/examine.h"
#include "runtime/hotspot/locks.h"
#include "runtime/hotspot/metadata.h"
#include "runtime/hotspot/scopes.h"
#include "runtime/hotspot/threads.h"

uint64_t fake_jvm_fill(struct fake_jvm *jvm)
{
	uint64_t method = fake_method(jvm, "a/B", "m", "(ILjava/lang/String;)V", "B.java", 16);

	fake_code(jvm, &(struct fake_code){
		.name = "nmethod", .size = 256, .frame_size = 4, .frame_complete = 28,
		.entry = 16, .method = method, .compile_id = 1, .level = 4, .pc = 48,
		.inlined = method, .inlined_bci = 1 });
	fake_code(jvm, &(struct fake_code){
		.name = "native nmethod", .size = 128, .frame_size = 6, .method = method });
	fake_code(jvm, &(struct fake_code){
		.name = "DeoptimizationBlob", .size = 128, .frame_size = 20 });
	fake_code(jvm, &(struct fake_code){ .name = "I2C/C2I adapters", .size = 128 });
	fake_code(jvm, &(struct fake_code){
		.name = "StubRoutines (continuationstubs)", .size = 128 });
	return method;
}

void fake_jvm_copy(struct fake_jvm *jvm, const struct fake_jvm *from)
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

static void describe(const struct fake_jvm *jvm, const struct sf_frame *frame)
{
	static struct sf_java_scopes scopes;
	static struct sf_java_method method;
	struct sf_blob blob;

	if (sf_java_method_read(&jvm->hotspot, &jvm->memory, frame->token, &method))
		sf_java_line(&jvm->hotspot, &jvm->memory, method.constant, frame->bci);
	sf_java_compiled(&jvm->hotspot, &jvm->memory, frame, &blob);
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
	const struct sf_java_heap heap = { &jvm->hotspot, &jvm->memory, &objects };
	struct sf_jvm_facts facts;
	struct sf_lock_wait lock;
	uint64_t hint = 0;
	char name[64];

	sf_jvm_facts(&jvm->hotspot, &jvm->memory, &facts);
	sf_java_objects_init(&objects, &jvm->hotspot, &jvm->memory);
	sf_java_threads_list(&jvm->hotspot, &jvm->memory, &threads);
	for (size_t i = 0; i < threads.items.n && i < 4; i++) {
		sf_java_thread_name(&jvm->hotspot, &jvm->memory, &objects,
				    threads.items.items[i].address, name, sizeof(name));
		sf_java_lock_wait(&heap, &threads, threads.items.items[i].address, false, &hint, &lock);
	}
	sf_vec_deinit(&threads.items);
}

static void walk(struct fake_jvm *jvm)
{
	if (sf_walk(&jvm->still, &jvm->trace) >= SF_N_ENDS || jvm->trace.n_frames > jvm->trace.capacity)
		abort();
	for (uint32_t i = 0; i < jvm->trace.n_frames; i++) {
		if (jvm->frames[i].kind >= SF_N_KINDS || jvm->frames[i].via >= SF_N_VIAS)
			abort();
	}
}

static void prove(const struct fake_jvm *jvm, void *scratch)
{
	static uint8_t bytes[SF_RUNTIME_PROOF];
	const struct sf_runtime *runtime = &jvm->hotspot.runtime;
	const struct iovec *pieces;
	size_t size, at = 0;
	unsigned n = runtime->ops->proof(runtime, scratch, &pieces, &size);
	bool read = true;

	if (size > sizeof(bytes))
		abort();
	for (unsigned i = 0; i < n && read; at += pieces[i++].iov_len)
		read = sf_read(&jvm->memory, bytes + at, (uint64_t)(uintptr_t)pieces[i].iov_base,
			       pieces[i].iov_len);
	runtime->ops->is_proved(runtime, scratch, read ? bytes : NULL);
}

/* Twice: the second walk takes from the cache what the first one read. */
static void walk_with_cache(struct fake_jvm *jvm)
{
	static _Alignas(16) uint8_t scratch[SF_RUNTIME_SCRATCH];
	const struct sf_runtime_ops *ops = jvm->hotspot.runtime.ops;
	void *cache = calloc(1, ops->cache_size);

	if (!cache)
		abort();
	jvm->still.scratch[0] = scratch;
	for (unsigned i = 0; i < 2; i++) {
		ops->begin(scratch, cache, true);
		walk(jvm);
		prove(jvm, scratch);
	}
	jvm->still.scratch[0] = NULL;
	free(cache);
}

void fake_jvm_use(struct fake_jvm *jvm, uint64_t method)
{
	walk_with_cache(jvm);
	walk(jvm);
	for (uint32_t i = 0; i < jvm->trace.n_frames; i++)
		describe(jvm, &jvm->frames[i]);
	describe(jvm, &(struct sf_frame){ .pc = jvm->still.regs.pc, .token = method, .bci = 3 });
	look_at_threads(jvm);
}

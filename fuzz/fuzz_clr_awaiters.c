/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile objects of asynchronous methods (clr_world.h). A method was resumed by its box, which is on the stack. Two
 * boxes await it, one behind the other, by a delegate and a continuation.
 */
#include <stdlib.h>
#include <string.h>

#include "clr_world.h"
#include "runtime/coreclr/awaiters.h"

#define DATA CLR_DATA
#define SUSPENDER (DATA + 0x10)
#define READY (DATA + 0x40)       /* the ReadyToRunInfo: only its map of methods */
#define BUCKETS (DATA + 0x80)
#define DICTIONARIES (DATA + 0x180)
#define ARGUMENTS (DATA + 0x1a0)
#define STACK (DATA + 0x200)
#define STACK_SIZE 0x80
#define BOXES (DATA + 0x300)      /* three */
#define DELEGATE (DATA + 0x3c0)
#define CONTINUATION (DATA + 0x3e0)
#define DESCS (DATA + 0x400)      /* two MethodDescs, each behind its chunk */
#define CODE UINT64_C(0x700000)   /* two methods */
#define PART 0x400u               /* of a type */
#define N_METHODS 2
#define CHUNK 24u
#define BOX_SIZE 0x30u
#define MAX_FOUND 8u

enum { MACHINE_TYPE, BOX_TYPE, TASK_TYPE, DELEGATE_TYPE, CONTINUATION_TYPE, N_TYPES };

static const struct {
	const char *name;
	uint32_t n_before;
} types[N_TYPES] = {
	{ "<Numbers>d__0", 0 }, { "AsyncStateMachineBox`1", 2 }, { "Task", 0 }, { "Delegate", 0 }, { "AwaitTaskContinuation", 0 },
};

static const struct sf_clr_functions functions = { .n = N_METHODS, .items = { { 0, 0x100, 0 }, { 0x100, 0x200, 0 } } };
static struct sf_coreclr coreclr;
static struct sf_clr_range range;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t table_of(unsigned type)
{
	return DATA + 0x1000 + PART * type;
}

static uint64_t box(unsigned i)
{
	return BOXES + BOX_SIZE * i;
}

static uint64_t desc(unsigned method)
{
	return DESCS + 0x40 * method + CHUNK;
}

/* The box's machine is a class; each fits where the other would be. */
static void put_types(void)
{
	for (unsigned i = 0; i < N_TYPES; i++)
		clr_put_type(table_of(i), types[i].name, types[i].n_before);
	clr_put(table_of(BOX_TYPE), 0x10); /* has arguments: its last one is the machine */
	clr_put(table_of(BOX_TYPE) + 16, table_of(TASK_TYPE));
	clr_put(table_of(BOX_TYPE) + 48, DICTIONARIES);
	clr_put(DICTIONARIES - 8, UINT64_C(2) << 48 | UINT64_C(1) << 32);
	clr_put(DICTIONARIES, ARGUMENTS);
	clr_put(ARGUMENTS, table_of(TASK_TYPE));
	clr_put(ARGUMENTS + 8, table_of(MACHINE_TYPE));
}

/* The first method is the machine's, the second one the box's. */
static void put_methods(void)
{
	static const unsigned owners[N_METHODS] = { MACHINE_TYPE, BOX_TYPE };

	clr_put(READY, BUCKETS);
	clr_put(BUCKETS, N_METHODS);
	for (unsigned i = 0; i < N_METHODS; i++) {
		const uint64_t address = CODE + functions.items[i].begin, bucket = BUCKETS + 64 * (1 + (address >> 2) % N_METHODS);

		clr_put(bucket + 8 * i, address);
		clr_put(bucket + 32 + 8 * i, desc(i) >> 1 | UINT64_C(1) << 63);
		clr_put(desc(i) - CHUNK, table_of(owners[i]));
		clr_put(desc(i), 1); /* the row */
	}
}

static void put_objects(void)
{
	for (unsigned i = 0; i < 3; i++) {
		clr_put(box(i), table_of(BOX_TYPE));
		clr_put(box(i) + 24, table_of(MACHINE_TYPE) + CLR_OBJECT);
	}
	clr_put(box(0) + 8, DELEGATE);
	clr_put(DELEGATE, table_of(DELEGATE_TYPE));
	clr_put(DELEGATE + 8, box(1));
	clr_put(box(1) + 8, CONTINUATION);
	clr_put(CONTINUATION, table_of(CONTINUATION_TYPE));
	clr_put(CONTINUATION + 8, box(2));
	clr_put(STACK + 0x30, box(0));
}

static void set_layout(struct sf_clr_layout *layout)
{
	layout->fields[SF_CLR_READY_METHODS] = 0;
	layout->fields[SF_CLR_HASH_BUCKETS] = 0;
	layout->fields[SF_CLR_METHOD_FLAGS3] = 0;
	layout->fields[SF_CLR_METHOD_INDEX] = 2;
	layout->fields[SF_CLR_METHOD_FLAGS] = 6;
	layout->fields[SF_CLR_CHUNK_TABLE] = 0;
	layout->fields[SF_CLR_CHUNK_FLAGS] = 8;
	layout->sizes[SF_CLR_SIZE_CHUNK] = CHUNK;
	clr_description.token_bits = 12;
	clr_description.layout.method_alignment = 8;
	clr_description.suspender = SUSPENDER;
}

/* How many awaiters are found. */
static uint32_t find(void)
{
	struct sf_frame found[MAX_FOUND], frames[4] = {
		{ .pc = CODE + 0x10, .token = CODE, .sp = STACK },
		{ .pc = CODE + 0x110, .token = CODE + 0x100, .sp = STACK + 0x20 },
		{ .pc = 1, .sp = STACK + 0x40, .runtime = 0 },
		{ .pc = 2, .sp = STACK + 0x60, .runtime = 0 },
	};
	const struct sf_trace trace = { .frames = frames, .n_frames = 4 };
	const struct sf_still still = { .arch = &sf_arch_x86_64, .memory = clr_memory };
	struct sf_clr_places *places = sf_clr_places_create(&clr_description, &clr_memory, 0);
	struct sf_clr_object_types *object_types = sf_clr_object_types_create();
	const struct sf_location *locations;
	uint32_t at, n;

	if (!places || !object_types)
		abort();
	frames[0].runtime = frames[1].runtime = 1;
	frames[0].kind = frames[1].kind = SF_KIND_PRECOMPILED;
	sf_clr_places_use(places, &coreclr);
	n = sf_clr_awaiters(object_types, places, &still, &trace, 0, found, MAX_FOUND, &at);
	if (n > MAX_FOUND || (n && at > trace.n_frames))
		abort();
	for (uint32_t i = 0; i < n; i++)
		sf_clr_places_functions(places, sf_clr_places_number(places, &found[i]), &locations);
	n = n && found[0].token ? n : 0;
	sf_clr_object_types_destroy(object_types);
	sf_clr_places_destroy(places);
	return n;
}

/* The objects must be found while they are right: else the inputs show nothing. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	clr_world_init();
	set_layout(&clr_description.layout);
	range = (struct sf_clr_range){
		.region = { .start = CODE, .end = CODE + 0x200, .runtime = &coreclr.runtime },
		.code = SF_CLR_CODE_PRECOMPILED, .base = CODE, .ready = READY, .functions = &functions,
	};
	coreclr = (struct sf_coreclr){
		.runtime = { .ops = &sf_coreclr_ops, .start = 1, .end = UINT64_MAX },
		.layout = clr_description.layout, .ranges = &range, .n_ranges = 1,
	};
	put_types();
	put_methods();
	put_objects();
	clr_spoil(NULL, 0);
	if (find() != 2)
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	clr_spoil(data, size);
	find();
	return 0;
}

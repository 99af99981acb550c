/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile objects of .NET: threads, locks and monitors (clr_world.h). */
#include <stdlib.h>

#include "clr_world.h"
#include "runtime/coreclr/threads.h"
#include "runtime/coreclr/waits.h"

#define DATA CLR_DATA
#define PART 0x400u           /* of a type */
#define OBJECT CLR_OBJECT
#define SUSPENDER (DATA + 0x10)
#define DOMAIN (DATA + 0x40)
#define SYNC_TABLE (DATA + 0x48)
#define ENTRIES (DATA + 0x60)
#define HANDLE (DATA + 0xa0)
#define LOCK (DATA + 0xc0)
#define SAFE (DATA + 0xf0)     /* the SafeWaitHandle */
#define STACK (DATA + 0x100)
#define STACK_WORDS 16u
#define THREAD(i) (DATA + 0x3000 + 0x400 * (i))
#define MAJOR 10u
#define ITEM_AT 672u
#define TID(i) (7 + (i))

enum { THREAD_TYPE, LOCK_TYPE, SLIM_TYPE, HANDLE_TYPE, N_TYPES };

static const char *const type_names[N_TYPES] = { "Thread", "Lock", "ReaderWriterLockSlim", "WaitHandle" };

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t table_of(unsigned type)
{
	return DATA + 0x800 + PART * type;
}

/* Thread 0 waits for what thread 1 has. */
static void put_threads(void)
{
	const uint64_t thread = table_of(THREAD_TYPE) + OBJECT;

	for (unsigned i = 0; i < 2; i++) {
		clr_put(THREAD(i) + 8, TID(i));
		clr_put(THREAD(i) + 24, 40 + i);
	}
	clr_put(THREAD(1) + 16, HANDLE);
	clr_put(HANDLE, thread);
	clr_put(thread + 16, THREAD(1));
	clr_put(thread + 24, 41);
	clr_put(table_of(LOCK_TYPE) + OBJECT + 8, TID(1));
	clr_put(table_of(LOCK_TYPE) + OBJECT + 16, CLR_IMAGE + 8);
	clr_put(table_of(SLIM_TYPE) + OBJECT + 8, CLR_IMAGE + 16);
	clr_put(table_of(SLIM_TYPE) + OBJECT + 24, 41);
	clr_put(SAFE, DATA + 0x700);
	clr_put(table_of(HANDLE_TYPE) + OBJECT + 8, SAFE);
	for (unsigned i = 0; i < N_TYPES; i++)
		clr_put(STACK + 8 * i, table_of(i) + OBJECT);
	clr_put(STACK + 0x20, CLR_IMAGE + 8);
	clr_put(STACK + 0x28, CLR_IMAGE + 16);
	clr_put(STACK + 0x30, THREAD(1));
	clr_put(STACK + 0x38, SAFE);
}

/* Thread 0 waits for the monitor of an object of the type Lock. */
static void put_monitor(void)
{
	clr_put(DOMAIN, DATA + 0x3fff8);
	clr_put(SYNC_TABLE, ENTRIES);
	clr_put(ENTRIES + 16, LOCK);
	clr_put(ENTRIES + 24, table_of(LOCK_TYPE) + OBJECT);
	clr_put(LOCK, 1);
	clr_put(LOCK + 8, UINT64_C(0x5555555500000000) | 41); /* nothing sets the upper half */
	clr_put(LOCK + 16, TID(1));
	clr_put(LOCK + 24, UINT64_C(1) << 32);
	clr_put(THREAD(0) + ITEM_AT, STACK + 0x80);
	clr_put(STACK + 0x80, LOCK);
	clr_put(STACK + 0x88, DATA + 0x3fff8);
	clr_put(STACK + 0x90, UINT64_C(0xffffffff) << 32);
}

/* How many of the waits are found, with the thread that is waited for. */
static unsigned find_all(void)
{
	static const struct sf_clr_lock_type *const types[] = {
		&sf_clr_type_thread, &sf_clr_type_lock, &sf_clr_type_slim_lock, &sf_clr_type_handle,
	};
	struct sf_clr_modules modules = { 0 };
	struct sf_clr_threads threads = { 0 };
	struct sf_clr_thread_fields fields = { 0 };
	const struct sf_clr_naming naming = { &clr_description, &clr_memory, &modules };
	struct sf_frame frames[] = { { .sp = STACK }, { .sp = STACK + 8 * STACK_WORDS }, { .sp = STACK + 0xb8 }, { .sp = STACK + 0xc0 } };
	const struct sf_trace trace = { .frames = frames, .n_frames = 4 };
	struct sf_lock_wait wait;
	char name[SF_RUNTIME_NAME];
	unsigned n = 0;

	for (unsigned i = 0; i < 2; i++) {
		if (!sf_vec_push(&threads.items, (struct sf_clr_thread){ .tid = (int32_t)TID(i), .thread = THREAD(i) }))
			abort();
	}
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (sf_clr_object_wait(&naming, &threads, THREAD(0), types[i], &trace, 0, &wait))
			n += wait.owner == TID(1) || !wait.owner;
	}
	n += sf_clr_lock_wait(&naming, MAJOR, &threads, THREAD(0), &wait) && wait.owner == TID(1);
	sf_clr_thread_name(&naming, &fields, THREAD(1), name, sizeof(name));
	sf_clr_threads_deinit(&threads);
	sf_clr_modules_deinit(&modules);
	return n;
}

/* The objects must be found while they are right: else the inputs show nothing. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	clr_world_init();
	clr_description.suspender = SUSPENDER;
	clr_description.domain = DOMAIN;
	clr_description.sync_table = SYNC_TABLE;
	for (unsigned i = 0; i < N_TYPES; i++)
		clr_put_type(table_of(i), type_names[i], 0);
	put_threads();
	put_monitor();
	clr_spoil(NULL, 0);
	if (find_all() != 5)
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	clr_spoil(data, size);
	find_all();
	return 0;
}

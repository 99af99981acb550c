/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile objects of .NET: threads, locks and monitors in a memory that is right at first. The input is a list of words that are written over
 * it. Types have their names from an assembly (clr_types.dll), whose bytes stay as they are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/coreclr/locks.h"
#include "runtime/coreclr/monitors.h"
#include "runtime/coreclr/threads.h"

#define DATA UINT64_C(0x10000)
#define SIZE 0x4000u
#define IMAGE UINT64_C(0x200000)
#define PART 0x400u           /* of a type: its MethodTable, its EEClass, its fields, an object */
#define CLASS 0x80u
#define FIELDS 0x100u
#define OBJECT 0x300u
#define SUSPENDER (DATA + 0x10)
#define MODULE (DATA + 0x20)
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

static struct sf_clr_description description;
static uint8_t world[SIZE], memory_now[SIZE], *image;
static size_t image_size;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_memory(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	(void)reader;
	if (addr >= DATA && addr - DATA <= SIZE && size <= SIZE - (addr - DATA)) {
		memcpy(ret, memory_now + (addr - DATA), size);
		return true;
	}
	/* The rest of the image's last page is 0. */
	if (addr < IMAGE || addr - IMAGE > 2 * image_size || size > 2 * image_size - (addr - IMAGE))
		return false;
	memcpy(ret, image + (addr - IMAGE), size);
	return true;
}

static const struct sf_reader memory = { .read = read_memory };

static void put(uint64_t at, uint64_t value)
{
	memcpy(world + (at - DATA), &value, sizeof(value));
}

static uint64_t table_of(unsigned type)
{
	return DATA + 0x800 + PART * type;
}

static void set_layout(struct sf_clr_layout *layout)
{
	static const struct {
		uint16_t field, at;
	} fields[] = {
		{ SF_CLR_TABLE_FLAGS, 0 }, { SF_CLR_TABLE_FLAGS2, 8 }, { SF_CLR_TABLE_PARENT, 16 }, { SF_CLR_TABLE_MODULE, 24 },
		{ SF_CLR_TABLE_CANON, 40 }, { SF_CLR_TABLE_ARGUMENTS, 48 }, { SF_CLR_CLASS_FIELDS, 8 }, { SF_CLR_MODULE_BASE, 0 },
		{ SF_CLR_THREAD_STATE, 0 }, { SF_CLR_THREAD_OS_ID, 8 }, { SF_CLR_THREAD_OBJECT, 16 }, { SF_CLR_THREAD_ID, 24 },
		{ SF_CLR_DICTIONARY_N, 4 }, { SF_CLR_DICTIONARY_N_ARGUMENTS, 6 }, { SF_CLR_TYPE_KIND, 0 }, { SF_CLR_TYPE_OF, 16 },
	};

	memset(layout->fields, 0xff, sizeof(layout->fields));
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		layout->fields[fields[i].field] = fields[i].at;
}

/* A type with the fields that the assembly says, one word each, in their order. */
static void put_type(const struct sf_clr_metadata *metadata, unsigned type)
{
	const uint64_t table = table_of(type);
	uint32_t n = 0;

	put(table + 24, MODULE);
	put(table + 40, table + CLASS);
	put(table + CLASS + 8, table + FIELDS);
	put(table + OBJECT, table);
	for (uint32_t row = 1; row <= sf_clr_n_rows(metadata, SF_CLR_FIELD); row++) {
		const uint32_t owner = sf_clr_field_owner(metadata, row);

		if (strcmp(sf_clr_string(metadata, SF_CLR_TYPE_DEF, owner, SF_CLR_TYPE_DEF_NAME), type_names[type]) != 0)
			continue;
		put(table + FIELDS + 16 * n, table);
		put(table + FIELDS + 16 * n + 8, row | (uint64_t)(8 * n) << 32);
		n++;
	}
	for (uint32_t row = 1; row <= sf_clr_n_rows(metadata, SF_CLR_TYPE_DEF); row++) {
		if (strcmp(sf_clr_string(metadata, SF_CLR_TYPE_DEF, row, SF_CLR_TYPE_DEF_NAME), type_names[type]) == 0)
			put(table + 8, (uint64_t)row << 8);
	}
}

/* Thread 0 waits for what thread 1 has. */
static void put_threads(void)
{
	const uint64_t thread = table_of(THREAD_TYPE) + OBJECT;

	for (unsigned i = 0; i < 2; i++) {
		put(THREAD(i) + 8, TID(i));
		put(THREAD(i) + 24, 40 + i);
	}
	put(THREAD(1) + 16, HANDLE);
	put(HANDLE, thread);
	put(thread + 16, THREAD(1));
	put(thread + 24, 41);
	put(table_of(LOCK_TYPE) + OBJECT + 8, TID(1));
	put(table_of(LOCK_TYPE) + OBJECT + 16, IMAGE + 8);
	put(table_of(SLIM_TYPE) + OBJECT + 8, IMAGE + 16);
	put(table_of(SLIM_TYPE) + OBJECT + 24, 41);
	put(SAFE, DATA + 0x700);
	put(table_of(HANDLE_TYPE) + OBJECT + 8, SAFE);
	for (unsigned i = 0; i < N_TYPES; i++)
		put(STACK + 8 * i, table_of(i) + OBJECT);
	put(STACK + 0x20, IMAGE + 8);
	put(STACK + 0x28, IMAGE + 16);
	put(STACK + 0x30, THREAD(1));
	put(STACK + 0x38, SAFE);
}

/* Thread 0 waits for the monitor of an object of the type Lock. */
static void put_monitor(void)
{
	put(DOMAIN, DATA + 0x3fff8);
	put(SYNC_TABLE, ENTRIES);
	put(ENTRIES + 16, LOCK);
	put(ENTRIES + 24, table_of(LOCK_TYPE) + OBJECT);
	put(LOCK, 1);
	put(LOCK + 8, UINT64_C(0x5555555500000000) | 41); /* nothing sets the upper half */
	put(LOCK + 16, TID(1));
	put(LOCK + 24, UINT64_C(1) << 32);
	put(THREAD(0) + ITEM_AT, STACK + 0x80);
	put(STACK + 0x80, LOCK);
	put(STACK + 0x88, DATA + 0x3fff8);
	put(STACK + 0x90, UINT64_C(0xffffffff) << 32);
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
	const struct sf_clr_naming naming = { &description, &memory, &modules };
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

static bool read_image(void)
{
	FILE *file = fopen(CLR_TYPES, "rb");
	long size = -1;

	if (file && fseek(file, 0, SEEK_END) == 0)
		size = ftell(file);
	if (size > 0) {
		rewind(file);
		image_size = (size_t)size;
		image = calloc(2, image_size);
	}
	if (size > 0 && image && fread(image, 1, image_size, file) != image_size)
		size = -1;
	if (file)
		fclose(file);
	return size > 0 && image;
}

/* What is right at first must be found: else the inputs show nothing. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct sf_clr_modules modules = { 0 };
	const struct sf_clr_module *found;

	(void)argc;
	(void)argv;
	if (!read_image())
		abort();
	set_layout(&description.layout);
	description.suspender = SUSPENDER;
	description.domain = DOMAIN;
	description.sync_table = SYNC_TABLE;
	put(MODULE, IMAGE);
	memcpy(memory_now, world, SIZE);
	found = sf_clr_modules_find(&modules, &description, &memory, MODULE);
	if (!found)
		abort();
	for (unsigned i = 0; i < N_TYPES; i++)
		put_type(&found->metadata, i);
	sf_clr_modules_deinit(&modules);
	put_threads();
	put_monitor();
	memcpy(memory_now, world, SIZE);
	if (find_all() != 5)
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	memcpy(memory_now, world, SIZE);
	for (; size >= 10; data += 10, size -= 10) {
		const unsigned at = (unsigned)(data[0] | data[1] << 8) % (SIZE - 8);

		memcpy(memory_now + at, data + 2, 8);
	}
	find_all();
	return 0;
}

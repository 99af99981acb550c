/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of the runtimes of this process: finds the handles by which runtimes know them, and puts their names into
 * the stream.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/service/runtime_memory.h"
#include "agent/service/service_state.h"
#include "base/block.h"
#include "frozen/raw.h"
#include "frozen/signal/handler.h"
#include "os/clock.h"
#include "stream/record.h"

#define THREADS_NS 100000000u  /* between two looks at threads, if that costs nothing; ... */
#define THREADS_SHARE 100      /* ... at least so many times what it costs */
#define NAMES_NS 1000000000u   /* until a thread is looked at again, and asked for its name, ... */
#define MIN_LOOKS 2            /* ... after so many at once */

bool sf_runtime_threads_make(struct sf_runtime_publisher *runtimes)
{
	if (!runtimes->threads)
		runtimes->threads = sf_block_new(SF_THREAD_TABLE_SIZE * sizeof(*runtimes->threads));
	if (!runtimes->entries)
		runtimes->entries = calloc(SF_THREAD_TABLE_SIZE, sizeof(*runtimes->entries));
	return runtimes->threads && runtimes->entries;
}

static void forget_handles(uint32_t slot)
{
	for (uint32_t i = 0; i < SF_THREAD_TABLE_SIZE; i++)
		atomic_store(&sf_handler.link.entries[i].handles[slot], 0);
}

void sf_runtime_threads_deinit(struct sf_runtime_publisher *runtimes)
{
	for (uint32_t i = 0; sf_handler.link.entries && i < SF_N_RUNTIMES; i++) {
		if (runtimes->all.attached[i])
			forget_handles(i);
	}
	sf_block_free(runtimes->threads);
	free(runtimes->entries);
}

static void name_thread(struct sf_service *service, struct sf_kept_runtime_thread *thread, int32_t tid,
			uint64_t now_ns)
{
	struct sf_stream_thread record = { .serial = thread->serial, .tid = tid,
					   .time_ns = now_ns, .is_full = 1 };
	char name[SF_RUNTIME_NAME];

	if (sf_runtimes_thread_name(&service->runtimes.all, tid, sf_runtime_memory_forget, service->runtimes.memory, name) != SF_NAMED ||
	    strcmp(name, thread->name) == 0)
		return;
	record.name_size = (uint32_t)strlen(name);
	if (sf_stream_writer_put_record(service, SF_STREAM_THREAD, &record, sizeof(record), name,
					record.name_size))
		memcpy(thread->name, name, sizeof(name));
}

/* Whether a runtime has, or may have, the thread. */
static bool may_be_in_runtime(const struct sf_service *service, const struct sf_thread_entry *entry)
{
	for (uint32_t i = 0; i < SF_N_RUNTIMES; i++) {
		if (service->runtimes.all.attached[i] &&
		    atomic_load(&entry->handles[i]) != SF_ENTRY_NO_HANDLE)
			return true;
	}
	return false;
}

/*
 * Whether the thread must be looked up again. A new thread may not be in the runtime's list yet. A name that cannot be read
 * now, for example because a collector moves it, can be read soon.
 */
static bool is_due(const struct sf_service *service, const struct sf_kept_runtime_thread *thread,
		   const struct sf_thread_entry *entry, uint64_t now_ns)
{
	return thread->n_looks < MIN_LOOKS || now_ns - thread->looked_ns >= NAMES_NS ||
	       (may_be_in_runtime(service, entry) && !thread->name[0]);
}

/* False: no runtime has the thread. */
static bool find_handles(struct sf_service *service, struct sf_thread_entry *entry, int32_t tid)
{
	bool any = false;

	for (uint32_t i = 0; i < SF_N_RUNTIMES; i++) {
		uint64_t handle;

		if (!service->runtimes.all.attached[i])
			continue;
		handle = sf_runtimes_thread(&service->runtimes.all, i, tid);
		atomic_store(&entry->handles[i], handle ? handle : SF_ENTRY_NO_HANDLE);
		any |= handle != 0;
	}
	return any;
}

static void look_at(struct sf_service *service, struct sf_thread_entry *entry, int32_t tid, uint64_t now_ns)
{
	struct sf_kept_runtime_thread *thread = &service->runtimes.threads[entry - sf_handler.link.entries];
	const uint32_t serial = atomic_load(&entry->serial);

	if (thread->serial != serial)
		*thread = (struct sf_kept_runtime_thread){ .serial = serial };
	if (!is_due(service, thread, entry, now_ns))
		return;
	thread->n_looks++;
	thread->looked_ns = now_ns;
	if (find_handles(service, entry, tid))
		name_thread(service, thread, tid, now_ns);
}

_Static_assert(SF_THREAD_TABLE_SIZE <= UINT16_MAX + 1, "an entry's number fits");

/* The thread's id; 0: no watched thread has the entry. */
static int32_t taken_by(const struct sf_thread_entry *entry)
{
	const int32_t tid = atomic_load(&entry->tid);

	return tid > 0 && atomic_load(&entry->serial) ? tid : 0;
}

/* The entries are 3 MB, so they are listed only when a thread was added. */
static void list_entries(struct sf_runtime_publisher *runtimes)
{
	const uint32_t n_with_serial = atomic_load(&sf_handler.link.n_with_serial);

	if (n_with_serial == runtimes->n_with_serial)
		return;
	runtimes->n_with_serial = n_with_serial;
	runtimes->n_entries = 0;
	for (uint32_t i = 0; i < SF_THREAD_TABLE_SIZE; i++) {
		if (taken_by(&sf_handler.link.entries[i]))
			runtimes->entries[runtimes->n_entries++] = (uint16_t)i;
	}
}

void sf_runtime_threads_look(struct sf_service *service, uint64_t now_ns)
{
	uint64_t before_ns = sf_raw_thread_cpu_ns(), pause_ns;

	sf_runtime_memory_forget(service->runtimes.memory);
	list_entries(&service->runtimes);
	for (uint32_t i = 0; i < service->runtimes.n_entries; i++) {
		struct sf_thread_entry *entry = &sf_handler.link.entries[service->runtimes.entries[i]];
		const int32_t tid = taken_by(entry);

		if (tid)
			look_at(service, entry, tid, now_ns);
	}
	if (!service->runtimes.n_entries)
		return; /* the sampler has not looked for threads yet */
	/* By its CPU time: where all CPUs are busy elapsed time says how long it waited for one. */
	pause_ns = (sf_raw_thread_cpu_ns() - before_ns) * THREADS_SHARE;
	service->runtimes.next_look_ns = sf_now_ns() + (pause_ns > THREADS_NS ? pause_ns : THREADS_NS);
}

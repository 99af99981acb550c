/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtimes of this process: attached to when they have started, published with the code map, their
 * places described. The handles by which they know their threads are found, and the threads' names put into the stream. Nothing of
 * a runtime is called.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/host/memory.h"
#include "agent/service/runtime_memory.h"
#include "agent/service/service_state.h"
#include "base/block.h"
#include "frozen/raw.h"
#include "frozen/signal/chain.h"
#include "frozen/signal/handler.h"
#include "os/clock.h"
#include "stream/record.h"

#define MAX_TEXT 4000          /* bytes of a name in a record */
#define PLACES_AT_ONCE 128
#define THREADS_NS 100000000u  /* between two looks at threads, if that costs nothing; ... */
#define THREADS_SHARE 100      /* ... at least so many times what it costs */
#define NAMES_NS 1000000000u   /* until a thread is looked at again, and asked for its name, ... */
#define MIN_LOOKS 2            /* ... after so many at once */

/* --- records --- */

static void write_note(struct sf_service *service, const char *text)
{
	const struct sf_stream_note record = { .size = (uint32_t)strlen(text) };

	sf_stream_writer_put_record(service, SF_STREAM_NOTE, &record, sizeof(record), text, record.size);
}

/* A PLACE record that is being made: the texts go behind the functions. And the keys for which there are to be such records. */
struct description {
	struct sf_frame_key_wanted wanted[PLACES_AT_ONCE];
	struct sf_stream_function functions[SF_STREAM_MAX_FUNCTIONS];
	size_t text_size;
	char text[SF_STREAM_MAX_RECORD / 2];
};

static uint16_t add_text(struct description *description, const char *text)
{
	size_t room = sizeof(description->text) - description->text_size, size = strnlen(text, MAX_TEXT);

	if (size > room)
		size = room;
	memcpy(description->text + description->text_size, text, size);
	description->text_size += size;
	return (uint16_t)size;
}

static void add_function(struct description *description, const struct sf_location *from,
			 struct sf_stream_function *ret)
{
	*ret = (struct sf_stream_function){
		.line = from->line,
		.flags = (uint16_t)((from->inlined ? SF_STREAM_INLINED : 0) |
				    (from->approximate ? SF_STREAM_APPROXIMATE : 0)),
	};
	ret->name_size = add_text(description, from->function);
	ret->linkage_size = add_text(description, from->linkage);
	ret->file_size = add_text(description, from->file);
}

static bool write_place(struct sf_service *service, uint64_t key, const struct sf_location *functions,
		       size_t n)
{
	struct description *description = service->runtimes.description;
	struct sf_stream_place record = { .key = key };
	struct sf_outbox_piece pieces[3] = {
		{ (const char *)&record + sizeof(record.header),
		  sizeof(record) - sizeof(record.header) },
	};

	description->text_size = 0;
	n = n < SF_STREAM_MAX_FUNCTIONS ? n : SF_STREAM_MAX_FUNCTIONS;
	for (size_t i = 0; i < n; i++)
		add_function(description, &functions[i], &description->functions[i]);
	record.n_functions = (uint32_t)n;
	record.text_size = (uint32_t)description->text_size;
	pieces[1] =
		(struct sf_outbox_piece){ description->functions, n * sizeof(description->functions[0]) };
	pieces[2] = (struct sf_outbox_piece){ description->text, description->text_size };
	return sf_stream_writer_put(service, SF_STREAM_PLACE, pieces, 3);
}

/* --- places --- */

static void describe(struct sf_service *service, const struct sf_frame_key_wanted *wanted)
{
	struct sf_runtimes *all = &service->runtimes.all;
	const struct sf_location *functions;
	uint32_t place = sf_runtimes_place(all, &wanted->frame);
	size_t n = sf_runtimes_functions(all, &wanted->frame, place, &functions);

	if (!n || !write_place(service, wanted->key, functions, n))
		service->runtimes.n_not_queued++;
}

static size_t take_wanted(struct sf_frame_keys *places, struct sf_frame_key_wanted *ret, size_t max)
{
	size_t n = 0;

	while (n < max && sf_outbox_get(places->queue, places->queue->size, &ret[n], sizeof(*ret)) > 0)
		n += ret[n].header.type == SF_FRAME_KEY_WANTED;
	return n;
}

static void expect(struct sf_service *service, size_t n)
{
	struct description *description = service->runtimes.description;
	const struct sf_prefetch ahead = sf_runtime_memory_prefetch(service->runtimes.memory);
	const struct sf_frame *frames[PLACES_AT_ONCE];

	for (size_t i = 0; i < n; i++)
		frames[i] = &description->wanted[i].frame;
	if (sf_handler.code.memory.gathers)
		sf_runtimes_expect(&service->runtimes.all, &ahead, frames, n);
}

/* Describes a batch of queued places, after their memory was fetched together. True: there were many. */
static bool describe_wanted(struct sf_service *service)
{
	struct sf_frame_keys *places = atomic_load(&sf_handler.code.frame_keys);
	struct description *description = service->runtimes.description;
	bool many = false;
	size_t n;

	while (places && (n = take_wanted(places, description->wanted, PLACES_AT_ONCE)) > 0) {
		sf_runtime_memory_forget(service->runtimes.memory);
		expect(service, n);
		for (size_t i = 0; i < n; i++)
			describe(service, &description->wanted[i]);
		many = many || n == PLACES_AT_ONCE;
	}
	return many;
}

/* --- threads --- */

static bool make_threads(struct sf_runtime_publisher *runtimes)
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

/* Runtimes' handles are forgotten in all entries. */
static void deinit_threads(struct sf_runtime_publisher *runtimes)
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

/* Looks for new threads and names, and says when to look next (next_look_ns). */
static void look_at_threads(struct sf_service *service, uint64_t now_ns)
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

/* --- the runtimes --- */

static bool make_memory(struct sf_runtime_publisher *runtimes, const struct sf_process *process)
{
	if (!runtimes->memory)
		runtimes->memory = sf_runtime_memory_create(process);
	if (!runtimes->description)
		runtimes->description = sf_block_new(sizeof(*runtimes->description));
	return runtimes->memory && runtimes->description && make_threads(runtimes);
}

/* Makes the structures that must exist before a runtime is attached. */
static bool prepare(void *arg, uint32_t slot, struct sf_reader *ret)
{
	struct sf_service *service = arg;

	if (sf_runtimes_driver(slot)->undisturbed_signal)
		sf_chain_leave_undisturbed(sf_runtimes_driver(slot)->undisturbed_signal);
	/* Handlers may use the places as soon as one runtime is attached to. */
	if (!make_memory(&service->runtimes, &service->process) ||
	    (!sf_runtimes_any(&service->runtimes.all) && !sf_agent_make_places()) ||
	    !sf_agent_make_cache(slot, sf_runtimes_driver(slot)->ops->cache_size))
		return false;
	sf_runtime_memory_forget(service->runtimes.memory);
	*ret = sf_runtime_memory_reader(service->runtimes.memory);
	return true;
}

void sf_runtime_publisher_look(struct sf_service *service)
{
	const char *news;

	service->runtimes.all.completes = !service->agent->options.not_complete;
	if (sf_runtimes_look(&service->runtimes.all, &service->process, service->images, prepare, service))
		service->renew = service->urgent = true;
	news = sf_runtimes_news(&service->runtimes.all);
	if (news)
		write_note(service, news);
}

void sf_runtime_publisher_refresh(struct sf_service *service, bool unknown_code)
{
	if (!sf_runtimes_any(&service->runtimes.all))
		return;
	sf_runtime_memory_forget(service->runtimes.memory);
	if (sf_runtimes_refresh(&service->runtimes.all, &service->process, true, unknown_code))
		service->renew = service->urgent = true;
}

bool sf_runtime_publisher_turn(struct sf_service *service, uint64_t now_ns)
{
	bool many;

	if (!sf_runtimes_any(&service->runtimes.all))
		return false;
	many = describe_wanted(service);
	if (now_ns >= service->runtimes.next_look_ns) {
		look_at_threads(service, now_ns);
		sf_runtime_publisher_refresh(service, false);
	}
	return many;
}

static void note_not_queued(struct sf_service *service)
{
	const struct sf_frame_keys *places = atomic_load(&sf_handler.code.frame_keys);
	uint64_t n = service->runtimes.n_not_queued + (places ? atomic_load(&places->n_not_queued) : 0);
	char text[120];

	if (!n)
		return;
	snprintf(text, sizeof(text), "%llu frames of managed code could not be described: there were too "
		 "many at once", (unsigned long long)n);
	write_note(service, text);
}

void sf_runtime_publisher_end(struct sf_service *service)
{
	if (!sf_runtimes_any(&service->runtimes.all))
		return;
	describe_wanted(service);
	look_at_threads(service, sf_now_ns());
	note_not_queued(service);
}

void sf_runtime_publisher_deinit(struct sf_service *service)
{
	deinit_threads(&service->runtimes);
	sf_runtimes_deinit(&service->runtimes.all);
	sf_block_free(service->runtimes.description);
	sf_runtime_memory_destroy(service->runtimes.memory);
	service->runtimes = (struct sf_runtime_publisher){ 0 };
}

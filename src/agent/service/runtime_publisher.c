/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtimes of this process: attached to when they have started, published with the code map, their
 * places described. Their threads are in runtime_threads.c. Nothing of a runtime is called.
 */
#include <stdio.h>
#include <string.h>

#include "agent/service/runtime_memory.h"
#include "agent/service/service_state.h"
#include "agent/host/memory.h"
#include "base/block.h"
#include "frozen/signal/chain.h"
#include "frozen/signal/handler.h"
#include "os/clock.h"
#include "stream/record.h"

#define MAX_TEXT 4000          /* bytes of a name in a record */
#define PLACES_AT_ONCE 128

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

/* --- the runtimes --- */

static bool make_memory(struct sf_runtime_publisher *runtimes, const struct sf_process *process)
{
	if (!runtimes->memory)
		runtimes->memory = sf_runtime_memory_create(process);
	if (!runtimes->description)
		runtimes->description = sf_block_new(sizeof(*runtimes->description));
	return runtimes->memory && runtimes->description && sf_runtime_threads_make(runtimes);
}

/* Makes the structures that must exist before a runtime is attached. */
static bool prepare(void *arg, uint32_t slot, struct sf_reader *ret)
{
	struct sf_service *service = arg;

	if (sf_runtimes_driver(slot)->undisturbed_signal)
		sf_chain_leave_undisturbed(sf_runtimes_driver(slot)->undisturbed_signal);
	/* Handlers may use the places as soon as one runtime is attached to. */
	if (!make_memory(&service->runtimes, &service->process) ||
	    (!sf_runtimes_any(&service->runtimes.all) && !sf_agent_make_places(NULL)) ||
	    !sf_agent_make_cache(slot, sf_runtimes_driver(slot)->ops->cache_size, NULL))
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
		sf_runtime_threads_look(service, now_ns);
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
	sf_runtime_threads_look(service, sf_now_ns());
	note_not_queued(service);
}

void sf_runtime_publisher_deinit(struct sf_service *service)
{
	sf_runtime_threads_deinit(&service->runtimes);
	sf_runtimes_deinit(&service->runtimes.all);
	sf_block_free(service->runtimes.description);
	sf_runtime_memory_destroy(service->runtimes.memory);
	service->runtimes = (struct sf_runtime_publisher){ 0 };
}

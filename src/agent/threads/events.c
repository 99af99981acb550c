/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the events of the program's threads, and has them sampled by these threads. */
#include "agent/threads/events.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "agent/threads/thread_entries.h"
#include "frozen/raw.h"
#include "frozen/signal/handler.h"
#include "stream/record.h"

#define WAIT_NS UINT64_C(2000000000) /* for threads that count, which takes them some microseconds */
#define LOOK_NS 100000
#define SYSTEM_NAME 16               /* prctl(2), PR_GET_NAME */

/* --- who the thread is --- */

/* Found once, not by a system call at each event. An entry that was given up, or a forked child's, has another id. */
static _Thread_local struct {
	struct sf_thread_entry *entry;
	int32_t tid;
} own;

static struct sf_thread_entry *own_entry(void)
{
	if (own.entry && atomic_load_explicit(&own.entry->tid, memory_order_relaxed) == own.tid)
		return own.entry;
	own.entry = sf_agent_own_entry(NULL);
	own.tid = own.entry ? atomic_load(&own.entry->tid) : 0;
	return own.entry;
}

static void write_thread(const struct sf_thread_entry *entry, uint32_t serial)
{
	char name[SYSTEM_NAME] = "";
	struct sf_stream_thread record = {
		.serial = serial,
		.tid = atomic_load(&entry->tid),
		.time_ns = sf_raw_now_ns(),
	};

	sf_raw2(SYS_prctl, PR_GET_NAME, (long)name);
	record.name_size = (uint32_t)strnlen(name, sizeof(name));
	sf_output_put_record(&sf_handler.output, SF_STREAM_THREAD, &record, sizeof(record), name, record.name_size);
}

/* A thread that is too young for the sampler to have found it has a serial of its own making, which the sampler takes over. */
static void number_self(struct sf_thread_entry *entry)
{
	const uint32_t serial = atomic_fetch_add(&sf_handler.link.last_serial, 1) + 1;
	uint32_t none = 0;

	if (!atomic_compare_exchange_strong(&entry->serial, &none, serial))
		return;
	atomic_fetch_add(&sf_handler.link.n_with_serial, 1);
	write_thread(entry, serial);
	sf_agent_threads_expect();
}

/* False: the options exclude it, or may do so. */
static bool is_wanted(struct sf_thread_entry *entry)
{
	if (sf_handler.config.some_threads)
		return !(atomic_load_explicit(&entry->flags, memory_order_relaxed) & SF_ENTRY_UNWATCHED);
	if (!atomic_load_explicit(&entry->serial, memory_order_relaxed))
		number_self(entry);
	return true;
}

/* --- an event --- */

static void sample(struct sf_thread_entry *entry, sf_agent_describe_fn *describe, const void *arg)
{
	struct sf_agent_event_label label = { 0 };
	ucontext_t context;
	struct sf_event event = { .entry = entry, .ucontext = &context };

	describe(arg, &label);
	if (label.key) {
		event.key = label.key;
		event.key_size = (uint16_t)strlen(label.key);
		event.value = label.value;
		event.value_size = label.value_size;
	}
	if (label.second_key) {
		event.second_key = label.second_key;
		event.second_key_size = (uint8_t)strlen(label.second_key);
		event.second_value = label.second_value;
		event.second_value_size = (uint16_t)strlen(label.second_value);
	}
	if (getcontext(&context) == 0)
		sf_event_sample(&sf_handler, &event);
}

static void count(uint64_t amount, sf_agent_describe_fn *describe, const void *arg)
{
	struct sf_thread_entry *entry = own_entry();
	bool due;

	if (entry && !is_wanted(entry))
		return;
	due = sf_event_count(&sf_handler.event, amount);
	atomic_fetch_add(entry ? &entry->event_amount : &sf_handler.event.homeless, amount);
	if (entry && due)
		sample(entry, describe, arg);
}

void sf_agent_event(uint64_t amount, sf_agent_describe_fn *describe, const void *arg)
{
	const int error = errno;

	if (!sf_event_begin(&sf_handler.event))
		return;
	count(amount, describe, arg);
	sf_event_end(&sf_handler.event);
	errno = error;
}

/* --- the profile --- */

void sf_agent_events_write(const char *name, const char *unit, bool is_over)
{
	const struct sf_stream_measure record = {
		.counted = is_over ? atomic_load(&sf_handler.event.counted) : 0,
		.name_size = (uint16_t)strlen(name),
		.unit_size = (uint16_t)strlen(unit),
		.is_counted = is_over,
	};
	const size_t header = sizeof(struct sf_record_header);
	const struct sf_outbox_piece pieces[] = {
		{ (const uint8_t *)&record + header, offsetof(struct sf_stream_measure, text) - header },
		{ name, record.name_size },
		{ unit, record.unit_size },
	};

	sf_output_put(&sf_handler.output, SF_STREAM_MEASURE, pieces, 3);
}

void sf_agent_events_begin(uint64_t each, uint64_t per_second)
{
	sf_event_meter_init(&sf_handler.event, each, per_second, sf_raw_now_ns());
	sf_agent_events_switch(true);
}

void sf_agent_events_switch(bool on)
{
	const uint64_t until_ns = sf_raw_now_ns() + WAIT_NS;

	atomic_store(&sf_handler.event.on, on);
	while (!on && atomic_load(&sf_handler.event.n_inside) && sf_raw_now_ns() < until_ns) {
		const struct timespec pause = { .tv_nsec = LOOK_NS };

		nanosleep(&pause, NULL);
	}
}

static void lose_rest(struct sf_thread_entry *entry, int32_t tid)
{
	(void)tid;
	sf_event_lose(&sf_handler.output, entry);
}

static void lose_homeless(void)
{
	const struct sf_stream_event_loss loss = { .cause = SF_LOSS_NO_SLOT, .amount = atomic_load(&sf_handler.event.homeless) };

	if (loss.amount)
		sf_output_put_record(&sf_handler.output, SF_STREAM_EVENT_LOSS, &loss, sizeof(loss), NULL, 0);
}

void sf_agent_events_end(const char *name, const char *unit)
{
	sf_agent_each_entry(lose_rest);
	lose_homeless();
	sf_agent_events_write(name, unit, true);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The ring between the holding thread and the walking thread, and the holding thread's side of it. */
#include "capture/ptrace/relay_record.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "frozen/raw.h"
#include "os/clock.h"
#include "os/own_thread.h"

#define RING_SIZE ((size_t)16 << 20)

static void call_walker(struct sf_relay *relay)
{
	atomic_fetch_add_explicit(&relay->calls, 1, memory_order_release);
	sf_raw_futex_wake(&relay->calls, 1);
}

static void destroy(struct sf_relay *relay)
{
	munmap(relay->ring, sizeof(*relay->ring) + RING_SIZE);
	sf_memory_destroy(relay->memory);
	free(relay);
}

bool sf_relay_open(const struct sf_sink *sink, struct sf_relay **ret, struct sf_error *err)
{
	const size_t size = sizeof(struct sf_outbox_header) + RING_SIZE;
	struct sf_relay *relay = calloc(1, sizeof(*relay));
	void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct sf_memory *memory = sf_memory_create();

	if (!relay || bytes == MAP_FAILED || !memory) {
		if (bytes != MAP_FAILED)
			munmap(bytes, size);
		sf_memory_destroy(memory);
		free(relay);
		return sf_fail_memory(err);
	}
	(void)madvise(bytes, size, MADV_DONTFORK); /* else each write behind a fork, which a look-up of names is, copies a page: perhaps while a thread is held */
	relay->ring = sf_outbox_init(bytes, RING_SIZE, 0);
	relay->sink = *sink;
	relay->memory = memory;
	if (!sf_quiet_thread_start(&relay->walker, sf_relay_walk, relay)) {
		destroy(relay);
		return sf_fail(err, SF_E_SYSTEM, "cannot start a thread");
	}
	*ret = relay;
	return true;
}

bool sf_relay_close(struct sf_relay *relay, struct sf_error *err)
{
	bool failed;

	atomic_store_explicit(&relay->done, true, memory_order_release);
	call_walker(relay);
	sf_stuck_join(relay->walker, &relay->walker_tid, false);
	failed = sf_relay_failed(relay);
	if (failed && err)
		*err = relay->error;
	destroy(relay);
	return !failed;
}

bool sf_relay_failed(const struct sf_relay *relay)
{
	return atomic_load_explicit(&relay->failed, memory_order_acquire);
}

uint64_t sf_relay_usual_walk_ns(const struct sf_relay *relay)
{
	return atomic_load_explicit(&relay->usual_ns, memory_order_relaxed);
}

uint32_t sf_relay_only_cut(const struct sf_relay *relay)
{
	return atomic_load_explicit(&relay->only_cut, memory_order_relaxed);
}

/* The holding thread's side. */

void sf_relay_on_wait(struct sf_relay *relay, void (*fn)(void *arg), void *arg)
{
	relay->waiting = fn;
	relay->waiting_arg = arg;
}

void sf_relay_leave_out_times(struct sf_relay *relay)
{
	relay->no_times = true;
}

/* Gives up if the walker is stuck: it may read memory that never comes, and then the ring never has room. */
static void look_at_walker(struct sf_relay *relay)
{
	const uint64_t now_ns = sf_now_ns();

	if (now_ns - relay->looked_ns < SF_STUCK_LOOK_NS)
		return;
	relay->looked_ns = now_ns;
	relay->stuck.tid = atomic_load(&relay->walker_tid);
	if (sf_stuck_look(&relay->stuck))
		sf_stuck_give_up();
}

static void *reserve_waiting(struct sf_relay *relay, size_t size)
{
	void *room;

	while (!(room = sf_outbox_reserve(relay->ring, size))) {
		call_walker(relay);
		if (relay->waiting)
			relay->waiting(relay->waiting_arg);
		look_at_walker(relay);
		sf_sleep_until(sf_now_ns() + SF_RELAY_PAUSE_NS);
	}
	return room;
}

static void send_event(struct sf_relay *relay, enum sf_relay_record type, struct sf_relay_event event)
{
	struct sf_relay_event *record = reserve_waiting(relay, sizeof(*record));

	*record = event;
	sf_outbox_commit(relay->ring, record, sizeof(*record), type, sizeof(*record));
}

void sf_relay_process(struct sf_relay *relay, int32_t pid, int32_t parent)
{
	send_event(relay, SF_RELAY_PROCESS, (struct sf_relay_event){ .pid = pid, .parent = parent });
}

void sf_relay_process_forked(struct sf_relay *relay, int32_t pid, int32_t parent)
{
	send_event(relay, SF_RELAY_PROCESS_FORKED, (struct sf_relay_event){ .pid = pid, .parent = parent });
}

void sf_relay_process_end(struct sf_relay *relay, int32_t pid)
{
	send_event(relay, SF_RELAY_PROCESS_END, (struct sf_relay_event){ .pid = pid });
}

void sf_relay_process_name(struct sf_relay *relay, int32_t pid, int32_t parent, const char *name)
{
	struct sf_relay_event event = { .pid = pid, .parent = parent };

	memccpy(event.name, name, 0, sizeof(event.name) - 1);
	send_event(relay, SF_RELAY_PROCESS_NAME, event);
}

void sf_relay_mapping(struct sf_relay *relay, int32_t pid, const struct sf_mapping *mapping)
{
	const size_t length = strlen(mapping->path), size = sizeof(struct sf_relay_mapped) + length + 1;
	struct sf_relay_mapped *record = reserve_waiting(relay, size);

	*record = (struct sf_relay_mapped){ .mapping = *mapping, .pid = pid };
	memcpy(record->path, mapping->path, length + 1);
	sf_outbox_commit(relay->ring, record, size, SF_RELAY_MAPPING, size);
}

void sf_relay_thread(struct sf_relay *relay, const struct sf_thread *thread, uint64_t time_ns)
{
	struct sf_relay_event event = { .serial = thread->serial, .pid = thread->task.pid, .tid = thread->task.tid,
			       .time_ns = time_ns };

	memcpy(event.name, thread->name, sizeof(event.name));
	send_event(relay, SF_RELAY_THREAD, event);
}

void sf_relay_thread_end(struct sf_relay *relay, struct sf_thread *thread, uint64_t time_ns, enum sf_loss cause)
{
	send_event(relay, SF_RELAY_THREAD_END,
		   (struct sf_relay_event){ .serial = thread->serial, .thread = thread, .time_ns = time_ns, .cause = cause,
				   .cpu_ns = relay->no_times ? 0 : thread->run.cpu_ns - thread->first_cpu_ns });
}

void sf_relay_again(struct sf_relay *relay, const struct sf_thread *thread, uint64_t time_ns,
		    const struct sf_weight *weight)
{
	if (relay->no_times && !weight->amount)
		return;
	send_event(relay, SF_RELAY_AGAIN,
		   (struct sf_relay_event){ .serial = thread->serial, .time_ns = time_ns, .weight = *weight });
}

void sf_relay_woken(struct sf_relay *relay, const struct sf_thread *thread, int32_t waker, const char *waker_name)
{
	struct sf_relay_event event = { .serial = thread->serial, .tid = waker };

	memccpy(event.name, waker_name, 0, sizeof(event.name) - 1);
	send_event(relay, SF_RELAY_WOKEN, event);
}

void sf_relay_loss(struct sf_relay *relay, const struct sf_thread *thread, enum sf_loss cause,
		   const struct sf_weight *weight)
{
	if (relay->no_times && !weight->amount)
		return;
	send_event(relay, SF_RELAY_LOSS,
		   (struct sf_relay_event){ .serial = thread ? thread->serial : 0, .cause = cause, .weight = *weight });
}

struct sf_stack_copy *sf_relay_reserve(struct sf_relay *relay, uint32_t room)
{
	relay->reserved = sizeof(struct sf_relay_still) + room;
	relay->still = sf_outbox_reserve(relay->ring, relay->reserved);
	return relay->still ? &relay->still->copy : NULL;
}

struct sf_stack_copy *sf_relay_reserve_waiting(struct sf_relay *relay, uint32_t room)
{
	relay->reserved = sizeof(struct sf_relay_still) + room;
	relay->still = reserve_waiting(relay, relay->reserved);
	return &relay->still->copy;
}

void sf_relay_drop(struct sf_relay *relay)
{
	sf_outbox_commit(relay->ring, relay->still, relay->reserved, SF_OUTBOX_FILLER, 0);
}

void sf_relay_send(struct sf_relay *relay, struct sf_thread *thread, const struct sf_weight *weight,
		   uint64_t hold_ns)
{
	struct sf_relay_still *record = relay->still;

	record->thread = thread;
	record->weight = *weight;
	record->hold_ns = hold_ns;
	record->copy.taken_ns = sf_now_ns();
	sf_outbox_commit(relay->ring, record, relay->reserved, SF_RELAY_STILL,
			 sizeof(*record) + sf_stack_copy_tail(&record->copy));
}

void sf_relay_rest(struct sf_relay *relay, uint64_t until_ns)
{
	atomic_store_explicit(&relay->due_ns, until_ns, memory_order_relaxed);
}

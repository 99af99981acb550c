/* SPDX-License-Identifier: Apache-2.0 */
/* The ring between the holding thread and the walking thread, and the walking thread itself. */
#include "capture/ptrace/relay.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "frozen/raw.h"
#include "frozen/output/outbox.h"
#include "os/clock.h"
#include "os/perf_events.h"
#include "os/stuck.h"

#define RING_SIZE ((size_t)16 << 20)
#define PAUSE_NS 2000000     /* of a thread that has to wait for the other one */
#define SETTLE_NS 300000     /* from when a tick is due until its stills are there to be walked */
#define IDLE_NS 100000000
#define MAX_CARRIED 4

struct sf_relay {
	struct sf_outbox_header *ring;
	struct sf_sink sink;
	pthread_t walker;
	_Atomic int32_t walker_tid;      /* set by it */
	struct sf_stuck stuck;           /* the walker, for the holding thread while that waits ... */
	uint64_t looked_ns;              /* ... and when it looked */
	void (*waiting)(void *arg);      /* called again and again then; NULL: nothing */
	void *waiting_arg;
	struct sf_memory *memory;        /* the walker's */
	struct record_still *still;      /* the reservation under way, */
	size_t reserved;                 /* and its size */
	_Atomic uint64_t due_ns;         /* when the holding thread goes on */
	_Atomic uint32_t calls;          /* of the walking thread, which sleeps while this is what it was */
	_Atomic bool done;               /* the holding thread writes no more */
	_Atomic bool failed;             /* the sink failed; error is set */
	struct sf_error error;           /* the walker's, until it was joined */
};

enum record_type {
	RECORD_PROCESS = 1,
	RECORD_PROCESS_NAME,
	RECORD_PROCESS_END,
	RECORD_MAPPING,
	RECORD_THREAD,
	RECORD_THREAD_END,
	RECORD_AGAIN,
	RECORD_WOKEN,
	RECORD_LOSS,
	RECORD_STILL,
};

/* Every record but a still and a mapping. Each type uses the fields that its function of the sink takes. */
struct event {
	uint32_t serial;
	int32_t pid, parent, tid;
	char name[SF_TASK_NAME];
	uint64_t time_ns, cpu_ns;
	enum sf_loss cause;
	struct sf_weight weight;
	struct sf_thread *thread;        /* that has ended: the walker destroys it */
};

#define TOO_SHORT_SCORE 16 /* of a copy that is not enough; one that is takes 1 off */

struct record_mapping {
	struct sf_mapping mapping;       /* its path is `path` */
	int32_t pid;
	char path[];
};

struct record_still {
	struct sf_thread *thread;
	struct sf_weight weight;
	uint64_t hold_ns;
	struct sf_stack_copy copy;
};

/* The walker's side. */

static bool give_up_carried(struct sf_relay *relay, struct sf_thread *thread, enum sf_loss cause)
{
	struct sf_weight weight = thread->carried;

	if (!weight.ticks && !weight.cpu_ns && !weight.wall_ns)
		return true;
	thread->n_carried = 0;
	thread->carried = (struct sf_weight){ 0 };
	return relay->sink.loss(relay->sink.arg, thread->serial, cause, &weight, &relay->error);
}

static bool on_event(struct sf_relay *relay, uint32_t type, const struct event *event)
{
	const struct sf_sink *sink = &relay->sink;
	struct sf_error *err = &relay->error;

	switch (type) {
	case RECORD_PROCESS:
		return sink->process(sink->arg, event->pid, event->parent, err);
	case RECORD_PROCESS_NAME:
		return !sink->process_name || sink->process_name(sink->arg, event->pid, event->parent, event->name, "", err);
	case RECORD_PROCESS_END:
		return !sink->process_end || sink->process_end(sink->arg, event->pid, err);
	case RECORD_THREAD:
		return sink->thread(sink->arg, event->serial, event->pid, event->tid, event->name, event->time_ns, err);
	case RECORD_THREAD_END:
		return give_up_carried(relay, event->thread, event->cause) &&
		       sink->thread_end(sink->arg, event->serial, event->time_ns, event->cpu_ns, err);
	case RECORD_AGAIN:
		return sink->again(sink->arg, event->serial, event->time_ns, &event->weight, err);
	case RECORD_WOKEN:
		return !sink->woken || sink->woken(sink->arg, event->serial, event->tid, event->name, err);
	default:
		return sink->loss(sink->arg, event->serial, event->cause, &event->weight, err);
	}
}

static bool on_mapping(struct sf_relay *relay, const struct record_mapping *record)
{
	struct sf_mapping mapping = record->mapping;

	mapping.path = record->path;
	return !relay->sink.mapping || relay->sink.mapping(relay->sink.arg, record->pid, &mapping, &relay->error);
}

static void add_weight(struct sf_weight *sum, const struct sf_weight *weight)
{
	sum->cpu_ns += weight->cpu_ns;
	sum->wall_ns += weight->wall_ns;
	sum->ticks += weight->ticks;
}

/* The time of a copy that was cut goes to the next one. */
static void carry(struct sf_thread *thread, const struct sf_weight *weight, bool outdated)
{
	thread->carried = *weight;
	thread->n_carried += !outdated;
}

static void end_carried(struct sf_thread *thread)
{
	thread->carried = (struct sf_weight){ 0 };
	thread->n_carried = 0;
}

/*
 * Whether the walk of this copy found a lead to another stack. Samples without that stack are kept, since the
 * next ones may not have it.
 */
static bool finds_lead(const struct record_still *record, const struct sf_copied_still *copied, enum sf_end end)
{
	return end == SF_END_OTHER_STACK && record->copy.follows_leads &&
	       sf_stack_leads_find(&record->thread->leads, &copied->still, copied->unread);
}

static void note_missing_registers(struct sf_thread *thread, const struct sf_still *still, enum sf_end end)
{
	if (end == SF_END_REGISTER && still->flags & SF_STILL_UNHELD)
		atomic_store_explicit(&thread->needs_hold, still->regs.r[still->arch->sp], memory_order_relaxed);
}

/*
 * Keeps the score of whether the kernel's copies are enough for the thread. A copy in a page fault of the stack itself lacks a page: one in
 * so many does not count. Of a thread that was held, the kernel's copy would have been enough where it used one stack, and little of it.
 */
static void score_copy(struct sf_thread *thread, const struct sf_stack_copy *copy, const struct sf_verdict *verdict)
{
	const bool by_kernel = !copy->follows_leads && !(copy->flags & SF_STILL_UNHELD);
	const bool too_short = by_kernel ? verdict->end == SF_END_OTHER_STACK || (verdict->end == SF_END_COPY && copy->longest)
					 : copy->n_others || verdict->stack_used > SF_PERF_MAX_STACK;
	const uint32_t score = atomic_load_explicit(&thread->too_short, memory_order_relaxed);

	if (copy->flags & SF_STILL_UNHELD)
		return;
	if (too_short && score < 2 * SF_TOO_SHORT)
		atomic_store_explicit(&thread->too_short, score + TOO_SHORT_SCORE, memory_order_relaxed);
	else if (!too_short && score)
		atomic_store_explicit(&thread->too_short, score - 1, memory_order_relaxed);
}

/*
 * A sample whose copy was cut is worth little. Its time goes to the thread's next sample, with a longer copy, at most
 * MAX_CARRIED times. Where the walks are behind, some copies were taken before the first walk found its copy too short.
 * These copies do not count as tries, and are no measure of the length that the next copy needs. A copy of which the engine
 * says that there is no longer one is the last try.
 */
static bool on_still(struct sf_relay *relay, const struct record_still *record)
{
	struct sf_thread *thread = record->thread;
	const uint32_t want = atomic_load_explicit(&thread->want, memory_order_relaxed);
	const uint32_t size = record->copy.stack_size;
	const bool outdated = size < want;
	struct sf_weight weight = record->weight;
	struct sf_copied_still copied;
	struct sf_verdict verdict;
	bool cut, last;

	sf_stack_copy_still(&record->copy, sf_arch_host(), relay->memory, &copied);
	last = record->copy.longest || (!outdated && (thread->n_carried >= MAX_CARRIED || want >= SF_COPY_MAX));
	add_weight(&weight, &thread->carried);
	verdict = relay->sink.sample(relay->sink.arg, thread->serial, &copied.still, &weight,
				     record->hold_ns, last, &relay->error);
	cut = verdict.end == SF_END_COPY;
	atomic_store_explicit(&thread->want,
			      cut ? sf_copy_more(want, size)
				  : sf_copy_next(want, verdict.stack_used),
			      memory_order_relaxed);
	if (cut && !last)
		carry(thread, &weight, outdated);
	else
		end_carried(thread);
	atomic_store_explicit(&thread->again, (cut && !last) || finds_lead(record, &copied, verdict.end),
			      memory_order_relaxed);
	note_missing_registers(thread, &copied.still, verdict.end);
	score_copy(thread, &record->copy, &verdict);
	return !verdict.failed;
}

/* A sleep that the kernel tells of has one copy only: it is the last try, and says nothing of the copies of running threads. */
static bool on_open_still(struct sf_relay *relay, const struct record_still *record)
{
	struct sf_thread *thread = record->thread;
	const uint32_t want = atomic_load_explicit(&thread->want, memory_order_relaxed);
	struct sf_copied_still copied;
	struct sf_verdict verdict;

	sf_stack_copy_still(&record->copy, sf_arch_host(), relay->memory, &copied);
	verdict = relay->sink.sample(relay->sink.arg, thread->serial, &copied.still, &record->weight, record->hold_ns, true, &relay->error);
	atomic_store_explicit(&thread->want,
			      verdict.end == SF_END_COPY ? sf_copy_more(want, record->copy.stack_size)
							 : sf_copy_next(want, verdict.stack_used),
			      memory_order_relaxed);
	if (verdict.end == SF_END_COPY)
		atomic_store_explicit(&thread->sleep_cut, true, memory_order_relaxed);
	return !verdict.failed;
}

static bool on_record(struct sf_relay *relay, uint32_t type, const void *content)
{
	if (type == RECORD_STILL) {
		const struct record_still *still = content;

		return still->copy.flags & SF_STILL_OPEN && !(still->copy.flags & SF_STILL_UNHELD) ? on_open_still(relay, still)
												   : on_still(relay, still);
	}
	return type == RECORD_MAPPING ? on_mapping(relay, content) : on_event(relay, type, content);
}

/* After a failure records are only taken out, so that the other side never waits for room. */
static void handle(struct sf_relay *relay, const struct sf_record_header *record)
{
	const void *content = record + 1;

	if (!sf_relay_failed(relay) && !on_record(relay, record->type, content))
		atomic_store_explicit(&relay->failed, true, memory_order_release);
	if (record->type == RECORD_THREAD_END)
		sf_thread_destroy(((const struct event *)content)->thread);
}

/*
 * How long the walking thread sleeps: until the next tick's stills are there, by its own timer. It is called only
 * where it must not sleep on: a call for each tick would have the holding thread interrupt another CPU.
 */
static uint64_t pause_of(const struct sf_relay *relay, uint64_t now_ns)
{
	const uint64_t ready_ns =
		atomic_load_explicit(&relay->due_ns, memory_order_relaxed) + SETTLE_NS;

	if (ready_ns <= now_ns)
		return PAUSE_NS;
	return ready_ns - now_ns < IDLE_NS ? ready_ns - now_ns : IDLE_NS;
}

static void *walk_stills(void *arg)
{
	struct sf_relay *relay = arg;
	uint64_t idle_ns = 0;

	atomic_store(&relay->walker_tid, gettid());
	for (;;) {
		uint32_t calls = atomic_load_explicit(&relay->calls, memory_order_acquire);
		bool done = atomic_load_explicit(&relay->done, memory_order_acquire);
		const struct sf_record_header *record;

		while ((record = sf_outbox_peek(relay->ring))) {
			handle(relay, record);
			sf_outbox_release(relay->ring);
		}
		if (done)
			return NULL;
		if (sf_now_ns() - idle_ns > IDLE_NS && !sf_relay_failed(relay)) {
			idle_ns = sf_now_ns();
			if (!relay->sink.idle(relay->sink.arg, idle_ns, &relay->error))
				atomic_store_explicit(&relay->failed, true, memory_order_release);
		}
		sf_raw_futex_wait(&relay->calls, calls, pause_of(relay, sf_now_ns()));
	}
}

static void call_walker(struct sf_relay *relay)
{
	atomic_fetch_add_explicit(&relay->calls, 1, memory_order_release);
	sf_raw_futex_wake(&relay->calls, 1);
}

/* The walking thread takes no signals: those are for the holding thread. */
static int start_walker(struct sf_relay *relay)
{
	sigset_t all, old;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&relay->walker, NULL, walk_stills, relay);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return error;
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
	relay->ring = sf_outbox_init(bytes, RING_SIZE, 0);
	relay->sink = *sink;
	relay->memory = memory;
	if (start_walker(relay) != 0) {
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

/* The holding thread's side. */

void sf_relay_on_wait(struct sf_relay *relay, void (*fn)(void *arg), void *arg)
{
	relay->waiting = fn;
	relay->waiting_arg = arg;
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
		sf_sleep_until(sf_now_ns() + PAUSE_NS);
	}
	return room;
}

static void send_event(struct sf_relay *relay, enum record_type type, struct event event)
{
	struct event *record = reserve_waiting(relay, sizeof(*record));

	*record = event;
	sf_outbox_commit(relay->ring, record, sizeof(*record), type, sizeof(*record));
}

void sf_relay_process(struct sf_relay *relay, int32_t pid, int32_t parent)
{
	send_event(relay, RECORD_PROCESS, (struct event){ .pid = pid, .parent = parent });
}

void sf_relay_process_end(struct sf_relay *relay, int32_t pid)
{
	send_event(relay, RECORD_PROCESS_END, (struct event){ .pid = pid });
}

void sf_relay_process_name(struct sf_relay *relay, int32_t pid, int32_t parent, const char *name)
{
	struct event event = { .pid = pid, .parent = parent };

	memccpy(event.name, name, 0, sizeof(event.name) - 1);
	send_event(relay, RECORD_PROCESS_NAME, event);
}

void sf_relay_mapping(struct sf_relay *relay, int32_t pid, const struct sf_mapping *mapping)
{
	const size_t length = strlen(mapping->path), size = sizeof(struct record_mapping) + length + 1;
	struct record_mapping *record = reserve_waiting(relay, size);

	*record = (struct record_mapping){ .mapping = *mapping, .pid = pid };
	memcpy(record->path, mapping->path, length + 1);
	sf_outbox_commit(relay->ring, record, size, RECORD_MAPPING, size);
}

void sf_relay_thread(struct sf_relay *relay, const struct sf_thread *thread, uint64_t time_ns)
{
	struct event event = { .serial = thread->serial, .pid = thread->task.pid, .tid = thread->task.tid,
			       .time_ns = time_ns };

	memcpy(event.name, thread->name, sizeof(event.name));
	send_event(relay, RECORD_THREAD, event);
}

void sf_relay_thread_end(struct sf_relay *relay, struct sf_thread *thread, uint64_t time_ns, enum sf_loss cause)
{
	send_event(relay, RECORD_THREAD_END,
		   (struct event){ .serial = thread->serial, .thread = thread, .time_ns = time_ns, .cause = cause,
				   .cpu_ns = thread->run.cpu_ns - thread->first_cpu_ns });
}

void sf_relay_again(struct sf_relay *relay, const struct sf_thread *thread, uint64_t time_ns,
		    const struct sf_weight *weight)
{
	send_event(relay, RECORD_AGAIN,
		   (struct event){ .serial = thread->serial, .time_ns = time_ns, .weight = *weight });
}

void sf_relay_woken(struct sf_relay *relay, const struct sf_thread *thread, int32_t waker, const char *waker_name)
{
	struct event event = { .serial = thread->serial, .tid = waker };

	memccpy(event.name, waker_name, 0, sizeof(event.name) - 1);
	send_event(relay, RECORD_WOKEN, event);
}

void sf_relay_loss(struct sf_relay *relay, const struct sf_thread *thread, enum sf_loss cause,
		   const struct sf_weight *weight)
{
	send_event(relay, RECORD_LOSS,
		   (struct event){ .serial = thread ? thread->serial : 0, .cause = cause, .weight = *weight });
}

struct sf_stack_copy *sf_relay_reserve(struct sf_relay *relay, uint32_t room)
{
	relay->reserved = sizeof(struct record_still) + room;
	relay->still = sf_outbox_reserve(relay->ring, relay->reserved);
	return relay->still ? &relay->still->copy : NULL;
}

struct sf_stack_copy *sf_relay_reserve_waiting(struct sf_relay *relay, uint32_t room)
{
	relay->reserved = sizeof(struct record_still) + room;
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
	struct record_still *record = relay->still;

	record->thread = thread;
	record->weight = *weight;
	record->hold_ns = hold_ns;
	record->copy.taken_ns = sf_now_ns();
	sf_outbox_commit(relay->ring, record, relay->reserved, RECORD_STILL,
			 sizeof(*record) + sf_stack_copy_tail(&record->copy));
}

void sf_relay_rest(struct sf_relay *relay, uint64_t until_ns)
{
	atomic_store_explicit(&relay->due_ns, until_ns, memory_order_relaxed);
}

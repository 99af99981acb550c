/* SPDX-License-Identifier: Apache-2.0 */
/* The walking thread: takes records out of the relay's ring, and decides what becomes of each copy of a stack. */
#include "capture/ptrace/relay_record.h"

#include <unistd.h>

#include "frozen/raw.h"
#include "os/clock.h"
#include "os/perf_events.h"

#define SETTLE_NS 300000     /* from when a tick is due until its stills are there to be walked */
#define IDLE_NS 100000000
#define MAX_CARRIED 4
#define N_USUAL 64           /* walks whose mean time is the usual one ... */
#define UNUSUAL_TIMES 8      /* ... and one counts at most so many times that */
#define FIRST_WALK_NS 20000  /* before there was one */
/*
 * Of a copy that is not enough; one that is takes 1 off. A thread that is held has none of its samples on the one stack that
 * the kernel copies. So that is worth it only where a quarter of them are on another stack: Go's threads leave theirs for g0
 * now and then. Samples of a stack that is deep at times are not affected (sf_perf_whole_size), and few deep ones suffice.
 */
#define TOO_DEEP_SCORE 16
#define OTHER_STACK_SCORE 3

static bool give_up_carried(struct sf_relay *relay, struct sf_thread *thread, struct sf_carried *carried, enum sf_loss cause)
{
	const struct sf_weight weight = carried->weight;

	if (!weight.ticks && !weight.cpu_ns && !weight.wall_ns && !weight.amount)
		return true;
	*carried = (struct sf_carried){ 0 };
	return relay->sink.loss(relay->sink.arg, thread->serial, cause, &weight, &relay->error);
}

static bool on_event(struct sf_relay *relay, uint32_t type, const struct sf_relay_event *event)
{
	const struct sf_sink *sink = &relay->sink;
	struct sf_error *err = &relay->error;

	switch (type) {
	case SF_RELAY_PROCESS:
		return sink->process(sink->arg, event->pid, event->parent, err);
	case SF_RELAY_PROCESS_FORKED:
		return !sink->process_forked || sink->process_forked(sink->arg, event->pid, event->parent, err);
	case SF_RELAY_PROCESS_NAME:
		return !sink->process_name || sink->process_name(sink->arg, event->pid, event->parent, event->name, "", err);
	case SF_RELAY_PROCESS_END:
		return !sink->process_end || sink->process_end(sink->arg, event->pid, err);
	case SF_RELAY_THREAD:
		return sink->thread(sink->arg, event->serial, event->pid, event->tid, event->name, event->time_ns, err);
	case SF_RELAY_THREAD_END:
		return give_up_carried(relay, event->thread, &event->thread->carried[0], event->cause) &&
		       give_up_carried(relay, event->thread, &event->thread->carried[1], event->cause) &&
		       sink->thread_end(sink->arg, event->serial, event->time_ns, event->cpu_ns, err);
	case SF_RELAY_AGAIN:
		return sink->again(sink->arg, event->serial, event->time_ns, &event->weight, err);
	case SF_RELAY_WOKEN:
		return !sink->woken || sink->woken(sink->arg, event->serial, event->tid, event->name, err);
	default:
		return sink->loss(sink->arg, event->serial, event->cause, &event->weight, err);
	}
}

static bool on_mapping(struct sf_relay *relay, const struct sf_relay_mapped *record)
{
	struct sf_mapping mapping = record->mapping;

	mapping.path = record->path;
	return !relay->sink.mapping || relay->sink.mapping(relay->sink.arg, record->pid, &mapping, &relay->error);
}

static void add_weight(struct sf_weight *sum, const struct sf_weight *weight)
{
	sum->cpu_ns += weight->cpu_ns;
	sum->wall_ns += weight->wall_ns;
	sum->amount += weight->amount;
	sum->ticks += weight->ticks;
}

/* The time of a copy that was cut goes to the next one. */
static void carry(struct sf_carried *carried, const struct sf_weight *weight, bool outdated)
{
	carried->weight = *weight;
	carried->n += !outdated;
}

/*
 * Whether the walk of this copy found a lead to another stack. Samples without that stack are kept, since the
 * next ones may not have it.
 */
static bool finds_lead(const struct sf_relay_still *record, const struct sf_copied_still *copied, enum sf_end end)
{
	return end == SF_END_OTHER_STACK && record->copy.follows_leads &&
	       sf_stack_leads_find(&record->thread->needs.leads, &copied->still, copied->unread);
}

/* How much of the stack the next copy is to have. A cut one was too short; so was one that ended amid the stack. */
static uint32_t next_size(const struct sf_stack_copy *copy, const struct sf_verdict *verdict, uint32_t want, uint32_t up_to)
{
	if (verdict->end == SF_END_COPY)
		return sf_copy_more(want, copy->stack_size);
	return up_to > want ? up_to : sf_copy_next(want, verdict->stack_used);
}

static void note_root_at(struct sf_copy_needs *needs, uint64_t root_sp)
{
	const bool same = root_sp && atomic_load_explicit(&needs->root_sp, memory_order_relaxed) == root_sp;
	const uint32_t n = atomic_load_explicit(&needs->n_same_root, memory_order_relaxed);

	atomic_store_explicit(&needs->root_sp, root_sp, memory_order_relaxed);
	atomic_store_explicit(&needs->n_same_root, !same ? 0 : n < SF_ROOT_SETTLED ? n + 1 : n, memory_order_relaxed);
}

/* Where a stack begins that has the thread's first frame. It is another stack where a copy that reaches to there is cut. */
static void note_root(struct sf_thread *thread, const struct sf_stack_copy *copy, const struct sf_verdict *verdict)
{
	if (verdict->end == SF_END_ROOT && !copy->n_others)
		note_root_at(&thread->needs, copy->stack_start + verdict->stack_used);
	else if (verdict->end == SF_END_COPY && copy->follows_leads)
		note_root_at(&thread->needs, 0);
}

static void note_missing_registers(struct sf_thread *thread, const struct sf_still *still, enum sf_end end)
{
	if (end == SF_END_REGISTER && still->flags & SF_STILL_UNHELD)
		atomic_store_explicit(&thread->needs.hold_at_sp, still->regs.r[still->arch->sp], memory_order_relaxed);
}

/*
 * What a copy counts that is not enough; 0: it is. Of a thread that was held, the kernel's copy would have been enough where
 * it used one stack from sp on, and little of it. A hold that shows a deep stack stands for many samples, and its copy lacks no page.
 */
static uint32_t shortness(const struct sf_stack_copy *copy, const struct sf_verdict *verdict)
{
	if (copy->follows_leads)
		return verdict->stack_used > SF_PERF_MAX_STACK ? SF_TOO_SHORT : copy->n_others || verdict->below_sp ? OTHER_STACK_SCORE : 0;
	if (verdict->end == SF_END_COPY && copy->longest)
		return TOO_DEEP_SCORE;
	return verdict->end == SF_END_OTHER_STACK ? OTHER_STACK_SCORE : 0;
}

/* Samples of moments at which the stack is not deep follow, and make the next copies shorter. */
static void note_deep(struct sf_thread *thread, const struct sf_stack_copy *copy, const struct sf_verdict *verdict)
{
	const uint32_t deep = atomic_load_explicit(&thread->needs.deep_size, memory_order_relaxed);

	if (!copy->follows_leads)
		return;
	if (verdict->end == SF_END_COPY)
		atomic_store_explicit(&thread->needs.deep_size, sf_copy_more(deep, copy->stack_size), memory_order_relaxed);
	else if (verdict->stack_used > SF_PERF_MAX_STACK)
		atomic_store_explicit(&thread->needs.deep_size, sf_copy_next(deep, verdict->stack_used), memory_order_relaxed);
}

/* A copy of the kernel's. This stands until the engine has seen it: walks of other samples follow, and say nothing of the deep ones. */
static void note_cut(struct sf_thread *thread, const struct sf_stack_copy *copy, enum sf_end end)
{
	if (!copy->follows_leads && end == SF_END_COPY && copy->stack_size > atomic_load_explicit(&thread->needs.cut_at, memory_order_relaxed))
		atomic_store_explicit(&thread->needs.cut_at, copy->stack_size, memory_order_relaxed);
}

/*
 * Keeps the score of whether the kernel's copies are enough for the thread. A copy in a page fault of the stack itself
 * lacks a page: one in so many does not count.
 */
static void score_copy(struct sf_thread *thread, const struct sf_stack_copy *copy, const struct sf_verdict *verdict)
{
	const uint32_t more = shortness(copy, verdict);
	const uint32_t score = atomic_load_explicit(&thread->needs.n_too_short, memory_order_relaxed);

	if (copy->flags & SF_STILL_UNHELD)
		return;
	if (verdict->below_sp || !score)
		atomic_store_explicit(&thread->needs.below_sp, verdict->below_sp, memory_order_relaxed);
	if (more && score < 2 * SF_TOO_SHORT)
		atomic_store_explicit(&thread->needs.n_too_short, score + more, memory_order_relaxed);
	else if (!more && score)
		atomic_store_explicit(&thread->needs.n_too_short, score - 1, memory_order_relaxed);
}

/*
 * A sample whose copy was cut is worth little. Its time goes to the thread's next sample, with a longer copy, at most
 * MAX_CARRIED times. CPU time goes to a sample on a CPU: one asleep says nothing of it. Where the walks are behind, some
 * copies were taken before the first walk found its copy too short. These copies do not count as tries, and are no measure
 * of the length that the next copy needs. A copy of which the engine says that there is no longer one is the last try.
 */
static bool on_still(struct sf_relay *relay, const struct sf_relay_still *record)
{
	struct sf_thread *thread = record->thread;
	const uint32_t want = atomic_load_explicit(&thread->needs.size, memory_order_relaxed);
	const bool outdated = record->copy.stack_size < want;
	struct sf_carried *carried = &thread->carried[record->copy.state == SF_STATE_RUNNING];
	struct sf_weight weight = record->weight;
	struct sf_copied_still copied;
	struct sf_verdict verdict;
	uint32_t up_to = 0;
	bool cut, last, has_lead;

	sf_stack_copy_still(&record->copy, sf_arch_host(), relay->memory, &copied);
	last = record->copy.longest || (!outdated && (carried->n >= MAX_CARRIED || want >= SF_COPY_MAX));
	add_weight(&weight, &carried->weight);
	verdict = relay->sink.sample(relay->sink.arg, thread->serial, &copied.still, &weight,
				     record->hold_ns, last, &relay->error);
	cut = verdict.end == SF_END_COPY;
	has_lead = finds_lead(record, &copied, verdict.end);
	if (verdict.end == SF_END_OTHER_STACK && !has_lead)
		up_to = sf_copy_up_to(&record->copy, copied.unread);
	atomic_store_explicit(&thread->needs.size, next_size(&record->copy, &verdict, want, up_to), memory_order_relaxed);
	if (cut && !last)
		carry(carried, &weight, outdated);
	else
		*carried = (struct sf_carried){ 0 };
	atomic_store_explicit(&thread->needs.again, (cut && !last) || has_lead || up_to, memory_order_relaxed);
	if (verdict.lacks_chain)
		atomic_store_explicit(&thread->needs.chain, true, memory_order_relaxed);
	note_deep(thread, &record->copy, &verdict);
	note_cut(thread, &record->copy, verdict.end);
	note_missing_registers(thread, &copied.still, verdict.end);
	note_root(thread, &record->copy, &verdict);
	score_copy(thread, &record->copy, &verdict);
	return !verdict.failed;
}

/*
 * Of a recorded sleep, or of an event. It is the last try, and says nothing of the copies of running
 * threads.
 */
static bool on_only_still(struct sf_relay *relay, const struct sf_relay_still *record)
{
	struct sf_thread *thread = record->thread;
	const uint32_t want = atomic_load_explicit(&thread->needs.size, memory_order_relaxed);
	const uint32_t size = record->copy.stack_size, room = record->copy.room ? record->copy.room : size;
	struct sf_copied_still copied;
	struct sf_verdict verdict;

	sf_stack_copy_still(&record->copy, sf_arch_host(), relay->memory, &copied);
	verdict = relay->sink.sample(relay->sink.arg, thread->serial, &copied.still, &record->weight, record->hold_ns,
				     true, &relay->error);
	atomic_store_explicit(&thread->needs.size,
			      verdict.end == SF_END_COPY ? sf_copy_more(want, size)
							 : sf_copy_next(want, verdict.stack_used),
			      memory_order_relaxed);
	if (verdict.end == SF_END_COPY) {
		atomic_store_explicit(&thread->needs.only_cut, room, memory_order_relaxed);
		if (room > atomic_load_explicit(&relay->only_cut, memory_order_relaxed))
			atomic_store_explicit(&relay->only_cut, room, memory_order_relaxed);
	}
	return !verdict.failed;
}

/* With the records since the last still: a look at the clock takes a third of a microsecond. */
static void note_time(struct sf_relay *relay)
{
	const uint64_t now_ns = sf_raw_thread_cpu_ns(), took_ns = now_ns - relay->walked_ns;
	const uint64_t usual_ns = atomic_load_explicit(&relay->usual_ns, memory_order_relaxed);
	const uint64_t before_ns = usual_ns ? usual_ns : FIRST_WALK_NS, most_ns = UNUSUAL_TIMES * before_ns;

	relay->walked_ns = now_ns;
	atomic_store_explicit(&relay->usual_ns, before_ns - before_ns / N_USUAL + (took_ns < most_ns ? took_ns : most_ns) / N_USUAL,
			      memory_order_relaxed);
}

static bool on_any_still(struct sf_relay *relay, const struct sf_relay_still *still)
{
	const bool ok = still->copy.is_only ? on_only_still(relay, still) : on_still(relay, still);

	note_time(relay);
	return ok;
}

static bool on_record(struct sf_relay *relay, uint32_t type, const void *content)
{
	if (type == SF_RELAY_STILL)
		return on_any_still(relay, content);
	return type == SF_RELAY_MAPPING ? on_mapping(relay, content) : on_event(relay, type, content);
}

/* As sf_relay_failed(). This thread alone sets it. */
static bool has_failed(const struct sf_relay *relay)
{
	return atomic_load_explicit(&relay->failed, memory_order_acquire);
}

/* After a failure records are only taken out, so that the other side never waits for room. */
static void handle(struct sf_relay *relay, const struct sf_record_header *record)
{
	const void *content = record + 1;

	if (!has_failed(relay) && !on_record(relay, record->type, content))
		atomic_store_explicit(&relay->failed, true, memory_order_release);
	if (record->type == SF_RELAY_THREAD_END)
		sf_thread_destroy(((const struct sf_relay_event *)content)->thread);
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
		return SF_RELAY_PAUSE_NS;
	return ready_ns - now_ns < IDLE_NS ? ready_ns - now_ns : IDLE_NS;
}

void *sf_relay_walk(void *arg)
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
		if (sf_now_ns() - idle_ns > IDLE_NS && !has_failed(relay)) {
			idle_ns = sf_now_ns();
			if (!relay->sink.idle(relay->sink.arg, idle_ns, &relay->error))
				atomic_store_explicit(&relay->failed, true, memory_order_release);
		}
		sf_raw_futex_wait(&relay->calls, calls, pause_of(relay, sf_now_ns()));
	}
}

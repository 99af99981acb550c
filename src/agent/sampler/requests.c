/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: signals from the sampler to threads without a CPU clock of their own, each with a slot
 * and a time-out; and which threads are requested at a tick. Only the sampler's thread calls this; nothing here waits for a
 * thread of the program, takes a lock, or allocates after the beginning.
 */
#include "agent/sampler/requests.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/clocks/clocks.h"
#include "agent/libc/own_proc.h"
#include "agent/sampler/thread_poll.h"
#include "agent/threads/thread_entries.h"
#include "frozen/random.h"
#include "frozen/raw.h"
#include "frozen/signal/handler.h"
#include "frozen/signal/weight.h"

#define MAX_SELECTED 256     /* in one tick */
#define TIMEOUT_NS 50000000
#define DEAF_NS 1000000      /* CPU time in which it blocked us; less, and it is leaving a
			      * handler */

bool sf_requests_init(struct sf_requests *requests, struct sf_error *err)
{
	*requests = (struct sf_requests){ .of = calloc(sf_handler.link.n_slots, sizeof(*requests->of)) };
	return requests->of || sf_fail_memory(err);
}

void sf_requests_deinit(struct sf_requests *requests)
{
	free(requests->of);
	requests->of = NULL;
}

/* NULL: every slot is in use. */
static struct sf_slot *find_slot(struct sf_requests *requests, uint32_t *generation_ret)
{
	for (uint32_t i = 0; i < sf_handler.link.n_slots; i++) {
		struct sf_slot *slot =
			&sf_handler.link.slots[(requests->next_slot + i) % sf_handler.link.n_slots];

		/*
		 * A slot whose request was answered but is not settled yet still belongs to that
		 * request.
		 */
		if (!requests->of[slot->number].sent_ns && sf_slot_request(slot, generation_ret)) {
			requests->next_slot = slot->number + 1;
			return slot;
		}
	}
	return NULL;
}

static long queue_signal(const struct sf_agent_thread *thread, uint32_t slot, uint32_t generation)
{
	uint64_t value = sf_handler_value(sf_handler.config.cookie, slot, generation);
	siginfo_t info = { 0 };
	long result;

	info.si_signo = sf_handler.config.signal;
	info.si_code = SI_QUEUE;
	info.si_pid = sf_handler.config.pid;
	info.si_uid = (uid_t)sf_raw0(SYS_getuid);
	memcpy(&info.si_value, &value, sizeof(value));
	atomic_store(&thread->entry->sent, value);
	result = sf_raw4(SYS_rt_tgsigqueueinfo, sf_handler.config.pid, thread->tid, sf_handler.config.signal, &info);
	if (result)
		atomic_store(&thread->entry->sent, 0); /* as for a signal from SIGRTMIN on, where the queue is full */
	return result;
}

static void finish(struct sf_requests *requests, struct sf_request *request)
{
	request->sent_ns = 0;
	requests->n--;
	sf_agent_entry_done(request->thread.entry, &request->thread.entry->request);
}

/*
 * Records a cancelled request as a loss. The loss has CPU time only for a deaf thread. CPU time of a
 * late thread stays on its account, for its next sample.
 */
static void lose(struct sf_request *request)
{
	struct sf_agent_thread *thread = &request->thread;
	uint64_t cpu_ns;

	if (!sf_agent_thread_cpu(thread->tid, &cpu_ns))
		sf_output_lose(&sf_handler.output, thread->serial, SF_LOSS_GONE, 0, 0, 1);
	else if (cpu_ns > thread->ticked_cpu_ns + DEAF_NS &&
		 sf_own_blocks(thread->tid, sf_handler.config.signal))
		sf_thread_poll_lose_deaf(thread, cpu_ns);
	else
		sf_output_lose(&sf_handler.output, thread->serial, SF_LOSS_LATE, 0, 0, 1);
}

static void cancel(struct sf_requests *requests, struct sf_request *request)
{
	uint32_t number = (uint32_t)(request - requests->of);

	if (!sf_slot_cancel(&sf_handler.link.slots[number], request->generation))
		return; /* the thread has answered just now */
	lose(request);
	finish(requests, request);
}

/* Stores what shows later whether the thread was on a CPU (frozen/signal/weight.h). */
static void store_run_delay(struct sf_thread_entry *entry, int32_t tid, uint64_t woke_ns)
{
	uint64_t wait_ns = 0;

	sf_raw_wait_ns(tid, &wait_ns);
	atomic_store(&entry->requested_run_delay_ns, wait_ns);
	atomic_store(&entry->requester_woke_ns, woke_ns);
	atomic_store(&entry->requested_ns, sf_raw_now_ns());
}

static void signal_thread(struct sf_requests *requests, struct sf_request *request, struct sf_slot *slot)
{
	if (atomic_load(&request->thread.entry->flags) & SF_ENTRY_LEAVING) {
		sf_slot_cancel(slot, request->generation);
		finish(requests, request);
	} else if (queue_signal(&request->thread, slot->number, request->generation) != 0) {
		cancel(requests, request);
	}
}

/* Answers requested threads that walk themselves: they wait for their CPU weight (frozen/signal/weight.h). */
static void decide_all(struct sf_requests *requests)
{
	for (uint32_t i = 0; requests->n && i < sf_handler.link.n_slots; i++) {
		const struct sf_agent_thread *thread = &requests->of[i].thread;

		if (requests->of[i].sent_ns)
			sf_weight_decide(thread->entry, thread->tid);
	}
}

bool sf_requests_send(struct sf_requests *requests, const struct sf_agent_thread *thread,
		     uint64_t woke_ns)
{
	uint32_t generation = 0;
	struct sf_slot *slot = find_slot(requests, &generation);
	struct sf_request *request;

	if (!slot)
		return false;
	/*
	 * First `request`, then the flag SF_ENTRY_LEAVING: a thread that is about to exec sets the flag
	 * and then reads `request` (exec_preparation.c).
	 */
	atomic_store(&thread->entry->request, slot->number + 1);
	request = &requests->of[slot->number];
	*request = (struct sf_request){
		.thread = *thread, .generation = generation, .sent_ns = sf_raw_now_ns() };
	requests->n++;
	store_run_delay(thread->entry, thread->tid, woke_ns);
	signal_thread(requests, request, slot);
	decide_all(requests);
	return true;
}

static void settle(struct sf_requests *requests, struct sf_request *request, uint64_t now_ns)
{
	uint32_t number = (uint32_t)(request - requests->of);
	uint32_t word = atomic_load(&sf_handler.link.slots[number].word);

	if (sf_slot_generation(word) != request->generation || sf_slot_state(word) == SF_SLOT_FREE)
		finish(requests, request);
	else if (sf_slot_state(word) == SF_SLOT_REQUESTED &&
		 now_ns > request->sent_ns + TIMEOUT_NS)
		cancel(requests, request);
}

void sf_requests_settle(struct sf_requests *requests, uint64_t now_ns)
{
	decide_all(requests);
	for (uint32_t i = 0; requests->n && i < sf_handler.link.n_slots; i++) {
		if (requests->of[i].sent_ns)
			settle(requests, &requests->of[i], now_ns);
	}
}

/* --- the threads that are due at a tick --- */

static bool can_be_requested(const struct sf_agent_thread *thread)
{
	const uint32_t passed_over = SF_ENTRY_LEAVING | SF_ENTRY_DEAF | SF_ENTRY_IN_ROUNDS;

	return thread->watched && !thread->replaced && !atomic_load(&thread->entry->request) &&
	       !(atomic_load(&thread->entry->flags) & passed_over);
}

/*
 * Whether the thread is due for a sample: it ran since the last tick, and a random draw selects it in
 * proportion to its CPU time since its last sample. This gives one sample for each period of CPU
 * time, also if many threads run a little between two ticks.
 */
static bool is_due(struct sf_agent_thread *thread, uint64_t period_ns, uint64_t *random)
{
	uint64_t cpu_ns;

	if (!can_be_requested(thread) || !sf_agent_thread_cpu(thread->tid, &cpu_ns) ||
	    cpu_ns == thread->ticked_cpu_ns)
		return false;
	thread->ticked_cpu_ns = cpu_ns;
	return cpu_ns > atomic_load(&thread->entry->accounted_ns) + sf_random(random) % period_ns;
}

/*
 * Of the threads that are due for a sample, any as many as the options say, each with the same chance: their places in
 * agent->threads->all, and how many. By Vitter's algorithm R. The CPU time of a thread that is not selected stays on its account.
 * So the weights of samples are right without a factor.
 */
static uint32_t select_threads(struct sf_agent *agent, uint64_t period_ns, uint64_t *random,
			       uint32_t chosen_ret[MAX_SELECTED])
{
	struct sf_agent_threads *threads = agent->threads;
	const uint32_t wanted = agent->options.per_tick;
	const uint32_t max = wanted && wanted < MAX_SELECTED ? wanted : MAX_SELECTED;
	uint32_t n_due = 0, place;

	for (uint32_t i = 0; i < threads->n; i++) {
		if (!is_due(&threads->all[i], period_ns, random))
			continue;
		place = n_due < max ? n_due : (uint32_t)(sf_random(random) % (n_due + 1));
		if (place < max)
			chosen_ret[place] = i;
		n_due++;
	}
	return n_due < max ? n_due : max;
}

/* A thread that ran and sleeps by now gets no signal; the next poll takes a blocked sample of it. */
static bool is_awake(const struct sf_agent_thread *thread)
{
	struct sf_own_place place;

	return !sf_own_place(thread->tid, &place) || place.awake;
}

void sf_requests_send_due(struct sf_requests *requests, struct sf_agent *agent, uint64_t period_ns, uint64_t *random, uint64_t woke_ns)
{
	uint32_t chosen[MAX_SELECTED];
	const uint32_t n = select_threads(agent, period_ns, random, chosen);

	for (uint32_t i = 0; i < n; i++) {
		const struct sf_agent_thread *thread = &agent->threads->all[chosen[i]];

		if (is_awake(thread) && !sf_requests_send(requests, thread, woke_ns))
			break;
		sf_handler_serve(&sf_handler, agent->workspace);
	}
}

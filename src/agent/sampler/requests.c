/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: signals from the sampler to threads without a CPU clock of their own, each with a slot
 * and a time-out. Only the sampler's thread calls this; nothing here waits for a thread of the
 * program.
 */
#include "agent/sampler/requests.h"
#include "agent/clocks/timer.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/thread_poll.h"
#include "agent/libc/own_proc.h"
#include "agent/threads/thread_entries.h"
#include "frozen/signal/handler.h"
#include "frozen/raw.h"
#include "frozen/signal/weight.h"

#define TIMEOUT_NS 50000000
#define DEAF_NS 1000000      /* CPU time in which it blocked us; less, and it is leaving a
			      * handler */

bool sf_requests_init(struct sf_requests *requests, struct sf_error *err)
{
	*requests = (struct sf_requests){ .of = calloc(sf_handler.n_slots, sizeof(*requests->of)) };
	return requests->of || sf_fail_memory(err);
}

void sf_requests_deinit(struct sf_requests *requests)
{
	free(requests->of);
	requests->of = NULL;
}

/* Its generation in *ret; NULL when all are taken. */
static struct sf_slot *find_slot(struct sf_requests *requests, uint32_t *ret)
{
	for (uint32_t i = 0; i < sf_handler.n_slots; i++) {
		struct sf_slot *slot =
			&sf_handler.slots[(requests->next_slot + i) % sf_handler.n_slots];

		/*
		 * A slot whose request was answered but is not settled yet still belongs to that
		 * request.
		 */
		if (!requests->of[slot->number].asked_ns && sf_slot_request(slot, ret)) {
			requests->next_slot = slot->number + 1;
			return slot;
		}
	}
	return NULL;
}

static long send(const struct sf_agent_thread *thread, uint32_t slot, uint32_t generation)
{
	uint64_t value = sf_handler_value(sf_handler.cookie, slot, generation);
	siginfo_t info = { 0 };

	info.si_signo = sf_handler.signal;
	info.si_code = SI_QUEUE;
	info.si_pid = sf_handler.pid;
	info.si_uid = (uid_t)sf_raw0(SYS_getuid);
	memcpy(&info.si_value, &value, sizeof(value));
	return sf_raw4(SYS_rt_tgsigqueueinfo, sf_handler.pid, thread->tid, sf_handler.signal, &info);
}

static void finish(struct sf_requests *requests, struct sf_request *request)
{
	request->asked_ns = 0;
	requests->n--;
	sf_agent_entry_done(request->thread.entry);
}

/*
 * Nobody came, and nobody will. Only a deaf thread's CPU time goes with the loss: a late one's is
 * still on its account, and its next sample speaks for it.
 */
static void lose(struct sf_request *request)
{
	struct sf_agent_thread *thread = &request->thread;
	uint64_t cpu_ns;

	if (!sf_agent_thread_cpu(thread->tid, &cpu_ns))
		sf_handler_lose(thread->serial, SF_LOSS_GONE, 0, 0, 1);
	else if (cpu_ns > thread->ticked_cpu_ns + DEAF_NS &&
		 sf_own_blocks(thread->tid, sf_handler.signal))
		sf_thread_poll_lose_deaf(thread, cpu_ns);
	else
		sf_handler_lose(thread->serial, SF_LOSS_LATE, 0, 0, 1);
}

static void cancel(struct sf_requests *requests, struct sf_request *request)
{
	uint32_t number = (uint32_t)(request - requests->of);

	if (!sf_slot_cancel(&sf_handler.slots[number], request->generation))
		return; /* it has answered just now */
	lose(request);
	finish(requests, request);
}

/* To tell whether it was on a CPU (frozen/signal/weight.h). */
static void tell_when(struct sf_thread_entry *entry, int32_t tid, uint64_t woke_ns)
{
	uint64_t wait_ns = 0;

	sf_raw_wait_ns(tid, &wait_ns);
	atomic_store(&entry->asked_wait_ns, wait_ns);
	atomic_store(&entry->asked_ns, woke_ns);
}

static void ask(struct sf_requests *requests, struct sf_request *request, struct sf_slot *slot)
{
	if (atomic_load(&request->thread.entry->flags) & SF_ENTRY_LEAVING) {
		sf_slot_cancel(slot, request->generation);
		finish(requests, request);
	} else if (send(&request->thread, slot->number, request->generation) != 0) {
		cancel(requests, request);
	}
}

/* Answers requested threads that walk themselves: they wait for their CPU weight (frozen/signal/weight.h). */
static void judge_all(struct sf_requests *requests)
{
	for (uint32_t i = 0; requests->n && i < sf_handler.n_slots; i++) {
		const struct sf_agent_thread *thread = &requests->of[i].thread;

		if (requests->of[i].asked_ns)
			sf_weight_judge(thread->entry, thread->tid);
	}
}

bool sf_requests_ask(struct sf_requests *requests, const struct sf_agent_thread *thread,
		     uint64_t woke_ns)
{
	uint32_t generation = 0, none = 0;
	struct sf_slot *slot = find_slot(requests, &generation);
	struct sf_request *request;

	if (!slot)
		return false;
	/* Said first, then looked at: the thread does both the other way round (exec_preparation.c). */
	if (!atomic_compare_exchange_strong(&thread->entry->asked, &none, slot->number + 1)) {
		sf_slot_cancel(slot, generation);
		return true;
	}
	request = &requests->of[slot->number];
	*request = (struct sf_request){
		.thread = *thread, .generation = generation, .asked_ns = sf_raw_now_ns() };
	requests->n++;
	tell_when(thread->entry, thread->tid, woke_ns);
	ask(requests, request, slot);
	judge_all(requests);
	return true;
}

static void settle(struct sf_requests *requests, struct sf_request *request, uint64_t now_ns)
{
	uint32_t number = (uint32_t)(request - requests->of);
	uint32_t word = atomic_load(&sf_handler.slots[number].word);

	if (sf_slot_generation(word) != request->generation || sf_slot_state(word) == SF_SLOT_FREE)
		finish(requests, request);
	else if (sf_slot_state(word) == SF_SLOT_REQUESTED &&
		 now_ns > request->asked_ns + TIMEOUT_NS)
		cancel(requests, request);
}

void sf_requests_settle(struct sf_requests *requests, uint64_t now_ns)
{
	judge_all(requests);
	for (uint32_t i = 0; requests->n && i < sf_handler.n_slots; i++) {
		if (requests->of[i].asked_ns)
			settle(requests, &requests->of[i], now_ns);
	}
}

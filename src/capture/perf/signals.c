/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the stacks that threads leave for an alternate one, and finds that of a sample. */
#include "capture/perf/signals.h"

#include <stdlib.h>
#include <string.h>

#include "os/tracepoints.h"

#define ON_STACK "sa_flags & 0x08000000" /* SA_ONSTACK: the kernel's filter of the tracepoint's records */

static bool find_tracepoint(uint32_t *ret)
{
	struct sf_tracepoint *tracepoint = malloc(sizeof(*tracepoint));
	struct sf_error err;
	const bool found = tracepoint && sf_tracepoint_find("signal", "signal_deliver", tracepoint, &err);

	if (found)
		*ret = tracepoint->number;
	free(tracepoint);
	return found;
}

void sf_perf_signals_open(struct sf_perf_signals *signals, const struct sf_perf_events *like)
{
	struct sf_perf_events *events = &signals->events;
	struct sf_error err;

	*events = (struct sf_perf_events){
		.kind = SF_PERF_SIGNALS, .all = like->all, .cgroup = like->cgroup, .kernel = true, .filter = ON_STACK,
	};
	if (!find_tracepoint(&events->tracepoint))
		return;
	if (sf_perf_events_open(events, 0, &err) && sf_perf_events_attach(events, NULL, 0, &err))
		signals->left = calloc(SF_PERF_LEFT_STACKS, sizeof(*signals->left));
	if (!signals->left)
		sf_perf_events_close(events);
}

void sf_perf_signals_close(struct sf_perf_signals *signals)
{
	sf_perf_events_close(&signals->events);
	free(signals->left);
	signals->left = NULL;
}

static struct sf_perf_left *find_thread(const struct sf_perf_signals *signals, const struct sf_perf_record *record)
{
	for (struct sf_perf_left *left = signals->left; left && left < signals->left + SF_PERF_LEFT_STACKS; left++) {
		if (left->tid == record->tid && left->pid == record->pid)
			return left;
	}
	return NULL;
}

static struct sf_perf_left *find_oldest(const struct sf_perf_signals *signals)
{
	struct sf_perf_left *oldest = signals->left;

	for (struct sf_perf_left *left = signals->left; left < signals->left + SF_PERF_LEFT_STACKS; left++) {
		if (left->time_ns < oldest->time_ns)
			oldest = left;
	}
	return oldest;
}

/* The kernel's frame of a handler has the interrupted stack pointer, and behind it the program counter (struct sigcontext). */
static bool has_words(const struct sf_perf_record *record, const struct sf_perf_left *left)
{
	const uint64_t words[2] = { left->sp, left->pc };

	for (uint32_t i = 0; i + sizeof(words) <= record->stack_size; i += sizeof(words[0])) {
		if (memcmp(record->stack + i, words, sizeof(words)) == 0)
			return true;
	}
	return false;
}

/* A handler that is itself interrupted stays on its stack: what was left before is what its samples lack. */
void sf_perf_signals_take(struct sf_perf_signals *signals, const struct sf_perf_record *record)
{
	struct sf_perf_left *left = find_thread(signals, record);
	struct sf_regs regs;

	if (record->type != PERF_RECORD_SAMPLE || !record->regs || record->pid <= 0 || !signals->left ||
	    (left && has_words(record, left)))
		return;
	if (!left)
		left = find_oldest(signals);
	sf_perf_load_regs(record->regs, &regs);
	left->pid = record->pid;
	left->tid = record->tid;
	left->time_ns = record->time_ns;
	left->sp = regs.r[sf_arch_host()->sp];
	left->pc = regs.pc;
	left->size = record->stack_size < sizeof(left->bytes) ? record->stack_size : (uint32_t)sizeof(left->bytes);
	left->cut = record->stack_size == record->stack_room || left->size < record->stack_size;
	memcpy(left->bytes, record->stack, left->size);
}

const struct sf_perf_left *sf_perf_signals_find(const struct sf_perf_signals *signals, const struct sf_perf_record *record)
{
	struct sf_perf_left *left = record->regs ? find_thread(signals, record) : NULL;
	struct sf_regs regs;

	if (!left)
		return NULL;
	sf_perf_load_regs(record->regs, &regs);
	if (left->sp - regs.r[sf_arch_host()->sp] < record->stack_size || !has_words(record, left))
		return NULL;
	left->time_ns = record->time_ns;
	return left;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API call guard: marks the calling thread while it is inside a call of stillframe's API, so
 * that the call is not sampled. The sampler reads the marks without a lock.
 */
#include "agent/threads/api_guard.h"

#include <pthread.h>
#include <stddef.h>

#include "agent/threads/thread_entries.h"
#include "frozen/raw.h"

static _Thread_local int cancel_state; /* before the present API call */

void sf_api_guard_begin(void)
{
	struct sf_thread_entry *entry = sf_agent_own_entry(NULL);

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	if (entry)
		atomic_store(&entry->api_since_ns, sf_raw_now_ns());
}

void sf_api_guard_end(void)
{
	struct sf_thread_entry *entry = sf_agent_find_own_entry();
	uint64_t since_ns = entry ? atomic_exchange(&entry->api_since_ns, 0) : 0;

	if (since_ns)
		atomic_fetch_add(&entry->api_ns, sf_raw_now_ns() - since_ns);
	pthread_setcancelstate(cancel_state, NULL);
}

uint64_t sf_api_guard_since(const struct sf_thread_entry *entry)
{
	return atomic_load(&entry->api_since_ns);
}

uint64_t sf_api_guard_take(struct sf_thread_entry *entry)
{
	return atomic_exchange(&entry->api_ns, 0);
}

void sf_api_guard_restart(struct sf_thread_entry *entry, uint64_t now_ns)
{
	uint64_t since_ns = atomic_load(&entry->api_since_ns);

	if (since_ns)
		atomic_compare_exchange_strong(&entry->api_since_ns, &since_ns, now_ns);
	atomic_store(&entry->api_ns, 0);
}

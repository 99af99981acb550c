/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the list of Thread objects (src/coreclr/vm/threads.h in dotnet/runtime: ThreadStore). */
#include "runtime/coreclr/threads.h"

#define MAX_THREADS 262144

static bool add(const struct sf_clr_description *description, const struct sf_reader *memory,
		uint64_t address, struct sf_clr_threads *threads)
{
	struct sf_clr_thread thread = { .thread = address };
	uint64_t id;

	if (!sf_clr_get(&description->layout, memory, SF_CLR_THREAD_OS_ID, address, &id))
		return false;
	if (id == 0 || id > INT32_MAX)
		return true; /* not started yet, or ended */
	thread.tid = (int32_t)id;
	return sf_vec_push(&threads->items, thread);
}

bool sf_clr_threads_read(const struct sf_clr_description *description, const struct sf_reader *memory,
			 struct sf_clr_threads *threads)
{
	const struct sf_clr_layout *layout = &description->layout;
	uint64_t store, link;

	threads->items.n = 0;
	if (!sf_clr_has(layout, SF_CLR_THREAD_LINK) || !description->thread_store ||
	    !sf_read_u64(memory, description->thread_store, &store) || !store ||
	    !sf_clr_get(layout, memory, SF_CLR_STORE_FIRST, store, &link))
		return false;
	for (unsigned i = 0; link && i < MAX_THREADS; i++) {
		if (!add(description, memory, link - layout->fields[SF_CLR_THREAD_LINK], threads) ||
		    !sf_read_u64(memory, link, &link))
			return false;
	}
	return true;
}

void sf_clr_threads_deinit(struct sf_clr_threads *threads)
{
	sf_vec_deinit(&threads->items);
}

const struct sf_clr_thread *sf_clr_threads_find(const struct sf_clr_threads *threads, int32_t tid)
{
	for (size_t i = 0; i < threads->items.n; i++) {
		if (threads->items.items[i].tid == tid)
			return &threads->items.items[i];
	}
	return NULL;
}

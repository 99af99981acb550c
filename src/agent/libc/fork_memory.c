/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the agent by mmap(2), and what a forked child gets of it by madvise(2). */
#include "agent/libc/fork_memory.h"

#include <sys/mman.h>

void *sf_map_own(size_t size, enum sf_in_child in_child)
{
	void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (pages == MAP_FAILED)
		return NULL;
	if (in_child != SF_COPIED)
		sf_set_in_child(pages, size, in_child);
	return pages;
}

bool sf_set_in_child(void *pages, size_t size, enum sf_in_child in_child)
{
	static const int advice[] = { [SF_COPIED] = MADV_KEEPONFORK, [SF_WIPED] = MADV_WIPEONFORK, [SF_NOT_THERE] = MADV_DONTFORK };

	return madvise(pages, size, advice[in_child]) == 0;
}

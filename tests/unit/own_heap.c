/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's malloc and qsort: the files themselves, with other names. */
#include "own_heap.h"

#define malloc own_malloc
#define calloc own_calloc
#define realloc own_realloc
#define free own_free
#define strdup own_strdup
#define asprintf own_asprintf
#define vasprintf own_vasprintf
#define qsort own_qsort

#include "../../src/agent/libc/heap.c" /* NOLINT */
#include "../../src/agent/libc/sort.c" /* NOLINT */

void own_hold_heap(void)
{
	pthread_mutex_lock(&lock);
}

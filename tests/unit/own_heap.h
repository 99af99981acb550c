/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's malloc and qsort beside libc's, under other names. */
#ifndef SF_TESTS_OWN_HEAP_H
#define SF_TESTS_OWN_HEAP_H

#include <stddef.h>

void *own_malloc(size_t size);
void *own_calloc(size_t n, size_t size);
void *own_realloc(void *memory, size_t size);
void own_free(void *memory);
char *own_strdup(const char *text);
int own_asprintf(char **ret, const char *format, ...);
void own_qsort(void *first, size_t n, size_t size, int (*compare)(const void *a, const void *b));

/* As a thread that allocates, and never ends. */
void own_hold_heap(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has an allocator of its own that is made for one thread and works in main() only, as GNU Common Lisp has. It works before and
 * after, and says who else called the allocator.
 *
 * in_lone_malloc NUMBER [SECONDS]: the number says nothing
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "in_spins.h"

#define EXPORTED __attribute__((visibility("default"))) /* to libraries */

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *memory);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

static atomic_uint n_early, n_others, n_in_main;

/* libc has memory for each thread that is made, by calloc: before main() by calls that take nothing back. */
static void note(bool changes)
{
	if (gettid() != getpid())
		n_others++;
	else if (n_in_main)
		n_in_main++;
	else if (changes)
		n_early++;
}

EXPORTED void *malloc(size_t size)
{
	note(false);
	return __libc_malloc(size);
}

EXPORTED void *calloc(size_t n, size_t size)
{
	note(false);
	return __libc_calloc(n, size);
}

EXPORTED void *realloc(void *memory, size_t size)
{
	note(true);
	return __libc_realloc(memory, size);
}

EXPORTED void free(void *memory)
{
	note(memory != NULL);
	__libc_free(memory);
}

int main(int argc, char **argv)
{
	int64_t half = argument(argc, argv, 2, 2) * NS_PER_S / 2;

	n_in_main = 1;
	bounded(60);
	spin_before(half);
	for (size_t i = 0; i < 1000; i++)
		free(malloc(i));
	spin_after(half);
	dprintf(1, "frees before main() %u, calls by other threads %u, calls in main() %u\n", n_early, n_others, n_in_main - 1);
	return 0;
}

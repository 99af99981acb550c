/* SPDX-License-Identifier: Apache-2.0 */
/*
 * malloc and its kin, for the shared library's own use (hidden): its own code and the static libraries in it. Ordinary code.
 *
 * The program's malloc is not used, since it may be the program's own: one that works in main() only, one without a lock in a
 * program without threads, or one that counts what the program allocates. libc still calls it where it makes a thread.
 *
 * Sizes are rounded up to one of four steps between two powers of two. What is freed waits in a list of its size, and the pages
 * are never given back. A large piece has a mapping of its own.
 */
#include "agent/libc/heap.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/libc/fork_memory.h"
#include "agent/libc/hidden.h"
#include "frozen/child.h"

#define LEAST 64u             /* bytes of a piece, its header included */
#define SMALL (32u << 10)     /* a larger one has a mapping of its own */
#define BLOCK (128u << 10)    /* bytes that are mapped at once for small ones */
#define N_SIZES 37u           /* four from each power of two to the next one, from LEAST to SMALL */
#define PAGE 4096u
#define MAX_SIZE (SIZE_MAX / 4)

/* In front of each piece, and as aligned as malloc's memory is. */
struct header {
	_Alignas(max_align_t) size_t size; /* of the piece, this header included */
	struct header *next;               /* while it is free */
};

struct heap {
	struct header *free[N_SIZES];
	uint8_t *at, *end;             /* of the block from which pieces are cut */
};

SF_CHILD_DATA static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct heap heap;

/* The size that a piece has, at least `size`, and the place of its list: the two highest bits below the first one choose it. */
static size_t round_up(size_t size, unsigned *list_ret)
{
	unsigned shift;
	size_t steps;

	if (size < LEAST)
		size = LEAST;
	shift = 63u - (unsigned)__builtin_clzl(size) - 2;
	steps = (size + ((size_t)1 << shift) - 1) >> shift; /* 4 to 8 */
	*list_ret = (shift - 4) * 4 + (unsigned)steps - 4;
	return steps << shift;
}

static bool add_block(void)
{
	uint8_t *block = sf_map_own(BLOCK, SF_COPIED);

	if (!block)
		return false;
	heap.at = block;
	heap.end = block + BLOCK;
	return true;
}

/* The rest of a block that is too short for a piece is lost. */
static struct header *cut(size_t size)
{
	struct header *piece;

	if ((size_t)(heap.end - heap.at) < size && !add_block())
		return NULL;
	piece = (struct header *)heap.at;
	heap.at += size;
	return piece;
}

static struct header *take_small(size_t size)
{
	struct header *piece;
	unsigned list;

	size = round_up(size, &list);
	pthread_mutex_lock(&lock);
	piece = heap.free[list];
	if (piece)
		heap.free[list] = piece->next;
	else
		piece = cut(size);
	pthread_mutex_unlock(&lock);
	if (piece)
		piece->size = size;
	return piece;
}

static struct header *take_large(size_t size)
{
	struct header *piece;

	size = (size + PAGE - 1) / PAGE * PAGE;
	piece = sf_map_own(size, SF_COPIED);
	if (piece)
		piece->size = size;
	return piece;
}

static struct header *take(size_t size)
{
	struct header *piece = NULL;

	if (size <= MAX_SIZE)
		piece = size + sizeof(*piece) <= SMALL ? take_small(size + sizeof(*piece)) : take_large(size + sizeof(*piece));
	if (!piece)
		errno = ENOMEM;
	return piece;
}

SF_HIDDEN void *malloc(size_t size)
{
	struct header *piece = take(size);

	return piece ? piece + 1 : NULL;
}

SF_HIDDEN void *calloc(size_t n, size_t size)
{
	struct header *piece;

	if (__builtin_mul_overflow(n, size, &size))
		size = SIZE_MAX;
	piece = take(size);
	if (piece && piece->size <= SMALL) /* a mapping is zeroes, and its pages are not there yet */
		memset(piece + 1, 0, size);
	return piece ? piece + 1 : NULL;
}

static void put_small(struct header *piece)
{
	unsigned list;

	round_up(piece->size, &list);
	pthread_mutex_lock(&lock);
	piece->next = heap.free[list];
	heap.free[list] = piece;
	pthread_mutex_unlock(&lock);
}

/* errno stays as it was: callers free between a failure and its message. */
SF_HIDDEN void free(void *memory)
{
	const int error = errno;
	struct header *piece;

	if (!memory)
		return;
	piece = (struct header *)memory - 1;
	if (piece->size <= SMALL)
		put_small(piece);
	else
		munmap(piece, piece->size);
	errno = error;
}

SF_HIDDEN void *realloc(void *memory, size_t size)
{
	const size_t room = memory ? ((struct header *)memory)[-1].size - sizeof(struct header) : 0;
	void *larger;

	if (memory && size <= room && size >= room / 4)
		return memory;
	larger = malloc(size);
	if (!larger)
		return NULL;
	if (memory)
		memcpy(larger, memory, room < size ? room : size);
	free(memory);
	return larger;
}

SF_HIDDEN char *strdup(const char *text)
{
	const size_t size = strlen(text) + 1;
	char *copy = malloc(size);

	return copy ? memcpy(copy, text, size) : NULL;
}

SF_HIDDEN __attribute__((format(printf, 2, 0))) int vasprintf(char **ret, const char *format, va_list values)
{
	va_list again;
	int length;

	va_copy(again, values);
	length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	*ret = length < 0 ? NULL : malloc((size_t)length + 1);
	return *ret ? vsnprintf(*ret, (size_t)length + 1, format, values) : -1;
}

SF_HIDDEN __attribute__((format(printf, 2, 3))) int asprintf(char **ret, const char *format, ...)
{
	va_list values;
	int length;

	va_start(values, format);
	length = vasprintf(ret, format, values);
	va_end(values);
	return length;
}

SF_CHILD_CODE void sf_heap_after_fork_in_child(void)
{
	if (pthread_mutex_trylock(&lock) != 0)
		heap = (struct heap){ 0 };
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

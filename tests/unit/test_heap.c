/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's own malloc and its kin (agent/libc/heap.c), and its qsort (agent/libc/sort.c). */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/libc/heap.h"
#include "own_heap.h"

#define N 500
#define TURNS 20000u

struct piece {
	uint8_t *at;
	size_t size;
	uint8_t byte;
};

/* Its own numbers in each thread. */
static uint32_t next(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static size_t random_size(uint32_t *state)
{
	const unsigned bits = next(state) % 18;

	return next(state) & ((1u << bits) - 1);
}

static bool holds_its_byte(const struct piece *piece)
{
	for (size_t i = 0; i < piece->size; i++) {
		if (piece->at[i] != piece->byte)
			return false;
	}
	return true;
}

static void fill(struct piece *piece)
{
	if (piece->size)
		memset(piece->at, piece->byte, piece->size);
}

/* One turn: what is there is whole, and is replaced, resized, or freed. */
static bool turn(struct piece *piece, uint32_t *state)
{
	const size_t size = random_size(state);
	const unsigned what = next(state) % 4;
	const size_t kept = size < piece->size ? size : piece->size;
	struct piece old = { piece->at, piece->size, piece->byte };
	bool fine = holds_its_byte(piece);

	if (what == 0 && piece->at) {
		piece->at = own_realloc(piece->at, size);
		old = (struct piece){ piece->at, kept, piece->byte };
		fine &= holds_its_byte(&old);
	} else {
		own_free(piece->at);
		piece->at = what == 1 ? own_calloc(1, size) : own_malloc(size);
		old = (struct piece){ piece->at, size, 0 };
		fine &= what != 1 || holds_its_byte(&old);
	}
	piece->size = size;
	piece->byte = (uint8_t)next(state);
	fill(piece);
	return fine && piece->at && (uintptr_t)piece->at % 16 == 0;
}

static void *work(void *arg)
{
	uint32_t state = (uint32_t)(uintptr_t)arg;
	static _Thread_local struct piece pieces[N];
	bool fine = true;

	for (unsigned i = 0; i < TURNS && fine; i++)
		fine = turn(&pieces[next(&state) % N], &state);
	for (unsigned i = 0; i < N; i++)
		own_free(pieces[i].at);
	return fine ? arg : NULL;
}

static void what_is_allocated_stays_whole(void **state)
{
	pthread_t threads[3];
	(void)state;

	for (uintptr_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < 3; i++) {
		void *result;

		pthread_join(threads[i], &result);
		assert_non_null(result);
	}
}

/* Sizes around each step, of which a freed piece serves again. */
static void each_size_has_room(void **state)
{
	(void)state;
	for (size_t size = 0; size < 40000; size++) {
		uint8_t *piece = own_malloc(size), *again;

		assert_non_null(piece);
		memset(piece, 0xa5, size);
		own_free(piece);
		again = own_malloc(size);
		if (size < 30000)
			assert_ptr_equal(again, piece);
		own_free(again);
	}
}

static void what_cannot_be_had_is_refused(void **state)
{
	(void)state;
	errno = 0;
	assert_null(own_malloc(SIZE_MAX));
	assert_int_equal(errno, ENOMEM);
	assert_null(own_malloc(SIZE_MAX - 15));
	assert_null(own_calloc(SIZE_MAX / 2, 3));
	assert_null(own_realloc(NULL, SIZE_MAX / 2));
	own_free(NULL);
}

static void texts(void **state)
{
	char *copy = own_strdup("one"), *made;
	(void)state;

	assert_string_equal(copy, "one");
	assert_int_equal(own_asprintf(&made, "%s and %d", copy, 2), 9);
	assert_string_equal(made, "one and 2");
	own_free(copy);
	own_free(made);
}

static void free_keeps_errno(void **state)
{
	void *large = own_malloc(1 << 20);
	(void)state;

	errno = EBADF;
	own_free(large);
	assert_int_equal(errno, EBADF);
}

/* Another thread was allocating when the process was copied. */
static void a_child_of_a_fork_allocates(void **state)
{
	char *before = own_strdup("before");
	int status;
	pid_t child;
	(void)state;

	own_hold_heap();
	child = fork();
	if (child == 0) {
		char *after;

		alarm(20);
		sf_heap_after_fork_in_child();
		after = own_strdup("after");
		own_free(before);
		before = own_strdup("again");
		_exit(strcmp(after, "after") == 0 && strcmp(before, "again") == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, 3);
}

/* Items of three bytes, many of them equal. */
static void sorts_as_libc_does(void **state)
{
	static uint8_t mine[3 * 1000], libcs[3 * 1000];
	uint32_t random = 7;
	(void)state;

	for (size_t n = 0; n <= 1000; n += 1 + n / 8) {
		for (size_t i = 0; i < 3 * n; i++)
			mine[i] = libcs[i] = next(&random) % 5;
		own_qsort(mine, n, 3, compare);
		qsort(libcs, n, 3, compare);
		assert_memory_equal(mine, libcs, 3 * n + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_allocated_stays_whole), cmocka_unit_test(each_size_has_room),
		cmocka_unit_test(what_cannot_be_had_is_refused), cmocka_unit_test(texts),
		cmocka_unit_test(free_keeps_errno), cmocka_unit_test(sorts_as_libc_does),
		cmocka_unit_test(a_child_of_a_fork_allocates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Names of several images by several children: each image's arrive, also where limits are reached. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "symbols/lookup.h"

#define N_IMAGES 11 /* more than there are children at a time */

static uint64_t own[2], libc[1]; /* addresses in the two files */
static struct sf_lookup_image images[N_IMAGES];

/* The names that arrived for one image. */
static struct arrived {
	unsigned n;
	char last[64];
	unsigned line;
} arrived[N_IMAGES];

__attribute__((noinline)) static int looked_up(int n)
{
	return n ? looked_up(n - 1) + 1 : 3;
}

static uint64_t address_of(void *function, const char **file_ret)
{
	Dl_info info;

	assert_true(dladdr(function, &info));
	*file_ret = info.dli_fname;
	return (uint64_t)((char *)function - (char *)info.dli_fbase);
}

static int prepare(void **state)
{
	const char *files[2];

	(void)state;
	own[0] = address_of((void *)looked_up, &files[0]);
	own[1] = 1; /* of nothing */
	libc[0] = address_of(dlsym(RTLD_NEXT, "puts"), &files[1]);
	for (int i = 0; i < N_IMAGES; i++) {
		const bool ours = i % 2 == 0;

		images[i] = (struct sf_lookup_image){
			.fd = open(ours ? "/proc/self/exe" : files[1], O_RDONLY | O_CLOEXEC),
			.path = files[!ours], .addresses = ours ? own : libc, .n = ours ? 2 : 1, .arg = &arrived[i],
		};
		assert_true(images[i].fd >= 0);
	}
	memset(arrived, 0, sizeof(arrived));
	return 0;
}

static int clean_up(void **state)
{
	(void)state;
	for (int i = 0; i < N_IMAGES; i++)
		close(images[i].fd);
	return waitpid(-1, NULL, WNOHANG) == -1 ? 0 : -1; /* all children have been waited for */
}

static void on_location(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	struct arrived *one = arg;

	assert_int_equal(index, 0);
	one->n++;
	one->line = locations[0].line;
	strncpy(one->last, locations[n - 1].function, sizeof(one->last) - 1);
}

static void assert_named(int n_images, bool lines)
{
	for (int i = 0; i < n_images; i++) {
		assert_int_equal(arrived[i].n, 1);
		assert_non_null(strstr(arrived[i].last, i % 2 ? "puts" : "looked_up"));
		if (i % 2 == 0)
			assert_int_equal(arrived[i].line != 0, lines);
	}
}

/* Under a sanitizer digests of eleven images, and thousands of look-ups, take longer than names may. */
static struct sf_lookup begin_with_much_time(void)
{
	struct sf_lookup lookup = sf_lookup_begin(NULL);

	lookup.cpu_left_ns *= 8;
	return lookup;
}

static void test_all_images(void **state)
{
	struct sf_lookup lookup = begin_with_much_time();
	const uint64_t cpu_ns = lookup.cpu_left_ns;
	cpu_set_t before, after;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_true(sf_lookup_resolve(&lookup, images, N_IMAGES, on_location, NULL));
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after)); /* it forks on one CPU */
	assert_named(N_IMAGES, true);
	assert_null(sf_lookup_note(&lookup));
	assert_true(lookup.cpu_left_ns < cpu_ns);
	assert_true(lookup.room_left > (size_t)60 << 20);
}

/*
 * All the time that is left is kept back for symbol tables: no debug data is read. It is enough for few images, also
 * under a sanitizer.
 */
static void test_no_time_for_debug_data(void **state)
{
	struct sf_lookup lookup = sf_lookup_begin(NULL);

	(void)state;
	lookup.cpu_left_ns = 1900000000;
	assert_true(sf_lookup_resolve(&lookup, images, 3, on_location, NULL));
	assert_named(3, false);
	assert_non_null(sf_lookup_note(&lookup));
}

/* Room is given by the number of addresses: one image takes nearly all of it, until it is known how little it needs. */
static void test_one_image_with_most_addresses(void **state)
{
	struct sf_lookup lookup = begin_with_much_time();
	static uint64_t many[20000];

	(void)state;
	many[0] = own[0];
	images[0].addresses = many;
	images[0].n = sizeof(many) / sizeof(many[0]);
	assert_true(sf_lookup_resolve(&lookup, images, 5, on_location, NULL));
	assert_named(5, true);
	assert_null(sf_lookup_note(&lookup));
}

/* The room is shared: where that of all is short, each image has some. */
static void test_little_room(void **state)
{
	struct sf_lookup lookup = sf_lookup_begin(NULL);

	(void)state;
	lookup.room_left = 100;
	sf_lookup_resolve(&lookup, images, N_IMAGES, on_location, NULL);
	assert_non_null(sf_lookup_note(&lookup));
	for (int i = 0; i < N_IMAGES; i++)
		assert_true(arrived[i].n <= 1);
}

static void test_unwanted(void **state)
{
	atomic_bool stop = true;
	struct sf_lookup lookup = sf_lookup_begin(&stop);

	(void)state;
	assert_true(sf_lookup_resolve(&lookup, images, N_IMAGES, on_location, NULL));
	for (int i = 0; i < N_IMAGES; i++)
		assert_int_equal(arrived[i].n, 0);
	assert_non_null(strstr(sf_lookup_note(&lookup), "interrupted"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_images, prepare, clean_up),
		cmocka_unit_test_setup_teardown(test_no_time_for_debug_data, prepare, clean_up),
		cmocka_unit_test_setup_teardown(test_one_image_with_most_addresses, prepare, clean_up),
		cmocka_unit_test_setup_teardown(test_little_room, prepare, clean_up),
		cmocka_unit_test_setup_teardown(test_unwanted, prepare, clean_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Code of a process that has ended, from the files that it had mapped: here this program's own, whose process is another one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "session/mapped_code.h"
#include "target/process.h"

#define SIZE 40u

static struct sf_images *images;
static struct sf_process own;
static pid_t ended;
static bool is_readable; /* the process's memory */

static void load_nothing(struct sf_image *image)
{
	(void)image;
}

static bool read_live(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	assert_ptr_equal(reader->arg, &own);
	memset(ret, 0xaa, size);
	(void)addr;
	return is_readable;
}

static int set_up(void **state)
{
	static const struct sf_image_loader none = { .load = load_nothing, .unload = load_nothing };

	(void)state;
	ended = fork();
	if (ended == 0)
		_exit(0);
	is_readable = false;
	images = sf_images_create(&none);
	sf_process_init(&own, getpid());
	return images && waitpid(ended, NULL, 0) == ended && sf_process_refresh(&own, images, NULL) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	sf_process_deinit(&own);
	sf_images_destroy(images);
	return 0;
}

/* Whether these are the bytes there, as this program has them. */
static bool reads(pid_t pid, uint64_t addr)
{
	struct sf_still still = { .pid = pid, .map = own.map, .memory = { .read = read_live, .arg = &own } };
	struct sf_mapped_code code;
	uint8_t bytes[SIZE], next[SIZE];
	bool ok;

	sf_mapped_code_begin(&code, &still, images);
	ok = sf_read(&still.memory, bytes, addr, SIZE);
	if (ok && !is_readable) { /* of the piece that is at hand by now, too */
		assert_true(sf_read(&still.memory, next, addr + 8, SIZE));
		assert_memory_equal(next, (const void *)(uintptr_t)(addr + 8), SIZE);
	}
	sf_mapped_code_end(&code, &still);
	assert_ptr_equal(still.memory.read, read_live);
	assert_ptr_equal(still.memory.arg, &own);
	return ok && memcmp(bytes, (const void *)(uintptr_t)addr, SIZE) == 0;
}

static void test_an_ended_process(void **state)
{
	(void)state;
	assert_true(reads(ended, (uint64_t)(uintptr_t)set_up));
	assert_true(reads(ended, (uint64_t)(uintptr_t)qsort)); /* of a library */
}

static void test_a_process_that_lives(void **state)
{
	(void)state;
	assert_false(reads(getpid(), (uint64_t)(uintptr_t)set_up));
}

/* What can be read of the process itself is what it has. */
static void test_memory_comes_first(void **state)
{
	(void)state;
	is_readable = true;
	assert_false(reads(ended, (uint64_t)(uintptr_t)set_up));
}

static void test_what_is_no_code_of_a_file(void **state)
{
	struct sf_region *region;
	uint8_t *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(made != MAP_FAILED);
	assert_true(sf_process_refresh(&own, images, NULL));
	assert_false(reads(ended, (uint64_t)(uintptr_t)made));
	assert_false(reads(ended, (uint64_t)(uintptr_t)&images));
	region = (struct sf_region *)sf_code_map_find(own.map, (uint64_t)(uintptr_t)set_up);
	region->end = (uint64_t)(uintptr_t)set_up + SIZE / 2; /* the rest is another mapping's */
	assert_false(reads(ended, (uint64_t)(uintptr_t)set_up));
	munmap(made, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_an_ended_process, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_process_that_lives, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_memory_comes_first, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_no_code_of_a_file, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

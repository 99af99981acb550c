/* SPDX-License-Identifier: Apache-2.0 */
/* The range map of .NET in hand-made memory: as many precompiled images as a process likes to have, and as large ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/coreclr/range_map.h"

#define MAX_IMAGES 6000u
#define NODE(level) (0x100000u + 0x1000u * (level))
#define LEVELS 5u
#define FRAGMENT(i) (UINT64_C(0x1000000) + 16 * (i))  /* next, section */
#define SECTION(i) (UINT64_C(0x2000000) + 32 * (i))   /* begin, end, flags, module */
#define MODULE(i) (UINT64_C(0x3000000) + 8 * (i))     /* its ReadyToRunInfo */
#define READY(i) (UINT64_C(0x4000000) + 16 * (i))     /* functions, how many there are */
#define FUNCTIONS UINT64_C(0x100000000)               /* all zero */
#define IN_LEAF 4000u                                 /* of one list */

static unsigned n_images;
static uint32_t n_functions;
static struct sf_clr_description description;
static struct sf_clr_images images;

static uint64_t leaf_entry(uint64_t i)
{
	return i * IN_LEAF < n_images ? FRAGMENT(i * IN_LEAF) : 0;
}

static uint64_t word_at(uint64_t addr)
{
	for (unsigned level = 0; level < LEVELS; level++) {
		if (addr >= NODE(level) && addr < NODE(level) + 2048)
			return level + 1 == LEVELS ? leaf_entry((addr - NODE(level)) / 8) : addr == NODE(level) ? NODE(level + 1) : 0;
	}
	if (addr >= READY(0))
		return addr % 16 ? n_functions : FUNCTIONS;
	if (addr >= MODULE(0))
		return READY((addr - MODULE(0)) / 8);
	if (addr >= SECTION(0)) {
		const uint64_t i = (addr - SECTION(0)) / 32;

		return addr % 32 < 16 ? UINT64_C(0x1000) * (i + 1 + addr % 32 / 8) : addr % 32 == 16 ? 0 : MODULE(i);
	}
	if (addr % 16)
		return SECTION((addr - FRAGMENT(0)) / 16);
	return ((addr - FRAGMENT(0)) / 16 + 1) % IN_LEAF && (addr - FRAGMENT(0)) / 16 + 1 < n_images ? addr + 16 : 0;
}

static bool read_made(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	(void)reader;
	if (addr >= FUNCTIONS) {
		memset(ret, 0, size);
		return true;
	}
	for (size_t at = 0; at < size; at += 8) {
		const uint64_t word = word_at(addr + at);

		memcpy((uint8_t *)ret + at, &word, size - at < 8 ? size - at : 8);
	}
	return true;
}

static const struct sf_reader memory = { .read = read_made };

static int make(void **state)
{
	struct sf_clr_layout *layout = &description.layout;

	(void)state;
	memset(layout->fields, 0xff, sizeof(layout->fields)); /* SF_CLR_NO_FIELD */
	layout->fields[SF_CLR_MAP_TOP] = 0;
	layout->fields[SF_CLR_FRAGMENT_NEXT] = 0;
	layout->fields[SF_CLR_FRAGMENT_SECTION] = 8;
	layout->fields[SF_CLR_SECTION_BEGIN] = 0;
	layout->fields[SF_CLR_SECTION_END] = 8;
	layout->fields[SF_CLR_SECTION_FLAGS] = 16;
	layout->fields[SF_CLR_SECTION_MODULE] = 24;
	layout->fields[SF_CLR_MODULE_READY] = 0;
	layout->fields[SF_CLR_READY_FUNCTIONS] = 0;
	layout->fields[SF_CLR_READY_N_FUNCTIONS] = 8;
	description.range_map = NODE(0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	sf_clr_images_deinit(&images);
	images = (struct sf_clr_images){ 0 };
	return 0;
}

static uint32_t count_ranges(unsigned n, uint32_t functions)
{
	const struct sf_process process = { .pid = 1 };
	struct sf_coreclr *object;
	uint32_t n_ranges;

	n_images = n;
	n_functions = functions;
	object = sf_clr_object_create(&description, &memory, &images, &process, NULL, 0);
	assert_non_null(object);
	n_ranges = object->n_ranges;
	sf_clr_object_destroy(object);
	return n_ranges;
}

static void each_image_is_read_once(void **state)
{
	(void)state;
	assert_int_equal(count_ranges(100, 3), 100);
	assert_int_equal(images.items.n, 100);
	assert_int_equal(count_ranges(100, 3), 100);
	assert_int_equal(images.items.n, 100);
}

/* All say that they are as large as one may be. The memory for that is the process's to write once, and ours for each. */
static void images_share_the_memory_for_their_functions(void **state)
{
	(void)state;
	assert_int_equal(count_ranges(6, 3u << 20), 2);
}

static void images_have_a_limit(void **state)
{
	(void)state;
	assert_int_equal(count_ranges(MAX_IMAGES, 1), SF_CLR_MAX_IMAGES);
	assert_int_equal(images.items.n, SF_CLR_MAX_IMAGES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_image_is_read_once, make, end),
		cmocka_unit_test_setup_teardown(images_share_the_memory_for_their_functions, make, end),
		cmocka_unit_test_setup_teardown(images_have_a_limit, make, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

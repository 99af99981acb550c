/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of a precompiled image's functions, by the runtime's tables, some of which cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/coreclr/methods.h"

#define CODE 0x400000u
#define READY 0x10000u                      /* the ReadyToRunInfo: the map of methods, the pairs, their number */
#define PAIRS (READY + 0x40)
#define BUCKETS (READY + 0x80)
#define BUCKET(n) (BUCKETS + 0x40 * (1 + (n)))
#define END BUCKET(2)
#define FIRST 0xa000u                       /* methods: of function 0, */
#define SECOND 0xb000u                      /* and of function 1, whose funclet is 2; 3 is the cold part of 0 */

static uint8_t bytes[END - READY];
static uint64_t unread;                     /* of this address on; 0: nothing */
static struct sf_clr_description description;
static struct sf_clr_functions *functions;
static struct sf_clr_range range;

static bool read_bytes(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	const uint64_t end = unread ? unread : END;

	(void)reader;
	if (addr < READY || addr + size > end)
		return false;
	memcpy(ret, bytes + (addr - READY), size);
	return true;
}

static const struct sf_reader memory = { .read = read_bytes };

static void put(uint64_t addr, uint64_t value)
{
	memcpy(bytes + (addr - READY), &value, sizeof(value));
}

static int make(void **state)
{
	struct sf_clr_layout *layout = &description.layout;

	(void)state;
	memset(bytes, 0, sizeof(bytes));
	memset(layout->fields, 0xff, sizeof(layout->fields)); /* SF_CLR_NO_FIELD */
	layout->fields[SF_CLR_READY_METHODS] = layout->fields[SF_CLR_HASH_BUCKETS] = 0;
	layout->fields[SF_CLR_READY_COLD] = 8;
	layout->fields[SF_CLR_READY_N_COLD] = 16;
	unread = 0;
	put(READY, BUCKETS);
	put(READY + 8, PAIRS);
	put(READY + 16, 2);
	put(PAIRS, 3);                      /* { 3, 0 } */
	put(BUCKETS, 2);
	put(BUCKET(0), CODE);
	put(BUCKET(0) + 0x20, FIRST >> 1);
	put(BUCKET(1), CODE + 4);
	put(BUCKET(1) + 0x20, SECOND >> 1);
	functions = calloc(1, sizeof(*functions) + 4 * sizeof(functions->items[0]));
	functions->n = 4;
	for (uint32_t i = 0; i < 4; i++)
		functions->items[i] = (struct sf_clr_function){ .begin = 4 * i, .end = 4 * i + 4 };
	range = (struct sf_clr_range){ .code = SF_CLR_CODE_PRECOMPILED, .base = CODE, .ready = READY, .functions = functions };
	return 0;
}

static int destroy(void **state)
{
	(void)state;
	free(functions);
	return 0;
}

static uint64_t method_of(uint32_t function)
{
	return sf_clr_precompiled_method(&description, &memory, &range, &function);
}

static void parts_of_a_method_are_its_own(void **state)
{
	uint32_t function = 2;

	(void)state;
	assert_int_equal(method_of(0), FIRST);
	assert_int_equal(method_of(1), SECOND);
	assert_int_equal(sf_clr_precompiled_method(&description, &memory, &range, &function), SECOND);
	assert_int_equal(function, 1);
	assert_int_equal(method_of(3), FIRST);
	put(READY + 16, 0);                 /* no cold parts */
	assert_int_equal(method_of(3), SECOND);
}

/* Of a process that has ended a part of the tables may be at hand. The method before is another one. */
static void what_cannot_be_read_has_no_method(void **state)
{
	(void)state;
	unread = BUCKET(1);
	assert_int_equal(method_of(0), FIRST);
	assert_int_equal(method_of(1), 0);
	assert_int_equal(method_of(2), 0);
	unread = READY + 8;
	assert_int_equal(method_of(3), 0);
	unread = READY + 16;
	assert_int_equal(method_of(3), 0);
	unread = 0;
	put(READY + 8, END);                /* pairs that cannot be read */
	assert_int_equal(method_of(3), 0);
}

static void tables_that_the_runtime_does_not_have(void **state)
{
	(void)state;
	description.layout.fields[SF_CLR_READY_COLD] = SF_CLR_NO_FIELD;
	assert_int_equal(method_of(1), SECOND);
	assert_int_equal(method_of(3), SECOND);
	description.layout.fields[SF_CLR_READY_METHODS] = SF_CLR_NO_FIELD;
	assert_int_equal(method_of(1), 0);
	assert_int_equal(method_of(7), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(parts_of_a_method_are_its_own, make, destroy),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_has_no_method, make, destroy),
		cmocka_unit_test_setup_teardown(tables_that_the_runtime_does_not_have, make, destroy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

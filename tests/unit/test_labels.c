/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels where the buffer is full: none is in a sample that the stream does not have, and one that found no room is
 * told later.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/threads/thread_entries.h"
#include "agent/threads/thread_register.h"
#include "frozen/signal/handler.h"
#include "stream/record.h"

#define RING 4096u

static struct sf_outbox_header *box;

static int begin(void **state)
{
	(void)state;
	box = aligned_alloc(4096, (sizeof(*box) + RING + 4095) / 4096 * 4096);
	memset(box, 0, sizeof(*box) + RING);
	atomic_store(&sf_handler.output.outbox, sf_outbox_init(box, RING, SF_STREAM_VERSION));
	sf_agent_labels_begin();
	return 0;
}

static int end(void **state)
{
	(void)state;
	atomic_store(&sf_handler.output.outbox, NULL);
	sf_agent_thread_label("key", NULL, NULL);
	free(box);
	return 0;
}

/* Reads all, and says how many labels there were; *last: the number of the last one. */
static unsigned drain(uint32_t *last)
{
	uint64_t bytes[128];
	unsigned n = 0;

	while (sf_outbox_get(box, RING, bytes, sizeof(bytes)) > 0) {
		const struct sf_stream_label *label = (const void *)bytes;

		if (label->header.type != SF_STREAM_LABEL)
			continue;
		*last = label->number;
		n++;
	}
	return n;
}

static uint32_t own_label(void)
{
	return atomic_load(&sf_agent_find_own_entry()->label);
}

static bool set(unsigned i, struct sf_error *err)
{
	char value[200];

	snprintf(value, sizeof(value), "%u %0150d", i, 0);
	*err = (struct sf_error){ 0 };
	return sf_agent_thread_label("key", value, err);
}

static void test_full(void **state)
{
	uint32_t last = 0, refused;
	struct sf_error err;
	unsigned n = 0;

	(void)state;
	while (set(n, &err))
		assert_int_equal(own_label(), ++n);
	assert_int_equal(err.os_errno, EAGAIN);
	assert_int_equal(own_label(), 0);        /* and not that of the last one */
	assert_true(n > 5);
	assert_int_equal(drain(&last), n);
	assert_int_equal(last, n);
	refused = n;
	assert_true(set(refused, &err));         /* as if it were new */
	assert_int_equal(drain(&last), 1);
	assert_int_equal(last, own_label());
	assert_true(set(refused, &err));
	assert_int_equal(drain(&last), 0);       /* once is enough */
}

/* Of a hundred labels a new stream begins with the one that is in use. */
static void test_next_stream(void **state)
{
	uint32_t last = 0, kept;
	struct sf_error err;

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		assert_true(set(i, &err));
		drain(&last);
	}
	kept = own_label();
	sf_agent_labels_begin();
	assert_int_equal(drain(&last), 1);
	assert_int_equal(last, kept);
	assert_true(set(3, &err));
	assert_int_equal(drain(&last), 1);
	assert_int_equal(last, own_label());
}

static void test_wrong(void **state)
{
	char longer[300];
	struct sf_error err;

	(void)state;
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	assert_true(set(1, &err));
	assert_false(sf_agent_thread_label("key", longer, &err));
	assert_int_equal(own_label(), 0);
	assert_true(set(1, &err));
	assert_false(sf_agent_thread_label(NULL, "value", &err));
	assert_int_equal(own_label(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_full, begin, end),
		cmocka_unit_test_setup_teardown(test_next_stream, begin, end),
		cmocka_unit_test_setup_teardown(test_wrong, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* How long the service thread waits for a reader that makes no room, by a clock that goes on only while it waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/service/service_state.h"
#include "frozen/signal/handler.h"
#include "stream/record.h"

#define RING 4096u
#define SECOND UINT64_C(1000000000)

static uint64_t now_ns = SECOND;
static struct sf_service keep;
static struct sf_outbox_header *box;

uint64_t __wrap_sf_now_ns(void);
uint64_t __wrap_sf_raw_now_ns(void);
void __wrap_sf_raw_futex_wait(const void *word, uint32_t value, uint64_t timeout_ns);

uint64_t __wrap_sf_now_ns(void)
{
	return now_ns;
}

uint64_t __wrap_sf_raw_now_ns(void)
{
	return now_ns;
}

void __wrap_sf_raw_futex_wait(const void *word, uint32_t value, uint64_t timeout_ns)
{
	(void)word, (void)value;
	assert_true(timeout_ns > 0); /* else for ever */
	now_ns += timeout_ns;
}

static int make_outbox(void **state)
{
	(void)state;
	box = aligned_alloc(64, sizeof(*box) + RING);
	memset(box, 0, sizeof(*box) + RING);
	sf_handler.output.outbox = sf_outbox_init(box, RING, SF_STREAM_VERSION);
	keep = (struct sf_service){ .channel = SF_NO_OWN_FD };
	return 0;
}

static int free_outbox(void **state)
{
	(void)state;
	sf_handler.output.outbox = NULL;
	free(box);
	return 0;
}

static bool put(void)
{
	const char text[248] = "";
	const struct sf_outbox_piece piece = { text, sizeof(text) };

	return sf_stream_writer_put(&keep, SF_STREAM_NOTE, &piece, 1);
}

static uint64_t waited_for(bool expected)
{
	uint64_t before_ns = now_ns;

	assert_int_equal(put(), expected);
	return now_ns - before_ns;
}

static void fill(void)
{
	while (waited_for(atomic_load(&box->head) - atomic_load(&box->tail) < RING) == 0)
		;
}

/* Thousands of places and names are told at the end, and the process ends when that is done. */
static void a_reader_that_stands_is_waited_for_once(void **state)
{
	uint64_t before_ns = now_ns;

	(void)state;
	fill();
	assert_in_range(now_ns - before_ns, 2 * SECOND, 3 * SECOND);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(waited_for(false), 0);
	assert_int_equal(atomic_load(&box->lost), 0); /* who puts them counts them */
}

static void one_that_goes_on_is_waited_for_again(void **state)
{
	char record[512];

	(void)state;
	fill();
	assert_int_equal(waited_for(false), 0);
	assert_int_equal(sf_outbox_get(box, RING, record, sizeof(record)), 1);
	assert_int_equal(waited_for(true), 0);
	assert_in_range(waited_for(false), 2 * SECOND, 3 * SECOND);
	assert_int_equal(waited_for(false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_reader_that_stands_is_waited_for_once, make_outbox,
						free_outbox),
		cmocka_unit_test_setup_teardown(one_that_goes_on_is_waited_for_again, make_outbox,
						free_outbox),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

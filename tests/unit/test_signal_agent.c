/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One agent, read by the signal engine: whoever writes faster than is read has no more than its turn. The sink of
 * these tests is the agent: it writes a record for each that it is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capture/signal/signal_engine.h"
#include "stream/record.h"
#include "stream_builder.h"

#define RING (64u << 10)
#define ENDLESS 2000000u         /* more than any turn; so many and no more, so that a test that fails ends */

static struct stream_builder built;
static struct sf_capture capture;
static struct sf_signal_agent *agent;
static unsigned n_told;

static bool write_record(void)
{
	const struct sf_record_header *note = stream_last(&built);
	const struct sf_outbox_piece piece = { note + 1, note->size - sizeof(*note) };

	return sf_outbox_put(agent->outbox, note->type, &piece, 1);
}

static bool on_note(void *arg, int32_t pid, const char *text, struct sf_error *err)
{
	(void)arg, (void)pid, (void)text, (void)err;
	if (++n_told < ENDLESS)
		write_record();
	return true;
}

/* Of records that found no room. */
static bool on_loss(void *arg, uint32_t serial, enum sf_loss cause, const struct sf_weight *weight,
		    struct sf_error *err)
{
	(void)arg, (void)serial, (void)weight, (void)err;
	if (cause == SF_LOSS_LATE && ++n_told < ENDLESS)
		write_record();
	return true;
}

static const struct sf_sink sink = { .note = on_note, .loss = on_loss };

/* It samples already, and its ring is full. */
static int begin(void **state)
{
	struct sf_error err = { 0 };
	int ends[2];

	(void)state;
	stream_start(&built);
	stream_loss(&built, 0, SF_LOSS_LATE, 1); /* of which there may be any number */
	capture = (struct sf_capture){ .sink = &sink, .listener = -1 };
	capture.record = malloc(SF_STREAM_MAX_RECORD);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	assert_true(sf_signal_agent_add(&capture, ends[0], getpid(), 1, &err));
	close(ends[1]);
	agent = capture.agents.items[0];
	agent->mapped_size = sizeof(struct sf_outbox_header) + RING;
	agent->outbox = mmap(NULL, agent->mapped_size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(agent->outbox != MAP_FAILED);
	agent->outbox = sf_outbox_init(agent->outbox, RING, SF_STREAM_VERSION);
	agent->ring_size = RING;
	agent->state = SF_SIGNAL_SAMPLING;
	agent->sampled = true;
	n_told = 0;
	while (write_record())
		;
	return 0;
}

static int end(void **state)
{
	(void)state;
	sf_signal_agent_free(agent);
	sf_vec_deinit(&capture.agents);
	free(capture.record);
	return 0;
}

static void a_turn_has_an_end(void **state)
{
	struct sf_error err = { 0 };
	bool more = false;

	(void)state;
	assert_true(sf_signal_agent_drain(&capture, agent, &more, &err));
	assert_true(more);
	assert_in_range(n_told, RING / stream_last(&built)->size, 100000);
	assert_int_equal(agent->state, SF_SIGNAL_SAMPLING);
}

/* Bytes that were in the ring are read, not those that it writes meanwhile. */
static void the_last_turn_has_an_end(void **state)
{
	struct sf_error err = { 0 };
	const unsigned n_held = RING / stream_last(&built)->size;

	(void)state;
	assert_true(sf_signal_agent_end(&capture, agent, NULL, &err));
	assert_in_range(n_told, n_held - 1, n_held + 1);
	assert_int_equal(agent->state, SF_SIGNAL_OVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_turn_has_an_end, begin, end),
		cmocka_unit_test_setup_teardown(the_last_turn_has_an_end, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of .NET's runtime: what is read from their payloads, which may be anything, and the session of EventPipe
 * that the agent starts in a runtime that is a table of functions here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/coreclr/clr_events.h"
#include "agent/coreclr/clr_profiler.h"
#include "frozen/runtime_list.h"
#include "frozen/signal/handler.h"
#include "runtime/coreclr/events.h"
#include "runtime/coreclr/utf16.h"
#include "runtime/events.h"

/* --- payloads, as a runtime of .NET 10 wrote them --- */

#define TICK                                                                                       \
	"\x40\xaf\x01\x00" "\x00\x00\x00\x00" "\x00\x00" "\x40\xaf\x01\x00\x00\x00\x00\x00"        \
	"\x90\xf2\x36\x8e\x63\x7f\x00\x00" "T\0h\0i\0n\0g\0\0\0" "\x00\x00\x00\x00"                \
	"\x50\x90\x81\xb1\x57\x7f\x00\x00" "\x50\x00\x00\x00\x00\x00\x00\x00"
#define THROWN "O\0d\0d\0\0\0" "x\0\0\0" "\0\0\0\0\0\0\0\0" "\x00\x15\x13\x80" "\x10\x00\x00\x00"
#define JITTING                                                                                    \
	"\xa0\x7e\x35\x8e\x63\x7f\x00\x00" "\x00\x40\x25\x8d\x63\x7f\x00\x00" "\x55\x08\x00\x06"   \
	"\xa5\x00\x00\x00" "A\0.\0B\0\0\0" "R\0u\0n\0\0\0" "v\0o\0i\0d\0\0\0" "\0\0"

static const struct sf_clr_event_kind *kind_of(const char *name)
{
	struct sf_runtime_event_choice choice;

	assert_true(sf_runtime_event_parse(name, &choice, NULL));
	return sf_clr_event_kind(choice.place);
}

static const char *label_of(const char *name, const void *payload, size_t size)
{
	static char text[SF_CLR_MAX_LABEL];

	memset(text, 'x', sizeof(text));
	sf_clr_event_label(kind_of(name), payload, size, text);
	assert_non_null(memchr(text, 0, sizeof(text)));
	return text;
}

static void types_and_amounts_are_read(void **state)
{
	const uint32_t reason = 1;

	(void)state;
	assert_int_equal(sf_clr_event_amount(kind_of("allocation"), (const uint8_t *)TICK, sizeof(TICK) - 1), 0x1af40);
	assert_string_equal(label_of("allocation", TICK, sizeof(TICK) - 1), "Thing");
	assert_int_equal(sf_clr_event_size(kind_of("allocation"), (const uint8_t *)TICK, sizeof(TICK) - 1), 0x50);
	assert_int_equal(sf_clr_event_size(kind_of("exception"), (const uint8_t *)THROWN, sizeof(THROWN) - 1), 0);
	assert_int_equal(sf_clr_event_amount(kind_of("exception"), (const uint8_t *)THROWN, sizeof(THROWN) - 1), 1);
	assert_string_equal(label_of("exception", THROWN, sizeof(THROWN) - 1), "Odd");
	assert_string_equal(label_of("jit", JITTING, sizeof(JITTING) - 1), "A.B.Run");
	assert_string_equal(label_of("gc", &reason, sizeof(reason)), "induced");
	assert_string_equal(label_of("contention", "\0\0\0", 3), "");
}

/* Each length, in memory that ends there, so that a sanitizer sees a read beyond it. */
static void short_payloads_have_less(void **state)
{
	static const struct { const char *event; const void *payload; size_t size; } cases[] = {
		{ "allocation", TICK, sizeof(TICK) - 1 },
		{ "exception", THROWN, sizeof(THROWN) - 1 },
		{ "jit", JITTING, sizeof(JITTING) - 1 },
		{ "gc", "\x01\x00\x00\x00", 4 },
		{ "class-load", TICK, sizeof(TICK) - 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct sf_clr_event_kind *kind = kind_of(cases[i].event);

		for (size_t size = 0; size <= cases[i].size; size++) {
			uint8_t *copy = malloc(size + !size);

			memcpy(copy, cases[i].payload, size);
			assert_int_equal(sf_clr_event_amount(kind, copy, size), !kind->amount_at ? 1 : size < 18 ? 0 : 0x1af40);
			label_of(cases[i].event, copy, size);
			assert_int_equal(sf_clr_event_size(kind, copy, size), i == 0 && size == cases[i].size ? 0x50 : 0);
			free(copy);
		}
	}
	assert_string_equal(label_of("allocation", TICK, 26), "");
	assert_string_equal(label_of("allocation", TICK, 30), "Th");
	assert_string_equal(label_of("jit", JITTING, 24 + 8), "A.B.");
}

static void hostile_payloads_are_bounded(void **state)
{
	static uint8_t endless[16384];
	const uint32_t reasons[] = { 10, 255, UINT32_MAX };

	(void)state;
	memset(endless, 'a', sizeof(endless)); /* no zero: units of 0x6161 */
	assert_in_range(strlen(label_of("exception", endless, sizeof(endless))), 900, SF_CLR_MAX_LABEL - 1);
	assert_in_range(strlen(label_of("jit", endless, sizeof(endless))), 900, SF_CLR_MAX_LABEL - 1);
	assert_int_equal(sf_clr_event_amount(kind_of("allocation"), endless, sizeof(endless)), 0); /* no program allocates so much */
	memset(endless, 0xff, sizeof(endless));
	assert_int_equal(sf_clr_event_amount(kind_of("allocation"), endless, sizeof(endless)), 0);
	assert_int_equal(sf_clr_event_size(kind_of("allocation"), endless, sizeof(endless)), 0);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		assert_string_equal(label_of("gc", &reasons[i], sizeof(reasons[i])), "");
}

/* A program may name a type so. Exports have texts in UTF-8, which has no halves of pairs. */
static void half_of_a_pair_is_replaced(void **state)
{
	const uint16_t pair[] = { 'a', 0xd83d, 0xde00, 0 }, high[] = { 0xd83d, 'b', 0 }, low[] = { 0xde00, 'c', 0 };
	const struct sf_reader reader = { .window = (const uint8_t *)pair, .window_size = sizeof(pair) };
	char text[16];

	(void)state;
	assert_string_equal(label_of("exception", pair, sizeof(pair)), "a\xf0\x9f\x98\x80");
	assert_string_equal(label_of("exception", high, sizeof(high)), "\xef\xbf\xbd" "b");
	assert_string_equal(label_of("exception", low, sizeof(low)), "\xef\xbf\xbd" "c");
	assert_string_equal(label_of("exception", high, 2), "\xef\xbf\xbd"); /* the payload ends within the pair */
	sf_clr_read_utf16(&reader, 0, 2, text, sizeof(text));
	assert_string_equal(text, "a\xef\xbf\xbd"); /* the text does */
}

/* --- what the user gives --- */

static void names_are_those_of_the_list(void **state)
{
	struct sf_runtime_event_choice choice;
	struct sf_error err = { 0 };

	(void)state;
	for (size_t i = 0; sf_clr_event_shown(i); i++)
		assert_non_null(strstr(SF_RUNTIME_EVENT_NAMES, sf_clr_event_shown(i)->name));
	assert_true(sf_runtime_event_parse("allocation=5000", &choice, &err));
	assert_int_equal(choice.each, 5000);
	assert_string_equal(choice.event->unit, "bytes");
	assert_true(sf_runtime_event_parse("exception/3", &choice, &err));
	assert_int_equal(choice.each, 3);
	assert_true(sf_runtime_event_parse("gc", &choice, &err));
	assert_int_equal(choice.each, 0);
	assert_false(sf_runtime_event_parse("gc/", &choice, &err));
	assert_false(sf_runtime_event_parse("gc/-1", &choice, &err));
	assert_false(sf_runtime_event_parse("gc/99999999999999999999", &choice, &err));
	assert_false(sf_runtime_event_parse("exceptions", &choice, &err));
	assert_non_null(strstr(err.text, "class-load"));
	assert_false(sf_runtime_has_event("page-faults"));
	assert_true(sf_runtime_has_event("jit/0"));
}

/* --- a session --- */

static struct {
	int32_t result;
	unsigned n_sessions;
	uint32_t high, level;
	uint64_t keywords;
	char provider[64];
} runtime;

static int32_t query(void *self, const void *id, void **ret)
{
	(void)id;
	*ret = self;
	return 0;
}

static uint32_t release(void *self)
{
	(void)self;
	return 0;
}

static int32_t set_events(void *self, uint32_t low, uint32_t high)
{
	(void)self;
	(void)low;
	runtime.high = high;
	return 0;
}

static int32_t start_session(void *self, uint32_t n, const struct sf_clr_provider *providers, int32_t rundown, uint64_t *ret)
{
	(void)self;
	assert_int_equal(n, 1);
	assert_false(rundown);
	runtime.n_sessions++;
	runtime.keywords = providers->keywords;
	runtime.level = providers->level;
	for (size_t i = 0; i < sizeof(runtime.provider) && (i == 0 || providers->name[i - 1]); i++)
		runtime.provider[i] = (char)providers->name[i];
	*ret = 77;
	return runtime.result;
}

static void *functions[115] = { [0] = (void *)query, [2] = (void *)release, [58] = (void *)release, [82] = (void *)set_events,
				[101] = (void *)start_session };
static void *const *object = functions;

static void deliver(uint32_t id, const void *payload, size_t size)
{
	const struct sf_clr_event event = { .id = id, .data = payload, .size = (uint32_t)size };

	for (unsigned i = 0; i < SF_CLR_MAX_PARTS; i++) {
		const struct sf_clr_part *part = sf_clr_profiler_part(i);

		if (part)
			part->event_delivered(&event);
	}
}

static bool begin(const char *event)
{
	struct sf_agent_options options = { 0 };
	struct sf_error err = { 0 };

	if (event)
		assert_true(sf_runtime_event_parse(event, &options.wanted_event, &err));
	return sf_clr_events_begin(&options, &err);
}

static void the_session_has_the_event(void **state)
{
	(void)state;
	assert_true(begin("allocation"));
	assert_int_equal(sf_clr_profiler_arrive((struct sf_clr_unknown *)(void *)&object), SF_CLR_OK);
	assert_int_equal(runtime.n_sessions, 1);
	assert_int_equal(runtime.high, SF_CLR_HIGH_MONITOR_EVENT_PIPE);
	assert_int_equal(runtime.keywords, 1);
	assert_int_equal(runtime.level, 5);
	assert_string_equal(runtime.provider, "Microsoft-Windows-DotNETRuntime");

	sf_event_meter_init(&sf_handler.event, 1000000000, 1000, 1);
	deliver(10, TICK, sizeof(TICK) - 1);
	assert_int_equal(sf_handler.event.counted, 0); /* the profile has not begun */
	atomic_store(&sf_handler.event.on, true);
	deliver(10, TICK, sizeof(TICK) - 1);
	deliver(10, TICK, 12);                         /* too short for an amount */
	deliver(11, TICK, sizeof(TICK) - 1);           /* another event of the same keyword */
	assert_int_equal(sf_handler.event.counted, 0x1af40);
	atomic_store(&sf_handler.event.on, false);
	sf_clr_profiler_shut_down();
	sf_clr_events_end();
	assert_null(sf_clr_profiler_part(0));
}

static void nothing_is_wanted_without_an_event(void **state)
{
	(void)state;
	runtime.n_sessions = 0;
	assert_true(begin(NULL));
	assert_null(sf_clr_profiler_part(0));
	assert_int_not_equal(sf_clr_profiler_arrive((struct sf_clr_unknown *)(void *)&object), SF_CLR_OK);
	assert_int_equal(runtime.n_sessions, 0);
	sf_clr_events_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_and_amounts_are_read),
		cmocka_unit_test(short_payloads_have_less),
		cmocka_unit_test(hostile_payloads_are_bounded),
		cmocka_unit_test(half_of_a_pair_is_replaced),
		cmocka_unit_test(names_are_those_of_the_list),
		cmocka_unit_test(the_session_has_the_event),
		cmocka_unit_test(nothing_is_wanted_without_an_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* CoreCLR's description of itself, in all forms of numbers, and descriptions that lie; and maps from native to IL offsets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "recorded.h"
#include "runtime/coreclr/debug_info.h"
#include "runtime/coreclr/description.h"
#include "runtime/coreclr/json.h"
#include "runtime/coreclr/versions.h"

#define DESCRIPTOR 0x1000
#define JSON 0x2000
#define POINTERS 0x6000
#define SIZE 0x1000

static struct recorded r;

static const char text[] =
	"{\"version\":0,\"baseline\":\"empty\",\"contracts\":{\"ExecutionManager\":2,\"Thread\":1},"
	"\"types\":{\"Thread\":{\"!\":900,\"OSId\":296,\"LinkNext\":[112,\"pointer\"],\"Frame\":\"0x8\",\"New\":[[1]]},"
	"\"MethodDescChunk\":{\"!\":24}},"
	"\"globals\":{\"ThreadStore\":[[1],\"pointer\"],\"ExecutionManagerCodeRangeMapAddress\":[[2],\"pointer\"],"
	"\"StubCodeBlockLast\":[\"0xf\",\"uint8\"],\"InlinedCallFrameIdentifier\":[\"0x1\",\"nuint\"],"
	"\"MethodDescTokenRemainderBitCount\":12,\"Architecture\":[\"x64\",\"string\"]}}";

static void put_json(const char *json)
{
	recorded_bytes(&r, JSON, json, strlen(json));
	recorded_put32(&r, DESCRIPTOR + 12, (uint32_t)strlen(json));
}

static int start(void **state)
{
	(void)state;
	recorded_init(&r, &sf_arch_x86_64);
	recorded_memory(&r, DESCRIPTOR, SIZE);
	recorded_memory(&r, JSON, SIZE);
	recorded_memory(&r, POINTERS, SIZE);
	recorded_put(&r, DESCRIPTOR, UINT64_C(0x0043414443434e44));
	recorded_put32(&r, DESCRIPTOR + 8, 1);
	recorded_put(&r, DESCRIPTOR + 16, JSON);
	recorded_put32(&r, DESCRIPTOR + 24, 3);
	recorded_put(&r, DESCRIPTOR + 32, POINTERS);
	recorded_put(&r, POINTERS + 8, 0x5001);
	recorded_put(&r, POINTERS + 16, 0x5002);
	put_json(text);
	return 0;
}

static void all_forms_of_numbers(void **state)
{
	struct sf_clr_description description;

	(void)state;
	assert_true(sf_clr_describe(&r.still.memory, DESCRIPTOR, &description, NULL));
	assert_int_equal(description.layout.fields[SF_CLR_THREAD_OS_ID], 296);
	assert_int_equal(description.layout.fields[SF_CLR_THREAD_LINK], 112);
	assert_int_equal(description.layout.fields[SF_CLR_THREAD_FRAME], 8);
	assert_false(sf_clr_has(&description.layout, SF_CLR_THREAD_STATE));
	assert_int_equal(description.layout.sizes[SF_CLR_SIZE_CHUNK], 24);
	assert_int_equal(description.thread_store, 0x5001);
	assert_int_equal(description.range_map, 0x5002);
	assert_int_equal(description.layout.last_stub_kind, 15);
	assert_int_equal(description.layout.frames[SF_CLR_FRAME_INLINED_CALL], 1);
	assert_int_equal(description.token_bits, 12);
	assert_int_equal(description.execution, 2);
}

static void what_lacks_is_said(void **state)
{
	struct sf_clr_description description;
	struct sf_error err = { 0 };

	(void)state;
	assert_true(sf_clr_describe(&r.still.memory, DESCRIPTOR, &description, &err));
	assert_false(sf_clr_check_description(&description, &err));
	assert_non_null(strstr(err.text, "lacks"));
	assert_int_equal(err.code, SF_E_UNSUPPORTED);
}

/* Each of these is refused, or gives nothing. */
static void descriptions_that_lie(void **state)
{
	static const char *const bad[] = {
		"", "{", "[[[[[[1]]]]]]", "{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":1}}}}}", "{\"types\":{\"Thread\":{\"OSId\":", "{\"x\"",
		"{\"baseline\":\"net9\"}", "{\"globals\":{\"Architecture\":\"arm64\"}}",
	};
	struct sf_clr_description description;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		start(state);
		put_json(bad[i]);
		assert_false(sf_clr_describe(&r.still.memory, DESCRIPTOR, &description, NULL));
	}
	start(state);
	put_json("{\"types\":{\"Thread\":{\"OSId\":99999999999999999999,\"State\":40000,\"Frame\":-8}},"
		 "\"globals\":{\"ThreadStore\":[[3],\"pointer\"],\"MethodDescTokenRemainderBitCount\":60}}");
	assert_true(sf_clr_describe(&r.still.memory, DESCRIPTOR, &description, NULL));
	assert_false(sf_clr_has(&description.layout, SF_CLR_THREAD_OS_ID));
	assert_false(sf_clr_has(&description.layout, SF_CLR_THREAD_STATE));
	assert_false(sf_clr_has(&description.layout, SF_CLR_THREAD_FRAME));
	assert_int_equal(description.thread_store, 0);
	assert_int_equal(description.token_bits, 0);
	start(state);
	recorded_put32(&r, DESCRIPTOR + 12, 0x7fffffff);
	assert_false(sf_clr_describe(&r.still.memory, DESCRIPTOR, &description, NULL));
	recorded_put(&r, DESCRIPTOR, 1);
	assert_false(sf_clr_describe(&r.still.memory, DESCRIPTOR, &description, NULL));
}

/* The library's addresses are not relocated yet: a later attempt may read what is there then. */
static void what_is_not_there_yet_is_no_lie(void **state)
{
	static const uint64_t at[] = { DESCRIPTOR + 16, DESCRIPTOR + 32 };
	struct sf_clr_description description;

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		struct sf_error err = { 0 };

		start(state);
		recorded_put(&r, at[i], 0x900000);
		assert_false(sf_clr_describe(&r.still.memory, DESCRIPTOR, &description, &err));
		assert_int_equal(err.code, SF_E_GONE);
	}
}

/* .NET 8 has no descriptor: all is from its table, and the variables from g_dacTable. */
static void a_version_by_its_table(void **state)
{
	struct sf_clr_description description;

	(void)state;
	recorded_put(&r, POINTERS, 0x7001);
	recorded_put(&r, POINTERS + 16 * 8, 0x7002);
	assert_true(sf_clr_describe(&r.still.memory, 0, &description, NULL));
	assert_false(sf_clr_complete(&r.still.memory, 7, POINTERS, &description));
	assert_int_equal(sf_clr_major("8.0.3126.42015"), 8);
	assert_true(sf_clr_complete(&r.still.memory, 8, POINTERS, &description));
	assert_true(sf_clr_check_description(&description, NULL));
	assert_int_equal(description.range_map, 0x7001);
	assert_int_equal(description.thread_store, 0x7002);
	assert_int_equal(description.layout.nibble_map, 1);
	assert_true(description.has_nibble_maps);
}

/*
 * Flags 0; bounds of 5 bytes, no variables. In the bounds: 2 entries, 4 bits of native and 4 bits of IL offsets, then
 * from the lowest bit on, for each entry: 2 bits of source, the native difference, the IL offset + 3. They say (0, IL
 * 0), (8, IL 5).
 */
static const uint8_t blob[] = { 0, 0x05, 0x32, 0x03, 0xc0, 0x80, 0x08 };

static void il_offsets(void **state)
{
	struct sf_clr_description description = { .patchpoint_n = 16, .patchpoint_size = 40 };
	uint8_t made[sizeof(blob)];
	uint32_t il;

	(void)state;
	memcpy(made, blob, sizeof(made));
	assert_true(sf_clr_find_il(&description, made, sizeof(made), true, 0, &il));
	assert_int_equal(il, 0);
	assert_true(sf_clr_find_il(&description, made, sizeof(made), true, 7, &il));
	assert_int_equal(il, 0);
	assert_true(sf_clr_find_il(&description, made, sizeof(made), true, 8, &il));
	assert_int_equal(il, 5);
	assert_true(sf_clr_find_il(&description, made + 1, sizeof(made) - 1, false, 8, &il));
	for (size_t n = 0; n < 6; n++)
		assert_false(sf_clr_find_il(&description, made, n, true, 8, &il));
	made[0] = 0x40;
	assert_false(sf_clr_find_il(&description, made, sizeof(made), true, 8, &il));
	made[0] = 3;
	assert_false(sf_clr_find_il(&description, made, sizeof(made), true, 8, &il));
}

/* The same map as .NET 8 and 9 pack it: 2 entries, and of each three numbers of nibbles. */
static const uint8_t nibbles[] = { 0, 0x05, 0x02, 0x13, 0x09, 0x09, 0x01 };

static void il_offsets_in_nibbles(void **state)
{
	const struct sf_clr_description description = { .has_nibble_maps = true, .patchpoint_n = 8, .patchpoint_size = 32 };
	uint8_t made[sizeof(nibbles)];
	uint32_t il;

	(void)state;
	memcpy(made, nibbles, sizeof(made));
	assert_true(sf_clr_find_il(&description, made, sizeof(made), true, 7, &il));
	assert_int_equal(il, 0);
	assert_true(sf_clr_find_il(&description, made, sizeof(made), true, 8, &il));
	assert_int_equal(il, 5);
	assert_true(sf_clr_find_il(&description, made + 1, sizeof(made) - 1, false, 8, &il));
	for (size_t n = 0; n < sizeof(made); n++)
		assert_false(sf_clr_find_il(&description, made, n, true, 8, &il));
	made[2] = 0x03; /* an entry more than there are */
	assert_false(sf_clr_find_il(&description, made, sizeof(made), true, 9, &il));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_forms_of_numbers, start),
		cmocka_unit_test_setup(what_lacks_is_said, start),
		cmocka_unit_test_setup(descriptions_that_lie, start),
		cmocka_unit_test_setup(what_is_not_there_yet_is_no_lie, start),
		cmocka_unit_test_setup(a_version_by_its_table, start),
		cmocka_unit_test(il_offsets),
		cmocka_unit_test(il_offsets_in_nibbles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The request to a virtual machine's attach socket, and its possible answers: also bytes that cannot be an answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "form.h"
#include "runtime/hotspot/load.h"

static const char *const load[SF_JVM_LOAD_ARGUMENTS] = { "/a.so", "true", "listen" };

static void test_requests(void **state)
{
	static const char v1[] = "1\0load\0/a.so\0true\0listen";
	static const char v2[] = "2\0" "23\0load\0/a.so\0true\0listen";
	char bytes[64];

	(void)state;
	assert_int_equal(sf_jvm_load_request(1, "load", load, bytes, sizeof(bytes)), sizeof(v1));
	assert_memory_equal(bytes, v1, sizeof(v1));
	assert_int_equal(sf_jvm_load_request(2, "load", load, bytes, sizeof(bytes)), sizeof(v2));
	assert_memory_equal(bytes, v2, sizeof(v2));
	for (size_t room = 0; room < sizeof(v1); room++)
		assert_int_equal(sf_jvm_load_request(1, "load", load, bytes, room), 0);
}

static void test_versions(void **state)
{
	char longest[SF_JVM_LOAD_MAX_V1 + 2];
	const char *const arguments[SF_JVM_LOAD_ARGUMENTS] = { longest, "true", "" };

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[SF_JVM_LOAD_MAX_V1] = 0;
	assert_true(sf_jvm_load_fits_v1(arguments));
	longest[SF_JVM_LOAD_MAX_V1] = 'x';
	longest[SF_JVM_LOAD_MAX_V1 + 1] = 0;
	assert_false(sf_jvm_load_fits_v1(arguments));
	assert_true(sf_jvm_load_knows_v2("0\n2", 3));
	assert_true(sf_jvm_load_knows_v2("0\n2 streaming", 13));
	assert_false(sf_jvm_load_knows_v2("0\n1", 3));
	assert_false(sf_jvm_load_knows_v2("0\n", 2));
	assert_false(sf_jvm_load_knows_v2("-1\nOperation getversion not recognized!\n", 40));
}

/* A machine's answer, whether it is a success, and its part in the message. To add one: a line. */
static const struct {
	const char *reply;
	bool ok;
	const char *says;
} replies[] = {
	{ "0\nreturn code: 0\n", true, NULL },
	{ "0\nreturn code: 0", true, NULL },
	{ "0\n0", true, NULL },                            /* JDK 8 */
	{ "0\nreturn code: 1\n", false, "return code: 1" },
	{ "0\nreturn code: 01\n", false, "return code: 01" },
	{ "-1\nreturn code: 0\n", false, "return code: 0" },
	{ "-1\n/a.so was not loaded.\n/a.so: cannot open\n", false, "/a.so was not loaded. /a.so: cannot open" },
	{ "0\n/a.so was not loaded.\n", false, "was not loaded" },  /* JDK 24 on */
	{ "-1\nDynamic agent loading is not enabled. Use -XX:+...\n", false, "-XX:-EnableDynamicAgentLoading" },
	{ "101\n", false, "does not say why" },
	{ "", false, "does not say why" },
	{ "\n", false, "does not say why" },
	{ "-", false, "-" },
	{ "0", false, "does not say why" },
	{ "99999999999999999999\nx", false, "99999999999999999999 x" },
	{ "0x\nreturn code: 0\n", false, "0x return code: 0" },
	{ "no number at all", false, "no number at all" },
	{ "0\n\x1b[31mred\x1b[0m\xff", false, "[31mred" },
};

static void assert_clean(const char *text)
{
	for (; *text; text++)
		assert_true((unsigned char)*text == '\n' || (*text >= ' ' && *text <= '~'));
}

static void test_replies(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(replies) / sizeof(*replies); i++) {
		struct sf_error err = { 0 };
		bool ok = sf_jvm_load_judge(replies[i].reply, strlen(replies[i].reply), 42, &err);

		if (ok != replies[i].ok || (!ok && !strstr(err.text, replies[i].says)))
			fail_msg("'%s': %s", replies[i].reply, err.text);
		assert_clean(err.text);
	}
}

/* Bytes of all kinds, in memory of exactly their size: read over its end, valgrind and sanitizers would say so. */
static void test_garbage(void **state)
{
	static const char parts[] = "0123-\n return code: 0\0\x1b\xff";
	const int n = is_long_form() ? 20000 : 5000;
	unsigned seed = 1;

	(void)state;
	for (int i = 0; i < n; i++) {
		size_t size = (size_t)(rand_r(&seed) % 600);
		char *bytes = malloc(size ? size : 1);
		struct sf_error err = { 0 };

		assert_non_null(bytes);
		for (size_t j = 0; j < size; j++)
			bytes[j] = parts[(size_t)rand_r(&seed) % (sizeof(parts) - 1)];
		if (!sf_jvm_load_judge(bytes, size, 42, &err))
			assert_clean(err.text);
		sf_jvm_load_knows_v2(bytes, size);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_replies),
		cmocka_unit_test(test_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for people, and hostile text made fit for a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/output.h"

static void numbers(void **state)
{
	static const struct {
		char *(*format)(char *, uint64_t);
		uint64_t value;
		const char *text;
	} cases[] = {
		{ sf_format_time, 0, "0 ns" },
		{ sf_format_time, 999, "999 ns" },
		{ sf_format_time, 4500, "4.5 us" },
		{ sf_format_time, 12300000, "12.3 ms" },
		{ sf_format_time, 999999999, "999.9 ms" },
		{ sf_format_time, 1234567890, "1.234 s" },
		{ sf_format_time, 1004000000, "1.004 s" },
		{ sf_format_time, 30000000000, "30.0 s" },
		{ sf_format_time, UINT64_MAX, "18446744073.7 s" },
		{ sf_format_count, 0, "0" },
		{ sf_format_count, 999, "999" },
		{ sf_format_count, 1000, "1,000" },
		{ sf_format_count, 29871, "29,871" },
		{ sf_format_count, UINT64_MAX, "18,446,744,073,709,551,615" },
		{ sf_format_bytes, 12, "12 B" },
		{ sf_format_bytes, 1500, "1.5 kB" },
		{ sf_format_bytes, 21000000, "21.0 MB" },
		{ sf_format_bytes, UINT64_MAX, "18446744.0 TB" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[32];

		assert_ptr_equal(cases[i].format(text, cases[i].value), text);
		assert_string_equal(text, cases[i].text);
	}
}

static void cut(const char *text, int columns, const char *expected)
{
	SF_CLEANUP(free) char *written = NULL;
	size_t size;
	FILE *file = open_memstream(&written, &size);

	assert_non_null(file);
	sf_print_cut(file, text, columns);
	assert_int_equal(fclose(file), 0);
	assert_string_equal(written, expected);
}

static void cuts_in_the_middle(void **state)
{
	(void)state;
	cut("abcdef", 6, "abcdef");
	cut("abcdef", 5, "ab…ef");
	cut("abcdef", 4, "ab…f");
	cut("abcdef", 1, "…");
	cut("abcdef", 0, "");
	cut("abcdef", -3, "");
	cut("äöüäöü", 6, "äöüäöü");
	cut("äöüäöü", 3, "ä…ü");
}

static void sanitizes(void **state)
{
	static const struct {
		const char *hostile, *safe;
	} cases[] = {
		{ "plain\ttext", "plain\ttext" },
		{ "größe → 😀", "größe → 😀" },
		{ "\033[31mred\n\r\177", "?[31mred???" },
		{ "\xc2\x9b" "31m", "??31m" },         /* CSI in one character */
		{ "\xc0\xaf", "??" },                  /* an overlong slash */
		{ "\xed\xa0\x80", "???" },             /* half a surrogate pair */
		{ "\xf4\x90\x80\x80", "????" },        /* beyond the last character */
		{ "end \xe2\x82", "end ??" },          /* cut off */
		{ "\xff\x80z", "??z" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[64];

		snprintf(text, sizeof(text), "%s", cases[i].hostile);
		assert_int_equal(sf_is_text(text), strcmp(text, cases[i].safe) == 0);
		sf_sanitize(text);
		assert_string_equal(text, cases[i].safe);
		assert_true(sf_is_text(text));
	}
}

static void no_colour_in_a_file(void **state)
{
	SF_CLEANUP(fclose) FILE *file = tmpfile();
	struct sf_output output;
	(void)state;

	assert_non_null(file);
	setenv("COLUMNS", "100", true);
	assert_int_equal(sf_output_for(file).width, 100);
	unsetenv("COLUMNS");
	output = sf_output_for(file);
	assert_false(output.colour);
	assert_true(output.width > 100000); /* no name is so long */
	assert_ptr_equal(output.file, file);
	assert_string_equal(sf_colour(&output, SF_RED), "");
	output.colour = true;
	assert_string_equal(sf_colour(&output, SF_RED), "\033[31m");
	assert_string_equal(sf_colour(&output, SF_PLAIN), "\033[0m");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(cuts_in_the_middle),
		cmocka_unit_test(sanitizes),
		cmocka_unit_test(no_colour_in_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

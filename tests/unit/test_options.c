/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables: what is accepted, where it goes, and what a user reads when it is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/options.h"

struct values {
	bool json;
	const char *output;
	uint64_t duration, rate;
	uint32_t depth;
	int32_t pid;
	struct sf_pids pids;
	int engine;
};

static const char *const engines[] = { "auto", "signal", "ptrace", NULL };

static const struct sf_option options[] = {
	{ "json", 0, SF_OPTION_FLAG, offsetof(struct values, json), NULL, "JSON." },
	{ "output", 'o', SF_OPTION_STRING, offsetof(struct values, output), "FILE",
	  "Where to write; a rather long text that has to be wrapped somewhere, because it does "
	  "not fit (default: -)." },
	{ "duration", 'd', SF_OPTION_TIME, offsetof(struct values, duration), "TIME", "How long.",
	  .minimum = 1000000 },
	{ "frequency", 'F', SF_OPTION_RATE, offsetof(struct values, rate), "RATE", "How often.",
	  .minimum = 100, .maximum = 10000000 },
	{ "max-depth", 0, SF_OPTION_COUNT, offsetof(struct values, depth), "N", "Frames.",
	  .minimum = 1, .maximum = 16384 },
	{ "pid", 'p', SF_OPTION_PID, offsetof(struct values, pid), "PID", "The process." },
	{ "pids", 'P', SF_OPTION_PIDS, offsetof(struct values, pids), "PID", "The processes." },
	{ "engine", 'e', SF_OPTION_CHOICE, offsetof(struct values, engine), "ENGINE", "Which.",
	  engines },
	{ 0 },
};

static const struct sf_command record = {
	.name = "record",
	.summary = "Record a program.",
	.usage = "[-p PID | -- COMMAND...]",
	.details = "One paragraph of text that goes on over the end of a line and then some, to be "
		   "wrapped.\n\nAnother.\n  kept   as it is\n.dot",
	.examples = "stillframe record -p 42\nstillframe record -- ls",
	.options = options,
	.takes_command = true,
};

static const struct sf_command report = {
	.name = "report", .summary = "Report.", .usage = "FILE", .options = options
};

static const struct sf_command wide = {
	.name = "wide",
	.summary = "Much to say.",
	.usage = "FILE --format FORMAT [-o OUT]",
	.examples = "stillframe wide java-4242.sfr --format collapsed --clock cpu -o - | flamegraph.pl "
		    "> cpu.svg\n"
		    "stillframe wide java-4242.sfr --format collapsed --threads 'a long one; with words'",
	.options = options,
};

#define ARGS(...)                                                                                  \
	(char *[]){ (char *)"command", __VA_ARGS__, NULL }

static int count(char **argv)
{
	int n = 0;

	while (argv[n])
		n++;
	return n;
}

static struct values parse(const struct sf_command *command, char **argv, int *rest)
{
	struct values values = { .depth = 1024 };
	struct sf_error err;

	if (!sf_options_parse(command, count(argv), argv, &values, rest, &err))
		fail_msg("%s", err.text);
	return values;
}

/* The whole message that a user gets. */
static void refuses(const struct sf_command *command, char **argv, const char *text)
{
	struct values values = { 0 };
	struct sf_error err = { 0 };
	int rest;

	assert_false(sf_options_parse(command, count(argv), argv, &values, &rest, &err));
	assert_string_equal(err.text, text);
	assert_int_equal(err.code, SF_E_INPUT);
	assert_false(sf_options_parse(command, count(argv), argv, &values, &rest, NULL));
}

static void every_kind(void **state)
{
	int rest;
	struct values values =
		parse(&record, ARGS("--json", "--output", "f", "--duration=10ms", "-F", "1khz",
				    "--max-depth=7", "-p123", "-e", "ptrace"),
		      &rest);
	(void)state;

	assert_true(values.json);
	assert_string_equal(values.output, "f");
	assert_int_equal(values.duration, 10000000);
	assert_int_equal(values.rate, 1000000);
	assert_int_equal(values.depth, 7);
	assert_int_equal(values.pid, 123);
	assert_int_equal(values.engine, 2);
	assert_int_equal(rest, 11);
}

/* A list, several options, and words behind one; the first word that is no number is the command. */
static void several_pids(void **state)
{
	static const int32_t expected[] = { 3, 1, 2, 5, 7 };
	struct values values;
	int rest;

	(void)state;
	values = parse(&record, ARGS("-P", "3,1,3", "2", "5,1", "--pids=7", "ls", "9"), &rest);
	assert_int_equal(values.pids.n, 5);
	assert_memory_equal(values.pids.items, expected, sizeof(expected));
	assert_int_equal(rest, 6);
	refuses(&record, ARGS("-P", "1,,2"), "-P: '' is not a process number");
	refuses(&record, ARGS("-P", "1", "2,"), "-P: '' is not a process number");
	refuses(&record, ARGS("--pids", "123456789012345678901234567890"),
		"--pids: '123456789012345678901234567890' is not a process number");
}

static void defaults_stay(void **state)
{
	int rest;
	struct values values = parse(&record, ARGS("-d", "1"), &rest);
	(void)state;

	assert_int_equal(values.depth, 1024);
	assert_int_equal(values.duration, 1000000000);
	assert_false(values.json);
}

static void spellings(void **state)
{
	int rest;
	(void)state;

	assert_int_equal(parse(&record, ARGS("--pid", "5"), &rest).pid, 5);
	assert_int_equal(parse(&record, ARGS("--pid=5"), &rest).pid, 5);
	assert_int_equal(parse(&record, ARGS("-p", "5"), &rest).pid, 5);
	assert_int_equal(parse(&record, ARGS("-p5", "-p6"), &rest).pid, 6);
	assert_string_equal(parse(&record, ARGS("-o", "-"), &rest).output, "-");
	assert_string_equal(parse(&record, ARGS("-o", "--json"), &rest).output, "--json");
	assert_string_equal(parse(&record, ARGS("--output="), &rest).output, "");
	assert_string_equal(parse(&record, ARGS("--output=a=b"), &rest).output, "a=b");
}

static void a_command_keeps_its_own_options(void **state)
{
	char **argv = ARGS("-p5", "ls", "--json", "-x");
	int rest;
	(void)state;

	assert_false(parse(&record, argv, &rest).json);
	assert_int_equal(rest, 2);
	assert_string_equal(argv[2], "ls");
	argv = ARGS("--json", "--", "--pid", "x");
	assert_true(parse(&record, argv, &rest).json);
	assert_int_equal(rest, 3);
	assert_string_equal(argv[rest], "--pid");
}

static void files_and_options_mix(void **state)
{
	char **argv = ARGS("a.sfr", "--json", "-", "-p", "5", "b.sfr", "--", "-c", "--json");
	static const char *const expected[] = { "a.sfr", "-", "b.sfr", "-c", "--json" };
	int rest;
	struct values values = parse(&report, argv, &rest);
	(void)state;

	assert_true(values.json);
	assert_int_equal(values.pid, 5);
	assert_int_equal(rest, 5);
	for (int i = 0; i < 5; i++)
		assert_string_equal(argv[rest + i], expected[i]);
}

static void unknown_options(void **state)
{
	(void)state;
	refuses(&record, ARGS("--ouput", "f"),
		"record has no option --ouput\n  Did you mean --output?");
	refuses(&record, ARGS("--freq=9"), "record has no option --freq\n  Did you mean --frequency?");
	refuses(&record, ARGS("--zebra"), "record has no option --zebra");
	refuses(&record, ARGS("-x"), "record has no option -x");
	refuses(&record, ARGS("--=3"), "record has no option --");
}

static void values_missing_or_too_many(void **state)
{
	(void)state;
	refuses(&record, ARGS("--json", "-p"), "-p needs a value: -p PID (`pidof` prints none of a program that does not run)");
	refuses(&record, ARGS("-p", "--json"), "-p needs a value: -p PID (`pidof` prints none of a program that does not run)");
	refuses(&record, ARGS("--pid", "-o", "x"),
		"--pid needs a value: --pid PID (`pidof` prints none of a program that does not run)");
	refuses(&record, ARGS("--output"), "--output needs a value: --output FILE");
	refuses(&record, ARGS("--json=yes"), "--json takes no value");
}

static void bad_numbers(void **state)
{
	(void)state;
	refuses(&record, ARGS("-p", "0"), "-p: '0' is not a process number");
	refuses(&record, ARGS("-p", "-1"), "-p: '-1' is not a process number");
	refuses(&record, ARGS("-p2147483648"), "-p: '2147483648' is not a process number");
	refuses(&record, ARGS("--pid=12x"), "--pid: '12x' is not a process number");
	refuses(&record, ARGS("--pid="), "--pid: '' is not a process number");
	refuses(&record, ARGS("--max-depth=0"), "--max-depth 0 is too small: the least is 1");
	refuses(&record, ARGS("--max-depth", "16385"), "--max-depth 16385 is too large: the most is 16384");
	refuses(&record, ARGS("--max-depth=99999999999999999999"),
		"--max-depth: '99999999999999999999' is not a whole number from 1 to 16384");
	refuses(&record, ARGS("-d", "1us"), "-d 1us is too small: the least is 1.0 ms");
	refuses(&record, ARGS("-d", "soon"), "-d: 'soon' is not a time, such as 10ms, 30s or 2m");
	refuses(&record, ARGS("-F20khz"), "-F 20khz is too large: the most is 10000 hz");
	refuses(&record, ARGS("-F", "fast"), "-F: 'fast' is not a rate, such as 199, 199hz or 1khz");
	refuses(&record, ARGS("--engine=bpf"), "--engine: 'bpf' is none of auto, signal, ptrace");
}

static void times(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{ "10ms", 10000000 },	{ "30s", 30000000000 }, { "2m", 120000000000 },
		{ "1h", 3600000000000 }, { "5", 5000000000 },	{ "0.1", 100000000 },
		{ "1.5us", 1500 },	{ "7ns", 7 },		{ "0", 0 },
		{ "18446744073709551615ns", UINT64_MAX },
	};
	static const char *const bad[] = { "",	  "s",	   "-1",  "+1",	 " 1",	   "1 s", "1.", ".5s",
					   "1ss", "1e3",   "0x1", "10S", "1.2.3s", "1.0000000001",
					   "18446744073709551616ns", "18446744074", "5124096h" };
	(void)state;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		uint64_t ns = 99;

		assert_true(sf_parse_time(good[i].text, &ns, NULL));
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		uint64_t ns = 99;

		if (sf_parse_time(bad[i], &ns, NULL))
			fail_msg("'%s' was taken for a time", bad[i]);
		assert_int_equal(ns, 99);
	}
}

static void rates(void **state)
{
	uint64_t mhz;
	(void)state;

	assert_true(sf_parse_rate("199", &mhz, NULL));
	assert_int_equal(mhz, 199000);
	assert_true(sf_parse_rate("0.5hz", &mhz, NULL));
	assert_int_equal(mhz, 500);
	assert_true(sf_parse_rate("1.5kHz", &mhz, NULL));
	assert_int_equal(mhz, 1500000);
	assert_false(sf_parse_rate("10ms", &mhz, NULL));
	assert_false(sf_parse_rate("99999999999999999khz", &mhz, NULL));
}

/* The output of `print` for the command, from malloc. */
static char *printed(void (*print)(const struct sf_command *, FILE *), const struct sf_command *command)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	print(command, file);
	assert_int_equal(fclose(file), 0);
	return text;
}

static void help_fits_80_columns(void **state)
{
	SF_CLEANUP(free) char *text = printed(sf_options_help, &record);
	(void)state;

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_in_range(strlen(line), 0, 80);
}

static void long_examples_are_wrapped(void **state)
{
	SF_CLEANUP(free) char *text = printed(sf_options_help, &wide);
	(void)state;

	assert_non_null(strstr(text, "\n  stillframe wide java-4242.sfr --format collapsed --clock "
				     "cpu -o - | \\\n      flamegraph.pl > cpu.svg\n"));
	assert_non_null(strstr(text, "--threads \\\n      'a long one; with words'\n"));
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_in_range(strlen(line), 0, 80);
}

static void help_says_everything(void **state)
{
	SF_CLEANUP(free) char *text = printed(sf_options_help, &record);
	(void)state;

	assert_ptr_equal(strstr(text, "Usage: stillframe record [-p PID | -- COMMAND...]\n"), text);
	assert_non_null(strstr(text, "\n  -p, --pid PID           The process.\n"));
	assert_non_null(strstr(text, "\n      --json              JSON.\n"));
	assert_non_null(strstr(text, "\n  -h, --help              show"));
	assert_non_null(strstr(text, "\n\nAnother.\n  kept   as it is\n"));
	assert_non_null(strstr(text, "\nExamples:\n  stillframe record -p 42\n"));
}

static void manual_page_escapes(void **state)
{
	SF_CLEANUP(free) char *text = printed(sf_options_man, &record);
	(void)state;

	assert_ptr_equal(strstr(text, ".TH \"STILLFRAME\\-RECORD\" 1\n"), text);
	assert_non_null(strstr(text, ".TP\n\\fB\\-p\\fR, \\fB\\-\\-pid\\fR \\fIPID\\fR\nThe process.\n"));
	assert_non_null(strstr(text, "\\-\\-max\\-depth"));
	assert_non_null(strstr(text, "\n\\&.dot\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind),
		cmocka_unit_test(several_pids),
		cmocka_unit_test(defaults_stay),
		cmocka_unit_test(spellings),
		cmocka_unit_test(a_command_keeps_its_own_options),
		cmocka_unit_test(files_and_options_mix),
		cmocka_unit_test(unknown_options),
		cmocka_unit_test(values_missing_or_too_many),
		cmocka_unit_test(bad_numbers),
		cmocka_unit_test(times),
		cmocka_unit_test(rates),
		cmocka_unit_test(help_fits_80_columns),
		cmocka_unit_test(long_examples_are_wrapped),
		cmocka_unit_test(help_says_everything),
		cmocka_unit_test(manual_page_escapes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

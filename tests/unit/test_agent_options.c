/* SPDX-License-Identifier: Apache-2.0 */
/* The text of STILLFRAME=: every key, its default, what is refused and how, and that docs/agent.md lists it. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/clocks/clocks.h"
#include "agent/options.h"
#include "agent/interpose/sampling_signal.h"

static struct sf_agent_options parse(const char *text)
{
	struct sf_agent_options options;
	struct sf_error err = { 0 };

	if (!sf_agent_options_parse(&options, text, &err))
		fail_msg("%s: %s", text, err.text);
	return options;
}

/* `part` must be in the message. */
static void refused(const char *text, const char *part)
{
	struct sf_agent_options options;
	struct sf_error err = { 0 };

	assert_false(sf_agent_options_parse(&options, text, &err));
	sf_agent_options_deinit(&options);
	assert_int_equal(err.code, SF_E_INPUT);
	if (!strstr(err.text, part) || strstr(err.text, "--"))
		fail_msg("%s: '%s' is not in \"%s\", or dashes are", text, part, err.text);
}

static void defaults(void **state)
{
	struct sf_agent_options options = parse("");

	(void)state;
	assert_false(options.start);
	assert_false(options.listen);
	assert_false(options.children);
	assert_null(options.connect);
	assert_string_equal(options.out, SF_AGENT_OUT);
	assert_int_equal(options.rate_mhz, 199000);
	assert_int_equal(options.blocked_rate_mhz, 20000);
	assert_int_equal(options.clock, SF_AGENT_BOTH);
	assert_int_equal(options.walk, SF_AGENT_SAMPLER);
	assert_int_equal(options.cpu_clock, 0);
	assert_int_equal(options.signal, 0);
	assert_int_equal(options.only, SF_AGENT_ALL);
	assert_null(options.threads);
	assert_int_equal(options.per_tick, 8);
	assert_int_equal(options.max_depth, SF_DEFAULT_DEPTH);
	assert_int_equal(options.duration_ns, 0);
	sf_agent_options_deinit(&options);
}

static void every_key(void **state)
{
	struct sf_agent_options options =
		parse("out=a b.sfs,rate=1khz,blocked-rate=5,clock=wall,walk=handler,cpu-clock=itimer,"
		      "signal=USR2,only=main,threads=^w,per-tick=0,max-depth=16384,duration=30s,"
		      "children,listen,connect=/s,cache=1:2,pid=7,first=9");

	(void)state;
	assert_true(options.start && options.listen && options.children);
	assert_string_equal(options.out, "a b.sfs");
	assert_int_equal(options.rate_mhz, 1000000);
	assert_int_equal(options.blocked_rate_mhz, 5000);
	assert_int_equal(options.clock, SF_AGENT_WALL);
	assert_int_equal(options.walk, SF_AGENT_HANDLER);
	assert_int_equal(options.cpu_clock, 3);
	assert_int_equal(options.signal, SIGUSR2);
	assert_int_equal(options.only, SF_AGENT_MAIN);
	assert_string_equal(options.threads, "^w");
	assert_int_equal(options.per_tick, 0);
	assert_int_equal(options.max_depth, 16384);
	assert_int_equal(options.duration_ns, 30000000000u);
	assert_string_equal(options.connect, "/s");
	assert_string_equal(options.cache, "1:2");
	assert_int_equal(options.pid, 7);
	assert_int_equal(options.first, 9);
	sf_agent_options_deinit(&options);
}

static void commas(void **state)
{
	struct sf_agent_options options = parse(",threads=a\\,b{1\\,2},,rate=9,");

	(void)state;
	assert_string_equal(options.threads, "a,b{1,2}");
	assert_int_equal(options.rate_mhz, 9000);
	sf_agent_options_deinit(&options);
}

static void a_value_may_look_like_an_option(void **state)
{
	struct sf_agent_options options = parse("out=--rate=5,rate=7");

	(void)state;
	assert_string_equal(options.out, "--rate=5");
	assert_int_equal(options.rate_mhz, 7000);
	sf_agent_options_deinit(&options);
}

static void what_starts(void **state)
{
	static const struct {
		const char *text;
		bool start, listen;
	} cases[] = {
		{ "", false, false },	       { "start", true, false },
		{ "rate=5", true, false },     { "listen", false, true },
		{ "listen,start", true, true }, { "listen,out=x", true, true },
		{ "off", false, false },       { "off,listen,rate=5", false, false },
		{ ",", false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sf_agent_options options = parse(cases[i].text);

		if (options.start != cases[i].start || options.listen != cases[i].listen)
			fail_msg("'%s': start %d listen %d", cases[i].text, options.start,
				 options.listen);
		sf_agent_options_deinit(&options);
	}
}

static void refusals(void **state)
{
	(void)state;
	refused("rat=5", "'rat' is none of the agent's options");
	refused("rat=5", "rate");
	refused("rate=fast", "rate");
	refused("rate=fast", "'fast' is not a rate");
	refused("rate", "rate needs a value");
	refused("rate=0", "too small");
	refused("listen=yes", "takes no value");
	refused("walk=both", "'both' is none of sampler, handler");
	refused("signal=KILL", "signal: 'KILL'");
	refused("max-depth=20000", "too large");
	refused("out=", "out");
	refused("pid=-3", "'-3' is not a process number");
	refused("java-walk=agct", "java-walk=agct needs walk=handler");
	refused("dotnet-walk=agct", "'agct' is none of own, snapshot, both");
	refused("dotnet-walk=snapshot,cpu-clock=timer", "dotnet-walk=snapshot needs cpu-clock=tick");
}

/* Walks in rounds have the clock of the rounds. */
static void walks_in_rounds(void **state)
{
	static const char *const texts[] = { "dotnet-walk=both", "dotnet-walk=both,cpu-clock=tick", "dotnet-walk=both,walk=handler" };
	struct sf_agent_options options;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		options = parse(texts[i]);
		assert_int_equal(options.runtime_walks[SF_RUNTIME_CORECLR], SF_AGENT_WALK_BOTH);
		assert_int_equal(options.runtime_walks[SF_RUNTIME_HOTSPOT], SF_AGENT_WALK_OURS);
		assert_ptr_equal(sf_agent_clocks[options.cpu_clock - 1], &sf_agent_clock_tick);
		sf_agent_options_deinit(&options);
	}
	options = parse("dotnet-walk=own,cpu-clock=timer");
	assert_int_equal(options.cpu_clock, 2);
	sf_agent_options_deinit(&options);
}

static void signals(void **state)
{
	static const struct {
		const char *text;
		int number;
	} cases[] = {
		{ "PROF", SIGPROF }, { "SIGPROF", SIGPROF }, { "sigusr2", SIGUSR2 },
		{ "27", 27 }, { "RTMIN", -1 }, { "RTMIN+3", -2 }, { "SIGRTMAX-1", -3 },
		{ "KILL", 0 }, { "SEGV", 0 }, { "33", 0 }, { "0", 0 }, { "65", 0 }, { "27x", 0 },
		{ "RTMIN-1", 0 }, { "RTMIN+99", 0 }, { "", 0 }, { "SIG", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int wanted = cases[i].number == -1 ? SIGRTMIN :
			     cases[i].number == -2 ? SIGRTMIN + 3 :
			     cases[i].number == -3 ? SIGRTMAX - 1 : cases[i].number;

		if (sf_agent_signal_number(cases[i].text) != wanted)
			fail_msg("'%s' is %d", cases[i].text,
				 sf_agent_signal_number(cases[i].text));
	}
}

/* cpu-clock=NAME is 1 + the place of NAME in sf_agent_clocks. */
static void clocks_agree(void **state)
{
	(void)state;
	for (int i = 0; sf_agent_clocks[i]; i++) {
		struct sf_agent_options options;
		char text[64];

		snprintf(text, sizeof(text), "cpu-clock=%s", sf_agent_clocks[i]->name);
		options = parse(text);
		assert_int_equal(options.cpu_clock, i + 1);
		sf_agent_options_deinit(&options);
	}
}

static char *read_page(void)
{
	FILE *file = fopen(SF_SOURCE_ROOT "/docs/agent.md", "re");
	char *text = calloc(1, 200000);

	assert_non_null(file);
	assert_non_null(text);
	assert_true(fread(text, 1, 199999, file) > 0);
	fclose(file);
	return text;
}

/* The table in docs/agent.md has a line for each key that a user may set: "| `rate=RATE` | ...". */
static void page_lists_them(void **state)
{
	char help[8192], key[64], *page = read_page(), *line, *save = NULL;

	(void)state;
	sf_agent_options_help(help, sizeof(help));
	for (line = strtok_r(help, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		size_t size = strcspn(line, " ");

		if (strncmp(line, "first=", 6) == 0 || strncmp(line, "pid=", 4) == 0 ||
		    strncmp(line, "connect=", 8) == 0 || strncmp(line, "cache=", 6) == 0)
			continue;
		snprintf(key, sizeof(key), "| `%.*s` |", (int)size, line);
		if (!strstr(page, key))
			fail_msg("docs/agent.md has no line with %s", key);
	}
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(every_key),
		cmocka_unit_test(commas),
		cmocka_unit_test(a_value_may_look_like_an_option),
		cmocka_unit_test(what_starts),
		cmocka_unit_test(refusals),
		cmocka_unit_test(walks_in_rounds),
		cmocka_unit_test(signals),
		cmocka_unit_test(clocks_agree),
		cmocka_unit_test(page_lists_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options, as a text has them, and the variable STILLFRAME= of this process. The text becomes words as on a command line
 * ("rate=99hz" is "--rate=99hz"), which the parser of all commands takes apart by the table below.
 */
#include "agent/options.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/interpose/sampling_signal.h"
#include "base/options.h"
#include "base/vec.h"

/* The values that the table fills in: the options, and words that are used only here. */
struct given {
	struct sf_agent_options options;
	const char *signal;
	bool off;
};

static const char *const clocks[] = { "cpu", "wall", "both", NULL };
static const char *const walks[] = { "sampler", "handler", NULL };
#define X(name, option, ours, theirs, help, agent_help, why, hooks, hooks_both)                    \
	static const char *const walks_of_##name[] = { ours, theirs, "both", hooks, hooks_both, NULL };
SF_RUNTIME_WALKS(X)
#undef X
static const char *const only[] = { "all", "registered", "main", NULL };
/* In the order of sf_agent_clocks, behind "auto". */
static const char *const cpu_clocks[] = { "auto", "perf", "timer", "itimer", "tick", NULL };

#define AT(field) offsetof(struct given, options.field)

/*
 * To add one: a field in options.h, a line here, its default in set_defaults(), its line in
 * docs/agent.md (tests/unit/test_agent_options.c compares).
 */
static const struct sf_option keys[] = {
	{ "out", 0, SF_OPTION_STRING, AT(out), "FILE",
	  "The stream file, %p is the process id (default: " SF_AGENT_OUT ")." },
	{ "rate", 0, SF_OPTION_RATE, AT(rate_mhz), "RATE",
	  "Samples per second of CPU time (default: 199hz).", .minimum = 100,
	  .maximum = 20000000 },
	{ "blocked-rate", 0, SF_OPTION_RATE, AT(blocked_rate_mhz), "RATE",
	  "Samples per second of a thread that sleeps (default: 20hz).", .minimum = 10,
	  .maximum = 1000000 },
	{ "clock", 0, SF_OPTION_CHOICE, AT(clock), "CLOCK",
	  "cpu: threads that run; wall: elapsed time; both (default).", clocks },
	{ "walk", 0, SF_OPTION_CHOICE, AT(walk), "WHO",
	  "sampler: a thread of stillframe walks the others (default); handler: each walks itself.",
	  walks },
#define X(name, option, ours, theirs, help, agent_help, why, hooks, hooks_both)                    \
	{ option, 0, SF_OPTION_CHOICE, AT(runtime_walks[SF_RUNTIME_##name]), "HOW", agent_help, walks_of_##name },
	SF_RUNTIME_WALKS(X)
#undef X
	{ SF_HOOKS_ONLY, 0, SF_OPTION_STRING, AT(hooks_only), "REGEX", SF_HOOKS_ONLY_AGENT_HELP },
	{ SF_NOT_COMPLETE, 0, SF_OPTION_FLAG, AT(not_complete), NULL, SF_NOT_COMPLETE_AGENT_HELP },
	{ "cpu-clock", 0, SF_OPTION_CHOICE, AT(cpu_clock), "CLOCK",
	  "auto (default): timer, and perf for threads that timers miss; perf, timer, itimer, tick.", cpu_clocks },
	{ "signal", 0, SF_OPTION_STRING, offsetof(struct given, signal), "SIGNAL",
	  "PROF, USR2, RTMIN+3 (default: PROF if the program has no use for it, else a real-time "
	  "one; " SF_LOADED_SIGNAL_HELP ")." },
	{ "only", 0, SF_OPTION_CHOICE, AT(only), "THREADS",
	  "all (default); registered: those that called sf_thread_register(); main.", only },
	{ "event", 0, SF_OPTION_STRING, AT(event), "EVENT",
	  "An event of the program's runtime in place of time: allocation, exception and others (default: none)." },
	{ "threads", 0, SF_OPTION_STRING, AT(threads), "REGEX",
	  "Only threads whose name matches (default: all)." },
	{ "per-tick", 0, SF_OPTION_COUNT, AT(per_tick), "N",
	  "Threads asked at a tick that has no clock of their own, 0: all (default: 8).",
	  .maximum = 16384 },
	{ "max-depth", 0, SF_OPTION_COUNT, AT(max_depth), "N", "Frames (default: 1024).",
	  .minimum = 1, .maximum = SF_MAX_DEPTH },
	{ "duration", 0, SF_OPTION_TIME, AT(duration_ns), "TIME",
	  "Stop after this time (default: when the program ends).", .minimum = 1000000 },
	{ "start", 0, SF_OPTION_FLAG, AT(start), NULL, "Start with the defaults." },
	{ "listen", 0, SF_OPTION_FLAG, AT(listen), NULL,
	  "Wait for stillframe record -p; alone: do not start before." },
	{ "children", 0, SF_OPTION_FLAG, AT(children), NULL,
	  "Also what the program starts; each with a stream of its own." },
	{ "connect", 0, SF_OPTION_STRING, AT(connect), "SOCKET",
	  "Call a stillframe that waits there; it says what to do." },
	{ "cache", 0, SF_OPTION_STRING, AT(cache), "ID",
	  "The cache folder of that stillframe, which puts tables there." },
	{ "pid", 0, SF_OPTION_PID, AT(pid), "PID", "Only in this process." },
	{ "first", 0, SF_OPTION_PID, AT(first), "PID",
	  "The process that `out` is for; set by the agent for what the program starts." },
	{ "off", 0, SF_OPTION_FLAG, offsetof(struct given, off), NULL, "Do nothing at all." },
	{ 0 },
};

static const struct sf_command agent_command = { .name = "the agent", .options = keys };

static void set_defaults(struct given *given)
{
	*given = (struct given){ .options = {
		.out = SF_AGENT_OUT,
		.rate_mhz = 199000,
		.blocked_rate_mhz = 20000,
		.clock = SF_AGENT_BOTH,
		.per_tick = 8,
		.max_depth = SF_DEFAULT_DEPTH,
	} };
}

struct words {
	SF_VEC(char *) all;
};

/*
 * Copies one piece of the text, up to a comma that has no backslash before it; returns what is
 * behind it.
 */
static const char *take_piece(const char *text, char **into)
{
	char *at = *into;

	for (; *text && *text != ','; text++) {
		if (text[0] == '\\' && text[1] == ',')
			text++;
		*at++ = *text;
	}
	*at++ = 0;
	*into = at;
	return *text ? text + 1 : text;
}

/*
 * The pieces of `text` as words in `buffer`, which has three bytes for each of its bytes, and
 * three.
 */
static bool split(const char *text, char *buffer, struct words *words)
{
	while (*text) {
		char *word = buffer;

		memcpy(buffer, "--", 2);
		buffer += 2;
		text = take_piece(text, &buffer);
		if (word[2] && !sf_vec_push(&words->all, word))
			return false;
	}
	return true;
}

static bool is_key(const char *word)
{
	size_t size = strcspn(word, "=");

	for (const struct sf_option *key = keys; key->name; key++) {
		if (strlen(key->name) == size && strncmp(key->name, word, size) == 0)
			return true;
	}
	return false;
}

static bool fail_unknown(const char *word, struct sf_error *err)
{
	char known[300] = "";
	size_t used = 0;

	for (const struct sf_option *key = keys; key->name && used < sizeof(known); key++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
					 used ? ", " : "", key->name);
	sf_fail(err, SF_E_INPUT, "'%.*s' is none of the agent's options",
		(int)strcspn(word, "="), word);
	return sf_fail_hint(err, "There are %s.", known);
}

/* The parser's messages show the dashes of a command line; here there are none. */
static bool take_dashes_off(struct sf_error *err)
{
	for (char *at = err ? err->text : ""; (at = strstr(at, "--")); at++)
		memmove(at, at + 2, strlen(at + 2) + 1);
	return false;
}

static bool parse_words(struct words *words, struct given *given, struct sf_error *err)
{
	int rest;

	for (size_t i = 1; i < words->all.n; i++) {
		if (!is_key(words->all.items[i] + 2))
			return fail_unknown(words->all.items[i] + 2, err);
	}
	/* A key without its value would take the next word for it. */
	for (size_t i = 1; i < words->all.n; i++) {
		char *two[] = { words->all.items[0], words->all.items[i], NULL };

		if (!sf_options_parse(&agent_command, 2, two, given, &rest, err))
			return take_dashes_off(err);
	}
	return true;
}

static bool take_signal(struct given *given, struct sf_error *err)
{
	if (!given->signal)
		return true;
	given->options.signal = sf_agent_signal_number(given->signal);
	return given->options.signal ||
	       sf_fail(err, SF_E_INPUT, "signal: '%s' is no signal that can be used, such as PROF, "
		       "USR2 or RTMIN+3", given->signal);
}

/* Why a runtime's own walk needs walk=handler; NULL: it comes in rounds, at the sampler's own ticks. */
static const struct {
	int slot;
	const char *option, *word, *why;
} runtime_walks[] = {
#define X(name, option, ours, theirs, help, agent_help, why, hooks, hooks_both)                    \
	{ SF_RUNTIME_##name, option, theirs, why },
	SF_RUNTIME_WALKS(X)
#undef X
};

/* The word "tick" in cpu_clocks. */
#define TICK 4

static bool check_walk(struct sf_agent_options *options, size_t i, struct sf_error *err)
{
	const int walk = options->runtime_walks[runtime_walks[i].slot];

	if (walk == SF_AGENT_WALK_OURS || sf_agent_walks_by_hooks(walk))
		return true;
	if (runtime_walks[i].why)
		return options->walk == SF_AGENT_HANDLER ||
		       sf_fail(err, SF_E_INPUT, "%s=%s needs walk=handler: %s", runtime_walks[i].option,
			       runtime_walks[i].word, runtime_walks[i].why);
	if (options->cpu_clock && options->cpu_clock != TICK)
		return sf_fail(err, SF_E_INPUT, "%s=%s needs cpu-clock=tick: the runtime walks its threads in rounds",
			       runtime_walks[i].option, runtime_walks[i].word);
	options->cpu_clock = TICK;
	return true;
}

static bool check(struct sf_agent_options *options, struct sf_error *err)
{
	bool fine = true;

	if (!options->out[0])
		return sf_fail(err, SF_E_INPUT, "out: the name of a file is missing");
	for (size_t i = 0; fine && i < sizeof(runtime_walks) / sizeof(*runtime_walks); i++)
		fine = check_walk(options, i, err);
	return fine;
}

/* The thread on which an event happens walks itself. */
static bool take_event(struct sf_agent_options *options, struct sf_error *err)
{
	if (!options->event)
		return true;
	options->walk = SF_AGENT_HANDLER;
	return sf_runtime_event_parse(options->event, &options->wanted_event, err);
}

bool sf_agent_options_parse(struct sf_agent_options *ret, const char *text, struct sf_error *err)
{
	char *buffer = malloc(3 * strlen(text) + 3);
	struct words words = { 0 };
	struct given given;
	bool ok;

	set_defaults(&given);
	given.options.text = buffer;
	if (!buffer || !sf_vec_push(&words.all, (char *)agent_command.name) ||
	    !split(text, buffer, &words))
		ok = sf_fail_memory(err);
	else
		ok = parse_words(&words, &given, err) && take_signal(&given, err) &&
		     check(&given.options, err) && take_event(&given.options, err);
	/* `listen` alone, and nothing at all, start nothing. */
	if (words.all.n > 1 && !(words.all.n == 2 && given.options.listen))
		given.options.start = true;
	if (given.off)
		given.options.start = given.options.listen = false;
	sf_vec_deinit(&words.all);
	*ret = given.options;
	return ok;
}

void sf_agent_options_deinit(struct sf_agent_options *options)
{
	free(options->text);
	*options = (struct sf_agent_options){ 0 };
}

void sf_agent_options_help(char *ret, unsigned long size)
{
	size_t used = 0;

	if (size)
		ret[0] = 0;
	for (const struct sf_option *key = keys; key->name && used < size; key++)
		used += (size_t)snprintf(ret + used, size - used, "%s%s%s  %s\n", key->name,
					 key->argument ? "=" : "",
					 key->argument ? key->argument : "", key->help);
}

/* --- the variable --- */

#define VARIABLE "STILLFRAME="

static const char *inherited;

/*
 * Its place in environ stays, so that main()'s envp shows the same. Not by setenv(): bash has one
 * of its own, and later sets its variables from what environ was.
 */
static void put_into_environment(char *variable)
{
	for (char **at = environ; *at; at++) {
		if (strncmp(*at, VARIABLE, strlen(VARIABLE)) == 0)
			*at = variable;
	}
}

void sf_variable_keep(const char *text)
{
	char *copy;

	inherited = asprintf(&copy, VARIABLE "%s", text) >= 0 ? copy : NULL;
}

void sf_variable_sign(const char *text, struct sf_agent_options *options)
{
	char *signed_text;

	/* The text has this process's own id: this process added it before an exec. */
	options->again = options->first == getpid();
	if (options->first || options->connect || !options->start) {
		sf_variable_keep(text);
		return;
	}
	options->first = getpid();
	if (asprintf(&signed_text, VARIABLE "%s,first=%d", text, (int)getpid()) < 0)
		return;
	put_into_environment(signed_text);
	inherited = signed_text;
}

const char *sf_variable(void)
{
	return inherited;
}

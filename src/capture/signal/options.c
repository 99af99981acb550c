/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `record` that go to the agent. Their words are the agent's (agent/options.c), which gets each one as
 * "name=value".
 */
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "capture/signal/signal_engine.h"
#include "runtime/events.h"

static const char *const walks[] = { "sampler", "handler", NULL };
#define X(name, option, ours, theirs, help, agent_help, why, hooks, hooks_both)                    \
	static const char *const walks_of_##name[] = { ours, theirs, "both", hooks, hooks_both, NULL };
SF_RUNTIME_WALKS(X)
#undef X
static const char *const cpu_clocks[] = { "auto", "perf", "timer", "itimer", "tick", NULL };
static const char *const only[] = { "all", "registered", "main", NULL };

/* To add one: a line here and one in agent/options.c. */
const struct sf_option sf_signal_options[] = {
	{ .name = "walk", .kind = SF_OPTION_CHOICE, .argument = "WHO", .choices = walks,
	  .help = "signal engine: sampler: a thread in the process walks the others; handler: each walks "
		  "itself (default sampler)" },
#define X(name_, option, ours, theirs, help_, agent_help, why, hooks, hooks_both)                  \
	{ .name = option, .kind = SF_OPTION_CHOICE, .argument = "HOW", .choices = walks_of_##name_, \
	  .help = "signal engine: " help_ },
	SF_RUNTIME_WALKS(X)
#undef X
	{ .name = SF_HOOKS_ONLY, .kind = SF_OPTION_STRING, .argument = "REGEX", .help = SF_HOOKS_ONLY_HELP },
	{ .name = "cpu-clock", .kind = SF_OPTION_CHOICE, .argument = "CLOCK", .choices = cpu_clocks,
	  .help = "signal engine: what rings for CPU time: perf, timer, itimer or tick (default auto: timer, "
		  "and perf for threads that timers miss)" },
	{ .name = "signal", .kind = SF_OPTION_STRING, .argument = "SIGNAL",
	  .help = "signal engine: PROF, USR2, RTMIN+3, 27 (default PROF, if the program has no use for "
		  "it)" },
	{ .name = "only", .kind = SF_OPTION_CHOICE, .argument = "THREADS", .choices = only,
	  .help = "signal engine: all, main, or registered: those that asked for it (default all)" },
	{ .name = "per-tick", .kind = SF_OPTION_COUNT, .argument = "N", .maximum = 16384,
	  .help = "signal engine: threads without a clock of their own that are sampled at a tick, "
		  "0: all (default 8)" },
	{ .name = SF_SETTING_EVENT, .kind = SF_OPTION_STRING, .argument = "EVENT", .help = "as for the engine perf" },
	{ .name = NULL },
};

static const struct {
	const char *option, *ours, *why, *hooks, *hooks_both;
} runtime_walks[] = {
#define X(name, option, ours, theirs, help, agent_help, why, hooks, hooks_both) { option, ours, why, hooks, hooks_both },
	SF_RUNTIME_WALKS(X)
#undef X
};

#define N_RUNTIME_WALKS (sizeof(runtime_walks) / sizeof(*runtime_walks))

/* The word of the runtime's own walk, NULL: ours. */
static const char *runtime_walk(const struct sf_setting *settings, size_t i)
{
	const char *word = sf_setting(settings, runtime_walks[i].option);

	return word && strcmp(word, runtime_walks[i].ours) != 0 ? word : NULL;
}

static bool is(const char *word, const char *other)
{
	return other && strcmp(word, other) == 0;
}

/* The word of the walk by hooks, NULL: there is none. */
static const char *hooks_walk(const struct sf_setting *settings, size_t i)
{
	const char *word = runtime_walk(settings, i);

	return word && (is(word, runtime_walks[i].hooks) || is(word, runtime_walks[i].hooks_both)) ? word : NULL;
}

static bool is_set_to(const struct sf_setting *settings, const char *name, const char *word)
{
	const char *value = sf_setting(settings, name);

	return value && strcmp(value, word) == 0;
}

static bool check_walk(const struct sf_setting *settings, size_t i, struct sf_error *err)
{
	const char *word = runtime_walk(settings, i), *why = runtime_walks[i].why;

	if (!word || hooks_walk(settings, i))
		return true;
	if (why)
		return is_set_to(settings, "walk", "handler") ||
		       sf_fail(err, SF_E_INPUT, "--%s %s needs --walk handler: %s", runtime_walks[i].option, word, why);
	return !sf_setting(settings, "cpu-clock") || is_set_to(settings, "cpu-clock", "tick") ||
	       sf_fail(err, SF_E_INPUT, "--%s %s cannot have --cpu-clock %s: the runtime walks its threads in rounds, by "
		       "--cpu-clock tick", runtime_walks[i].option, word, sf_setting(settings, "cpu-clock"));
}

static bool check_event(const struct sf_setting *settings, struct sf_error *err)
{
	const char *event = sf_setting_event(settings);
	struct sf_runtime_event_choice wanted;

	if (!event)
		return true;
	if (sf_setting(settings, "walk"))
		return sf_fail(err, SF_E_INPUT, "either --event or --walk, not both: the thread on which an event happens walks itself");
	for (size_t i = 0; i < N_RUNTIME_WALKS; i++) {
		if (runtime_walk(settings, i))
			return sf_fail(err, SF_E_INPUT, "either --event or --%s, not both: the thread on which an event happens walks itself", runtime_walks[i].option);
	}
	return sf_runtime_event_parse(event, &wanted, err);
}

static bool check_hooks_only(const struct sf_setting *settings, struct sf_error *err)
{
	const char *methods = sf_setting(settings, SF_HOOKS_ONLY);
	regex_t regex;

	if (!methods)
		return true;
	if (regcomp(&regex, methods, REG_EXTENDED | REG_NOSUB) != 0)
		return sf_fail(err, SF_E_INPUT, "--" SF_HOOKS_ONLY ": '%.80s' is no regular expression (POSIX extended)", methods);
	regfree(&regex);
	return true;
}

bool sf_signal_check_settings(const struct sf_setting *settings, struct sf_error *err)
{
	bool fine = check_event(settings, err) && check_hooks_only(settings, err);

	for (size_t i = 0; fine && i < N_RUNTIME_WALKS; i++)
		fine = check_walk(settings, i, err);
	return fine;
}

bool sf_signal_walks_in_rounds(const struct sf_setting *settings)
{
	bool any = false;

	for (size_t i = 0; i < N_RUNTIME_WALKS; i++)
		any |= runtime_walk(settings, i) && !runtime_walks[i].why && !hooks_walk(settings, i);
	return any;
}

bool sf_signal_walks_by_hooks(const struct sf_setting *settings)
{
	bool any = false;

	for (size_t i = 0; i < N_RUNTIME_WALKS; i++)
		any |= hooks_walk(settings, i) != NULL;
	return any;
}

void sf_signal_describe(const struct sf_setting *settings, char *ret, size_t size)
{
	const char *walk = sf_setting_event(settings) ? "own" : sf_setting(settings, "walk");

	snprintf(ret, size, "%s walk", walk ? walk : walks[0]);
}

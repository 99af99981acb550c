/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `record` that go to the agent. Their words are the agent's (agent/options.c), which gets each one as
 * "name=value".
 */
#include <stdio.h>
#include <string.h>

#include "capture/signal/signal_engine.h"

static const char *const walks[] = { "sampler", "handler", NULL };
static const char *const runtime_walks[] = { SF_OWN_WALKS, NULL };
static const char *const cpu_clocks[] = { "auto", "perf", "timer", "itimer", "tick", NULL };
static const char *const only[] = { "all", "registered", "main", NULL };

/* To add one: a line here and one in agent/options.c. */
const struct sf_option sf_signal_options[] = {
	{ .name = "walk", .kind = SF_OPTION_CHOICE, .argument = "WHO", .choices = walks,
	  .help = "signal engine: sampler: a thread in the process walks the others; handler: each walks "
		  "itself (default sampler)" },
	{ .name = SF_OWN_WALK, .kind = SF_OPTION_CHOICE, .argument = "HOW", .choices = runtime_walks,
	  .help = "signal engine: " SF_OWN_WALK_HELP },
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
	{ .name = NULL },
};

/* Walks by a runtime's own means run in handlers only. */
bool sf_signal_check_settings(const struct sf_setting *settings, struct sf_error *err)
{
	const char *runtime_walk = sf_setting(settings, SF_OWN_WALK), *walk = sf_setting(settings, "walk");

	if (!runtime_walk || strcmp(runtime_walk, runtime_walks[0]) == 0 || (walk && strcmp(walk, "handler") == 0))
		return true;
	return sf_fail(err, SF_E_INPUT,
		       "--" SF_OWN_WALK " %s needs --walk handler: " SF_OWN_WALK_NEEDS,
		       runtime_walk);
}

void sf_signal_describe(const struct sf_setting *settings, char *ret, size_t size)
{
	const char *walk = sf_setting(settings, "walk");

	snprintf(ret, size, "%s walk", walk ? walk : walks[0]);
}

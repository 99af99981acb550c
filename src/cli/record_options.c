/* SPDX-License-Identifier: Apache-2.0 */
/* The option table of `stillframe record`, its check, and its conversion to the options of a session. */
#include "cli/record_options.h"

#include <regex.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_RATE_MHZ 199000
#define DEFAULT_BLOCKED_RATE_MHZ 20000

enum { CLOCK_CPU, CLOCK_WALL, CLOCK_BOTH };

static const char *const clocks[] = { "cpu", "wall", "both", NULL };
#define X(name) #name,
static const char *const engine_names[] = { "auto", SF_ENGINES(X) NULL };
#undef X
#define X(name) ", " #name
static const char engine_help[] = "how to get samples: auto" SF_ENGINES(X) " (default auto)";
#undef X

#define AT(field) offsetof(struct sf_record_options, field)
static const struct sf_option first_options[] = {
	{ .name = "pid", .letter = 'p', .kind = SF_OPTION_PID, .offset = AT(pid), .argument = "PID",
	  .help = "watch this process" },
	{ .name = "duration", .letter = 'd', .kind = SF_OPTION_TIME, .offset = AT(duration_ns),
	  .argument = "TIME", .help = "stop after this time (default: at Ctrl-C, or when it ends)",
	  .minimum = 1000000 },
	{ .name = "output", .letter = 'o', .kind = SF_OPTION_STRING, .offset = AT(output),
	  .argument = "FILE", .help = "the recording (default: NAME-PID.sfr, then NAME-PID-2.sfr)" },
	{ .name = "rate", .letter = 'F', .kind = SF_OPTION_RATE, .offset = AT(rate_mhz),
	  .argument = "RATE", .help = "ticks a second for running threads (default 199hz)",
	  .minimum = 1000, .maximum = 100000000 },
	{ .name = "blocked-rate", .kind = SF_OPTION_RATE, .offset = AT(blocked_rate_mhz),
	  .argument = "RATE", .help = "ticks a second for blocked threads (default 20hz)",
	  .minimum = 100, .maximum = 10000000 },
	{ .name = "clock", .kind = SF_OPTION_CHOICE, .offset = AT(clock), .argument = "CLOCK",
	  .help = "cpu: running threads only; wall: all threads at the rate of blocked ones; "
		  "both: each at its own rate (default both)",
	  .choices = clocks },
	{ .name = "threads", .kind = SF_OPTION_STRING, .offset = AT(threads), .argument = "REGEX",
	  .help = "only threads whose name matches" },
	{ .name = "children", .kind = SF_OPTION_FLAG, .offset = AT(children),
	  .help = "the processes that it starts, too" },
	{ .name = "max-depth", .kind = SF_OPTION_COUNT, .offset = AT(max_depth), .argument = "N",
	  .help = "frames to a stack; what is cut is marked (default 1024, at most 16384)",
	  .minimum = 1, .maximum = SF_MAX_DEPTH },
	{ .name = "engine", .letter = 'e', .kind = SF_OPTION_CHOICE, .offset = AT(engine),
	  .argument = "ENGINE", .help = engine_help,
	  .choices = engine_names },
};

/* Behind those of the engines. */
static const struct sf_option last_options[] = {
	{ .name = "no-interrupt", .kind = SF_OPTION_FLAG, .offset = AT(no_interrupt),
	  .help = "never interrupt a blocked thread, even where its system call would go on" },
	{ .name = "quiet", .letter = 'q', .kind = SF_OPTION_FLAG, .offset = AT(quiet),
	  .help = "no summary" },
};
#define SIZE(table) (sizeof(table) / sizeof(*(table)))

/* The options of engines go between: their values are kept as texts, for the engine. */
const struct sf_option *sf_record_option_table(void)
{
	static struct sf_option table[SIZE(first_options) + SF_MAX_SETTINGS + SIZE(last_options) + 1];
	const struct sf_option *more[SF_MAX_SETTINGS];
	const size_t n_more = sf_engine_options(more);

	memcpy(table, first_options, sizeof(first_options));
	for (size_t i = 0; i < n_more; i++) {
		struct sf_option *option = &table[SIZE(first_options) + i];

		*option = *more[i];
		option->offset = AT(settings) + i * sizeof(struct sf_setting) +
				 offsetof(struct sf_setting, value);
		option->as_text = true;
	}
	memcpy(&table[SIZE(first_options) + n_more], last_options, sizeof(last_options));
	return table;
}

struct sf_record_options sf_record_defaults(void)
{
	struct sf_record_options ret = {
		.rate_mhz = DEFAULT_RATE_MHZ,
		.blocked_rate_mhz = DEFAULT_BLOCKED_RATE_MHZ,
		.max_depth = SF_DEFAULT_DEPTH,
		.clock = CLOCK_BOTH,
	};
	const struct sf_option *more[SF_MAX_SETTINGS];
	const size_t n_more = sf_engine_options(more);

	for (size_t i = 0; i < n_more; i++)
		ret.settings[i].name = more[i]->name;
	return ret;
}

static bool check_regex(const char *text, struct sf_error *err)
{
	regex_t regex;
	char why[128];
	int error = regcomp(&regex, text, REG_EXTENDED | REG_NOSUB);

	if (!error) {
		regfree(&regex);
		return true;
	}
	regerror(error, &regex, why, sizeof(why));
	return sf_fail(err, SF_E_INPUT, "--threads '%.100s' is not a regular expression: %s", text,
		       why);
}

const struct sf_engine *sf_record_named_engine(const struct sf_record_options *given)
{
	return given->engine ? sf_engine_by_name(engine_names[given->engine]) : NULL;
}

bool sf_record_check(const struct sf_record_options *given, int argc, int rest,
		     struct sf_error *err)
{
	if (given->pid && rest < argc)
		return sf_fail(err, SF_E_INPUT, "either -p PID or a command, not both");
	if (!given->pid && rest >= argc)
		return sf_fail(err, SF_E_INPUT,
			       "nothing to record: give -p PID, or a command after --");
	if (given->pid == getpid())
		return sf_fail(err, SF_E_INPUT,
			       "pid %d is stillframe itself, which never holds itself", given->pid);
	if (given->output && strcmp(given->output, "-") == 0) {
		sf_fail(err, SF_E_INPUT, "a recording is a file, and cannot be written to stdout");
		return sf_fail_hint(err, "Give a name with -o; `stillframe export FILE --format FORMAT -o -` "
				    "writes to stdout.");
	}
	return sf_engine_check_settings(sf_record_named_engine(given), given->settings, err) &&
	       (!given->threads || check_regex(given->threads, err));
}

struct sf_session_options sf_record_session(const struct sf_record_options *given)
{
	struct sf_session_options session = {
		.max_depth = given->max_depth,
		.output = given->output,
		.capture = {
			.pid = given->pid,
			.rate_mhz = given->rate_mhz,
			.blocked_rate_mhz = given->blocked_rate_mhz,
			.duration_ns = given->duration_ns,
			.children = given->children,
			.no_interrupt = given->no_interrupt,
			.threads = given->threads,
			.max_depth = given->max_depth,
			.clock = clocks[given->clock],
			.settings = given->settings,
		},
	};

	if (given->clock == CLOCK_CPU)
		session.capture.blocked_rate_mhz = 0;
	if (given->clock == CLOCK_WALL)
		session.capture.rate_mhz = given->blocked_rate_mhz;
	return session;
}

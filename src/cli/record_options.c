/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `stillframe record` (record_options.h). */
#include "cli/record_options.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "capture/choice/engines.h"
#include "cli/commands.h"
#include "frozen/runtime_list.h"

enum { CLOCK_DEFAULT, CLOCK_CPU, CLOCK_WALL, CLOCK_BOTH };

static const char *const clocks[] = { "auto", "cpu", "wall", "both", NULL };
#define X(name) #name,
#define WORD(word) word,
static const char *const engine_names[] = { "auto", SF_ENGINES(X) SF_INSIDE_WORDS(WORD) NULL };
#undef WORD
#undef X
#define X(name) ", " #name
static const char engine_help[] = "how to get samples: auto" SF_ENGINES(X) "; " SF_INSIDE_HELP " (default auto)";
#undef X

#define AT(field) offsetof(struct sf_record_given, field)
#define CAPTURE(field) AT(session.capture.field)
static const struct sf_option first_options[] = {
	{ .name = "pid", .letter = 'p', .kind = SF_OPTION_PIDS, .offset = AT(pids), .argument = "PID",
	  .help = "watch this process; several: -p 1,2,3, or -p more than once" },
	{ .name = "all", .letter = 'a', .kind = SF_OPTION_FLAG, .offset = CAPTURE(all),
	  .help = "watch every process of this machine, also those that start later; by default with --clock cpu" },
	{ .name = "cgroup", .kind = SF_OPTION_STRING, .offset = CAPTURE(cgroup), .argument = "PATH",
	  .help = "watch every process of this control group (cgroup v2), also those that come later; below /sys/fs/cgroup, or the whole path" },
	{ .name = "filter", .kind = SF_OPTION_STRINGS, .offset = AT(filters), .argument = "CONDITION",
	  .help = "of --all, --cgroup or --children: only processes with name=REGEX or user=NAME; several must all hold" },
	{ .name = "duration", .letter = 'd', .kind = SF_OPTION_TIME, .offset = CAPTURE(duration_ns),
	  .argument = "TIME", .help = "stop after this time (default: at Ctrl-C, or when it ends)",
	  .minimum = 1000000 },
	{ .name = "output", .letter = 'o', .kind = SF_OPTION_STRING, .offset = AT(session.output),
	  .argument = "FILE", .help = "the recording (default: NAME-PID.sfr, then NAME-PID-2.sfr)" },
	{ .name = "rate", .letter = 'F', .kind = SF_OPTION_RATE, .offset = CAPTURE(rate_mhz),
	  .argument = "RATE", .help = "ticks a second for running threads (default 199hz); with --event: samples a second on a CPU, at the most (default 1000hz)",
	  .minimum = 1000, .maximum = 100000000 },
	{ .name = "blocked-rate", .kind = SF_OPTION_RATE, .offset = CAPTURE(blocked_rate_mhz),
	  .argument = "RATE", .help = "ticks a second for blocked threads (default 20hz)",
	  .minimum = 100, .maximum = 10000000 },
	{ .name = "clock", .kind = SF_OPTION_CHOICE, .offset = AT(clock), .argument = "CLOCK",
	  .help = "cpu: running threads only; wall: all threads at the rate of blocked ones; "
		  "both: each at its own rate (default auto: both, and cpu with --all)",
	  .choices = clocks },
	{ .name = "threads", .kind = SF_OPTION_STRING, .offset = CAPTURE(threads), .argument = "REGEX",
	  .help = "only threads whose name matches" },
	{ .name = "children", .kind = SF_OPTION_FLAG, .offset = CAPTURE(children),
	  .help = "the processes that it starts, too, until the last of them ends" },
	{ .name = "max-depth", .kind = SF_OPTION_COUNT, .offset = CAPTURE(max_depth), .argument = "N",
	  .help = "frames to a stack; what is cut is marked (default 1024, at most 16384)",
	  .minimum = 1, .maximum = SF_MAX_DEPTH },
	{ .name = "engine", .letter = 'e', .kind = SF_OPTION_CHOICE, .offset = AT(engine),
	  .argument = "ENGINE", .help = engine_help,
	  .choices = engine_names },
};

/* Behind those of the engines. */
static const struct sf_option last_options[] = {
	{ .name = "no-interrupt", .kind = SF_OPTION_FLAG, .offset = CAPTURE(no_interrupt),
	  .help = "never interrupt a blocked thread, even where its system call would go on" },
	{ .name = SF_COMPLETE, .kind = SF_OPTION_FLAG, .offset = CAPTURE(complete), .help = SF_COMPLETE_HELP },
	{ .name = SF_NOT_COMPLETE, .kind = SF_OPTION_FLAG, .offset = CAPTURE(not_complete),
	  .help = SF_NOT_COMPLETE_HELP },
	{ .name = SF_AWAITERS, .kind = SF_OPTION_FLAG, .offset = AT(session.awaiters), .help = SF_AWAITERS_HELP },
	{ .name = SF_LAUNCH_INLINED, .kind = SF_OPTION_FLAG, .offset = AT(inlined),
	  .help = SF_LAUNCH_INLINED_HELP },
	{ .name = "quiet", .letter = 'q', .kind = SF_OPTION_FLAG, .offset = AT(quiet),
	  .help = "no summary" },
};
#define SIZE(table) (sizeof(table) / sizeof(*(table)))

/* The options of engines go between: their values are kept as texts, for the engine. */
const struct sf_option *sf_record_options(void)
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

static bool check_regex(const char *text, struct sf_error *err)
{
	regex_t regex;

	if (!sf_threads_regex(text, &regex, err))
		return false;
	regfree(&regex);
	return true;
}

/* The word of a runtime in the place of an engine's name; NULL: it is none. */
static const char *runtime_of(const struct sf_record_given *given)
{
	return given->engine && !sf_engine_by_name(engine_names[given->engine]) ? engine_names[given->engine] : NULL;
}

const struct sf_engine *sf_record_engine(const struct sf_record_given *given)
{
	if (runtime_of(given))
		return sf_engine_of_runtimes();
	return given->engine ? sf_engine_by_name(engine_names[given->engine]) : NULL;
}

/* The processes are not named, and others may come. */
static bool is_open(const struct sf_capture_options *capture)
{
	return capture->all || capture->cgroup;
}

static bool check(const struct sf_record_given *given, bool has_command, struct sf_error *err)
{
	const struct sf_capture_options *capture = &given->session.capture;
	const char *output = given->session.output, *event = sf_setting_event(given->settings);

	if (is_open(capture) && (capture->pid || has_command))
		return sf_fail(err, SF_E_INPUT, "either --%s or %s, not both", capture->all ? "all" : "cgroup", capture->pid ? "-p PID" : "a command");
	if (capture->all && capture->cgroup)
		return sf_fail(err, SF_E_INPUT, "either --all or --cgroup, not both");
	if (given->filters.n && !is_open(capture) && !capture->children)
		return sf_fail(err, SF_E_INPUT, "--filter chooses among processes: it is for --all, --cgroup or --children");
	if (capture->pid && has_command)
		return sf_fail(err, SF_E_INPUT, "either -p PID or a command, not both");
	if (!is_open(capture) && !capture->pid && !has_command)
		return sf_fail(err, SF_E_INPUT, "nothing to record: give -p PID, or a command after --, or --all");
	if (sf_capture_is_chosen(capture, getpid()))
		return sf_fail(err, SF_E_INPUT,
			       "pid %d is stillframe itself, which never holds itself", getpid());
	if (capture->complete && capture->not_complete)
		return sf_fail(err, SF_E_INPUT, "either --" SF_COMPLETE " or --" SF_NOT_COMPLETE ", not both");
	if (capture->pid && given->inlined)
		return sf_fail(err, SF_E_INPUT, "--" SF_LAUNCH_INLINED " sets " SF_LAUNCH_INLINED_VARIABLE
			       " for a command that is started: a process that runs cannot be given it");
	if (event && given->clock != CLOCK_DEFAULT)
		return sf_fail(err, SF_E_INPUT, "either --" SF_SETTING_EVENT " or --clock, not both: events are sampled in place of time");
	if (event && capture->blocked_rate_mhz)
		return sf_fail(err, SF_E_INPUT, "either --" SF_SETTING_EVENT " or --blocked-rate, not both: blocked threads have no events");
	if (output && strcmp(output, "-") == 0) {
		sf_fail(err, SF_E_INPUT, "a recording is a file, and cannot be written to stdout");
		return sf_fail_hint(err, "Give a name with -o; `stillframe export FILE --format FORMAT -o -` "
				    "writes to stdout.");
	}
	return sf_engine_check_settings(sf_record_engine(given), given->settings, err) &&
	       (!capture->threads || check_regex(capture->threads, err));
}

/* The rates that --clock leaves; an event is sampled in place of both clocks. */
static void apply_clock(struct sf_record_given *given)
{
	struct sf_capture_options *capture = &given->session.capture;
	const bool event = sf_setting_event(given->settings) != NULL;

	if (!capture->rate_mhz)
		capture->rate_mhz = event ? 1000000 : 199000;
	if (!capture->blocked_rate_mhz && !event)
		capture->blocked_rate_mhz = 20000;

	capture->children &= !capture->all; /* they are among all */
	if (given->clock == CLOCK_DEFAULT)
		given->clock = capture->all || event ? CLOCK_CPU : CLOCK_BOTH;
	capture->clock = clocks[given->clock];
	if (given->clock == CLOCK_CPU)
		capture->blocked_rate_mhz = 0;
	if (given->clock == CLOCK_WALL)
		capture->rate_mhz = capture->blocked_rate_mhz;
}

void sf_record_begin(struct sf_record_given *given)
{
	const struct sf_option *of_engines[SF_MAX_SETTINGS];

	given->session.capture.max_depth = SF_DEFAULT_DEPTH;
	given->session.capture.settings = given->settings;
	for (size_t i = sf_engine_options(of_engines); i-- > 0;)
		given->settings[i].name = of_engines[i]->name;
}

static void take_processes(struct sf_record_given *given)
{
	struct sf_capture_options *capture = &given->session.capture;

	if (!given->pids.n)
		return;
	capture->pid = given->pids.items[0];
	capture->more = &given->pids.items[1];
	capture->n_more = given->pids.n - 1;
}

bool sf_record_take(struct sf_record_given *given, int n_words, struct sf_error *err)
{
	struct sf_capture_options *capture = &given->session.capture;

	take_processes(given);
	if (!check(given, n_words > 0, err) || !sf_process_filter_init(&given->filter, &given->filters, err))
		return false;
	if (given->filters.n)
		capture->filter = &given->filter;
	capture->all |= capture->cgroup != NULL;
	capture->runtime = runtime_of(given);
	capture->prompt = given->session.awaiters;
	apply_clock(given);
	return true;
}

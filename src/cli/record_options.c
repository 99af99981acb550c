/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/record_options.h"

#include <regex.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_RATE_MHZ 199000
#define DEFAULT_BLOCKED_RATE_MHZ 20000
#define NOT_GIVEN UINT32_MAX /* --per-tick, of which 0 is a value */

enum { CLOCK_CPU, CLOCK_WALL, CLOCK_BOTH };

static const char *const clocks[] = { "cpu", "wall", "both", NULL };
/* Of engines on the inside: the words of agent/options.h. */
static const char *const walks[] = { "sampler", "handler", NULL };
static const char *const runtime_walks[] = { "vmstructs", "agct", "both", NULL };
static const char *const cpu_clocks[] = { "auto", "perf", "timer", "itimer", "tick", NULL };
static const char *const only[] = { "all", "registered", "main", NULL };

#define X(name) #name,
static const char *const engine_names[] = { "auto", SF_ENGINES(X) NULL };
#undef X
#define X(name) ", " #name
static const char engine_help[] = "how to get samples: auto" SF_ENGINES(X) " (default auto)";
#undef X

#define AT(field) offsetof(struct sf_record_options, field)
const struct sf_option sf_record_option_table[] = {
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
	{ .name = "walk", .kind = SF_OPTION_CHOICE, .offset = AT(walk), .argument = "WHO",
	  .help = "signal engine: sampler: a thread in the process walks the others; handler: each walks "
		  "itself (default sampler)", .choices = walks },
	{ .name = "java-walk", .kind = SF_OPTION_CHOICE, .offset = AT(runtime_walk),
	  .argument = "HOW", .choices = runtime_walks,
	  .help = "signal engine: vmstructs: stillframe walks Java itself; agct: the virtual machine does, by "
		  "AsyncGetCallTrace, with --walk handler; both: each sample twice, to compare (default "
		  "vmstructs)" },
	{ .name = "cpu-clock", .kind = SF_OPTION_CHOICE, .offset = AT(cpu_clock),
	  .argument = "CLOCK", .choices = cpu_clocks,
	  .help = "signal engine: what rings for CPU time: perf, timer, itimer or tick (default auto: timer, "
		  "and perf for threads that timers miss)" },
	{ .name = "signal", .kind = SF_OPTION_STRING, .offset = AT(signal), .argument = "SIGNAL",
	  .help = "signal engine: PROF, USR2, RTMIN+3, 27 (default PROF, if the program has no use for "
		  "it)" },
	{ .name = "only", .kind = SF_OPTION_CHOICE, .offset = AT(only), .argument = "THREADS",
	  .help = "signal engine: all, main, or registered: those that asked for it (default all)",
	  .choices = only },
	{ .name = "per-tick", .kind = SF_OPTION_COUNT, .offset = AT(per_tick), .argument = "N",
	  .help = "signal engine: threads without a clock of their own that are sampled at a tick, "
		  "0: all (default 8)", .maximum = 16384 },
	{ .name = "no-interrupt", .kind = SF_OPTION_FLAG, .offset = AT(no_interrupt),
	  .help = "never interrupt a blocked thread, even where its system call would go on" },
	{ .name = "max-cost", .kind = SF_OPTION_COUNT, .offset = AT(max_cost), .argument = "PERCENT",
	  .help = "ptrace engine: of all CPUs together, what holding and walking threads may take "
		  "(default 5, and 2 while no CPU is idle)", .minimum = 1, .maximum = 100 },
	{ .name = "quiet", .letter = 'q', .kind = SF_OPTION_FLAG, .offset = AT(quiet),
	  .help = "no summary" },
	{ .name = NULL },
};

struct sf_record_options sf_record_defaults(void)
{
	return (struct sf_record_options){
		.rate_mhz = DEFAULT_RATE_MHZ,
		.blocked_rate_mhz = DEFAULT_BLOCKED_RATE_MHZ,
		.max_depth = SF_DEFAULT_DEPTH,
		.clock = CLOCK_BOTH,
		.walk = -1,
		.runtime_walk = -1,
		.cpu_clock = -1,
		.only = -1,
		.per_tick = NOT_GIVEN,
	};
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

/* Options that would say nothing to an engine that looks from outside, or from inside. */
static bool check_inside(const struct sf_record_options *given, struct sf_error *err)
{
	const struct sf_engine *engine = sf_record_named_engine(given);
	const char *name = given->walk >= 0	   ? "walk"
			   : given->runtime_walk >= 0 ? "java-walk"
			   : given->cpu_clock >= 0 ? "cpu-clock"
			   : given->only >= 0	   ? "only"
			   : given->signal	   ? "signal"
			   : given->per_tick != NOT_GIVEN ? "per-tick"
						   : NULL;

	if (given->max_cost && engine && engine->inside)
		return sf_fail(err, SF_E_INPUT, "--max-cost is for --engine ptrace, not %s",
			       engine->name);
	if (!name || (engine && engine->inside))
		return true;
	return sf_fail(err, SF_E_INPUT, "--%s is for --engine signal%s%s", name,
		       engine ? ", not " : " only", engine ? engine->name : "");
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
	/* Anything but the first is asked in handlers. */
	if (given->runtime_walk > 0 && (given->walk < 0 || strcmp(walks[given->walk], "handler") != 0))
		return sf_fail(err, SF_E_INPUT,
			       "--java-walk %s needs --walk handler: AsyncGetCallTrace only "
			       "walks the thread that calls it",
			       runtime_walks[given->runtime_walk]);
	return check_inside(given, err) && (!given->threads || check_regex(given->threads, err));
}

/* NULL where nothing was given. */
static const char *word_of(const char *const *words, int given)
{
	return given >= 0 ? words[given] : NULL;
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
			.max_cost = given->max_cost,
			.threads = given->threads,
			.max_depth = given->max_depth,
			.clock = clocks[given->clock],
			.inside = {
				.walk = word_of(walks, given->walk),
				.runtime_walk = word_of(runtime_walks, given->runtime_walk),
				.cpu_clock = word_of(cpu_clocks, given->cpu_clock),
				.only = word_of(only, given->only),
				.signal = given->signal,
				.per_tick = given->per_tick,
				.has_per_tick = given->per_tick != NOT_GIVEN,
			},
		},
	};

	if (given->clock == CLOCK_CPU)
		session.capture.blocked_rate_mhz = 0;
	if (given->clock == CLOCK_WALL)
		session.capture.rate_mhz = given->blocked_rate_mhz;
	return session;
}

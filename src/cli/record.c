/* SPDX-License-Identifier: Apache-2.0 */
/* stillframe record: watch a process or a command, and write a recording. */
#include <ctype.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/output.h"
#include "capture/engine.h"
#include "cli/commands.h"
#include "cli/summary.h"
#include "os/process.h"
#include "os/task.h"
#include "session/session.h"

#define DEFAULT_RATE_MHZ 199000
#define DEFAULT_BLOCKED_RATE_MHZ 20000

enum { CLOCK_CPU, CLOCK_WALL, CLOCK_BOTH };

struct record_options {
	int32_t pid;
	uint64_t duration_ns;
	uint64_t rate_mhz, blocked_rate_mhz;
	const char *output, *threads;
	uint32_t max_depth, per_tick;
	int clock, engine;
	int walk, java_walk, cpu_clock, only;   /* -1: not given */
	const char *signal;
	bool children, no_interrupt, quiet;
};

static const char *const clocks[] = { "cpu", "wall", "both", NULL };
/* Of engines on the inside: the words of agent/options.h. */
static const char *const walks[] = { "sampler", "handler", NULL };
static const char *const java_walks[] = { "vmstructs", "agct", "both", NULL };
static const char *const cpu_clocks[] = { "auto", "perf", "timer", "itimer", "tick", NULL };
static const char *const only[] = { "all", "registered", "main", NULL };

#define X(name) #name,
static const char *const engine_names[] = { "auto", SF_ENGINES(X) NULL };
#undef X
#define X(name) ", " #name
static const char engine_help[] = "how to get samples: auto" SF_ENGINES(X) " (default auto)";
#undef X

#define AT(field) offsetof(struct record_options, field)
static const struct sf_option options[] = {
	{ .name = "pid", .letter = 'p', .kind = SF_OPTION_PID, .offset = AT(pid), .argument = "PID",
	  .help = "watch this process" },
	{ .name = "duration", .letter = 'd', .kind = SF_OPTION_TIME, .offset = AT(duration_ns),
	  .argument = "TIME", .help = "stop after this time (default: at Ctrl-C, or when it ends)",
	  .minimum = 1000000 },
	{ .name = "output", .letter = 'o', .kind = SF_OPTION_STRING, .offset = AT(output),
	  .argument = "FILE", .help = "the recording (default: NAME-PID.sfr)" },
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
	{ .name = "java-walk", .kind = SF_OPTION_CHOICE, .offset = AT(java_walk),
	  .argument = "HOW", .choices = java_walks,
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
	  .help = "signal engine: threads without a clock of their own that are sampled at a tick "
		  "(default 8)", .minimum = 1, .maximum = 16384 },
	{ .name = "no-interrupt", .kind = SF_OPTION_FLAG, .offset = AT(no_interrupt),
	  .help = "never interrupt a blocked thread, even where its system call would go on" },
	{ .name = "quiet", .letter = 'q', .kind = SF_OPTION_FLAG, .offset = AT(quiet),
	  .help = "no summary" },
	{ .name = NULL },
};

static int run(int argc, char **argv);

const struct sf_command sf_command_record = {
	.name = "record",
	.summary = "watch a process or a command, and write a recording",
	.usage = "[OPTIONS] -p PID | [OPTIONS] -- COMMAND...",
	.details =
		"Running threads are sampled at --rate, blocked ones at --blocked-rate; each sample "
		"says for how much CPU time and elapsed time it stands.\n\n"
		"Ctrl-C ends the recording, not the process. A command that was launched keeps the "
		"terminal and its signals, and its exit status is passed on.",
	.examples = "stillframe record -p 4242 -d 10s\n"
		    "stillframe record --children -o build.sfr -- make -j8\n"
		    "stillframe record --clock cpu -F 999 -- sqlite3 big.db '.dump'",
	.options = options,
	.takes_command = true,
	.run = run,
};

static void end_recording(int signal_number)
{
	(void)signal_number;
	sf_session_stop();
}

/*
 * The end of a terminal and a disk quota are ends of the recording too. After the first, the default
 * action is back, so that a second Ctrl-C ends stillframe itself.
 */
static void catch_signals(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action = { .sa_handler = end_recording, .sa_flags = (int)SA_RESETHAND };

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		sigaction(ends[i], &action, NULL);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
}

/* NAME-PID.sfr, with nothing in NAME that a shell or a file system minds. */
static void default_output(const char *name, int32_t pid, char *ret, size_t size)
{
	char clean[32];
	size_t n = 0;

	for (; name[n] && n < sizeof(clean) - 1; n++)
		clean[n] = isalnum((unsigned char)name[n]) || strchr("._+-", name[n]) ? name[n] : '_';
	clean[n] = 0;
	if (clean[0] == '.' || clean[0] == '-')
		clean[0] = '_';
	snprintf(ret, size, "%s-%d.sfr", n ? clean : "process", pid);
}

/* Before a command is started, which would run for nothing. */
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
	return sf_fail(err, SF_E_INPUT, "--threads '%.100s' is not a regular expression: %s", text, why);
}

/* The engine that was asked for by its name, or NULL. */
static const struct sf_engine *named_engine(const struct record_options *given)
{
	return given->engine ? sf_engine_by_name(engine_names[given->engine]) : NULL;
}

/* Options that would say nothing to an engine that looks from outside. */
static bool check_inside(const struct record_options *given, struct sf_error *err)
{
	const struct sf_engine *engine = named_engine(given);
	const char *name = given->walk >= 0	   ? "walk"
			   : given->java_walk >= 0 ? "java-walk"
			   : given->cpu_clock >= 0 ? "cpu-clock"
			   : given->only >= 0	   ? "only"
			   : given->signal	   ? "signal"
			   : given->per_tick	   ? "per-tick"
						   : NULL;

	if (!name || (engine && engine->inside))
		return true;
	return sf_fail(err, SF_E_INPUT, "--%s is for --engine signal%s%s", name,
		       engine ? ", not " : " only", engine ? engine->name : "");
}

static bool check_usage(const struct record_options *given, int argc, int rest, struct sf_error *err)
{
	if (given->pid && rest < argc)
		return sf_fail(err, SF_E_INPUT, "either -p PID or a command, not both");
	if (!given->pid && rest >= argc)
		return sf_fail(err, SF_E_INPUT, "nothing to record: give -p PID, or a command after --");
	if (given->pid == getpid())
		return sf_fail(err, SF_E_INPUT, "pid %d is stillframe itself, which never holds itself",
			       given->pid);
	/* Anything but the first is asked in handlers. */
	if (given->java_walk > 0 && (given->walk < 0 || strcmp(walks[given->walk], "handler") != 0))
		return sf_fail(err, SF_E_INPUT, "--java-walk %s needs --walk handler: AsyncGetCallTrace only "
			       "walks the thread that calls it", java_walks[given->java_walk]);
	return check_inside(given, err) && (!given->threads || check_regex(given->threads, err));
}

static struct sf_session_options session_options(const struct record_options *given)
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
			.inside = {
				.walk = given->walk >= 0 ? walks[given->walk] : NULL,
				.java_walk = given->java_walk >= 0 ? java_walks[given->java_walk] : NULL,
				.cpu_clock = given->cpu_clock >= 0 ? cpu_clocks[given->cpu_clock] : NULL,
				.only = given->only >= 0 ? only[given->only] : NULL,
				.signal = given->signal,
				.per_tick = given->per_tick,
			},
		},
	};

	if (given->clock == CLOCK_CPU)
		session.capture.blocked_rate_mhz = 0;
	if (given->clock == CLOCK_WALL)
		session.capture.rate_mhz = given->blocked_rate_mhz;
	return session;
}

/* The status to exit with: the launched command's own, as a shell would say it. */
static int pass_on(const struct sf_launched *launched, int status)
{
	if (status < 0)
		status = sf_launch_wait(launched);
	if (status < 0)
		return SF_EXIT_FAILED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool works(const struct sf_engine *engine, int32_t pid, bool launched, struct sf_error *err)
{
	if (!launched)
		return engine->check(pid, err);
	return engine->try_child ? engine->try_child(pid, err) : engine->check(0, err);
}

/* The first line of a message. */
static void print_first_line(const char *text)
{
	fprintf(stderr, "%.*s", (int)strcspn(text, "\n"), text);
}

/*
 * The engine that was named, if it works; else the best that does. Where that is not the first, the user
 * is told why. The message of a failure is that of the best one.
 */
static const struct sf_engine *choose_engine(const struct record_options *given, bool launched,
					     struct sf_error *err)
{
	const struct sf_engine *named = named_engine(given);

	if (named && launched && !named->inside)
		return named; /* it says itself what is wrong, if anything is */
	if (named)
		return works(named, given->pid, launched, err) ? named : NULL;
	for (size_t i = 0; sf_engines[i]; i++) {
		struct sf_error why = { 0 };

		if (!works(sf_engines[i], given->pid, launched, i ? &why : err))
			continue;
		if (i && !given->quiet) {
			fputs("stillframe: ", stderr);
			print_first_line(err->text);
			fprintf(stderr, ": so by %s, %s\n", sf_engines[i]->name,
				sf_engines[i]->inside ? "from inside" : "from outside");
		}
		return sf_engines[i];
	}
	return NULL;
}

/* A launched command was forked before this: it has the signals and limits that we were given. */
static int record(struct sf_session_options *session, const char *name, bool quiet)
{
	struct sf_session_result result;
	struct sf_error err = { 0 };
	bool fine;

	catch_signals();
	sf_task_raise_limit();
	fine = sf_session_record(session, &result, &err);

	/* Nothing was seen at all; without a duration there is no recording yet, and the file is somebody's. */
	if (!fine && result.duration_ns && !result.totals.ticks)
		unlink(session->output);
	else if (!quiet && result.duration_ns)
		sf_print_summary(stderr, session, &result, name);
	if (!fine)
		sf_cli_fail(SF_EXIT_FAILED, &err);
	if (session->launched && result.duration_ns) {
		int status = pass_on(session->launched, result.child_status);

		return status ? status : fine ? SF_EXIT_OK : SF_EXIT_FAILED;
	}
	return fine ? SF_EXIT_OK : SF_EXIT_FAILED;
}

static void join_words(char **words, char *ret, size_t size)
{
	size_t used = 0;

	*ret = 0;
	for (; *words && used < size; words++)
		used += (size_t)snprintf(ret + used, size - used, "%s%s", used ? " " : "", *words);
}

static int record_command(struct record_options *given, char **words)
{
	struct sf_launched launched;
	struct sf_error err = { 0 };
	char command[1024], output[64];
	const char *slash = strrchr(words[0], '/'), *name = slash ? slash + 1 : words[0];
	struct sf_session_options session;

	if (!sf_launch(words, &launched, &err))
		return sf_cli_fail(SF_EXIT_FAILED, &err);
	given->pid = launched.pid;
	session = session_options(given);
	session.engine = choose_engine(given, true, &err);
	if (!session.engine) {
		sf_launch_cancel(&launched);
		return sf_cli_fail(SF_EXIT_FAILED, &err);
	}
	session.launched = &launched;
	session.capture.child = launched.pid;
	session.capture.program = words[0];
	join_words(words, command, sizeof(command));
	session.command = command;
	if (!session.output) {
		default_output(name, launched.pid, output, sizeof(output));
		session.output = output;
	}
	return record(&session, name, given->quiet);
}

static int record_process(const struct record_options *given)
{
	struct sf_session_options session = session_options(given);
	struct sf_error err = { 0 };
	char name[64], command[1100], words[1000], output[64];

	if (sf_process_check(given->pid, &err))
		session.engine = choose_engine(given, false, &err);
	if (!session.engine)
		return sf_cli_fail(SF_EXIT_FAILED, &err);
	sf_process_name(given->pid, name, sizeof(name));
	sf_process_command(given->pid, words, sizeof(words));
	snprintf(command, sizeof(command), "%s (pid %d)", words[0] ? words : name, given->pid);
	session.command = command;
	if (!session.output) {
		default_output(name, given->pid, output, sizeof(output));
		session.output = output;
	}
	return record(&session, name, given->quiet);
}

static int run(int argc, char **argv)
{
	struct record_options given = {
		.rate_mhz = DEFAULT_RATE_MHZ,
		.blocked_rate_mhz = DEFAULT_BLOCKED_RATE_MHZ,
		.max_depth = SF_DEFAULT_DEPTH,
		.clock = CLOCK_BOTH,
		.walk = -1,
		.java_walk = -1,
		.cpu_clock = -1,
		.only = -1,
	};
	struct sf_error err = { 0 };
	int rest, status = sf_cli_parse(&sf_command_record, argc, argv, &given, &rest);

	if (status >= 0)
		return status;
	if (!check_usage(&given, argc, rest, &err))
		return sf_cli_fail(SF_EXIT_USAGE, &err);
	return rest < argc ? record_command(&given, argv + rest) : record_process(&given);
}

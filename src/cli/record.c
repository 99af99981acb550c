/* SPDX-License-Identifier: Apache-2.0 */
/* stillframe record: watches a process or a command, and writes a recording. */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/output.h"
#include "cli/commands.h"
#include "cli/record_options.h"
#include "cli/summary.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/task.h"
#include "session/session.h"

#define MAX_SAME_NAME 1000 /* recordings of one process; the last name is then used again */

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
	.make_options = sf_record_option_table,
	.takes_command = true,
	.run = run,
};

static void end_recording(int signal_number)
{
	(void)signal_number;
	sf_session_stop();
}

static bool is_ignored(int signal_number)
{
	struct sigaction action;

	return sigaction(signal_number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/*
 * The end of a terminal and a disk quota are ends of the recording too. After the first, the
 * default action is back, so that a second Ctrl-C ends stillframe itself. With nohup(1) the end of a
 * terminal is none; a script's "&" means nothing of the kind, though it ignores SIGINT and SIGQUIT.
 */
static void catch_signals(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		if (ends[i] != SIGHUP || !is_ignored(SIGHUP))
			sf_alarm_handle_once(ends[i], end_recording);
	}
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
}

/*
 * NAME-PID.sfr, or NAME-PID-2.sfr and so on where an earlier recording has that name. Characters of NAME that
 * have a meaning in a shell or a path become "_".
 */
static void default_output(const char *name, int32_t pid, char *ret, size_t size)
{
	struct stat status;
	char clean[32];
	size_t n = 0;

	for (; name[n] && n < sizeof(clean) - 1; n++)
		clean[n] =
			isalnum((unsigned char)name[n]) || strchr("._+-", name[n]) ? name[n] : '_';
	clean[n] = 0;
	if (clean[0] == '.' || clean[0] == '-')
		clean[0] = '_';
	snprintf(ret, size, "%s-%d.sfr", n ? clean : "process", pid);
	for (int i = 2; i < MAX_SAME_NAME && lstat(ret, &status) == 0; i++)
		snprintf(ret, size, "%s-%d-%d.sfr", n ? clean : "process", pid, i);
}

/* The status of a shell whose command cannot be started (POSIX, Shell Command Language, 2.8.2). */
static int status_of_failed_start(const struct sf_launched *launched)
{
	if (!launched || !launched->exec_error)
		return SF_EXIT_FAILED;
	return launched->exec_error == ENOENT ? 127 : 126;
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

/* The first line of a message. */
static void print_first_line(const char *text)
{
	fprintf(stderr, "%.*s", (int)strcspn(text, "\n"), text);
}

/* Where it is not the best engine, the user reads why. */
static const struct sf_engine *choose_engine(const struct sf_record_options *given, bool launched,
					     struct sf_error *err)
{
	bool second;
	const struct sf_engine *engine = sf_engine_choose(sf_record_named_engine(given), given->pid,
							  launched, &second, err);

	if (engine && second && !given->quiet) {
		fputs("stillframe: ", stderr);
		print_first_line(err->text);
		fprintf(stderr, ": so by %s, from %s\n", engine->name, engine->from);
	}
	return engine;
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

	/*
	 * Nothing was seen at all; without a duration there is no recording yet, and the file is
	 * somebody's.
	 */
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
	return fine ? SF_EXIT_OK : status_of_failed_start(session->launched);
}

static void join_words(char **words, char *ret, size_t size)
{
	size_t used = 0;

	*ret = 0;
	for (; *words && used < size; words++)
		used += (size_t)snprintf(ret + used, size - used, "%s%s", used ? " " : "", *words);
}

static int record_command(struct sf_record_options *given, char **words)
{
	struct sf_launched launched;
	struct sf_error err = { 0 };
	char command[1024], output[64];
	const char *slash = strrchr(words[0], '/');
	char name[64];
	struct sf_session_options session;

	snprintf(name, sizeof(name), "%s", slash ? slash + 1 : words[0]);
	sf_sanitize(name);
	if (!sf_launch(words, &launched, &err))
		return sf_cli_fail(SF_EXIT_FAILED, &err);
	given->pid = launched.pid;
	session = sf_record_session(given);
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

static int record_process(const struct sf_record_options *given)
{
	struct sf_session_options session = sf_record_session(given);
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
	struct sf_record_options given = sf_record_defaults();
	struct sf_error err = { 0 };
	int rest, status = sf_cli_parse(&sf_command_record, argc, argv, &given, &rest);

	if (status >= 0)
		return status;
	if (!sf_record_check(&given, argc, rest, &err))
		return sf_cli_fail(SF_EXIT_USAGE, &err);
	return rest < argc ? record_command(&given, argv + rest) : record_process(&given);
}

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
#include "capture/choice/engines.h"
#include "cli/advice.h"
#include "cli/commands.h"
#include "cli/record_options.h"
#include "cli/summary.h"
#include "frozen/runtime_list.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/task.h"
#include "recording/profile/profile.h"
#include "session/session.h"

#define MAX_SAME_NAME 1000 /* recordings of one process; the last name is then used again */

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
 * NAME-PID.sfr (PID 0: NAME.sfr), or NAME-PID-2.sfr and so on where an earlier recording has that name. Characters of NAME that
 * have a meaning in a shell or a path become "_".
 */
static void default_output(const char *name, int32_t pid, char *ret, size_t size)
{
	struct stat status;
	char clean[32], number[16] = "";
	size_t n = 0;

	for (; name[n] && n < sizeof(clean) - 1; n++)
		clean[n] =
			isalnum((unsigned char)name[n]) || strchr("._+-", name[n]) ? name[n] : '_';
	clean[n] = 0;
	if (clean[0] == '.' || clean[0] == '-')
		clean[0] = '_';
	if (pid)
		snprintf(number, sizeof(number), "-%d", pid);
	snprintf(ret, size, "%s%s.sfr", n ? clean : "process", number);
	for (int i = 2; i < MAX_SAME_NAME && lstat(ret, &status) == 0; i++)
		snprintf(ret, size, "%s%s-%d.sfr", n ? clean : "process", number, i);
}

/* The status of a shell whose command cannot be started (POSIX, Shell Command Language, 2.8.2). */
static int status_of_failed_start(const struct sf_launched *launched)
{
	if (!launched || !launched->exec_error)
		return SF_EXIT_FAILED;
	return launched->exec_error == ENOENT ? 127 : 126;
}

/* The status of the launched command as a shell would say it. */
static int shell_status(int status)
{
	if (status < 0)
		return SF_EXIT_FAILED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Waits for the launched command, which may run on. Its status is passed on; a recording that failed is not hidden by 0. */
static int pass_on(const struct sf_launched *launched, int status, bool fine)
{
	const int passed = shell_status(status >= 0 ? status : sf_launch_wait(launched));

	return passed ? passed : fine ? SF_EXIT_OK : SF_EXIT_FAILED;
}

/*
 * Why a better engine was passed over: a note of the recording. Where the program samples itself, the user reads it
 * before: the agent may fail, too.
 */
static void report_passed(struct sf_record_given *given, const struct sf_error *passed)
{
	static char note[sizeof(passed->text) + 80];
	const struct sf_engine *engine = given->session.engine;
	const bool inside = strcmp(engine->from, "inside") == 0;
	char why[sizeof(passed->text)];

	snprintf(note, sizeof(note), "by %s%s, since a better engine does not work here: %s", engine->name, inside ? ", from inside" : "",
		 sf_error_sentences(passed->text, why, sizeof(why)));
	if (!inside)
		given->session.note = note;
	else if (!given->quiet)
		fprintf(stderr, "stillframe: %s\n", note);
}

static bool choose_engine(struct sf_record_given *given, struct sf_error *err)
{
	struct sf_session_options *session = &given->session;
	struct sf_error passed;

	session->engine = sf_engine_choose(sf_record_engine(given), &session->capture, &passed, err);
	if (session->engine && session->awaiters && !(session->engine->yields & SF_YIELDS_STILLS))
		return sf_fail(err, SF_E_INPUT, "--" SF_AWAITERS " reads objects of the program from outside, and the engine %s walks inside "
			       "the program", session->engine->name);
	if (session->engine && *passed.text)
		report_passed(given, &passed);
	return session->engine != NULL;
}

static void warn(const struct sf_session_options *session)
{
	const char *warning = session->engine->warning ? session->engine->warning(&session->capture) : NULL;

	if (warning)
		fprintf(stderr, "stillframe: %s\n", warning);
}

/* At a terminal: what stillframe waits for. A command shows itself that it runs, and a duration was chosen. */
static void say_how_it_ends(const struct sf_record_given *given, const char *name)
{
	const struct sf_session_options *session = &given->session;
	char pids[48] = "";

	if (given->quiet || session->launched || session->capture.duration_ns || !isatty(STDERR_FILENO))
		return;
	if (session->capture.n_more)
		snprintf(pids, sizeof(pids), " (pid %d and %zu more)", session->capture.pid, session->capture.n_more);
	else if (!session->capture.all)
		snprintf(pids, sizeof(pids), " (pid %d)", session->capture.pid);
	fprintf(stderr, "stillframe: watching %s%s; Ctrl-C ends the recording\n", session->capture.all ? session->command : name, pids);
}

/* A launched command was forked before this: it has the signals and limits that we were given. */
static int record(struct sf_record_given *given, const char *name)
{
	struct sf_session_options *session = &given->session;
	struct sf_children_cpu children;
	struct sf_session_result result;
	struct sf_error err = { 0 };
	char output[64];
	bool fine, began;
	int status = -1;

	if (!session->output) {
		default_output(name, session->capture.pid, output, sizeof(output));
		session->output = output;
	}
	warn(session);
	catch_signals();
	sf_task_raise_limit();
	sf_children_cpu_begin(&children, session);
	say_how_it_ends(given, name);
	fine = sf_session_record(session, &result, &err);
	began = result.duration_ns > 0;
	sf_children_cpu_end(&children, session, &result);
	if (session->launched && began)
		status = result.child_status >= 0 ? result.child_status : sf_launch_poll(session->launched);

	/*
	 * Nothing was seen at all; without a duration there is no recording yet, and the file is
	 * somebody's.
	 */
	sf_advise_children(&children, &result);
	if (!fine && began && !result.totals.ticks)
		unlink(session->output);
	else if (!given->quiet && began)
		sf_print_summary(stderr, session, &result, name, fine);
	fine = fine && sf_check_sampled(session, &result, status >= 0, name, &err);
	if (!fine)
		sf_cli_fail(SF_EXIT_FAILED, &err);
	if (session->launched && began)
		return pass_on(session->launched, status, fine);
	return fine ? SF_EXIT_OK : status_of_failed_start(session->launched);
}

static void join(char *text, size_t size, const char *before, const char *more)
{
	const size_t used = strlen(text);

	snprintf(text + used, size - used, "%s%s", before, more);
}

static void join_words(char **words, char *ret, size_t size)
{
	size_t used = 0;

	*ret = 0;
	for (; *words && used < size; words++)
		used += (size_t)snprintf(ret + used, size - used, "%s%s", used ? " " : "", *words);
}

static int record_command(struct sf_record_given *given, char **words)
{
	struct sf_session_options *session = &given->session;
	struct sf_launched launched;
	struct sf_error err = { 0 };
	char command[1024], name[64];
	const char *slash = strrchr(words[0], '/');

	snprintf(name, sizeof(name), "%s", slash ? slash + 1 : words[0]);
	sf_sanitize(name);
	if (!sf_launch(words, &launched, &err))
		return sf_cli_fail(SF_EXIT_FAILED, &err);
	if (given->inlined)
		launched.variable = SF_LAUNCH_INLINED_VARIABLE;
	session->launched = &launched;
	session->capture.pid = session->capture.child = launched.pid;
	session->capture.program = words[0];
	if (!choose_engine(given, &err)) {
		sf_launch_cancel(&launched);
		return sf_cli_fail(SF_EXIT_FAILED, &err);
	}
	join_words(words, command, sizeof(command));
	session->command = command;
	return record(given, name);
}

/* "COMMAND (pid 1)", "COMMAND and 2 more (pids 1, 2, 3)": what the first runs, and all numbers. */
static void describe_processes(const struct sf_pids *pids, const char *words, char *ret, size_t size)
{
	size_t used = (size_t)snprintf(ret, size, "%s", words);

	if (pids->n > 1)
		used += (size_t)snprintf(ret + used, size - used, " and %u more", pids->n - 1);
	for (uint32_t i = 0; i < pids->n && used < size; i++)
		used += (size_t)snprintf(ret + used, size - used, "%s%d",
					 i ? ", " : pids->n > 1 ? " (pids " : " (pid ", pids->items[i]);
	if (used < size)
		snprintf(ret + used, size - used, ")");
}

static int record_processes(struct sf_record_given *given)
{
	const struct sf_pids *pids = &given->pids;
	struct sf_error err = { 0 };
	char name[64], command[2000], words[1000];

	for (uint32_t i = 0; i < pids->n; i++) {
		if (!sf_process_check(pids->items[i], &err))
			return sf_cli_fail(SF_EXIT_FAILED, &err);
	}
	if (!choose_engine(given, &err))
		return sf_cli_fail(SF_EXIT_FAILED, &err);
	sf_process_name(pids->items[0], name, sizeof(name));
	sf_process_command(pids->items[0], words, sizeof(words));
	describe_processes(pids, words[0] ? words : name, command, sizeof(command));
	given->session.command = command;
	return record(given, name);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static int record_all(struct sf_record_given *given)
{
	const struct sf_capture_options *capture = &given->session.capture;
	struct sf_error err = { 0 };
	char command[1024];

	if (capture->cgroup)
		snprintf(command, sizeof(command), "all processes of the control group %s", capture->cgroup);
	else
		snprintf(command, sizeof(command), "all processes");
	for (uint32_t i = 0; i < given->filters.n; i++)
		join(command, sizeof(command), i ? " and " : " with ", given->filters.items[i]);

	if (!choose_engine(given, &err))
		return sf_cli_fail(SF_EXIT_FAILED, &err);
	given->session.command = command;
	return record(given, capture->cgroup ? base_name(capture->cgroup) : "all");
}

/* `words`: the command, ended by NULL. */
static int record_given(struct sf_record_given *given, char **words)
{
	struct sf_error err = { 0 };

	if (!sf_task_check_limit(&err) || !sf_process_check_system(&err))
		return sf_cli_fail(SF_EXIT_FAILED, &err);
	if (given->session.capture.all)
		return record_all(given);
	return *words ? record_command(given, words) : record_processes(given);
}

static int run(int argc, char **argv)
{
	static struct sf_record_given given;
	struct sf_error err = { 0 };
	int rest, status;

	sf_record_begin(&given);
	status = sf_cli_parse(&sf_command_record, argc, argv, &given, &rest);
	if (status >= 0)
		return status;
	status = sf_record_take(&given, argc - rest, &err) ? record_given(&given, argv + rest) : sf_cli_fail(SF_EXIT_USAGE, &err);
	sf_process_filter_deinit(&given.filter);
	return status;
}

const struct sf_command sf_command_record = {
	.name = "record",
	.summary = "watch a process or a command, and write a recording",
	.usage = "[OPTIONS] -p PID... | --all | -- COMMAND...",
	.details =
		"Running threads are sampled at --rate, blocked ones at --blocked-rate; each sample "
		"says for how much CPU time and elapsed time it stands.\n\n"
		"Ctrl-C ends the recording, not the process. A command that was launched keeps the "
		"terminal and its signals, and its exit status is passed on.",
	.examples = "stillframe record -p 4242 -d 10s\n"
		    "stillframe record -p $(pidof nginx) -d 10s\n"
		    "stillframe record --children -o build.sfr -- make -j8\n"
		    "stillframe record --all -d 10s\n"
		    "stillframe record --clock cpu -F 999 -- sqlite3 big.db '.dump'",
	.make_options = sf_record_options,
	.takes_command = true,
	.run = run,
};

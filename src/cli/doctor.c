/* SPDX-License-Identifier: Apache-2.0 */
/* stillframe doctor: reports which parts of stillframe work on this machine, which do not, and how to change that. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/output.h"
#include "capture/choice/engines.h"
#include "cli/commands.h"
#include "os/process.h"
#include "os/rights.h"
#include "os/task.h"
#include "session/walker.h"

struct doctor_options {
	int32_t pid;
	bool setcap;
};

static const struct sf_option options[] = {
	{ .name = "pid", .letter = 'p', .kind = SF_OPTION_PID,
	  .offset = offsetof(struct doctor_options, pid), .argument = "PID",
	  .help = "also try it on this process" },
	{ .name = "setcap", .kind = SF_OPTION_FLAG, .offset = offsetof(struct doctor_options, setcap),
	  .help = "print the one command that gives this program what it needs to look at every process, and do nothing else" },
	{ .name = NULL },
};

/* Prints a line of the report: fine or not, the finding, and the advice (may be empty). */
static void print_finding(const struct sf_output *output, bool fine, const char *what, const char *advice)
{
	char text[sizeof(((struct sf_error *)NULL)->text)];

	fputs("  ", output->file);
	sf_print_in(output, fine ? SF_GREEN : SF_YELLOW, "%-4s", fine ? "ok" : "no");
	fputc(' ', output->file);
	sf_print_wrapped(output->file, what, strlen(what), 7, 7);
	if (!fine && *advice) {
		sf_error_sentences(advice, text, sizeof(text));
		fputs("       ", output->file);
		sf_print_wrapped(output->file, text, strlen(text), 7, 7);
	}
}

static void check_rights(const struct sf_output *output)
{
	char text[256];

	sf_process_rights(text, sizeof(text));
	print_finding(output, true, text, "");
}

/* A process whose file gave it rights may not read all that /proc says of itself; of what its user started it may. */
static void check_proc(const struct sf_output *output)
{
	const int32_t tried = sf_rights_are_from_file() ? getppid() : getpid();
	struct sf_task_run task_run;
	struct sf_task_look look;
	struct sf_task task;
	bool placed;

	if (!sf_task_open(tried, tried, &task)) {
		print_finding(output, false, "/proc shows how long threads ran",
			      "/proc/PID/task/TID/schedstat cannot be opened, for which the kernel needs CONFIG_SCHED_INFO.");
		return;
	}
	print_finding(output, sf_task_run(&task, &task_run), "/proc shows how long threads ran", "");
	placed = task.look_fd >= 0 && sf_task_look(&task, &look);
	if (placed || tried == getpid())
		print_finding(output, placed, "/proc shows where threads sleep",
			      "/proc/PID/task/TID/syscall cannot be read, for which the kernel needs CONFIG_HAVE_ARCH_TRACEHOOK: "
			      "blocked threads have no stack.");
	sf_task_close(&task);
}

static void check_map_files(const struct sf_output *output)
{
	print_finding(output, sf_process_opens_map_files(), "files that were deleted or replaced can still be read",
		      "They cannot be opened in /proc/PID/map_files, for which root or CAP_CHECKPOINT_RESTORE is needed; of such files only the "
		      "process's program is opened. Code of the others is read from the process's memory, without names from their symbol tables.");
}

static void check_cache(const struct sf_output *output)
{
	const char *home = getenv("HOME"), *cache = getenv("XDG_CACHE_HOME");
	char path[4096], text[4200];

	if (cache && *cache)
		snprintf(path, sizeof(path), "%s", cache);
	else
		snprintf(path, sizeof(path), "%s/.cache", home ? home : "");
	snprintf(text, sizeof(text), "unwind tables are kept in %.3000s/stillframe", path);
	sf_sanitize(text);
	print_finding(
		output, access(path, W_OK) == 0 || (home && access(home, W_OK) == 0), text,
		"It cannot be written; each start makes the tables anew. Set XDG_CACHE_HOME.");
}

static void check_engines(const struct sf_output *output, int32_t pid)
{
	for (const struct sf_engine *const *engine = sf_engines; *engine; engine++) {
		struct sf_error err = { 0 };
		bool fine = (*engine)->check(pid, &err);
		char text[128];

		snprintf(text, sizeof(text), "engine %s: %s", (*engine)->name, (*engine)->summary);
		print_finding(output, fine, text, err.text);
	}
}

static void on_engine_finding(void *arg, bool fine, const char *what, const char *advice)
{
	print_finding(arg, fine, what, advice);
}

/* Prints the findings of the engines about this machine. */
static void examine_machine(struct sf_output *output)
{
	for (const struct sf_engine *const *engine = sf_engines; *engine; engine++) {
		if ((*engine)->examine)
			(*engine)->examine(on_engine_finding, output);
	}
}

static void on_runtime_finding(const struct sf_runtime_findings *findings, bool good, const char *text,
			       const char *advice)
{
	print_finding(findings->arg, good, text, advice);
}

/* Of what the steps above said is missing, all that a capability gives. */
static void offer_rights(const struct sf_output *output)
{
	const unsigned missing = sf_rights_missing(SF_ALL_RIGHTS);
	char rights[96], text[400];

	if (!missing || sf_rights_are_inner())
		return;
	snprintf(text, sizeof(text), "stillframe doctor --setcap prints the command that gives this program %s; its users have these rights in it only.",
		 sf_rights_text(missing, rights, sizeof(rights)));
	sf_print_wrapped(output->file, text, strlen(text), 0, 0);
}

/* The kernel gives no rights to files of a file system that is mounted so. */
static void warn_of_mount(const char *path)
{
	struct statvfs system;

	if (statvfs(path, &system) == 0 && system.f_flag & ST_NOSUID)
		fprintf(stderr, "stillframe doctor: this file system is mounted with nosuid, so the command has no effect: copy stillframe to another one first\n");
}

static int print_setcap(void)
{
	struct sf_error err = { 0 };
	char path[PATH_MAX], rights[128];
	const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n < 0) {
		sf_fail_os(&err, "cannot tell where this program is (/proc/self/exe)");
		return sf_cli_fail(SF_EXIT_FAILED, &err);
	}
	path[n] = 0;
	printf("sudo setcap %s+ep ", sf_rights_setcap(SF_ALL_RIGHTS, rights, sizeof(rights)));
	sf_print_word(stdout, path);
	putchar('\n');
	warn_of_mount(path);
	return SF_EXIT_OK;
}

/* Prints how far the runtimes in a process can be shown. If the process cannot be read, the engines' lines say why. */
static void check_runtimes(const struct sf_output *output, int32_t pid)
{
	const struct sf_runtime_findings findings = { .add = on_runtime_finding, .arg = output };
	struct sf_walker walker;

	if (!sf_walker_init(&walker, 1, NULL))
		return;
	if (sf_walker_prepare(&walker, pid, NULL))
		sf_walker_examine(&walker, pid, &findings);
	sf_walker_deinit(&walker);
}

static int run(int argc, char **argv)
{
	struct doctor_options given = { 0 };
	struct sf_output output = sf_output_for(stdout);
	struct sf_error err = { 0 };
	struct utsname host;
	int rest, status = sf_cli_parse(&sf_command_doctor, argc, argv, &given, &rest);

	if (status >= 0)
		return status;
	if (rest < argc) {
		sf_fail(&err, SF_E_INPUT, "'%.40s' is not expected here", argv[rest]);
		sf_fail_hint(&err, "One process goes behind -p: stillframe doctor -p %.40s", argv[rest]);
		return sf_cli_fail(SF_EXIT_USAGE, &err);
	}
	if (given.setcap)
		return print_setcap();
	if (given.pid && sf_process_check_system(NULL) && !sf_process_check(given.pid, &err))
		return sf_cli_fail(SF_EXIT_FAILED, &err);
	uname(&host);
	sf_print_in(&output, SF_BOLD, "stillframe %s", SF_VERSION);
	printf(" on %s %s %s\n", host.sysname, host.release, host.machine);
	if (!sf_process_check_system(&err) || !sf_task_check_limit(&err)) {
		print_finding(&output, false, "stillframe can look at processes", err.text);
		return SF_EXIT_FAILED;
	}
	check_rights(&output);
	check_proc(&output);
	check_map_files(&output);
	check_cache(&output);
	examine_machine(&output);
	if (given.pid)
		printf("for pid %d:\n", given.pid);
	if (given.pid && !sf_process_check_width(given.pid, &err)) {
		print_finding(&output, false, "it runs a 64-bit program", err.text);
		return SF_EXIT_OK;
	}
	check_engines(&output, given.pid);
	if (given.pid)
		check_runtimes(&output, given.pid);
	offer_rights(&output);
	return SF_EXIT_OK;
}

const struct sf_command sf_command_doctor = {
	.name = "doctor",
	.summary = "what works here, what does not, and how to change that",
	.usage = "[-p PID | --setcap]",
	.details = "A bug report wants this command's output.",
	.examples = "stillframe doctor -p 4242\n"
		    "eval \"$(stillframe doctor --setcap)\"",
	.options = options,
	.run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: finds the command and runs it, with a stack that suffices. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/commands.h"

#define LARGE_BLOCK (1 << 20)
#define ENOUGH (8u << 20) /* bytes of stack */

static const struct sf_command *const commands[] = {
#define X(name) &sf_command_##name,
	SF_COMMANDS(X)
#undef X
};
#define N_COMMANDS (sizeof(commands) / sizeof(*commands))

static const struct sf_command *find_command(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++) {
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	}
	return NULL;
}

static void print_help(FILE *out)
{
	fprintf(out,
		"stillframe shows where a running program spends its time, and does it no harm.\n\n"
		"Usage: stillframe COMMAND [OPTIONS]\n\n");
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(out, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
	fprintf(out, "  %-8s %s\n", "manual", "the manual page of a command: stillframe manual record | man -l -");
	fprintf(out, "\n  stillframe record -p $(pidof nginx) -d 10s   then: stillframe report\n"
		     "  stillframe dump -p $(pidof nginx)            when they hang\n\n"
		     "`stillframe COMMAND --help` says more. Version: `stillframe --version`\n");
}

static int fail_unknown(const char *name)
{
	struct sf_error err;

	sf_fail(&err, SF_E_INPUT, "there is no command '%.40s'", name);
	sf_fail_hint(&err, "`stillframe --help` lists the commands.");
	return sf_cli_fail(SF_EXIT_USAGE, &err);
}

static bool is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int print_manual(int argc, char **argv)
{
	const struct sf_command *command = argc > 1 ? find_command(argv[1]) : NULL;
	const bool is_asked = argc > 1 && is_help(argv[1]);

	if (!command && argc > 1 && !is_asked)
		return fail_unknown(argv[1]);
	if (!command) {
		fprintf(is_asked ? stdout : stderr, "%sstillframe manual record | man -l -\n",
			is_asked ? "Usage: stillframe manual COMMAND, as in: " : "stillframe: manual: which command? e.g. ");
		return is_asked ? SF_EXIT_OK : SF_EXIT_USAGE;
	}
	sf_options_man(command, stdout);
	return SF_EXIT_OK;
}

/* "help record" is "record --help". */
static int print_help_of(int argc, char **argv)
{
	const struct sf_command *command = argc > 1 ? find_command(argv[1]) : NULL;

	if (!command && argc > 1 && strcmp(argv[1], "manual") != 0)
		return fail_unknown(argv[1]);
	if (command)
		sf_options_help(command, stdout);
	else
		print_help(stdout);
	return SF_EXIT_OK;
}

static int run_command(int argc, char **argv)
{
	const struct sf_command *command = find_command(argv[0]);

	if (command)
		return command->run(argc, argv);
	if (strcmp(argv[0], "manual") == 0)
		return print_manual(argc, argv);
	if (strcmp(argv[0], "help") == 0)
		return print_help_of(argc, argv);
	return fail_unknown(argv[0]);
}

/*
 * Makes the command fail if its output did not arrive at stdout (a full disk; not a closed pipe).
 */
static int check_output(int status)
{
	const bool arrived = fflush(stdout) == 0 && !ferror(stdout);

	if (arrived || status == SF_EXIT_FAILED) /* a command that failed has said why */
		return status;
	perror("stillframe: cannot write to stdout");
	return SF_EXIT_FAILED;
}

/*
 * The number of a standard descriptor that is closed is that of the next file which is opened: messages would go into
 * the recording. A descriptor that can be neither read nor written takes its place. A command that is launched does not
 * get it: there it is closed, as it was.
 */
static void occupy_closed(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) == -1 && open("/", O_PATH | O_CLOEXEC) != fd)
			return;
	}
}

/*
 * A block of LARGE_BLOCK bytes or more is mapped: it grows by mremap(), and its pages are not copied. Else glibc raises that
 * limit whenever a larger block is freed (mallopt(3), M_MMAP_THRESHOLD). Then the memory that a large recording takes
 * differs by a tenth from run to run.
 */
static void map_large_blocks(void)
{
#ifdef M_MMAP_THRESHOLD
	mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
#endif
}

struct call {
	int (*run)(int argc, char **argv);
	int argc;
	char **argv;
	int status;
};

static void *run(void *arg)
{
	struct call *call = arg;

	call->status = call->run(call->argc, call->argv);
	return NULL;
}

static bool is_small(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < ENOUGH;
}

/* Threads that are made later get such a stack, too: libc takes the limit otherwise. */
static int create(pthread_t *ret, struct call *call)
{
	pthread_attr_t attributes;
	int error = pthread_attr_init(&attributes);

	if (error)
		return error;
	error = pthread_attr_setstacksize(&attributes, ENOUGH);
	if (!error)
		error = pthread_setattr_default_np(&attributes);
	if (!error)
		error = pthread_create(ret, &attributes, run, call);
	pthread_attr_destroy(&attributes);
	return error;
}

/*
 * Runs the command with a stack that suffices. stillframe may be started under a small limit for stacks (RLIMIT_STACK),
 * which holds for a command that it launches and stays as it is; so the command then runs in a thread with a stack of
 * its own. Signals are for the thread that works.
 */
static int run_with_stack(int (*to_run)(int argc, char **argv), int argc, char **argv)
{
	struct call call = { to_run, argc, argv, SF_EXIT_FAILED };
	struct sf_error err;
	pthread_t thread;
	sigset_t all;

	if (!is_small())
		return to_run(argc, argv);
	errno = create(&thread, &call);
	if (errno) {
		sf_fail_os(&err, "the limit for stacks (ulimit -s) is too small, and a thread with a larger one cannot be made");
		return sf_cli_fail(SF_EXIT_FAILED, &err);
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	pthread_join(thread, NULL);
	return call.status;
}

int main(int argc, char **argv)
{
	occupy_closed();
	map_large_blocks();
	setlocale(LC_CTYPE, "");
	if (argc < 2) {
		print_help(stderr);
		return SF_EXIT_USAGE;
	}
	if (is_help(argv[1])) {
		print_help(stdout);
		return check_output(SF_EXIT_OK);
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		printf("stillframe %s\n", SF_VERSION);
		return check_output(SF_EXIT_OK);
	}
	return check_output(run_with_stack(run_command, argc - 1, argv + 1));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that start programs, thousands of times, in every way that libc has, after a random time on the CPU, so
 * that a profiler's signal may be under way at the moment of the exec. The new program has the default
 * action for it: one signal too many kills it. Each child must end with the status that it chose.
 *
 * in_exec KIND N [SPIN_US]         KIND: one of the table below
 * in_exec chain N [SPIN_US]        no fork: this process itself execs N times, every second time without what
 *                                  LD_PRELOAD names, so that nothing is there to catch a signal
 */
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "in_program.h"

#define STATUS 7

static char self[512];
static char *const done_words[] = { self, "done", NULL };
static char *const no_environment[] = { NULL };
static unsigned seed = 1;
static int64_t spin_ns;
extern char **environ;

static NOINLINE void spin_before_exec(void)
{
	burn_ns(spin_ns ? rand_r(&seed) % spin_ns : 0);
	NO_TAIL_CALL();
}

/* In a child of its own; none of them returns. */

static void by_execve(void)
{
	execve(self, done_words, no_environment);
}

static void by_execv(void)
{
	clearenv();
	execv(self, done_words);
}

static void by_execvp(void)
{
	clearenv();
	execvp(self, done_words);
}

static void by_execvpe(void)
{
	execvpe(self, done_words, no_environment);
}

static void by_execl(void)
{
	clearenv();
	execl(self, self, "done", (char *)NULL);
}

static void by_execlp(void)
{
	clearenv();
	execlp(self, self, "done", (char *)NULL);
}

static void by_execle(void)
{
	execle(self, self, "done", (char *)NULL, no_environment);
}

static void by_fexecve(void)
{
	FILE *file = fopen(self, "r");

	fexecve(fileno(file), done_words, no_environment);
}

static void by_execveat(void)
{
	execveat(AT_FDCWD, self, done_words, no_environment, 0);
}

/* By the file itself, without a name. */
static void by_execveat_of_file(void)
{
	execveat(open(self, O_RDONLY), "", done_words, no_environment, AT_EMPTY_PATH);
}

static void by_number(void)
{
	syscall(SYS_execve, self, done_words, no_environment);
}

static void by_number_at(void)
{
	syscall(SYS_execveat, AT_FDCWD, self, done_words, no_environment, 0);
}

/* It keeps what is agent's in the environment: an agent after an agent. */
static void by_execve_again(void)
{
	execve(self, done_words, environ);
}

/* A pending signal stays pending across an exec, and the mask, too. */
static void by_blocked(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	burn_ns(spin_ns / 2);
	execve(self, done_words, no_environment);
}

/* The first exec fails: the program runs on, and tries again. */
static void by_failing(void)
{
	execve("/nonexistent/program", done_words, no_environment);
	spin_before_exec();
	execve(self, done_words, no_environment);
}

static void *spin_for_ever(void *arg)
{
	stay(false);
	return arg;
}

static void *exec_in_thread(void *arg)
{
	burn_ns(spin_ns / 2);
	execve(self, done_words, no_environment);
	return arg;
}

static void by_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, exec_in_thread, NULL);
	pthread_join(thread, NULL);
}

/* The others are killed in the midst of their ticks. */
static void by_thread_among_others(void)
{
	pthread_t thread;

	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, spin_for_ever, NULL);
	burn_ns(spin_ns);
	pthread_create(&thread, NULL, exec_in_thread, NULL);
	pthread_join(thread, NULL);
}

/* The first thread, whose id the new program gets, is in the midst of its ticks. */
static void by_thread_beside_first(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, exec_in_thread, NULL);
	spin_for_ever(NULL);
}

/* In this process: the pid of a child, 0 when its status was checked here already, -1. */

static pid_t by_posix_spawn(void)
{
	pid_t child;

	return posix_spawn(&child, self, NULL, NULL, done_words, no_environment) == 0 ? child : -1;
}

static pid_t by_posix_spawnp(void)
{
	pid_t child;

	return posix_spawnp(&child, self, NULL, NULL, done_words, environ) == 0 ? child : -1;
}

static pid_t by_vfork(void)
{
	pid_t child = vfork();

	if (child == 0) {
		execve(self, done_words, no_environment);
		_exit(1);
	}
	return child;
}

static pid_t by_vfork_failing(void)
{
	pid_t child = vfork();

	if (child == 0) {
		execve("/nonexistent/program", done_words, no_environment);
		_exit(STATUS);
	}
	return child;
}

static pid_t by_fork_exit(void)
{
	pid_t child = fork();

	if (child == 0) {
		burn_ns(spin_ns / 2);
		_exit(STATUS);
	}
	return child;
}

static pid_t by_system(void)
{
	char words[600];
	int status;

	snprintf(words, sizeof(words), "exec '%s' done", self);
	status = system(words);
	return WIFEXITED(status) && WEXITSTATUS(status) == STATUS ? 0 : -1;
}

/* To add one: a line here; it is in every test of tests/e2e/test_signal_promises.py then. */
static const struct kind {
	const char *name;
	void (*exec)(void);
	pid_t (*spawn)(void);
} kinds[] = {
	{ "execve", by_execve, NULL },
	{ "execv", by_execv, NULL },
	{ "execvp", by_execvp, NULL },
	{ "execvpe", by_execvpe, NULL },
	{ "execl", by_execl, NULL },
	{ "execlp", by_execlp, NULL },
	{ "execle", by_execle, NULL },
	{ "fexecve", by_fexecve, NULL },
	{ "execveat", by_execveat, NULL },
	{ "execveat_of_file", by_execveat_of_file, NULL },
	{ "number", by_number, NULL },
	{ "number_at", by_number_at, NULL },
	{ "again", by_execve_again, NULL },
	{ "blocked", by_blocked, NULL },
	{ "failing", by_failing, NULL },
	{ "thread", by_thread, NULL },
	{ "among", by_thread_among_others, NULL },
	{ "beside_first", by_thread_beside_first, NULL },
	{ "posix_spawn", NULL, by_posix_spawn },
	{ "posix_spawnp", NULL, by_posix_spawnp },
	{ "vfork", NULL, by_vfork },
	{ "vfork_failing", NULL, by_vfork_failing },
	{ "fork_exit", NULL, by_fork_exit },
	{ "system", NULL, by_system },
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static pid_t start_one(const struct kind *kind)
{
	pid_t child;

	spin_before_exec();
	if (kind->spawn)
		return kind->spawn();
	child = fork();
	if (child != 0)
		return child;
	/* A forked child's clocks start with it: give them time to ring. */
	burn_ns(spin_ns);
	spin_before_exec();
	kind->exec();
	_exit(1);
}

/* 1 when it went wrong, and says how. */
static unsigned judge(const struct kind *kind, pid_t child)
{
	int status;

	if (child == 0)
		return 0;
	if (child < 0 || waitpid(child, &status, 0) != child) {
		printf("%s: %s\n", kind->name, strerror(errno));
		return 1;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS)
		return 0;
	printf("%s: %s %d\n", kind->name, WIFSIGNALED(status) ? "killed by signal" : "ended with",
	       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return 1;
}

static int storm(const char *name, unsigned n)
{
	unsigned bad = 0, started = 0;

	for (unsigned i = 0; i < n; i++) {
		for (size_t k = 0; k < N_KINDS; k++) {
			if (strcmp(name, "all") != 0 && strcmp(name, kinds[k].name) != 0)
				continue;
			bad += judge(&kinds[k], start_one(&kinds[k]));
			started++;
		}
	}
	printf("started %u bad %u\n", started, bad);
	return bad || !started;
}

/* With the library in every second program; IN_PRELOAD keeps its name meanwhile. */
static int chain(char **argv, unsigned left)
{
	char number[16];
	char *words[] = { self, "chain", number, argv[3], NULL };
	const char *preload = getenv("LD_PRELOAD");

	if (left == 0) {
		printf("chain done\n");
		return 0;
	}
	seed = left;
	snprintf(number, sizeof(number), "%u", left - 1);
	if (preload && *preload) {
		setenv("IN_PRELOAD", preload, 1);
		unsetenv("LD_PRELOAD");
		burn_ns(spin_ns);
		spin_before_exec();
	} else if (getenv("IN_PRELOAD")) {
		setenv("LD_PRELOAD", getenv("IN_PRELOAD"), 1);
	}
	execv(self, words);
	perror("exec");
	return 1;
}

int main(int argc, char **argv)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (argument_is(argc, argv, 1, "done"))
		return STATUS;
	if (argc < 3 || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 2;
	spin_ns = argument(argc, argv, 3, 300) * 1000;
	if (argument_is(argc, argv, 1, "chain"))
		return argc < 4 ? 2 : chain(argv, atoi(argv[2]));
	bounded(300 + 10 * atoi(argv[2]));
	return storm(argv[1], atoi(argv[2]));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that sets the actions of all signals by the number of the system call, as Chromium does between fork() and exec. It
 * sees and sets its own actions, by number and by sigaction(), and works before and after. The child of a vfork changes its own
 * actions, not its parent's. What it ignores is ignored in programs that it executes.
 *
 * in_actions NUMBER [SECONDS]: the number says nothing
 * in_actions ask
 */
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "in_spins.h"

#define N_SIGNALS 64
#define SIGSET_SIZE 8

/* The kernel's (linux/signal_types.h), of x86-64. */
struct action {
	void (*handler)(int number);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static volatile sig_atomic_t calls;

static void on_signal(int number)
{
	(void)number;
	calls++;
}

static long by_number(int number, const struct action *action, struct action *old, long size)
{
	return syscall(SYS_rt_sigaction, number, action, old, size);
}

static const char *name_of(void (*handler)(int))
{
	return handler == on_signal ? "its own" : handler == SIG_IGN ? "ignored" : handler == SIG_DFL ? "default" : "another";
}

/* By both ways. */
static void tell(const char *what)
{
	struct sigaction seen;
	struct action action = { 0 };
	long result = by_number(SIGPROF, NULL, &action, SIGSET_SIZE);

	sigaction(SIGPROF, NULL, &seen);
	raise(SIGPROF);
	printf("%s: %ld %s, %s, called %d times\n", what, result, name_of(action.handler), name_of(seen.sa_handler), (int)calls);
}

static void change(void)
{
	const struct sigaction own = { .sa_handler = on_signal };
	const struct action ignored = { .handler = SIG_IGN };
	const struct action unusual = { .handler = SIG_IGN, .flags = SA_NODEFER | 0x400 /* SA_UNSUPPORTED */, .mask = UINT64_MAX };
	struct action before = { 0 };

	sigaction(SIGPROF, &own, NULL);
	tell("sigaction");
	by_number(SIGPROF, &ignored, &before, SIGSET_SIZE);
	printf("before %s\n", name_of(before.handler));
	tell("by number");
	by_number(SIGPROF, &unusual, NULL, SIGSET_SIZE);
	by_number(SIGPROF, NULL, &before, SIGSET_SIZE);
	printf("kept %lx %lx\n", before.flags, (unsigned long)before.mask);
	printf("of another size %ld\n", by_number(SIGPROF, NULL, NULL, 4));
}

/* In the child of a vfork, which says by its status what it has seen. */
static void reset_in_child(bool has_number)
{
	const struct action action = { .handler = SIG_DFL };
	struct action before = { 0 }, after = { .handler = on_signal };
	struct sigaction seen;

	if (has_number)
		by_number(SIGPROF, &action, &before, SIGSET_SIZE);
	else
		before.handler = signal(SIGPROF, SIG_DFL);
	by_number(SIGPROF, NULL, &after, SIGSET_SIZE);
	sigaction(SIGPROF, NULL, &seen);
	_exit((before.handler == on_signal) | (after.handler == SIG_DFL) << 1 | (seen.sa_handler == SIG_DFL) << 2);
}

static void reset_by_vfork(bool has_number)
{
	const struct sigaction own = { .sa_handler = on_signal };
	pid_t child;
	int status;

	sigaction(SIGPROF, &own, NULL);
	child = vfork();
	if (child == 0)
		reset_in_child(has_number);
	waitpid(child, &status, 0);
	printf("child %x\n", status);
	tell("after a vfork");
}

static void ask_in(pid_t child, char *const words[])
{
	int status;

	if (child == 0) {
		execv(words[0], words);
		_exit(1);
	}
	waitpid(child, &status, 0);
	printf("status %x\n", status);
	fflush(stdout);
}

/* What it ignores is ignored in the programs that it executes, also after an exec that has failed. */
static void execute_ignoring(char *self)
{
	const struct sigaction ignored = { .sa_handler = SIG_IGN };
	char *const words[] = { self, "ask", NULL };
	pid_t child;

	sigaction(SIGPROF, &ignored, NULL);
	execv("/nowhere", words);
	tell("after an exec that failed");
	fflush(stdout);
	ask_in(fork(), words);
	ask_in(vfork(), words);
	child = fork();
	if (child == 0)
		signal(SIGPROF, SIG_DFL);
	ask_in(child, words);
}

#define N_FOLDERS 300000 /* in which it is not; to look through them takes longer than the time between two looks at the actions */

/* The same, by an exec that takes long. Comes back only if it fails. */
static void execute_slowly(const char *self)
{
	static const char folder[] = "/nowhere:";
	const size_t size = sizeof(folder) - 1;
	const char *name = strrchr(self, '/');
	char *path = malloc(N_FOLDERS * size + strlen(self) + 1), *const words[] = { (char *)self, "ask", NULL }, *const none[] = { NULL };

	for (size_t i = 0; i < N_FOLDERS; i++)
		memcpy(path + i * size, folder, size);
	strcpy(path + N_FOLDERS * size, self);
	path[N_FOLDERS * size + (size_t)(name - self)] = 0;
	setenv("PATH", path, 1);
	signal(SIGPROF, SIG_IGN);
	fflush(stdout);
	execvpe(name + 1, words, none);
}

/* In a program that was executed. */
static void answer(void)
{
	struct sigaction seen;

	sigaction(SIGPROF, NULL, &seen);
	printf("asked: %s\n", name_of(seen.sa_handler));
}

static void reset_all(void)
{
	const struct action action = { .handler = SIG_DFL };
	struct action seen = { .handler = on_signal };
	int n = 0;

	for (int number = 1; number <= N_SIGNALS; number++)
		n += by_number(number, &action, NULL, SIGSET_SIZE) == 0;
	by_number(SIGPROF, NULL, &seen, SIGSET_SIZE);
	printf("reset %d, %s\n", n, name_of(seen.handler));
}

int main(int argc, char **argv)
{
	const int64_t ns = argument(argc, argv, 2, 0.3) * NS_PER_S;

	bounded(60);
	if (argc > 1 && strcmp(argv[1], "ask") == 0) {
		answer();
		return 0;
	}
	spin_before(ns);
	change();
	reset_by_vfork(false);
	reset_by_vfork(true);
	execute_ignoring(argv[0]);
	reset_all();
	spin_after(ns);
	execute_slowly(argv[0]);
	return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that gives the kernel addresses at which there is nothing, and works before and after: the kernel refuses most of
 * these calls, and it must be the kernel that does.
 *
 * in_nowhere NUMBER [SECONDS]: the number says nothing
 */
#include <fcntl.h>
#include <spawn.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "in_spins.h"

extern char **environ;

static void execute(const char *name)
{
	char *words[] = { "in_nowhere", NULL };
	pid_t child;

	say("execve", execve(name, words, environ));
	say("execveat", execveat(AT_FDCWD, name, words, environ, 0));
	say("execve by number", syscall(SYS_execve, name, words, environ));
	say("execveat by number", syscall(SYS_execveat, AT_FDCWD, name, words, environ, 0));
	say("posix_spawn", -posix_spawn(&child, name, NULL, NULL, words, environ));
}

static void look_at(const char *name)
{
	const int folder = open("/", O_RDONLY | O_DIRECTORY);
	struct stat status;

	say("stat", stat(name, &status));
	say("fstatat", fstatat(folder, name, &status, 0));
	say("fstatat of the folder", fstatat(folder, name, &status, AT_EMPTY_PATH)); /* fine since Linux 6.11 */
	close(folder);
}

/* By number, of the signal that the agent may have, too. The kernel looks last for a place for the action before. */
static void act(const void *address)
{
	static const struct { unsigned long words[4]; } ignored = { { (unsigned long)SIG_IGN } };

	say("rt_sigaction", syscall(SYS_rt_sigaction, SIGPROF, address, NULL, 8)); /* NULL: nothing is set */
	say("rt_sigaction, the one before", syscall(SYS_rt_sigaction, SIGPROF, &ignored, address, 8));
	say("signal", signal(SIGPROF, SIG_DFL) == SIG_IGN);
}

static void wait_for_signals(const void *address)
{
	sigset_t none;

	sigemptyset(&none);
	if (address) /* for ever */
		say("sigtimedwait", sigtimedwait(&none, NULL, address));
	say("sigtimedwait of a set", sigtimedwait(address, NULL, &(struct timespec){ 0 }));
	say("signalfd", signalfd(-1, address, SFD_CLOEXEC));
	say("sigaltstack", sigaltstack(address, NULL)); /* NULL: nothing is set */
}

int main(int argc, char **argv)
{
	const int64_t ns = argument(argc, argv, 2, 0.3) * NS_PER_S;
	const char *const volatile nowhere[] = { NULL, (const char *)8 }; /* as if they were not known */

	bounded(60);
	spin_before(ns);
	for (int i = 0; i < 2; i++) {
		execute(nowhere[i]);
		look_at(nowhere[i]);
		act(nowhere[i]);
		wait_for_signals(nowhere[i]);
	}
	spin_after(ns);
	return 0;
}

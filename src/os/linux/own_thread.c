/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts threads of our own with all signals blocked: a new thread has the mask of the one that starts it
 * (pthread_create(3)). Recognises one that hangs in the kernel. Such a killable wait is shown as D, like a wait for a disk.
 * The two differ in the system call, and in that the killable wait does not end.
 */
#include "os/own_thread.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/linux/proc.h"
#include "os/task.h"

#define LOOKS 6

bool sf_quiet_thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = pthread_create(ret, NULL, run, arg) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

/* The files of /proc about a process's memory are read by pread, but so are a recording's. */
static bool reads_memory(const struct sf_stuck *stuck)
{
	char text[256];
	long number;

	if (!sf_proc_read(getpid(), stuck->tid, "syscall", text, sizeof(text)))
		return stuck->holds; /* a kernel that does not tell */
	number = strtol(text, NULL, 10);
	return number == SYS_process_vm_readv || number == SYS_process_vm_writev ||
	       (stuck->holds && (number == SYS_ptrace || number == SYS_pread64));
}

bool sf_stuck_look(struct sf_stuck *stuck)
{
	uint64_t switches;

	if (!stuck->tid)
		return false;
	switches = sf_task_switches(getpid(), stuck->tid);
	if (switches != stuck->switches || sf_task_letter(getpid(), stuck->tid) != 'D' ||
	    !reads_memory(stuck))
		stuck->n_looks = 0;
	else
		stuck->n_looks++;
	stuck->switches = switches;
	return stuck->n_looks >= LOOKS;
}

void sf_stuck_join(pthread_t thread, const _Atomic int32_t *tid, bool holds)
{
	struct sf_stuck stuck = { .holds = holds };
	struct timespec until;

	for (;;) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += SF_STUCK_LOOK_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (pthread_timedjoin_np(thread, NULL, &until) == 0)
			return;
		stuck.tid = atomic_load(tid);
		if (sf_stuck_look(&stuck))
			sf_stuck_give_up();
	}
}

void sf_stuck_give_up(void)
{
	static const char text[] =
		"stillframe: gave up: the program's memory cannot be read, what is behind it does not answer (a FUSE or "
		"network file system, a userfaultfd).\n"
		"Its threads are let go. A recording has what was sampled until a second before.\n";

	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(1);
	_exit(1);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/hold.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frozen/still.h"
#include "os/linux/proc.h"
#include "os/linux/user_regs.h"
#include "os/syscalls.h"
#include "os/task.h"

/*
 * Why SEIZE for each still and not once: an attached thread stops at each of its signals, ignored
 * ones included, and those wake its system calls. The round trip costs the same either way
 * (docs/benchmarks.md, "Holding a thread").
 */
enum sf_hold sf_hold_ask(int32_t tid)
{
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
		if (errno == ESRCH)
			return SF_HOLD_GONE;
		return sf_task_tracer(tid, tid) ? SF_HOLD_BUSY : SF_HOLD_DENIED;
	}
	/* Fails only when the thread ended meanwhile; the wait will say so. */
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	return SF_HOLD_ASKED;
}

bool sf_hold_wait(struct sf_held *ret, bool wait)
{
	int status, event;
	pid_t tid = waitpid(-1, &status, __WALL | __WNOTHREAD | (wait ? 0 : WNOHANG));

	if (tid <= 0)
		return false;
	*ret = (struct sf_held){ .tid = tid, .status = status, .stopped = WIFSTOPPED(status) };
	if (!ret->stopped)
		return true;
	event = status >> 16;
	ret->ours = event == PTRACE_EVENT_STOP;
	ret->signal = event ? 0 : WSTOPSIG(status);
	return true;
}

bool sf_hold_registers(const struct sf_held *held, struct sf_regs *ret)
{
	struct user_regs_struct regs;
	struct iovec iov = { .iov_base = &regs, .iov_len = sizeof(regs) };

	if (ptrace(PTRACE_GETREGSET, held->tid, (void *)NT_PRSTATUS, &iov) != 0)
		return false;
	sf_user_regs_load(&regs, ret);
	return true;
}

int32_t sf_hold_syscall(const struct sf_held *held)
{
	struct user_regs_struct regs;
	struct iovec iov = { .iov_base = &regs, .iov_len = sizeof(regs) };

	if (ptrace(PTRACE_GETREGSET, held->tid, (void *)NT_PRSTATUS, &iov) != 0)
		return SF_SYSCALL_NONE;
	return sf_user_regs_syscall(&regs);
}

/*
 * A thread that was running when we asked may have entered a system call before it stopped, one that
 * answers an interruption with EINTR and not by restarting (sf_syscall_mends). No signal came, so
 * nobody may see that EINTR: put back the kernel's own "restart unless a handler runs".
 */
static void mend_system_call(const struct sf_held *held)
{
	struct user_regs_struct regs;
	struct iovec iov = { .iov_base = &regs, .iov_len = sizeof(regs) };

	if (ptrace(PTRACE_GETREGSET, held->tid, (void *)NT_PRSTATUS, &iov) != 0)
		return;
	if (sf_user_regs_mend(&regs))
		ptrace(PTRACE_SETREGSET, held->tid, (void *)NT_PRSTATUS, &iov);
}

void sf_hold_release(const struct sf_held *held)
{
	if (held->ours)
		mend_system_call(held);
	ptrace(PTRACE_DETACH, held->tid, NULL, (void *)(intptr_t)held->signal);
}

int sf_cpu_current(void)
{
	return sched_getcpu();
}

void sf_cpu_move(int cpu)
{
	static cpu_set_t allowed;
	static bool known;
	cpu_set_t set;

	if (!known) {
		sched_getaffinity(0, sizeof(allowed), &allowed);
		known = true;
	}
	if (cpu < 0) {
		sched_setaffinity(0, sizeof(allowed), &allowed);
		return;
	}
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static bool yama_refuses(void)
{
	char text[16];
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	bool refuses = file && fgets(text, sizeof(text), file) && atoi(text) > 0;

	if (file)
		fclose(file);
	return refuses;
}

bool sf_hold_explain(int32_t pid, int32_t tid, enum sf_hold result, struct sf_error *err)
{
	char name[64] = "";

	sf_proc_read(pid, 0, "comm", name, sizeof(name));
	name[strcspn(name, "\n")] = 0;
	if (result == SF_HOLD_GONE)
		return sf_fail(err, SF_E_GONE, "cannot stop thread %d of pid %d (%s): it has ended",
			       tid, pid, name);
	if (result == SF_HOLD_BUSY) {
		sf_fail(err, SF_E_DENIED,
			"cannot stop thread %d of pid %d (%s): pid %d traces it already", tid, pid,
			name, sf_task_tracer(pid, tid));
		return sf_fail_hint(err, "A debugger or strace holds it; a thread has one tracer. "
					 "End that one first.");
	}
	sf_fail(err, SF_E_DENIED, "cannot stop thread %d of pid %d (%s): Operation not permitted", tid,
		pid, name);
	if (geteuid() == 0)
		return sf_fail_hint(err, "stillframe runs as root, but without CAP_SYS_PTRACE (a "
					 "container?): add that capability.");
	if (yama_refuses())
		return sf_fail_hint(err, "kernel.yama.ptrace_scope is above 0: start the program with "
					 "`stillframe record -- COMMAND`, or run as root.");
	return sf_fail_hint(err, "The process belongs to another user or may not be traced: run as "
				 "root (sudo).");
}

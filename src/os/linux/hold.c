/* SPDX-License-Identifier: Apache-2.0 */
/* Holds threads by ptrace. All functions but sf_hold_run must be called in its thread. */
#include "os/hold.h"

#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frozen/still.h"
#include "os/clock.h"
#include "os/linux/proc.h"
#include "os/linux/user_regs.h"
#include "os/own_thread.h"
#include "os/process.h"
#include "os/rights.h"
#include "os/syscalls.h"
#include "os/task.h"

struct call {
	void (*fn)(void *arg);
	void *arg;
	sigset_t mask;
	_Atomic int32_t tid;
};

#define OTHERS_PAUSE_US 100
#define MAX_REFUSALS 4

/* Of the holding thread; the process's other threads block these signals. */
static bool keeps_stops;
static sigset_t mask_before;

static void *make_call(void *arg)
{
	struct call *call = arg;

	atomic_store(&call->tid, gettid());
	pthread_sigmask(SIG_SETMASK, &call->mask, NULL);
	keeps_stops = false; /* a thread before this one may have ended with them blocked */
	call->fn(call->arg);
	return NULL;
}

/* Meanwhile signals are for the thread that holds, from its first moment on: they end its waits, and it makes stops wait. */
bool sf_hold_run(void (*fn)(void *arg), void *arg, struct sf_error *err)
{
	struct call call = { .fn = fn, .arg = arg };
	pthread_t thread;
	sigset_t all;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &call.mask);
	error = pthread_create(&thread, NULL, make_call, &call);
	if (!error)
		sf_stuck_join(thread, &call.tid, true);
	pthread_sigmask(SIG_SETMASK, &call.mask, NULL);
	errno = error;
	return !error || sf_fail_os(err, "cannot start a thread");
}

void sf_hold_let_stop(void)
{
	if (keeps_stops)
		pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
	keeps_stops = false;
}

static bool is_pending(const sigset_t *pending, int signal_number)
{
	return sigismember(pending, signal_number) && !sigismember(&mask_before, signal_number);
}

/* False: one is there already. */
static bool keep_stops(void)
{
	sigset_t set;

	if (keeps_stops)
		return sigpending(&set) != 0 ||
		       (!is_pending(&set, SIGTSTP) && !is_pending(&set, SIGTTIN) && !is_pending(&set, SIGTTOU));
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigaddset(&set, SIGTTIN);
	sigaddset(&set, SIGTTOU);
	keeps_stops = pthread_sigmask(SIG_BLOCK, &set, &mask_before) == 0;
	return true;
}

struct seize {
	int32_t tid;
	long result;
	int error;
};

static void seize(void *arg)
{
	struct seize *call = arg;

	call->result = ptrace(PTRACE_SEIZE, call->tid, NULL, NULL);
	call->error = errno;
}

static bool is_ours(int32_t tid)
{
	return sf_task_tracer(tid, tid) == gettid();
}

static enum sf_hold why_refused(int32_t tid, int error)
{
	char letter = sf_task_letter(tid, tid);

	/* A thread on its way out is refused like somebody else's (ptrace_attach, exit_state). */
	if (error == ESRCH || !letter || letter == 'Z' || letter == 'X')
		return SF_HOLD_GONE;
	return sf_task_tracer(tid, tid) ? SF_HOLD_BUSY : SF_HOLD_DENIED;
}

/*
 * Why SEIZE for each still and not once: an attached thread stops at each of its signals, ignored
 * ones included, and those wake its system calls. The round trip costs the same either way
 * (docs/benchmarks.md, "Holding a thread").
 *
 * Why the alarm bounds SEIZE: an exec holds a mutex that SEIZE needs (cred_guard_mutex), and waits for
 * its process's other threads to end. A thread that we hold, or whose stop we requested, ends only when
 * we wait for it. SEIZE then waits for ever, as a signal makes it start again (ERESTARTNOINTR).
 */
enum sf_hold sf_hold_request(int32_t tid)
{
	struct seize call = { .tid = tid };
	enum sf_hold why;

	if (!keep_stops())
		return SF_HOLD_BARRED;
	/* A thread that another tracer lets go between the call and the look at the reason is requested again. */
	for (int i = 0; i < MAX_REFUSALS; i++) {
		if (!sf_alarm_bound(seize, &call) || call.result == 0)
			break;
		why = why_refused(tid, call.error);
		if (why != SF_HOLD_DENIED || i + 1 == MAX_REFUSALS)
			return why;
	}
	/*
	 * Fails when the thread ended meanwhile, and the wait will say so; or when it was not
	 * seized.
	 */
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0 && !is_ours(tid))
		return SF_HOLD_BARRED;
	return SF_HOLD_REQUESTED;
}

bool sf_hold_wait(struct sf_held *ret, bool wait)
{
	int status, event;
	pid_t tid = waitpid(-1, &status, __WALL | __WNOTHREAD | (wait ? 0 : WNOHANG));

	/* None is requested, whatever the caller has counted: one may have ended unseen in an exec. */
	if (tid < 0 && errno == ECHILD)
		sf_hold_let_stop();
	if (tid <= 0)
		return false;
	*ret = (struct sf_held){ .tid = tid, .status = status, .stopped = WIFSTOPPED(status) };
	if (!ret->stopped)
		return true;
	event = status >> 16;
	/*
	 * A thread in a job control stop shows its signal instead of SIGTRAP, and stays in that
	 * stop.
	 */
	ret->ours = event == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP;
	ret->signal = event ? 0 : WSTOPSIG(status);
	return true;
}

/* Of a thread in 32-bit code the kernel gives other registers, which are fewer bytes (task_user_regset_view()). */
static bool get_registers(struct sf_held *held, struct user_regs_struct *regs)
{
	struct iovec iov = { .iov_base = regs, .iov_len = sizeof(*regs) };
	const bool read = ptrace(PTRACE_GETREGSET, held->tid, (void *)NT_PRSTATUS, &iov) == 0;

	held->is_32_bit = read && iov.iov_len != sizeof(*regs);
	return read && !held->is_32_bit;
}

/*
 * A thread that was running when we asked may have entered a system call before it stopped, one
 * that answers an interruption with EINTR and not by restarting (sf_call_mends). No signal came,
 * so nobody may see that EINTR: the release puts back the kernel's own "restart unless a handler
 * runs".
 *
 * The same holds where a signal stopped it. A signal that its process ignores stops only a traced thread (sig_ignored()
 * in kernel/signal.c). A signal with a handler makes an EINTR of the kernel's code. A signal that stops the process
 * makes calls fail without a tracer, too.
 */
static bool is_for_us(const struct sf_held *held)
{
	static const int stops[] = { SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU };

	for (size_t i = 0; i < sizeof(stops) / sizeof(*stops); i++) {
		if (held->signal == stops[i])
			return false;
	}
	return held->ours || held->signal;
}

static void mend_system_call(struct sf_held *held)
{
	struct user_regs_struct regs;
	struct iovec iov = { .iov_base = &regs, .iov_len = sizeof(regs) };

	if (get_registers(held, &regs) && sf_user_regs_mend(&regs, held->tid))
		ptrace(PTRACE_SETREGSET, held->tid, (void *)NT_PRSTATUS, &iov);
}

bool sf_hold_registers(struct sf_held *held, struct sf_regs *ret)
{
	struct user_regs_struct regs;
	bool at_sleep;

	if (!get_registers(held, &regs))
		return false;
	sf_user_regs_load(&regs, ret);
	held->read = true;
	held->syscall = sf_user_regs_syscall(&regs, &at_sleep);
	held->in_wait = at_sleep || sf_syscall_only_waits(held->syscall, sf_user_regs_second_argument(&regs));
	held->to_mend = is_for_us(held) && sf_user_regs_mend(&regs, held->tid);
	return true;
}

void sf_hold_release(struct sf_held *held)
{
	if (is_for_us(held) && (held->to_mend || !held->read))
		mend_system_call(held);
	ptrace(PTRACE_DETACH, held->tid, NULL, (void *)(intptr_t)held->signal);
}

/*
 * A container's filter answers in the kernel's place, which would say that this is no tracee of
 * ours.
 */
bool sf_hold_is_filtered(void)
{
	return ptrace(PTRACE_DETACH, getpid(), NULL, NULL) != 0 && errno != ESRCH;
}

/* Whether it is traced for longer than another stillframe, or gdb's `gcore`, may hold a thread at a time. */
static bool is_traced_for_long(int32_t pid)
{
	const uint64_t end_ns = sf_now_ns() + SF_HOLD_OTHERS_NS;

	while (sf_task_tracer(pid, pid)) {
		if (sf_now_ns() >= end_ns)
			return true;
		usleep(OTHERS_PAUSE_US);
	}
	return false;
}

/* Reading its memory takes the same right as attaching (kernel: mm/process_vm_access.c). Nothing is mapped at address 0. */
static bool may_read(int32_t pid)
{
	char byte;
	const struct iovec own = { &byte, 1 }, theirs = { NULL, 1 };

	return syscall(SYS_process_vm_readv, pid, &own, 1, &theirs, 1, 0) >= 0 || errno == EFAULT;
}

/*
 * Opening its memory takes the same right as attaching (kernel: fs/proc/base.c, proc_mem_open). But a file in /proc
 * also has an owner, of whom CAP_SYS_PTRACE knows nothing.
 */
enum sf_hold sf_hold_allowed(int32_t pid)
{
	const int32_t live = sf_process_live_id(pid);
	const int fd = sf_proc_open(live, 0, "mem");

	if (fd < 0 && (errno == ENOENT || errno == ESRCH))
		return SF_HOLD_GONE;
	if (fd < 0 && !may_read(live))
		return SF_HOLD_DENIED;
	if (fd >= 0)
		close(fd);
	if (is_traced_for_long(pid))
		return SF_HOLD_BUSY;
	return sf_hold_is_filtered() ? SF_HOLD_DENIED : SF_HOLD_REQUESTED;
}

int sf_hold_scope(void)
{
	int scope = 0;

	sf_proc_scan("/proc/sys/kernel/yama/ptrace_scope", "%d", &scope);
	return scope;
}

static void explain_busy(int32_t pid, int32_t tid, const char *name, struct sf_error *err)
{
	const int32_t tracer = sf_task_tracer(pid, tid);
	char tracer_name[64];

	if (!tracer) { /* not any more */
		sf_fail(err, SF_E_DENIED, "cannot stop thread %d of pid %d (%s): another process traced it", tid, pid, name);
		sf_fail_hint(err, "A thread has one tracer. Try again.");
		return;
	}
	sf_process_name(tracer, tracer_name, sizeof(tracer_name));
	sf_fail(err, SF_E_DENIED, "cannot stop thread %d of pid %d (%s): pid %d (%s) traces it already", tid, pid, name,
		tracer, tracer_name);
	sf_fail_hint(err, "A thread has one tracer: a debugger, for example, or strace. End that one first.");
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
		explain_busy(pid, tid, name, err);
		return false;
	}
	sf_fail(err, SF_E_DENIED, "cannot stop thread %d of pid %d (%s): Operation not permitted",
		tid, pid, name);
	if (sf_hold_is_filtered())
		return sf_fail_hint(err, "A system-call filter (seccomp; a container's, perhaps) refuses ptrace to stillframe.");
	if (geteuid() != 0 && sf_rights_missing(SF_RIGHT_BIT(TRACE)) && sf_hold_scope() > 0)
		return sf_fail_hint(err,
				    "kernel.yama.ptrace_scope is above 0: start the program with "
				    "`stillframe record -- COMMAND`, or have CAP_SYS_PTRACE, or run as root.");
	return sf_rights_hint_at_trace(err);
}

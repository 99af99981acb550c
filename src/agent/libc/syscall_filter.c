/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out which system calls a seccomp filter forbids, by trying them in a child process.
 * Ordinary code; never in a signal handler.
 */
#include "agent/libc/syscall_filter.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "agent/libc/own_proc.h"
#include "frozen/child.h"
#include "frozen/raw.h"
#include "os/clock.h"

#define PATIENCE_NS UINT64_C(2000000000) /* for a child, which takes some milliseconds */
#define LOOK_NS 200000u

#define UNKNOWN "cannot find out what the system-call filter (seccomp) of this process allows"

#define ALL (SF_FILTER_SAMPLING | SF_FILTER_PERF | SF_FILTER_CHANNEL | SF_FILTER_RIGHTS | SF_FILTER_ASIDE)
#define MESSAGES (SF_FILTER_CHANNEL | SF_FILTER_ASIDE)

/*
 * System calls that the agent needs and that few programs make. The arguments are such that the call has no effect. To add
 * one: add a line. wait4 is the first, because the trial needs it to wait for the child's end.
 */
static const struct {
	const char *name;
	long     number;
	unsigned uses;
	long     a, b, c;
} calls[] = {
	{ "wait4", SYS_wait4, ALL, -1, 0, WNOHANG },
	{ "process_vm_readv", SYS_process_vm_readv, SF_FILTER_SAMPLING, 0, 0, 0 },
	{ "process_vm_writev", SYS_process_vm_writev, SF_FILTER_SAMPLING, 0, 0, 0 },
	{ "close_range", SYS_close_range, SF_FILTER_SAMPLING, -1, -1, 0 },
	{ "fstatfs", SYS_fstatfs, SF_FILTER_SAMPLING, -1, 0, 0 },
	{ "getcpu", SYS_getcpu, SF_FILTER_SAMPLING, 0, 0, 0 },
	{ "getdents64", SYS_getdents64, SF_FILTER_SAMPLING, -1, 0, 0 },
	{ "gettid", SYS_gettid, SF_FILTER_SAMPLING, 0, 0, 0 },
	{ "memfd_create", SYS_memfd_create, SF_FILTER_SAMPLING, 0, 0, 0 },
	{ "mkdirat", SYS_mkdirat, SF_FILTER_SAMPLING, -1, 0, 0 },
	{ "prctl", SYS_prctl, SF_FILTER_SAMPLING, PR_GET_DUMPABLE, 0, 0 },
	{ "rt_sigpending", SYS_rt_sigpending, SF_FILTER_SAMPLING, 0, 0, 0 },
	{ "rt_sigtimedwait", SYS_rt_sigtimedwait, SF_FILTER_SAMPLING, 0, 0, 0 },
	{ "rt_tgsigqueueinfo", SYS_rt_tgsigqueueinfo, SF_FILTER_SAMPLING, 0, 0, 0 },
	{ "sched_getaffinity", SYS_sched_getaffinity, SF_FILTER_SAMPLING, 0, 0, 0 },
	{ "sched_getattr", SYS_sched_getattr, SF_FILTER_SAMPLING, 0, 0, 0 },
	{ "sched_setaffinity", SYS_sched_setaffinity, SF_FILTER_SAMPLING, 0, 0, 0 },
	{ "sched_setattr", SYS_sched_setattr, SF_FILTER_SAMPLING, 0, 0, 0 },
	{ "setitimer", SYS_setitimer, SF_FILTER_SAMPLING, -1, 0, 0 },
	{ "tgkill", SYS_tgkill, SF_FILTER_SAMPLING, 0, 0, 0 },
	{ "timer_create", SYS_timer_create, SF_FILTER_SAMPLING, -1, 0, 0 },
	{ "timer_delete", SYS_timer_delete, SF_FILTER_SAMPLING, -1, 0, 0 },
	{ "timer_settime", SYS_timer_settime, SF_FILTER_SAMPLING, -1, 0, 0 },
	{ "utimensat", SYS_utimensat, SF_FILTER_SAMPLING, -1, 0, 0 },
	{ "perf_event_open", SYS_perf_event_open, SF_FILTER_PERF, 0, 0, 0 },
	{ "accept4", SYS_accept4, SF_FILTER_CHANNEL, -1, 0, 0 },
	{ "bind", SYS_bind, MESSAGES, -1, 0, 0 },
	{ "listen", SYS_listen, SF_FILTER_CHANNEL, -1, 0, 0 },
	{ "recvmsg", SYS_recvmsg, MESSAGES, -1, 0, 0 },
	{ "sendmsg", SYS_sendmsg, MESSAGES, -1, 0, 0 },
	{ "socket", SYS_socket, MESSAGES, -1, 0, 0 },
	{ "unlinkat", SYS_unlinkat, SF_FILTER_CHANNEL, -1, 0, 0 },
	{ "capget", SYS_capget, SF_FILTER_RIGHTS, 0, 0, 0 },
	{ "capset", SYS_capset, SF_FILTER_RIGHTS, 0, 0, 0 },
	{ "clone3", SYS_clone3, SF_FILTER_ASIDE, 0, 0, 0 },
	{ "getsockname", SYS_getsockname, SF_FILTER_ASIDE, -1, 0, 0 },
};

#define N_CALLS (sizeof(calls) / sizeof(calls[0]))

_Static_assert(N_CALLS <= 64, "a bit for each");

static _Atomic uint64_t forbidden; /* of the last look; bits by place in the table */

struct trial {
	const struct sf_filter_call *first; /* NULL: as it is */
	_Atomic uint32_t *tried;            /* shared with the child: how many calls it has survived */
	uint64_t forbidden;                 /* bits by place in the table */
};

/* --- the child --- */

static long call(const struct sf_filter_call *call)
{
	const long *args = call->args;

	return sf_raw6(call->number, args[0], args[1], args[2], args[3], args[4], args[5]);
}

/* A copy of the process with this thread alone: any lock may be taken in it, so nothing but system calls. */
static void try_all(const struct trial *trial, uint32_t from)
{
	const struct rlimit none = { 0 };

	sf_raw4(SYS_prlimit64, 0, RLIMIT_CORE, &none, 0);
	if (trial->first)
		call(trial->first);
	for (uint32_t i = from; i < N_CALLS; i++) {
		sf_raw3(calls[i].number, calls[i].a, calls[i].b, calls[i].c);
		atomic_store(trial->tried, i + 1);
	}
	for (;;) { /* a filter may refuse one of them: nothing may go on as the program */
		sf_raw1(SYS_exit_group, 0);
		sf_raw1(SYS_exit, 0);
	}
}

/* Starts the child without an exit signal: only a wait with __WALL finds such a child. */
static long spawn(const struct trial *trial, uint32_t from)
{
	sigset_t all, before;
	long pid;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* the program's handlers are not for the child */
	pid = sf_raw6(SYS_clone, 0, 0, 0, 0, 0, 0);
	if (pid == 0)
		try_all(trial, from);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

/* --- what became of it --- */

enum outcome { ENDED, NOT_TO_BE_WAITED_FOR, STUCK };

/* Until then it has made the first call, or this thread would be ended for a wait, too. */
static bool can_wait(const struct trial *trial, uint64_t until_ns)
{
	while (!trial->first && !atomic_load(trial->tried) && sf_now_ns() < until_ns)
		sf_sleep_until(sf_now_ns() + LOOK_NS);
	return trial->first || atomic_load(trial->tried);
}

/* Not for ever: what a filter hands to another process (SECCOMP_RET_USER_NOTIF) may never return. */
static enum outcome wait_for(const struct trial *trial, long pid)
{
	const uint64_t until_ns = sf_now_ns() + PATIENCE_NS;

	if (!can_wait(trial, until_ns))
		return NOT_TO_BE_WAITED_FOR; /* it stays as it is: nobody can take it away */
	while (sf_raw4(SYS_wait4, pid, 0, __WALL | WNOHANG, 0) == 0) {
		if (sf_now_ns() >= until_ns) {
			sf_raw3(SYS_tgkill, pid, pid, SIGKILL);
			sf_raw4(SYS_wait4, pid, 0, __WALL, 0);
			return STUCK;
		}
		sf_sleep_until(sf_now_ns() + LOOK_NS);
	}
	return ENDED;
}

/* Goes on behind each call that has ended a child. False: it could not be found out. */
static bool try_in_children(struct trial *trial, struct sf_error *err)
{
	while (atomic_load(trial->tried) < N_CALLS) {
		long pid = spawn(trial, atomic_load(trial->tried));
		enum outcome outcome;

		if (pid < 0) {
			errno = (int)-pid;
			return sf_fail_os(err, UNKNOWN);
		}
		outcome = wait_for(trial, pid);
		if (outcome == STUCK)
			return sf_fail(err, SF_E_DENIED, UNKNOWN ": a call does not return");
		if (outcome == NOT_TO_BE_WAITED_FOR) {
			trial->forbidden |= 1;
			return true;
		}
		if (atomic_load(trial->tried) < N_CALLS)
			trial->forbidden |= UINT64_C(1) << atomic_fetch_add(trial->tried, 1);
	}
	return true;
}

/* proc(5), status: 2 is a filter. */
static bool is_filtered(void)
{
	char mode[8];

	return sf_own_status((int32_t)sf_raw0(SYS_gettid), "\nSeccomp:\t", mode, sizeof(mode)) && *mode == '2';
}

static bool look(const struct sf_filter_call *first, struct sf_error *err)
{
	struct trial trial = { .first = first };
	bool ok;

	trial.tried = mmap(NULL, sizeof(*trial.tried), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (trial.tried == MAP_FAILED)
		return sf_fail_memory(err);
	ok = try_in_children(&trial, err);
	munmap(trial.tried, sizeof(*trial.tried));
	atomic_store(&forbidden, trial.forbidden);
	return ok;
}

bool sf_filter_allows(unsigned uses, struct sf_error *err)
{
	const uint64_t bits = atomic_load(&forbidden);
	char names[256] = "";

	for (size_t i = 0; i < N_CALLS; i++) {
		size_t used = strlen(names);

		if (bits >> i & 1 && calls[i].uses & uses)
			snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "", calls[i].name);
	}
	if (!*names)
		return true;
	sf_fail(err, SF_E_DENIED, "a system-call filter (seccomp) would end this process for: %s",
		names);
	return sf_fail_hint(err, "Allow these in it (systemd: SystemCallFilter=).");
}

/* --- system calls that a thread handles itself --- */

SF_CHILD_DATA static atomic_bool has_dispatch;

bool sf_filter_notes_dispatch(const struct sf_filter_call *call)
{
	const bool dispatches = call->number == SYS_prctl && call->args[0] == PR_SET_SYSCALL_USER_DISPATCH &&
				call->args[1] == PR_SYS_DISPATCH_ON;

	if (dispatches)
		atomic_store(&has_dispatch, true);
	return dispatches;
}

bool sf_filter_has_dispatch(void)
{
	return atomic_load_explicit(&has_dispatch, memory_order_relaxed);
}

SF_CHILD_CODE void sf_filter_after_fork_in_child(void)
{
	atomic_store(&has_dispatch, false);
}

static bool is_dispatched(struct sf_error *err)
{
	return sf_filter_has_dispatch() &&
	       !sf_fail(err, SF_E_UNSUPPORTED, "a thread of this program handles all system calls itself (PR_SET_SYSCALL_USER_DISPATCH), also the agent's");
}

/* --- checks --- */

bool sf_filter_check(unsigned uses, struct sf_error *err)
{
	atomic_store(&forbidden, 0);
	return !is_dispatched(err) && (!is_filtered() || (look(NULL, err) && sf_filter_allows(uses, err)));
}

bool sf_filter_check_after(const struct sf_filter_call *call, unsigned uses, struct sf_error *err)
{
	return !is_dispatched(err) && look(call, err) && sf_filter_allows(uses, err);
}

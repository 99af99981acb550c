/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the system calls in which threads usually sleep. It says of each call whether the call
 * continues after an interruption by ptrace. This was measured (docs/engines.md, "System calls and
 * interruptions") and read from the kernel's sources. Calls that return ERESTARTSYS, ERESTARTNOHAND or
 * ERESTART_RESTARTBLOCK go on; those that return EINTR fail. A call that is not in the table is never
 * interrupted.
 *
 * To add one: add a line, and a thread to tests/programs/eintr_table.c.
 */
#include "os/syscalls.h"

#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/output.h"
#include "os/linux/proc.h"
#include "os/process.h"

enum how {
	RESTARTS,       /* goes on by itself */
	BY_FILE,        /* goes on unless the descriptor is a socket (args[0]) */
	FAILS,          /* EINTR; whether it can be mended, frozen/signal/context_x86_64.c knows */
};

enum about { NOTHING, FD, FUTEX, FDS, POLLFDS, CHILD };

struct call {
	int number;
	enum how how;
	enum about about; /* what its first argument tells a reader */
	bool only_waits;  /* it takes hardly any CPU time */
};

static const struct call calls[] = {
	{ SYS_futex, RESTARTS, FUTEX, true },
	{ SYS_nanosleep, RESTARTS, NOTHING, true },
	{ SYS_clock_nanosleep, RESTARTS, NOTHING, true },
	{ SYS_ppoll, RESTARTS, POLLFDS, true },
	{ SYS_pselect6, RESTARTS, FDS, true },
	{ SYS_wait4, RESTARTS, CHILD, true },
	{ SYS_waitid, RESTARTS, CHILD, true },
	{ SYS_restart_syscall, RESTARTS, NOTHING, true },
	{ SYS_rt_sigsuspend, RESTARTS, NOTHING, true },
	{ SYS_msgrcv, RESTARTS, NOTHING },
	{ SYS_flock, RESTARTS, FD, true },
	{ SYS_read, BY_FILE, FD },
	{ SYS_readv, BY_FILE, FD },
	{ SYS_epoll_pwait, FAILS, FD, true },
	{ SYS_recvfrom, FAILS, FD },
	{ SYS_recvmsg, FAILS, FD },
	{ SYS_recvmmsg, FAILS, FD },
	{ SYS_accept, FAILS, FD },
	{ SYS_accept4, FAILS, FD },
	{ SYS_connect, FAILS, FD },
	{ SYS_sendto, FAILS, FD },
	{ SYS_sendmsg, FAILS, FD },
	{ SYS_rt_sigtimedwait, FAILS, NOTHING, true },
	{ SYS_semop, FAILS, NOTHING, true },
	{ SYS_semtimedop, FAILS, NOTHING, true },
	{ SYS_io_getevents, FAILS, NOTHING, true },
	{ SYS_io_uring_enter, FAILS, FD },
	{ 441 /* epoll_pwait2: the same number on every architecture */, FAILS, FD, true },
#ifdef SYS_poll /* the older calls, which aarch64 never had */
	{ SYS_poll, RESTARTS, POLLFDS, true },
	{ SYS_select, RESTARTS, FDS, true },
	{ SYS_pause, RESTARTS, NOTHING, true },
	{ SYS_epoll_wait, FAILS, FD, true },
#endif
};

static const struct call *find_call(int32_t number)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		if (calls[i].number == number)
			return &calls[i];
	}
	return NULL;
}

int32_t sf_syscall_number(const char *name)
{
	const int number = seccomp_syscall_resolve_name_arch(SCMP_ARCH_NATIVE, name);

	return number >= 0 ? number : SF_SYSCALL_NONE;
}

bool sf_syscall_usually_sleeps(int32_t number)
{
	return find_call(number) != NULL;
}

const char *sf_syscall_name(int32_t number, char *ret, size_t size)
{
	char *name;

	if (number == SF_SYSCALL_FAULT || number == SF_SYSCALL_UNTOLD) {
		snprintf(ret, size, number == SF_SYSCALL_FAULT ? "page fault" : "asleep");
		return ret;
	}
	name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
	if (name)
		snprintf(ret, size, "%s", name);
	else
		snprintf(ret, size, "syscall %d", number);
	free(name);
	return ret;
}

/* futex(2) */
static bool futex_waits(uint64_t operation)
{
	switch (operation & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		return true;
	default:
		return false;
	}
}

bool sf_syscall_only_waits(int32_t number, uint64_t second)
{
	const struct call *call = find_call(number);

	if (number == SYS_futex)
		return futex_waits(second);
	return number == SYS_sched_yield || (call && call->only_waits);
}

/* The text behind /proc/PID/fd/N: "pipe:[123]", "socket:[123]", a path. */
static bool read_fd_link(int32_t pid, uint64_t fd, char *ret, size_t size)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, (int)fd);
	n = readlink(path, ret, size - 1);
	if (n < 0)
		return false;
	ret[n] = 0;
	return true;
}

static int n_filters(int32_t tid)
{
	char number[16];

	return sf_proc_status(tid, tid, "Seccomp_filters:", number, sizeof(number)) ? atoi(number) : 0;
}

bool sf_syscall_has_own_filter(int32_t tid)
{
	const int n = n_filters(tid);

	return n && n > n_filters(gettid());
}

/* The kernel goes on with these by restart_syscall, with the time that is left (ERESTART_RESTARTBLOCK). Made anew they last longer. */
static bool has_time_left(int32_t number, const uint64_t args[6])
{
	switch (number) {
	case SYS_nanosleep:
		return true;
	case SYS_clock_nanosleep:
		return !(args[1] & TIMER_ABSTIME);
	case SYS_futex:
		return (args[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && args[3];
#ifdef SYS_poll
	case SYS_poll:
		return (int)args[2] >= 0;
#endif
	default:
		return false;
	}
}

bool sf_syscall_restarts(int32_t pid, int32_t tid, int32_t number, const uint64_t args[6])
{
	const struct call *call = find_call(number);
	char link[PATH_MAX];

	if (!call || call->how == FAILS)
		return false;
	if (call->how == RESTARTS)
		return !has_time_left(number, args) || !sf_syscall_has_own_filter(tid);
	return read_fd_link(pid, args[0], link, sizeof(link)) &&
	       strncmp(link, "socket:", 7) != 0 && strncmp(link, "anon_inode:", 11) != 0 &&
	       strncmp(link, "/dev/fuse", 9) != 0;
}

static void describe_futex(const uint64_t args[6], char *ret, size_t size)
{
	int operation = (int)args[1] & FUTEX_CMD_MASK;
	bool lock = operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2;

	snprintf(ret, size, "futex 0x%" PRIx64 "%s%s", args[0], lock ? " (a PI lock)" : "",
		 operation == FUTEX_WAIT && !args[3] ? ", no time-out" : "");
}

static void describe_fd(int32_t pid, const uint64_t args[6], char *ret, size_t size)
{
	char link[PATH_MAX];

	if (read_fd_link(pid, args[0], link, sizeof(link))) {
		sf_sanitize(link);
		snprintf(ret, size, "fd %d (%s)", (int)args[0], link);
	} else {
		snprintf(ret, size, "fd %d", (int)args[0]);
	}
}

/*
 * Of select: its first argument is the highest descriptor and one. The sets are on the caller's stack mostly; the kernel
 * writes to them when the call ends, not before.
 */
static void describe_fds(int32_t pid, const uint64_t args[6], char *ret, size_t size)
{
	uint64_t sets[3][FD_SETSIZE / 64] = { 0 };
	const uint64_t n = args[0] < FD_SETSIZE ? args[0] : FD_SETSIZE;
	const size_t bytes = (n + 63) / 64 * 8;
	int count = 0;

	for (int i = 0; i < 3; i++) {
		if (args[i + 1] && sf_process_read(pid, sets[i], args[i + 1], bytes) != bytes)
			return;
	}
	for (uint64_t fd = 0; fd < n; fd++)
		count += (sets[0][fd / 64] | sets[1][fd / 64] | sets[2][fd / 64]) >> fd % 64 & 1;
	snprintf(ret, size, "%d descriptor%s", count, count == 1 ? "" : "s");
}

void sf_syscall_describe(int32_t pid, int32_t number, const uint64_t args[6], char *ret,
			 size_t size)
{
	const struct call *call = find_call(number);

	*ret = 0;
	if (!call)
		return;
	switch (call->about) {
	case FUTEX:
		describe_futex(args, ret, size);
		break;
	case FD:
		describe_fd(pid, args, ret, size);
		break;
	case FDS:
		describe_fds(pid, args, ret, size);
		break;
	case POLLFDS:
		snprintf(ret, size, "%d descriptor%s", (int)args[1], (int)args[1] == 1 ? "" : "s");
		break;
	case CHILD:
		snprintf(ret, size, "child %d", (int)args[0]);
		break;
	case NOTHING:
		break;
	}
}

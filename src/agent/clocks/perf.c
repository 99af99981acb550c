/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock kind "perf": a perf event that counts the CPU time of one thread and signals the thread
 * (perf_event_open(2), "Overflow handling"; fcntl(2), F_SETSIG). Its signals are exact to the
 * microsecond; timers expire only at the kernel's ticks.
 *
 * The event has no buffer, but needs one descriptor for each thread. The descriptor is in the
 * sampler's own table (os/own_fd.h). If that is not possible, it is in the program's table. So the
 * agent takes at most a quarter of the descriptors that the process may have. It uses numbers that
 * programs do not reach, because si_fd must identify our events. It closes a descriptor only when
 * the event's id proves that the number is still ours.
 *
 * Not where the kernel may not be counted (perf_event_paranoid 2 for an ordinary user): an event
 * with exclude_kernel that is due inside a system call rings not later but never (kernel:
 * kernel/events/core.c, perf_swevent_hrtimer). A thread that spent its time in read() got 6 of its
 * 500 ticks here, so that the time would be put down to whatever it does between its calls.
 *
 * Not with a real-time signal: those queue up in a thread that blocks them, and when the queue is
 * full the kernel sends SIGIO in their place (fs/fcntl.c, send_sigio_to_task), which ends most
 * programs.
 */
#include "agent/clocks/clocks.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "agent/libc/syscall_filter.h"
#include "frozen/signal/handler.h"
#include "frozen/raw.h"

#define FIRST_REAL_TIME 32      /* the kernel's SIGRTMIN; libc's is a few higher */
#define HIGHEST_START 12288     /* the table of descriptors reaches to the highest: 16 384 */
#define FEWEST 16               /* below this it is not worth having two kinds of clock */

static _Atomic uint32_t n_open;

/* With the time in the kernel if that is allowed: `exclude` 0, else 1. */
static long open_event(int32_t tid, uint64_t period_ns, unsigned exclude)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = period_ns,
		.wakeup_events = 1,
		.disabled = 1,
		.exclude_hv = 1,
		.exclude_kernel = exclude,
		.remove_on_exec = 1,
	};
	long fd = sf_raw6(SYS_perf_event_open, (long)&attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC, 0);

	if (fd != -EINVAL)
		return fd;
	attr.remove_on_exec = 0; /* before Linux 5.13; exec closes the descriptor in any case */
	return sf_raw6(SYS_perf_event_open, (long)&attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC, 0);
}

static long open_best(int32_t tid, uint64_t period_ns)
{
	long fd = open_event(tid, period_ns, 0);

	return fd == -EACCES || fd == -EPERM ? open_event(tid, period_ns, 1) : fd;
}

static uint64_t soft_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

static bool check(struct sf_error *err)
{
	long fd;

	if (!sf_filter_allows(SF_FILTER_PERF, err))
		return false;
	fd = open_best(0, 1000000000);
	if (fd < 0) {
		errno = (int)-fd;
		sf_fail_os(err, "cannot open a perf event");
		return sf_fail_hint(err, "cpu-clock=timer needs no rights; perf needs "
					 "kernel.perf_event_paranoid at 2 or less.");
	}
	sf_raw1(SYS_close, fd);
	return true;
}

static const char *drawback(void)
{
	long fd;

	if (!sf_filter_allows(SF_FILTER_PERF, NULL))
		return "a system-call filter (seccomp) would end the program for perf_event_open";
	fd = open_event(0, 1000000000, 0);
	if (fd < 0)
		return "time in the kernel may not be counted (kernel.perf_event_paranoid above 1)";
	sf_raw1(SYS_close, fd);
	if (soft_limit() / 4 < FEWEST)
		return "the program may have too few files open (RLIMIT_NOFILE)";
	return NULL;
}

/* To a number that the program does not reach; -1 where there is no room. */
static int move_up(int fd)
{
	uint64_t start = soft_limit() / 4 * 3;
	long high = sf_raw3(SYS_fcntl, fd, F_DUPFD_CLOEXEC,
			    start < HIGHEST_START ? start : HIGHEST_START);

	sf_raw1(SYS_close, fd);
	return high < 0 ? -1 : (int)high;
}

/* The signal carries the number by which O_ASYNC was set. */
static bool aim(int fd, int32_t tid)
{
	struct f_owner_ex owner = { .type = F_OWNER_TID, .pid = tid };

	return sf_raw3(SYS_fcntl, fd, F_SETSIG, sf_handler.config.signal) == 0 &&
	       sf_raw3(SYS_fcntl, fd, F_SETOWN_EX, &owner) == 0 &&
	       sf_raw3(SYS_fcntl, fd, F_SETFL, O_ASYNC) == 0;
}

static bool start(struct sf_thread_entry *entry, int fd)
{
	uint64_t id = 0;

	if (sf_raw3(SYS_ioctl, fd, PERF_EVENT_IOC_ID, &id) != 0)
		return false;
	atomic_store(&entry->clock_id, id);
	atomic_store(&entry->perf_fd, fd);
	atomic_fetch_or(&entry->flags, SF_ENTRY_PERF);
	atomic_store(&entry->clock, fd);
	if (sf_raw3(SYS_ioctl, fd, PERF_EVENT_IOC_ENABLE, 0) == 0)
		return true;
	atomic_store(&entry->clock, -1);
	atomic_fetch_and(&entry->flags, ~(uint32_t)SF_ENTRY_PERF);
	return false;
}

static bool arm(struct sf_thread_entry *entry, int32_t tid)
{
	long low;
	int fd;

	if (sf_handler.config.signal >= FIRST_REAL_TIME || atomic_load(&n_open) >= soft_limit() / 4)
		return false;
	low = open_best(tid, atomic_load(&entry->period_ns));
	fd = low < 0 ? -1 : move_up((int)low);
	if (fd < 0)
		return false;
	if (!aim(fd, tid) || !start(entry, fd)) {
		sf_raw1(SYS_close, fd);
		return false;
	}
	atomic_fetch_add(&n_open, 1);
	return true;
}

static bool is_ours(int fd, uint64_t clock_id)
{
	uint64_t id = 0;

	return sf_raw3(SYS_ioctl, fd, PERF_EVENT_IOC_ID, &id) == 0 && id == clock_id;
}

bool sf_agent_clock_perf_lives(const struct sf_thread_entry *entry)
{
	int fd = atomic_load(&entry->clock);

	return fd < 0 || is_ours(fd, atomic_load(&entry->clock_id));
}

static void let_go(struct sf_thread_entry *entry, bool stops)
{
	int fd = atomic_exchange(&entry->clock, -1);

	if (fd < 0)
		return;
	if (is_ours(fd, atomic_load(&entry->clock_id))) {
		if (stops)
			sf_raw3(SYS_ioctl, fd, PERF_EVENT_IOC_DISABLE, 0);
		sf_raw1(SYS_close, fd);
	}
	atomic_fetch_and(&entry->flags, ~(uint32_t)SF_ENTRY_PERF);
	atomic_fetch_sub(&n_open, 1);
}

/* A child made behind libc's back may have the event, too, and it would ring on. */
static void disarm(struct sf_thread_entry *entry)
{
	let_go(entry, true);
}

/* The event is the parent's, and rings on for it. */
void sf_agent_clock_perf_forked(struct sf_thread_entry *entry)
{
	let_go(entry, false);
}

const struct sf_agent_clock_kind sf_agent_clock_perf = {
	.name = "perf",
	.per_thread = true,
	.is_perf = true,
	.check = check,
	.drawback = drawback,
	.arm = arm,
	.disarm = disarm,
};

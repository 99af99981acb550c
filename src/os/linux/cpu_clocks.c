/* SPDX-License-Identifier: Apache-2.0 */
/* Tries out which CPU clocks work here: a perf event and a POSIX timer. */
#include "os/cpu_clocks.h"

#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/linux/proc.h"

/* Upstream's kernel knows up to 2; Debian's and Android's have 3: nobody without privileges. */
#define PARANOID_FOR_USERS 2

static int read_paranoid(void)
{
	int value = 0;

	sf_proc_scan("/proc/sys/kernel/perf_event_paranoid", "%d", &value);
	return value;
}

bool sf_perf_clock_works(struct sf_error *err)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = 1000000000,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0) {
		close(fd);
		return true;
	}
	sf_fail_os(err, "perf events cannot be opened");
	return sf_fail_hint(
		err, "kernel.perf_event_paranoid is %d (2 is enough), or a container forbids it.",
		read_paranoid());
}

bool sf_perf_clock_works_unprivileged(struct sf_error *err)
{
	int paranoid = read_paranoid();

	if (paranoid <= PARANOID_FOR_USERS)
		return true;
	return sf_fail(err, SF_E_DENIED, "kernel.perf_event_paranoid is %d: 2 is enough", paranoid);
}

bool sf_thread_timer_works(struct sf_error *err)
{
	struct sigevent event = { .sigev_notify = SIGEV_NONE };
	timer_t timer;

	if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0)
		return sf_fail_os(err, "timers on a thread's CPU time cannot be made");
	timer_delete(timer);
	return true;
}

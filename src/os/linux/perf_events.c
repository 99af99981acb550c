/* SPDX-License-Identifier: Apache-2.0 */
/* Opens perf events and maps their rings on Linux. */
#include "os/perf_events.h"

#include <ctype.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/linux/proc.h"
#include "os/linux/user_regs.h"

#define MAX_POLLED 3072

/*
 * The fields of samples, and of the identity at the end of every other record: capture/perf/record.c reads them in this
 * order.
 */
#define SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN | \
		     PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)
#define SHORT_TYPES (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

static int open_event(struct perf_event_attr *attr, int32_t tid, int cpu, unsigned long flags)
{
	return (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1, flags | PERF_FLAG_FD_CLOEXEC);
}

/* Records by which the samples are understood: what processes map and run, and when they begin and end. */
static void add_records(struct perf_event_attr *attr)
{
	attr->mmap = attr->mmap2 = attr->comm = attr->comm_exec = attr->task = 1;
}

/*
 * inherit_stat: the kernel writes the count of an inherited event when its thread ends (PERF_RECORD_READ). That is the whole
 * CPU time of a thread that came and went.
 */
static void set_clock(const struct sf_perf_event *event, bool of_cpu, struct perf_event_attr *attr)
{
	attr->config = of_cpu ? PERF_COUNT_SW_CPU_CLOCK : PERF_COUNT_SW_TASK_CLOCK;
	attr->sample_period = event->period_ns;
	attr->inherit_stat = !of_cpu;
	attr->exclude_idle = of_cpu;
	add_records(attr);
}

static void set_named(const struct sf_perf_event *event, struct perf_event_attr *attr)
{
	attr->type = event->type;
	attr->config = event->config;
	attr->enable_on_exec = event->on_exec;
}

static void set_counted(const struct sf_perf_event *event, struct perf_event_attr *attr)
{
	set_named(event, attr);
	attr->sample_period = event->each;
	add_records(attr);
}

static void set_meter(const struct sf_perf_event *event, struct perf_event_attr *attr)
{
	set_named(event, attr);
	attr->sample_type = attr->sample_regs_user = attr->sample_stack_user = 0;
}

/*
 * The kernel counts a switch where a thread leaves its CPU, in kernel mode: the stack is that on which the thread will
 * go on.
 */
static void set_switches(struct perf_event_attr *attr)
{
	attr->config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	attr->sample_period = 1;
	attr->context_switch = 1;
}

static void set_wakings(const struct sf_perf_event *event, struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_TRACEPOINT;
	attr->config = event->tracepoint;
	attr->sample_period = 1;
	attr->sample_type = (SAMPLE_TYPE & SHORT_TYPES) | PERF_SAMPLE_RAW;
	attr->sample_regs_user = attr->sample_stack_user = 0;
}

static void set_signals(const struct sf_perf_event *event, struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_TRACEPOINT;
	attr->config = event->tracepoint;
	attr->sample_period = 1;
	attr->exclude_callchain_kernel = 1;
}

int sf_perf_open_event(const struct sf_perf_event *event)
{
	const bool of_cpu = event->tid == SF_PERF_ALL_THREADS || event->in_cgroup;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.sample_type = SAMPLE_TYPE,
		.sample_regs_user = sf_perf_regs_mask,
		.sample_stack_user = event->stack_bytes,
		.disabled = 1,
		.inherit = !of_cpu,
		.inherit_thread = !of_cpu && !event->children,
		.exclude_kernel = !event->kernel,
		.exclude_hv = 1,
		.exclude_callchain_kernel = !event->kernel,
		.exclude_callchain_user = !event->user_chain,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	if (event->kind == SF_PERF_CLOCK)
		set_clock(event, of_cpu, &attr);
	else if (event->kind == SF_PERF_SWITCHES)
		set_switches(&attr);
	else if (event->kind == SF_PERF_COUNTED)
		set_counted(event, &attr);
	else if (event->kind == SF_PERF_METER)
		set_meter(event, &attr);
	else if (event->kind == SF_PERF_SIGNALS)
		set_signals(event, &attr);
	else
		set_wakings(event, &attr);
	return open_event(&attr, event->tid, event->cpu, event->in_cgroup ? PERF_FLAG_PID_CGROUP : 0);
}

int sf_perf_open_ring_owner(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_period = 1,
		.sample_type = SAMPLE_TYPE & SHORT_TYPES,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	return open_event(&attr, 0, cpu, 0);
}

void *sf_perf_map(int owner, size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *ring = mmap(NULL, page + size, PROT_READ | PROT_WRITE, MAP_SHARED, owner, 0);

	return ring == MAP_FAILED ? NULL : ring;
}

void sf_perf_unmap(void *ring, size_t size)
{
	if (ring)
		munmap(ring, (size_t)sysconf(_SC_PAGESIZE) + size);
}

bool sf_perf_redirect(int fd, int owner)
{
	return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, owner) == 0;
}

bool sf_perf_set_filter(int fd, const char *filter)
{
	return ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) == 0;
}

bool sf_perf_enable(int fd)
{
	return ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0;
}

bool sf_perf_disable(int fd)
{
	return ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0;
}

bool sf_perf_count(int fd, uint64_t *ret)
{
	return read(fd, ret, sizeof(*ret)) == sizeof(*ret);
}

/* The kernel wakes at half of a ring by itself (rb->watermark, kernel/events/ring_buffer.c). */
void sf_perf_wait(const int *owners, size_t n, uint64_t until_ns)
{
	struct pollfd polled[MAX_POLLED];
	const uint64_t now_ns = sf_now_ns();
	struct timespec rest;

	if (until_ns <= now_ns)
		return;
	rest = (struct timespec){ .tv_sec = (time_t)((until_ns - now_ns) / 1000000000),
				  .tv_nsec = (long)((until_ns - now_ns) % 1000000000) };
	if (n > MAX_POLLED)
		n = MAX_POLLED;
	for (size_t i = 0; i < n; i++)
		polled[i] = (struct pollfd){ .fd = owners[i], .events = POLLIN };
	ppoll(polled, n, &rest, NULL);
}

struct cpus {
	int *items;
	size_t n, capacity;
};

/*
 * A line of /proc/stat: that of each CPU that is on begins with "cpu" and its number, that of their sum with "cpu" and
 * a blank (proc_stat(5)).
 */
static bool take_cpu(const char *line, void *arg)
{
	struct cpus *cpus = arg;

	if (strncmp(line, "cpu", 3) == 0 && isdigit((unsigned char)line[3]) && cpus->n < cpus->capacity)
		cpus->items[cpus->n++] = atoi(line + 3);
	return true;
}

/* "0-3,8": sysfs' list of CPUs. */
static size_t parse_cpus(const char *text, int *ret, size_t capacity)
{
	size_t n = 0;
	const char *at = text;

	for (int used = 0; *at; at += used + (at[used] == ',')) {
		unsigned first, last;
		int more = 0;

		if (sscanf(at, "%u%n", &first, &used) != 1)
			break;
		last = first;
		if (sscanf(at + used, "-%u%n", &last, &more) == 1)
			used += more;
		for (; first <= last && n < capacity; first++)
			ret[n++] = (int)first;
	}
	return n;
}

size_t sf_perf_cpus(int *ret, size_t capacity)
{
	struct cpus cpus = { .items = ret, .capacity = capacity };
	char text[1024] = "";

	sf_proc_scan("/sys/devices/system/cpu/online", "%1023[^\n]", text);
	if (*text)
		return parse_cpus(text, ret, capacity);
	sf_proc_lines("/proc/stat", take_cpu, &cpus); /* where /sys is not mounted */
	return cpus.n;
}

int sf_perf_paranoid(void)
{
	int value = 2;

	sf_proc_scan("/proc/sys/kernel/perf_event_paranoid", "%d", &value);
	return value;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs that come online while perf samples: when that is seen, and what is opened then. The kernel is replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/perf/renewal.h"

#define NS_PER_S 1000000000ull
#define TENTH_NS 100000000ull
#define MOST 8

static int online[MOST], offline_cpu;
static size_t n_online;
static bool is_locked; /* no memory may be locked */
static int opened_on[MOST], redirected_to[MOST];
static uint32_t opened_tracepoint[MOST];
static size_t n_opened, n_owners, n_mapped;

size_t __wrap_sf_perf_cpus(int *ret, size_t capacity);
int __wrap_sf_perf_open_ring_owner(int cpu);
void *__wrap_sf_perf_map(int fd, size_t size);
void __wrap_sf_perf_unmap(void *mapping, size_t size);
int __wrap_sf_perf_open_event(const struct sf_perf_event *event);
bool __wrap_sf_perf_redirect(int fd, int owner);
bool __wrap_sf_perf_enable(int fd);
bool __wrap_sf_perf_disable(int fd);
bool __wrap_sf_perf_count(int fd, uint64_t *ret);

size_t __wrap_sf_perf_cpus(int *ret, size_t capacity)
{
	(void)capacity;
	memcpy(ret, online, n_online * sizeof(*ret));
	return n_online;
}

int __wrap_sf_perf_open_ring_owner(int cpu)
{
	(void)cpu;
	n_owners++;
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void *__wrap_sf_perf_map(int fd, size_t size)
{
	(void)fd;
	if (is_locked && n_mapped)
		return NULL;
	n_mapped++;
	return calloc(1, (size_t)sysconf(_SC_PAGESIZE) + size);
}

void __wrap_sf_perf_unmap(void *mapping, size_t size)
{
	(void)size;
	free(mapping);
}

int __wrap_sf_perf_open_event(const struct sf_perf_event *event)
{
	if (event->cpu == offline_cpu) {
		errno = ENODEV;
		return -1;
	}
	opened_tracepoint[n_opened % MOST] = event->tracepoint;
	opened_on[n_opened++ % MOST] = event->cpu;
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool __wrap_sf_perf_redirect(int fd, int owner)
{
	(void)fd;
	redirected_to[(n_opened - 1) % MOST] = owner;
	return true;
}

bool __wrap_sf_perf_enable(int fd)
{
	return fd >= 0;
}

bool __wrap_sf_perf_disable(int fd)
{
	return fd >= 0;
}

bool __wrap_sf_perf_count(int fd, uint64_t *ret)
{
	*ret = 100;
	return fd >= 0;
}

static void set_online(size_t n, const int *cpus)
{
	n_online = n;
	memcpy(online, cpus, n * sizeof(*cpus));
}

static struct sf_perf_events events;

static int set_up(void **state)
{
	struct sf_error err = { 0 };

	(void)state;
	is_locked = false;
	offline_cpu = -1;
	n_opened = n_owners = n_mapped = 0;
	set_online(2, (const int[]){ 0, 1 });
	events = (struct sf_perf_events){ .kind = SF_PERF_CLOCK, .all = true };
	return sf_perf_events_open(&events, NS_PER_S / 199, &err) && sf_perf_events_attach(&events, NULL, 0, &err) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	sf_perf_events_close(&events);
	return 0;
}

/* Ten times a second, and only a CPU that was not there at the last look counts: its return, too. */
static void cpus_are_looked_at_at_times(void **state)
{
	static struct sf_perf_online seen;
	uint64_t now_ns = NS_PER_S;

	(void)state;
	assert_false(sf_perf_online_has_more(&seen, now_ns));
	assert_false(sf_perf_online_has_more(&seen, now_ns += TENTH_NS));
	set_online(1, (const int[]){ 0 });
	assert_false(sf_perf_online_has_more(&seen, now_ns += TENTH_NS));
	set_online(2, (const int[]){ 0, 1 });
	assert_false(sf_perf_online_has_more(&seen, now_ns + TENTH_NS / 2));
	assert_true(sf_perf_online_has_more(&seen, now_ns += TENTH_NS));
	set_online(2, (const int[]){ 0, 2 });
	assert_true(sf_perf_online_has_more(&seen, now_ns += TENTH_NS));
	assert_false(sf_perf_online_has_more(&seen, now_ns + TENTH_NS));
}

/* One that was there has its ring, in which records of its period may be; a new one gets one. The events write into the rings of their CPUs. */
static void a_new_cpu_has_a_ring_and_events(void **state)
{
	const uint64_t period_ns = events.periods_ns[1];
	struct sf_error err = { 0 };

	(void)state;
	assert_int_equal(n_opened, 2);
	set_online(3, (const int[]){ 0, 1, 5 });
	assert_true(sf_perf_events_follow_cpus(&events, NULL, 0, &err));
	assert_int_equal(n_owners, 3);
	assert_int_equal(events.n_cpus, 3);
	assert_int_equal(events.cpus[2], 5);
	assert_in_range(events.periods_ns[2], events.period_ns - events.period_ns / 32, events.period_ns + events.period_ns / 32);
	assert_int_not_equal(events.periods_ns[2], events.period_ns);
	assert_int_equal(events.periods_ns[1], period_ns);
	assert_int_equal(n_opened, 5);
	assert_int_equal(opened_on[4], 5);
	assert_int_equal(redirected_to[4], events.owners[2]);
	assert_int_equal(events.fds.n, 3);
}

static void an_offline_cpu_is_left_out(void **state)
{
	struct sf_error err = { 0 };

	(void)state;
	offline_cpu = 1;
	set_online(2, (const int[]){ 0, 5 });
	assert_true(sf_perf_events_follow_cpus(&events, NULL, 0, &err));
	assert_int_equal(events.n_cpus, 3);
	assert_int_equal(events.fds.n, 2);
	assert_int_equal(n_opened, 4);
}

/* The others have their events anew all the same. */
static void a_cpu_without_a_ring_is_said(void **state)
{
	struct sf_error err = { 0 };

	(void)state;
	is_locked = true;
	set_online(3, (const int[]){ 0, 1, 5 });
	assert_false(sf_perf_events_follow_cpus(&events, NULL, 0, &err));
	assert_non_null(strstr(err.text, "the ring of CPU 5"));
	assert_int_equal(events.n_cpus, 2);
	assert_int_equal(n_opened, 4);
	assert_int_equal(events.fds.n, 2);
}

/* Samples that the old events have written stand for as many of the event as before. */
static void samples_before_it_stand_for_as_many(void **state)
{
	static struct sf_perf_events counted;
	struct sf_error err = { 0 };

	(void)state;
	counted = (struct sf_perf_events){ .kind = SF_PERF_COUNTED, .all = true, .each = 100, .each_before = 1 };
	assert_true(sf_perf_events_open(&counted, 0, &err) && sf_perf_events_attach(&counted, NULL, 0, &err));
	set_online(3, (const int[]){ 0, 1, 5 });
	assert_true(sf_perf_events_follow_cpus(&counted, NULL, 0, &err));
	assert_true(counted.renewed_ns);
	assert_int_equal(counted.each_before, 100);
	sf_perf_events_close(&counted);
}

/* Of an event: each CPU has a meter again, and what those before have counted is not lost. */
static void a_new_cpu_has_a_meter(void **state)
{
	struct sf_perf_events counted = { .kind = SF_PERF_COUNTED, .all = true, .each = 5 };
	struct sf_error err = { 0 };

	(void)state;
	assert_true(sf_perf_events_open(&counted, 0, &err) && sf_perf_events_attach(&counted, NULL, 0, &err));
	assert_int_equal(sf_perf_events_counted(&counted), 200);
	set_online(3, (const int[]){ 0, 1, 5 });
	assert_true(sf_perf_events_follow_cpus(&counted, NULL, 0, &err));
	assert_int_equal(counted.meters.n, 3);
	assert_int_equal(sf_perf_events_counted(&counted), 500);
	sf_perf_events_close(&counted);
}

/* Who wakes a thread, and when it is on a queue: both are recorded on as before. */
static void both_tracepoints_are_opened_anew(void **state)
{
	struct sf_perf_events wakings = { .kind = SF_PERF_WAKINGS, .all = true, .tracepoint = 7, .second_tracepoint = 8 };
	struct sf_error err = { 0 };
	unsigned n_of[2] = { 0 };

	(void)state;
	assert_true(sf_perf_events_open(&wakings, 0, &err) && sf_perf_events_attach(&wakings, NULL, 0, &err));
	assert_int_equal(wakings.fds.n, 4);
	n_opened = 0;
	set_online(3, (const int[]){ 0, 1, 5 });
	assert_true(sf_perf_events_follow_cpus(&wakings, NULL, 0, &err));
	for (size_t i = 0; i < n_opened; i++)
		n_of[opened_tracepoint[i] - 7]++;
	assert_int_equal(n_of[0], 3);
	assert_int_equal(n_of[1], 3);
	assert_int_equal(wakings.fds.n, 6);
	sf_perf_events_close(&wakings);
}

static void what_was_never_opened_stays_closed(void **state)
{
	struct sf_perf_events none = { .kind = SF_PERF_WAKINGS };
	struct sf_error err = { 0 };

	(void)state;
	assert_true(sf_perf_events_follow_cpus(&none, NULL, 0, &err));
	assert_int_equal(none.n_cpus, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(cpus_are_looked_at_at_times),
		TEST(a_new_cpu_has_a_ring_and_events),
		TEST(an_offline_cpu_is_left_out),
		TEST(a_cpu_without_a_ring_is_said),
		TEST(samples_before_it_stand_for_as_many),
		TEST(a_new_cpu_has_a_meter),
		TEST(both_tracepoints_are_opened_anew),
		TEST(what_was_never_opened_stays_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

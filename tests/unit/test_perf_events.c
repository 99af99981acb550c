/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel counts of an event, of a child that says how many page faults it had, while the child's events are replaced again and
 * again: what happens between the old events and the new ones is counted, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/perf/allowed.h"
#include "capture/perf/events.h"
#include "os/clock.h"

#define N_PAGES 256u
#define N_RENEWALS 200
#define MS UINT64_C(1000000)
#define A_MOMENT_MS 2000
#define ITS_OWN 64 /* faults of the child that are not in its own count: around it, and of its calls */

struct shared {
	volatile bool watched, over;
	volatile uint64_t n_faults, n_rounds;
};

static struct shared *shared;

static uint64_t faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)usage.ru_minflt;
}

static void fault_until_over(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *pages = mmap(NULL, N_PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t before;

	madvise((void *)pages, N_PAGES * page, MADV_NOHUGEPAGE);
	while (!shared->watched)
		usleep(100);
	before = faults();
	for (; !shared->over; shared->n_rounds++) {
		for (size_t i = 0; i < N_PAGES; i++)
			pages[i * page] = 1;
		madvise((void *)pages, N_PAGES * page, MADV_DONTNEED);
	}
	shared->n_faults = faults() - before;
	_exit(0);
}

/* Waits until the child has touched all its pages again. */
static void wait_for_a_round(void)
{
	const uint64_t n = shared->n_rounds;

	for (int i = 0; i < A_MOMENT_MS && shared->n_rounds == n; i++)
		usleep(1000);
	assert_true(shared->n_rounds > n);
}

static void watch(struct sf_perf_events *events, int32_t child)
{
	struct sf_error err = { 0 };

	assert_true(sf_perf_events_open(events, MS, &err));
	assert_true(sf_perf_events_attach(events, &child, 1, &err));
	sf_perf_events_enable(events);
	shared->watched = true;
}

static void all_are_counted_while_events_are_replaced(void **state)
{
	struct sf_perf_events *events = calloc(1, sizeof(*events));
	struct sf_error err = { 0 };
	int32_t child;
	bool kernel;
	int status;

	(void)state;
	if (!sf_perf_events_allowed(0, &kernel, &err)) {
		free(events);
		print_message("skipped: %s\n", err.text);
		skip();
	}
	child = fork();
	if (child == 0)
		fault_until_over();
	*events = (struct sf_perf_events){
		.kind = SF_PERF_COUNTED, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS, .each = 1000, .kernel = kernel,
	};
	watch(events, child);
	for (uint64_t i = 0; i < N_RENEWALS; i++) {
		wait_for_a_round();
		assert_true(sf_perf_events_set_each(events, 1000 + i % 2 + 1, &child, 1, &err));
	}
	shared->over = true;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_in_range(sf_perf_events_counted(events), shared->n_faults, shared->n_faults + ITS_OWN);
	sf_perf_events_close(events);
	free(events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_counted_while_events_are_replaced),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

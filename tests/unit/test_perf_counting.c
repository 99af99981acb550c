/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events (--event): their names, how many there are for one sample, and the sum: events of samples and lost events are
 * what the kernel counted. The rings are hand-made, and the threads and the relay are made up (--wrap).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "capture/perf/perf.h"
#include "perf_rings.h"

#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)
#define SIZE 65536u

static struct perf_event_mmap_page *page;
static struct sf_perf perf;
static struct sf_thread threads[2];
static bool relay_is_full;
static uint64_t sent, counted, lost_by[SF_N_LOSSES];
static uint64_t weights[64];
static uint32_t ticks;
static size_t n_sent;
static union {
	struct sf_stack_copy copy;
	uint8_t room[sizeof(struct sf_stack_copy) + SF_PERF_MAX_RECORD];
} buffer;

struct sf_thread *__wrap_sf_watch_find(const struct sf_watch *watch, int32_t tid);
bool __wrap_sf_watch_is_refused(const struct sf_watch *watch, int32_t pid);
void __wrap_sf_watch_add_process(struct sf_watch *watch, int32_t pid, int32_t parent, const char *name);
struct sf_thread *__wrap_sf_watch_add_thread(struct sf_watch *watch, int32_t pid, int32_t tid, uint64_t now_ns);
struct sf_stack_copy *__wrap_sf_relay_reserve(struct sf_relay *relay, uint32_t room);
uint64_t __wrap_sf_perf_events_counted(const struct sf_perf_events *events);
void __wrap_sf_relay_send(struct sf_relay *relay, struct sf_thread *thread, const struct sf_weight *weight, uint64_t hold_ns);
void __wrap_sf_relay_loss(struct sf_relay *relay, const struct sf_thread *thread, enum sf_loss cause,
			  const struct sf_weight *weight);

struct sf_thread *__wrap_sf_watch_find(const struct sf_watch *watch, int32_t tid)
{
	(void)watch;
	return tid == 10 || tid == 11 ? &threads[tid - 10] : NULL;
}

/* Process 20 does not fit the filter. */
bool __wrap_sf_watch_is_refused(const struct sf_watch *watch, int32_t pid)
{
	(void)watch;
	return pid == 20;
}

void __wrap_sf_watch_add_process(struct sf_watch *watch, int32_t pid, int32_t parent, const char *name)
{
	(void)watch, (void)pid, (void)parent, (void)name;
}

struct sf_thread *__wrap_sf_watch_add_thread(struct sf_watch *watch, int32_t pid, int32_t tid, uint64_t now_ns)
{
	(void)watch, (void)pid, (void)tid, (void)now_ns;
	return NULL;
}

struct sf_stack_copy *__wrap_sf_relay_reserve(struct sf_relay *relay, uint32_t room)
{
	(void)relay;
	assert_true(room <= SF_PERF_MAX_RECORD);
	return relay_is_full ? NULL : &buffer.copy;
}

void __wrap_sf_relay_send(struct sf_relay *relay, struct sf_thread *thread, const struct sf_weight *weight, uint64_t hold_ns)
{
	(void)relay, (void)thread;
	assert_int_equal(hold_ns, 0);
	assert_true(buffer.copy.is_only);
	assert_int_equal(weight->cpu_ns + weight->wall_ns, 0);
	weights[n_sent++] = weight->amount;
	sent += weight->amount;
	ticks += weight->ticks;
}

void __wrap_sf_relay_loss(struct sf_relay *relay, const struct sf_thread *thread, enum sf_loss cause,
			  const struct sf_weight *weight)
{
	(void)relay, (void)thread;
	lost_by[cause] += weight->amount;
}

static int set_up(void **state)
{
	(void)state;
	perf = (struct sf_perf){
		.events = { .kind = SF_PERF_COUNTED, .each = 1, .each_before = 1, .period_ns = MS, .n_cpus = 1, .stack_bytes = 256 },
		.counting = { .on = true },
	};
	perf.base.watch.options = &perf.base.options;
	sf_perf_budget_begin(&perf.budget);
	page = made_ring(SIZE);
	sf_perf_ring_init(&perf.events.rings[0], page, RING_PAGE, SIZE);
	for (int i = 0; i < 2; i++)
		threads[i] = (struct sf_thread){ .serial = (uint32_t)i + 1, .watched = true, .task = { .pid = 10, .tid = 10 + i } };
	relay_is_full = false;
	sent = ticks = n_sent = 0;
	memset(lost_by, 0, sizeof(lost_by));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	sf_perf_ring_deinit(&perf.events.rings[0]);
	free(page);
	sf_vec_deinit(&perf.due);
	return 0;
}

static void sample(int32_t pid, int32_t tid, uint64_t time_ns)
{
	struct made_record made;

	made_sample(&made, pid, tid, time_ns, NULL, 0, PERF_SAMPLE_REGS_ABI_64, 256, 128);
	ring_append(page, SIZE, made.bytes, made.size);
}

static void no_room(uint64_t n, uint64_t time_ns)
{
	struct made_record made;

	made_begin(&made, PERF_RECORD_LOST, 0);
	made_u64(&made, 1);
	made_u64(&made, n);
	made_identity(&made, 10, 10, time_ns, 0);
	made_end(&made);
	ring_append(page, SIZE, made.bytes, made.size);
}

uint64_t __wrap_sf_perf_events_counted(const struct sf_perf_events *events)
{
	(void)events;
	return counted;
}

static void end(uint64_t n)
{
	counted = n;
	sf_perf_counting_end(&perf);
}

static uint64_t lost(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < SF_N_LOSSES; i++)
		sum += lost_by[i];
	return sum;
}

static void a_sample_stands_for_what_it_was_asked_for(void **state)
{
	(void)state;
	sample(10, 10, 1);
	sample(10, 11, 2);
	perf.events.renewed_ns = 5; /* from now on one sample for 100 */
	perf.events.each = 100;
	sample(10, 10, 4);          /* of the time before */
	sample(10, 10, 6);
	sf_perf_batch(&perf, MS);
	assert_int_equal(n_sent, 4);
	assert_int_equal(sent, 1 + 1 + 1 + 100);
	end(150);
	assert_int_equal(sent + lost(), 150);
	assert_int_equal(lost_by[SF_LOSS_REST], 47);
	assert_int_equal(perf.counting.counted, 150);
}

static void what_found_no_room_is_lost_and_no_more_than_is_missing(void **state)
{
	(void)state;
	perf.events.each = 10;
	sample(10, 10, 1);
	no_room(5, 2);
	sf_perf_batch(&perf, MS);
	end(63);
	assert_int_equal(sent, 10);
	assert_int_equal(lost_by[SF_LOSS_RING_FULL], 50);
	assert_int_equal(lost_by[SF_LOSS_REST], 3);
	tear_down(state);
	set_up(state);
	no_room(5, 2); /* records of other kinds were among them */
	sf_perf_batch(&perf, MS);
	end(2);
	assert_int_equal(lost_by[SF_LOSS_RING_FULL], 2);
	assert_int_equal(lost_by[SF_LOSS_REST], 0);
}

static void what_is_passed_over_goes_to_the_next_sample(void **state)
{
	uint64_t before = 0;

	(void)state;
	perf.budget.part = SF_PERF_ALL / 2;
	for (uint64_t i = 1; i <= 60; i++)
		sample(10, 10, i * 1000);
	sf_perf_batch(&perf, MS);
	assert_in_range(n_sent, 15, 45);
	assert_int_equal(sent + threads[0].batch.passed.amount, 60);
	assert_int_equal(ticks + threads[0].batch.passed.ticks, 60);
	before = n_sent;
	perf.budget.part = SF_PERF_ALL;
	sample(10, 10, 70000);
	sf_perf_batch(&perf, MS);
	assert_int_equal(n_sent, before + 1);
	assert_int_equal(sent, 61);
	assert_int_equal(threads[0].batch.passed.amount, 0);
	end(61);
	assert_int_equal(lost(), 0);
}

static void a_full_relay_loses_nothing(void **state)
{
	(void)state;
	relay_is_full = true;
	sample(10, 10, 1);
	sample(10, 10, 2);
	sf_perf_batch(&perf, MS);
	assert_int_equal(n_sent, 0);
	relay_is_full = false;
	sample(10, 10, 3);
	sf_perf_batch(&perf, MS);
	assert_int_equal(weights[0], 3);
}

/*
 * The idle task, a process that the filter refuses, a thread that --threads leaves out: the kernel counts them, and
 * they are no loss.
 */
static void what_is_not_watched_is_no_loss(void **state)
{
	(void)state;
	perf.events.all = true;
	perf.base.options.all = true;
	threads[1].watched = false;
	sample(0, 0, 1);
	sample(20, 20, 2);
	sample(10, 11, 3);
	sample(10, 10, 4);
	sf_perf_batch(&perf, MS);
	end(4);
	assert_int_equal(sent, 1);
	assert_int_equal(lost(), 0);
	assert_int_equal(perf.counting.counted, 1);
	end(8); /* of those that are missing it has the same part */
	assert_int_equal(lost(), 1);
	assert_int_equal(perf.counting.counted, 2);
	sample(30, 30, 5); /* of a thread that could not be met */
	sf_perf_batch(&perf, MS);
	assert_int_equal(lost_by[SF_LOSS_GONE], 1);
}

static void names_are_those_of_perf(void **state)
{
	static const struct {
		const char *text, *name;
		uint32_t type;
		uint64_t config, each;
		bool in_kernel;
	} good[] = {
		{ "page-faults", "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, false },
		{ "faults/100", "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 100, false },
		{ "cs", "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 0, true },
		{ "cycles", "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, false },
		{ "syscalls:sys_enter_write/7", "syscalls:sys_enter_write", PERF_TYPE_TRACEPOINT, 0, 7, true },
	};
	static const char *const bad[] = {
		"", "nonsense", "page-faults/", "page-faults/0", "page-faults/-1", "page-faults/1x", "page-faults/99999999999999", "a:", ":b", "a:b:c", "../x:y",
		"cpu-clock/5", "page-faultspage-faultspage-faultspage-faultspage-faultspage-faults",
	};
	struct sf_perf_named_event event;
	struct sf_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(sf_perf_event_parse(good[i].text, &event, &err));
		assert_string_equal(event.name, good[i].name);
		assert_int_equal(event.type, good[i].type);
		assert_int_equal(event.config, good[i].config);
		assert_int_equal(event.each, good[i].each);
		assert_int_equal(event.in_kernel, good[i].in_kernel);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err = (struct sf_error){ 0 };
		if (sf_perf_event_parse(bad[i], &event, &err))
			fail_msg("accepted: %s", bad[i]);
		assert_int_equal(err.code, SF_E_INPUT);
	}
}

/*
 * Time passes in steps of 10 ms, with so many events in a second. Samples of the last second; *each_ret: events for
 * one, at the end.
 */
static uint64_t run(struct sf_perf_pace *pace, uint64_t *now_ns, uint64_t seconds, uint64_t events_per_s, uint64_t *each)
{
	uint64_t rest = 0, samples = 0;

	for (uint64_t i = 0; i < seconds * 100; i++) {
		const uint64_t n = (events_per_s / 100 + rest) / *each;

		rest = (events_per_s / 100 + rest) % *each;
		*now_ns += 10 * MS;
		*each = sf_perf_pace_look(pace, *each, n, *now_ns);
		samples = i % 100 ? samples + n : n;
	}
	return samples;
}

static void rare_events_have_a_sample_each_and_many_are_bounded(void **state)
{
	struct sf_perf_pace pace;
	uint64_t now_ns = S, each = 1;

	(void)state;
	sf_perf_pace_begin(&pace, 1, 1000, now_ns);
	run(&pace, &now_ns, 5, 900, &each);
	assert_int_equal(each, 1);
	assert_in_range(run(&pace, &now_ns, 5, 3000000, &each), 100, 1000);
	assert_in_range(each, 3000, 30000);
	run(&pace, &now_ns, 10, 100, &each); /* and again, when they are rare again */
	assert_int_equal(each, 1);
	sf_perf_pace_begin(&pace, 1000, 1000, now_ns);
	each = 1000;
	run(&pace, &now_ns, 5, 10, &each);
	assert_int_equal(each, 1000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_sample_stands_for_what_it_was_asked_for),
		TEST(what_found_no_room_is_lost_and_no_more_than_is_missing),
		TEST(what_is_passed_over_goes_to_the_next_sample),
		TEST(a_full_relay_loses_nothing),
		TEST(what_is_not_watched_is_no_loss),
		cmocka_unit_test(names_are_those_of_perf),
		cmocka_unit_test(rare_events_have_a_sample_each_and_many_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

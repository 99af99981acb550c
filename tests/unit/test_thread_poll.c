/* SPDX-License-Identifier: Apache-2.0 */
/* The time that a poll counts for a thread of this process. The kernel's counts and samples of sleeps are replaced (--wrap). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/agent.h"
#include "agent/sampler/blocked_sample.h"
#include "agent/sampler/thread_poll.h"
#include "frozen/signal/weight.h"

#define MS INT64_C(1000000)

static struct sf_agent_threads threads;
static struct sf_agent agent = { .options = { .clock = SF_AGENT_BOTH, .blocked_rate_mhz = 20000 }, .threads = &threads };
static struct sf_thread_entry entry;
static struct sf_agent_thread thread;
static uint64_t cpu_ns, wait_ns, now_ns;
static bool sleeps;

bool __wrap_sf_agent_thread_cpu(int32_t tid, uint64_t *ns_ret);
bool __wrap_sf_raw_wait_ns(int32_t tid, uint64_t *ns_ret);
bool __wrap_sf_blocked_sample_take(struct sf_agent *of, struct sf_agent_thread *taken, uint64_t time_ns);
void __wrap_sf_blocked_sample_on(const struct sf_agent_options *options, struct sf_agent_thread *taken, uint64_t time_ns);
void __wrap_sf_blocked_sample_again(const struct sf_agent_options *options, struct sf_agent_thread *taken, uint64_t time_ns);
bool __wrap_sf_blocked_sample_is_out_of_date(const struct sf_agent_thread *taken);

bool __wrap_sf_agent_thread_cpu(int32_t tid, uint64_t *ns_ret)
{
	(void)tid;
	*ns_ret = cpu_ns;
	return true;
}

bool __wrap_sf_raw_wait_ns(int32_t tid, uint64_t *ns_ret)
{
	(void)tid;
	*ns_ret = wait_ns;
	return true;
}

/* Every sleep has a sample, which stands for all of it. */
bool __wrap_sf_blocked_sample_take(struct sf_agent *of, struct sf_agent_thread *taken, uint64_t time_ns)
{
	(void)of, (void)time_ns;
	taken->sampled_asleep = sleeps;
	taken->asleep_ns = sleeps ? 0 : taken->asleep_ns;
	return sleeps;
}

void __wrap_sf_blocked_sample_on(const struct sf_agent_options *options, struct sf_agent_thread *taken, uint64_t time_ns)
{
	(void)options, (void)time_ns;
	taken->asleep_ns = 0;
}

void __wrap_sf_blocked_sample_again(const struct sf_agent_options *options, struct sf_agent_thread *taken, uint64_t time_ns)
{
	(void)options, (void)taken, (void)time_ns;
}

bool __wrap_sf_blocked_sample_is_out_of_date(const struct sf_agent_thread *taken)
{
	(void)taken;
	return false;
}

static int set_up(void **state)
{
	(void)state;
	entry = (struct sf_thread_entry){ .clock = -1 };
	thread = (struct sf_agent_thread){ .entry = &entry, .watched = true, .tid = 10 };
	sf_sleep_budget_begin(&threads.sleep_budget, 0, 1000);
	cpu_ns = wait_ns = now_ns = 0;
	sleeps = false;
	return 0;
}

/* The next poll, so much later: the thread has run and waited for a CPU for so long, by the kernel's counts. */
static void poll_after(int64_t ms, int64_t cpu_ms, int64_t wait_ms)
{
	now_ns += (uint64_t)(ms * MS);
	cpu_ns += (uint64_t)(cpu_ms * MS);
	wait_ns += (uint64_t)(wait_ms * MS);
	sf_thread_poll(&agent, &thread, now_ns);
}

/* The next sample of CPU time stands for the wait, which began before the poll before. */
static void a_wait_for_a_cpu_is_no_sleep(void **state)
{
	(void)state;
	poll_after(50, 20, 0);
	poll_after(50, 10, 70);
	assert_int_equal(entry.run_delay_ns, 70 * MS);
	assert_int_equal(thread.asleep_ns, 0);
}

/* A wait that was under way at the last polls, which have found the thread asleep before. */
static void a_wait_since_a_sleep_is_whole(void **state)
{
	(void)state;
	sleeps = true;
	poll_after(50, 1, 0);
	poll_after(50, 0, 0);
	sleeps = false;
	poll_after(50, 1, 90);
	assert_int_equal(entry.run_delay_ns, 90 * MS);
}

/* A sleep of 10 s has its sample, and the kernel counts it as a wait for a CPU at its end. */
static void a_sleep_is_no_wait_for_a_cpu(void **state)
{
	(void)state;
	sleeps = true;
	poll_after(50, 1, 0);
	for (int i = 0; i < 200; i++)
		poll_after(50, 0, 0);
	sleeps = false;
	poll_after(50, 1, 10050);
	assert_int_equal(entry.run_delay_ns, SF_LONGEST_WAIT_NS);
	assert_int_equal(thread.asleep_ns, 49 * MS - SF_LONGEST_WAIT_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_wait_for_a_cpu_is_no_sleep, set_up),
		cmocka_unit_test_setup(a_wait_since_a_sleep_is_whole, set_up),
		cmocka_unit_test_setup(a_sleep_is_no_wait_for_a_cpu, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The notes of the summary of a recording by perf: each thing that the recording lacks, and no note where it lacks nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "capture/perf/perf.h"

static char said[2048];
static struct sf_perf perf;

static bool note(void *arg, int32_t pid, const char *text, struct sf_error *err)
{
	(void)arg, (void)err;
	assert_int_equal(pid, 40);
	strcat(strcat(said, text), "\n");
	return true;
}

static const char *notes(void)
{
	const struct sf_sink sink = { .note = note };
	struct sf_error err;

	said[0] = 0;
	assert_true(sf_perf_notes(&perf, &sink, &err));
	return said;
}

static int set_up(void **state)
{
	(void)state;
	memset(&perf, 0, sizeof(perf));
	perf.base.options.pid = 40;
	perf.sleeps.on = true;
	return 0;
}

static void nothing_is_said_of_nothing(void **state)
{
	(void)state;
	perf.budget.n_samples = 1000;
	perf.budget.n_over = 99;
	perf.sleeps.n_wanted_ever = 1000;
	perf.sleeps.n_sent_ever = 901;
	perf.sleeps.n_lost_wakings = 99;
	perf.sleeps.n_wakings_ever = 1000;
	assert_string_equal(notes(), "");
}

static void each_thing_is_said(void **state)
{
	(void)state;
	perf.n_lost = 7;
	perf.budget.n_samples = 1000;
	perf.budget.n_over = 100;
	perf.base.limit.late_share = 2;
	perf.newcomers.n_dropped = 5;
	strcpy(perf.sleeps.reason, "no right to read it");
	perf.sleeps.n_lost = 3;
	perf.sleeps.n_lost_wakings = 4;
	perf.sleeps.n_wakings_ever = 39;
	perf.sleeps.gave_up_wakings = true;
	perf.sleeps.n_paused = 1;
	perf.sleeps.paused_ns = 1500000000;
	perf.sleeps.n_wanted_ever = 1000;
	perf.sleeps.n_sent_ever = 400;
	assert_string_equal(notes(),
		"7 records found no room in the rings: the times are right, with fewer samples\n"
		"90 % of the samples were used: more would take over 2 % of this machine's CPUs (each sample stands for more time; --max-cost allows more)\n"
		"the names of 5 processes that began were not kept until their first samples, since there were too many\n"
		"wakings of threads were not recorded, and sleeps contain a wait for a CPU: no right to read it\n"
		"3 records of sleeps found no room in the rings: those threads were looked at instead\n"
		"4 records of wakings found no room in the rings: sleeps without one contain a wait for a CPU\n"
		"wakings were not recorded any more, since the machine's threads wake each other so often that it would have cost too much: "
		"sleeps contain a wait for a CPU (--max-cost allows more)\n"
		"for 1.5 s sleeps were not recorded, since threads switched so often that it would have cost too much: "
		"sleeping threads were looked at (--max-cost allows more)\n"
		"40 % of the sleeps have samples, which stand for the others, too: more would cost too much (--max-cost allows more)\n");
}

/* Only what there was. */
static void pauses_and_records_are_told_each(void **state)
{
	(void)state;
	perf.n_throttled = 2;
	assert_string_equal(notes(), "the kernel paused a clock 2 times: the times are right, with fewer samples\n");
	perf.n_lost = 7;
	assert_string_equal(notes(), "7 records found no room in the rings, and the kernel paused a clock 2 times: the times are right, with fewer samples\n");
	perf.counting.on = true;
	strcpy(perf.counting.event.name, "page-faults");
	assert_string_equal(notes(), "7 records found no room in the rings, and the kernel paused the event 2 times: these events are lost "
		"(a lower --rate loses fewer, and so does page-faults/N)\n");
}

static void sleeps_that_are_not_told(void **state)
{
	(void)state;
	perf.sleeps.on = false;
	assert_string_equal(notes(), ""); /* they were not asked for */
	strcpy(perf.sleeps.reason, "no right");
	assert_string_equal(notes(), "sleeps were not recorded, and sleeping threads were looked at some times a second: no right\n");
}

/* The message and its hints become sentences. */
static void what_the_user_may_not(void **state)
{
	(void)state;
	sf_fail(&perf.no_kernel, SF_E_DENIED, "no right");
	sf_fail_hint(&perf.no_kernel, "Have it.");
	assert_string_equal(notes(), "time in the kernel was not sampled, and is a loss: no right. Have it.\n");
	perf.base.blocked_period_ns = 1;
	assert_string_equal(notes(), "time in the kernel was not sampled, and is a loss; sleeping threads were looked at some times a second: no right. Have it.\n");
	perf.base.blocked_period_ns = 0;
	perf.counting.on = true;
	assert_string_equal(notes(), "events in the kernel were not counted: no right. Have it.\n");
}

static void a_cpu_without_events(void **state)
{
	(void)state;
	sf_fail(&perf.no_cpu, SF_E_DENIED, "cannot map the ring of CPU 5");
	assert_string_equal(notes(), "a CPU that came online was not sampled: cannot map the ring of CPU 5\n");
}

static void sleepers_without_their_registers(void **state)
{
	(void)state;
	sf_fail(&perf.no_saved, SF_E_DENIED, "no program");
	assert_string_equal(notes(), ""); /* no thread slept */
	perf.base.read_asleep = true;
	assert_string_equal(notes(), "sleeping threads were read without all their registers, and held only where these were needed, at most once for each sleep: no program\n");
	perf.base.options.no_interrupt = true;
	assert_string_equal(notes(), "sleeping threads were read without all their registers: no program\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_is_said_of_nothing, set_up),
		cmocka_unit_test_setup(each_thing_is_said, set_up),
		cmocka_unit_test_setup(pauses_and_records_are_told_each, set_up),
		cmocka_unit_test_setup(sleeps_that_are_not_told, set_up),
		cmocka_unit_test_setup(what_the_user_may_not, set_up),
		cmocka_unit_test_setup(a_cpu_without_events, set_up),
		cmocka_unit_test_setup(sleepers_without_their_registers, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

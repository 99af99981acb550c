/* SPDX-License-Identifier: Apache-2.0 */
/* The note about processes that were not recorded: whose CPU time it speaks of. The summary's advice: what it goes by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/advice.h"
#include "cli/summary.h"

#define CHILD_NS 200000000u

static const struct sf_engine engine = { .name = "engine", .from = "outside" };
static const struct sf_session_options options = { .engine = &engine };

static uint64_t ns_of(const struct rusage *usage)
{
	return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000000u +
	       (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000u;
}

/* Runs a child that uses some CPU time, and waits for it. Returns the time. */
static uint64_t use_time(void)
{
	struct rusage usage = { 0 };
	const pid_t child = fork();

	assert_true(child >= 0);
	while (child == 0) {
		getrusage(RUSAGE_SELF, &usage);
		if (ns_of(&usage) >= CHILD_NS)
			_exit(0);
	}
	assert_int_equal(wait4(child, NULL, 0, &usage), child);
	return ns_of(&usage);
}

/* The command used a tenth of that itself. */
static const char *notes_after(uint64_t names_ns)
{
	static struct sf_session_result result;
	struct sf_children_cpu cpu = { 0 };

	result = (struct sf_session_result){ .names_ns = names_ns, .totals.cpu_counted_ns = CHILD_NS / 10 };
	sf_children_cpu_end(&cpu, &options, &result);
	sf_advise_children(&cpu, &result);
	return result.notes;
}

static void the_look_up_of_names_is_no_part_of_the_command(void **state)
{
	const uint64_t used_ns = use_time();
	(void)state;

	assert_non_null(strstr(notes_after(0), "--children samples them"));
	assert_string_equal(notes_after(used_ns), "");
}

/* As the report's, which reads the same recording: most lost ticks may be of another cause than most lost CPU time. */
static void the_summary_advises_by_cpu_time(void **state)
{
	static const struct sf_session_options given = { .engine = &engine, .output = "r.sfr" };
	static struct sf_session_result result = {
		.duration_ns = 1000000000,
		.totals = { .ticks = 3, .losses = 3, .losses_by[SF_LOSS_LATE] = 3, .cpu_lost_ns = 400000000,
			    .cpu_counted_ns = 400000000,
			    .cpu_lost_by = { [SF_LOSS_LATE] = 100000000, [SF_LOSS_REST] = 300000000 } },
	};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	(void)state;

	assert_non_null(out);
	sf_print_summary(out, &given, &result, "work", true);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(text, "(rest)"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_look_up_of_names_is_no_part_of_the_command),
		cmocka_unit_test(the_summary_advises_by_cpu_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

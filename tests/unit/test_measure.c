/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording of an event, beside times and in their place: its sums in the file, the report, and what the exporters
 * write of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report.h"
#include "export/export.h"
#include "small_recording.h"

static struct sf_profile *profile;
static struct sf_aggregate *sums;

/* 30 events in fn2, 10 in fn4, and 5 lost, of 50 that were counted. */
static void record_events(const char *path, const char *unit, bool with_times)
{
	struct sf_recording *recording = small_start(path);
	const uint32_t one = small_thread(recording, 101, "one");
	const struct sf_recording_sample samples[] = {
		{ .time_ns = SMALL_START_NS + MS, .thread = one, .stack = SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 2), .amount = 30, .ticks = 1 },
		{ .time_ns = SMALL_START_NS + 2 * MS, .thread = one, .stack = SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 4), .amount = 10, .ticks = 1 },
	};
	struct sf_error err = { 0 };

	assert_true(sf_recording_measure(recording, "page-faults", unit, &err));
	for (size_t i = 0; i < 2; i++)
		assert_true(sf_recording_sample(recording, &samples[i], &err));
	if (with_times)
		small_sample(recording, 3, one, SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 5), SF_STATE_RUNNING, 7, 7);
	sf_recording_loss(recording, 0, SF_LOSS_RING_FULL, &(struct sf_lost){ .ticks = 5, .amount = 5 });
	sf_recording_counted(recording, 50);
	small_names(recording);
	small_finish(recording);
}

static int tear_down(void **state)
{
	sf_aggregate_destroy(sums);
	sf_profile_destroy(profile);
	sums = NULL;
	profile = NULL;
	return small_folder_remove(state);
}

static struct sf_report load(const char *path, enum sf_clock clock)
{
	struct sf_error err;

	profile = small_load(path);
	assert_true(sf_aggregate_create(profile, clock, &sums, &err));
	return (struct sf_report){ .path = path, .profile = profile, .aggregate = sums, .only = -1, .depth = 64 };
}

static void views_add_up(void **state)
{
	const char *path = small_path("a.sfr");
	(void)state;

	record_events(path, "events", false);
	assert_int_equal(small_query(path, "SELECT amount_seen FROM accounting"), 40);
	assert_int_equal(small_query(path, "SELECT amount_lost FROM accounting"), 5);
	assert_int_equal(small_query(path, "SELECT amount_counted FROM accounting"), 50);
	assert_int_equal(small_query(path, "SELECT amount FROM self_times WHERE name = 'fn2'"), 30);
	assert_int_equal(small_query(path, "SELECT amount FROM total_times WHERE name = 'fn1'"), 40);
	assert_int_equal(small_query(path, "SELECT sum(amount) FROM thread_times"), 40);
	assert_int_equal(small_query(path, "SELECT sum(amount) FROM stack_times"), 40);
	assert_int_equal(small_query(path, "SELECT sum(amount) FROM state_times"), 40);
	assert_int_equal(small_query(path, "SELECT amount FROM loss_totals"), 5);
	assert_int_equal(small_query(path, "SELECT count(*) FROM measures WHERE name = 'page-faults' AND unit = 'events'"), 1);
}

static void sums_have_what_was_lost(void **state)
{
	(void)state;
	record_events(small_path("a.sfr"), "events", false);
	load(small_path("a.sfr"), SF_CLOCK_EVENT);
	assert_true(profile->measure.is_all && profile->measure.is_counted);
	assert_int_equal(sums->total_ns, 45);
	assert_int_equal(sums->amount, 40);
	assert_int_equal(sums->unseen_ns, 5);
	assert_int_equal(sums->lost.amount, 5);
	assert_int_equal(sums->functions[0].self_ns, 30);
	assert_string_equal(sf_aggregate_name(profile, sums->functions[0].function), "fn2");
}

/* Where there are times, too, each clock has its own samples. */
static void an_event_is_a_clock_of_its_own(void **state)
{
	struct sf_error err = { 0 };
	(void)state;

	record_events(small_path("a.sfr"), "events", true);
	load(small_path("a.sfr"), SF_CLOCK_CPU);
	assert_false(profile->measure.is_all);
	assert_int_equal(sums->total_ns, 7 * MS);
	assert_true(sf_profile_has_clock(profile, "F", SF_CLOCK_EVENT, &err) && sf_profile_has_clock(profile, "F", SF_CLOCK_CPU, &err));
	sf_aggregate_destroy(sums);
	assert_true(sf_aggregate_create(profile, SF_CLOCK_EVENT, &sums, &err));
	assert_int_equal(sums->total_ns, 45);
}

static void a_clock_that_is_not_there_is_named(void **state)
{
	struct sf_error err = { 0 };
	(void)state;

	record_events(small_path("a.sfr"), "events", false);
	profile = small_load(small_path("a.sfr"));
	assert_false(sf_profile_has_clock(profile, "F", SF_CLOCK_CPU, &err));
	assert_string_equal(err.text, "F counts page-faults and has no times: leave --clock out, or use --clock event");
	sf_profile_destroy(profile);
	small_finish(small_start(small_path("b.sfr")));
	profile = small_load(small_path("b.sfr"));
	assert_false(sf_profile_has_clock(profile, "F", SF_CLOCK_EVENT, &err));
	assert_non_null(strstr(err.text, "F has times and no event"));
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("not there: %s\nin:\n%s", part, text);
}

static char *text_of(const struct sf_report *report, bool json)
{
	char *text = NULL;
	size_t size;
	struct sf_output output = { .file = open_memstream(&text, &size), .width = 80 };
	struct sf_error err;

	if (json)
		assert_true(sf_report_json(report, output.file, &err));
	else
		sf_report_text(report, &output);
	fclose(output.file);
	return text;
}

static void the_report_counts(void **state)
{
	struct sf_report report;
	char *text;
	(void)state;

	record_events(small_path("a.sfr"), "events", false);
	report = load(small_path("a.sfr"), SF_CLOCK_EVENT);
	text = text_of(&report, false);
	assert_has(text, "  how       ptrace, by page-faults\n");
	assert_has(text, "  events    40 page-faults seen, 50 counted (80.0 %)\n");
	assert_has(text, "\nFigures are page-faults: 45.\n");
	assert_has(text, "    66.7     66.7         30  fn2  libwork.so\n");
	assert_has(text, "    11.1     11.1          5  [not seen]\n");
	assert_has(text, "       %     events    samples  thread\n    88.9         40          2  one  tid 101\n");
	assert_has(text, "LOSSES\n       %     events  cause\n    11.1          5  ring-full   the collector was behind");
	assert_null(strstr(text, "CPU"));
	assert_null(strstr(text, "STATES"));
	free(text);
	text = text_of(&report, true);
	assert_has(text, "\"measure\":{\"name\":\"page-faults\",\"unit\":\"events\",\"counted\":50,\"seen\":40,\"lost\":5}");
	assert_has(text, "\"clock\":\"event\",\"total_amount\":45,\"unseen_amount\":5,");
	assert_has(text, "\"self_amount\":30,\"total_amount\":30,");
	assert_null(strstr(text, "self_ns"));
	free(text);
}

static void bytes_are_shown_as_bytes(void **state)
{
	struct sf_report report;
	char *text;
	(void)state;

	record_events(small_path("a.sfr"), "bytes", false);
	report = load(small_path("a.sfr"), SF_CLOCK_EVENT);
	text = text_of(&report, false);
	assert_has(text, "    66.7     66.7       30 B  fn2  libwork.so\n");
	free(text);
}

static char *export(const struct sf_exporter *exporter, const struct sf_profile *of, enum sf_clock clock)
{
	const struct sf_filter filter = { .clock = clock };
	struct sf_error err = { 0 };
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!exporter->write(of, &filter, out, &err))
		fail_msg("%s: %s", exporter->name, err.text);
	fclose(out);
	return text;
}

static void exports_count(void **state)
{
	char *text;
	(void)state;

	record_events(small_path("a.sfr"), "events", false);
	profile = small_load(small_path("a.sfr"));
	text = export(&sf_export_collapsed, profile, SF_CLOCK_EVENT);
	assert_string_equal(text, "[not seen];[not seen] 5\none;fn1;fn2 30\none;fn1;fn4 10\n");
	free(text);
	text = export(&sf_export_speedscope, profile, SF_CLOCK_EVENT);
	assert_has(text, "\"unit\":\"none\",\"startValue\":0,\"endValue\":40");
	free(text);
	text = export(&sf_export_html, profile, SF_CLOCK_EVENT);
	assert_has(text, "\"measure\":{\"name\":\"page-faults\",\"unit\":\"events\",\"counted\":50,\"seen\":40,\"lost\":5}");
	assert_has(text, "\"clock\":\"event\"");
	assert_has(text, "\"event\":[30,10,5]");
	free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, small_folder_make, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(views_add_up),
		TEST(sums_have_what_was_lost),
		TEST(an_event_is_a_clock_of_its_own),
		TEST(a_clock_that_is_not_there_is_named),
		TEST(the_report_counts),
		TEST(bytes_are_shown_as_bytes),
		TEST(exports_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

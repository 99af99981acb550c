/* SPDX-License-Identifier: Apache-2.0 */
/* Exporters: what they write of a profile whose sums are known, hostile names, full disks. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <json-c/json.h>
#include <zlib.h>

#include "export/export.h"
#include "export/tally.h"
#include "fake_profile.h"
#include "profile.pb-c.h"

static const struct sf_filter wall = { .clock = SF_CLOCK_WALL };
static const struct sf_filter cpu = { .clock = SF_CLOCK_CPU };
static const struct sf_filter offcpu = { .clock = SF_CLOCK_OFFCPU };

/* The output of an exporter; free() it. */
static char *export_of(const struct sf_profile *profile, const struct sf_exporter *exporter, const struct sf_filter *filter,
		       size_t *size)
{
	struct sf_error err = { 0 };
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	assert_non_null(out);
	if (!exporter->write(profile, filter, out, &err))
		fail_msg("%s: %s", exporter->name, err.text);
	assert_int_equal(fclose(out), 0);
	return text;
}

static char *export(const struct sf_exporter *exporter, const struct sf_filter *filter, size_t *size)
{
	return export_of(fake_profile(), exporter, filter, size);
}

static void expect_folded(const struct sf_filter *filter, const char *expected)
{
	size_t size;
	char *text = export(&sf_export_collapsed, filter, &size);

	assert_string_equal(text, expected);
	free(text);
}

static void collapsed_is_sorted_microseconds(void **state)
{
	(void)state;
	expect_folded(&wall, "io;main;[futex] 50000\n"
			     "worker;[no stack] 1000\n"
			     "worker;main;compute(int);inner~ 15000\n"
			     "worker;main;evil:name x;" FAKE_SCRIPT " 7000\n");
}

static void clocks_weigh(void **state)
{
	(void)state;

	expect_folded(&cpu, "worker;main;compute(int);inner~ 15000\n"
			    "worker;main;evil:name x;" FAKE_SCRIPT " 5000\n");
	expect_folded(&offcpu, "io;main;[futex] 50000\n"
			       "worker;[no stack] 1000\n"
			       "worker;main;evil:name x;" FAKE_SCRIPT " 2000\n");
}

/* One thread whose only function has this name, for so long. */
static char *folded_name(const char *name, uint64_t wall_ns)
{
	char *strings[] = { (char *)"", (char *)"worker", (char *)name };
	struct sf_profile_function functions[] = { { 0 }, { .name = 2 } };
	struct sf_profile_frame frames[] = { { 0 }, { .function = 1 } };
	struct sf_profile_node nodes[] = { { 0, 0 }, { 0, 1 } };
	struct sf_profile_thread threads[] = { { .pid = 1, .tid = 1, .name = 1 } };
	struct sf_profile_sample samples[] = { { .node = 1, .wall_ns = wall_ns, .ticks = 1 } };
	const struct sf_profile profile = {
		.strings = strings, .n_strings = 3, .functions = functions, .n_functions = 2,
		.frames = frames, .n_frames = 2, .nodes = nodes, .n_nodes = 2,
		.threads = threads, .n_threads = 1, .samples = samples, .n_samples = 1,
	};
	struct sf_error err = { 0 };
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_true(sf_export_collapsed.write(&profile, &wall, out, &err));
	assert_int_equal(fclose(out), 0);
	return text;
}

static void expect_folded_name(const char *name, const char *folded)
{
	char *text = folded_name(name, 1000000), expected[128];

	snprintf(expected, sizeof(expected), "worker;%s 1000\n", folded);
	assert_string_equal(text, expected);
	free(text);
}

static void expect_folded_time(uint64_t wall_ns, const char *expected)
{
	char *text = folded_name("f", wall_ns);

	assert_string_equal(text, expected);
	free(text);
}

static void collapsed_rounds_to_microseconds(void **state)
{
	(void)state;
	expect_folded_time(499, "");
	expect_folded_time(500, "worker;f 1\n");
	expect_folded_time(1499, "worker;f 1\n");
	expect_folded_time(UINT64_C(10000000000500), "worker;f 10000000001\n");
}

/* A mark in the middle of a stack would make two callers of one. */
static void collapsed_marks_the_innermost_frame_only(void **state)
{
	struct sf_profile_frame frames[8];
	struct sf_profile profile = *fake_profile();
	struct sf_error err = { 0 };
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	(void)state;

	memcpy(frames, profile.frames, sizeof(frames));
	for (size_t i = 1; i < 8; i++)
		frames[i].approximate = true;
	profile.frames = frames;
	assert_int_equal(profile.n_frames, 8);
	assert_non_null(out);
	assert_true(sf_export_collapsed.write(&profile, &cpu, out, &err));
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, "worker;main;compute(int);inner~ 15000\n"
				  "worker;main;evil:name x;" FAKE_SCRIPT "~ 5000\n");
	free(text);
}

/* Only what the format cannot hold is replaced: bytes beyond ASCII are parts of characters. */
static void collapsed_keeps_characters_beyond_ascii(void **state)
{
	(void)state;
	expect_folded_name("gr\xc3\xb6\xc3\x9f" "e \xe2\x82\xac \xf0\x9f\x94\xa5",
			   "gr\xc3\xb6\xc3\x9f" "e \xe2\x82\xac \xf0\x9f\x94\xa5");
	expect_folded_name("\x80\xff", "\x80\xff");
	expect_folded_name("a;b", "a:b");
	expect_folded_name("\x01" "a\nb\tc\x1f\x7f", " a b c  ");
	expect_folded_name(" !:<~", " !:<~");
	expect_folded_name("", "[no name]");
}

static void speedscope_is_by_thread_and_time(void **state)
{
	static const char expected[] =
		"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
		"\"exporter\":\"stillframe " SF_VERSION "\",\n"
		"\"name\":\"app --fast\",\n"
		"\"shared\":{\"frames\":[\n"
		"{\"name\":\"[no stack]\"},\n"
		"{\"name\":\"main\",\"file\":\"/src/app.c\"},\n"
		"{\"name\":\"compute(int)\",\"file\":\"/src/app.c\"},\n"
		"{\"name\":\"inner\",\"file\":\"/src/app.c\"},\n"
		"{\"name\":\"[futex]\"},\n"
		"{\"name\":\"evil;name\\nx\"},\n"
		"{\"name\":\"\\u003c/script>\\u003cimg src=x onerror=alert(1)>\"},\n"
		"{\"name\":\"inner~\",\"file\":\"/src/app.c\"}\n"
		"]},\n"
		"\"profiles\":[\n"
		"{\"type\":\"sampled\",\"name\":\"worker (101)\",\"unit\":\"nanoseconds\","
		"\"startValue\":0,\"endValue\":16000000,\n"
		"\"samples\":[\n[1,2,7],\n[0]\n],\"weights\":[15000000,1000000]},\n"
		"{\"type\":\"sampled\",\"name\":\"io (102)\",\"unit\":\"nanoseconds\","
		"\"startValue\":0,\"endValue\":50000000,\n"
		"\"samples\":[\n[1,4]\n],\"weights\":[50000000]},\n"
		"{\"type\":\"sampled\",\"name\":\"worker (103)\",\"unit\":\"nanoseconds\","
		"\"startValue\":0,\"endValue\":7000000,\n"
		"\"samples\":[\n[1,5,6]\n],\"weights\":[7000000]}\n"
		"]}\n";
	size_t size;
	char *text = export(&sf_export_speedscope, &wall, &size);
	(void)state;

	assert_string_equal(text, expected);
	free(text);
}

/* Unpacks the gzip member and the message in it. */
static Perftools__Profiles__Profile *decode(const struct sf_filter *filter)
{
	static unsigned char plain[65536];
	z_stream stream = { .next_out = plain, .avail_out = sizeof(plain) };
	Perftools__Profiles__Profile *message;
	size_t size;
	char *packed = export(&sf_export_pprof, filter, &size);

	stream.next_in = (unsigned char *)packed;
	stream.avail_in = (uInt)size;
	assert_int_equal(inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	message = perftools__profiles__profile__unpack(NULL, stream.total_out, plain);
	inflateEnd(&stream);
	free(packed);
	assert_non_null(message);
	return message;
}

static int64_t total(const Perftools__Profiles__Profile *message, size_t value)
{
	int64_t sum = 0;

	for (size_t i = 0; i < message->n_sample; i++) {
		assert_int_equal(message->sample[i]->n_value, message->n_sample_type);
		sum += message->sample[i]->value[value];
	}
	return sum;
}

static void expect_type(const Perftools__Profiles__Profile *message, size_t i, const char *type,
			const char *unit)
{
	assert_string_equal(message->string_table[message->sample_type[i]->type], type);
	assert_string_equal(message->string_table[message->sample_type[i]->unit], unit);
}

static void pprof_totals(void **state)
{
	Perftools__Profiles__Profile *message = decode(&wall);
	(void)state;

	assert_int_equal(message->n_sample, 5); /* one stack with two labels is two */
	assert_int_equal(message->n_sample_type, 4);
	expect_type(message, 0, "samples", "count");
	expect_type(message, 1, "cpu", "nanoseconds");
	expect_type(message, 2, "wall", "nanoseconds");
	expect_type(message, 3, "offcpu", "nanoseconds");
	assert_int_equal(total(message, 0), 6);
	assert_int_equal(total(message, 1), 20000000);
	assert_int_equal(total(message, 2), 73000000);
	assert_int_equal(total(message, 3), 53000000);
	assert_string_equal(message->string_table[message->default_sample_type], "wall");
	assert_int_equal(message->period, 5000000);
	assert_string_equal(message->string_table[message->period_type->type], "cpu");
	assert_string_equal(message->string_table[message->period_type->unit], "nanoseconds");
	assert_int_equal(message->time_nanos, 1700000000000000000);
	assert_int_equal(message->duration_nanos, 100000000);
	assert_int_equal(message->n_comment, 2);
	assert_string_equal(message->string_table[message->comment[0]], "app --fast");
	assert_string_equal(message->string_table[message->comment[1]], "stillframe " SF_VERSION);
	perftools__profiles__profile__free_unpacked(message, NULL);

	message = decode(&cpu);
	assert_int_equal(message->n_sample, 3);
	assert_int_equal(total(message, 1), 20000000);
	assert_string_equal(message->string_table[message->default_sample_type], "cpu");
	perftools__profiles__profile__free_unpacked(message, NULL);

	message = decode(&offcpu);
	assert_string_equal(message->string_table[message->default_sample_type], "offcpu");
	perftools__profiles__profile__free_unpacked(message, NULL);
}

/* The names of a sample's frames, innermost first, "/" between inlined ones, " " between others. */
static void spell(const Perftools__Profiles__Profile *message, size_t sample, char *ret)
{
	const Perftools__Profiles__Sample *s = message->sample[sample];

	*ret = 0;
	for (size_t i = 0; i < s->n_location_id; i++) {
		const Perftools__Profiles__Location *l = message->location[s->location_id[i] - 1];

		assert_int_equal(l->id, s->location_id[i]);
		for (size_t j = 0; j < l->n_line; j++) {
			const Perftools__Profiles__Function *f = NULL;

			for (size_t k = 0; k < message->n_function; k++) {
				if (message->function[k]->id == l->line[j]->function_id)
					f = message->function[k];
			}
			assert_non_null(f);
			strcat(strcat(ret, message->string_table[f->name]),
			       j + 1 < l->n_line ? "/" : " ");
		}
	}
}

static void pprof_stacks_and_places(void **state)
{
	Perftools__Profiles__Profile *message = decode(&wall);
	const Perftools__Profiles__Location *leaf;
	char names[256];
	(void)state;

	assert_string_equal(message->string_table[0], "");
	spell(message, 0, names);
	assert_string_equal(names, "inner/compute(int) main ");
	spell(message, 1, names);
	assert_string_equal(names, "[futex] main ");
	spell(message, 2, names);
	assert_string_equal(names, FAKE_SCRIPT " evil;name\nx main ");
	spell(message, 4, names);
	assert_string_equal(names, "[no stack] ");

	leaf = message->location[message->sample[0]->location_id[0] - 1];
	assert_int_equal(leaf->address, 0x1100);
	assert_int_equal(leaf->line[0]->line, 30);
	assert_int_equal(leaf->line[1]->line, 20);

	/* The program comes before the library, though it is the second module. */
	assert_int_equal(message->n_mapping, 2);
	assert_int_equal(message->mapping[0]->id, leaf->mapping_id);
	assert_string_equal(message->string_table[message->mapping[0]->filename], "/bin/app");
	assert_string_equal(message->string_table[message->mapping[0]->build_id], FAKE_MAIN_BUILD_ID);
	assert_int_equal(message->mapping[0]->memory_limit, 0x2000);
	assert_true(message->mapping[0]->has_functions && message->mapping[0]->has_filenames &&
		    message->mapping[0]->has_line_numbers && message->mapping[0]->has_inline_frames);
	assert_string_equal(message->string_table[message->mapping[1]->filename], "/lib/libevil.so");
	assert_string_equal(message->string_table[message->mapping[1]->build_id], "99");
	assert_int_equal(message->mapping[1]->memory_limit, 0x2000);
	perftools__profiles__profile__free_unpacked(message, NULL);
}

static void expect_function(const Perftools__Profiles__Profile *message, const char *name,
			    const char *system_name, const char *file)
{
	for (size_t i = 0; i < message->n_function; i++) {
		const Perftools__Profiles__Function *function = message->function[i];

		if (strcmp(message->string_table[function->name], name) != 0)
			continue;
		assert_string_equal(message->string_table[function->system_name], system_name);
		assert_string_equal(message->string_table[function->filename], file);
		return;
	}
	fail_msg("no function is called %s", name);
}

static void pprof_functions(void **state)
{
	Perftools__Profiles__Profile *message = decode(&wall);
	(void)state;

	assert_int_equal(message->n_function, 7); /* all, and one for stacks without a frame */
	expect_function(message, "compute(int)", "_Z7computei", "/src/app.c");
	expect_function(message, "main", "main", "/src/app.c");
	expect_function(message, "[futex]", "[futex]", "");
	expect_function(message, "[no stack]", "", "");
	perftools__profiles__profile__free_unpacked(message, NULL);

	message = decode(&cpu);
	assert_int_equal(message->n_function, 5); /* those that the samples name */
	perftools__profiles__profile__free_unpacked(message, NULL);
}

static void expect_label(const Perftools__Profiles__Profile *message,
			 const Perftools__Profiles__Label *label, const char *key, const char *text,
			 int64_t number)
{
	assert_string_equal(message->string_table[label->key], key);
	assert_string_equal(message->string_table[label->str], text);
	assert_int_equal(label->num, number);
}

static void pprof_labels(void **state)
{
	Perftools__Profiles__Profile *message = decode(&wall);
	(void)state;

	assert_int_equal(message->sample[1]->n_label, 4);
	expect_label(message, message->sample[1]->label[0], "thread", "io", 0);
	expect_label(message, message->sample[1]->label[1], "tid", "", 102);
	expect_label(message, message->sample[1]->label[2], "pid", "", 100);
	expect_label(message, message->sample[1]->label[3], "state", "blocked", 0);

	assert_int_equal(message->sample[0]->n_label, 5);
	expect_label(message, message->sample[0]->label[4], "approximate", "inlined calls", 0);

	/* One stack with two labels of the program's own is two samples. */
	assert_int_equal(message->sample[2]->n_label, 5);
	expect_label(message, message->sample[2]->label[4], "trace", "0001", 0);
	expect_label(message, message->sample[3]->label[4], "trace", "4bf9", 0);
	assert_int_equal(message->sample[3]->n_label, 6);
	expect_label(message, message->sample[3]->label[5], "trace", "0001", 0);
	perftools__profiles__profile__free_unpacked(message, NULL);
}

static void expect_row(const struct sf_tally *tally, size_t i, enum sf_state state, uint64_t weight, uint64_t ticks)
{
	assert_true(i < tally->n_rows);
	assert_int_equal(tally->rows[i].state, state);
	assert_int_equal(tally->rows[i].weight, weight);
	assert_int_equal(tally->rows[i].ticks, ticks);
}

/* As in the report: a thread that was awake for 10 ms, and on a CPU for 4 of them, waited for one for the rest. */
static void waits_for_a_cpu_are_runnable(void **state)
{
	struct sf_profile_thread threads[] = { { .pid = 1, .tid = 1 } };
	struct sf_profile_sample samples[] = {
		{ .state = SF_STATE_RUNNING, .cpu_ns = 4000000, .wall_ns = 10000000, .ticks = 5 },
	};
	const struct sf_profile profile = { .threads = threads, .n_threads = 1, .samples = samples, .n_samples = 1 };
	static const enum sf_clock clocks[] = { SF_CLOCK_WALL, SF_CLOCK_CPU, SF_CLOCK_OFFCPU };
	struct sf_tally *tallies[3];
	struct sf_error err;
	(void)state;

	for (size_t i = 0; i < 3; i++)
		assert_true(sf_tally_create(&profile, clocks[i], false, &tallies[i], &err));
	expect_row(tallies[0], 0, SF_STATE_RUNNING, 4000000, 2);
	expect_row(tallies[0], 1, SF_STATE_RUNNABLE, 6000000, 3);
	expect_row(tallies[1], 0, SF_STATE_RUNNING, 4000000, 5);
	assert_int_equal(tallies[1]->n_rows, 1);
	expect_row(tallies[2], 0, SF_STATE_RUNNABLE, 6000000, 3);
	assert_int_equal(tallies[2]->n_rows, 1);
	for (size_t i = 0; i < 3; i++)
		sf_tally_destroy(tallies[i]);
}

/* The JSON inside the page; json_object_put() it. */
static struct json_object *page_data_of(const struct sf_profile *profile, const struct sf_filter *filter)
{
	static const char before[] = "<script type=\"application/json\" id=\"data\">";
	size_t size;
	char *page = export_of(profile, &sf_export_html, filter, &size);
	char *start = strstr(page, before), *end;
	struct json_object *data;

	assert_non_null(start);
	start += strlen(before);
	end = strstr(start, "</script>");
	assert_non_null(end);
	*end = 0;
	data = json_tokener_parse(start);
	free(page);
	assert_non_null(data);
	return data;
}

static struct json_object *page_data(const struct sf_filter *filter)
{
	return page_data_of(fake_profile(), filter);
}

static struct json_object *get(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	assert_true(json_object_object_get_ex(object, key, &value));
	return value;
}

static int64_t column_sum(struct json_object *data, const char *column)
{
	struct json_object *array = get(get(data, "rows"), column);
	int64_t sum = 0;

	for (size_t i = 0; i < json_object_array_length(array); i++)
		sum += json_object_get_int64(json_object_array_get_idx(array, i));
	return sum;
}

/* Cut at the first </script>, the data must still be whole: a name that says so is escaped. */
static void html_survives_hostile_names(void **state)
{
	struct json_object *data = page_data(&wall), *names = get(data, "strings");
	bool found = false;
	(void)state;

	for (size_t i = 0; i < json_object_array_length(names); i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(names, i));

		found |= strcmp(name, FAKE_SCRIPT) == 0;
	}
	assert_true(found);
	json_object_put(data);
}

static void html_sums_and_losses(void **state)
{
	struct json_object *data = page_data(&wall), *losses = get(get(data, "about"), "losses");
	(void)state;

	assert_int_equal(column_sum(data, "cpu"), 20000);
	assert_int_equal(column_sum(data, "wall"), 73000);
	assert_int_equal(column_sum(data, "offcpu"), 53000);
	assert_int_equal(column_sum(data, "ticks"), 6);
	assert_int_equal(json_object_array_length(losses), 2);
	json_object_put(data);

	data = page_data(&cpu);
	assert_int_equal(column_sum(data, "wall"), 22000);
	assert_int_equal(json_object_get_int64(get(get(data, "about"), "ticks")), 7); /* as in the report, whatever the clock */
	assert_string_equal(json_object_get_string(get(get(data, "about"), "clock")), "cpu");
	json_object_put(data);
}

/* Of the samples that are left; and time of no known thread counts once, which it does with its thread but for one cause. */
static void html_counts_as_the_report_does(void **state)
{
	static const struct sf_filter labelled = { .clock = SF_CLOCK_WALL, .label = "trace=4bf9" };
	struct sf_profile_loss losses[] = {
		{ .thread = UINT32_MAX, .cause = SF_LOSS_UNSEEN, .cpu_ns = 1000000 },
		{ .thread = UINT32_MAX, .cause = SF_LOSS_REST, .cpu_ns = 7000000 },
	};
	struct sf_profile some = *fake_profile();
	struct json_object *data, *about;
	(void)state;

	some.losses = losses;
	some.notes = &(struct sf_profile_note){ .pid = 100, .text = 1 };
	some.n_notes = 1;
	some.samples += 4; /* of that label */
	some.n_samples = 1;
	some.complete = false;
	data = page_data_of(&some, &labelled);
	about = get(data, "about");
	assert_int_equal(json_object_get_int64(get(about, "cpu_seen_ns")), 3000000);
	assert_int_equal(json_object_get_int64(get(about, "cpu_counted_ns")), 15500000 + 5000000 + 1000000);
	assert_string_equal(json_object_get_string(get(about, "label")), "trace=4bf9");
	assert_string_equal(json_object_get_string(get(about, "cut")), sf_profile_cut(&some));
	assert_string_equal(json_object_to_json_string_ext(get(about, "notes"), JSON_C_TO_STRING_PLAIN),
			    "[{\"pid\":100,\"text\":\"main\"}]");
	json_object_put(data);
}

/* main() at two lines is one node: root, no stack, main, compute, inner, futex, evil, script. */
static void html_merges_lines_of_a_function(void **state)
{
	struct json_object *data = page_data(&wall), *list;
	(void)state;

	assert_int_equal(json_object_array_length(get(get(data, "nodes"), "parent")), 8);
	list = get(get(data, "nodes"), "approximate");
	assert_int_equal(json_object_array_length(list), 1);
	assert_int_equal(json_object_get_int(json_object_array_get_idx(list, 0)), 3);
	list = get(get(data, "nodes"), "guessed");
	assert_int_equal(json_object_array_length(list), 1);
	assert_int_equal(json_object_get_int(json_object_array_get_idx(list, 0)), 5);
	json_object_put(data);
}

static void full_disks_are_reported(void **state)
{
	(void)state;
	for (const struct sf_exporter *const *e = sf_exporters; *e; e++) {
		struct sf_error err = { 0 };
		FILE *out = fopen("/dev/full", "w");

		assert_non_null(out);
		assert_false((*e)->write(fake_profile(), &wall, out, &err));
		assert_int_equal(err.os_errno, ENOSPC);
		assert_non_null(strstr(err.text, "cannot write"));
		fclose(out);
	}
}

static void empty_profiles_are_fine(void **state)
{
	static const struct sf_profile nothing;
	(void)state;

	for (const struct sf_exporter *const *e = sf_exporters; *e; e++) {
		struct sf_error err = { 0 };
		FILE *out = fopen("/dev/null", "w");

		assert_non_null(out);
		assert_true((*e)->write(&nothing, &wall, out, &err));
		fclose(out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collapsed_is_sorted_microseconds),
		cmocka_unit_test(clocks_weigh),
		cmocka_unit_test(collapsed_keeps_characters_beyond_ascii),
		cmocka_unit_test(collapsed_marks_the_innermost_frame_only),
		cmocka_unit_test(collapsed_rounds_to_microseconds),
		cmocka_unit_test(speedscope_is_by_thread_and_time),
		cmocka_unit_test(pprof_totals),
		cmocka_unit_test(pprof_stacks_and_places),
		cmocka_unit_test(pprof_functions),
		cmocka_unit_test(pprof_labels),
		cmocka_unit_test(waits_for_a_cpu_are_runnable),
		cmocka_unit_test(html_survives_hostile_names),
		cmocka_unit_test(html_sums_and_losses),
		cmocka_unit_test(html_counts_as_the_report_does),
		cmocka_unit_test(html_merges_lines_of_a_function),
		cmocka_unit_test(full_disks_are_reported),
		cmocka_unit_test(empty_profiles_are_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

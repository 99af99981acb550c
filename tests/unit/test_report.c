/* SPDX-License-Identifier: Apache-2.0 */
/* `stillframe report`: its text, its JSON, its options, and that nothing is wider than asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "session/session.h"
#include "small_recording.h"

/* The command line's ends, which main.c has in the program. */
static char last_error[600];

int sf_cli_fail(int status, const struct sf_error *err)
{
	snprintf(last_error, sizeof(last_error), "%s", err->text);
	return status;
}

int sf_cli_parse(const struct sf_command *command, int argc, char **argv, void *ret, int *rest)
{
	struct sf_error err = { 0 };

	if (!sf_options_parse(command, argc, argv, ret, rest, &err))
		return sf_cli_fail(SF_EXIT_USAGE, &err);
	return -1;
}

/* The session's part, naming what was left unnamed, has tests of its own. */
bool sf_session_load(const char *path, bool split_kinds, struct sf_profile **ret, struct sf_error *err)
{
	const struct sf_load_options options = { .split_kinds = split_kinds };

	return sf_profile_load(path, &options, ret, err);
}

static char *read_text(const char *path)
{
	char *text = calloc(1, 1 << 20);
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_true(fread(text, 1, (1 << 20) - 1, file) < (1 << 20) - 1);
	fclose(file);
	return text;
}

/* Runs `report` with these arguments, and returns what it prints. */
static char *report(int expected, const char *const *arguments)
{
	char *argv[16] = { (char *)"report" };
	int argc = 1, saved = dup(STDOUT_FILENO), status;
	char out[160];

	while (*arguments)
		argv[argc++] = (char *)*arguments++;
	snprintf(out, sizeof(out), "%s", small_path("out.txt"));
	fflush(stdout);
	assert_non_null(freopen(out, "w", stdout));
	status = sf_command_report.run(argc, argv);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_int_equal(status, expected);
	return read_text(out);
}

#define REPORT(expected, ...) report((expected), (const char *const[]){ __VA_ARGS__, NULL })

static char sample_path[160];
static unsigned unseen_ms; /* CPU time of the loss */
static enum sf_loss unseen_cause = SF_LOSS_LATE;

static int make_recording(void **state)
{
	struct sf_recording *recording;
	uint32_t one, two, label;
	struct sf_error err;

	small_folder_make(state);
	snprintf(sample_path, sizeof(sample_path), "%s", small_path("work.sfr"));
	recording = small_start(sample_path);
	one = small_thread(recording, 101, "one");
	two = small_thread(recording, 102, "two\033[31m");
	small_sample(recording, 1, one, SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 2, 4, 4, 4, 4),
		     SF_STATE_RUNNING, 600, 600);
	assert_true(sf_recording_label(recording, "trace", "4bf9", &label, &err));
	assert_true(sf_recording_note(recording, 100, "there is a blind spot", &err));
	small_labelled(recording, 2, one, SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 2, 5),
		       SF_STATE_RUNNING, 300, 300, label);
	small_sample(recording, 3, one, SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 6),
		     SF_STATE_RUNNING, 95, 95);
	small_sample(recording, 4, one, SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 7),
		     SF_STATE_RUNNING, 5, 5);
	small_sample(recording, 5, two, SMALL_STACK(recording, SF_END_ROOT, "[futex]", 1, 9),
		     SF_STATE_BLOCKED, 0, 3000);
	sf_recording_loss(recording, one, unseen_cause,
			  &(struct sf_lost){ .ticks = 2, .cpu_ns = unseen_ms * (uint64_t)MS, .wall_ns = MS });
	assert_true(sf_recording_thread_end(recording, one, SMALL_START_NS + 1500 * (uint64_t)MS,
					    1010 * (uint64_t)MS, &err));
	sf_recording_hold(recording, 5000);
	small_names(recording);
	small_finish(recording);
	return 0;
}

static int make_unseen(void **state)
{
	int result;

	unseen_ms = 1000;
	result = make_recording(state);
	unseen_ms = 0;
	return result;
}

static int make_guessed(void **state)
{
	int result;

	small_guess = 2;
	result = make_recording(state);
	small_guess = 0;
	return result;
}

static int make_rest(void **state)
{
	int result;

	unseen_cause = SF_LOSS_REST;
	result = make_unseen(state);
	unseen_cause = SF_LOSS_LATE;
	return result;
}

static int make_full(void **state)
{
	int result;

	unseen_cause = SF_LOSS_RING_FULL;
	result = make_unseen(state);
	unseen_cause = SF_LOSS_LATE;
	return result;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("not there: %s\nin:\n%s", part, text);
}

static void assert_has_not(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("there: %s\nin:\n%s", part, text);
}

static void everything_is_there(void **state)
{
	char *text = REPORT(SF_EXIT_OK, sample_path);
	(void)state;

	assert_has(text, "work --hard\n");
	assert_has(text, "2023-11-14 22:13:20 UTC, 2.000 s on example\n");
	assert_has(text, "ptrace at 199 Hz, blocked threads at 20 Hz\n");
	assert_has(text, "7 = 5 in 5 samples + 2 lost\n");
	assert_has(text, "1.000 s seen, 1.010 s counted by the kernel (99.0 %)\n");
	assert_has(text, "Times are CPU time: 1.000 s. 3.000 s off the CPU: --clock offcpu, "
		   "--clock wall\n");
	assert_has(text, "    60.0     60.0   600.0 ms  fn4  libwork.so\n");
	assert_has(text, "    30.0     30.0   300.0 ms  fn5  libwork.so\n");
	assert_has(text, "   100.0    1.000 s    1.000 s    1.010 s  one  tid 101\n");
	assert_has(text, "    25.0    1.000 s          4  running  on a CPU\n");
	assert_has(text, "    75.0    3.000 s          1  [futex]\n");
	assert_has(text, "       %      ticks   cpu time  cause\n    28.6          2       0 ns  late        the thread did not stop in time\n");
	assert_has(text, "     0.5      0.5     5.0 ms  fn7~  libwork.so\n");
	assert_has(text, "\n~     the innermost function is uncertain in 100.0 % of Java's time (5.0 ms):\n");
	assert_has(text, "-XX:+DebugNonSafepoints");
	free(text);
}

static void labels_and_notes_are_there(void **state)
{
	char *text = REPORT(SF_EXIT_OK, sample_path);
	(void)state;

	assert_has(text, "LABELS\n");
	assert_has(text, "    30.0   300.0 ms          1  trace=4bf9\n");
	assert_has(text, "    70.0   700.0 ms          4  (no label)\n");
	assert_has(text, "\nnote: pid 100: there is a blind spot\n");
	free(text);
	text = REPORT(SF_EXIT_OK, "--by", "label", "--clock", "offcpu", sample_path);
	assert_has(text, "(no label)\n  and 1 without time by this clock: --clock wall\n");
	assert_has_not(text, "trace=4bf9");
	free(text);
	text = REPORT(SF_EXIT_OK, "--label", "trace=4bf9", sample_path);
	assert_has(text, "1 = 1 in 1 sample + 0 lost\n");
	assert_has(text, "300.0 ms seen, not counted by the kernel\n");
	assert_has(text, "fn5");
	assert_has_not(text, "fn4");
	free(text);
	text = REPORT(SF_EXIT_OK, "--by", "label", "--json", sample_path);
	assert_has(text, "\"labels\":[\n{\"key\":\"\",\"value\":\"\",\"ns\":700000000,");
	assert_has(text, "{\"key\":\"trace\",\"value\":\"4bf9\",\"ns\":300000000,");
	assert_has(text, "\"notes\":[\n{\"pid\":100,\"text\":\"there is a blind spot\"}]");
	assert_has_not(text, "\"threads\"");
	free(text);
	text = REPORT(SF_EXIT_FAILED, "--label", "trace=x", sample_path);
	assert_has(last_error, "no sample carries the label \"trace=x\"");
	free(text);
}

/* One that slept, by a label, and ran. */
static void make_sleeper(const char *path, bool is_cut)
{
	struct sf_recording *recording = small_start(path);
	uint32_t one, label;
	struct sf_error err;

	one = small_thread(recording, 101, "one");
	assert_true(sf_recording_label(recording, "wait", "woken", &label, &err));
	small_labelled(recording, 1, one, SMALL_STACK(recording, SF_END_ROOT, "[futex]", 1), SF_STATE_BLOCKED, 0, 600, label);
	small_sample(recording, 2, one, SMALL_STACK(recording, SF_END_ROOT, NULL, 1), SF_STATE_RUNNING, 600, 600);
	if (is_cut)
		sf_recording_cut_short(recording);
	small_finish(recording);
}

/* That the kernel's count is not there is not said to be a count of 0. */
static void what_is_not_counted_is_no_zero(void **state)
{
	char path[160], *text;
	(void)state;

	snprintf(path, sizeof(path), "%s", small_path("sleeper.sfr"));
	make_sleeper(path, true);
	text = REPORT(SF_EXIT_OK, path);
	assert_has(text, "600.0 ms seen, not counted by the kernel\n");
	assert_has(text, "   600.0 ms   600.0 ms          -  one  tid 101\n");
	free(text);

	text = REPORT(SF_EXIT_OK, "--label", "trace=4bf9", "--by", "thread", sample_path);
	assert_has(text, "   100.0   300.0 ms   300.0 ms          -  one  tid 101\n");
	free(text);
	make_sleeper(path, false);
	text = REPORT(SF_EXIT_OK, "--label", "wait", path);
	assert_has(text, "0 ns seen, not counted by the kernel\n");
	free(text);
}

/* A recording of two processes with a thread each: "work", and one of this name. */
static const char *two_processes(const char *file, const char *name)
{
	static char path[160];
	struct sf_recording *recording;
	uint32_t one, other;
	struct sf_error err;

	snprintf(path, sizeof(path), "%s", small_path(file));
	recording = small_start(path);
	one = small_thread(recording, 101, "one");
	assert_true(sf_recording_process(recording, 200, 1, name, name, SMALL_START_NS, &err));
	assert_true(sf_recording_thread(recording, 200, 201, "other", SMALL_START_NS, &other, &err));
	small_sample(recording, 1, one, SMALL_STACK(recording, SF_END_ROOT, NULL, 1), SF_STATE_RUNNING, 600, 600);
	small_sample(recording, 2, other, SMALL_STACK(recording, SF_END_ROOT, NULL, 1), SF_STATE_RUNNING, 300, 300);
	small_names(recording);
	small_finish(recording);
	return path;
}

/* Where there are several processes; in a narrow terminal the id stays. */
static void threads_say_whose_they_are(void **state)
{
	const char *path = two_processes("two.sfr", "rest");
	char *text = REPORT(SF_EXIT_OK, "--by", "thread", path);
	(void)state;

	assert_has(text, "  one  tid 101 of work (pid 100)\n");
	assert_has(text, "  other  tid 201 of rest (pid 200)\n");
	free(text);
	setenv("COLUMNS", "60", 1);
	text = REPORT(SF_EXIT_OK, "--by", "thread", path);
	unsetenv("COLUMNS");
	assert_has(text, "  other  tid 201\n");
	free(text);
	text = REPORT(SF_EXIT_OK, "--by", "thread", sample_path);
	assert_has(text, "  one  tid 101\n");
	free(text);
}

/* The workers of a server have one name: they are a row of processes, and several processes all the same. */
static void processes_of_one_name_are_several(void **state)
{
	char *text = REPORT(SF_EXIT_OK, two_processes("workers.sfr", "work"));
	(void)state;

	assert_has(text, "  work  2 processes\n");
	assert_has(text, "  one  tid 101 of work (pid 100)\n");
	assert_has(text, "  other  tid 201 of work (pid 200)\n");
	free(text);
}

static void the_tree_branches_and_folds(void **state)
{
	static const char tree[] =
		"    100.0           fn1\n"
		"     90.0           ├─ fn2\n"
		"     60.0     60.0  │  ├─ fn4 ×4\n"
		"     30.0     30.0  │  └─ fn5\n"
		"      9.5      9.5  └─ fn6\n";
	char *text = REPORT(SF_EXIT_OK, "--by", "tree", sample_path), *all;
	(void)state;

	assert_has(text, tree);
	assert_has_not(text, "fn7");
	assert_has_not(text, "FUNCTIONS");
	free(text);

	all = REPORT(SF_EXIT_OK, "--by", "tree", "--min-percent", "0", sample_path);
	assert_has(all, "      0.5      0.5  └─ fn7~\n");
	assert_has(all, "      9.5      9.5  ├─ fn6\n");
	free(all);

	text = REPORT(SF_EXIT_OK, "--by", "tree", "--depth", "2", sample_path);
	assert_has(text, "     90.0           ├─ fn2\n                    │  … deeper: --depth\n");
	assert_has_not(text, "fn5");
	free(text);
}

static void a_guessed_caller_is_marked(void **state)
{
	char *text = REPORT(SF_EXIT_OK, sample_path);
	struct json_object *all, *list, *row, *name;
	unsigned n_guessed = 0;
	(void)state;

	assert_has(text, "     90.0           ├─ fn2?\n     60.0     60.0  │  ├─ fn4 ×4\n");
	assert_has(text, "\n?     in 90.0 % of the time (900.0 ms) a caller is a guess,");
	assert_has_not(text, "fn1?");
	free(text);

	text = REPORT(SF_EXIT_OK, "--json", sample_path);
	all = json_tokener_parse(text);
	assert_true(json_object_object_get_ex(all, "guessed_ns", &row));
	assert_int_equal(json_object_get_int64(row), 900 * (int64_t)MS);
	assert_true(json_object_object_get_ex(all, "tree", &list));
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		if (!json_object_object_get_ex(json_object_array_get_idx(list, i), "guessed_ns", &row))
			continue;
		n_guessed++;
		assert_int_equal(json_object_get_int64(row), 900 * (int64_t)MS);
		assert_true(json_object_object_get_ex(json_object_array_get_idx(list, i), "name", &name));
		assert_string_equal(json_object_get_string(name), "fn2");
	}
	assert_int_equal(n_guessed, 1);
	json_object_put(all);
	free(text);
}

static void clocks_and_threads_are_chosen(void **state)
{
	char *text = REPORT(SF_EXIT_OK, "--clock", "wall", sample_path);
	(void)state;

	assert_has(text, "Times are elapsed time: 4.000 s. 1.000 s of it on a CPU: --clock cpu\n");
	assert_has(text, "    75.0     75.0    3.000 s  [futex]\n");
	assert_has(text, "     0.0     75.0       0 ns  [unknown in libwork.so]\n");
	free(text);
	text = REPORT(SF_EXIT_OK, "--threads", "two", sample_path);
	assert_has(text, "Times are elapsed time: 3.000 s.");
	assert_has_not(text, "fn4");
	free(text);
	text = REPORT(SF_EXIT_OK, "--top", "1", "--by", "function", sample_path);
	assert_has(text, "and 5 more: --top 6");
	free(text);
}

/* Shares are of all CPU time, and what no sample stands for is a row. Below a few percent there is no warning. */
static void what_was_not_seen_is_a_row(void **state)
{
	char *text = REPORT(SF_EXIT_OK, sample_path);
	(void)state;

	assert_has(text, "  warning   50.0 % of the CPU time is in no sample");
	assert_has_not(text, "longer recording");
	assert_has(text, "Times are CPU time: 2.000 s.");
	assert_has(text, "    50.0     50.0    1.000 s  [not seen]\n");
	assert_has(text, "    30.0     30.0   600.0 ms  fn4  libwork.so\n");
	assert_has(text, " fn6\n\n     50.0     50.0  [not seen]\n"); /* behind an empty line: it is no callee */
	assert_has(text, "   100.0    2.000 s    1.000 s    1.010 s  one  tid 101\n");
	assert_has(text, "7 = 5 in 5 samples + 2 lost\n");
	assert_has(text, "    28.6          2    1.000 s  late");
	assert_has(text, "1.000 s seen");
	free(text);
	text = REPORT(SF_EXIT_OK, "--json", sample_path);
	assert_has(text, "\"total_ns\":2000000000,\"unseen_ns\":1000000000");
	assert_has(text, "\"name\":\"[not seen]\",\"module\":\"\",\"file\":\"\",\"kind\":\"cut\",\"self_ns\":1000000000,"
			 "\"total_ns\":1000000000,\"samples\":0");
	free(text);
	text = REPORT(SF_EXIT_OK, "--clock", "offcpu", sample_path);
	assert_has_not(text, "[not seen]\n");
	free(text);
	text = REPORT(SF_EXIT_OK, "--label", "trace=4bf9", "--threads", "^on", sample_path);
	assert_has(text, "\n  threads   matching ^on\n  label     trace=4bf9\n");
	assert_has_not(text, "[not seen]");
	free(text);
}

static int columns_of_line(const char *line)
{
	int columns = 0;

	for (; *line && *line != '\n'; line++)
		columns += (*line & 0xc0) != 0x80;
	return columns;
}

static void lines_fit_and_carry_no_control(void **state)
{
	char *text = REPORT(SF_EXIT_OK, "--clock", "wall", sample_path);
	(void)state;

	assert_has_not(text, "\033");
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (columns_of_line(line) > 80)
			fail_msg("wider than 80: %.*s", (int)strcspn(line, "\n"), line);
	}
	free(text);
}

static int64_t number_at(struct json_object *object, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value))
		fail_msg("no key %s", key);
	return json_object_get_int64(value);
}

static void json_says_the_same(void **state)
{
	char *text = REPORT(SF_EXIT_OK, "--json", sample_path);
	struct json_object *all = json_tokener_parse(text), *list, *row, *name;
	int64_t self = 0;
	(void)state;

	assert_non_null(all);
	assert_int_equal(number_at(all, "format"), 1);
	assert_int_equal(number_at(all, "total_ns"), 1000 * (int64_t)MS);
	assert_int_equal(number_at(all, "ticks"),
			 number_at(all, "sample_ticks") + number_at(all, "lost_ticks"));
	assert_int_equal(number_at(all, "approximate_ns"), 5 * (int64_t)MS);
	assert_int_equal(number_at(all, "managed_ns"), 5 * (int64_t)MS);
	assert_true(json_object_object_get_ex(all, "functions", &list));
	for (size_t i = 0; i < json_object_array_length(list); i++)
		self += number_at(json_object_array_get_idx(list, i), "self_ns");
	assert_int_equal(self, number_at(all, "total_ns"));
	row = json_object_array_get_idx(list, 0);
	assert_true(json_object_object_get_ex(row, "name", &name));
	assert_string_equal(json_object_get_string(name), "fn4");

	assert_true(json_object_object_get_ex(all, "tree", &list));
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		row = json_object_array_get_idx(list, i);
		assert_int_equal(number_at(row, "id"), i + 1);
		assert_true(number_at(row, "parent") <= (int64_t)i);
	}
	assert_int_equal(number_at(json_object_array_get_idx(list, 0), "total_ns"),
			 number_at(all, "total_ns"));
	static const char *const keys[] = { "recording", "threads", "states", "waits", "ends",
					    "losses" };
	for (size_t i = 0; i < 6; i++)
		assert_true(json_object_object_get_ex(all, keys[i], &list));
	json_object_put(all);
	free(text);
}

/* What threads used before their first samples or after their last ones is seen by a longer recording, too; no other loss is. */
static void the_advice_is_for_the_cause(void **state)
{
	char *text = REPORT(SF_EXIT_OK, sample_path);
	(void)state;

	assert_has(text, "ones (rest): a higher --rate sees more, and a longer recording.\n");
	free(text);
}

/* More samples would find no room, either. */
static void the_advice_is_a_lower_rate(void **state)
{
	char *text = REPORT(SF_EXIT_OK, sample_path);
	(void)state;

	assert_has(text, "stacks: a lower --rate takes less.\n");
	assert_has_not(text, "higher --rate");
	free(text);
}

static void mistakes_are_explained(void **state)
{
	(void)state;
	free(REPORT(SF_EXIT_USAGE, sample_path, sample_path));
	assert_has(last_error, "one recording");
	free(REPORT(SF_EXIT_USAGE, "--by", "colour", sample_path));
	free(REPORT(SF_EXIT_FAILED, "/tmp/there/is/none.sfr"));
	assert_has(last_error, "No such file");
	free(REPORT(SF_EXIT_FAILED, "--threads", "nobody", sample_path));
	assert_has(last_error, "no thread's name");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_recording, small_folder_remove)
	const struct CMUnitTest tests[] = {
		TEST(everything_is_there),
		TEST(labels_and_notes_are_there),
		TEST(what_is_not_counted_is_no_zero),
		TEST(threads_say_whose_they_are),
		TEST(processes_of_one_name_are_several),
		TEST(the_tree_branches_and_folds),
		TEST(clocks_and_threads_are_chosen),
		TEST(lines_fit_and_carry_no_control),
		TEST(json_says_the_same),
		TEST(mistakes_are_explained),
		cmocka_unit_test_setup_teardown(a_guessed_caller_is_marked, make_guessed, small_folder_remove),
		cmocka_unit_test_setup_teardown(what_was_not_seen_is_a_row, make_unseen, small_folder_remove),
		cmocka_unit_test_setup_teardown(the_advice_is_for_the_cause, make_rest, small_folder_remove),
		cmocka_unit_test_setup_teardown(the_advice_is_a_lower_rate, make_full, small_folder_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

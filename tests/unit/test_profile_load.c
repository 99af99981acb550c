/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading recordings: whatever is wrong in a file is an error that names it, never a crash; and
 * the queries of docs/recording.md work on what the writer writes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "form.h"
#include "small_recording.h"

static int make_recording(void **state)
{
	struct sf_recording *recording;
	uint32_t one, two, label;
	struct sf_error err;

	small_folder_make(state);
	recording = small_start(small_path("good.sfr"));
	assert_true(sf_recording_label(recording, "trace", "4bf9", &label, &err));
	assert_true(sf_recording_note(recording, 100, "a blind\nspot", &err));
	one = small_thread(recording, 101, "one");
	two = small_thread(recording, 102, "two");
	for (unsigned i = 0; i < 200; i++) {
		small_labelled(recording, i * 20, one,
			       SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 2, 3),
			       SF_STATE_RUNNING, 5, 5, i % 4 ? 0 : label);
		small_sample(recording, i * 20, two,
			     SMALL_STACK(recording, SF_END_DEPTH, "[futex]", 1, 4, 9),
			     SF_STATE_BLOCKED, 0, 20);
	}
	sf_recording_loss(recording, one, SF_LOSS_LATE, &(struct sf_lost){ .ticks = 2, .cpu_ns = MS, .wall_ns = MS });
	assert_true(sf_recording_thread_end(recording, one, SMALL_START_NS + MS, 1000 * (uint64_t)MS,
					    &err));
	sf_recording_hold(recording, 5000);
	small_names(recording);
	small_finish(recording);
	return 0;
}

struct bytes {
	unsigned char *data;
	size_t size;
};

static struct bytes read_all(const char *path)
{
	struct bytes bytes = { 0 };
	struct stat status;
	int fd = open(path, O_RDONLY);

	assert_int_equal(fstat(fd, &status), 0);
	bytes.size = (size_t)status.st_size;
	bytes.data = malloc(bytes.size);
	assert_int_equal(read(fd, bytes.data, bytes.size), bytes.size);
	close(fd);
	return bytes;
}

static void write_all(const char *path, const void *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, data, size), size);
	close(fd);
}

/* Runs some SQL on a file. */
static void change(const char *path, const char *sql)
{
	char *message = NULL;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s: %s", sql, message);
	sqlite3_close(db);
}

/* A copy of the good recording after some SQL. */
static void damage(const char *path, const char *sql)
{
	char *copy = strdup(path); /* small_path has one buffer */
	struct bytes good = read_all(small_path("good.sfr"));

	write_all(copy, good.data, good.size);
	free(good.data);
	change(copy, sql);
	free(copy);
}

static const struct {
	const char *sql, *error;
} damages[] = {
	{ "PRAGMA application_id = 1", "is not a recording" },
	{ "PRAGMA user_version = 0", "of version 0; this stillframe reads version 1" },
	{ "PRAGMA user_version = 2", "of version 2; this stillframe reads version 1" },
	{ "UPDATE frame_functions SET approximate = 2", "approximate is 2, not in 0 to 1" },
	{ "DROP TABLE holds", "its table holds is not" },
	{ "DROP VIEW stack_times; DROP TABLE samples; CREATE VIEW samples AS SELECT 1 AS id",
	  "its table samples is not" },
	{ "ALTER TABLE samples ADD COLUMN more AS (zeroblob(1000000000))", "its table samples is not" },
	{ "DELETE FROM session", "has no session" },
	{ "INSERT INTO session SELECT 2, command, engine, host, version, architecture, 0, 0, 0, 0, 0, 0 "
	  "FROM session", "session, row 2: id is 2" },
	{ "UPDATE session SET duration_ns = -1", "duration_ns is -1" },
	{ "UPDATE session SET complete = 2", "complete is 2, not in 0 to 1" },
	{ "UPDATE session SET command = x'41'", "command has the wrong type" },
	{ "UPDATE session SET command = CAST(x'ff41' AS TEXT)", "command is not text" },
	{ "UPDATE session SET command = CAST(x'410042' AS TEXT)", "command is not text" },
	{ "UPDATE session SET command = char(27) || '[2J'", "command is not text" },
	{ "DELETE FROM processes", "process is 1, not in 1 to 0" },
	{ "UPDATE threads SET process = 7", "process is 7" },
	{ "UPDATE threads SET tid = 5000000000", "tid is 5000000000" },
	{ "DELETE FROM threads WHERE id = 1", "threads, row 1: id is 2" },
	{ "UPDATE modules SET id = -3", "modules, row 1: id is -3" },
	{ "UPDATE modules SET id = 3", "there is no module 1" },
	{ "UPDATE functions SET module = 4294967295", "there is no module 4294967295" },
	{ "UPDATE frames SET kind = 60", "kind is 60" },
	{ "UPDATE frames SET via = 200", "via is 200" },
	{ "UPDATE frames SET address = 1.5", "address has the wrong type" },
	{ "DELETE FROM frames WHERE id = 2", "frames, row 2: id is 3" },
	{ "UPDATE frame_functions SET function = 0", "function is 0" },
	{ "UPDATE frame_functions SET frame = 99 WHERE frame = 1", "frame is 99" },
	{ "UPDATE frame_functions SET seq = 1 WHERE seq = 0 AND frame = 1", "seq is 1, not in 0 to 0" },
	{ "INSERT INTO frame_functions SELECT 1, 300, function, 0, 0, 0 FROM frame_functions LIMIT 1",
	  "seq is 300" },
	{ "UPDATE stacks SET parent = id", "parent is 1, not in 0 to 0" },
	{ "UPDATE stacks SET parent = 6 WHERE id = 4", "parent is 6, not in 0 to 3" },
	{ "UPDATE stacks SET frame = 0", "frame is 0" },
	{ "UPDATE stacks SET id = 4000000000 WHERE id = 7", "stacks, row 7: id is 8, not in 7 to 7" },
	{ "UPDATE samples SET thread = 0", "thread is 0" },
	{ "UPDATE samples SET thread = 99 WHERE id = 17", "samples, row 17: thread is 99, not in 1 to 2" },
	{ "UPDATE samples SET stack = 99", "stack is 99" },
	{ "UPDATE samples SET stack = -1", "stack is -1" },
	{ "UPDATE samples SET cpu_ns = -1", "cpu_ns is -1" },
	{ "UPDATE samples SET cpu_ns = 'x'", "cpu_ns has the wrong type" },
	{ "UPDATE samples SET wall_ns = 9000000000000000000", "more than 292 years" },
	{ "UPDATE samples SET ticks = 4294967296", "ticks is 4294967296" },
	{ "UPDATE samples SET state = 4", "state is 4" },
	{ "UPDATE samples SET amount = -1", "amount is -1" },
	{ "UPDATE samples SET amount = 1", "it has an amount, and the recording has no measure" },
	{ "INSERT INTO measures VALUES(1, 'f', 'events', NULL); UPDATE samples SET amount = 9000000000000000000", "amounts up to here" },
	{ "INSERT INTO measures VALUES(2, 'f', 'events', 5)", "measures, row 1: id is 2" },
	{ "UPDATE losses SET amount = 1", "it has an amount" },
	{ "UPDATE samples SET \"end\" = 60", "end is 60" },
	{ "UPDATE samples SET unheld = 2", "unheld is 2" },
	{ "UPDATE samples SET syscall = 70000", "syscall is 70000" },
	{ "UPDATE losses SET cause = 60", "cause is 60" },
	{ "UPDATE samples SET label = 2", "label is 2, not in 0 to 1" },
	{ "UPDATE samples SET label = 0", "label is 0, not in 1" },
	{ "INSERT INTO labels VALUES(3, 'a', 'b')", "labels, row 2: id is 3" },
	{ "UPDATE labels SET value = x'41'", "value has the wrong type" },
	{ "UPDATE notes SET pid = 5000000000", "pid is 5000000000" },
	{ "DROP TABLE labels", "its table labels is not" },
	{ "UPDATE losses SET thread = 3", "thread is 3" },
	{ "UPDATE losses SET wall_ns = 9223372036854775807", "more than 292 years" },
	{ "UPDATE holds SET up_to_ns = -1", "up_to_ns is -1" },
	{ "UPDATE holds SET count = 9223372036854775807", "count is 9223372036854775807" },
};

static void what_is_wrong_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct sf_profile *profile = NULL;
		struct sf_error err = { 0 };

		damage(small_path("bad.sfr"), damages[i].sql);
		if (sf_profile_load(small_path("bad.sfr"), NULL, &profile, &err))
			fail_msg("loaded after: %s", damages[i].sql);
		assert_int_equal(err.code, SF_E_INPUT);
		if (!strstr(err.text, damages[i].error))
			fail_msg("%s\n  says: %s\n  not: %s", damages[i].sql, err.text,
				 damages[i].error);
	}
}

/* Additions that do not touch our tables are the user's business. */
static void what_was_added_is_ignored(void **state)
{
	struct sf_profile *profile;
	(void)state;

	damage(small_path("more.sfr"),
	       "CREATE TABLE remarks(text); CREATE INDEX by_thread ON samples(thread);"
	       "CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) "
	       "SELECT * FROM n; ANALYZE");
	profile = small_load(small_path("more.sfr"));
	assert_int_equal(profile->n_samples, 400 + 1); /* the loss */
	sf_profile_destroy(profile);
}

/* A file that is no recording is refused with its name and the reason. */
static void refused(const char *path, enum sf_code code, const char *name, const char *reason)
{
	struct sf_profile *profile = NULL;
	struct sf_error err = { 0 };

	assert_false(sf_profile_load(path, NULL, &profile, &err));
	assert_null(profile);
	assert_int_equal(err.code, code);
	if (!strstr(err.text, name) || !strstr(err.text, reason))
		fail_msg("'%s': %s", path, err.text);
}

static void no_recordings_are_refused(void **state)
{
	char path[128];
	(void)state;

	strcpy(path, small_path("none.sfr"));
	refused(path, SF_E_SYSTEM, path, "No such file");
	refused("/tmp", SF_E_INPUT, "/tmp", "not a regular file");
	refused("", SF_E_SYSTEM, "cannot read", "No such file");
	refused(":memory:", SF_E_SYSTEM, ":memory:", "No such file"); /* SQLite would make one */
	strcpy(path, small_path("empty.sfr"));
	write_all(path, "", 0);
	refused(path, SF_E_INPUT, path, "is not a recording");
	strcpy(path, small_path("text.sfr"));
	write_all(path, "hello, hello", 12);
	refused(path, SF_E_INPUT, path, "is not a recording of stillframe\n  Only files");
}

static void try_bytes(const struct bytes *bytes, size_t size)
{
	struct sf_profile *profile = NULL;
	struct sf_error err = { 0 };

	write_all(small_path("try.sfr"), bytes->data, size);
	if (sf_profile_load(small_path("try.sfr"), NULL, &profile, &err))
		sf_profile_destroy(profile);
	else
		assert_true(err.text[0] != 0);
}

static void cut_files_are_no_crash(void **state)
{
	struct bytes good = read_all(small_path("good.sfr"));
	(void)state;

	for (size_t size = 0; size < good.size; size += 997)
		try_bytes(&good, size);
	free(good.data);
}

static void flipped_bytes_are_no_crash(void **state)
{
	struct bytes good = read_all(small_path("good.sfr"));
	const unsigned n = is_long_form() ? 1500 : 400;
	(void)state;

	srandom(7);
	for (unsigned round = 0; round < n; round++) {
		struct bytes bad = { malloc(good.size), good.size };

		memcpy(bad.data, good.data, good.size);
		for (unsigned flips = 1 + round % 8; flips; flips--)
			bad.data[(size_t)random() % bad.size] = (unsigned char)random();
		try_bytes(&bad, bad.size);
		free(bad.data);
	}
	free(good.data);
}

static void a_place_to_read_only_is_enough(void **state)
{
	struct sf_profile *profile;
	char folder[128];
	(void)state;

	/* Root may write anywhere; for others this shows that nothing is made beside the file. */
	strcpy(folder, small_path(""));
	assert_int_equal(chmod(small_path("good.sfr"), 0400), 0);
	assert_int_equal(chmod(folder, 0500), 0);
	profile = small_load(small_path("good.sfr"));
	assert_int_equal(chmod(folder, 0700), 0);
	assert_int_equal(profile->n_samples, 400 + 1); /* the loss */
	sf_profile_destroy(profile);
}

static void only_matching_threads_are_kept(void **state)
{
	struct sf_profile *profile = small_load(small_path("good.sfr"));
	struct sf_filter filter = { .threads = "^t" };
	struct sf_error err;
	(void)state;

	assert_int_equal(profile->n_losses, 1);
	assert_true(sf_profile_filter(profile, &filter, &err));
	assert_int_equal(profile->n_threads, 1);
	assert_string_equal(profile->strings[profile->threads[0].name], "two");
	assert_int_equal(profile->n_samples, 200);
	assert_int_equal(profile->samples[199].thread, 0);
	assert_int_equal(profile->n_losses, 0);
	filter.threads = "(";
	assert_false(sf_profile_filter(profile, &filter, &err));
	assert_non_null(strstr(err.text, "not a regular expression"));
	filter.threads = "^nobody$";
	assert_false(sf_profile_filter(profile, &filter, &err));
	assert_non_null(strstr(err.text, "no thread's name matches \"^nobody$\""));
	sf_profile_destroy(profile);
}

/* Time of no known thread belongs to no process, and no thread's name matches for it. */
static void time_of_no_thread_is_nobodys(void **state)
{
	const struct sf_lost lost = { .ticks = 1, .cpu_ns = MS };
	struct sf_recording *recording = small_start(small_path("none.sfr"));
	const uint32_t one = small_thread(recording, 101, "one");
	struct sf_filter filter = { .threads = "." };
	struct sf_profile *profile;
	struct sf_error err;
	(void)state;

	small_sample(recording, 0, one, SMALL_STACK(recording, SF_END_ROOT, NULL, 1), SF_STATE_RUNNING, 5, 5);
	sf_recording_loss(recording, 0, SF_LOSS_UNSEEN, &lost);
	small_names(recording);
	small_finish(recording);
	profile = small_load(small_path("none.sfr"));
	assert_int_equal(profile->n_threads, 2);
	assert_int_equal(profile->threads[1].process, 0);
	assert_int_equal(profile->threads[1].pid, 0);
	assert_string_equal(profile->strings[profile->threads[1].process_name], "");
	assert_true(sf_profile_filter(profile, &filter, &err));
	assert_int_equal(profile->n_threads, 1);
	assert_int_equal(profile->n_samples, 1);
	assert_int_equal(profile->n_losses, 0);
	sf_profile_destroy(profile);
}

/* A sample with two labels is kept by either, and is in the sums of both. */
static void a_second_label_counts_too(void **state)
{
	const char *const wanted[] = { "type=Odd", "size=56", "size" };
	struct sf_recording *recording = small_start(small_path("two.sfr"));
	struct sf_recording_sample sample = { .time_ns = SMALL_START_NS, .wall_ns = 7, .ticks = 1, .thread = small_thread(recording, 101, "one") };
	struct sf_error err = { 0 };
	(void)state;

	assert_true(sf_recording_label(recording, "type", "Odd", &sample.label, &err));
	assert_true(sf_recording_sample(recording, &sample, &err));
	assert_true(sf_recording_label(recording, "size", "56", &sample.second_label, &err));
	assert_true(sf_recording_sample(recording, &sample, &err));
	small_finish(recording);
	assert_int_equal(small_query(small_path("two.sfr"), "SELECT samples FROM label_times WHERE key = 'type' AND value = 'Odd'"), 2);
	assert_int_equal(small_query(small_path("two.sfr"), "SELECT wall_ns FROM label_times WHERE key = 'size' AND value = '56'"), 7);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		struct sf_profile *profile = small_load(small_path("two.sfr"));
		const struct sf_filter filter = { .label = wanted[i] };

		assert_true(sf_profile_filter(profile, &filter, &err));
		assert_int_equal(profile->n_samples, i == 0 ? 2 : 1);
		sf_profile_destroy(profile);
	}
}

static void only_one_label_is_kept(void **state)
{
	const struct {
		const char *label;
		size_t samples;
	} cases[] = { { "trace", 50 }, { "trace=4bf9", 50 }, { "trace=4bf", 0 }, { "trac", 0 },
		      { "trace=", 0 }, { "", 0 } };
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sf_profile *profile = small_load(small_path("good.sfr"));
		const struct sf_filter filter = { .label = cases[i].label };
		struct sf_error err = { 0 };

		assert_int_equal(profile->n_labels, 1);
		assert_int_equal(sf_profile_filter(profile, &filter, &err), cases[i].samples != 0);
		if (cases[i].samples) {
			assert_int_equal(profile->n_samples, cases[i].samples);
			assert_int_equal(profile->n_losses, 0);
			assert_int_equal(profile->threads[0].cpu_counted_ns, 0);
		} else {
			assert_non_null(strstr(err.text, "no sample carries the label"));
		}
		sf_profile_destroy(profile);
	}
}

static void notes_are_text(void **state)
{
	struct sf_profile *profile = small_load(small_path("good.sfr"));
	(void)state;

	assert_int_equal(profile->n_notes, 1);
	assert_int_equal(profile->notes[0].pid, 100);
	assert_string_equal(sf_profile_string(profile, profile->notes[0].text), "a blind?spot");
	sf_profile_destroy(profile);
}

/* The next ```sql block of the page behind *position, NULL when there is none. */
static char *next_query(const char *page, size_t *position)
{
	const char *start = strstr(page + *position, "```sql\n"), *end;

	if (!start)
		return NULL;
	start += 7;
	end = strstr(start, "```");
	assert_non_null(end);
	*position = (size_t)(end - page) + 3;
	return strndup(start, (size_t)(end - start));
}

static void run_query(const char *query, char *ret, size_t room)
{
	char command[256];
	FILE *file, *shell;
	size_t n;

	file = fopen(small_path("query.sql"), "w");
	fputs(query, file);
	fclose(file);
	snprintf(command, sizeof(command), "cd %s && sqlite3 -readonly -bail -list good.sfr < query.sql 2>&1",
		 small_path(""));
	shell = popen(command, "r");
	assert_non_null(shell);
	n = fread(ret, 1, room - 1, shell);
	ret[n] = 0;
	if (pclose(shell) != 0)
		fail_msg("%s\n  says: %s", query, ret);
}

/* The first row that each query of the page must give on this recording. */
static const char *const first_rows[] = {
	"fn1|1.0|100.0\n",
	"[futex]|[unknown in libwork.so]|4000\n",
	"101|one|1000|1000|100.0\n",
	"trace|4bf9|250|25.0\n",
	"0|fn3|250\n",
	"0|[futex]|0|0x0|leaf\n",
};

static void documented_queries_work(void **state)
{
	struct bytes bytes = read_all(SF_SOURCE_ROOT "/docs/recording.md");
	char *page = strndup((char *)bytes.data, bytes.size), *query, rows[4096];
	size_t position = 0, n = 0;
	(void)state;

	if (system("command -v sqlite3 >/dev/null") != 0) {
		print_message("skipped: no sqlite3 to run the queries with\n");
		free(page);
		free(bytes.data);
		skip();
	}
	for (; (query = next_query(page, &position)); n++) {
		assert_in_range(n, 0, sizeof(first_rows) / sizeof(first_rows[0]) - 1);
		run_query(query, rows, sizeof(rows));
		if (strncmp(rows, first_rows[n], strlen(first_rows[n])) != 0)
			fail_msg("%s\n  yields: %s\n  not: %s", query, rows, first_rows[n]);
		free(query);
	}
	assert_int_equal(n, sizeof(first_rows) / sizeof(first_rows[0]));
	free(page);
	free(bytes.data);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_recording, small_folder_remove)
	const struct CMUnitTest tests[] = {
		TEST(what_is_wrong_is_named),
		TEST(what_was_added_is_ignored),
		TEST(no_recordings_are_refused),
		TEST(cut_files_are_no_crash),
		TEST(flipped_bytes_are_no_crash),
		TEST(a_place_to_read_only_is_enough),
		TEST(only_matching_threads_are_kept),
		TEST(time_of_no_thread_is_nobodys),
		TEST(a_second_label_counts_too),
		TEST(only_one_label_is_kept),
		TEST(notes_are_text),
		TEST(documented_queries_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

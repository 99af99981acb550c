/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording is written in steps that a kill or a full disk can stop anywhere. Here every call by
 * which the writer changes its file is watched: a copy of the file after each call, and in the
 * middle of each, must read as the old state or as the new one; and when a call fails, the writer
 * must go on as if it had not tried.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "form.h"
#include "recording/store/commit.h"
#include "recording/store/database.h"
#include "recording/store/one_file.h"
#include "small_recording.h"

ssize_t __real_pwrite64(int fd, const void *data, size_t size, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t offset);
int __real_ftruncate64(int fd, off_t size);
int __wrap_ftruncate64(int fd, off_t size);

static struct {
	void (*look)(int fd);   /* after each change, and in the middle of each write */
	unsigned calls;         /* that change the file, so far */
	unsigned fail_from, fail_to; /* which of them fail, from 1; 0: none */
	int error;
	bool longer;            /* the last attempt to cut the file failed */
} watch;

/* Whether this call is to fail. */
static bool fails(void)
{
	unsigned call = ++watch.calls;

	if (!watch.fail_from || call < watch.fail_from || call > watch.fail_to)
		return false;
	errno = watch.error;
	return true;
}

static void look(int fd)
{
	void (*now)(int fd) = watch.look;

	watch.look = NULL; /* what it does itself is not watched */
	if (now)
		now(fd);
	watch.look = now;
}

ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t offset)
{
	ssize_t n;

	if (fails())
		return -1;
	if (watch.look && size > 1) {
		__real_pwrite64(fd, data, size / 2, offset);
		look(fd);
	}
	n = __real_pwrite64(fd, data, size, offset);
	look(fd);
	return n;
}

int __wrap_ftruncate64(int fd, off_t size)
{
	int code;

	watch.longer = fails();
	if (watch.longer)
		return -1;
	code = __real_ftruncate64(fd, size);
	look(fd);
	return code;
}

static int make_folder(void **state)
{
	small_folder_make(state);
	memset(&watch, 0, sizeof(watch));
	return 0;
}

static int remove_folder(void **state)
{
	memset(&watch, 0, sizeof(watch));
	return small_folder_remove(state);
}

static void copy_file(int from, const char *path)
{
	int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	char chunk[65536];
	off_t offset = 0;
	ssize_t n;

	assert_true(to >= 0);
	while ((n = pread(from, chunk, sizeof(chunk), offset)) > 0) {
		assert_int_equal(write(to, chunk, (size_t)n), n);
		offset += n;
	}
	close(to);
}

static uint64_t size_of(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	return (uint64_t)status.st_size;
}

/* One burst after another; all samples have the times 0, 1, 2... */
static void add(struct sf_recording *recording, uint32_t thread, unsigned *n, unsigned more)
{
	for (unsigned end = *n + more; *n < end; (*n)++) {
		const struct sf_recording_sample sample = {
			.time_ns = SMALL_START_NS + *n, .thread = thread, .cpu_ns = 1, .wall_ns = 1,
			.ticks = 1, .stack = SMALL_STACK(recording, SF_END_ROOT, NULL, 1,
							 1 + *n % 5, 10 + *n % 200),
		};
		struct sf_error err;

		assert_true(sf_recording_sample(recording, &sample, &err));
		sf_recording_hold(recording, 100 + *n);
	}
}

static bool save(struct sf_recording *recording, unsigned *second, struct sf_error *err)
{
	*second += 2;
	return sf_recording_tick(recording, SMALL_START_NS + *second * 1000000000ull, err);
}

/* --- killed ------------------------------------------------------------------------------------ */

static struct {
	unsigned before, after; /* samples in the old and in the new state */
	bool is_new;
	unsigned old_seen, new_seen, logged;
} killed;

/* Meanwhile no other program gets in, by its own means or ours. */
static void try_to_read(const char *path)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "SELECT * FROM session", NULL, NULL, NULL), SQLITE_BUSY);
	sqlite3_close(db);
	assert_int_equal(sf_one_file_open(open(path, O_RDONLY), false, path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "SELECT * FROM session", NULL, NULL, NULL), SQLITE_BUSY);
	sqlite3_close(db);
}

/* The file that would be left if the writer were killed now. */
static void look_at_what_is_left(int fd)
{
	struct sf_profile *profile;
	struct sf_pages pages = { 0 };
	uint64_t size;
	size_t n;

	copy_file(fd, small_path("left.sfr"));
	try_to_read(small_path("a.sfr"));
	profile = small_load(small_path("left.sfr"));
	n = profile->n_samples;
	for (size_t i = 0; i < n; i++)
		assert_int_equal(profile->samples[i].time_ns, i);
	sf_profile_destroy(profile);
	assert_true(n == killed.before || n == killed.after);
	assert_true(n == killed.after || !killed.is_new); /* what was there stays */
	killed.is_new = n == killed.after;
	killed.old_seen += !killed.is_new;
	killed.new_seen += killed.is_new;
	small_check(small_path("left.sfr"));
	assert_int_equal(small_read(small_path("left.sfr"), "SELECT count(*) FROM samples"), n);
	assert_int_equal(sf_redo_find(fd, &pages, &size), SQLITE_OK);
	killed.logged += pages.list.n != 0;
	sf_pages_drop(&pages, 0);
}

/* The next burst brings the samples from `before` to `after`, and may be stopped anywhere. */
static void watch_a_kill(unsigned before, unsigned after)
{
	memset(&killed, 0, sizeof(killed));
	killed.before = before;
	killed.after = after;
	watch.look = look_at_what_is_left;
}

static void killed_anywhere_it_is_the_old_state_or_the_new(void **state)
{
	struct sf_recording *recording = small_start(small_path("a.sfr"));
	uint32_t thread = small_thread(recording, 101, "t");
	unsigned n = 0, second = 0;
	struct sf_error err;
	(void)state;

	for (unsigned burst = 0; burst < 4; burst++) {
		add(recording, thread, &n, burst == 2 ? 3 : 700);
		watch_a_kill(killed.after, n);
		assert_true(save(recording, &second, &err));
		watch.look = NULL;
		assert_true(killed.old_seen > 5);
		assert_true(killed.new_seen > 5);
		assert_true(killed.logged > 5);
	}
	small_finish(recording);
	assert_int_equal(small_query(small_path("a.sfr"), "SELECT count(*) FROM samples"), n);
}

/* --- a call that fails ------------------------------------------------------------------------- */

/*
 * Fails the calls [first, last] of one burst; then all is as it should be, where it is watched also if the next burst were stopped
 * anywhere. False: there are fewer.
 */
static bool fail_calls(unsigned first, unsigned last, int error, bool is_watched)
{
	const unsigned n_burst = is_long_form() ? 500 : 200;
	char *path = strdup(small_path("a.sfr"));
	struct sf_recording *recording = small_start(path);
	uint32_t thread = small_thread(recording, 101, "t");
	struct sf_error err = { 0 };
	unsigned n = 0, second = 0, before, written;
	bool saved, reached;
	uint64_t size;

	add(recording, thread, &n, n_burst);
	assert_true(save(recording, &second, &err));
	before = n;
	size = size_of(path);
	add(recording, thread, &n, n_burst);
	watch.calls = 0;
	watch.fail_from = first;
	watch.fail_to = last;
	watch.error = error;
	saved = save(recording, &second, &err);
	reached = watch.calls >= first;
	watch.fail_from = 0;
	written = saved ? n : before;
	if (!saved) {
		assert_non_null(strstr(err.text, error == ENOSPC ? "full" : "error"));
		assert_true(watch.longer || size_of(path) == size);
		/* The call and the cut: what SQLite takes back is not written. */
		assert_int_equal(watch.calls, first + 1);
	}
	assert_int_equal(small_read(path, "SELECT count(*) FROM samples"), written);
	small_check(path);

	add(recording, thread, &n, 20);
	if (is_watched)
		watch_a_kill(written, n);
	assert_true(save(recording, &second, &err));
	watch.look = NULL;
	assert_int_equal(small_query(path, "SELECT count(*) FROM samples"), n);
	assert_int_equal(small_query(path, "SELECT integrity_check = 'ok' FROM "
					   "pragma_integrity_check"), 1);
	small_finish(recording);
	assert_int_equal(small_query(path, "SELECT count(DISTINCT time_ns) FROM samples"), n);
	free(path);
	return reached;
}

/* One call that fails, or three in turn. A watched burst costs a tenth of a second: the short form has it after each one of a kind. */
static void calls_that_fail_lose_nothing(void **state)
{
	unsigned calls = 1;
	(void)state;

	while (fail_calls(calls, calls + 2, ENOSPC, true))
		calls++;
	assert_true(calls > 5);
	for (unsigned call = 1; call < calls; call++) {
		fail_calls(call, call, ENOSPC, is_long_form());
		fail_calls(call, call + 2, EIO, is_long_form());
	}
}

static void a_disk_that_stays_full_loses_nothing(void **state)
{
	unsigned calls = 1;
	(void)state;

	while (fail_calls(calls, UINT32_MAX, ENOSPC, is_long_form() || calls % 3 == 0))
		calls++;
	assert_true(calls > 5);
}

/* --- records that others made ------------------------------------------------------------------ */

/* A copy of the recording when its record was just written, and nothing is in its place yet. */
static void keep_logged(int fd)
{
	struct sf_pages pages = { 0 };
	uint64_t size;

	assert_int_equal(sf_redo_find(fd, &pages, &size), SQLITE_OK);
	if (pages.list.n && access(small_path("logged.sfr"), F_OK) != 0)
		copy_file(fd, small_path("logged.sfr"));
	sf_pages_drop(&pages, 0);
}

/* Changes bytes of the trailer, and corrects its checksum. */
static void change_record(const char *path, int offset, const void *bytes, size_t size)
{
	int fd = open(path, O_RDWR);
	uint64_t end = size_of(path), trailer = end - SF_REDO_TRAILER, start, sum;
	uint8_t number[8];

	assert_int_equal(__real_pwrite64(fd, bytes, size, (off_t)trailer + offset), size);
	assert_int_equal(pread(fd, number, 4, (off_t)trailer + 24), 4);
	start = trailer - (uint64_t)(number[2] << 8 | number[3]) * (SF_PAGE_SIZE + 4);
	assert_true(sf_redo_checksum(fd, start, end - 8, &sum));
	for (unsigned i = 8; i-- > 0; sum >>= 8)
		number[i] = (uint8_t)sum;
	assert_int_equal(__real_pwrite64(fd, number, 8, (off_t)end - 8), 8);
	close(fd);
}

static bool has_record(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct sf_pages pages = { 0 };
	uint64_t size;
	bool found;

	assert_int_equal(sf_redo_find(fd, &pages, &size), SQLITE_OK);
	found = pages.list.n != 0;
	sf_pages_drop(&pages, 0);
	close(fd);
	return found;
}

static void make_logged(void)
{
	struct sf_recording *recording = small_start(small_path("a.sfr"));
	uint32_t thread = small_thread(recording, 101, "t");
	unsigned n = 0, second = 0;
	struct sf_error err;

	add(recording, thread, &n, 100);
	assert_true(save(recording, &second, &err));
	add(recording, thread, &n, 100);
	watch.look = keep_logged;
	assert_true(save(recording, &second, &err));
	watch.look = NULL;
	small_finish(recording);
}

static void a_record_that_cannot_be_is_none(void **state)
{
	static const struct {
		int offset;
		uint8_t bytes[8];
		size_t size;
	} changes[] = {
		{ 0, "S", 1 },                                /* another magic */
		{ 16, { 0, 0, 0, 0, 0, 0, 0, 1 }, 8 },        /* no whole page */
		{ 16, { 0, 0, 0, 0, 0, 0, 0, 0 }, 8 },        /* pages outside of it */
		{ 16, { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xf0, 0 }, 8 }, /* more than the file */
		{ 24, { 0, 0, 0, 0 }, 4 },                    /* no pages */
		{ 24, { 0xff, 0xff, 0xff, 0xff }, 4 },        /* too many */
		{ 28, { 0, 0, 2, 0 }, 4 },                    /* other pages */
		{ -4, { 0, 0, 0, 1 }, 4 },                    /* not ascending */
		{ 32, "12345678", 8 },                        /* of another page 1 */
	};
	char logged[160], copy[160];
	(void)state;

	make_logged();
	strcpy(logged, small_path("logged.sfr"));
	strcpy(copy, small_path("copy.sfr"));
	assert_true(has_record(logged));
	for (size_t i = 0; i <= sizeof(changes) / sizeof(changes[0]); i++) {
		int fd = open(logged, O_RDONLY);

		copy_file(fd, copy);
		close(fd);
		assert_true(has_record(copy));
		if (i == 0) { /* the change that is none */
			change_record(copy, 0, "s", 1);
			assert_true(has_record(copy));
			continue;
		}
		change_record(copy, changes[i - 1].offset, changes[i - 1].bytes, changes[i - 1].size);
		assert_false(has_record(copy));
	}
}

static void a_record_that_is_not_whole_is_none(void **state)
{
	char logged[160];
	uint64_t end;
	int fd;
	(void)state;

	make_logged();
	strcpy(logged, small_path("logged.sfr"));
	end = size_of(logged);
	fd = open(logged, O_RDWR);
	for (uint64_t back = 1; back < 3 * SF_PAGE_SIZE; back += 97) {
		uint8_t byte;

		assert_int_equal(pread(fd, &byte, 1, (off_t)(end - back)), 1);
		byte ^= 0x20;
		assert_int_equal(__real_pwrite64(fd, &byte, 1, (off_t)(end - back)), 1);
		assert_false(has_record(logged));
		byte ^= 0x20;
		assert_int_equal(__real_pwrite64(fd, &byte, 1, (off_t)(end - back)), 1);
	}
	assert_true(has_record(logged));
	assert_int_equal(__real_ftruncate64(fd, (off_t)end - 1), 0);
	assert_false(has_record(logged));
	close(fd);
}

/* As after a user's own change with sqlite3(1): what SQLite wrote is not undone. */
static void a_record_gives_way_to_later_changes(void **state)
{
	char *message = NULL;
	sqlite3 *db;
	(void)state;

	make_logged();
	assert_true(has_record(small_path("logged.sfr")));
	assert_int_equal(sqlite3_open(small_path("logged.sfr"), &db), SQLITE_OK);
	if (sqlite3_exec(db, "UPDATE session SET command = 'x'; UPDATE session SET command = 'mine'",
			 NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s", message);
	sqlite3_close(db);
	assert_int_equal(small_read(small_path("logged.sfr"),
				    "SELECT count(*) FROM session WHERE command = 'mine'"), 1);
}

/* Also when the pages are in the record only, as the call that puts them in their places failed. */
static void a_writer_reads_what_it_wrote(void **state)
{
	static const char *const settings =
		"PRAGMA page_size = 4096; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;"
		"PRAGMA temp_store = MEMORY; CREATE TABLE t(x); INSERT INTO t VALUES(1)";
	int fd = open(small_path("t.sfr"), O_RDWR | O_CREAT, 0600);
	struct sf_error err;
	int64_t number;
	sqlite3 *db;
	(void)state;

	assert_true(sf_database_open(fd, true, small_path("t.sfr"), &db, &err));
	assert_true(sf_database_run(db, settings, &err));
	watch.calls = 0;
	watch.fail_from = 4; /* after the two pages and the end of the record */
	watch.fail_to = UINT32_MAX;
	watch.error = EIO;
	assert_true(sf_database_run(db, "UPDATE t SET x = 2", &err));
	sqlite3_db_release_memory(db);
	assert_true(sf_database_number(db, "SELECT x FROM t", &number, &err));
	assert_int_equal(number, 2);
	assert_false(sf_database_run(db, "UPDATE t SET x = 3", &err));
	assert_true(sf_database_number(db, "SELECT x FROM t", &number, &err));
	assert_int_equal(number, 2);
	assert_int_equal(small_query(small_path("t.sfr"), "SELECT x FROM t"), 1);
	watch.fail_from = 0;
	sqlite3_close(db); /* makes up for it */
	assert_int_equal(small_query(small_path("t.sfr"), "SELECT x FROM t"), 2);
}

/* --- beside the file --------------------------------------------------------------------------- */

static void nothing_but_the_file_is_opened(void **state)
{
	struct sf_error err = { 0 };
	sqlite3 *db;
	(void)state;

	small_finish(small_start(small_path("a.sfr")));
	assert_true(sf_database_open_hostile(small_path("a.sfr"), &db, &err));
	assert_int_not_equal(sqlite3_exec(db, "ATTACH '/tmp/x' AS x", NULL, NULL, NULL), SQLITE_OK);
	assert_int_not_equal(sqlite3_exec(db, "CREATE TABLE more(x)", NULL, NULL, NULL), SQLITE_OK);
	assert_int_not_equal(sqlite3_exec(db, "VACUUM", NULL, NULL, NULL), SQLITE_OK);
	assert_int_not_equal(sqlite3_exec(db, "PRAGMA journal_mode = WAL; UPDATE session SET id = 2",
					  NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* Somebody has removed the file under the writer: an error, and not a recording into nowhere. */
static void a_file_without_a_name_is_an_error(void **state)
{
	struct sf_recording *recording = small_start(small_path("a.sfr"));
	uint32_t thread = small_thread(recording, 101, "t");
	unsigned n = 0, second = 0;
	struct sf_error err = { 0 };
	(void)state;

	add(recording, thread, &n, 10);
	assert_int_equal(unlink(small_path("a.sfr")), 0);
	assert_false(save(recording, &second, &err));
	assert_non_null(strstr(err.text, "removed the file"));
	sf_recording_abandon(recording);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		TEST(killed_anywhere_it_is_the_old_state_or_the_new),
		TEST(calls_that_fail_lose_nothing),
		TEST(a_disk_that_stays_full_loses_nothing),
		TEST(a_record_that_cannot_be_is_none),
		TEST(a_record_that_is_not_whole_is_none),
		TEST(a_record_gives_way_to_later_changes),
		TEST(a_writer_reads_what_it_wrote),
		TEST(nothing_but_the_file_is_opened),
		TEST(a_file_without_a_name_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "recording/store/database.h"
#include "small_recording.h"

#include <dirent.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

int small_folder_make(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/sf-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	return 0;
}

int small_folder_remove(void **state)
{
	DIR *dir = opendir(folder);

	(void)state;
	assert_non_null(dir);
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
		unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	assert_int_equal(rmdir(folder), 0);
	return 0;
}

const char *small_path(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

struct sf_recording *small_start(const char *path)
{
	static const uint8_t build_id[3] = { 0xab, 0xcd, 0x01 };
	const struct sf_recording_about about = {
		.command = "work --hard", .engine = "ptrace", .host = "example", .version = "0.1.0",
		.start_unix_ns = 1700000000000000000, .start_monotonic_ns = SMALL_START_NS,
		.rate_mhz = 199000, .blocked_rate_mhz = 20000, .arch = sf_arch_by_machine(62),
	};
	const struct sf_recording_module module = {
		.number = 1, .path = "/opt/app/libwork.so", .build_id = build_id,
		.build_id_size = sizeof(build_id), .note = "",
	};
	struct sf_recording *recording;
	struct sf_error err = { 0 };

	if (!sf_recording_create(path, &about, &recording, &err))
		fail_msg("%s", err.text);
	assert_true(sf_recording_process(recording, 100, 1, "work", "work --hard", SMALL_START_NS,
					 &err));
	assert_true(sf_recording_module(recording, &module, &err));
	return recording;
}

uint32_t small_thread(struct sf_recording *recording, int tid, const char *name)
{
	struct sf_error err;
	uint32_t thread;

	assert_true(sf_recording_thread(recording, 100, tid, name, SMALL_START_NS, &thread, &err));
	return thread;
}

unsigned small_guess;

uint32_t small_stack(struct sf_recording *recording, enum sf_end end, const char *wait,
		     const unsigned *functions)
{
	struct sf_frame frames[64];
	struct sf_trace trace = { .frames = frames, .capacity = 64, .end = end };
	struct sf_error err;
	uint32_t n = 0, stack;

	while (functions[n])
		n++;
	for (uint32_t i = 0; i < n; i++) /* innermost first */
		frames[i] = (struct sf_frame){
			.address = 0x1000 * (uint64_t)functions[n - 1 - i] + (i ? 0x12 : 0x11),
			.image = 1,
			.via = !i ? SF_VIA_LEAF : functions[n - 1 - i] == small_guess ? SF_VIA_GUESS : SF_VIA_ROWS,
			.flags = i ? 0 : SF_FRAME_EXACT,
		};
	trace.n_frames = n;
	assert_true(sf_recording_stack(recording, &trace, wait, 0, NULL, &stack, &err));
	return stack;
}

void small_sample(struct sf_recording *recording, unsigned at_ms, uint32_t thread, uint32_t stack,
		  enum sf_state state, unsigned cpu_ms, unsigned wall_ms)
{
	small_labelled(recording, at_ms, thread, stack, state, cpu_ms, wall_ms, 0);
}

void small_labelled(struct sf_recording *recording, unsigned at_ms, uint32_t thread, uint32_t stack,
		    enum sf_state state, unsigned cpu_ms, unsigned wall_ms, uint32_t label)
{
	struct sf_error err = { 0 };
	const struct sf_recording_sample sample = {
		.time_ns = SMALL_START_NS + (uint64_t)at_ms * MS, .thread = thread, .stack = stack,
		.label = label,
		.cpu_ns = (uint64_t)cpu_ms * MS, .wall_ns = (uint64_t)wall_ms * MS, .ticks = 1,
		.state = (uint8_t)state, .end = SF_END_ROOT,
		.syscall = state == SF_STATE_BLOCKED ? 202 : SF_SYSCALL_NONE,
	};

	if (!sf_recording_sample(recording, &sample, &err))
		fail_msg("%s", err.text);
}

/* The functions at an address, and how many. They are valid until the next call. */
static size_t names_of(uint64_t address, struct sf_location ret[2])
{
	static char name[16];
	unsigned function = (unsigned)(address / 0x1000);

	assert_int_equal(address % 0x1000, 0x11);
	snprintf(name, sizeof(name), "fn%u", function);
	ret[0] = (struct sf_location){ name, name, "work.c", function * 10, false,
					     function == 7 };
	if (function == 9)
		return 0;
	if (function != 3)
		return 1;
	ret[0] = (struct sf_location){ "fn3", "fn3", "work.h", 33, true };
	ret[1] = (struct sf_location){ "fn2", "fn2", "work.c", 22, false };
	return 2;
}

static void name_one(struct sf_recording *recording, uint64_t address)
{
	struct sf_location names[2];
	size_t n = names_of(address, names);
	struct sf_error err;

	if (n)
		assert_true(sf_recording_names(recording, 1, address, names, n, &err));
}

static bool name_late(struct sf_late_names *late, const char *path, const char *build_id,
		      const uint64_t *addresses, size_t n, void *arg)
{
	(void)arg;
	assert_string_equal(path, "/opt/app/libwork.so");
	assert_string_equal(build_id, "abcd01");
	for (size_t i = 0; i < n; i++) {
		struct sf_location names[2];
		size_t n_names = names_of(addresses[i], names);

		assert_true(i == 0 || addresses[i] > addresses[i - 1]);
		assert_true(sf_late_names_put(late, i, names, n_names));
	}
	return true;
}

struct sf_profile *small_load_named(const char *path)
{
	const struct sf_load_options options = { .namer = { .name = name_late } };
	struct sf_profile *profile;
	struct sf_error err = { 0 };

	if (!sf_profile_load(path, &options, &profile, &err))
		fail_msg("%s", err.text);
	return profile;
}

void small_names(struct sf_recording *recording)
{
	struct sf_error err;
	uint64_t *addresses;
	size_t n;

	assert_true(sf_recording_unnamed(recording, 1, &addresses, &n, &err));
	for (size_t i = 0; i < n; i++)
		name_one(recording, addresses[i]);
	free(addresses);
}

void small_finish(struct sf_recording *recording)
{
	struct sf_error err = { 0 };

	if (!sf_recording_finish(recording, SMALL_START_NS + 2000 * (uint64_t)MS, &err))
		fail_msg("%s", err.text);
}

struct sf_profile *small_load(const char *path)
{
	struct sf_profile *profile;
	struct sf_error err = { 0 };

	if (!sf_profile_load(path, NULL, &profile, &err))
		fail_msg("%s", err.text);
	return profile;
}

int64_t small_query(const char *path, const char *sql)
{
	sqlite3 *db;
	sqlite3_stmt *statement;
	int64_t ret;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	ret = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return ret;
}

int64_t small_read(const char *path, const char *sql)
{
	struct sf_error err = { 0 };
	int64_t ret = 0;
	sqlite3 *db;

	if (!sf_database_open_hostile(path, &db, &err))
		fail_msg("%s", err.text);
	if (!sf_database_number(db, sql, &ret, &err))
		fail_msg("%s", err.text);
	sqlite3_close(db);
	return ret;
}

void small_check(const char *path)
{
	assert_int_equal(small_read(path, "SELECT count(*) FROM pragma_integrity_check "
					  "WHERE integrity_check <> 'ok'"), 0);
}

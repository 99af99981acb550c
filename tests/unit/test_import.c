/* SPDX-License-Identifier: Apache-2.0 */
/* Streams in the place of recordings: whole, cut at every byte, of several programs, with names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf/facts.h"
#include "form.h"
#include "session/import.h"
#include "session/session.h"
#include "small_recording.h"
#include "stream_builder.h"

static struct stream_builder built;
static const uint64_t frames[2][2] = { { 0x1010, 1 }, { 0x2020, 1 } };

int function_to_find(int n);

__attribute__((noinline)) int function_to_find(int n)
{
	__asm__ volatile("nop; nop; nop; nop" : "+r"(n));
	return n + 1;
}

/* Loads what was built, cut at `size`. The profile is the caller's. */
static struct sf_profile *load(size_t size)
{
	struct sf_profile *profile;
	struct sf_error err = { 0 };

	stream_write(&built, small_path("s.sfs"), size);
	if (!sf_session_load(small_path("s.sfs"), false, &profile, &err))
		fail_msg("%s", err.text);
	return profile;
}

static const char *note_of(const struct sf_profile *profile, uint32_t note)
{
	return sf_profile_string(profile, profile->notes[note].text);
}

/* In the short form at every byte of the last sample and of the end, and at each fifth byte before. */
static void it_is_cut_at_every_byte(void **state)
{
	const uint64_t n_samples = is_long_form() ? 5 : 2;
	size_t ends[16], n = 0, whole = 0;
	(void)state;

	stream_start(&built);
	ends[n++] = built.size;
	stream_process(&built, 42, "shop", "shop --fast");
	stream_thread(&built, 1, 42, "main");
	stream_image(&built, 1, "/opt/gone", "aaaa", 4);
	for (uint64_t i = 0; i < n_samples; i++) {
		stream_sample(&built, 1, 10 * i, 5, 0, frames, 2);
		ends[n++] = built.size;
	}
	stream_end(&built, 100, 0);
	for (size_t size = ends[0]; size <= built.size; size += is_long_form() || size >= ends[n - 2] ? 1 : 5) {
		struct sf_profile *profile = load(size);

		while (whole + 1 < n && ends[whole + 1] <= size)
			whole++;
		assert_int_equal(profile->n_samples, whole);
		assert_int_equal(profile->n_notes, size != built.size);
		assert_int_equal(profile->complete, size == built.size);
		sf_profile_destroy(profile);
	}
}

/* The name leads to another file between the look at it and the reading. */
static void what_was_opened_is_read(void **state)
{
	struct sf_profile *profile;
	struct sf_error err = { 0 };
	char trap[128];
	int fd;
	(void)state;

	snprintf(trap, sizeof(trap), "%s", small_path("t.sfs"));
	stream_start(&built);
	stream_process(&built, 42, "shop", "");
	stream_write(&built, small_path("s.sfs"), built.size);
	fd = open(small_path("s.sfs"), O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	stream_start(&built);
	stream_process(&built, 43, "trap", "");
	stream_write(&built, trap, built.size);
	assert_int_equal(rename(trap, small_path("s.sfs")), 0);
	if (!sf_import_load(fd, small_path("s.sfs"), false, &profile, &err))
		fail_msg("%s", err.text);
	close(fd);
	assert_string_equal(profile->command, "shop");
	sf_profile_destroy(profile);
}

static void what_is_missing_is_said(void **state)
{
	struct sf_profile *profile;
	(void)state;

	stream_start(&built);
	stream_process(&built, 42, "shop", "");
	profile = load(built.size);
	assert_string_equal(profile->command, "shop");
	assert_string_equal(profile->engine, "signal");
	assert_int_equal(profile->rate_mhz, 199000);
	assert_int_equal(profile->start_unix_ns, 1700000000000000000);
	assert_non_null(strstr(note_of(profile, 0), "has no end"));
	assert_non_null(strstr(sf_profile_cut(profile), "the end of the file is missing"));
	sf_profile_destroy(profile);
	profile = load(built.size - 1);
	assert_non_null(strstr(note_of(profile, 0), "cut off"));
	sf_profile_destroy(profile);
	stream_note(&built, "x");
	((struct sf_stream_note *)stream_last(&built))->size = 9;
	profile = load(built.size);
	assert_non_null(strstr(note_of(profile, 0), "damaged at byte"));
	assert_string_equal(profile->command, "shop");
	sf_profile_destroy(profile);
}

static void ticks_are_samples_and_losses(void **state)
{
	struct sf_profile *profile;
	uint64_t ticks = 0, lost = 0;
	(void)state;

	stream_start(&built);
	stream_process(&built, 42, "a", "a");
	stream_thread(&built, 1, 42, "main");
	stream_sample(&built, 1, 10, 5, 0, frames, 2);
	stream_again(&built, 1, 20, 10);
	stream_again(&built, 1, 30, 10);
	stream_loss(&built, 1, SF_LOSS_NO_SLOT, 4);
	stream_sample(&built, 8, 10, 5, 0, frames, 2); /* its THREAD was lost */
	stream_end(&built, 2000, 3);
	profile = load(built.size);
	for (size_t i = 0; i < profile->n_samples; i++)
		ticks += profile->samples[i].ticks;
	for (size_t i = 0; i < profile->n_losses; i++)
		lost += profile->losses[i].ticks;
	assert_int_equal(ticks, 3);
	assert_int_equal(lost, 4 + 1 + 3);
	assert_int_equal(profile->duration_ns, 2000 * (uint64_t)STREAM_MS);
	assert_int_equal(profile->n_notes, 0);
	sf_profile_destroy(profile);
}

/* Threads of the first program are not those of the second, whose serials start at 1 again. */
static void another_program_in_one_stream(void **state)
{
	struct sf_profile *profile;
	(void)state;

	stream_start(&built);
	for (int i = 0; i < 2; i++) {
		stream_process(&built, 42, i ? "second" : "first", i ? "second" : "first");
		stream_thread(&built, 1, 42, i ? "two" : "one");
		stream_sample(&built, 1, 10 + 10 * (uint64_t)i, 5, 0, frames, 2);
	}
	stream_end(&built, 100, 0);
	profile = load(built.size);
	assert_string_equal(profile->command, "first");
	/* Its first thread goes on with the next program. */
	assert_int_equal(profile->n_threads, 1);
	assert_int_equal(profile->samples[0].thread, 0);
	assert_int_equal(profile->samples[1].thread, 0);
	assert_string_equal(sf_profile_string(profile, profile->threads[0].name), "two");
	sf_profile_destroy(profile);
}

static const char *top_of(const struct sf_profile *profile, size_t sample)
{
	return sf_profile_frame_name(profile,
				     profile->nodes[profile->samples[sample].node].frame);
}

/* Told before the sample, after it, never; and again, which changes nothing. */
static void places_are_named_whenever_they_are_told(void **state)
{
	const uint64_t before[1][2] = { { 5, STREAM_MANAGED } };
	const uint64_t after[1][2] = { { 6, STREAM_MANAGED } };
	const uint64_t never[1][2] = { { 7, STREAM_MANAGED } };
	struct sf_profile *profile;
	(void)state;

	stream_start(&built);
	stream_process(&built, 42, "a", "a");
	stream_thread(&built, 1, 42, "main");
	stream_place(&built, 5, "Demo.c7(int)", "Demo.c6(int)");
	stream_sample(&built, 1, 10, 5, 0, before, 1);
	stream_sample(&built, 1, 20, 5, 0, after, 1);
	stream_sample(&built, 1, 30, 5, 0, never, 1);
	stream_place(&built, 6, "Demo.d1(int)", "Demo.d0(int)");
	stream_place(&built, 6, "Demo.x1(int)", "Demo.x0(int)");
	stream_sample(&built, 1, 40, 5, 0, after, 1);
	stream_end(&built, 100, 0);
	profile = load(built.size);
	assert_int_equal(profile->n_samples, 4);
	assert_string_equal(top_of(profile, 0), "Demo.c7(int)");
	assert_string_equal(top_of(profile, 1), "Demo.d1(int)");
	assert_string_equal(top_of(profile, 2), "[managed code that was not described]");
	assert_string_equal(top_of(profile, 3), "Demo.d1(int)");
	assert_int_not_equal(profile->nodes[profile->samples[0].node].parent, 0);
	assert_int_equal(profile->frames[profile->nodes[profile->samples[0].node].frame].line, 7);
	sf_profile_destroy(profile);
}

/* The address of a function in the file that this program runs from. */
static uint64_t address_in_file(int (*function)(int n))
{
	return (uint64_t)(uintptr_t)function - _r_debug.r_map->l_addr;
}

static void names_are_found_by_build_id(void **state)
{
	const uint64_t here[1][2] = { { address_in_file(function_to_find) + 1, 1 } };
	uint8_t build_id[32];
	char path[256];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	size_t size;
	(void)state;

	assert_true(length > 0 && fd >= 0);
	path[length] = 0;
	sf_elf_build_id(fd, build_id, &size);
	close(fd);
	assert_true(size > 0);
	for (int other = 0; other < 2; other++) {
		struct sf_profile *profile;
		const char *name;

		build_id[0] ^= (uint8_t)other;
		stream_start(&built);
		stream_process(&built, getpid(), "a", "a");
		stream_thread(&built, 1, getpid(), "main");
		stream_image(&built, 1, path, build_id, size);
		stream_sample(&built, 1, 10, 5, 0, here, 1);
		profile = load(built.size);
		name = sf_profile_frame_name(profile,
					     profile->nodes[profile->samples[0].node].frame);
		if ((strcmp(name, "function_to_find") == 0) != !other)
			fail_msg("with %s build id it is called %s", other ? "another" : "its", name);
		sf_profile_destroy(profile);
	}
}

static size_t count_files(const char *folder)
{
	DIR *dir = opendir(folder);
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void nothing_is_left_behind(void **state)
{
	size_t before;
	(void)state;

	stream_start(&built);
	stream_process(&built, 42, "a", "a");
	sf_profile_destroy(load(built.size));
	before = count_files(small_path(""));
	sf_profile_destroy(load(built.size));
	assert_int_equal(count_files(small_path("")), before);
}

static void no_streams_are_refused(void **state)
{
	struct sf_profile *profile;
	struct sf_error err = { 0 };
	(void)state;

	stream_start(&built);
	((struct sf_stream_file_header *)built.bytes)->version = 7;
	stream_write(&built, small_path("new.sfs"), built.size);
	assert_false(sf_session_load(small_path("new.sfs"), false, &profile, &err));
	assert_non_null(strstr(err.text, "version 7"));
	assert_false(sf_import("/nonexistent", small_path("x.sfr"), &err));
	assert_int_equal(access(small_path("x.sfr"), F_OK), -1);
}

static int setup(void **state)
{
	small_folder_make(state);
	return setenv("TMPDIR", small_path(""), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_opened_is_read),
		cmocka_unit_test(it_is_cut_at_every_byte),
		cmocka_unit_test(what_is_missing_is_said),
		cmocka_unit_test(ticks_are_samples_and_losses),
		cmocka_unit_test(another_program_in_one_stream),
		cmocka_unit_test(names_are_found_by_build_id),
		cmocka_unit_test(places_are_named_whenever_they_are_told),
		cmocka_unit_test(nothing_is_left_behind),
		cmocka_unit_test(no_streams_are_refused),
	};

	return cmocka_run_group_tests(tests, setup, small_folder_remove);
}

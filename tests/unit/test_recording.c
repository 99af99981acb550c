/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing recordings: what goes in comes out, nothing but recordings is replaced, and neither a
 * kill -9 at any moment nor a full disk costs more than it says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/histogram.h"
#include "form.h"
#include "small_recording.h"

static void what_goes_in_comes_out(void **state)
{
	const char *path = small_path("a.sfr");
	struct sf_recording *recording = small_start(path);
	uint32_t thread = small_thread(recording, 101, "first");
	struct sf_profile *profile;
	struct sf_error err;
	(void)state;

	assert_true(sf_recording_thread_name(recording, thread, "second", &err));
	small_sample(recording, 1200, thread, SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 2),
		     SF_STATE_RUNNING, 5, 6);
	small_sample(recording, 100, thread,
		     SMALL_STACK(recording, SF_END_DEPTH, "[futex]", 1, 9), SF_STATE_BLOCKED, 0, 50);
	assert_true(sf_recording_thread_end(recording, thread, SMALL_START_NS + 1500 * (uint64_t)MS,
					    7 * MS, &err));
	small_names(recording);
	small_finish(recording);

	profile = small_load(path);
	assert_true(profile->complete);
	assert_string_equal(profile->command, "work --hard");
	assert_string_equal(profile->engine, "ptrace");
	assert_int_equal(profile->start_unix_ns, 1700000000000000000);
	assert_int_equal(profile->duration_ns, 2000 * (uint64_t)MS);
	assert_int_equal(profile->rate_mhz, 199000);
	assert_int_equal(profile->n_modules, 1);
	assert_string_equal(profile->strings[profile->modules[0].path], "/opt/app/libwork.so");
	assert_string_equal(profile->strings[profile->modules[0].build_id], "abcd01");
	assert_int_equal(profile->n_threads, 1);
	assert_string_equal(profile->strings[profile->threads[0].name], "second");
	assert_string_equal(profile->strings[profile->threads[0].process_name], "work");
	assert_int_equal(profile->threads[0].tid, 101);
	assert_int_equal(profile->threads[0].end_ns, 1500 * (uint64_t)MS);
	assert_int_equal(profile->threads[0].cpu_counted_ns, 7 * MS);

	/* By time, though they were written the other way round. */
	assert_int_equal(profile->n_samples, 2);
	assert_int_equal(profile->samples[0].time_ns, 100 * MS);
	assert_int_equal(profile->samples[0].state, SF_STATE_BLOCKED);
	assert_int_equal(profile->samples[0].syscall, 202);
	assert_int_equal(profile->samples[1].time_ns, 1200 * (uint64_t)MS);
	assert_int_equal(profile->samples[1].cpu_ns, 5 * MS);
	assert_int_equal(profile->samples[1].wall_ns, 6 * MS);

	/* [futex] on top of fn9 (without a name) on fn1 on the cut. */
	uint32_t node = profile->samples[0].node;
	static const char *const expected[] = { "[futex]", "[unknown in libwork.so]", "fn1",
						"[cut: more frames than --max-depth]" };
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(sf_profile_frame_name(profile, profile->nodes[node].frame),
				    expected[i]);
		assert_true(profile->nodes[node].parent < node);
		node = profile->nodes[node].parent;
	}
	assert_int_equal(node, 0);
	sf_profile_destroy(profile);
}

static void it_begins_after_the_preparations(void **state)
{
	const char *path = small_path("a.sfr");
	struct sf_recording *recording = small_start(path);
	struct sf_profile *profile;
	uint32_t thread;
	(void)state;

	sf_recording_begin(recording, 1700000000300000000, SMALL_START_NS + 300 * (uint64_t)MS);
	thread = small_thread(recording, 101, "first");
	small_sample(recording, 1200, thread, SMALL_STACK(recording, SF_END_ROOT, NULL, 1), SF_STATE_RUNNING, 5, 6);
	small_finish(recording);
	profile = small_load(path);
	assert_int_equal(profile->start_unix_ns, 1700000000300000000);
	assert_int_equal(profile->duration_ns, 1700 * (uint64_t)MS);
	assert_int_equal(profile->samples[0].time_ns, 900 * (uint64_t)MS);
	sf_profile_destroy(profile);
}

static void inlined_calls_become_nodes(void **state)
{
	const char *path = small_path("a.sfr");
	struct sf_recording *recording = small_start(path);
	uint32_t thread = small_thread(recording, 101, "t");
	const struct sf_profile_frame *inner, *outer;
	struct sf_profile *profile;
	uint32_t node;
	(void)state;

	small_sample(recording, 1, thread, SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 3),
		     SF_STATE_RUNNING, 5, 5);
	small_names(recording);
	small_finish(recording);
	profile = small_load(path);
	node = profile->samples[0].node;
	inner = &profile->frames[profile->nodes[node].frame];
	outer = &profile->frames[profile->nodes[profile->nodes[node].parent].frame];
	assert_string_equal(profile->strings[profile->functions[inner->function].name], "fn3");
	assert_true(inner->inlined);
	assert_int_equal(inner->line, 33);
	assert_int_equal(inner->address, 0x3011);
	assert_string_equal(profile->strings[profile->functions[outer->function].name], "fn2");
	assert_false(outer->inlined);
	assert_int_equal(outer->address, 0x3011);
	assert_int_equal(profile->n_nodes, 4);
	sf_profile_destroy(profile);
}

/*
 * Names are looked up in rounds while a recording goes on: each address is handed out once, and a frame keeps its first
 * names.
 */
static void names_come_in_rounds(void **state)
{
	const char *path = small_path("a.sfr");
	struct sf_recording *recording = small_start(path);
	uint32_t thread = small_thread(recording, 101, "t");
	const struct sf_location other = { "other", "other", "" };
	uint64_t *addresses;
	struct sf_error err;
	size_t n;
	(void)state;

	small_sample(recording, 100, thread, SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 2), SF_STATE_RUNNING, 5, 6);
	small_names(recording);
	assert_true(sf_recording_waiting_names(recording) > 0);
	assert_true(sf_recording_unnamed(recording, 1, &addresses, &n, &err));
	assert_int_equal(n, 0);
	free(addresses);
	small_sample(recording, 200, thread, SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 2, 4), SF_STATE_RUNNING, 5, 6);
	assert_true(sf_recording_unnamed(recording, 1, &addresses, &n, &err));
	assert_true(n >= 1);
	for (size_t i = 0; i < 2 * n; i++)
		assert_true(sf_recording_names(recording, 1, addresses[i % n], &other, 1, &err));
	free(addresses);
	small_finish(recording);
	assert_int_equal(small_query(path, "SELECT count(*) FROM functions WHERE name = 'other'"), 1);
	assert_int_equal(small_query(path, "SELECT count(*) - count(DISTINCT frame) FROM frame_functions"), 0);
	assert_int_equal(small_query(path, "SELECT count(*) FROM frame_functions WHERE frame IN (SELECT id FROM frames WHERE module = 1)"),
			 small_query(path, "SELECT count(*) FROM frames WHERE module = 1"));
}

static void a_stack_is_one_number(void **state)
{
	struct sf_recording *recording = small_start(small_path("a.sfr"));
	uint32_t stack = SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 2, 3);
	(void)state;

	assert_int_equal(SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 2, 3), stack);
	assert_int_not_equal(SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 2, 4), stack);
	assert_int_not_equal(SMALL_STACK(recording, SF_END_DEPTH, NULL, 1, 2, 3), stack);
	assert_int_not_equal(SMALL_STACK(recording, SF_END_ROOT, "[futex]", 1, 2, 3), stack);
	small_finish(recording);
}

static void a_module_nobody_told_of_is_no_damage(void **state)
{
	struct sf_recording *recording = small_start(small_path("a.sfr"));
	struct sf_frame frame = { .address = 0x77, .image = 5, .flags = SF_FRAME_EXACT };
	struct sf_trace trace = { .frames = &frame, .capacity = 1, .n_frames = 1 };
	uint32_t stack, thread = small_thread(recording, 101, "t");
	struct sf_profile *profile;
	struct sf_error err;
	(void)state;

	assert_true(sf_recording_stack(recording, &trace, NULL, 0, NULL, &stack, &err));
	small_sample(recording, 1, thread, stack, SF_STATE_RUNNING, 1, 1);
	small_finish(recording);
	profile = small_load(small_path("a.sfr"));
	assert_int_equal(profile->n_modules, 2);
	assert_string_equal(sf_profile_frame_name(profile, profile->nodes[1].frame), "[unknown, in no file]");
	sf_profile_destroy(profile);
}

static void a_tid_is_a_new_thread_after_its_end(void **state)
{
	struct sf_recording *recording = small_start(small_path("a.sfr"));
	struct sf_recording_totals totals;
	uint32_t first = small_thread(recording, 101, "a"), second;
	struct sf_error err;
	(void)state;

	assert_int_equal(small_thread(recording, 101, "a"), first);
	assert_true(sf_recording_thread_end(recording, first, SMALL_START_NS + MS, 3, &err));
	second = small_thread(recording, 101, "b");
	assert_int_not_equal(second, first);
	assert_true(sf_recording_thread_end(recording, second, SMALL_START_NS + MS, 4, &err));
	sf_recording_totals(recording, &totals);
	assert_int_equal(totals.n_threads, 2);
	assert_int_equal(totals.cpu_counted_ns, 7);
	small_finish(recording);
	assert_int_equal(small_query(small_path("a.sfr"), "SELECT count(*) FROM threads"), 2);
}

static void a_first_thread_goes_on_after_an_exec(void **state)
{
	struct sf_recording *recording = small_start(small_path("a.sfr"));
	struct sf_recording_totals totals;
	uint32_t first = small_thread(recording, 100, "sh");
	struct sf_error err;
	(void)state;

	assert_true(sf_recording_thread_end(recording, first, SMALL_START_NS + MS, 3, &err));
	assert_int_equal(small_thread(recording, 100, "python3"), first);
	assert_true(sf_recording_thread_end(recording, first, SMALL_START_NS + 2 * MS, 4, &err));
	sf_recording_totals(recording, &totals);
	assert_int_equal(totals.n_threads, 1);
	assert_int_equal(totals.cpu_counted_ns, 7);
	small_finish(recording);
	assert_int_equal(small_query(small_path("a.sfr"), "SELECT count(*) FROM threads "
				     "WHERE name = 'python3' AND cpu_counted_ns = 7"), 1);
}

static void an_unnamed_process_has_the_name_of_its_first_thread(void **state)
{
	const char *path = small_path("a.sfr");
	struct sf_recording *recording = small_start(path);
	uint32_t thread;
	struct sf_error err;
	(void)state;

	for (int32_t pid = 200; pid < 202; pid++) {
		assert_true(sf_recording_process(recording, pid, 100, pid == 200 ? "" : "named", "", SMALL_START_NS, &err));
		assert_true(sf_recording_thread(recording, pid, 300 + pid, "second", SMALL_START_NS, &thread, &err));
		assert_true(sf_recording_thread(recording, pid, pid, "first", SMALL_START_NS, &thread, &err));
	}
	small_finish(recording);
	assert_int_equal(small_query(path, "SELECT count(*) FROM processes WHERE pid = 200 AND name = 'first'"), 1);
	assert_int_equal(small_query(path, "SELECT count(*) FROM processes WHERE pid = 201 AND name = 'named'"), 1);
}

static void a_process_begins_with_its_first_thread(void **state)
{
	const char *path = small_path("a.sfr");
	struct sf_recording *recording = small_start(path);
	uint32_t thread;
	struct sf_error err;
	(void)state;

	assert_true(sf_recording_process(recording, 200, 100, "tool", "", SMALL_START_NS, &err));
	assert_true(sf_recording_thread(recording, 200, 201, "second", SMALL_START_NS + 3 * MS, &thread, &err));
	assert_true(sf_recording_thread(recording, 200, 200, "first", SMALL_START_NS + 5 * MS, &thread, &err));
	small_finish(recording);
	assert_int_equal(small_query(path, "SELECT start_ns FROM processes WHERE pid = 200"), 3 * MS);
}

/* It is asked for again at an exec, and may be a zombie by then: its name is there, and its command line is gone. */
static void a_command_line_outlives_its_process(void **state)
{
	const char *path = small_path("a.sfr");
	struct sf_recording *recording = small_start(path);
	struct sf_error err;
	(void)state;

	for (int32_t pid = 200; pid < 203; pid++)
		assert_true(sf_recording_process(recording, pid, 100, "tool", "tool -v", SMALL_START_NS, &err));
	assert_true(sf_recording_process(recording, 200, 100, "tool", "", SMALL_START_NS, &err));
	assert_true(sf_recording_process(recording, 201, 100, "other", "", SMALL_START_NS, &err));
	assert_true(sf_recording_process(recording, 202, 100, "tool", "tool -q", SMALL_START_NS, &err));
	small_finish(recording);
	assert_int_equal(small_query(path, "SELECT count(*) FROM processes WHERE pid = 200 AND command_line = 'tool -v'"), 1);
	assert_int_equal(small_query(path, "SELECT count(*) FROM processes WHERE pid = 201 AND command_line = ''"), 1);
	assert_int_equal(small_query(path, "SELECT count(*) FROM processes WHERE pid = 202 AND command_line = 'tool -q'"), 1);
}

/* The last process with a pid that is used again: by its start, or, where that is not known, by the end of the one before. */
static void meet(struct sf_recording *recording, int32_t pid, uint64_t started, const char *name)
{
	uint32_t thread;
	struct sf_error err;

	assert_true(sf_recording_process_met(recording, pid, started, &err));
	assert_true(sf_recording_process(recording, pid, 100, name, name, SMALL_START_NS, &err));
	assert_true(sf_recording_thread(recording, pid, pid, name, SMALL_START_NS, &thread, &err));
	assert_true(sf_recording_thread(recording, pid, pid + 1, name, SMALL_START_NS, &thread, &err));
}

static void a_pid_that_is_used_again_is_another_process(void **state)
{
	const char *path = small_path("a.sfr");
	struct sf_recording *recording = small_start(path);
	struct sf_error err;
	(void)state;

	meet(recording, 200, 7, "one");
	meet(recording, 200, 7, "executed");
	meet(recording, 200, 0, "unknown");
	meet(recording, 200, 9, "two");
	assert_true(sf_recording_process_ended(recording, 200, &err));
	meet(recording, 200, 9, "two");
	assert_true(sf_recording_process_ended(recording, 200, &err));
	meet(recording, 200, 0, "three");
	small_finish(recording);
	assert_int_equal(small_query(path, "SELECT count(*) FROM processes WHERE pid = 200"), 3);
	assert_int_equal(small_query(path, "SELECT count(*) FROM processes WHERE name IN ('unknown', 'two', 'three')"), 3);
	assert_int_equal(small_query(path, "SELECT count(*) FROM threads WHERE tid >= 200"), 6);
	assert_int_equal(small_query(path, "SELECT count(DISTINCT process) FROM threads WHERE tid = 201"), 3);
}

static void ticks_are_samples_and_losses(void **state)
{
	const char *path = small_path("a.sfr");
	struct sf_recording *recording = small_start(path);
	uint32_t thread = small_thread(recording, 101, "t");
	struct sf_recording_totals totals;
	(void)state;

	for (unsigned i = 0; i < 3000; i++)
		small_sample(recording, i, thread, SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 2),
			     SF_STATE_RUNNING, 1, 1);
	for (unsigned i = 0; i < 7; i++)
		sf_recording_loss(recording, thread, SF_LOSS_LATE, &(struct sf_lost){ .ticks = 2, .cpu_ns = MS, .wall_ns = MS });
	sf_recording_loss(recording, 0, SF_LOSS_UNSEEN, &(struct sf_lost){ .ticks = 3, .cpu_ns = MS, .wall_ns = MS });
	sf_recording_totals(recording, &totals);
	assert_int_equal(totals.samples, 3000);
	assert_int_equal(totals.losses, 17);
	assert_int_equal(totals.losses_by[SF_LOSS_LATE], 14);
	assert_int_equal(totals.ticks, totals.ends_by[SF_END_ROOT] + totals.losses);
	assert_int_equal(totals.cpu_lost_ns, 8 * MS);
	assert_int_equal(totals.cpu_lost_by[SF_LOSS_LATE], 7 * MS);
	small_finish(recording);
	assert_int_equal(small_query(path, "SELECT ticks FROM accounting"), totals.ticks);
	assert_int_equal(small_query(path, "SELECT sample_ticks FROM accounting"), 3000);
	assert_int_equal(small_query(path, "SELECT cpu_lost_ns FROM accounting"), 8 * MS);
	assert_int_equal(small_query(path, "SELECT ticks FROM losses WHERE thread = 1"), 14);
}

/* A thread that lost nothing has no room for losses: machines have many. */
static void a_thread_without_losses_is_small(void **state)
{
	enum { N = 10000, MOST = 300 /* bytes, with the spare room of growing arrays */ };
	struct sf_recording *recording = small_start(small_path("a.sfr"));
	const struct mallinfo2 before = mallinfo2();
	struct mallinfo2 after;
	(void)state;

	for (int tid = 1; tid <= N; tid++)
		small_thread(recording, tid, "t");
	after = mallinfo2();
	assert_true(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd < N * MOST);
	small_finish(recording);
}

static void losses_beyond_the_limit_are_of_no_thread(void **state)
{
	enum { LIMIT = 1 << 19, N = LIMIT / SF_N_LOSSES + 2 };
	const char *path = small_path("a.sfr");
	struct sf_recording *recording = small_start(path);
	(void)state;

	for (int tid = 1; tid <= N; tid++) {
		uint32_t thread = small_thread(recording, tid, "t");

		for (enum sf_loss cause = 0; cause < SF_N_LOSSES; cause++)
			sf_recording_loss(recording, thread, cause, &(struct sf_lost){ .ticks = 1 });
	}
	small_finish(recording);
	assert_int_equal(small_query(path, "SELECT count(*) FROM losses WHERE thread > 0"), LIMIT);
	assert_int_equal(small_query(path, "SELECT sum(ticks) FROM losses"), N * SF_N_LOSSES);
	assert_int_equal(small_query(path, "SELECT count(*) FROM notes WHERE text LIKE '%have losses%'"), 1);
}

static void holds_are_a_histogram(void **state)
{
	const char *path = small_path("a.sfr");
	struct sf_recording *recording = small_start(path);
	struct sf_recording_totals totals;
	struct sf_profile *profile;
	(void)state;

	for (unsigned ns = 1; ns <= 100000; ns++)
		sf_recording_hold(recording, ns);
	sf_recording_totals(recording, &totals);
	assert_int_equal(totals.holds, 100000);
	assert_in_range(totals.hold_p50_ns, 50000, 56250);
	assert_in_range(totals.hold_p99_ns, 99000, 100000);
	assert_int_equal(totals.hold_max_ns, 100000);
	small_finish(recording);

	profile = small_load(path);
	uint64_t sum = 0;
	for (size_t i = 0; i < profile->n_holds; i++) {
		assert_true(i == 0 || profile->holds[i].up_to_ns > profile->holds[i - 1].up_to_ns);
		sum += profile->holds[i].count;
	}
	assert_int_equal(sum, 100000);
	sf_profile_destroy(profile);
}

static void every_time_is_in_its_bucket(void **state)
{
	(void)state;
	for (unsigned shift = 0; shift < 64; shift++) {
		for (int off = -1; off <= 1; off++) {
			struct sf_histogram histogram = { 0 };
			uint64_t ns = ((uint64_t)1 << shift) + (uint64_t)off;
			unsigned bucket = 0;

			sf_histogram_add(&histogram, ns, 1);
			while (!histogram.counts[bucket])
				bucket++;
			assert_true(ns <= sf_histogram_up_to(bucket));
			assert_true(bucket == 0 || ns > sf_histogram_up_to(bucket - 1));
			assert_int_equal(sf_histogram_percentile(&histogram, 0.99), ns);
		}
	}
}

static void hostile_names_are_made_text(void **state)
{
	const char *path = small_path("a.sfr");
	struct sf_recording *recording = small_start(path);
	uint32_t thread = small_thread(recording, 101, "\033[2Jevil\xff\n");
	struct sf_profile *profile;
	const char *name;
	(void)state;

	small_sample(recording, 1, thread, 0, SF_STATE_RUNNING, 1, 1);
	small_finish(recording);
	profile = small_load(path);
	name = profile->strings[profile->threads[0].name];
	assert_non_null(strstr(name, "evil"));
	for (; *name; name++)
		assert_in_range(*name, 0x20, 0x7e);
	sf_profile_destroy(profile);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void only_recordings_are_replaced(void **state)
{
	const struct sf_recording_about about = { .start_monotonic_ns = SMALL_START_NS };
	struct sf_recording *recording, *other;
	struct sf_error err = { 0 };
	char text[64] = "";
	FILE *file;
	(void)state;

	write_file(small_path("letter.txt"), "Dear recording, ...");
	assert_false(sf_recording_create(small_path("letter.txt"), &about, &recording, &err));
	assert_non_null(strstr(err.text, "not replaced"));
	file = fopen(small_path("letter.txt"), "r");
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	assert_string_equal(text, "Dear recording, ...");

	assert_false(sf_recording_create("/tmp", &about, &recording, &err));
	assert_int_equal(mkfifo(small_path("fifo"), 0600), 0);
	assert_false(sf_recording_create(small_path("fifo"), &about, &recording, &err));
	assert_non_null(strstr(err.text, "regular file"));

	write_file(small_path("a.sfr"), "");
	recording = small_start(small_path("a.sfr"));
	assert_false(sf_recording_create(small_path("a.sfr"), &about, &other, &err));
	assert_non_null(strstr(err.text, "another stillframe"));
	small_thread(recording, 101, "old");
	small_finish(recording);
	assert_int_equal(small_query(small_path("a.sfr"), "SELECT count(*) FROM threads"), 1);
	small_finish(small_start(small_path("a.sfr")));
	assert_int_equal(small_query(small_path("a.sfr"), "SELECT count(*) FROM threads"), 0);
}

static const char *name_of(const struct sf_profile *profile, uint32_t node)
{
	return sf_profile_frame_name(profile, profile->nodes[node].frame);
}

/* In the profile only: the file, and what it says of itself, stay. */
static void unfinished_ones_are_named_while_they_are_read(void **state)
{
	const char *path = small_path("a.sfr");
	struct sf_recording *recording = small_start(path);
	uint32_t thread = small_thread(recording, 101, "t");
	struct sf_profile *profile;
	struct sf_error err = { 0 };
	(void)state;

	small_sample(recording, 1, thread, SMALL_STACK(recording, SF_END_ROOT, "[futex]", 1, 3),
		     SF_STATE_BLOCKED, 0, 5);
	small_sample(recording, 2, thread, SMALL_STACK(recording, SF_END_ROOT, NULL, 3, 1),
		     SF_STATE_RUNNING, 5, 5);
	assert_true(sf_recording_tick(recording, SMALL_START_NS + 1500 * (uint64_t)MS, &err));
	profile = small_load_named(path);
	assert_true(profile->being_written); /* it gets its names when it is finished */
	assert_non_null(strstr(sf_profile_cut(profile), "still being recorded"));
	assert_string_equal(name_of(profile, 1), "[unknown in libwork.so]");
	sf_profile_destroy(profile);
	sf_recording_abandon(recording);

	for (unsigned round = 0; round < 2; round++) {
		profile = small_load_named(path);
		assert_false(profile->complete);
		assert_false(profile->being_written);
		assert_non_null(strstr(sf_profile_cut(profile), "cut short"));
		assert_string_equal(name_of(profile, 1), "fn1");
		assert_string_equal(name_of(profile, 2), "fn2");
		assert_string_equal(name_of(profile, 3), "fn3");
		assert_string_equal(name_of(profile, 4), "[futex]");
		assert_string_equal(name_of(profile, profile->samples[1].node), "fn1");
		assert_true(profile->frames[profile->nodes[3].frame].inlined);
		assert_int_equal(profile->frames[profile->nodes[3].frame].line, 33);
		assert_int_equal(profile->duration_ns, 1500 * (uint64_t)MS);
		assert_int_equal(profile->n_samples, 2);
		sf_profile_destroy(profile);
	}
	profile = small_load(path);
	assert_string_equal(name_of(profile, 1), "[unknown in libwork.so]");
	sf_profile_destroy(profile);
	assert_int_equal(small_query(path, "SELECT complete FROM session"), 0);
	assert_int_equal(small_query(path, "SELECT count(*) FROM functions"), 0);
}

/* What was recorded up to each burst: the next one comes after half of that, a tenth of a second at least and a second at most. */
static void first_bursts_come_soon(void **state)
{
	static const unsigned bursts_ms[] = { 100, 200, 300, 450, 675, 1013, 1520, 2280, 3280, 4280 };
	const char *path = small_path("a.sfr");
	struct sf_recording *recording = small_start(path);
	uint32_t thread = small_thread(recording, 101, "t");
	struct sf_error err;
	unsigned now_ms = 0;
	(void)state;

	for (unsigned i = 0; i < sizeof(bursts_ms) / sizeof(*bursts_ms); i++) {
		small_sample(recording, now_ms, thread, 0, SF_STATE_RUNNING, 1, 1);
		for (; small_query(path, "SELECT count(*) FROM samples") == i; now_ms++)
			assert_true(sf_recording_tick(recording, SMALL_START_NS + now_ms * (uint64_t)MS, &err));
		assert_int_equal(now_ms - 1, bursts_ms[i]);
	}
	small_finish(recording);
}

static void a_reader_delays_but_costs_nothing(void **state)
{
	const char *path = small_path("a.sfr");
	struct sf_recording *recording = small_start(path);
	uint32_t thread = small_thread(recording, 101, "t");
	struct sf_error err;
	sqlite3 *reader;
	(void)state;

	assert_int_equal(sqlite3_open_v2(path, &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT * FROM session", NULL, NULL, NULL),
			 SQLITE_OK);
	for (unsigned i = 0; i < 30000; i++) /* more than one burst in a second, too */
		small_sample(recording, i / 8, thread, 0, SF_STATE_RUNNING, 1, 1);
	assert_true(sf_recording_tick(recording, SMALL_START_NS + 9000 * (uint64_t)MS, &err));
	assert_int_equal(small_query(path, "SELECT count(*) FROM samples"), 0);
	sqlite3_close(reader);
	assert_true(sf_recording_tick(recording, SMALL_START_NS + 11000 * (uint64_t)MS, &err));
	assert_int_equal(small_query(path, "SELECT count(*) FROM samples"), 30000);
	small_finish(recording);
}

/* The data that a child, which is going to be killed, has handed to the writer, and at which of its times. */
struct progress {
	_Atomic unsigned accepted;
};

#define FAKE_SECOND 1000u /* samples in a second of the child's time, which runs fast */

static void write_until_killed(const char *path, struct progress *progress)
{
	struct sf_recording *recording = small_start(path);
	uint32_t thread = small_thread(recording, 101, "t");

	for (unsigned i = 0;; i++) {
		unsigned functions[] = { 1 + i % 7, 1 + i / 7 % 11, 1 + i / 77 % 1000, 0 };

		small_sample(recording, i, thread, small_stack(recording, SF_END_ROOT, NULL,
							       functions), SF_STATE_RUNNING, 1, 1);
		sf_recording_hold(recording, i);
		progress->accepted = i + 1;
	}
}

static void check_killed(const char *path, unsigned accepted)
{
	struct sf_profile *profile = small_load(path);

	assert_false(profile->complete);
	assert_true(profile->n_samples + FAKE_SECOND >= accepted);
	for (size_t i = 0; i < profile->n_samples; i++)
		assert_int_equal(profile->samples[i].time_ns, i * MS);
	assert_int_equal(small_read(path, "SELECT count(*) FROM samples"), profile->n_samples);
	sf_profile_destroy(profile);
	small_check(path);
}

/* Whether there is something behind the database. */
static bool is_in_a_write(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	return small_read(path, "SELECT page_count * 4096 FROM pragma_page_count") != status.st_size;
}

static void a_kill_costs_a_second_at_most(void **state)
{
	const char *path = small_path("k.sfr");
	struct progress *progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const unsigned n = is_long_form() ? 60 : 15;
	unsigned in_a_write = 0;
	(void)state;

	assert_true(progress != MAP_FAILED);
	srandom(1);
	for (unsigned round = 0; round < n; round++) {
		int status;
		pid_t pid;

		progress->accepted = 0;
		pid = fork();
		if (pid == 0) {
			write_until_killed(path, progress);
			_exit(1);
		}
		while (progress->accepted == 0)
			usleep(100);
		usleep((useconds_t)(random() % 30000));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		check_killed(path, progress->accepted);
		in_a_write += is_in_a_write(path);
	}
	print_message("killed %u times, %u of them in the middle of a write\n", n, in_a_write);
	munmap(progress, sizeof(*progress));
}

/* Half of a sample's CPU time is given to the one before, while that one is not in the file. */
static void half_is_given_to_the_one_before(void **state)
{
	const char *path = small_path("h.sfr");
	struct sf_recording *recording = small_start(path);
	const uint32_t thread = small_thread(recording, 101, "t");
	struct sf_recording_sample sample = { .time_ns = SMALL_START_NS, .thread = thread, .cpu_ns = 4 * MS, .wall_ns = 5 * MS, .ticks = 1 };
	struct sf_recording_row row = { 0 };
	struct sf_recording_totals totals;
	struct sf_error err;
	(void)state;

	sf_recording_give_half(recording, &row, &sample); /* there is none */
	assert_int_equal(sample.cpu_ns, 4 * MS);
	row = sf_recording_next_row(recording);
	assert_true(sf_recording_sample(recording, &sample, &err));
	sf_recording_give_half(recording, &row, &sample);
	assert_int_equal(sample.cpu_ns, 2 * MS);
	assert_int_equal(sample.wall_ns, 3 * MS);
	row = sf_recording_next_row(recording);
	assert_true(sf_recording_sample(recording, &sample, &err));
	sf_recording_totals(recording, &totals);
	assert_int_equal(totals.cpu_seen_ns, 8 * MS);
	assert_true(sf_recording_tick(recording, SMALL_START_NS + 2000 * MS, &err)); /* now they are in the file */
	sample.cpu_ns = 4 * MS;
	sf_recording_give_half(recording, &row, &sample);
	assert_int_equal(sample.cpu_ns, 4 * MS);
	small_finish(recording);
	assert_int_equal(small_query(path, "SELECT min(cpu_ns) * 1000 + max(cpu_ns) FROM samples"), 2 * MS * 1000 + 6 * MS);
	assert_int_equal(small_query(path, "SELECT sum(wall_ns) FROM samples"), 10 * MS);
}

/* Writes until the disk is full, and returns how many samples were handed over by then. */
static unsigned write_until_full(struct sf_recording *recording, uint32_t thread,
				 struct sf_error *err)
{
	for (unsigned i = 0; i < 1000000; i++) {
		const struct sf_recording_sample sample = {
			.time_ns = SMALL_START_NS + (uint64_t)i * MS, .thread = thread,
			.cpu_ns = MS, .wall_ns = MS, .ticks = 1,
		};

		if (!sf_recording_sample(recording, &sample, err))
			return i + 1;
	}
	fail_msg("the disk was never full");
	return 0;
}

static void a_full_disk_is_an_error_and_no_loss(void **state)
{
	const char *path = small_path("f.sfr");
	struct sf_recording *recording = small_start(path);
	uint32_t thread = small_thread(recording, 101, "t");
	struct rlimit before, small;
	struct sf_error err = { 0 };
	unsigned n;
	(void)state;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 300000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	n = write_until_full(recording, thread, &err);
	assert_int_equal(err.code, SF_E_SYSTEM);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);

	/* Rows in the file are whole, and rows that are not there yet are still at hand. */
	assert_int_equal(small_query(path, "SELECT integrity_check = 'ok' FROM "
				     "pragma_integrity_check"), 1);
	assert_true(small_query(path, "SELECT count(*) FROM samples") < n);
	small_finish(recording);
	assert_int_equal(small_query(path, "SELECT count(*) FROM samples"), n);
}

/* In a child: a tmpfs of its own. Exit status 77: may not mount. */
static int fill_tmpfs(const char *folder)
{
	struct sf_recording *recording;
	struct sf_error err = { 0 };
	char path[128];

	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", folder, "tmpfs", 0, "size=300k") != 0)
		return 77;
	snprintf(path, sizeof(path), "%s/t.sfr", folder);
	recording = small_start(path);
	write_until_full(recording, small_thread(recording, 101, "t"), &err);
	if (!strstr(err.text, "full") || !strstr(err.text, "Make room"))
		return 1;
	sf_recording_abandon(recording);
	sf_profile_destroy(small_load(path));
	return small_query(path, "SELECT count(*) > 1000 FROM samples") == 1 ? 0 : 2;
}

static void a_full_tmpfs_says_so(void **state)
{
	const char *folder = small_path("mount");
	pid_t pid;
	int status;
	(void)state;

	assert_int_equal(mkdir(folder, 0700), 0);
	pid = fork();
	if (pid == 0)
		_exit(fill_tmpfs(folder));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(rmdir(small_path("mount")), 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("skipped: may not mount a tmpfs here\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, small_folder_make, small_folder_remove)
	const struct CMUnitTest tests[] = {
		TEST(what_goes_in_comes_out),
		TEST(it_begins_after_the_preparations),
		TEST(inlined_calls_become_nodes),
		TEST(names_come_in_rounds),
		TEST(a_stack_is_one_number),
		TEST(a_module_nobody_told_of_is_no_damage),
		TEST(a_tid_is_a_new_thread_after_its_end),
		TEST(a_first_thread_goes_on_after_an_exec),
		TEST(an_unnamed_process_has_the_name_of_its_first_thread),
		TEST(a_process_begins_with_its_first_thread),
		TEST(a_command_line_outlives_its_process),
		TEST(a_pid_that_is_used_again_is_another_process),
		TEST(ticks_are_samples_and_losses),
		TEST(a_thread_without_losses_is_small),
		TEST(losses_beyond_the_limit_are_of_no_thread),
		TEST(holds_are_a_histogram),
		TEST(every_time_is_in_its_bucket),
		TEST(hostile_names_are_made_text),
		TEST(only_recordings_are_replaced),
		TEST(unfinished_ones_are_named_while_they_are_read),
		TEST(first_bursts_come_soon),
		TEST(a_reader_delays_but_costs_nothing),
		TEST(a_kill_costs_a_second_at_most),
		TEST(half_is_given_to_the_one_before),
		TEST(a_full_disk_is_an_error_and_no_loss),
		TEST(a_full_tmpfs_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

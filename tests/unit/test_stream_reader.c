/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From records to a sink, and from there to a recording: whose serial, image and label each one
 * is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/signal/stream_reader.h"
#include "elf/facts.h"
#include "folder.h"
#include "os/clock.h"
#include "session/recorder.h"
#include "small_recording.h"
#include "stream/check.h"
#include "stream_builder.h"

static struct stream_builder built;
static const uint64_t frames[3][2] = { { 0x1010, 1 }, { 0x2020, 2 }, { 0x3030, 7 } };

static void feed_all(struct sf_feed *feed, const struct sf_sink *sink)
{
	struct sf_error err = { 0 };

	for (size_t at = sizeof(struct sf_stream_file_header); at < built.size;) {
		const struct sf_record_header *record = (const void *)(built.bytes + at);

		assert_null(sf_stream_check(record, record->size));
		if (!sf_feed_record(feed, sink, record, &err))
			fail_msg("%s", err.text);
		at += record->size;
	}
}

/*
 * --- a sink that writes down what it is told
 * -----------------------------------------------------
 */

static char told[4096];

static bool tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static bool tell(const char *format, ...)
{
	size_t used = strlen(told);
	va_list args;

	va_start(args, format);
	vsnprintf(told + used, sizeof(told) - used, format, args);
	va_end(args);
	return true;
}

static bool on_process(void *arg, int32_t pid, int32_t parent, struct sf_error *err)
{
	(void)arg, (void)err;
	return tell("process %d of %d\n", pid, parent);
}

static bool on_thread(void *arg, uint32_t serial, int32_t pid, int32_t tid, const char *name,
		      uint64_t time_ns, struct sf_error *err)
{
	(void)arg, (void)err, (void)time_ns;
	return tell("thread %u: %d/%d %s\n", serial, pid, tid, name);
}

static bool on_thread_end(void *arg, uint32_t serial, uint64_t time_ns, uint64_t cpu_ns,
			  struct sf_error *err)
{
	(void)arg, (void)err, (void)time_ns;
	return tell("end %u: %u ms\n", serial, (unsigned)(cpu_ns / STREAM_MS));
}

static bool on_trace(void *arg, uint32_t serial, const struct sf_trace *trace,
		     const struct sf_seen *seen, const struct sf_weight *weight,
		     struct sf_error *err)
{
	(void)arg, (void)err;
	tell("trace %u: %u frames, %s=%s", serial, trace->n_frames,
	     seen->label_key ? seen->label_key : "",
	     seen->label_value ? seen->label_value : "");
	if (seen->second_key)
		tell(", %s=%s", seen->second_key, seen->second_value);
	if (weight->amount)
		tell(", %u of it", (unsigned)weight->amount);
	return tell("\n");
}

static bool on_again(void *arg, uint32_t serial, uint64_t time_ns, const struct sf_weight *weight,
		     struct sf_error *err)
{
	(void)arg, (void)err, (void)time_ns, (void)weight;
	return tell("again %u\n", serial);
}

static bool on_loss(void *arg, uint32_t serial, enum sf_loss cause, const struct sf_weight *weight,
		    struct sf_error *err)
{
	(void)arg, (void)err;
	tell("loss %u: %s %u", serial, sf_loss_word(cause), weight->ticks);
	if (weight->amount)
		tell(", %u of it", (unsigned)weight->amount);
	return tell("\n");
}

static bool on_measure(void *arg, const struct sf_measure *measure, struct sf_error *err)
{
	(void)arg, (void)err;
	return tell("measure %s of %s: %d %u\n", measure->name, measure->unit, measure->is_counted, (unsigned)measure->counted);
}

static const struct sf_sink teller = {
	.process = on_process,
	.thread = on_thread,
	.thread_end = on_thread_end,
	.trace = on_trace,
	.again = on_again,
	.loss = on_loss,
	.measure = on_measure,
};

static void serials_are_the_sessions(void **state)
{
	struct sf_feed first, second;
	struct sf_error err;
	struct sf_feeds feeds = { 0 };
	(void)state;

	told[0] = 0;
	assert_true(sf_feed_init(&first, 0, &feeds, &err));
	assert_true(sf_feed_init(&second, 77, &feeds, &err));
	stream_start(&built);
	stream_process(&built, 42, "a", "a");
	stream_thread(&built, 9, 42, "main");
	stream_thread(&built, 5, 43, "other");
	feed_all(&first, &teller);
	feed_all(&second, &teller);
	stream_start(&built);
	stream_thread(&built, 5, 43, "renamed");
	stream_sample(&built, 5, 1, 1, 0, frames, 3);
	stream_again(&built, 9, 2, 1);
	stream_thread_end(&built, 5, 3, 4);
	stream_thread_end(&built, 5, 3, 4);
	feed_all(&first, &teller);
	assert_true(sf_feed_finish(&first, &teller, &err));
	assert_string_equal(told, "process 42 of 1\nthread 1: 42/42 main\nthread 2: 42/43 other\n"
				  "process 77 of 1\nthread 3: 77/42 main\nthread 4: 77/43 other\n"
				  "thread 2: 42/43 renamed\ntrace 2: 3 frames, =\nagain 1\n"
				  "end 2: 4 ms\nend 1: 0 ms\n");
	sf_feed_deinit(&first);
	sf_feed_deinit(&second);
}

static uint64_t traced_ns;

static bool on_timed_trace(void *arg, uint32_t serial, const struct sf_trace *trace, const struct sf_seen *seen,
			   const struct sf_weight *weight, struct sf_error *err)
{
	traced_ns = seen->time_ns;
	return on_trace(arg, serial, trace, seen, weight, err);
}

/* What sf_feed_record makes of the time of a sample. */
static uint64_t time_in(int32_t given_pid, uint64_t start_ns, uint64_t start_unix_ns, uint64_t sample_ns)
{
	const struct sf_sink sink = { .process = on_process, .thread = on_thread, .trace = on_timed_trace, .thread_end = on_thread_end };
	struct sf_stream_process *process;
	struct sf_stream_sample *sample;
	struct sf_feeds feeds = { 0 };
	struct sf_error err;
	struct sf_feed feed;

	assert_true(sf_feed_init(&feed, given_pid, &feeds, &err));
	stream_start(&built);
	process = (void *)(built.bytes + built.size);
	stream_process(&built, 42, "a", "a");
	process->time_ns = start_ns;
	process->unix_ns = start_unix_ns;
	stream_thread(&built, 9, 42, "main");
	sample = (void *)(built.bytes + built.size);
	stream_sample(&built, 9, 1, 1, 0, frames, 3);
	sample->time_ns = sample_ns;
	feed_all(&feed, &sink);
	sf_feed_deinit(&feed);
	return traced_ns;
}

/* Of a sample 1 ms after the start of a process whose clock is so far behind. */
static uint64_t time_of_sample(int32_t given_pid, int64_t behind_ns)
{
	const uint64_t now_ns = sf_now_ns(), unix_ns = sf_unix_now_ns();

	return time_in(given_pid, STREAM_START_NS, unix_ns - now_ns + STREAM_START_NS + (uint64_t)behind_ns, STREAM_START_NS + 1000000);
}

/* A process in another time namespace (time_namespaces(7)). What a file says stays as it is, and so do small differences. */
static void times_are_by_our_clock(void **state)
{
	const uint64_t as_written_ns = time_of_sample(0, 0);
	const int64_t hour_ns = INT64_C(3600000000000);
	uint64_t ahead_ns;
	(void)state;

	assert_int_equal(time_of_sample(42, 0), as_written_ns);
	assert_int_equal(time_of_sample(42, 500000000), as_written_ns);
	assert_int_equal(time_of_sample(0, hour_ns), as_written_ns);
	ahead_ns = time_of_sample(42, hour_ns) - as_written_ns;
	assert_in_range(ahead_ns, hour_ns - 100000000, hour_ns + 100000000);
	assert_int_equal(time_of_sample(42, -hour_ns), 0); /* it would be before our clock began */
}

/* Numbers that a record may have, and no clock: their sums fit into no integer. */
static void times_of_no_clock_have_a_limit(void **state)
{
	const uint64_t most_ns = UINT64_C(1) << 61;
	(void)state;

	assert_int_equal(time_in(42, 0, INT64_MAX, most_ns), most_ns);
	assert_int_equal(time_in(42, most_ns, 0, 0), 0);
}

static void what_is_unknown_is_tolerated(void **state)
{
	struct sf_feed feed;
	struct sf_error err;
	struct sf_feeds feeds = { 0 };
	(void)state;

	told[0] = 0;
	assert_true(sf_feed_init(&feed, 1, &feeds, &err));
	stream_start(&built);
	stream_sample(&built, 3, 1, 1, 0, frames, 3);
	stream_again(&built, 3, 1, 1);
	stream_loss(&built, 3, SF_LOSS_DEAF, 2);
	stream_thread_end(&built, 3, 1, 1);
	stream_thread(&built, 3, 8, "late");
	stream_sample(&built, 3, 1, 1, 99, frames, 1);
	stream_label(&built, 99, "trace", "x");
	stream_label(&built, 99, "trace", "another");
	stream_sample(&built, 3, 1, 1, 99, frames, 0);
	stream_end(&built, 4, 5);
	feed_all(&feed, &teller);
	assert_true(feed.ended);
	assert_true(sf_feed_lost(&feed, &teller, 5, &err)); /* known already */
	assert_true(sf_feed_lost(&feed, &teller, 6, &err));
	assert_string_equal(told, "loss 0: ring-full 1\nloss 0: ring-full 1\nloss 0: deaf 2\n"
				  "thread 1: 1/8 late\ntrace 1: 1 frames, =\n"
				  "trace 1: 0 frames, trace=x\nloss 0: ring-full 5\n"
				  "loss 0: ring-full 1\n");
	sf_feed_deinit(&feed);
}

/* Two processes count the same event: it is one measure, and its count is the sum. */
static void events_have_amounts_and_labels(void **state)
{
	struct sf_feed first, second;
	struct sf_error err;
	struct sf_feeds feeds = { 0 };
	(void)state;

	told[0] = 0;
	assert_true(sf_feed_init(&first, 1, &feeds, &err));
	assert_true(sf_feed_init(&second, 2, &feeds, &err));
	stream_start(&built);
	stream_measure(&built, "gc", false, 0);
	stream_thread(&built, 3, 8, "main");
	stream_event(&built, 3, 5, "reason", "induced", "56", frames, 2);
	stream_event(&built, 3, 1, "", "", "", frames, 0);
	stream_event(&built, 4, 2, "", "", "", frames, 1);
	stream_event_loss(&built, 3, SF_LOSS_REST, 9);
	stream_measure(&built, "gc", true, 17);
	feed_all(&first, &teller);
	stream_start(&built);
	stream_measure(&built, "gc", false, 0);
	feed_all(&second, &teller);
	assert_true(sf_feeds_finish(&feeds, &teller, &err)); /* the second one's count is not known yet */
	stream_start(&built);
	stream_measure(&built, "gc", true, 3);
	feed_all(&second, &teller);
	assert_true(sf_feeds_finish(&feeds, &teller, &err));
	assert_string_equal(told, "measure gc of events: 0 0\nthread 1: 1/8 main\n"
				  "trace 1: 2 frames, reason=induced, size=56, 5 of it\ntrace 1: 0 frames, =, 1 of it\n"
				  "loss 0: ring-full 1, 2 of it\nloss 1: rest 1, 9 of it\n"
				  "measure gc of events: 1 20\n");
	sf_feed_deinit(&first);
	sf_feed_deinit(&second);
}

static bool is_refused(struct sf_feed *feed)
{
	const struct sf_record_header *record = (const void *)stream_last(&built);
	struct sf_error err = { 0 };

	assert_null(sf_stream_check(record, record->size));
	return !sf_feed_record(feed, &teller, record, &err) && err.code == SF_E_INPUT;
}

/* Another event, an event where none is counted, and amounts beyond all bounds. */
static void hostile_events_end_the_stream(void **state)
{
	struct sf_feed feed;
	struct sf_error err;
	struct sf_feeds feeds = { 0 };
	bool refused = false;
	(void)state;

	told[0] = 0;
	assert_true(sf_feed_init(&feed, 1, &feeds, &err));
	stream_start(&built);
	stream_event(&built, 3, 5, "", "", "", frames, 0);
	assert_true(is_refused(&feed));
	stream_event_loss(&built, 3, SF_LOSS_REST, 9);
	assert_true(is_refused(&feed));
	stream_measure(&built, "gc", false, 0);
	assert_false(is_refused(&feed));
	stream_measure(&built, "jit", false, 0);
	assert_true(is_refused(&feed));
	stream_event_loss(&built, 3, SF_LOSS_REST, UINT64_C(1) << 61);
	for (int i = 0; i < 4 && !refused; i++)
		refused = is_refused(&feed);
	assert_true(refused);
	sf_feed_deinit(&feed);
}

/* After an exec the numbers start anew, and mean something else. */
static void another_program_starts_anew(void **state)
{
	struct sf_feed feed;
	struct sf_error err;
	struct sf_feeds feeds = { 0 };
	(void)state;

	told[0] = 0;
	assert_true(sf_feed_init(&feed, 0, &feeds, &err));
	stream_start(&built);
	for (int i = 0; i < 2; i++) {
		stream_process(&built, 42, "a", "a");
		stream_thread(&built, 1, 42, "main");
		stream_label(&built, 1, "k", i ? "new" : "old");
		stream_sample(&built, 1, 1, 1, 1, frames, 1);
	}
	feed_all(&feed, &teller);
	assert_string_equal(told, "process 42 of 1\nthread 1: 42/42 main\ntrace 1: 1 frames, k=old\n"
				  "end 1: 1 ms\n" /* what its samples add up to: no record says more */
				  "process 42 of 1\nthread 2: 42/42 main\ntrace 2: 1 frames, k=new\n");
	sf_feed_deinit(&feed);
}

static void sums_do_not_overflow(void **state)
{
	struct sf_feed feed;
	struct sf_error err = { 0 };
	struct sf_feeds feeds = { 0 };
	bool fine = true;
	(void)state;

	assert_true(sf_feed_init(&feed, 1, &feeds, &err));
	stream_start(&built);
	stream_thread(&built, 1, 1, "main");
	feed_all(&feed, &teller);
	stream_sample(&built, 1, 1, 1, 0, frames, 1);
	((struct sf_stream_sample *)stream_last(&built))->cpu_ns = UINT64_C(1) << 61;
	for (unsigned i = 0; i < 4 && fine; i++) {
		told[0] = 0;
		assert_null(sf_stream_check(stream_last(&built), stream_last(&built)->size));
		fine = sf_feed_record(&feed, &teller, stream_last(&built), &err);
	}
	assert_false(fine);
	assert_int_equal(err.code, SF_E_INPUT);
	sf_feed_deinit(&feed);
}

/*
 * --- the service thread
 * ----------------------------------------------------------------------------------
 */

struct kept {
	struct sf_recording *recording;
	struct sf_recorder recorder;
	struct sf_sink sink;
	struct sf_feeds feeds;
};

static void start(struct kept *kept, const char *path, bool offline, uint32_t max_depth)
{
	struct sf_error err = { 0 };
	const struct sf_recording_about about = {
		.command = "x", .engine = "signal", .host = "", .version = "",
		.start_unix_ns = 1, .start_monotonic_ns = STREAM_START_NS,
		.arch = sf_arch_by_machine(62),
	};

	memset(&kept->feeds, 0, sizeof(kept->feeds));
	if (!sf_recording_create(path, &about, &kept->recording, &err))
		fail_msg("%s", err.text);
	assert_true(sf_recorder_init(&kept->recorder, kept->recording, max_depth, &err));
	kept->recorder.offline = offline;
	kept->sink = sf_recorder_sink(&kept->recorder);
}

static void finish(struct kept *kept)
{
	struct sf_error err;

	assert_true(sf_recording_finish(kept->recording, 0, &err));
	sf_recorder_deinit(&kept->recorder);
}

static void feed_one(struct kept *kept)
{
	struct sf_feed feed;
	struct sf_error err;

	assert_true(sf_feed_init(&feed, 0, &kept->feeds, &err));
	feed_all(&feed, &kept->sink);
	assert_true(sf_feed_finish(&feed, &kept->sink, &err));
	sf_feed_deinit(&feed);
}

/*
 * Image 1 of one process is image 2 of the other, and of its next program another file
 * altogether.
 */
static void image_numbers_are_each_process_s_own(void **state)
{
	const char *path = small_path("images.sfr");
	const uint64_t one[1][2] = { { 0x1010, 1 } }, two[1][2] = { { 0x1010, 2 } };
	struct kept kept;
	(void)state;

	start(&kept, path, true, 64);
	stream_start(&built);
	stream_process(&built, 42, "a", "a --fast");
	stream_thread(&built, 1, 42, "main");
	stream_image(&built, 1, "/opt/a.so", "aaaa", 4);
	stream_image(&built, 2, "/opt/b.so", "bbbb", 4);
	stream_sample(&built, 1, 1, 1, 0, one, 1);
	feed_one(&kept);
	stream_start(&built);
	stream_process(&built, 43, "b", "");
	stream_thread(&built, 1, 43, "main");
	stream_image(&built, 1, "/opt/b.so", "bbbb", 4);
	stream_image(&built, 2, "/opt/a.so", "aaaa", 4);
	stream_sample(&built, 1, 1, 10, 0, two, 1);
	stream_process(&built, 43, "c", "");
	stream_thread(&built, 1, 43, "main");
	stream_image(&built, 1, "/opt/c.so", "cccc", 4);
	stream_sample(&built, 1, 1, 100, 0, one, 1);
	stream_sample(&built, 1, 1, 1000, 0, two, 1); /* no longer known */
	feed_one(&kept);
	finish(&kept);
#define CPU_IN "SELECT sum(cpu_ns) / 1000000 FROM samples s JOIN stacks k ON k.id = s.stack "      \
	       "JOIN frames f ON f.id = k.frame LEFT JOIN modules m ON m.id = f.module WHERE "
	path = small_path("images.sfr");
	assert_int_equal(small_query(path, CPU_IN "m.path = '/opt/a.so'"), 11);
	assert_int_equal(small_query(path, CPU_IN "m.path = '/opt/c.so'"), 100 + 1000 / 2); /* half of the next one's (sf_recording_give_half) */
	assert_int_equal(small_query(path, CPU_IN "f.module = 0 AND f.address = 0x1010"), 1000 / 2);
	assert_int_equal(small_query(path, "SELECT count(*) FROM modules WHERE path = '/opt/b.so'"), 1);
	assert_int_equal(small_query(path, "SELECT count(*) FROM processes WHERE name = 'c'"), 1);
	assert_int_equal(small_query(path, "SELECT count(*) FROM processes WHERE "
					   "command_line = 'a --fast'"), 1);
	assert_int_equal(small_query(path, "SELECT sum(count) FROM holds"), 4);
}

/* The same path with another build id is another file. */
static void a_rebuilt_file_is_another_image(void **state)
{
	const uint64_t both[2][2] = { { 0x1010, 1 }, { 0x1010, 2 } };
	struct kept kept;
	(void)state;

	start(&kept, small_path("rebuilt.sfr"), true, 64);
	stream_start(&built);
	stream_process(&built, 42, "a", "a");
	stream_thread(&built, 1, 42, "main");
	stream_image(&built, 1, "/opt/a.so", "aaaa", 4);
	stream_image(&built, 2, "/opt/a.so (deleted)", "bbbb", 4);
	stream_sample(&built, 1, 1, 1, 0, both, 2);
	feed_one(&kept);
	finish(&kept);
	assert_int_equal(small_query(small_path("rebuilt.sfr"),
				     "SELECT count(*) FROM modules WHERE path = '/opt/a.so' AND "
				     "note <> ''"), 2);
}

static void deep_traces_are_cut_and_say_so(void **state)
{
	struct kept kept;
	(void)state;

	start(&kept, small_path("deep.sfr"), true, 2);
	stream_start(&built);
	stream_process(&built, 42, "a", "a");
	stream_thread(&built, 1, 42, "main");
	stream_sample(&built, 1, 1, 1, 0, frames, 3);
	stream_sample(&built, 1, 2, 1, 0, frames, 2);
	feed_one(&kept);
	finish(&kept);
	assert_int_equal(small_query(small_path("deep.sfr"), "SELECT count(*) FROM samples s JOIN "
				     "ends e ON e.id = s.\"end\" WHERE e.word = 'depth'"), 1);
}

static void labels_waits_notes_and_repeats_are_kept(void **state)
{
	const char *path;
	struct kept kept;
	struct sf_stream_sample *asleep;
	(void)state;

	start(&kept, small_path("labels.sfr"), true, 64);
	stream_start(&built);
	stream_process(&built, 42, "a", "a");
	stream_thread(&built, 1, 42, "main");
	stream_label(&built, 1, "trace", "4bf9");
	stream_sample(&built, 1, 1, 1, 1, frames, 2);
	stream_sample(&built, 1, 2, 1, 0, frames, 2);
	stream_sample(&built, 1, 2, 0, 0, frames, 2); /* of no time, as by another walk */
	stream_sample(&built, 1, 2, 1, 0, frames, 2);
	asleep = (stream_sample(&built, 1, 3, 0, 1, frames, 2), (void *)stream_last(&built));
	asleep->state = SF_STATE_BLOCKED;
	asleep->syscall = 202;
	asleep->wall_ns = 5 * STREAM_MS;
	asleep->still_flags = SF_STILL_UNHELD;
	stream_again(&built, 1, 9, 6);
	stream_note(&built, "a blind\x1b spot");
	stream_note(&built, "a blind\x1b spot");
	feed_one(&kept);
	assert_string_equal(kept.recorder.notes, "a blind? spot\n");
	finish(&kept);
	path = small_path("labels.sfr");
	assert_int_equal(small_query(path, "SELECT cpu_ns FROM label_times WHERE key = 'trace' AND "
					   "value = '4bf9'"), STREAM_MS + STREAM_MS / 2);
	assert_int_equal(small_query(path, "SELECT wall_ns FROM label_times"), 12 * STREAM_MS + STREAM_MS / 2);
	assert_int_equal(small_query(path, "SELECT count(*) FROM samples WHERE label IS NULL"), 3);
	assert_int_equal(small_query(path, "SELECT sum(cpu_ns) FROM samples"), 3 * STREAM_MS);
	assert_int_equal(small_query(path, "SELECT count(*) FROM samples WHERE cpu_ns = 0 AND label IS NULL"), 1);
	assert_int_equal(small_query(path, "SELECT sum(unheld) FROM samples"), 2);
	assert_int_equal(small_query(path, "SELECT count(*) FROM frames WHERE label = '[futex]'"), 1);
	assert_int_equal(small_query(path, "SELECT count(*) FROM notes WHERE pid = 42"), 1);
}

/* A sample of 2 ms, in a frame of its own. */
static void give_trace(struct kept *kept, uint64_t address, bool since_last)
{
	struct sf_frame frame = { .pc = address };
	const struct sf_trace trace = { .frames = &frame, .n_frames = 1, .capacity = 1 };
	const struct sf_seen seen = { .time_ns = SMALL_START_NS + address, .syscall = SF_SYSCALL_NONE };
	const struct sf_weight weight = { .cpu_ns = 2 * STREAM_MS, .wall_ns = 2 * STREAM_MS, .ticks = 1, .since_last = since_last };
	struct sf_error err;

	assert_true(kept->sink.trace(kept->sink.arg, 1, &trace, &seen, &weight, &err));
}

/* Half of a sample's time is the one before's where both have the time since the last one. */
static void halves_are_of_two_that_have_the_time_since_the_last_one(void **state)
{
	struct kept kept;
	(void)state;

	start(&kept, small_path("halves.sfr"), true, 64);
	stream_start(&built);
	stream_process(&built, 42, "a", "a");
	stream_thread(&built, 1, 42, "main");
	feed_one(&kept);
	give_trace(&kept, 1, true);
	give_trace(&kept, 2, true);
	give_trace(&kept, 3, false); /* of a clock's period */
	give_trace(&kept, 4, true);
	give_trace(&kept, 5, true);
	finish(&kept);
	assert_int_equal(small_query(small_path("halves.sfr"), "SELECT group_concat(cpu_ns / 1000000, '') FROM (SELECT cpu_ns FROM samples ORDER BY id)"), 31231);
}

/* The mappings of this program, as its agent would say them. */
static size_t own_file(char path[256], uint8_t build_id[32])
{
	ssize_t length = readlink("/proc/self/exe", path, 255);
	size_t size;
	int fd;

	assert_true(length > 0);
	path[length] = 0;
	fd = open(path, O_RDONLY);
	sf_elf_build_id(fd, build_id, &size);
	close(fd);
	assert_true(size > 0);
	return size;
}

static const struct sf_image *image_at(const struct kept *kept, const char *path, unsigned nth)
{
	for (uint32_t i = 1; i <= sf_images_count(kept->recorder.walker.images); i++) {
		const struct sf_image *image = sf_images_get(kept->recorder.walker.images, i);

		if (strcmp(image->path, path) == 0 && !nth--)
			return image;
	}
	return NULL;
}

/*
 * A live process's files get their tables at once; one with another build id is not taken for it.
 */
static void files_are_found_by_build_id(void **state)
{
	const struct sf_image *image;
	uint8_t build_id[32];
	char path[256];
	size_t size = own_file(path, build_id);
	struct stat status;
	struct kept kept;
	(void)state;

	setenv("XDG_CACHE_HOME", small_path("cache"), 1);
	start(&kept, small_path("files.sfr"), false, 64);
	stream_start(&built);
	stream_process(&built, getpid(), "a", "a");
	stream_thread(&built, 1, getpid(), "main");
	assert_int_equal(stat(path, &status), 0);
	stream_image(&built, 1, path, build_id, size);
	((struct sf_stream_image *)stream_last(&built))->inode = status.st_ino;
	((struct sf_stream_image *)stream_last(&built))->device = status.st_dev;
	build_id[0] ^= 1;
	stream_image(&built, 2, path, build_id, size);
	stream_image(&built, 3, "[vdso]", "\1\2\3\4", 4);
	feed_one(&kept);
	image = image_at(&kept, path, 0);
	assert_non_null(image);
	assert_true(image->fd >= 0);
	assert_non_null(image->table.header);
	assert_int_equal(sf_image_numbers_find(&kept.recorder.image_numbers, getpid(), 1), image->number);
	image = image_at(&kept, path, 1);
	assert_non_null(image);
	assert_int_equal(image->fd, -1);
	assert_null(image->table.header);
	assert_string_not_equal(image->note, "");
	image = image_at(&kept, "[vdso]", 1); /* besides our own */
	assert_non_null(image);
	assert_int_equal(image->fd, -1);
	finish(&kept);
}

static int teardown(void **state)
{
	folder_remove(small_path("cache"));
	return small_folder_remove(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(serials_are_the_sessions),
		cmocka_unit_test(times_are_by_our_clock),
		cmocka_unit_test(times_of_no_clock_have_a_limit),
		cmocka_unit_test(what_is_unknown_is_tolerated),
		cmocka_unit_test(another_program_starts_anew),
		cmocka_unit_test(events_have_amounts_and_labels),
		cmocka_unit_test(hostile_events_end_the_stream),
		cmocka_unit_test(sums_do_not_overflow),
		cmocka_unit_test(image_numbers_are_each_process_s_own),
		cmocka_unit_test(a_rebuilt_file_is_another_image),
		cmocka_unit_test(deep_traces_are_cut_and_say_so),
		cmocka_unit_test(labels_waits_notes_and_repeats_are_kept),
		cmocka_unit_test(halves_are_of_two_that_have_the_time_since_the_last_one),
		cmocka_unit_test(files_are_found_by_build_id),
	};

	return cmocka_run_group_tests(tests, small_folder_make, teardown);
}

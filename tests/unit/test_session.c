/* SPDX-License-Identifier: Apache-2.0 */
/* A session from begin to end, with an engine and a look-up of names that are replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <unistd.h>

#include "os/clock.h"
#include "session/naming.h"
#include "session/session.h"
#include "small_recording.h"

bool __wrap_sf_session_name_all(struct sf_recording *recording, struct sf_images *images, struct sf_name_sources *sources,
				struct sf_error *err);

static unsigned n_named;

static bool open_nothing(const struct sf_capture_options *options, struct sf_capture **ret, struct sf_error *err)
{
	(void)options, (void)err;
	*ret = NULL;
	return true;
}

/* A thread that ends, with a loss: what an engine tells at its end. */
static bool run_one_thread(struct sf_capture *capture, const struct sf_sink *sink, struct sf_error *err)
{
	const struct sf_weight weight = { .ticks = 1, .cpu_ns = 5 * MS };

	(void)capture;
	return sink->thread(sink->arg, 1, getpid(), getpid(), "only", sf_now_ns(), err) &&
	       sink->loss(sink->arg, 1, SF_LOSS_LATE, &weight, err) &&
	       sink->thread_end(sink->arg, 1, sf_now_ns(), 7 * MS, err);
}

static void close_nothing(struct sf_capture *capture)
{
	(void)capture;
}

static const struct sf_engine engine = {
	.name = "none", .yields = SF_YIELDS_STACKS, .open = open_nothing, .run = run_one_thread, .close = close_nothing,
};

/* A stillframe that is killed here leaves this behind: all but the names, and marked as cut short. */
bool __wrap_sf_session_name_all(struct sf_recording *recording, struct sf_images *images, struct sf_name_sources *sources,
				struct sf_error *err)
{
	const char *path = small_path("a.sfr");

	(void)recording, (void)images, (void)sources, (void)err;
	n_named++;
	assert_int_equal(small_query(path, "SELECT complete FROM session"), 0);
	assert_true(small_query(path, "SELECT duration_ns FROM session") > 0);
	assert_int_equal(small_query(path, "SELECT cpu_counted_ns FROM threads WHERE end_ns NOT NULL"), 7 * MS);
	assert_int_equal(small_query(path, "SELECT cpu_ns FROM losses"), 5 * MS);
	return true;
}

static void what_was_recorded_is_in_the_file_before_its_names(void **state)
{
	struct sf_session_options options = { .engine = &engine, .capture.pid = getpid(), .capture.max_depth = 16, .command = "" };
	struct sf_session_result result;
	struct sf_error err = { 0 };

	small_folder_make(state);
	options.output = small_path("a.sfr");
	assert_true(sf_session_record(&options, &result, &err));
	assert_int_equal(n_named, 1);
	assert_int_equal(small_query(options.output, "SELECT complete FROM session"), 1);
	small_folder_remove(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_recorded_is_in_the_file_before_its_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

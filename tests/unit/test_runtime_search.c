/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a runtime is looked for, and when an attempt to attach is made. The drivers are this test's: only the first one
 * finds anything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "os/clock.h"
#include "runtime/runtimes.h"

#define PAUSE_NS 100u

static uint64_t now_ns;
static unsigned n_looks, n_attempts, n_asked;
static bool is_there, starts;
static const char *message;
static const struct sf_runtime object;
static struct sf_code_map map;
static struct sf_process process;
static struct sf_runtimes runtimes;

uint64_t __wrap_sf_now_ns(void);

uint64_t __wrap_sf_now_ns(void)
{
	return now_ns;
}

static void *create(void)
{
	return &now_ns;
}

static void destroy(void *state)
{
	(void)state;
}

static bool look(void *state, const struct sf_process *looked_at, struct sf_images *images)
{
	(void)state;
	(void)looked_at;
	(void)images;
	n_looks++;
	return is_there;
}

static const struct sf_runtime *attach(void *state, const struct sf_process *attached_to, struct sf_images *images,
				       const struct sf_reader *memory)
{
	(void)state;
	(void)attached_to;
	(void)images;
	(void)memory;
	n_attempts++;
	return starts ? NULL : &object;
}

static const char *news(void *state)
{
	const char *text = message;

	(void)state;
	n_asked++;
	message = NULL;
	return text;
}

static bool look_for_another(void *state, const struct sf_process *looked_at, struct sf_images *images)
{
	(void)state;
	(void)looked_at;
	(void)images;
	return false;
}

static const char *no_news(void *state)
{
	(void)state;
	return NULL;
}

#define ANOTHER { .create = create, .destroy = destroy, .look = look_for_another, .news = no_news }

extern const struct sf_runtime_driver sf_hotspot_driver, sf_coreclr_driver, sf_toy_driver;
const struct sf_runtime_driver sf_hotspot_driver = {
	.create = create,
	.destroy = destroy,
	.look = look,
	.attach = attach,
	.tries = { .pause_ns = PAUSE_NS, .n_easy = 2, .max_doublings = 1 },
	.news = news,
};
const struct sf_runtime_driver sf_coreclr_driver = ANOTHER;
const struct sf_runtime_driver sf_toy_driver = ANOTHER;

static int set_up(void **state)
{
	(void)state;
	n_looks = n_attempts = n_asked = 0;
	is_there = starts = false;
	message = NULL;
	now_ns = 1000;
	runtimes = (struct sf_runtimes){ 0 };
	process = (struct sf_process){ .map = &map, .refreshed_ns = 1 };
	return 0;
}

static bool prepare(void *arg, uint32_t slot, struct sf_reader *ret)
{
	(void)arg;
	(void)slot;
	*ret = (struct sf_reader){ 0 };
	return true;
}

static bool look_at(uint64_t ns)
{
	now_ns = ns;
	return sf_runtimes_look(&runtimes, &process, NULL, prepare, NULL);
}

static void test_a_map_is_looked_at_once(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 10; i++)
		assert_false(look_at(1000 + i * PAUSE_NS));
	assert_int_equal(n_looks, 1);
	process.refreshed_ns = 2;
	is_there = true;
	assert_true(look_at(5000));
	assert_int_equal(n_looks, 2);
	process.refreshed_ns = 3;
	assert_false(look_at(6000));
	assert_int_equal(n_looks, 2);
}

static void test_there_is_no_runtime_without_a_map(void **state)
{
	(void)state;
	is_there = true;
	process.map = NULL;
	assert_false(look_at(1000));
	assert_int_equal(n_looks, 0);
}

/* After each of the two easy attempts comes the pause, and after a later one twice that, and not more. */
static void test_one_that_starts_is_tried_again(void **state)
{
	static const uint64_t pauses[] = { PAUSE_NS, PAUSE_NS, 2 * PAUSE_NS, 2 * PAUSE_NS };
	uint64_t ns = 1000;

	(void)state;
	is_there = starts = true;
	assert_false(look_at(ns));
	for (unsigned i = 0; i < sizeof(pauses) / sizeof(*pauses); i++) {
		assert_false(look_at(ns + pauses[i] - 1));
		assert_int_equal(n_attempts, i + 1);
		ns += pauses[i];
		assert_false(look_at(ns));
		assert_int_equal(n_attempts, i + 2);
	}
	starts = false;
	assert_true(look_at(ns + 2 * PAUSE_NS));
	assert_ptr_equal(runtimes.attached[SF_RUNTIME_HOTSPOT], &object);
	assert_false(look_at(ns + 9 * PAUSE_NS));
	assert_int_equal(n_attempts, 6);
}

/* The attempt has shown that no other will do. */
static void test_one_that_is_refused_is_not_tried_again(void **state)
{
	(void)state;
	is_there = starts = true;
	assert_false(look_at(1000));
	is_there = false;
	assert_false(look_at(1000 + PAUSE_NS));
	assert_false(look_at(1000 + 2 * PAUSE_NS));
	assert_int_equal(n_attempts, 1);
	assert_int_equal(n_looks, 2);
}

static void test_news_come_from_looks_and_attempts(void **state)
{
	(void)state;
	assert_null(sf_runtimes_news(&runtimes));
	assert_int_equal(n_asked, 0);
	message = "of the look";
	look_at(1000);
	assert_string_equal(sf_runtimes_news(&runtimes), "of the look");
	assert_null(sf_runtimes_news(&runtimes));
	assert_null(sf_runtimes_news(&runtimes));
	assert_int_equal(n_asked, 2);
	process.refreshed_ns = 2;
	is_there = true;
	look_at(2000);
	message = "of the attempt";
	assert_string_equal(sf_runtimes_news(&runtimes), "of the attempt");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_map_is_looked_at_once, set_up),
		cmocka_unit_test_setup(test_there_is_no_runtime_without_a_map, set_up),
		cmocka_unit_test_setup(test_one_that_starts_is_tried_again, set_up),
		cmocka_unit_test_setup(test_one_that_is_refused_is_not_tried_again, set_up),
		cmocka_unit_test_setup(test_news_come_from_looks_and_attempts, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

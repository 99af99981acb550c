/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of engines (capture/engine.h), of each engine in the list; and whose options are accepted for which. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/dump.h"
#include "capture/choice/engines.h"
#include "os/task.h"

static void test_every_engine_is_whole(void **state)
{
	(void)state;
	for (size_t i = 0; sf_engines[i]; i++) {
		const struct sf_engine *engine = sf_engines[i];

		print_message("%s\n", engine->name);
		assert_ptr_equal(sf_engine_by_name(engine->name), engine);
		assert_non_null(engine->summary);
		assert_true(strcmp(engine->from, "inside") == 0 || strcmp(engine->from, "outside") == 0);
		assert_true(engine->yields & (SF_YIELDS_STILLS | SF_YIELDS_STACKS));
		assert_in_range(engine->reach, SF_REACHES_ONE, SF_REACHES_ALL);
		assert_non_null(engine->check);
		assert_non_null(engine->open);
		assert_non_null(engine->run);
		assert_non_null(engine->stop);
		assert_non_null(engine->close);
		assert_int_equal(engine->check_dump != NULL, engine->dump != NULL);
		engine->close(NULL);
	}
	assert_null(sf_engine_by_name("auto"));
	assert_null(sf_engine_by_name(""));
}

/* An engine is not chosen for more processes than it can watch, whether it works or not. */
static void test_more_than_an_engine_reaches(void **state)
{
	const int32_t more[] = { getpid() };
	const struct sf_capture_options several = { .pid = getpid(), .more = more, .n_more = 1 };
	const struct sf_capture_options all = { .all = true };
	struct sf_error passed;

	(void)state;
	for (size_t i = 0; sf_engines[i]; i++) {
		struct sf_error err = { 0 };

		if (sf_engines[i]->reach < SF_REACHES_SEVERAL)
			assert_null(sf_engine_choose(sf_engines[i], &several, &passed, &err));
		if (sf_engines[i]->reach < SF_REACHES_ALL) {
			assert_null(sf_engine_choose(sf_engines[i], &all, &passed, &err));
			assert_non_null(strstr(err.text, sf_engines[i]->name));
		}
	}
}

/* The value of an option. */
static const char *value_of(const struct sf_option *option)
{
	if (strcmp(option->name, SF_SETTING_EVENT) == 0)
		return "page-faults";
	return option->choices ? option->choices[0] : "1";
}

/* An event is what is to be recorded: no engine is chosen that would leave it out. The CPU clock is none. */
static void test_an_event_is_not_left_out(void **state)
{
	static const struct sf_setting event[] = { { SF_SETTING_EVENT, "page-faults" }, { NULL, NULL } };
	static const struct sf_setting clock[] = { { SF_SETTING_EVENT, "cpu-clock" }, { NULL, NULL } };
	const struct sf_capture_options options = { .pid = getpid(), .settings = event };
	struct sf_error err = { 0 };
	struct sf_error passed;

	(void)state;
	assert_string_equal(sf_setting_event(event), "page-faults");
	assert_null(sf_setting_event(clock));
	assert_null(sf_setting_event(NULL));
	assert_null(sf_engine_choose(sf_engine_by_name("ptrace"), &options, &passed, &err));
	assert_non_null(strstr(err.text, "the engine ptrace has no --event"));
}

/* The word of a runtime names an engine, which takes processes with that runtime only. */
static void test_a_runtime_in_the_place_of_an_engine(void **state)
{
	const struct sf_engine *engine = sf_engine_of_runtimes();
	const struct sf_capture_options all = { .all = true, .runtime = "coreclr" };
	const struct sf_capture_options here = { .pid = getpid(), .runtime = "coreclr" };
	struct sf_error passed, err = { 0 };

	(void)state;
	assert_non_null(engine);
	assert_null(sf_engine_by_name("coreclr"));
	assert_null(sf_engine_choose(engine, &all, &passed, &err));
	assert_string_equal(err.text, "the engine coreclr cannot sample all processes");
	assert_null(sf_engine_choose(engine, &here, &passed, &err));
	assert_non_null(strstr(err.text, "cannot be recorded by --engine coreclr: it has not loaded the runtime of .NET"));
}

static void test_every_option_once(void **state)
{
	const struct sf_option *all[SF_MAX_SETTINGS];
	const size_t n = sf_engine_options(all);

	(void)state;
	assert_true(n > 0 && n < SF_MAX_SETTINGS); /* else there is no room for one more */
	for (size_t i = 0; i < n; i++) {
		assert_non_null(all[i]->help);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(all[i]->name, all[j]->name);
	}
}

static bool has_option(const struct sf_engine *engine, const char *name)
{
	for (const struct sf_option *option = engine->options; option && option->name; option++) {
		if (strcmp(option->name, name) == 0)
			return true;
	}
	return false;
}

/* An event is for the engine that has it: a runtime's for the one that is inside, the kernel's for those outside. */
static void test_events_are_for_their_engines(void **state)
{
	static const struct { const char *event, *engine; bool fine; } cases[] = {
		{ "page-faults", "perf", true }, { "page-faults", "bpf", true }, { "page-faults", "signal", false },
		{ "exception", "perf", false }, { "exception/10", "bpf", false }, { "exception/10", "signal", true },
		{ "exception/x", "signal", false }, { "page-faults/x", "perf", false },
	};
	static const struct sf_setting exception[] = { { SF_SETTING_EVENT, "exception" }, { NULL, NULL } };
	const struct sf_capture_options options = { .pid = getpid(), .settings = exception };
	struct sf_error err = { 0 }, passed;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct sf_setting given[] = { { SF_SETTING_EVENT, cases[i].event }, { NULL, NULL } };

		assert_int_equal(sf_engine_check_settings(sf_engine_by_name(cases[i].engine), given, &err), cases[i].fine);
	}
	assert_true(sf_engine_check_settings(NULL, exception, &err));
	/* No agent is in this process: that is the reason, and not that perf has no such event. */
	assert_null(sf_engine_choose(NULL, &options, &passed, &err));
	assert_null(strstr(err.text, "perf"));
}

/*
 * Each option, alone, for each engine and for none: accepted where the engine's own table has it, and an event where
 * the engine has it.
 */
static void test_options_are_for_their_engines(void **state)
{
	const struct sf_option *all[SF_MAX_SETTINGS];
	const size_t n = sf_engine_options(all);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		const struct sf_setting given[] = { { all[i]->name, value_of(all[i]) }, { NULL, NULL } };
		const struct sf_setting absent[] = { { all[i]->name, NULL }, { NULL, NULL } };
		struct sf_error err;

		assert_string_equal(sf_setting(given, all[i]->name), given->value);
		assert_null(sf_setting(absent, all[i]->name));
		assert_null(sf_setting(NULL, all[i]->name));
		assert_int_equal(sf_engine_check_settings(NULL, given, &err), has_option(sf_engines[0], all[i]->name));
		for (size_t j = 0; sf_engines[j]; j++) {
			const bool is_event = strcmp(all[i]->name, SF_SETTING_EVENT) == 0;
			const bool takes = has_option(sf_engines[j], all[i]->name) && !(is_event && sf_engines[j]->has_event);

			memset(&err, 0, sizeof(err));
			assert_int_equal(sf_engine_check_settings(sf_engines[j], given, &err), takes);
			assert_int_equal(strstr(err.text, all[i]->name) != NULL, !takes);
			assert_true(sf_engine_check_settings(sf_engines[j], absent, &err));
		}
	}
}

/* The settings that a description is made of may all be absent. */
static void test_descriptions(void **state)
{
	(void)state;
	for (size_t i = 0; sf_engines[i]; i++) {
		char text[64] = "";

		if (!sf_engines[i]->describe)
			continue;
		sf_engines[i]->describe(NULL, text, sizeof(text));
		assert_true(*text);
	}
}

static void count_finding(void *arg, bool fine, const char *what, const char *advice)
{
	int *n = arg;

	assert_true(*what);
	assert_true(fine || advice);
	++*n;
}

static void test_findings(void **state)
{
	(void)state;
	for (size_t i = 0; sf_engines[i]; i++) {
		int n = 0;

		if (!sf_engines[i]->examine)
			continue;
		sf_engines[i]->examine(count_finding, &n);
		assert_true(n > 0);
	}
}

/* --- dump --- */

struct seen {
	int32_t still_tid; /* of the last still */
	unsigned n_threads;
	struct sf_dump_seen last;
	bool fail;
};

static struct sf_verdict on_still(void *arg, struct sf_still *still, struct sf_error *err)
{
	struct seen *seen = arg;

	(void)err;
	assert_null(still->map);
	assert_true(still->regs.pc != 0);
	seen->still_tid = still->tid;
	return (struct sf_verdict){ .end = SF_END_ROOT };
}

static bool on_thread(void *arg, const struct sf_dump_seen *thread, struct sf_error *err)
{
	struct seen *seen = arg;

	if (thread->loss < 0)
		assert_int_equal(seen->still_tid, thread->tid);
	seen->last = *thread;
	seen->n_threads++;
	return !seen->fail || sf_fail(err, SF_E_INPUT, "the sink fails");
}

static pid_t sleeper; /* 0: none */

static void start_sleeper(void)
{
	const pid_t pid = sleeper = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	for (int i = 0; i < 1000 && sf_task_letter(pid, pid) != 'S'; i++)
		usleep(1000);
}

/* Also after a failure. */
static int end_sleeper(void **state)
{
	(void)state;
	if (sleeper > 0) {
		kill(sleeper, SIGKILL);
		waitpid(sleeper, NULL, 0);
	}
	sleeper = 0;
	return 0;
}

static void dump_by(const struct sf_engine *engine, pid_t pid)
{
	struct seen seen = { 0 };
	const struct sf_dump_sink sink = { .arg = &seen, .still = on_still, .thread = on_thread };
	struct sf_dump_cost cost = { 7, 7 };
	struct sf_error err = { 0 };

	assert_true(engine->dump(pid, &sink, &cost, &err));
	assert_int_equal(seen.n_threads, 1);
	assert_int_equal(seen.last.tid, pid);
	assert_int_equal(seen.last.loss, -1);
	assert_int_equal(seen.last.state, SF_STATE_BLOCKED);
	assert_true(seen.last.unheld);
	assert_int_equal(seen.last.held_ns, 0);
	assert_int_equal(cost.longest_hold_ns, 0);
	assert_true(cost.looking_ns > 0);

	seen.fail = true;
	assert_false(engine->dump(pid, &sink, &cost, &err));
	assert_non_null(strstr(err.text, "the sink fails"));
}

/* A sleeping child: seen once, not held; and the sink's failure is the dump's. */
static void test_dumps(void **state)
{
	unsigned n = 0;

	(void)state;
	start_sleeper();
	for (size_t i = 0; sf_engines[i]; i++) {
		struct sf_error err = { 0 };

		if (!sf_engines[i]->check_dump || !sf_engines[i]->check_dump(sleeper, &err))
			continue;
		dump_by(sf_engines[i], sleeper);
		n++;
	}
	if (!n) {
		print_message("no engine may dump a child here\n");
		skip();
	}
}

/* A process that is gone: no engine dumps it, and the reason is that of the best one. */
static void test_no_dump_of_nothing(void **state)
{
	pid_t pid = fork();
	struct sf_error passed, err = { 0 };

	(void)state;
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	assert_null(sf_engine_for_dump(NULL, pid, &passed, &err));
	assert_true(*err.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_engine_is_whole),
		cmocka_unit_test(test_more_than_an_engine_reaches),
		cmocka_unit_test(test_every_option_once),
		cmocka_unit_test(test_options_are_for_their_engines),
		cmocka_unit_test(test_an_event_is_not_left_out),
		cmocka_unit_test(test_a_runtime_in_the_place_of_an_engine),
		cmocka_unit_test(test_events_are_for_their_engines),
		cmocka_unit_test(test_descriptions),
		cmocka_unit_test(test_findings),
		cmocka_unit_test_teardown(test_dumps, end_sleeper),
		cmocka_unit_test(test_no_dump_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

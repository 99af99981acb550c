/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proof that a thread which was not held did not run while it was read. Threads of a child wake each other as fast
 * as they can. Each time one blocks, words in all frames of its stack have the number of that time. No still has words
 * of two times.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "form.h"
#include "capture/bpf/source.h"
#include "capture/choice/engines.h"
#include "capture/dump.h"
#include "capture/ptrace/stack_copy.h"
#include "os/process.h"
#include "os/clock.h"

#define MARK UINT64_C(0x5f1d5f1d)
#define PAIRS 4
#define WORDS 256         /* in each frame */
#define FRAMES 8
#define RUN_NS UINT64_C(120000000)
#define PATIENCE_NS UINT64_C(20000000000) /* longer, until there is a still: other work may have the CPUs */
#define LONG_RUN_NS UINT64_C(10000000000) /* with STILLFRAME_LONG=1 */
#define LOOKS 1200                        /* at single threads ... */
#define LONG_LOOKS 300000                 /* ... with STILLFRAME_LONG=1; STILLFRAME_LOOKS=N says how many */
#define COPY_BYTES (32u << 10)            /* of the stack: more than the frames have */

/* --- the child --- */

static int pipes[2 * PAIRS][2];

/* Its words lie on the stack, where the address sanitizer would put them elsewhere. */
static __attribute__((noinline, no_sanitize("address"))) void wait_below(unsigned depth, uint32_t time, int fd)
{
	volatile uint64_t words[WORDS];
	char byte;

	for (unsigned i = 0; i < WORDS; i++)
		words[i] = MARK << 32 | time;
	if (depth)
		wait_below(depth - 1, time, fd);
	else if (read(fd, &byte, 1) != 1)
		_exit(1);
	__asm__ volatile("" ::"m"(words));
}

static void *wake_and_wait(void *arg)
{
	const unsigned number = (unsigned)(uintptr_t)arg;

	for (uint32_t time = 1;; time++) {
		if (write(pipes[number ^ 1][1], "", 1) != 1)
			_exit(1);
		wait_below(FRAMES - 1, time, pipes[number][0]);
	}
	return NULL;
}

static void run_child(void)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 0; i < 2 * PAIRS; i++) {
		if (pipe(pipes[i]) != 0)
			_exit(1);
	}
	for (uintptr_t i = 0; i < 2 * PAIRS; i++) {
		if (pthread_create(&thread, NULL, wake_and_wait, (void *)i) != 0)
			_exit(1);
	}
	pause();
}

static pid_t child; /* 0: none */

/* Before the first dump: a copy that this process has made of a stack is not to be inherited, to lie behind another stack. */
static int start_child(void **state)
{
	(void)state;
	child = fork();
	if (child == 0)
		run_child();
	usleep(50000);
	return child < 0;
}

static int end_child(void **state)
{
	(void)state;
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	child = 0;
	return 0;
}

/* --- the stills --- */

static struct {
	unsigned n_whole, n_mixed;  /* stills of threads in their read() */
	unsigned n_words;           /* of the last still */
	bool mixed;
} seen;

static void look_at_words(const uint8_t *stack, uint64_t size)
{
	uint32_t first = 0;

	seen.n_words = 0;
	seen.mixed = false;
	for (size_t i = 0; i + 8 <= size; i += 8) {
		uint64_t word;

		memcpy(&word, stack + i, sizeof(word));
		if (word >> 32 != MARK)
			continue;
		first = first ? first : (uint32_t)word;
		seen.mixed |= first != (uint32_t)word;
		seen.n_words++;
	}
}

static struct sf_verdict on_still(void *arg, struct sf_still *still, struct sf_error *err)
{
	(void)arg;
	(void)err;
	look_at_words(still->memory.window, still->syscall == SYS_read ? still->memory.window_size : 0);
	return (struct sf_verdict){ .end = SF_END_ROOT };
}

static bool on_thread(void *arg, const struct sf_dump_seen *thread, struct sf_error *err)
{
	(void)arg;
	(void)err;
	if (thread->loss >= 0 || !thread->unheld || !seen.n_words)
		return true;
	/* A compiler may keep a word somewhere else on the stack, too. */
	if (seen.mixed || seen.n_words < WORDS * FRAMES)
		seen.n_mixed++;
	else
		seen.n_whole++;
	return true;
}

static uint64_t run_ns(void)
{
	return is_long_form() ? LONG_RUN_NS : RUN_NS;
}

static void check(const char *name)
{
	const struct sf_engine *engine = sf_engine_by_name(name);
	const struct sf_dump_sink sink = { .still = on_still, .thread = on_thread };
	const uint64_t end_ns = sf_now_ns() + run_ns();
	struct sf_error err = { 0 };
	struct sf_dump_cost cost;

	memset(&seen, 0, sizeof(seen));
	if (!engine->check_dump(child, &err)) {
		print_message("%s\n", err.text);
		skip();
	}
	while (sf_now_ns() < end_ns || (!seen.n_whole && sf_now_ns() < end_ns + PATIENCE_NS))
		assert_true(engine->dump(child, &sink, &cost, &err));
	print_message("%u stills\n", seen.n_whole);
	assert_int_equal(seen.n_mixed, 0);
	assert_true(seen.n_whole > 0);
}

static void what_the_kernel_saved(void **state)
{
	(void)state;
	check("bpf");
}

static void what_proc_shows(void **state)
{
	(void)state;
	check("ptrace");
}

/* --- one look after the other, as a recording does it --- */

struct looks {
	uint64_t n_stood, n_moved; /* threads in their read() whose count was the same behind the copy, or was not ... */
	uint64_t n_mixed;          /* ... and copies of the first with words of two times */
	uint64_t n_needed;         /* of the second: those that the count has kept away */
};

static uint64_t looks_wanted(void)
{
	const char *given = getenv("STILLFRAME_LOOKS");

	return given ? strtoull(given, NULL, 10) : is_long_form() ? LONG_LOOKS : LOOKS;
}

static void look_once(const struct sf_saved_source *source, int32_t tid, struct sf_pages *pages,
		      struct sf_stack_copy *copy, struct looks *looks)
{
	const struct sf_copy_plan plan = { .size = COPY_BYTES };
	struct sf_saved saved;
	enum sf_copy_result result;
	bool mixed;

	if (!sf_saved_get(source, child, tid, true, &saved) || saved.look.syscall != SYS_read)
		return;
	result = sf_copy_saved(source, &saved, &plan, pages, copy);
	look_at_words(copy->stack, copy->stack_size);
	mixed = seen.mixed || seen.n_words < WORDS * FRAMES;
	looks->n_stood += result == SF_COPY_DONE;
	looks->n_moved += result == SF_COPY_MOVED;
	looks->n_mixed += result == SF_COPY_DONE && mixed;
	looks->n_needed += result == SF_COPY_MOVED && mixed;
}

static void each_look(void **state)
{
	const uint64_t n_wanted = looks_wanted();
	struct sf_error err;
	const struct sf_saved_source *source = sf_bpf_source_open(&err);
	struct sf_stack_copy *copy = malloc(sizeof(*copy) + COPY_BYTES + 64);
	struct sf_pages pages = { 0 };
	struct sf_ids ids = { 0 };
	struct looks looks = { 0 };

	(void)state;
	assert_non_null(copy);
	if (!source) {
		free(copy);
		print_message("%s\n", err.text);
		skip();
	}
	assert_true(sf_process_threads(child, &ids));
	for (size_t i = 0; looks.n_stood + looks.n_moved < n_wanted; i++) {
		look_once(source, ids.ids.items[i % ids.ids.n], &pages, copy, &looks);
		if (i % 1000000 == 999999)
			print_message("%llu stood, %llu mixed\n", (unsigned long long)looks.n_stood, (unsigned long long)looks.n_mixed);
	}
	print_message("%llu stood, %llu of them mixed; %llu moved, %llu of them mixed\n", (unsigned long long)looks.n_stood,
		      (unsigned long long)looks.n_mixed, (unsigned long long)looks.n_moved, (unsigned long long)looks.n_needed);
	assert_int_equal(looks.n_mixed, 0);
	assert_true(looks.n_stood > 0);
	sf_pages_close(&pages);
	sf_vec_deinit(&ids.ids);
	sf_bpf_source_close(source);
	free(copy);
}

/* --- what is asked again behind the copy --- */

static struct sf_saved later;
static bool is_on_cpu;

static bool get_later(void *arg, int32_t pid, int32_t tid, bool anew, struct sf_saved *ret)
{
	(void)arg, (void)pid, (void)tid;
	assert_true(anew);
	*ret = later;
	return !is_on_cpu;
}

/*
 * The kernel counts a switch to a thread before the thread is on the CPU: one that waits for a CPU may run with the
 * count that was read.
 */
static void one_that_was_about_to_run(void **state)
{
	const struct sf_saved_source source = { .get = get_later };
	const struct sf_saved saved = { .look = { .state = SF_STATE_RUNNABLE }, .switches = 7, .left_before = 6, .left_after = 6 };
	uint64_t switches;

	(void)state;
	later = saved;
	is_on_cpu = false;
	assert_true(sf_saved_stood(&source, &saved, &switches));
	is_on_cpu = true; /* it runs now */
	assert_false(sf_saved_stood(&source, &saved, &switches));
	is_on_cpu = false;
	later.left_after = 7; /* it has run, and has left the CPU */
	assert_false(sf_saved_stood(&source, &saved, &switches));
	later = saved;
	later.switches = 8;
	assert_false(sf_saved_stood(&source, &saved, &switches));
}

/* A new thread that waits for its first CPU is there all the same: its count is 0, as that of one that has ended. */
static void one_that_has_never_run(void **state)
{
	const struct sf_saved_source source = { .get = get_later };
	const struct sf_copy_plan plan = { .size = 4096 };
	uint64_t stack[64] = { MARK };
	struct sf_stack_copy *copy = malloc(sizeof(*copy) + COPY_BYTES);
	struct sf_pages pages = { 0 };

	(void)state;
	assert_non_null(copy);
	is_on_cpu = false;
	later = (struct sf_saved){ .pid = getpid(), .tid = getpid(), .look = { .state = SF_STATE_RUNNABLE, .placed = true } };
	later.look.sp = later.look.pc = (uint64_t)(uintptr_t)stack;
	assert_int_equal(sf_copy_saved(&source, &later, &plan, &pages, copy), SF_COPY_DONE);
	is_on_cpu = true;
	assert_int_equal(sf_copy_saved(&source, &later, &plan, &pages, copy), SF_COPY_GONE);
	sf_pages_close(&pages);
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_kernel_saved),
		cmocka_unit_test(what_proc_shows),
		cmocka_unit_test(each_look),
		cmocka_unit_test(one_that_was_about_to_run),
		cmocka_unit_test(one_that_has_never_run),
	};

	return cmocka_run_group_tests(tests, start_child, end_child);
}

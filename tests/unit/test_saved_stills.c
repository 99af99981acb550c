/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proof that a thread which was not held did not run while it was read. Threads of a child wake each other as fast as they can. Each
 * time one blocks, words in all frames of its stack have the number of that time. No still has words of two times.
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
#include "capture/choice/engines.h"
#include "capture/dump.h"
#include "os/clock.h"

#define MARK UINT64_C(0x5f1d5f1d)
#define PAIRS 4
#define WORDS 256         /* in each frame */
#define FRAMES 8
#define RUN_NS UINT64_C(400000000)
#define LONG_RUN_NS UINT64_C(10000000000) /* with STILLFRAME_LONG=1 */

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

static struct sf_verdict on_still(void *arg, struct sf_still *still, struct sf_error *err)
{
	const struct sf_reader *memory = &still->memory;
	uint32_t first = 0;

	(void)arg;
	(void)err;
	seen.n_words = 0;
	seen.mixed = false;
	for (size_t i = 0; still->syscall == SYS_read && i + 8 <= memory->window_size; i += 8) {
		uint64_t word;

		memcpy(&word, (const uint8_t *)memory->window + i, sizeof(word));
		if (word >> 32 != MARK)
			continue;
		first = first ? first : (uint32_t)word;
		seen.mixed |= first != (uint32_t)word;
		seen.n_words++;
	}
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
	while (sf_now_ns() < end_ns)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_kernel_saved),
		cmocka_unit_test(what_proc_shows),
	};

	return cmocka_run_group_tests(tests, start_child, end_child);
}

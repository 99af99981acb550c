/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading only pages that are there, of a child with pages of known kinds; and what becomes of a thread that has met one
 * which never comes, all the same: a userfaultfd that nobody serves. Without userfaultfd that one is skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/own_thread.h"
#include "os/pages.h"
#include "os/process.h"

#define N_PAGES 1024 /* 4 MB, as much as a copy of a stack has */

static size_t page;
static uint8_t *region, *copy;
static int32_t child;
static struct sf_pages pages;

/* A child that has the region as it is now, and does nothing. */
static void start_child(void)
{
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	assert_true(child > 0);
}

static int setup(void **state)
{
	(void)state;
	page = (size_t)sysconf(_SC_PAGESIZE);
	region = mmap(NULL, N_PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	copy = mmap(NULL, N_PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (region == MAP_FAILED || copy == MAP_FAILED)
		return 1;
	madvise(region, N_PAGES * page, MADV_NOHUGEPAGE);
	memset(copy, 0xee, N_PAGES * page);
	child = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sf_pages_close(&pages);
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	munmap(region, N_PAGES * page);
	munmap(copy, N_PAGES * page);
	return 0;
}

static void touch(size_t i)
{
	memset(region + i * page, (int)(i + 1), page);
}

static size_t read_from(size_t offset, size_t size)
{
	return sf_pages_read(&pages, child, child, copy, (uint64_t)(uintptr_t)region + offset, size);
}

static void assert_page(size_t i, uint8_t byte)
{
	for (size_t k = 0; k < page; k++)
		assert_int_equal(copy[i * page + k], byte);
}

static void what_is_behind_the_last_page_is_not_read(void **state)
{
	(void)state;
	touch(0);
	touch(1);
	touch(3);
	start_child();
	assert_int_equal(read_from(0, 6 * page), 4 * page);
	assert_page(0, 1);
	assert_page(1, 2);
	assert_page(2, 0);
	assert_page(3, 4);
	assert_page(4, 0xee);
}

static void sizes_are_to_the_byte(void **state)
{
	(void)state;
	touch(0);
	touch(1);
	start_child();
	assert_int_equal(read_from(100, 50), 50);
	assert_int_equal(copy[0], 1);
	assert_int_equal(copy[50], 0xee);
	assert_int_equal(read_from(page - 8, 16), 16);
	assert_int_equal(copy[7], 1);
	assert_int_equal(copy[8], 2);
	assert_int_equal(read_from(2 * page - 8, 4 * page), 8);
	assert_int_equal(read_from(2 * page, page), 0);
	assert_int_equal(read_from(0, 0), 0);
}

/* From a page below the stack pointer, which was never touched, on. */
static void the_first_page_may_be_missing(void **state)
{
	(void)state;
	touch(1);
	start_child();
	assert_int_equal(read_from(page - 128, 256), 256);
	assert_int_equal(copy[127], 0);
	assert_int_equal(copy[128], 2);
}

static void pages_here_and_there_are_all_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_PAGES; i += 2)
		touch(i);
	start_child();
	assert_int_equal(read_from(0, N_PAGES * page), (N_PAGES - 1) * page);
	for (size_t i = 0; i < N_PAGES - 1; i++)
		assert_page(i, i % 2 ? 0 : (uint8_t)(i + 1));
	assert_page(N_PAGES - 1, 0xee);
}

static void another_program_has_other_pages(void **state)
{
	int ends[2];
	char byte;
	(void)state;

	touch(0);
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		dup2(ends[1], 1);
		execlp("sh", "sh", "-c", "echo x; kill -STOP $$", NULL);
		_exit(1);
	}
	close(ends[1]);
	read_from(0, page);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	assert_int_equal(read_from(0, page), sf_process_read(child, copy, (uintptr_t)region, page));
}

static int run_when_told(void *arg)
{
	const int *ends = arg;
	char byte;

	if (read(ends[0], &byte, 1) != 1)
		return 1;
	dup2(ends[3], 1);
	execlp("sh", "sh", "-c", "echo x; kill -STOP $$", NULL);
	return 1;
}

/* The last page of its stack, which has the environment. */
static uint64_t end_of_stack(int32_t pid)
{
	unsigned long end = 0;
	char path[64], line[512];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (strstr(line, "[stack]"))
			assert_int_equal(sscanf(line, "%*x-%lx", &end), 1);
	}
	fclose(file);
	assert_true(end > page);
	return end - page;
}

/* As the child of a vfork: it shares this process's memory until it runs a program, and this process keeps that. */
static void a_program_has_other_pages_than_its_parent(void **state)
{
	static uint8_t stack[65536] __attribute__((aligned(16)));
	int ends[4];
	char byte;
	(void)state;

	touch(0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pipe(ends + 2), 0);
	child = clone(run_when_told, stack + sizeof(stack), CLONE_VM | SIGCHLD, ends);
	assert_true(child > 0);
	assert_int_equal(read_from(0, page), page);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(read(ends[2], &byte, 1), 1);
	assert_int_equal(sf_pages_read(&pages, child, child, copy, end_of_stack(child), page), page);
	for (int i = 0; i < 4; i++)
		close(ends[i]);
}

static void a_process_that_has_ended_gives_nothing(void **state)
{
	(void)state;
	touch(0);
	start_child();
	assert_int_equal(read_from(0, page), page);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(read_from(0, page), 0);
	child = 0;
}

/* --- pages that are filled --- */

static uint64_t address(size_t i)
{
	return (uintptr_t)region + i * page;
}

static bool fill(size_t first, size_t n)
{
	return sf_pages_fill(child, address(first) + 8, address(first + n));
}

static void pages_that_were_never_touched_are_filled(void **state)
{
	(void)state;
	touch(0);
	start_child();
	assert_int_equal(read_from(0, 6 * page), page);
	assert_true(fill(1, 3));
	assert_int_equal(read_from(0, 6 * page), 4 * page);
	assert_page(0, 1);
	assert_page(1, 0);
	assert_page(3, 0);
}

static void assert_stack(const struct sf_pages_stack *stack, size_t first, size_t n, bool is_plain)
{
	assert_int_equal(stack->start, address(first));
	assert_int_equal(stack->end, address(first + n));
	assert_int_equal(stack->is_plain, is_plain);
}

/* By one pass over the mappings, in any order. */
static void only_private_memory_is_plain(void **state)
{
	void *shared = mmap(region, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *of_a_file = mmap(region + 2 * page, page, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0);
	struct sf_pages_stack stacks[] = {
		{ .sp = address(3) + 100 }, { .sp = address(0) }, { .sp = address(4) }, { .sp = address(2) - 1 }, { .sp = address(2) },
	};
	(void)state;

	close(file);
	assert_true(shared != MAP_FAILED && of_a_file != MAP_FAILED);
	munmap(region + 4 * page, page);
	start_child();
	sf_pages_find_stacks(child, stacks, 5);
	assert_stack(&stacks[0], 3, 1, true);
	assert_stack(&stacks[1], 0, 1, false);
	assert_true(!stacks[2].start && !stacks[2].end && !stacks[2].is_plain);
	assert_stack(&stacks[3], 1, 1, true);
	assert_stack(&stacks[4], 2, 1, false);
	assert_false(fill(3, 2));
}

/* --- a page that never comes --- */

static int make_missing(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register missing = {
		.range = { .start = (uintptr_t)region, .len = page },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	return fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 && ioctl(fd, UFFDIO_REGISTER, &missing) == 0;
}

/* In a process of its own. */
static void look_at_missing(void)
{
	struct sf_pages_stack stack = { .sp = address(0) };

	if (!make_missing())
		_exit(77);
	sf_pages_find_stacks(getpid(), &stack, 1);
	_exit(stack.end != address(1) || stack.is_plain);
}

static void a_page_that_a_program_fills_is_left_to_it(void **state)
{
	int status;
	(void)state;

	child = fork();
	if (child == 0)
		look_at_missing();
	assert_int_equal(waitpid(child, &status, 0), child);
	child = 0;
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static _Atomic int32_t reader;

static void *read_it(void *arg)
{
	(void)arg;
	atomic_store(&reader, gettid());
	sf_process_read(getpid(), copy, (uintptr_t)region, page);
	return NULL;
}

/* In a process of its own: it reads what never comes, and waits for the thread that does. */
static void hang(int error_end)
{
	pthread_t thread;

	if (!make_missing())
		_exit(77);
	dup2(error_end, STDERR_FILENO);
	if (pthread_create(&thread, NULL, read_it, NULL) != 0)
		_exit(3);
	sf_stuck_join(thread, &reader, true);
	_exit(2);
}

static void a_thread_that_never_goes_on_ends_the_process(void **state)
{
	char text[1000] = "";
	int status, ends[2];
	(void)state;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0)
		hang(ends[1]);
	close(ends[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	child = 0;
	if (read(ends[0], text, sizeof(text) - 1) < 0)
		*text = 0;
	close(ends[0]);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_non_null(strstr(text, "does not answer"));
}

static void *take_a_while(void *arg)
{
	const struct timespec while_ns = { .tv_sec = 1 };

	(void)arg;
	atomic_store(&reader, gettid());
	nanosleep(&while_ns, NULL);
	return NULL;
}

static void a_thread_that_merely_sleeps_is_waited_for(void **state)
{
	struct sf_stuck stuck = { .holds = true };
	pthread_t thread;
	(void)state;

	atomic_store(&reader, 0);
	assert_int_equal(pthread_create(&thread, NULL, take_a_while, NULL), 0);
	while (!(stuck.tid = atomic_load(&reader)))
		;
	for (unsigned i = 0; i < 100; i++)
		assert_false(sf_stuck_look(&stuck));
	sf_stuck_join(thread, &reader, true);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_behind_the_last_page_is_not_read),
		TEST(sizes_are_to_the_byte),
		TEST(the_first_page_may_be_missing),
		TEST(pages_here_and_there_are_all_read),
		TEST(another_program_has_other_pages),
		TEST(a_program_has_other_pages_than_its_parent),
		TEST(a_process_that_has_ended_gives_nothing),
		TEST(pages_that_were_never_touched_are_filled),
		TEST(only_private_memory_is_plain),
		TEST(a_page_that_a_program_fills_is_left_to_it),
		TEST(a_thread_that_never_goes_on_ends_the_process),
		TEST(a_thread_that_merely_sleeps_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

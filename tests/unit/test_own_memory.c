/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the own process: what is there, what is not, and the edges between; and a walk through it. */
#include <setjmp.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "frozen/signal/workspace.h"
#include "refused.h"

#define PAGE 4096u

static struct sf_own_memory by_call, by_file;
static uint8_t *pages; /* unmapped, readable, readable, PROT_NONE, readable, unmapped */
static struct sf_workspace *workspace; /* made before there are holes that it could be put into */

static int tear_down(void **state)
{
	(void)state;
	sf_workspace_destroy(workspace);
	munmap(pages + PAGE, 4 * PAGE);
	close(by_file.mem_fd);
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	if (!sf_own_memory_probe(&by_call))
		return -1;
	by_file = (struct sf_own_memory){ .pid = getpid(),
					   .mem_fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC) };
	pages = mmap(NULL, 6 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	workspace = sf_workspace_create(&by_call, 100, 2 * PAGE);
	if (pages == MAP_FAILED || by_file.mem_fd < 0 || !workspace)
		return -1;
	for (unsigned i = 0; i < 6 * PAGE; i++)
		pages[i] = (uint8_t)(i * 7 + i / PAGE);
	mprotect(pages + 3 * PAGE, PAGE, PROT_NONE);
	munmap(pages, PAGE);
	munmap(pages + 5 * PAGE, PAGE);
	return 0;
}

static uint64_t at(unsigned offset)
{
	return (uint64_t)(uintptr_t)(pages + offset);
}

static void check(const struct sf_own_memory *access, unsigned offset, size_t size, size_t wanted)
{
	static uint8_t bytes[8 * PAGE];

	memset(bytes, 0xee, sizeof(bytes));
	assert_int_equal(sf_own_memory_read(access, bytes, at(offset), size), wanted);
	if (wanted)
		assert_memory_equal(bytes, pages + offset, wanted);
	assert_int_equal(bytes[wanted], 0xee);
}

static void check_edges(const struct sf_own_memory *access)
{
	check(access, PAGE, 0, 0);
	check(access, PAGE, 1, 1);
	check(access, PAGE + 100, 5000, 5000);
	check(access, PAGE - 1, 1, 0);
	check(access, PAGE - 8, 16, 0);
	check(access, 4 * PAGE + 4000, 96, 96);
	check(access, 4 * PAGE + 4000, 5000, 96);
	check(access, 5 * PAGE - 1, 2 * PAGE, 1);
	check(access, 5 * PAGE, 8, 0);
}

static void test_by_call(void **state)
{
	(void)state;
	assert_int_equal(by_call.mem_fd, -1);
	check_edges(&by_call);
	/* PROT_NONE is refused, as a load would be. */
	check(&by_call, 2 * PAGE, 3 * PAGE, PAGE);
	check(&by_call, 3 * PAGE, 8, 0);
}

/* Through the file PROT_NONE is read all the same: it does no harm. */
static void test_by_file(void **state)
{
	(void)state;
	check_edges(&by_file);
}

static void test_wild_addresses(void **state)
{
	static const uint64_t addrs[] = {
		0, 1, 4095, UINT64_MAX, UINT64_MAX - 7, UINT64_C(1) << 63, UINT64_C(0x800000000000),
		UINT64_C(0x7fffffffffff), UINT64_C(0xffffffffff600000), UINT64_C(0xdeadbeefdeadbeef),
	};
	uint8_t bytes[PAGE];

	(void)state;
	for (unsigned i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++) {
		for (size_t size = 1; size <= sizeof(bytes); size *= 2) {
			assert_int_equal(sf_own_memory_read(&by_call, bytes, addrs[i], size), 0);
			if (addrs[i] >> 47 == 0) /* vsyscall's page is in the file */
				assert_int_equal(sf_own_memory_read(&by_file, bytes, addrs[i], size), 0);
		}
	}
}

/* Of two pages, and one that cannot be read. */
static void test_gather(void **state)
{
	struct sf_own_memory one_by_one = by_call;
	const struct sf_own_memory *ways[] = { &by_call, &one_by_one, &by_file };
	const struct iovec pieces[] = {
		{ pages + PAGE + 7, 5 }, { pages + 2 * PAGE - 3, 6 }, { pages + PAGE, 1 },
		{ pages + 5 * PAGE - 2, 4 },
	};
	uint8_t bytes[16];

	(void)state;
	assert_true(by_call.gathers);
	one_by_one.gathers = false;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		memset(bytes, 0, sizeof(bytes));
		assert_int_equal(sf_own_memory_gather(ways[i], bytes, 12, pieces, 3), 12);
		assert_memory_equal(bytes, pages + PAGE + 7, 5);
		assert_memory_equal(bytes + 5, pages + 2 * PAGE - 3, 6);
		assert_memory_equal(bytes + 11, pages + PAGE, 1);
		assert_int_equal(bytes[12], 0);
		assert_int_equal(sf_own_memory_gather(ways[i], bytes, 16, pieces, 4), 14);
	}
}

/* By a filter that came after it was found out what works here. */
static void test_writing_is_refused(void **state)
{
	const struct iovec piece = { pages + PAGE, 8 };
	struct sf_own_memory access = by_call;
	uint8_t bytes[8];
	pid_t child;
	int status;

	(void)state;
	child = fork();
	if (child == 0) {
		access.pid = getpid();
		if (!refuse_call(SYS_process_vm_writev, EPERM))
			_exit(2);
		_exit(sf_own_memory_gather(&access, bytes, 8, &piece, 1) != 0 ||
		      sf_own_memory_read(&access, bytes, at(PAGE), 8) != 8 ||
		      memcmp(bytes, pages + PAGE, 8) != 0);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_close(void **state)
{
	struct sf_own_memory access = { .pid = getpid(), .mem_fd = dup(by_file.mem_fd) };
	const int fd = access.mem_fd;

	(void)state;
	sf_own_memory_close(&access);
	assert_int_equal(access.mem_fd, -1);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	sf_own_memory_close(&access);
}

/* --- workspaces --- */

static void test_workspace(void **state)
{
	(void)state;
	assert_int_equal(workspace->trace.capacity, 100);
	memset(workspace->trace.frames, 0xff, 100 * sizeof(struct sf_frame));
	memset(workspace->packed, 0xff, 100 * sizeof(struct sf_stream_frame));
	memset(workspace->piece, 0xff, 2 * PAGE);
	assert_ptr_equal(workspace->access, &by_call);
	assert_int_equal(workspace->piece_capacity, 2 * PAGE);
	assert_int_equal((uintptr_t)workspace->piece % PAGE, 0); /* two pages, for the kernel to pin */
	sf_workspace_destroy(NULL);
	assert_null(sf_workspace_create(&by_call, SF_MAX_DEPTH, (size_t)1 << 62));
}

/* Each fork() of a program copies the pages that its 32 workspaces have touched. */
static void test_a_new_workspace_has_one_page(void **state)
{
	struct sf_workspace *made = sf_workspace_create(&by_call, SF_MAX_DEPTH, 2 * PAGE);
	uint8_t in_memory[512];
	size_t n_pages, n = 0;

	(void)state;
	assert_non_null(made);
	n_pages = made->mapped_size / PAGE;
	assert_in_range(n_pages, 4, sizeof(in_memory));
	assert_int_equal(mincore(made, made->mapped_size, in_memory), 0);
	for (size_t i = 0; i < n_pages; i++)
		n += in_memory[i] & 1;
	assert_int_equal(n, 1);
	sf_workspace_destroy(made);
}

/* The reader that a walk gets, after one that ends at once. */
static const struct sf_reader *new_walk(void)
{
	struct sf_still *still = &workspace->still;

	memset(still, 0, sizeof(*still));
	assert_int_equal(sf_workspace_walk(workspace, still), SF_END_EMPTY);
	return &still->memory;
}

static void test_reader(void **state)
{
	const struct sf_reader *reader = new_walk();
	uint8_t bytes[3 * PAGE];
	uint64_t word;

	(void)state;
	/* Upwards in small steps, then below the piece, then across the end of what there is. */
	for (unsigned offset = PAGE; offset + 8 <= 3 * PAGE; offset += 8) {
		assert_true(sf_read_u64(reader, at(offset), &word));
		assert_memory_equal(&word, pages + offset, 8);
	}
	assert_true(sf_read(reader, bytes, at(PAGE), 2 * PAGE)); /* more than a piece gives */
	assert_memory_equal(bytes, pages + PAGE, 2 * PAGE);
	assert_true(sf_read_u64(reader, at(3 * PAGE - 8), &word));
	assert_false(sf_read_u64(reader, at(3 * PAGE - 4), &word));
	assert_false(sf_read_u64(reader, at(PAGE - 4), &word));
	assert_true(sf_read_u64(reader, at(PAGE + 1), &word));
	assert_false(sf_read_u64(reader, 0, &word));
	assert_false(sf_read_u64(reader, UINT64_MAX - 3, &word));
	assert_true(sf_read_u64(reader, at(4 * PAGE), &word)); /* behind the page that is refused */
	/* A failed read is of memory, and not of a copy that is too short. */
	assert_int_equal(sf_why_unread(reader, at(3 * PAGE - 4), 8), SF_END_MEMORY);
}

/* A stack is read in pieces; the next walk sees what the memory holds by then. */
static void test_pieces(void **state)
{
	const struct sf_reader *reader = new_walk();
	const uint8_t before = pages[PAGE + 1000];
	uint64_t start, word;
	uint8_t byte;

	(void)state;
	assert_true(sf_read_u64(reader, at(PAGE + 1000), &word));
	start = workspace->piece_start;
	assert_true(start <= at(PAGE + 1000) - 8 && start >= at(PAGE));
	assert_true(sf_read_u64(reader, at(PAGE + 992), &word));
	assert_true(sf_read_u64(reader, at(PAGE + 1000 + PAGE), &word));
	assert_int_equal(workspace->piece_start, start);
	pages[PAGE + 1000] = (uint8_t)(before + 1);
	assert_true(sf_read(reader, &byte, at(PAGE + 1000), 1));
	assert_int_equal(byte, before);
	reader = new_walk();
	assert_true(sf_read(reader, &byte, at(PAGE + 1000), 1));
	assert_int_equal(byte, (uint8_t)(before + 1));
	/* More than what any walk wanted so far is there, too. */
	workspace->top = at(PAGE + 1000);
	reader = new_walk();
	assert_true(sf_read_u64(reader, at(PAGE + 1016), &word));
	assert_memory_equal(&word, pages + PAGE + 1016, 8);
	pages[PAGE + 1000] = before;
}

/* Code is read by itself: it does not displace the stack. */
static void test_code_is_no_piece(void **state)
{
	static _Alignas(8) uint8_t bytes[sizeof(struct sf_code_map) + sizeof(struct sf_region)];
	struct sf_code_map *map = (struct sf_code_map *)(void *)bytes;
	const struct sf_reader *reader = new_walk();
	uint64_t start, word;

	(void)state;
	map->n_regions = 1;
	map->regions[0] = (struct sf_region){ .start = at(4 * PAGE), .end = at(5 * PAGE) };
	workspace->map = map;
	assert_true(sf_read_u64(reader, at(PAGE + 512), &word));
	start = workspace->piece_start;
	assert_true(sf_read_u64(reader, at(4 * PAGE + 64), &word));
	assert_memory_equal(&word, pages + 4 * PAGE + 64, 8);
	assert_false(sf_read_u64(reader, at(5 * PAGE - 4), &word));
	assert_int_equal(workspace->piece_start, start);
}

/* Bytes here and there: near ones are read once, across two lines too; nothing is there where nothing is mapped. */
static void test_lines(void **state)
{
	static struct sf_own_memory_lines lines;
	uint8_t bytes[2 * SF_OWN_MEMORY_LINE];
	const uint8_t before = pages[PAGE + 100];

	(void)state;
	sf_own_memory_lines_init(&lines, &by_call);
	assert_true(sf_line_cache_read(&lines.cache, bytes, at(PAGE + 100), 8));
	pages[PAGE + 100] = (uint8_t)(before + 1);
	assert_true(sf_line_cache_read(&lines.cache, bytes, at(PAGE + 90), 50));
	assert_int_equal(bytes[10], before); /* as it was */
	sf_own_memory_lines_init(&lines, &by_call);
	assert_true(sf_line_cache_read(&lines.cache, bytes, at(PAGE + 90), 50));
	assert_int_equal(bytes[10], (uint8_t)(before + 1));
	pages[PAGE + 100] = before;
	sf_own_memory_lines_init(&lines, &by_call);
	for (unsigned i = PAGE; i <= 3 * PAGE - 300; i += 100) {
		assert_true(sf_line_cache_read(&lines.cache, bytes, at(i), 300));
		assert_memory_equal(bytes, pages + i, 300);
	}
	assert_true(sf_line_cache_read(&lines.cache, bytes, at(PAGE + 1), sizeof(bytes))); /* longer than a line */
	assert_memory_equal(bytes, pages + PAGE + 1, sizeof(bytes));
	assert_false(sf_line_cache_read(&lines.cache, bytes, at(3 * PAGE - 4), 8));
	assert_false(sf_line_cache_read(&lines.cache, bytes, at(3 * PAGE), 8));
	assert_true(sf_line_cache_read(&lines.cache, bytes, at(3 * PAGE - 8), 8));
	assert_memory_equal(bytes, pages + 3 * PAGE - 8, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_call),
		cmocka_unit_test(test_by_file),
		cmocka_unit_test(test_wild_addresses),
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_gather),
		cmocka_unit_test(test_writing_is_refused),
		cmocka_unit_test(test_workspace),
		cmocka_unit_test(test_a_new_workspace_has_one_page),
		cmocka_unit_test(test_reader),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_code_is_no_piece),
		cmocka_unit_test(test_lines),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

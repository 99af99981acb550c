/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of real files, compared with what elfutils makes of the same files, at thousands of
 * addresses: on both sides of rows' edges, and anywhere in the code. The rules must agree
 * everywhere. A file that is not on this machine is left out; the C library and this test itself
 * always are there. Arguments: more files to compare.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "form.h"
#include "frozen/unwind/table.h"
#include "unwind/unwind.h"
#include "unwind_judge.h"

#define N_EDGES 2000     /* rows whose edges are tried: three addresses each */
#define N_ANYWHERE 2000
#define LARGE (32 << 20)  /* bytes of a file that is left to the long form: it has nothing but more of the same */
#define MAX_SHOWN 20

static const char *const patterns[] = {
	"/proc/self/exe",
	"/lib/*/libc.so.6",
	"/lib*/*/ld-linux-*.so.*",
	"/usr/lib/*/libstdc++.so.6",
	"/usr/lib/*/libcrypto.so.3",
	"/usr/lib/*/libgcrypt.so.20", /* goes from an expression back to a register */
	"/usr/lib/*/libLLVM-1?.so.1",
	"/usr/bin/python3",
	"/usr/bin/sqlite3",
	"/usr/bin/gdb",
	"/lib/ld-musl-*.so.1",
	"/usr/lib/musl/lib/libc.so",
	"/usr/aarch64-linux-gnu/lib/libc.so.6",
	"/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1",
	"/usr/lib/jvm/*/lib/server/libjvm.so",
	"/usr/lib/chromium/chromium",
	"~/.rustup/toolchains/stable-*/lib/librustc_driver-*.so",
	"~/.rustup/toolchains/stable-*/lib/libLLVM.so.*",
};

struct tally {
	const char *path;
	struct judge judge;
	struct sf_table table;
	uint64_t n[N_VERDICTS];
	unsigned n_shown;
};

static const bool is_wrong[N_VERDICTS] = {
	[VERDICT_ONLY_OURS] = true,
	[VERDICT_ONLY_JUDGE] = true,
	[VERDICT_DIFFERENT] = true,
};

static void try(struct tally *tally, uint64_t address)
{
	char text[256];
	enum verdict verdict = judge_address(&tally->judge, &tally->table, address, text);

	tally->n[verdict]++;
	if (!is_wrong[verdict] || tally->n_shown++ >= MAX_SHOWN)
		return;
	printf("%s at %#" PRIx64 ": %s%s\n", tally->path, address,
	       verdict == VERDICT_ONLY_OURS ? "only ours " :
	       verdict == VERDICT_ONLY_JUDGE ? "only libdw's " : "", text);
}

/* Addresses are spread by a fixed step and a fixed seed: the same in each run. */
static void try_all(struct tally *tally)
{
	const struct sf_table_header *header = tally->table.header;
	const uint32_t step = header->n_rows / N_EDGES + 1;
	const uint64_t size = tally->table.rows[header->n_rows - 1].offset;

	for (uint32_t i = 0; i < header->n_rows; i += step) {
		uint64_t address = header->base + tally->table.rows[i].offset;

		try(tally, address - 1);
		try(tally, address);
		try(tally, address + 1);
	}
	srandom(1);
	for (unsigned i = 0; i < N_ANYWHERE; i++)
		try(tally, header->base + ((uint64_t)random() << 31 | (uint64_t)random()) % size);
}

/* Neighbours have the same rules only where a function begins. */
static void check_rows(const struct sf_table *table, const struct judge *judge)
{
	for (uint32_t i = 0; i < table->header->n_rows; i++) {
		assert_true(table->rows[i].rules < table->header->n_rules);
		if (i) {
			assert_true(table->rows[i - 1].offset < table->rows[i].offset);
			assert_true(table->rows[i - 1].rules != table->rows[i].rules ||
				    judge_begins(judge, table->header->base + table->rows[i].offset));
		}
	}
}

/* True when all addresses agree; says on stdout which do not. */
static bool check_file(const char *path)
{
	struct tally tally = { .path = path };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct sf_error err;
	void *block = NULL;
	size_t size;

	if (fd < 0)
		return true;
	if (!sf_unwind_build(fd, &block, &size, &err)) {
		printf("%s: %s\n", path, err.text);
		close(fd);
		return false;
	}
	assert_true(judge_open(&tally.judge, fd));
	assert_true(sf_table_init(&tally.table, block, size));
	check_rows(&tally.table, &tally.judge);
	if (tally.table.header->n_rows)
		try_all(&tally);
	printf("%s: %u rows, %u rules; %" PRIu64 " addresses agree, %" PRIu64 " without rules, %"
	       PRIu64 " guessed, %" PRIu64 " refused by libdw, %" PRIu64 " only ours, %" PRIu64
	       " only libdw's, %" PRIu64 " differ\n",
	       path, tally.table.header->n_rows, tally.table.header->n_rules,
	       tally.n[VERDICT_SAME_RULES], tally.n[VERDICT_BOTH_NONE], tally.n[VERDICT_GUESS],
	       tally.n[VERDICT_STRICT], tally.n[VERDICT_ONLY_OURS],
	       tally.n[VERDICT_ONLY_JUDGE], tally.n[VERDICT_DIFFERENT]);
	fflush(stdout);
	sf_unwind_close(block, size);
	judge_close(&tally.judge);
	close(fd);
	return tally.n[VERDICT_ONLY_OURS] + tally.n[VERDICT_ONLY_JUDGE] +
	       tally.n[VERDICT_DIFFERENT] == 0;
}

static bool is_left_out(const char *path)
{
	struct stat status;

	return !is_long_form() && stat(path, &status) == 0 && status.st_size > LARGE;
}

static void same_rules_as_elfutils(void **state)
{
	glob_t found = { 0 };
	bool agree = true;
	(void)state;

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		glob(patterns[i], GLOB_TILDE | (i ? GLOB_APPEND : 0), NULL, &found);
	assert_true(found.gl_pathc >= 2);
	for (size_t i = 0; i < found.gl_pathc; i++)
		agree = (is_left_out(found.gl_pathv[i]) || check_file(found.gl_pathv[i])) && agree;
	globfree(&found);
	assert_true(agree);
}

static char **more_files;

static void same_rules_in_files_given(void **state)
{
	bool agree = true;
	(void)state;

	for (char **path = more_files; *path; path++)
		agree = check_file(*path) && agree;
	assert_true(agree);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest usual[] = { cmocka_unit_test(same_rules_as_elfutils) };
	const struct CMUnitTest given[] = { cmocka_unit_test(same_rules_in_files_given) };

	more_files = argv + 1;
	if (argc > 1)
		return cmocka_run_group_tests(given, NULL, NULL);
	return cmocka_run_group_tests(usual, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache of tables: what is put there comes back, and nothing else is believed: not a
 * damaged file, not a link, not one that others can write to. Everything happens below a folder
 * made here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache_folder.h"
#include "folder.h"
#include "unwind/cache.h"
#include "unwind/rows.h"
#include "unwind/unwind.h"

#define DIGITS "abcd0100000000000000000000000000000000000000000000000000000000ff"
#define FILE_NAME DIGITS "-x86_64"

struct fixture {
	char home[64];
	char file[256];       /* the table's path */
	struct sf_cache_key key;
	void *block;          /* a table with some rows */
	size_t size;
};

static void *make_table(const struct sf_cache_key *key, unsigned n, size_t *size)
{
	struct sf_rows *rows = sf_rows_create(0x1000, 0x100000);
	struct sf_table_header header = {
		.elf_machine = key->arch->elf_machine,
	};
	void *block;

	memcpy(header.made_from, key->made_from, sizeof(header.made_from));
	assert_true(sf_rows_begin(rows, 0x1000, 0x100000));
	for (unsigned i = 0; i < n; i++) {
		struct sf_rules rules = { .cfa.value = (int32_t)i };

		assert_true(sf_rows_add(rows, 0x1000 + i, &rules));
	}
	assert_true(sf_rows_end(rows, true));
	assert_true(sf_rows_settle(rows));
	assert_true(sf_rows_pack(rows, &header, &block, size, NULL));
	sf_rows_destroy(rows);
	return block;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->home, "/tmp/sf-cache-XXXXXX");
	assert_non_null(mkdtemp(f->home));
	assert_int_equal(setenv("XDG_CACHE_HOME", f->home, 1), 0);
	f->key = (struct sf_cache_key){ { 0xab, 0xcd, 0x01, [31] = 0xff }, &sf_arch_x86_64 };
	f->block = make_table(&f->key, 30, &f->size); /* few rows: each byte is damaged, and all are looked at */
	snprintf(f->file, sizeof(f->file), "%s/stillframe/tables-11/" FILE_NAME, f->home);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(folder_remove(f->home), 0);
	sf_unwind_close(f->block, f->size);
	free(f);
	return 0;
}

static void put(const struct fixture *f)
{
	struct sf_cache cache;

	assert_true(sf_cache_open(&cache, false));
	assert_true(sf_cache_put(&cache, &f->key, f->block, f->size));
	sf_cache_close(&cache);
}

static bool is_there(void)
{
	struct sf_cache cache;
	const bool there = sf_cache_open(&cache, false);

	sf_cache_close(&cache);
	return there;
}

static bool is_hit(const struct fixture *f)
{
	struct sf_cache cache;
	void *block;
	size_t size;
	bool hit;

	assert_true(sf_cache_open(&cache, false));
	hit = sf_cache_get(&cache, &f->key, &block, &size);
	if (hit) {
		assert_int_equal(size, f->size);
		assert_memory_equal(block, f->block, size);
		munmap(block, size);
	}
	sf_cache_close(&cache);
	return hit;
}

static void what_is_put_comes_back(void **state)
{
	const struct fixture *f = *state;
	struct stat status;

	assert_false(is_hit(f));
	put(f);
	assert_true(is_hit(f));
	assert_int_equal(stat(f->file, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	put(f);
	assert_true(is_hit(f));
}

static void another_machine_or_digest_is_a_miss(void **state)
{
	struct fixture *f = *state;
	char other[300];

	put(f);
	f->key.arch = &sf_arch_aarch64;
	assert_false(is_hit(f));
	snprintf(other, sizeof(other), "%s/stillframe/tables-11/" DIGITS "-aarch64", f->home);
	assert_int_equal(rename(f->file, other), 0); /* the name lies, the header does not */
	assert_false(is_hit(f));
	f->key.arch = &sf_arch_x86_64;
	f->key.made_from[31] = 0xfe;
	snprintf(f->file, sizeof(f->file), "%s/stillframe/tables-11/" DIGITS, f->home);
	strcpy(strrchr(f->file, 'f') - 1, "fe-x86_64");
	assert_int_equal(rename(other, f->file), 0);
	assert_false(is_hit(f));
}

/* Each byte of the file in turn is changed, and each shorter file tried. */
static void damage_is_a_miss(void **state)
{
	const struct fixture *f = *state;
	int fd;

	put(f);
	fd = open(f->file, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	for (size_t i = 0; i < f->size; i++) {
		uint8_t good = ((const uint8_t *)f->block)[i], bad = good ^ 0x40;

		assert_int_equal(pwrite(fd, &bad, 1, (off_t)i), 1);
		assert_false(is_hit(f));
		assert_int_equal(pwrite(fd, &good, 1, (off_t)i), 1);
	}
	assert_true(is_hit(f));
	for (size_t size = f->size; size-- > 0;) {
		assert_int_equal(ftruncate(fd, (off_t)size), 0);
		assert_false(is_hit(f));
	}
	close(fd);
}

static void files_that_others_can_write_are_a_miss(void **state)
{
	const struct fixture *f = *state;

	put(f);
	assert_int_equal(chmod(f->file, 0620), 0);
	assert_false(is_hit(f));
	assert_int_equal(chmod(f->file, 0602), 0);
	assert_false(is_hit(f));
	assert_int_equal(chmod(f->file, 0644), 0);
	assert_true(is_hit(f));
}

static void files_of_others_are_a_miss(void **state)
{
	const struct fixture *f = *state;

	if (geteuid() != 0)
		skip(); /* only root can give a file away */
	put(f);
	assert_int_equal(chown(f->file, 12345, (gid_t)-1), 0);
	assert_false(is_hit(f));
}

static void links_are_a_miss(void **state)
{
	const struct fixture *f = *state;
	char elsewhere[128];

	put(f);
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", f->home);
	assert_int_equal(rename(f->file, elsewhere), 0);
	assert_int_equal(symlink(elsewhere, f->file), 0);
	assert_false(is_hit(f));
	put(f); /* replaces the link, not what it points to */
	assert_true(is_hit(f));
	assert_int_equal(unlink(f->file), 0);
	assert_int_equal(mkfifo(f->file, 0600), 0);
	assert_false(is_hit(f));
}

static void unsafe_folders_are_not_used(void **state)
{
	const struct fixture *f = *state;
	char folder[128], elsewhere[128];

	snprintf(folder, sizeof(folder), "%s/stillframe/tables-11", f->home);
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", f->home);
	put(f);
	assert_int_equal(chmod(folder, 0777), 0);
	assert_false(is_there());
	assert_int_equal(chmod(folder, 0700), 0);
	assert_int_equal(rename(folder, elsewhere), 0);
	assert_int_equal(symlink(elsewhere, folder), 0);
	assert_false(is_there());
}

static void no_folder_is_no_error(void **state)
{
	const struct fixture *f = *state;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct sf_table table;
	void *block;
	size_t size;

	/* A file in the place of the folder: root could write into any folder. */
	assert_int_equal(rmdir(f->home), 0);
	close(creat(f->home, 0600));
	assert_false(is_there());
	assert_true(sf_unwind_open(fd, true, NULL, &table, &block, &size, NULL));
	assert_true(table.header->n_rows > 0);
	sf_unwind_close(block, size);
	close(fd);
}

static void relative_and_empty_paths_count_for_nothing(void **state)
{
	const struct fixture *f = *state;
	char path[128];
	struct stat status;

	assert_int_equal(setenv("HOME", f->home, 1), 0);
	assert_int_equal(setenv("XDG_CACHE_HOME", "relative", 1), 0);
	assert_true(is_there());
	snprintf(path, sizeof(path), "%s/.cache/stillframe/tables-11", f->home);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(setenv("HOME", "", 1), 0);
	assert_false(is_there());
}

static void *write_often(void *state)
{
	for (unsigned i = 0; i < 100; i++)
		put(state);
	return NULL;
}

static unsigned count_files(const struct fixture *f)
{
	char folder[128];
	DIR *stream;
	unsigned n = 0;

	snprintf(folder, sizeof(folder), "%s/stillframe/tables-11", f->home);
	stream = opendir(folder);
	assert_non_null(stream);
	while (readdir(stream))
		n++;
	closedir(stream);
	return n - 2; /* . and .. */
}

static void stat_only_file(const struct fixture *f, struct stat *ret)
{
	char path[300];
	struct dirent *entry;
	DIR *stream;

	snprintf(path, sizeof(path), "%s/stillframe/tables-11", f->home);
	stream = opendir(path);
	assert_non_null(stream);
	while ((entry = readdir(stream)) && entry->d_name[0] == '.')
		;
	assert_non_null(entry);
	assert_int_equal(fstatat(dirfd(stream), entry->d_name, ret, 0), 0);
	closedir(stream);
}

static void writers_and_readers_at_once(void **state)
{
	struct fixture *f = *state;
	pthread_t threads[4];

	put(f);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_often, f), 0);
	for (unsigned i = 0; i < 200; i++)
		assert_true(is_hit(f));
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_true(is_hit(f));
	assert_int_equal(count_files(f), 1);
}

static void the_oldest_files_go(void **state)
{
	struct fixture *f = *state;
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct sf_cache cache;
	char first[300];

	assert_true(sf_cache_open(&cache, false));
	put(f);
	snprintf(first, sizeof(first), "%s.first", f->file);
	assert_int_equal(rename(f->file, first), 0);
	assert_int_equal(utimensat(AT_FDCWD, first, old, 0), 0);
	put(f);
	sf_cache_prune(cache.folder, 2 * f->size);
	assert_int_equal(count_files(f), 2);
	sf_cache_prune(cache.folder, 2 * f->size - 1);
	assert_int_equal(count_files(f), 1);
	assert_true(is_hit(f));
	sf_cache_prune(cache.folder, 0);
	assert_int_equal(count_files(f), 0);
	sf_cache_close(&cache);
}

static void use_makes_a_file_young(void **state)
{
	const struct fixture *f = *state;
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct stat status;

	put(f);
	assert_int_equal(utimensat(AT_FDCWD, f->file, old, 0), 0);
	assert_true(is_hit(f));
	assert_int_equal(stat(f->file, &status), 0);
	assert_true(status.st_mtim.tv_sec > 1000);
}

/* The whole way: a table that is opened twice is built once. */
static void open_goes_through_the_cache(void **state)
{
	const struct fixture *f = *state;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct sf_table table;
	struct stat first, second;
	void *built, *block;
	size_t built_size, size;

	assert_true(sf_unwind_build(fd, &built, &built_size, NULL));
	for (unsigned i = 0; i < 2; i++) {
		assert_true(sf_unwind_open(fd, true, NULL, &table, &block, &size, NULL));
		assert_int_equal(size, built_size);
		assert_memory_equal(block, built, size);
		assert_int_equal(count_files(f), 1);
		stat_only_file(f, i ? &second : &first);
		sf_unwind_close(block, size);
	}
	assert_int_equal(first.st_ino, second.st_ino);
	sf_unwind_close(built, built_size);
	close(fd);
}

static void what_is_not_to_be_kept_is_not(void **state)
{
	const struct fixture *f = *state;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct sf_table table;
	void *block;
	size_t size;

	assert_true(is_there());
	assert_true(sf_unwind_open(fd, false, NULL, &table, &block, &size, NULL));
	assert_int_equal(count_files(f), 0);
	sf_unwind_close(block, size);
	close(fd);
}

/* A table that somebody has got stays whole, whatever becomes of its file. */
static void a_file_may_be_shortened_while_its_table_is_used(void **state)
{
	const struct fixture *f = *state;
	void *block[2];
	size_t size;

	put(f);
	for (unsigned i = 0; i < 2; i++) {
		struct sf_cache cache;

		assert_true(sf_cache_open(&cache, i));
		assert_true(sf_cache_get(&cache, &f->key, &block[i], &size));
		sf_cache_close(&cache);
	}
	assert_int_equal(truncate(f->file, 0), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_memory_equal(block[i], f->block, size);
		munmap(block[i], size);
	}
}

/* ext4 takes long to make a file where many came and went. */
static void all_tables_are_in_one_file(void **state)
{
	const struct fixture *f = *state;
	struct sf_cache cache;
	struct stat status;
	void *block[3];
	int files[3];
	size_t size;

	put(f);
	assert_true(sf_cache_open(&cache, true));
	for (unsigned i = 0; i < 3; i++) {
		assert_true(sf_cache_get(&cache, &f->key, &block[i], &size));
		files[i] = cache.file;
	}
	assert_true(files[1] == files[0] && files[2] == files[0]);
	if (files[0] >= 0) {
		assert_int_equal(fstat(files[0], &status), 0);
		assert_int_equal(status.st_nlink, 0);
	}
	sf_cache_close(&cache);
	for (unsigned i = 0; i < 3; i++) {
		assert_memory_equal(block[i], f->block, size);
		munmap(block[i], size);
	}
	if (files[0] < 0) {
		print_message("/tmp is on a tmpfs, or on no local file system: tables are in anonymous memory there\n");
		skip();
	}
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_put_comes_back),
		TEST(another_machine_or_digest_is_a_miss),
		TEST(damage_is_a_miss),
		TEST(files_that_others_can_write_are_a_miss),
		TEST(files_of_others_are_a_miss),
		TEST(links_are_a_miss),
		TEST(unsafe_folders_are_not_used),
		TEST(no_folder_is_no_error),
		TEST(relative_and_empty_paths_count_for_nothing),
		TEST(writers_and_readers_at_once),
		TEST(the_oldest_files_go),
		TEST(use_makes_a_file_young),
		TEST(open_goes_through_the_cache),
		TEST(what_is_not_to_be_kept_is_not),
		TEST(a_file_may_be_shortened_while_its_table_is_used),
		TEST(all_tables_are_in_one_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The images of processes that end while their mappings are gone through: their files are found without them, or left to the next
 * process that maps them.
 */
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "chrooted.h"
#include "target/images.h"

#define NOWHERE "/nowhere/program" /* where we have no file */

static struct sf_images *images;
static pid_t ended;
static char program[512];

static void load_nothing(struct sf_image *image)
{
	(void)image;
}

static int set_up(void **state)
{
	static const struct sf_image_loader none = { .load = load_nothing, .unload = load_nothing };
	const ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

	(void)state;
	ended = fork();
	if (ended == 0)
		_exit(0);
	images = sf_images_create(&none);
	return n > 0 && waitpid(ended, NULL, 0) == ended && images ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	sf_images_destroy(images);
	return 0;
}

static bool take_code(const struct sf_mapping *mapping, void *arg)
{
	struct sf_mapping *ret = arg;
	const char *path = ret->path;

	if (!mapping->executable || strcmp(mapping->path, path) != 0)
		return true;
	*ret = *mapping;
	ret->path = path;
	return false;
}

/* Our own code of this path. */
static struct sf_mapping own_mapping(const char *path)
{
	struct sf_mapping mapping = { .path = path };

	assert_false(sf_process_maps(getpid(), take_code, &mapping, NULL));
	return mapping;
}

#define N_SEGMENTS 40

/* Each page of the file is an executable segment, and is linked to run a gigabyte further up. */
static void write_segments(int fd)
{
	Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT }, .e_type = ET_DYN,
			      .e_version = EV_CURRENT, .e_phoff = sizeof(header), .e_ehsize = sizeof(header),
			      .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = N_SEGMENTS };
	Elf64_Phdr segments[N_SEGMENTS];

	for (uint64_t i = 0; i < N_SEGMENTS; i++)
		segments[i] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = i << 12, .p_filesz = 4096,
					    .p_vaddr = (i + 1) << 30 };
	assert_int_equal(write(fd, &header, sizeof(header)), sizeof(header));
	assert_int_equal(write(fd, segments, sizeof(segments)), sizeof(segments));
	assert_int_equal(ftruncate(fd, N_SEGMENTS << 12), 0);
}

static void all_executable_segments_are_known(void **state)
{
	char path[] = "/tmp/stillframe-test-XXXXXX";
	const int fd = mkstemp(path);
	struct sf_image_seen seen = { .path = path };
	struct sf_image *image;
	struct stat status;
	uint64_t address;
	(void)state;

	write_segments(fd);
	assert_int_equal(fstat(fd, &status), 0);
	seen.inode = status.st_ino;
	seen.device = status.st_dev;
	image = sf_images_add(images, 0, &seen);
	assert_true(image && image->fd >= 0);
	for (uint64_t i = 0; i < N_SEGMENTS; i++)
		assert_true(sf_image_address(image, (i << 12) + 8, &address) && address == ((i + 1) << 30) + 8);
	assert_false(sf_image_address(image, N_SEGMENTS << 12, &address));
	sf_image_close(image); /* they stay */
	assert_true(sf_image_address(image, 8, &address));
	close(fd);
	assert_int_equal(unlink(path), 0);
}

/* The page at 0x3000 is mapped with both of them. */
static void segments_may_share_a_page(void **state)
{
	const struct sf_elf_code code[] = { { 0x1000, 0x2040, 0x401000 }, { 0x3040, 0x100, 0x413040 } };
	uint64_t address;
	(void)state;

	assert_true(sf_elf_code_address(code, 2, 0x1000, &address) && address == 0x401000);
	assert_true(sf_elf_code_address(code, 2, 0x2000, &address) && address == 0x402000);
	assert_true(sf_elf_code_address(code, 2, 0x3000, &address) && address == 0x413000);
}

static void a_file_is_found_at_its_path(void **state)
{
	const struct sf_mapping mapping = own_mapping(program);
	const struct sf_image *image = sf_images_find(images, ended, &mapping);

	(void)state;
	assert_true(image->fd >= 0 && !image->from_memory && image->build_id_size);
	assert_string_equal(image->note, "");
	assert_ptr_equal(sf_images_find(images, getpid(), &mapping), image);
}

/* As on btrfs, where the list of mappings has one device for all subvolumes, and their files have the same numbers. */
static void a_file_of_another_volume_is_another_one(void **state)
{
	struct sf_mapping mapping = own_mapping(program);
	struct sf_image *image = sf_images_find(images, getpid(), &mapping), *first, *second;

	(void)state;
	assert_int_equal(image->volume, 0);
	mapping.device++;
	first = sf_images_find(images, getpid(), &mapping);
	assert_true(first != image && first->volume + 1 == mapping.device);
	assert_ptr_equal(sf_images_find(images, getpid(), &mapping), first);
	first->volume++;
	second = sf_images_find(images, getpid(), &mapping);
	assert_true(second && second != first && second != image);
	assert_int_equal(second->volume + 1, first->volume);
	assert_ptr_equal(sf_images_find(images, getpid(), &mapping), second);
}

static void another_file_at_its_path_is_not_taken(void **state)
{
	struct sf_mapping mapping = own_mapping(program);

	(void)state;
	mapping.inode++;
	assert_int_equal(sf_images_find(images, ended, &mapping)->fd, -1);
}

static void its_vdso_is_ours(void **state)
{
	const struct sf_mapping mapping = own_mapping("[vdso]");
	const struct sf_image *image = sf_images_find(images, ended, &mapping);
	uint64_t address;

	(void)state;
	assert_true(sf_image_address(image, 0, &address)); /* it is no empty file */
	assert_ptr_equal(sf_images_find(images, getpid(), &mapping), image);
}

/* As in a container, whose files are at no path of ours. */
static void a_later_process_shows_the_file(void **state)
{
	struct sf_mapping mapping = own_mapping(program);
	const struct sf_image_seen seen = { .path = NOWHERE, .inode = mapping.inode, .device = mapping.device };
	const struct sf_image *missing;

	(void)state;
	mapping.path = NOWHERE;
	missing = sf_images_find(images, ended, &mapping);
	assert_int_equal(missing->fd, -1);
	assert_string_equal(missing->path, NOWHERE);
	assert_string_not_equal(missing->note, "");
	assert_ptr_equal(sf_images_add(images, 0, &seen), missing);
	assert_ptr_equal(sf_images_find(images, ended, &mapping), missing);
	assert_true(sf_images_find(images, getpid(), &mapping)->fd >= 0);
	assert_true(sf_images_find(images, ended, &mapping)->fd >= 0);
	assert_true(sf_images_add(images, 0, &seen)->fd >= 0);
	assert_int_equal(sf_images_count(images), 2);
}

/* More of them than there may be copies of memory: none is made of a process that has ended. */
static void they_take_no_room_from_copies_of_memory(void **state)
{
	struct sf_mapping mapping = own_mapping(program);
	const struct sf_mapping vdso = own_mapping("[vdso]");

	(void)state;
	mapping.path = NOWHERE;
	for (int i = 0; i < 100; i++) {
		mapping.inode++;
		assert_int_equal(sf_images_find(images, ended, &mapping)->fd, -1);
	}
	assert_true(sf_images_find(images, getpid(), &vdso)->fd >= 0);
}

/* A record of the kernel names the file first, and then the agent of a process that has it. */
static void a_file_that_was_recorded_is_looked_for_again(void **state)
{
	char root[] = "/tmp/stillframe-test-XXXXXX", path[64];
	struct sf_image_seen seen = { .path = "/only-there" };
	struct stat status;
	FILE *file;
	pid_t child;
	int go;

	(void)state;
	if (geteuid() != 0) /* chroot */
		skip();
	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof(path), "%s%s", root, seen.path);
	file = fopen(path, "w");
	assert_true(file && fstat(fileno(file), &status) == 0 && fclose(file) == 0);
	seen.inode = status.st_ino;
	seen.device = status.st_dev;
	child = start_in(root, &go);
	assert_int_equal(sf_images_add(images, 0, &seen)->fd, -1);
	assert_true(sf_images_add(images, child, &seen)->fd >= 0);
	assert_true(sf_images_add(images, 0, &seen)->fd >= 0);
	assert_int_equal(sf_images_count(images), 2);
	close(go);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(unlink(path) == 0 && rmdir(root) == 0);
}

/* The list of a process's mappings has other paths than the kernel's records, which are as seen from its root. */
static void a_file_that_is_known_is_that_of_a_record(void **state)
{
	const struct sf_mapping mapping = own_mapping(program);
	struct sf_image_seen seen = { .path = NOWHERE, .inode = mapping.inode, .device = mapping.device };
	const struct sf_image *image;

	(void)state;
	assert_int_equal(sf_images_add(images, 0, &seen)->fd, -1);
	image = sf_images_find(images, getpid(), &mapping);
	assert_ptr_equal(sf_images_add(images, 0, &seen), image);
	seen.inode++;
	assert_int_equal(sf_images_add(images, 0, &seen)->fd, -1);
}

/* What `from` has, written into the open file. */
static void fill(int fd, const char *from)
{
	const int source = open(from, O_RDONLY | O_CLOEXEC);
	char piece[4096];
	ssize_t n;

	assert_true(source >= 0);
	assert_int_equal(ftruncate(fd, 0) | lseek(fd, 0, SEEK_SET), 0);
	while ((n = read(source, piece, sizeof(piece))) > 0)
		assert_int_equal(write(fd, piece, (size_t)n), n);
	close(source);
}

/* As by `cp new old`: device, inode and path are the same. */
static void a_file_that_was_written_to_is_another_one(void **state)
{
	char path[] = "/tmp/stillframe-test-XXXXXX";
	const int fd = mkstemp(path);
	struct sf_mapping mapping = { .path = path, .executable = true };
	struct sf_image_seen seen = { .path = path };
	struct sf_image *before, *after, *last;
	struct stat status;
	(void)state;

	fill(fd, program);
	assert_int_equal(fstat(fd, &status), 0);
	mapping.inode = seen.inode = status.st_ino;
	mapping.device = seen.device = status.st_dev;
	before = sf_images_find(images, ended, &mapping);
	assert_true(before && before->fd >= 0 && before->build_id_size);
	assert_int_equal(fchmod(fd, 0755), 0);
	assert_ptr_equal(sf_images_find(images, ended, &mapping), before);
	assert_false(before->is_rewritten);
	usleep(20000); /* before Linux 6.13 times of files are those of the kernel's tick */
	fill(fd, "/bin/sh");
	after = sf_images_find(images, ended, &mapping);
	assert_true(after && after != before && after->fd >= 0);
	assert_true(before->is_rewritten && !after->is_rewritten);
	assert_memory_not_equal(after->build_id, before->build_id, after->build_id_size);
	assert_ptr_equal(sf_images_find(images, ended, &mapping), after);
	assert_ptr_equal(sf_images_add(images, 0, &seen), after);
	usleep(20000);
	fill(fd, "/bin/cat");
	last = sf_images_add(images, 0, &seen);
	assert_true(last != before && last != after && !last->is_rewritten);
	close(fd);
	assert_int_equal(unlink(path), 0);
}

/* Without a build id the time of the last write tells, but only of a file with code: the dump of a JIT compiler is mapped, and grows. */
static void only_files_with_code_are_written_to(void **state)
{
	(void)state;
	for (unsigned has_code = 0; has_code < 2; has_code++) {
		char path[] = "/tmp/stillframe-test-XXXXXX";
		const int fd = mkstemp(path);
		struct sf_image_seen seen = { .path = path };
		struct sf_image *image;
		struct stat status;

		if (has_code)
			write_segments(fd);
		assert_int_equal(fstat(fd, &status), 0);
		seen.inode = status.st_ino;
		seen.device = status.st_dev;
		image = sf_images_add(images, 0, &seen);
		assert_true(image && image->fd >= 0 && !image->build_id_size && !sf_image_is_rewritten(image));
		usleep(20000);
		assert_int_equal(pwrite(fd, "more", 4, 3 << 12), 4);
		assert_int_equal(sf_image_is_rewritten(image), has_code);
		close(fd);
		assert_int_equal(unlink(path), 0);
	}
}

/* In the child the number of the file is another file's, or nobody's. */
static void a_forked_child_has_no_file_open(void **state)
{
	const struct sf_mapping mapping = own_mapping(program);
	struct sf_image *image = sf_images_find(images, getpid(), &mapping);
	const int fd = image->fd;

	(void)state;
	assert_true(fd >= 0);
	assert_false(sf_images_forked(images)); /* it could not be loaded */
	image->fd = fd;
	sf_images_load(images);
	assert_true(sf_images_forked(images));
	assert_int_equal(image->fd, -1);
	assert_ptr_equal(sf_images_find(images, getpid(), &mapping), image);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_is_found_at_its_path, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_of_another_volume_is_another_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another_file_at_its_path_is_not_taken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(its_vdso_is_ours, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_later_process_shows_the_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(they_take_no_room_from_copies_of_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_that_was_recorded_is_looked_for_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_that_is_known_is_that_of_a_record, set_up, tear_down),
		cmocka_unit_test_setup_teardown(all_executable_segments_are_known, set_up, tear_down),
		cmocka_unit_test(segments_may_share_a_page),
		cmocka_unit_test_setup_teardown(a_file_that_was_written_to_is_another_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_files_with_code_are_written_to, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_forked_child_has_no_file_open, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

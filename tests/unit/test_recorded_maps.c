/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code map of a process that ended before its memory map was read: from mappings that an engine has seen, or its
 * parent's.
 */
#include <setjmp.h>
#include <signal.h>
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
#include "target/process.h"

static struct sf_images *images;
static struct sf_process process;
static char path[512];
static struct stat status;

static void load_nothing(struct sf_image *image)
{
	(void)image;
}

/* A process that has ended, and was waited for. */
static int set_up(void **state)
{
	static const struct sf_image_loader none = { .load = load_nothing, .unload = load_nothing };
	const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	images = sf_images_create(&none);
	sf_process_init(&process, pid);
	return n > 0 && stat(path, &status) == 0 && waitpid(pid, NULL, 0) == pid && images ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	sf_process_deinit(&process);
	sf_images_destroy(images);
	return 0;
}

static void add_code(struct sf_process *own, uint64_t start, uint64_t end, const char *file)
{
	assert_true(sf_process_add_mapping(own, images, &(struct sf_mapping){ .start = start, .end = end, .executable = true, .path = file }));
}

static void add_vdso(struct sf_process *own, uint64_t start)
{
	add_code(own, start, start + 0x1000, "[vdso]");
}

static void add_mapping(uint64_t start, uint64_t end, const char *file)
{
	const struct sf_mapping mapping = { .start = start, .end = end, .inode = status.st_ino, .device = status.st_dev,
					    .executable = true, .readable = true, .path = file };

	assert_true(sf_process_add_mapping(&process, images, &mapping));
}

/* A child that has ended, and that nobody has waited for: its list of mappings is there and empty. */
static pid_t make_zombie(struct sf_process *ret)
{
	const pid_t pid = fork();
	siginfo_t info;

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	sf_process_init(ret, pid);
	assert_true(sf_process_refresh(ret, images, NULL));
	return pid;
}

/* This process, with its map as the system has it. */
static void read_own(struct sf_process *ret)
{
	sf_process_init(ret, getpid());
	assert_true(sf_process_refresh(ret, images, NULL));
}

static void forget_recorded(struct sf_process *own)
{
	for (size_t i = 0; i < own->recorded.n; i++)
		free(own->recorded.items[i].path);
	own->recorded.n = 0;
}

static void test_from_recorded_mappings(void **state)
{
	const struct sf_region *regions;

	(void)state;
	assert_false(sf_process_refresh(&process, images, NULL));
	assert_null(process.map);
	add_mapping(0x9000, 0xa000, path);
	add_mapping(0x1000, 0x3000, path);
	assert_true(sf_process_refresh(&process, images, NULL));
	assert_int_equal(process.map->n_regions, 2);
	regions = process.map->regions;
	assert_int_equal(regions[0].start, 0x1000);
	assert_int_equal(regions[1].start, 0x9000);
	assert_int_equal(regions[0].image, regions[1].image);
	assert_true(sf_images_get(images, regions[0].image)->fd >= 0);
	/* More comes later, and what it lies on is gone. */
	status.st_ino++;
	add_mapping(0x2000, 0x9800, "/nonexistent/library.so");
	assert_true(sf_process_refresh(&process, images, NULL));
	assert_int_equal(process.map->n_regions, 1);
	assert_int_equal(sf_images_get(images, process.map->regions[0].image)->fd, -1);
}

/* Walks by one map are not continued by another one, even where it lies at the same address (frozen/unwind/tail.h). */
static void test_no_two_maps_have_one_serial(void **state)
{
	uint64_t serials[4];
	struct sf_process child;

	(void)state;
	add_mapping(0x1000, 0x3000, path);
	assert_true(sf_process_refresh(&process, images, NULL));
	serials[0] = process.map->serial;
	add_mapping(0x4000, 0x5000, path);
	assert_true(sf_process_refresh(&process, images, NULL));
	serials[1] = process.map->serial;
	sf_process_show_runtimes(&process);
	serials[2] = process.map->serial;
	sf_process_init(&child, 2);
	assert_true(sf_process_fork(&child, &process));
	serials[3] = child.map->serial;
	sf_process_deinit(&child);
	for (unsigned i = 0; i < 4; i++)
		assert_true(serials[i] && (!i || serials[i] > serials[i - 1]));
}

/* What is known of walks by a map stays when it is read again and is the same, and it is read again ever later. */
static void test_a_map_that_stays_the_same(void **state)
{
	const struct sf_code_map *map;
	uint64_t serial, now_ns, pause_ns, last_ns = 0;
	struct sf_code_map *old;

	(void)state;
	add_mapping(0x1000, 0x3000, path);
	assert_true(sf_process_refresh(&process, images, NULL));
	process.since_ns = 0; /* it is no longer new */
	map = process.map;
	serial = map->serial;
	for (unsigned i = 0; i < 10; i++) {
		assert_true(sf_process_refresh_beside(&process, images, &old, NULL));
		assert_null(old);
		assert_ptr_equal(process.map, map);
		assert_int_equal(map->serial, serial);
		process.refresh_cost_ns = process.load_cost_ns = 0;
		now_ns = process.refreshed_ns;
		pause_ns = sf_process_refresh_pause_ns(&process, now_ns);
		assert_true(pause_ns > last_ns || pause_ns == 200000000);
		last_ns = pause_ns;
	}
	assert_int_equal(last_ns, 200000000);
	assert_false(sf_process_refresh_stale(&process, images));
	assert_int_equal(process.refreshed_ns, now_ns); /* it was not read */
	process.refreshed_ns = 0;
	assert_false(sf_process_refresh_stale(&process, images));
	assert_true(process.refreshed_ns); /* it was read, and is the same */
	add_mapping(0x4000, 0x5000, path);
	assert_true(sf_process_refresh_beside(&process, images, &old, NULL));
	assert_ptr_equal(old, map);
	assert_true(old->n_regions == 1 && process.map->n_regions == 2);
	free(old);
	process.refresh_cost_ns = process.load_cost_ns = 0;
	assert_in_range(sf_process_refresh_pause_ns(&process, now_ns), 1, 10000000);
	process.since_ns = now_ns; /* in its first second, when it is read at once no longer */
	process.n_at_once = 0;
	assert_int_equal(sf_process_refresh_pause_ns(&process, now_ns), 0);
	process.same_pause_ns = 20000000;
	assert_int_equal(sf_process_refresh_pause_ns(&process, now_ns), 20000000);
}

/* Our own code of this file. */
static struct sf_region own_region(const struct sf_process *own)
{
	for (size_t i = 0; i < own->map->n_regions; i++) {
		const struct sf_region *region = &own->map->regions[i];

		if (region->image && sf_images_get(images, region->image)->inode == status.st_ino)
			return *region;
	}
	fail();
	return (struct sf_region){ 0 };
}

/* Of another file, or of none, or of the same one at another place. */
static void test_a_mapping_in_the_place_of_other_code(void **state)
{
	struct sf_process own;
	struct sf_region region;
	struct sf_mapping mapping = { .inode = status.st_ino, .device = status.st_dev, .executable = true, .path = path };

	(void)state;
	sf_process_init(&own, getpid());
	assert_true(sf_process_refresh(&own, images, NULL));
	region = own_region(&own);
	mapping.start = region.start;
	mapping.end = region.end;
	assert_true(sf_process_add_mapping(&own, images, &mapping));
	assert_false(own.is_overlaid);
	for (unsigned i = 0; i < 3; i++) {
		struct sf_mapping other = mapping;

		other.inode = i == 1 ? 0 : other.inode + (i == 0);
		other.path = i == 1 ? "//anon" : path;
		other.start += i == 2 ? 0x1000 : 0;
		assert_true(sf_process_add_mapping(&own, images, &other));
		assert_true(own.is_overlaid && sf_process_may_mislead(&own, true, own.refreshed_ns));
		assert_true(sf_process_refresh(&own, images, NULL));
		assert_false(own.is_overlaid || sf_process_may_mislead(&own, true, own.refreshed_ns));
	}
	sf_process_deinit(&own);
}

/* The more reading it costs, the longer it is kept; a second, at most and where there are records. */
static void test_how_long_a_map_is_kept(void **state)
{
	static const struct {
		uint64_t cost_ns, kept_ns;
		bool has_records;
	} cases[] = {
		{ 0, 100000000, false },
		{ 1000000, 200000000, false },
		{ 100000000, 1000000000, false },
		{ 0, 1000000000, true },
	};

	(void)state;
	process.refreshed_ns = 5000000000;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint64_t until_ns = process.refreshed_ns + cases[i].kept_ns;

		process.refresh_cost_ns = cases[i].cost_ns;
		assert_false(sf_process_may_mislead(&process, cases[i].has_records, until_ns));
		assert_true(sf_process_may_mislead(&process, cases[i].has_records, until_ns + 1));
	}
}

/* A file that has replaced the one that was mapped is not taken for it. */
static void test_another_file_at_the_path(void **state)
{
	(void)state;
	status.st_ino++;
	add_mapping(0x1000, 0x3000, path);
	assert_true(sf_process_refresh(&process, images, NULL));
	assert_int_equal(sf_images_get(images, process.map->regions[0].image)->fd, -1);
}

/* Mappings that cannot be are none; and however many there are, memory is bounded. */
static void test_hostile_mappings(void **state)
{
	(void)state;
	add_mapping(0x3000, 0x3000, path);
	add_mapping(0x3000, 0x1000, path);
	assert_int_equal(process.recorded.n, 0);
	for (uint64_t i = 1; i <= 20000; i++)
		add_mapping(i * 0x1000, (i + 1) * 0x1000, "/a");
	assert_true(process.recorded.n < 10000);
	add_mapping(0, UINT64_MAX, "/b");
	assert_int_equal(process.recorded.n, 1);
}

/*
 * A map that was read from the system stays, since it has what a runtime made, too. What was add_mapping later is added, and
 * replaces what was there.
 */
static void test_a_map_from_the_system_is_added_to(void **state)
{
	struct sf_process own;
	uint64_t first, end;
	size_t n;

	(void)state;
	read_own(&own);
	n = own.map->n_regions;
	first = own.map->regions[0].start;
	end = own.map->regions[0].end;
	own.pid = process.pid;
	assert_false(sf_process_refresh(&own, images, NULL));
	for (int i = 0; i < 2; i++) {
		add_code(&own, 0x1000, 0x2000, path);
		assert_true(sf_process_refresh(&own, images, NULL));
		assert_int_equal(own.map->n_regions, n + 1);
		assert_int_equal(own.map->regions[0].start, 0x1000);
		assert_int_equal(own.map->regions[1].start, first);
	}
	add_code(&own, first, end, "/new");
	assert_true(sf_process_refresh(&own, images, NULL));
	assert_int_equal(own.map->n_regions, n + 1);
	assert_int_equal(own.map->regions[1].start, first);
	/* A child that was forked and has ended had the same code. */
	assert_true(sf_process_fork(&process, &own));
	assert_int_equal(process.map->n_regions, own.map->n_regions);
	assert_memory_equal(process.map->regions, own.map->regions, own.map->n_regions * sizeof(own.map->regions[0]));
	sf_process_deinit(&own);
}

/* A library that was mapped for a moment is not in the list that is read later. The samples in it are. */
static void test_a_file_that_is_no_longer_mapped(void **state)
{
	struct sf_process own;
	uint64_t first, last_end;
	size_t n;

	(void)state;
	read_own(&own);
	n = own.map->n_regions;
	first = own.map->regions[0].start;
	last_end = own.map->regions[n - 1].end;
	add_code(&own, 0x1000, 0x2000, "[anon]");
	add_code(&own, first - 0x1000, first + 1, path); /* another one lies there by now */
	add_code(&own, last_end, last_end + 0x1000, path);
	assert_true(sf_process_refresh(&own, images, NULL));
	assert_int_equal(own.map->n_regions, n + 1);
	assert_int_equal(own.map->regions[0].start, first);
	assert_int_equal(own.map->regions[n].start, last_end);
	assert_true(sf_process_map_is_read(&own));
	add_code(&own, 0x1000, 0x2000, path);
	assert_true(sf_process_refresh(&own, images, NULL));
	assert_int_equal(own.map->regions[0].start, 0x1000);
	assert_int_equal(own.map->n_regions, n + 2);
	sf_process_deinit(&own);
}

/* What a child maps is added to the code that it has from its parent, until it runs another program. */
static void test_a_child_has_its_parents_code(void **state)
{
	struct sf_process parent;
	size_t n;

	(void)state;
	read_own(&parent);
	n = parent.map->n_regions;
	assert_true(sf_process_fork(&process, &parent));
	for (unsigned i = 0; i < 2; i++) {
		add_mapping(0x1000 + i * 0x2000, 0x3000 + i * 0x2000, path);
		assert_true(sf_process_refresh(&process, images, NULL));
		assert_int_equal(process.map->n_regions, n + 1 + i);
		assert_int_equal(process.map->regions[1 + i].start, parent.map->regions[0].start);
	}
	add_vdso(&process, 0x7000);
	assert_true(sf_process_refresh(&process, images, NULL));
	assert_int_equal(process.map->n_regions, 3);
	add_mapping(0x9000, 0xa000, path);
	assert_true(sf_process_refresh(&process, images, NULL));
	assert_int_equal(process.map->n_regions, 4);
	sf_process_deinit(&parent);
}

/* Mappings that were add_mapping take the place of an empty list. An empty list does not take the place of those. */
static void test_nobody_has_waited(void **state)
{
	struct sf_process zombie;
	const pid_t pid = make_zombie(&zombie);

	(void)state;
	assert_int_equal(zombie.map->n_regions, 0);
	add_code(&zombie, 0x1000, 0x2000, path);
	assert_true(sf_process_refresh(&zombie, images, NULL));
	assert_int_equal(zombie.map->n_regions, 1);
	forget_recorded(&zombie);
	assert_false(sf_process_refresh(&zombie, images, NULL));
	assert_int_equal(zombie.map->n_regions, 1);
	sf_process_deinit(&zombie);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/*
 * The process has executed another program by the time that its map is read: the kernel's own mapping is at another
 * place than was add_mapping. The stacks of the program before are walked by what was add_mapping of it.
 */
static void test_the_next_program_runs_already(void **state)
{
	struct sf_process own;
	uint64_t vdso;
	size_t n;

	(void)state;
	read_own(&own);
	n = own.map->n_regions;
	vdso = own.vdso;
	assert_true(vdso);
	add_vdso(&own, vdso);
	assert_non_null(own.map);
	assert_true(sf_process_refresh(&own, images, NULL));
	assert_int_equal(own.map->n_regions, n);
	add_vdso(&own, 0x5000);
	assert_null(own.map);
	forget_recorded(&own);
	add_vdso(&own, 0x5000);
	add_code(&own, 0x1000, 0x2000, path);
	assert_true(sf_process_refresh(&own, images, NULL));
	assert_int_equal(own.map->n_regions, 2);
	assert_int_equal(own.map->regions[0].start, 0x1000);
	/* More is add_mapping: it is still that program. */
	add_code(&own, 0x2000, 0x3000, path);
	assert_true(sf_process_refresh(&own, images, NULL));
	assert_int_equal(own.map->n_regions, 3);
	sf_process_deinit(&own);
}

/*
 * The list was empty when it was read, in an exec or at the end. Then each mapping that is add_mapping is used at once,
 * however soon it comes.
 */
static void test_an_empty_map_is_renewed_at_once(void **state)
{
	struct sf_process zombie;
	const pid_t pid = make_zombie(&zombie);

	(void)state;
	for (uint64_t i = 1; i <= 2; i++) {
		zombie.refreshed_ns = UINT64_MAX / 2; /* just now, whatever a pause is */
		add_code(&zombie, i << 12, (i + 1) << 12, path);
		assert_int_equal(zombie.refreshed_ns, 0);
		assert_true(sf_process_refresh_stale(&zombie, images));
		assert_int_equal(zombie.map->n_regions, i);
	}
	sf_process_deinit(&zombie);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Whether it is read again. */
static bool renew_at_great_cost(struct sf_process *own)
{
	const uint64_t refreshed_ns = own->refreshed_ns;

	own->refresh_cost_ns = UINT64_C(1000000000);
	sf_process_refresh_stale(own, images);
	return own->refreshed_ns != refreshed_ns;
}

/* When a program starts, its map is read again at once, whatever that costs: but not at every unknown address for ever. */
static void test_the_map_of_a_new_program_is_renewed_at_once(void **state)
{
	struct sf_process own;
	size_t n = 0;

	(void)state;
	read_own(&own);
	while (renew_at_great_cost(&own) && n < 100)
		n++;
	assert_in_range(n, 10, 20);
	own.n_at_once = 1;
	own.since_ns -= UINT64_C(2000000000); /* it is no longer new */
	assert_false(renew_at_great_cost(&own));
	sf_process_deinit(&own);
}

/* A recorded mapping proves that a map lacks something. Without one a map that has just been read is not read again. */
static void test_a_map_is_renewed_for_what_was_recorded(void **state)
{
	struct sf_process own;

	(void)state;
	read_own(&own);
	own.n_at_once = 0;
	assert_false(renew_at_great_cost(&own));
	add_code(&own, 0x10000000, 0x10001000, "/somewhere/lib.so");
	assert_true(renew_at_great_cost(&own));
	assert_false(renew_at_great_cost(&own));
	sf_process_deinit(&own);
}

/* As in a container: the paths of a record are as seen from its root, which its parent has, too. */
static void test_a_file_below_the_parents_root(void **state)
{
	char root[] = "/tmp/stillframe-test-XXXXXX", file[64];
	pid_t parent;
	FILE *made;
	int go;

	(void)state;
	if (geteuid() != 0) /* chroot */
		skip();
	assert_non_null(mkdtemp(root));
	snprintf(file, sizeof(file), "%s/only-there", root);
	made = fopen(file, "w");
	assert_true(made && fstat(fileno(made), &status) == 0 && fclose(made) == 0);
	parent = start_in(root, &go);
	add_mapping(0x1000, 0x3000, "/only-there");
	assert_true(sf_process_refresh(&process, images, NULL));
	assert_int_equal(sf_images_get(images, process.map->regions[0].image)->fd, -1);
	sf_process_set_parent(&process, parent, NULL);
	sf_process_restart(&process); /* by an exec */
	assert_null(process.map);
	assert_int_equal(process.recorded.n, 0);
	add_mapping(0x1000, 0x3000, "/only-there");
	assert_true(sf_process_refresh(&process, images, NULL));
	assert_true(sf_images_get(images, process.map->regions[0].image)->fd >= 0);
	close(go);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	assert_true(unlink(file) == 0 && rmdir(root) == 0);
}

/* A parent that has ended has no root any more, and may have had its own parent's. */
static void test_the_root_is_that_of_a_living_process(void **state)
{
	struct sf_process child, parent = { .pid = getpid(), .root_pid = 7 };

	(void)state;
	sf_process_init(&child, 2);
	sf_process_set_parent(&child, getpid(), &parent);
	assert_int_equal(child.root_pid, getpid());
	parent.pid = process.pid; /* it has ended */
	sf_process_set_parent(&child, process.pid, &parent);
	assert_int_equal(child.root_pid, 7);
	sf_process_set_parent(&child, process.pid, NULL);
	assert_int_equal(child.root_pid, process.pid);
	sf_process_deinit(&child);
}

static void test_a_fork_of_nothing(void **state)
{
	struct sf_process parent;

	(void)state;
	sf_process_init(&parent, process.pid);
	assert_true(sf_process_fork(&process, &parent));
	assert_null(process.map);
	sf_process_deinit(&parent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_from_recorded_mappings, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_two_maps_have_one_serial, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_map_that_stays_the_same, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_mapping_in_the_place_of_other_code, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_how_long_a_map_is_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_another_file_at_the_path, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hostile_mappings, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nobody_has_waited, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_empty_map_is_renewed_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_map_from_the_system_is_added_to, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_file_that_is_no_longer_mapped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_child_has_its_parents_code, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_next_program_runs_already, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_map_of_a_new_program_is_renewed_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_map_is_renewed_for_what_was_recorded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_file_below_the_parents_root, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_root_is_that_of_a_living_process, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_fork_of_nothing, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

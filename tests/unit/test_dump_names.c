/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a dump come from the files as they were when the stacks were read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "elf/facts.h"
#include "os/process.h"
#include "session/dump.h"
#include "small_recording.h"

#define MAX_FILE (8u << 20)
#define MAX_CODE 8

static uint64_t address;         /* of a function in the file that is mapped, as it is linked */
static uint64_t pc;              /* the same as it is mapped here */
static void *mapped;
static size_t mapped_size;

static void copy(const char *from, const char *to)
{
	const int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char *bytes = malloc(MAX_FILE);
	ssize_t n;

	assert_true(in >= 0 && out >= 0 && bytes);
	n = pread(in, bytes, MAX_FILE, 0);
	assert_true(n > 0 && write(out, bytes, (size_t)n) == n);
	close(in);
	close(out);
	free(bytes);
}

static const char *file_of(const char *function, uint64_t *ret)
{
	void *found = dlsym(RTLD_DEFAULT, function);
	Dl_info info;

	assert_true(found && dladdr(found, &info));
	*ret = (uint64_t)((char *)found - (char *)info.dli_fbase);
	return info.dli_fname;
}

/* Maps the code of a library's copy, as if this program had loaded it. */
static int make(void **state)
{
	struct sf_elf_code code[MAX_CODE];
	void *lib = dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL);
	size_t n, i = 0;
	int fd;

	assert_non_null(lib);
	small_folder_make(state);
	copy(file_of("cbrt", &address), small_path("lib.so"));
	fd = open(small_path("lib.so"), O_RDONLY | O_CLOEXEC);
	n = sf_elf_code(fd, code, MAX_CODE);
	while (i < n && address - code[i].address >= code[i].size)
		i++;
	assert_true(i < n);
	mapped_size = code[i].size;
	mapped = mmap(NULL, mapped_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, (off_t)code[i].offset);
	assert_true(mapped != MAP_FAILED);
	close(fd);
	pc = (uint64_t)(uintptr_t)mapped + (address - code[i].address);
	return 0;
}

static int end(void **state)
{
	munmap(mapped, mapped_size);
	return small_folder_remove(state);
}

static bool read_own(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	(void)reader;
	return sf_process_read(getpid(), ret, addr, size) == size;
}

/* An engine that finds one thread, in that function. */
static bool dump(int32_t pid, const struct sf_dump_sink *sink, struct sf_dump_cost *cost_ret, struct sf_error *err)
{
	struct sf_still still = { .pid = pid, .tid = pid, .arch = sf_arch_host(), .regs.pc = pc, .syscall = SF_SYSCALL_NONE };
	const struct sf_dump_seen seen = { .tid = pid, .name = "one", .state = SF_STATE_RUNNING, .loss = -1, .syscall = SF_SYSCALL_NONE };

	*cost_ret = (struct sf_dump_cost){ 0 };
	still.memory.read = read_own;
	sf_reg_set(&still.regs, still.arch->sp, (uint64_t)(uintptr_t)&still);
	sink->still(sink->arg, &still, err);
	return sink->thread(sink->arg, &seen, err);
}

/* `part`: of the function's name; NULL: it has none. `other`: what the file has when names are looked up; NULL: the same. */
static void check_name(const char *other, const char *part)
{
	const struct sf_engine engine = { .name = "one", .dump = dump };
	struct sf_dumps dumps;
	const struct sf_dump_thread *thread;
	const char *name;

	assert_true(sf_dumps_init(&dumps, 64, NULL));
	assert_true(sf_dumps_look(&dumps, &engine, getpid(), NULL));
	if (other)
		copy(other, small_path("lib.so"));
	assert_true(sf_dumps_name(&dumps, NULL));
	assert_int_equal(dumps.items.n, 1);
	thread = &dumps.items.items[0].threads.items[0];
	assert_true(thread->frames.n >= 1);
	assert_string_equal(sf_dump_path(&dumps.items.items[0], thread->frames.items[0].image), small_path("lib.so"));
	name = sf_dump_string(&dumps.items.items[0], thread->frames.items[0].function);
	if (!strstr(name, part ? part : "") || (!part && *name))
		fail_msg("\"%s\"", name);
	sf_dumps_deinit(&dumps);
}

static void a_file_names_its_functions(void **state)
{
	(void)state;
	check_name(NULL, "cbrt");
}

/* It was written to between the look and the names, as by an upgrade that copies over it. */
static void a_file_with_other_content_names_nothing(void **state)
{
	uint64_t unused;

	(void)state;
	check_name(file_of("puts", &unused), NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_names_its_functions, make, end),
		cmocka_unit_test_setup_teardown(a_file_with_other_content_names_nothing, make, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

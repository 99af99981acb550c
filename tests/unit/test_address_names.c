/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code that has no symbols: functions of stripped programs, which are called after where
 * they start, and the stubs that call other modules, against objdump's labels.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "folder.h"
#include "symbols/symbols.h"

static char folder[] = "/tmp/stillframe-names-XXXXXX";

/* Functions with branches and calls, so that each has many addresses. */
static const char c_source[] =
	"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
	"#define NOINLINE __attribute__((noinline, noclone))\n"
	"static NOINLINE int first(int n) {\n  int s = 0;\n"
	"  for (int i = 0; i < n; i++) s += rand() % (i + 3);\n  return s; }\n"
	"static NOINLINE int second(char *text) {\n  qsort(text, strlen(text), 1, 0);\n"
	"  return puts(text) + first(text[0]); }\n"
	"int third(int n) {\n  return n > 2 ? first(n) : second(getenv(\"X\")); }\n"
	"int main(int argc, char **argv) { (void)argv; return third(argc); }\n";

/* A label without a size, as in much assembly, in front of a function that only unwinders know. */
static const char assembly_source[] =
	".text\n.globl bare\nbare:\n nop\n nop\n nop\n nop\n"
	".type known, @function\nknown:\n.cfi_startproc\n nop\n nop\n nop\n ret\n.cfi_endproc\n"
	".size known, . - known\n"
	".section .note.GNU-stack,\"\",@progbits\n";

/* Calls into the standard library, without its headers, which take a third of a second to compile. */
static const char cxx_source[] =
	"namespace std {\ntemplate <typename C> struct char_traits;\n"
	"template <typename C, typename T = char_traits<C>> struct basic_ostream {\n"
	"  basic_ostream &operator<<(int); basic_ostream &operator<<(long); basic_ostream &operator<<(double);\n"
	"  basic_ostream &put(C); basic_ostream &flush(); };\n"
	"extern basic_ostream<char> cout; }\n"
	"int main(int n, char **v) { (std::cout << n << (long)n << (double)n).put(**v).flush(); }\n";

static unsigned n_runs;

static void run(const char *command)
{
	n_runs++;
	if (!folder_run(folder, command))
		fail_msg("%s", command);
}

struct name {
	char function[512], linkage[512];
	bool depends; /* on more than the file */
};

static struct sf_symbols *symbols;

static void keep(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	struct name *names = arg;

	assert_int_equal(n, 1);
	snprintf(names[index].function, sizeof(names->function), "%s", locations[0].function);
	snprintf(names[index].linkage, sizeof(names->linkage), "%s", locations[0].linkage);
	names[index].depends = sf_symbols_depends_on_more(symbols);
}

/* The names at `n` addresses of the file at `path`, from calloc. */
static struct name *names_at(const char *path, const uint64_t *addresses, size_t n)
{
	struct name *names = calloc(n, sizeof(*names));
	SF_CLEANUP(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct sf_error err;

	assert_non_null(names);
	if (!sf_symbols_open(fd, path, true, &symbols, &err) ||
	    !sf_symbols_resolve(symbols, addresses, n, keep, names, &err))
		fail_msg("%s: %s", path, err.text);
	sf_symbols_close(symbols);
	return names;
}

struct symbol {
	uint64_t start, size; /* 0: it has no size */
	char name[128];
};

static struct {
	SF_VEC(struct symbol) items;
	unsigned n_runs; /* when it was read */
} symbols_of_program;

/* The functions of a program that is not stripped, by nm. */
static void read_symbols(const char *program)
{
	char line[512];
	FILE *pipe;

	symbols_of_program.items.n = 0;
	symbols_of_program.n_runs = n_runs;
	snprintf(line, sizeof(line), "nm -S %s/%s", folder, program);
	pipe = popen(line, "re");
	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		struct symbol symbol = { 0 };
		char type = 0;

		if (sscanf(line, "%" SCNx64 " %" SCNx64 " %c %127s", &symbol.start, &symbol.size, &type, symbol.name) != 4) {
			symbol.size = 0;
			if (sscanf(line, "%" SCNx64 " %c %127s", &symbol.start, &type, symbol.name) != 3)
				continue;
		}
		if (type == 't' || type == 'T')
			assert_true(sf_vec_push(&symbols_of_program.items, symbol));
	}
	pclose(pipe);
}

/* Address and size of a symbol of the program, which all symbols are read of until something else was run. */
static void find_symbol(const char *program, const char *name, uint64_t *start, uint64_t *size)
{
	if (symbols_of_program.n_runs != n_runs)
		read_symbols(program);
	for (size_t i = 0; i < symbols_of_program.items.n; i++) {
		const struct symbol *symbol = &symbols_of_program.items.items[i];

		if (strcmp(symbol->name, name) == 0) {
			*start = symbol->start;
			*size = symbol->size;
			return;
		}
	}
	fail_msg("%s has no %s", program, name);
}

static void assert_one_name(const char *program, uint64_t start, uint64_t size)
{
	SF_CLEANUP(free) uint64_t *addresses = calloc(size, sizeof(*addresses));
	SF_CLEANUP(free) struct name *names = NULL;
	char path[128], expected[128];

	assert_non_null(addresses);
	for (uint64_t i = 0; i < size; i++)
		addresses[i] = start + i;
	snprintf(path, sizeof(path), "%s/%s", folder, program);
	snprintf(expected, sizeof(expected), "0x%" PRIx64 " in %s", start, program);
	names = names_at(path, addresses, size);
	for (uint64_t i = 0; i < size; i++) {
		assert_string_equal(names[i].function, expected);
		assert_string_equal(names[i].linkage, "");
	}
}

static void assert_stripped(const char *build)
{
	static const char *const functions[] = { "first", "second", "third", "main" };
	uint64_t start, size;

	run(build);
	run("cp full stripped && strip stripped");
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		find_symbol("full", functions[i], &start, &size);
		assert_true(size > 1);
		assert_one_name("stripped", start, size);
	}
}

static void stripped_functions(void **state)
{
	(void)state;
	assert_stripped("gcc -O0 c.c -o full");
	assert_stripped("gcc -O2 -fno-reorder-functions c.c -o full");
}

static void symbols_without_a_size_end_at_the_next_function(void **state)
{
	uint64_t addresses[5];
	SF_CLEANUP(free) struct name *names = NULL;
	char path[128], expected[64];
	uint64_t size;
	(void)state;

	run("gcc -shared -nostdlib a.s -o full.so && cp full.so a.so && strip a.so");
	find_symbol("full.so", "known", &addresses[2], &size);
	addresses[0] = addresses[2] - 4;
	addresses[1] = addresses[2] - 1;
	addresses[3] = addresses[2] + 3;
	addresses[4] = addresses[2] + size;
	snprintf(path, sizeof(path), "%s/a.so", folder);
	snprintf(expected, sizeof(expected), "0x%" PRIx64 " in a.so", addresses[2]);
	names = names_at(path, addresses, 5);
	assert_string_equal(names[0].function, "bare");
	assert_string_equal(names[1].function, "bare");
	assert_string_equal(names[2].function, expected);
	assert_false(names[0].depends);
	assert_false(names[2].depends);
	assert_string_equal(names[3].function, expected);
	assert_string_equal(names[4].function, "");
}

#ifdef __x86_64__

/* Code without symbols and call frame information, once it is stripped. */
static const char bare_source[] =
	".macro begin name\n.p2align 4\n.globl \\name\n.size \\name, 1\n\\name:\n.endm\n.text\n"
	"begin _start\n lea main(%rip), %rdi\n call *%rax\n hlt\n"
	"begin main\n call called\n test %eax, %eax\n jne moved\n call ended\n ret\n"
	"begin called\n nop\n jmp tail\n"
	"begin moved\n ret\n"
	"begin tail\n mov $1, %eax\n ret\n"
	"begin ended\n call called\n"
	"begin behind\n mov $2, %eax\n ret\n"
	"begin caller\n call alone\n ret\n"
	"begin alone\n mov $3, %eax\n ret\n"
	".section .note.GNU-stack,\"\",@progbits\n";

static uint64_t bare_symbol(const char *name)
{
	uint64_t start, size;

	find_symbol("full", name, &start, &size);
	return start;
}

/* The function at `name` is called after its start, or after nothing. `other`: an address that is asked for, too. */
static void assert_bare(const char *name, bool is_found, uint64_t other)
{
	const uint64_t start = bare_symbol(name), addresses[] = { start, start + 1, other };
	SF_CLEANUP(free) struct name *names = NULL;
	char path[128], expected[64] = "";

	snprintf(path, sizeof(path), "%s/bare", folder);
	if (is_found)
		snprintf(expected, sizeof(expected), "0x%" PRIx64 " in bare", start);
	names = names_at(path, addresses, 3);
	assert_string_equal(names[0].function, expected);
	assert_int_equal(names[0].depends, is_found);
	if (strcmp(name, "moved") != 0) /* one byte */
		assert_string_equal(names[1].function, expected);
}

/* By calls, by jumps into other functions, and by a frame that called. Code that nothing leads to has no name. */
static void starts_that_code_shows(void **state)
{
	static const char *const found[] = { "_start", "main", "called", "moved", "tail", "ended" };
	(void)state;

	folder_write(folder, "bare.s", bare_source);
	run("gcc -nostdlib -static bare.s -o full && cp full bare && strip bare");
	for (size_t i = 0; i < sizeof(found) / sizeof(*found); i++)
		assert_bare(found[i], true, 0);
	assert_bare("behind", false, 0);
	assert_bare("alone", false, 0);
	assert_bare("alone", true, bare_symbol("caller") + 4);
}

/* Nothing calls these. `split` has an int3 that is a byte of an instruction, in front of `inside`. */
static const char padded_source[] =
	".macro begin name\n.globl \\name\n.size \\name, 1\n\\name:\n.endm\n.text\n"
	"begin _start\n hlt\n"
	".p2align 4, 0xcc\nbegin filled\n mov $1, %eax\n ret\n"
	"begin behind\n mov $2, %eax\n ret\n"
	".p2align 4, 0xcc\nbegin split\n .fill 11, 1, 0x90\n mov $0xcc000000, %eax\nbegin inside\n mov $3, %eax\n ret\n"
	".p2align 4\nbegin framed\n push %rbp\n mov %rsp, %rbp\n pop %rbp\n ret\n"
	".section .note.GNU-stack,\"\",@progbits\n";

/* Of code that is not reached: by int3 instructions in front, and where a frame pointer is set up. */
static void starts_that_padding_shows(void **state)
{
	SF_CLEANUP(free) struct name *names = NULL;
	char path[128], expected[64];
	uint64_t inside;
	(void)state;

	folder_write(folder, "padded.s", padded_source);
	run("gcc -nostdlib -static padded.s -o full && cp full bare && strip bare");
	assert_bare("filled", true, 0);
	assert_bare("behind", false, 0);
	assert_bare("split", true, 0);
	assert_bare("framed", true, 0);
	inside = bare_symbol("inside");
	snprintf(path, sizeof(path), "%s/bare", folder);
	snprintf(expected, sizeof(expected), "0x%" PRIx64 " in bare", bare_symbol("split"));
	names = names_at(path, &inside, 1);
	assert_string_equal(names[0].function, expected);
}

/* Functions of a library without sizes. Stripped, `hidden` and `other` have no symbol, and nothing calls them. */
static const char unsized_source[] =
	".text\n.p2align 4\n.globl shown\nshown:\n test %edi, %edi\n jz shown_more\n ret\nshown_more:\n mov $1, %eax\n ret\n"
	".p2align 4\nhidden:\n mov $2, %eax\n ret\n"
	".p2align 4\nother:\n mov $3, %eax\n ret\n"
	".p2align 4\n.globl cases\ncases:\n jmp *%rax\n mov $4, %eax\ncase:\n ret\n"
	".section .note.GNU-stack,\"\",@progbits\n";

static void assert_unsized(const char *build, const char *const expected[5])
{
	static const char *const labels[5] = { "shown", "shown_more", "hidden", "other", "case" };
	SF_CLEANUP(free) struct name *names = NULL;
	uint64_t addresses[5], size;
	char path[128];

	run(build);
	for (size_t i = 0; i < 5; i++)
		find_symbol("full", labels[i], &addresses[i], &size);
	snprintf(path, sizeof(path), "%s/unsized", folder);
	names = names_at(path, addresses, 5);
	for (size_t i = 0; i < 5; i++)
		assert_string_equal(names[i].function, expected[i]);
}

/* The code behind a jump by a register. Where a file has all its symbols, no other code is gone through for it. */
static void assert_nothing_else_is_needed(void)
{
	SF_CLEANUP(free) struct name *names = NULL;
	uint64_t address, size;
	char path[128];

	find_symbol("full", "case", &address, &size);
	address--;
	snprintf(path, sizeof(path), "%s/unsized", folder);
	names = names_at(path, &address, 1);
	assert_string_equal(names[0].function, "cases");
	assert_false(names[0].depends);
}

static void symbols_without_a_size_end_where_their_code_does(void **state)
{
	(void)state;
	folder_write(folder, "unsized.s", unsized_source);
	assert_unsized("gcc -shared -nostdlib unsized.s -o full && cp full unsized && strip unsized",
		       (const char *const[]){ "shown", "shown", "", "", "cases" });
	assert_unsized("cp full unsized", (const char *const[]){ "shown", "shown_more", "hidden", "other", "case" });
	assert_nothing_else_is_needed();
}

struct label {
	uint64_t address;
	char name[512];
};

struct labels {
	SF_VEC(struct label) items;
};

/* Lines such as "0000000000001030 <puts@plt>:". */
static void read_labels(const char *path, struct labels *ret)
{
	char line[1024];
	FILE *pipe;

	snprintf(line, sizeof(line), "objdump -d -j .plt -j .plt.sec -j .plt.got %s 2>/dev/null",
		 path);
	pipe = popen(line, "re");
	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		struct label label;

		if (sscanf(line, "%" SCNx64 " <%511[^>]>:", &label.address, label.name) != 2)
			continue;
		if (strlen(label.name) > 4 &&
		    strcmp(label.name + strlen(label.name) - 4, "@plt") == 0)
			assert_true(sf_vec_push(&ret->items, label));
	}
	pclose(pipe);
}

static void assert_like_objdump(const char *path, size_t n_least)
{
	struct labels labels = { 0 };
	SF_CLEANUP(free) uint64_t *addresses = NULL;
	SF_CLEANUP(free) struct name *names = NULL;
	size_t n;

	read_labels(path, &labels);
	n = labels.items.n;
	assert_true(n >= n_least);
	addresses = calloc(2 * n, sizeof(*addresses));
	assert_non_null(addresses);
	for (size_t i = 0; i < n; i++) {
		addresses[2 * i] = labels.items.items[i].address;
		addresses[2 * i + 1] = labels.items.items[i].address + 7;
	}
	names = names_at(path, addresses, 2 * n);
	for (size_t i = 0; i < 2 * n; i++)
		assert_string_equal(names[i].linkage, labels.items.items[i / 2].name);
	print_message("%s: %zu stubs\n", path, n);
	sf_vec_deinit(&labels.items);
}

static void assert_stubs(const char *build)
{
	char path[128];

	run(build);
	snprintf(path, sizeof(path), "%s/stubs", folder);
	assert_like_objdump(path, 4);
}

static void stubs(void **state)
{
	char path[512] = "";
	FILE *pipe;
	(void)state;

	assert_like_objdump("/usr/bin/bash", 20);
	pipe = popen("ldconfig -p 2>/dev/null | sed -n 's/.*libsqlite3[.]so.*x86-64.* => //p'"
		     " | head -n 1", "re");
	assert_non_null(pipe);
	if (fgets(path, sizeof(path), pipe)) {
		path[strcspn(path, "\n")] = 0;
		assert_like_objdump(path, 20);
	} else {
		print_message("no libsqlite3: skipped\n");
	}
	pclose(pipe);
	assert_stubs("gcc -O2 -c c.c -o c.o && gcc c.o -o stubs -Wl,-z,lazy");
	assert_stubs("gcc c.o -o stubs -Wl,-z,now");
	assert_stubs("gcc -no-pie c.o -o stubs -Wl,-z,lazy");
	assert_stubs("gcc -O2 -fcf-protection -c c.c -o c.o && gcc c.o -o stubs -Wl,-z,lazy -Wl,-z,ibtplt");
	assert_stubs("gcc c.o -o stubs -Wl,-z,now -Wl,-z,ibtplt && strip stubs");
}

static const char two_stubs_source[] = "#include <stdio.h>\nint (*p)(const char *);\n"
	"int main(int argc, char **argv) { p = puts; return puts(argv[0]) + p(argv[argc - 1]); }\n";

/* Two stubs of 8 bytes fill a section up to where the program's first function is aligned. */
static void what_follows_stubs_is_none(void **state)
{
	char path[128], line[256];
	uint64_t start = 0;
	SF_CLEANUP(free) struct name *names = NULL;
	FILE *pipe;
	(void)state;

	folder_write(folder, "two.c", two_stubs_source);
	run("gcc -O1 -fPIE -fcf-protection=none two.c -pie -o two -Wl,-z,lazy && strip two");
	snprintf(path, sizeof(path), "%s/two", folder);
	snprintf(line, sizeof(line), "readelf -h %s | sed -n 's/.*Entry point address: *//p'", path);
	pipe = popen(line, "re");
	assert_int_equal(fscanf(pipe, "%" SCNx64, &start), 1);
	pclose(pipe);
	names = names_at(path, (const uint64_t[]){ start - 1, start, start + 7 }, 3);
	assert_non_null(strstr(names[0].function, "@plt"));
	assert_string_equal(names[1].function, names[2].function);
	assert_null(strstr(names[1].function, "@plt"));
}

/* Names for users are demangled. */
static void stubs_of_cxx(void **state)
{
	struct labels labels = { 0 };
	char path[128];
	bool found = false;
	(void)state;

	assert_stubs("g++ -O2 x.cc -o stubs");
	snprintf(path, sizeof(path), "%s/stubs", folder);
	read_labels(path, &labels);
	for (size_t i = 0; i < labels.items.n; i++) {
		SF_CLEANUP(free) struct name *name =
			names_at(path, &labels.items.items[i].address, 1);

		assert_null(strstr(name->function, "_Z"));
		if (strcmp(name->function, "std::ostream::operator<<@plt") == 0)
			found = true;
	}
	assert_true(found);
	sf_vec_deinit(&labels.items);
}

#endif

static int prepare(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	folder_write(folder, "c.c", c_source);
	folder_write(folder, "a.s", assembly_source);
	folder_write(folder, "x.cc", cxx_source);
	return 0;
}

static int clean_up(void **state)
{
	(void)state;

	sf_vec_deinit(&symbols_of_program.items);
	return folder_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stripped_functions),
		cmocka_unit_test(symbols_without_a_size_end_at_the_next_function),
#ifdef __x86_64__
		cmocka_unit_test(starts_that_code_shows),
		cmocka_unit_test(starts_that_padding_shows),
		cmocka_unit_test(symbols_without_a_size_end_where_their_code_does),
		cmocka_unit_test(stubs),
		cmocka_unit_test(what_follows_stubs_is_none),
		cmocka_unit_test(stubs_of_cxx),
#endif
	};

	return cmocka_run_group_tests(tests, prepare, clean_up);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names, inlined calls and lines of real programs, compiled here in many ways, at every
 * instruction, against llvm-symbolizer. (addr2line 2.40 and eu-addr2line 0.188 judge fewer ways:
 * the first has no split units and loses inlined calls in clang's DWARF 5, the second needs
 * .debug_aranges, which clang does not write.) Where the two may differ, same_name and same_place
 * say why.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "folder.h"
#include "form.h"
#include "symbols/symbols.h"

static char folder[] = "/tmp/stillframe-symbols-XXXXXX";

static const char cxx_source[] =
	"#include <vector>\n#include <string>\n#include <map>\n#include <algorithm>\n"
	"#include <functional>\n#include <cstdio>\n"
	"namespace outer {\nnamespace {\nstruct Hidden { int v; Hidden(int x) : v(x * 3) {}\n"
	"  int get() const { return v + 1; } };\n}\n"
	"template <typename T> struct Box { T t; Box(T a) : t(a) {}\n"
	"  __attribute__((noinline)) T twice() { return t + t; } };\n"
	"struct Base { virtual ~Base() {} virtual int run(int) = 0; };\n"
	"struct Derived : Base { std::vector<int> v;\n"
	"  int run(int n) override { for (int i = 0; i < n; i++) v.push_back(i ^ n);\n"
	"    return (int)v.size(); } };\n}\n"
	"static int use(std::map<std::string, int> &m, int n) {\n"
	"  for (int i = 0; i < n; i++) m[std::to_string(i)] += outer::Hidden(i).get();\n"
	"  auto f = [&](int k) { struct Local { int a; int go() { return a * 7; } } l{k};\n"
	"    return l.go() + (int)m.size(); };\n"
	"  std::function<int(int)> g = f;\n  int s = 0;\n"
	"  for (auto &p : m) s += g(p.second);\n  return s;\n}\n"
	"int main(int argc, char **argv) {\n  std::map<std::string, int> m;\n"
	"  outer::Derived d;\n  outer::Box<double> b(argc);\n"
	"  std::vector<std::string> names(argv, argv + argc);\n"
	"  std::sort(names.begin(), names.end(),\n"
	"    [](const std::string &x, const std::string &y) { return x > y; });\n"
	"  std::printf(\"%d %d %f\\n\", use(m, argc * 100), d.run(argc), b.twice());\n}\n";

/* The same kinds of code without the library's headers, which take a second to compile. */
static const char light_source[] =
	"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
	"namespace outer {\nnamespace {\nstruct Hidden { int v; Hidden(int x) : v(x * 3) {}\n"
	"  int get() const { return v + 1; } };\n}\n"
	"template <typename T> class Array { T *items = nullptr; size_t used = 0, room = 0;\n"
	"public:\n  ~Array() { free(items); }\n"
	"  T *begin() { return items; }\n  T *end() { return items + used; }\n"
	"  size_t size() const { return used; }\n"
	"  void push(const T &item) { if (used == room) grow(); items[used++] = item; }\n"
	"private:\n  void grow() { room = room ? 2 * room : 8;\n"
	"    items = static_cast<T *>(realloc(items, room * sizeof(T))); } };\n"
	"template <typename T, typename Less> void sort(T *from, T *to, Less less) {\n"
	"  for (T *i = from; i < to; i++)\n"
	"    for (T *j = i; j > from && less(*j, j[-1]); j--) { T t = *j; *j = j[-1]; j[-1] = t; } }\n"
	"template <typename T> struct Box { T t; Box(T a) : t(a) {}\n"
	"  __attribute__((noinline)) T twice() { return t + t; } };\n"
	"struct Base { virtual ~Base() {} virtual int run(int) = 0; };\n"
	"struct Derived : Base { Array<int> v;\n"
	"  int run(int n) override { for (int i = 0; i < n; i++) v.push(i ^ n);\n"
	"    return (int)v.size(); } };\n"
	"int dropped(int n) { Array<long> a; a.push(n); return (int)a.size(); }\n}\n"
	"static int use(outer::Array<double> &m, int n) {\n"
	"  for (int i = 0; i < n; i++) m.push(outer::Hidden(i).get() * 1.5);\n"
	"  auto f = [&](int k) { struct Local { int a; int go() { return a * 7; } } l{k};\n"
	"    return l.go() + (int)m.size(); };\n"
	"  int s = 0;\n  for (auto &p : m) s += f((int)p);\n  return s;\n}\n"
	"int main(int argc, char **argv) {\n  outer::Array<double> m;\n"
	"  outer::Array<const char *> names;\n  outer::Derived d;\n  outer::Box<double> b(argc);\n"
	"  for (int i = 0; i < argc; i++) names.push(argv[i]);\n"
	"  outer::sort(names.begin(), names.end(),\n"
	"    [](const char *x, const char *y) { return strcmp(x, y) > 0; });\n"
	"  outer::Base &base = d;\n"
	"  printf(\"%d %d %f\\n\", use(m, argc * 100), base.run(argc), b.twice());\n}\n";

static const char c_source[] =
	"#include <stdio.h>\n#include <stdlib.h>\n"
	"static inline int leaf(int x) {\n  return x * x\n    + rand(); }\n"
	"static inline int middle(int x) {\n  if (x > 3)\n    return leaf(x + 1);\n"
	"  return leaf(x) / 3; }\n"
	"__attribute__((noinline)) int other(int n) {\n  int s = 0;\n"
	"  for (int i = 0; i < n; i++)\n    s += middle(i);\n  return s; }\n"
	"__attribute__((noinline)) static int hidden(int n) {\n  puts(\"x\");\n"
	"  return middle(n) + other(n); }\n"
	"__asm__(\".text\\nbare_label:\\n  nop\\n  nop\\n  nop\\n  nop\\n\");\n"
	"int main(int argc, char **argv) {\n  (void)argv;\n"
	"#ifndef __clang__\n  int outside = argc;\n"
	"  __attribute__((noinline)) int nested(int k) { return k + outside + rand(); }\n"
	"  argc += nested(3) + nested(argc);\n#endif\n"
	"  return hidden(argc); }\n";

/* The function that the linker drops has more bytes than lie before the first function that it keeps. */
static const char dropped_source[] =
	"#include <stdio.h>\n"
	"static inline int leaf(int x) {\n  return x * x + 3; }\n"
	"__attribute__((noinline)) int kept(int x) {\n  puts(\"x\");\n"
	"  for (int i = 0; i < x; i++)\n    x ^= leaf(x) >> 1;\n"
	"  return x + leaf(x * 5); }\n"
	"int main(int argc, char **argv) {\n  (void)argv;\n"
	"  for (int i = 0; i < argc; i++)\n    printf(\"%d\\n\", kept(argc + i) * 5);\n"
	"  return kept(argc) / 7 + kept(argc + 2) % 11; }\n"
	"#define A(n) x = x * (2 * n + 3) + (x >> 3);\n"
	"#define B(n) A(n) A(n + 1) A(n + 2) A(n + 3) A(n + 4) A(n + 5) A(n + 6) A(n + 7) A(n + 8) A(n + 9)\n"
	"#define C(n) B(n) B(n + 10) B(n + 20) B(n + 30) B(n + 40) B(n + 50) B(n + 60) B(n + 70)\n"
	"unsigned dropped(unsigned x) {\n  C(0)\n  C(100)\n  C(200)\n  C(300)\n  C(400)\n  C(500)\n  C(600)\n  C(700)\n"
	"  C(800)\n  C(900)\n  return x;\n}\n";

/* Each byte of hidden() is a unit of its own; all share one line table, of a million instructions. */
static const char shared_lines_source[] =
	".globl hidden\n.type hidden, @function\nhidden: .fill 64, 1, 0x90\n.size hidden, 64\n"
	".section .debug_abbrev\n.byte 1, 0x11, 0, 0x10, 0x17, 0x11, 1, 0x12, 6, 0, 0, 0\n"
	".section .debug_info\n.set i, 0\n.rept 64\n"
	".long 24\n.value 4\n.long 0\n.byte 8, 1\n.long 0\n.quad hidden + i\n.long 1\n.set i, i + 1\n.endr\n"
	".section .debug_line\n.long 3f - 0f\n0: .value 3\n.long 2f - 1f\n"
	"1: .byte 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0\n"
	"2: .fill 1000000, 1, 7\n.byte 0, 1, 1\n3:\n";

static const char rust_source[] =
	"use std::collections::HashMap;\ntrait Shape { fn area(&self) -> f64; }\n"
	"struct Square(f64);\nimpl Shape for Square { #[inline(never)] fn area(&self) -> f64 {\n"
	"  self.0 * self.0 } }\n"
	"fn count(words: &[String]) -> HashMap<String, usize> {\n  let mut m = HashMap::new();\n"
	"  for w in words { *m.entry(w.clone()).or_insert(0) += 1; }\n  m\n}\n"
	"fn main() {\n  let words: Vec<String> = std::env::args().collect();\n"
	"  let b: Box<dyn Shape> = Box::new(Square(words.len() as f64));\n"
	"  let mut v: Vec<_> = count(&words).into_iter().map(|(k, n)| (n, k)).collect();\n"
	"  v.sort();\n  println!(\"{:?} {}\", v, b.area());\n}\n";

/* Runs a shell command in the test's folder. */
static bool run(const char *command)
{
	return folder_run(folder, command);
}

static bool have(const char *program)
{
	char line[128];

	snprintf(line, sizeof(line), "command -v %s", program);
	return run(line);
}

struct place {
	char name[2048];
	char file[512];
	unsigned line;
	bool inlined;
};

/* The answer of one side for one address. */
struct answer {
	uint64_t address;
	SF_VEC(struct place) places;
};

struct answers {
	SF_VEC(struct answer) items;
};

static void deinit(struct answers *answers)
{
	for (size_t i = 0; i < answers->items.n; i++)
		sf_vec_deinit(&answers->items.items[i].places);
	sf_vec_deinit(&answers->items);
}

/* Takes "path/file.c:12 (discriminator 3)" apart. */
static void set_place(struct place *place, char *text)
{
	char *colon;

	assert_true(strlen(text) < sizeof(place->file));
	text[strcspn(text, " \n")] = 0;
	colon = strrchr(text, ':');
	assert_non_null(colon);
	*colon = 0;
	strcpy(place->file, text[0] == '?' ? "" : text);
	place->line = (unsigned)atoi(colon + 1);
}

/* Reads "0xADDRESS" lines, each followed by pairs of name and place. */
static void read_judge(const char *program, const char *command, struct answers *ret)
{
	char line[8192];
	FILE *pipe;

	snprintf(line, sizeof(line), "cd %s && %s %s <addresses 2>>log", folder, command, program);
	pipe = popen(line, "re");
	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		struct answer *last = ret->items.n ? &ret->items.items[ret->items.n - 1] : NULL;
		struct place place = { 0 };

		if (line[0] == '\n')
			continue;
		if (strncmp(line, "0x", 2) == 0) {
			assert_true(sf_vec_push(&ret->items, (struct answer){
				.address = strtoull(line, NULL, 16) }));
			continue;
		}
		assert_non_null(last);
		snprintf(place.name, sizeof(place.name), "%.*s", (int)strcspn(line, "\n"), line);
		assert_non_null(fgets(line, sizeof(line), pipe));
		set_place(&place, line);
		assert_true(sf_vec_push(&last->places, place));
	}
	pclose(pipe);
}

static void keep(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	struct answers *answers = arg;

	assert_true(n >= 1);
	for (size_t i = 0; i < n; i++) {
		struct place place = { .line = locations[i].line,
				       .inlined = locations[i].inlined };

		assert_true(*locations[i].function);
		assert_int_equal(locations[i].inlined, i + 1 < n);
		snprintf(place.name, sizeof(place.name), "%s", *locations[i].linkage ? locations[i].linkage : locations[i].function);
		snprintf(place.file, sizeof(place.file), "%s", locations[i].file);
		assert_true(sf_vec_push(&answers->items.items[index].places, place));
	}
}

static void resolve(int fd, const char *path, const struct answers *like, struct answers *ret)
{
	SF_VEC(uint64_t) addresses = { 0 };
	struct sf_symbols *symbols;
	struct sf_error err;

	for (size_t i = 0; i < like->items.n; i++) {
		uint64_t address = like->items.items[i].address;

		assert_true(sf_vec_push(&addresses, address));
		assert_true(sf_vec_push(&ret->items, (struct answer){ .address = address }));
	}
	if (!sf_symbols_open(fd, path, true, &symbols, &err) ||
	    !sf_symbols_resolve(symbols, addresses.items, addresses.n, keep, ret, &err))
		fail_msg("%s: %s", path, err.text);
	sf_symbols_close(symbols);
	sf_vec_deinit(&addresses);
}

static bool ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), end_size = strlen(end);

	return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

/* The symbol table of the program that is compared. */
struct named {
	char name[512];
	uint64_t address;
};

static SF_VEC(struct named) table;

static void read_table(const char *program)
{
	char line[1024];
	struct named named;
	FILE *pipe;

	snprintf(line, sizeof(line), "nm %s/%s 2>&1", folder, program);
	pipe = popen(line, "re");
	assert_non_null(pipe);
	table.n = 0;
	while (fgets(line, sizeof(line), pipe)) {
		if (sscanf(line, "%" SCNx64 " %*c %511s", &named.address, named.name) == 2)
			assert_true(sf_vec_push(&table, named));
	}
	pclose(pipe);
}

static uint64_t table_address(const char *name)
{
	for (size_t i = 0; i < table.n; i++) {
		if (strcmp(table.items[i].name, name) == 0)
			return table.items[i].address;
	}
	return 0;
}

/* Whether the table has this name there, perhaps with the end of a compiler's copy (f.llvm.4711). */
static bool is_called(uint64_t address, const char *name)
{
	const size_t size = strlen(name);

	for (size_t i = 0; i < table.n; i++) {
		const char *other = table.items[i].name;

		if (table.items[i].address == address && strncmp(other, name, size) == 0 && (!other[size] || other[size] == '.'))
			return true;
	}
	return false;
}

/* Constructors that are alike, and functions that the compiler merged: both names are right. */
static bool same_code(const char *judge, const char *ours)
{
	uint64_t address = table_address(judge);

	return address && is_called(address, ours);
}

/*
 * The judge takes the outermost name from the symbol table, where the compiler's copies are
 * called main.cold or f.isra.0; DWARF and we say main and f. And where DWARF has a plain name only,
 * we put the namespaces before it. Where it has no name, we have the function's start.
 */
static bool same_name(const char *judge, const char *ours)
{
	size_t size = strlen(ours);
	char tail[2056];

	if (strncmp(ours, "0x", 2) == 0)
		return strcmp(judge, "??") == 0;
	if (strcmp(judge, ours) == 0 || same_code(judge, ours))
		return true;
	if (strncmp(judge, ours, size) == 0 && judge[size] == '.')
		return true;
	snprintf(tail, sizeof(tail), "::%s", judge);
	return ends_with(ours, tail);
}

/* a/./b//c and a/b/c, a/x/../b and a/b are the same file. */
static void normalize(const char *path, char *ret)
{
	char *out = ret;

	for (; *path; path++) {
		if (path[0] == '/' && path[1] == '.' && path[2] == '.' && path[3] == '/') {
			while (out > ret && *--out != '/')
				;
			path += 2;
		} else if (path[0] == '/' && path[1] == '.' && path[2] == '/') {
			path++;
		} else if (path[0] != '/' || path[1] != '/') {
			*out++ = *path;
		}
	}
	*out = 0;
}

/* A function without lines gets the file of its symbol from the judge, and no line. */
static bool same_place(const struct place *judge, const struct place *ours)
{
	char a[512], b[512];

	if (judge->line == 0 && ours->line == 0)
		return true;
	normalize(judge->file, a);
	normalize(ours->file, b);
	return judge->line == ours->line && strcmp(a, b) == 0;
}

/* Between functions the judge, too, takes a function that the linker dropped for what is there (d.c). */
static bool is_nothing(const struct answer *judge)
{
	const char *name = judge->places.n == 1 ? judge->places.items[0].name : "";

	return strcmp(name, "??") == 0 || strcmp(name, "dropped") == 0;
}

static bool same(const struct answer *judge, const struct answer *ours)
{
	if (ours->places.n == 0)
		return is_nothing(judge);
	if (judge->places.n != ours->places.n)
		return false;
	for (size_t i = 0; i < ours->places.n; i++) {
		const struct place *a = &judge->places.items[i], *b = &ours->places.items[i];

		if (!same_name(a->name, b->name) || !same_place(a, b))
			return false;
	}
	return true;
}

static void print_answer(const char *who, const struct answer *answer)
{
	print_error("  %s at %#" PRIx64 "\n", who, answer->address);
	for (size_t i = 0; i < answer->places.n; i++)
		print_error("    %.200s %s:%u\n", answer->places.items[i].name,
			    answer->places.items[i].file, answer->places.items[i].line);
}

static size_t count_differences(const struct answers *judge, const struct answers *ours)
{
	size_t n = 0;

	for (size_t i = 0; i < judge->items.n; i++) {
		if (same(&judge->items.items[i], &ours->items.items[i]))
			continue;
		if (n++ > 3)
			continue;
		print_answer("judge", &judge->items.items[i]);
		print_answer("ours", &ours->items.items[i]);
	}
	return n;
}

#define LLVM "llvm-symbolizer --no-demangle -a -f -i --output-style=GNU -e"

/* All instructions of `program`, or 3,000 of them; the judge looks into `full`, we into `program`. */
static void compare(const char *program, const char *full, const char *judge_command)
{
	struct answers judge = { 0 }, ours = { 0 };
	char command[512], path[128];
	SF_CLEANUP(close) int fd = -1;
	size_t n;

	snprintf(command, sizeof(command),
		 "objdump -d --section=.text %s | sed -n 's/^ *\\([0-9a-f]*\\):\\t.*/0x\\1/p' "
		 "| sort -u | awk '{ a[NR] = $0 } END { for (i = 1; i <= NR; i += 1 + int(NR / 3000))"
		 " print a[i] }' >addresses", program);
	assert_true(run(command));
	read_table(full);
	read_judge(full, judge_command, &judge);
	assert_true(judge.items.n > 100);
	snprintf(path, sizeof(path), "%s/%s", folder, program);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	resolve(fd, path, &judge, &ours);
	n = count_differences(&judge, &ours);
	if (n)
		fail_msg("%s: %zu of %zu addresses differ", program, n, judge.items.n);
	print_message("%s: %zu addresses\n", program, judge.items.n);
	deinit(&judge);
	deinit(&ours);
}

/* Programs of l.cc do not run: to find the symbols of the standard library takes the linker most of its time. */
#define WITHOUT_LIBRARY " -Wl,--unresolved-symbols=ignore-all"

/*
 * The others are for the long form (tests/README.md): x.cc and r.rs, which are large, forms of DWARF of one source
 * whose like the short form has of the other, and forms one by one that the short form has two at a time. None depends on the compiler of this test, so where that is clang, they
 * are left to the build with gcc.
 */
static const struct way {
	const char *name, *build;
	bool is_long;
} ways[] = {
	{ "c5", "gcc -g -O2 -gdwarf-5 c.c -o c5", false },
	{ "c4", "gcc -g -O2 -gdwarf-4 c.c -o c4", true },
	{ "c3", "gcc -g -O2 -gdwarf-3 -gstrict-dwarf c.c -o c3", false },
	{ "c0", "gcc -g -O0 c.c -o c0", false },
	{ "cno", "gcc -O2 c.c -o cno", false },
	{ "cclang", "clang -g -O2 c.c -o cclang", true },
	{ "x5", "g++ -g -O2 -gdwarf-5 x.cc -o x5", true },
	{ "xclang5", "clang++ -g -O2 x.cc -o xclang5", true },
	{ "l4", "gcc -g -O2 -gdwarf-4 l.cc -o l4" WITHOUT_LIBRARY, true },
	{ "l0", "gcc -g -O0 l.cc -o l0" WITHOUT_LIBRARY, true },
	{ "l1", "gcc -g1 -O2 l.cc -o l1" WITHOUT_LIBRARY, false },
	{ "lz", "gcc -g -O2 -gz l.cc -o lz" WITHOUT_LIBRARY, true },
	{ "ltypes", "gcc -g -O2 -fdebug-types-section l.cc -o ltypes" WITHOUT_LIBRARY, true },
	{ "lztypes", "gcc -g -O2 -gz -fdebug-types-section l.cc -o lztypes" WITHOUT_LIBRARY, false },
	{ "lsections", "gcc -g -O2 -ffunction-sections -Wl,--gc-sections l.cc -o lsections" WITHOUT_LIBRARY, true },
	{ "l4sections", "gcc -g -O2 -gdwarf-4 -ffunction-sections -Wl,--gc-sections l.cc -o l4sections" WITHOUT_LIBRARY, false },
	{ "d5", "gcc -g -O1 -ffunction-sections -Wl,--gc-sections d.c -o d5", false },
	{ "d4", "gcc -g -O1 -gdwarf-4 -gz -ffunction-sections -Wl,--gc-sections,-z,noseparate-code d.c -o d4", false },
	{ "dclang", "clang -g -O1 -ffunction-sections -Wl,--gc-sections d.c -o dclang", true },
	{ "lsplit5", "gcc -g -O2 -gsplit-dwarf -gdwarf-5 l.cc -o lsplit5" WITHOUT_LIBRARY, false },
	{ "lsplit4", "gcc -g -O2 -gsplit-dwarf -gdwarf-4 l.cc -o lsplit4" WITHOUT_LIBRARY, true },
	{ "llto", "gcc -g -O2 -flto l.cc -o llto" WITHOUT_LIBRARY, false },
	{ "lclang4", "clang -g -gdwarf-4 -O2 l.cc -o lclang4" WITHOUT_LIBRARY, false },
	{ "lclang1", "clang -gmlt -O2 l.cc -o lclang1" WITHOUT_LIBRARY, true },
	/* The standard library in it is mangled the old way. */
	{ "rust", "rustc -g -O -C symbol-mangling-version=v0 r.rs -o rust", true },
};

static bool with_long(void)
{
#ifdef __clang__
	return false;
#else
	return is_long_form();
#endif
}

static bool may_build(const struct way *way)
{
	static const char *const optional[] = { "clang", "clang++", "rustc" };
	size_t size = strcspn(way->build, " ");

	for (size_t i = 0; i < sizeof(optional) / sizeof(*optional); i++) {
		if (strlen(optional[i]) == size && strncmp(way->build, optional[i], size) == 0 &&
		    !have(optional[i])) {
			print_message("%s: skipped, no %s\n", way->name, optional[i]);
			return false;
		}
	}
	if (!run(way->build))
		fail_msg("cannot compile: %s", way->build);
	return true;
}

static bool without_judge; /* then the whole program counts as skipped, unless another test fails */

static void need_judge(void)
{
	if (have("llvm-symbolizer"))
		return;
	without_judge = true;
	print_message("skipped: no llvm-symbolizer\n");
	skip();
}

static void like_llvm(void **state)
{
	(void)state;
	need_judge();
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if ((with_long() || !ways[i].is_long) && may_build(&ways[i]))
			compare(ways[i].name, ways[i].name, LLVM);
	}
}

/* Debug data elsewhere: the judge reads the program before it was stripped. */
static void separate_debug_file(void **state)
{
	(void)state;
	need_judge();
	assert_true(run("gcc -g -O2 -c l.cc && gcc l.o -o full" WITHOUT_LIBRARY " && cp full linked && mkdir -p .debug"
			" && objcopy --only-keep-debug linked .debug/linked.debug"
			" && strip linked && objcopy --add-gnu-debuglink=.debug/linked.debug linked"));
	compare("linked", "full", LLVM);
	assert_true(run("gcc -Wl,--build-id=none l.o -o full2" WITHOUT_LIBRARY " && cp full2 linked2"
			" && objcopy --only-keep-debug linked2 linked2.debug"
			" && strip linked2 && objcopy --add-gnu-debuglink=linked2.debug linked2"));
	compare("linked2", "full2", LLVM);
}

/* A function whose name is in a file that is shared with others, as dwz(1) writes it: an object file with a build id. */
static const char shared_source[] =
	".section .note.gnu.build-id,\"a\",@note\n.long 4, 4, 3\n.asciz \"GNU\"\n.long 0x12345678\n"
	".section .debug_info,\"\",@progbits\n.long 7\n.short 4\n.long 0\n.byte 8\n"
	".section .debug_abbrev,\"\",@progbits\n.byte 0\n"
	".section .debug_str,\"\",@progbits\n.asciz \"x\"\n.asciz \"shared_name\"\n";

static const char sharing_source[] =
	".text\n.globl linker_name\n.type linker_name, @function\nlinker_name: nop\nnop\nret\n.size linker_name, . - linker_name\n"
	".section .debug_abbrev,\"\",@progbits\n.byte 1, 0x11, 1, 0x11, 1, 0x12, 7, 0, 0\n" /* low_pc: address, high_pc: 8 bytes */
	".byte 2, 0x2e, 0, 3\n.uleb128 0x1f21\n.byte 0x11, 1, 0x12, 7, 0, 0, 0\n" /* name: GNU_strp_alt */
	".section .debug_info,\"\",@progbits\n.long 2f - 1f\n1: .short 4\n.long 0\n.byte 8\n"
	".byte 1\n.quad linker_name, 3\n.byte 2\n.long 2\n.quad linker_name, 3\n.byte 0\n2:\n"
	".section .gnu_debugaltlink,\"\",@progbits\n.asciz \"shared.o\"\n.long 0x12345678\n";

/* The linkage names at one symbol of the full program, as the program at `path` has them. */
static char *name_at(int fd, const char *path, uint64_t address)
{
	struct answers like = { 0 }, ours = { 0 };
	char *name;

	assert_true(sf_vec_push(&like.items, (struct answer){ .address = address }));
	resolve(fd, path, &like, &ours);
	name = strdup(ours.items.items[0].places.n ? ours.items.items[0].places.items[0].name
						   : "nothing");
	deinit(&like);
	deinit(&ours);
	return name;
}

static uint64_t address_of(const char *program, const char *symbol)
{
	char line[256];
	uint64_t address = 0;
	FILE *pipe;

	snprintf(line, sizeof(line), "nm %s/%s | sed -n 's/ [tTi] %s$//p'", folder, program, symbol);
	pipe = popen(line, "re");
	assert_int_equal(fscanf(pipe, "%" SCNx64, &address), 1);
	pclose(pipe);
	return address;
}

static void assert_name(const char *program, uint64_t address, const char *expected)
{
	char path[128];
	SF_CLEANUP(close) int fd = -1;
	SF_CLEANUP(free) char *name = NULL;

	snprintf(path, sizeof(path), "%s/%s", folder, program);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	name = name_at(fd, path, address);
	assert_string_equal(name, expected);
}

/* The name of a function of which only the start is known. */
static void assert_unnamed(const char *program, uint64_t address, uint64_t start)
{
	char expected[64];

	snprintf(expected, sizeof(expected), "0x%" PRIx64 " in %s", start, program);
	assert_name(program, address, expected);
}

static void names_in_a_shared_file(void **state)
{
	(void)state;
	folder_write(folder, "shared.s", shared_source);
	folder_write(folder, "sharing.s", sharing_source);
	assert_true(run("gcc -c shared.s && gcc -nostdlib -shared sharing.s -o sharing.so"));
	assert_name("sharing.so", address_of("sharing.so", "linker_name") + 1, "shared_name");
	assert_true(run("sed -i 's/0x12345678/0x12345679/' shared.s && gcc -c shared.s")); /* another one */
	assert_name("sharing.so", address_of("sharing.so", "linker_name") + 1, "linker_name");
}

/* A debug file of another build is worse than none. */
static void wrong_debug_file(void **state)
{
	uint64_t hidden;
	(void)state;

	assert_true(run("gcc -g -O2 -Wl,--build-id=none c.c -o w && cp w w.full"
			" && objcopy --only-keep-debug w w.debug && strip w"
			" && objcopy --add-gnu-debuglink=w.debug w"));
	hidden = address_of("w.full", "hidden");
	assert_name("w", hidden, "hidden");
	assert_true(run("printf x >>w.debug"));
	assert_unnamed("w", hidden, hidden);
	assert_true(run("rm w.debug && mkfifo w.debug"));
	assert_unnamed("w", hidden, hidden);
}

static void mini_debug_data(void **state)
{
	uint64_t hidden;
	(void)state;

	if (!have("xz")) {
		print_message("skipped: no xz\n");
		skip();
	}
	assert_true(run("gcc -O2 c.c -o m && cp m m.full && objcopy --only-keep-debug m mini"
			" && objcopy -S --keep-symbol=hidden mini mini2 && xz -k mini2 && strip m"));
	hidden = address_of("m.full", "hidden");
	assert_unnamed("m", hidden, hidden);
	assert_true(run("objcopy --add-section .gnu_debugdata=mini2.xz m"));
	assert_name("m", hidden + 4, "hidden");
	assert_true(run("printf garbage >bad.xz && objcopy --update-section .gnu_debugdata=bad.xz m"));
	assert_unnamed("m", hidden + 4, hidden);
}

static void dynamic_symbols_only(void **state)
{
	uint64_t other;
	(void)state;

	assert_true(run("gcc -O2 -fPIC -shared c.c -o lib.so && cp lib.so lib.full && strip lib.so"));
	other = address_of("lib.full", "other");
	assert_name("lib.so", other + 1, "other");
	/* e_shoff, e_shnum and e_shstrndx: no section headers any more. */
	assert_true(run("cp lib.so bare.so"
			" && printf '\\0\\0\\0\\0\\0\\0\\0\\0' | dd of=bare.so bs=1 seek=40 conv=notrunc"
			" && printf '\\0\\0\\0\\0' | dd of=bare.so bs=1 seek=60 conv=notrunc"));
	assert_name("bare.so", other + 1, "other");
	assert_true(run("gcc -O2 -fPIC -shared -Wl,--hash-style=sysv c.c -o sysv.so"
			" && cp sysv.so sysv.full && strip sysv.so"
			" && printf '\\0\\0\\0\\0\\0\\0\\0\\0' | dd of=sysv.so bs=1 seek=40 conv=notrunc"
			" && printf '\\0\\0\\0\\0' | dd of=sysv.so bs=1 seek=60 conv=notrunc"));
	assert_name("sysv.so", address_of("sysv.full", "other") + 1, "other");
}

static void versions_labels_and_indirect_functions(void **state)
{
	uint64_t label;
	(void)state;

	folder_write(folder, "v.c", "__asm__(\".symver f_impl, f@@V1\");\n"
			  "int f_impl(void) { return 3; }\n"
			  "static int one(void) { return 1; }\n"
			  "static void *pick(void) { return (void *)one; }\n"
			  "int chosen(void) __attribute__((ifunc(\"pick\")));\n");
	folder_write(folder, "v.map", "V1 { global: f; chosen; local: *; };\n");
	assert_true(run("gcc -O2 -fPIC -shared -Wl,--version-script=v.map v.c -o v.so"));
	assert_name("v.so", address_of("v.so", "f@@V1"), "f");
	assert_name("v.so", address_of("v.so", "chosen"), "chosen");
	assert_true(run("gcc -O2 c.c -o labels"));
	label = address_of("labels", "bare_label");
	assert_name("labels", label, "bare_label");
	assert_name("labels", label + 3, "bare_label");
	assert_true(run("objcopy --redefine-sym 'other=plain@@V_1.2-3' labels versioned"));
	assert_name("versioned", address_of("labels", "other"), "plain");
	/* As Crystal's compiler names a method by its class and the module that it is from. */
	assert_true(run("objcopy --redefine-sym 'other=*Array(Int32)@Indexable(T)#each:Nil' labels crystal"));
	assert_name("crystal", address_of("labels", "other"), "*Array(Int32)@Indexable(T)#each:Nil");
	assert_true(run("objcopy --redefine-sym 'other=*Array(Int32)@Indexable(T)#each:Nil@V1' labels both"));
	assert_name("both", address_of("labels", "other"), "*Array(Int32)@Indexable(T)#each:Nil");
}

static void keep_function(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	(void)index;
	assert_int_equal(n, 1);
	snprintf(arg, sizeof(struct place), "%s", locations[0].function);
}

/* A compiler that writes assembly for another program's assembler, with that one's debug data. */
static void assembly_has_readable_names(void **state)
{
	SF_CLEANUP(close) int fd = -1;
	struct sf_symbols *symbols;
	char path[128], name[sizeof(struct place)];
	uint64_t address;
	(void)state;

	folder_write(folder, "a.s", ".text\n.globl _ZN4room4workEv\n.type _ZN4room4workEv, @function\n"
			  "_ZN4room4workEv:\n ret\n.size _ZN4room4workEv, 1\n");
	assert_true(run("gcc -g -shared -nostdlib a.s -o a.so"));
	snprintf(path, sizeof(path), "%s/a.so", folder);
	address = address_of("a.so", "_ZN4room4workEv");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(sf_symbols_open(fd, path, true, &symbols, NULL));
	assert_true(sf_symbols_resolve(symbols, &address, 1, keep_function, name, NULL));
	sf_symbols_close(symbols);
	assert_string_equal(name, "room::work");
}

/* A file that nobody can find by a path any more. */
static void memory_file(void **state)
{
	SF_CLEANUP(close) int fd = memfd_create("program", MFD_CLOEXEC);
	SF_CLEANUP(free) char *name = NULL;
	char command[128];
	(void)state;

	assert_true(fd >= 0);
	assert_true(run("gcc -g -O2 c.c -o mem"));
	snprintf(command, sizeof(command), "cat mem >/proc/%d/fd/%d", getpid(), fd);
	assert_true(run(command));
	name = name_at(fd, NULL, address_of("mem", "hidden"));
	assert_string_equal(name, "hidden");
}

static void not_an_image(void **state)
{
	struct sf_symbols *symbols;
	struct sf_error err;
	SF_CLEANUP(close) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	SF_CLEANUP(close) int text = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	(void)state;

	assert_false(sf_symbols_open(null, "/dev/null", true, &symbols, &err));
	assert_int_equal(err.code, SF_E_INPUT);
	assert_false(sf_symbols_open(text, NULL, true, &symbols, &err));
	assert_int_equal(err.code, SF_E_INPUT);
	assert_false(sf_symbols_open(-1, NULL, true, &symbols, &err));
	assert_int_equal(err.code, SF_E_SYSTEM);
}

static void count_calls(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	unsigned *seen = arg;

	assert_true(n >= 1 && *locations[0].function);
	seen[index]++;
}

/* Any order, duplicates, addresses of nothing; each known one is reported once. */
static void any_order(void **state)
{
	uint64_t hidden, other;
	struct sf_symbols *symbols;
	SF_CLEANUP(close) int fd = -1;
	char path[128];
	(void)state;

	assert_true(run("gcc -g -O2 c.c -o order"));
	hidden = address_of("order", "hidden");
	other = address_of("order", "other");
	{
		const uint64_t addresses[] = { other, hidden, UINT64_MAX, other, 0, hidden, 1 };
		const unsigned expected[] = { 1, 1, 0, 1, 0, 1, 0 };
		unsigned seen[7] = { 0 };

		snprintf(path, sizeof(path), "%s/order", folder);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(sf_symbols_open(fd, path, true, &symbols, NULL));
		assert_true(sf_symbols_resolve(symbols, addresses, 7, count_calls, seen, NULL));
		assert_memory_equal(seen, expected, sizeof(expected));
		assert_true(sf_symbols_resolve(symbols, addresses, 0, count_calls, seen, NULL));
		sf_symbols_close(symbols);
	}
}

static void keep_dependence(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	void **symbols_and_result = arg;

	(void)index;
	(void)locations;
	(void)n;
	*(bool *)symbols_and_result[1] = sf_symbols_depends_on_more(symbols_and_result[0]);
}

static void assert_dependence(const char *build, const char *program, bool expected)
{
	SF_CLEANUP(close) int fd = -1;
	struct sf_symbols *symbols;
	char path[128];
	uint64_t address;
	bool depends = !expected;

	assert_true(run(build));
	address = address_of(program, "hidden");
	snprintf(path, sizeof(path), "%s/%s", folder, program);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(sf_symbols_open(fd, path, true, &symbols, NULL));
	assert_true(sf_symbols_resolve(symbols, &address, 1, keep_dependence, (void *[]){ symbols, &depends }, NULL));
	assert_int_equal(depends, expected);
	sf_symbols_close(symbols);
}

/* The other half of a split unit may be another one tomorrow. */
static void split_units_depend_on_more_than_the_file(void **state)
{
	(void)state;
	assert_dependence("gcc -g -O2 c.c -o whole", "whole", false);
	assert_dependence("gcc -g -O2 -gsplit-dwarf c.c -o halves", "halves", true);
}

static void a_shared_line_table_is_not_read_without_end(void **state)
{
	SF_CLEANUP(close) int fd = -1;
	struct sf_symbols *symbols;
	uint64_t addresses[64];
	unsigned seen[64] = { 0 };
	char path[128];
	(void)state;

	assert_true(run("gcc -nostdlib -static -no-pie -Wl,-e,hidden s.s -o shared"));
	for (unsigned i = 0; i < 64; i++)
		addresses[i] = address_of("shared", "hidden") + i;
	snprintf(path, sizeof(path), "%s/shared", folder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(sf_symbols_open(fd, path, true, &symbols, NULL));
	assert_true(sf_symbols_resolve(symbols, addresses, 1, count_calls, seen, NULL));
	assert_false(sf_symbols_depends_on_more(symbols));
	assert_true(sf_symbols_resolve(symbols, addresses, 64, count_calls, seen, NULL));
	assert_true(sf_symbols_depends_on_more(symbols)); /* its budget is spent */
	assert_int_equal(seen[63], 1);
	sf_symbols_close(symbols);
}

static int prepare(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	folder_write(folder, "c.c", c_source);
	folder_write(folder, "x.cc", cxx_source);
	folder_write(folder, "l.cc", light_source);
	folder_write(folder, "d.c", dropped_source);
	folder_write(folder, "r.rs", rust_source);
	folder_write(folder, "s.s", shared_lines_source);
	return 0;
}

static int clean_up(void **state)
{
	(void)state;

	sf_vec_deinit(&table);
	return folder_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(like_llvm),
		cmocka_unit_test(separate_debug_file),
		cmocka_unit_test(names_in_a_shared_file),
		cmocka_unit_test(wrong_debug_file),
		cmocka_unit_test(mini_debug_data),
		cmocka_unit_test(dynamic_symbols_only),
		cmocka_unit_test(versions_labels_and_indirect_functions),
		cmocka_unit_test(assembly_has_readable_names),
		cmocka_unit_test(memory_file),
		cmocka_unit_test(not_an_image),
		cmocka_unit_test(any_order),
		cmocka_unit_test(a_shared_line_table_is_not_read_without_end),
		cmocka_unit_test(split_units_depend_on_more_than_the_file),
	};

	int status = cmocka_run_group_tests(tests, prepare, clean_up);

	return status == 0 && without_judge ? 77 : status;
}

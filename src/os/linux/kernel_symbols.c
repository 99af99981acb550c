/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the kernel's table of symbols, finds functions in it, and keeps those of the kernel's own code on disk. */
#include "os/kernel_symbols.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cache_folder.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/hex.h"
#include "base/search.h"
#include "base/whole_io.h"
#include "os/bpf_functions.h"
#include "os/linux/proc.h"

#define MAX_NAMES ((size_t)256 << 20)
#define FOLDER "kernel-symbols-1"
#define LIMIT ((uint64_t)32 << 20)  /* of all files: some starts of the machine, and some machines that share a home */
#define FIRST_LINES 4096            /* bytes */

void sf_kernel_symbols_deinit(struct sf_kernel_symbols *symbols)
{
	sf_vec_deinit(&symbols->symbols);
	sf_vec_deinit(&symbols->names);
	symbols->own_start = symbols->own_end = 0;
}

/* A name, " [module]" behind it if there is one. */
static bool add_name(struct sf_kernel_symbols *symbols, const char *name, const char *module)
{
	const size_t size = strlen(name) + strlen(module) + (*module ? 2 : 1);

	if (symbols->names.n + size > MAX_NAMES || !sf_vec_reserve(&symbols->names, size))
		return false;
	snprintf(symbols->names.items + symbols->names.n, size, "%s%s%s", name, *module ? " " : "", module);
	symbols->names.n += size;
	return true;
}

/*
 * The next word, of at most `size` - 1 bytes, and where it ends: behind it, blanks or the end of the line. NULL: there
 * is none.
 */
static const char *take_word(const char *from, char *ret, size_t size)
{
	size_t n;

	from += strspn(from, " \t");
	n = strcspn(from, " \t\n");
	snprintf(ret, size, "%.*s", (int)n, from);
	return n ? from + n : NULL;
}

static void note_limits(struct sf_kernel_symbols *symbols, const char *name, uint64_t address)
{
	if (strcmp(name, "_stext") == 0)
		symbols->own_start = address;
	else if (strcmp(name, "_etext") == 0)
		symbols->own_end = address;
}

/*
 * Returns the text behind the letter of a line that names code. The letters of code are those of global, local and weak
 * symbols (nm(1)). NULL: the line names no code. Address 0: the kernel hides it from this user.
 */
static const char *take_code(const char *line, uint64_t *address_ret)
{
	char *end;

	*address_ret = strtoull(line, &end, 16);
	return end[0] == ' ' && end[1] && strchr("tTwW", end[1]) ? end + 2 : NULL;
}

bool sf_kernel_symbols_add(struct sf_kernel_symbols *symbols, const char *line)
{
	struct sf_kernel_symbol symbol = { .name = symbols->names.n };
	char name[513], module[66] = "";
	const char *behind = take_code(line, &symbol.address);

	if (!behind || !symbol.address)
		return true;
	behind = take_word(behind, name, sizeof(name));
	if (!behind)
		return true;
	note_limits(symbols, name, symbol.address);
	take_word(behind, module, sizeof(module));
	return add_name(symbols, name, module) && sf_vec_push(&symbols->symbols, symbol);
}

static int by_address(const void *left, const void *right)
{
	const struct sf_kernel_symbol *a = left, *b = right;

	return a->address != b->address ? sf_order(a->address, b->address) : sf_order(a->name, b->name);
}

void sf_kernel_symbols_sort(struct sf_kernel_symbols *symbols)
{
	if (symbols->symbols.n)
		qsort(symbols->symbols.items, symbols->symbols.n, sizeof(*symbols->symbols.items), by_address);
}

static bool add_line(const char *line, void *arg)
{
	return sf_kernel_symbols_add(arg, line);
}

/* Goes on to the first line that names code. */
static bool take_first_code(const char *line, void *address_ret)
{
	return !take_code(line, address_ret);
}

bool sf_kernel_symbols_are_shown(void)
{
	uint64_t address = 0;

	sf_proc_lines("/proc/kallsyms", take_first_code, &address);
	return address;
}

/*
 * --- where functions end ---
 *
 * The kernel lists where functions begin, and code without a name may lie behind them: that of classic filters (seccomp's, in most
 * containers) beside BPF programs (bpf_prog_kallsyms_add in kernel/bpf/core.c leaves it out). An end is a symbol without a name.
 */

#define BPF_CHUNK 64u  /* programs share pages, but no chunk of this size (BPF_PROG_CHUNK_SIZE) */
#define PAGE 4096u     /* modules share none */

static const char *name_of(const struct sf_kernel_symbols *symbols, size_t i)
{
	return symbols->names.items + symbols->symbols.items[i].name;
}

/* " [module]"; "": the symbol is the kernel's own. */
static const char *module_of(const char *name)
{
	return name + strcspn(name, " ");
}

static bool is_bpf_program(const char *name)
{
	return strncmp(name, "bpf_prog_", 9) == 0 && strcmp(module_of(name), " [bpf]") == 0;
}

bool sf_kernel_symbols_end(struct sf_kernel_symbols *symbols, uint64_t address)
{
	const struct sf_kernel_symbol symbol = { .address = address, .name = symbols->names.n };

	return add_name(symbols, "", "") && sf_vec_push(&symbols->symbols, symbol);
}

/* Of a program whose size is not known, only the first chunk is surely its own. */
static bool end_programs(struct sf_kernel_symbols *symbols, const struct sf_bpf_functions *functions)
{
	const size_t n = symbols->symbols.n;

	for (size_t i = 0; i < n; i++) {
		const uint64_t start = symbols->symbols.items[i].address;
		uint64_t end;

		if (!is_bpf_program(name_of(symbols, i)))
			continue;
		end = sf_bpf_functions_end(functions, start);
		if (!sf_kernel_symbols_end(symbols, end ? end : (start | (BPF_CHUNK - 1)) + 1))
			return false;
	}
	return true;
}

bool sf_kernel_symbols_load(struct sf_kernel_symbols *symbols)
{
	bool fine = sf_kernel_symbols_are_shown() && sf_proc_lines("/proc/kallsyms", add_line, symbols);
	struct sf_bpf_functions functions = { 0 };

	if (fine)
		sf_bpf_functions_load(&functions);
	fine = fine && end_programs(symbols, &functions);
	sf_bpf_functions_deinit(&functions);
	sf_kernel_symbols_sort(symbols);
	return fine && symbols->symbols.n;
}

/*
 * Whether the symbol reaches to the address, which is before the next one. What is last in a module ends at the latest with the
 * page behind the one in which it begins: most functions are shorter.
 */
static bool reaches(const struct sf_kernel_symbols *symbols, size_t i, size_t next, uint64_t address)
{
	if (next < symbols->symbols.n &&
	    (!*name_of(symbols, next) || strcmp(module_of(name_of(symbols, i)), module_of(name_of(symbols, next))) == 0))
		return true;
	return address - (symbols->symbols.items[i].address & ~(uint64_t)(PAGE - 1)) < 2 * PAGE;
}

/* Where several begin at one address the first line's name is taken. */
const char *sf_kernel_symbols_find(const struct sf_kernel_symbols *symbols, uint64_t address)
{
	const size_t next = sf_count_before(symbols->symbols.n, i, symbols->symbols.items[i].address <= address);
	size_t low = next;

	if (!low)
		return NULL;
	for (low--; low && symbols->symbols.items[low - 1].address == symbols->symbols.items[low].address;)
		low--;
	return *name_of(symbols, low) && reaches(symbols, low, next, address) ? name_of(symbols, low) : NULL;
}

bool sf_kernel_symbols_is_own(const struct sf_kernel_symbols *symbols, uint64_t address)
{
	return address >= symbols->own_start && address < symbols->own_end;
}

int sf_kernel_symbols_hidden(void)
{
	int hidden = 0;

	sf_proc_scan("/proc/sys/kernel/kptr_restrict", "%d", &hidden);
	return hidden;
}

/*
 * --- on disk ---
 *
 * The symbols of the kernel's own code (base/cache_folder.h): kernel-symbols-VERSION/KEY. The kernel takes tens
 * of milliseconds to write its list, and its own code stays where it is until the machine starts again.
 *
 * KEY is a digest of the number of this start of the machine (boot_id) and of the first lines of the list. These have
 * addresses, which the kernel chooses anew at each start, and zeros where this user may not see them: then nothing is
 * kept or taken.
 *
 * A file is written whole, and one of before a crash has another KEY. So it has no checksum; what would lead out of its
 * arrays is a miss.
 */

struct kept_header {
	uint64_t own_start, own_end;
	uint64_t n_symbols, names_size;
};

/* Bytes of a file from its beginning; 0: it cannot be read. */
static size_t read_first(const char *path, char *ret, size_t size)
{
	SF_CLEANUP(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd >= 0 ? read(fd, ret, size) : -1;

	return n > 0 ? (size_t)n : 0;
}

/* Whether a line names the start of the kernel's code, with its address. */
static bool shows_addresses(const char *lines, size_t size)
{
	const char *at = memmem(lines, size, " _stext\n", 8);

	return at && at - lines >= 18 && memcmp(at - 18, "0000000000000000", 16) != 0;
}

/* False: there is none. */
static bool make_key(char ret[SF_CACHE_NAME])
{
	char boot[64], lines[FIRST_LINES];
	const size_t boot_size = read_first("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	const size_t lines_size = read_first("/proc/kallsyms", lines, sizeof(lines));
	uint8_t digest[SF_DIGEST_SIZE];
	struct sf_digest all;

	if (!boot_size || !shows_addresses(lines, lines_size))
		return false;
	sf_digest_begin(&all);
	sf_digest_add(&all, boot, boot_size);
	sf_digest_add(&all, lines, lines_size);
	sf_digest_end(&all, digest);
	sf_hex(digest, sizeof(digest), ret);
	return true;
}

static bool is_whole(const struct sf_kernel_symbols *symbols)
{
	if (!symbols->symbols.n || !symbols->names.n || symbols->names.items[symbols->names.n - 1])
		return false;
	for (size_t i = 0; i < symbols->symbols.n; i++) {
		if (symbols->symbols.items[i].name >= symbols->names.n)
			return false;
	}
	return true;
}

static bool is_size(const struct kept_header *header, size_t size)
{
	return size >= sizeof(*header) && size <= LIMIT && header->n_symbols <= LIMIT && header->names_size <= LIMIT &&
	       size == sizeof(*header) + header->n_symbols * sizeof(struct sf_kernel_symbol) + header->names_size;
}

static bool take_kept(int fd, size_t size, struct sf_kernel_symbols *ret)
{
	struct kept_header header;

	if (!sf_read_all(fd, &header, sizeof(header)) || !is_size(&header, size) ||
	    !sf_vec_reserve(&ret->symbols, header.n_symbols) || !sf_vec_reserve(&ret->names, header.names_size))
		return false;
	ret->symbols.n = header.n_symbols;
	ret->names.n = header.names_size;
	ret->own_start = header.own_start;
	ret->own_end = header.own_end;
	return sf_read_all(fd, ret->symbols.items, ret->symbols.n * sizeof(*ret->symbols.items)) &&
	       sf_read_all(fd, ret->names.items, ret->names.n) && is_whole(ret);
}

static bool get_kept(int folder, const char *name, struct sf_kernel_symbols *ret)
{
	SF_CLEANUP(close) int fd = -1;
	size_t size;

	fd = sf_cache_file_open(folder, name, &size);
	if (fd >= 0 && take_kept(fd, size, ret))
		return true;
	sf_kernel_symbols_deinit(ret);
	return false;
}

/* The others come and go. */
static void keep_own_only(struct sf_kernel_symbols *symbols)
{
	size_t n = 0;

	for (size_t i = 0; i < symbols->symbols.n; i++) {
		if (sf_kernel_symbols_is_own(symbols, symbols->symbols.items[i].address))
			symbols->symbols.items[n++] = symbols->symbols.items[i];
	}
	symbols->symbols.n = n;
}

static void put_kept(int folder, const char *name, const struct sf_kernel_symbols *symbols)
{
	struct kept_header header = {
		.own_start = symbols->own_start, .own_end = symbols->own_end, .n_symbols = symbols->symbols.n, .names_size = symbols->names.n,
	};
	const struct iovec pieces[] = {
		{ &header, sizeof(header) },
		{ symbols->symbols.items, symbols->symbols.n * sizeof(*symbols->symbols.items) },
		{ symbols->names.items, symbols->names.n },
	};

	if (sf_cache_file_put(folder, name, pieces, sizeof(pieces) / sizeof(pieces[0])))
		sf_cache_prune(folder, LIMIT);
}

bool sf_kernel_symbols_load_own(struct sf_kernel_symbols *symbols)
{
	char name[SF_CACHE_NAME];
	SF_CLEANUP(close) int folder = make_key(name) ? sf_cache_folder_open(FOLDER) : -1;

	if (folder >= 0 && get_kept(folder, name, symbols))
		return true;
	if (!sf_kernel_symbols_load(symbols))
		return false;
	if (symbols->own_end <= symbols->own_start) /* which are its own is not known */
		return true;
	keep_own_only(symbols);
	if (folder >= 0)
		put_kept(folder, name, symbols);
	return symbols->symbols.n;
}

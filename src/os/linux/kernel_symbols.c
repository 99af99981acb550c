/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the kernel's table of symbols, and finds functions in it. */
#include "os/kernel_symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/linux/proc.h"

#define MAX_NAMES ((size_t)256 << 20)

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

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return (a->name > b->name) - (a->name < b->name);
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

bool sf_kernel_symbols_load(struct sf_kernel_symbols *symbols)
{
	bool fine = sf_kernel_symbols_are_shown() && sf_proc_lines("/proc/kallsyms", add_line, symbols);

	sf_kernel_symbols_sort(symbols);
	return fine && symbols->symbols.n;
}

/* Where several begin at one address the first line's name is taken. */
const char *sf_kernel_symbols_find(const struct sf_kernel_symbols *symbols, uint64_t address)
{
	size_t low = 0, high = symbols->symbols.n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (symbols->symbols.items[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	for (low--; low && symbols->symbols.items[low - 1].address == symbols->symbols.items[low].address;)
		low--;
	return symbols->names.items + symbols->symbols.items[low].name;
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

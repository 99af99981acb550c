/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of addresses from ELF symbol tables. Symbols overlap: aliases share an address, assembly has
 * labels inside of functions, and many symbols have no size. The symbol for an address is the one with a
 * size that starts last before the address. If there is none, it is a symbol without a size, which reaches
 * up to the next symbol or the end of its section. This is decided once, when the ranges are made.
 */
#include "symbols/elf_symbols.h"

#include <string.h>

/* Bits of a rank, the most telling first. */
enum {
	RANK_SIZED = 32,
	RANK_FUNCTION = 16,
	RANK_GLOBAL = 8,
	RANK_WEAK = 4,
	RANK_PLAIN_NAME = 2, /* malloc rather than __libc_malloc */
};

static unsigned char rank_of(const GElf_Sym *symbol, const char *name)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info), binding = GELF_ST_BIND(symbol->st_info);

	return (unsigned char)((symbol->st_size ? RANK_SIZED : 0) |
			       (type != STT_NOTYPE ? RANK_FUNCTION : 0) |
			       (binding == STB_GLOBAL ? RANK_GLOBAL : 0) |
			       (binding == STB_WEAK ? RANK_WEAK : 0) |
			       (name[0] != '_' ? RANK_PLAIN_NAME : 0));
}

/* Arm and RISC-V mark where code and data begin with $x, $d and $t; compilers' labels are .L. */
static bool is_marker(const char *name)
{
	return name[0] == '$' || (name[0] == '.' && name[1] == 'L');
}

bool sf_elf_symbols_add_one(struct sf_elf_symbols *symbols, const GElf_Sym *symbol,
			    const char *name, uint64_t limit)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info);
	uint64_t end;

	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return true;
	if (!name || !*name || is_marker(name) || symbol->st_value >= limit)
		return true;
	if (__builtin_add_overflow(symbol->st_value, symbol->st_size, &end) || end > limit ||
	    symbol->st_size == 0)
		end = limit;
	return sf_vec_push(&symbols->found, (struct sf_elf_symbol){
		.start = symbol->st_value, .end = end, .name = name,
		.rank = rank_of(symbol, name) });
}

/* Where the code section with this number ends; 0 when it is no code. */
static uint64_t code_end(Elf *elf, unsigned section)
{
	GElf_Shdr header;
	uint64_t end;

	if (section == SHN_UNDEF || !gelf_getshdr(elf_getscn(elf, section), &header) ||
	    !(header.sh_flags & SHF_EXECINSTR) ||
	    __builtin_add_overflow(header.sh_addr, header.sh_size, &end))
		return 0;
	return end;
}

static unsigned section_of(const GElf_Sym *symbol, Elf32_Word extended)
{
	if (symbol->st_shndx == SHN_XINDEX)
		return extended;
	return symbol->st_shndx < SHN_LORESERVE ? symbol->st_shndx : SHN_UNDEF;
}

/* The section that holds the numbers that do not fit into st_shndx, or NULL. */
static Elf_Data *extended_numbers(Elf *elf, Elf_Scn *table)
{
	int number = elf_scnshndx(table);

	return number > 0 ? elf_getdata(elf_getscn(elf, (size_t)number), NULL) : NULL;
}

static bool add_table(struct sf_elf_symbols *symbols, Elf *elf, Elf_Scn *table,
		      const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(table, NULL);
	Elf_Data *extended = extended_numbers(elf, table);
	size_t entry = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
	size_t n = data && entry ? data->d_size / entry : 0;

	for (size_t i = 1; i < n && i <= INT32_MAX; i++) {
		GElf_Sym symbol;
		Elf32_Word wide = 0;

		if (!gelf_getsymshndx(data, extended, (int)i, &symbol, &wide))
			continue;
		if (!sf_elf_symbols_add_one(symbols, &symbol,
					    elf_strptr(elf, header->sh_link, symbol.st_name),
					    code_end(elf, section_of(&symbol, wide))))
			return false;
	}
	return true;
}

bool sf_elf_symbols_add(struct sf_elf_symbols *symbols, const struct sf_elf *elf)
{
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf->elf, section));) {
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header) ||
		    (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
			continue;
		if (!add_table(symbols, elf->elf, section, &header))
			return false;
	}
	return true;
}

static int compare(const void *a_arg, const void *b_arg)
{
	const struct sf_elf_symbol *a = a_arg, *b = b_arg;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return strcmp(b->name, a->name); /* any order, but always the same one */
}

/* The symbols around the place that the sweep has come to, the innermost last. */
struct sweep {
	struct sf_elf_symbols *symbols;
	SF_VEC(const struct sf_elf_symbol *) open;
	uint64_t at;
};

/* Adds a range for the innermost open symbol from here to `end`. */
static bool cover(struct sweep *sweep, uint64_t end)
{
	struct sf_elf_symbol range = *sweep->open.items[sweep->open.n - 1];

	range.start = sweep->at;
	range.end = end;
	if (range.start >= range.end)
		return true;
	sweep->at = end;
	return sf_vec_push(&sweep->symbols->ranges, range);
}

static bool advance(struct sweep *sweep, uint64_t to)
{
	while (sweep->open.n) {
		uint64_t end = sweep->open.items[sweep->open.n - 1]->end;

		if (end > to)
			return cover(sweep, to);
		if (!cover(sweep, end))
			return false;
		sweep->open.n--;
	}
	return true;
}

static bool add_sized(struct sweep *sweep)
{
	for (size_t i = 0; i < sweep->symbols->found.n; i++) {
		const struct sf_elf_symbol *symbol = &sweep->symbols->found.items[i];

		if (!(symbol->rank & RANK_SIZED))
			continue;
		if (!advance(sweep, symbol->start))
			return false;
		sweep->at = symbol->start;
		if (!sf_vec_push(&sweep->open, symbol))
			return false;
	}
	return advance(sweep, UINT64_MAX);
}

static size_t first_range_behind(const struct sf_elf_symbols *symbols, size_t n, uint64_t address)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->ranges.items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Symbols without a size get what is left: up to the next symbol of either kind. */
static bool add_unsized(struct sf_elf_symbols *symbols)
{
	size_t n_sized = symbols->ranges.n;

	for (size_t i = 0; i < symbols->found.n; i++) {
		struct sf_elf_symbol symbol = symbols->found.items[i];
		size_t behind = first_range_behind(symbols, n_sized, symbol.start);

		if (symbol.rank & RANK_SIZED)
			continue;
		if (behind && symbols->ranges.items[behind - 1].end > symbol.start)
			continue;
		if (behind < n_sized)
			symbol.end = least(symbol.end, symbols->ranges.items[behind].start);
		if (i + 1 < symbols->found.n)
			symbol.end = least(symbol.end, symbols->found.items[i + 1].start);
		if (symbol.end > symbol.start && !sf_vec_push(&symbols->ranges, symbol))
			return false;
	}
	return true;
}

static void sort(struct sf_elf_symbol *items, size_t n)
{
	if (n)
		qsort(items, n, sizeof(*items), compare);
}

bool sf_elf_symbols_finish(struct sf_elf_symbols *symbols)
{
	struct sweep sweep = { .symbols = symbols };
	bool done;

	sort(symbols->found.items, symbols->found.n);
	done = add_sized(&sweep) && add_unsized(symbols);
	sort(symbols->ranges.items, symbols->ranges.n);
	sf_vec_deinit(&sweep.open);
	sf_vec_deinit(&symbols->found);
	return done;
}

const struct sf_elf_symbol *sf_elf_symbols_find(const struct sf_elf_symbols *symbols,
						uint64_t address)
{
	size_t behind = first_range_behind(symbols, symbols->ranges.n, address);

	if (!behind || address >= symbols->ranges.items[behind - 1].end)
		return NULL;
	return &symbols->ranges.items[behind - 1];
}

bool sf_elf_symbol_is_sized(const struct sf_elf_symbol *symbol)
{
	return symbol->rank & RANK_SIZED;
}

void sf_elf_symbols_deinit(struct sf_elf_symbols *symbols)
{
	sf_vec_deinit(&symbols->found);
	sf_vec_deinit(&symbols->ranges);
}

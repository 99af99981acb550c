/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of addresses from ELF symbol tables. Symbols overlap: aliases share an address, assembly has
 * labels inside of functions, and many symbols have no size. The symbol for an address is the one with a
 * size that starts last before the address. If there is none, it is a symbol without a size, which reaches
 * up to the next symbol or the end of its section. This is decided once, when the ranges are made.
 */
#include "symbols/ranges.h"

/* Bits of a rank, the most telling first. */
enum {
	RANK_FUNCTION = 16,
	RANK_GLOBAL = 8,
	RANK_WEAK = 4,
	RANK_PLAIN_NAME = 2, /* malloc rather than __libc_malloc */
};

static unsigned char rank_of(const GElf_Sym *symbol, const char *name)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info), binding = GELF_ST_BIND(symbol->st_info);

	return (unsigned char)((symbol->st_size ? SF_RANK_SIZED : 0) |
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

bool sf_ranges_add_symbol(struct sf_ranges *ranges, const GElf_Sym *symbol, const char *name,
			  uint64_t limit)
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
	return sf_vec_push(ranges, (struct sf_range){
		.start = symbol->st_value, .end = end, .name = name,
		.rank = rank_of(symbol, name) });
}

/* Where the code section with this number ends; 0 when it is no code. Files that are opened have no extended numbers. */
static uint64_t code_end(Elf *elf, unsigned section)
{
	GElf_Shdr header;
	uint64_t end;

	if (section == SHN_UNDEF || section >= SHN_LORESERVE || !gelf_getshdr(elf_getscn(elf, section), &header) ||
	    !(header.sh_flags & SHF_EXECINSTR) ||
	    __builtin_add_overflow(header.sh_addr, header.sh_size, &end))
		return 0;
	return end;
}

static bool add_table(struct sf_ranges *ranges, Elf *elf, Elf_Scn *table,
		      const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(table, NULL);
	size_t entry = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
	size_t n = data && entry ? data->d_size / entry : 0;

	for (size_t i = 1; i < n && i <= INT32_MAX; i++) {
		GElf_Sym symbol;

		if (!gelf_getsym(data, (int)i, &symbol))
			continue;
		if (!sf_ranges_add_symbol(ranges, &symbol,
					  elf_strptr(elf, header->sh_link, symbol.st_name),
					  code_end(elf, symbol.st_shndx)))
			return false;
	}
	return true;
}

bool sf_ranges_add_symbols(struct sf_ranges *ranges, const struct sf_elf *elf)
{
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf->elf, section));) {
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header) ||
		    (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
			continue;
		if (!add_table(ranges, elf->elf, section, &header))
			return false;
	}
	return true;
}

/* The symbols around the address that the sweep has come to, the innermost last. */
struct sweep {
	SF_VEC(const struct sf_range *) open;
	uint64_t at;
	struct sf_ranges *ret;
};

/* Adds a range for the innermost open symbol from here to `end`. */
static bool cover(struct sweep *sweep, uint64_t end)
{
	struct sf_range range = *sweep->open.items[sweep->open.n - 1];

	range.start = sweep->at;
	range.end = end;
	if (range.start >= range.end)
		return true;
	sweep->at = end;
	return sf_vec_push(sweep->ret, range);
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

static bool add_sized(const struct sf_ranges *symbols, struct sweep *sweep)
{
	for (size_t i = 0; i < symbols->n; i++) {
		const struct sf_range *symbol = &symbols->items[i];

		if (!(symbol->rank & SF_RANK_SIZED))
			continue;
		if (!advance(sweep, symbol->start))
			return false;
		sweep->at = symbol->start;
		if (!sf_vec_push(&sweep->open, symbol))
			return false;
	}
	return advance(sweep, UINT64_MAX);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Symbols without a size get what is left: up to the next symbol of either kind. */
static bool add_unsized(const struct sf_ranges *symbols, struct sf_ranges *ret)
{
	size_t n_sized = ret->n;

	for (size_t i = 0; i < symbols->n; i++) {
		struct sf_range symbol = symbols->items[i];
		size_t before = sf_ranges_before(ret->items, n_sized, symbol.start);

		if (symbol.rank & SF_RANK_SIZED)
			continue;
		if (before && ret->items[before - 1].end > symbol.start)
			continue;
		if (before < n_sized)
			symbol.end = least(symbol.end, ret->items[before].start);
		if (i + 1 < symbols->n)
			symbol.end = least(symbol.end, symbols->items[i + 1].start);
		if (symbol.end > symbol.start && !sf_vec_push(ret, symbol))
			return false;
	}
	return true;
}

bool sf_ranges_flatten(struct sf_ranges *symbols)
{
	struct sf_ranges flat = { 0 };
	struct sweep sweep = { .ret = &flat };
	bool done;

	sf_ranges_sort(symbols);
	done = add_sized(symbols, &sweep) && add_unsized(symbols, &flat);
	sf_ranges_sort(&flat);
	sf_vec_deinit(&sweep.open);
	sf_vec_deinit(symbols);
	*symbols = flat;
	return done;
}

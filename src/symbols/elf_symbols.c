/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of addresses from the symbols of an ELF file, and from Go's tables. Symbols overlap: aliases share an address, assembly has
 * labels inside of functions, and many symbols have no size. The symbol for an address is the one with a
 * size that starts last before the address. If there is none, it is a symbol without a size, which reaches
 * up to the next symbol or the end of its section. This is decided once, when the ranges are made.
 */
#include <string.h>

#include "elf/go_tables.h"
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

/* Adds one symbol if it names code that ends at `limit` at most. */
static bool add_symbol(struct sf_ranges *ranges, const GElf_Sym *symbol, const char *name, uint64_t limit)
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
		if (!add_symbol(ranges, &symbol, elf_strptr(elf, header->sh_link, symbol.st_name), code_end(elf, symbol.st_shndx)))
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

/*
 * --- symbols of a file that has lost its section headers, as the dynamic linker finds them: through PT_DYNAMIC ---
 *
 * Nothing there says how many symbols there are; the hash tables do.
 */

/* The dynamic section's entries by their tags; 0: it does not have this one. */
struct dynamic {
	uint64_t of[DT_NUM], gnu_hash;
};

/* The bytes of the file from `address` to the end of its segment, at most `size`; or NULL. */
static Elf_Data *data_at(const struct sf_elf *elf, uint64_t address, uint64_t size, Elf_Type type)
{
	GElf_Phdr header;
	uint64_t room;

	if (!address || !sf_elf_find_loaded(elf, address, 0, &header))
		return NULL;
	room = header.p_filesz - (address - header.p_vaddr);
	return elf_getdata_rawchunk(elf->elf, (int64_t)(header.p_offset + address - header.p_vaddr),
				    size < room ? size : room, type);
}

static bool read_dynamic(const struct sf_elf *elf, struct dynamic *ret)
{
	GElf_Phdr header;
	Elf_Data *data;
	GElf_Dyn entry;

	*ret = (struct dynamic){ 0 };
	if (!sf_elf_find_segment(elf, PT_DYNAMIC, &header))
		return false;
	data = elf_getdata_rawchunk(elf->elf, (int64_t)header.p_offset, header.p_filesz, ELF_T_DYN);
	for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
		if (entry.d_tag == DT_GNU_HASH)
			ret->gnu_hash = entry.d_un.d_ptr;
		else if (entry.d_tag > 0 && entry.d_tag < DT_NUM)
			ret->of[entry.d_tag] = entry.d_un.d_val;
	}
	return ret->of[DT_SYMTAB] && ret->of[DT_STRTAB];
}

static bool read_word(const Elf_Data *data, uint64_t index, uint32_t *ret)
{
	if (!data || index >= data->d_size / sizeof(*ret))
		return false;
	memcpy(ret, (const char *)data->d_buf + index * sizeof(*ret), sizeof(*ret));
	return true;
}

/* DT_HASH: the number of chains is the number of symbols. */
static uint64_t count_by_hash(const struct sf_elf *elf, uint64_t hash)
{
	uint32_t n;

	return read_word(data_at(elf, hash, 8, ELF_T_WORD), 1, &n) ? n : 0;
}

/* DT_GNU_HASH: the last chain of the highest bucket ends with the last symbol. */
static uint64_t count_by_gnu_hash(const struct sf_elf *elf, uint64_t hash)
{
	Elf_Data *words = data_at(elf, hash, UINT64_MAX, ELF_T_WORD);
	uint32_t n_buckets, first, bloom, word = 0, last = 0;
	uint64_t buckets, chains;

	if (!read_word(words, 0, &n_buckets) || !read_word(words, 1, &first) ||
	    !read_word(words, 2, &bloom))
		return 0;
	buckets = 4 + (uint64_t)bloom * 2;
	chains = buckets + n_buckets;
	for (uint32_t i = 0; i < n_buckets && read_word(words, buckets + i, &word); i++)
		last = word > last ? word : last;
	if (last < first)
		return first;
	while (read_word(words, chains + (last - first), &word) && !(word & 1) &&
	       last < UINT32_MAX)
		last++;
	return (uint64_t)last + 1;
}

static const char *string_at(const Elf_Data *strings, uint64_t offset)
{
	const char *text = (const char *)strings->d_buf + offset;

	if (offset >= strings->d_size || !memchr(text, 0, strings->d_size - offset))
		return NULL;
	return text;
}

static bool add_dynamic(struct sf_ranges *ranges, const struct sf_elf *elf, const GElf_Sym *symbol, const char *name)
{
	GElf_Phdr header;

	if (!name || symbol->st_shndx == SHN_UNDEF ||
	    !sf_elf_find_loaded(elf, symbol->st_value, PF_X, &header))
		return true;
	return add_symbol(ranges, symbol, name, header.p_vaddr + header.p_memsz);
}

bool sf_ranges_add_dynamic(struct sf_ranges *ranges, const struct sf_elf *elf)
{
	struct dynamic dynamic;
	uint64_t n, entry = gelf_fsize(elf->elf, ELF_T_SYM, 1, EV_CURRENT);
	Elf_Data *table, *strings;
	GElf_Sym symbol;

	if (!read_dynamic(elf, &dynamic))
		return true;
	n = dynamic.gnu_hash ? count_by_gnu_hash(elf, dynamic.gnu_hash)
			     : count_by_hash(elf, dynamic.of[DT_HASH]);
	table = data_at(elf, dynamic.of[DT_SYMTAB], n * entry, ELF_T_SYM);
	strings = data_at(elf, dynamic.of[DT_STRTAB], dynamic.of[DT_STRSZ], ELF_T_BYTE);
	if (!table || !strings)
		return true;
	for (int i = 1; gelf_getsym(table, i, &symbol); i++) {
		if (!add_dynamic(ranges, elf, &symbol, string_at(strings, symbol.st_name)))
			return false;
	}
	return true;
}

/* --- names of Go's functions, from the tables of Go's runtime (elf/go_tables.h) --- */

bool sf_ranges_add_go(struct sf_ranges *ranges, struct sf_elf *elf)
{
	struct sf_section section;
	struct sf_go_tables tables;

	if (!sf_go_section(elf, &section) || !sf_go_tables_open(&section, &tables))
		return true;
	for (uint64_t i = 0; i < tables.n; i++) {
		const struct sf_range range = {
			.start = sf_go_entry(&tables, i), .end = sf_go_entry(&tables, i + 1), .name = sf_go_name(&tables, i),
			.rank = SF_RANK_SIZED,
		};

		if (range.name && range.start < range.end && !sf_vec_push(ranges, range))
			return false;
	}
	return true;
}

/* --- one symbol for each address --- */

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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols of a file that has lost its section headers, as the dynamic linker finds them: through
 * PT_DYNAMIC. Nothing there says how many symbols there are; the hash tables do.
 */
#include <string.h>

#include "symbols/ranges.h"

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

static bool add(struct sf_ranges *ranges, const struct sf_elf *elf, const GElf_Sym *symbol, const char *name)
{
	GElf_Phdr header;

	if (!name || symbol->st_shndx == SHN_UNDEF ||
	    !sf_elf_find_loaded(elf, symbol->st_value, PF_X, &header))
		return true;
	return sf_ranges_add_symbol(ranges, symbol, name, header.p_vaddr + header.p_memsz);
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
		if (!add(ranges, elf, &symbol, string_at(strings, symbol.st_name)))
			return false;
	}
	return true;
}

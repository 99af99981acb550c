/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names the stubs of procedure linkage tables after the functions that they call.
 *
 * x86-64 psABI, sections 5.2 and 13.2. A stub is `jmp *slot(%rip)`, with endbr64 and bnd in front
 * of it in programs for CET and MPX. It is found by its bytes, not by its number: linkers leave
 * stubs out, and put them into sections of their own (.plt.sec, .plt.got). A lazy .plt beside
 * a .plt.sec has no such jump; nobody stays in it.
 */
#include "symbols/plt_names.h"

#include <stdlib.h>
#include <string.h>

#include "elf/bytes.h"

/* Stubs have 16 bytes, or 8 in .plt.got, and begin at a multiple of 8. */
#define STEP 8

/* Where the dynamic linker puts a function's address. */
struct slot {
	uint64_t address;
	const char *name;
};

struct slots {
	SF_VEC(struct slot) items;
};

/* A table of relocations, and the symbols that it is about. */
struct relocations {
	Elf *elf;
	Elf_Data *entries, *symbols;
	size_t n, strings; /* strings: the number of their section */
};

static bool open_relocations(Elf *elf, const char *name, struct relocations *ret)
{
	GElf_Shdr header, symbols_header;
	Elf_Scn *section = sf_elf_find_section(elf, name, &header);
	Elf_Scn *symbols = section && header.sh_type == SHT_RELA ? elf_getscn(elf, header.sh_link)
								 : NULL;

	if (!symbols || !gelf_getshdr(symbols, &symbols_header) ||
	    symbols_header.sh_type != SHT_DYNSYM)
		return false;
	*ret = (struct relocations){
		.elf = elf, .entries = elf_getdata(section, NULL),
		.symbols = elf_getdata(symbols, NULL), .strings = symbols_header.sh_link,
	};
	if (!ret->entries || !ret->symbols)
		return false;
	ret->n = ret->entries->d_size / sizeof(Elf64_Rela);
	return ret->n <= INT32_MAX;
}

/* The name of the function for which a relocation makes a slot, or NULL. */
static const char *name_of(const struct relocations *relocations, const GElf_Rela *relocation)
{
	uint64_t type = GELF_R_TYPE(relocation->r_info), number = GELF_R_SYM(relocation->r_info);
	const char *name;
	GElf_Sym symbol;

	if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) || !number ||
	    number > INT32_MAX || !gelf_getsym(relocations->symbols, (int)number, &symbol))
		return NULL;
	name = elf_strptr(relocations->elf, relocations->strings, symbol.st_name);
	return name && *name ? name : NULL;
}

static bool add_slots(Elf *elf, const char *section, struct slots *ret)
{
	struct relocations relocations;
	GElf_Rela relocation;

	if (!open_relocations(elf, section, &relocations))
		return true;
	for (size_t i = 0; i < relocations.n; i++) {
		const char *name = gelf_getrela(relocations.entries, (int)i, &relocation)
					   ? name_of(&relocations, &relocation)
					   : NULL;

		if (name && !sf_vec_push(&ret->items, (struct slot){ relocation.r_offset, name }))
			return false;
	}
	return true;
}

static int compare_slots(const void *a_arg, const void *b_arg)
{
	const struct slot *a = a_arg, *b = b_arg;

	return (a->address > b->address) - (a->address < b->address);
}

static const char *name_of_slot(const struct slots *slots, uint64_t address)
{
	const struct slot key = { .address = address };
	const struct slot *found = bsearch(&key, slots->items.items, slots->items.n, sizeof(key),
					   compare_slots);

	return found ? found->name : NULL;
}

/* Skips what is at the cursor if it is these bytes. */
static bool skip(struct sf_bytes *bytes, const void *expected, size_t size)
{
	if (size > sf_bytes_left(bytes) || memcmp(bytes->at, expected, size) != 0)
		return false;
	bytes->at += size;
	return true;
}

/* The slot that the stub at `bytes` jumps through, when it is one. */
static bool read_stub(struct sf_bytes bytes, uint64_t address, uint64_t *slot)
{
	const uint8_t *start = bytes.at;
	uint32_t distance;

	skip(&bytes, "\xf3\x0f\x1e\xfa", 4); /* endbr64 */
	skip(&bytes, "\xf2", 1);             /* bnd */
	if (!skip(&bytes, "\xff\x25", 2))    /* jmp *distance(%rip) */
		return false;
	distance = sf_bytes_u32(&bytes);
	*slot = address + (uint64_t)(bytes.at - start) + (uint64_t)(int64_t)(int32_t)distance;
	return !bytes.bad;
}

/* Adds the stubs of one section, each up to the next one, and to 16 bytes at most. */
static bool add_stubs(const struct sf_section *section, const struct slots *slots,
		      struct sf_plt_names *ret)
{
	struct sf_plt_entry *last = NULL;

	for (size_t at = 0; at < section->size; at += STEP) {
		struct sf_bytes bytes = { .at = section->bytes + at,
					  .end = section->bytes + section->size };
		uint64_t start = section->address + at, slot;
		struct sf_plt_entry entry = { .start = start, .end = start + 2 * STEP };

		if (!read_stub(bytes, start, &slot))
			continue;
		if (last && last->end > start)
			last->end = start;
		last = NULL;
		entry.name = name_of_slot(slots, slot);
		if (!entry.name)
			continue;
		if (!sf_vec_push(&ret->entries, entry))
			return false;
		last = &ret->entries.items[ret->entries.n - 1];
	}
	return true;
}

static int compare_entries(const void *a_arg, const void *b_arg)
{
	const struct sf_plt_entry *a = a_arg, *b = b_arg;

	return (a->start > b->start) - (a->start < b->start);
}

static bool read_all(struct sf_elf *elf, struct slots *slots, struct sf_plt_names *ret)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got" };

	if (!add_slots(elf->elf, ".rela.plt", slots) || !add_slots(elf->elf, ".rela.dyn", slots))
		return false;
	if (!slots->items.n)
		return true;
	qsort(slots->items.items, slots->items.n, sizeof(struct slot), compare_slots);
	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
		struct sf_section section;

		if (sf_elf_section(elf, sections[i], &section) && !add_stubs(&section, slots, ret))
			return false;
	}
	if (ret->entries.n)
		qsort(ret->entries.items, ret->entries.n, sizeof(struct sf_plt_entry),
		      compare_entries);
	return true;
}

bool sf_plt_names_read(struct sf_elf *elf, struct sf_plt_names *ret)
{
	struct slots slots = { 0 };
	bool done = elf->arch != &sf_arch_x86_64 || read_all(elf, &slots, ret);

	sf_vec_deinit(&slots.items);
	return done;
}

const char *sf_plt_names_find(const struct sf_plt_names *names, uint64_t address)
{
	size_t low = 0, high = names->entries.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (names->entries.items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= names->entries.items[low - 1].end)
		return NULL;
	return names->entries.items[low - 1].name;
}

void sf_plt_names_deinit(struct sf_plt_names *names)
{
	sf_vec_deinit(&names->entries);
}

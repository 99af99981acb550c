/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of addresses: sorting, finding, and reading those of functions from call frame information, and those of stubs. */
#include "symbols/ranges.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "frozen/memory/bytes.h"

static int compare(const void *a_arg, const void *b_arg)
{
	const struct sf_range *a = a_arg, *b = b_arg;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->end != b->end || !a->name || !b->name)
		return sf_order(a->end, b->end);
	return strcmp(b->name, a->name); /* any order, but always the same one */
}

void sf_ranges_sort(struct sf_ranges *ranges)
{
	if (ranges->n)
		qsort(ranges->items, ranges->n, sizeof(*ranges->items), compare);
}

size_t sf_ranges_before(const struct sf_range *sorted, size_t n, uint64_t address)
{
	return sf_count_before(n, i, sorted[i].start <= address);
}

const struct sf_range *sf_ranges_find(const struct sf_ranges *sorted, uint64_t address)
{
	size_t n = sf_ranges_before(sorted->items, sorted->n, address);

	return n && address < sorted->items[n - 1].end ? &sorted->items[n - 1] : NULL;
}

/* --- functions, from call frame information --- */

/* Chromium has fewer than a million; the bound is against sections full of tiny entries. */
#define MAX_RANGES ((size_t)4 << 20)

/* False for a function that the linker dropped: it keeps an entry in .debug_frame, from 0 or 1 on. */
static bool is_code(const struct sf_elf *elf, const struct sf_fde *fde)
{
	return fde->start < fde->end && fde->start >= elf->code_start && fde->end <= elf->code_end;
}

static bool add_section(const struct sf_elf *elf, const struct sf_cfi *cfi,
			struct sf_ranges *ret)
{
	struct sf_cfi_cursor cursor = { 0 };
	uint64_t cie_offset = UINT64_MAX; /* no entry is there */
	struct sf_cie cie;
	bool good = false;
	struct sf_fde fde;

	while (ret->n < MAX_RANGES && sf_cfi_next(cfi, &cursor)) {
		if (cursor.cie != cie_offset)
			good = sf_cie_read(cfi, cursor.cie, &cie);
		cie_offset = cursor.cie;
		if (!good || !sf_fde_read(&cursor, &cie, &fde) || !is_code(elf, &fde))
			continue;
		if (!sf_vec_push(ret, (struct sf_range){ .start = fde.start, .end = fde.end }))
			return false;
	}
	return true;
}

bool sf_ranges_read_functions(struct sf_elf *elf, struct sf_ranges *ret)
{
	struct sf_cfi cfi;

	if ((sf_elf_eh_frame(elf, &cfi) && !add_section(elf, &cfi, ret)) ||
	    (sf_elf_debug_frame(elf, &cfi) && !add_section(elf, &cfi, ret)))
		return false;
	sf_ranges_sort(ret);
	return true;
}

/*
 * --- stubs of procedure linkage tables, with the names of the functions that they call ---
 *
 * x86-64 psABI, sections 5.2 and 13.2. A stub is `jmp *slot(%rip)`, with endbr64 and bnd in front of it in programs for CET and
 * MPX. It is found by its bytes, not by its number: linkers leave stubs out, and put them into sections of their own (.plt.sec,
 * .plt.got). A lazy .plt beside a .plt.sec has no such jump; nobody stays in it.
 */

/* Stubs have 16 bytes, or 8 in .plt.got, and begin at a multiple of 8. */
#define STEP 8

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

/* Adds the addresses where the dynamic linker puts those of functions. */
static bool add_slots(Elf *elf, const char *section, struct sf_ranges *ret)
{
	struct relocations relocations;
	GElf_Rela relocation;

	if (!open_relocations(elf, section, &relocations))
		return true;
	for (size_t i = 0; i < relocations.n; i++) {
		const char *name = gelf_getrela(relocations.entries, (int)i, &relocation)
					   ? name_of(&relocations, &relocation)
					   : NULL;

		if (name && !sf_vec_push(ret, (struct sf_range){
				    relocation.r_offset, relocation.r_offset + 8, name, 0 }))
			return false;
	}
	return true;
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

/* Adds the stubs of one section, of 16 bytes or up to the next one, or to the section's end: functions may follow at once. */
static bool add_stubs(const struct sf_section *section, const struct sf_ranges *slots,
		      struct sf_ranges *ret)
{
	for (size_t at = 0; at < section->size; at += STEP) {
		struct sf_bytes bytes = { .at = section->bytes + at,
					  .end = section->bytes + section->size };
		struct sf_range stub = { .start = section->address + at };
		const struct sf_range *called;
		uint64_t slot;

		if (!read_stub(bytes, stub.start, &slot))
			continue;
		called = sf_ranges_find(slots, slot);
		stub.name = called ? called->name : NULL;
		stub.end = stub.start + (section->size - at < 2 * STEP ? section->size - at : 2 * STEP);
		if (!sf_vec_push(ret, stub))
			return false;
	}
	return true;
}

static bool read_all(struct sf_elf *elf, struct sf_ranges *slots, struct sf_ranges *ret)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got" };

	if (!add_slots(elf->elf, ".rela.plt", slots) || !add_slots(elf->elf, ".rela.dyn", slots))
		return false;
	sf_ranges_sort(slots);
	for (size_t i = 0; slots->n && i < sizeof(sections) / sizeof(*sections); i++) {
		struct sf_section section;

		if (sf_elf_section(elf, sections[i], &section) && !add_stubs(&section, slots, ret))
			return false;
	}
	sf_ranges_sort(ret);
	return true;
}

bool sf_ranges_read_stubs(struct sf_elf *elf, struct sf_ranges *ret)
{
	struct sf_ranges slots = { 0 };
	bool done = elf->arch != &sf_arch_x86_64 || read_all(elf, &slots, ret);

	sf_vec_deinit(&slots);
	return done;
}

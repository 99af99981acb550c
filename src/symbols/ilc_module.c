/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the tables of a program by ILC.
 *
 * Pointers in the file are filled in by the dynamic linker where the program may be loaded anywhere. What it fills in is in
 * the relocation; linkers differ in whether it is also in the place that is relocated.
 */
#include "symbols/ilc_module.h"

#include <string.h>

#define SIGNATURE 0x00525452u        /* "RTR" */
#define HEADER_SIZE 16u
#define ENTRY_SIZE 24u               /* u32 id, u32 flags, start, end */
#define HAS_END 1u                   /* among the flags: ModuleInfoFlags */
#define MAX_ENTRIES 128u             /* .NET 8 to 10 have 34 */
#define FIRST_BLOB 300u              /* ids of blobs begin there: ReadonlyBlobRegionStart */

/*
 * Versions of the header, and what differs in the tables. To add one: a line, once names of a program agree with those by its
 * .dbg file.
 */
static const struct version {
	uint16_t major;
	uint8_t offset_bits;
} versions[] = {
	{ 9, 24 },                   /* .NET 8 */
	{ 10, 24 },                  /* .NET 9 */
	{ 16, 25 },                  /* .NET 10 */
};

/* Ids of the blobs (ReflectionMapBlob). */
static const uint8_t blobs[SF_ILC_N_TABLES] = {
	[SF_ILC_METADATA] = 13, [SF_ILC_STACK_TRACE] = 27, [SF_ILC_INVOKE_MAP] = 6, [SF_ILC_TYPE_MAP] = 1, [SF_ILC_REFERENCES] = 8,
};

struct sf_bytes sf_ilc_at(const struct sf_section *table, uint64_t offset)
{
	struct sf_bytes bytes = sf_bytes_of(table->bytes, table->size);

	sf_bytes_take(&bytes, offset);
	return bytes;
}

/* *bits_ret: how many bits the number has. */
static uint64_t read_number(struct sf_bytes *bytes, unsigned *bits_ret)
{
	const uint8_t first = sf_bytes_left(bytes) ? *bytes->at : 0;
	unsigned size = 1;

	while (size < 5 && first >> (size - 1) & 1)
		size++;
	if (size == 5) {
		bytes->bad |= first >> 4 & 1;
		sf_bytes_u8(bytes);
		*bits_ret = 32;
		return sf_bytes_u32(bytes);
	}
	*bits_ret = 7 * size;
	return sf_bytes_number(bytes, size) >> size;
}

uint32_t sf_ilc_number(struct sf_bytes *bytes)
{
	unsigned bits;

	return (uint32_t)read_number(bytes, &bits);
}

int32_t sf_ilc_signed_number(struct sf_bytes *bytes)
{
	unsigned bits;
	const uint64_t number = read_number(bytes, &bits);

	return (int32_t)((int64_t)(number << (64 - bits)) >> (64 - bits));
}

/* The bytes of the file that are loaded at `address`. */
static bool read_at(struct sf_elf *elf, uint64_t address, uint64_t size, struct sf_section *ret)
{
	GElf_Phdr header;
	uint64_t past;

	if (!size || !sf_elf_find_loaded(elf, address, 0, &header))
		return false;
	past = address - header.p_vaddr;
	if (past >= header.p_filesz || size > header.p_filesz - past)
		return false;
	*ret = (struct sf_section){ .size = size, .address = address };
	ret->bytes = sf_elf_read(elf, header.p_offset + past, size);
	return ret->bytes;
}

/* Copies a piece of the file, and fills in what the dynamic linker would. */
static bool read_relocated(struct sf_elf *elf, uint64_t address, uint64_t *ret, size_t n)
{
	struct sf_section piece, relocations;
	Elf64_Rela relocation;

	if (!read_at(elf, address, n * sizeof(*ret), &piece))
		return false;
	memcpy(ret, piece.bytes, piece.size);
	if (!sf_elf_section(elf, ".rela.dyn", &relocations))
		return true;
	for (size_t i = 0; i < relocations.size / sizeof(relocation); i++) {
		memcpy(&relocation, relocations.bytes + i * sizeof(relocation), sizeof(relocation));
		if (ELF64_R_TYPE(relocation.r_info) == R_X86_64_RELATIVE && relocation.r_offset - address < piece.size &&
		    relocation.r_offset % sizeof(*ret) == address % sizeof(*ret))
			ret[(relocation.r_offset - address) / sizeof(*ret)] = (uint64_t)relocation.r_addend;
	}
	return true;
}

/* The header's address: of a file with several, as after linking several compilations, none is taken. */
static bool find_header(struct sf_elf *elf, uint64_t *ret)
{
	struct sf_section modules;

	return sf_elf_section(elf, "__modules", &modules) && modules.size == sizeof(*ret) &&
	       read_relocated(elf, modules.address, ret, 1) && *ret;
}

static const struct version *find_version(uint16_t major)
{
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		if (versions[i].major == major)
			return &versions[i];
	}
	return NULL;
}

static void add_table(struct sf_elf *elf, const uint64_t entry[ENTRY_SIZE / 8], struct sf_ilc_module *ret)
{
	const uint32_t id = (uint32_t)entry[0], flags = (uint32_t)(entry[0] >> 32);

	for (unsigned table = 0; table < SF_ILC_N_TABLES; table++) {
		if (id == FIRST_BLOB + blobs[table] && flags & HAS_END && entry[2] > entry[1] &&
		    !read_at(elf, entry[1], entry[2] - entry[1], &ret->tables[table]))
			ret->tables[table] = (struct sf_section){ 0 };
	}
}

static bool read_header(struct sf_elf *elf, uint64_t address, struct sf_ilc_module *ret)
{
	uint64_t entries[MAX_ENTRIES * ENTRY_SIZE / 8];
	struct sf_section header;
	const struct version *version;
	struct sf_bytes bytes;
	unsigned n;

	if (!read_at(elf, address, HEADER_SIZE, &header))
		return false;
	bytes = sf_bytes_of(header.bytes, header.size);
	if (sf_bytes_u32(&bytes) != SIGNATURE || !(version = find_version((uint16_t)sf_bytes_number(&bytes, 2))))
		return false;
	sf_bytes_take(&bytes, 6); /* minor version, flags */
	n = (unsigned)sf_bytes_number(&bytes, 2);
	if (n > MAX_ENTRIES || sf_bytes_u8(&bytes) != ENTRY_SIZE ||
	    !read_relocated(elf, address + HEADER_SIZE, entries, n * ENTRY_SIZE / 8))
		return false;
	for (unsigned i = 0; i < n; i++)
		add_table(elf, entries + i * ENTRY_SIZE / 8, ret);
	ret->offset_bits = version->offset_bits;
	return true;
}

bool sf_ilc_module_open(struct sf_elf *elf, struct sf_ilc_module *ret)
{
	GElf_Shdr code;
	uint64_t header;

	*ret = (struct sf_ilc_module){ 0 };
	if (elf->arch != &sf_arch_x86_64 || !sf_elf_find_section(elf->elf, "__managedcode", &code) || !find_header(elf, &header))
		return false;
	ret->code = code.sh_addr;
	ret->code_size = code.sh_size;
	return read_header(elf, header, ret);
}

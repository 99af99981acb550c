/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the symbols that CoreCLR exports, and the version in its file. */
#include "runtime/coreclr/symbols.h"

#include <string.h>

#include "elf/file.h"

#define MAX_SYMBOLS (1 << 20)
#define MAX_DATA (16u << 20)      /* of a section that is searched for the version */
#define VERSION "@(#)Version "    /* src/coreclr/pal: sccsid, in every native file of .NET */

static void note_symbol(struct sf_clr_symbols *ret, const char *name, uint64_t address)
{
	if (!name)
		return;
	if (*name != 'D' && *name != 'g') /* of the many that a program has */
		return;
	if (strcmp(name, "DotNetRuntimeContractDescriptor") == 0)
		ret->descriptor = address;
	else if (strcmp(name, "g_dacTable") == 0)
		ret->dac_table = address;
	else if (strcmp(name, "DotNetRuntimeDebugHeader") == 0)
		ret->aot_header = address;
}

static void note_symbols(struct sf_clr_symbols *ret, Elf *elf, Elf_Scn *section)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Shdr header;
	GElf_Sym symbol;

	if (!data || !gelf_getshdr(section, &header))
		return;
	for (int i = 0; i < MAX_SYMBOLS && gelf_getsym(data, i, &symbol); i++) {
		if (symbol.st_shndx != SHN_UNDEF)
			note_symbol(ret, elf_strptr(elf, header.sh_link, symbol.st_name),
				    symbol.st_value);
	}
}

static void note_version(struct sf_clr_symbols *ret, Elf_Scn *section)
{
	const Elf_Data *data = elf_rawdata(section, NULL);
	const char *found = data && data->d_buf && data->d_size <= MAX_DATA ?
		memmem(data->d_buf, data->d_size, VERSION, strlen(VERSION)) : NULL;
	size_t left, n = 0;

	if (!found || ret->version[0])
		return;
	found += strlen(VERSION);
	left = data->d_size - (size_t)(found - (const char *)data->d_buf);
	while (n < left && n < sizeof(ret->version) - 1 &&
	       (found[n] == '.' || (found[n] >= '0' && found[n] <= '9')))
		n++;
	memcpy(ret->version, found, n);
}

typedef void section_fn(struct sf_clr_symbols *ret, Elf *elf, Elf_Scn *section, const char *name, const GElf_Shdr *header);

static void look_for_symbols(struct sf_clr_symbols *ret, Elf *elf, Elf_Scn *section, const char *name, const GElf_Shdr *header)
{
	(void)name;
	if (header->sh_type == SHT_DYNSYM)
		note_symbols(ret, elf, section);
}

static void look_for_version(struct sf_clr_symbols *ret, Elf *elf, Elf_Scn *section, const char *name, const GElf_Shdr *header)
{
	(void)elf;
	if (header->sh_type == SHT_PROGBITS && (strcmp(name, ".data") == 0 || strcmp(name, ".rodata") == 0))
		note_version(ret, section);
}

static void for_each_section(struct sf_clr_symbols *ret, Elf *elf, section_fn *fn)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return;
	while ((section = elf_nextscn(elf, section))) {
		const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

		if (name)
			fn(ret, elf, section, name, &header);
	}
}

bool sf_clr_find_symbols(int fd, struct sf_clr_symbols *ret, struct sf_error *err)
{
	struct sf_elf file;

	*ret = (struct sf_clr_symbols){ 0 };
	if (!sf_elf_open(fd, &file, err))
		return false;
	for_each_section(ret, file.elf, look_for_symbols);
	if (ret->descriptor || ret->dac_table || ret->aot_header)
		for_each_section(ret, file.elf, look_for_version);
	sf_elf_close(&file);
	return true;
}

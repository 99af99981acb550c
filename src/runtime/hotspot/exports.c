/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the symbols by which libjvm describes its structures. */
#include "runtime/hotspot/exports.h"

#include <string.h>

#include "elf/file.h"

#define PREFIX "gHotSpotVM"
#define MAX_SYMBOLS (1 << 20) /* a libjvm has some thousands: the file is the target's, sections may overlap */

static const char *const names[SF_HE_N] = {
#define X(name, symbol) symbol,
	SF_HOTSPOT_EXPORTS(X)
#undef X
};

static void note_symbol(const char *name, uint64_t address, struct sf_hotspot_exports *ret)
{
	if (!name || strncmp(name, PREFIX, strlen(PREFIX)) != 0)
		return;
	for (size_t i = 0; i < SF_HE_N; i++) {
		if (strcmp(name + strlen(PREFIX), names[i]) == 0)
			ret->at[i] = address;
	}
}

static void note_symbols(Elf *elf, Elf_Scn *section, uint64_t bias, int *left,
			 struct sf_hotspot_exports *ret)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Shdr header;
	GElf_Sym symbol;

	if (!data || !gelf_getshdr(section, &header))
		return;
	for (int i = 0; *left > 0 && gelf_getsym(data, i, &symbol); i++, --*left) {
		if (symbol.st_shndx != SHN_UNDEF)
			note_symbol(elf_strptr(elf, header.sh_link, symbol.st_name),
				    bias + symbol.st_value, ret);
	}
}

bool sf_hotspot_exports(int fd, uint64_t bias, struct sf_hotspot_exports *ret,
			struct sf_error *err)
{
	Elf_Scn *section = NULL;
	int left = MAX_SYMBOLS;
	struct sf_elf file;
	GElf_Shdr header;

	*ret = (struct sf_hotspot_exports){ 0 };
	if (!sf_elf_open(fd, &file, err))
		return false;
	while (left > 0 && (section = elf_nextscn(file.elf, section))) {
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNSYM)
			note_symbols(file.elf, section, bias, &left, ret);
	}
	sf_elf_close(&file);
	for (size_t i = 0; i < SF_HE_N; i++) {
		if (!ret->at[i])
			return sf_fail(err, SF_E_UNSUPPORTED, "its libjvm does not export " PREFIX
				       "%s: it is no HotSpot", names[i]);
	}
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the header of .gopclntab, and what it leads to (go_tables.h). */
#include "elf/go_tables.h"

#include <string.h>

#define WORD 8

/* Where things are, by the first word of the section. Numbers of words behind it; offsets in what describes a function. */
struct sf_go_form {
	uint32_t magic;
	uint8_t names, lists, functions; /* offsets of these parts of the section */
	uint8_t text;                    /* the address that entries count from; 0: they are addresses */
	uint8_t size;                    /* of an entry, and of the offset beside it */
	uint8_t name_at, list_at;
};

static const struct sf_go_form forms[] = {
	{ 0xfffffffa, 2, 5, 6, 0, 8, 8, 20 }, /* Go 1.16 */
	{ 0xfffffff0, 3, 6, 7, 2, 4, 4, 16 }, /* Go 1.18 */
	{ 0xfffffff1, 3, 6, 7, 2, 4, 4, 16 }, /* Go 1.20 */
};

bool sf_go_section(struct sf_elf *elf, struct sf_section *ret)
{
	struct sf_section mark;

	/* A program that moves has them where they can be relocated. */
	if (sf_elf_section(elf, ".go.buildinfo", &mark) &&
	    (sf_elf_section(elf, ".gopclntab", ret) || sf_elf_section(elf, ".data.rel.ro.gopclntab", ret)))
		return true;
	*ret = (struct sf_section){ 0 };
	return false;
}

uint64_t sf_go_number(const struct sf_go_tables *tables, uint64_t at, size_t size)
{
	const struct sf_section *section = &tables->section;
	uint64_t ret = 0;

	if (at <= section->size && size <= section->size - at)
		memcpy(&ret, section->bytes + at, size);
	return ret;
}

static uint64_t header_word(const struct sf_go_tables *tables, unsigned i)
{
	return sf_go_number(tables, WORD + (uint64_t)i * WORD, WORD);
}

/* Behind the magic number: 0, 0, the least size of an instruction, the size of a pointer. */
static bool is_header(const struct sf_go_tables *tables)
{
	const uint64_t instruction = sf_go_number(tables, 6, 1);

	return sf_go_number(tables, 4, 2) == 0 && (instruction == 1 || instruction == 4) && sf_go_number(tables, 7, 1) == WORD;
}

bool sf_go_tables_open(const struct sf_section *section, struct sf_go_tables *ret)
{
	*ret = (struct sf_go_tables){ .section = *section };
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (forms[i].magic == (uint32_t)sf_go_number(ret, 0, sizeof(forms[i].magic)))
			ret->form = &forms[i];
	}
	if (!ret->form || !is_header(ret))
		return false;
	ret->n = header_word(ret, 0);
	ret->names = header_word(ret, ret->form->names);
	ret->lists = header_word(ret, ret->form->lists);
	ret->functions = header_word(ret, ret->form->functions);
	ret->text = ret->form->text ? header_word(ret, ret->form->text) : 0;
	return ret->lists < section->size && ret->functions < section->size && ret->n < section->size / ret->form->size / 2 &&
	       (ret->text || !ret->form->text);
}

uint64_t sf_go_entry(const struct sf_go_tables *tables, uint64_t i)
{
	const size_t size = tables->form->size;

	return tables->text + sf_go_number(tables, tables->functions + 2 * size * i, size);
}

/* Where function i is described. */
static uint64_t description(const struct sf_go_tables *tables, uint64_t i)
{
	const size_t size = tables->form->size;

	return tables->functions + sf_go_number(tables, tables->functions + 2 * size * i + size, size);
}

const char *sf_go_name(const struct sf_go_tables *tables, uint64_t i)
{
	const struct sf_section *section = &tables->section;
	const uint64_t at = tables->names + sf_go_number(tables, description(tables, i) + tables->form->name_at, 4);

	if (at >= section->size || !section->bytes[at] || !memchr(section->bytes + at, 0, section->size - at))
		return NULL;
	return (const char *)section->bytes + at;
}

uint64_t sf_go_lists(const struct sf_go_tables *tables, uint64_t i)
{
	return description(tables, i) + tables->form->list_at;
}

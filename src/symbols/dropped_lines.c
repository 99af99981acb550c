/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves the lines of functions that the linker dropped out of the way, in our private copy of the debug data.
 *
 * A line table is a program that makes rows, in sequences with rising addresses (DWARF 5, section 6.2). A linker that drops a
 * function does not shorten the program, but sets the address at which the sequence begins to 0 (GNU ld, gold and lld do). The
 * rows of a large function then lie among those of functions that were kept, and libdw, which sorts all rows, does not say which
 * sequence one is of. So such an address is replaced before libdw reads the program. Nothing else of it is changed.
 */
#include <dwarf.h>
#include <string.h>

#include "frozen/memory/bytes.h"
#include "symbols/dwarf_symbols.h"
#include "symbols/sources.h"

#define NO_CODE (UINT64_C(1) << 63) /* where dropped lines are moved to: no program has addresses there */

/* A line table's. */
struct program {
	const struct sf_elf *image;
	struct sf_bytes bytes;
	uint8_t opcode_base;                /* from here on an opcode is all of its instruction */
	const uint8_t *n_operands;          /* of the opcodes from 1 on below it */
};

/* The bytes of the section that libdw reads, which it has unpacked. */
static struct sf_bytes line_section(Dwarf *dwarf)
{
	GElf_Shdr header;
	Elf *elf = dwarf_getelf(dwarf);
	Elf_Scn *section = sf_elf_find_section(elf, ".debug_line", &header);
	Elf_Data *data;

	if (!section)
		section = sf_elf_find_section(elf, ".zdebug_line", &header);
	data = section ? elf_rawdata(section, NULL) : NULL;
	return sf_bytes_of(data ? data->d_buf : NULL, data && data->d_buf ? data->d_size : 0);
}

/* The header of a program (section 6.2.4), of which the list of files is left out. False: it makes no sense. */
static bool read_header(struct sf_bytes bytes, struct program *ret)
{
	uint64_t length = sf_bytes_u32(&bytes);
	const size_t word = length == 0xffffffff ? 8 : 4;
	unsigned version;

	length = word == 8 ? sf_bytes_number(&bytes, 8) : length;
	if (length > sf_bytes_left(&bytes))
		return false;
	bytes.end = bytes.at + length;
	version = (unsigned)sf_bytes_number(&bytes, 2);
	if (version < 2 || version > 5)
		return false;
	sf_bytes_take(&bytes, version == 5 ? 2 : 0); /* the sizes of an address and of a segment's */
	length = sf_bytes_number(&bytes, word);
	ret->bytes = bytes;
	sf_bytes_take(&ret->bytes, length);
	sf_bytes_take(&bytes, version >= 4 ? 5 : 4); /* about instructions and lines */
	ret->opcode_base = sf_bytes_u8(&bytes);
	ret->n_operands = sf_bytes_take(&bytes, ret->opcode_base ? ret->opcode_base - 1u : 0);
	return ret->opcode_base && !bytes.bad && !ret->bytes.bad;
}

static void move_dropped(const struct program *program, const uint8_t *at)
{
	const uint64_t no_code = NO_CODE;
	uint64_t address;

	memcpy(&address, at, sizeof(address));
	if (!sf_dwarf_is_code(program->image, address) && sf_dwarf_make_writable(at, sizeof(address)))
		memcpy((void *)(uintptr_t)at, &no_code, sizeof(no_code));
}

static void pass_extended(struct program *program)
{
	const uint64_t size = sf_bytes_uleb(&program->bytes);
	const uint8_t *at = sf_bytes_take(&program->bytes, size);

	if (at && size == 1 + sizeof(uint64_t) && at[0] == DW_LNE_set_address)
		move_dropped(program, at + 1);
}

static void pass_operands(struct sf_bytes *bytes, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sf_bytes_uleb(bytes);
}

static void pass_instruction(struct program *program)
{
	const uint8_t opcode = sf_bytes_u8(&program->bytes);

	if (opcode == 0)
		pass_extended(program);
	else if (opcode == DW_LNS_fixed_advance_pc && opcode < program->opcode_base)
		sf_bytes_take(&program->bytes, 2);
	else if (opcode < program->opcode_base)
		pass_operands(&program->bytes, program->n_operands[opcode - 1]);
}

void sf_lines_move_dropped(Dwarf_Die *unit, const struct sf_elf *image, struct sf_budget *budget)
{
	struct program program = { .image = image };
	struct sf_bytes section = line_section(dwarf_cu_getdwarf(unit->cu));
	Dwarf_Attribute attribute;
	Dwarf_Word offset;

	if (!dwarf_attr(unit, DW_AT_stmt_list, &attribute) || dwarf_formudata(&attribute, &offset) != 0)
		return;
	sf_bytes_take(&section, offset);
	if (!read_header(section, &program))
		return;
	while (sf_bytes_left(&program.bytes) && !program.bytes.bad && sf_budget_spend(budget))
		pass_instruction(&program);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PLT entry is a jump: the stack is as the caller's call left it. A lazy one, on its second way
 * through, pushes its relocation's number and jumps to the section's first entry, which
 * pushes the module's own handle and jumps into the dynamic linker (x86-64 psABI, section
 * 5.2; with endbr64 in front: section 13.2). GNU ld describes .plt with an expression that
 * looks at the low bits of rip; linkers that describe nothing get rows per entry, by its bytes.
 */
#include "unwind/plt.h"

#include <string.h>

#include "elf/bytes.h"

#define ENTRY_SIZE 16

static const char *const names[SF_PLT_SECTIONS] = { ".plt", ".plt.sec", ".plt.got", ".iplt" };

static struct sf_rules x86_64_rules(int32_t cfa)
{
	return (struct sf_rules){
		.cfa = { .how = SF_HOW_REGISTER_PLUS, .reg = 7, .value = cfa },
		.ra = { .how = SF_HOW_AT_CFA, .value = -8 },
		.flags = SF_RULES_GUESS,
	};
}

static bool add_x86_64(struct sf_rows *rows, uint64_t address, int32_t cfa)
{
	struct sf_rules rules = x86_64_rules(cfa);

	return sf_rows_add(rows, address, &rules);
}

/*
 * Bytes from the start of an entry to behind its push of an imm32; 0: it has none. The
 * push is first (-z bndplt), behind endbr64 (-z ibtplt), or behind jmp *GOT(%rip).
 */
static size_t find_push(const uint8_t *entry, size_t size)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	static const uint8_t jump[] = { 0xff, 0x25 };
	size_t at = 0;

	if (size < ENTRY_SIZE)
		return 0;
	if (memcmp(entry, endbr64, sizeof(endbr64)) == 0)
		at = 4;
	else if (memcmp(entry, jump, sizeof(jump)) == 0)
		at = 6;
	return entry[at] == 0x68 ? at + 5 : 0;
}

/* PLT0: pushq GOT+8(%rip), 6 bytes; entered with one word pushed. */
static bool is_x86_64_first(const uint8_t *entry, size_t size)
{
	return size >= ENTRY_SIZE && entry[0] == 0xff && entry[1] == 0x35;
}

static bool add_x86_64_entry(struct sf_rows *rows, uint64_t address, const uint8_t *entry,
			     size_t size)
{
	size_t pushed = find_push(entry, size);

	if (is_x86_64_first(entry, size))
		return add_x86_64(rows, address, 16) && add_x86_64(rows, address + 6, 24);
	return add_x86_64(rows, address, 8) &&
	       (!pushed || add_x86_64(rows, address + pushed, 16));
}

static bool add_x86_64_section(struct sf_rows *rows, const struct sf_section *section)
{
	for (size_t at = 0; at < section->size; at += ENTRY_SIZE) {
		if (!add_x86_64_entry(rows, section->address + at, section->bytes + at,
				      section->size - at))
			return false;
	}
	return true;
}

static bool add_aarch64(struct sf_rows *rows, uint64_t address, int32_t pushed)
{
	struct sf_rules rules = {
		.cfa = { .how = SF_HOW_REGISTER_PLUS, .reg = 31, .value = pushed },
		.flags = SF_RULES_GUESS,
	};

	if (pushed)
		rules.ra = (struct sf_rule){ .how = SF_HOW_AT_CFA, .value = -8 };
	return sf_rows_add(rows, address, &rules);
}

/*
 * Entries only jump. The first one, 32 bytes, starts with stp x16, x30, [sp, #-16]!, perhaps behind
 * bti c; the return address stays in x30, too, but the dynamic linker's code does not.
 */
static bool add_aarch64_section(struct sf_rows *rows, const struct sf_section *section)
{
	const uint32_t bti = 0xd503245f, stp = 0xa9bf7bf0;
	struct sf_bytes code = { .at = section->bytes, .end = section->bytes + section->size };
	uint32_t first = sf_bytes_u32(&code);
	size_t pushed = 4;

	if (first == bti) {
		first = sf_bytes_u32(&code);
		pushed = 8;
	}
	if (!add_aarch64(rows, section->address, 0))
		return false;
	return first != stp || section->size < 32 ||
	       (add_aarch64(rows, section->address + pushed, 16) &&
		add_aarch64(rows, section->address + 32, 0));
}

static bool add_section(const struct sf_arch *arch, struct sf_rows *rows,
			const struct sf_section *section)
{
	uint64_t end;
	bool ok;

	if (__builtin_add_overflow(section->address, section->size, &end) ||
	    !sf_rows_begin(rows, section->address, end))
		return true;
	if (arch == &sf_arch_aarch64)
		ok = add_aarch64_section(rows, section);
	else
		ok = add_x86_64_section(rows, section);
	return ok && sf_rows_end(rows, true);
}

size_t sf_plt_sections(struct sf_elf *elf, struct sf_section ret[SF_PLT_SECTIONS])
{
	size_t n = 0;

	for (size_t i = 0; i < SF_PLT_SECTIONS; i++)
		n += sf_elf_section(elf, names[i], &ret[n]);
	return n;
}

bool sf_plt_read(const struct sf_section *sections, size_t n, const struct sf_arch *arch,
		 struct sf_rows *rows, struct sf_error *err)
{
	for (size_t i = 0; i < n; i++) {
		if (!add_section(arch, rows, &sections[i]))
			return sf_fail_memory(err);
	}
	return sf_rows_settle(rows) || sf_fail_memory(err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes unwind rows for procedure linkage tables. A PLT entry is a jump: the stack is as the caller's
 * call left it. A lazy entry that is not resolved yet pushes its relocation's number and jumps to the
 * section's first entry. The first entry pushes the module's own handle and jumps into the dynamic linker
 * (x86-64 psABI, section 5.2; with endbr64 in front: section 13.2). GNU ld describes .plt with an
 * expression that uses the low bits of rip. For linkers that describe nothing, each entry gets rows that
 * are derived from its bytes (plt_steps of frozen/arch.h).
 */
#include "unwind/inputs.h"

/* Without a link register, or once it is pushed, the return address is on the stack. */
static bool add_step(const struct sf_arch *arch, struct sf_rows *rows, uint64_t start,
		     const struct sf_plt_step *step)
{
	const bool on_stack = arch->lr == SF_NO_REG;
	struct sf_rules rules = {
		.cfa = { .how = SF_HOW_REGISTER_PLUS, .reg = arch->sp,
			 .value = step->pushed + (on_stack ? 8 : 0) },
		.flags = SF_RULES_GUESS,
	};

	if (on_stack || step->pushed)
		rules.ra = (struct sf_rule){ .how = SF_HOW_AT_CFA, .value = -8 };
	return sf_rows_add(rows, start + step->at, &rules);
}

static bool add_section(const struct sf_arch *arch, struct sf_rows *rows,
			const struct sf_section *section)
{
	struct sf_plt_step steps[SF_PLT_STEPS];
	uint64_t end;

	if (__builtin_add_overflow(section->address, section->size, &end) ||
	    !sf_rows_begin(rows, section->address, end))
		return true;
	for (size_t at = 0; at < section->size; at += SF_PLT_ENTRY) {
		const unsigned n = arch->plt_steps(section->bytes, section->size, at, steps);

		for (unsigned i = 0; i < n; i++) {
			if (!add_step(arch, rows, section->address, &steps[i]))
				return false;
		}
	}
	return sf_rows_end(rows, true);
}

bool sf_plt_read(struct sf_inputs *inputs, struct sf_rows *rows, struct sf_error *err)
{
	for (size_t i = 0; i < inputs->n_plt; i++) {
		if (!add_section(inputs->elf.arch, rows, &inputs->plt[i]))
			return sf_fail_memory(err);
	}
	return sf_rows_settle(rows) || sf_fail_memory(err);
}

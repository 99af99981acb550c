/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An independent judge of unwind tables: elfutils' libdw reads the same file, and its rules for
 * an address (CFA, return address, callee-saved registers) are compared with a table's.
 */
#ifndef TESTS_UNIT_UNWIND_JUDGE_H
#define TESTS_UNIT_UNWIND_JUDGE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "frozen/unwind/table.h"

struct judge {
	Elf *elf;
	Dwarf *dwarf;
	Dwarf_CFI *eh, *debug; /* either may be NULL */
};

/* The result for one address. */
enum verdict {
	VERDICT_SAME_RULES,
	VERDICT_BOTH_NONE,
	VERDICT_ONLY_OURS,    /* libdw has no rules; `text` says what we have */
	VERDICT_ONLY_JUDGE,
	VERDICT_GUESS,        /* libdw has none, ours are marked as a guess */
	VERDICT_STRICT,       /* libdw refuses the CFA, see compare_cfa in unwind_judge.c */
	VERDICT_DIFFERENT,    /* `text` says in what */
	N_VERDICTS
};

bool judge_open(struct judge *judge, int fd);
void judge_close(struct judge *judge);

enum verdict judge_address(const struct judge *judge, const struct sf_table *table,
			   uint64_t address, char text[256]);

/* Whether libdw's rules for this address begin to hold there, or it has none. */
bool judge_begins(const struct judge *judge, uint64_t address);

#endif

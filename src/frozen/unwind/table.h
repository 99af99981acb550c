/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables: for each address of a module, how to get from a frame to its caller's.
 *
 * A row says from which address on a set of rules holds; it is 8 bytes, and looking one up is
 * a binary search. Modules have few distinct rule sets (some hundreds), so those are interned
 * and a row holds a number. A rule that is a DWARF expression keeps its bytes in a blob and is
 * evaluated within bounds (expression.h). No function is given up on.
 *
 * A table is one flat block, position independent, the same in memory and in the disk cache.
 * It may come from a hostile file: a reader of rows trusts only
 * what sf_table_init checked, and checks each number that it takes from the block.
 * Built by src/unwind, used by the walker, never changed.
 */
#ifndef SF_FROZEN_UNWIND_TABLE_H
#define SF_FROZEN_UNWIND_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frozen/arch.h"

#define SF_TABLE_MAGIC 0x31544653u /* "SFT1" */
#define SF_TABLE_VERSION 11

/* How a value of the caller is found. CFA: the canonical frame address, the caller's sp. */
enum sf_how {
	SF_HOW_SAME,           /* unchanged (the default for callee-saved registers) */
	SF_HOW_UNDEFINED,      /* not recoverable; for the return address: the first frame */
	SF_HOW_AT_CFA,         /* saved at CFA + value */
	SF_HOW_CFA_PLUS,       /* is CFA + value */
	SF_HOW_REGISTER,       /* is in register reg */
	SF_HOW_REGISTER_PLUS,  /* is register reg + value: the usual CFA rule */
	SF_HOW_AT_EXPRESSION,  /* saved at the address that the expression at blob + value gives */
	SF_HOW_EXPRESSION,     /* is what the expression at blob + value gives */
};

struct sf_rule {
	uint8_t  how;    /* enum sf_how */
	uint8_t  reg;    /* DWARF number, where `how` says so */
	uint16_t size;   /* bytes of the expression */
	int32_t  value;
};

enum sf_rules_flags {
	SF_RULES_SIGNAL = 1,   /* a signal frame (CIE augmentation 'S'): the caller's pc is exact */
	SF_RULES_NONE = 2,     /* a gap between functions: no rule covers these addresses */
	SF_RULES_GUESS = 4,    /* synthesized, not from the file's own data (a bare PLT) */
	SF_RULES_PAC = 8,      /* aarch64: the return address is signed */
	SF_RULES_LEAVES = 32,  /* the function keeps the first result's register, as only one that can leave for a handler does */
	SF_RULES_PROLOGUE = 16, /* the file describes no epilogues here: they may be in this row, too (step_nativeaot.c) */
};

struct sf_rules {
	struct sf_rule cfa;
	struct sf_rule ra;
	struct sf_rule saved[SF_MAX_SAVED]; /* in the order of sf_arch.saved */
	uint32_t flags;
	uint32_t reserved; /* 0 */
};

struct sf_row {
	uint32_t offset; /* from the header's base; the row holds until the next row's offset */
	uint32_t rules;  /* index */
};

enum sf_table_flags {
	SF_TABLE_GO = 1,       /* Go's code: some functions call on another stack (step_switch.c) */
	SF_TABLE_NATIVEAOT = 2, /* by .NET's NativeAOT compiler (step_nativeaot.c) */
	SF_TABLE_POPS_RETURN = 4, /* some rules say that the return address is below sp, as those of OCaml's runtime do */
};

struct sf_table_header {
	uint32_t magic, version;
	uint16_t elf_machine, flags; /* enum sf_table_flags */
	uint32_t n_rows, n_rules, blob_size;
	uint64_t base;          /* lowest address covered, as in the file (unrelocated) */
	uint64_t size;          /* of the whole block, in bytes */
	uint8_t  made_from[32]; /* the digest of what it was made from, unwind/inputs.h */
	uint32_t unused;        /* 0 */
	uint32_t checksum;      /* zlib's crc32 of the block with 0 here; checked on load */
};

/* A view of a block. The block is not owned and must outlive the view. */
struct sf_table {
	const struct sf_table_header *header;
	const struct sf_row   *rows;   /* ascending offsets; behind the header */
	const struct sf_rules *rules;  /* behind the rows (8-byte aligned) */
	const uint8_t         *blob;   /* behind the rules */
};

/*
 * Checks the header and all sizes of a block and fills the view; false if anything is out of
 * bounds or of another version. Rows and rules are checked when used. Signal-safe.
 */
bool sf_table_init(struct sf_table *ret, const void *block, size_t size);

/*
 * The rules for `address` (unrelocated, as in the file), or NULL where no row covers it or a gap
 * does (SF_RULES_NONE). Takes at most 32 steps. Signal-safe.
 */
const struct sf_rules *sf_table_find(const struct sf_table *table, uint64_t address);

/* A row and where it holds, as in the file: from `start` up to `end` (the last: UINT64_MAX). */
struct sf_row_range {
	const struct sf_rules *rules; /* a gap's, too */
	uint64_t start, end;
};

/* The row that covers `address`; false where none does. Signal-safe. */
bool sf_table_range(const struct sf_table *table, uint64_t address, struct sf_row_range *ret);

/*
 * Whether a row starts exactly at `address`: a function or a gap does, or the rules change.
 * Signal-safe.
 */
bool sf_table_starts_row(const struct sf_table *table, uint64_t address);

/* The rule->size bytes of a rule that is an expression; NULL if they are not all in the table. Signal-safe. */
const uint8_t *sf_table_expression(const struct sf_table *table, const struct sf_rule *rule);

#endif

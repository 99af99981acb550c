/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inputs from which the unwind table of a file is made, read once: the sections with unwind information, of the
 * file and of its separate debug file, the procedure linkage tables, and the range of its code.
 *
 * A table has no other source (unwind.c gets none). The bytes stay in memory until the inputs are closed, whatever
 * happens to the file, and the table is made from these same bytes. Their digest therefore identifies the table, and no
 * file can have a table kept for another one.
 */
#ifndef SF_UNWIND_INPUTS_H
#define SF_UNWIND_INPUTS_H

#include "base/digest.h"
#include "elf/file.h"
#include "unwind/rows.h"

#define SF_MAX_INPUT_CFI 3
#define SF_PLT_SECTIONS 4

struct sf_inputs {
	struct sf_elf elf;
	struct sf_elf debug_file;             /* zeroed: there is none */
	struct sf_cfi cfi[SF_MAX_INPUT_CFI];  /* in the order of their authority */
	size_t n_cfi;
	struct sf_section packed;             /* .gnu_debugdata, as it lies in the file; size 0: there is none */
	struct sf_section plt[SF_PLT_SECTIONS];
	size_t n_plt;
	bool has_go;                          /* made by Go's linker */
	struct sf_section go_tables;          /* those of Go's runtime, where there is no .debug_frame; size 0: there are none */
	uint64_t managed, managed_size;       /* where code of .NET's NativeAOT compiler is; size 0: there is none */
	uint64_t hijack;                      /* .NET's routine for hijacked returns; 0: there is none */
};

/* Reads the inputs of the file `fd`. The caller owns `fd`, and keeps it open until sf_inputs_close. The bytes that are
 * read count as `work`. Any thread. */
bool sf_inputs_open(int fd, struct sf_work *work, struct sf_inputs *ret, struct sf_error *err);
void sf_inputs_close(struct sf_inputs *inputs);

/* Of everything in them. */
void sf_inputs_digest(const struct sf_inputs *inputs, uint8_t ret[SF_DIGEST_SIZE]);

/* Adds the rows of Go's functions, and settles them as one source. */
bool sf_go_tables_read(struct sf_inputs *inputs, struct sf_rows *rows, struct sf_error *err);

#endif

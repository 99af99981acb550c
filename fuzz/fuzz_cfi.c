/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as call frame information. The first byte chooses the section's kind and the machine;
 * whatever the rest is, the table that comes out must be consistent: rows ascending,
 * numbers in range, expressions inside the blob.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "frozen/unwind/table.h"
#include "unwind/cfi.h"
#include "unwind/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rule(const struct sf_table_header *header, const struct sf_rule *rule)
{
	if (rule->how != SF_HOW_AT_EXPRESSION && rule->how != SF_HOW_EXPRESSION)
		return;
	if (rule->value < 0 || (uint64_t)rule->value + rule->size > header->blob_size)
		abort();
}

static void check_table(const struct sf_table *table)
{
	const struct sf_table_header *header = table->header;

	for (uint32_t i = 0; i < header->n_rows; i++) {
		if (table->rows[i].rules >= header->n_rules)
			abort();
		if (i && table->rows[i].offset <= table->rows[i - 1].offset)
			abort();
	}
	for (uint32_t i = 0; i < header->n_rules; i++) {
		check_rule(header, &table->rules[i].cfa);
		check_rule(header, &table->rules[i].ra);
		for (unsigned j = 0; j < SF_MAX_SAVED; j++)
			check_rule(header, &table->rules[i].saved[j]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sf_cfi cfi = { .address = 0x1000, .text = 0x401000, .data = 0x404000 };
	struct sf_table_header header = { 0 };
	const struct sf_arch *arch;
	struct sf_rows *rows;
	struct sf_table table;
	void *block;

	if (!size)
		return 0;
	cfi.eh = data[0] & 1;
	cfi.ends_at_zero = data[0] & 2;
	arch = data[0] & 4 ? &sf_arch_aarch64 : &sf_arch_x86_64;
	header.elf_machine = arch->elf_machine;
	cfi.bytes = data + 1;
	cfi.size = size - 1;
	rows = sf_rows_create(0, 0x500000);
	if (!rows || !sf_cfi_read(&cfi, arch, rows, NULL) ||
	    !sf_rows_pack(rows, &header, &block, &size, NULL) ||
	    !sf_table_init(&table, block, size))
		abort();
	check_table(&table);
	munmap(block, size);
	sf_rows_destroy(rows);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables that ILC, the compiler of .NET's NativeAOT, puts into a program for its runtime. They stay in a stripped program.
 * Section __modules points to a header, which lists them (.NET's ModuleHeaders.cs, MetadataBlob.cs and ReadyToRunHeaderNode.cs).
 * For src/symbols only.
 *
 * x86-64 only. A program of a version that was not tried has no tables.
 */
#ifndef SF_SYMBOLS_ILC_MODULE_H
#define SF_SYMBOLS_ILC_MODULE_H

#include "elf/file.h"

enum sf_ilc_table {
	SF_ILC_METADATA,       /* names and signatures */
	SF_ILC_STACK_TRACE,    /* methods by address, of those that reflection does not find */
	SF_ILC_INVOKE_MAP,     /* methods by address, of those that it finds */
	SF_ILC_TYPE_MAP,       /* types of these methods */
	SF_ILC_REFERENCES,     /* addresses that the two maps refer to by number */
	SF_ILC_N_TABLES,
};

struct sf_ilc_module {
	struct sf_section tables[SF_ILC_N_TABLES]; /* size 0: there is none */
	unsigned offset_bits;       /* of a handle: its lower bits are an offset in the metadata, the others a type */
	uint64_t code, code_size;   /* __managedcode */
};

static inline bool sf_ilc_is_code(const struct sf_ilc_module *module, uint64_t address)
{
	return address - module->code < module->code_size;
}

/* False: the file has no such header, or one of an unknown form. The tables are valid until the file is closed. */
bool sf_ilc_module_open(struct sf_elf *elf, struct sf_ilc_module *ret);

/* A cursor at an offset of a table, to its end; bad where the offset is beyond it. */
struct sf_bytes sf_ilc_at(const struct sf_section *table, uint64_t offset);

/*
 * The next number of the format in which the tables are written (NativeFormatReader.Primitives.cs): the lowest bits of the
 * first byte say how many bytes it has.
 */
uint32_t sf_ilc_number(struct sf_bytes *bytes);
int32_t sf_ilc_signed_number(struct sf_bytes *bytes);

#endif

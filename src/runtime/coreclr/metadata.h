/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metadata of a .NET assembly, and of a portable PDB: tables of rows and heaps of texts and
 * blobs (ECMA-335, II.24; Portable PDB 1.0). A reader over bytes that the caller owns and keeps
 * unchanged. The bytes are hostile: every row, text and blob is checked when it is read, and what
 * lies outside reads as 0, "" or nothing. Nothing is allocated. Any number of threads may read.
 */
#ifndef SF_RUNTIME_CORECLR_METADATA_H
#define SF_RUNTIME_CORECLR_METADATA_H

#include "frozen/memory/bytes.h"

/* The tables that are used here, by their numbers (II.22; PDB 1.0). */
enum sf_clr_table {
	SF_CLR_TYPE_REF = 0x01,
	SF_CLR_TYPE_DEF = 0x02,
	SF_CLR_FIELD = 0x04,
	SF_CLR_METHOD_DEF = 0x06,
	SF_CLR_INTERFACE_IMPL = 0x09,
	SF_CLR_CUSTOM_ATTRIBUTE = 0x0c,
	SF_CLR_TYPE_SPEC = 0x1b,
	SF_CLR_NESTED_CLASS = 0x29,
	SF_CLR_GENERIC_PARAM = 0x2a,
	SF_CLR_DOCUMENT = 0x30,
	SF_CLR_METHOD_DEBUG = 0x31,
	SF_CLR_CUSTOM_DEBUG = 0x37,
	SF_CLR_N_TABLES = 0x38,
};

/* Columns, in their order in the row. */
enum { SF_CLR_TYPE_REF_SCOPE, SF_CLR_TYPE_REF_NAME, SF_CLR_TYPE_REF_NAMESPACE };
enum {
	SF_CLR_TYPE_DEF_FLAGS,
	SF_CLR_TYPE_DEF_NAME,
	SF_CLR_TYPE_DEF_NAMESPACE,
	SF_CLR_TYPE_DEF_EXTENDS,
	SF_CLR_TYPE_DEF_FIELDS,
	SF_CLR_TYPE_DEF_METHODS
};
enum { SF_CLR_FIELD_FLAGS, SF_CLR_FIELD_NAME };
enum {
	SF_CLR_METHOD_DEF_RVA,
	SF_CLR_METHOD_DEF_IMPL_FLAGS,
	SF_CLR_METHOD_DEF_FLAGS,
	SF_CLR_METHOD_DEF_NAME,
	SF_CLR_METHOD_DEF_SIGNATURE
};
enum { SF_CLR_INTERFACE_IMPL_CLASS, SF_CLR_INTERFACE_IMPL_INTERFACE };
enum {
	SF_CLR_CUSTOM_ATTRIBUTE_PARENT,
	SF_CLR_CUSTOM_ATTRIBUTE_TYPE,
	SF_CLR_CUSTOM_ATTRIBUTE_VALUE
};
enum { SF_CLR_NESTED_CLASS_INNER, SF_CLR_NESTED_CLASS_OUTER };
enum {
	SF_CLR_GENERIC_PARAM_NUMBER,
	SF_CLR_GENERIC_PARAM_FLAGS,
	SF_CLR_GENERIC_PARAM_OWNER,
	SF_CLR_GENERIC_PARAM_NAME
};
enum { SF_CLR_DOCUMENT_NAME };
enum { SF_CLR_METHOD_DEBUG_DOCUMENT, SF_CLR_METHOD_DEBUG_POINTS };
enum { SF_CLR_CUSTOM_DEBUG_PARENT, SF_CLR_CUSTOM_DEBUG_KIND, SF_CLR_CUSTOM_DEBUG_VALUE };

#define SF_CLR_MAX_COLUMNS 9

struct sf_clr_rows {
	const uint8_t *first;              /* NULL: the assembly has no such table */
	uint32_t n, size;                  /* rows; bytes of a row */
	uint8_t width[SF_CLR_MAX_COLUMNS]; /* bytes of each column; 0 behind the last */
};

struct sf_clr_metadata {
	struct sf_bytes strings, blobs, guids, pdb_id;
	struct sf_clr_rows tables[SF_CLR_N_TABLES];
};

/* False: these bytes are no metadata. The metadata begins with "BSJB". */
bool sf_clr_metadata_open(struct sf_clr_metadata *ret, const void *bytes, size_t size);

static inline uint32_t sf_clr_n_rows(const struct sf_clr_metadata *metadata,
				     enum sf_clr_table table)
{
	return metadata->tables[table].n;
}

/* A column of a row; rows count from 1. 0: there is no such row or column. */
uint32_t sf_clr_value(const struct sf_clr_metadata *metadata, enum sf_clr_table table, uint32_t row,
		      unsigned column);

/* The text that a column refers to: UTF-8 as far as the assembly keeps its rules. "": none. */
const char *sf_clr_string(const struct sf_clr_metadata *metadata, enum sf_clr_table table,
			  uint32_t row, unsigned column);

/* The blob that a column refers to. Empty: none. */
struct sf_bytes sf_clr_blob(const struct sf_clr_metadata *metadata, enum sf_clr_table table,
			    uint32_t row, unsigned column);
struct sf_bytes sf_clr_blob_at(const struct sf_clr_metadata *metadata, uint32_t offset);

/* A compressed number (II.23.2), at most 2^29 - 1; the signed form has its sign in the lowest bit.
 */
uint32_t sf_clr_compressed(struct sf_bytes *bytes);
int32_t sf_clr_compressed_signed(struct sf_bytes *bytes);

/*
 * The row of a table whose column, which the table is sorted by, has this value; the first one of
 * several. 0: there is none.
 */
uint32_t sf_clr_find(const struct sf_clr_metadata *metadata, enum sf_clr_table table,
		     unsigned column, uint32_t value);

/* The TypeDef row whose list of methods has this MethodDef row; 0: none. */
uint32_t sf_clr_owner(const struct sf_clr_metadata *metadata, uint32_t method);
/* The same for a row of Field. */
uint32_t sf_clr_field_owner(const struct sf_clr_metadata *metadata, uint32_t field);
/* The methods of a TypeDef row are those from `*first_ret` up to `*end_ret`, without the latter. */
void sf_clr_methods(const struct sf_clr_metadata *metadata, uint32_t type, uint32_t *first_ret,
		    uint32_t *end_ret);

/* The first method of a TypeDef row that has this name; 0: none. */
uint32_t sf_clr_find_method(const struct sf_clr_metadata *metadata, uint32_t type, const char *name);

/* The 16 bytes of the GUID that a column refers to; NULL: none. */
const uint8_t *sf_clr_guid(const struct sf_clr_metadata *metadata, enum sf_clr_table table, uint32_t row,
			   unsigned column);

/* A TypeDefOrRef column or token in a signature (II.23.2.8): its table, and its row in `row_ret`.
 */
enum sf_clr_table sf_clr_type_def_or_ref(uint32_t coded, uint32_t *row_ret);

#endif

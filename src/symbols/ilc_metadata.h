/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metadata that a program by ILC carries: types, methods and signatures, with their names (.NET's SchemaDef.cs lists
 * the records and their fields, NativeFormatReaderCommonGen.cs the types of records). A record is identified by its
 * offset. Hostile input: records may refer to each other in circles. For src/symbols only.
 */
#ifndef SF_SYMBOLS_ILC_METADATA_H
#define SF_SYMBOLS_ILC_METADATA_H

#include "base/text.h"
#include "symbols/ilc_module.h"

/* Types of records (HandleType). */
enum sf_ilc_record {
	SF_ILC_NULL = 0,
	SF_ILC_ARRAY = 0x01,
	SF_ILC_BY_REFERENCE = 0x02,
	SF_ILC_STRING = 0x1a,
	SF_ILC_FUNCTION_POINTER = 0x25,
	SF_ILC_METHOD_VARIABLE = 0x2c,
	SF_ILC_MODIFIED_TYPE = 0x2d,
	SF_ILC_NAMESPACE_DEFINITION = 0x2f,
	SF_ILC_NAMESPACE_REFERENCE = 0x30,
	SF_ILC_POINTER = 0x32,
	SF_ILC_SIMPLE_ARRAY = 0x37,
	SF_ILC_TYPE_DEFINITION = 0x3a,
	SF_ILC_INSTANTIATION = 0x3c,
	SF_ILC_TYPE_REFERENCE = 0x3d,
	SF_ILC_TYPE_SPECIFICATION = 0x3e,
	SF_ILC_TYPE_VARIABLE = 0x3f,
};

struct sf_ilc_handle {
	uint32_t type;               /* an enum sf_ilc_record, or a value that is not in it */
	uint32_t offset;
};

struct sf_ilc_metadata {
	struct sf_section bytes;
	unsigned offset_bits;        /* sf_ilc_module */
};

/* False: it does not begin as metadata does. */
bool sf_ilc_metadata_open(const struct sf_ilc_module *module, struct sf_ilc_metadata *ret);

/* A handle as tables outside of the metadata have it. */
struct sf_ilc_handle sf_ilc_handle_of(const struct sf_ilc_metadata *metadata, uint32_t value);

/* The next handle of a record, where records of several types may be meant. */
struct sf_ilc_handle sf_ilc_handle(const struct sf_ilc_metadata *metadata, struct sf_bytes *bytes);

/* A string record, which has no zero in it; empty where there is none. */
struct sf_piece sf_ilc_string(const struct sf_ilc_metadata *metadata, uint32_t offset);

/* The next list of a record: how many handles, each a number, follow. 0, and `bad`: more than the longest honest list has. */
uint32_t sf_ilc_list(struct sf_bytes *bytes);
void sf_ilc_skip_list(struct sf_bytes *bytes);

/* The fields of a type definition or of a method that are used here. Lists are cursors at the list. */
struct sf_ilc_type_definition {
	uint32_t name_space, name, enclosing;
	struct sf_bytes nested, methods, parameters;
	size_t size;                 /* bytes that were gone through to read it, also of one with a mistake */
};
struct sf_ilc_method_record {
	uint32_t name, signature;
	struct sf_bytes parameters;
};

/* False: the record has a mistake. */
bool sf_ilc_type_definition(const struct sf_ilc_metadata *metadata, uint32_t offset, struct sf_ilc_type_definition *ret);
bool sf_ilc_method_record(const struct sf_ilc_metadata *metadata, uint32_t offset, struct sf_ilc_method_record *ret);

/* --- named types: a type's name, and those of the types and namespaces around it --- */

#define SF_ILC_MAX_NESTED 16u
#define SF_ILC_MAX_SPACES 32u

/* What may still be gone through: records may refer to each other. */
struct sf_ilc_walk {
	const struct sf_ilc_metadata *metadata;
	size_t left;                 /* bytes */
};

/* False: nothing is left. */
bool sf_ilc_spend(struct sf_ilc_walk *walk, size_t bytes);

/* Generic parameters, or the arguments in their place. */
struct sf_ilc_generics {
	struct sf_bytes list;        /* at its first handle */
	uint32_t n;
	bool are_records;            /* handles are of parameters' records; else of types, or of strings */
};

/* Of the list at the cursor; those beyond the 64th are left out. */
struct sf_ilc_generics sf_ilc_generics_read(struct sf_bytes list, bool are_records);

struct sf_ilc_named_type {
	struct sf_piece names[SF_ILC_MAX_NESTED]; /* the innermost first */
	struct sf_piece spaces[SF_ILC_MAX_SPACES]; /* parts of the namespace, the innermost first */
	unsigned n, n_spaces;
	struct sf_ilc_generics parameters; /* of the innermost type, which has those of the types around it, too */
};

/* The type that a specification has in it; any other stays as it is. */
struct sf_ilc_handle sf_ilc_specified(const struct sf_ilc_metadata *metadata, struct sf_ilc_handle type);

/* Reads a type that has a name, with arguments or without. False: it has none, or a mistake. */
bool sf_ilc_named_type_read(struct sf_ilc_walk *walk, struct sf_ilc_handle type, struct sf_ilc_named_type *ret);

#endif

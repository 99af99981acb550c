/* SPDX-License-Identifier: Apache-2.0 */
/* Reads records of ILC's metadata, field by field, in the order of SchemaDef.cs, and the named types in it. */
#include "symbols/ilc_metadata.h"

#define SIGNATURE 0xdeaddffdu        /* NativeMetadataReader.cs */
#define MAX_LIST 65536u              /* handles of one record; a type of the class library has some 2,000 methods at most */

bool sf_ilc_metadata_open(const struct sf_ilc_module *module, struct sf_ilc_metadata *ret)
{
	struct sf_bytes bytes;

	*ret = (struct sf_ilc_metadata){ module->tables[SF_ILC_METADATA], module->offset_bits };
	bytes = sf_ilc_at(&ret->bytes, 0);
	return sf_bytes_u32(&bytes) == SIGNATURE;
}

struct sf_ilc_handle sf_ilc_handle_of(const struct sf_ilc_metadata *metadata, uint32_t value)
{
	return (struct sf_ilc_handle){ value >> metadata->offset_bits, value & ((1u << metadata->offset_bits) - 1) };
}

/* In records the type is in the lower bits, so that small offsets have few bytes. */
struct sf_ilc_handle sf_ilc_handle(const struct sf_ilc_metadata *metadata, struct sf_bytes *bytes)
{
	const uint32_t value = sf_ilc_number(bytes);
	const unsigned type_bits = 32 - metadata->offset_bits;

	return (struct sf_ilc_handle){ value & ((1u << type_bits) - 1), value >> type_bits };
}

struct sf_piece sf_ilc_string(const struct sf_ilc_metadata *metadata, uint32_t offset)
{
	struct sf_bytes bytes = sf_ilc_at(&metadata->bytes, offset);
	const uint32_t n = offset ? sf_ilc_number(&bytes) : 0;
	const uint8_t *at = n ? sf_bytes_take(&bytes, n) : NULL;

	return at ? (struct sf_piece){ (const char *)at, strnlen((const char *)at, n) } : (struct sf_piece){ "", 0 };
}

uint32_t sf_ilc_list(struct sf_bytes *bytes)
{
	const uint32_t n = sf_ilc_number(bytes);

	bytes->bad |= n > MAX_LIST;
	return bytes->bad ? 0 : n;
}

void sf_ilc_skip_list(struct sf_bytes *bytes)
{
	for (uint32_t n = sf_ilc_list(bytes); n && !bytes->bad; n--)
		sf_ilc_number(bytes);
}

bool sf_ilc_type_definition(const struct sf_ilc_metadata *metadata, uint32_t offset, struct sf_ilc_type_definition *ret)
{
	struct sf_bytes bytes = sf_ilc_at(&metadata->bytes, offset);
	const uint8_t *start = bytes.at;

	*ret = (struct sf_ilc_type_definition){ 0 };
	sf_ilc_number(&bytes);       /* flags */
	sf_ilc_number(&bytes);       /* the base type */
	ret->name_space = sf_ilc_number(&bytes);
	ret->name = sf_ilc_number(&bytes);
	sf_ilc_number(&bytes);       /* size */
	sf_ilc_number(&bytes);       /* alignment */
	ret->enclosing = sf_ilc_number(&bytes);
	ret->nested = bytes;
	sf_ilc_skip_list(&bytes);
	ret->methods = bytes;
	for (unsigned i = 0; i < 4; i++) /* methods, fields, properties, events */
		sf_ilc_skip_list(&bytes);
	ret->parameters = bytes;
	ret->size = (size_t)(bytes.at - start);
	return !bytes.bad;
}

bool sf_ilc_method_record(const struct sf_ilc_metadata *metadata, uint32_t offset, struct sf_ilc_method_record *ret)
{
	struct sf_bytes bytes = sf_ilc_at(&metadata->bytes, offset);

	*ret = (struct sf_ilc_method_record){ 0 };
	sf_ilc_number(&bytes);       /* flags */
	sf_ilc_number(&bytes);       /* flags of the implementation */
	ret->name = sf_ilc_number(&bytes);
	ret->signature = sf_ilc_number(&bytes);
	sf_ilc_skip_list(&bytes);    /* the parameters' own records */
	ret->parameters = bytes;
	return !bytes.bad;
}

/* --- named types: definitions of the program's types, references to types of which it has no definition --- */

#define RECORD_SIZE 64u              /* what a small record counts */
#define MAX_SPECIFIED 4u             /* specifications in specifications: honest ones have a signature in them */
#define MAX_PARAMETERS 64u

bool sf_ilc_spend(struct sf_ilc_walk *walk, size_t bytes)
{
	walk->left -= bytes < walk->left ? bytes : walk->left;
	return walk->left != 0;
}

struct sf_ilc_generics sf_ilc_generics_read(struct sf_bytes list, bool are_records)
{
	struct sf_ilc_generics parameters = { .are_records = are_records };

	parameters.n = sf_ilc_list(&list);
	if (parameters.n > MAX_PARAMETERS)
		parameters.n = MAX_PARAMETERS;
	parameters.list = list;
	return parameters;
}

/* Adds the name of a definition or reference; false: it has a mistake. *type becomes the type around it, *space the namespace. */
static bool add_name(struct sf_ilc_walk *walk, struct sf_ilc_handle *type, struct sf_ilc_named_type *named,
		     struct sf_ilc_handle *space)
{
	struct sf_bytes bytes = sf_ilc_at(&walk->metadata->bytes, type->offset);
	struct sf_ilc_type_definition definition = { 0 };
	bool good;

	if (type->type == SF_ILC_TYPE_REFERENCE) {
		*type = *space = sf_ilc_handle(walk->metadata, &bytes);
		named->names[named->n++] = sf_ilc_string(walk->metadata, sf_ilc_number(&bytes));
		return !bytes.bad;
	}
	good = type->type == SF_ILC_TYPE_DEFINITION && sf_ilc_type_definition(walk->metadata, type->offset, &definition);
	if (!sf_ilc_spend(walk, definition.size) || !good)
		return false;
	if (!named->n)
		named->parameters = sf_ilc_generics_read(definition.parameters, true);
	*space = (struct sf_ilc_handle){ SF_ILC_NAMESPACE_DEFINITION, definition.name_space };
	named->names[named->n++] = sf_ilc_string(walk->metadata, definition.name);
	*type = (struct sf_ilc_handle){ SF_ILC_TYPE_DEFINITION, definition.enclosing };
	return true;
}

static bool is_named(struct sf_ilc_handle type)
{
	return type.offset && (type.type == SF_ILC_TYPE_DEFINITION || type.type == SF_ILC_TYPE_REFERENCE);
}

/* Adds the parts of the namespace that have a name. */
static void add_space(struct sf_ilc_walk *walk, struct sf_ilc_handle space, struct sf_ilc_named_type *named)
{
	while ((space.type == SF_ILC_NAMESPACE_DEFINITION || space.type == SF_ILC_NAMESPACE_REFERENCE) && space.offset &&
	       named->n_spaces < SF_ILC_MAX_SPACES && sf_ilc_spend(walk, RECORD_SIZE)) {
		struct sf_bytes bytes = sf_ilc_at(&walk->metadata->bytes, space.offset);

		space = sf_ilc_handle(walk->metadata, &bytes);
		named->spaces[named->n_spaces] = sf_ilc_string(walk->metadata, sf_ilc_number(&bytes));
		named->n_spaces += named->spaces[named->n_spaces].n != 0;
	}
}

static bool read_named(struct sf_ilc_walk *walk, struct sf_ilc_handle type, struct sf_ilc_named_type *ret)
{
	struct sf_ilc_handle space = { 0 };

	*ret = (struct sf_ilc_named_type){ 0 };
	while (is_named(type) && ret->n < SF_ILC_MAX_NESTED && sf_ilc_spend(walk, RECORD_SIZE)) {
		if (!add_name(walk, &type, ret, &space))
			return false;
	}
	add_space(walk, space, ret);
	return ret->n != 0;
}

/* A generic type, and its arguments. */
static bool read_instantiation(struct sf_ilc_walk *walk, uint32_t offset, struct sf_ilc_named_type *ret)
{
	struct sf_bytes bytes = sf_ilc_at(&walk->metadata->bytes, offset);
	const struct sf_ilc_handle generic = sf_ilc_handle(walk->metadata, &bytes);

	if (!read_named(walk, generic, ret))
		return false;
	ret->parameters = sf_ilc_generics_read(bytes, false);
	return true;
}

struct sf_ilc_handle sf_ilc_specified(const struct sf_ilc_metadata *metadata, struct sf_ilc_handle type)
{
	for (unsigned i = 0; i < MAX_SPECIFIED && type.type == SF_ILC_TYPE_SPECIFICATION; i++) {
		struct sf_bytes bytes = sf_ilc_at(&metadata->bytes, type.offset);

		type = sf_ilc_handle(metadata, &bytes);
	}
	return type;
}

bool sf_ilc_named_type_read(struct sf_ilc_walk *walk, struct sf_ilc_handle type, struct sf_ilc_named_type *ret)
{
	return type.type == SF_ILC_INSTANTIATION ? read_instantiation(walk, type.offset, ret) : read_named(walk, type, ret);
}

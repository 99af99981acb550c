/* SPDX-License-Identifier: Apache-2.0 */
/* Reads named types of ILC's metadata: definitions of the program's types, references to types of which it has no definition. */
#include "symbols/ilc_named_type.h"

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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads managed objects: MethodTable, EEClass and FieldDesc (src/coreclr/vm/methodtable.h, class.h, field.h in dotnet/runtime).
 * A FieldDesc begins with the MethodTable that it belongs to, by which each is proved.
 */
#include "runtime/coreclr/objects.h"

#include <string.h>

#include "runtime/coreclr/utf16.h"

#define MARKS UINT64_C(7)             /* of a collection, in an object's pointer to its MethodTable */
#define IS_CANON UINT64_C(1)          /* the word has the MethodTable that this one shares its class with */
#define HEADER 8u                     /* in front of an object's fields: the pointer to its MethodTable */
#define MAX_FIELDS 1000u
#define TOKEN 0xffffffu
#define IS_STATIC (1u << 24)
#define OFFSET 0x7ffffffu
#define MAX_OFFSET (1u << 20)
#define LENGTH_AT 8u                  /* of a String */
#define CHARS_AT 12u
#define MAX_LENGTH 65536u

struct field_desc {
	uint64_t table;
	uint32_t token, offset;       /* with other bits above */
};

bool sf_clr_is_still(const struct sf_clr_naming *naming)
{
	uint64_t suspender;

	return naming->description->suspender &&
	       sf_read_u64(naming->memory, naming->description->suspender, &suspender) && !suspender;
}

uint64_t sf_clr_table_of(const struct sf_clr_naming *naming, uint64_t object)
{
	uint64_t table;

	return object && object % 8 == 0 && sf_read_u64(naming->memory, object, &table) ? table & ~MARKS : 0;
}

/* The class of a MethodTable, and the MethodTable that the class's fields name as theirs. */
static bool class_of(const struct sf_clr_naming *naming, uint64_t table, uint64_t *canon_ret, uint64_t *class_ret)
{
	const struct sf_clr_layout *layout = &naming->description->layout;

	*canon_ret = table;
	if (!table || !sf_clr_get(layout, naming->memory, SF_CLR_TABLE_CANON, table, class_ret))
		return false;
	if (!(*class_ret & IS_CANON))
		return true;
	*canon_ret = *class_ret & ~IS_CANON;
	return sf_clr_get(layout, naming->memory, SF_CLR_TABLE_CANON, *canon_ret, class_ret) && !(*class_ret & IS_CANON);
}

static bool read_field(const struct sf_clr_naming *naming, uint64_t fields, unsigned i, uint64_t canon,
		       struct field_desc *ret)
{
	return sf_read(naming->memory, ret, fields + i * sizeof(*ret), sizeof(*ret)) && ret->table == canon;
}

static const struct sf_clr_metadata *metadata_of(const struct sf_clr_naming *naming, uint64_t table)
{
	const struct sf_clr_module *module;
	uint64_t address;

	if (!sf_clr_get(&naming->description->layout, naming->memory, SF_CLR_TABLE_MODULE, table, &address))
		return NULL;
	module = sf_clr_modules_find(naming->modules, naming->description, naming->memory, address);
	return module ? &module->metadata : NULL;
}

/* The fields of a type itself. 0: it has none, or they cannot be read. */
static uint64_t fields_of(const struct sf_clr_naming *naming, uint64_t table, uint64_t *canon_ret)
{
	uint64_t class, fields;

	return class_of(naming, table, canon_ret, &class) &&
	       sf_clr_get(&naming->description->layout, naming->memory, SF_CLR_CLASS_FIELDS, class, &fields) ?
		fields : 0;
}

/*
 * The metadata of a type with fields, and its row of the table TypeDef: that of its first field's owner. NULL: it is no
 * such type.
 */
static const struct sf_clr_metadata *definition_of(const struct sf_clr_naming *naming, uint64_t table, uint32_t *row_ret)
{
	uint64_t canon, fields = fields_of(naming, table, &canon);
	const struct sf_clr_metadata *metadata;
	struct field_desc field;

	if (!fields || !read_field(naming, fields, 0, canon, &field))
		return NULL;
	metadata = metadata_of(naming, table);
	*row_ret = metadata ? sf_clr_field_owner(metadata, field.token & TOKEN) : 0;
	return *row_ret ? metadata : NULL;
}

bool sf_clr_type_names(const struct sf_clr_naming *naming, uint64_t table, const char **space_ret, const char **name_ret)
{
	uint32_t row;
	const struct sf_clr_metadata *metadata = definition_of(naming, table, &row);

	if (!metadata)
		return false;
	*space_ret = sf_clr_string(metadata, SF_CLR_TYPE_DEF, row, SF_CLR_TYPE_DEF_NAMESPACE);
	*name_ret = sf_clr_string(metadata, SF_CLR_TYPE_DEF, row, SF_CLR_TYPE_DEF_NAME);
	return true;
}

bool sf_clr_is_type(const struct sf_clr_naming *naming, uint64_t table, const char *space, const char *name)
{
	const char *own_space, *own_name;

	return sf_clr_type_names(naming, table, &own_space, &own_name) && strcmp(own_name, name) == 0 &&
	       strcmp(own_space, space) == 0;
}

uint64_t sf_clr_base_type(const struct sf_clr_naming *naming, uint64_t table)
{
	uint64_t parent;

	return sf_clr_get(&naming->description->layout, naming->memory, SF_CLR_TABLE_PARENT, table, &parent) ? parent : 0;
}

/* A field of the type itself. */
static bool find_own_field(const struct sf_clr_naming *naming, uint64_t table, const char *name, uint32_t *offset_ret)
{
	const struct sf_clr_metadata *metadata = metadata_of(naming, table);
	uint64_t canon, fields = metadata ? fields_of(naming, table, &canon) : 0;
	struct field_desc field;

	for (unsigned i = 0; fields && i < MAX_FIELDS && read_field(naming, fields, i, canon, &field); i++) {
		if (field.token & IS_STATIC ||
		    strcmp(sf_clr_string(metadata, SF_CLR_FIELD, field.token & TOKEN, SF_CLR_FIELD_NAME), name) != 0)
			continue;
		*offset_ret = HEADER + (field.offset & OFFSET);
		return *offset_ret < MAX_OFFSET;
	}
	return false;
}

bool sf_clr_find_field(const struct sf_clr_naming *naming, uint64_t table, const char *name, uint32_t *offset_ret)
{
	for (unsigned i = 0; table && i < SF_CLR_MAX_BASES; i++) {
		if (find_own_field(naming, table, name, offset_ret))
			return true;
		table = sf_clr_base_type(naming, table);
	}
	return false;
}

bool sf_clr_read_string(const struct sf_clr_naming *naming, uint64_t string, char *ret, size_t size)
{
	uint32_t length;
	uint16_t last;

	*ret = 0;
	if (!sf_clr_is_type(naming, sf_clr_table_of(naming, string), "System", "String") ||
	    !sf_read(naming->memory, &length, string + LENGTH_AT, sizeof(length)) || !length || length > MAX_LENGTH ||
	    !sf_read(naming->memory, &last, string + CHARS_AT + 2 * (uint64_t)length, sizeof(last)) || last)
		return false;
	sf_clr_read_utf16(naming->memory, string + CHARS_AT, length, ret, size);
	return *ret;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names the types behind CoreCLR's type handles: MethodTables, and TypeDescs, whose handles have bit 1 set
 * (src/coreclr/vm/methodtable.h, typedesc.h in dotnet/runtime).
 */
#include "runtime/coreclr/types.h"

#include <stdio.h>
#include <string.h>

#include "base/csharp_names.h"

#define IS_TYPE_DESC UINT64_C(2)
#define MAX_DEPTH 6u                 /* of generic arguments in generic arguments */
#define MAX_ARGUMENTS 16u
#define MAX_TYPES 512u               /* in one name: a type that lies is its own argument, sixteen times at each depth */
#define NAME_SIZE 256u
#define MAX_RANK 32u
#define MAX_DICTIONARIES 1024u

#define HAS_COMPONENTS 0x80000000u   /* MethodTable flags */
#define CATEGORY 0xc0000u
#define CATEGORY_ARRAY 0x80000u
#define CATEGORY_VALUE 0x40000u
#define IS_VECTOR 0x20000u
#define GENERIC 0x30u
#define DICTIONARY_INFO 8u           /* GenericsDictInfo, before the dictionaries */

enum {                               /* CorElementType */
	KIND_POINTER = 0x0f, KIND_REFERENCE = 0x10, KIND_TYPE_VARIABLE = 0x13,
	KIND_FUNCTION = 0x1b, KIND_METHOD_VARIABLE = 0x1e,
};

/* Names of arguments, in their own memory. */
struct argument_names {
	char names[MAX_ARGUMENTS][NAME_SIZE];
	const char *pointers[MAX_ARGUMENTS];
	uint32_t n;
};

/* A type in a name. */
struct place {
	unsigned depth;              /* in how many others it is an argument */
	unsigned *left;              /* so many more types are named in this name */
};

static void put_type(const struct sf_clr_naming *naming, uint64_t handle, struct place place,
		     struct sf_text *text);

static struct place inside(struct place place)
{
	return (struct place){ place.depth + 1, place.left };
}

static bool get(const struct sf_clr_naming *naming, enum sf_clr_field field, uint64_t base, uint64_t *ret)
{
	return sf_clr_get(&naming->description->layout, naming->memory, field, base, ret);
}

static bool get_u32(const struct sf_clr_naming *naming, enum sf_clr_field field, uint64_t base, uint32_t *ret)
{
	return sf_clr_get_u32(&naming->description->layout, naming->memory, field, base, ret);
}

/* The names of `n` type handles in an array. */
static void name_handles(const struct sf_clr_naming *naming, uint64_t handles, uint32_t n, struct place place,
			 struct argument_names *ret)
{
	uint64_t handle;

	ret->n = 0;
	for (uint32_t i = 0; i < n && i < MAX_ARGUMENTS; i++) {
		struct sf_text text = sf_text_in(ret->names[i], NAME_SIZE);

		if (!sf_read_u64(naming->memory, handles + 8 * i, &handle))
			return;
		put_type(naming, handle, inside(place), &text);
		ret->pointers[i] = ret->names[i];
		ret->n = i + 1;
	}
}

/* The arguments of a generic type are in the last of its dictionaries. Where, and how many; 0: it has none. */
static uint64_t arguments_of(const struct sf_clr_naming *naming, uint64_t table, uint32_t flags, uint16_t *n_ret)
{
	const struct sf_clr_layout *layout = &naming->description->layout;
	uint64_t dictionaries, dictionary, info;
	uint16_t n_dictionaries;

	if (flags & HAS_COMPONENTS || !(flags & GENERIC) || !sf_clr_has(layout, SF_CLR_TABLE_FLAGS2) ||
	    !get(naming, SF_CLR_TABLE_ARGUMENTS, table, &dictionaries))
		return 0;
	info = dictionaries - DICTIONARY_INFO;
	if (!sf_clr_get_u16(layout, naming->memory, SF_CLR_DICTIONARY_N, info, &n_dictionaries) ||
	    !sf_clr_get_u16(layout, naming->memory, SF_CLR_DICTIONARY_N_ARGUMENTS, info, n_ret) ||
	    !n_dictionaries || n_dictionaries > MAX_DICTIONARIES ||
	    !sf_read_u64(naming->memory, dictionaries + 8 * (n_dictionaries - 1u), &dictionary))
		return 0;
	return dictionary;
}

static void name_arguments(const struct sf_clr_naming *naming, uint64_t table, uint32_t flags,
			   struct place place, struct argument_names *ret)
{
	uint16_t n;
	const uint64_t arguments = arguments_of(naming, table, flags, &n);

	ret->n = 0;
	if (arguments)
		name_handles(naming, arguments, n, place, ret);
}

uint64_t sf_clr_type_argument(const struct sf_clr_naming *naming, uint64_t table, unsigned i)
{
	uint64_t arguments, handle;
	uint32_t flags;
	uint16_t n;

	if (!get_u32(naming, SF_CLR_TABLE_FLAGS, table, &flags))
		return 0;
	arguments = arguments_of(naming, table, flags, &n);
	return arguments && i < n && sf_read_u64(naming->memory, arguments + 8 * i, &handle) && !(handle & IS_TYPE_DESC) ?
		handle : 0;
}

bool sf_clr_is_value_type(const struct sf_clr_naming *naming, uint64_t table)
{
	uint32_t flags;

	return get_u32(naming, SF_CLR_TABLE_FLAGS, table, &flags) && (flags & CATEGORY) == CATEGORY_VALUE;
}

/* Where a row has 16 bits, one that does not fit is elsewhere: it is not known then. */
static bool read_row(const struct sf_clr_naming *naming, uint64_t table, uint32_t *ret)
{
	uint32_t flags2;

	if (!get_u32(naming, SF_CLR_TABLE_FLAGS2, table, &flags2))
		return false;
	*ret = flags2 >> (naming->description->has_short_rows ? 16 : 8);
	if (naming->description->has_short_rows && *ret == UINT16_MAX)
		*ret = 0;
	return true;
}

uint32_t sf_clr_type_row(const struct sf_clr_naming *naming, uint64_t table, uint64_t *module_ret)
{
	uint32_t row;

	return read_row(naming, table, &row) && get(naming, SF_CLR_TABLE_MODULE, table, module_ret) ? row : 0;
}

static void put_array(const struct sf_clr_naming *naming, uint64_t table, uint32_t flags, struct place place,
		      struct sf_text *text)
{
	const struct sf_clr_layout *layout = &naming->description->layout;
	uint64_t element = 0, class;
	uint8_t rank = 1;

	get(naming, SF_CLR_TABLE_ARGUMENTS, table, &element);
	put_type(naming, element, inside(place), text);
	if (!(flags & IS_VECTOR) && sf_clr_has(layout, SF_CLR_CLASS_RANK) &&
	    get(naming, SF_CLR_TABLE_CANON, table, &class) && !(class & 1))
		sf_read(naming->memory, &rank, class + layout->fields[SF_CLR_CLASS_RANK], 1);
	sf_text_put(text, "[");
	for (unsigned i = 1; i < rank && i < MAX_RANK; i++)
		sf_text_put(text, ",");
	sf_text_put(text, "]");
}

/* The keyword for a type without arguments; NULL: it has none. */
static const char *keyword(const struct sf_clr_metadata *metadata, uint32_t type)
{
	const char *name = sf_clr_string(metadata, SF_CLR_TYPE_DEF, type, SF_CLR_TYPE_DEF_NAME);

	if (strcmp(sf_clr_string(metadata, SF_CLR_TYPE_DEF, type, SF_CLR_TYPE_DEF_NAMESPACE), "System") != 0)
		return NULL;
	return sf_csharp_keyword(sf_piece_of(name));
}

static void put_table(const struct sf_clr_naming *naming, uint64_t table, struct place place,
		      struct sf_text *text)
{
	struct argument_names names;
	struct sf_clr_arguments arguments = { .of_type = names.pointers };
	const struct sf_clr_module *module;
	uint32_t flags, row;
	uint64_t address;

	if (!get_u32(naming, SF_CLR_TABLE_FLAGS, table, &flags) ||
	    !read_row(naming, table, &row) ||
	    !get(naming, SF_CLR_TABLE_MODULE, table, &address)) {
		sf_text_put(text, "?");
		return;
	}
	if ((flags & CATEGORY) == CATEGORY_ARRAY) {
		put_array(naming, table, flags, place, text);
		return;
	}
	name_arguments(naming, table, flags, place, &names);
	arguments.n_of_type = names.n;
	module = sf_clr_modules_find(naming->modules, naming->description, naming->memory, address);
	if (!module)
		sf_text_put(text, "?");
	else if (keyword(&module->metadata, row))
		sf_text_put(text, keyword(&module->metadata, row));
	else
		sf_clr_put_type(text, &module->metadata, row, &arguments);
}

static void put_variable(const struct sf_clr_naming *naming, uint64_t type, struct sf_text *text)
{
	const struct sf_clr_module *module;
	uint64_t address;
	uint32_t token;

	module = get(naming, SF_CLR_VARIABLE_MODULE, type, &address) &&
		 get_u32(naming, SF_CLR_VARIABLE_TOKEN, type, &token) ?
		sf_clr_modules_find(naming->modules, naming->description, naming->memory, address) : NULL;
	sf_text_put(text, module ? sf_clr_string(&module->metadata, SF_CLR_GENERIC_PARAM, token & 0xffffff,
						SF_CLR_GENERIC_PARAM_NAME) : "?");
}

static void put_desc(const struct sf_clr_naming *naming, uint64_t type, struct place place,
		     struct sf_text *text)
{
	uint64_t of = 0;
	uint32_t kind = 0;

	get_u32(naming, SF_CLR_TYPE_KIND, type, &kind);
	switch (kind & 0xff) {
	case KIND_POINTER:
	case KIND_REFERENCE:
		get(naming, SF_CLR_TYPE_OF, type, &of);
		sf_text_put(text, (kind & 0xff) == KIND_REFERENCE ? "ref " : "");
		put_type(naming, of, inside(place), text);
		sf_text_put(text, (kind & 0xff) == KIND_POINTER ? "*" : "");
		break;
	case KIND_TYPE_VARIABLE:
	case KIND_METHOD_VARIABLE:
		put_variable(naming, type, text);
		break;
	case KIND_FUNCTION:
		sf_text_put(text, "delegate*");
		break;
	default:
		sf_text_put(text, "?");
		break;
	}
}

static void put_type(const struct sf_clr_naming *naming, uint64_t handle, struct place place,
		     struct sf_text *text)
{
	if (!handle || place.depth > MAX_DEPTH || !*place.left) {
		sf_text_put(text, "?");
		return;
	}
	--*place.left;
	if (handle & IS_TYPE_DESC)
		put_desc(naming, handle & ~IS_TYPE_DESC, place, text);
	else
		put_table(naming, handle, place, text);
}

void sf_clr_name_type(const struct sf_clr_naming *naming, uint64_t table, char *ret, size_t size)
{
	struct sf_text text = sf_text_in(ret, size);
	unsigned left = MAX_TYPES;

	put_type(naming, table, (struct place){ 0, &left }, &text);
}

static void name_method_arguments(const struct sf_clr_naming *naming, const struct sf_clr_method *method,
				  struct place place, struct argument_names *ret)
{
	const struct sf_clr_layout *layout = &naming->description->layout;
	uint64_t handles;
	uint16_t n;

	ret->n = 0;
	if (method->kind == SF_CLR_METHOD_GENERIC && sf_clr_has(layout, SF_CLR_TABLE_FLAGS2) &&
	    get(naming, SF_CLR_GENERIC_ARGUMENTS, method->desc, &handles) && handles &&
	    sf_clr_get_u16(layout, naming->memory, SF_CLR_GENERIC_N_ARGUMENTS, method->desc, &n))
		name_handles(naming, handles, n, place, ret);
}

/* A dynamic method: its name is all that there is. */
static bool name_dynamic(const struct sf_clr_naming *naming, const struct sf_clr_method *method,
			 struct sf_clr_method_name *ret)
{
	uint64_t at;

	if (!get(naming, SF_CLR_DYNAMIC_NAME, method->desc, &at) || !at)
		return false;
	for (size_t i = 0; i < NAME_SIZE; i++) {
		if (!sf_read(naming->memory, &ret->written[i], at + i, 1) || !ret->written[i])
			break;
		ret->written[i + 1] = 0;
	}
	memcpy(ret->raw, ret->written, sizeof(ret->raw));
	return *ret->written;
}

bool sf_clr_name_method(const struct sf_clr_naming *naming, const struct sf_clr_method *method,
			struct sf_clr_method_name *ret)
{
	struct argument_names of_type, of_method;
	struct sf_clr_arguments arguments = { of_type.pointers, of_method.pointers, 0, 0 };
	const struct sf_clr_module *module;
	unsigned left = MAX_TYPES;
	const struct place place = { 0, &left };
	uint32_t flags = 0;

	*ret = (struct sf_clr_method_name){ 0 };
	if (method->kind == SF_CLR_METHOD_DYNAMIC)
		return name_dynamic(naming, method, ret);
	get_u32(naming, SF_CLR_TABLE_FLAGS, method->table, &flags);
	name_arguments(naming, method->table, flags, place, &of_type);
	name_method_arguments(naming, method, place, &of_method);
	arguments.n_of_type = of_type.n;
	arguments.n_of_method = of_method.n;
	module = sf_clr_modules_find(naming->modules, naming->description, naming->memory, method->module);
	return module && sf_clr_method_name(&module->metadata, method->row, &arguments, ret);
}

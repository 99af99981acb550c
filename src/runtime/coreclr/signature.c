/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the signature of a .NET method into the text of its arguments. Codes of types: ECMA-335,
 * II.23.1.16; grammar: II.23.2. */
#include "runtime/coreclr/signature.h"

#include <stdio.h>

#include "base/csharp_names.h"

#define MAX_DEPTH 16 /* types in types */
#define MAX_LIST 256 /* arguments, dimensions */
#define GENERIC 0x10 /* calling convention: the number of type parameters follows */

enum {
	PTR = 0x0f,
	BYREF,
	VALUETYPE,
	CLASS,
	VAR,
	ARRAY,
	GENERICINST,
	FNPTR = 0x1b,
	SZARRAY = 0x1d,
	MVAR,
	CMOD_REQD,
	CMOD_OPT,
	INTERNAL,
	SENTINEL = 0x41,
	PINNED = 0x45,
};

/* The keywords of C# for the types that have a code of their own. */
static const char *const simple_types[] = {
	[0x01] = "void",   [0x02] = "bool",   [0x03] = "char",           [0x04] = "sbyte",
	[0x05] = "byte",   [0x06] = "short",  [0x07] = "ushort",         [0x08] = "int",
	[0x09] = "uint",   [0x0a] = "long",   [0x0b] = "ulong",          [0x0c] = "float",
	[0x0d] = "double", [0x0e] = "string", [0x16] = "TypedReference", [0x18] = "nint",
	[0x19] = "nuint",  [0x1c] = "object",
};

static bool put_type(struct sf_text *text, const struct sf_clr_scope *scope,
		     struct sf_bytes *in, unsigned depth);

void sf_clr_put_simple_name(struct sf_text *text, const char *name)
{
	const struct sf_piece simple = { name, strcspn(name, "`") };

	if (!sf_csharp_put_type(text, simple))
		sf_text_put_n(text, simple.at, simple.n);
}

/* Types that have a keyword in C#, but no code in signatures where they are named as a class. */
static const char *keyword_of(const char *name)
{
	return strcmp(name, "Decimal") ? name : "decimal";
}

static bool put_named_type(struct sf_text *text, const struct sf_clr_scope *scope,
			   struct sf_bytes *in)
{
	uint32_t row;
	const enum sf_clr_table table = sf_clr_type_def_or_ref(sf_clr_compressed(in), &row);
	const unsigned column = table == SF_CLR_TYPE_REF ? (unsigned)SF_CLR_TYPE_REF_NAME
							 : (unsigned)SF_CLR_TYPE_DEF_NAME;

	if (table == SF_CLR_TYPE_SPEC)
		sf_text_put(text, "?");
	else
		sf_clr_put_simple_name(
			text, keyword_of(sf_clr_string(scope->metadata, table, row, column)));
	return !in->bad;
}

/* The name of a generic parameter in the metadata: those of one owner follow each other, in order
 * (II.22.20). */
static const char *parameter_name(const struct sf_clr_metadata *metadata, uint32_t owner,
				  uint32_t number)
{
	const uint32_t first =
		sf_clr_find(metadata, SF_CLR_GENERIC_PARAM, SF_CLR_GENERIC_PARAM_OWNER, owner);
	const uint32_t row = first + number;

	if (!first || number > MAX_LIST ||
	    sf_clr_value(metadata, SF_CLR_GENERIC_PARAM, row, SF_CLR_GENERIC_PARAM_OWNER) != owner)
		return "";
	return sf_clr_string(metadata, SF_CLR_GENERIC_PARAM, row, SF_CLR_GENERIC_PARAM_NAME);
}

void sf_clr_put_parameter(struct sf_text *text, const struct sf_clr_scope *scope,
			  bool of_method, uint32_t number)
{
	const struct sf_clr_arguments *known = scope->arguments;
	const uint32_t n = !known ? 0 : of_method ? known->n_of_method : known->n_of_type;
	const char *name;
	char numbered[16];

	if (number < n) {
		sf_text_put(text, of_method ? known->of_method[number] : known->of_type[number]);
		return;
	}
	/* TypeOrMethodDef: the lowest bit is the table. */
	name = parameter_name(scope->metadata,
			      of_method ? scope->method << 1 | 1 : scope->type << 1, number);
	if (*name) {
		sf_csharp_put_method(text, sf_piece_of(name));
		return;
	}
	snprintf(numbered, sizeof(numbered), "%s%u", of_method ? "!!" : "!", number & 0xffff);
	sf_text_put(text, numbered);
}

/* Types with commas between them; false: one has a mistake. */
static bool put_types(struct sf_text *text, const struct sf_clr_scope *scope,
		      struct sf_bytes *in, uint32_t n, unsigned depth)
{
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			sf_text_put(text, ", ");
		if (!put_type(text, scope, in, depth))
			return false;
	}
	return true;
}

static bool put_generic(struct sf_text *text, const struct sf_clr_scope *scope,
			struct sf_bytes *in, unsigned depth)
{
	struct sf_text before = *text;
	bool nullable, good;
	uint32_t n;

	sf_bytes_u8(in); /* class or value type */
	if (!put_named_type(text, scope, in))
		return false;
	n = sf_clr_compressed(in);
	nullable = n == 1 && !strcmp(before.at, "Nullable");
	if (n > MAX_LIST)
		return false;
	if (nullable)
		*text = before;
	else
		sf_text_put(text, "<");
	good = put_types(text, scope, in, n, depth);
	sf_text_put(text, nullable ? "?" : ">");
	return good;
}

/* A multi-dimensional array: element type, rank, and bounds, which are passed over. */
static bool put_array(struct sf_text *text, const struct sf_clr_scope *scope,
		      struct sf_bytes *in, unsigned depth)
{
	uint32_t rank;

	if (!put_type(text, scope, in, depth))
		return false;
	rank = sf_clr_compressed(in);
	for (unsigned list = 0; list < 2; list++) {
		const uint32_t n = sf_clr_compressed(in);

		for (uint32_t i = 0; i < n && i < MAX_LIST; i++)
			sf_clr_compressed(in);
	}
	sf_text_put(text, "[");
	for (uint32_t i = 1; i < rank && i < MAX_LIST; i++)
		sf_text_put(text, ",");
	sf_text_put(text, "]");
	return !in->bad;
}

/* A pointer to a function: "delegate*<int, void>", whose last type is the result. */
static bool put_function(struct sf_text *text, const struct sf_clr_scope *scope,
			 struct sf_bytes *in, unsigned depth)
{
	const uint8_t convention = sf_bytes_u8(in);
	char result[128];
	struct sf_text result_text = sf_text_in(result, sizeof(result));
	uint32_t n;

	if (convention & GENERIC)
		sf_clr_compressed(in);
	n = sf_clr_compressed(in);
	sf_text_put(text, "delegate*<");
	if (n > MAX_LIST || !put_type(&result_text, scope, in, depth) ||
	    !put_types(text, scope, in, n, depth))
		return false;
	sf_text_put(text, n ? ", " : "");
	sf_text_put(text, result);
	sf_text_put(text, ">");
	return true;
}

/* A type that begins with another one and adds something behind it or before it. */
static bool put_wrapped(struct sf_text *text, const struct sf_clr_scope *scope,
			struct sf_bytes *in, unsigned depth, const char *before, const char *behind)
{
	sf_text_put(text, before);
	if (!put_type(text, scope, in, depth))
		return false;
	sf_text_put(text, behind);
	return true;
}

static bool put_type(struct sf_text *text, const struct sf_clr_scope *scope,
		     struct sf_bytes *in, unsigned depth)
{
	const uint8_t code = sf_bytes_u8(in);

	if (in->bad || depth == 0)
		return false;
	if (code < sizeof(simple_types) / sizeof(*simple_types) && simple_types[code]) {
		sf_text_put(text, simple_types[code]);
		return true;
	}
	switch (code) {
	case PTR:
		return put_wrapped(text, scope, in, depth - 1, "", "*");
	case BYREF:
		return put_wrapped(text, scope, in, depth - 1, "ref ", "");
	case SZARRAY:
		return put_wrapped(text, scope, in, depth - 1, "", "[]");
	case SENTINEL:
	case PINNED:
		return put_wrapped(text, scope, in, depth - 1, "", "");
	case CMOD_REQD:
	case CMOD_OPT:
		sf_clr_compressed(in);
		return put_wrapped(text, scope, in, depth - 1, "", "");
	case VALUETYPE:
	case CLASS:
		return put_named_type(text, scope, in);
	case VAR:
	case MVAR:
		sf_clr_put_parameter(text, scope, code == MVAR, sf_clr_compressed(in));
		return !in->bad;
	case ARRAY:
		return put_array(text, scope, in, depth - 1);
	case GENERICINST:
		return put_generic(text, scope, in, depth - 1);
	case FNPTR:
		return put_function(text, scope, in, depth - 1);
	case INTERNAL: /* an address in the runtime */
		sf_bytes_take(in, 8);
		sf_text_put(text, "?");
		return !in->bad;
	default:
		return false;
	}
}

/* The arguments with commas between them. Those that the compiler added to reach the variables of
 * the method around are left out. */
static bool put_list(struct sf_text *text, const struct sf_clr_scope *scope,
		     struct sf_bytes *in, uint32_t n)
{
	static const char added[] = "ref <>c__";
	bool is_first = true;

	for (uint32_t i = 0; i < n; i++) {
		const struct sf_text before = *text;
		const char *start;

		sf_text_put(text, is_first ? "" : ", ");
		start = text->at;
		if (!put_type(text, scope, in, MAX_DEPTH))
			return false;
		if (!strncmp(start, added, sizeof(added) - 1)) {
			*text = before;
			*text->at = 0;
		} else {
			is_first = false;
		}
	}
	return true;
}

bool sf_clr_put_arguments(struct sf_text *text, const struct sf_clr_scope *scope,
			  struct sf_bytes signature)
{
	char all[SF_CLR_NAME_SIZE], unseen[1];
	struct sf_text arguments = sf_text_in(all, sizeof(all)),
			   nothing = sf_text_in(unseen, sizeof(unseen));
	uint32_t n;

	if (sf_bytes_u8(&signature) & GENERIC)
		sf_clr_compressed(&signature);
	n = sf_clr_compressed(&signature);
	if (n > MAX_LIST || !put_type(&nothing, scope, &signature, MAX_DEPTH) ||
	    !put_list(&arguments, scope, &signature, n))
		return false;
	sf_text_put(text, "(");
	sf_text_put(text, all);
	sf_text_put(text, ")");
	return true;
}

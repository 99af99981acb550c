/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts names of methods together from ILC's metadata.
 *
 * A nested type has the generic parameters of the types around it, and then its own: "`2" behind its name is how many those
 * are. What the C# compiler made has the name of what it made that of (base/csharp_names.h): a closure's type is left out, a
 * state machine's type has the name of its method.
 */
#include "symbols/ilc_method_names.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/csharp_names.h"

#define MAX_DEPTH 16u                /* of types in types */
#define MAX_ARITY 64u
#define MAX_RANK 32u
#define MAX_WORK ((size_t)256 << 10) /* bytes to go through for one name: records may refer to each other */
#define TYPE_SIZE 64u                /* what a type counts */

struct writer {
	struct sf_text *text;
	struct sf_ilc_walk walk;
	struct sf_ilc_generics of_type, of_method;
};

static void put_type(struct writer *writer, struct sf_ilc_handle type, unsigned depth);

static void put_piece(struct writer *writer, struct sf_piece piece)
{
	sf_text_put_n(writer->text, piece.at, piece.n);
}

static struct sf_piece string(const struct writer *writer, uint32_t offset)
{
	return sf_ilc_string(writer->walk.metadata, offset);
}

static void put_space(struct writer *writer, const struct sf_ilc_named_type *named)
{
	for (unsigned i = named->n_spaces; i-- > 0;) {
		put_piece(writer, named->spaces[i]);
		sf_text_put(writer->text, ".");
	}
}

/* A record of a generic parameter: number, flags, kind, name. */
static struct sf_piece parameter_name(const struct writer *writer, uint32_t offset)
{
	struct sf_bytes bytes = sf_ilc_at(&writer->walk.metadata->bytes, offset);

	for (unsigned i = 0; i < 3; i++)
		sf_ilc_number(&bytes);
	return string(writer, sf_ilc_number(&bytes));
}

/* Adds the next of `parameters`. `number`: it is this one, for where it is not known. */
static void put_next(struct writer *writer, struct sf_ilc_generics *parameters, const char *mark, unsigned number,
		     unsigned depth)
{
	char numbered[16];

	if (!parameters->n) {
		snprintf(numbered, sizeof(numbered), "%s%u", mark, number & 0xffff);
		sf_text_put(writer->text, numbered);
		return;
	}
	parameters->n--;
	if (parameters->are_records)
		sf_csharp_put_method(writer->text, parameter_name(writer, sf_ilc_number(&parameters->list)));
	else
		put_type(writer, sf_ilc_handle(writer->walk.metadata, &parameters->list), depth);
}

/* Adds the parameter with this number. */
static void put_variable(struct writer *writer, struct sf_ilc_generics parameters, const char *mark, unsigned number,
			 unsigned depth)
{
	for (unsigned i = 0; i < number && parameters.n && !parameters.list.bad; i++) {
		sf_ilc_number(&parameters.list);
		parameters.n--;
	}
	put_next(writer, &parameters, mark, number, depth);
}

static void put_list(struct writer *writer, struct sf_ilc_generics *parameters, const char *mark, unsigned first, unsigned n,
		     unsigned depth)
{
	for (unsigned i = 0; i < n; i++) {
		sf_text_put(writer->text, i ? ", " : "<");
		put_next(writer, parameters, mark, first + i, depth);
	}
	sf_text_put(writer->text, n ? ">" : "");
}

/* Splits "Dictionary`2". */
static struct sf_piece without_arity(struct sf_piece name, unsigned *arity_ret)
{
	const char *mark = memrchr(name.at, '`', name.n);
	unsigned arity = 0;

	*arity_ret = 0;
	if (!mark)
		return name;
	for (const char *digit = mark + 1; digit < name.at + name.n && *digit >= '0' && *digit <= '9' && arity < MAX_ARITY; digit++)
		arity = arity * 10 + (unsigned)(*digit - '0');
	*arity_ret = arity < MAX_ARITY ? arity : MAX_ARITY;
	return (struct sf_piece){ name.at, (size_t)(mark - name.at) };
}

/* "<>c", "<>c__DisplayClass0_0" */
static bool is_closure(struct sf_piece name)
{
	return name.n >= 3 && memcmp(name.at, "<>c", 3) == 0;
}

static void put_simple_name(struct writer *writer, struct sf_piece name)
{
	struct sf_piece original;

	if (sf_csharp_is_state_machine(name, &original))
		sf_csharp_put_method(writer->text, original);
	else if (!sf_csharp_put_type(writer->text, name))
		put_piece(writer, name);
}

/* Adds the names, each with as many generic parameters as it adds. Closures are left out, and their parameters. */
static void put_full_name(struct writer *writer, const struct sf_ilc_named_type *named, unsigned depth)
{
	struct sf_ilc_generics parameters = named->parameters;
	unsigned arity, seen = 0;

	put_space(writer, named);
	for (unsigned i = named->n; i-- > 0; seen += arity) {
		const struct sf_piece name = without_arity(named->names[i], &arity);

		if (is_closure(name) && named->n > 1) {
			for (unsigned k = 0; k < arity && parameters.n; k++, parameters.n--)
				sf_ilc_number(&parameters.list);
			continue;
		}
		sf_text_put(writer->text, i == named->n - 1 ? "" : ".");
		put_simple_name(writer, name);
		put_list(writer, &parameters, "!", seen, arity, depth);
	}
}

/* The keyword for a type; NULL: it has none. */
static const char *keyword(const struct sf_ilc_named_type *named)
{
	const struct sf_piece *space = &named->spaces[0];
	const bool is_of_system = named->n == 1 && named->n_spaces == 1 && space->n == 6 && memcmp(space->at, "System", 6) == 0;

	return is_of_system ? sf_csharp_keyword(named->names[0]) : NULL;
}

static void put_named(struct writer *writer, const struct sf_ilc_named_type *named, unsigned depth)
{
	const char *word = keyword(named);

	if (word)
		sf_text_put(writer->text, word);
	else
		put_full_name(writer, named, depth);
}

static void put_array(struct writer *writer, struct sf_bytes bytes, unsigned depth)
{
	uint32_t rank;

	put_type(writer, sf_ilc_handle(writer->walk.metadata, &bytes), depth);
	rank = sf_ilc_number(&bytes);
	sf_text_put(writer->text, "[");
	for (uint32_t i = 1; i < rank && i < MAX_RANK; i++)
		sf_text_put(writer->text, ",");
	sf_text_put(writer->text, "]");
}

static void put_wrapped(struct writer *writer, struct sf_bytes bytes, const char *before, const char *behind, unsigned depth)
{
	sf_text_put(writer->text, before);
	put_type(writer, sf_ilc_handle(writer->walk.metadata, &bytes), depth);
	sf_text_put(writer->text, behind);
}

/* Types that are made of others. False: it is none. */
static bool put_made_type(struct writer *writer, struct sf_ilc_handle type, unsigned depth)
{
	struct sf_bytes bytes = sf_ilc_at(&writer->walk.metadata->bytes, type.offset);

	switch (type.type) {
	case SF_ILC_ARRAY:
		put_array(writer, bytes, depth);
		return true;
	case SF_ILC_SIMPLE_ARRAY:
		put_wrapped(writer, bytes, "", "[]", depth);
		return true;
	case SF_ILC_BY_REFERENCE:
		put_wrapped(writer, bytes, "ref ", "", depth);
		return true;
	case SF_ILC_POINTER:
		put_wrapped(writer, bytes, "", "*", depth);
		return true;
	case SF_ILC_FUNCTION_POINTER:
		sf_text_put(writer->text, "delegate*");
		return true;
	case SF_ILC_MODIFIED_TYPE:
		sf_bytes_u8(&bytes); /* whether it is optional */
		sf_ilc_number(&bytes); /* the modifier */
		put_wrapped(writer, bytes, "", "", depth);
		return true;
	case SF_ILC_TYPE_VARIABLE:
		put_variable(writer, writer->of_type, "!", sf_ilc_number(&bytes), depth);
		return true;
	case SF_ILC_METHOD_VARIABLE:
		put_variable(writer, writer->of_method, "!!", sf_ilc_number(&bytes), depth);
		return true;
	case SF_ILC_STRING:          /* the name of a parameter, in the list of its method */
		sf_csharp_put_method(writer->text, string(writer, type.offset));
		return true;
	}
	return false;
}

static void put_type(struct writer *writer, struct sf_ilc_handle type, unsigned depth)
{
	struct sf_ilc_named_type named;

	type = sf_ilc_specified(writer->walk.metadata, type);
	if (!depth || !sf_ilc_spend(&writer->walk, TYPE_SIZE))
		sf_text_put(writer->text, "?");
	else if (put_made_type(writer, type, depth - 1))
		return;
	else if (sf_ilc_named_type_read(&writer->walk, type, &named))
		put_named(writer, &named, depth - 1);
	else
		sf_text_put(writer->text, "?");
}

/* A parameter by which a local function reaches the variables of the method around it: the compiler has added it. */
static bool is_added(struct writer *writer, struct sf_ilc_handle type)
{
	struct sf_bytes bytes = sf_ilc_at(&writer->walk.metadata->bytes, type.offset);
	struct sf_ilc_named_type named;

	if (type.type != SF_ILC_BY_REFERENCE)
		return false;
	type = sf_ilc_specified(writer->walk.metadata, sf_ilc_handle(writer->walk.metadata, &bytes));
	return sf_ilc_named_type_read(&writer->walk, type, &named) && is_closure(named.names[0]);
}

/* A signature: calling convention, number of type parameters, result, parameters. */
static void put_signature(struct writer *writer, uint32_t signature)
{
	struct sf_bytes bytes = sf_ilc_at(&writer->walk.metadata->bytes, signature);
	const char *comma = "";

	for (unsigned i = 0; i < 3; i++)
		sf_ilc_number(&bytes);
	sf_text_put(writer->text, "(");
	for (uint32_t n = sf_ilc_list(&bytes); n && !bytes.bad && writer->walk.left; n--) {
		const struct sf_ilc_handle type = sf_ilc_handle(writer->walk.metadata, &bytes);

		if (is_added(writer, type))
			continue;
		sf_text_put(writer->text, comma);
		put_type(writer, type, MAX_DEPTH);
		comma = ", ";
	}
	sf_text_put(writer->text, ")");
}

/* The type's own name stands here also where C# has a keyword for it. */
static bool put_owner(struct writer *writer, struct sf_ilc_handle owner, struct sf_ilc_named_type *named)
{
	if (!sf_ilc_named_type_read(&writer->walk, sf_ilc_specified(writer->walk.metadata, owner), named))
		return false;
	writer->of_type = named->parameters;
	put_full_name(writer, named, MAX_DEPTH);
	return true;
}

/* MoveNext of a state machine is the code of the method that its type is named after. */
static bool is_move_next(const struct sf_ilc_named_type *owner, struct sf_piece name)
{
	struct sf_piece original;
	unsigned arity;

	return owner->n && name.n == 8 && memcmp(name.at, "MoveNext", 8) == 0 &&
	       sf_csharp_is_state_machine(without_arity(owner->names[0], &arity), &original);
}

static void put_method_name(struct writer *writer, struct sf_piece name)
{
	struct sf_ilc_generics parameters = writer->of_method;

	sf_text_put(writer->text, ".");
	if (!sf_csharp_put_accessor(writer->text, name))
		sf_csharp_put_method(writer->text, name);
	put_list(writer, &parameters, "!!", 0, parameters.n, MAX_DEPTH);
}

void sf_ilc_put_method(struct sf_text *text, const struct sf_ilc_metadata *metadata, const struct sf_ilc_method *method)
{
	struct writer writer = { .text = text, .walk = { metadata, MAX_WORK } };
	struct sf_ilc_method_record record = { .name = method->name, .signature = method->signature };
	struct sf_ilc_named_type owner;

	if (method->record && sf_ilc_method_record(metadata, method->record, &record))
		writer.of_method = sf_ilc_generics_read(record.parameters, true);
	else if (method->arguments)
		writer.of_method = sf_ilc_generics_read(sf_ilc_at(&metadata->bytes, method->arguments), false);
	if (!put_owner(&writer, method->owner, &owner))
		sf_text_put(text, "?");
	if (!is_move_next(&owner, string(&writer, record.name)))
		put_method_name(&writer, string(&writer, record.name));
	put_signature(&writer, record.signature);
}

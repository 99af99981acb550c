/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the names of .NET types and methods that a developer knows. A nested type stands in the
 * types around it (ECMA-335, II.22.32);
 * "`2" behind a name is the number of type parameters that the type adds to those of the types
 * around it.
 */
#include "runtime/coreclr/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/csharp_names.h"
#include "runtime/coreclr/signature.h"

#define MAX_NESTED 16
#define MAX_PARAMETERS 32
#define MAX_INTERFACES 16
#define MAX_ATTRIBUTES 64
#define SPECIAL_NAME 0x0800 /* MethodAttributes (II.23.1.10) */

/* A type and the types around it, the innermost first. */
struct chain {
	uint32_t rows[MAX_NESTED];
	unsigned n;
};

static const char *type_name(const struct sf_clr_metadata *metadata, uint32_t type)
{
	return sf_clr_string(metadata, SF_CLR_TYPE_DEF, type, SF_CLR_TYPE_DEF_NAME);
}

static uint32_t outer_type(const struct sf_clr_metadata *metadata, uint32_t type)
{
	const uint32_t row =
		sf_clr_find(metadata, SF_CLR_NESTED_CLASS, SF_CLR_NESTED_CLASS_INNER, type);

	return sf_clr_value(metadata, SF_CLR_NESTED_CLASS, row, SF_CLR_NESTED_CLASS_OUTER);
}

static struct chain chain_of(const struct sf_clr_metadata *metadata, uint32_t type)
{
	struct chain chain = { .n = 0 };

	for (; type && chain.n < MAX_NESTED; type = outer_type(metadata, type))
		chain.rows[chain.n++] = type;
	return chain;
}

/* The number of type parameters that a type adds. */
static uint32_t arity_of(const char *name)
{
	const char *mark = strrchr(name, '`');
	const unsigned long n = mark ? strtoul(mark + 1, NULL, 10) : 0;

	return n > MAX_PARAMETERS ? MAX_PARAMETERS : (uint32_t)n;
}

static void put_parameters(struct sf_text *text, const struct sf_clr_scope *scope,
			   bool of_method, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		sf_text_put(text, i ? ", " : "<");
		sf_clr_put_parameter(text, scope, of_method, first + i);
	}
	if (n)
		sf_text_put(text, ">");
}

static void put_namespace(struct sf_text *text, const struct sf_clr_metadata *metadata, uint32_t type)
{
	const char *space =
		sf_clr_string(metadata, SF_CLR_TYPE_DEF, type, SF_CLR_TYPE_DEF_NAMESPACE);

	sf_text_put(text, space);
	sf_text_put(text, *space ? "." : "");
}

void sf_clr_put_type(struct sf_text *text, const struct sf_clr_metadata *metadata,
		     uint32_t type, const struct sf_clr_arguments *arguments)
{
	const struct chain chain = chain_of(metadata, type);
	uint32_t seen = 0;

	for (unsigned i = chain.n; i-- > 0;) {
		const char *name = type_name(metadata, chain.rows[i]);
		const uint32_t arity = arity_of(name);
		const struct sf_clr_scope scope = { metadata, arguments, chain.rows[i], 0 };

		if (i == chain.n - 1)
			put_namespace(text, metadata, chain.rows[i]);
		else
			sf_text_put(text, ".");
		sf_clr_put_simple_name(text, name);
		put_parameters(text, &scope, false, seen, arity);
		seen += arity;
	}
}

/* The name of a TypeDef row as the assembly has it: "Demo.Outer`1+Inner". */
static void put_raw_type(struct sf_text *text, const struct sf_clr_metadata *metadata, uint32_t type)
{
	const struct chain chain = chain_of(metadata, type);

	for (unsigned i = chain.n; i-- > 0;) {
		if (i == chain.n - 1)
			put_namespace(text, metadata, chain.rows[i]);
		else
			sf_text_put(text, "+");
		sf_text_put(text, type_name(metadata, chain.rows[i]));
	}
}

static const char *method_name(const struct sf_clr_metadata *metadata, uint32_t method)
{
	return sf_clr_string(metadata, SF_CLR_METHOD_DEF, method, SF_CLR_METHOD_DEF_NAME);
}

/* The number of a method's type parameters. */
static uint32_t n_parameters(const struct sf_clr_metadata *metadata, uint32_t method)
{
	const uint32_t owner = method << 1 | 1;
	const uint32_t first =
		sf_clr_find(metadata, SF_CLR_GENERIC_PARAM, SF_CLR_GENERIC_PARAM_OWNER, owner);
	uint32_t n = 0;

	while (first && n < MAX_PARAMETERS &&
	       sf_clr_value(metadata, SF_CLR_GENERIC_PARAM, first + n,
			    SF_CLR_GENERIC_PARAM_OWNER) == owner)
		n++;
	return n;
}

/* Whether a state machine is that of an asynchronous method; else it is an iterator's. */
static bool is_async(const struct sf_clr_metadata *metadata, uint32_t type)
{
	const uint32_t first =
		sf_clr_find(metadata, SF_CLR_INTERFACE_IMPL, SF_CLR_INTERFACE_IMPL_CLASS, type);

	for (uint32_t i = 0; first && i < MAX_INTERFACES; i++) {
		uint32_t row;
		const enum sf_clr_table table = sf_clr_type_def_or_ref(
			sf_clr_value(metadata, SF_CLR_INTERFACE_IMPL, first + i,
				     SF_CLR_INTERFACE_IMPL_INTERFACE),
			&row);

		if (sf_clr_value(metadata, SF_CLR_INTERFACE_IMPL, first + i,
				 SF_CLR_INTERFACE_IMPL_CLASS) != type)
			return false;
		/* The name is the second column of both tables. */
		if (table != SF_CLR_TYPE_SPEC &&
		    !strcmp(sf_clr_string(metadata, table, row, 1), "IAsyncStateMachine"))
			return true;
	}
	return false;
}

/* Whether an attribute of the method names this type: AsyncStateMachineAttribute and
 * IteratorStateMachineAttribute do. */
static bool has_attribute_with(const struct sf_clr_metadata *metadata, uint32_t method, const char *type)
{
	const uint32_t parent = method << 5; /* HasCustomAttribute: tag 0 is a method */
	const uint32_t first = sf_clr_find(metadata, SF_CLR_CUSTOM_ATTRIBUTE,
					   SF_CLR_CUSTOM_ATTRIBUTE_PARENT, parent);

	for (uint32_t i = 0; first && i < MAX_ATTRIBUTES; i++) {
		const struct sf_bytes value = sf_clr_blob(metadata, SF_CLR_CUSTOM_ATTRIBUTE,
							  first + i, SF_CLR_CUSTOM_ATTRIBUTE_VALUE);

		if (sf_clr_value(metadata, SF_CLR_CUSTOM_ATTRIBUTE, first + i,
				 SF_CLR_CUSTOM_ATTRIBUTE_PARENT) != parent)
			return false;
		if (sf_bytes_left(&value) &&
		    memmem(value.at, sf_bytes_left(&value), type, strlen(type)))
			return true;
	}
	return false;
}

/*
 * The method of a type from which the compiler made a state machine: the one of that name, or of
 * several the one that names the state machine in an attribute. 0: not known.
 */
static uint32_t kickoff_of(const struct sf_clr_metadata *metadata, uint32_t type,
			   struct sf_piece name, const char *machine)
{
	uint32_t method, end, found = 0;
	bool is_only = true;

	sf_clr_methods(metadata, type, &method, &end);
	for (; method < end; method++) {
		const char *other = method_name(metadata, method);

		if (strncmp(other, name.at, name.n) || other[name.n])
			continue;
		if (has_attribute_with(metadata, method, machine))
			return method;
		is_only = !found;
		found = method;
	}
	return is_only ? found : 0;
}

static void put_signature(struct sf_text *text, const struct sf_clr_scope *scope)
{
	const struct sf_bytes signature = sf_clr_blob(scope->metadata, SF_CLR_METHOD_DEF,
						      scope->method, SF_CLR_METHOD_DEF_SIGNATURE);

	put_parameters(text, scope, true, 0, n_parameters(scope->metadata, scope->method));
	sf_clr_put_arguments(text, scope, signature);
}

/* The innermost type of the chain that a developer wrote; the outermost, if the compiler made all.
 */
static uint32_t written_type(const struct sf_clr_metadata *metadata, const struct chain *chain)
{
	unsigned i = 0;

	while (i + 1 < chain->n && *type_name(metadata, chain->rows[i]) == '<')
		i++;
	return chain->rows[i];
}

/*
 * MoveNext of a state machine: the method from which the compiler made it, which is in the type
 * around it. The state machine's type has the type parameters of that type and then those of the
 * method.
 */
static void put_state_machine(struct sf_text *text, const struct sf_clr_metadata *metadata,
			      const struct chain *chain, const struct sf_clr_arguments *arguments,
			      struct sf_piece original)
{
	const uint32_t outer = chain->rows[1];
	const uint32_t kickoff =
		kickoff_of(metadata, outer, original, type_name(metadata, chain->rows[0]));
	struct sf_clr_arguments own = { 0 };
	uint32_t n_outer = 0;

	sf_clr_put_type(text, metadata, written_type(metadata, chain), arguments);
	sf_text_put(text, ".");
	sf_csharp_put_method(text, original);
	for (unsigned i = 1; i < chain->n; i++)
		n_outer += arity_of(type_name(metadata, chain->rows[i]));
	if (arguments && arguments->n_of_type >= n_outer)
		own = (struct sf_clr_arguments){ arguments->of_type, arguments->of_type + n_outer,
						 n_outer, arguments->n_of_type - n_outer };
	if (kickoff)
		put_signature(text, &(struct sf_clr_scope){ metadata, &own, outer, kickoff });
	sf_text_put(text, is_async(metadata, chain->rows[0]) ? " [async]" : " [iterator]");
}

static void put_ordinary(struct sf_text *text, const struct sf_clr_scope *scope, const struct chain *chain)
{
	const char *name = method_name(scope->metadata, scope->method);
	const uint32_t flags = sf_clr_value(scope->metadata, SF_CLR_METHOD_DEF, scope->method,
					    SF_CLR_METHOD_DEF_FLAGS);

	sf_clr_put_type(text, scope->metadata,
			*name == '<' ? written_type(scope->metadata, chain) : chain->rows[0],
			scope->arguments);
	sf_text_put(text, ".");
	if (!(flags & SPECIAL_NAME) || !sf_csharp_put_accessor(text, sf_piece_of(name)))
		sf_csharp_put_method(text, sf_piece_of(name));
	put_signature(text, scope);
}

bool sf_clr_method_name(const struct sf_clr_metadata *metadata, uint32_t method,
			const struct sf_clr_arguments *arguments, struct sf_clr_method_name *ret)
{
	struct sf_text written = sf_text_in(ret->written, sizeof(ret->written));
	struct sf_text raw = sf_text_in(ret->raw, sizeof(ret->raw));
	const uint32_t type = sf_clr_owner(metadata, method);
	const struct chain chain = chain_of(metadata, type);
	const char *name = method_name(metadata, method);
	struct sf_piece original;

	if (!type)
		return false;
	put_raw_type(&raw, metadata, type);
	sf_text_put(&raw, ".");
	sf_text_put(&raw, name);
	if (chain.n > 1 && !strcmp(name, "MoveNext") &&
	    sf_csharp_is_state_machine(sf_piece_of(type_name(metadata, type)), &original))
		put_state_machine(&written, metadata, &chain, arguments, original);
	else
		put_ordinary(&written, &(struct sf_clr_scope){ metadata, arguments, type, method },
			     &chain);
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The types in the signature of a .NET method (ECMA-335, II.23.2), as text: "(int, List<string>,
 * ref T)". */
#ifndef SF_RUNTIME_CORECLR_SIGNATURE_H
#define SF_RUNTIME_CORECLR_SIGNATURE_H

#include "runtime/coreclr/names.h"

/* The owners whose generic parameters the signature names: MethodDef and TypeDef rows, 0 for none.
 */
struct sf_clr_scope {
	const struct sf_clr_metadata *metadata;
	const struct sf_clr_arguments *arguments;
	uint32_t type, method;
};

/* Adds the arguments of a method's signature, in brackets. False: the signature has a mistake, and
 * nothing was added. */
bool sf_clr_put_arguments(struct sf_text *text, const struct sf_clr_scope *scope,
			  struct sf_bytes signature);

/* Adds the name of a parameter of the scope's type or method, or of the argument that is known for
 * it. */
void sf_clr_put_parameter(struct sf_text *text, const struct sf_clr_scope *scope,
			  bool of_method, uint32_t number);

/* Adds a type's simple name, without the number of its parameters that the assembly has behind a
 * "`". */
void sf_clr_put_simple_name(struct sf_text *text, const char *name);

#endif

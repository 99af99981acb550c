/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of .NET types and methods as a developer writes them, from the metadata of an assembly:
 * "Demo.Outer<string>.Work(int, List<T>)". Code that the C# compiler made of a lambda, a local
 * function, an iterator or an asynchronous method has the name of the method that the developer wrote. All
 * lengths and depths are bounded; names that do not fit are cut.
 */
#ifndef SF_RUNTIME_CORECLR_NAMES_H
#define SF_RUNTIME_CORECLR_NAMES_H

#include "base/text.h"
#include "runtime/coreclr/metadata.h"

#define SF_CLR_NAME_SIZE 1024

/* The names of the arguments of a generic type and of a generic method. An argument that is not
 * here has its parameter's name. */
struct sf_clr_arguments {
	const char *const *of_type, *const *of_method;
	uint32_t n_of_type, n_of_method;
};

/* The name of a TypeDef row, with its namespace and the types around it. */
void sf_clr_put_type(struct sf_text *text, const struct sf_clr_metadata *metadata,
		     uint32_t type, const struct sf_clr_arguments *arguments);

struct sf_clr_method_name {
	char written[SF_CLR_NAME_SIZE]; /* as the developer wrote it */
	char raw[SF_CLR_NAME_SIZE];     /* as the assembly has it, with no arguments */
};

/* The name of a MethodDef row. False, and empty names: there is no such row. */
bool sf_clr_method_name(const struct sf_clr_metadata *metadata, uint32_t method,
			const struct sf_clr_arguments *arguments, struct sf_clr_method_name *ret);

#endif

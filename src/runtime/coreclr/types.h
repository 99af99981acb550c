/* SPDX-License-Identifier: Apache-2.0 */
/* Names of CoreCLR's types and methods in a process, with their generic arguments. Ordinary code, one thread at a time. */
#ifndef SF_RUNTIME_CORECLR_TYPES_H
#define SF_RUNTIME_CORECLR_TYPES_H

#include "runtime/coreclr/methods.h"
#include "runtime/coreclr/modules.h"
#include "runtime/coreclr/names.h"

struct sf_clr_naming {
	const struct sf_clr_description *description;
	const struct sf_reader *memory;
	struct sf_clr_modules *modules;
};

/* The MethodTable of the i-th argument of a generic type; 0: there is none. */
uint64_t sf_clr_type_argument(const struct sf_clr_naming *naming, uint64_t table, unsigned i);

/* Whether a variable of this type holds its fields, and no reference to an object. */
bool sf_clr_is_value_type(const struct sf_clr_naming *naming, uint64_t table);

/* The row of the table TypeDef that a type has in its module's metadata; 0: it cannot be read. */
uint32_t sf_clr_type_row(const struct sf_clr_naming *naming, uint64_t table, uint64_t *module_ret);

/* The name of a type as a developer writes it, cut to size; "?": it cannot be read. */
void sf_clr_name_type(const struct sf_clr_naming *naming, uint64_t table, char *ret, size_t size);

/* The name of a method as a developer writes it. False: its metadata cannot be read; the name is then "" or its token. */
bool sf_clr_name_method(const struct sf_clr_naming *naming, const struct sf_clr_method *method,
			struct sf_clr_method_name *ret);

#endif

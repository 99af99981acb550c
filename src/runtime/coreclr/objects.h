/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed objects in the memory of a process: their types, their fields by name, and texts. The runtime's own descriptions of
 * classes say where fields are, so no offset of a class is known here.
 *
 * Collections move objects, while the other threads are suspended. Words that are read in the meantime can be of
 * another object. So a reading begins with sf_clr_is_still(), and it counts when a second one has the same result.
 */
#ifndef SF_RUNTIME_CORECLR_OBJECTS_H
#define SF_RUNTIME_CORECLR_OBJECTS_H

#include "runtime/coreclr/types.h"

/* Whether objects stay where they are at the moment. False also if that cannot be known. */
bool sf_clr_is_still(const struct sf_clr_naming *naming);

/* The MethodTable of an object; 0: there is none, or it cannot be read. */
uint64_t sf_clr_table_of(const struct sf_clr_naming *naming, uint64_t object);

/*
 * The namespace and the name of a type in its metadata, without the types around it; valid until the next module is
 * opened. False: it is no MethodTable, or its type has no fields of its own.
 */
bool sf_clr_type_names(const struct sf_clr_naming *naming, uint64_t table, const char **space_ret, const char **name_ret);

/* Whether this is the MethodTable of a type that has fields of its own and this name. */
bool sf_clr_is_type(const struct sf_clr_naming *naming, uint64_t table, const char *space, const char *name);

/*
 * The MethodTable of the type that this one is derived from; 0: there is none. Chains of more than SF_CLR_MAX_BASES are
 * none.
 */
#define SF_CLR_MAX_BASES 32u
uint64_t sf_clr_base_type(const struct sf_clr_naming *naming, uint64_t table);

/* Where an object of this type, or of one derived from it, has a field. False: there is none of this name. */
bool sf_clr_find_field(const struct sf_clr_naming *naming, uint64_t table, const char *name, uint32_t *offset_ret);

/* The text of a String; false: it is none, or it is empty. */
bool sf_clr_read_string(const struct sf_clr_naming *naming, uint64_t string, char *ret, size_t size);

#endif

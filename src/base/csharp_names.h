/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C#'s words for types, and the names that its compiler makes (Roslyn: GeneratedNames, GeneratedNameKind): "<Original>", a
 * letter for the kind, and a suffix. The original may be such a name itself.
 */
#ifndef SF_BASE_CSHARP_NAMES_H
#define SF_BASE_CSHARP_NAMES_H

#include <stdbool.h>

#include "base/text.h"

/*
 * Adds the name of a method or of a type parameter: of a lambda "Original.lambda#2", of a local
 * function "Original.Local"; others as they are.
 */
void sf_csharp_put_method(struct sf_text *text, struct sf_piece name);

/* Adds a readable name for a type whose name the compiler made, where there is one: of an anonymous type, and of a type
 * of one file. `name` is without "`2". False: there is none. */
bool sf_csharp_put_type(struct sf_text *text, struct sf_piece name);

/* Whether the type is the state machine of an iterator or of an asynchronous method, and the name
 * of that method. */
bool sf_csharp_is_state_machine(struct sf_piece type, struct sf_piece *original_ret);

/*
 * Adds "Size.get" for the accessor "get_Size" of a property, and "Changed.add" of an event; behind the name of an interface,
 * too. False: the name is none of an accessor.
 */
bool sf_csharp_put_accessor(struct sf_text *text, struct sf_piece name);

/* The keyword for a type of the namespace System, without arguments; NULL: it has none. */
const char *sf_csharp_keyword(struct sf_piece name);

#endif

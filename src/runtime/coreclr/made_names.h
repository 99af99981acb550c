/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that the C# compiler makes (Roslyn: GeneratedNames, GeneratedNameKind): "<Original>", a
 * letter for the kind, and a suffix. The original may be such a name itself.
 */
#ifndef SF_RUNTIME_CORECLR_MADE_NAMES_H
#define SF_RUNTIME_CORECLR_MADE_NAMES_H

#include <stdbool.h>

#include "runtime/coreclr/text.h"

/* A part of a text. */
struct sf_clr_piece {
	const char *at;
	size_t n;
};

/*
 * Adds the name of a method or of a type parameter: of a lambda "Original.lambda#2", of a local
 * function "Original.Local"; others as they are.
 */
void sf_clr_put_made_method(struct sf_clr_text *text, struct sf_clr_piece name);

/* Adds a readable name for a type that the compiler made, where there is one: an anonymous type.
 * False: there is none. */
bool sf_clr_put_made_type(struct sf_clr_text *text, const char *name);

/* Whether the type is the state machine of an iterator or of an asynchronous method, and the name
 * of that method. */
bool sf_clr_is_state_machine(const char *type, struct sf_clr_piece *original_ret);

#endif

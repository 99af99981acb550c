/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code by ILC, the compiler of .NET's NativeAOT, as C# has them. For src/symbols only.
 *
 * ILC makes a linkage name of assembly, namespaces, types and method, in which each character that C has not is an underscore
 * (NativeAotNameMangler.cs). Parameters are not in it. So the way back is a supposition where an identifier has an
 * underscore of its own: Lib.My_Type.Run comes out as Lib.My.Type.Run.
 */
#ifndef SF_SYMBOLS_ILC_NAMES_H
#define SF_SYMBOLS_ILC_NAMES_H

#include <stdio.h>

/*
 * The C# name, from malloc; a copy of `name` if it is none of a method. `program`: the name of its file, which is that of its
 * assembly; or "". NULL: no memory.
 */
char *sf_ilc_name(const char *name, const char *program);

/* Writes the C# name of a type. */
void sf_ilc_put_type(FILE *out, const char *name, const char *program);

#endif

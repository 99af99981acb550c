/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The methods of a program by ILC, by the addresses of their code: with them a stripped program has names. The runtime reads
 * the same tables when it prints an exception (.NET's StackTraceMetadata.cs). For src/symbols only.
 *
 * Not there: what the compiler made beside methods (thunks of delegates, stubs that unbox), and all methods of a
 * program that was compiled without StackTraceSupport, but those that reflection finds.
 */
#ifndef SF_SYMBOLS_ILC_METHODS_H
#define SF_SYMBOLS_ILC_METHODS_H

#include "base/vec.h"
#include "symbols/ilc_method_names.h"

/* Code of a method that has unwind information of its own: a handler of exceptions. */
struct sf_ilc_funclet {
	uint64_t start, method;      /* addresses: its own, and of the method's code */
};

struct sf_ilc_methods {
	struct sf_ilc_module module;
	struct sf_ilc_metadata metadata;
	SF_VEC(struct sf_ilc_method) items; /* by start, each once */
	SF_VEC(struct sf_ilc_funclet) funclets; /* by start */
};

/* Reads the tables; there are no methods where they have a mistake. Valid until `elf` is closed. False: no memory. */
bool sf_ilc_methods_read(struct sf_elf *elf, struct sf_ilc_methods *ret);
void sf_ilc_methods_deinit(struct sf_ilc_methods *methods); /* of zeroed ones too */

/* The method whose code, or a funclet of it, begins at `start`; NULL: it is not known. */
const struct sf_ilc_method *sf_ilc_methods_find(const struct sf_ilc_methods *methods, uint64_t start);

/* For sf_ilc_methods_read: adds the methods that reflection finds (ilc_invoke_map.c). False: no memory. */
bool sf_ilc_methods_add_invoked(struct sf_ilc_methods *methods);

#endif

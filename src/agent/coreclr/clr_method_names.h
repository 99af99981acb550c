/* SPDX-License-Identifier: Apache-2.0 */
/* The names of methods as the runtime's metadata functions have them. */
#ifndef SF_AGENT_CLR_METHOD_NAMES_H
#define SF_AGENT_CLR_METHOD_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/coreclr/clr_info.h"

#define SF_CLR_METHOD_NAME 1024

/* Both end with a zero, and are cut where they do not fit. Characters beyond ASCII are '?'. */
struct sf_clr_method_names {
	char type[SF_CLR_METHOD_NAME];   /* "Namespace.Outer.Inner", without the numbers of type arguments ("`1") */
	char method[SF_CLR_METHOD_NAME];
};

/* False: the method has no metadata, as dynamic ones have none. Where the runtime may be called (clr_info.h). */
bool sf_clr_read_method_names(struct sf_clr_info *info, uint64_t function, struct sf_clr_method_names *ret);

#endif

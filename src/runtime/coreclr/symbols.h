/* SPDX-License-Identifier: Apache-2.0 */
/* The symbols by which a file shows that it has CoreCLR in it. */
#ifndef SF_RUNTIME_CORECLR_SYMBOLS_H
#define SF_RUNTIME_CORECLR_SYMBOLS_H

#include <stdint.h>

#include "base/error.h"

struct sf_clr_symbols {
	uint64_t descriptor;     /* DotNetRuntimeContractDescriptor; 0: none (.NET 8) */
	uint64_t dac_table;      /* g_dacTable; 0: none */
	uint64_t aot_header;     /* DotNetRuntimeDebugHeader, of a NativeAOT program; 0: none */
	char version[64];        /* that the file says it has, such as "10.0.1226.42308"; "": unknown */
};

/* False: the file cannot be read. The addresses are those in the file. */
bool sf_clr_find_symbols(int fd, struct sf_clr_symbols *ret, struct sf_error *err);

#endif

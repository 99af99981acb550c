/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names from a perf map: the file /tmp/perf-PID.map, to which a runtime writes the code that it makes. A line is a
 * function: its first address and its size in hexadecimal digits, and its name (tools/perf/Documentation/jit-interface.txt
 * of Linux). Code takes the place of code that is freed, so of two lines with an address the later one counts.
 */
#ifndef SF_SYMBOLS_PERF_MAP_H
#define SF_SYMBOLS_PERF_MAP_H

#include "symbols/symbols.h"

/*
 * Names `n` addresses by the text of a perf map, hostile input that nothing ends. Calls `fn` as sf_symbols_resolve does.
 * False: no memory.
 */
bool sf_perf_map_find(const char *text, size_t size, const uint64_t *addresses, size_t n, sf_location_fn *fn, void *arg);

/* The same with the file behind `fd`. A file that is cut meanwhile ends the process (symbols/lookup.h). */
bool sf_perf_map_resolve(int fd, const uint64_t *addresses, size_t n, sf_location_fn *fn, void *arg);

#endif

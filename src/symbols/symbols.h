/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for addresses of an image: functions, the calls that were inlined at the address, files and
 * lines. The data is read with elfutils; names are demangled by libiberty (C++ and Rust).
 *
 * Sources, best first:
 *   1. DWARF in the file
 *   2. DWARF in its separate debug file: by build id under /usr/lib/debug/.build-id, by .gnu_debuglink
 *      beside the file, in .debug and under /usr/lib/debug; also .gnu_debugaltlink
 *   3. ELF .symtab, the one in .gnu_debugdata, .dynsym
 *   4. of programs by .NET's NativeAOT: the tables that they have for their runtime (symbols/ilc_methods.h)
 *   5. of programs by Go that are stripped: the tables that they have for their runtime (elf/go_tables.h)
 *
 * A stub that calls another module is named after the called function (memcpy@plt). If nothing names a function, its
 * call frame information still contains its start, or calls, jumps and padding show it (symbols/code_starts.h). Its name is
 * then this address in the image, "0x5fcff0 in python3.11", the same for all its addresses. All sources are hostile input.
 *
 * These functions have no useful limit of work and memory. Files are mapped, so that a file that is
 * truncated ends the process. symbols/lookup.h does the same in a separate process.
 */
#ifndef SF_SYMBOLS_SYMBOLS_H
#define SF_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/location.h"

struct sf_symbols; /* the sources of one image */

/*
 * Receives the locations (base/location.h) at addresses[index], innermost first; at least one, n >= 1, unless
 * nothing at all is known of the address: then it is not called. Valid during the call.
 */
typedef void sf_location_fn(size_t index, const struct sf_location *locations, size_t n,
			    void *arg);

/*
 * Opens the sources for the ELF file behind `fd` (dup-ed; the caller keeps its own). `path`: where
 * the file is or was as seen from here, for finding debug links; may be NULL. Without `debug_data` no
 * DWARF is read: for when that takes too much. A file without symbols is no error. Not signal-safe; one
 * thread at a time per sf_symbols.
 */
bool sf_symbols_open(int fd, const char *path, bool debug_data, struct sf_symbols **ret,
		     struct sf_error *err);
void sf_symbols_close(struct sf_symbols *symbols); /* takes NULL */

/*
 * Resolves `n` addresses (unrelocated, as in the file; for a return address pass pc - 1), in any
 * order, duplicates allowed. Grouped by compilation unit, so that each is read once: 10,000
 * addresses in 100 MB of debug data take seconds. Calls `fn` once for each address of which
 * something is known.
 */
bool sf_symbols_resolve(struct sf_symbols *symbols, const uint64_t *addresses, size_t n,
			sf_location_fn *fn, void *arg, struct sf_error *err);

/*
 * A digest of all that answers come from (sources.h), for keeping them. False: there is none. An answer may depend on
 * more: on other files, or on the other addresses of the same call. In the sf_location_fn sf_symbols_depends_on_more()
 * says so.
 */
bool sf_symbols_digest(const struct sf_symbols *symbols, uint8_t ret[SF_DIGEST_SIZE]);
bool sf_symbols_depends_on_more(const struct sf_symbols *symbols);

/*
 * A C++ or Rust name made readable, from malloc; a copy of `name` if it is neither. NULL: no
 * memory.
 */
char *sf_demangle(const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of .NET: in the memory of a process, and in messages. */
#ifndef SF_RUNTIME_CORECLR_UTF16_H
#define SF_RUNTIME_CORECLR_UTF16_H

#include <stddef.h>
#include <stdint.h>

#include "frozen/reader.h"

/*
 * A text of at most `n_units` units, which ends at a zero, as UTF-8. The text is cut where the room ends, or where it
 * cannot be read. Half of a pair of surrogates becomes U+FFFD.
 */
void sf_clr_read_utf16(const struct sf_reader *memory, uint64_t at, unsigned n_units, char *ret, size_t size);

/* A text as UTF-16 with a zero behind: the number of units with that zero; 0: it is not UTF-8, or does not fit. */
size_t sf_clr_write_utf16(const char *text, uint16_t *ret, size_t n_units);

#endif

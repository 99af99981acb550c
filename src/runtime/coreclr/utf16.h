/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of .NET in the memory of a process. */
#ifndef SF_RUNTIME_CORECLR_UTF16_H
#define SF_RUNTIME_CORECLR_UTF16_H

#include "frozen/reader.h"

/* A text of at most `n_units` units, which ends at a zero, as UTF-8. What does not fit, or cannot be read, is cut. */
void sf_clr_read_utf16(const struct sf_reader *memory, uint64_t at, unsigned n_units, char *ret, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Code on x86-64 that throws to a handler's record on the stack (sf_arch.is_in_throw). For arch_x86_64.c. */
#ifndef SF_FROZEN_THROW_X86_64_H
#define SF_FROZEN_THROW_X86_64_H

#include <stdbool.h>
#include <stdint.h>

struct sf_reader;
struct sf_throw;

bool sf_x86_is_in_throw(const struct sf_reader *reader, uint64_t pc, struct sf_throw *ret);

#endif

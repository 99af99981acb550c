/* SPDX-License-Identifier: Apache-2.0 */
/* Code on x86-64 for which its rules do not hold, or do not say enough. For arch_x86_64.c; frozen/arch.h says what these do. */
#ifndef SF_FROZEN_WRONG_RULES_X86_64_H
#define SF_FROZEN_WRONG_RULES_X86_64_H

#include <stdbool.h>
#include <stdint.h>

struct sf_reader;
struct sf_throw;

bool sf_x86_is_in_throw(const struct sf_reader *reader, uint64_t pc, struct sf_throw *ret);
bool sf_x86_is_leaving(const struct sf_reader *reader, uint64_t pc, bool exact);
bool sf_x86_jumps_back(const struct sf_reader *reader, uint64_t pc, bool exact, uint64_t *target_ret);
bool sf_x86_keeps_popped(const struct sf_reader *reader, uint64_t start, uint64_t pc);

#endif

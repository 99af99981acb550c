/* SPDX-License-Identifier: Apache-2.0 */
/* Which way x86-64 code goes on, one way only (sf_arch.is_leaving, jumps_back and keeps_popped). For arch_x86_64.c. */
#ifndef SF_FROZEN_STRAIGHT_X86_64_H
#define SF_FROZEN_STRAIGHT_X86_64_H

#include <stdbool.h>
#include <stdint.h>

struct sf_reader;

bool sf_x86_is_leaving(const struct sf_reader *reader, uint64_t pc, bool exact);
bool sf_x86_jumps_back(const struct sf_reader *reader, uint64_t pc, bool exact, uint64_t *target_ret);
bool sf_x86_keeps_popped(const struct sf_reader *reader, uint64_t start, uint64_t pc);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* How a function is left on x86-64 (sf_arch.find_exit and switches_stack). For arch_x86_64.c. */
#ifndef SF_FROZEN_EXIT_X86_64_H
#define SF_FROZEN_EXIT_X86_64_H

#include <stdbool.h>
#include <stdint.h>

struct sf_exit;
struct sf_reader;

bool sf_x86_find_exit(const struct sf_reader *reader, uint64_t pc, struct sf_exit *ret);
bool sf_x86_switches_stack(const struct sf_reader *reader, uint64_t pc, bool exact, bool *gives_up_ret);

#endif

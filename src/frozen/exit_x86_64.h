/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a function is left on x86-64 (sf_arch.find_exit: exit_x86_64.c), also where its stack is not simply where sp points
 * (find_kept_sp, common_code, switches_stack, find_call and jumps_to: other_sp_x86_64.c). For these and arch_x86_64.c.
 */
#ifndef SF_FROZEN_EXIT_X86_64_H
#define SF_FROZEN_EXIT_X86_64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sf_exit;
struct sf_regs;
struct sf_reader;

#define SF_X86_CHUNK 256 /* bytes */

/* As much as can be read of the code at pc, for code ends somewhere. Returns how many bytes. Signal-safe. */
size_t sf_x86_read_code(const struct sf_reader *reader, uint64_t pc, uint8_t code[SF_X86_CHUNK]);

bool sf_x86_find_exit(const struct sf_reader *reader, uint64_t pc, struct sf_exit *ret);
bool sf_x86_find_kept_sp(const struct sf_reader *reader, uint64_t pc, unsigned *reg_ret, uint64_t *behind_ret);
bool sf_x86_common_code(const struct sf_reader *reader, const struct sf_regs *regs, uint64_t *pc_ret, int32_t *least_ret);
bool sf_x86_switches_stack(const struct sf_reader *reader, uint64_t pc, bool exact, bool *gives_up_ret);
uint64_t sf_x86_find_call(const struct sf_reader *reader, uint64_t start, uint64_t end, uint64_t target, bool or_jumps);
bool sf_x86_jumps_to(const struct sf_reader *reader, uint64_t start, uint64_t target);

#endif

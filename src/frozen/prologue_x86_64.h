/* SPDX-License-Identifier: Apache-2.0 */
/* Prologues of functions that keep a frame pointer, on x86-64. */
#ifndef SF_FROZEN_PROLOGUE_X86_64_H
#define SF_FROZEN_PROLOGUE_X86_64_H

#include "frozen/arch.h"

/* `prologue` of struct sf_arch. Signal-safe. */
bool sf_x86_prologue(const struct sf_reader *reader, uint64_t pushed, uint64_t framed, uint64_t pc, struct sf_prologue *ret);

#endif

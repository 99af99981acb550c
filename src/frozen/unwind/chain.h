/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a walk from the system stack of a thread of Go to its goroutine, of whose stack there is no copy: by the chain, which is
 * what the kernel found in user mode by the frame pointers when the sample was taken (sf_still.chain). step_switch.c finds where a
 * stack was left, step_chain.c follows the chain. All of it is signal-safe.
 */
#ifndef SF_FROZEN_UNWIND_CHAIN_H
#define SF_FROZEN_UNWIND_CHAIN_H

#include "frozen/unwind/walk.h"

/*
 * From a function that calls on another stack, whose caller's record is at `fp`, or is that of the caller's caller. FAILED: what called
 * is not proven.
 */
enum sf_step sf_chain_cross(struct sf_cursor *cursor, const struct sf_region *region, uint64_t fp);

/* From a function whose own record could not be read, for the reason *why. */
enum sf_step sf_chain_follow(struct sf_cursor *cursor, enum sf_end *why);

/* Whether that is the return address that every goroutine's first function has, a byte behind the start of Go's goexit. */
bool sf_is_goexit(const struct sf_still *still, uint64_t pc);

/* Where the function stands to which the word at `at` is the return address, if it is one. *target_ret: of the call, 0 of an indirect one. */
bool sf_go_stand_behind_call(const struct sf_cursor *cursor, uint64_t at, uint64_t fp, uint64_t *target_ret, struct sf_cursor *ret);

/* Steps by the rules. Whether that comes to the record at `fp`. */
bool sf_go_steps_to_record(struct sf_cursor *cursor, uint64_t fp);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explicit frames: the records that CoreCLR keeps on a thread's stack where managed code calls native code, linked from the
 * Thread object (src/coreclr/vm/frames.h in dotnet/runtime). Each leads to the managed caller. Here they are
 * the second way: where native code cannot be unwound.
 */
#ifndef SF_FROZEN_CORECLR_FRAMES_H
#define SF_FROZEN_CORECLR_FRAMES_H

#include "frozen/coreclr/coreclr.h"
#include "frozen/unwind/walk.h"

/*
 * Moves the cursor to the managed caller that the first explicit frame above `above` leads to. `thread`: the Thread object.
 * False: there is none, and the cursor is as it was. Signal-safe.
 */
bool sf_clr_resume(const struct sf_coreclr *coreclr, struct sf_cursor *cursor, uint64_t thread,
		   uint64_t above);

/*
 * A suspension may replace a return address on the thread's stack, and the Thread object keeps the last one that was
 * replaced. That one, if it was at `slot`; false: it was elsewhere. *present_ret: it is still replaced. Signal-safe.
 */
bool sf_clr_hijacked_return(const struct sf_coreclr *coreclr, const struct sf_reader *memory,
			    uint64_t thread, uint64_t slot, bool *present_ret, uint64_t *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Work before and after what a target of the signal engine does to itself: both must have samples. */
#ifndef SF_TESTS_IN_SPINS_H
#define SF_TESTS_IN_SPINS_H

#include "in_program.h"

static NOINLINE void spin_before(int64_t ns)
{
	burn_ns(ns);
	NO_TAIL_CALL();
}

static NOINLINE void spin_after(int64_t ns)
{
	KEEP(1); /* else the compiler finds two functions with the same body, and keeps one */
	burn_ns(ns);
	NO_TAIL_CALL();
}

#endif

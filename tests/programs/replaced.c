/* SPDX-License-Identifier: Apache-2.0 */
/* A library of which replaced_code has two, that differ by the name of one function. */
#include "in_program.h"

__attribute__((visibility("default"))) void WORK(int64_t ns);

void WORK(int64_t ns)
{
	burn_ns(ns);
	NO_TAIL_CALL();
}

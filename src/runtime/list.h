/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtimes that stillframe can walk: the one list of them. To add one: add a line here, its folders in
 * src/frozen and src/runtime, their files in the build files, and its test.
 */
#ifndef SF_RUNTIME_LIST_H
#define SF_RUNTIME_LIST_H

#include "frozen/runtime.h"

/* For tests only: -Dtest_runtime=true. */
#ifdef SF_TEST_RUNTIME
#define SF_TEST_RUNTIMES(X) X(TOY, sf_toy_driver, sf_agent_no_part)
#else
#define SF_TEST_RUNTIMES(X)
#endif

/*
 * X(NAME, driver, agent's part): a struct sf_runtime_driver (runtime.h), and a struct sf_agent_runtime
 * (agent/runtimes.h; sf_agent_no_part: none). At the foot: the slots are in no file, but tests name them.
 */
#define SF_RUNTIMES(X)                                                                             \
	X(HOTSPOT, sf_hotspot_driver, sf_agent_java)                                               \
	X(CORECLR, sf_coreclr_driver, sf_agent_no_part)                                            \
	SF_TEST_RUNTIMES(X)

/* The slot of each runtime: sf_runtime.slot. */
enum sf_runtime_slot {
#define X(name, driver, agent) SF_RUNTIME_##name,
	SF_RUNTIMES(X)
#undef X
	SF_N_RUNTIMES
};

_Static_assert(SF_N_RUNTIMES <= SF_MAX_RUNTIMES, "a process may have all of them");

#endif

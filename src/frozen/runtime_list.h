/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtimes that stillframe can walk: the one list of them. To add one: add a line here, its folders in
 * src/frozen and src/runtime, their files in the build files, and its test. The words of a runtime for users are in
 * its words.h, and have general names at the foot.
 */
#ifndef SF_FROZEN_RUNTIME_LIST_H
#define SF_FROZEN_RUNTIME_LIST_H

#include "frozen/coreclr/words.h"
#include "frozen/hotspot/words.h"

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
	X(CORECLR, sf_coreclr_driver, sf_agent_coreclr)                                            \
	SF_TEST_RUNTIMES(X)

/* The slot of each runtime: sf_runtime.slot. */
enum sf_runtime_slot {
#define X(name, driver, agent) SF_RUNTIME_##name,
	SF_RUNTIMES(X)
#undef X
	SF_N_RUNTIMES
};

/* Kinds of frames (unwind/walk.h) and ends of walks (ends.h) that only some runtimes have. */
#define SF_RUNTIME_KINDS(X) SF_HOTSPOT_KINDS(X)
#define SF_LATER_RUNTIME_KINDS(X) SF_CORECLR_KINDS(X)
#define SF_RUNTIME_ENDS(X) SF_HOTSPOT_ENDS(X)
/* Causes of losses that only walks by a runtime's own function have. */
#define SF_RUNTIME_LOSSES(X) SF_CORECLR_LOSSES(X)

/* The word for functions of managed code. */
#define SF_MANAGED_WORD SF_HOTSPOT_MANAGED_WORD

/* The option of views that separates managed functions by kind. */
#define SF_KINDS_OPTION SF_HOTSPOT_KINDS_OPTION
#define SF_KINDS_HELP SF_HOTSPOT_KINDS_HELP
#define SF_KINDS_DUMP_HELP SF_HOTSPOT_KINDS_DUMP_HELP

/* Where inlined calls may be missing: how to start the program so that they are not. */
#define SF_MANAGED_TIME SF_HOTSPOT_MANAGED_TIME
#define SF_EXACT_HINT SF_HOTSPOT_EXACT_HINT
#define SF_EXACT_PAGE_HINT SF_HOTSPOT_EXACT_PAGE_HINT

/*
 * The words for --engine by which a user asks for a recording from inside of one runtime, and of nothing else; X(word).
 * The runtime's driver has the same word (runtime.h). SF_INSIDE_HELP has a text for each.
 */
#define SF_INSIDE_WORDS(X) X(SF_CORECLR_INSIDE)
#define SF_INSIDE_HELP SF_CORECLR_INSIDE_HELP

/*
 * The options for walks by a runtime's own function for stacks, of `record` and of the agent: one for each runtime that
 * has such a function. X(NAME, option, the word for our walk, the word for the runtime's, help of `record`, help of the
 * agent, why the runtime's needs --walk=handler, the word for walks by what hooks have noted, the word for these and
 * ours). The why is NULL for a runtime that walks its threads in rounds (agent/sampler/sampler.h). The last two are
 * NULL for a runtime without hooks. The third choice of each option is "both". The default is our walk.
 */
#define SF_RUNTIME_WALKS(X) SF_HOTSPOT_WALKS(X) SF_CORECLR_WALKS(X)

/*
 * The environment in which a runtime loads the agent at its start, for a command that needs the runtime's functions.
 * X(what the text begins with, whether the path of the agent's library comes then, what the text ends with).
 * SF_LAUNCH_LOADS_TAKEN: the variables of which one is set where the runtime loads other libraries so.
 * SF_LAUNCH_LOADS_CUT: characters at which such a path would be cut.
 */
#define SF_LAUNCH_LOADS(X) SF_CORECLR_LOADS(X)
#define SF_LAUNCH_LOADS_TAKEN SF_CORECLR_LOADS_TAKEN
#define SF_LAUNCH_LOADS_CUT SF_CORECLR_LOADS_CUT
/* The same for a command with hooks, which the runtime takes from its main profiler only. */
#define SF_LAUNCH_MAIN_LOADS(X) SF_CORECLR_MAIN_LOADS(X)
#define SF_LAUNCH_MAIN_LOADS_TAKEN SF_CORECLR_MAIN_LOADS_TAKEN

/* The option that names the methods with hooks, and sentences about hooks. */
#define SF_HOOKS_ONLY SF_CORECLR_HOOKS_ONLY
#define SF_HOOKS_ONLY_HELP SF_CORECLR_HOOKS_ONLY_HELP
#define SF_HOOKS_ONLY_AGENT_HELP SF_CORECLR_HOOKS_ONLY_AGENT_HELP
#define SF_HOOKS_WARNING SF_CORECLR_HOOKS_WARNING
#define SF_HOOKS_LATE SF_CORECLR_HOOKS_LATE
#define SF_HOOKS_TAKEN SF_CORECLR_HOOKS_TAKEN

/* The option for complete records of inlined calls (runtime.h, complete()), and its opposite: "no-" and this. */
#define SF_COMPLETE SF_HOTSPOT_COMPLETE
#define SF_COMPLETE_HELP SF_HOTSPOT_COMPLETE_HELP
#define SF_NOT_COMPLETE "no-" SF_COMPLETE
#define SF_NOT_COMPLETE_HELP SF_HOTSPOT_NOT_COMPLETE_HELP
#define SF_NOT_COMPLETE_AGENT_HELP SF_HOTSPOT_NOT_COMPLETE_AGENT_HELP

/* The option for a variable in the environment of the command, by which a runtime records inlined calls. */
#define SF_LAUNCH_INLINED SF_CORECLR_INLINED_OPTION
#define SF_LAUNCH_INLINED_VARIABLE SF_CORECLR_INLINED_VARIABLE
#define SF_LAUNCH_INLINED_HELP SF_CORECLR_INLINED_HELP

/* The names of the events of all runtimes, for --event (runtime/events.h). */
#define SF_RUNTIME_EVENT_NAMES SF_CORECLR_EVENT_NAMES

/* The option for the awaiters of asynchronous functions (runtime.h). */
#define SF_AWAITERS SF_CORECLR_AWAITERS_OPTION
#define SF_AWAITERS_HELP SF_CORECLR_AWAITERS_HELP

/* Of an agent that a runtime loads: which signal it takes, and the messages for the user. */
#define SF_LOADED_SIGNAL_HELP "loaded by a Java virtual machine or by .NET, a real-time one first"
#define SF_LOADED_NOTE "the agent was loaded into the program by its runtime, and stays in it, quiet, until the program ends"

#endif

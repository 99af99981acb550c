/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of .NET's runtime for users, as other folders print them: the kinds of its frames, and an option. Other files get them by the list of
 * runtimes (frozen/runtime_list.h).
 */
#ifndef SF_FROZEN_CORECLR_WORDS_H
#define SF_FROZEN_CORECLR_WORDS_H

/* X(NAME, word, text). Stored in recordings by their place in SF_KINDS (frozen/unwind/walk.h). */
#define SF_CORECLR_KINDS(X)                                                                        \
	X(JITTED, "jitted", "managed code, compiled while the program ran")                        \
	X(TIER_0, "tier0", "managed code, compiled quickly")                                       \
	X(TIER_0_COUNTING, "tier0-counting", "managed code, compiled quickly, with counters")      \
	X(TIER_1_COUNTING, "tier1-counting", "managed code, optimised, with counters")             \
	X(OSR, "osr", "managed code, optimised, entered in the middle of a loop")                  \
	X(TIER_1, "tier1", "managed code, optimised after it ran often")                           \
	X(OPTIMIZED, "optimized", "managed code, optimised at once")                               \
	X(PRECOMPILED, "precompiled", "managed code, compiled before the program ran")             \
	X(LATER_MANAGED, "dotnet", "managed code: a function, whose frames may be of several kinds") \
	X(AWAITING, "awaiting", "an asynchronous function that awaits its callee, and is on no thread's stack")

/* DOTNET_RichDebugInfo: src/coreclr/inc/clrconfigvalues.h in the runtime's sources. */
#define SF_CORECLR_INLINED_OPTION "dotnet-inlined"
#define SF_CORECLR_INLINED_VARIABLE "DOTNET_RichDebugInfo=1"
#define SF_CORECLR_INLINED_HELP                                                                    \
	"of a .NET program in the command: have the runtime record which methods it inlines, so that they are frames of " \
	"their own"

#define SF_CORECLR_AWAITERS_OPTION "async"
#define SF_CORECLR_AWAITERS_HELP                                                                   \
	"async methods of .NET have as callers the methods that await them, marked as not being on the stack"

#endif

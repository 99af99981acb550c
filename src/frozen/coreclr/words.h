/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of .NET's runtime for users, as other folders print them: the kinds of its frames, and an option. Other
 * files get them by the list of runtimes (frozen/runtime_list.h).
 */
#ifndef SF_FROZEN_CORECLR_WORDS_H
#define SF_FROZEN_CORECLR_WORDS_H

/* X(NAME, word, text). Stored in recordings by their place in SF_KINDS (frozen/trace.h). */
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

/* As SF_INSIDE_WORDS in frozen/runtime_list.h. */
#define SF_CORECLR_INSIDE "coreclr"
#define SF_CORECLR_INSIDE_HELP SF_CORECLR_INSIDE ": as signal, of .NET only, whose runtime loads the agent as a profiler"
#define SF_CORECLR_RUNTIME "the runtime of .NET"

/* As SF_RUNTIME_WALKS in frozen/runtime_list.h. */
#define SF_CORECLR_WALKS(X)                                                                        \
	X(CORECLR, "dotnet-walk", "own", "snapshot", SF_CORECLR_WALK_HELP, SF_CORECLR_WALK_AGENT_HELP, NULL, \
	  "shadow", "shadow-both")
#define SF_CORECLR_WALK_HELP                                                                       \
	"own: stillframe walks .NET itself; snapshot: the runtime does, by DoStackSnapshot, and is suspended meanwhile; " \
	"both: each sample twice, to compare; shadow: by hooks that the runtime calls where each method of a command is entered and " \
	"left, which is expensive; shadow-both: each sample twice, to compare (default own)"
#define SF_CORECLR_WALK_AGENT_HELP                                                                 \
	"own (default): by stillframe itself; snapshot: by the runtime's DoStackSnapshot, while the runtime is suspended; " \
	"both: each sample twice, to compare; shadow: by hooks that the runtime calls where methods are entered and left; " \
	"shadow-both: each sample twice, to compare."
#define SF_CORECLR_HOOKS_ONLY "shadow-only"
#define SF_CORECLR_HOOKS_ONLY_HELP                                                                 \
	"of --dotnet-walk shadow: hooks only in methods whose name, such as Namespace.Type.Method, matches (POSIX extended)"
#define SF_CORECLR_HOOKS_ONLY_AGENT_HELP                                                           \
	"With dotnet-walk=shadow: hooks only in methods whose name, such as Namespace.Type.Method, matches (default: all)."
/* Printed before such a recording starts. */
#define SF_CORECLR_HOOKS_WARNING                                                                   \
	"the program will be slower: the .NET runtime calls a hook of stillframe at each entry and exit of a method, and " \
	"inlines none. Short methods that call each other take ten times as long"
#define SF_CORECLR_HOOKS_LATE                                                                      \
	"hooks are set by the profiler with which a .NET runtime starts, and this process runs"
#define SF_CORECLR_HOOKS_TAKEN                                                                     \
	"hooks belong to the profiler with which a .NET runtime starts, and the environment has one for the command already"

/*
 * As SF_LAUNCH_LOADS in frozen/runtime_list.h. The list is of profilers that only take notifications, so the variables
 * of the main profiler are left to another one. It goes before CORECLR_NOTIFICATION_PROFILERS (CoreCLR:
 * inc/clrconfignames.h, vm/profilinghelper.cpp). The semicolon ends an item: .NET 9 and 10 pass over an item without
 * one (dotnet/runtime, issue 126197).
 */
#define SF_CORECLR_LOADS(X)                                                                        \
	X("CORECLR_ENABLE_NOTIFICATION_PROFILERS=", false, "1")                                    \
	X("CORECLR_NOTIFICATION_PROFILERS_64=", true, "={6f1c2a54-3b7e-4d0f-9a8b-5e2d7c41f0a3};")
#define SF_CORECLR_LOADS_TAKEN { "CORECLR_NOTIFICATION_PROFILERS", "CORECLR_NOTIFICATION_PROFILERS_64" }
#define SF_CORECLR_LOADS_CUT "=;"
/* As SF_LAUNCH_MAIN_LOADS there. The last variable goes before CORECLR_PROFILER_PATH. */
#define SF_CORECLR_MAIN_LOADS(X)                                                                   \
	X("CORECLR_ENABLE_PROFILING=", false, "1")                                                 \
	X("CORECLR_PROFILER=", false, "{6f1c2a54-3b7e-4d0f-9a8b-5e2d7c41f0a3}")                     \
	X("CORECLR_PROFILER_PATH_64=", true, "")
#define SF_CORECLR_MAIN_LOADS_TAKEN { "CORECLR_ENABLE_PROFILING" }

/* As SF_LOSSES in frozen/ends.h: the results of the walking calls. agent/coreclr/clr_walked.c has their numbers. */
#define SF_CORECLR_LOSSES(X)                                                                       \
	X(CLR_SUSPENDED, "clr-suspension-in-progress", ".NET: the runtime was being suspended, as for a collection") \
	X(CLR_UNINITIALIZED, "clr-runtime-uninitialized", ".NET: the runtime had not started yet")  \
	X(CLR_DETACHING, "clr-profiler-detaching", ".NET: the profiler was being detached")         \
	X(CLR_NOT_YET, "clr-not-yet-available", ".NET: the runtime had no collector yet")           \
	X(CLR_TARGET, "clr-stacksnapshot-invalid-tgt-thread", ".NET: the runtime refused to walk this thread") \
	X(CLR_UNMANAGED, "clr-stacksnapshot-unmanaged-ctx", ".NET: the thread stood where the runtime's walk cannot begin") \
	X(CLR_UNSAFE, "clr-stacksnapshot-unsafe", ".NET: the thread's stack could not be walked at this moment") \
	X(CLR_ABORTED, "clr-stacksnapshot-aborted", ".NET: the runtime's walk was broken off")      \
	X(CLR_SEQUENCE, "clr-unsupported-call-sequence", ".NET: the runtime refused a call on this thread") \
	X(CLR_ASYNCHRONOUS, "clr-asynchronous-unsafe", ".NET: the runtime's map of its code was being changed") \
	X(CLR_FLAGS, "clr-inconsistent-with-flags", ".NET: the profiler lacked the permission for walks") \
	X(CLR_NOT_IMPLEMENTED, "clr-e-notimpl", ".NET: the runtime does not walk this thread now")  \
	X(CLR_FAIL, "clr-e-fail", ".NET: the runtime found no managed frame on the thread's stack")  \
	X(CLR_ARGUMENT, "clr-e-invalidarg", ".NET: the runtime refused the arguments of a walk")    \
	X(CLR_MEMORY, "clr-e-outofmemory", ".NET: the runtime had no memory for a walk")            \
	X(CLR_UNEXPECTED, "clr-e-unexpected", ".NET: the runtime's walk read memory that is not there") \
	X(CLR_NO_FRAMES, "clr-no-frames", ".NET: the runtime's walk succeeded and gave no frame")   \
	X(CLR_OTHER, "clr-other-error", ".NET: the runtime's walk failed with an error that is none of these") \
	X(CLR_NO_ROOM, "clr-no-room", ".NET: more frames than one suspension of the runtime has room for") \
	X(CLR_NO_RETURN, "clr-no-return", ".NET: the runtime had not come back from its suspension when the profile ended") \
	X(CLR_SHADOW_CHANGED, "clr-shadow-changed", ".NET: the thread ran while its shadow stack was read")

/* The names of its events for --event (runtime/coreclr/events.c). */
#define SF_CORECLR_EVENT_ALLOCATION "allocation"
#define SF_CORECLR_EVENT_EXCEPTION "exception"
#define SF_CORECLR_EVENT_CONTENTION "contention"
#define SF_CORECLR_EVENT_GC "gc"
#define SF_CORECLR_EVENT_JIT "jit"
#define SF_CORECLR_EVENT_CLASS_LOAD "class-load"
#define SF_CORECLR_EVENT_NAMES                                                                     \
	SF_CORECLR_EVENT_ALLOCATION ", " SF_CORECLR_EVENT_EXCEPTION ", " SF_CORECLR_EVENT_CONTENTION ", " \
	SF_CORECLR_EVENT_GC ", " SF_CORECLR_EVENT_JIT " and " SF_CORECLR_EVENT_CLASS_LOAD " of .NET"

#define SF_CORECLR_AWAITERS_OPTION "async"
#define SF_CORECLR_AWAITERS_HELP                                                                   \
	"async methods of .NET have as callers the methods that await them, marked as not being on the stack"

#endif

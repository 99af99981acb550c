/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of HotSpot for users, as other folders print them: the kinds of its frames, the ends of its walks, the names and
 * helps of its options, and sentences. Other files get them by the list of runtimes (frozen/runtime_list.h).
 */
#ifndef SF_FROZEN_HOTSPOT_WORDS_H
#define SF_FROZEN_HOTSPOT_WORDS_H

/* X(NAME, word, text). Stored in recordings by their place in SF_KINDS (frozen/trace.h). */
#define SF_HOTSPOT_KINDS(X)                                                                        \
	X(C1, "c1", "managed code, compiled by C1")                                                \
	X(C2, "c2", "managed code, compiled by C2")

/*
 * X(NAME, word, sentence): the results of AsyncGetCallTrace from 0 down to -10, in this order (prims/forte.cpp). Stored in
 * recordings by their place in SF_ENDS (frozen/ends.h).
 */
#define SF_HOTSPOT_ENDS(X)                                                                         \
	X(AGCT_0, "agct-no-java", "AsyncGetCallTrace: the thread is in no Java method")           \
	X(AGCT_1, "agct-no-class-load", "AsyncGetCallTrace: loading of classes was not watched")  \
	X(AGCT_2, "agct-gc", "AsyncGetCallTrace: the garbage collector is at work")               \
	X(AGCT_3, "agct-unknown-native", "AsyncGetCallTrace: native code from which it finds no Java") \
	X(AGCT_4, "agct-native", "AsyncGetCallTrace: native code that it cannot walk")            \
	X(AGCT_5, "agct-unknown-java", "AsyncGetCallTrace: it does not know the Java frame on top") \
	X(AGCT_6, "agct-java", "AsyncGetCallTrace: a Java frame that it cannot walk")             \
	X(AGCT_7, "agct-state", "AsyncGetCallTrace: the thread is between two states")            \
	X(AGCT_8, "agct-exit", "AsyncGetCallTrace: the thread is about to end")                   \
	X(AGCT_9, "agct-deopt", "AsyncGetCallTrace: compiled code is being given up")             \
	X(AGCT_10, "agct-safepoint", "AsyncGetCallTrace: the virtual machine is at a safepoint")

#define SF_HOTSPOT_MANAGED_WORD "java"

/* As SF_RUNTIME_WALKS in frozen/runtime_list.h. */
#define SF_HOTSPOT_WALKS(X)                                                                        \
	X(HOTSPOT, "java-walk", "vmstructs", "agct", SF_HOTSPOT_WALK_HELP, SF_HOTSPOT_WALK_AGENT_HELP, \
	  "AsyncGetCallTrace only walks the thread that calls it", NULL, NULL)
#define SF_HOTSPOT_WALK_HELP                                                                       \
	"vmstructs: stillframe walks Java itself; agct: the virtual machine does, by "                \
	"AsyncGetCallTrace, with --walk handler; both: each sample twice, to compare (default "    \
	"vmstructs)"
#define SF_HOTSPOT_WALK_AGENT_HELP                                                                 \
	"vmstructs (default): by stillframe itself; agct: by the machine's AsyncGetCallTrace, with " \
	"walk=handler; both: each sample twice, to compare."

#define SF_HOTSPOT_KINDS_OPTION "java-kinds"
#define SF_HOTSPOT_KINDS_HELP "tell Java functions apart by how they ran: interpreted, c1, c2, inlined"
#define SF_HOTSPOT_KINDS_DUMP_HELP "say how Java frames ran: interpreted, compiled by c1 or c2, native method"

#define SF_HOTSPOT_COMPLETE "java-debug-info"
#define SF_HOTSPOT_COMPLETE_HELP                                                                   \
	"of a Java virtual machine that is watched from outside, too: have code compiled from now on with " \
	"debug information at each instruction, which the innermost function needs"
#define SF_HOTSPOT_NOT_COMPLETE_HELP                                                               \
	"leave debug information as it is, also of a Java virtual machine that is launched, or has the agent"
#define SF_HOTSPOT_NOT_COMPLETE_AGENT_HELP                                                         \
	"A Java virtual machine's compilers describe calls and safepoints only, as without the agent."

#define SF_HOTSPOT_EXACT_FLAGS "-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints"
#define SF_HOTSPOT_MANAGED_TIME "Java's"
#define SF_HOTSPOT_EXACT_HINT                                                                      \
	"What helps: record --" SF_HOTSPOT_COMPLETE ", for code that is compiled from then on; Java launched by " \
	"stillframe, or started with " SF_HOTSPOT_EXACT_FLAGS ", for all."
#define SF_HOTSPOT_EXACT_PAGE_HINT                                                                 \
	"with " SF_HOTSPOT_EXACT_FLAGS " at its start, or launched by stillframe, Java says them"

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* How CoreCLR knows the agent as a profiler: what the agent and the client of the diagnostics socket agree on. */
#ifndef SF_RUNTIME_CORECLR_PROFILER_ID_H
#define SF_RUNTIME_CORECLR_PROFILER_ID_H

/* The class id, as it lies in memory and in messages, and as it is written. */
#define SF_CLR_PROFILER_ID                                                                         \
	{ 0x54, 0x2a, 0x1c, 0x6f, 0x7e, 0x3b, 0x0f, 0x4d, 0x9a, 0x8b, 0x5e, 0x2d, 0x7c, 0x41, 0xf0, 0xa3 }
#define SF_CLR_PROFILER_TEXT "{6f1c2a54-3b7e-4d0f-9a8b-5e2d7c41f0a3}"

/* CORPROF_E_PROFILER_CANCEL_ACTIVATION (CoreCLR: inc/corerror.xml): the agent has begun, and is not a profiler. */
#define SF_CLR_PROFILER_DECLINES ((int32_t)0x80131375)
#define SF_CLR_PROFILER_STAYS 0

#endif

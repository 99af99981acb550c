/* SPDX-License-Identifier: Apache-2.0 */
/* HRESULTs of SuspendRuntime, EnumThreads, GetThreadInfo and DoStackSnapshot, each as the cause of a loss of its own. */
#include "agent/coreclr/clr_results.h"

#include <stddef.h>

/* CoreCLR: inc/corerror.xml, vm/proftoeeinterfaceimpl.cpp. To add one: a line here, its cause in frozen/coreclr/words.h. */
static const struct {
	uint32_t result;
	enum sf_loss cause;
} results[] = {
	{ 0x8013135b, SF_LOSS_CLR_NOT_YET },        /* CORPROF_E_NOT_YET_AVAILABLE */
	{ 0x8013135e, SF_LOSS_CLR_TARGET },         /* CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD */
	{ 0x8013135f, SF_LOSS_CLR_UNMANAGED },      /* CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX */
	{ 0x80131360, SF_LOSS_CLR_UNSAFE },         /* CORPROF_E_STACKSNAPSHOT_UNSAFE */
	{ 0x80131361, SF_LOSS_CLR_ABORTED },        /* CORPROF_E_STACKSNAPSHOT_ABORTED */
	{ 0x80131363, SF_LOSS_CLR_SEQUENCE },       /* CORPROF_E_UNSUPPORTED_CALL_SEQUENCE */
	{ 0x80131364, SF_LOSS_CLR_ASYNCHRONOUS },   /* CORPROF_E_ASYNCHRONOUS_UNSAFE */
	{ 0x80131367, SF_LOSS_CLR_DETACHING },      /* CORPROF_E_PROFILER_DETACHING */
	{ 0x80131371, SF_LOSS_CLR_UNINITIALIZED },  /* CORPROF_E_RUNTIME_UNINITIALIZED */
	{ 0x80131374, SF_LOSS_CLR_FLAGS },          /* CORPROF_E_INCONSISTENT_WITH_FLAGS */
	{ 0x80131388, SF_LOSS_CLR_SUSPENDED },      /* CORPROF_E_SUSPENSION_IN_PROGRESS */
	{ 0x80004001, SF_LOSS_CLR_NOT_IMPLEMENTED }, /* E_NOTIMPL */
	{ 0x80004005, SF_LOSS_CLR_FAIL },           /* E_FAIL */
	{ 0x80070057, SF_LOSS_CLR_ARGUMENT },       /* E_INVALIDARG */
	{ 0x8007000e, SF_LOSS_CLR_MEMORY },         /* E_OUTOFMEMORY */
	{ 0x8000ffff, SF_LOSS_CLR_UNEXPECTED },     /* E_UNEXPECTED */
};

enum sf_loss sf_clr_loss(int32_t result)
{
	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++) {
		if (results[i].result == (uint32_t)result)
			return results[i].cause;
	}
	return SF_LOSS_CLR_OTHER;
}

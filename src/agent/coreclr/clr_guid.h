/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of CoreCLR's interfaces that the agent names, as they lie in memory (CoreCLR: inc/corprof.idl, inc/cor.h). */
#ifndef SF_AGENT_CLR_GUID_H
#define SF_AGENT_CLR_GUID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t sf_clr_guid[16];

static const sf_clr_guid sf_clr_unknown_id = { 0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0x46 };
static const sf_clr_guid sf_clr_class_factory = { 1, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0x46 };
/* ICorProfilerInfo12: 27b24ccd-1cb1-47c5-96ee-98190dc30959. */
static const sf_clr_guid sf_clr_info_12 = {
	0xcd, 0x4c, 0xb2, 0x27, 0xb1, 0x1c, 0xc5, 0x47, 0x96, 0xee, 0x98, 0x19, 0x0d, 0xc3, 0x09, 0x59
};

/* IMetaDataImport: 7dac8207-d3ae-4c75-9b67-92801a497d44. */
static const sf_clr_guid sf_clr_metadata_id = {
	0x07, 0x82, 0xac, 0x7d, 0xae, 0xd3, 0x75, 0x4c, 0x9b, 0x67, 0x92, 0x80, 0x1a, 0x49, 0x7d, 0x44
};

static inline bool sf_clr_is_id(const void *asked, const sf_clr_guid known)
{
	return memcmp(asked, known, sizeof(sf_clr_guid)) == 0;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What can be shown of Java in a process: the lines of `stillframe doctor`. */
#ifndef SF_RUNTIME_HOTSPOT_EXAMINE_H
#define SF_RUNTIME_HOTSPOT_EXAMINE_H

#include "runtime/hotspot/finder.h"
#include "runtime/runtime.h"

/* After an attempt to attach. */
void sf_jvm_examine(const struct sf_jvm_finder *finder, struct sf_images *images,
		    const struct sf_runtime_findings *findings);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the lines of `stillframe doctor` that say what can be shown of Java in a process. */
#ifndef SF_RUNTIME_HOTSPOT_EXAMINE_H
#define SF_RUNTIME_HOTSPOT_EXAMINE_H

#include "runtime/hotspot/finder.h"
#include "runtime/runtime.h"

/* After an attempt to attach. */
void sf_jvm_examine(const struct sf_jvm_finder *finder, struct sf_images *images,
		    const struct sf_runtime_findings *findings);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a process by the mappings that an engine has recorded. For the files of this folder. */
#ifndef SF_TARGET_RECORDED_MAPPINGS_H
#define SF_TARGET_RECORDED_MAPPINGS_H

#include "target/process.h"

#define SF_VDSO "[vdso]" /* which the kernel maps into each program (vdso(7)), at an address of its own */

/* The last one of the vDSO. NULL: no mappings of a whole program were recorded. */
const struct sf_recorded_mapping *sf_recorded_vdso(const struct sf_process *process);

#endif

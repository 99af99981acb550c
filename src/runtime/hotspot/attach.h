/* SPDX-License-Identifier: Apache-2.0 */
/* Making the description of a virtual machine in a process. */
#ifndef SF_RUNTIME_HOTSPOT_ATTACH_H
#define SF_RUNTIME_HOTSPOT_ATTACH_H

#include "frozen/hotspot/hotspot.h"
#include "runtime/hotspot/tables.h"

#define SF_HOTSPOT_NOTE 400

/*
 * Reads what a walk needs. `note_ret`: what is missing and what is lost by it, or "". False: it
 * cannot be walked; SF_E_GONE when it has only just started and another try later may do.
 * Ordinary code.
 */
bool sf_hotspot_attach(const struct sf_reader *memory, const struct sf_hotspot_exports *exports,
		       struct sf_hotspot *ret, char note_ret[SF_HOTSPOT_NOTE],
		       struct sf_error *err);

/* From now on, the present code heaps may be read by plain loads: sf_jvm_lend_code (jvm.h). Any thread, one at a time. */
void sf_hotspot_lend_code(struct sf_hotspot *hotspot, const struct sf_reader *memory);

#endif

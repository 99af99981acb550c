/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made Java virtual machine in use: copied, walked, and all that a walk finds described. For fuzz
 * targets and tests of hostile ones: what must hold whatever is in its memory is checked, by abort().
 */
#ifndef FAKE_USE_H
#define FAKE_USE_H

#include "fake_jvm.h"

/* Adds a compiled method, a wrapper, adapters and stubs to one that was just made; the method. */
uint64_t fake_jvm_fill(struct fake_jvm *jvm);

/* *jvm becomes a machine of its own that is as `from`, which was made and not moved. */
void fake_jvm_copy(struct fake_jvm *jvm, const struct fake_jvm *from);

/* Walks its still; describes each frame, `method`, and its threads. It is attached to. */
void fake_jvm_use(struct fake_jvm *jvm, uint64_t method);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trying out what was attached to, on things that are known: tables may be those of a build that
 * was changed, or of a version that means something else by the same name. What fails is given up,
 * which shows less but nothing wrong.
 */
#ifndef SF_RUNTIME_HOTSPOT_SELF_TEST_H
#define SF_RUNTIME_HOTSPOT_SELF_TEST_H

#include <stddef.h>

#include "base/error.h"
#include "frozen/hotspot/hotspot.h"

/*
 * Code: the call stub and the interpreter are in pieces of code. Methods: those of java.lang.Thread
 * are called so, with lines that can be. What fails among them is taken out of `hotspot` and added
 * to `note`. A virtual machine that has no java.lang.Thread yet is not tried. False when no frame
 * can be walked.
 */
bool sf_hotspot_self_test(struct sf_hotspot *hotspot, const struct sf_reader *memory, char *note,
			  size_t size, struct sf_error *err);

/*
 * Threads: those of the list are known to `is_thread`, by the ids that the virtual machine gives.
 * The list may be empty at first.
 */
void sf_hotspot_self_test_threads(struct sf_hotspot *hotspot, const struct sf_reader *memory,
				  bool (*is_thread)(void *arg, int32_t tid), void *arg, char *note,
				  size_t size);

#endif

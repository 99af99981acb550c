/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the tables of a JVM on known objects after an attach. The JVM may be a changed build, or a version
 * in which the same name means something else. Data that fails the test is not used, so that fewer details
 * are shown, but no wrong ones.
 */
#ifndef SF_RUNTIME_HOTSPOT_SELF_TEST_H
#define SF_RUNTIME_HOTSPOT_SELF_TEST_H

#include <stddef.h>

#include "base/error.h"
#include "frozen/hotspot/hotspot.h"

/*
 * Code: the call stub and the interpreter are in pieces of code. Methods: those of java.lang.Thread
 * have the right names and plausible lines. Data that fails is removed from `hotspot` and added to
 * `note`. A virtual machine without java.lang.Thread (it is not loaded yet) is not tested. False when
 * no frame can be walked.
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

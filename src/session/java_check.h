/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be shown of Java in a process, found out without touching it: for `stillframe doctor`.
 */
#ifndef SF_SESSION_JAVA_CHECK_H
#define SF_SESSION_JAVA_CHECK_H

#include "base/error.h"
#include "runtime/hotspot/facts.h"

enum sf_java_kind {
	SF_JAVA_NONE,
	SF_JAVA_HOTSPOT,       /* its frames are shown; the note says what is missing */
	SF_JAVA_STARTING,      /* a HotSpot that has not started yet */
	SF_JAVA_REFUSED,       /* a virtual machine whose frames cannot be shown; the note says
				* why */
	SF_JAVA_NATIVE_IMAGE,  /* compiled by GraalVM: an ordinary program */
};

struct sf_java_check {
	enum sf_java_kind kind;
	char    note[560];
	uint8_t version;       /* of the JDK; of a HotSpot, like the facts */
	struct sf_jvm_facts facts;
};

/* False when the process cannot be looked at. */
bool sf_java_check(int32_t pid, struct sf_java_check *ret, struct sf_error *err);

#endif

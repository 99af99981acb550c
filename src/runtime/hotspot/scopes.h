/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which Java methods an address of compiled code belongs to: the compiler's own debug
 * information.
 */
#ifndef SF_RUNTIME_HOTSPOT_SCOPES_H
#define SF_RUNTIME_HOTSPOT_SCOPES_H

#include "frozen/hotspot/hotspot.h"
#include "frozen/trace.h"
#include "runtime/prefetch.h"

#define SF_JAVA_MAX_INLINED 128

struct sf_java_scope {
	uint64_t method;
	int32_t bci;             /* -1: before the first bytecode, or unknown */
};

struct sf_java_scopes {
	struct sf_java_scope items[SF_JAVA_MAX_INLINED]; /* innermost first */
	unsigned n;
	bool approximate;        /* only what is sure is given */
};

/*
 * The methods at `pc`. A return address has its record, unless the call is one of a leaf routine; where a thread was
 * interrupted usually has none, unless the JVM runs with DebugNonSafepoints. Without a record, what the records around it
 * have in common is given. At least the method itself, unless the blob has none (n is 0).
 */
void sf_java_scopes_find(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			 const struct sf_blob *blob, uint64_t pc, bool exact,
			 struct sf_java_scopes *ret);

/*
 * The piece of code that a compiled frame is in, or a wrapper's. False when it has been thrown away, and something else put
 * there, since the frame was walked: the compile id shows that.
 */
bool sf_java_compiled(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		      const struct sf_frame *frame, struct sf_blob *ret);

/* Reads ahead most of what sf_java_scopes_find will read for these frames of compiled code; nothing for others. */
void sf_java_scopes_expect(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			   const struct sf_prefetch *ahead, const struct sf_frame *const *frames, size_t n);

#endif

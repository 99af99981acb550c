/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Methods as a virtual machine knows them: names, signatures, source files, lines. Hostile input.
 */
#ifndef SF_RUNTIME_HOTSPOT_METADATA_H
#define SF_RUNTIME_HOTSPOT_METADATA_H

#include "frozen/hotspot/hotspot.h"
#include "runtime/prefetch.h"

struct sf_java_method {
	char name[1024];       /* "java.util.HashMap.put(Object, Object)" */
	char linkage[1024];    /* with the descriptor: different for each overload */
	char file[512];        /* "java/util/HashMap.java", or "" */
	uint64_t constant;     /* its ConstMethod: changes when the Method is another one */
};

/* False when it is no Method, or has gone. Missing texts are "". */
bool sf_java_method_read(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			 uint64_t method, struct sf_java_method *ret);

/* The source line of a bytecode, 0 when unknown. `constant`: the ConstMethod. */
uint32_t sf_java_line(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		      uint64_t constant, int32_t bci);

/*
 * Whether the method calls no other one, so that none can be inlined into its code. False also where that is not seen at
 * once: of a long one, and where an operand looks like a call.
 */
bool sf_java_calls_nothing(const struct sf_hotspot *hotspot, const struct sf_reader *memory, uint64_t method);

/* A method that is about to be described. */
struct sf_java_expected {
	uint64_t method, constant; /* constant: found on the way, 0 where it is none */
};

/* Reads ahead what the calls above read of the names and lines of these methods. */
void sf_java_methods_expect(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			    const struct sf_prefetch *ahead, struct sf_java_expected *methods, size_t n);

/* The text of a Symbol, cut to size and terminated; false, and "", when it cannot be one. */
bool sf_java_symbol(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		    uint64_t symbol, char *ret, size_t size);

/* The symbol in slot `index` of a ConstantPool. */
bool sf_java_pool_symbol(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			 uint64_t pool, uint64_t index, char *ret, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the Java virtual machine as people expect them. Text only: nothing of a target is read
 * here.
 */
#ifndef SF_RUNTIME_HOTSPOT_NAMES_H
#define SF_RUNTIME_HOTSPOT_NAMES_H

#include <stddef.h>

/*
 * Takes off what differs from run to run in the names of classes that are made while the program
 * runs: the address behind a hidden class ("Demo$$Lambda+0x00007f39" or "/0x..."), the number of
 * a lambda.
 */
void sf_java_clean_class(char *name);

/*
 * "java.util.HashMap.put(Object, Object)" from "java/util/HashMap", "put" and the descriptor, in
 * which types lose their package; a descriptor that is none is left out. Cut to size.
 */
void sf_java_method_name(const char *class_name, const char *name, const char *descriptor,
			 char *ret, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a Java virtual machine in the calling program, without a JDK at build time. Structs, numbers of versions, and the
 * places of functions in the tables are from the JNI specification ("The Invocation API", "JNI Functions").
 */
#ifndef JAVA_VM_H
#define JAVA_VM_H

#include <dlfcn.h>

#include "program.h"

#define JNI_1_8 0x00010008
enum { FIND_CLASS = 6, STATIC_METHOD_ID = 113, CALL_STATIC_VOID = 143, NEW_STRING = 167, NEW_ARRAY = 172, SET_ELEMENT = 174 };

struct java_option {
	char *text;
	void *extra;
};

struct java_start {
	int32_t version, n_options;
	struct java_option *options;
	unsigned char ignore_unknown;
};

/* A pointer to it is a JNIEnv: the functions by their index. */
typedef void *const *java_env;

typedef int java_create(void **vm, java_env **env, struct java_start *start);
typedef void *java_text(java_env *env, const char *text);
typedef void *java_method(java_env *env, void *class, const char *name, const char *type);
typedef void *java_array(java_env *env, int32_t n, void *class, void *first);
typedef void java_set(java_env *env, void *array, int32_t at, void *value);
typedef void java_call(java_env *env, void *class, void *method, const uint64_t *arguments);

/* Runs main(arguments) of a class: words[0] is the path of libjvm.so, then that of the classes, the class, its arguments. */
static inline void run_java(int n_words, char **words)
{
	void *library = n_words >= 3 ? dlopen(words[0], RTLD_NOW | RTLD_GLOBAL) : NULL;
	java_create *create = library ? (java_create *)dlsym(library, "JNI_CreateJavaVM") : NULL;
	char path[4096];
	struct java_option option = { path, NULL };
	struct java_start start = { JNI_1_8, 1, &option, 0 };
	void *vm, *class, *method, *array;
	java_env *env;

	snprintf(path, sizeof(path), "-Djava.class.path=%s", n_words >= 3 ? words[1] : "");
	if (!create || create(&vm, &env, &start) != 0)
		abort();
	array = ((java_array *)(*env)[NEW_ARRAY])(
		env, n_words - 3, ((java_text *)(*env)[FIND_CLASS])(env, "java/lang/String"), NULL);
	for (int i = 3; i < n_words; i++)
		((java_set *)(*env)[SET_ELEMENT])(env, array, i - 3,
						  ((java_text *)(*env)[NEW_STRING])(env, words[i]));
	class = ((java_text *)(*env)[FIND_CLASS])(env, words[2]);
	method = class ? ((java_method *)(*env)[STATIC_METHOD_ID])(env, class, "main", "([Ljava/lang/String;)V") : NULL;
	if (!method)
		abort();
	((java_call *)(*env)[CALL_STATIC_VOID])(env, class, method, &(uint64_t){ (uint64_t)(uintptr_t)array });
}

#endif

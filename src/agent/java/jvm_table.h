/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few functions of a Java virtual machine that the agent calls, by their places in its tables,
 * so that no header of a JDK is needed: JNI ("Functions", "The Invocation API"; places from 0, with
 * the reserved ones) and JVM Tool Interface 1.2 ("Function Index"; numbers from 1). Both tables
 * only ever grow at the end.
 */
#ifndef SF_AGENT_JVM_TABLE_H
#define SF_AGENT_JVM_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define SF_JNI_1_6 0x00010006
#define SF_JVMTI_1_2 0x30010200

struct sf_jni_vm;   /* JavaVM: begins with a pointer to its table; the same for those below */
struct sf_jni;      /* JNIEnv */
struct sf_jvmti;    /* jvmtiEnv */

/* JVM TI, "Events": the numbers of those that we want. */
enum sf_jvm_event {
	SF_JVM_INIT = 50,
	SF_JVM_DEATH = 51,
	SF_JVM_THREAD_START = 52,
	SF_JVM_THREAD_END = 53,
	SF_JVM_CLASS_LOAD = 55,
	SF_JVM_CLASS_PREPARE = 56,
	SF_JVM_COMPILED_METHOD_LOAD = 68,
};

#define SF_JVM_FIRST_EVENT 50
#define SF_JVM_N_EVENTS 39           /* of version 21, the last one is 88; older ones take a part */

/* jvmtiThreadInfo. */
struct sf_jvm_thread_info {
	char *name;                  /* modified UTF-8; Deallocate() */
	int32_t priority;
	uint8_t is_daemon;
	void *group, *loader;        /* local references */
};

/* jvmtiCapabilities: 16 bytes of bits, from the lowest in the order of the specification. */
struct sf_jvm_capabilities {
	uint32_t bits[4];
};
#define SF_JVM_CAN_SEE_COMPILED (1u << 27)   /* can_generate_compiled_method_load_events */

/* JavaVMAttachArgs. */
struct sf_jni_attach {
	int32_t version;
	const char *name;
	void *group;
};

static inline void *sf_jvm_entry(const void *object, unsigned place)
{
	return (*(void *const *const *)object)[place];
}

/* X(name, object, place, result, parameters behind the object, their names) */
#define SF_JVM_FUNCTIONS(X)                                                                        \
	X(sf_vm_detach, sf_jni_vm, 5, int32_t, (struct sf_jni_vm *o), (o))                         \
	X(sf_vm_get_env, sf_jni_vm, 6, int32_t,                                                    \
	  (struct sf_jni_vm *o, void **ret, int32_t version), (o, ret, version))                   \
	X(sf_vm_attach_daemon, sf_jni_vm, 7, int32_t,                                              \
	  (struct sf_jni_vm *o, void **ret, struct sf_jni_attach *how), (o, ret, how))             \
	X(sf_jni_find_class, sf_jni, 6, void *, (struct sf_jni *o, const char *name), (o, name))   \
	X(sf_jni_clear, sf_jni, 17, void, (struct sf_jni *o), (o))                                 \
	X(sf_jni_delete_local, sf_jni, 23, void, (struct sf_jni *o, void *local), (o, local))      \
	X(sf_jni_field, sf_jni, 94, void *,                                                        \
	  (struct sf_jni *o, void *class, const char *name, const char *type),                     \
	  (o, class, name, type))                                                                  \
	X(sf_jni_get_long, sf_jni, 101, int64_t, (struct sf_jni *o, void *object, void *field),    \
	  (o, object, field))                                                                      \
	X(sf_jvmti_thread_info, sf_jvmti, 8, int32_t,                                              \
	  (struct sf_jvmti *o, void *thread, struct sf_jvm_thread_info *ret), (o, thread, ret))    \
	X(sf_jvmti_current_thread, sf_jvmti, 17, int32_t, (struct sf_jvmti *o, void **ret),        \
	  (o, ret))                                                                                \
	X(sf_jvmti_deallocate, sf_jvmti, 46, int32_t, (struct sf_jvmti *o, void *memory),          \
	  (o, memory))                                                                             \
	X(sf_jvmti_methods, sf_jvmti, 51, int32_t,                                                 \
	  (struct sf_jvmti *o, void *class, int32_t *n_ret, void **ret), (o, class, n_ret, ret))   \
	X(sf_jvmti_classes, sf_jvmti, 77, int32_t,                                                 \
	  (struct sf_jvmti *o, int32_t *n_ret, void ***ret), (o, n_ret, ret))                      \
	X(sf_jvmti_callbacks, sf_jvmti, 121, int32_t,                                              \
	  (struct sf_jvmti *o, const void *callbacks, int32_t size), (o, callbacks, size))         \
	X(sf_jvmti_property, sf_jvmti, 130, int32_t,                                               \
	  (struct sf_jvmti *o, const char *name, char **ret), (o, name, ret))                      \
	X(sf_jvmti_add, sf_jvmti, 141, int32_t,                                                    \
	  (struct sf_jvmti *o, const struct sf_jvm_capabilities *which), (o, which))

#define X(name, object, place, result, parameters, names)                                          \
	static inline result name parameters                                                       \
	{                                                                                          \
		return ((result (*) parameters)sf_jvm_entry(o, place)) names;                      \
	}
SF_JVM_FUNCTIONS(X)
#undef X

/* SetEventNotificationMode (2), for all threads. */
static inline int32_t sf_jvmti_notify(struct sf_jvmti *jvmti, int32_t on, enum sf_jvm_event event)
{
	typedef int32_t notify(struct sf_jvmti *, int32_t, int32_t, void *, ...);

	return ((notify *)sf_jvm_entry(jvmti, 1))(jvmti, on, (int32_t)event, NULL);
}

#endif

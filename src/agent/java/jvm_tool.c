/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's use of the JVM Tool Interface: thread events, and the preparation of
 * AsyncGetCallTrace. Ordinary code, on threads that are attached to the virtual machine; never in
 * a signal handler.
 */
#include "agent/java/jvm_tool.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "agent/java/jvm_errand.h"
#include "agent/java/jvm_walk.h"
#include "agent/threads/thread_entries.h"
#include "agent/threads/thread_register.h"
#include "frozen/signal/handler.h"
#include "frozen/runtime_list.h"

#define PATIENCE_S 2                 /* that a profile waits for thread names; ... */
#define LONG_PATIENCE_S 8            /* ... and for what AsyncGetCallTrace needs */

/* The services that a profile wants from the virtual machine; none without a profile. */
#define WANTS_THREADS 1u             /* their beginnings, ends and names */
#define WANTS_TO_ASK 2u              /* java-walk=agct or both */

static struct {
	struct sf_jni_vm *_Atomic vm; /* NULL: no machine has loaded us, or was met; set when all
				       * else is */
	struct sf_jvmti *jvmti;
	int version;                 /* of the JDK, 0: unknown */
	_Atomic bool meeting;        /* once */
	_Atomic bool started;        /* it runs Java: its functions may be called */
	_Atomic unsigned wants;
} tool;

static bool wants(unsigned what)
{
	return (atomic_load(&tool.wants) & what) != 0;
}

/* --- names of threads --- */

/* Cut to the room that an entry has, between two characters. */
static void set_name(char *name)
{
	size_t size = strlen(name);

	if (size >= SF_AGENT_NAME) {
		size = SF_AGENT_NAME - 1;
		while (size && ((unsigned char)name[size] & 0xc0) == 0x80)
			size--;
		name[size] = 0;
	}
	sf_agent_thread_rename(name, NULL);
}

static void name_thread(struct sf_jni *jni, void *thread)
{
	struct sf_jvm_thread_info info = { 0 };

	if (sf_jvmti_thread_info(tool.jvmti, thread, &info) != 0)
		return;
	if (info.name && *info.name)
		set_name(info.name);
	sf_jvmti_deallocate(tool.jvmti, info.name);
	if (info.group)
		sf_jni_delete_local(jni, info.group);
	if (info.loader)
		sf_jni_delete_local(jni, info.loader);
}

/* Both are called by the thread that they are of. */
static void on_thread_start(struct sf_jvmti *jvmti, struct sf_jni *jni, void *thread)
{
	int error = errno;
	struct sf_thread_entry *entry;

	(void)jvmti;
	if (wants(WANTS_THREADS) && thread) {
		name_thread(jni, thread);
		entry = sf_agent_own_entry(NULL);
		if (entry) {
			atomic_store(&entry->handles[SF_RUNTIME_HOTSPOT], sf_jvm_walk_thread(jni));
			atomic_fetch_and(&entry->flags, ~(uint32_t)SF_ENTRY_LEFT_RUNTIME);
		}
	}
	errno = error;
}

static void on_thread_end(struct sf_jvmti *jvmti, struct sf_jni *jni, void *thread)
{
	struct sf_thread_entry *entry = sf_agent_find_own_entry();

	(void)jvmti;
	(void)jni;
	(void)thread;
	if (!entry)
		return;
	atomic_fetch_or(&entry->flags, SF_ENTRY_LEFT_RUNTIME);
	atomic_store(&entry->handles[SF_RUNTIME_HOTSPOT], SF_ENTRY_NO_HANDLE);
}

/* --- ids of methods --- */

/*
 * Asking for the methods of a class makes their ids. A class that is not prepared yet has its event
 * later.
 */
static void make_ids(void *class)
{
	void *methods = NULL;
	int32_t n;

	if (sf_jvmti_methods(tool.jvmti, class, &n, &methods) == 0)
		sf_jvmti_deallocate(tool.jvmti, methods);
}

static void make_all_ids(struct sf_jni *jni)
{
	void **classes = NULL;
	int32_t n = 0;

	if (sf_jvmti_classes(tool.jvmti, &n, &classes) != 0)
		return;
	for (int32_t i = 0; i < n; i++) {
		make_ids(classes[i]);
		sf_jni_delete_local(jni, classes[i]);
	}
	sf_jvmti_deallocate(tool.jvmti, classes);
}

/* Nothing is done with it: AsyncGetCallTrace wants it to be on. */
static void on_class_load(struct sf_jvmti *jvmti, struct sf_jni *jni, void *thread, void *class)
{
	(void)jvmti;
	(void)jni;
	(void)thread;
	(void)class;
}

static void on_class_prepare(struct sf_jvmti *jvmti, struct sf_jni *jni, void *thread, void *class)
{
	int error = errno;

	(void)jvmti;
	(void)jni;
	(void)thread;
	if (wants(WANTS_TO_ASK))
		make_ids(class);
	errno = error;
}

/*
 * Nothing, too: while it is on, compilers describe every instruction (HotSpot:
 * code/debugInfoRec.cpp).
 */
static void on_compiled(struct sf_jvmti *jvmti)
{
	(void)jvmti;
}

/* --- the life of the machine --- */

/*
 * Runs on an attached thread, with its java.lang.Thread object. It may run after the profile has
 * ended. The end of a profile first withdraws the wish, so one of the two turns AGCT off.
 */
static void be_ready_to_ask(struct sf_jni *jni, void *thread)
{
	if (!wants(WANTS_TO_ASK) || !sf_jvm_walk_measure(jni, thread))
		return;
	make_all_ids(jni);
	sf_jvm_walk_on();
	if (!wants(WANTS_TO_ASK))
		sf_jvm_walk_off();
}

static void on_init(struct sf_jvmti *jvmti, struct sf_jni *jni, void *thread)
{
	int error = errno;

	(void)jvmti;
	atomic_store(&tool.started, true);
	be_ready_to_ask(jni, thread);
	errno = error;
}

static void on_death(struct sf_jvmti *jvmti, struct sf_jni *jni)
{
	(void)jvmti;
	(void)jni;
	atomic_store(&tool.started, false);
	sf_jvm_walk_off();
}

/* --- events --- */

/* To add one: its number in jvm_table.h, a line here. `asks`: only for AsyncGetCallTrace. */
static const struct {
	enum sf_jvm_event event;
	void *callback;
	bool asks;
} events[] = {
	{ SF_JVM_INIT, (void *)on_init, false },
	{ SF_JVM_DEATH, (void *)on_death, false },
	{ SF_JVM_THREAD_START, (void *)on_thread_start, false },
	{ SF_JVM_THREAD_END, (void *)on_thread_end, false },
	{ SF_JVM_CLASS_LOAD, (void *)on_class_load, true },
	{ SF_JVM_CLASS_PREPARE, (void *)on_class_prepare, true },
	{ SF_JVM_COMPILED_METHOD_LOAD, (void *)on_compiled, true },
};

#define N_EVENTS (sizeof(events) / sizeof(*events))

static void set_callbacks(void)
{
	void *callbacks[SF_JVM_N_EVENTS] = { 0 };

	for (size_t i = 0; i < N_EVENTS; i++)
		callbacks[events[i].event - SF_JVM_FIRST_EVENT] = events[i].callback;
	/* As many as the oldest version has: 35, up to VMObjectAlloc. */
	sf_jvmti_callbacks(tool.jvmti, callbacks, 35 * (int32_t)sizeof(void *));
}

/* The machine's beginning and end are to be known of always. */
static void notify(unsigned wanted)
{
	for (size_t i = 0; i < N_EVENTS; i++) {
		const unsigned for_whom = events[i].asks ? WANTS_TO_ASK : WANTS_THREADS;

		if (events[i].event != SF_JVM_INIT && events[i].event != SF_JVM_DEATH)
			sf_jvmti_notify(tool.jvmti, (wanted & for_whom) != 0, events[i].event);
	}
}

/*
 * Turns events on and off as they are wanted now, in any thread and also late. The wish is read again
 * after the last change. So of two concurrent calls the one that ends last leaves the right state.
 */
static void settle(void)
{
	unsigned wanted;

	do {
		wanted = atomic_load(&tool.wants);
		notify(wanted);
	} while (wanted != atomic_load(&tool.wants));
}

/* "17", and up to 8 "1.8". */
static int read_version(void)
{
	char *text = NULL;
	int version;

	if (sf_jvmti_property(tool.jvmti, "java.vm.specification.version", &text) != 0 || !text)
		return 0;
	version = atoi(strncmp(text, "1.", 2) == 0 ? text + 2 : text);
	sf_jvmti_deallocate(tool.jvmti, text);
	return version;
}

void sf_jvm_tool_meet(struct sf_jni_vm *vm, bool started)
{
	void *jvmti = NULL;
	const struct sf_jvm_capabilities wanted = { { SF_JVM_CAN_SEE_COMPILED } };

	if (atomic_exchange(&tool.meeting, true))
		return;
	if (sf_vm_get_env(vm, &jvmti, SF_JVMTI_1_2) != 0) {
		atomic_store(&tool.meeting, false);
		return;
	}
	tool.jvmti = jvmti;
	tool.version = read_version();
	atomic_store(&tool.started, started);
	sf_jvmti_add(tool.jvmti, &wanted);
	set_callbacks();
	sf_jvmti_notify(tool.jvmti, true, SF_JVM_INIT);
	sf_jvmti_notify(tool.jvmti, true, SF_JVM_DEATH);
	atomic_store(&tool.vm, vm);
}

/* --- a profile --- */

static void settle_on_thread(struct sf_jni_vm *vm, struct sf_jni *jni)
{
	void *thread = NULL;

	(void)vm;
	/* The machine may be about to end. */
	if (!atomic_load(&tool.vm) || sf_jvmti_current_thread(tool.jvmti, &thread) != 0)
		return;
	settle();
	be_ready_to_ask(jni, thread);
}

static bool refuse(const char *why, struct sf_error *err)
{
	sf_jvm_tool_end();
	return sf_fail(err, SF_E_UNSUPPORTED, "java-walk=agct: %s", why);
}

static void meet(struct sf_jni_vm *vm, struct sf_jni *jni)
{
	(void)jni;
	sf_jvm_tool_meet(vm, true);
}

/*
 * A virtual machine does not call a preloaded agent. So the agent finds the machine by JNI ("The
 * Invocation API") after the machine has started. The tool interface needs an attached thread.
 */
static bool look_for_machine(struct sf_error *err)
{
	typedef int32_t created(struct sf_jni_vm **ret, int32_t capacity, int32_t *n_ret);
	created *find = (created *)(uintptr_t)dlsym(RTLD_DEFAULT, "JNI_GetCreatedJavaVMs");
	struct sf_jni_vm *vm = NULL;
	int32_t n = 0;

	if (atomic_load(&tool.vm))
		return true;
	if (!find || find(&vm, 1, &n) != 0 || n < 1 || !vm)
		return refuse("there is no Java virtual machine here, or not yet: start it with -agentpath:"
			      ".../libstillframe-agent.so=listen, or record -p PID once it runs", err);
	if (!sf_jvm_errand(vm, meet, PATIENCE_S))
		return refuse("the Java virtual machine does not answer", err);
	return atomic_load(&tool.vm) ||
	       refuse("the Java virtual machine has no tool interface for us", err);
}

static bool may_ask(const struct sf_agent_options *options, struct sf_error *err)
{
	if (!look_for_machine(err))
		return false;
	sf_handler.config.walks_twice = options->runtime_walks[SF_RUNTIME_HOTSPOT] == SF_AGENT_WALK_BOTH;
	return sf_jvm_walk_find(tool.version, err);
}

bool sf_jvm_tool_begin(const struct sf_agent_options *options, struct sf_error *err)
{
	bool asks = options->runtime_walks[SF_RUNTIME_HOTSPOT] != SF_AGENT_WALK_OURS;
	struct sf_jni_vm *vm;

	if (asks && !may_ask(options, err))
		return false;
	vm = atomic_load(&tool.vm);
	if (!vm)
		return true;
	atomic_store(&tool.wants, WANTS_THREADS | (asks ? WANTS_TO_ASK : 0));
	if (!atomic_load(&tool.started)) {
		settle();
		return true;
	}
	if (!sf_jvm_errand(vm, settle_on_thread, asks ? LONG_PATIENCE_S : PATIENCE_S) && asks)
		return refuse("the Java virtual machine does not answer", err);
	return !asks || atomic_load(&sf_handler.code.own_walk) ||
	       refuse("the Java virtual machine's threads are not laid out as expected", err);
}

void sf_jvm_tool_end(void)
{
	const unsigned wanted = atomic_exchange(&tool.wants, 0);

	sf_jvm_walk_off();
	if (wanted && atomic_load(&tool.started))
		sf_jvm_errand(atomic_load(&tool.vm), settle_on_thread, PATIENCE_S);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls HotSpot's AsyncGetCallTrace for --java-walk=agct. Preparation is ordinary code; the call
 * itself is made in the signal handler of the thread that is walked.
 */
#include "agent/java/jvm_walk.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <ucontext.h>

#include "agent/host/memory.h"
#include "frozen/hotspot/agct.h"
#include "frozen/signal/handler.h"
#include "frozen/raw.h"

#define MAX_DISTANCE 65536           /* a JavaThread is smaller */
#define LEAST_STACK (64u << 10)      /* of an alternate stack on which the machine's code may run */
#define UNKNOWN_STATE (-7)
#define LAST_VERSION 25              /* from 26 on an id is no address any more: method_of() */

/* ASGCT_CallTrace. */
struct trace {
	void *env;
	int32_t n;
	struct sf_agct_frame *frames;
};

typedef void walk_fn(struct trace *trace, int32_t depth, void *ucontext);

static walk_fn *walk;
static _Atomic uint64_t distance;    /* 0: not measured yet */

bool sf_jvm_walk_find(int version, struct sf_error *err)
{
	if (version < 1 || version > LAST_VERSION)
		return sf_fail(err, SF_E_UNSUPPORTED,
			       "java-walk=agct: what AsyncGetCallTrace of JDK %d answers "
			       "is not known, of up to %d it is",
			       version, LAST_VERSION);
	walk = (walk_fn *)(uintptr_t)dlsym(RTLD_DEFAULT, "AsyncGetCallTrace");
	return walk || sf_fail(err, SF_E_UNSUPPORTED,
			       "java-walk=agct: this Java virtual machine has no "
			       "AsyncGetCallTrace");
}

/* Thread.eetop is the JavaThread (JDK: java.lang.Thread; HotSpot: classfile/javaClasses.cpp). */
bool sf_jvm_walk_measure(struct sf_jni *jni, void *thread)
{
	void *class = sf_jni_find_class(jni, "java/lang/Thread");
	void *field = class ? sf_jni_field(jni, class, "eetop", "J") : NULL;
	uint64_t found = 0;

	if (field)
		found = (uint64_t)(uintptr_t)jni - (uint64_t)sf_jni_get_long(jni, thread, field);
	else
		sf_jni_clear(jni);
	if (class)
		sf_jni_delete_local(jni, class);
	if (!found || found > MAX_DISTANCE)
		return false;
	atomic_store(&distance, found);
	return true;
}

uint64_t sf_jvm_walk_thread(const struct sf_jni *jni)
{
	uint64_t known = atomic_load(&distance);

	return known ? (uint64_t)(uintptr_t)jni - known : 0;
}

/* Whether the handler runs on an alternate stack that is made for handlers of a few lines. */
static bool is_cramped(const ucontext_t *context)
{
	uint64_t start = (uint64_t)(uintptr_t)context->uc_stack.ss_sp;
	uint64_t here = (uint64_t)(uintptr_t)&start;

	return here >= start && here - start < context->uc_stack.ss_size &&
	       context->uc_stack.ss_size < LEAST_STACK;
}

/* An id is the address of a cell that holds the Method, up to JDK 25 (HotSpot: oops/method.cpp). */
static uint64_t method_of(uint64_t id)
{
	uint64_t method = 0;

	if (id && sf_own_memory_read(&sf_handler.code.memory, &method, id, sizeof(method)) != sizeof(method))
		method = 0;
	return method;
}

/*
 * AsyncGetCallTrace reads memory that may not exist, and causes faults on purpose (SafeFetch). The
 * virtual machine's own handler must get these faults: the kernel ends the process for a fault whose
 * signal is blocked.
 */
static int32_t ask(struct sf_agct_frame *frames, uint32_t capacity, uint64_t thread,
		   void *ucontext)
{
	const uint64_t faults = UINT64_C(1) << (SIGSEGV - 1) | UINT64_C(1) << (SIGBUS - 1) |
				UINT64_C(1) << (SIGILL - 1) | UINT64_C(1) << (SIGFPE - 1);
	uint64_t known = atomic_load_explicit(&distance, memory_order_relaxed), before;
	struct trace trace = { .env = (void *)(uintptr_t)(thread + known), .frames = frames };
	int error = errno;

	if (!known || is_cramped(ucontext))
		return UNKNOWN_STATE;
	sf_raw4(SYS_rt_sigprocmask, SIG_UNBLOCK, &faults, &before, sizeof(before));
	walk(&trace, (int32_t)capacity, ucontext);
	sf_raw4(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
	errno = error;
	for (int32_t i = 0; i < trace.n; i++)
		frames[i].method = method_of(frames[i].method);
	return trace.n;
}

void sf_jvm_walk_on(void)
{
	if (walk && atomic_load(&distance)) {
		atomic_store(&sf_agct_ask, ask);
		atomic_store(&sf_handler.code.own_walk, sf_agct_walk);
	}
}

void sf_jvm_walk_off(void)
{
	if (!atomic_exchange(&sf_handler.code.own_walk, NULL))
		return;
	sf_agent_wait_for_slots();
}

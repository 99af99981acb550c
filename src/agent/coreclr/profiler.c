/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways by which CoreCLR loads the agent itself: as a profiler, when it is attached by the diagnostics socket
 * (runtime/coreclr/load.h); at its start from the list CORECLR_NOTIFICATION_PROFILERS (frozen/coreclr/words.h), or with
 * CORECLR_ENABLE_PROFILING=1, CORECLR_PROFILER=SF_CLR_PROFILER_TEXT and CORECLR_PROFILER_PATH (CoreCLR:
 * inc/corprof.idl, vm/profilinghelper.cpp). The agent may have been preloaded as well: the loader maps a library once,
 * so there is one agent all the same.
 *
 * The agent starts. It is a profiler from then on where a part of it needs one (clr_profiler.h). Otherwise it declines to
 * be one (CORPROF_E_PROFILER_CANCEL_ACTIVATION): the runtime then has no profiler, runs as fast as before, starts no
 * thread, and calls nothing here.
 *
 * A class factory and a callback object in plain C: an interface is a pointer to an array of functions, whose first argument is
 * the interface.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/coreclr/clr_profiler.h"
#include "agent/lifecycle.h"
#include "runtime/coreclr/load.h"
#include "runtime/coreclr/profiler_id.h"

#define SF_CLR_EXPORT __attribute__((visibility("default")))

#define NO_CLASS ((int32_t)0x80040111)
#define MAX_OPTIONS 4096

static const sf_clr_guid own_class = SF_CLR_PROFILER_ID;

/* ICorProfilerCallback2, 3 and 11: those that .NET 6 and later ask for. */
static const sf_clr_guid callbacks[] = {
	{ 0x29, 0xc8, 0x8c, 0x8a, 0xf2, 0xcc, 0xfe, 0x49, 0xbb, 0xae, 0x0f, 0x02, 0x22, 0x28, 0x07, 0x1a },
	{ 0x52, 0xed, 0xd2, 0x4f, 0x31, 0x77, 0x8d, 0x4b, 0x94, 0x69, 0x03, 0xd2, 0xcc, 0x30, 0x86, 0xc5 },
	{ 0x46, 0x08, 0x35, 0x42, 0xed, 0xaa, 0xf7, 0x47, 0xb1, 0x28, 0xfd, 0x0c, 0x98, 0x88, 0x1c, 0xde },
};

/* --- both objects live as long as the library, which is never unmapped --- */

static uint32_t count(void *self)
{
	(void)self;
	return 1;
}

static int32_t ok(void *self)
{
	(void)self;
	return SF_CLR_OK;
}

static int32_t give(bool has, void *self, void **ret)
{
	*ret = has ? self : NULL;
	return has ? SF_CLR_OK : SF_CLR_E_NOINTERFACE;
}

/* --- the callbacks --- */

enum callback {
	QUERY_INTERFACE = 0,
	ADD_REF = 1,
	RELEASE = 2,
	INITIALIZE = 3,
	SHUTDOWN = 4,
	THREAD_DESTROYED = 30,
	THREAD_ASSIGNED_TO_OS_THREAD = 31,
	EXCEPTION_UNWIND_FUNCTION_ENTER = 62,
	EXCEPTION_UNWIND_FUNCTION_LEAVE = 63,
	EXCEPTION_CATCHER_ENTER = 66,
	INITIALIZE_FOR_ATTACH = 80,
	PROFILER_ATTACH_COMPLETE = 81,
	PROFILER_DETACH_SUCCEEDED = 82,
	EVENT_PIPE_EVENT_DELIVERED = 95,
	EVENT_PIPE_PROVIDER_CREATED = 96,
	LOAD_AS_NOTIFICATION_ONLY = 97,
	N_CALLBACKS
};

static int32_t query_callback(void *self, const void *asked, void **ret)
{
	bool has = sf_clr_is_id(asked, sf_clr_unknown_id);

	for (size_t i = 0; i < sizeof(callbacks) / sizeof(*callbacks); i++)
		has |= sf_clr_is_id(asked, callbacks[i]);
	return give(has, self, ret);
}

static int32_t arrive(struct sf_clr_unknown *unknown)
{
	const int error = errno;
	const int32_t result = sf_clr_profiler_arrive(unknown);

	errno = error;
	return result;
}

/* The variables in which a runtime that starts finds the agent. */
static const char *const variables[] = { "CORECLR_NOTIFICATION_PROFILERS_64", "CORECLR_NOTIFICATION_PROFILERS", "CORECLR_PROFILER" };

static bool is_named_at_start(void)
{
	bool any = false;

	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		const char *value = secure_getenv(variables[i]);

		any |= value && strcasestr(value, SF_CLR_PROFILER_TEXT);
	}
	return any;
}

/* Before the constructor that obeys STILLFRAME=. Where the agent was preloaded, the runtime is not there yet. */
__attribute__((constructor(101))) static void loaded(void)
{
	int error = errno;

	if (is_named_at_start() && sf_clr_is_in(getpid()))
		sf_clr_profiler_expect();
	errno = error;
}

/* The library's constructor has obeyed STILLFRAME= by now. */
static int32_t initialize(void *self, struct sf_clr_unknown *unknown)
{
	(void)self;
	return arrive(unknown);
}

static bool begin(const char *options)
{
	struct sf_error err = { 0 };

	if (!*options || sf_lifecycle_obey(options, &err))
		return true;
	sf_lifecycle_complain(&err, false);
	return false;
}

/* The number that is returned goes to the process that attaches. */
static int32_t initialize_for_attach(void *self, struct sf_clr_unknown *unknown, const void *data, uint32_t size)
{
	char options[MAX_OPTIONS] = "";
	int error = errno;
	bool begun;

	(void)self;
	if (size >= sizeof(options))
		return SF_CLR_E_FAIL;
	if (size)
		memcpy(options, data, size);
	begun = begin(options);
	errno = error;
	return begun ? arrive(unknown) : SF_CLR_E_FAIL;
}

static int32_t shut_down(void *self)
{
	(void)self;
	sf_clr_profiler_shut_down();
	return SF_CLR_OK;
}

static int32_t detach_succeeded(void *self)
{
	(void)self;
	sf_clr_profiler_detached();
	return SF_CLR_OK;
}

/* Beside another profiler, which keeps its place, unless a part needs that place. */
static int32_t load_as_notification_only(void *self, int32_t *ret)
{
	(void)self;
	*ret = !sf_clr_profiler_is_main();
	return SF_CLR_OK;
}

/* --- notifications: on any thread of the runtime, in the middle of the program's work --- */

/* Calls this function of each part that has it. */
#define NOTIFY(function, argument)                                                                 \
	do {                                                                                       \
		const int error_ = errno;                                                          \
                                                                                                   \
		for (unsigned i_ = 0; i_ < SF_CLR_MAX_PARTS; i_++) {                               \
			const struct sf_clr_part *part_ = sf_clr_profiler_part(i_);                \
                                                                                                   \
			if (part_ && part_->function)                                              \
				part_->function(argument);                                         \
		}                                                                                  \
		errno = error_;                                                                    \
	} while (0)

static int32_t thread_destroyed(void *self, uintptr_t thread)
{
	(void)self;
	NOTIFY(thread_destroyed, thread);
	return SF_CLR_OK;
}

static int32_t thread_assigned(void *self, uintptr_t thread, uint32_t os_thread)
{
	(void)self;
	(void)os_thread;
	NOTIFY(thread_assigned, thread);
	return SF_CLR_OK;
}

static int32_t unwind_function_enter(void *self, uintptr_t function)
{
	(void)self;
	NOTIFY(unwind_begins, function);
	return SF_CLR_OK;
}

static int32_t unwind_function_leave(void *self)
{
	(void)self;
	NOTIFY(unwind_ends, 0);
	return SF_CLR_OK;
}

static int32_t catcher_enter(void *self, uintptr_t function, uintptr_t object)
{
	(void)self;
	(void)object;
	NOTIFY(caught, function);
	return SF_CLR_OK;
}

static int32_t event_delivered(void *self, uintptr_t provider, uint32_t id, uint32_t version, uint32_t metadata_size,
			       const uint8_t *metadata, uint32_t size, const uint8_t *data, const void *activity,
			       const void *related, uintptr_t thread, uint32_t n_frames, const uintptr_t *frames)
{
	const struct sf_clr_event event = { .id = id, .data = data, .size = size, .thread = thread };

	(void)self;
	(void)provider;
	(void)version;
	(void)metadata_size;
	(void)metadata;
	(void)activity;
	(void)related;
	(void)n_frames;
	(void)frames;
	NOTIFY(event_delivered, &event);
	return SF_CLR_OK;
}

static void *const callback_table[N_CALLBACKS] = {
	[QUERY_INTERFACE] = (void *)query_callback,
	[ADD_REF] = (void *)count,
	[RELEASE] = (void *)count,
	[INITIALIZE] = (void *)initialize,
	[SHUTDOWN] = (void *)shut_down,
	[SHUTDOWN + 1 ... THREAD_DESTROYED - 1] = (void *)ok,
	[THREAD_DESTROYED] = (void *)thread_destroyed,
	[THREAD_ASSIGNED_TO_OS_THREAD] = (void *)thread_assigned,
	[THREAD_ASSIGNED_TO_OS_THREAD + 1 ... EXCEPTION_UNWIND_FUNCTION_ENTER - 1] = (void *)ok,
	[EXCEPTION_UNWIND_FUNCTION_ENTER] = (void *)unwind_function_enter,
	[EXCEPTION_UNWIND_FUNCTION_LEAVE] = (void *)unwind_function_leave,
	[EXCEPTION_UNWIND_FUNCTION_LEAVE + 1 ... EXCEPTION_CATCHER_ENTER - 1] = (void *)ok,
	[EXCEPTION_CATCHER_ENTER] = (void *)catcher_enter,
	[EXCEPTION_CATCHER_ENTER + 1 ... INITIALIZE_FOR_ATTACH - 1] = (void *)ok,
	[INITIALIZE_FOR_ATTACH] = (void *)initialize_for_attach,
	[PROFILER_ATTACH_COMPLETE] = (void *)ok,
	[PROFILER_DETACH_SUCCEEDED] = (void *)detach_succeeded,
	[PROFILER_DETACH_SUCCEEDED + 1 ... EVENT_PIPE_EVENT_DELIVERED - 1] = (void *)ok,
	[EVENT_PIPE_EVENT_DELIVERED] = (void *)event_delivered,
	[EVENT_PIPE_PROVIDER_CREATED] = (void *)ok,
	[LOAD_AS_NOTIFICATION_ONLY] = (void *)load_as_notification_only,
};

static void *const *callback_object = callback_table;

/* --- the class factory --- */

static int32_t query_factory(void *self, const void *asked, void **ret)
{
	return give(sf_clr_is_id(asked, sf_clr_unknown_id) || sf_clr_is_id(asked, sf_clr_class_factory), self, ret);
}

static int32_t create_instance(void *self, void *outer, const void *asked, void **ret)
{
	(void)self;
	(void)outer;
	return query_callback(&callback_object, asked, ret);
}

static void *const factory_table[] = { (void *)query_factory, (void *)count, (void *)count,
				       (void *)create_instance, (void *)ok };

static void *const *factory_object = factory_table;

/* The entry point of a profiler's library, which the runtime finds by its name. */
SF_CLR_EXPORT int32_t DllGetClassObject(const void *class_id, const void *asked, void **ret);

SF_CLR_EXPORT int32_t DllGetClassObject(const void *class_id, const void *asked, void **ret)
{
	if (sf_clr_is_id(class_id, own_class))
		return query_factory(&factory_object, asked, ret);
	*ret = NULL;
	return NO_CLASS;
}

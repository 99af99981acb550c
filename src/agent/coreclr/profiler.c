/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways by which CoreCLR loads the agent itself: as a profiler, when it is attached by the diagnostics socket
 * (runtime/coreclr/load.h), and at its start with CORECLR_ENABLE_PROFILING=1, CORECLR_PROFILER=SF_CLR_PROFILER_TEXT and
 * CORECLR_PROFILER_PATH (CoreCLR: inc/corprof.idl, vm/profilinghelper.cpp). The agent may have been preloaded as well: the loader
 * maps a library once, so there is one agent all the same.
 *
 * The agent starts, and then declines to be a profiler (CORPROF_E_PROFILER_CANCEL_ACTIVATION). So the runtime has no
 * profiler afterwards: it runs as fast as before, starts no thread, calls nothing here, and another profiler can be attached.
 * The agent needs none of the runtime's functions. It reads the runtime's structures, as stillframe does from outside.
 *
 * A class factory and a callback object in plain C: an interface is a pointer to an array of functions, whose first argument is
 * the interface.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "agent/lifecycle.h"
#include "runtime/coreclr/profiler_id.h"

#define SF_CLR_EXPORT __attribute__((visibility("default")))

#define OK 0
#define FAILED ((int32_t)0x80004005)
#define NO_INTERFACE ((int32_t)0x80004002)
#define NO_CLASS ((int32_t)0x80040111)
#define MAX_OPTIONS 4096

/* As it lies in memory. */
typedef uint8_t guid[16];

static const guid own_class = SF_CLR_PROFILER_ID;
static const guid unknown = { 0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0x46 };
static const guid class_factory = { 1, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0x46 };

/* ICorProfilerCallback2, 3 and 11: those that .NET 6 and later ask for. */
static const guid callbacks[] = {
	{ 0x29, 0xc8, 0x8c, 0x8a, 0xf2, 0xcc, 0xfe, 0x49, 0xbb, 0xae, 0x0f, 0x02, 0x22, 0x28, 0x07, 0x1a },
	{ 0x52, 0xed, 0xd2, 0x4f, 0x31, 0x77, 0x8d, 0x4b, 0x94, 0x69, 0x03, 0xd2, 0xcc, 0x30, 0x86, 0xc5 },
	{ 0x46, 0x08, 0x35, 0x42, 0xed, 0xaa, 0xf7, 0x47, 0xb1, 0x28, 0xfd, 0x0c, 0x98, 0x88, 0x1c, 0xde },
};

static bool is(const void *asked, const guid known)
{
	return memcmp(asked, known, sizeof(guid)) == 0;
}

/* --- both objects live as long as the library, which is never unmapped --- */

static uint32_t count(void *self)
{
	(void)self;
	return 1;
}

static int32_t ok(void *self)
{
	(void)self;
	return OK;
}

static int32_t give(bool has, void *self, void **ret)
{
	*ret = has ? self : NULL;
	return has ? OK : NO_INTERFACE;
}

/* --- the callbacks --- */

enum callback {
	QUERY_INTERFACE = 0,
	ADD_REF = 1,
	RELEASE = 2,
	INITIALIZE = 3,
	INITIALIZE_FOR_ATTACH = 80,
	LOAD_AS_NOTIFICATION_ONLY = 97,
	N_CALLBACKS
};

static int32_t query_callback(void *self, const void *asked, void **ret)
{
	bool has = is(asked, unknown);

	for (size_t i = 0; i < sizeof(callbacks) / sizeof(*callbacks); i++)
		has |= is(asked, callbacks[i]);
	return give(has, self, ret);
}

/* The library's constructor has obeyed STILLFRAME= by now. */
static int32_t initialize(void *self, void *info)
{
	(void)self;
	(void)info;
	return SF_CLR_PROFILER_DECLINES;
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
static int32_t initialize_for_attach(void *self, void *info, const void *data, uint32_t size)
{
	char options[MAX_OPTIONS] = "";
	int error = errno;
	bool begun;

	(void)self;
	(void)info;
	if (size >= sizeof(options))
		return FAILED;
	if (size)
		memcpy(options, data, size);
	begun = begin(options);
	errno = error;
	return begun ? SF_CLR_PROFILER_DECLINES : FAILED;
}

/* Beside another profiler, which keeps its place. */
static int32_t load_as_notification_only(void *self, int32_t *ret)
{
	(void)self;
	*ret = 1;
	return OK;
}

static void *const callback_table[N_CALLBACKS] = {
	[QUERY_INTERFACE] = (void *)query_callback,
	[ADD_REF] = (void *)count,
	[RELEASE] = (void *)count,
	[INITIALIZE] = (void *)initialize,
	[INITIALIZE + 1 ... INITIALIZE_FOR_ATTACH - 1] = (void *)ok,
	[INITIALIZE_FOR_ATTACH] = (void *)initialize_for_attach,
	[INITIALIZE_FOR_ATTACH + 1 ... LOAD_AS_NOTIFICATION_ONLY - 1] = (void *)ok,
	[LOAD_AS_NOTIFICATION_ONLY] = (void *)load_as_notification_only,
};

static void *const *callback_object = callback_table;

/* --- the class factory --- */

static int32_t query_factory(void *self, const void *asked, void **ret)
{
	return give(is(asked, unknown) || is(asked, class_factory), self, ret);
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

/* What the runtime finds by name in a profiler's library. */
SF_CLR_EXPORT int32_t DllGetClassObject(const void *class_id, const void *asked, void **ret);

SF_CLR_EXPORT int32_t DllGetClassObject(const void *class_id, const void *asked, void **ret)
{
	if (is(class_id, own_class))
		return query_factory(&factory_object, asked, ret);
	*ret = NULL;
	return NO_CLASS;
}

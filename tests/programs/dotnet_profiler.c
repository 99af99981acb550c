/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profiler that .NET loads at its start and keeps, for tests/e2e/test_dotnet.py: it is told of threads, and says at
 * the program's end that it is there. It stands for that of a vendor.
 */
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define N_CALLBACKS 98
#define MONITOR_THREADS 0x200

/* ICorProfilerInfo: CoreCLR's inc/corprof.idl. */
static const uint8_t info_id[16] = { 0x7d, 0x55, 0xb5, 0x28, 0x3f, 0x3f, 0xb4, 0x48, 0x90, 0xb2, 0x5f, 0x9e, 0xea, 0x2f, 0x6c, 0x48 };

enum slot { QUERY = 0, ADD_REF = 1, RELEASE = 2, CREATE = 3, INITIALIZE = 3, SHUTDOWN = 4, SET_EVENT_MASK = 16, LAST = 97 };

typedef int32_t query_fn(void *self, const void *id, void **ret);
typedef int32_t set_mask_fn(void *self, uint32_t mask);

static void *callbacks[N_CALLBACKS], *factory[5];
static void **callback_object = callbacks, **factory_object = factory;

static int32_t ok(void *self)
{
	(void)self;
	return 0;
}

static int32_t query(void *self, const void *id, void **ret)
{
	(void)id;
	*ret = self;
	return 0;
}

static int32_t create(void *self, void *outer, const void *id, void **ret)
{
	(void)self;
	(void)outer;
	return query(&callback_object, id, ret);
}

static int32_t initialize(void *self, void *unknown)
{
	query_fn *find = (query_fn *)(*(void ***)unknown)[QUERY];
	void *info = NULL;

	(void)self;
	if (find(unknown, info_id, &info) != 0)
		return -1;
	return ((set_mask_fn *)(*(void ***)info)[SET_EVENT_MASK])(info, MONITOR_THREADS);
}

static int32_t shut_down(void *self)
{
	(void)self;
	dprintf(STDOUT_FILENO, "the profiler was there to the end\n");
	return 0;
}

/* It is the main profiler. */
static int32_t not_only_notified(void *self, int32_t *ret)
{
	(void)self;
	*ret = 0;
	return 0;
}

__attribute__((visibility("default"))) int32_t DllGetClassObject(const void *class_id, const void *id, void **ret);

__attribute__((visibility("default"))) int32_t DllGetClassObject(const void *class_id, const void *id, void **ret)
{
	(void)class_id;
	for (int i = 0; i < N_CALLBACKS; i++)
		callbacks[i] = (void *)ok;
	for (int i = 0; i < 5; i++)
		factory[i] = (void *)ok;
	callbacks[QUERY] = factory[QUERY] = (void *)query;
	callbacks[INITIALIZE] = (void *)initialize;
	callbacks[SHUTDOWN] = (void *)shut_down;
	callbacks[LAST] = (void *)not_only_notified;
	factory[CREATE] = (void *)create;
	return query(&factory_object, id, ret);
}

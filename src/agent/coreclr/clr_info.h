/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few functions of ICorProfilerInfo12 that the agent calls, by their places in its table, so that no header of
 * .NET is needed (CoreCLR: inc/corprof.idl; places from 0, those of the older interfaces first). The table only ever
 * grows at the end. .NET 5 and later have this version.
 *
 * Functions that the runtime allows from any thread without a Thread object of its own, as the agent's are, may be
 * called at any time between came_up and leaves (clr_profiler.h).
 */
#ifndef SF_AGENT_CLR_INFO_H
#define SF_AGENT_CLR_INFO_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct sf_clr_info;    /* ICorProfilerInfo12: begins with a pointer to its table; the same for those below */
struct sf_clr_unknown; /* IUnknown */
struct sf_clr_threads; /* ICorProfilerThreadEnum */
struct sf_clr_metadata; /* IMetaDataImport (inc/cor.h) */

/* The ids of interfaces that the agent names, as they lie in memory (inc/cor.h). */
typedef uint8_t sf_clr_guid[16];

static const sf_clr_guid sf_clr_unknown_id = { 0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0x46 };
static const sf_clr_guid sf_clr_class_factory = { 1, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0x46 };
/* ICorProfilerInfo12: 27b24ccd-1cb1-47c5-96ee-98190dc30959. */
static const sf_clr_guid sf_clr_info_12 = {
	0xcd, 0x4c, 0xb2, 0x27, 0xb1, 0x1c, 0xc5, 0x47, 0x96, 0xee, 0x98, 0x19, 0x0d, 0xc3, 0x09, 0x59
};

/* IMetaDataImport: 7dac8207-d3ae-4c75-9b67-92801a497d44. */
static const sf_clr_guid sf_clr_metadata_id = {
	0x07, 0x82, 0xac, 0x7d, 0xae, 0xd3, 0x75, 0x4c, 0x9b, 0x67, 0x92, 0x80, 0x1a, 0x49, 0x7d, 0x44
};

static inline bool sf_clr_is_id(const void *asked, const sf_clr_guid known)
{
	return memcmp(asked, known, sizeof(sf_clr_guid)) == 0;
}

/* HRESULTs: CoreCLR: inc/corerror.xml, and pal/inc/rt/palrt.h. Below 0: a failure. */
#define SF_CLR_OK 0
#define SF_CLR_FALSE 1
#define SF_CLR_E_FAIL ((int32_t)0x80004005)
#define SF_CLR_ABORTED ((int32_t)0x80131361) /* CORPROF_E_STACKSNAPSHOT_ABORTED: the callback ended the walk */
#define SF_CLR_E_NOINTERFACE ((int32_t)0x80004002)

/* COR_PRF_MONITOR and COR_PRF_HIGH_MONITOR. An attached profiler that only takes notifications may set all but one. */
#define SF_CLR_MONITOR_THREADS 0x200u
#define SF_CLR_MONITOR_EXCEPTIONS 0x40u
#define SF_CLR_MONITOR_ENTER_LEAVE 0x1000u /* of the main profiler only, from the program's start on */
#define SF_CLR_ENABLE_STACK_SNAPSHOT 0x10000000u
#define SF_CLR_HIGH_MONITOR_EVENT_PIPE 0x80u

/* StackSnapshotCallback: `frame_info` and `context` are valid during the call. Other than SF_CLR_OK: the walk ends. */
typedef int32_t sf_clr_snapshot_fn(uintptr_t function, uintptr_t ip, uintptr_t frame_info, uint32_t context_size,
				   const uint8_t *context, void *arg);

/* FunctionIDMapper2: the number that hooks get in the place of `function`. *hooks_ret: 0, and the method gets no hooks. */
typedef uintptr_t sf_clr_mapper_fn(uintptr_t function, void *arg, int32_t *hooks_ret);

/* COR_PRF_EVENTPIPE_PROVIDER_CONFIG. Texts are UTF-16 with a zero behind. */
struct sf_clr_provider {
	const uint16_t *name;
	uint64_t keywords;
	uint32_t level;
	const uint16_t *filter; /* NULL: none */
};

static inline void *sf_clr_entry(const void *object, unsigned place)
{
	return (*(void *const *const *)object)[place];
}

/* X(name, object, place, parameters, their names): all return an HRESULT. To add one: a line. */
#define SF_CLR_FUNCTIONS(X)                                                                        \
	X(sf_clr_query, sf_clr_unknown, 0, (struct sf_clr_unknown *o, const void *id, void **ret), (o, id, ret)) \
	X(sf_clr_get_thread_info, sf_clr_info, 12, (struct sf_clr_info *o, uintptr_t thread, uint32_t *tid_ret), \
	  (o, thread, tid_ret))                                                                    \
	X(sf_clr_get_metadata, sf_clr_info, 19,                                                    \
	  (struct sf_clr_info *o, uintptr_t function, const void *id, void **ret, uint32_t *token_ret), \
	  (o, function, id, ret, token_ret))                                                       \
	X(sf_clr_snapshot, sf_clr_info, 36,                                                        \
	  (struct sf_clr_info *o, uintptr_t thread, sf_clr_snapshot_fn *callback, uint32_t flags, void *arg, \
	   uint8_t *context, uint32_t context_size),                                               \
	  (o, thread, callback, flags, arg, context, context_size))                                \
	X(sf_clr_request_detach, sf_clr_info, 58, (struct sf_clr_info *o, uint32_t expected_ms), (o, expected_ms)) \
	X(sf_clr_set_mapper, sf_clr_info, 59, (struct sf_clr_info *o, sf_clr_mapper_fn *mapper, void *arg), (o, mapper, arg)) \
	X(sf_clr_set_hooks, sf_clr_info, 61, (struct sf_clr_info *o, void *enter, void *leave, void *tail_call), \
	  (o, enter, leave, tail_call))                                                            \
	X(sf_clr_enum_threads, sf_clr_info, 71, (struct sf_clr_info *o, struct sf_clr_threads **ret), (o, ret)) \
	X(sf_clr_initialize_thread, sf_clr_info, 72, (struct sf_clr_info *o), (o))                 \
	X(sf_clr_set_events, sf_clr_info, 82, (struct sf_clr_info *o, uint32_t low, uint32_t high), (o, low, high)) \
	X(sf_clr_suspend, sf_clr_info, 97, (struct sf_clr_info *o), (o))                           \
	X(sf_clr_resume_all, sf_clr_info, 98, (struct sf_clr_info *o), (o))                        \
	X(sf_clr_type_name, sf_clr_metadata, 12,                                                   \
	  (struct sf_clr_metadata *o, uint32_t type, uint16_t *ret, uint32_t n, uint32_t *n_ret, uint32_t *flags_ret, \
	   uint32_t *base_ret),                                                                    \
	  (o, type, ret, n, n_ret, flags_ret, base_ret))                                           \
	X(sf_clr_method_name, sf_clr_metadata, 30,                                                 \
	  (struct sf_clr_metadata *o, uint32_t method, uint32_t *type_ret, uint16_t *ret, uint32_t n, uint32_t *n_ret, \
	   uint32_t *flags_ret, const uint8_t **signature_ret, uint32_t *size_ret, uint32_t *place_ret, \
	   uint32_t *how_ret),                                                                     \
	  (o, method, type_ret, ret, n, n_ret, flags_ret, signature_ret, size_ret, place_ret, how_ret)) \
	X(sf_clr_outer_type, sf_clr_metadata, 62, (struct sf_clr_metadata *o, uint32_t type, uint32_t *ret), (o, type, ret)) \
	X(sf_clr_start_session, sf_clr_info, 101,                                                  \
	  (struct sf_clr_info *o, uint32_t n, const struct sf_clr_provider *providers, int32_t rundown, uint64_t *ret), \
	  (o, n, providers, rundown, ret))                                                         \
	X(sf_clr_next_threads, sf_clr_threads, 7,                                                  \
	  (struct sf_clr_threads *o, uint32_t n, uintptr_t *ret, uint32_t *n_ret), (o, n, ret, n_ret))

#define X(name, object, place, parameters, names)                                                  \
	static inline int32_t name parameters                                                      \
	{                                                                                          \
		return ((int32_t (*) parameters)sf_clr_entry(o, place)) names;                     \
	}
SF_CLR_FUNCTIONS(X)
#undef X

/* IUnknown::Release, of any of these objects. */
static inline void sf_clr_release(void *object)
{
	((uint32_t (*)(void *))sf_clr_entry(object, 2))(object);
}

#endif

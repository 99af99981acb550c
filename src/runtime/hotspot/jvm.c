/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptions of managed frames, each made once and kept. The key of an interpreted frame is its Method,
 * its ConstMethod and the bytecode. The key of compiled code is the blob, its compile id and the address.
 */
#include "runtime/hotspot/jvm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/vec.h"
#include "os/clock.h"
#include "runtime/hotspot/attach.h"
#include "runtime/hotspot/flags.h"
#include "runtime/hotspot/locks.h"
#include "runtime/hotspot/metadata.h"
#include "runtime/hotspot/method_mark.h"
#include "runtime/hotspot/scopes.h"
#include "runtime/hotspot/self_test.h"
#include "runtime/hotspot/tables.h"
#include "runtime/hotspot/threads.h"

/* A thread that is not in the list is looked for in a new one at most this often. */
#define LIST_AGE_NS 100000000
#define LIST_SHARE 20    /* listing takes at most one part in so many of the time */

struct place_key {          /* no padding */
	struct sf_method_mark method; /* of an interpreted frame */
	uint64_t token, pc;
	uint32_t id;
	int32_t bci;
	uint32_t kind, exact;
};

struct place {
	uint32_t first, n;      /* in functions */
};

struct method {
	uint64_t constant;                 /* its ConstMethod */
	const char *name, *linkage, *file; /* in texts; name "": it is none */
};

struct sf_jvm {
	struct sf_reader memory;
	struct sf_hotspot hotspot;
	char note[SF_HOTSPOT_NOTE];

	struct sf_intern *texts, *place_keys, *method_keys;
	SF_VEC(struct place) places;       /* by number of the key - 1; the same below */
	SF_VEC(struct method) methods;
	SF_VEC(struct sf_location) functions;  /* texts: in texts */
	SF_VEC(struct sf_java_expected) expected;  /* the methods at places that were expected last */

	struct sf_java_threads threads;
	uint64_t listed_ns, list_pause_ns;
	struct sf_java_objects objects;
	bool has_objects;
	uint64_t last_owner;               /* of a monitor: locks.h */
};

struct sf_jvm *sf_jvm_attach(const struct sf_reader *memory, int fd, uint64_t bias,
			     struct sf_error *err)
{
	struct sf_jvm *jvm = calloc(1, sizeof(*jvm));
	struct sf_hotspot_exports exports;

	if (jvm) {
		jvm->texts = sf_intern_create();
		jvm->place_keys = sf_intern_create();
		jvm->method_keys = sf_intern_create();
	}
	if (!jvm || !jvm->texts || !jvm->place_keys || !jvm->method_keys) {
		sf_jvm_destroy(jvm);
		sf_fail_memory(err);
		return NULL;
	}
	jvm->memory = *memory;
	if (!sf_hotspot_exports(fd, bias, &exports, err) ||
	    !sf_hotspot_attach(&jvm->memory, &exports, &jvm->hotspot, jvm->note, err)) {
		sf_jvm_destroy(jvm);
		return NULL;
	}
	jvm->hotspot.describes_all = sf_java_flag_was_given(&jvm->hotspot, &jvm->memory, "DebugNonSafepoints");
	return jvm;
}

void sf_jvm_destroy(struct sf_jvm *jvm)
{
	if (!jvm)
		return;
	sf_intern_destroy(jvm->texts);
	sf_intern_destroy(jvm->place_keys);
	sf_intern_destroy(jvm->method_keys);
	sf_vec_deinit(&jvm->places);
	sf_vec_deinit(&jvm->methods);
	sf_vec_deinit(&jvm->functions);
	sf_vec_deinit(&jvm->expected);
	sf_vec_deinit(&jvm->threads.items);
	free(jvm);
}

const struct sf_hotspot *sf_jvm_hotspot(const struct sf_jvm *jvm)
{
	return &jvm->hotspot;
}

const struct sf_reader *sf_jvm_memory(const struct sf_jvm *jvm)
{
	return &jvm->memory;
}

void sf_jvm_try_threads(struct sf_jvm *jvm, bool (*is_thread)(void *arg, int32_t tid), void *arg)
{
	sf_hotspot_self_test_threads(&jvm->hotspot, &jvm->memory, is_thread, arg, jvm->note, sizeof(jvm->note));
}

const char *sf_jvm_note(const struct sf_jvm *jvm)
{
	return jvm->note;
}

void sf_jvm_lend_code(struct sf_jvm *jvm)
{
	sf_hotspot_lend_code(&jvm->hotspot, &jvm->memory);
}

/* The text, kept; no memory: "". */
static const char *text(struct sf_jvm *jvm, const char *string)
{
	uint32_t number = *string ? sf_intern_string(jvm->texts, string) : 0;

	return number ? sf_intern_get(jvm->texts, number, NULL) : "";
}

static struct sf_method_mark mark_of(const struct sf_jvm *jvm, uint64_t method)
{
	return sf_java_method_mark(&jvm->hotspot, &jvm->memory, method);
}

static bool add_method(struct sf_jvm *jvm, const struct sf_method_mark *key)
{
	struct method method = { key->constant, "", "", "" };
	struct sf_java_method read;

	if (sf_java_method_read(&jvm->hotspot, &jvm->memory, key->method, &read)) {
		method.name = text(jvm, read.name);
		method.linkage = text(jvm, read.linkage);
		method.file = text(jvm, read.file);
	}
	if (!sf_java_method_is_there(&jvm->hotspot, &jvm->memory, key) || !sf_vec_push(&jvm->methods, method))
		return false;
	if (sf_intern_add(jvm->method_keys, key, sizeof(*key), NULL))
		return true;
	jvm->methods.n--;
	return false;
}

/* The names of a method, read once; NULL: it is none, or another one came to its place meanwhile. */
static const struct method *find_method(struct sf_jvm *jvm, uint64_t address)
{
	const struct sf_method_mark key = mark_of(jvm, address);
	uint32_t number = sf_intern_find(jvm->method_keys, &key, sizeof(key));

	if (!number && add_method(jvm, &key))
		number = sf_intern_count(jvm->method_keys);
	return number && *jvm->methods.items[number - 1].name ? &jvm->methods.items[number - 1] : NULL;
}

static void add_named(struct sf_jvm *jvm, const char *name)
{
	const char *kept = text(jvm, name);

	sf_vec_push(&jvm->functions, (struct sf_location){ .function = kept, .linkage = kept, .file = "" });
}

/* In place of what was added since there were `first`. */
static void add_gone(struct sf_jvm *jvm, size_t first)
{
	jvm->functions.n = first;
	add_named(jvm, "[Java code that is gone]");
}

static void add_scope(struct sf_jvm *jvm, const struct sf_java_scope *scope, bool inlined, bool approximate)
{
	const struct method *method = find_method(jvm, scope->method);

	if (!method) {
		add_named(jvm, "[unknown Java method]");
		return;
	}
	sf_vec_push(&jvm->functions, (struct sf_location){
		.function = method->name, .linkage = method->linkage, .file = method->file,
		.line = sf_java_line(&jvm->hotspot, &jvm->memory, method->constant, scope->bci),
		.inlined = inlined,
		.approximate = approximate,
	});
}

static void add_compiled(struct sf_jvm *jvm, const struct sf_frame *frame, bool exact)
{
	const struct sf_reader now = sf_reader_anew(&jvm->memory);
	const size_t first = jvm->functions.n;
	struct sf_java_scopes scopes;
	struct sf_blob blob, there;

	if (!sf_java_compiled(&jvm->hotspot, &jvm->memory, frame, &blob)) {
		add_gone(jvm, first);
		return;
	}
	sf_java_scopes_find(&jvm->hotspot, &jvm->memory, &blob, frame->pc, exact, &scopes);
	/* Below the innermost known call others may be missing; the rest is sure. */
	for (unsigned i = 0; i < scopes.n; i++)
		add_scope(jvm, &scopes.items[i], i + 1 < scopes.n, scopes.approximate && i == 0);
	if (!scopes.n)
		add_named(jvm, "[unknown Java method]");
	/*
	 * What has come to its place meanwhile would be described in part. JDK 17 takes the Method from code whose class is
	 * unloaded (HotSpot 17: nmethod::make_unloaded).
	 */
	if (!sf_java_compiled(&jvm->hotspot, &now, frame, &there) || there.method != blob.method)
		add_gone(jvm, first);
}

/* Of a method's code, only the ways to methods that are not compiled are stubs. */
static bool find_stub(const struct sf_jvm *jvm, const struct sf_frame *frame, char ret[SF_BLOB_NAME])
{
	const uint64_t pc = frame->pc - !(frame->flags & SF_FRAME_EXACT);
	struct sf_blob blob;

	if (!frame->token ||
	    !sf_hotspot_blob_at(&jvm->hotspot, &jvm->memory, frame->token, pc, NULL, &blob))
		return false;
	if (blob.class == SF_BLOB_COMPILED)
		snprintf(ret, SF_BLOB_NAME, "static call stub");
	else
		sf_hotspot_read_string(&jvm->memory, blob.name, ret, SF_BLOB_NAME);
	return true;
}

static void add_stub(struct sf_jvm *jvm, const struct sf_frame *frame)
{
	char name[SF_BLOB_NAME];

	if (frame->token && frame->token == jvm->hotspot.call_stub_return)
		add_named(jvm, "call_stub");
	else if (find_stub(jvm, frame, name))
		add_named(jvm, name);
	else if (frame->pc >= jvm->hotspot.interpreter_start && frame->pc < jvm->hotspot.interpreter_end)
		add_named(jvm, "Interpreter");
	else
		add_named(jvm, "[unknown stub]");
}

/* `key`: what is there now. Another ConstMethod than the walk saw is of another method in the same place. */
static void add_interpreted(struct sf_jvm *jvm, const struct sf_frame *frame, const struct sf_method_mark *key)
{
	const struct sf_java_scope scope = { frame->token, frame->bci };
	const size_t first = jvm->functions.n;

	if (sf_method_id(&(struct sf_method){ .constant = key->constant }) == frame->id)
		add_scope(jvm, &scope, false, false);
	if (jvm->functions.n == first || !sf_java_method_is_there(&jvm->hotspot, &jvm->memory, key))
		add_gone(jvm, first);
}

static void add_functions(struct sf_jvm *jvm, const struct sf_frame *frame, const struct place_key *key)
{
	const struct sf_java_scope scope = { frame->token, frame->bci };

	switch (frame->kind) {
	case SF_KIND_INTERPRETED:
		add_interpreted(jvm, frame, &key->method);
		break;
	case SF_KIND_MANAGED: /* AsyncGetCallTrace tells no id */
		add_scope(jvm, &scope, false, false);
		break;
	case SF_KIND_C1:
	case SF_KIND_C2:
	case SF_KIND_NATIVE_METHOD:
		add_compiled(jvm, frame, key->exact);
		break;
	case SF_KIND_HEAP:
		add_named(jvm, "[frames of the virtual thread in the heap]");
		break;
	default:
		add_stub(jvm, frame);
		break;
	}
}

uint32_t sf_jvm_place(struct sf_jvm *jvm, const struct sf_frame *frame)
{
	const bool exact = frame->flags & SF_FRAME_EXACT;
	const bool interpreted = sf_kind_is_by_method(frame->kind);
	const struct place_key key = {
		.token = frame->token,
		.method = interpreted ? mark_of(jvm, frame->token) : (struct sf_method_mark){ 0 },
		.pc = interpreted ? 0 : frame->pc,
		.id = frame->id,
		.bci = frame->bci,
		.kind = frame->kind,
		.exact = exact,
	};
	uint32_t number = sf_intern_add(jvm->place_keys, &key, sizeof(key), NULL);
	struct place place = { .first = (uint32_t)jvm->functions.n };

	if (number > jvm->places.n) {
		add_functions(jvm, frame, &key);
		place.n = (uint32_t)jvm->functions.n - place.first;
		if (!sf_vec_push(&jvm->places, place))
			return 0;
	}
	return number;
}

static bool has_compiled(const struct sf_frame *frame)
{
	return frame->kind == SF_KIND_C1 || frame->kind == SF_KIND_C2 || frame->kind == SF_KIND_NATIVE_METHOD;
}

static void expect_methods(struct sf_jvm *jvm, const struct sf_frame *frame)
{
	struct sf_java_scopes scopes = { .n = 1, .items = { { frame->token, frame->bci } } };
	struct sf_blob blob;

	if (!sf_kind_is_by_method(frame->kind)) {
		scopes.n = 0;
		if (has_compiled(frame) && sf_java_compiled(&jvm->hotspot, &jvm->memory, frame, &blob))
			sf_java_scopes_find(&jvm->hotspot, &jvm->memory, &blob, frame->pc,
					    frame->flags & SF_FRAME_EXACT, &scopes);
	}
	for (unsigned i = 0; i < scopes.n; i++)
		sf_vec_push(&jvm->expected,
			    (struct sf_java_expected){ .method = scopes.items[i].method });
}

void sf_jvm_expect(struct sf_jvm *jvm, const struct sf_prefetch *ahead,
		   const struct sf_frame *const *frames, size_t n)
{
	jvm->expected.n = 0;
	sf_java_scopes_expect(&jvm->hotspot, &jvm->memory, ahead, frames, n);
	for (size_t i = 0; i < n; i++)
		expect_methods(jvm, frames[i]);
	sf_java_methods_expect(&jvm->hotspot, &jvm->memory, ahead, jvm->expected.items, jvm->expected.n);
}

size_t sf_jvm_functions(struct sf_jvm *jvm, uint32_t number, const struct sf_location **ret)
{
	if (!number || number > jvm->places.n)
		return 0;
	*ret = &jvm->functions.items[jvm->places.items[number - 1].first];
	return jvm->places.items[number - 1].n;
}

uint64_t sf_jvm_thread(struct sf_jvm *jvm, int32_t tid)
{
	uint64_t thread = sf_java_threads_find(&jvm->threads, tid), now_ns;

	if (thread && sf_hotspot_is_thread(&jvm->hotspot, &jvm->memory, thread, tid))
		return thread;
	now_ns = sf_now_ns();
	if (jvm->listed_ns && now_ns - jvm->listed_ns < jvm->list_pause_ns)
		return 0;
	sf_java_threads_list(&jvm->hotspot, &jvm->memory, &jvm->threads);
	jvm->listed_ns = sf_now_ns();
	jvm->list_pause_ns = LIST_SHARE * (jvm->listed_ns - now_ns);
	if (jvm->list_pause_ns < LIST_AGE_NS)
		jvm->list_pause_ns = LIST_AGE_NS;
	return sf_java_threads_find(&jvm->threads, tid);
}

static struct sf_java_objects *objects_of(struct sf_jvm *jvm)
{
	if (!jvm->has_objects)
		sf_java_objects_init(&jvm->objects, &jvm->hotspot, &jvm->memory);
	jvm->has_objects = true;
	return &jvm->objects;
}

bool sf_jvm_thread_name(struct sf_jvm *jvm, int32_t tid, char *ret, size_t size)
{
	uint64_t thread = sf_jvm_thread(jvm, tid);

	ret[0] = 0;
	return thread &&
	       sf_java_thread_name(&jvm->hotspot, &jvm->memory, objects_of(jvm), thread, ret, size);
}

bool sf_jvm_lock_wait(struct sf_jvm *jvm, int32_t tid, bool timed, struct sf_lock_wait *ret)
{
	const struct sf_java_heap heap = { &jvm->hotspot, &jvm->memory, objects_of(jvm) };
	const uint64_t thread = sf_jvm_thread(jvm, tid);

	return thread && sf_java_lock_wait(&heap, &jvm->threads, thread, timed, &jvm->last_owner, ret);
}

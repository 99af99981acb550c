/* SPDX-License-Identifier: Apache-2.0 */
/* CoreCLR in one process: attaching, and the places in its code. */
#include "runtime/coreclr/coreclr.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "frozen/coreclr/code.h"
#include "os/task.h"
#include "runtime/coreclr/awaiters.h"
#include "runtime/coreclr/places.h"
#include "runtime/coreclr/symbols.h"
#include "runtime/coreclr/threads.h"
#include "runtime/coreclr/versions.h"
#include "runtime/coreclr/waits.h"

#define PROOF_BODIES 256u
#define NAME "/libcoreclr.so"

struct sf_clr {
	uint32_t slot;
	int32_t pid;
	uint32_t image;                /* the file with the runtime; 0: none was found */
	uint64_t bias;
	unsigned tries;
	bool refused, attached, noted;
	struct sf_clr_symbols symbols;
	struct sf_clr_description description;
	struct sf_reader memory;
	struct sf_images *files;
	struct sf_clr_images images;
	struct sf_clr_threads threads;
	struct sf_clr_thread_fields thread_fields;
	struct sf_clr_places *places;
	struct sf_clr_object_types *object_types;  /* NULL: none was needed */
	char note[700];
};

struct sf_clr *sf_clr_create(uint32_t slot)
{
	struct sf_clr *clr = calloc(1, sizeof(*clr));

	if (clr)
		clr->slot = slot;
	return clr;
}

void sf_clr_destroy(struct sf_clr *clr)
{
	sf_clr_images_deinit(&clr->images);
	sf_clr_threads_deinit(&clr->threads);
	sf_clr_places_destroy(clr->places);
	sf_clr_object_types_destroy(clr->object_types);
	free(clr);
}

static bool is_library(const char *path)
{
	const size_t n = strlen(path);

	return n >= strlen(NAME) && strcmp(path + n - strlen(NAME), NAME) == 0;
}

/* Whether this may be the program itself: code that is made at run time, assemblies and libraries are not. */
static bool may_be_program(const char *path)
{
	return *path == '/' && !strstr(path, ".so") && !strstr(path, ".dll") && strncmp(path, "/memfd:", 7) != 0;
}

/* The library, or the program itself, which may have the runtime linked into it: it is what the lowest region maps. */
static void find_image(struct sf_clr *clr, const struct sf_process *process, struct sf_images *images)
{
	uint32_t first = 0;
	uint64_t bias = 0;

	for (size_t i = 0; i < process->map->n_regions; i++) {
		const struct sf_region *region = &process->map->regions[i];
		const char *path = region->image ? sf_images_get(images, region->image)->path : "";

		if (is_library(path)) {
			clr->image = region->image;
			clr->bias = region->bias;
			return;
		}
		if (!first && may_be_program(path)) {
			first = region->image;
			bias = region->bias;
		}
	}
	clr->image = first;
	clr->bias = bias;
}

/* Inside a program files are open only while they are looked at. */
static bool read_symbols(struct sf_clr *clr, const struct sf_process *process,
			 const struct sf_image *image)
{
	const struct sf_mapping mapping = { .path = image->path, .inode = image->inode,
					    .device = image->device };
	int fd = image->fd >= 0 ? image->fd : sf_process_open_mapping(process->pid, &mapping);
	bool read = fd >= 0 && sf_clr_find_symbols(fd, &clr->symbols, NULL);

	if (fd >= 0 && fd != image->fd)
		close(fd);
	return read;
}

static void refuse(struct sf_clr *clr, const char *why)
{
	clr->refused = true;
	snprintf(clr->note, sizeof(clr->note), "no .NET frames: %s", why);
}

/* A file with none of the symbols is no runtime; the next map may have one. */
static bool is_runtime(struct sf_clr *clr, const struct sf_process *process, struct sf_images *images)
{
	const uint32_t before = clr->image;

	find_image(clr, process, images);
	if (clr->image != before) {
		clr->symbols = (struct sf_clr_symbols){ 0 };
		if (clr->image)
			read_symbols(clr, process, sf_images_get(images, clr->image));
	}
	return clr->symbols.descriptor || clr->symbols.dac_table;
}

bool sf_clr_look(struct sf_clr *clr, const struct sf_process *process, struct sf_images *images)
{
	return !clr->refused && is_runtime(clr, process, images);
}

/* A program of a single file maps the assemblies in it, too: only where its code is mapped the symbols are right. */
static void find_bias(struct sf_clr *clr, const struct sf_process *process)
{
	for (size_t i = 0; clr->symbols.descriptor && i < process->map->n_regions; i++) {
		const struct sf_region *region = &process->map->regions[i];

		if (region->image != clr->image ||
		    !sf_clr_is_descriptor(&clr->memory, region->bias + clr->symbols.descriptor))
			continue;
		clr->bias = region->bias;
		return;
	}
}

static bool describe(struct sf_clr *clr, struct sf_error *err)
{
	const uint64_t descriptor = clr->symbols.descriptor ? clr->bias + clr->symbols.descriptor : 0;
	const uint64_t dac_table = clr->symbols.dac_table ? clr->bias + clr->symbols.dac_table : 0;

	if (!sf_clr_describe(&clr->memory, descriptor, &clr->description, err))
		return false;
	if (!clr->description.range_map &&
	    !sf_clr_complete(&clr->memory, sf_clr_major(clr->symbols.version), dac_table, &clr->description))
		return sf_fail(err, SF_E_UNSUPPORTED,
			       "its version %s does not describe itself, and is none of those that are known",
			       clr->symbols.version);
	if (clr->description.is_completed && dac_table && !clr->description.range_map)
		return sf_fail(err, SF_E_GONE, "its variables have no addresses yet");
	return sf_clr_check_description(&clr->description, err);
}

/* Whether one of the last bodies in a heap of jitted code is of a method that an assembly has. */
static bool has_method(const struct sf_clr *clr, const struct sf_clr_range *range)
{
	const struct sf_clr_layout *layout = &clr->description.layout;
	const struct sf_clr_naming naming = sf_clr_places_naming(clr->places);
	uint64_t pc, start;

	if (!sf_clr_get(layout, &clr->memory, SF_CLR_HEAP_END, range->heap, &pc))
		return false;
	for (unsigned i = 0; i < PROOF_BODIES && sf_clr_find_start(layout, range->heap, &clr->memory, pc - 1, &start);
	     i++, pc = start) {
		const struct sf_clr_module *module;
		struct sf_clr_method method;

		if (!sf_clr_read_method(&clr->description, &clr->memory,
					sf_clr_jitted_method(&clr->description, &clr->memory, start), &method) || !method.row)
			continue;
		module = sf_clr_modules_find(naming.modules, naming.description, naming.memory, method.module);
		if (module && method.row <= sf_clr_n_rows(&module->metadata, SF_CLR_METHOD_DEF))
			return true;
	}
	return false;
}

/*
 * A layout that is not from a descriptor is right only if it leads to precompiled code, or to a method whose code is
 * jitted. A runtime that is starting has neither.
 */
static bool is_proved(const struct sf_clr *clr, const struct sf_coreclr *object)
{
	for (uint32_t i = 0; i < object->n_ranges; i++) {
		const struct sf_clr_range *range = &object->ranges[i];

		if (range->code == SF_CLR_CODE_PRECOMPILED ? range->functions->n > 0
							   : range->code == SF_CLR_CODE_JITTED && has_method(clr, range))
			return true;
	}
	return false;
}

struct sf_coreclr *sf_clr_attach(struct sf_clr *clr, const struct sf_process *process, struct sf_images *images,
				 const struct sf_reader *memory)
{
	struct sf_error err = { 0 };
	struct sf_coreclr *object;

	clr->tries++;
	clr->memory = *memory;
	clr->files = images;
	clr->pid = process->pid;
	find_bias(clr, process);
	if (!describe(clr, &err)) {
		if (err.code != SF_E_GONE)
			refuse(clr, err.text);
		return NULL;
	}
	if (!clr->places)
		clr->places = sf_clr_places_create(&clr->description, &clr->memory, clr->pid);
	object = clr->places ? sf_clr_object_create(&clr->description, &clr->memory, &clr->images, process,
						    images, clr->slot) : NULL;
	if (!object)
		return NULL;
	if (clr->description.is_completed && !is_proved(clr, object)) {
		sf_clr_object_destroy(object);
		if (clr->tries > SF_CLR_EASY_TRIES)
			refuse(clr, "its structures are not as this version is known to have them");
		return NULL;
	}
	clr->attached = true;
	if (*clr->description.note)
		snprintf(clr->note, sizeof(clr->note), ".NET is shown %s", clr->description.note);
	sf_clr_places_use(clr->places, object);
	return object;
}

struct sf_coreclr *sf_clr_refresh(struct sf_clr *clr, const struct sf_process *process,
				  const struct sf_coreclr *present)
{
	struct sf_coreclr *object = sf_clr_object_create(&clr->description, &clr->memory, &clr->images, process,
							 clr->files, clr->slot);

	if (object && sf_clr_object_equals(object, present)) {
		sf_clr_object_destroy(object);
		return NULL;
	}
	if (object)
		sf_clr_places_use(clr->places, object);
	return object;
}

const char *sf_clr_news(struct sf_clr *clr)
{
	if (clr->noted || !clr->note[0])
		return NULL;
	clr->noted = true;
	return clr->note;
}

uint32_t sf_clr_place(struct sf_clr *clr, const struct sf_frame *frame)
{
	return sf_clr_places_number(clr->places, frame);
}

uint8_t sf_clr_kind(const struct sf_clr *clr, uint32_t place)
{
	return sf_clr_places_kind(clr->places, place);
}

size_t sf_clr_functions(struct sf_clr *clr, uint32_t place, const struct sf_location **ret)
{
	return sf_clr_places_functions(clr->places, place, ret);
}

uint64_t sf_clr_thread(struct sf_clr *clr, int32_t tid)
{
	const struct sf_clr_thread *thread = sf_clr_threads_find(&clr->threads, tid);
	uint64_t id;

	if (thread && sf_clr_get(&clr->description.layout, &clr->memory, SF_CLR_THREAD_OS_ID, thread->thread, &id) &&
	    id == (uint64_t)tid)
		return thread->thread;
	if (!sf_clr_threads_read(&clr->description, &clr->memory, &clr->threads))
		return 0;
	thread = sf_clr_threads_find(&clr->threads, tid);
	return thread ? thread->thread : 0;
}

/* Threads of the runtime whose names the system has cut, and which have no other. To add one: add a line. */
static const char *const own_threads[] = { ".NET SynchManager", ".NET Tiered Compilation Worker" };

static bool name_own_thread(const struct sf_clr *clr, int32_t tid, char *ret, size_t size)
{
	char cut[SF_TASK_NAME];

	if (!sf_task_name(clr->pid, tid, cut))
		return false;
	for (size_t i = 0; i < sizeof(own_threads) / sizeof(own_threads[0]); i++) {
		if (strncmp(cut, own_threads[i], sizeof(cut) - 1) == 0) {
			snprintf(ret, size, "%s", own_threads[i]);
			return true;
		}
	}
	return false;
}

enum sf_naming sf_clr_name_thread(struct sf_clr *clr, int32_t tid, char *ret, size_t size)
{
	const struct sf_clr_naming naming = sf_clr_places_naming(clr->places);
	const uint64_t thread = sf_clr_thread(clr, tid);
	enum sf_naming named;

	*ret = 0;
	named = thread ? sf_clr_thread_name(&naming, &clr->thread_fields, thread, ret, size) : SF_UNNAMED;
	return named == SF_UNNAMED && name_own_thread(clr, tid, ret, size) ? SF_NAMED : named;
}

/* A monitor's own record says whether the wait has a time-out: in the kernel it may have one in any case. */
bool sf_clr_find_lock_wait(struct sf_clr *clr, int32_t tid, const struct sf_trace *trace, bool timed, struct sf_lock_wait *ret)
{
	const struct sf_clr_naming naming = sf_clr_places_naming(clr->places);
	const uint64_t thread = sf_clr_thread(clr, tid);
	const struct sf_clr_lock_type *type;
	uint32_t at;

	if (!thread)
		return false;
	if (sf_clr_lock_wait(&naming, sf_clr_major(clr->symbols.version), &clr->threads, thread, ret))
		return true;
	type = sf_clr_waited_type(clr->places, trace, clr->slot, &at);
	if (!type || !sf_clr_object_wait(&naming, &clr->threads, thread, type, trace, at, ret))
		return false;
	ret->timed = timed;
	return true;
}

const char *sf_clr_find_purpose(struct sf_clr *clr, const struct sf_trace *trace)
{
	return sf_clr_purpose(clr->places, trace, clr->slot);
}

uint32_t sf_clr_find_awaiters(struct sf_clr *clr, const struct sf_still *still, const struct sf_trace *trace, struct sf_frame *ret,
			      uint32_t capacity, uint32_t *at_ret)
{
	if (!clr->object_types)
		clr->object_types = sf_clr_object_types_create();
	return clr->object_types ?
		sf_clr_awaiters(clr->object_types, clr->places, still, trace, clr->slot, ret, capacity, at_ret) : 0;
}

void sf_clr_examine(const struct sf_clr *clr, const struct sf_runtime_findings *findings)
{
	char text[sizeof(clr->note) + 200];
	const char *known = !clr->description.is_completed ? "" : clr->attached ? " (in part by a table for this version)" :
		" (what is known of this version does not fit, or it is starting)";

	if (!clr->image || !(clr->symbols.descriptor || clr->symbols.dac_table))
		return;
	snprintf(text, sizeof(text), ".NET %s: %s%s%s%s", clr->symbols.version,
		 clr->attached ? "its frames are shown" : "its frames are not shown", known,
		 *clr->note ? "; " : "", clr->note);
	findings->add(findings, clr->attached, text, "");
}

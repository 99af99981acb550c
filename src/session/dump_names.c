/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of dumps: the addresses of all threads are sorted by image and address, each once, and are resolved by
 * image. Then every trace is expanded from the results.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/output.h"
#include "base/search.h"
#include "os/clock.h"
#include "session/dump.h"
#include "session/lock_waits.h"
#include "symbols/lookup.h"

#define PAUSE_NS 1000000u     /* between two attempts at a name that a collector moves */
#define MAX_PAUSES 500u       /* of all threads */

/* The number of a text of the target's, cleaned; 0: no memory. */
static uint32_t add_text(struct sf_dumps *dumps, const char *text)
{
	SF_CLEANUP(free) char *clean = NULL;

	if (sf_is_text(text))
		return sf_intern_string(dumps->strings, text);
	clean = strdup(text);
	if (!clean)
		return 0;
	sf_sanitize(clean);
	return sf_intern_string(dumps->strings, clean);
}

/* A place to look up, and its functions: a run of `n` in the flat array from `first`. */
struct place {
	uint32_t image;
	uint32_t first, n;
	uint64_t address;
};

struct naming {
	struct sf_dumps *dumps;
	struct sf_dump *dump;                 /* the one whose frames are expanded */
	struct sf_process_runtimes *runtimes; /* its; NULL: none */
	SF_VEC(struct place) places;
	SF_VEC(struct sf_dump_frame) functions;
	struct sf_lookup lookup;
	unsigned n_pauses;          /* for names that could not be read at once */
	bool no_memory;
};

/* The places of an image. */
struct image_places {
	struct naming *naming;
	struct place *first;
	uint64_t *addresses;        /* of the places; owned */
};

static struct place place_of(const struct sf_frame *frame)
{
	bool exact = frame->flags & SF_FRAME_EXACT;

	return (struct place){ .image = frame->image, .address = frame->address - !exact };
}

static bool is_native(const struct sf_frame *frame)
{
	return !sf_kind_is_managed(frame->kind);
}

static int compare(const void *a, const void *b)
{
	const struct place *left = a, *right = b;

	return left->image != right->image ? sf_order(left->image, right->image) : sf_order(left->address, right->address);
}

static bool add_places(struct naming *naming, const struct sf_dump *dump)
{
	for (size_t i = 0; i < dump->threads.n; i++) {
		const struct sf_dump_thread *thread = &dump->threads.items[i];

		for (size_t j = 0; j < thread->trace.n; j++) {
			if (is_native(&thread->trace.items[j]) &&
			    !sf_vec_push(&naming->places, place_of(&thread->trace.items[j])))
				return false;
		}
	}
	return true;
}

static bool collect(struct naming *naming)
{
	size_t n = 0;

	for (size_t i = 0; i < naming->dumps->items.n; i++) {
		if (!add_places(naming, &naming->dumps->items.items[i]))
			return false;
	}
	if (!naming->places.n)
		return true;
	qsort(naming->places.items, naming->places.n, sizeof(struct place), compare);
	for (size_t i = 1; i < naming->places.n; i++) {
		if (compare(&naming->places.items[n], &naming->places.items[i]) != 0)
			naming->places.items[++n] = naming->places.items[i];
	}
	naming->places.n = n + 1;
	return true;
}

/* A frame with its names only. */
static struct sf_dump_frame name_of(struct sf_dumps *dumps, const struct sf_location *location)
{
	return (struct sf_dump_frame){
		.function = add_text(dumps, location->function),
		.file = *location->file ? add_text(dumps, location->file) : 0,
		.line = location->line,
		.inlined = location->inlined,
		.approximate = location->approximate,
	};
}

static void on_location(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	const struct image_places *places = arg;
	struct naming *naming = places->naming;
	struct place *place = &places->first[index];

	if (!sf_vec_reserve(&naming->functions, n)) {
		naming->no_memory = true;
		return;
	}
	place->first = (uint32_t)naming->functions.n;
	place->n = (uint32_t)n;
	for (size_t i = 0; i < n; i++)
		naming->functions.items[naming->functions.n++] = name_of(naming->dumps, &locations[i]);
}

/* The images that are looked up, and their places. */
struct images {
	SF_VEC(struct sf_lookup_image) lookups;
	SF_VEC(struct image_places) places;
};

static bool add_image(struct images *images, struct naming *naming, size_t first, size_t n)
{
	struct place *places = &naming->places.items[first];
	const struct sf_image *image = sf_images_get(naming->dumps->walker.images, places->image);
	struct image_places of_image = { naming, places, malloc(n * sizeof(uint64_t)) };
	const struct sf_lookup_image lookup = { .fd = image->fd, .path = image->path, .is_perf_map = image->is_perf_map,
						.addresses = of_image.addresses, .n = n };

	for (size_t i = 0; of_image.addresses && i < n; i++)
		of_image.addresses[i] = places[i].address;
	if (of_image.addresses && sf_vec_push(&images->places, of_image))
		return sf_vec_push(&images->lookups, lookup);
	free(of_image.addresses);
	return false;
}

/* A file that was written to since it was opened has other functions at these addresses. */
static bool has_names(struct sf_image *image)
{
	return image->fd >= 0 && !sf_image_is_rewritten(image);
}

/* Each image with a file, with all its places. */
static bool add_images(struct images *images, struct naming *naming)
{
	bool fine = true;

	for (size_t first = 0, n; fine && first < naming->places.n; first += n) {
		const uint32_t image = naming->places.items[first].image;

		for (n = 1; first + n < naming->places.n; n++) {
			if (naming->places.items[first + n].image != image)
				break;
		}
		if (image && has_names(sf_images_get(naming->dumps->walker.images, image)))
			fine = add_image(images, naming, first, n);
	}
	return fine;
}

static void resolve(struct naming *naming)
{
	struct images images = { 0 };

	naming->no_memory = !add_images(&images, naming);
	for (size_t i = 0; i < images.lookups.n; i++)
		images.lookups.items[i].arg = &images.places.items[i];
	if (!naming->no_memory)
		sf_lookup_resolve(&naming->lookup, images.lookups.items, images.lookups.n, on_location, NULL);
	for (size_t i = 0; i < images.places.n; i++)
		free(images.places.items[i].addresses);
	sf_vec_deinit(&images.lookups);
	sf_vec_deinit(&images.places);
}

static bool add_frame(struct sf_dump_thread *thread, const struct sf_frame *frame,
		      struct sf_dump_frame named)
{
	named.pc = frame->pc;
	named.address = frame->address;
	named.image = frame->image;
	named.via = frame->via;
	named.kind = frame->kind;
	return sf_vec_push(&thread->frames, named);
}

static bool expand_native(const struct naming *naming, struct sf_dump_thread *thread,
			  const struct sf_frame *frame)
{
	struct place key = place_of(frame);
	const struct place *place = bsearch(&key, naming->places.items, naming->places.n,
					    sizeof(key), compare);

	if (!place->n && !add_frame(thread, frame, (struct sf_dump_frame){ 0 }))
		return false;
	for (uint32_t j = 0; j < place->n; j++) {
		if (!add_frame(thread, frame, naming->functions.items[place->first + j]))
			return false;
	}
	return true;
}

static bool expand_managed(const struct naming *naming, struct sf_dump_thread *thread,
			const struct sf_frame *frame)
{
	const struct sf_location *functions;
	struct sf_runtimes *runtimes = &naming->runtimes->all;
	const uint32_t place = sf_runtimes_place(runtimes, frame);
	struct sf_frame known = *frame;
	size_t n;

	known.kind = sf_runtimes_kind(runtimes, frame, place);
	n = sf_runtimes_functions(runtimes, frame, place, &functions);
	for (size_t i = 0; i < n; i++) {
		if (!add_frame(thread, &known, name_of(naming->dumps, &functions[i])))
			return false;
	}
	return n > 0;
}

static bool expand(const struct naming *naming, struct sf_dump_thread *thread)
{
	for (size_t i = 0; i < thread->trace.n; i++) {
		const struct sf_frame *frame = &thread->trace.items[i];

		if (!(is_native(frame) || !naming->runtimes ? expand_native(naming, thread, frame)
							    : expand_managed(naming, thread, frame)))
			return false;
	}
	return true;
}

/* The system keeps 15 bytes of a thread's name; a runtime has all of it. */
static void name_thread(struct naming *naming, struct sf_dump_thread *thread)
{
	char name[SF_RUNTIME_NAME];
	enum sf_naming named = SF_NAMED_LATER;

	for (; named == SF_NAMED_LATER && naming->n_pauses < MAX_PAUSES; naming->n_pauses++) {
		named = sf_process_runtimes_name(naming->runtimes, naming->dump->pid, thread->seen.tid, name);
		if (named == SF_NAMED)
			memcpy(thread->name, name, sizeof(name));
		if (named != SF_NAMED_LATER)
			return;
		sf_sleep_until(sf_now_ns() + PAUSE_NS);
	}
}

/* By the functions of its runtime, which are those of the moment at which it was blocked. */
static const char *purpose_of(const struct naming *naming, const struct sf_dump_thread *thread)
{
	const struct sf_trace trace = { .frames = thread->trace.items, .n_frames = (uint32_t)thread->trace.n };

	return thread->seen.loss < 0 && thread->seen.state == SF_STATE_BLOCKED ?
		sf_runtimes_purpose(&naming->runtimes->all, &trace) : NULL;
}

/* Images are opened by their paths as they are; these are copies to be shown. */
static bool take_paths(struct sf_dumps *dumps)
{
	struct sf_images *images = dumps->walker.images;

	for (uint32_t i = 1; i <= sf_images_count(images); i++) {
		if (!sf_vec_push(&dumps->paths, add_text(dumps, sf_images_get(images, i)->path)))
			return false;
	}
	return true;
}

static bool name_dump(struct naming *naming, struct sf_dump *dump)
{
	naming->dump = dump;
	naming->runtimes = sf_walker_runtimes(&naming->dumps->walker, dump->pid);
	for (size_t i = 0; i < dump->threads.n; i++) {
		if (!expand(naming, &dump->threads.items[i]))
			return false;
	}
	for (size_t i = 0; naming->runtimes && i < dump->threads.n; i++)
		name_thread(naming, &dump->threads.items[i]);
	for (size_t i = 0; naming->runtimes && i < dump->threads.n; i++)
		dump->threads.items[i].purpose = purpose_of(naming, &dump->threads.items[i]);
	sf_lock_waits_find(dump, naming->runtimes);
	return true;
}

/* The processes of a dump share what is missing, so the last one's note stands for all. */
static void add_note(struct sf_dumps *dumps, const char *note)
{
	struct sf_dump *last = dumps->items.n ? &dumps->items.items[dumps->items.n - 1] : NULL;

	if (last && !last->note)
		last->note = note;
}

bool sf_dumps_name(struct sf_dumps *dumps, struct sf_error *err)
{
	struct naming naming = { .dumps = dumps, .lookup = sf_lookup_begin(NULL) };
	bool fine = take_paths(dumps) && collect(&naming);

	if (fine)
		resolve(&naming);
	add_note(dumps, sf_lookup_note(&naming.lookup));
	for (size_t i = 0; fine && !naming.no_memory && i < dumps->items.n; i++)
		fine = name_dump(&naming, &dumps->items.items[i]);
	sf_vec_deinit(&naming.places);
	sf_vec_deinit(&naming.functions);
	return fine && !naming.no_memory ? true : sf_fail_memory(err);
}
